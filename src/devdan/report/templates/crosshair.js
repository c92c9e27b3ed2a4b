// The crosshair: the figures at a sample, in all charts, by pointer or by keyboard.
const written = (value, { digits, suffix }) => value === null
  ? "–" : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }) + suffix;
const hairs = plots.map((plot) => make("div", plot, "", "hair"));
const tip = make("div", document.body, "", "tip");
const said = make("div", document.body, "", "unseen");  // what is read aloud
said.setAttribute("role", "status");
let at = null;  // the sample that is shown
// The point that a sample falls into.
const find = (own, sample) => {
  let low = 0, high = own.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (own[middle] < sample) low = middle + 1; else high = middle;
  }
  return low;
};
const points_of = (plot) => (charts[plot.dataset.series] ?? []).map((run) => ({ ...run, ends: ends[run.ends] }));
const longest = (plot) => points_of(plot).reduce((a, b) => (b.ends.at(-1) > a.ends.at(-1) ? b : a)).ends;
const hide = () => { at = null; tip.hidden = true; hairs.forEach((hair) => { hair.hidden = true; }); };
const put_hairs = () => {
  const share = (at - view.from) / (view.to - view.from);
  hairs.forEach((hair) => { hair.hidden = at === null || share < 0 || share > 1; hair.style.left = `${100 * share}%`; });
  return share;
};
const show = (plot, sample) => {
  const runs = points_of(plot);
  if (!runs.length) return "";
  const own = longest(plot);
  at = own[Math.min(find(own, sample), own.length - 1)];
  const share = put_hairs();
  tip.textContent = "";
  make("b", tip, `Sample ${whole(at)}`);
  const table = make("table", tip), words = [];
  const single = runs.length === 1;
  if (!single) {
    const head = make("tr", table);
    make("th", head);
    runs[0].series.forEach(({ name }) => make("th", head, name));
  }
  runs.filter((run) => at <= run.ends.at(-1)).forEach((run) => {
    const place = find(run.ends, at), row = single ? null : make("tr", table);
    if (row) make("th", row, run.run);
    run.series.forEach((one) => {
      const line = row ?? make("tr", table), value = written(one.values[place], one);
      if (single) make("th", line, one.name);
      make("td", line, value);
      words.push(`${single ? "" : `${run.run} `}${one.name} ${value}`);
    });
  });
  plot.append(tip);
  tip.hidden = hairs[plots.indexOf(plot)].hidden;
  // On the side with more room, and never out of the window.
  const box = plot.getBoundingClientRect(), x = share * box.width;
  const left = share > 0.5 ? x - tip.offsetWidth - 12 : x + 12;
  const room = document.documentElement.clientWidth - box.left - tip.offsetWidth - 6;
  tip.style.left = `${Math.max(6 - box.left, Math.min(left, room))}px`;
  return `Sample ${whole(at)}: ${words.join(", ")}`;
};
hide();
watchers.push(() => { tip.hidden = true; put_hairs(); });
plots.forEach((plot) => {
  const point = (event) => {
    const box = plot.getBoundingClientRect();
    show(plot, view.from + within(0, (event.clientX - box.left) / box.width, 1) * (view.to - view.from));
  };
  plot.tabIndex = 0;
  plot.setAttribute("role", "group");
  const name = plot.closest("figure").querySelector("h2").textContent;
  plot.setAttribute("aria-label", `${name}: arrow keys show figures, plus and minus zoom, Shift and arrow keys move`);
  plot.addEventListener("pointermove", (event) => { if (!event.buttons || event.pointerType !== "mouse") point(event); });
  plot.addEventListener("pointerdown", point);
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const own = longest(plot), step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") hide();
    else if (event.key === "+" || event.key === "=") zoom_by(0.5, at ?? undefined);
    else if (event.key === "-") zoom_by(2, at ?? undefined);
    else if (event.key === "0") zoom(0, end);
    else if (step && event.shiftKey) move_by(step > 0 ? 0.25 : -0.25);
    else if (step) {
      const now = at === null ? find(own, view.from) - (step > 0 ? 1 : 0) : find(own, at);
      const next = own[within(0, now + step, own.length - 1)], width = view.to - view.from;
      if (next < view.from || next > view.to) zoom(next - width / 2, next + width / 2);
      said.textContent = show(plot, next);
    } else return;
    event.preventDefault();
  });
});
