"""CBR that ranks by some of the features: `python -m benchmarks.cbr_selection`.

Made streams: 200 normal features, of which 10 count by half a deviation, 4,000 rows to learn from
and 4,000 to rank; how many of the 10 are among the chosen ones, and the AUC, means over streams.
farm_ads: five folds, C = 2^-6 (what the paper's protocol chooses there), seconds of a fit and
kilobytes of the weights that are left and of the whole state.
"""

import argparse
import pickle
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks import record
from benchmarks.paper_tables import cbr_sets
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.paper_tables.study import print_table
from rareclass.metrics import roc_auc
from rareclass.online import CBR

N_FEATURES, N_TELLING, ROWS = 200, 10, 4000
SHARES = (0.1, 0.01)
SIZES: tuple[int | None, ...] = (10, 20, 50, None)
SETTINGS: dict[str, dict[str, Any]] = {
    "C = 1": {},
    "C = 2^-10, balanced": {"C": 2.0**-10, "class_weight": "balanced"},
}
TEXT_SIZES: tuple[int | None, ...] = (100, 300, 1000, 3000, 10_000, None)
TEXT_C = 2.0**-6
MADE_HEADER = ["rare rows", "setting", "features", "found of 10", "AUC"]
TEXT_HEADER = ["features", "AUC", "s of a fit", "weights, kB", "state, kB"]


def made(seed: int, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, 1 where rare, and the features that count."""
    rng = np.random.default_rng(seed)
    y = (rng.random(2 * ROWS) < share).astype(int)
    telling = rng.choice(N_FEATURES, N_TELLING, replace=False)
    X = rng.normal(size=(2 * ROWS, N_FEATURES))
    X[:, telling] += 0.5 * y[:, None] * rng.choice([-1.0, 1.0], N_TELLING)
    return X, y, telling


def on_made(streams: int) -> list[dict[str, Any]]:
    """All sizes and settings on made streams; a ranker without a limit finds its ten surest."""
    cells = []
    for share in SHARES:
        for setting, parameters in SETTINGS.items():
            for size in SIZES:
                found, auc = [], []
                for seed in range(streams):
                    X, y, telling = made(seed, share)
                    model = CBR(covariance="diagonal", max_features=size, **parameters)
                    model.start(N_FEATURES, [0, 1]).partial_fit(X[:ROWS], y[:ROWS])
                    sure = np.abs(model.coef_) * np.sqrt(model.state_.precision)
                    found.append(np.isin(telling, np.argsort(-sure)[: size or N_TELLING]).sum())
                    auc.append(roc_auc(y[ROWS:], model.score_samples(X[ROWS:])))
                cells.append({
                    "share": share, "setting": setting, "size": size, "streams": streams,
                    "found": float(np.mean(found)), "auc": float(np.mean(auc)),
                })  # fmt: skip
    return cells


def on_text(repeats: int) -> list[dict[str, Any]]:
    """All sizes on farm_ads, in turns."""
    folder = data_folder()
    if folder is None or not cbr_sets.is_there("farm_ads", folder):
        print("Skipped: farm_ads is not in the data folder (RARECLASS_DATA).", file=sys.stderr)
        return []
    rows = cbr_sets.load("farm_ads", folder)
    found: dict[int | None, dict[str, list[float]]] = {}
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(rows.X, rows.y):
        for size in TEXT_SIZES * repeats:
            model = CBR(
                TEXT_C, covariance="diagonal", max_features=size, random_state=0, pos_label=1
            )
            start = time.process_time()
            model.fit(rows.X[train], rows.y[train])
            seconds = time.process_time() - start
            left = np.flatnonzero(model.coef_)
            figures = {
                "auc": roc_auc(rows.y[test], model.score_samples(rows.X[test])),
                "seconds": seconds,
                "weights_kb": len(pickle.dumps((left, model.coef_[left]))) / 1000,
                "state_kb": len(pickle.dumps(model.state_)) / 1000,
            }
            for name, value in figures.items():
                found.setdefault(size, {}).setdefault(name, []).append(value)
    return [
        {
            "size": size,
            **{k: float(np.median(v) if k == "seconds" else np.mean(v)) for k, v in of.items()},
        }
        for size, of in found.items()
    ]


def made_lines(cells: list[dict[str, Any]]) -> list[list[str]]:
    """Rows of the table of made streams."""
    return [
        [f"{c['share']:.0%}", c["setting"], _size(c), f"{c['found']:.1f}", f"{c['auc']:.3f}"]
        for c in cells
    ]


def text_lines(cells: list[dict[str, Any]]) -> list[list[str]]:
    """Rows of the table of farm_ads."""
    return [
        [
            _size(c), f"{c['auc']:.4f}", f"{c['seconds']:.2f}",
            f"{c['weights_kb']:,.0f}", f"{c['state_kb']:,.0f}",
        ]
        for c in cells
    ]  # fmt: skip


def main(argv: Sequence[str]) -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cbr_selection", description=__doc__)
    parser.add_argument("--streams", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=1, help="fits of each size and fold")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(argv)
    cells = on_made(options.streams)
    print_table(MADE_HEADER, made_lines(cells))
    text = on_text(options.repeats)
    print_table(TEXT_HEADER, text_lines(text))
    record.write("cbr_selection", {"made": cells, "text": text}, options.json)


def _size(cell: dict[str, Any]) -> str:
    return "all" if cell["size"] is None else f"{cell['size']:,}"


if __name__ == "__main__":
    main(sys.argv[1:])
