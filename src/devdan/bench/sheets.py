"""What the table of a grid says, in whatever format: sheets of figures, and the sentences around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from devdan.bench.grid import Cell, GridPlan
from devdan.bench.grid_results import (
    COUNTERPARTS,
    GENERATIVE,
    METHODS,
    GridResults,
    Stat,
    is_own,
    policy_name,
    published,
)
from devdan.bench.ranking import ALPHA
from devdan.evaluation.measures import MAJORITY, NO_CHANGE, OF_RAREST, OF_RULES, SCRIPTS, SheetText, in_tables
from devdan.report.words import NOTHING, heading, how_many, moment, number, signed, written


class SheetEntry(NamedTuple):
    text: str = NOTHING
    spread: str = ""
    best: bool = False
    remark: str = ""
    few: bool = False  # fewer seeds than planned
    absent: bool = False  # a word instead of a value


class SheetRow(NamedTuple):
    """A model's values."""

    name: str
    entries: list[SheetEntry]


class SheetGroup(NamedTuple):
    """Rows that belong together."""

    name: str
    rows: list[SheetRow]


class SheetColumn(NamedTuple):
    """A stream or a label policy, with a remark below its name or none."""

    name: str
    remark: str = ""

    @property
    def text(self) -> str:
        """Both on one line."""
        return f"{self.name} ({self.remark})" if self.remark else self.name


class Sheet(NamedTuple):
    """A table of models and streams, or models and labels."""

    title: str
    about: list[str]
    columns: list[SheetColumn]
    groups: list[SheetGroup]


def main_sheets(grid: GridResults) -> list[Sheet]:
    """What models are compared by, ET, HN and NoP by model and stream, next to the paper's; more if it is informative.

    Where a class is rare on most of the streams, how well it is found comes first, else the rates.
    """
    known = in_tables()
    shown = [grid.lead, *(name for name, measure in known.items() if measure.sheet and name != grid.lead)]
    if grid.lead.startswith(OF_RAREST):
        shown = sorted(shown, key=lambda name: not name.startswith(OF_RAREST))
    sheets = [_criterion_sheet(grid, name) for name in shown]
    return [sheet for sheet in sheets if sheet.groups]


def first_sheets(grid: GridResults) -> list[str]:
    """The titles of those sheets that come before the ranks."""
    names = {"CR", "kappa_no_change", grid.lead, *map(grid.by, grid.plan.streams)}
    if any(name.startswith(OF_RAREST) for name in names):
        names |= {name for name in in_tables() if name.startswith(OF_RAREST)}
    return [heading(measure) for name, measure in in_tables().items() if name in names]


def without_empty_columns(sheet: Sheet) -> Sheet:
    """The same sheet without its empty columns, such as those of streams that were not run."""
    rows = [row for group in sheet.groups for row in group.rows]
    kept = [n for n, _ in enumerate(sheet.columns) if any(row.entries[n].text not in ("", NOTHING) for row in rows)]
    groups = [
        SheetGroup(g.name, [SheetRow(r.name, [r.entries[n] for n in kept]) for r in g.rows]) for g in sheet.groups
    ]
    return sheet._replace(columns=[sheet.columns[n] for n in kept], groups=groups)


def _criterion_sheet(grid: GridResults, criterion: str) -> Sheet:
    measure = in_tables()[criterion]
    ranked = criterion == grid.lead and bool(grid.ranking.models)
    rows = {
        model: [_entry(grid, stream, model, criterion) for stream in grid.plan.streams] for model in grid.plan.models
    }
    if measure.optional:
        rows = {model: own for model, own in rows.items() if any(entry.remark for entry in own)}
    if criterion == "labels":
        rows = {model: own for model, own in rows.items() if _chooses_labels(grid, model)}
    if ranked:
        ranks = dict(zip(grid.ranking.models, grid.ranking.ranks, strict=True))
        rows = {model: [*own, SheetEntry(number(ranks.get(model), 2))] for model, own in rows.items()}
    groups = [
        SheetGroup("This package", [SheetRow(model, own) for model, own in rows.items() if is_own(model)]),
        SheetGroup("Other packages", [SheetRow(model, own) for model, own in rows.items() if not is_own(model)]),
        *([_without_learning(grid, ranked)] if criterion == "CR" else []),
        *([_as_scripted(grid)] if criterion == "NoP" else []),
        *(_paper_groups(grid, criterion, ranked) if grid.main == "all" else []),
    ]
    columns = [SheetColumn(s, "not run" if s in grid.missing_streams else "") for s in grid.plan.streams]
    few = any(entry.few for own in rows.values() for entry in own)
    said = measure.sheet or SheetText("")
    about = [f"{said.about} {said.of_paper if grid.is_papers else ''}".strip()]
    about.append("* fewer seeds than the others." if few else "")
    about.append(
        "Where a time stands, the runs took longer and were stopped." if criterion == "CR" and grid.stopped else ""
    )
    about.append(_of_rank(grid) if ranked else "")
    if criterion == "CR" and grid.plan.limit is not None:
        of_paper = "; the paper’s figures are for whole streams" if grid.is_papers else ""
        about.append(f"Only the first {grid.plan.limit:,} samples of each stream{of_paper}.")
    if criterion == "ET" and len(machines(grid)) > 1:
        about.append("The runs were made on several machines, so times are only roughly comparable.")
    return Sheet(
        heading(measure),
        [text for text in about if text],
        [*columns, *([SheetColumn("rank")] if ranked else [])],
        [group for group in groups if group.rows],
    )


