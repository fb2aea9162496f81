"""What one pass over rows costs, by where they are read from: `python -m benchmarks.rows_on_disk`.

A fit makes tens of passes. Ways to serve them: decode the Parquet or CSV file in every pass, or
decode it once into a scratch file of plain floats and read that, by positioned reads or mapped. A
pass here takes the majority rows (all but one in a thousand) in blocks of 1,024, and adds up one
column. Ways take turns; the fastest of `--repeats` counts.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from benchmarks import record
from rareclass.rows import ArrayRows, Block, as_source, from_csv, from_parquet

BLOCK_ROWS = 1024


def _files(folder: Path, n_rows: int, n_features: int) -> dict[str, Path]:
    """The same rows in three files."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    cells = pa.table({f"x{k}": X[:, k] for k in range(n_features)})
    cells = cells.append_column("y", pa.array(np.arange(n_rows) % 1000 == 0))
    paths = {name: folder / f"{name}" for name in ("plain.parquet", "snappy.parquet", "text.csv")}
    pq.write_table(cells, paths["plain.parquet"], compression="none", use_dictionary=False)
    pq.write_table(cells, paths["snappy.parquet"], compression="snappy")
    pa_csv.write_csv(cells, paths["text.csv"])
    return paths


def _first_column(block: Block) -> tuple[float]:
    return (float(block.X[:, 0].sum()),)


def _passes(paths: dict[str, Path], threads: int) -> dict[str, Callable[[], Any]]:
    """Name of a way -> one pass."""
    rows = from_parquet(paths["plain.parquet"], target="y")
    X = rows.source.take(slice(None))
    np.save(paths["plain.parquet"].with_name("X.npy"), X)
    mapped = np.load(paths["plain.parquet"].with_name("X.npy"), mmap_mode="r")
    majority = np.flatnonzero(rows.y == 0)

    def over(source: Any) -> Callable[[], Any]:
        blocks = ArrayRows(source, majority, block_rows=BLOCK_ROWS, n_jobs=threads)
        return lambda: blocks.sum(_first_column)

    return {
        "decode Parquet, uncompressed": lambda: from_parquet(paths["plain.parquet"], target="y"),
        "decode Parquet, snappy": lambda: from_parquet(paths["snappy.parquet"], target="y"),
        "decode CSV": lambda: from_csv(paths["text.csv"], target="y", dtype="float32"),
        "scratch file, read": over(rows.source),
        "scratch file, mapped": over(as_source(mapped)),
        "array in memory": over(as_source(X)),
    }


def main() -> int:
    """Measure, print, write results/rows_on_disk.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rows_on_disk", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", help="default: results/rows_on_disk.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp" if Path("/var/tmp").is_dir() else None) as name:
        paths = _files(Path(name), args.rows, args.features)
        passes = _passes(paths, args.threads)
        seconds: dict[str, list[float]] = {way: [] for way in passes}
        for _ in range(args.repeats):
            for way, one_pass in passes.items():
                start = time.perf_counter()
                one_pass()
                seconds[way].append(time.perf_counter() - start)
        megabytes = {name: path.stat().st_size / 1e6 for name, path in paths.items()}
    fastest = {way: min(taken) for way, taken in seconds.items()}
    for way, taken in fastest.items():
        ratio = taken / fastest["scratch file, read"]
        print(f"{way:30} {taken:7.3f} s a pass  {ratio:6.2f} times the scratch file")
    shape = {"rows": args.rows, "features": args.features, "threads": args.threads}
    body = shape | {"megabytes": megabytes, "seconds": seconds, "fastest": fastest}
    print("written:", record.write("rows_on_disk", body, args.json))
    return 0


if __name__ == "__main__":
    sys.exit(main())
