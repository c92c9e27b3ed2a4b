"""A service in this process that reads from Kafka, and messages for it."""

import json
from contextlib import contextmanager

from kafka_cluster import QUICK, Reader
from served import served_here

from devdan.service.kafka import KafkaSettings


def topics(name, **options):
    """Topics and a group of a test's own, for the stream s."""
    config = QUICK | {"group.id": name} | options.pop("config", {})
    return KafkaSettings("", f"{name}-rows", f"{name}-labels", f"{name}-predictions", "s", config=config, **options)


@contextmanager
def service(cluster, kafka, folder, *, address=None, **options):
    """A service in this process that reads from Kafka; ``http.predictions`` reads what it answers."""
    kafka = kafka._replace(brokers=address or cluster.brokers)
    cluster.make(kafka.rows, kafka.labels)
    reader = Reader(cluster, kafka.predictions)
    with served_here(folder, kafka=kafka, **options) as http:
        http.predictions = reader
        try:
            yield http
        finally:
            reader.stop()


def rows(**features):
    """A message with a row for each id."""
    return json.dumps({"rows": [{"id": id_, "features": {"x": x, "city": "Köln"}} for id_, x in features.items()]})


def labels(**pairs):
    return json.dumps({"labels": [{"id": id_, "label": label} for id_, label in pairs.items()]})
