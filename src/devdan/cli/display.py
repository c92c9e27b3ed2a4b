"""Progress and results of a run, and facts about a model, as text and tables on the console."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from devdan.evaluation import measures
from devdan.evaluation.record import Record, Summary
from devdan.streams import Stream

_LATELY = 20  # chunks
_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 24
_DRIFTS_AFTER = 3  # the place of the hidden units


class Display:
    """Shows a run's progress: a live panel on a terminal, otherwise an occasional line. A context manager."""

    def __init__(self, console: Console, stream: Stream, summary: Summary, units: str = "hidden units") -> None:
        self.console, self.name, self.summary, self.units = console, stream.name, summary, units
        self.total = stream.n_samples or stream.estimated_samples
        self.is_exact = stream.n_samples is not None
        self._begin = self._latest = time.monotonic()
        self._done_before = summary.n_samples
        self._hits: deque[tuple[int, int]] = deque(maxlen=_LATELY)
        self._all_hits = sum(summary.confusion.hits.values())
        self._all_scored = summary.confusion.n_samples
        self._sizes: list[int] = []
        self._n_hidden: int | None = None
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None
        self._tenth = 0

    def __enter__(self) -> Display:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, record: Record) -> None:
        """Add a record; usually cheap."""
        hits, scored = sum(record.confusion.hits.values()), record.confusion.n_samples
        self._hits.append((hits, scored))
        self._all_hits += hits
        self._all_scored += scored
        if record.n_hidden is not None:
            self._n_hidden = record.n_hidden
        now = time.monotonic()
        if self._live is not None:
            if now - self._latest > 0.12:
                self._latest = now
                self._sizes.append(self._n_hidden or 0)
                if len(self._sizes) > 40 * _WIDTH:
                    self._sizes = self._sizes[::2]
                self._live.update(self._panel(now))
            return
        tenth = 10 * self.summary.n_samples // self.total if self.total else 0
        if now - self._latest > 10 or tenth > self._tenth:
            self._latest, self._tenth = now, tenth
            self.console.print(f"{self.name}: {self._progress(now)}, {self._state()}", highlight=False, soft_wrap=True)

    def _panel(self, now: float) -> Group:
        share = min(self.summary.n_samples / self.total, 1.0) if self.total else None
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            Text(self.name, style="bold"),
            ProgressBar(total=1.0, completed=share or 0.0, width=_WIDTH, pulse=share is None),
            Text(self._progress(now)),
        )
        if self._n_hidden is None:
            return Group(bar, Text(self._state()))
        sizes = Text(f"{self.units} over time: ").append(_sparkline(self._sizes), style="cyan")
        return Group(bar, Text(self._state()), sizes)

    def _progress(self, now: float) -> str:
        done = self.summary.n_samples
        rate = (done - self._done_before) / max(now - self._begin, 1e-9)
        text = f"{done:,}"
        if self.total:
            about = "" if self.is_exact else "about "
            text += f" of {about}{self.total:,}"
        text += f" samples, {rate:,.0f}/s"
        if self.total and rate > 0 and self.total > done:
            text += f", {_duration((self.total - done) / rate)} left"
        return text

    def _state(self) -> str:
        hits, scored = (sum(parts) for parts in zip(*self._hits, strict=True))
        parts, rare = [], self.summary.rarest
        if rare is not None:
            found = [
                self.summary.of_rarest(of) for of in (self.summary.confusion.recall, self.summary.confusion.precision)
            ]
            recall, precision = ("–" if share is None else f"{100 * share:.0f} %" for share in found)
            parts.append(f"{rare}: recall {recall}, precision {precision} so far")
        elif self._all_scored:
            parts.append(f"accuracy {100 * self._all_hits / self._all_scored:.2f} % so far")
        if scored and rare is None:
            parts.append(f"{100 * hits / scored:.2f} % recently")
        if self._n_hidden is not None:
            parts.append(f"{self._n_hidden} {self.units if self._n_hidden != 1 else self.units.removesuffix('s')}")
        return ", ".join(parts) or "nothing scored yet"


