"""The methods of section 6 behind one call: fit a path of parameters, score with any of it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.paper_tables import neighbours, ranking, svm, svm_perf
from benchmarks.paper_tables.path import FittedPath, Params
from benchmarks.paper_tables.protocol import FOLDS, LAMS, auc, neighbour_counts

Fit = Callable[[np.ndarray, np.ndarray, Params, int], FittedPath]

# Name -> fit(X, y, parameters, seed). The parameter is k for KNN and lam for all others. 1-NN is
# not a method of the paper: its column KNN looks like it.
METHODS: dict[str, Fit] = {
    "KNN": neighbours.fit,
    "1-NN": neighbours.fit,
    "SVM": svm.plain,
    "SVM-W": svm.weighted,
    "SVM-RUS": svm.undersampled,
    "SVM-SMT": svm.smote,
    "SVM-Perf": svm_perf.fit_path,
    "RankSVM": ranking.rank_svm,
    "RANK-RND": ranking.rank_rnd,
    "RankRC": ranking.rank_rc,
}
RANKING = ("RankSVM", "RANK-RND", "RankRC")


@dataclass(frozen=True)
class Chosen:
    """A method with its parameter chosen: one model and how it came about."""

    path: FittedPath
    index: int
    stopped: int  # fits that reached the iteration cap, over everything that was tried
    tried: tuple[float, ...] = ()  # AUC on the held-out rows at each parameter of the path

    @property
    def param(self) -> float:
        """Chosen k or lam."""
        return float(self.path.params[self.index])

    @property
    def size(self) -> int:
        """Rows that carry the model: support vectors, landmarks, or all rows for KNN."""
        return self.path.sizes[self.index]

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Scores of the rows of X, higher is rarer."""
        return self.path.scores(X, [self.index])[:, 0]


def grid(name: str, n_rows: int) -> np.ndarray:
    """Parameters tried for a method on so many training rows."""
    if name == "1-NN":
        return np.array([1])
    return neighbour_counts(n_rows) if name == "KNN" else LAMS


def choose_on_validation(
    name: str, train: tuple[np.ndarray, np.ndarray], held: tuple[np.ndarray, np.ndarray], seed: int
) -> Chosen:
    """Fit the path on the training rows and keep what ranks the held-out rows best (6.1, 6.3)."""
    X, y = train
    path = METHODS[name](X, y, grid(name, len(X)), seed)
    tried = auc(held[1], path.scores(held[0], range(len(path.params))))
    return Chosen(path, int(np.argmax(tried)), path.stopped, tuple(tried))


def choose_by_folds(name: str, X: np.ndarray, y: np.ndarray, seed: int) -> Chosen:
    """Choose by 10-fold cross-validation, then fit on all rows (section 6.2)."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    if name in RANKING:
        path = ranking.cross_validated(name, X, y, LAMS, folds, seed)
        return Chosen(path, 0, path.stopped)
    smallest_part = len(X) * (FOLDS - 1) // FOLDS
    params = grid(name, smallest_part)
    total, stopped = np.zeros(len(params)), 0
    for train, held in folds.split(X, y):
        path = METHODS[name](X[train], y[train], params, seed)
        total += auc(y[held], path.scores(X[held], range(len(params))))
        stopped += path.stopped
    path = METHODS[name](X, y, [params[np.argmax(total)]], seed)
    return Chosen(path, 0, stopped + path.stopped)
