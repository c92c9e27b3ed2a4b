"""The page of a grid of runs, and its standalone figures."""

from __future__ import annotations

from statistics import fmean

from markupsafe import Markup

from devdan.evaluation.measures import in_tables
from devdan.report.grid import grid_charts, grid_notes, grid_sheets
from devdan.report.grid.grid_findings import GENERATIVE, Findings, difference, policy_name, share_of
from devdan.report.grid.rank_chart import diagram
from devdan.report.picture import STYLE
from devdan.report.render import Tile, render
from devdan.report.words import heading, how_many, moment, number, short, signed

_WIDTH = 800


def page_of_grid(findings: Findings) -> str:
    """The page of a grid."""
    grid = findings.grid
    ranked = len(findings.ranking.models) > 1
    scarce = grid_sheets.scarcity_sheets(findings)
    sheets = [grid_sheets.without_empty_columns(sheet) for sheet in grid_sheets.main_sheets(findings)]
    first = [heading(in_tables()[name]) for name in ("CR", "kappa_no_change")]
    return render(
        "grid.html",
        title=grid_notes.title(grid),
        subtitle=_subtitle(findings),
        progress=grid_notes.progress(grid),
        n_failed=len(grid.failures),
        tiles=_tiles(findings),
        strips=grid_charts.strips(findings),
        legend=grid_charts.legend(findings),
        models=grid.models,
        rates=[sheet for sheet in sheets if sheet.title in first],
        sheets=[sheet for sheet in sheets if sheet.title not in first],
        ranks_text=grid_notes.ranks_text(findings),
        diagrams=[diagram(findings.ranking, two_sided) for two_sided in (True, False)] if ranked else [],
        told_apart=findings.ranking.difference is not None,
        speeds=[grid_charts.speed(findings, narrow) for narrow in (False, True)],
        speed_streams=grid_notes.listed(findings.block.streams) if findings.block.streams else "",
        panels=grid_charts.scarcity(findings),
        scarce=scarce,
        generative=_generative(findings),
        missing=[
            (name, grid_notes.pieces(how)) for name, how in {**grid.missing_streams, **grid.missing_models}.items()
        ],
        failures=grid_notes.failures(grid),
        settings=grid_notes.settings(grid),
        about=grid_notes.models_told(grid),
        command=str(grid.info.get("command") or ""),
        several_machines=len(grid_notes.machines(grid)) > 1,
    )


def _subtitle(findings: Findings) -> str:
    grid = findings.grid
    run = len(grid.streams) - len(grid.missing_streams)
    of = f"{run} of {how_many(len(grid.streams), 'stream')}" if grid.missing_streams else how_many(run, "stream")
    parts = [how_many(len(grid.models), "model"), of, how_many(grid.seeds, "seed")]
    times = sorted(str(result["started"]) for result in grid.results.values() if result.get("started"))
    return " · ".join([*parts, *([f"started {moment(times[0])}"] if times else [])])


