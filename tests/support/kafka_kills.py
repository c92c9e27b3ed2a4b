"""Messages from Kafka to a server that is killed under load, and what must then be in its log and its answers."""

import json
import random
import threading

import httpx
from kafka_cluster import QUICK, SECONDS, Reader, all_are_read
from served import Process, logged, until
from service_kills import check

from devdan.service.replay import found, replayed

AHEAD = 300  # rows that have no prediction yet


class Feeder(threading.Thread):
    """Sends rows, with ids and without, and labels, some before their rows; remembers what Kafka has."""

    def __init__(self, cluster, answers, seed):
        super().__init__()
        self._cluster, self._answers, self._random = cluster, answers, random.Random(seed)
        self.rows, self.labels, self.n_messages = {}, {}, 0  # by id
        self._unlabelled, self._n = [], 0
        self._news, self.ends = threading.Condition(), False

    def run(self):
        while not self.ends:
            self._answers.until(lambda _: self.ends or len(self.rows) - len(self._answers.keys) < AHEAD)
            self._send_rows()
            if self._random.random() < 0.4:
                self._send_labels()
            with self._news:
                self._news.notify()

    def unanswered(self, name):
        """All that it has sent is in Kafka."""
        return set()

    def was_labelled(self, id_):
        """Whether a label of this row may be in the log."""
        return id_ in self.labels

    def until_further(self, n):
        """Wait for so many messages from now on."""
        with self._news:
            aim = self.n_messages + n
            self._news.wait_for(lambda: self.n_messages >= aim)

    def _send_rows(self):
        size = self._random.choice([1, 3])
        features = [{"x": self._random.random(), "y": self._random.random()} for _ in range(size)]
        if self._random.random() < 0.5:
            (place,) = self._cluster.send("k-rows", json.dumps({"rows": [{"features": own} for own in features]}))
            ids = [f"k-rows-{place[0]}-{place[1]}-{k}" for k in range(len(features))]
        else:
            ids = [f"own-{self._n + k}" for k in range(len(features))]
            self._n += len(ids)
            if self._random.random() < 0.1:
                self._send_labels({ids[0]: features[0]})  # before its row
            made = [{"id": id_, "features": own} for id_, own in zip(ids, features, strict=True)]
            self._cluster.send("k-rows", json.dumps({"rows": made}))
        self.rows |= dict(zip(ids, features, strict=True))
        self._unlabelled += [id_ for id_ in ids if id_ not in self.labels]
        self.n_messages += 1

    def _send_labels(self, of=None):
        if of is None:
            self._random.shuffle(self._unlabelled)
            chosen, self._unlabelled = self._unlabelled[:5], self._unlabelled[5:]
            of = {id_: self.rows[id_] for id_ in chosen}
        if of:
            labels = {id_: int(features["x"] > 0.5) for id_, features in of.items()}
            body = {"labels": [{"id": id_, "label": label} for id_, label in labels.items()]}
            self._cluster.send("k-labels", json.dumps(body))
            self.labels |= labels
            self.n_messages += 1


def killed_often(cluster, folder, arguments, database, n_kills, seed, *, beside=False, n_broker_kills=0, options=()):
    """Kill the server, and the broker, at random moments while messages come; returns how many answers came again.

    ``beside``: another server shares the log and the partitions, and is never killed.
    """
    source = random.Random(seed)
    victims = ["server"] * n_kills + ["broker"] * n_broker_kills
    source.shuffle(victims)

    def served(group):
        config = folder / group
        given = {**QUICK, "group.id": group} | ({"transactional.id": group} if "--exactly-once" in options else {})
        config.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        return Process(
            *arguments, "--kafka", cluster.brokers, "--rows", "k-rows", "--labels", "k-labels",
            "--predictions", "k-predictions", "--stream", "s", "--kafka-config", config, *options,
        )  # fmt: skip

    cluster.make("k-rows", "k-labels", "k-predictions")
    answers = Reader(cluster, "k-predictions")
    feeder = Feeder(cluster, answers, seed)
    server = served("g")
    others = [served("g")] if beside else []
    feeder.start()
    try:
        for victim in victims:
            n_before = len(answers.messages)
            answers.until(lambda messages, n=n_before: len(messages) > n)  # it is at work
            feeder.until_further(source.randint(1, 200))
            if victim == "broker":
                cluster.kill()
                cluster.start()
                continue
            server.kill()
            if not beside:
                check(database(), [])
            server = served("g")
    finally:
        feeder.ends = True
        feeder.join()
    answers.until(lambda _: answers.keys >= {id_.encode() for id_ in feeder.rows})
    with httpx.Client(base_url=server.url, timeout=SECONDS) as http:
        until(http, "/v1/streams/s", lambda shown: shown["labels"] >= len(feeder.labels))
    assert [one.stop() for one in [server, *others]] == [0] * (1 + len(others))
    assert check(database(), [feeder]) == (len(feeder.rows), len(feeder.labels))
    assert answers.keys == {id_.encode() for id_ in feeder.rows}
    n_again = len(answers.messages) - len(answers.keys)
    before = logged(database())
    server = served("another")  # which reads everything from the beginning
    with httpx.Client(base_url=server.url, timeout=SECONDS) as http:
        all_are_read(http, feeder.n_messages)
        assert 'outcome="new"' not in http.get("/metrics").text
    assert server.stop() == 0
    answers.stop()
    assert logged(database()) == before
    assert len({(one.key(), one.value()) for one in answers.messages}) == len(answers.keys), "two answers for a row"
    assert_replayed(database())
    return n_again


def assert_replayed(database):
    """The log leads to the model that was saved."""
    connection = database.connect()
    (stream,) = found(connection, "s")
    assert replayed(connection, stream).same is True
    connection.close()
