"""One table in every format that can be read."""

import bz2
import gzip
import json
import lzma
import sqlite3
import zipfile
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from workbooks import write_workbook

RANDOM = np.random.default_rng(3)
N = 600
AMOUNTS = RANDOM.normal(50, 20, N).round(2).tolist()
CITIES = [None if k % 11 == 0 else ["Bonn", "Köln", "Rome"][k % 3] for k in RANDOM.integers(0, 100, N).tolist()]
CODES = [f"A{k:02d}" for k in RANDOM.integers(0, 9, N).tolist()]
LABELS = ["late" if amount > 60 else "in time" for amount in AMOUNTS]
NAMES = ["amount", "city", "code", "label"]
ROWS = list(zip(AMOUNTS, CITIES, CODES, LABELS, strict=True))


def text(separator=",", decimal="."):
    lines = [separator.join("" if value is None else str(value).replace(".", decimal) for value in row) for row in ROWS]
    return "\n".join([separator.join(NAMES), *lines]) + "\n"


def objects():
    return [{name: value for name, value in zip(NAMES, row, strict=True) if value is not None} for row in ROWS]


def zipped(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def database(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (amount REAL, city TEXT, code TEXT, label TEXT)")
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", ROWS)
        connection.commit()


def written(name, folder):
    """The table in some format; returns what opens it."""
    path = folder / name
    table = pa.table(dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True)))
    lines = "\n".join(map(json.dumps, objects()))
    plain = {
        "t.csv": text().encode(), "semicolons.csv": text(";").encode(), "commas.csv": text(";", ",").encode(),
        "t.tsv": text("\t").encode(), "bars.txt": text("|").encode(), "mark.csv": b"\xef\xbb\xbf" + text().encode(),
        "utf16.csv": text().encode("utf-16"), "utf16be.csv": text().encode("utf-16-be"),
        "t.csv.gz": gzip.compress(text().encode()), "t.csv.bz2": bz2.compress(text().encode()),
        "t.csv.xz": lzma.compress(text().encode()), "t.jsonl": lines.encode(),
        "t.ndjson.gz": gzip.compress(lines.encode()), "t.json": json.dumps(objects(), indent=1).encode(),
    }  # fmt: skip
    if name in plain:
        path.write_bytes(plain[name])
    elif name == "t.csv.zst":
        with pa.output_stream(path, compression="zstd") as stream:
            stream.write(text().encode())
    elif name == "t.zip":
        zipped(path, {"inner.csv": text()})
    elif name == "t.parquet":
        pa.parquet.write_table(table, path)
    elif name in ("t.arrow", "t.arrows"):
        new = pa.ipc.new_file if name == "t.arrow" else pa.ipc.new_stream
        with new(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=250)
    elif name == "t.feather":
        pa.feather.write_feather(table, path)
    elif name == "t.xlsx":
        write_workbook(path, [NAMES, *ROWS])
    elif name == "t.db":
        database(path)
        return f"sqlite:///{path}?table=orders"
    elif name == "t.duckdb":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.register("given", table).execute("CREATE TABLE orders AS SELECT * FROM given")
        return f"duckdb:///{path}?table=orders"
    elif name in ("folder", "folder/part-*.csv"):
        (folder / "folder").mkdir()
        lines = text().splitlines()
        for k in range(3):
            part = [lines[0], *lines[1 + 200 * k : 201 + 200 * k]]
            (folder / "folder" / f"part-{k}.csv").write_text("\n".join(part) + "\n")
    else:
        raise ValueError(name)
    return str(path)


FORMATS = [
    "t.csv", "semicolons.csv", "commas.csv", "t.tsv", "bars.txt", "mark.csv", "utf16.csv", "utf16be.csv", "t.csv.gz",
    "t.csv.bz2", "t.csv.xz", "t.csv.zst", "t.zip", "t.jsonl", "t.ndjson.gz", "t.json", "t.parquet", "t.arrow",
    "t.arrows", "t.feather", "t.xlsx", "t.db", "t.duckdb", "folder", "folder/part-*.csv",
]  # fmt: skip
