"""Sends requests to a service at a given rate, whatever it answers, over a bounded number of
connections: `python -m benchmarks.load_generator URL BODIES --rate 500 --seconds 10`.

The load is open: a request is due at its own moment, and its time counts from then on, also where
it waits for a free connection. So a service that stands still is not asked less, and cannot hide
what it made others wait (coordinated omission).
"""

import argparse
import asyncio
import json
import os
import sys
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import numpy as np


class Connection(asyncio.Protocol):
    """A connection that is kept, with one request at a time on it."""

    def __init__(self) -> None:
        self._received, self._left = bytearray(), -1
        self._answer: asyncio.Future[int] | None = None
        self._status = 0

    def connection_made(self, transport: Any) -> None:
        """Keep what to write to."""
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        """Tell whoever waits."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("closed before its answer"))

    def ask(self, request: bytes) -> "asyncio.Future[int]":
        """Send a request; the status of its answer is to come."""
        self._answer = asyncio.get_running_loop().create_future()
        if self._transport.is_closing():
            self._answer.set_exception(ConnectionError("closed"))
        else:
            self._transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        """Read an answer of known length."""
        self._received += data
        if self._left < 0:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._received[:end]).lower()
            self._status = int(head[9:12])
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            self._left = end + 4 + int(length)
        if len(self._received) >= self._left:
            del self._received[: self._left]
            self._left = -1
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(self._status)

    def close(self) -> None:
        """Close it."""
        self._transport.close()


async def load(
    url: str, bodies: Sequence[bytes], rate: float, seconds: float, connections: int
) -> dict[str, Any]:
    """Send bodies in turn, `rate` a second; what became of them, times in milliseconds."""
    parts = urlsplit(url)
    loop = asyncio.get_running_loop()

    async def connect() -> Connection:
        return (await loop.create_connection(Connection, parts.hostname, parts.port))[1]

    head = (
        f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    )
    requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]
    free = deque([await connect() for _ in range(connections)])
    is_free = asyncio.Semaphore(connections)
    took: list[float] = []
    statuses: Counter[str] = Counter()

    async def one(number: int, due: float) -> None:
        async with is_free:
            connection = free.popleft()
            try:
                statuses[str(await connection.ask(requests[number % len(requests)]))] += 1
                took.append(perf_counter() - due)
            except ConnectionError:
                statuses["lost"] += 1
                connection = await connect()
            finally:
                free.append(connection)

    n_requests, began = round(rate * seconds), perf_counter()
    tasks = []
    for number in range(n_requests):
        due = began + number / rate
        if (pause := due - perf_counter()) > 0:
            await asyncio.sleep(pause)
        tasks.append(asyncio.create_task(one(number, due)))
    await asyncio.gather(*tasks)
    lasted = perf_counter() - began
    for connection in free:
        connection.close()
    told = 1e3 * np.array(took or [np.nan])
    return {
        "asked": n_requests,
        "statuses": dict(statuses),
        "lasted": lasted,
        "a_second": statuses["200"] / lasted,
        "milliseconds": {
            "p50": float(np.quantile(told, 0.5)),
            "p90": float(np.quantile(told, 0.9)),
            "p99": float(np.quantile(told, 0.99)),
            "p99.9": float(np.quantile(told, 0.999)),
            "most": float(told.max()),
        },
        "load_average": os.getloadavg()[0],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Send a load and print what became of it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load_generator")
    parser.add_argument("url")
    parser.add_argument("bodies", type=Path, help="JSON list of request bodies")
    parser.add_argument("--rate", type=float, default=500.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=32)
    args = parser.parse_args(argv)
    bodies = [json.dumps(body).encode() for body in json.loads(args.bodies.read_text())]
    import uvloop

    found = uvloop.run(load(args.url, bodies, args.rate, args.seconds, args.connections))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
