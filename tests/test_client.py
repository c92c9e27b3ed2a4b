"""The clients: against a service, and against one that loses answers, is busy and goes away."""

import asyncio
import json

import httpx
import pytest
from served import served_here, wait_until

from devdan.client import AsyncClient, Client, Labelled, ServiceError


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with served_here(tmp_path_factory.mktemp("served") / "data") as http:
        yield f"http://127.0.0.1:{http.port}"


def test_from_a_row_to_its_late_label(url):
    with Client(url, "late") as client:
        client.create(wait=3600)
        said = client.predict([{"x": 1.0, "city": "Bonn"}, {"x": 0.0, "city": "Köln"}])
        assert [one.label for one in said] == [None, None]
        assert client.label({said[0].id: "yes", said[1].id: "no"}) == Labelled(accepted=2)
        assert client.sample(said[0].id)["label"] == "yes"
        odd = "a/b?c=%20&ü#"
        client.predict([{"x": 1.0}], ids=[odd])
        assert client.sample(odd)["id"] == odd
        assert client.label({said[0].id: "yes"}) == Labelled(repeated=1)
        with pytest.raises(ServiceError, match="409: 1 contradict") as error:
            client.label({said[0].id: "no"})
        assert error.value.status == 409
        assert error.value.answer["refused"][0]["id"] == said[0].id
        client.delete()
        with pytest.raises(ServiceError, match="there is no stream 'late'"):
            client.show()


def test_large_batches_go_in_parts(url):
    rows = [{"x": float(k)} for k in range(2500)]
    with Client(url, "parts") as client:
        client.create()
        told = client.teach(rows, [k % 2 for k in range(2500)])
        assert told == Labelled(accepted=2500)
        said = client.predict(rows)
        assert len({one.id for one in said}) == 2500
        with pytest.raises(ValueError, match="ids must have one for each of the 2500 rows, got 1"):
            client.predict(rows, ids=["a"])


def test_the_same_without_waiting(url):
    async def use():
        async with AsyncClient(url, "async") as client:
            await client.create()
            said = await client.predict([{"x": 1.0}], ids=["a"])
            told = await client.label({"a": True}) + await client.teach([{"x": 2.0}], [False])
            known, shown = await client.sample("a"), await client.show()
            await client.delete()
            with pytest.raises(ServiceError, match="404"):
                await client.show()
            return said, told, known, shown

    said, told, known, shown = asyncio.run(use())
    assert (said[0].id, told, known["label"], shown["stream"]) == ("a", Labelled(accepted=2), True, "async")


class Unreliable:
    """Passes requests on, but loses each answer at first, in one way after the other."""

    def __init__(self, url):
        self._url = url
        self._failures = [httpx.ReadError("gone"), 503, httpx.ConnectError("away"), 429]
        self.n = 0

    def __call__(self, request):
        failure = self._failures[self.n] if self.n < len(self._failures) else None
        self.n += 1
        if isinstance(failure, httpx.ConnectError):
            raise failure
        body = json.loads(request.content) if request.content else None
        answer = httpx.request(request.method, f"{self._url}{request.url.path}", json=body)
        if isinstance(failure, Exception):
            raise failure
        return httpx.Response(failure or answer.status_code, content=answer.content, headers={"retry-after": "0"})


def test_what_was_not_answered_is_sent_again_and_counts_once(url):
    with Client(url, "again") as client:
        client.create()
        lossy = Unreliable(url)
        with Client("http://lossy", "again", transport=httpx.MockTransport(lossy)) as other:
            said = other.predict([{"x": 1.0}])
            assert lossy.n == 5
            other.label({said[0].id: 1})
        wait_until(lambda: client.show()["labels"] > 0)
        shown = client.show()
        assert (shown["rows"], shown["labels"]) == (1, 1)


def test_in_the_end_it_gives_up():
    def away(request):
        raise httpx.ConnectError("away")

    client = Client("http://away", "s", attempts=2, transport=httpx.MockTransport(away))
    with client, pytest.raises(httpx.ConnectError, match="away"):
        client.show()
