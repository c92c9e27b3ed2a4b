"""Writes a state as it is now, for a test that later versions read it; takes the path to write to."""

import base64
import json
import sys
from pathlib import Path

import numpy as np
from pyspark.sql.streaming.tws_tester import TwsTester
from spark_events import frame, plan

from devdan.spark.processor import FleetProcessor

NOTHING = [np.nan] * 3


def main(path: Path) -> None:
    one = TwsTester(FleetProcessor(plan()))
    random = np.random.default_rng(0)
    lines = [
        ("a", f"{second}", second, int(X[0] > 0.5), *X) for second, X in enumerate(random.random((50, 3)), start=1)
    ]
    waiting = ("a", "waiting", 60, None, 0.1, 0.2, 0.3)
    one.testInPandas(0, frame([*lines, waiting, ("a", "early", 61, 0, *NOTHING)]))
    text = lambda content: base64.b64encode(content[0]).decode()  # noqa: E731
    kept = {
        "shared": text(one.peekValueState("shared", 0)),
        "networks": {key: text(content) for (key,), content in one.peekMapState("networks", 0).items()},
        "samples": [
            (key, id_, text(content))
            for (key, id_), content in one.peekMapState("samples", 0).items()
            if id_ in ("waiting", "early")
        ],
    }
    line = one.testInPandas(0, frame([("a", "new", 100, None, 0.2, 0.3, 0.4)])).iloc[0]
    path.write_text(json.dumps(kept | {"version": line.version, "probabilities": line.probabilities}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
