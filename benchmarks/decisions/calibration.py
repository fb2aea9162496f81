"""Probabilities on real sets: `CalibratedRanker` beside scikit-learn's `CalibratedClassifierCV`.

On the 14 sets of Table 4, split two thirds to one third, four classifiers that balance the classes
are calibrated by both on the same five folds. Then the majority of the training rows is thinned
to five rows a rare one, and `majority_sampling_rate` says so. Each fit is made once, whoever asks
for it.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import StratifiedKFold

from benchmarks.paper_tables.protocol import data_folder
from benchmarks.tabular.preparation import standardised
from benchmarks.tabular.sets import _TABLE4_SHAPES, load, split
from rareclass.decide import CalibratedRanker

FOLDS = 5
PER_RARE = 5  # majority rows kept for each rare one in thinned sets
SETS = tuple(_TABLE4_SHAPES)
METHODS = ("auto", "beta", "isotonic", "logistic", "venn_abers")
PEERS = ("sigmoid", "isotonic")


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
        """The model's."""
        return np.asarray(self.model_.predict_proba(X))


def calibrators(estimator: Any, seed: int, full: bool) -> dict[str, Any]:
    """What is measured, unfitted, by name."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    ours: dict[str, Any] = {}
    for method in METHODS if full else ("auto",):
        for ensemble in (True, False):
            name = f"{method}, {'folds' if ensemble else 'refit'}"
            ours[name] = CalibratedRanker(estimator, method, folds, ensemble)
    peers = {
        f"scikit-learn, {method}": CalibratedClassifierCV(estimator, method=method, cv=folds)
        for method in PEERS
    }
    return {"as it comes": estimator, **ours, **peers}


def measure(draws: int = 2, seed: int = 0, full: bool = True) -> dict[str, Any]:
    """Log loss, Brier score and mean probability of every calibrator: one row a set and split."""
    folder = data_folder()
    if folder is None:
        raise SystemExit("no data folder; name it with RARECLASS_DATA")
    cells: list[dict[str, Any]] = []
    for name in SETS:
        rows = load(name, folder)
        for draw in range(seed, seed + draws):
            train, test = split(rows, draw)
            prepare = standardised()
            X = np.ascontiguousarray(prepare.fit_transform(rows.frame[train]), dtype=np.float64)
            T = np.ascontiguousarray(prepare.transform(rows.frame[test]), dtype=np.float64)
            about = {"set": name, "split": draw, "rare": int(rows.y[train].sum())}
            cells += _of_split(about, X, rows.y[train], T, rows.y[test], draw, full)
            cells += _of_thinned(about, X, rows.y[train], T, rows.y[test], draw)
    return {"cells": cells, "draws": draws, "seed": seed}


def _of_split(
    about: dict[str, Any], X: Any, y: Any, T: Any, truth: Any, seed: int, full: bool
) -> list[dict[str, Any]]:
    cells = []
    for classifier, build in CLASSIFIERS.items():
        Remembered.fits.clear()
        for calibrator, model in calibrators(Remembered(build(seed)), seed, full).items():
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
