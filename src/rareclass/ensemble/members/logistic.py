"""Logistic regression as a member: on quantiles, and on indicators of every value."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rareclass.ensemble.functions.linear_function import LinearFunction
from rareclass.ensemble.functions.score_function import ScoreFunction
from rareclass.ensemble.members.member import AnyTable, CrossFitted, EncodedFolds, Size, each_fold


@dataclass(frozen=True)
class LogisticMember(AnyTable):
    """Logistic regression with a ridge, for several strengths of it."""

    name: ClassVar[str]
    view: ClassVar[str]
    package: ClassVar[str | None] = None

    strengths: tuple[float, ...] = (0.01, 0.1, 1.0)  # C of scikit-learn
    max_iter: int = 200

    def cost(self, size: Size) -> float:
        """Products with the rows, a number of times."""
        return float(size.n_rows) * (1 + size.n_features) * len(self.strengths)

    def cross_fit(self, rows: EncodedFolds) -> list[CrossFitted]:
        """Every strength on every fold, from the strongest ridge to the weakest."""
        held_out = np.full((len(rows.fold), len(self.strengths)), np.nan)
        functions: list[list[ScoreFunction]] = [[] for _ in self.strengths]
        for _, tested in each_fold(rows):
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
