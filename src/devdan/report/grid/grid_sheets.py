"""The results of a grid of runs as sheets, from which Markdown, LaTeX and HTML are written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from devdan.evaluation.measures import NO_CHANGE, OF_RULES, SCRIPTS, SheetText, in_tables
from devdan.report.grid.grid_findings import GENERATIVE, Findings, difference, is_own, policy_name
from devdan.report.grid.grid_notes import listed, machines, ranks_text
from devdan.report.grid.paper import COUNTERPARTS, METHODS, published
from devdan.report.grid.shown_grid import Grid, Stat
from devdan.report.words import NOTHING, heading, how_many, number, signed, written
from devdan.runs.gridfolder import CellKey


class SheetEntry(NamedTuple):
    """A value in a sheet."""

    text: str = NOTHING
    spread: str = ""
    best: bool = False
    remark: str = ""
    few: bool = False  # fewer seeds than planned
    absent: bool = False  # a word instead of a value


class Row(NamedTuple):
    """A model's values."""

    name: str
    entries: list[SheetEntry]


class Group(NamedTuple):
    """Rows that belong together."""

    name: str
    rows: list[Row]


class Sheet(NamedTuple):
    """A table of models and streams, or models and labels."""

    title: str
    about: list[str]
    columns: list[str]
    remarks: list[str]  # a remark below each column name, or none
    groups: list[Group]


def main_sheets(findings: Findings) -> list[Sheet]:
    """CR, ET, HN and NoP by model and stream, next to the paper's; members and labels if they are informative."""
    sheets = [_criterion_sheet(findings, name) for name, measure in in_tables().items() if measure.sheet]
    return [sheet for sheet in sheets if sheet.groups]


def without_empty_columns(sheet: Sheet) -> Sheet:
    """The same without columns in which there is nothing, such as those of streams that were not run."""
    rows = [row for group in sheet.groups for row in group.rows]
    kept = [n for n, _ in enumerate(sheet.columns) if any(row.entries[n].text not in ("", NOTHING) for row in rows)]
    groups = [Group(g.name, [Row(r.name, [r.entries[n] for n in kept]) for r in g.rows]) for g in sheet.groups]
    columns, remarks = ([of[n] for n in kept] for of in (sheet.columns, sheet.remarks))
    return sheet._replace(columns=columns, remarks=remarks, groups=groups)


def _criterion_sheet(findings: Findings, criterion: str) -> Sheet:
    grid, measure = findings.grid, in_tables()[criterion]
    ranked = criterion == "CR" and bool(findings.ranking.models)
    rows = {model: [_entry(findings, stream, model, criterion) for stream in grid.streams] for model in grid.models}
    if measure.optional:
        rows = {model: own for model, own in rows.items() if any(entry.remark for entry in own)}
    if criterion == "kappa_no_change" and not any(entry.remark for own in rows.values() for entry in own):
        rows = {}  # results of an earlier version
    if criterion == "labels":
        rows = {model: own for model, own in rows.items() if _chooses(grid, model)}
    if ranked:
        ranks = dict(zip(findings.ranking.models, findings.ranking.ranks, strict=True))
        rows = {model: [*own, SheetEntry(number(ranks.get(model), 2))] for model, own in rows.items()}
    groups = [
        Group("This package", [Row(model, own) for model, own in rows.items() if is_own(model)]),
        Group("Other packages", [Row(model, own) for model, own in rows.items() if not is_own(model)]),
        *([_without_learning(findings, ranked)] if criterion == "CR" else []),
        *([_as_scripted(findings)] if criterion == "NoP" else []),
        *(_paper_groups(grid, criterion, ranked) if grid.main == "all" else []),
    ]
    few = any(entry.few for own in rows.values() for entry in own)
    said = measure.sheet or SheetText("")
    about = [f"{said.about} {said.of_paper if grid.is_papers else ''}".strip()]
    about.append("* fewer seeds than the others." if few else "")
    about.append(
        "Where a time stands, the runs took longer and were stopped." if criterion == "CR" and grid.stopped else ""
    )
    if criterion == "CR":
        about.append(_of_rank(findings) if ranked else "")
        limit = grid.info.get("limit")
        if limit:
            of_paper = "; the paper’s figures are for whole streams" if grid.is_papers else ""
            about.append(f"Only the first {limit:,} samples of each stream{of_paper}.")
    if criterion == "ET" and len(machines(grid)) > 1:
        about.append("The runs were made on several machines, so times are only roughly comparable.")
    return Sheet(
        heading(measure),
        [text for text in about if text],
        [*grid.streams, *(["rank"] if ranked else [])],
        [*("not run" if s in grid.missing_streams else "" for s in grid.streams), *([""] if ranked else [])],
        [group for group in groups if group.rows],
    )