def _without_learning(grid: GridResults, ranked: bool) -> SheetGroup:
    """The rates of predicting the label of the sample before, or always the commonest, as the first model has them."""
    rows = []
    for name, criterion in (("no change", NO_CHANGE), ("majority", MAJORITY)):
        rates = grid.means(grid.main, criterion)
        known = [next((rates[s, m] for m in grid.plan.models if (s, m) in rates), None) for s in grid.plan.streams]
        entries = [
            SheetEntry() if rate is None else SheetEntry(written(in_tables()[criterion], rate)) for rate in known
        ]
        if any(rate is not None for rate in known):
            rows.append(SheetRow(name, [*entries, *([SheetEntry("")] if ranked else [])]))
    return SheetGroup("Without learning", rows)


def _as_scripted(grid: GridResults) -> SheetGroup:
    """The parameters of rules as the paper counts them."""
    models = [m for m in grid.plan.models if m in OF_RULES and any(grid.of(s, m, grid.main) for s in grid.plan.streams)]
    rows = [SheetRow(model, [_entry(grid, s, model, SCRIPTS) for s in grid.plan.streams]) for model in models]
    return SheetGroup("Counted as if every rule had two inputs", rows)


def _chooses_labels(grid: GridResults, model: str) -> bool:
    """Whether a model used fewer labels than another on some stream, and so fewer than it was given."""
    used = grid.means(grid.main, "labels")
    for stream in grid.plan.streams:
        most = max((fraction for (own, _), fraction in used.items() if own == stream), default=0.0)
        if used.get((stream, model), most) < most:
            return True
    return False


def _entry(grid: GridResults, stream: str, model: str, criterion: str) -> SheetEntry:
    text_of = partial(written, in_tables()[criterion])
    stat = grid.stat(stream, model, grid.main, criterion)
    if stat is None:
        return SheetEntry(_instead(grid, stream, model), absent=True)
    text = text_of(stat.mean)
    top = grid.best(stream, criterion)
    best = top is not None and text == text_of(top)
    spread = "" if stat.spread is None else f"± {text_of(stat.spread)}"
    return SheetEntry(text, spread, best, remark(stat, grid.plan.seeds, text_of), stat.n < grid.plan.seeds)


def _instead(grid: GridResults, stream: str, model: str) -> str:
    """What the cell of the table says if there is no figure."""
    cells = grid.cells(stream, model, grid.main)
    minutes = [grid.stopped[cell] for cell in cells if cell in grid.stopped]
    if grid.of(stream, model, grid.main):
        return NOTHING
    if minutes:
        return f"> {max(minutes):g} min"
    return "failed" if any(cell in grid.failures for cell in cells) else NOTHING


def remark(stat: Stat, seeds: int, text: Callable[[float | None], str]) -> str:
    """The spread over the seeds."""
    of = how_many(stat.n, "seed") if stat.n == seeds else f"{stat.n} of {seeds} seeds"
    if stat.n == 1:
        return of
    return f"{of}, from {text(stat.lowest)} to {text(stat.highest)}, deviation {text(stat.over_seeds)}"


def _paper_groups(grid: GridResults, criterion: str, ranked: bool) -> list[SheetGroup]:
    """The paper's figures, and ours minus the paper's."""
    measure, last = in_tables()[criterion], [SheetEntry("")] if ranked else []
    text_of, compares = partial(written, measure), measure.sheet is not None and measure.sheet.difference
    theirs, differences = [], []
    for method in METHODS:
        entries = []
        for stream in grid.plan.streams:
            figure = published(stream, criterion, method)
            spread = "" if figure is None or figure.std is None else f"± {text_of(figure.std)}"
            entries.append(SheetEntry(text_of(figure.mean), spread) if figure else SheetEntry())
        if any(entry.text != NOTHING for entry in entries):
            theirs.append(SheetRow(f"paper: {method}", [*entries, *last]))
    for model, method in COUNTERPARTS.items() if compares else ():
        values = [grid.difference(stream, model, criterion) for stream in grid.plan.streams]
        entries = [SheetEntry(signed(value, measure.digits)) for value in values]
        if any(value is not None for value in values):
            differences.append(SheetRow(f"{model} − {method}", [*entries, *last]))
    return [SheetGroup("The paper’s Table 1", theirs), SheetGroup("Ours − the paper’s", differences)]


