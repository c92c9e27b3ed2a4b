"""Callers of a server that is killed under load, and what must then be in its log."""

import random
import threading

import httpx
from served import SECONDS, Process, logged, until

from devdan import Histories
from devdan.encoding.rows import joined
from devdan.service.replay import found, records, replayed
from devdan.service.schema import LoggedCorrections, LoggedLabels, LoggedRows


class Caller(threading.Thread):
    """Sends rows, and their labels later, and remembers what was acknowledged; what was not is sent again."""

    def __init__(self, name, seed, answered, settings):
        super().__init__()
        self.answered, self.failure, self.settings = answered, None, settings
        self.prefix, self._random = name, random.Random(seed)
        self.rows, self.labels = {}, {}  # acknowledged, by id
        self._unanswered = None
        self._n = 0
        self.url, self.may_go = "", threading.Event()
        self.ends = False

    def run(self):
        while not self.ends:
            self.may_go.wait()
            try:
                with httpx.Client(base_url=self.url, timeout=SECONDS) as client:
                    while self.may_go.is_set() and not self.ends:
                        self._send(client)
            except httpx.HTTPError:
                continue  # it was killed: the same request goes to the next one

    def _send(self, client):
        if self._unanswered is None:
            self._unanswered = self._next()
        path, body = self._unanswered
        answer = client.post(f"/v1/streams/s/{path}", json=body)
        if answer.status_code == 503:  # its model is being loaded: the same request is sent again
            return
        if answer.status_code != 200:
            self.failure = answer.text
        if path == "predict":
            self.rows |= {row["id"]: row["features"] for row in body["rows"]}
        else:
            self.labels |= {one["id"]: one["label"] for one in body["labels"]}
        self._unanswered = None
        self.answered.release()

    def unanswered(self, name):
        """What may be in the log or not: the ids of a request that was not answered."""
        path, body = self._unanswered or ("", {})
        if (name == "labels") != (path == "labels"):
            return set()
        return {one["id"] for one in body.get("labels", body.get("rows", ()))}

    def was_labelled(self, id_):
        """Whether a label of this row may be in the log."""
        return id_ in self.labels or id_ in self.unanswered("labels")

    def _next(self):
        waiting = [id_ for id_ in self.rows if id_ not in self.labels][:20]
        if waiting and self._random.random() < 0.4:
            chosen = waiting[: self._random.randint(1, len(waiting))]
            return "labels", {"labels": [{"id": id_, "label": int(self.rows[id_]["x"] > 0.5)} for id_ in chosen]}
        if self.labels and self._random.random() < 0.1:
            chosen = self._random.sample(list(self.labels)[-50:], min(len(self.labels), 3))
            corrected = [{"id": id_, "label": 1 - self.labels[id_]} for id_ in chosen]
            return "labels", {"labels": corrected, "replaces": True}
        size = self._random.choice([1, 1, 5])
        ids = [f"{self.prefix}-{self._n + k}" for k in range(size)]
        self._n += size
        made = [{"id": id_, "features": {"x": self._random.random(), "y": self._random.random()}} for id_ in ids]
        if self.settings.get("keyed"):
            made = [row | {"key": f"k{self._random.randrange(60)}"} for row in made]
        for row in made if self.settings.get("history") else ():
            row["features"]["who"] = f"k{self._random.randrange(20)}"
        return "predict", {"rows": made}


