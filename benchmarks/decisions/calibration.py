"""Probabilities on real sets: `CalibratedRanker` beside scikit-learn's `CalibratedClassifierCV`.

On the 14 sets of Table 4, split two thirds to one third, four classifiers that balance the classes
are calibrated by both on the same five folds. Then the majority of the training rows is thinned
to five rows a rare one, and `majority_sampling_rate` says so. Each fit is made once, whoever asks
for it.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import StratifiedKFold

from benchmarks.decisions import command
from benchmarks.markdown import table
from benchmarks.paper_tables.protocol import needed_folder
from benchmarks.tabular.preparation import standardised
from benchmarks.tabular.sets import _TABLE4_SHAPES, load, split
from rareclass.decide import CalibratedRanker

FOLDS = 5
PER_RARE = 5  # majority rows kept for each rare one in thinned sets
SETS = tuple(_TABLE4_SHAPES)
PEERS = ("sigmoid", "isotonic")
AS_IT_COMES = "as it comes"


def easy_ensemble(seed: int) -> Any:
    """imbalanced-learn's, with its defaults."""
    from imblearn.ensemble import EasyEnsembleClassifier

    return EasyEnsembleClassifier(random_state=seed)


def balanced_forest(seed: int) -> Any:
    """imbalanced-learn's, with its defaults."""
    from imblearn.ensemble import BalancedRandomForestClassifier

    return BalancedRandomForestClassifier(random_state=seed)


def weighted_lightgbm(seed: int) -> Any:
    """LightGBM's defaults with balanced class weights."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(class_weight="balanced", random_state=seed, n_jobs=1, verbose=-1)


def balanced_logistic(seed: int) -> Any:
    """Logistic regression with balanced class weights."""
    return LogisticRegression(class_weight="balanced", max_iter=2000)


CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "EasyEnsemble": easy_ensemble,
    "balanced forest": balanced_forest,
    "LightGBM, balanced weights": weighted_lightgbm,
    "logistic, balanced weights": balanced_logistic,
}


class Remembered(ClassifierMixin, BaseEstimator):
    """An estimator of which equal fits are made once: calibrators share those of the folds."""

    fits: dict[Any, Any] = {}  # noqa: RUF012, of the class: clones share it

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Remembered":
        """Learn, or find what was learned of the same rows."""
        key = (repr(self.estimator), X.shape, hash(X.tobytes()), hash(np.asarray(y).tobytes()))
        if key not in self.fits:
            self.fits[key] = clone(self.estimator).fit(X, y)
        self.model_ = self.fits[key]
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """The model's, worked out once as well."""
        key = (id(self.model_), X.shape, hash(X.tobytes()))
        if key not in self.fits:
            self.fits[key] = np.asarray(self.model_.predict_proba(X))
        return self.fits[key]