def results(figures: dict[str, Any]) -> Table:
    """The paper's four criteria and other common measures, from a run's summary."""
    table = Table(show_header=False, box=None, pad_edge=False)
    texts = {measure.key: measure.text(measure.figure(figures)) for measure in measures.MEASURES}
    texts |= measures.about_classes(figures) | {"units": measures.units_name(figures["model"])}
    rows: list[tuple[int, str, str, str]] = []
    for measure in measures.MEASURES:
        line = measure.line
        if line is not None and not (measure.optional and measure.figure(figures) is None):
            parts = (line.label or measure.title.lower(), line.text or measure.in_words(figures), line.note)
            name, value, note = (part.format_map(texts) for part in parts)
            rows.append((line.place, name, value, note))
    if figures["drifts"] is not None:
        drifts = figures["drifts"]
        of = ", counted per member" if figures.get("members_mean") is not None else ""
        note = f"real{measures.of_classes(figures['class_drifts'])}{of}; virtual: {drifts['generative']}"
        rows.append((_DRIFTS_AFTER, "drifts", f"{drifts['discriminative']}", note))
    rows.sort(key=lambda row: row[0])
    rows.append((0, "samples, labels", f"{figures['n_samples']:,}, {figures['n_labels']:,}", ""))
    n_classes = len(figures["classes"])
    target = "" if figures.get("target") is None else f"from the column {figures['target']}"
    shares = measures.class_shares(figures)
    rows.append((0, "classes", f"{n_classes:,}: {shares}" if shares else f"{n_classes:,}", target))
    for _, name, value, note in rows:
        table.add_row(name, Text(value, style="bold"), Text(note, style="dim"))
    return table


def left(seconds: float | None) -> str:
    """The estimated remaining time."""
    return "remaining time not known yet" if seconds is None else f"about {_duration(seconds)} left"


def headline(figures: dict[str, Any]) -> str:
    """What the figures of a run are compared by.

    >>> headline({"cr_mean": 91.2}), headline({"cr_mean": 97.4, "rarest_average_precision": 0.25, "rarest_f1": 0.1})
    ('CR 91.20 %', 'rarest_average_precision 0.250, rarest_f1 0.100')
    """
    told = measures.leading([figures])
    return ", ".join(f"{measure.criterion or measure.key} {measure.in_words(figures)}" for measure in told)


