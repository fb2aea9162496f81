"""What a stream is best learned with: `python -m benchmarks.stream_settings`.

Eight real sets as streams: up to 60,000 rows (20,000 of more than 60 columns), numeric columns,
empty cells as 0, scaled by `OnlineEncoder`. Sets that are sorted by class are shuffled; of KDD Cup
99 every eighth row is taken; of cod_rna's rare rows one in a hundred. CBR scores each row and
then learns it: AUC and average precision of all rows. fraud_stream is not among them: it is kept
for `benchmarks.stream_river`.
"""

import argparse
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks import record
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.paper_tables.study import print_table, run_all
from rareclass.encoding.schema import Schema
from rareclass.encoding.streams import TAILS, OnlineEncoder
from rareclass.metrics import average_precision, roc_auc
from rareclass.online import CBR
from rareclass.tables.batch import Batch

SETS = (
    "kddcup99_10pct_train", "give_me_some_credit", "shuttle", "mammography", "donors", "cod_rna",
    "unsw_nb15_backdoor", "bank_marketing",
)  # fmt: skip
SORTED = ("shuttle", "mammography", "cod_rna", "unsw_nb15_backdoor")
OTHER_LABELS = ("target", "attack", "shuttle_class")
STEPS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def read(folder: Path, name: str) -> tuple[pl.DataFrame, np.ndarray]:
    """The rows of a stream, and which are rare."""
    table = pl.read_parquet(folder / f"{name}.parquet")
    rng = np.random.default_rng(0)
    if name == "kddcup99_10pct_train":
        table = table.gather_every(8)
    if name == "cod_rna":
        table = table.filter((table["target"] == 0).to_numpy() | (rng.random(len(table)) < 0.01))
    if name in SORTED:
        table = table[rng.permutation(len(table))]
    rare = table["target"].to_numpy().astype(bool)
    numbers = [c for c in table.columns if table[c].dtype.is_numeric() and c not in OTHER_LABELS]
    most = 20_000 if len(numbers) > 60 else 60_000
    columns = table.select(pl.col(numbers).cast(pl.Float64).fill_null(0.0)).head(most)
    return columns, rare[:most]


def encode(columns: pl.DataFrame, tails: str) -> np.ndarray:
    """The rows as the stream's encoder gives them."""
    cells = {name: columns[name].to_numpy() for name in columns.columns}
    schema = Schema("target", dict.fromkeys(cells, "number"))
    batch = Batch(cells, np.arange(len(columns)), "", [], len(columns), {})
    return OnlineEncoder(schema, tails=tails).encode(batch).X


def measure(task: tuple[str, str]) -> list[dict[str, Any]]:
    """Every setting of CBR on one set with one kind of tails."""
    name, tails = task
    folder = data_folder()
    assert folder is not None
    columns, rare = read(folder, name)
    X = encode(columns, tails)
    cells = []
    for C, weight, covariance in product(STEPS, (None, "balanced"), ("full", "diagonal")):
        model = CBR(C=C, class_weight=weight, covariance=covariance)
        scores = model.start(X.shape[1], [False, True]).test_then_train(X, rare)
        setting = {"C": C, "class_weight": weight, "covariance": covariance, "tails": tails}
        measures = {"auc": roc_auc(rare, scores), "ap": average_precision(rare, scores)}
        cells.append({"set": name, "rows": len(X), "rare": int(rare.sum()), **setting, **measures})
    return cells


def means(cells: list[dict[str, Any]], *names: str) -> list[list[str]]:
    """Mean AUC and average precision over the sets, a line for each setting."""
    table = pl.DataFrame(cells).with_columns(pl.col("class_weight").fill_null("none"))
    mean = table.group_by(names).agg(pl.col("auc", "ap").mean()).sort("auc", descending=True)
    lines = []
    for row in mean.iter_rows(named=True):
        lines.append(
            [" ".join(str(row[n]) for n in names), f"{row['auc']:.3f}", f"{row['ap']:.3f}"]
        )
    return lines


def main(argv: list[str]) -> None:
    """Measure, print the means, store every cell."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.stream_settings", description=__doc__
    )
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(argv)
    if data_folder() is None:
        sys.exit("Set RARECLASS_DATA to the folder of the data sets.")
    tasks = list(product(options.sets, TAILS))
    cells = [c for part in run_all("Streams", measure, tasks, options.jobs) for c in part]
    header = ["mean over the sets", "AUC", "average precision"]
    print_table(header, means(cells, "covariance", "class_weight", "tails", "C"))
    print()
    print_table(header, means(cells, "covariance", "class_weight", "tails"))
    record.write("stream_settings", {"cells": cells}, options.json)


if __name__ == "__main__":
    main(sys.argv[1:])