def _of_rank(grid: GridResults) -> str:
    streams = grid.block.streams
    return f"Rank: among the {len(grid.block.models)} models that have results on {listed(streams)}, averaged."


def ranks_sheet(grid: GridResults) -> Sheet:
    """Average ranks, from the best to the worst."""
    ranking = grid.ranking
    rows = [
        SheetRow(model, [SheetEntry(number(value, 2))])
        for model, value in zip(ranking.models, ranking.ranks, strict=True)
    ]
    return Sheet(
        "Average ranks", ranks_text(grid), [SheetColumn("average rank")], [SheetGroup("", rows)] if rows else []
    )


def scarcity_sheets(grid: GridResults) -> list[Sheet]:
    """CR by model and label policy, averaged over streams and for each stream; none if there is only one policy."""
    policies = grid.policies
    if len(policies) < 2:
        return []
    streams, models = grid.scarce_block
    sheets = []
    if streams:
        about = [f"Over {listed(streams)}. Bold: the best of each column."]
        lost = [model for model in grid.plan.models if model not in models and model not in grid.missing_models]
        about += [f"Left out, because some results are missing: {', '.join(lost)}."] if lost else []
        averages = {(model, p): grid.average(model, p) for model in models for p in policies}
        sheets.append(_scarcity_sheet("Average over streams", about, grid, averages))
    for stream in grid.plan.streams:
        rates = {(m, p): grid.scarce_rates[p].get((stream, m)) for m in grid.plan.models for p in policies}
        if any(value is not None for value in rates.values()):
            sheets.append(_scarcity_sheet(stream, [], grid, rates))
    return sheets


def _scarcity_sheet(
    title: str, about: list[str], grid: GridResults, rates: dict[tuple[str, str], float | None]
) -> Sheet:
    policies = grid.policies
    models = [m for m in grid.plan.models if any(rates.get((m, policy)) is not None for policy in policies)]
    tops = {p: max((v for m in models if (v := rates[m, p]) is not None), default=None) for p in policies}

    def entry(model: str, policy: str) -> SheetEntry:
        text = number(rates[model, policy], 2)
        return SheetEntry(text, best=len(models) > 1 and text != NOTHING and text == number(tops[policy], 2))

    groups = [SheetGroup("", [SheetRow(model, [entry(model, policy) for policy in policies]) for model in models])]
    on, off = GENERATIVE
    if on in models and off in models:
        pairs = [(rates[on, policy], rates[off, policy]) for policy in policies]
        gains = [None if a is None or b is None else a - b for a, b in pairs]
        groups.append(
            SheetGroup("", [SheetRow("generative phase, on − off", [SheetEntry(signed(gain, 2)) for gain in gains])])
        )
    return Sheet(title, about, [SheetColumn(policy_name(policy)) for policy in policies], groups)


# --- Sentences ------------------------------------------------------------------------------------------------------


def title(grid: GridResults) -> str:
    return f"DEVDAN compared with {'the paper and ' if grid.is_papers else ''}other methods"


def ranks_text(grid: GridResults) -> list[str]:
    """The ranks in sentences."""
    ranking, block = grid.ranking, grid.block
    if not ranking.models:
        return ["There are no results to rank yet."]
    found = [
        f"{how_many(len(ranking.models), 'model')} over N = {how_many(ranking.n_streams, 'stream')} "
        f"({', '.join(block.streams)}), ranked by {_ranked_by(grid)} averaged over seeds; 1 is the best, ties share "
        "their ranks."
    ]
    if ranking.test:
        differ = "not all models are equally good" if ranking.test.p < ALPHA else "no significant difference"
        p = "p < 0.0001" if ranking.test.p < 1e-4 else f"p = {ranking.test.p:.2g}"
        found.append(f"Friedman test: χ² = {ranking.test.statistic:.2f}, {p}; at level {ALPHA}, {differ}.")
    elif ranking.why_not:
        found.append(f"No test: {ranking.why_not}.")
    if ranking.difference:
        text = f"Critical difference (Nemenyi, {ALPHA}): {ranking.difference:.2f} ranks."
        if ranking.n_streams < 10:
            text += f" With N = {ranking.n_streams} it has little power: models it does not separate may still differ."
        found.append(text)
    run = [stream for stream in grid.plan.streams if any(own == stream for own, _ in grid.rates)]
    holes: dict[str, list[str]] = {}
    for model in grid.plan.models:
        lacking = [stream for stream in block.streams if (stream, model) not in grid.scores]
        if lacking and model not in grid.missing_models:
            holes.setdefault(listed(lacking), []).append(model)
    for where, models in holes.items():
        found.append(f"Left out: {listed(models)}, which {'has' if len(models) == 1 else 'have'} no result on {where}.")
    if unused := [stream for stream in run if stream not in block.streams]:
        found.append(f"Left out: {listed(unused)}, where too few models have a result.")
    return found


