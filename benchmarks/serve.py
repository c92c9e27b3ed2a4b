"""The load that `devdan serve` bears, for docs/service.md: requests, batches, learning meanwhile, memory, restart.

`python benchmarks/serve.py` measures on loopback and prints the table, `--write` puts it into the page, and
`--size 0.01` sends a hundredth of the requests, to see that it works. The service and a bare FastAPI endpoint take
turns, so their ratio is from one run. Requests come from a process of their own. Run nothing else on the machine
meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from measuring import put

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "service.md"
FEATURES, CONNECTIONS, BATCH, ROUNDS, FIFTHS = 10, 32, 200, 3, 5
PREDICT, LABELS = "/v1/streams/s/predict", "/v1/streams/s/labels"
ONE: dict[str, Any] = {"kind": "predict", "rows": 1, "connections": CONNECTIONS}
SEVERAL = ONE | {"rows": BATCH}
BARE = """
import sys
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

class Row(BaseModel):
    features: dict[str, float | str | bool | None]
    id: str | None = None
    key: str | None = None

class Rows(BaseModel):
    rows: list[Row]

app = FastAPI()

@app.post("/predict")
async def predict(body: Rows):
    return {"predictions": [{"id": "a", "label": "b", "probabilities": {"a": 0.4, "b": 0.6}}], "version": 1}

config = uvicorn.Config(app, port=0, log_level="warning", access_log=False)
server = uvicorn.Server(config)
began = server.startup

async def startup(sockets=None):
    await began(sockets)
    print(f"Serving on http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]} (", file=sys.stderr, flush=True)

server.startup = startup
server.run()
"""


# --- Sending requests, in a process of its own ----------------------------------------------------------------------


def row(source: random.Random, features: int) -> dict[str, float]:
    """A row of numbers."""
    return {f"x{place}": round(source.random(), 4) for place in range(features)}


def bodies(plan: dict[str, Any], source: random.Random) -> Callable[[int], dict[str, Any]]:
    """The content of a plan's requests, by their number."""
    size, features, first = plan["rows"], plan["features"], plan.get("first", 0)

    def predict(k: int) -> dict[str, Any]:
        return {"rows": [{"id": f"{first + k}-{j}", "features": row(source, features)} for j in range(size)]}

    def labels(k: int) -> dict[str, Any]:
        return {"labels": [{"id": f"{first + k}-{j}", "label": source.choice("ab")} for j in range(size)]}

    return labels if plan["kind"] == "labels" else predict


async def connection(plan: dict[str, Any], requests: list[bytes], times: list[float], statuses: dict[int, int]) -> None:
    """Send one request after the other over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", plan["port"])
    for content in requests:
        head = f"POST {plan['path']} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        begin = time.perf_counter()
        writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        times.append(time.perf_counter() - begin)
        status = int(answer[9:12])
        statuses[status] = statuses.get(status, 0) + 1
    writer.close()


async def send(plan: dict[str, Any]) -> dict[str, Any]:
    """Send all requests of a plan; returns how long it took, each request's time and the statuses."""
    source = random.Random(plan.get("seed", 0))
    make = bodies(plan, source)
    contents = [json.dumps(make(k)).encode() for k in range(plan["requests"])]
    n = plan["connections"]
    times: list[float] = []
    statuses: dict[int, int] = {}
    begin = time.perf_counter()
    parts = [contents[k::n] for k in range(n)]
    await asyncio.gather(*(connection(plan, part, times, statuses) for part in parts))
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "times": sorted(times), "statuses": statuses}


# --- Servers and senders --------------------------------------------------------------------------------------------


class Server(NamedTuple):
    """A server process."""

    process: subprocess.Popen[str]
    port: int

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def megabytes(self) -> float:
        """Its memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


@contextlib.contextmanager
def server(*command: str) -> Iterator[Server]:
    """Start a server and wait until it prints its address; it is killed in the end."""
    process = subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = ""
        while not (found := re.search(r":(\d+) \(", said)):
            line = process.stderr.readline()
            if not line:
                raise RuntimeError(f"the server ended: {said}")
            said += line
        yield Server(process, int(found[1]))
    finally:
        process.kill()
        process.wait()


def begin(port: int, path: str, requests: int, **plan: Any) -> subprocess.Popen[str]:
    """Begin to send requests, from a process of its own."""
    plan = {"port": port, "path": path, "requests": requests, "features": FEATURES, **plan}
    sender = subprocess.Popen(
        [sys.executable, __file__, "--send"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert sender.stdin is not None
    sender.stdin.write(json.dumps(plan))
    sender.stdin.close()
    sender.stdin = None
    return sender


def sent(sender: subprocess.Popen[str]) -> dict[str, Any]:
    """The result of the requests; every answer must be 200."""
    result: dict[str, Any] = json.loads(sender.communicate()[0])
    if set(result["statuses"]) != {"200"}:
        raise RuntimeError(f"not all were answered: {result['statuses']}")
    return result


def p99(result: dict[str, Any]) -> float:
    """The 99th percentile of the times, in milliseconds."""
    return 1000 * float(result["times"][int(0.99 * len(result["times"]))])


def middle(name: str, results: list[dict[str, Any]]) -> float:
    """The median of a figure."""
    return float(statistics.median(result[name] for result in results))


def shown(at: Server) -> dict[str, Any]:
    """The service's figures of the stream."""
    answer: dict[str, Any] = httpx.get(f"{at.url}/v1/streams/s", timeout=60).json()
    return answer


