"""Kafka in a process of its own, which outlives the services that tests kill.

``Cluster`` is librdkafka's mock: one broker in memory with real connections, groups, offsets and idempotent producers.
It keeps nothing on disk, drops the oldest messages of a partition beyond 5 MB, and makes each topic that somebody asks
for, with four partitions. It takes no time to start; ``kafka_broker`` has the real thing.
"""

import json
import os
import signal
import subprocess
import sys
import threading

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from served import metric, wait_until

# By the C interface, since members of a group otherwise wait for each other for three seconds.
BROKER = """
import sys
from ctypes import CDLL, c_char_p, c_int, c_void_p, create_string_buffer
from confluent_kafka import cimpl

library = CDLL(cimpl.__file__)

def call(name, returns, *arguments):
    function = getattr(library, name)
    function.restype = returns
    return function(*(c_void_p(one) if type(one) is int else one for one in arguments))

said = create_string_buffer(500)
conf = call("rd_kafka_conf_new", c_void_p)
assert call("rd_kafka_conf_set", c_int, conf, b"test.mock.num.brokers", b"1", said, c_void_p(500)) == 0, said.value
client = call("rd_kafka_new", c_void_p, c_int(0), conf, said, c_void_p(500))
cluster = call("rd_kafka_handle_mock_cluster", c_void_p, client)
call("rd_kafka_mock_group_initial_rebalance_delay_ms", None, cluster, c_int(0))
call("rd_kafka_mock_set_controller_id", None, cluster, c_int(1))
print(call("rd_kafka_mock_cluster_bootstraps", c_char_p, cluster).decode(), flush=True)
for topic in sys.stdin:
    print(call("rd_kafka_mock_topic_delete", c_int, cluster, topic.strip().encode()), flush=True)
"""
PARTITIONS = 4
SECONDS = 60.0  # for an answer, on a busy machine
# A killed member is missed after a second, not 45; and this broker answers a fetch not before its time is over.
QUICK = {"session.timeout.ms": "1000", "heartbeat.interval.ms": "100", "fetch.wait.max.ms": "20"}


SILENT = {"log_level": 2}  # what a client says of a broker that a test has killed


class Kafka:
    """``brokers`` is its address, ``client`` what a client needs to reach it; ``_process`` runs it."""

    def __init__(self, brokers, **client):
        self.brokers, self.client = brokers, {"bootstrap.servers": brokers, **SILENT, **client}
        self.producer = Producer({**self.client, "linger.ms": 0, "enable.idempotence": True})

    def make(self, *topics):
        """Make topics, unless they are there."""
        for topic in topics:
            self.producer.list_topics(topic, timeout=SECONDS)

    def send(self, topic, *values, headers=None, partition=-1, key=None):
        """Send messages and wait until they are there; returns (partition, offset) of each."""
        places = {}

        def told(number):
            def keep(error, message):
                assert error is None, error
                places[number] = message.partition(), message.offset()

            return keep

        for number, value in enumerate(values):
            self.producer.produce(topic, value, key, partition, told(number), headers=headers)
        self.producer.flush()
        return [places[number] for number in range(len(values))]

    def stand_still(self):
        """No answers from now on, as if the network were cut."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self._process.pid, signal.SIGCONT)


class Cluster(Kafka):
    def __init__(self):
        command = [sys.executable, "-c", BROKER]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        brokers = self._process.stdout.readline().strip()
        assert brokers, "the cluster has not started"
        super().__init__(brokers)

    def delete(self, topic):
        """Delete a topic; whoever asks for it makes it anew, with another id."""
        self._process.stdin.write(f"{topic}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "0\n"

    def stop(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


class Reader(threading.Thread):
    """Reads a topic from its beginning; ``messages`` has what has come so far, ``keys`` their keys."""

    def __init__(self, cluster, topic):
        super().__init__()
        self.messages, self.keys = [], set()
        self._news, self._ends = threading.Condition(), False
        self._consumer = Consumer({**cluster.client, "group.id": "nobody", **QUICK})
        cluster.make(topic)
        self._consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
        self.start()

    def run(self):
        while not self._ends:
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                with self._news:
                    self.messages.append(message)
                    self.keys.add(message.key())
                    self._news.notify_all()
        self._consumer.close()

    def until(self, holds):
        """Wait until something holds of the messages, and return it; the runner's time limit ends what never does."""
        with self._news:
            return self._news.wait_for(lambda: holds(self.messages))

    def of(self, *keys):
        """Wait for messages of each of these keys; returns the latest of each, read as JSON."""

        def found(messages):
            known = {message.key().decode(): message for message in messages}
            return [json.loads(known[key].value()) for key in keys] if known.keys() >= set(keys) else None

        return self.until(found)

    def stop(self):
        self._ends = True
        self.join()


def all_are_read(http, n_messages):
    """Wait for so many messages; a member that is missed for a moment reads some twice."""
    wait_until(
        lambda: metric(http, "devdan_kafka_messages_total") >= n_messages and metric(http, "devdan_kafka_lag") == 0
    )
