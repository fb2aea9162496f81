"""Scores of several models on one scale, so that they can be pooled over folds.

The loss of a ranker says nothing of where its scores lie, and the models of two folds may differ by
more than a spread. Two scales keep the order within each model: the mean and deviation of the
majority (`match_majority`), which gives scores that another model could have given, and the
false-positive rate within the fold (`on_scale_of_folds`), which needs no other model.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.errors import ErrorKind

Scores = NDArray[np.float64]


class MajorityScores(NamedTuple):
    """Mean and standard deviation of a model's scores of majority rows."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, scores: Scores, weight: Scores | None = None) -> "MajorityScores":
        """Return the moments of these scores, by weight."""
        mean = float(np.average(scores, weights=weight))
        return cls(mean, float(np.sqrt(np.average((scores - mean) ** 2, weights=weight))))


STANDARD = MajorityScores(0.0, 1.0)


@dataclass(frozen=True)
class ScoreMap:
    """``(score - mean) * stretch + new_mean``: the order is kept. The default changes nothing."""

    mean: float = 0.0
    stretch: float = 1.0
    new_mean: float = 0.0

    def __call__(self, scores: Scores) -> Scores:
        """Return the mapped scores."""
        return (scores - self.mean) * self.stretch + self.new_mean


def match_majority(scores: MajorityScores, like: MajorityScores = STANDARD) -> ScoreMap:
    """Map scores of one model to the mean and deviation that the majority has under another.

    Both moments are of the same rows, or of rows alike. Scores that are all the same, under either
    model, are moved and not stretched.
    """
    spread = min(scores.deviation, like.deviation) > 0.0
    stretch = like.deviation / scores.deviation if spread else 1.0
    return ScoreMap(scores.mean, stretch, like.mean)


def on_scale_of_folds(
    y: NDArray[np.bool_], scores: Scores, folds: ArrayLike, sample_weight: Scores | None = None
) -> Scores:
    r"""Minus the share of the fold's majority that scores higher: comparable across folds.

    The model of each fold scores on a scale of its own, and a threshold on pooled scores would call
    more rows of one fold rare than of another for no better reason than that. With
    :math:`w_j` the weights of the majority rows of the fold of row i,

    .. math:: s'_i = -\frac{\sum_j w_j [s_j > s_i] + \tfrac12 \sum_j w_j [s_j = s_i]}{\sum_j w_j}

    which is minus the false-positive rate of a threshold at :math:`s_i`. The AUC of the pooled
    :math:`s'` is the mean of the folds' AUCs by their rare rows, to within half a majority row;
    the top of the list is measured at the same false-positive rate in every fold.

    `y` says which rows are rare, `folds` has one number or name a row. Shape (n,); O(n log n) time.

    Raises `InputError` where a fold has no majority row of positive weight, naming it.
    """
    fold = np.asarray(folds)
    if fold.shape != y.shape:
        raise ErrorKind.SHAPE.error(
            f"folds has the shape {fold.shape} and y {y.shape}.", "Give one fold a row."
        )
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    scaled = np.empty(len(y))
    for name in np.unique(fold):
        own = fold == name
        majority = own & ~y & (weight > 0)
        if not majority.any():
            raise ErrorKind.TOO_FEW_ROWS.error(
                f"fold {name} has no majority row: its scores have no scale.",
                "Use fewer folds, or those of rareclass.folds.",
                value=name,
            )
        order = np.argsort(scores[majority], kind="stable")
        sorted_scores = scores[majority][order]
        below = np.append(0.0, np.cumsum(weight[majority][order]))
        left = below[np.searchsorted(sorted_scores, scores[own], "left")]
        right = below[np.searchsorted(sorted_scores, scores[own], "right")]
        scaled[own] = 0.5 * (left + right) / below[-1] - 1.0
    return scaled
