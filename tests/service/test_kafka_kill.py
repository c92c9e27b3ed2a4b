"""Servers and brokers are killed at random moments while messages come: nothing is lost, and nothing learned twice.

With SQLite one server at a time has the log, so what a rebalance does to two servers is tested in ``test_postgresql``,
and in ``test_kafka`` with a plain consumer in the place of the other.
"""

import os
from functools import partial

import pytest

pytest.importorskip("confluent_kafka")

from kafka_cluster import Cluster
from kafka_kills import killed_often

from devdan.service.store import SqliteDatabase

N = int(os.environ.get("DEVDAN_KAFKA_KILLS", "5"))  # kills with a real broker, a fifth of them of the broker
KILLS = 2  # each takes some seconds; the other tests have the rest


def in_a_folder(make_cluster, folder, n_kills, seed, **options):
    cluster = make_cluster()
    database = partial(SqliteDatabase, folder / "data", lock=False)
    n_again = killed_often(cluster, folder, ["--data", folder / "data"], database, n_kills, seed, **options)
    cluster.stop()
    return n_again


def test_after_kills_under_load_every_message_counts_once(tmp_path):
    in_a_folder(Cluster, tmp_path, KILLS, 1)


@pytest.mark.slow
def test_tens_of_kills(tmp_path):
    assert in_a_folder(Cluster, tmp_path, 60, 2) > 0, "no kill came between the log and the answer"


@pytest.mark.slow
@pytest.mark.kafka
def test_kills_of_servers_and_of_a_real_broker(tmp_path):
    from kafka_broker import Broker  # noqa: PLC0415 (skips where there is no Java)

    in_a_folder(Broker, tmp_path, N - N // 5, 3, n_broker_kills=N // 5)


@pytest.mark.slow
@pytest.mark.kafka
def test_in_transactions_each_prediction_comes_once_whatever_is_killed(tmp_path):
    """The reader of the predictions reads what is committed, as Kafka's consumers do unless they are told otherwise."""
    from kafka_broker import Broker  # noqa: PLC0415 (skips where there is no Java)

    given = {"n_broker_kills": N // 5, "options": ["--exactly-once"]}
    assert in_a_folder(Broker, tmp_path, N - N // 5, 4, **given) == 0
