"""Linear members: logistic regression for several strengths of its ridge, and MIBC."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rareclass.ensemble.members.member import CrossFitted, EncodedFolds, FoldByFold, Member, Size
from rareclass.ensemble.score_functions import LinearFunction, ScoreFunction


@dataclass(frozen=True)
class LogisticMember(Member):
    """Logistic regression with a ridge, for several strengths of the ridge."""

    strengths: tuple[float, ...] = (0.01, 0.1, 1.0)  # C of scikit-learn
    max_iter: int = 200

    def cost(self, size: Size) -> float:
        """Products with the rows, a number of times."""
        return float(size.n_rows) * (1 + size.n_features) * len(self.strengths)

    def cross_fit(self, rows: EncodedFolds) -> list[CrossFitted]:
        """Learn every strength on every fold, from the strongest ridge to the weakest."""
        held_out = np.full((len(rows.fold), len(self.strengths)), np.nan)
        functions: list[list[ScoreFunction]] = [[] for _ in self.strengths]
        for _, tested in rows.each_fold():
            train = np.flatnonzero(~tested)
            path = self._path(rows.X[train], rows.is_rare[train], rows.weights(train))
            for k, function in enumerate(path):
                held_out[tested, k] = function.scores(rows.X[np.flatnonzero(tested)])
                functions[k].append(function)
        return [
            CrossFitted(f"C {C:g}", held_out[:, k], functions[k])
            for k, C in enumerate(self.strengths)
        ]

    def _path(self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None) -> list[LinearFunction]:
        if not X.shape[1]:  # a view may hold nothing of a small table
            return [LinearFunction(np.zeros(0))] * len(self.strengths)
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(max_iter=self.max_iter, warm_start=True, tol=1e-3)
        path = []
        for C in self.strengths:
            model.set_params(C=C).fit(X, is_rare, sample_weight=weight)
            path.append(LinearFunction(model.coef_[0].copy(), float(model.intercept_[0])))
        return path


class LogisticOnQuantiles(LogisticMember):
    """Logistic regression on normal quantiles and indicators of the commonest values."""

    name = "logistic regression"
    view = "quantiles"


class LogisticOnIndicators(LogisticMember):
    """Logistic regression on an indicator of every value and of pairs of values."""

    name = "logistic regression on indicators"
    view = "indicators"


@dataclass(frozen=True)
class MomentMember(FoldByFold):
    """MIBC: a linear model of the rare rows and the mean and covariance of the majority."""

    name: ClassVar[str] = "mibc"
    view: ClassVar[str] = "quantiles"

    C: float = 0.1

    def cost(self, size: Size) -> float:
        """One pass for the covariance."""
        return float(size.n_rows) * size.n_features**2

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> LinearFunction:
        """Return MIBC's weights on the rows of a training part."""
        from rareclass.moments import MIBC

        model = MIBC(C=self.C, pos_label=1, n_jobs=n_jobs, random_state=seed)
        model.fit(X, is_rare.astype(int), sample_weight=weight)
        return LinearFunction(np.asarray(model.coef_, dtype=np.float64).ravel())
