"""Two maps at once: the mean of their probabilities."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from rareclass.decide.calibration.beta import BetaMap
from rareclass.decide.calibration.dealing import dealt
from rareclass.decide.calibration.isotonic import IsotonicMap
from rareclass.decide.calibration.isotonic_of_parts import IsotonicOfParts
from rareclass.decide.calibration.levels import Levels, coarser, read_levels
from rareclass.decide.calibration.score_to_probability import ScoreToProbability
from rareclass.metrics.scored_classes import FloatArray

# Fewer rare rows do not tell the maps apart: each counts one half (docs/decisions/0030).
_ENOUGH_RARE = 20
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
# Levels that the share is chosen on, those of rare rows aside.
_MOST_LEVELS = 4096


@dataclass(frozen=True)
class PooledMap(ScoreToProbability):
    r"""The automatic choice, :math:`p = (1 - v) p_{beta}(s) + v\, p_{isotonic}(s)`.

    Beta calibration needs few rare rows and may have the wrong shape; isotonic regression has any
    shape and needs many. The share v is the one of 0, 1/4, 1/2, 3/4 and 1 with the least
    log loss in cross-validation over the scored rows, and 1/2 where fewer than 20 rare rows cannot
    tell (docs/decisions/0030). Folds are dealt out copy by copy, always in the same way.

    Attributes
    ----------
    beta : BetaMap
    isotonic : IsotonicMap
    isotonic_share : float
        v.
    parts : IsotonicOfParts or None
        Where there are some, p is the mean of the above and of theirs: for scores of several models
        whose probabilities are averaged, which lie farther from 0 and 1 than they should.
    """

    beta: BetaMap
    isotonic: IsotonicMap
    isotonic_share: float
    parts: IsotonicOfParts | None = None

    @classmethod
    def fit(cls, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from scored rows: y true where rare, weights as copies. O(n log n)."""
        return cls.of(read_levels(y, scores, sample_weight))

    @classmethod
    def of(cls, levels: Levels) -> Self:
        """`fit` of rows that were reduced to their levels."""
        return cls(BetaMap.of(levels), IsotonicMap.of(levels), _isotonic_share(levels))

    @classmethod
    def for_several(cls, levels: Levels) -> Self:
        """The map for the mean of several models, with `parts`."""
        parts = IsotonicOfParts.of(coarser(levels, _MOST_LEVELS))
        return replace(cls.of(levels), parts=parts)

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p / (1 - p) of scores."""
        chosen = _pooled(
            self.beta.log_odds(scores), self.isotonic.log_odds(scores), self.isotonic_share
        )
        if self.parts is None:
            return chosen
        # The other half of the mean: the same factor in both terms.
        rare, rest = self.parts.log_probabilities(scores)
        return np.logaddexp(_log_p(chosen), rare) - np.logaddexp(_log_p(-chosen), rest)


def _pooled(first: FloatArray, second: FloatArray, share: float) -> FloatArray:
    """Log-odds of the mean of two probabilities, to all digits near 0 and 1."""
    if share in (0.0, 1.0):
        return second if share else first
    rare = np.logaddexp(np.log1p(-share) + _log_p(first), np.log(share) + _log_p(second))
    rest = np.logaddexp(np.log1p(-share) + _log_p(-first), np.log(share) + _log_p(-second))
    return rare - rest


def _log_p(log_odds: FloatArray) -> FloatArray:
    return -np.logaddexp(0.0, -log_odds)


def _isotonic_share(levels: Levels) -> float:
    if min(levels.n_rare, levels.n_majority) < _ENOUGH_RARE or levels.is_constant:
        return 0.5
    levels = coarser(levels, _MOST_LEVELS)
    rest = levels.total - levels.rare
    losses = np.zeros(len(_SHARES))
    for rare_out, rest_out in zip(dealt(levels.rare), dealt(rest), strict=True):
        kept = _kept(levels.scores, levels.rare - rare_out, rest - rest_out)
        first = BetaMap.of(kept).log_odds(levels.scores)
        second = IsotonicMap.of(kept).log_odds(levels.scores)
        for k, share in enumerate(_SHARES):
            log_odds = _pooled(first, second, share)
            losses[k] -= rare_out @ _log_p(log_odds) + rest_out @ _log_p(-log_odds)
    return _SHARES[int(losses.argmin())]


def _kept(scores: FloatArray, rare: FloatArray, rest: FloatArray) -> Levels:
    """The levels with weight left; what rounding leaves of a copy is none."""
    rare, rest = (np.where(weight > 1e-9, weight, 0.0) for weight in (rare, rest))
    there = rare + rest > 0.0
    return Levels(scores[there], rare[there], (rare + rest)[there])
