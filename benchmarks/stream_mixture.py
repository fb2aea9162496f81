"""A mixture of learners beside its members and River: `python -m benchmarks.stream_mixture`.

Eight real sets as streams, up to 60,000 rows (20,000 of more than 60 columns), numeric columns,
empty cells as 0; and fraud_stream in time order. Sets that are sorted by class are shuffled; of KDD
Cup 99 every eighth row is taken, of cod_rna's rare rows one in a hundred. Each row is scored before
it is learned. What the mixture is made of was chosen on CHOSEN_ON and the first 200,000 rows
of fraud_stream; the other four sets are the judge. Every member alone is behind its own map, CBR
with the settings that streams began with before beside them; River has every optimiser of
`benchmarks.stream_river` on the same standardised columns. Precision is that at 100 of every 10,000
rows, on fraud_stream of every day.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from benchmarks import record, stream_river
from benchmarks.paper_tables.protocol import needed_folder
from benchmarks.paper_tables.study import print_table
from rareclass.encoding.schema import Schema
from rareclass.encoding.streams import OnlineEncoder
from rareclass.metrics import average_precision, roc_auc
from rareclass.online import CBR, OnlineMixture
from rareclass.online.mixture import default_members
from rareclass.tables.batch import Batch

CHOSEN_ON = ("mammography", "shuttle", "bank_marketing", "give_me_some_credit")
FRAUD = "fraud_stream"
REAL_SETS = (
    "kddcup99_10pct_train", "give_me_some_credit", "shuttle", "mammography", "donors", "cod_rna",
    "unsw_nb15_backdoor", "bank_marketing",
)  # fmt: skip
SORTED = ("shuttle", "mammography", "cod_rna", "unsw_nb15_backdoor")
OTHER_LABELS = ("target", "attack", "shuttle_class")
SETS = (*REAL_SETS, FRAUD)
BEFORE = "CBR, asinh (before)"
MIXTURE = "mixture"
HEADER = ["set", "way", "AUC", "average precision", "precision at 100", "rows/s"]


class Stream(NamedTuple):
    """Rows standardised as they came, which are rare, and the period of each."""

    X: np.ndarray
    rare: np.ndarray
    period: np.ndarray


def read(name: str, most: int | None) -> Stream:
    """One of the sets, its first rows only where `most` says so."""
    folder = needed_folder()
    if name == FRAUD:
        found = stream_river.read(folder / f"{FRAUD}.parquet")
        columns = pl.DataFrame(found.columns)
        rare, period = found.fraud, found.day
    else:
        columns, rare = read_table(folder, name)
        period = np.arange(len(rare)) // 10_000
    columns = columns.head(most or len(rare))
    X = encode(columns)
    return Stream(X, rare[: len(X)], period[: len(X)])


def read_table(folder: Path, name: str) -> tuple[pl.DataFrame, np.ndarray]:
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


def encode(columns: pl.DataFrame) -> np.ndarray:
    """The rows as the stream's encoder gives them."""
    cells = {name: columns[name].to_numpy() for name in columns.columns}
    schema = Schema("target", dict.fromkeys(cells, "number"))
    batch = Batch(cells, np.arange(len(columns)), "", [], len(columns), {})
    return OnlineEncoder(schema, tails="linear").encode(batch).X


def ours(stream: Stream) -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """The mixture, what streams began with before, and each member alone."""

    def way(model: Any, X: np.ndarray) -> Callable[[], np.ndarray]:
        begun = model.start(X.shape[1], [False, True])
        return lambda: begun.test_then_train(X, stream.rare)

    yield MIXTURE, way(OnlineMixture(random_state=0), stream.X)
    before = CBR(**stream_river.OF_STREAMS, random_state=0)
    yield BEFORE, way(before, np.arcsinh(stream.X))
    for name, learner in default_members():
        alone = OnlineMixture([(name, learner)], random_state=0)
        yield f"{learner!r} on {name}", way(alone, stream.X)


def river(stream: Stream) -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """River's logistic regression with every optimiser."""
    from river import linear_model

    def way(model: Any) -> Callable[[], np.ndarray]:
        def run() -> np.ndarray:
            scores = np.empty(len(stream.X))
            for t, (cells, label) in enumerate(
                zip(stream.X.tolist(), stream.rare.tolist(), strict=True)
            ):
                row = dict(enumerate(cells))
                scores[t] = model.predict_proba_one(row)[True]
                model.learn_one(row, label)
            return scores

        return run

    for setting, optimiser in stream_river.RIVER.items():
        yield f"River, {setting}", way(linear_model.LogisticRegression(optimizer=optimiser()))


def measured(stream: Stream, run: Callable[[], np.ndarray]) -> dict[str, float]:
    """Quality of the scores and rows a second of one way through a stream."""
    start = time.perf_counter()
    scores = run()
    seconds = time.perf_counter() - start
    of_period = []
    for period in np.unique(stream.period):
        rows = np.flatnonzero(stream.period == period)
        called = rows[np.argsort(-scores[rows], kind="stable")[:100]]
        of_period.append(stream.rare[called].mean())
    return {
        "auc": roc_auc(stream.rare, scores),
        "ap": average_precision(stream.rare, scores),
        "precision_at_100": float(np.mean(of_period)),
        "rows_per_s": len(scores) / seconds,
    }


def measure(name: str, most: int | None) -> list[dict[str, Any]]:
    """All ways through one set."""
    stream = read(name, most)
    ways = [*ours(stream), *river(stream)]
    facts = {"set": name, "rows": len(stream.X), "rare": int(stream.rare.sum())}
    return [{**facts, "way": way, **measured(stream, run)} for way, run in ways]


def lines(cells: list[dict[str, Any]]) -> list[list[str]]:
    """For each set the mixture, CBR as before, and the best single way in each measure."""
    rows = []
    for name in dict.fromkeys(cell["set"] for cell in cells):
        of_set = {cell["way"]: cell for cell in cells if cell["set"] == name}
        single = [cell for way, cell in of_set.items() if way != MIXTURE]
        kinds = {
            MIXTURE: [of_set[MIXTURE]],
            BEFORE: [of_set[BEFORE]],
            "best of ours alone": [c for c in single if not c["way"].startswith("River")],
            "best of River": [c for c in single if c["way"].startswith("River")],
        }
        role = "chosen on" if name in CHOSEN_ON else "confirmed on"
        role = "chosen on its first third" if name == FRAUD else role
        for kind, found in kinds.items():
            if found:
                best = [max(cell[m] for cell in found) for m in ("auc", "ap", "precision_at_100")]
                rates = [cell["rows_per_s"] for cell in found]
                rate = f"{min(rates):,.0f}" if len(rates) == 1 else "-"
                rows.append([f"{name}, {role}", kind, *(f"{value:.3f}" for value in best), rate])
    return rows


def main(argv: list[str]) -> int:
    """Measure, print the table, store every cell."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.stream_mixture", description=__doc__
    )
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--rows", type=int, help="of each set, at most")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(argv)
    needed_folder()
    warm = np.random.default_rng(0)
    OnlineMixture().start(2, [0, 1]).test_then_train(
        warm.random((2000, 2)), warm.random(2000) < 0.1
    )
    cells = [cell for name in options.sets for cell in measure(name, options.rows)]
    print_table(HEADER, lines(cells))
    print(f"wrote {record.write('stream_mixture', {'cells': cells}, options.json)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