def check(database, callers):
    """The log has each acknowledged row and label once, as it was sent, and the snapshot is the fold over it.

    Where the stream keeps only what is needed, rows may have gone whose labels were learned; they count once, too.
    """
    connection = database.connect()
    (stream,) = found(connection, "s")
    rows, labels = {}, {}
    by_place = {}
    keeps_all = stream.settings.keep is None
    for record in records(connection, stream, 0):
        if isinstance(record.body, LoggedRows):
            for place, (id_, values) in enumerate(zip(record.body.ids, record.body.values, strict=True)):
                assert id_ not in rows, "a row is in the log twice"
                rows[id_] = dict(zip(stream.columns, values, strict=True))
                by_place[record.seq, place] = id_
        elif isinstance(record.body, LoggedLabels):
            for place, label in zip(record.body.rows, record.body.labels, strict=True):
                id_ = by_place.get(tuple(place))
                if id_ is None and not keeps_all:  # the row has gone since it was learned
                    continue
                assert id_ not in labels, "a label is in the log twice"
                labels[id_] = label
        elif isinstance(record.body, LoggedCorrections):
            for place, before, label in zip(record.body.rows, record.body.before, record.body.labels, strict=True):
                id_ = by_place.get(tuple(place))
                assert keeps_all is False or labels[id_] == before, "what is corrected is not the label"
                labels |= {} if id_ is None else {id_: label}
    for caller in callers:
        for id_, features in caller.rows.items():
            if keeps_all or id_ in rows or not caller.was_labelled(id_):
                assert rows[id_] == features, "an acknowledged row is not in the log"
        for id_, label in caller.labels.items():
            if (keeps_all or id_ in labels) and id_ not in caller.unanswered("labels"):
                assert labels[id_] == label, "an acknowledged label is not in the log"
    again = replayed(connection, stream)
    connection.close()
    counts = again.fold.counts
    assert again.same is not False
    if keeps_all:
        assert counts.n_rows == len(rows)
        return len(rows), len(labels)
    for counted, name in ((counts.n_rows, "rows"), (counts.n_labels, "labels")):
        acknowledged = sum(len(getattr(caller, name)) for caller in callers)
        unanswered = sum(len(caller.unanswered(name)) for caller in callers)
        assert acknowledged <= counted <= acknowledged + unanswered, f"{name} were lost, or counted twice"
    return counts.n_rows, counts.n_labels


def killed_often(arguments, database, n_kills, seed, *, settings=None):
    """Kill the server at random moments while three callers are at work; after each kill, check the log."""
    source = random.Random(seed)
    answered = threading.Semaphore(0)
    callers = [Caller(f"c{k}", seed + k, answered, settings or {}) for k in range(3)]
    server = Process(*arguments)
    httpx.put(f"{server.url}/v1/streams/s", json=settings or {}, timeout=SECONDS).raise_for_status()
    for caller in callers:
        caller.start()
    try:
        for _ in range(n_kills):
            for caller in callers:
                caller.url = server.url
                caller.may_go.set()
            for _ in range(source.randint(1, 100)):
                answered.acquire()
            server.kill()
            assert [caller.failure for caller in callers] == [None] * 3
            for caller in callers:
                caller.may_go.clear()
            check(database(), callers)
            server = Process(*arguments)
    finally:
        for caller in callers:
            caller.ends = True
            caller.url = server.url
            caller.may_go.set()
        for caller in callers:
            caller.join()
    keep = (settings or {}).get("keep")
    with httpx.Client(base_url=server.url, timeout=SECONDS) as http:
        if keep is not None:  # what learns it removes what is not kept, and others may have its lease until now
            _, n_labels = check(database(), callers)
            until(http, "/v1/streams/s", lambda shown: shown["labels"] == n_labels)
        shown = http.get("/v1/streams/s").json()
    assert server.stop() == 0
    n_rows, n_labels = check(database(), callers)
    connection = database().connect()
    (stream,) = found(connection, "s")
    final = replayed(connection, stream)
    connection.close()
    assert final.same is True, "the snapshot of the end is not the fold over the log"
    assert final.fold.counts.n_labels == n_labels
    assert shown["rows"] <= n_rows
    kept = len(logged(database()))
    assert keep is None or kept < n_rows / 2, "nothing was removed although little is to be kept"
    return n_rows, n_labels


def check_histories(database):
    """Each row of the stream s has what all rows and labels before it in the log tell, by the library."""
    connection = database.connect()
    (stream,) = found(connection, "s")
    histories, rows, came = Histories(stream.settings.entities, time=stream.settings.time), {}, {}
    for record in records(connection, stream, 0):
        body = record.body
        if isinstance(body, LoggedRows):
            dicts = [dict(zip(stream.columns, values, strict=True)) for values in body.values]
            arrived = histories.arrive(dicts)
            histories.limit(2**28)  # half of max_memory
            own = arrived.numbers[:, -len(histories.feature_names_) :]
            assert b"".join(body.histories) == own.tobytes(), "a row has other histories than the log says"
            rows |= {(record.seq, place): arrived[place : place + 1] for place in range(len(dicts))}
        elif isinstance(body, LoggedCorrections):
            at = [came[row] for row in body.rows]
            histories.correct(joined([rows[row] for row in body.rows]), body.labels, body.before, at)
        elif isinstance(body, LoggedLabels):
            histories.teach(joined([rows[row] for row in body.rows]), body.labels)
            came |= dict.fromkeys(body.rows, histories.now_)
    connection.close()
    assert len(rows) == stream.n_rows
