"""A setting of a member once learned: its function, and where its scores stand."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rareclass.ensemble.false_positive_rate import FalsePositiveRate
from rareclass.ensemble.functions.score_function import ScoreFunction


class LearnedMember:
    """What is kept of a member that counts.

    Attributes
    ----------
    name, setting, view : str
    functions : list of ScoreFunction
        Their mean is the member's score.
    scale : FalsePositiveRate
        Of the member's held-out scores.
    weight : float
        Its share of the combination.
    """

    def __init__(
        self,
        name: str,
        setting: str,
        view: str,
        functions: Sequence[ScoreFunction],
        scale: FalsePositiveRate,
        weight: float,
    ) -> None:
        self.name, self.setting, self.view = name, setting, view
        self.functions, self.scale, self.weight = list(functions), scale, weight

    def rarity(self, X: Any, n_jobs: int | None) -> np.ndarray:
        """``-ln F`` of encoded rows, F their estimated false-positive rate by this member."""
        scores = np.mean([function.scores(X, n_jobs) for function in self.functions], axis=0)
        return -self.scale(scores)


def merged(functions: Sequence[ScoreFunction]) -> ScoreFunction:
    """The mean of functions of one kind."""
    return functions[0] if len(functions) == 1 else type(functions[0]).mean_of(functions)
