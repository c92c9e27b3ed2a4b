"""The page of a grid of runs, and all files that are written from its results: Markdown, LaTeX, CSV, figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from devdan.atomic import write_atomically
from devdan.bench.grid import GridFolder
from devdan.bench.grid_charts import SHAPES, legend, ranks_picture, scarcity, scarcity_picture, speed, strips
from devdan.bench.grid_results import (
    COUNTERPARTS,
    GENERATIVE,
    METHODS,
    GridResults,
    fraction_of,
    policy_name,
    published,
    read_grid,
)
from devdan.bench.ranking import diagram
from devdan.bench.sheets import (
    Sheet,
    SheetEntry,
    failures,
    first_sheets,
    listed,
    machines,
    main_sheets,
    model_descriptions,
    progress,
    ranks_sheet,
    ranks_text,
    scarcity_sheets,
    settings,
    split_code,
    title,
    without_empty_columns,
)
from devdan.evaluation.measures import in_tables
from devdan.report.render import Tile, render
from devdan.report.words import how_many, moment, number, short, signed, written


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
    ranked = len(grid.ranking.models) > 1
    sheets = [without_empty_columns(sheet) for sheet in main_sheets(grid)]
    first = first_sheets(grid)
    return render(
        "grid.html",
        title=title(grid),
        shapes=SHAPES,
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
        missing=[
            (f"{what} not on this machine", [(name, split_code(how)) for name, how in gone.items()])
            for what, gone in (("Streams", grid.missing_streams), ("Models", grid.missing_models))
            if gone
        ],
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
        tiles += _behind(grid, own)
        if grid.speed(own):
            remark = f"on average over streams; {rival}: {short(grid.speed(rival))}"
            tiles.append(Tile(f"Speed of {own}", short(grid.speed(own)), "samples/s", remark))
    remark = how_many(len(grid.plan.labels), "label setting")
    remark += f", {how_many(len(grid.failures), 'failure')}" if grid.failures else ""
    remark += f", {len(grid.stopped):,} stopped" if grid.stopped else ""
    tiles.append(Tile("Runs", number(grid.n_done), f"of {grid.n_cells:,}", remark))
    return tiles


def _behind(grid: GridResults, own: str) -> list[Tile]:
    """By how much a model is behind the best, if models are compared by the same measure on all streams."""
    measures = {grid.by(stream) for stream in grid.block.streams}
    if len(measures) > 1:
        return []
    name = measures.pop()
    measure = in_tables()[name]
    tops = {s: max(value for (stream, _), value in grid.scores.items() if stream == s) for s in grid.block.streams}
    behind = {stream: top - grid.scores[stream, own] for stream, top in tops.items()}
    worst = max(behind, key=lambda stream: behind[stream])
    unit = "points" if measure.unit_of_measure == "%" else measure.unit_of_measure
    remark = f"{name}, on average over streams; at most {written(measure, behind[worst])}, on {worst}"
    return [Tile(f"{own} behind the best", written(measure, fmean(behind.values())), unit, remark)]


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


# --- Its sheets as Markdown and LaTeX, all of its figures as CSV -------------------------------------------------


COLUMNS = (
    "stream",
    "model",
    "labels",
    "criterion",
    "mean",
    "std_chunks",
    "std_seeds",
    "n_seeds",
    "n_failed",
    "n_stopped",
    "paper",
    "paper_std",
    "difference",
)


def sections(grid: GridResults) -> dict[str, str]:
    """Markdown by subject: progress, table, ranks, scarcity, missing, failures, settings; empty if there is nothing."""
    away = {**grid.missing_streams, **grid.missing_models}
    return {
        "progress": f"> {progress(grid)}\n" if progress(grid) else "",
        "table": "\n".join(markdown(sheet) for sheet in main_sheets(grid)),
        "ranks": markdown(ranks_sheet(grid), bare=True),
        "scarcity": "\n".join(markdown(sheet) for sheet in scarcity_sheets(grid)),
        "missing": _list(f"**{_md(name)}**: {_coded(how)}" for name, how in away.items()),
        "failures": _list(f"{_md(where)}: {_md(error)}" for where, error in failures(grid)),
        "settings": (f"```\n{grid.plan.command.replace('```', '')}\n```\n\n" if grid.plan.command else "")
        + _list(f"{_md(name)}: {_md(text)}" for name, text in (*settings(grid), *model_descriptions(grid.plan))),
    }


_HEADS = {
    "table": "Figures",
    "ranks": "Average ranks",
    "scarcity": "Label scarcity",
    "missing": "Not on this machine",
    "failures": "Failed runs",
    "settings": "What was run",
}


def document(grid: GridResults) -> str:
    """The whole grid as one Markdown page."""
    texts = sections(grid)
    parts = [f"## {head}\n\n{texts[key]}" for key, head in _HEADS.items() if texts[key]]
    return "\n".join([f"# {title(grid)}\n", *filter(None, [texts["progress"]]), *parts])


def markdown(sheet: Sheet, bare: bool = False) -> str:
    """A sheet with its heading, or without it."""
    heads = [column.text for column in sheet.columns]
    lines = [] if bare else [f"### {_md(sheet.title)}", ""]
    for text in sheet.about:
        lines += [_md(text), ""]
    if sheet.groups:
        lines += [_line(["", *map(_md, heads)]), _line(["---"] + ["---:"] * len(heads))]
    for group in sheet.groups:
        lines += [_line([f"*{_md(group.name)}*", *[""] * len(heads)])] if group.name else []
        lines += [_line([_md(row.name), *map(_cell, row.entries)]) for row in group.rows]
    return "\n".join([*lines, ""])


def _cell(entry: SheetEntry) -> str:
    text = entry.text + "\\*" * entry.few
    return f"**{text}**" * entry.best + text * (not entry.best) + f" {entry.spread}" * bool(entry.spread)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list(items: Iterable[str]) -> str:
    return "".join(f"- {item}\n" for item in items if item)


def _md(text: str) -> str:
    """Escape text so that it is neither markup nor the end of a table cell."""
    for char in "\\`*_[]|":
        text = text.replace(char, f"\\{char}")
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").split())


def _coded(text: str) -> str:
    return "".join(f"`{part}`" if code else _spaced(part) for code, part in split_code(" ".join(text.split())))


def _spaced(text: str) -> str:
    return " " * text.startswith(" ") + _md(text) + " " * (text.endswith(" ") and bool(text.strip()))


def latex(grid: GridResults) -> str:
    """The sheets as tables to be included in a document that uses booktabs."""
    sheets = [*main_sheets(grid), ranks_sheet(grid)]
    scarce = [s._replace(title=f"Label policy: {s.title}") for s in scarcity_sheets(grid)]
    tables = [_table(sheet) for sheet in (*sheets, *scarce) if sheet.groups]
    return "\n".join(["% Needs \\usepackage{booktabs}.", *tables])


def _table(sheet: Sheet) -> str:
    heads = [column.text for column in sheet.columns]
    lines = [
        "\\begin{table*}",
        "\\centering\\scriptsize\\setlength{\\tabcolsep}{3pt}",
        f"\\caption{{{_tex(' '.join([sheet.title.rstrip('.') + '.', *sheet.about]))}}}",
        f"\\begin{{tabular}}{{l{'r' * len(heads)}}}",
        "\\toprule",
        " & ".join(["", *map(_tex, heads)]) + " \\\\",
    ]
    for group in sheet.groups:
        lines.append("\\midrule")
        if group.name:
            lines.append(f"\\multicolumn{{{len(heads) + 1}}}{{l}}{{\\emph{{{_tex(group.name)}}}}} \\\\")
        lines += [" & ".join([_tex(row.name), *map(_tex_cell, row.entries)]) + " \\\\" for row in group.rows]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", "\\end{table*}", ""])


def _tex_cell(entry: SheetEntry) -> str:
    text = _tex(entry.text + "*" * entry.few)
    text = f"\\textbf{{{text}}}" if entry.best else text
    return f"{text} {_tex(entry.spread)}" if entry.spread else text


_TEX = str.maketrans(
    {char: f"\\{char}" for char in "&%$#_{}"}
    | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    | {
        "±": "$\\pm$",
        "−": "$-$",
        "–": "--",
        "χ": "$\\chi$",
        "²": "$^2$",
        "’": "'",
        "<": "$<$",
        ">": "$>$",
        "·": "$\\cdot$",
    }
)


def _tex(text: str) -> str:
    return " ".join(text.translate(_TEX).split())


def rows(grid: GridResults) -> Iterator[dict[str, Any]]:
    """A row for each stream, model, label policy and criterion, in full precision; missing values are None.

    ``std_chunks`` is the mean over seeds of the deviation over chunks, ``std_seeds`` the deviation over seeds.
    """
    for stream, model, labels in product(grid.plan.streams, grid.plan.models, grid.plan.labels):
        cells = grid.cells(stream, model, labels)
        without = [sum(cell in grid.failures for cell in cells), sum(cell in grid.stopped for cell in cells)]
        for name in in_tables():
            stat = grid.stat(stream, model, labels, name)
            ours = (stat.mean, stat.spread, stat.over_seeds, stat.n) if stat else (None, None, None, 0)
            theirs = published(stream, name, COUNTERPARTS.get(model, "")) if labels == "all" else None
            beyond = grid.difference(stream, model, name) if labels == "all" else None
            values = [stream, model, labels, name, *ours, *without, *(theirs or (None, None)), beyond]
            yield dict(zip(COLUMNS, values, strict=True))
    if "all" in grid.plan.labels:
        others = [method for method in METHODS if method not in map(COUNTERPARTS.get, grid.plan.models)]
        for stream, method, name in product(grid.plan.streams, others, in_tables()):
            if theirs := published(stream, name, method):
                values = [stream, method, "all", name, None, None, None, 0, 0, 0, *theirs, None]
                yield dict(zip(COLUMNS, values, strict=True))


def table_csv(grid: GridResults) -> str:
    """The rows as CSV."""
    text = io.StringIO()
    lines = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows(grid))
    return text.getvalue()
