"""A real Kafka broker in a process of its own: Apache Kafka from Maven Central, one node in KRaft mode.

Maven fetches it once for all clones, into the user's cache folder. Where there is no Java or Maven, tests that need it
skip with the reason.
"""

import os
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_cluster import PARTITIONS, SECONDS, Kafka

VERSION = "4.1.2"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "devdan-tests")
JARS = CACHE / "kafka" / VERSION
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>devdan</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies>
{DEPENDENCY.format("org.apache.kafka", "kafka_2.13", VERSION)}
{DEPENDENCY.format("org.slf4j", "slf4j-simple", "1.7.36")}
</dependencies></project>
"""
JAVA = [
    "java",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
]
USER, PASSWORD = "devdan", "secret"


def jars(folder=JARS, pom=POM):
    """The folder with the files that a POM asks for, which are fetched if need be."""
    for tool, package in (("java", "openjdk-17-jre-headless"), ("mvn", "maven")):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}: apt-get install {package}")
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        own = Path(mkdtemp(dir=folder.parent))
        (own / "pom.xml").write_text(pom)
        fetch = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars"]
        done = subprocess.run(fetch, cwd=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"Maven has not fetched {folder.parent.name}: {done.stdout}{done.stderr}"
        try:
            (own / "jars").rename(folder)
        except OSError:  # somebody else was first
            assert folder.exists()
        shutil.rmtree(own)
    return folder


def free_ports(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Broker(Kafka):
    """``secured`` is a client's configuration to reach it by TLS with a password, if it is told to offer that."""

    def __init__(self, *, is_secured=False, **properties):
        self._jars, self._home = jars(), TemporaryDirectory()
        self._folder = Path(self._home.name)
        port, controller, secured = free_ports(3)
        listeners = {"PLAINTEXT": port, "CONTROLLER": controller} | ({"SASL_SSL": secured} if is_secured else {})
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(f"{name}://127.0.0.1:{own}" for name, own in listeners.items()),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
            "log.dirs": self._folder / "log",
            "num.partitions": PARTITIONS,
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            "broker.session.timeout.ms": 1000,  # until it may come back after it was killed
            "broker.heartbeat.interval.ms": 200,
        }
        self.secured = self._secure(settings, secured) if is_secured else None
        lines = [f"{name}={value}\n" for name, value in {**settings, **properties}.items()]
        (self._folder / "server.properties").write_text("".join(lines))
        self._java(
            "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", "server.properties"
        ).wait()
        super().__init__(f"127.0.0.1:{port}")
        self.admin = AdminClient(self.client)
        self.start()

    def start(self):
        """Start it, also again, and wait until it answers."""
        self._process = self._java("kafka.Kafka", "server.properties")
        while True:
            try:
                self.admin.list_topics(timeout=1)
            except KafkaException:
                assert self._process.poll() is None, (self._folder / "said").read_text()
            else:
                break

    def kill(self):
        """As a power switch would."""
        self._process.kill()
        self._process.wait()

    def stop(self):
        self.kill()
        self._home.cleanup()

    def make(self, *topics, **config):
        """Make topics, unless they are there; returns when they can be used."""
        new = [NewTopic(topic, PARTITIONS, 1, config=config) for topic in topics]
        for topic, made in self.admin.create_topics(new).items():
            with suppress(KafkaException):  # it is there, as the next line asks
                made.result(SECONDS)
            while len(self.admin.list_topics(topic, timeout=SECONDS).topics[topic].partitions) < PARTITIONS:
                time.sleep(0.01)

    def delete(self, topic):
        self.admin.delete_topics([topic])[topic].result(SECONDS)
        while topic in self.admin.list_topics(timeout=SECONDS).topics:
            time.sleep(0.01)

    def remove(self, topic, partition, before):
        """Remove the messages of a partition before an offset, as retention does some time."""
        place = TopicPartition(topic, partition, before)
        self.admin.delete_records([place])[place].result(SECONDS)

    def _java(self, main, *arguments):
        with (self._folder / "said").open("ab") as said:
            command = [*JAVA, "-cp", f"{self._jars}/*", main, *arguments]
            return subprocess.Popen(command, cwd=self._folder, stdout=said, stderr=said, stdin=subprocess.DEVNULL)

    def _secure(self, settings, port):
        """Let it offer TLS with a password; Java's own tool makes the certificate."""
        store, certificate = self._folder / "store.p12", self._folder / "certificate.pem"
        common = ["-alias", "broker", "-keystore", str(store), "-storepass", PASSWORD]
        subprocess.run(
            ["keytool", "-genkeypair", "-keyalg", "RSA", "-dname", "CN=127.0.0.1", "-ext", "SAN=IP:127.0.0.1",
             "-storetype", "PKCS12", *common], check=True, capture_output=True,
        )  # fmt: skip
        exported = ["keytool", "-exportcert", "-rfc", *common]
        certificate.write_bytes(subprocess.run(exported, check=True, capture_output=True).stdout)
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
        settings |= {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": store,
            "ssl.keystore.password": PASSWORD,
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{plain} required user_{USER}="{PASSWORD}";',
        }
        return {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(certificate),
        }
