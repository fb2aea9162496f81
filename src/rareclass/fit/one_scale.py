"""Held-out scores of models of a part of the rows, as of the model that is saved."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rareclass.model.decision_rule import ScoredRows

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Moved:
    """``score * stretch + shift``: the order is kept."""

    stretch: float = 1.0
    shift: float = 0.0

    def __call__(self, scores: Scores) -> Scores:
        """Return the scores moved."""
        return scores * self.stretch + self.shift


def between(of_part: Scores, of_whole: Scores, weight: NDArray[np.float64] | None) -> Moved:
    """What moves scores of one model to where those of another lie.

    Both scored the same majority rows. Pairs of rows say nothing of where a ranker's scores lie:
    they are moved and stretched to the mean and deviation that the majority has under the other
    model.
    """
    (mean, deviation), (like_mean, like_deviation) = (
        _mean_and_deviation(scores, weight) for scores in (of_part, of_whole)
    )
    stretch = like_deviation / deviation if min(deviation, like_deviation) > 0.0 else 1.0
    return Moved(stretch, like_mean - mean * stretch)


def _mean_and_deviation(scores: Scores, weight: NDArray[np.float64] | None) -> tuple[float, float]:
    mean = float(np.average(scores, weights=weight))
    return mean, float(np.sqrt(np.average((scores - mean) ** 2, weights=weight)))


def pooled(parts: Sequence[tuple[ScoredRows, Callable[[Scores], Scores]]]) -> ScoredRows:
    """The rows of all parts, each with its scores moved, in the order of the table."""
    rows = [part for part, _ in parts]
    places = np.concatenate([part.places for part in rows])
    order = np.argsort(places, kind="stable")
    weights = [part.weight for part in rows if part.weight is not None]
    weight = np.concatenate(weights)[order] if weights else None
    scores = np.concatenate([move(part.scores) for part, move in parts])
    return ScoredRows(
        np.concatenate([part.y for part in rows])[order], scores[order], weight, places[order]
    )
