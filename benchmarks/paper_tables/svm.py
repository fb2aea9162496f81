"""The four SVM baselines of section 6, with LIBSVM as scikit-learn has it.

The paper's problem ``mean of hinge + lam/2 |w|^2`` over m rows is LIBSVM's with C = 1 / (lam m),
m being the rows it is trained on (2 m+ after undersampling, 2 m- after SMOTE). All four use the
kernel width of the training rows before resampling.

LIBSVM needs very many steps where C is huge and the classes overlap (lam = 2^-20 on a thousand
rows is C = 1000). A fit is stopped after `MAX_ITER` steps and its model is used as it stands;
such fits are counted and reported. The cross-validated choice then decides whether it is any good.
"""

import warnings
from collections.abc import Sequence

import numpy as np
from imblearn.over_sampling import SMOTE
from imblearn.under_sampling import RandomUnderSampler
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from benchmarks.paper_tables.path import FittedPath, Params
from benchmarks.paper_tables.protocol import gaussian_gamma

MAX_ITER = 200_000
# Up to here the kernel is computed once for the whole path (8 n^2 bytes); beyond, LIBSVM's cache.
PRECOMPUTED_ROWS = 5000
CACHE_MB = 1000
SCORE_ROWS = 4096


def plain(X: np.ndarray, y: np.ndarray, lams: Params, seed: int) -> FittedPath:
    """SVM: every row counts the same."""
    return _fit_path(X, y, lams, gaussian_gamma(X))


def weighted(X: np.ndarray, y: np.ndarray, lams: Params, seed: int) -> FittedPath:
    """SVM-W: v = m / (2 m+) on rare rows and m / (2 m-) on the others."""
    return _fit_path(X, y, lams, gaussian_gamma(X), class_weight="balanced")


def undersampled(X: np.ndarray, y: np.ndarray, lams: Params, seed: int) -> FittedPath:
    """SVM-RUS: as many random majority rows as there are rare rows."""
    Z, labels = RandomUnderSampler(random_state=seed).fit_resample(X, y)
    return _fit_path(Z, labels, lams, gaussian_gamma(X))


def smote(X: np.ndarray, y: np.ndarray, lams: Params, seed: int) -> FittedPath:
    """SVM-SMT: synthetic rare rows between rare neighbours until the classes are even."""
    Z, labels = SMOTE(random_state=seed).fit_resample(X, y)
    return _fit_path(Z, labels, lams, gaussian_gamma(X))


def _fit_path(
    Z: np.ndarray, labels: np.ndarray, lams: Params, gamma: float, class_weight: str | None = None
) -> FittedPath:
    """One SVM per lam on the rows Z; scores come from one kernel block for all of them."""
    shared = len(Z) <= PRECOMPUTED_ROWS
    data = rbf_kernel(Z, gamma=gamma) if shared else Z
    coef, intercept = np.zeros((len(Z), len(lams))), np.zeros(len(lams))
    stopped = 0
    for column, lam in enumerate(lams):
        model = SVC(
            C=1.0 / (lam * len(Z)),
            kernel="precomputed" if shared else "rbf",
            gamma=gamma,
            class_weight=class_weight,
            cache_size=CACHE_MB,
            max_iter=MAX_ITER,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # counted just below instead
            model.fit(data, labels)
        stopped += int(model.fit_status_ != 0)
        coef[model.support_, column] = model.dual_coef_[0]
        intercept[column] = model.intercept_[0]

    def scores(rows: np.ndarray, indices: Sequence[int]) -> np.ndarray:
        columns = np.asarray(indices)
        used = np.flatnonzero(coef[:, columns].any(axis=1))
        block_scores = [
            rbf_kernel(rows[start : start + SCORE_ROWS], Z[used], gamma=gamma)
            @ coef[np.ix_(used, columns)]
            for start in range(0, len(rows), SCORE_ROWS)
        ]
        return np.concatenate(block_scores) + intercept[columns]

    return FittedPath(list(lams), scores, np.count_nonzero(coef, axis=0).tolist(), stopped)
