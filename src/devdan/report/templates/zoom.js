// Zooming and moving, in all charts of the page together. Charts are drawn without this; it widens what is in them.
const { end, ends, charts } = JSON.parse(document.getElementById("points").textContent);
const plots = [...document.querySelectorAll(".plot")];
const finest = Math.max(...ends.map((own) => own.length));
const smallest = Math.min(end, Math.max(1, 5 * end / finest));  // about five points
const view = { from: 0, to: end };
const make = (tag, parent, text = "", style = "") => {
  const element = parent.appendChild(document.createElement(tag));
  element.textContent = text;
  if (style) element.className = style;
  return element;
};
const whole = (value) => Math.round(value).toLocaleString("en");
const within = (low, value, high) => Math.max(low, Math.min(high, value));

// Round numbers between two others, as in chart.py.
const ticks = (low, high, most) => {
  const size = 10 ** Math.floor(Math.log10((high - low) / most));
  const step = Math.max(1, size * [1, 2, 5, 10].find((times) => (high - low) / (size * times) <= most));
  const first = Math.ceil(low / step), last = Math.floor(high / step);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, n) => (first + n) * step);
};
const axes = plots.map((plot) => plot.querySelector(".below")), drawn = axes.map((axis) => axis.innerHTML);
const draw_axis = (axis, n) => {
  if (view.to - view.from >= end) { axis.innerHTML = drawn[n]; return; }
  const most = within(2, Math.floor(plots[n].clientWidth / 110), 8);
  axis.innerHTML = ticks(view.from, view.to, most).map((tick) => {
    const x = `${100 * (tick - view.from) / (view.to - view.from)}%`;
    return `<line class="notch" x1="${x}" x2="${x}" y1="100%" y2="100%" transform="translate(0 4)"/>`
      + `<text class="tick" x="${x}" y="100%" dy="18" text-anchor="middle">${whole(tick)}</text>`;
  }).join("");
};

let later = 0;
const watchers = [];  // whoever must follow
const zoom = (from, to) => {
  const width = within(smallest, to - from, end);
  view.from = within(0, (from + to - width) / 2, end - width);
  view.to = view.from + width;
  const zoomed = width < end;
  document.body.classList.toggle("zoomed", zoomed);
  for (const moves of document.querySelectorAll(".plot .moves")) {
    moves.setAttribute("width", `${100 * end / width}%`);
    moves.setAttribute("x", `${-100 * view.from / width}%`);
  }
  axes.forEach(draw_axis);
  told.textContent = zoomed ? `Samples ${whole(view.from)} to ${whole(view.to)}` : "";
  reset.disabled = out.disabled = !zoomed;
  closer.disabled = width <= smallest;
  earlier.disabled = view.from <= 0;
  onwards.disabled = view.to >= end;
  watchers.forEach((watcher) => watcher());
  // In the address, so that it is kept when the page is loaded again, and can be sent to others.
  clearTimeout(later);
  later = setTimeout(() => {
    history.replaceState(null, "", zoomed ? `#samples=${Math.round(view.from)}-${Math.round(view.to)}` : "#samples=all");
  }, 200);
};
const zoom_by = (factor, around = (view.from + view.to) / 2) => {
  zoom(around - (around - view.from) * factor, around + (view.to - around) * factor);
};
const move_by = (share) => {
  const by = within(-view.from, share * (view.to - view.from), end - view.to);
  zoom(view.from + by, view.to + by);
};

const bar = document.createElement("div");
bar.className = "zoom";
bar.setAttribute("role", "group");
bar.setAttribute("aria-label", "Zoom of all charts");
const button = (text, name, act) => {
  const element = make("button", bar, text);
  element.type = "button";
  if (name) element.setAttribute("aria-label", element.title = name);
  element.addEventListener("click", act);
  return element;
};
const out = button("−", "Zoom out", () => zoom_by(2));
const closer = button("+", "Zoom in", () => zoom_by(0.5));
const earlier = button("‹", "Earlier samples", () => move_by(-0.5));
const onwards = button("›", "Later samples", () => move_by(0.5));
const reset = button("Whole stream", "", () => zoom(0, end));
const told = make("span", bar, "", "told");
told.setAttribute("role", "status");
make("span", bar, "Drag across a chart to zoom in; with Shift, or by scrolling sideways, move. Keys: + − 0 and arrows.", "hint");
if (plots.length) plots[0].closest(".charts").prepend(bar);

plots.forEach((plot) => {
  const sample = (x) => {
    const box = plot.getBoundingClientRect();
    return view.from + within(0, (x - box.left) / box.width, 1) * (view.to - view.from);
  };
  plot.addEventListener("wheel", (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (event.ctrlKey || event.metaKey) zoom_by(1.002 ** event.deltaY, sample(event.clientX));
    else if (sideways && view.to - view.from < end) move_by((event.deltaX || event.deltaY) / plot.clientWidth);
    else return;
    event.preventDefault();
  }, { passive: false });
  plot.addEventListener("dblclick", () => zoom(0, end));
  // One pointer chooses a range or, as a finger or with Shift, moves; two pinch.
  const down = new Map();
  let begin = null, chosen = null;
  plot.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    down.set(event.pointerId, event.clientX);
    plot.setPointerCapture(event.pointerId);
    begin = { x: event.clientX, sample: sample(event.clientX), ...view, moves: event.shiftKey || event.pointerType === "touch" };
  });
  plot.addEventListener("pointermove", (event) => {
    if (!down.has(event.pointerId)) return;
    const before = [...down.values()];
    down.set(event.pointerId, event.clientX);
    const now = [...down.values()];
    if (now.length === 2) {
      const gap = (xs) => Math.max(20, Math.abs(xs[0] - xs[1]));
      zoom_by(gap(before) / gap(now), sample((now[0] + now[1]) / 2));
    } else if (begin.moves) {
      const by = (begin.x - event.clientX) / plot.clientWidth * (begin.to - begin.from);
      zoom(begin.from + within(-begin.from, by, end - begin.to), begin.to + within(-begin.from, by, end - begin.to));
    } else {
      const box = plot.getBoundingClientRect(), xs = [begin.x, event.clientX].map((x) => within(0, x - box.left, box.width));
      chosen ??= make("div", plot, "", "chosen");
      chosen.style.left = `${Math.min(...xs)}px`;
      chosen.style.width = `${Math.abs(xs[0] - xs[1])}px`;
    }
  });
  const release = (event) => {
    if (!down.delete(event.pointerId)) return;
    if (chosen && event.type === "pointerup" && Math.abs(event.clientX - begin.x) > 6) {
      const edges = [begin.sample, sample(event.clientX)];
      zoom(Math.min(...edges), Math.max(...edges));
    }
    chosen?.remove();
    chosen = null;
    for (const x of down.values()) begin = { x, sample: sample(x), ...view, moves: true };
  };
  plot.addEventListener("pointerup", release);
  plot.addEventListener("pointercancel", release);
});
const asked = /^#samples=(\d+)-(\d+)$/.exec(location.hash);
zoom(...(asked ? asked.slice(1).map(Number) : [0, end]));
