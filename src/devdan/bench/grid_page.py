"""The page of a grid of runs, and all files that are written from its results."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

from devdan.atomic import write_atomically
from devdan.bench.grid import GridFolder
from devdan.bench.grid_charts import legend, ranks_picture, scarcity, scarcity_picture, speed, strips
from devdan.bench.grid_results import GENERATIVE, GridResults, fraction_of, policy_name, read_grid
from devdan.bench.ranking import diagram
from devdan.bench.sheet_text import document, latex, rows, sections, table_csv
from devdan.bench.sheets import (
    failures,
    listed,
    machines,
    main_sheets,
    model_descriptions,
    progress,
    ranks_text,
    scarcity_sheets,
    settings,
    split_code,
    title,
    without_empty_columns,
)
from devdan.evaluation.measures import in_tables
from devdan.report.render import Tile, render
from devdan.report.words import heading, how_many, moment, number, short, signed


def write_tables(folder: str | Path) -> list[Path]:
    """Write the results of a grid of runs next to its table.json: Markdown, CSV, LaTeX, a page and its figures."""
    kept, grid = GridFolder(folder), read_grid(folder)
    texts = {
        kept.markdown_path: document(grid),
        kept.csv_path: table_csv(grid),
        kept.latex_path: latex(grid),
        kept.page_path: page_of_grid(grid),
    }
    pictures = {kept.ranks_path: ranks_picture(grid), kept.scarcity_path: scarcity_picture(grid)}
    texts |= {path: picture for path, picture in pictures.items() if picture}
    for path in pictures.keys() - texts.keys():
        path.unlink(missing_ok=True)  # of an earlier table
    for path, text in texts.items():
        write_atomically(path, text.encode())
    return list(texts)


def read_rows(folder: str | Path) -> dict[str, Any]:
    """The results of a grid of runs as data: the number of runs done and planned, and the rows of table.csv."""
    grid = read_grid(folder)
    return {
        "n_runs": len(grid.results),
        "n_failed": len(grid.failures),
        "n_stopped": len(grid.stopped),
        "n_planned": grid.n_cells,
        "rows": [*rows(grid)],
    }


def markdown_sections(folder: str | Path) -> dict[str, str]:
    """The results of a grid of runs in Markdown: progress, table, ranks, scarcity, missing, failures and settings."""
    return sections(read_grid(folder))


def page_of_grid(grid: GridResults) -> str:
    """The page of a grid."""
    ranked = len(grid.ranking.models) > 1
    sheets = [without_empty_columns(sheet) for sheet in main_sheets(grid)]
    first = [heading(in_tables()[name]) for name in ("CR", "kappa_no_change")]
    return render(
        "grid.html",
        title=title(grid),
        subtitle=_subtitle(grid),
        progress=progress(grid),
        n_failed=len(grid.failures),
        tiles=_tiles(grid),
        strips=strips(grid),
        legend=legend(grid),
        models=grid.plan.models,
        rates=[sheet for sheet in sheets if sheet.title in first],
        sheets=[sheet for sheet in sheets if sheet.title not in first],
        ranks_text=ranks_text(grid),
        diagrams=[diagram(grid.ranking, two_sided) for two_sided in (True, False)] if ranked else [],
        told_apart=grid.ranking.difference is not None,
        speeds=[speed(grid, narrow) for narrow in (False, True)],
        speed_streams=listed(grid.block.streams) if grid.block.streams else "",
        panels=scarcity(grid),
        scarce=scarcity_sheets(grid),
        generative=_generative(grid),
        missing=[(name, split_code(how)) for name, how in {**grid.missing_streams, **grid.missing_models}.items()],
        failures=failures(grid),
        settings=settings(grid),
        about=model_descriptions(grid.plan),
        command=grid.plan.command,
        several_machines=len(machines(grid)) > 1,
    )


def _subtitle(grid: GridResults) -> str:
    run = len(grid.plan.streams) - len(grid.missing_streams)
    of = f"{run} of {how_many(len(grid.plan.streams), 'stream')}" if grid.missing_streams else how_many(run, "stream")
    parts = [how_many(len(grid.plan.models), "model"), of, how_many(grid.plan.seeds, "seed")]
    times = sorted(str(result["started"]) for result in grid.results.values() if result.get("started"))
    return " · ".join([*parts, *([f"started {moment(times[0])}"] if times else [])])


def _tiles(grid: GridResults) -> list[Tile]:
    """The headline figures."""
    ranking = grid.ranking
    tiles = []
    gaps = {s: gap for s in grid.plan.streams if (gap := grid.difference(s, "devdan-paper", "CR")) is not None}
    if gaps and grid.main == "all":
        ends = [
            f"{signed(gaps[s], 2)} on {s}" for s in (min(gaps, key=lambda s: gaps[s]), max(gaps, key=lambda s: gaps[s]))
        ]
        remark = f"CR of devdan-paper, on average; {' to '.join(dict.fromkeys(ends))}"
        tiles.append(Tile("Difference from the paper’s DEVDAN", signed(fmean(gaps.values()), 2), "points", remark))
    own = next((model for model in ("devdan", "devdan-paper") if model in ranking.models), None)
    if own and len(ranking.models) > 1:
        ranks = dict(zip(ranking.models, ranking.ranks, strict=True))
        rival = next(model for model in ranking.models if model != own)
        remark = f"over {how_many(ranking.n_streams, 'stream')}; {rival} has {ranks[rival]:.2f}"
        tiles.append(Tile(f"Average rank of {own}", f"{ranks[own]:.2f}", f"of {len(ranks)}", remark))
        behind = {s: (grid.best(s) or 0) - grid.rates[s, own] for s in grid.block.streams}
        worst = max(behind, key=lambda s: behind[s])
        remark = f"CR, on average over streams; at most {behind[worst]:.2f}, on {worst}"
        tiles.append(Tile(f"{own} behind the best", number(fmean(behind.values()), 2), "points", remark))
        if grid.speed(own):
            remark = f"on average over streams; {rival}: {short(grid.speed(rival))}"
            tiles.append(Tile(f"Speed of {own}", short(grid.speed(own)), "samples/s", remark))
    remark = how_many(len(grid.plan.labels), "label setting")
    remark += f", {how_many(len(grid.failures), 'failure')}" if grid.failures else ""
    remark += f", {len(grid.stopped):,} stopped" if grid.stopped else ""
    tiles.append(Tile("Runs", number(grid.n_done), f"of {grid.n_cells:,}", remark))
    return tiles


def _generative(grid: GridResults) -> str:
    """What the generative phase adds as labels become scarce, in sentences."""
    on, off = GENERATIVE
    fractions = [policy for policy in grid.policies if fraction_of(policy)]
    if not {on, off} <= set(grid.plan.models):
        return ""
    text = "The two orange lines show the same model with the generative phase, which needs no labels, on and off."
    if not {on, off} <= set(grid.scarce_block.models) or len(fractions) < 2:
        return text
    ends = (fractions[0], fractions[-1])
    most, least = ((grid.average(on, policy) or 0) - (grid.average(off, policy) or 0) for policy in ends)
    return (
        f"{text} On average over streams, it adds {signed(most, 2)} points with {policy_name(ends[0])} of the labels "
        f"and {signed(least, 2)} with {policy_name(ends[1])}."
    )
