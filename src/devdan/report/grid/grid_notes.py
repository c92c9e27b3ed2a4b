"""Texts about a grid of runs: the ranks, what is missing, the settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from devdan.report.grid.grid_findings import Findings
from devdan.report.grid.ranking import ALPHA
from devdan.report.grid.shown_grid import Grid
from devdan.report.words import how_many, moment, number
from devdan.runs.gridfolder import CellKey, files_of


def title(grid: Grid) -> str:
    """The title of the page."""
    return f"DEVDAN compared with {'the paper and ' if grid.is_papers else ''}other methods"


def ranks_text(findings: Findings) -> list[str]:
    """The ranks in sentences."""
    ranking, block, grid = findings.ranking, findings.block, findings.grid
    if not ranking.models:
        return ["There are no results to rank yet."]
    found = [
        f"{how_many(len(ranking.models), 'model')} over N = {how_many(ranking.n_streams, 'stream')} "
        f"({', '.join(block.streams)}), ranked by CR averaged over seeds; 1 is the best, ties share their ranks."
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
    run = [stream for stream in grid.streams if any(own == stream for own, _ in findings.rates)]
    holes: dict[str, list[str]] = {}
    for model in grid.models:
        lacking = [stream for stream in block.streams if (stream, model) not in findings.rates]
        if lacking and model not in grid.missing_models:
            holes.setdefault(listed(lacking), []).append(model)
    for where, models in holes.items():
        found.append(f"Left out: {listed(models)}, which {'has' if len(models) == 1 else 'have'} no result on {where}.")
    if unused := [stream for stream in run if stream not in block.streams]:
        found.append(f"Left out: {listed(unused)}, where too few models have a result.")
    return found


def settings(grid: Grid) -> list[tuple[str, str]]:
    """The settings of the runs."""
    info, results = grid.info, list(grid.results.values())
    rows = [
        ("seeds", str(grid.seeds)),
        ("chunk", number(info["chunk"]) if isinstance(info.get("chunk"), int) else ""),
        ("samples", f"the first {info['limit']:,} per stream" if isinstance(info.get("limit"), int) else "all"),
        ("labels", ", ".join(grid.labels)),
        ("stopped after", f"{minutes:g} min" if isinstance(minutes := info.get("stop_after"), (int, float)) else ""),
        *_files(grid),
    ]
    times = sorted(str(result["started"]) for result in results if result.get("started"))
    if times:
        first, last = moment(times[0]), moment(times[-1])
        rows.append(("started", first if first == last else f"{first} to {last}"))
    rows += [("machine", text) for text in machines(grid)]
    versions: dict[str, dict[str, None]] = {}
    for result in results:
        own = result.get("versions")
        for name, version in own.items() if isinstance(own, dict) else ():
            versions.setdefault(str(name), {})[str(version)] = None
    rows += [(name, ", ".join(found)) for name, found in versions.items()]
    return [(name, text) for name, text in rows if text]


def _files(grid: Grid) -> Iterator[tuple[str, str]]:
    """The streams that are files, and how they were read."""
    for name, file in files_of(grid.info).items():
        if isinstance(file, dict):
            how = [f"target {file['target']}"] if file.get("target") is not None else []
            how += [f"without {', '.join(map(str, file['drop']))}"] if file.get("drop") else []
            yield str(name), ", ".join([str(file.get("path")), *how])


def machines(grid: Grid) -> list[str]:
    """The machines that cells were run on."""
    found = dict[str, None]()
    for result in grid.results.values():
        own = result.get("machine")
        if isinstance(own, dict):
            parts = [f"{value} cores" if key == "cores" else str(value) for key, value in own.items() if value]
            found[", ".join(parts)] = None
    return list(found)


def models_told(grid: Grid) -> list[tuple[str, str]]:
    """Descriptions of the models, if table.json has them under ``about``."""
    about = grid.info.get("about")
    return [(model, str(about[model])) for model in grid.models if model in about] if isinstance(about, dict) else []


def progress(grid: Grid) -> str:
    """The progress; empty if complete."""
    if grid.n_done == grid.n_cells:
        return ""
    return f"{grid.n_done:,} of {how_many(grid.n_cells, 'run')} are done; the same command runs the rest."


def failures(grid: Grid) -> list[tuple[str, str]]:
    """Failed runs and their errors, grouped by model, stream and error."""
    found: dict[tuple[str, str, str], list[CellKey]] = {}
    for key, error in grid.failures.items():
        found.setdefault((key.stream, key.model, error), []).append(key)
    told = []
    for (stream, model, error), keys in found.items():
        labels, seeds = dict.fromkeys(key.labels for key in keys), dict.fromkeys(str(key.seed) for key in keys)
        of = f"labels {', '.join(labels)}; {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(seeds)}"
        told.append((f"{stream} · {model}, {how_many(len(keys), 'run')} ({of})", error))
    return told


def listed(streams: Sequence[str]) -> str:
    """Names in a sentence."""
    return streams[0] if len(streams) == 1 else f"{', '.join(streams[:-1])} and {streams[-1]}"


def pieces(text: str) -> list[tuple[bool, str]]:
    """Split a text at backquotes, marking the pieces between two of them.

    >>> pieces("`devdan fetch susy` downloads it"), pieces("a ` alone")
    ([(True, 'devdan fetch susy'), (False, ' downloads it')], [(False, 'a ` alone')])
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return [(False, text)]
    return [(place % 2 == 1, part) for place, part in enumerate(parts) if part]
