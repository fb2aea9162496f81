"""CBR and River's logistic regression on a stream: `python -m benchmarks.stream_river`.

fraud_stream in time order, without ids and datetime: every row is scored, then learned from. Both
sides scale as they go and take turns, a block of rows each, in one process with one thread. River's
rows are dicts before the clock starts; it is timed with and without its metric, an approximate AUC.
CBR's time includes the scaling and the exact AUC of all rows at the end.

Settings of both are tried on the first rows only, and the best there by precision at 100 a day goes
through the whole stream; of CBR's the best of those that are fast enough there, 20 times River's
defaults. Every setting of River goes through the whole stream, for the reader to see.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from river import linear_model, metrics, optim, preprocessing
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks import other_work, record
from benchmarks.paper_tables.protocol import data_folder
from rareclass.encoding.schema import Schema
from rareclass.encoding.streams import TAILS, OnlineEncoder
from rareclass.metrics import average_precision, roc_auc
from rareclass.online import CBR
from rareclass.tables.text_reader import Batch

LEFT_OUT = ("TRANSACTION_ID", "CUSTOMER_ID", "TERMINAL_ID", "datetime")
TARGET = "target"
TRIED_ROWS = 200_000
BLOCK_ROWS = 10_000
CALLS_A_DAY = 100  # transactions that can be looked at

RIVER: dict[str, Callable[[], Any]] = {
    "its defaults": lambda: None,
    "SGD(0.003)": lambda: optim.SGD(0.003),
    "SGD(0.03)": lambda: optim.SGD(0.03),
    "AdaGrad(0.1)": lambda: optim.AdaGrad(0.1),
    "AdaGrad(0.3)": lambda: optim.AdaGrad(0.3),
    "AdaGrad(1)": lambda: optim.AdaGrad(1.0),
    "Adam(0.001)": lambda: optim.Adam(0.001),
    "Adam(0.01)": lambda: optim.Adam(0.01),
}
CBR_C = (1e-3, 3e-3, 1e-2)
CBR_ETA = (0.7, 0.9, 0.97)
CBR_BUFFER = (10, 20, 50)
DEFAULTS = "CBR, its defaults"
HALF_LIFE = 1e9  # all rows count alike in means and deviations, as in River's scaler
OF_STREAMS = {"C": 2**-10, "class_weight": "balanced"}  # the defaults of `rareclass stream`
GOAL_TIMES = 20.0


class Stream(NamedTuple):
    """Rows in time order: columns by name, whether each row is a fraud, and its day."""

    columns: dict[str, np.ndarray]
    fraud: np.ndarray
    day: np.ndarray

    def head(self, n_rows: int) -> "Stream":
        """The first rows."""
        return self.part(slice(0, n_rows))

    def part(self, rows: slice) -> "Stream":
        """Some of the rows."""
        columns = {name: cells[rows] for name, cells in self.columns.items()}
        return Stream(columns, self.fraud[rows], self.day[rows])

    def blocks(self) -> Iterator["Stream"]:
        """All rows, a block after the other."""
        for start in range(0, len(self.fraud), BLOCK_ROWS):
            yield self.part(slice(start, start + BLOCK_ROWS))


def read(file: Any) -> Stream:
    """The stream in a file."""
    table = pl.read_parquet(file)
    features = table.drop(*LEFT_OUT, TARGET).cast(pl.Float64)
    columns = {name: np.ascontiguousarray(features[name].to_numpy()) for name in features.columns}
    return Stream(
        columns, table[TARGET].to_numpy() == 1, table["datetime"].to_numpy() // (24 * 3600)
    )


class River:
    """River's way through a stream: its scaler, its logistic regression, its metric."""

    def __init__(self, setting: str) -> None:
        self.name = f"River, {setting}"
        self.setting = setting
        self.model = preprocessing.StandardScaler() | linear_model.LogisticRegression(
            optimizer=RIVER[setting]()
        )
        self.metric = metrics.ROCAUC()
        self.scores: list[float] = []
        self.learn_seconds = self.metric_seconds = 0.0

    def take(self, block: Stream) -> None:
        """Score and learn each row of a block."""
        cells = zip(*(column.tolist() for column in block.columns.values()), strict=True)
        rows = [dict(zip(block.columns, row, strict=True)) for row in cells]
        labels = block.fraud.tolist()
        predicted = []
        start = time.perf_counter()
        for x, y in zip(rows, labels, strict=True):
            predicted.append(self.model.predict_proba_one(x))
            self.model.learn_one(x, y)
        learned = time.perf_counter()
        for y, probabilities in zip(labels, predicted, strict=True):
            self.metric.update(y, probabilities)
        self.metric_seconds += time.perf_counter() - learned
        self.learn_seconds += learned - start
        self.scores += [probabilities[True] for probabilities in predicted]

    def result(self, stream: Stream) -> dict[str, Any]:
        """Quality and speed after the stream."""
        n = len(self.scores)
        return {
            "rows_per_s": n / (self.learn_seconds + self.metric_seconds),
            "rows_per_s_without_metric": n / self.learn_seconds,
            "own_auc": self.metric.get(),
            **quality(stream, np.array(self.scores)),
        }


