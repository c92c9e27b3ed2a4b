"""A real server, killed at random moments under load: what was acknowledged is there exactly once, bit for bit."""

import random
import re
from pathlib import Path

import httpx
import pytest
from commandline import run
from served import SECONDS, Process
from service_kills import check_histories, killed_often

from devdan.service.store import SqliteDatabase

ROOT = Path(__file__).parents[2]
KILLS = 2  # each takes two seconds or so; test_hundreds_of_kills has the rest


def test_after_kills_under_load_everything_acknowledged_is_there_once_bit_for_bit(tmp_path):
    folder = tmp_path / "data"
    n_rows, n_labels = killed_often(["--data", folder], lambda: SqliteDatabase(folder, lock=False), KILLS, 1)
    assert n_rows > KILLS
    assert n_labels > 0


def test_after_kills_while_little_is_kept_everything_acknowledged_counts_once(tmp_path):
    folder = tmp_path / "data"
    arguments, log = ["--data", folder, "--snapshots", "0.1"], lambda: SqliteDatabase(folder, lock=False)
    n_rows, n_labels = killed_often(arguments, log, 2 * KILLS, 3, settings={"keep": 0})
    assert n_rows > n_labels > 0


def test_after_kills_rows_have_the_histories_of_all_before_them(tmp_path):
    folder, settings = tmp_path / "data", {"history": ["who"]}
    arguments, log = ["--data", folder, "--snapshots", "0.3"], lambda: SqliteDatabase(folder, lock=False)
    n_rows, n_labels = killed_often(arguments, log, 2 * KILLS, 4, settings=settings)
    assert n_rows > n_labels > 0
    check_histories(log())


@pytest.mark.slow
def test_hundreds_of_kills(tmp_path):
    folder = tmp_path / "data"
    killed_often(["--data", folder], lambda: SqliteDatabase(folder, lock=False), 200, 2)


@pytest.mark.slow
@pytest.mark.parametrize("keep", [0, 1, 30])
def test_tens_of_kills_while_little_is_kept(tmp_path, keep):
    arguments, log = ["--data", tmp_path, "--snapshots", "0.5"], lambda: SqliteDatabase(tmp_path, lock=False)
    killed_often(arguments, log, 40, keep, settings={"keep": keep})


def test_serve_ctrl_c_and_replay_as_a_user_would(tmp_path):
    folder = tmp_path / "data"
    server = Process("--data", folder)
    code, said = run("serve", "--data", folder, "--port", "0")
    assert (code, "is in use by another devdan serve" in said) == (2, True), said
    client = httpx.Client(base_url=server.url, timeout=SECONDS)
    client.put("/v1/streams/s", json={})
    source = random.Random(0)
    rows = [{"features": {"x": source.random()}, "id": f"r{k}"} for k in range(300)]
    for some in (rows[:150], rows[150:]):
        client.post("/v1/streams/s/predict", json={"rows": some})
        labels = [{"id": row["id"], "label": "big" if row["features"]["x"] > 0.5 else "small"} for row in some[:100]]
        client.post("/v1/streams/s/labels", json={"labels": labels})
    with client.stream("GET", "/v1/streams/s/events") as events:
        assert next(events.iter_lines()).startswith('data: {"stream":"s"')
        assert server.stop() == 0  # although somebody listens
    code, said = run("replay", folder)
    assert code == 0, said
    assert re.search(r"s: \d+ records, 300 rows, 200 labels: the same as the snapshot, bit for bit", said)
    code, said = run("replay", folder, "--model", "devdan-quick", "--chunk", 50, "--out", tmp_path / "run")
    assert code == 0, said
    page = (tmp_path / "run" / "report.html").read_text()
    assert "as they came" in page
    code, said = run("replay", folder, "--until", "2000-01-01", "--save", tmp_path / "m")
    assert (code, "has no model yet" in said) == (2, True), said
    assert run("replay", folder, "--save", tmp_path / "m")[0] == 0
    assert run("show", tmp_path / "m")[0] == 0


def test_wrong_use_is_told_in_a_line(tmp_path):
    for arguments, says in (
        (["serve"], "say where the log is"),
        (["serve", "--data", tmp_path, "--host", "0.0.0.0"], "--tokens names a file"),
        (["serve", "--data", tmp_path, "--durability", "some"], "durability must be one of full"),
        (["serve", "--data", tmp_path, "--tokens", tmp_path / "none"], "No such file"),
        (["serve", "--data", tmp_path, "--tls-key", tmp_path / "k"], "needed both"),
        (["serve", "--data", tmp_path, "--model", tmp_path / "none"], "No such file"),
        (["serve", "--data", tmp_path, "--model", ROOT / "README.md"], "is not a DEVDAN model"),
        (["replay", tmp_path / "nothing"], "there is no log in"),
    ):
        code, said = run(*arguments)
        assert code == 2, said
        assert says in said, said
        assert "Traceback" not in said
