"""A service under random requests for minutes: `python -m benchmarks.soak.serve --minutes 10`.

Valid rows and batches, rows that do not fit, bodies that are no JSON, Arrow streams whole and with
bytes turned, too many rows, unknown paths, reasons, connections that are dropped half-way: each is
answered with a status that it may have, all are counted, and the memory of the service is read
every few seconds. Ends with 1 where an answer is missing or of another kind, or memory of the last
third of the run is more than 5 percent beyond that of the middle third.
"""

import argparse
import http.client
import json
import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl
import pyarrow as pa

from benchmarks.cells import ROOT
from benchmarks.serving import frame_of, make, rows, service
from benchmarks.soak.memory import Memory, pause_of

_JSON, _ARROW = "application/json", "application/vnd.apache.arrow.stream"
_ASKING = 4  # connections at once


class Bodies:
    """Requests of every kind: method and path, body, type, and the statuses that are right."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._rows = frame.to_dicts()
        sink = pa.BufferOutputStream()
        small = frame.head(50).to_arrow()
        with pa.ipc.new_stream(sink, small.schema) as writer:
            writer.write_table(small)
        self._stream = sink.getvalue().to_pybytes()
        self.kinds: tuple[tuple[float, str], ...] = (
            (0.5, "one"), (0.1, "batch"), (0.1, "cell"), (0.05, "column"), (0.05, "no_json"),
            (0.05, "arrow"), (0.05, "turned"), (0.03, "many"), (0.05, "path"), (0.02, "reasons"),
        )  # fmt: skip

    def request(self, kind: str, draw: random.Random) -> tuple[str, str, bytes, str, set[int]]:
        """A request of a kind."""
        if kind == "path":
            path = draw.choice(["/", "/metrics", "/model", "/x"])
            return "GET", path, b"", _JSON, {200, 404}
        if kind in ("arrow", "turned"):
            right = {200} if kind == "arrow" else {200, 400, 413, 422}
            return "POST", "/score", self._arrow(draw, 3 * (kind == "turned")), _ARROW, right
        content, status = self._json(kind, draw)
        body = json.dumps(content).encode()
        if kind == "no_json":
            body = body[: draw.randrange(len(body))]
        path = "/score?reasons=2" if kind == "reasons" else "/score"
        return "POST", path, body, _JSON, {status}

    def _json(self, kind: str, draw: random.Random) -> tuple[list[dict[str, object]], int]:
        """Rows, and the status that is right."""
        if kind == "many":
            return [{}] * 10_001, 413
        if kind == "batch":
            return draw.choices(self._rows, k=draw.randint(2, 500)), 200
        row = dict(draw.choice(self._rows))
        name = draw.choice(list(row))
        if kind == "cell":
            row[name] = draw.choice(["words", [1], {}, 1e300, True, "\u00e9" * 50])
        elif kind == "column":
            del row[name]
        return [row], {"cell": 422, "column": 422, "no_json": 400}.get(kind, 200)

    def _arrow(self, draw: random.Random, n_turned: int) -> bytes:
        """A stream with some bytes turned."""
        stream = bytearray(self._stream)
        for _ in range(n_turned):
            stream[draw.randrange(len(stream))] = draw.randrange(256)
        return bytes(stream)


def asks(url: str, bodies: Bodies, end: float, seed: int) -> Counter[str]:
    """Ask one request after the other until a moment; what came back, by kind."""
    draw, found = random.Random(seed), Counter[str]()
    place = urlsplit(url)
    weights, kinds = zip(*bodies.kinds, strict=True)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    while time.monotonic() < end:
        if draw.random() < 0.01:
            dropped(place.hostname or "", place.port or 0)
            found["dropped"] += 1
            continue
        (kind,) = draw.choices(kinds, weights)
        method, path, body, media_type, right = bodies.request(kind, draw)
        try:
            connection.request(method, path, body or None, {"Content-Type": media_type})
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            found["LOST " + kind] += 1
            connection.close()
            continue
        is_right = answer.status in right
        if path.startswith("/score"):
            is_right = is_right and isinstance(json.loads(content), dict)
        found[f"{kind} {answer.status}" if is_right else f"WRONG {kind} {answer.status}"] += 1
    connection.close()
    return found


def dropped(host: str, port: int) -> None:
    """Begin a request and go away."""
    with socket.create_connection((host, port), timeout=10) as gone:
        gone.sendall(b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n[{")


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and print memory and answers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak.serve")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--model", default="rankrc", choices=["rankrc", "auto"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scratch", type=Path, default=ROOT / "scratch" / "benchmarks")
    args = parser.parse_args(argv)
    folder = args.scratch.resolve() / "serving"
    if not (folder / f"{args.model}.rareclass").is_file():
        make(str(folder), [args.model])
    bodies = Bodies(frame_of(rows(seed=1)[0][:2000]))
    with service(folder, args.model) as (url, process), ThreadPoolExecutor(_ASKING) as pool:
        end = time.monotonic() + 60.0 * args.minutes
        seeds = range(args.seed, args.seed + _ASKING)
        asked = [pool.submit(asks, url, bodies, end, seed) for seed in seeds]
        memory = Memory(process.pid)
        while time.monotonic() < end:
            time.sleep(pause_of(args.minutes))
            memory.read()
        found = sum((one.result() for one in asked), Counter[str]())
    for kind, n_asked in sorted(found.items()):
        print(f"{kind}: {n_asked:,}")
    print(f"{found.total():,} requests; {memory}")
    is_bad = any(kind.startswith(("LOST", "WRONG")) for kind in found)
    return int(is_bad or memory.grows)


if __name__ == "__main__":
    sys.exit(main())
