"""Requests over many connections at once, timed: what benchmarks/serve.py measures a server with.

Run as a program of its own, so that it does not share an interpreter with what it measures: reads a plan as JSON from
standard input and prints the results.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any


def row(source: random.Random, features: int) -> dict[str, float]:
    """A row of numbers."""
    return {f"x{place}": round(source.random(), 4) for place in range(features)}


def bodies(plan: dict[str, Any], source: random.Random) -> Callable[[int], dict[str, Any]]:
    """What the requests of a plan bring, by their number."""
    size, features, first = plan["rows"], plan["features"], plan.get("first", 0)

    def predict(k: int) -> dict[str, Any]:
        return {"rows": [{"id": f"{first + k}-{j}", "features": row(source, features)} for j in range(size)]}

    def labels(k: int) -> dict[str, Any]:
        return {"labels": [{"id": f"{first + k}-{j}", "label": source.choice("ab")} for j in range(size)]}

    return labels if plan["kind"] == "labels" else predict


async def connection(plan: dict[str, Any], requests: Any, times: list[float], statuses: dict[int, int]) -> None:
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


async def run(plan: dict[str, Any]) -> dict[str, Any]:
    """Send all requests of a plan; returns how long it took, each request's time and the statuses."""
    source = random.Random(plan.get("seed", 0))
    make = bodies(plan, source)
    contents = [json.dumps(make(k)).encode() for k in range(plan["requests"])]
    n = plan["connections"]
    times: list[float] = []
    statuses: dict[int, int] = {}
    begin = time.perf_counter()
    shares = [contents[k::n] for k in range(n)]
    await asyncio.gather(*(connection(plan, share, times, statuses) for share in shares))
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "times": sorted(times), "statuses": statuses}


if __name__ == "__main__":
    json.dump(asyncio.run(run(json.load(sys.stdin))), sys.stdout)
