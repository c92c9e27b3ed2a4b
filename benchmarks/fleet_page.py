"""Writes down what benchmarks/fleet.py has measured: tables for the documentation, and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fleet_prior
from deviations import put

from devdan.report.chart import Plot, ticks
from devdan.report.picture import caption, framed, placed
from devdan.report.words import short

DOCS = Path(__file__).parents[1] / "docs"
TIMED = {"machine", "against", "cores", "keys", "features", "stored", "one_row"}  # parts that belong together
PICTURED = {"against", "keys", "prior"}
PRIOR_TEXT = """\
What is right in the first 20, 100 and 500 samples of a key, in %. Keys join one after the other, 150 of them in the
made streams; each row is predicted before it is learned, in portions of 50; what counts are the keys that join after
the first fifth. Means of three seeds.
"""


def write(results: dict[str, Any]) -> None:
    """Put the figures into the documentation."""
    put(DOCS / "benchmarks.md", "fleet", markdown(results))
    if "prior" in results:
        put(DOCS / "many-streams.md", "prior", fleet_prior.markdown(results["prior"]))
    if results.keys() >= PICTURED:
        (DOCS / "fleet.svg").write_text(picture(results))


def markdown(results: dict[str, Any]) -> str:
    """The section of the benchmarks page, of what was measured."""
    parts = ["By `python benchmarks/fleet.py --write`. How to use a fleet is in [Many streams](many-streams.md)."]
    if results.keys() >= TIMED:
        parts += [
            f"On {results['machine']}: ten features and two classes, rows of keys in random order, portions of 10,000 "
            "rows, each predicted and then learned.",
            "![Time per row against keys, and accuracy by age of a key](fleet.svg)",
            "### Against dicts of models",
            _against(results["against"]) + "\n" + _cores(results["cores"]) + "\n" + _one_row(results["one_row"]),
            "### By keys and features",
            "Networks of six hidden units that do not grow, so that nothing else differs; one core, with a prior. "
            "Measured before networks kept ranges, which take 32 bytes for each feature.",
            _sizes(results["keys"], results["features"]),
            "### Beyond memory",
            _stored(results["stored"], results["keys"][-1]),
        ]
    if "prior" in results:
        parts += ["### What the prior is worth", PRIOR_TEXT, fleet_prior.markdown(results["prior"])]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _against(found: dict[str, Any]) -> str:
    times = found["times"]
    lines = [
        f"{found['n_keys']:,} keys that have had some 30 rows each, one core; the fleet's networks have "
        f"{found['units']:.0f} hidden units on average. Ours in the dict are told that all columns are numbers.",
        "",
        "| | µs per row | times as long as the fleet | as the one without a prior |",
        "|---|---|---|---|",
    ]
    first, second = times["fleet"], times["fleet without a prior"]
    lines += [f"| {n} | {t:.2f} | {t / first:.1f} | {t / second:.1f} |" for n, t in times.items()]
    return "\n".join(lines) + "\n"


def _cores(found: dict[str, Any]) -> str:
    lines = []
    for prior, result in found.items():
        (one, alone), (several, together) = ((int(n), t) for n, t in result["times"].items())
        lines.append(
            f"With {prior}, {several} cores take {together:.2f} µs per row of {result['n_keys']:,} keys and {one} "
            f"takes {alone:.2f}: {alone / together:.2f} times as fast."
        )
    return " ".join(lines) + "\n"


def _one_row(found: dict[str, float]) -> str:
    alone = found["DEVDAN"]
    with_prior, without = found["fleet"], found["fleet without a prior"]
    return (
        f"One row at a time, `predict` and `partial_fit` take {alone:.0f} µs with a `DEVDAN`, {with_prior:.0f} µs with "
        f"a fleet ({with_prior / alone:.2f} times as long) and {without:.0f} µs with one without a prior "
        f"({without / alone:.2f}).\n"
    )


def _sizes(by_keys: list[dict[str, Any]], by_features: list[dict[str, Any]]) -> str:
    smallest = next(each for each in by_keys if each["n_keys"] >= 1_000 or each is by_keys[-1])["time"]
    lines = [
        "| keys | features | µs per row | times as long as with 1,000 keys | µs for a new key | a network | process |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in (*by_keys, *(other for other in by_features if other["n_features"] != 10)):
        times = f"{each['time'] / smallest:.2f}" if each["n_features"] == 10 else ""
        lines.append(
            f"| {each['n_keys']:,} | {each['n_features']} | {each['time']:.2f} | {times} | {each['new']:.0f} | "
            f"{each['network_kilobytes']:.1f} kB | {each['peak_megabytes'] / 1e3:.2f} GB |"
        )
    return "\n".join(lines) + "\n"


def _stored(found: list[dict[str, Any]], unlimited: dict[str, Any]) -> str:
    first = found[0]
    lines = [
        f"{first['n_keys']:,} keys with `max_in_memory={first['limit']:,}`, against {unlimited['time']:.1f} µs per row "
        f"and {unlimited['peak_megabytes'] / 1e3:.1f} GB with all in memory; here, time as one waits for it.",
        "",
        "| keys come | of a portion in memory | µs per row | µs for a new key | process | file | `save` |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in found:
        lines.append(
            f"| {each['keys']} | {100 * each['in_memory']:.0f} % | {each['time']:.1f} | {each['new']:.0f} | "
            f"{each['peak_megabytes'] / 1e3:.2f} GB | {each['gigabytes']:.1f} GB | {each['save_seconds']:.0f} s |"
        )
    return "\n".join(lines) + "\n"


def picture(results: dict[str, Any]) -> str:
    """Time per row against keys, and below how the accuracy grows with the age of a key."""
    by_keys, against_ = results["keys"], results["against"]["times"]
    plot = Plot(len(by_keys) - 1, 0, 1.15 * max(each["time"] for each in by_keys))
    line = plot.line(range(len(by_keys)), [each["time"] for each in by_keys], "smooth")
    below = [(place, short(each["n_keys"])) for place, each in enumerate(by_keys)]
    times = plot.axes(ticks(0, plot.high, 5), " µs", below, "keys") + plot.stretched(line)
    others = " and ".join(f"{against_[name]:.0f} µs" for name in list(against_)[2:])
    body = caption(24, "Time per row, predicted and learned", f"dicts of River classifiers, 10,000 keys: {others}")
    body += placed(38, 130, times)
    name = next(iter(results["prior"]))
    plot = Plot(len(fleet_prior.CURVE) - 1, 40, 100)
    curves = results["prior"][name]
    lines = [
        plot.line(range(len(fleet_prior.CURVE)), [100 * share for share in curves[model]["curve"]], style)
        for model, style in zip(fleet_prior.MODELS, ("smooth", "units", "no-change"), strict=False)
    ]
    below = [(place, str(n)) for place, n in enumerate(fleet_prior.CURVE) if place % 3 == 0]
    chart = plot.axes(ticks(40, 100, 4), " %", below, "samples of the key") + plot.stretched(*lines)
    said = f"{name.partition(':')[0]}; blue: with a prior, black: without, dashed: one DEVDAN for all"
    body += caption(246, "Right in the first samples of a key", said)
    body += placed(260, 150, chart)
    return framed("A fleet: time per row against the number of keys, and accuracy by age of a key", 460, body)