def _without_learning(findings: Findings, ranked: bool) -> Group:
    """The rates of predicting the label of the sample before, as the first model's samples have it."""
    grid, text_of = findings.grid, partial(written, in_tables()[NO_CHANGE])
    rates = grid.values(grid.main, NO_CHANGE)
    known = [next((rates[s, m] for m in grid.models if (s, m) in rates), None) for s in grid.streams]
    entries = [SheetEntry() if rate is None else SheetEntry(text_of(rate)) for rate in known]
    rows = [Row("no change", [*entries, *([SheetEntry("")] if ranked else [])])]
    return Group("Without learning", rows if any(rate is not None for rate in known) else [])


def _as_scripted(findings: Findings) -> Group:
    """The parameters of rules as the paper has them."""
    grid = findings.grid
    models = [m for m in grid.models if m in OF_RULES and any(grid.of(s, m, grid.main) for s in grid.streams)]
    rows = [Row(model, [_entry(findings, s, model, SCRIPTS) for s in grid.streams]) for model in models]
    return Group("Counted as if every rule had two inputs", rows)


def _chooses(grid: Grid, model: str) -> bool:
    """Whether a model used fewer labels than another on some stream, and so fewer than it was given."""
    used = grid.values(grid.main, "labels")
    most = {
        stream: max((share for (own, _), share in used.items() if own == stream), default=0) for stream in grid.streams
    }
    return any(used.get((stream, model), most[stream]) < most[stream] for stream in grid.streams)


def _entry(findings: Findings, stream: str, model: str, criterion: str) -> SheetEntry:
    grid, text_of = findings.grid, partial(written, in_tables()[criterion])
    stat = grid.stat(stream, model, grid.main, criterion)
    if stat is None:
        return SheetEntry(_instead(grid, stream, model), absent=True)
    text = text_of(stat.mean)
    rivals = sum(own == stream for own, _ in findings.rates)
    best = criterion == "CR" and rivals > 1 and text == text_of(findings.best(stream))
    spread = "" if stat.spread is None else f"± {text_of(stat.spread)}"
    return SheetEntry(text, spread, best, remark(stat, grid.seeds, text_of), stat.n < grid.seeds)


def _instead(grid: Grid, stream: str, model: str) -> str:
    """What stands where there is no figure."""
    keys = [CellKey(stream, model, grid.main, seed) for seed in range(grid.seeds)]
    minutes = [grid.stopped[key] for key in keys if key in grid.stopped]
    if grid.of(stream, model, grid.main):
        return NOTHING
    if minutes:
        return f"> {max(minutes):g} min"
    return "failed" if any(key in grid.failures for key in keys) else NOTHING


def remark(stat: Stat, seeds: int, text: Callable[[float | None], str]) -> str:
    """The spread over the seeds."""
    of = how_many(stat.n, "seed") if stat.n == seeds else f"{stat.n} of {seeds} seeds"
    if stat.n == 1:
        return of
    return f"{of}, from {text(stat.lowest)} to {text(stat.highest)}, deviation {text(stat.over_seeds)}"


