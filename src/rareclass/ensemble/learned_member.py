"""A setting of a member once learned: its function, and where its scores stand."""

from typing import Any

import numpy as np

from rareclass.ensemble.false_positive_rate import FalsePositiveRate
from rareclass.ensemble.score_functions import ScoreFunction


class LearnedMember:
    """What is kept of a member that counts.

    Attributes
    ----------
    name, setting, view : str
    function : ScoreFunction
        The member's score.
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
        function: ScoreFunction,
        scale: FalsePositiveRate,
        weight: float,
    ) -> None:
        self.name, self.setting, self.view = name, setting, view
        self.function, self.scale, self.weight = function, scale, weight

    def rarity(self, X: Any, n_jobs: int | None) -> np.ndarray:
        """``-ln F`` of encoded rows, F their estimated false-positive rate by this member."""
        return -self.scale(self.function.scores(X, n_jobs))