def all_learned(at: Server, n_labels: int) -> None:
    """Wait until so many labels are learned."""
    while shown(at)["labels"] < n_labels:
        time.sleep(0.2)


# --- What is measured -----------------------------------------------------------------------------------------------

Figures = list[tuple[str, str, str]]  # what, figure, beside


def measured(size: float) -> Figures:
    """Everything, as rows of a table."""
    with tempfile.TemporaryDirectory() as folder:
        serve = ("-m", "devdan", "serve", "--port", "0", "--data", folder)
        with server(*serve) as service, server("-c", BARE) as bare:
            settings = {"max_waiting": max(int(400_000 * size), 1)}
            httpx.put(f"{service.url}/v1/streams/s", json=settings, timeout=60).raise_for_status()
            sent(begin(service.port, PREDICT, 500, **ONE, first=0))
            sent(begin(service.port, LABELS, 500, **ONE | {"kind": "labels"}, first=0))
            all_learned(service, 500)
            rows = rates(service, bare, size) + while_learning(service, size) + memory(service, size)
            n_labels = shown(service)["labels"]
        begun = time.perf_counter()
        with server(*serve) as service:
            all_learned(service, n_labels)
            n_events = shown(service)["rows"] + n_labels
            seconds = time.perf_counter() - begun
    what = f"restart with {n_events:,} rows and labels"
    return [*rows, (what, f"{seconds:.1f} s", "after a kill, until the model is there")]


def rates(service: Server, bare: Server, size: float) -> Figures:
    """Single rows and batches, beside a server that does nothing with them."""
    singles, batches = int(20_000 * size), max(int(1000 * size), 8)
    ours, theirs, together = [], [], []
    for k in range(ROUNDS):
        first = 1_000_000 * (k + 1)
        theirs.append(sent(begin(bare.port, "/predict", singles, **ONE)))
        ours.append(sent(begin(service.port, PREDICT, singles, **ONE, first=first)))
        together.append(sent(begin(service.port, PREDICT, batches, **SEVERAL, first=10 * first)))
    rate, bare_rate = (singles / middle("seconds", some) for some in (ours, theirs))
    slow, bare_slow = (statistics.median(map(p99, some)) for some in (ours, theirs))
    fast = batches * BATCH / middle("seconds", together)
    beside = f"{bare_rate:,.0f} of the bare endpoint: {100 * rate / bare_rate:.0f} %"
    return [
        ("single durable predictions per second", f"{rate:,.0f}", beside),
        ("their 99th percentile", f"{slow:.1f} ms", f"{bare_slow:.1f} ms: {slow / bare_slow:.1f} times"),
        (f"rows per second in batches of {BATCH}", f"{fast:,.0f}", f"{fast / rate:.1f} times singles"),
    ]


def while_learning(service: Server, size: float) -> Figures:
    """The time of predictions while many labels arrive, and while none do."""
    n, thousands = max(int(5000 * size), 100), max(int(100 * size), 1)
    few = {"kind": "predict", "rows": 1, "connections": 4}
    idle, busy = [], []
    for k in range(ROUNDS):
        first = 100_000_000 * (k + 1)
        idle.append(p99(sent(begin(service.port, PREDICT, n, **few, first=first))))
        taught = {"rows": 1000, "first": first + 10_000_000}
        sent(begin(service.port, PREDICT, thousands, **SEVERAL | taught))
        before = shown(service)["labels"]
        sender = begin(service.port, LABELS, thousands, kind="labels", connections=1, **taught)
        busy.append(p99(sent(begin(service.port, PREDICT, n, **few, first=first + 20_000_000))))
        sent(sender)
        all_learned(service, before + 1000 * thousands)
    meanwhile, without = statistics.median(busy), statistics.median(idle)
    what = f"99th percentile while {1000 * thousands:,} labels are learned"
    return [(what, f"{meanwhile:.1f} ms", f"{without:.1f} ms idle: {meanwhile / without:.1f} times")]


def memory(service: Server, size: float) -> Figures:
    """The memory of the service as rows and labels arrive."""
    before, megabytes, thousands = shown(service)["labels"], [service.megabytes], max(int(100 * size), 1)
    for k in range(FIFTHS):
        taught = {"rows": 1000, "first": 500_000_000 + 1_000_000 * k}
        sent(begin(service.port, PREDICT, thousands, **SEVERAL | taught))
        sent(begin(service.port, LABELS, thousands, kind="labels", connections=4, **taught))
        megabytes.append(service.megabytes)
    all_learned(service, before + FIFTHS * 1000 * thousands)
    what = f"megabytes of memory over {2 * FIFTHS * 1000 * thousands:,} rows and labels"
    told = ", ".join(f"{figure:.0f}" for figure in megabytes)
    return [(what, told, "at the beginning and after each fifth")]


def main() -> None:
    """Measure and print, or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/service.md")
    parser.add_argument("--size", type=float, default=1.0, help="the fraction of all requests to send")
    parser.add_argument("--send", action="store_true", help=argparse.SUPPRESS)  # the plan on standard input
    chosen = parser.parse_args()
    if chosen.send:
        json.dump(asyncio.run(send(json.load(sys.stdin))), sys.stdout)
        return
    if os.getloadavg()[0] > 1.2:
        print("note: something else is running on this machine, which spoils the figures", file=sys.stderr)
    rows = measured(chosen.size)
    table = "\n".join(["| | | beside |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)])
    print(table)
    if chosen.write:
        put(PAGE, "load", f"{table}\n")


if __name__ == "__main__":
    main()
