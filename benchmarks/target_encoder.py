"""Log-odds beside scikit-learn's TargetEncoder: `python -m benchmarks.target_encoder`.

Three folds of made tables of codes (`benchmarks.honest`); in each, every column becomes one number
by what labels say of its values, out of five inner folds for the rows that are learned from, and
the logarithm of its count, the same for both. Then three learners; average precision of all rows
that are held out.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from lightgbm import LGBMClassifier
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder

from benchmarks import record
from benchmarks.honest import nested_codes
from rareclass.encoding.log_odds import CategoryStatistics
from rareclass.metrics import average_precision

N, FOLDS, INNER = 20_000, 3, 5
TABLES = {
    "codes": (0.06, False),
    "codes, rare": (0.01, False),
    "codes in pairs": (0.06, True),
    "codes in pairs, rare": (0.01, True),
}
LEARNERS: dict[str, Callable[[], Any]] = {
    "boosted trees": lambda: LGBMClassifier(
        learning_rate=0.1, min_child_samples=5, reg_lambda=1.0, n_jobs=1, random_state=0,
        verbosity=-1,
    ),
    "extra trees": lambda: ExtraTreesClassifier(
        100, min_samples_leaf=3, max_features=0.5, random_state=0
    ),
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
}  # fmt: skip
Pair = tuple[np.ndarray, np.ndarray]


def log_odds(codes: np.ndarray, y: np.ndarray, new: np.ndarray, inner: np.ndarray) -> Pair:
    """Return the numbers of rows that are learned from, and of new ones."""
    levels, position = np.unique(codes, return_inverse=True)
    known, one = CategoryStatistics(), np.ones(len(codes))
    found = known.fit_transform(position, len(levels) + 1, y, one, inner)
    place = np.minimum(np.searchsorted(levels, new), len(levels) - 1)
    return found, known.transform(np.where(levels[place] == new, place, len(levels)))


def target_encoder(codes: np.ndarray, y: np.ndarray, new: np.ndarray, inner: np.ndarray) -> Pair:
    """Return the same by scikit-learn, which makes inner folds of its own."""
    encoder = TargetEncoder(target_type="binary", cv=INNER, random_state=0)
    found = encoder.fit_transform(codes[:, None], y.astype(int)).ravel()
    return found, encoder.transform(new[:, None]).ravel()


ENCODERS = {"log-odds": log_odds, "TargetEncoder": target_encoder}


def counts(codes: np.ndarray, new: np.ndarray) -> Pair:
    """Return log(1 + rows) of each value."""
    levels, position, n = np.unique(codes, return_inverse=True, return_counts=True)
    place = np.minimum(np.searchsorted(levels, new), len(levels) - 1)
    return np.log1p(n[position] - 1), np.log1p(np.where(levels[place] == new, n[place], 0))


def measured(X: pl.DataFrame, y: np.ndarray, seed: int) -> dict[str, dict[str, float]]:
    """Return average precision by encoder and learner."""
    scores = {(e, name): np.zeros(len(y)) for e in ENCODERS for name in LEARNERS}
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    for learned, tested in folds.split(y, y):
        inner = np.random.default_rng(seed).permutation(len(learned)) % INNER
        columns = [column.to_numpy() for column in X]
        beside = [counts(codes[learned], codes[tested]) for codes in columns]
        for encoder, encode in ENCODERS.items():
            pairs = [encode(c[learned], y[learned], c[tested], inner) for c in columns] + beside
            train, new = (np.column_stack([pair[k] for pair in pairs]) for k in (0, 1))
            for name, make in LEARNERS.items():
                model = make().fit(train, y[learned])
                scores[encoder, name][tested] = model.predict_proba(new)[:, 1]
    return {e: {name: average_precision(y, scores[e, name]) for name in LEARNERS} for e in ENCODERS}


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args(argv)
    cells = []
    for table, (share, pairs) in TABLES.items():
        for seed in range(args.seeds):
            X, y = nested_codes(seed, N, share, pairs)
            found = measured(X, np.asarray(y), seed)
            cells.append({"table": table, "seed": seed, "average_precision": found})
            print(table, seed, found, flush=True)
    for encoder in ENCODERS:
        means = {
            name: np.mean([cell["average_precision"][encoder][name] for cell in cells])
            for name in LEARNERS
        }
        print(encoder, {name: f"{100 * value:.1f}" for name, value in means.items()})
    record.write("target_encoder", {"cells": cells})
    return 0


if __name__ == "__main__":
    sys.exit(main())