def _paper_groups(grid: Grid, criterion: str, ranked: bool) -> list[Group]:
    """The paper's figures, and ours minus the paper's."""
    measure, last = in_tables()[criterion], [SheetEntry("")] if ranked else []
    text_of, compares = partial(written, measure), measure.sheet is not None and measure.sheet.difference
    theirs, differences = [], []
    for method in METHODS:
        entries = []
        for stream in grid.streams:
            figure = published(stream, criterion, method)
            spread = "" if figure is None or figure.std is None else f"± {text_of(figure.std)}"
            entries.append(SheetEntry(text_of(figure.mean), spread) if figure else SheetEntry())
        if any(entry.text != NOTHING for entry in entries):
            theirs.append(Row(f"paper: {method}", [*entries, *last]))
    for model, method in COUNTERPARTS.items() if compares else ():
        values = [difference(grid, stream, model, criterion) for stream in grid.streams]
        entries = [SheetEntry(signed(value, measure.digits)) for value in values]
        if any(value is not None for value in values):
            differences.append(Row(f"{model} − {method}", [*entries, *last]))
    return [Group("The paper’s Table 1", theirs), Group("Ours − the paper’s", differences)]


def _of_rank(findings: Findings) -> str:
    streams = findings.block.streams
    return f"Rank: among the {len(findings.block.models)} models that have results on {listed(streams)}, averaged."


def ranks_sheet(findings: Findings) -> Sheet:
    """Average ranks, from the best to the worst."""
    ranking = findings.ranking
    rows = [
        Row(model, [SheetEntry(number(value, 2))]) for model, value in zip(ranking.models, ranking.ranks, strict=True)
    ]
    return Sheet("Average ranks", ranks_text(findings), ["average rank"], [""], [Group("", rows)] if rows else [])


def scarcity_sheets(findings: Findings) -> list[Sheet]:
    """CR by model and label policy, averaged over streams and for each stream; none if there is only one policy."""
    grid, policies = findings.grid, findings.policies
    if len(policies) < 2:
        return []
    streams, models = findings.scarce_block
    sheets = []
    if streams:
        about = [f"Over {listed(streams)}. Bold: the best of each column."]
        lost = [model for model in grid.models if model not in models and model not in grid.missing_models]
        about += [f"Left out, because some results are missing: {', '.join(lost)}."] if lost else []
        averages = {(model, p): findings.average(model, p) for model in models for p in policies}
        sheets.append(_scarcity_sheet("Average over streams", about, findings, averages))
    for stream in grid.streams:
        rates = {(m, p): findings.scarce_rates[p].get((stream, m)) for m in grid.models for p in policies}
        if any(value is not None for value in rates.values()):
            sheets.append(_scarcity_sheet(stream, [], findings, rates))
    return sheets


def _scarcity_sheet(
    title: str, about: list[str], findings: Findings, rates: dict[tuple[str, str], float | None]
) -> Sheet:
    policies = findings.policies
    models = [m for m in findings.grid.models if any(rates.get((m, policy)) is not None for policy in policies)]
    tops = {p: max((v for m in models if (v := rates[m, p]) is not None), default=None) for p in policies}

    def entry(model: str, policy: str) -> SheetEntry:
        text = number(rates[model, policy], 2)
        return SheetEntry(text, best=len(models) > 1 and text != NOTHING and text == number(tops[policy], 2))

    groups = [Group("", [Row(model, [entry(model, policy) for policy in policies]) for model in models])]
    on, off = GENERATIVE
    if on in models and off in models:
        pairs = [(rates[on, policy], rates[off, policy]) for policy in policies]
        gains = [None if a is None or b is None else a - b for a, b in pairs]
        groups.append(Group("", [Row("generative phase, on − off", [SheetEntry(signed(gain, 2)) for gain in gains])]))
    return Sheet(title, about, [policy_name(policy) for policy in policies], [""] * len(policies), groups)
