"""Milliseconds until one row is scored: `python -m benchmarks.one_row`.

A kernel machine of 1,000 landmarks and 40 features, in a process that is up: the row as an array,
as a polars and a pyarrow table with the encoder of a model file, and by its export in onnxruntime.
Goal: under 1 ms in the library, half of the times.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import rareclass
from benchmarks import record
from rareclass import RankRC
from rareclass.encoding.encoders import TableEncoder
from rareclass.estimators.rankings import KernelRanking
from rareclass.model.facts import ModelFacts
from rareclass.model.model import Model
from rareclass.model.model_file import save_model
from rareclass.model.targets import RareClassFacts
from rareclass.tables.columns import Column

N_LANDMARKS, N_FEATURES, N_ROWS = 1000, 40, 3000


def main() -> int:
    """Measure, print, write results/one_row.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.one_row", description=__doc__)
    parser.add_argument("--repeats", type=int, default=2000, help="rows of each kind")
    parser.add_argument("--json", metavar="FILE", help="default: benchmarks/results/one_row.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = _warm(folder, _made(folder), args.repeats)
    print("written:", record.write("one_row", {"rows": rows}, args.json))
    return 0


def _made(folder: Path) -> RankRC:
    """A model file, its export, and a row."""
    rng = np.random.default_rng(0)
    y = np.arange(N_ROWS) < N_LANDMARKS
    X = rng.normal(size=(N_ROWS, N_FEATURES)) + 0.3 * y[:, None]
    table = pl.DataFrame({f"c{k}": column for k, column in enumerate(X.T)})
    encoder = TableEncoder([Column(c, "number", "standardised", "number") for c in table.columns])
    model = RankRC(lam=0.1).fit(encoder.fit_transform(table, y), y)
    target = RareClassFacts("rare", "1", "0", label_counts={"0": 2000, "1": 1000})
    facts = ModelFacts("table", target, tuple(encoder.columns), (0.0, 1.0))
    save_model(
        folder / "model.rareclass", Model(encoder, KernelRanking.of(model), facts, np.zeros(1))
    )
    exported = rareclass.to_onnx(rareclass.load(folder / "model.rareclass"))
    (folder / "model.onnx").write_bytes(exported.SerializeToString())
    table.head(1).write_parquet(folder / "row.parquet")
    return model


def _warm(folder: Path, machine: RankRC, repeats: int) -> list[dict[str, Any]]:
    """Median and 99th percentile of the milliseconds of a row, in this process."""
    import onnxruntime

    model, row = rareclass.load(folder / "model.rareclass"), pl.read_parquet(folder / "row.parquet")
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    array, arrow = row.to_numpy(), row.to_arrow()
    given = {name: row[[name]].to_numpy() for name in row.columns}
    ways: dict[str, Callable[[], Any]] = {
        "score_samples of an array": lambda: machine.score_samples(array),
        "score_samples of a polars table": lambda: model.score_samples(row),
        "score_samples of a pyarrow table": lambda: model.score_samples(arrow),
        "onnxruntime, encoder included": lambda: session.run(["score"], given),
    }
    rows = []
    for name, score in ways.items():
        for _ in range(50):
            score()
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            score()
            times.append(1000.0 * (time.perf_counter() - start))
        median, high = (float(np.quantile(times, share)) for share in (0.5, 0.99))
        print(f"{name:40} {median:7.3f} ms   99 in 100 under {high:7.3f} ms")
        rows.append({"what": name, "median_ms": median, "p99_ms": high})
    return rows


if __name__ == "__main__":
    sys.exit(main())
