"""Charts of a grid: rates by stream, against speed and against the labels that arrive; two of them as figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

from markupsafe import Markup

from devdan.bench.grid_results import GridResults, fraction_of, is_own, policy_name, published
from devdan.bench.ranking import diagram, style_of
from devdan.evaluation.measures import RATE, in_tables
from devdan.report.chart import Chart, Plot, Values, ticks
from devdan.report.render import WIDTH, caption, framed, placed, render
from devdan.report.words import heading, number, short, written

SHAPES = Markup(  # of marks, by their ids
    '<rect id="square" x="-4.3" y="-4.3" width="8.6" height="8.6"/>'
    '<polygon id="diamond" points="0,-5.9 5.9,0 0,5.9 -5.9,0"/>'
    '<circle id="ring" r="7"/><path id="beyond" d="M-7,0L3-5V5Z"/>'
)
_DOT = Markup('<circle id="dot" r="5"/>')  # which every page has
_WIDE, _NARROW = 660, 235  # pixels of the speed chart


class Strip(NamedTuple):
    """All models on one stream."""

    stream: str
    by: str  # what they are compared by
    best: str
    chart: Chart
    clipped: bool  # some values are worse than its range


def strips(grid: GridResults) -> list[Strip]:
    """One strip per stream, each with its own range of values."""
    known = {stream for stream, _ in grid.scores}
    return [_strip(grid, stream) for stream in grid.plan.streams if stream in known]


def _strip(grid: GridResults, stream: str) -> Strip:
    scores = {model: score for (own, model), score in grid.scores.items() if own == stream}
    measure = in_tables()[grid.by(stream)]
    sign = measure.better or 1
    texts = {model: written(measure, sign * score) for model, score in scores.items()}
    figure = published(stream, "CR", "DEVDAN") if grid.main == "all" and measure is RATE else None
    values = [*scores.values(), *([figure.mean] if figure else [])]
    top, middle = max(values), median(values)
    last = 10.0**-measure.digits
    low = max(min(values), top - 4 * max(top - middle, 5 * last))  # a few low values must not squeeze the others
    room = max(0.03 * (top - low), last / 2)
    plane = Plot(1000, low - room, top + room)
    places = {model: 100 - plane.y(max(rate, low)) for model, rate in scores.items()}
    lanes = _lanes(places)
    body = Markup('<line class="axis" x1="0" x2="100%" y1="100%" y2="100%"/>')
    for step in ticks(plane.low, plane.high, 4):
        body += Markup(
            '<line class="grid" x1="{0:.2f}%" x2="{0:.2f}%" y1="0" y2="100%"/>'
            '<text class="tick" x="{0:.2f}%" y="100%" dy="15" text-anchor="middle">{1}</text>'
        ).format(100 - plane.y(step), f"{sign * step + 0.0:.6g}")
    for model in sorted(scores, key=lambda model: style_of(model) != "rest"):
        body += Markup(
            '<use href="#{}" class="mark {}" x="{:.2f}%" y="50%" transform="translate(0 {})">{}</use>'
        ).format(
            "beyond" if scores[model] < low else shape_of(model),
            mark_style(model),
            places[model],
            7 * lanes[model],
            Markup("<title>{}</title>").format(f"{model}: {texts[model]} {measure.unit_of_measure}".rstrip()),
        )
    if figure:
        body += Markup('<use href="#ring" class="mark own-paper" x="{:.2f}%" y="50%"><title>{}</title></use>').format(
            100 - plane.y(max(figure.mean, low)), f"DEVDAN in the paper: {figure.mean:.2f} %"
        )
    order = sorted(scores, key=lambda model: -scores[model])
    label = f"{measure.title} on {stream}, from the best: {', '.join(f'{model} {texts[model]}' for model in order)}"
    clipped = min(scores.values()) < low
    return Strip(stream, heading(measure), f"{order[0]} {texts[order[0]]}", Chart(body, label), clipped)


def _lanes(places: dict[str, float]) -> dict[str, int]:
    """Each model's vertical offset, so that close marks are all visible; ours stay in the middle."""
    lanes: dict[str, int] = {}
    for model in sorted(places, key=lambda model: (mark_style(model) == "rest", places[model])):
        taken = {lanes[other] for other in lanes if abs(places[other] - places[model]) < 1.7}
        free = [lane for lane in (0, -1, 1, -2, 2) if lane not in taken]
        lanes[model] = free[0] if free else 0
    return lanes