class Ranker:
    """CBR's way: the online encoder of `rareclass stream`, then test-then-train."""

    def __init__(self, model: CBR, tails: str = "asinh") -> None:
        self.name = f"CBR({_changed(model)}), {tails}" if _changed(model) else DEFAULTS
        self.model = model
        self.tails = tails
        self.encoder: OnlineEncoder | None = None
        self.scores: list[np.ndarray] = []
        self.learn_seconds = 0.0

    def take(self, block: Stream) -> None:
        """Score and learn each row of a block."""
        if self.encoder is None:
            schema = Schema(TARGET, dict.fromkeys(block.columns, "number"))
            self.encoder = OnlineEncoder(schema, half_life=HALF_LIFE, tails=self.tails)
            self.model.start(len(block.columns), [False, True])
        n = len(block.fraud)
        start = time.perf_counter()
        batch = Batch(pl.DataFrame(block.columns), np.arange(n), "", [], n, {})
        X = self.encoder.encode(batch).X
        if X.shape[1] > self.model.n_features_in_:
            self.model.add_features(X.shape[1] - self.model.n_features_in_)
        self.scores.append(self.model.test_then_train(X, block.fraud))
        self.learn_seconds += time.perf_counter() - start

    def result(self, stream: Stream) -> dict[str, Any]:
        """Quality and speed after the stream."""
        scores = np.concatenate(self.scores)
        start = time.perf_counter()
        roc_auc(stream.fraud, scores)
        seconds = self.learn_seconds + time.perf_counter() - start
        return {
            "rows_per_s": len(scores) / seconds,
            "rows_per_s_without_metric": len(scores) / self.learn_seconds,
            **quality(stream, scores),
        }


def _changed(model: CBR) -> str:
    standard = CBR().get_params()
    changed = {k: v for k, v in model.get_params().items() if v != standard[k]}
    return ", ".join(f"{name}={value!r}" for name, value in changed.items())


def quality(stream: Stream, scores: np.ndarray) -> dict[str, Any]:
    """Exact AUC and average precision of all rows, precision at 100 of every day."""
    days = precision_by_day(stream, scores)
    return {
        "auc": roc_auc(stream.fraud, scores),
        "average_precision": average_precision(stream.fraud, scores),
        "precision_at_100_a_day": float(days.mean()),
        "by_day": days,
    }


def precision_by_day(stream: Stream, scores: np.ndarray) -> np.ndarray:
    """The share of frauds among the 100 highest scores of each day; ties go to the earlier row."""
    shares = []
    for day in np.unique(stream.day):
        rows = np.flatnonzero(stream.day == day)
        called = rows[np.argsort(-scores[rows], kind="stable")[:CALLS_A_DAY]]
        shares.append(stream.fraud[called].mean())
    return np.array(shares)


def run(stream: Stream, ways: list[River | Ranker]) -> dict[str, dict[str, Any]]:
    """Send the stream through all ways, in turns a block each."""
    for block in stream.blocks():
        for way in ways:
            way.take(block)
    return {way.name: way.result(stream) for way in ways}


