"""Section 4.2 of Khalid, Ray and Chitsaz (2016): scaling, folds, choice of the parameter, scores.

The paper says only that "the datasets are scaled similarly". Its figures say how: each row to unit
length, features as published (``unit``). With that the six learners are 0.013 from their printed
AUC on the mean over six small sets; with features in [-1, 1] (``range``) 0.077, standardised
(``standard``) 0.078 (docs/decisions/0007).

A run draws at most 8,000 rows (2,000 of text) in a random order and makes five folds of them; each
is the test fold once. C or eta is chosen by the AUC of a 3-fold cross-validation within the other
four, where a learner passes over its rows once. Folds are stratified: the paper does not say, and
glass has 29 positive rows.
"""

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import StratifiedKFold

from benchmarks.paper_tables import cbr_sets
from benchmarks.paper_tables.cbr_methods import METHODS
from benchmarks.paper_tables.fits import Fit, Run
from benchmarks.paper_tables.protocol import Rows, Standardiser
from rareclass.metrics import accuracy_at_optroc, roc_auc

FOLDS, CHOICE_FOLDS = 5, 3
MOST_ROWS, MOST_TEXT_ROWS = 8000, 2000
LARGEST_POWER = 10  # of the grid 2^-10 .. 2^10
# Of a run; the step is the distance of the powers of two, 1 in the paper.
FIELDS = ("set", "method", "scaling", "step", "run")

Scale = Callable[[Any], Any]


def grid(step: int) -> np.ndarray:
    """2^-10, 2^(step - 10), .., 2^10."""
    return 2.0 ** np.arange(-LARGEST_POWER, LARGEST_POWER + 1, step)


def perform(run: Run) -> dict[str, Any]:
    """Figures of a run: one entry a fold."""
    name, method, number = (run.about[field] for field in ("set", "method", "run"))
    assert run.folder is not None
    rng = np.random.default_rng(number)
    most = MOST_TEXT_ROWS if name in cbr_sets.TEXT else MOST_ROWS
    rows = cbr_sets.drawn(cbr_sets.load(name, run.folder), most, rng)
    _load_compiled(method, sparse.issparse(rows.X))
    found: dict[str, Any] = {"auc": [], "accuracy": [], "log2_param": [], "fit_ms": []}
    start = time.perf_counter()
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=number)
    for train, test in folds.split(rows.X, rows.y):
        fold = _fold(run.about, rows, rng.permutation(train), test)
        for key, value in fold.items():
            found[key].append(value)
    return found | {"seconds": round(time.perf_counter() - start, 3)}


def scaler(X: Any, scaling: str) -> Scale:
    """The scaling of these rows, to be used on them and on others. Text is left as it is."""
    if sparse.issparse(X):
        return lambda Z: Z
    return SCALINGS[scaling](X)


def choose(method: str, X: Any, y: np.ndarray, params: np.ndarray, seed: int) -> float:
    """The parameter of greatest mean AUC over three folds; of equals the smallest."""
    total = np.zeros(len(params))
    folds = StratifiedKFold(CHOICE_FOLDS, shuffle=True, random_state=seed)
    for train, held in folds.split(X, y):
        rng = np.random.default_rng(seed)
        order = rng.permutation(train)
        X_train, X_held = X[order], X[held]
        for k, param in enumerate(params):
            model = METHODS[method](param, seed).fit(X_train, y[order])
            total[k] += roc_auc(y[held], scores(model, X_held))
    return float(params[np.argmax(total)])


def scores(model: Any, X: Any) -> np.ndarray:
    """Scores of the rows of X, higher for y = 1.

    A learning rate that made the weights overflow has learned nothing: all its rows score alike.
    """
    found = model.score_samples(X)
    return found if np.isfinite(found).all() else np.zeros(len(found))


def _fold(about: Fit, rows: Rows, train: np.ndarray, test: np.ndarray) -> dict[str, float]:
    method, number = about["method"], about["run"]
    scale = scaler(rows.X[train], about["scaling"])
    X, y = scale(rows.X[train]), rows.y[train]
    param = choose(method, X, y, grid(about["step"]), number)
    model = METHODS[method](param, number)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    found = scores(model, scale(rows.X[test]))
    return {
        "auc": round(roc_auc(rows.y[test], found), 6),
        "accuracy": round(accuracy_at_optroc(rows.y[test], found), 6),
        "log2_param": round(np.log2(param)),
        "fit_ms": round(1000.0 * seconds, 3),
    }


def _to_range(X: np.ndarray) -> Scale:
    """Each feature to [-1, 1], as the LibSVM page has its sets; a constant one to -1."""
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return lambda Z: 2.0 * (Z - low) / width - 1.0


def _to_unit_rows(X: np.ndarray) -> Scale:
    """Each row to length 1, its features as they are."""
    return lambda Z: Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-300)


SCALINGS: dict[str, Callable[[np.ndarray], Scale]] = {
    "unit": _to_unit_rows,
    "range": _to_range,
    "standard": Standardiser.of,
}


@cache
def _load_compiled(method: str, is_sparse: bool) -> None:
    """Compiled code is loaded, not timed."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = np.arange(20) % 2
    METHODS[method](1.0, 0).fit(sparse.csr_array(X) if is_sparse else X, y)
