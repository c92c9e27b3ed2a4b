"""Metrics for Prometheus: requests, and figures of each stream at the moment they are asked for."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from devdan.service.engine import Engine
from devdan.service.figures import DELAYS
from devdan.service.watched import MOST_PERIODS, PERIOD, WATCHED

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


_PAGE = "/live/"
_MOST = 0.95  # of the requests
_ERROR = 500  # and above


class RequestSummary(NamedTuple):
    """Requests, the seconds within which half and 95 % were answered, those refused, and errors of the server."""

    n: int
    typical: float
    slow: float
    refused: int
    errors: int


class RequestPeriod:
    """Requests within a period of some minutes: how many took up to each of the seconds, or longer, and errors."""

    def __init__(self) -> None:
        self.took = [0] * (len(_SECONDS) + 1)
        self.errors = 0

    @property
    def slow(self) -> float | None:
        """The seconds within which 95 % were answered; the longest are told as so long at least."""
        n = sum(self.took)
        within = accumulate(self.took)
        place = next((place for place, so_far in enumerate(within) if n and so_far >= _MOST * n), None)
        return None if place is None else _SECONDS[min(place, len(_SECONDS) - 1)]


class Metrics:
    """Metrics of requests, and of the streams of an engine; ``periods`` has those of the latest day by their number."""

    def __init__(self, engine: Engine) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "devdan_requests", "Requests, by route and status", ["route", "method", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "devdan_request_seconds",
            "Seconds until an answer began",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.registry.register(_Streams(engine))
        self._counted = cache(self._requests.labels)  # a look-up takes longer than counting
        self._timed = cache(self._seconds.labels)
        self.periods: dict[int, RequestPeriod] = {}

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._counted(route, method, status).inc()
        self._timed(route).observe(seconds)
        if not route.startswith(_PAGE):
            number = int(time.time() // PERIOD)
            own = self.periods.get(number)
            if own is None:
                own = self.periods[number] = RequestPeriod()
                for oldest in [one for one in self.periods if one <= number - MOST_PERIODS]:
                    del self.periods[oldest]
            own.took[bisect_left(_SECONDS, seconds)] += 1
            own.errors += status >= _ERROR

    def summary(self) -> RequestSummary:
        """What became of all requests since the start, but those of the live page."""
        counts: dict[float, float] = {}
        for sample in next(iter(self._seconds.collect())).samples:
            if sample.name.endswith("_bucket") and not sample.labels["route"].startswith(_PAGE):
                most = float(sample.labels["le"])
                counts[most] = counts.get(most, 0.0) + sample.value
        n = max(counts.values(), default=0.0)
        within = sorted(counts)
        typical, slow = (next((most for most in within if counts[most] >= share * n), 0.0) for share in (0.5, _MOST))
        statuses = {"4": 0.0, "5": 0.0}
        for sample in next(iter(self._requests.collect())).samples:
            kind = sample.labels["status"][:1]
            if sample.name.endswith("_total") and kind in statuses:
                statuses[kind] += sample.value
        return RequestSummary(int(n), typical, slow, int(statuses["4"]), int(statuses["5"]))

    def text(self) -> bytes:
        """All metrics in the format of Prometheus."""
        return generate_latest(self.registry)


class _Streams(Collector):
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def describe(self) -> list[CounterMetricFamily]:
        """No metrics are known in advance."""
        return []

    def _of_classes(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Predictions of each class, and what came of those whose labels have come."""
        labels = ["stream", "class"]
        called = CounterMetricFamily("devdan_predictions", "Rows that were predicted, by class", labels=labels)
        about = "Share of the rows of a class that were predicted so, of those with labels"
        recall = GaugeMetricFamily("devdan_recall_ratio", about, labels=labels)
        about = "Share of the predictions of a class that were right, of those with labels"
        precision = GaugeMetricFamily("devdan_precision_ratio", about, labels=labels)
        for name, live in list(self._engine.streams.items()):
            for label, own in live.view.counts.clock.total.classes.items():
                called.add_metric([name, label], own.called)
                for measure, share in ((recall, own.recall), (precision, own.precision)):
                    if share is not None:
                        measure.add_metric([name, label], share)
        yield from (called, recall, precision)

    def _of_outcomes(self) -> Iterator[GaugeMetricFamily]:
        """How good predictions were, and of two classes how well their probabilities rank and fit."""
        gauges = {}
        for measure, title in WATCHED.items():
            about = f"{title}, of the latest rows with labels and of all"
            gauges[measure] = GaugeMetricFamily(f"devdan_{measure.key}", about, labels=["stream", "rows"])
        for name, live in list(self._engine.streams.items()):
            for rows, outcomes in zip(("latest", "all"), live.outcomes(), strict=True):
                for measure, value in outcomes.watched(outcomes.rarer).items():
                    gauges[measure].add_metric([name, rows], value)
        yield from gauges.values()

    def _of_the_log(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """What is written to it, and what its clock says."""
        engine = self._engine
        queued = GaugeMetricFamily("devdan_queued", "Rows and labels that wait to be written")
        queued.add_metric([], engine.writer.queued)
        commits = CounterMetricFamily("devdan_commits", "Groups written to the log")
        commits.add_metric([], engine.writer.n_commits)
        failures = CounterMetricFamily("devdan_commit_failures", "Groups that could not be written")
        failures.add_metric([], engine.writer.n_failures)
        jump = GaugeMetricFamily("devdan_clock_jump_seconds", "By how much the clock was set since the start")
        jump.add_metric([], engine.writer.clock.jump)
        about = "By how much the log or its database is ahead of the clock"
        ahead = GaugeMetricFamily("devdan_clock_ahead_seconds", about)
        ahead.add_metric([], engine.learner.clock_ahead)
        yield from (queued, commits, failures, jump, ahead)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]:
        engine, now = self._engine, time.time()

        def gauge(name: str, about: str) -> GaugeMetricFamily:
            return GaugeMetricFamily(f"devdan_{name}", about, labels=["stream"])

        def counter(name: str, about: str, labels: list[str] | None = None) -> CounterMetricFamily:
            return CounterMetricFamily(f"devdan_{name}", about, labels=labels or ["stream"])

        accuracy = gauge("accuracy_ratio", "Accuracy of the latest 1,000 predictions that have labels")
        expected = gauge("expected_accuracy_ratio", "Accuracy that the probabilities of the latest predictions promise")
        waiting = gauge("waiting_rows", "Rows that wait for their labels")
        hidden = gauge("hidden_units", "Hidden units of the model")
        age = gauge("snapshot_age_seconds", "Seconds since the latest snapshot")
        version = gauge("model_version", "Number of the last record that the model has learned")
        learning = gauge("learning", "1 where this server learns the stream, 0 where another one does or none")
        quarantined = gauge("quarantined", "1 while the stream is in quarantine after an unexpected error")
        rows, labels = counter("rows", "Rows in the log"), counter("labels", "Labels learned")
        expired = counter("expired_rows", "Rows whose labels did not come in time")
        unusable = counter("unusable", "Rows or labels that the model could not take")
        drifts = counter("drifts", "Drifts that the model has signalled", ["stream", "kind"])
        about = "Real drifts of a single class that the model has signalled"
        of_classes = counter("class_drifts", about, ["stream", "class"])
        received = counter("labels_received", "Labels that came, by outcome", ["stream", "outcome"])
        delays = HistogramMetricFamily(
            "devdan_label_delay_seconds", "Seconds from a row to its label", labels=["stream"]
        )
        for name, live in list(engine.streams.items()):
            view, counts = live.view, live.view.counts
            if counts.accuracy is not None:
                accuracy.add_metric([name], counts.accuracy)
            if counts.expected is not None:
                expected.add_metric([name], counts.expected)
            waiting.add_metric([name], counts.n_waiting)
            hidden.add_metric([name], view.n_hidden)
            age.add_metric([name], max(now - view.snapshot_at, 0.0))
            version.add_metric([name], view.predictor.version)
            learning.add_metric([name], float(live.is_learned_here and live.problem is None))
            quarantined.add_metric([name], float(live.problem is not None))
            rows.add_metric([name], counts.n_rows)
            labels.add_metric([name], counts.n_labels)
            expired.add_metric([name], counts.n_expired_rows)
            unusable.add_metric([name], counts.n_unusable)
            for kind, n in (("virtual", view.virtual), ("real", view.real)):
                drifts.add_metric([name, kind], n)
            for label, n in counts.class_drifts.items():
                of_classes.add_metric([name, label], n)
            for outcome, n in live.received.items():
                received.add_metric([name, outcome], n)
            total, buckets = 0, []
            for most, n in zip([*map(str, DELAYS), "+Inf"], counts.delays, strict=True):
                total += n
                buckets.append((most, total))
            delays.add_metric([name], buckets, counts.delay_sum)
        yield from (accuracy, expected, waiting, hidden, age, version, rows, labels, expired, unusable, drifts)
        yield from (of_classes, received, delays, learning, quarantined)
        yield from (*self._of_the_log(), *self._of_classes(), *self._of_outcomes())