def _ranked_by(grid: GridResults) -> str:
    """What models are ranked by, on which streams if it is not the same on all."""
    streams: dict[str, list[str]] = {}
    for stream in grid.block.streams:
        streams.setdefault(grid.by(stream), []).append(stream)
    if len(streams) == 1:
        return next(iter(streams))
    return ", ".join(f"{name} on {listed(own)}" for name, own in streams.items())


def settings(grid: GridResults) -> list[tuple[str, str]]:
    plan, results = grid.plan, list(grid.results.values())
    rows = [
        ("seeds", str(plan.seeds)),
        ("chunk", _chunks(plan)),
        ("samples", "all" if plan.limit is None else f"the first {plan.limit:,} per stream"),
        ("labels", ", ".join(plan.labels)),
        ("stopped after", "" if plan.stop_after is None else f"{plan.stop_after:g} min"),
        *((f"options of {name}", ", ".join(own)) for name, own in plan.options.items()),
        *_files(plan),
    ]
    times = sorted(str(result["started"]) for result in results if result.get("started"))
    if times:
        first, last = moment(times[0]), moment(times[-1])
        rows.append(("started", first if first == last else f"{first} to {last}"))
    rows += [("machine", text) for text in machines(grid)]
    versions: dict[str, dict[str, None]] = {}
    for result in results:
        for name, version in result.get("versions", {}).items():
            versions.setdefault(name, {})[version] = None
    rows += [(name, ", ".join(found)) for name, found in versions.items()]
    return [(name, text) for name, text in rows if text]


def _chunks(plan: GridPlan) -> str:
    """The size of the chunks, by stream if it is not the same everywhere."""
    sizes: dict[int, list[str]] = {}
    for stream in plan.streams:
        sizes.setdefault(plan.chunk_of(stream), []).append(stream)
    if len(sizes) == 1:
        return number(*sizes)
    return "; ".join(f"{number(size)} on {listed(streams)}" for size, streams in sorted(sizes.items()))


def _files(plan: GridPlan) -> Iterator[tuple[str, str]]:
    """The streams that are files, and how they were read."""
    for name, file in plan.files.items():
        said = file.reading.as_keywords()
        dropped = [f"without {', '.join(map(str, said.pop('drop')))}"] if "drop" in said else []
        others = (f"{name} {', '.join(value) if isinstance(value, tuple) else value}" for name, value in said.items())
        yield name, ", ".join([file.path, *others, *dropped])


def machines(grid: GridResults) -> list[str]:
    """The machines that cells were run on."""
    found = dict[str, None]()
    for result in grid.results.values():
        if "machine" in result:
            own = result["machine"].items()
            found[", ".join(f"{value} cores" if key == "cores" else str(value) for key, value in own if value)] = None
    return list(found)


def model_descriptions(plan: GridPlan) -> list[tuple[str, str]]:
    """The models with what the plan says about them."""
    return [(model, plan.about[model]) for model in plan.models if model in plan.about]


def progress(grid: GridResults) -> str:
    """The progress; empty if complete."""
    if grid.n_done + len(grid.failures) == grid.n_cells:
        return ""
    return f"{grid.n_done:,} of {how_many(grid.n_cells, 'run')} are done; the same command runs the rest."


def failures(grid: GridResults) -> list[tuple[str, str]]:
    """Failed runs and their errors, grouped by model, stream and error."""
    found: dict[tuple[str, str, str], list[Cell]] = {}
    for cell, error in grid.failures.items():
        found.setdefault((cell.stream, cell.model, error), []).append(cell)
    texts = []
    for (stream, model, error), cells in found.items():
        labels, seeds = dict.fromkeys(cell.labels for cell in cells), dict.fromkeys(str(cell.seed) for cell in cells)
        of = f"labels {', '.join(labels)}; {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(seeds)}"
        texts.append((f"{stream} · {model}, {how_many(len(cells), 'run')} ({of})", error))
    return texts


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def split_code(text: str) -> list[tuple[bool, str]]:
    """Split a text at backquotes, marking the pieces between two of them.

    >>> split_code("`devdan fetch susy` downloads it"), split_code("a ` alone")
    ([(True, 'devdan fetch susy'), (False, ' downloads it')], [(False, 'a ` alone')])
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return [(False, text)]
    return [(place % 2 == 1, part) for place, part in enumerate(parts) if part]