def _duration(seconds: float) -> str:
    seconds = round(seconds)
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _sparkline(sizes: list[int]) -> str:
    """The size of the hidden layer over time, between its smallest and its largest.

    >>> _sparkline([1, 1, 4, 8]), _sparkline([3])
    ('1 ▁▁▄█ 8', '3 ▁ 3')
    """
    shown = sizes if len(sizes) <= _WIDTH else [sizes[(len(sizes) - 1) * k // (_WIDTH - 1)] for k in range(_WIDTH)]
    low, high = min(shown, default=0), max(shown, default=0)
    bars = "".join(_BARS[(size - low) * (len(_BARS) - 1) // max(high - low, 1)] for size in shown)
    return f"{low} {bars} {high}"


def columns(rows: list[dict[str, Any]], most: int = 20) -> Table:
    """The encoding of each column; if there are many, those that are not plain numbers come first."""
    shown = rows
    if len(rows) > most:
        shown = sorted(rows, key=lambda row: row["became"] == "number")[:most]
    table = Table(show_header=False, box=None, pad_edge=False)
    for row in shown:
        table.add_row(Text(row["name"]), Text(row["became"]))
    if len(rows) > most:
        table.add_row(Text("…", style="dim"), Text(f"and {len(rows) - most:,} more: devdan show", style="dim"))
    return table


def listing(rows: list[dict[str, Any]]) -> Table:
    """The streams as a table, suite by suite."""
    table = Table(box=None, pad_edge=False)
    for column in ("stream", "samples", "features", "classes", "from", "here"):
        table.add_column(
            column,
            justify="right" if column in ("samples", "features", "classes") else "left",
            overflow="fold",
            no_wrap=column != "from",
        )
    suite = None
    for row in rows:
        if row["suite"] != suite:
            suite = row["suite"]
            table.add_row(Text(suite, style="bold"))
        here = row["here"]
        table.add_row(
            f"  {row['name']}",
            f"{row['n_samples']:,}",
            str(row["n_features"]),
            str(row["n_classes"]),
            row["origin"],
            Text(
                "yes" if here else "can be fetched" if row["get"] else "your own file", style="green" if here else "dim"
            ),
        )
    return table


# --- Models and fleets -------------------------------------------------------------------------------------------


def model(facts: dict[str, Any]) -> list[Table | Text]:
    """The facts about a model as tables."""
    names, members = facts["feature_names"], facts["n_members"]
    rows = [
        ("model", facts["kind"]),
        ("file", f"{facts['file']}, {facts['bytes']:,} bytes"),
        ("options", ", ".join(f"{name}={value!r}" for name, value in facts["options"].items()) or "the defaults"),
        ("has seen", f"{facts['n_samples']:,} samples, {facts['n_labels']:,} labels"),
        ("classes", f"{len(facts['classes']):,}: {_shortened(facts['classes'])}"),
        ("columns", f"{facts['n_features']:,}" + ("" if names else ", without names: by position")),
        ("inputs", f"{facts['n_inputs']:,}"),
        *([("what matters now", _strongest(facts["importances"]))] if facts["importances"] else []),
        ("hidden units", f"{facts['n_hidden']:,}" + (f" in {members} members" if members else "")),
        ("parameters", f"{facts['n_parameters']:,}"),
        *((name, _phases(facts[name])) for name in ("growths", "prunings", "drifts")),
    ]
    parts = [_table(rows), *_about_columns(facts)]
    if facts["events"]:
        listed = Table(box=None, pad_edge=False)
        for name in ("sample", "event", "phase", "hidden units", "network"):
            listed.add_column(name, justify="left" if name in ("event", "phase") else "right")
        for event in facts["events"]:
            kind = event["kind"] if event["label"] is None else f"{event['kind']} of {event['label']}"
            cells = (f"{event['sample']:,}", kind, event["phase"], event["n_hidden"], event["network"] + 1)
            listed.add_row(*map(str, cells))
        parts += [Text(f"\nLatest of {facts['n_events']:,} events", style="bold"), listed]
    return parts


def fleet(facts: dict[str, Any]) -> list[Table | Text]:
    """The facts about a fleet as tables."""
    levels = facts["accuracy"]
    recent = "too few labels of each key to judge"
    if levels:
        shares = ", ".join(f"{100 * float(share):.0f} % below {100 * level:.1f} %" for share, level in levels.items())
        recent = f"of the {facts['n_judged']:,} keys with enough labels, {shares}"
    rows = [
        ("model", facts["kind"]),
        ("file", f"{facts['file']}, {facts['bytes']:,} bytes"),
        ("options", ", ".join(f"{name}={value!r}" for name, value in facts["options"].items()) or "the defaults"),
        ("keys", f"{facts['n_keys']:,}" + (f", from the column {facts['key']}" if facts["key"] else "")),
        ("has seen", f"{facts['samples']:,} samples, {facts['labels']:,} labels"),
        ("classes", f"{len(facts['classes']):,}: {_shortened(facts['classes'])}"),
        ("columns", f"{facts['n_features']:,}" + ("" if facts["feature_names"] else ", without names: by position")),
        ("hidden units", f"{facts['units']:,}, {facts['units'] / max(facts['n_keys'], 1):.1f} per key"),
        ("drifts", f"{facts['real_drifts']:,} real, {facts['virtual_drifts']:,} virtual"),
        ("recent accuracy", recent),
    ]
    parts = [_table(rows), *_about_columns(facts)]
    if facts["worst"]:
        listed = Table(box=None, pad_edge=False)
        for name in ("key", "samples", "accuracy", "real drifts"):
            listed.add_column(name, justify="left" if name == "key" else "right")
        for row in facts["worst"]:
            cells = (row["key"], f"{row['samples']:,}", f"{100 * row['accuracy']:.1f} %", row["real_drifts"])
            listed.add_row(*(Text(str(cell)) for cell in cells))
        parts += [Text("\nThe lowest recent accuracies", style="bold"), listed]
    return parts


def _about_columns(facts: dict[str, Any]) -> list[Table | Text]:
    """The columns of a model or a fleet, and notes about them."""
    notes: list[Table | Text] = [Text(f"note: {note}", style="yellow") for note in facts["notes"]]
    if not facts["columns"]:
        return notes
    return [Text("\nColumns", style="bold"), columns(facts["columns"], most=len(facts["columns"])), *notes]


def _table(rows: list[tuple[str, str]]) -> Table:
    """A table of names and values."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in rows:
        table.add_row(Text(name), Text(value, style="bold"))
    return table


def _strongest(importances: dict[str, float], most: int = 5) -> str:
    """The columns that matter most, and how much."""
    order = sorted(importances.items(), key=lambda item: -item[1])[:most]
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in order if share >= 0.005) or "no column"


def _phases(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {phase}" for phase, n in counts.items())


def _shortened(values: list[Any], most: int = 20) -> str:
    """The values as a list that is not too long."""
    return ", ".join(map(str, values[:most])) + (", …" if len(values) > most else "")
