"""Venn-Abers prediction: two probabilities, of which one is calibrated, whatever the scores."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from rareclass.decide.calibration.levels import Levels, coarser, read_levels
from rareclass.decide.calibration.score_to_probability import ScoreToProbability
from rareclass.metrics.scored_classes import FloatArray, check_scores

# Levels of majority rows alone that are kept apart, at most: finer ones say the same.
_MOST_LEVELS = 4096


class ProbabilityInterval(NamedTuple):
    """Bounds of the probability of the rare class, each of shape (n_rows,)."""

    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class VennAbersMap(ScoreToProbability):
    r"""Inductive Venn-Abers predictor.

    Of a new row, :math:`p_0` is what isotonic regression says of it once it has joined the scored
    rows as a majority row, :math:`p_1` once it has joined as a rare one. If new rows are drawn as
    the scored ones were, that of the two which goes by the true label is calibrated, exactly and
    with any number of rows. Their distance says how little the scored rows tell here; it is no
    confidence interval. The point between is :math:`p = p_1 / (1 - p_0 + p_1)`, which regrets least
    log loss.

    Attributes
    ----------
    scores : ndarray of shape (n_levels,)
        Increasing.
    p0, p1 : ndarray of shape (n_levels + 1,)
        Entry k: a score with k levels at or below it for p0, below it for p1.

    Notes
    -----
    Fit: O(n log n). A score: O(log n). Neighbouring levels of majority rows alone are joined where
    there are more than some thousands.

    References
    ----------
    Vovk, Petej, Fedorova (2015), "Large-scale probabilistic predictors with and without guarantees
    of validity".

    Examples
    --------
    >>> p = VennAbersMap.fit([0, 0, 0, 1, 1], [0.0, 1.0, 2.0, 3.0, 4.0])
    >>> low, high = p.interval([0.0, 4.0])
    >>> low.round(2), high.round(2)
    (array([0.  , 0.67]), array([0.25, 1.  ]))
    """

    scores: FloatArray
    p0: FloatArray
    p1: FloatArray

    @classmethod
    def fit(cls, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from scored rows: y true where rare, weights as copies. O(n log n)."""
        return cls.of(read_levels(y, scores, sample_weight))

    @classmethod
    def of(cls, levels: Levels) -> Self:
        """`fit` of rows that were reduced to their levels."""
        # Not at the top: numba takes longer to load than all else here.
        from rareclass.decide.calibration._venn_abers_jit import with_one_rare_row

        levels = coarser(levels, _MOST_LEVELS)
        rest = levels.total - levels.rare
        high = with_one_rare_row(levels.rare, levels.total)
        # One more majority row is one more rare row of the labels and the order turned round.
        low = 1.0 - with_one_rare_row(rest[::-1].copy(), levels.total[::-1].copy())[::-1]
        return cls(levels.scores, low, high)

    def interval(self, scores: ArrayLike) -> ProbabilityInterval:
        """p0 and p1 of each score; p0 may be 0 and p1 may be 1."""
        value, _ = check_scores(scores, None)
        at_or_below = np.searchsorted(self.scores, value, side="right")
        below = np.searchsorted(self.scores, value, side="left")
        return ProbabilityInterval(self.p0[at_or_below], self.p1[below])

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p / (1 - p) of the point between."""
        low, high = self.interval(scores)
        return np.log(high) - np.log1p(-low)
