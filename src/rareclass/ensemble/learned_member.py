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

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Files made before 0.1.0 was released may hold several functions, whose mean counts."""
        functions = state.pop("functions", None)
        if functions is not None:
            state["function"] = merged(functions)
        self.__dict__.update(state)

    def rarity(self, X: Any, n_jobs: int | None) -> np.ndarray:
        """``-ln F`` of encoded rows, F their estimated false-positive rate by this member."""
        return -self.scale(self.function.scores(X, n_jobs))


def merged(functions: Sequence[ScoreFunction]) -> ScoreFunction:
    """The mean of functions of one kind."""
    return functions[0] if len(functions) == 1 else type(functions[0]).mean_of(functions)
