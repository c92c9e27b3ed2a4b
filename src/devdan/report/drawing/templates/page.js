(() => {
  // The page is complete without this: it adds a crosshair with figures.
  const { end, series, runs } = JSON.parse(document.getElementById("points").textContent);
  const plots = [...document.querySelectorAll(".plot")];
  const make = (tag, parent, text = "", style = "") => {
    const element = parent.appendChild(document.createElement(tag));
    element.textContent = text;
    if (style) element.className = style;
    return element;
  };
  const written = (value, { digits, unit }) => value === null
    ? "–" : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }) + unit;
  const hairs = plots.map((plot) => make("div", plot, "", "hair"));
  const tip = make("div", document.body, "", "tip");
  let place = 0;  // of the point that is shown, among those of the longest run
  const longest = runs.reduce((a, b) => (b.ends.at(-1) > a.ends.at(-1) ? b : a));
  // The point that a sample falls into.
  const find = (ends, sample) => {
    let low = 0, high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[middle] < sample) low = middle + 1; else high = middle;
    }
    return low;
  };
  const hide = () => { tip.hidden = true; hairs.forEach((hair) => { hair.hidden = true; }); };
  const show = (plot, sample) => {
    place = Math.min(find(longest.ends, sample), longest.ends.length - 1);
    const at = longest.ends[place], share = at / end;
    hairs.forEach((hair) => { hair.hidden = false; hair.style.left = `${100 * share}%`; });
    tip.textContent = "";
    make("b", tip, `Sample ${written(at, { digits: 0, unit: "" })}`);
    const table = make("table", tip);
    const shown = series.map((one, n) => ({ ...one, n })).filter((one) => one.charts === plot.dataset.series);
    if (runs.length === 1) {
      shown.forEach((one) => {
        const row = make("tr", table);
        make("th", row, one.name);
        make("td", row, written(runs[0].values[one.n][place], one));
      });
    } else {
      const head = make("tr", table);
      make("th", head);
      shown.forEach(({ name }) => make("th", head, name));
      runs.filter(({ ends }) => at <= ends.at(-1)).forEach(({ name, ends, values }) => {
        const row = make("tr", table), own = find(ends, at);
        make("th", row, name);
        shown.forEach((one) => make("td", row, written(values[one.n][own], one)));
      });
    }
    plot.append(tip);
    tip.hidden = false;
    // On the side with more room, and never out of the window.
    const box = plot.getBoundingClientRect(), x = share * box.width;
    const left = share > 0.5 ? x - tip.offsetWidth - 12 : x + 12;
    const room = document.documentElement.clientWidth - box.left - tip.offsetWidth - 6;
    tip.style.left = `${Math.max(6 - box.left, Math.min(left, room))}px`;
  };
  hide();
  plots.forEach((plot) => {
    const point = (event) => {
      const box = plot.getBoundingClientRect();
      show(plot, Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * end);
    };
    plot.tabIndex = 0;
    plot.addEventListener("pointermove", point);
    plot.addEventListener("pointerdown", point);
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      show(plot, longest.ends[Math.max(0, Math.min(longest.ends.length - 1, place + step))]);
    });
  });
})();