def shape_of(model: str) -> str:
    """The shape of a model's mark, by the package that it is from."""
    return "dot" if is_own(model) else "square" if model.startswith("river-") else "diamond"


def legend(grid: GridResults) -> list[tuple[str, str, str]]:
    """Shape, style and meaning of the marks in use."""
    models = grid.plan.models
    marks: list[tuple[str, str, str]] = [
        ("dot", mark_style(model), model) for model in ("devdan", "devdan-paper") if model in models
    ]
    if grid.main == "all" and grid.is_papers:
        marks.append(("ring", "own-paper", "DEVDAN in the paper"))
    greys = [model for model in models if mark_style(model) == "rest"]
    others = "scikit-learn" if all(m.startswith("sklearn-") for m in greys if shape_of(m) == "diamond") else "others"
    names = {"dot": "other models of this package", "square": "River", "diamond": others}
    return marks + [(shape, "rest", names[shape]) for shape in names if shape in map(shape_of, greys)]


def mark_style(model: str) -> str:
    """Only DEVDAN itself is coloured."""
    style = style_of(model)
    return "rest" if style == "own-off" else style


class Point(NamedTuple):
    """A model's position in percent of the plot."""

    model: str
    x: float
    y: float
    remark: str


def speed(grid: GridResults, narrow: bool) -> Chart | None:
    """CR averaged over streams against samples per second."""
    streams, models = grid.block
    logs = {model: math.log10(speed) for model in models if (speed := grid.speed(model))}
    if not logs:
        return None
    rates = {model: fmean(grid.rates[stream, model] for stream in streams) for model in logs}
    first, last = min(logs.values()) - 0.25, max(logs.values()) + 0.25
    room = max(0.12 * (max(rates.values()) - min(rates.values())), 0.5)
    plot = Plot(1000, min(rates.values()) - room, max(rates.values()) + room)

    def across(log: float) -> float:
        return 1000 * (log - first) / (last - first)

    powers = [n for n in range(math.ceil(first), math.floor(last) + 1)]
    below = [(across(n), short(10.0**n)) for n in powers]
    body = plot.axes(ticks(plot.low, min(plot.high, 100), 5), " %", below, "samples/s, logarithmic")
    points = [
        Point(m, plot.x(across(logs[m])), plot.y(rates[m]), f"{m}: {rates[m]:.2f} %, {short(10 ** logs[m])} samples/s")
        for m in logs
    ]
    width, height = (_NARROW, 380) if narrow else (_WIDE, 340)
    return Chart(
        body + _labelled(points, width, height),
        "Rate against speed: " + "; ".join(point.remark for point in points),
    )


