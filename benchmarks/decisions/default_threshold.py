"""Thresholds without a wish: `python -m benchmarks.decisions.default_threshold [--json FILE]`.

Which threshold is best where the user asks for nothing? On each table of the data folder half of
the rows are learned from by a quick method (the mean of logistic regression's and histogram
boosting's probabilities). Each rule chooses a threshold by their cross-fitted scores, as
``rareclass fit`` does, and the model of all of them is tried on the other half. The tables are
halved as well, by their order of names: a rule is chosen on the ones and confirmed on the others.

Columns: mean over tables of F1, precision, recall and the rows called rare for each rare row;
and on how many tables F1 is within 0.02 of the best of the rules.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from benchmarks import record
from benchmarks.markdown import table
from benchmarks.paper_tables.protocol import data_folder
from rareclass.decide import Calibration, ThresholdRule, balanced_accuracy_threshold
from rareclass.metrics.scored_classes import FloatArray

MOST_ROWS, FEWEST_RARE, NEAR = 12_000, 20, 0.02
PARTS = {
    "chosen": "Tables that the rule was chosen on",
    "confirmed": "Tables that the choice was checked on",
}
Chooser = Callable[[np.ndarray, FloatArray], float]


def as_many_as_rare(y: np.ndarray, scores: FloatArray) -> float:
    """Threshold with as many alerts as there are rare rows: precision is recall there."""
    ordered, k = np.sort(scores)[::-1], int(y.sum())
    return float((ordered[k - 1] + ordered[min(k, len(y) - 1)]) / 2.0)


def expected_f1(y: np.ndarray, scores: FloatArray) -> float:
    """The greatest F1 to be expected of calibrated probabilities, not of the labels themselves."""
    p = Calibration.fit(y, scores)(scores)
    order = np.argsort(-scores, kind="stable")
    value = 2.0 * np.cumsum(p[order]) / (np.arange(1, len(p) + 1) + p.sum())
    k = int(value.argmax()) + 1
    return float((scores[order[k - 1]] + scores[order[min(k, len(p) - 1)]]) / 2.0)


def f_beta(beta: float) -> Chooser:
    """The greatest F-beta on the held-out rows."""
    return lambda y, scores: ThresholdRule.f_beta(beta).choose(y, scores).threshold


RULES: dict[str, Chooser] = {
    "balanced accuracy": balanced_accuracy_threshold,
    "F1": f_beta(1.0),
    "F1 expected of probabilities": expected_f1,
    "as many alerts as rare rows": as_many_as_rare,
    "F2": f_beta(2.0),
    "F0.5": f_beta(0.5),
}


class Averaged(BaseEstimator):
    """The mean of two classifiers' probabilities."""

    def fit(self, X: FloatArray, y: np.ndarray) -> "Averaged":
        """Learn both."""
        scaled = QuantileTransformer(n_quantiles=100, output_distribution="normal")
        parts = (
            make_pipeline(scaled, LogisticRegression(C=0.1, max_iter=500)),
            HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, random_state=0),
        )
        filled = np.nan_to_num(X)
        self.parts_ = [part.fit(filled, y) for part in parts]
        return self

    def score_samples(self, X: FloatArray) -> FloatArray:
        """The mean."""
        filled = np.nan_to_num(X)
        return np.mean([part.predict_proba(filled)[:, 1] for part in self.parts_], axis=0)


def read(folder: Path, about: dict[str, Any], seed: int) -> tuple[FloatArray, np.ndarray] | None:
    """Numbers and classes of a table, at most `MOST_ROWS` of them; None where it is not meant."""
    if not about["file"].endswith(".parquet") or not (folder / about["file"]).is_file():
        return None
    if not about.get("target") or not (0 < (about.get("positives") or 0) < 0.35 * about["rows"]):
        return None
    frame = pl.read_parquet(folder / about["file"])
    if about["target"] not in frame.columns or frame.width > 1000:
        return None
    y = frame[about["target"]].cast(pl.Float64, strict=False).to_numpy() == 1.0
    left = frame.drop(about["target"], *about.get("other_label_columns", []))
    columns = [
        each.cast(pl.Categorical).to_physical() if each.dtype == pl.String else each
        for each in left.get_columns()
    ]
    X = np.column_stack([each.cast(pl.Float64, strict=False).to_numpy() for each in columns])
    if len(y) > MOST_ROWS:
        kept = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
        X, y = X[kept], y[kept]
    return (X, y) if y.sum() >= 2 * FEWEST_RARE else None


def tried(X: FloatArray, y: np.ndarray, seed: int) -> dict[str, dict[str, float]]:
    """Measures of each rule on the half that was not learned from."""
    train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed)
    held, method = np.empty(len(train)), Averaged()
    for kept, out in StratifiedKFold(5, shuffle=True, random_state=seed).split(train, y[train]):
        model = clone(method).fit(X[train[kept]], y[train[kept]])
        held[out] = model.score_samples(X[train[out]])
    scores = method.fit(X[train], y[train]).score_samples(X[test])
    found = {}
    for name, choose in RULES.items():
        called, rare = scores > choose(y[train], held), y[test]
        hits, alerts = float((called & rare).sum()), float(called.sum())
        found[name] = {
            "F1": 2.0 * hits / (alerts + rare.sum()),
            "precision": hits / max(alerts, 1.0),
            "recall": hits / rare.sum(),
            "called": alerts / rare.sum(),
        }
    return found


def measure(splits: int, seed: int) -> dict[str, Any]:
    """Every table, by splits."""
    folder = data_folder()
    if folder is None:
        sys.exit("Set RARECLASS_DATA to the folder of the data sets.")
    listed = json.loads((folder / "manifest.json").read_text())
    named = sorted((each for each in listed), key=lambda each: each["name"])
    tables, number = [], 0
    for about in named:
        rows = read(folder, about, seed)
        if rows is None:
            continue
        runs = [tried(*rows, seed + k) for k in range(splits)]
        means = {
            rule: {key: float(np.mean([run[rule][key] for run in runs])) for key in runs[0][rule]}
            for rule in RULES
        }
        part = ("chosen", "confirmed")[number % 2]
        number += 1
        tables.append({"table": about["name"], "part": part, "rules": means})
        best = max(means, key=lambda rule: means[rule]["F1"])
        print(about["name"], part, best, f"{means[best]['F1']:.3f}", flush=True)
    return {"parameters": {"splits": splits, "seed": seed}, "tables": tables}


def render(result: dict[str, Any]) -> str:
    """A table for each half of the tables."""
    parts = []
    for part in PARTS:
        of = [each["rules"] for each in result["tables"] if each["part"] == part]
        lines = []
        for rule in RULES:
            means = [np.mean([each[rule][key] for each in of]) for key in of[0][rule]]
            near = sum(
                each[rule]["F1"] >= max(other["F1"] for other in each.values()) - NEAR
                for each in of
            )
            lines.append([rule, *(f"{mean:.3f}" for mean in means), f"{near} of {len(of)}"])
        head = ["threshold", "F1", "precision", "recall", "alerts per rare row", "near best"]
        parts.append(f"{PARTS[part]}, {len(of)} tables:\n\n{table(head, lines)}")
    return "\n\n".join(parts)


def main(argv: list[str] | None = None) -> int:
    """Measure, print the tables, write results/default_threshold.json."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decisions.default_threshold",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="FILE", help="default: results/default_threshold.json")
    args = parser.parse_args(argv)
    result = measure(args.splits, args.seed)
    print(render(result))
    print("written:", record.write("default_threshold", result, args.json))
    return 0


if __name__ == "__main__":
    sys.exit(main())
