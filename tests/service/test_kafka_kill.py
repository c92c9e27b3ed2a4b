"""The service is killed at random moments while messages come from Kafka: nothing is lost, and nothing learned twice.

``kafka_cluster`` tells which cluster this is. With SQLite one server at a time has the log, so what a rebalance does to
two servers is tested in ``test_postgresql``, and in ``test_kafka`` with a plain consumer in the place of the other.
"""

import pytest

pytest.importorskip("confluent_kafka")

from kafka_kills import killed_often

from devdan.service.store import SqliteDatabase

KILLS = 2  # each takes some seconds; test_tens_of_kills has the rest


def in_a_folder(folder, n_kills, seed):
    return killed_often(
        folder, ["--data", folder / "data"], lambda: SqliteDatabase(folder / "data", lock=False), n_kills, seed
    )


def test_after_kills_under_load_every_message_counts_once(tmp_path):
    in_a_folder(tmp_path, KILLS, 1)


@pytest.mark.slow
def test_tens_of_kills(tmp_path):
    assert in_a_folder(tmp_path, 60, 2) > 0, "no kill came between the log and the answer"