def _labelled(points: Sequence[Point], width: int, height: int) -> Markup:
    """Marks with their names, placed so that none covers another; a line connects names that are farther away."""
    boxes = [
        (p.x * width / 100 - 6, p.y * height / 100 - 6, p.x * width / 100 + 6, p.y * height / 100 + 6) for p in points
    ]
    names, marks = Markup(""), Markup("")
    for point in sorted(points, key=lambda point: (mark_style(point.model) == "rest", point.y)):
        style = mark_style(point.model)
        x, y = point.x * width / 100, point.y * height / 100
        long = (6.7 if style == "rest" else 7.6) * len(point.model) + 2
        shifts = sorted(range(-154, 155, 7), key=lambda shift: (abs(shift), shift))
        tries = [(side, shift) for shift in shifts for side in (1, -1)]
        for side, shift in tries:
            left = x + 10 if side > 0 else x - 10 - long
            box = (left, y + shift - 7, left + long, y + shift + 7)
            inside = box[0] > -36 and box[2] < width + 10 and box[1] > 0 and box[3] < height - 2
            own = (x - 6, y - 6, x + 6, y + 6)
            if inside and not any(_meet(box, other) for other in boxes if other != own):
                break
        else:
            side, shift, box = 1, 0, (x, y, x, y)
        boxes.append(box)
        if abs(shift) > 8:
            names += Markup(
                '<svg x="{:.2f}%" y="{:.2f}%" overflow="visible"><path class="lead" d="M0,0L{},{}"/></svg>'
            ).format(point.x, point.y, 8 * side, shift)
        names += Markup(
            '<text class="name {}" x="{:.2f}%" y="{:.2f}%" dx="{}" dy="{}" text-anchor="{}">{}</text>'
        ).format(style, point.x, point.y, 10 * side, shift + 4, "start" if side > 0 else "end", point.model)
        mark = Markup('<use href="#{}" class="mark {}" x="{:.2f}%" y="{:.2f}%"><title>{}</title></use>').format(
            shape_of(point.model), style, point.x, point.y, point.remark
        )
        marks = mark + marks  # ours on top
    return names + marks