def best(results: dict[str, dict[str, Any]]) -> str:
    """The name of the best result: by precision at 100 a day, then by AUC."""
    return max(
        results, key=lambda name: (results[name]["precision_at_100_a_day"], results[name]["auc"])
    )


def grid() -> Iterator[tuple[CBR, str]]:
    """The settings of CBR that are tried, with their tails; the library's and the verb's first."""
    yield CBR(), "asinh"
    yield CBR(**OF_STREAMS), "asinh"
    for C, eta, size, policy, tails in product(
        CBR_C, CBR_ETA, CBR_BUFFER, ("fifo", "reservoir"), TAILS
    ):
        model = CBR(
            C=C, eta=eta, buffer_size=size, policy=policy, class_weight="balanced", random_state=0
        )
        yield model, tails


def against(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, float]:
    """How we stand to a result of River; the differences are ours less River's."""
    by_day = ours["by_day"] - theirs["by_day"]
    return {
        "times_the_rows_per_s": ours["rows_per_s"] / theirs["rows_per_s"],
        "times_without_metric": (
            ours["rows_per_s_without_metric"] / theirs["rows_per_s_without_metric"]
        ),
        "auc": ours["auc"] - theirs["auc"],
        "average_precision": ours["average_precision"] - theirs["average_precision"],
        "precision_at_100_a_day": float(by_day.mean()),
        "its_standard_error_over_days": float(by_day.std(ddof=1) / np.sqrt(len(by_day))),
    }


def main() -> int:
    """Try settings, run the stream, print the page, write results/stream_river.json."""
    from benchmarks.pages.registry import PAGES

    parser = argparse.ArgumentParser(prog="python -m benchmarks.stream_river", description=__doc__)
    parser.add_argument("--rows", type=int, default=600_000, help="of the stream (600000)")
    parser.add_argument("--json", metavar="FILE", help="default: results/stream_river.json")
    args = parser.parse_args()
    folder = data_folder()
    if folder is None or not (folder / "fraud_stream.parquet").is_file():
        print("Skipped: no fraud_stream.parquet. Name its folder by RARECLASS_DATA.")
        return 0
    with threadpool_limits(1):
        body = measure(read(folder / "fraud_stream.parquet").head(args.rows))
    path = record.write("stream_river", body, args.json)
    print(PAGES["stream_river"].body(body), f"\nwritten: {path}")
    return 0


def measure(stream: Stream) -> dict[str, Any]:
    """Both steps: settings on the first rows, the chosen ones of CBR and all of River on all."""
    first = stream.head(TRIED_ROWS)
    run(first.head(BLOCK_ROWS), [Ranker(CBR())])  # compiles
    models = {Ranker(model, tails).name: (model, tails) for model, tails in grid()}
    tried_river = run(first, [River(setting) for setting in RIVER])
    theirs = best(tried_river)
    river = [River(setting) for setting in RIVER]
    tried: dict[str, dict[str, Any]] = {}
    for model, tails in models.values():
        tried |= run(first, [Ranker(clone(model), tails)])
    least = GOAL_TIMES * tried_river[river[0].name]["rows_per_s"]
    ours = best({name: cell for name, cell in tried.items() if cell["rows_per_s"] >= least})
    chosen = dict.fromkeys((ours, DEFAULTS, Ranker(CBR(**OF_STREAMS)).name))
    rankers = [Ranker(clone(models[name][0]), models[name][1]) for name in chosen]
    began = other_work.now()
    results = run(stream, [*river, *rankers])
    others = other_work.cores_of_others(began, other_work.now())
    # River's defaults, its choice on the first rows, and what turned out best in the end.
    at_last = best({way.name: results[way.name] for way in river})
    rivals = dict.fromkeys((river[0].name, theirs, at_last))
    stands = {name: against(results[ours], results[name]) for name in rivals}
    for result in (tried | tried_river).values():
        del result["by_day"]
    return {
        "rows": len(stream.fraud),
        "tried_rows": len(first.fraud),
        "chosen": {"rareclass": ours, "river": theirs},
        "against": stands,
        "results": results,
        "tried": tried | tried_river,
        "cores_of_others": others,
    }


if __name__ == "__main__":
    sys.exit(main())
