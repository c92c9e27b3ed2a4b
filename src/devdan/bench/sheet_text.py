"""The table of a grid as text: its sheets as Markdown and LaTeX, all of its figures as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from devdan.bench.grid_results import COUNTERPARTS, METHODS, GridResults, published
from devdan.bench.sheets import (
    Sheet,
    SheetEntry,
    failures,
    main_sheets,
    model_descriptions,
    progress,
    ranks_sheet,
    scarcity_sheets,
    settings,
    split_code,
    title,
)
from devdan.evaluation.measures import in_tables

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
