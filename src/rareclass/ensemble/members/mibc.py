"""MIBC as a member: the majority as two moments."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rareclass.ensemble.functions.linear_function import LinearFunction
from rareclass.ensemble.members.member import FoldByFold, Size


@dataclass(frozen=True)
class MomentMember(FoldByFold):
    """A linear model of the rare rows and the mean and covariance of the rest."""

    name: ClassVar[str] = "mibc"
    view: ClassVar[str] = "quantiles"
    package: ClassVar[str | None] = None

    C: float = 0.1

    def cost(self, size: Size) -> float:
        """One pass for the covariance."""
        return float(size.n_rows) * size.n_features**2

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> LinearFunction:
        """MIBC's weights on the rows of a training part."""
        from rareclass.moments import MIBC

        model = MIBC(C=self.C, pos_label=1, n_jobs=n_jobs, random_state=seed)
        model.fit(X, is_rare.astype(int), sample_weight=weight)
        return LinearFunction(np.asarray(model.coef_, dtype=np.float64).ravel())
