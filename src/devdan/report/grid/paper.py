"""The paper's Table 1, as printed."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

METHODS = ("DEVDAN", "AE", "DAE", "pENsemble", "pENsemble+")
COUNTERPARTS = {  # ours: the paper's
    "devdan-paper": "DEVDAN",
    "ae": "AE",
    "dae": "DAE",
    "pensemble": "pENsemble",
    "pensemble+": "pENsemble+",
}
_STREAMS = {
    "sea": "SEA",
    "hyperplane": "Hyperplane",
    "electricity": "Electricity pricing",
    "weather": "Weather",
    "kddcup": "KDDCup 10%",
    "susy": "SUSY",
    "hepmass": "HEPMASS 19%",
    "rlcps": "RLCPS",
    "rfid": "RFID localization",
}


class Published(NamedTuple):
    """A figure from the paper; ``std`` is over chunks, None if the paper has none."""

    mean: float
    std: float | None


def published(stream: str, criterion: str, method: str) -> Published | None:
    """The figure that the paper reports; None if it has none.

    >>> published("sea", "CR", "DEVDAN"), published("sea", "ET", "AE"), published("mine", "CR", "DEVDAN")
    (Published(mean=92.29, std=6.48), Published(mean=18.59, std=None), None)
    """
    row = _table().get((_STREAMS.get(stream, ""), criterion))
    if row is None or not row.get(method):
        return None
    spread = row[f"{method}_std"]
    return Published(float(row[method]), float(spread) if spread else None)


@cache
def _table() -> dict[tuple[str, str], dict[str, str]]:
    text = files("devdan.report.grid").joinpath("table1.csv").read_text()
    return {(row["stream"], row["criterion"]): row for row in csv.DictReader(text.splitlines())}
