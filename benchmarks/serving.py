"""Single rows and batches asked of `rareclass serve`, and of LightGBM behind the same service.

The service and the load generator are processes of one machine and share its cores. A load is open
(`benchmarks.load_generator`): single rows at a rate for their times, batches at a rate that is
beyond what is asked for; resident memory of the service is read before the load and after it.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.cells import ROOT, Cell, Group
from benchmarks.data_sets import OVERLAP
from benchmarks.ledger import Run, summaries
from benchmarks.markdown import table
from benchmarks.process_memory import resident_of
from benchmarks.simulated import mixture_centres, rare_mixture
from rareclass.files import replacing

TARGET = "target"
MODELS = {"rankrc": "RankRC, 1,000 landmarks", "auto": "RareClassifier", "lightgbm": "LightGBM"}
BATCH_ROWS = 1000
_ROWS, _FEATURES, _RARE = 20_000, 40, 1000
# Options of `rareclass fit`.
_FITS = {"rankrc": ("--method", "rankrc", "--lam", "2^-8"), "auto": ()}
_CONNECTIONS = 32


def add_options(parser: argparse.ArgumentParser) -> None:
    """Models, rates and how long."""
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--rate", type=float, default=500.0, help="single rows a second")
    parser.add_argument(
        "--batch-rate", type=float, default=25.0, help="batches of 1,000 rows a second"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="of each load")


def groups(args: argparse.Namespace) -> list[Group]:
    """Single rows, and batches: models take turns."""
    folder = args.scratch / "serving"
    made = []
    for what, rate in (("single rows", args.rate), ("batches", args.batch_rate)):
        cells = [
            Cell(
                f"{what} / {model}",
                "benchmarks.serving:measure",
                {"folder": str(folder), "model": model, "what": what, "rate": rate,
                 "seconds": args.seconds},
                about={"what": what, "model": model, "rate": rate},
            )
            for model in args.models
        ]  # fmt: skip
        making = Cell(
            "make the models",
            "benchmarks.serving:make",
            {"folder": str(folder), "models": args.models},
            limit=1800.0,
        )
        made.append(Group(what, cells, repeats=1, preparations=[making]))
    return made


def make(folder: str, models: list[str], threads: int = 1, limit: float = 0.0) -> dict[str, Any]:
    """Fit the models that are not there, and write bodies of requests."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    X, y = rows(seed=0)
    frame = frame_of(X).with_columns(pl.Series(TARGET, y.astype(int)))
    with replacing(place / "train.csv") as temporary:
        frame.write_csv(temporary)
    for model in models:
        if model == "lightgbm":
            from benchmarks.serving_lightgbm import save

            save(place / "lightgbm", X, y)
        elif not (place / f"{model}.rareclass").is_file():
            words = ["fit", "train.csv", "-t", TARGET, *_FITS[model], "-o", f"{model}.rareclass"]
            subprocess.run([*_COMMAND, "-q", *words], cwd=place, check=True, env=_environment())
    new = frame_of(rows(seed=1)[0]).to_dicts()
    bodies = {
        "single rows": [[row] for row in new[:1000]],
        "batches": [new[k : k + BATCH_ROWS] for k in range(0, 5 * BATCH_ROWS, BATCH_ROWS)],
    }
    for what, of_what in bodies.items():
        with replacing(_bodies(place, what)) as temporary:
            temporary.write_text(json.dumps(of_what))
    return {}


def rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """20,000 rows of 40 numbers, 1,000 of them rare."""
    centres = mixture_centres(n_features=_FEATURES)
    X, y = rare_mixture(_ROWS, _RARE / _ROWS, OVERLAP, centres, random_state=seed)
    return X.round(5), y > 0


def frame_of(X: np.ndarray) -> pl.DataFrame:
    """Rows as a table with named columns."""
    return pl.DataFrame({f"x{k:02}": column for k, column in enumerate(X.T)})


def measure(
    folder: str, model: str, what: str, rate: float, seconds: float, threads: int, limit: float
) -> dict[str, Any]:
    """Serve a model, load it, and say what came of it."""
    place = Path(folder)
    with service(place, model) as (url, process):
        words = [url + "/score", str(_bodies(place, what)), "--connections", str(_CONNECTIONS)]
        ask(words, rate, 3.0)  # what is compiled or made at the first request
        before, used_before = resident_of(process.pid), used_seconds(process.pid)
        found = ask(words, rate, seconds)
        used = used_seconds(process.pid) - used_before
        after = resident_of(process.pid)
    rows_each = BATCH_ROWS if what == "batches" else 1
    return {
        **found,
        "rows_a_second": found["a_second"] * rows_each,
        "resident_before": before,
        "resident_after": after,
        "cores_used": used / found["lasted"],
    }


@contextmanager
def service(place: Path, model: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A process that serves a model, at its URL."""
    if model == "lightgbm":
        words = [sys.executable, "-m", "benchmarks.serving_lightgbm", str(place / "lightgbm")]
    else:
        words = [*_COMMAND, "serve", str(place / f"{model}.rareclass"), "--port", "0"]
    with (place / f"{model}.log").open("w") as log:
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT, env=_environment()
        )
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+:\d+", process.stdout.readline())
            if not found:
                raise RuntimeError(f"{model} is not served: see {log.name}")
            _wait_for(found[0] + "/readyz")
            yield found[0], process
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        finally:
            process.kill()
            process.wait()


def ask(words: list[str], rate: float, seconds: float) -> dict[str, Any]:
    """Let a process of its own ask."""
    command = [sys.executable, "-m", "benchmarks.load_generator", *words]
    command += ["--rate", str(rate), "--seconds", str(seconds)]
    done = subprocess.run(command, cwd=ROOT, env=_environment(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-500:])
    return json.loads(done.stdout.splitlines()[-1])


def used_seconds(pid: int) -> float:
    """Seconds of processors that a process has used; NaN where that is not told."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def render(runs: list[Run]) -> str:
    """A table of single rows, and one of batches."""
    parts = []
    for what in ("single rows", "batches"):
        body = [_line(run) for run in summaries(runs) if run.get("what") == what]
        header = [
            what, "asked a second", "rows a second", "p50 ms", "p99 ms", "errors", "cores used",
            "MiB before", "MiB after", "load average",
        ]  # fmt: skip
        if body:
            parts.append(table(header, body))
    return "\n\n".join(parts)


def _line(run: Run) -> list[str]:
    name = MODELS[run["model"]]
    if run["status"] != "ok":
        return [name, f"{run['status']}: {run.get('message', '')}", *[""] * 8]
    errors = run["asked"] - run["statuses"].get("200", 0)
    return [
        name,
        f"{run['rate']:g}",
        f"{run['rows_a_second']:,.0f}",
        f"{run['milliseconds']['p50']:.1f}",
        f"{run['milliseconds']['p99']:.1f}",
        str(errors),
        f"{run['cores_used']:.2f}",
        f"{run['resident_before'] / 2**20:,.0f}",
        f"{run['resident_after'] / 2**20:,.0f}",
        f"{run['load_average']:.1f}",
    ]


_COMMAND = [sys.executable, "-m", "rareclass.cli.main"]


def _environment() -> dict[str, str]:
    """Of the processes: the service gives BLAS one thread itself."""
    return {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}


def _bodies(place: Path, what: str) -> Path:
    return place / f"{what.replace(' ', '-')}.json"


def _wait_for(url: str) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"{url} does not answer")
