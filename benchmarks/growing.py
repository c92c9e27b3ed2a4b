"""Draws docs/growing.svg: a hidden layer that grows through a drift, from a real run. `python benchmarks/growing.py`.

Two classes at first; then three more appear, and later they are gone again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from markupsafe import Markup

from devdan import DEVDAN, Event
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Phases, Record
from devdan.report.chart import Plot, mark, ticks
from devdan.report.render import caption, framed, legend, placed
from devdan.streams.stream import Chunk

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "growing.svg"
CHUNK, N_SAMPLES = 100, 15_000
DRIFTS = {5_000: "three new classes", 10_000: "they are gone"}
CENTRES = np.array([(0.2, 0.2), (0.4, 0.3), (0.8, 0.8), (0.2, 0.8), (0.8, 0.3)])  # of the classes
SPREAD = 0.07
BEAD = 400  # samples from one bead to the next
KEYS = [mark(kind, f"{kind} {phase}", f"{kind}, {phase}") for kind in ("growth", "pruning") for phase in Phases._fields]
STYLE = """
  .life { stroke: var(--grid); stroke-width: 1.5px; }
  .bead { fill: var(--grey); } .bead.young { fill: var(--blue); }
  .drift { stroke: var(--orange); stroke-dasharray: 4 4; } .said { fill: var(--orange); }
"""


@dataclass
class Unit:
    """A hidden unit's life: when it came and went, and how far it parted the classes meanwhile."""

    came: int
    birth: Event | None = None
    death: Event | None = None
    weights: list[tuple[int, float]] = field(default_factory=list)


def stream(seed: int = 0) -> Iterator[Chunk]:
    """Round clouds, one for each class."""
    random = np.random.default_rng(seed)
    first, last = DRIFTS
    for t in range(0, N_SAMPLES, CHUNK):
        y = random.integers(0, len(CENTRES) if first <= t < last else 2, CHUNK)
        yield CENTRES[y] + SPREAD * random.standard_normal((CHUNK, 2)), y


def learn(model: DEVDAN) -> tuple[list[Record], list[Unit]]:
    """Let a model learn the stream; returns its records and all units that it ever had."""
    units = [Unit(0)]
    alive, records, n_events = list(units), [], 0
    for record in prequential(stream(), model):
        records.append(record)
        for event in model.events_[n_events:]:
            if event.kind == "growth":
                alive.append(Unit(event.sample, birth=event))
                units.append(alive[-1])
            elif event.kind == "pruning":
                alive.pop(event.unit).death = event
        n_events = len(model.events_)
        for unit, row in zip(alive, model.weights_["output"], strict=True):
            unit.weights.append((record.start + record.n_samples, float(np.ptp(row))))
    return records, units


def accuracy(records: Sequence[Record]) -> Markup:
    """Accuracy chunk by chunk, with the drifts."""
    plot = Plot(N_SAMPLES, 0, 105)
    scored = [(record.start + record.n_samples, record.accuracy) for record in records if record.accuracy is not None]
    line = plot.line([end for end, _ in scored], [100 * share for _, share in scored], "smooth")
    said = [
        Markup('<text class="said" x="{:.2f}%" dx="6" y="92%">{}</text>').format(plot.x(sample), text)
        for sample, text in DRIFTS.items()
    ]
    return plot.axes(ticks(0, 100, 4), " %") + drifts(plot) + plot.stretched(line) + Markup("").join(said)


def lives(units: Sequence[Unit]) -> Markup:
    """A line for each unit from its growth to its pruning, with beads as large as its weights."""
    plot = Plot(N_SAMPLES, len(units) + 0.5, -0.5)
    largest = max(weight for unit in units for _, weight in unit.weights)
    body = plot.axes([]) + drifts(plot)
    for row, unit in enumerate(units):
        y = plot.y(row)
        end = N_SAMPLES if unit.death is None else unit.death.sample
        body += Markup('<line class="life" x1="{:.2f}%" x2="{:.2f}%" y1="{:.2f}%" y2="{:.2f}%"/>').format(
            plot.x(unit.came), plot.x(end), y, y
        )
        age = "young" if unit.came >= min(DRIFTS) else ""
        for sample, weight in unit.weights:
            if sample % BEAD == 0:
                body += Markup('<circle class="bead {}" cx="{:.2f}%" cy="{:.2f}%" r="{:.1f}"/>').format(
                    age, plot.x(sample), y, 1 + 6 * (weight / largest) ** 0.5
                )
        for event in filter(None, (unit.birth, unit.death)):
            body += Markup('<use href="#{0}" class="{0} {1}" x="{2:.2f}%" y="{3:.2f}%"/>').format(
                event.kind, event.phase, plot.x(event.sample), y
            )
    return body


def drifts(plot: Plot) -> Markup:
    """Where the stream changes."""
    lines = ('<line class="drift" x1="{0:.2f}%" x2="{0:.2f}%" y1="0" y2="100%"/>'.format(plot.x(t)) for t in DRIFTS)
    return Markup("".join(lines))


def main() -> None:
    records, units = learn(DEVDAN(rehearse=0, random_state=3))
    height = 17 * len(units)
    body = caption(24, "Accuracy") + placed(38, 120, accuracy(records))
    body += caption(222, "Hidden units") + legend(222, KEYS, x=130) + placed(236, height, lives(units))
    title = f"A network grows through a drift: {len(units)} hidden units over {N_SAMPLES:,} samples"
    PICTURE.write_text(framed(title, 236 + height + 46, body, STYLE))
    print(PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
