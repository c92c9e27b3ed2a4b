"""Rows and labels as a query gets them, and what should become of them: a fleet that is given one after the other."""

import numpy as np
import pandas as pd
import pyarrow as pa

from devdan.spark.packing import pack_events
from devdan.spark.plan import QueryPlan, value_of

DAY = 86_400_000_000  # microseconds
FEATURES = ("load", "heat", "noise")


def plan(**changed):
    """A plan for numbers, text as keys and whole numbers as labels, without a prior."""
    chosen = {
        "features": FEATURES,
        "schema": None,
        "key_kind": "text",
        "label_kind": "numbers",
        "estimator": None,
        "decide": "likeliest",
        "prior": False,
        "random_state": 3,
        "shards": 1,
        "wait": 30 * DAY,
        "forget": None,
        "with_labels": True,
    }
    return QueryPlan(**chosen | changed)


def events(n=400, n_keys=7, delay=40, seed=0):
    """Rows, of which some have their label at once, some later, some earlier and some never; a second apart."""
    random = np.random.default_rng(seed)
    lines = []
    for number in range(n):
        key = f"device {random.integers(n_keys)}"
        X = random.random(3)
        if number % 17 == 0:
            X[1] = np.nan
        label = int(X[0] + (number % n_keys == 0) > 0.6)
        second = 1000 + number
        way = number % 4
        lines.append((key, f"row {number}", second, label if way == 0 else None, *X))
        if way == 1:
            lines.append((key, f"row {number}", second + random.integers(1, delay), label, *[np.nan] * 3))
        elif way == 2 and number % 8 == 2:
            lines.append((key, f"row {number}", second - random.integers(1, delay), label, *[np.nan] * 3))
    return frame(lines)


def frame(lines):
    """Lines of key, id, second, label and features, in order of time, as workers read them."""
    table = pd.DataFrame(lines, columns=["key", "id", "second", "label", "f0", "f1", "f2"])
    table["label"] = pd.array(table.label, dtype="Int64")
    table["label"] = table.label.astype(object).map(lambda label: None if label is pd.NA else str(label))
    table["at"] = (table.second * 1_000_000).astype(np.int64)
    table["time"] = pd.to_datetime(table["at"], unit="us")
    return table.sort_values("second", kind="stable", ignore_index=True).drop(columns="second")


def packed(table):
    """As the engine hands over the rows of a shard: in some values, each with many."""
    schema = pa.schema([(name, pa.string()) for name in ("key", "id", "label")] + [("at", pa.int64())])
    features = [name for name in table.columns if name not in (*schema.names, "time")]
    arrow = pa.Table.from_pandas(table[features], preserve_index=False)
    for name, kind in zip(schema.names, schema.types, strict=True):
        arrow = arrow.append_column(name, pa.array(table[name], kind, from_pandas=True))
    arrow = arrow.append_column("shard", pa.array(np.zeros(len(table), np.int64)))
    parts = [arrow.slice(begin, 100).to_batches() for begin in range(0, len(table), 100)]
    return pd.concat([batch.to_pandas() for part in parts for batch in pack_events(iter(part))])[["content"]]


def expected(plan, table):
    """What a fleet predicts that is given row after row: the probabilities of each id, and the fleet.

    None where the key has no label yet: such predictions tell of other keys, so that they depend on the shards.
    """
    fleet, found, labels, waiting, taught = plan.new_fleet(), {}, {}, {}, set()
    present = table[["f0", "f1", "f2"]].notna().any(axis=1)
    ordered = table.assign(absent=~present).sort_values(["at", "absent", "id"])
    for line in ordered.itertuples():
        name = (line.key, line.id)
        if line.absent:
            label = value_of(line.label, plan.label_kind)
            if name in waiting:
                fleet.teach([line.key], [waiting.pop(name)], [label])
                taught.add(line.key)
            else:
                labels[name] = label
            continue
        X = np.array([[line.f0, line.f1, line.f2]])
        if line.key in taught:
            probabilities = fleet.predict_proba([line.key], X)[0].tolist()
            found[line.id] = dict(zip(map(str, fleet.classes_.tolist()), probabilities, strict=True))
        else:
            found[line.id] = None
        label = labels.get(name) if line.label is None else value_of(line.label, plan.label_kind)
        if label is None:
            fleet.observe([line.key], X)
            waiting[name] = X[0]
        else:
            fleet.partial_fit([line.key], X, [label])
            taught.add(line.key)
    return found, fleet


def likely(probabilities):
    """Without classes of probability zero: those that other keys know."""
    return {label: share for label, share in probabilities.items() if share > 0}