def _meet(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


class Panel(NamedTuple):
    """Rates against the labels that arrive, on one stream or on average."""

    title: str
    chart: Chart


def scarcity(grid: GridResults, height: int = 300) -> list[Panel]:
    """A panel for the average over streams, with names at the lines' ends, then one for each stream."""
    policies = [policy for policy in grid.policies if fraction_of(policy)]
    if len(policies) < 2:
        return []
    streams, models = grid.scarce_block
    panels = []
    if streams:
        lines: dict[str, Values] = {m: [grid.average(m, policy) for policy in policies] for m in models}
        panels.append(_panel(f"Average over {len(streams)} streams", policies, lines, height))
    for stream in grid.plan.streams:
        lines = {m: [grid.scarce_rates[p].get((stream, m)) for p in policies] for m in grid.plan.models}
        lines = {model: line for model, line in lines.items() if any(value is not None for value in line)}
        if lines:
            panels.append(_panel(stream, policies, lines))
    return panels


def _panel(title: str, policies: Sequence[str], lines: dict[str, Values], height: int = 0) -> Panel:
    known = [value for line in lines.values() for value in line if value is not None]
    room = max(0.06 * (max(known) - min(known)), 0.05)
    plot = Plot(1000, min(known) - room, max(known) + room)
    logs = [-math.log10(fraction_of(policy) or 1) for policy in policies]
    places = [round(40 + 920 * (log - logs[0]) / ((logs[-1] - logs[0]) or 1)) for log in logs]
    below = [(place, policy_name(policy)) for place, policy in zip(places, policies, strict=True)]
    body = plot.axes(ticks(plot.low, min(plot.high, 100), 4), " %", below, "labels that arrive")
    order = sorted(lines, key=lambda model: ("rest", "own", "own-off", "own-paper").index(style_of(model)))
    body += plot.stretched(
        *(
            Markup("<g><title>{}</title>{}</g>").format(
                model, plot.line(places, lines[model], f"share {style_of(model)}")
            )
            for model in order
        )
    )
    if height:
        body += _ends(plot, lines, places[-1], height)
    ends = [(model, line[0], line[-1]) for model, line in lines.items()]
    rates = "; ".join(f"{model} from {number(a, 2)} to {number(b, 2)}" for model, a, b in ends)
    return Panel(title, Chart(body, f"{title}, rates from {below[0][1]} to {below[-1][1]} of the labels: {rates}"))


def _ends(plot: Plot, lines: dict[str, Values], place: int, height: int) -> Markup:
    """Names at the ends of lines, moved apart if they would overlap."""
    ends = sorted((plot.y(line[-1]) * height / 100, model) for model, line in lines.items() if line[-1] is not None)
    wanted = [y for y, _ in ends]
    spread = _apart(wanted, 14, 4, height - 2)
    body = Markup("")
    for (y, model), moved in zip(ends, spread, strict=True):
        body += Markup(
            '<svg class="end" x="{:.2f}%" y="0" overflow="visible"><path class="lead" d="M3,{:.1f}L14,{:.1f}"/>'
            '<text class="name {}" x="18" y="{:.1f}" dy=".33em">{}</text></svg>'
        ).format(plot.x(place), y, moved, style_of(model), moved, model)
    return body


def _apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move increasing positions at least ``gap`` apart, pushing close pairs away equally.

    >>> _apart([10, 12, 90], 10, 0, 100)
    [6.0, 16.0, 90.0]
    """
    places = [float(place) for place in wanted]
    for _ in range(200):
        for n in range(len(places) - 1):
            lack = gap - (places[n + 1] - places[n])
            if lack > 1e-9:
                places[n] -= lack / 2
                places[n + 1] += lack / 2
        places = [min(max(place, low), high) for place in places]
    return [round(place, 6) for place in places]


# --- Figures by themselves ---------------------------------------------------------------------------------------


def ranks_picture(grid: GridResults) -> str | None:
    """The critical-difference diagram as an SVG document; None if there is nothing to compare."""
    if len(grid.ranking.models) < 2:
        return None
    drawn = diagram(grid.ranking, two_sided=True)
    inner = placed(12, drawn.height, drawn.body, drawn.side, WIDTH - 2 * drawn.side)
    return framed(drawn.label, drawn.height + 24, inner, render("marks.css"))


def scarcity_picture(grid: GridResults) -> str | None:
    """Rates against the labels that arrive as an SVG document, the average first; None if only one policy was run."""
    height, small, columns = 290, 120, 3
    panels = scarcity(grid, height)
    if not panels:
        return None
    body = caption(22, panels[0].title) + placed(38, height, panels[0].chart.body, 52, WIDTH - 52 - 172)
    width = (WIDTH - 8) / columns
    top = 38 + height + 70
    for n, panel in enumerate(panels[1:]):
        x, y = n % columns * width, top + n // columns * (small + 84)
        body += caption(y, panel.title, x=x + 8) + placed(y + 14, small, panel.chart.body, x + 52, width - 68)
    rows = -(-(len(panels) - 1) // columns)
    return framed(panels[0].chart.label, top + rows * (small + 84) - 20, body, render("marks.css"))


def cost_picture(ranks: Mapping[str, float], seconds: Mapping[str, float]) -> str:
    """The mean rank of each model against its seconds per sample as an SVG document: at the upper left is the best."""
    height, logs = 380, {model: math.log10(1e6 * seconds[model]) for model in ranks}
    first, last = min(logs.values()) - 0.25, max(logs.values()) + 0.25
    plot = Plot(1000, max(ranks.values()) + 0.6, min(ranks.values()) - 0.6)

    def across(log: float) -> float:
        return 1000 * (log - first) / (last - first)

    below = [(across(n), short(10.0**n)) for n in range(math.ceil(first), math.floor(last) + 1)]
    body = plot.axes(ticks(plot.high, plot.low, 6, smallest=1), "", below, "µs per sample, logarithmic")
    points = [
        Point(
            m, plot.x(across(logs[m])), plot.y(ranks[m]), f"{m}: rank {ranks[m]:.1f}, {10 ** logs[m]:.3g} µs per sample"
        )
        for m in ranks
    ]
    label = "Mean rank against cost: " + "; ".join(point.remark for point in points)
    inner = caption(22, "Mean rank by accuracy: 1 is the best") + placed(
        38, height, body + _labelled(points, _WIDE + 90, height), 52, WIDTH - 52 - 20
    )
    return framed(label, height + 90, Markup("<defs>{}</defs>").format(_DOT + SHAPES) + inner, render("marks.css"))