def _tiles(findings: Findings) -> list[Tile]:
    """The headline figures."""
    grid, ranking = findings.grid, findings.ranking
    tiles = []
    gaps = {s: gap for s in grid.streams if (gap := difference(grid, s, "devdan-paper", "CR")) is not None}
    if gaps and grid.main == "all":
        ends = [
            f"{signed(gaps[s], 2)} on {s}" for s in (min(gaps, key=lambda s: gaps[s]), max(gaps, key=lambda s: gaps[s]))
        ]
        remark = f"CR of devdan-paper, on average; {' to '.join(dict.fromkeys(ends))}"
        tiles.append(Tile("Difference from the paper’s DEVDAN", signed(fmean(gaps.values()), 2), "points", remark))
    own = next((model for model in ("devdan", "devdan-paper") if model in ranking.models), None)
    if own and len(ranking.models) > 1:
        ranks = dict(zip(ranking.models, ranking.ranks, strict=True))
        rivals = [model for model in ranking.models if model != own][:1]
        remark = f"over {how_many(ranking.n_streams, 'stream')}; {rivals[0]} has {ranks[rivals[0]]:.2f}"
        tiles.append(Tile(f"Average rank of {own}", f"{ranks[own]:.2f}", f"of {len(ranks)}", remark))
        behind = {s: (findings.best(s) or 0) - findings.rates[s, own] for s in findings.block.streams}
        worst = max(behind, key=lambda s: behind[s])
        remark = f"CR, on average over streams; at most {behind[worst]:.2f}, on {worst}"
        tiles.append(Tile(f"{own} behind the best", number(fmean(behind.values()), 2), "points", remark))
        if findings.speed(own):
            remark = f"on average over streams; {rivals[0]}: {short(findings.speed(rivals[0]))}"
            tiles.append(Tile(f"Speed of {own}", short(findings.speed(own)), "samples/s", remark))
    remark = how_many(len(grid.labels), "label setting")
    remark += f", {how_many(len(grid.failures), 'failure')}" if grid.failures else ""
    remark += f", {len(grid.stopped):,} stopped" if grid.stopped else ""
    tiles.append(Tile("Runs", number(grid.n_done), f"of {grid.n_cells:,}", remark))
    return tiles


def _generative(findings: Findings) -> str:
    """What the generative phase adds as labels become scarce, in sentences."""
    on, off = GENERATIVE
    shares = [policy for policy in findings.policies if share_of(policy)]
    if not {on, off} <= set(findings.grid.models):
        return ""
    text = "The two orange lines show the same model with the generative phase, which needs no labels, on and off."
    if not {on, off} <= set(findings.scarce_block.models) or len(shares) < 2:
        return text
    ends = (shares[0], shares[-1])
    most, least = ((findings.average(on, policy) or 0) - (findings.average(off, policy) or 0) for policy in ends)
    return (
        f"{text} On average over streams, it adds {signed(most, 2)} points with {policy_name(ends[0])} of the labels "
        f"and {signed(least, 2)} with {policy_name(ends[1])}."
    )


def ranks_picture(findings: Findings) -> str | None:
    """The critical-difference diagram as an SVG document; None if there is nothing to compare."""
    if len(findings.ranking.models) < 2:
        return None
    drawn = diagram(findings.ranking, two_sided=True)
    inner = _placed(drawn.body, drawn.side, 12, _WIDTH - 2 * drawn.side, drawn.height)
    return _document(inner, drawn.height + 24, drawn.label)


def scarcity_picture(findings: Findings) -> str | None:
    """Rates against the share of labels as an SVG document, the streams below their average; None without shares."""
    height, small, columns = 290, 120, 3
    panels = grid_charts.scarcity(findings, height)
    if not panels:
        return None
    body = _caption(8, 22, panels[0].title) + _placed(panels[0].chart.body, 52, 38, _WIDTH - 52 - 172, height)
    width = (_WIDTH - 8) / columns
    top = 38 + height + 70
    for n, panel in enumerate(panels[1:]):
        x, y = n % columns * width, top + n // columns * (small + 84)
        body += _caption(x + 8, y, panel.title) + _placed(panel.chart.body, x + 52, y + 14, width - 68, small)
    rows = -(-(len(panels) - 1) // columns)
    return _document(body, top + rows * (small + 84) - 20, panels[0].chart.label)


def _placed(body: Markup, x: float, y: float, width: float, height: float) -> Markup:
    return Markup('<svg x="{:.0f}" y="{:.0f}" width="{:.0f}" height="{:.0f}" overflow="visible">{}</svg>').format(
        x, y, width, height, body
    )


def _caption(x: float, y: float, text: str) -> Markup:
    return Markup('<text class="head" x="{:.0f}" y="{:.0f}">{}</text>').format(x, y, text)


def _document(body: Markup, height: float, title: str) -> str:
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" '
        'viewBox="0 0 {width} {height:.0f}" role="img"><title>{title}</title><style>{style}</style>{body}</svg>\n'
    ).format(width=_WIDTH, height=height, title=title, style=Markup(STYLE + render("marks.css")), body=body)
