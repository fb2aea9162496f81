"""RankSVM, RANK-RND and RankRC: problem (13) with all, m+ random, or the rare rows as landmarks."""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from benchmarks.paper_tables.path import FittedPath, Params
from rareclass import RankRC, RankRCCV, rankrc_path

LANDMARKS = {"RankSVM": "all", "RANK-RND": "random", "RankRC": "rare"}


def _fit(X: np.ndarray, y: np.ndarray, lams: Params, seed: int, landmarks: str) -> FittedPath:
    """Fit along lam, large to small, each warm-started from the one before."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        models = rankrc_path(X, y, lams, landmarks=landmarks, random_state=seed)
    return _as_path(models, lams, _count(caught))


def cross_validated(
    name: str, X: np.ndarray, y: np.ndarray, lams: Params, folds: StratifiedKFold, seed: int
) -> FittedPath:
    """The library's own choice of lam by folds, refitted on all rows: a path of one."""
    search = RankRCCV(
        lams=lams,
        cv=folds,
        equal_within=0,
        landmarks=LANDMARKS[name],
        random_state=seed,
        verbose=False,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        search.fit(X, y)
    return _as_path([search.best_estimator_], [search.best_lam_], _count(caught))


def _as_path(models: Sequence[RankRC], lams: Params, stopped: int) -> FittedPath:
    def scores(rows: np.ndarray, indices: Sequence[int]) -> np.ndarray:
        return np.column_stack([models[index].score_samples(rows) for index in indices])

    sizes = [int(np.count_nonzero(model.dual_coef_)) for model in models]
    return FittedPath(list(lams), scores, sizes, stopped)


def _count(caught: Sequence[Any]) -> int:
    """Fits that stopped short; any other warning is shown."""
    short = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    for other in caught:
        if not issubclass(other.category, ConvergenceWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    return len(short)


rank_svm = partial(_fit, landmarks="all")
rank_rnd = partial(_fit, landmarks="random")
rank_rc = partial(_fit, landmarks="rare")