def calibrators(estimator: Any, seed: int) -> dict[str, Any]:
    """What is measured, unfitted, by name."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    peers = {
        f"scikit-learn, {method}": CalibratedClassifierCV(estimator, method=method, cv=folds)
        for method in PEERS
    }
    ours = {
        "rareclass": CalibratedRanker(estimator, cv=folds),
        "rareclass, refit": CalibratedRanker(estimator, cv=folds, ensemble=False),
    }
    return {AS_IT_COMES: estimator, **ours, **peers}


def measure(draws: int = 2, seed: int = 0) -> dict[str, Any]:
    """Log loss, Brier score and mean probability of every calibrator: one row a set and split."""
    folder = needed_folder()
    cells: list[dict[str, Any]] = []
    for name in SETS:
        rows = load(name, folder)
        for draw in range(seed, seed + draws):
            train, test = split(rows, draw)
            prepare = standardised()
            X = np.ascontiguousarray(prepare.fit_transform(rows.frame[train]), dtype=np.float64)
            T = np.ascontiguousarray(prepare.transform(rows.frame[test]), dtype=np.float64)
            about = {"set": name, "split": draw, "rare": int(rows.y[train].sum())}
            cells += _of_split(about, X, rows.y[train], T, rows.y[test], draw)
            cells += _of_thinned(about, X, rows.y[train], T, rows.y[test], draw)
    return {"cells": cells, "draws": draws, "seed": seed}


def _of_split(
    about: dict[str, Any], X: Any, y: Any, T: Any, truth: Any, seed: int
) -> list[dict[str, Any]]:
    cells = []
    for classifier, build in CLASSIFIERS.items():
        Remembered.fits.clear()
        for calibrator, model in calibrators(Remembered(build(seed)), seed).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                p = model.fit(X, y).predict_proba(T)[:, 1]
            named = {"classifier": classifier, "calibrator": calibrator}
            cells.append({**about, **named, **_measures(truth, p)})
    return cells


def _of_thinned(
    about: dict[str, Any], X: Any, y: Any, T: Any, truth: Any, seed: int
) -> list[dict[str, Any]]:
    """Learned from few majority rows, with the share that was kept stated and not."""
    rng = np.random.default_rng(seed)
    rare, rest = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    n_kept = min(PER_RARE * len(rare), len(rest))
    kept = np.sort(np.concatenate([rare, rng.choice(rest, n_kept, replace=False)]))
    cells = []
    for classifier in ("LightGBM, balanced weights", "logistic, balanced weights"):
        Remembered.fits.clear()
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        for calibrator, rate in (("thinned, rate stated", n_kept / len(rest)), ("thinned", None)):
            model = CalibratedRanker(
                Remembered(CLASSIFIERS[classifier](seed)), cv=folds, majority_sampling_rate=rate
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                p = model.fit(X[kept], y[kept]).predict_proba(T)[:, 1]
            named = {"classifier": classifier, "calibrator": calibrator}
            cells.append({**about, **named, **_measures(truth, p)})
    return cells


def _measures(truth: np.ndarray, p: np.ndarray) -> dict[str, float]:
    return {
        "log_loss": float(log_loss(truth, p)),
        "brier": float(brier_score_loss(truth, p)),
        "mean": float(p.mean()),
        "prevalence": float(truth.mean()),
    }


def render(result: dict[str, Any]) -> str:
    """The goals, and a row a set: means over splits and classifiers."""
    cells = [cell for cell in result["cells"] if not cell["calibrator"].startswith("thinned")]
    log_loss, brier, mean, prevalence = (
        _means(cells, name) for name in ("log_loss", "brier", "mean", "prevalence")
    )
    rows, kept = [], {"log_loss": 0, "brier": 0, "both": 0, "mean": 0}
    for name in log_loss:
        peers = [f"scikit-learn, {method}" for method in PEERS]
        better = min(peers, key=log_loss[name].__getitem__)
        ratio = {c: mean[name][c] / prevalence[name][c] for c in mean[name]}
        kept["log_loss"] += log_loss[name]["rareclass"] <= log_loss[name][better]
        kept["brier"] += brier[name]["rareclass"] <= min(brier[name][peer] for peer in peers)
        kept["both"] += brier[name]["rareclass"] <= brier[name][better]
        kept["mean"] += abs(ratio["rareclass"] - 1.0) <= 0.1
        rows.append(
            [
                name,
                *(f"{log_loss[name][c]:.4f}" for c in ("rareclass", *peers)),
                *(f"{brier[name][c]:.4f}" for c in ("rareclass", *peers)),
                *(f"{ratio[c]:.2f}" for c in ("rareclass", AS_IT_COMES)),
                f"{_thinned(result, name):.2f}",
            ]
        )
    head = ["set", *(f"log loss, {c}" for c in ("rareclass", *PEERS))]
    head += [*(f"Brier, {c}" for c in ("rareclass", *PEERS)), "mean / prevalence"]
    head += ["the same, uncalibrated", "the same, thinned"]
    return f"{_goals(kept, log_loss, brier)}\n\n{table(head, rows)}\n\n{_by_calibrator(cells)}"


def _means(cells: list[dict[str, Any]], name: str) -> dict[str, dict[str, float]]:
    """By set and calibrator."""
    found: dict[str, dict[str, list[float]]] = {}
    for cell in cells:
        found.setdefault(cell["set"], {}).setdefault(cell["calibrator"], []).append(cell[name])
    return {s: {c: float(np.mean(v)) for c, v in own.items()} for s, own in found.items()}


def _thinned(result: dict[str, Any], name: str) -> float:
    own = [
        cell["mean"] / cell["prevalence"]
        for cell in result["cells"]
        if cell["set"] == name and cell["calibrator"] == "thinned, rate stated"
    ]
    return float(np.mean(own))


def _goals(kept: dict[str, int], log_loss: Any, brier: Any) -> str:
    """What was to be reached, and what was."""
    n = len(log_loss)

    def at_best(measure: Any) -> float:
        return float(
            np.mean([min(own[f"scikit-learn, {m}"] for m in PEERS) for own in measure.values()])
        )

    def ours(measure: Any) -> float:
        return float(np.mean([own["rareclass"] for own in measure.values()]))

    return "\n".join(
        [
            f"- Mean probability within 10 percent of the prevalence: {kept['mean']} of {n} sets.",
            f"- Log loss no worse than scikit-learn's at its better setting: {kept['log_loss']} of "
            f"{n} sets; on the mean {ours(log_loss):.4f} against {at_best(log_loss):.4f}.",
            f"- Brier score no worse than scikit-learn's at the setting of better log loss: "
            f"{kept['both']} of {n} sets; at the setting of better Brier score: {kept['brier']} of "
            f"{n}, on the mean {ours(brier):.4f} against {at_best(brier):.4f}.",
        ]
    )


def _by_calibrator(cells: list[dict[str, Any]]) -> str:
    """Means over all sets, by classifier and calibrator."""
    rows = []
    for classifier in dict.fromkeys(cell["classifier"] for cell in cells):
        for calibrator in dict.fromkeys(cell["calibrator"] for cell in cells):
            own = [
                c for c in cells if (c["classifier"], c["calibrator"]) == (classifier, calibrator)
            ]
            figures = [np.mean([c[name] for c in own]) for name in ("log_loss", "brier", "mean")]
            truth = np.mean([c["prevalence"] for c in own])
            rows.append([classifier, calibrator, *(f"{f:.4f}" for f in figures), f"{truth:.4f}"])
    return table(
        ["classifier", "calibrator", "log loss", "Brier", "mean probability", "prevalence"], rows
    )


if __name__ == "__main__":
    sys.exit(command("calibration", __doc__, measure, render, 2))
