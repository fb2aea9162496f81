"""The calibration that an estimator keeps: a map from scores to probabilities, and a prevalence.

`Calibration` is for two classes, `LevelCalibration` for ordered levels, `at_prevalence` moves any
probabilities to another base rate. `PooledMap`, the mean of beta and isotonic calibration, is the
automatic choice among the maps.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rareclass.decide.calibration_map import (
    BetaMap,
    CalibrationMap,
    IsotonicMap,
    IsotonicOfParts,
    LogisticMap,
    ScoreLevels,
    coarser,
    dealt,
    read_score_levels,
    to_probability,
)
from rareclass.errors import ErrorKind
from rareclass.metrics.scored_classes import FloatArray, check_scores
from rareclass.parameters import check_choice, check_number, check_prevalence

__all__ = [
    "METHODS",
    "BetaMap",
    "Calibration",
    "IsotonicMap",
    "LogisticMap",
    "PooledMap",
    "at_prevalence",
]

# Levels of majority rows alone that are kept apart: millions say no more.
_MOST_LEVELS = 32_768
# Fewer rare rows do not tell the maps apart: each counts one half (docs/decisions/0030).
_ENOUGH_RARE = 20
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
# Levels that the share is chosen on, those of rare rows aside.
_MOST_LEVELS_POOLED = 4096


@dataclass(frozen=True)
class PooledMap(CalibrationMap):
    r"""The automatic choice, :math:`p = (1 - v) p_{beta}(s) + v\, p_{isotonic}(s)`.

    Beta calibration needs few rare rows and may have the wrong shape; isotonic regression has any
    shape and needs many. The share v is the one of 0, 1/4, 1/2, 3/4 and 1 with the least
    log loss in cross-validation over the scored rows, and 1/2 where fewer than 20 rare rows cannot
    tell (docs/decisions/0030). Folds are dealt out copy by copy, always in the same way.
    """

    beta: BetaMap
    isotonic: IsotonicMap
    isotonic_share: float  # v
    # Where there are some, p is the mean of the above and of theirs: for scores of several models
    # whose probabilities are averaged, which lie farther from 0 and 1 than they should
    parts: IsotonicOfParts | None = None

    @classmethod
    def of(cls, levels: ScoreLevels) -> Self:
        """Learn from rows that were reduced to their levels."""
        return cls(BetaMap.of(levels), IsotonicMap.of(levels), _isotonic_share(levels))

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


def _isotonic_share(levels: ScoreLevels) -> float:
    if min(levels.sums()) < _ENOUGH_RARE or len(levels.scores) == 1:
        return 0.5
    levels = coarser(levels, _MOST_LEVELS_POOLED)
    rest = levels.total - levels.rare
    losses = np.zeros(len(_SHARES))
    for rare_out, rest_out in zip(dealt(levels.rare), dealt(rest), strict=True):
        left = np.array([levels.rare - rare_out, rest - rest_out])
        left[left <= 1e-9] = 0.0  # what rounding leaves of a copy is none
        rare, total = left[0], left.sum(axis=0)
        there = total > 0.0
        kept = ScoreLevels(levels.scores[there], rare[there], total[there])
        first = BetaMap.of(kept).log_odds(levels.scores)
        second = IsotonicMap.of(kept).log_odds(levels.scores)
        for k, share in enumerate(_SHARES):
            log_odds = _pooled(first, second, share)
            losses[k] -= rare_out @ _log_p(log_odds) + rest_out @ _log_p(-log_odds)
    return _SHARES[int(losses.argmin())]


METHODS: dict[str, type[CalibrationMap]] = {
    "auto": PooledMap,
    "isotonic": IsotonicMap,
    "beta": BetaMap,
    "logistic": LogisticMap,
}


@dataclass(frozen=True)
class Calibration:
    """Probabilities of the rare class from scores, at a prevalence that can be changed.

    A map of `METHODS`, whose log-odds are moved so that the mean probability of the rows that it
    was fitted on is their prevalence, and from there to another prevalence where one is stated.

    Attributes
    ----------
    method : str
    map : CalibrationMap
    centring : float
        What the map's log-odds are moved by.
    trained_prevalence : float
        Share of rare rows, by weight, in the rows that the map was fitted on.
    shift : float
        What log-odds are moved by for another prevalence; see `at_prevalence`.

    Examples
    --------
    >>> y, scores = [0, 0, 1, 0, 1, 1], [-3.0, -1.0, -0.5, 0.5, 1.0, 3.0]
    >>> p = Calibration.fit(y, scores, method="logistic")
    >>> float(p(scores).mean().round(6)), p.trained_prevalence
    (0.5, 0.5)
    >>> bool(p.at(prevalence=0.01)(scores).max() < 0.1)
    True
    """

    method: str
    map: CalibrationMap
    centring: float
    trained_prevalence: float
    shift: float = 0.0

    @classmethod
    def fit(
        cls,
        y: ArrayLike,
        scores: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        method: str = "auto",
        several_models: bool = False,
    ) -> Self:
        """Learn from scores of rows that the scoring model was not learned from.

        Where all scores are equal, every probability is the prevalence. O(n log n) time, O(n)
        memory.

        Parameters
        ----------
        y : array-like of shape (n,)
            True or 1 where the row is rare.
        scores : array-like of shape (n,)
            Finite; higher means rarer. Scores that all lie in [0, 1] are read as probabilities.
        sample_weight : array-like of shape (n,), optional
            Whole numbers are copies; of others only ratios count.
        method : {"auto", "isotonic", "beta", "logistic"}, default "auto"
        several_models : bool, default False
            True for the mean of the probabilities that several models give a row, each of which
            made a part of these scores; "auto" has a map of its own for that.

        Raises
        ------
        ValueError
            On labels other than 0 and 1, one class, scores that are not finite, weights below zero
            or all zero, and a method that there is not.
        """
        check_choice("method", method, tuple(METHODS))
        from scipy.optimize import brentq

        levels = coarser(read_score_levels(y, scores, sample_weight), _MOST_LEVELS)
        found = METHODS[method].of(levels)
        if several_models and isinstance(found, PooledMap):
            parts = IsotonicOfParts.of(coarser(levels, _MOST_LEVELS_POOLED))
            found = replace(found, parts=parts)
        log_odds, weight = found.log_odds(levels.scores), levels.total / levels.total.sum()
        prevalence = levels.prevalence

        def excess(move: float) -> float:
            return float(weight @ to_probability(log_odds + move)) - prevalence

        # Platt's targets are at most one row in so many away: far less than this.
        low, high = -5.0, 5.0
        is_between = excess(low) < 0.0 < excess(high)
        centring = float(brentq(excess, low, high)) if is_between else 0.0
        return cls(method, found, centring, prevalence)

    def at(self, prevalence: Any = None, majority_sampling_rate: Any = None) -> Self:
        """Return the calibration at another prevalence; at that of training without one.

        Parameters and errors as in `at_prevalence`.
        """
        shift = log_odds_shift(self.trained_prevalence, prevalence, majority_sampling_rate)
        return replace(self, shift=shift)

    @property
    def prevalence(self) -> float:
        """Share of rare rows that probabilities are of: as trained, or as stated by `at`."""
        return float(to_probability(np.array(_logit(self.trained_prevalence) + self.shift)))

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """Probability of the rare class of each score, strictly between 0 and 1."""
        return to_probability(self.log_odds(scores))

    def log_odds(self, scores: ArrayLike) -> FloatArray:
        """ln p / (1 - p) of each score."""
        value, _ = check_scores(scores, None)
        return self.map.log_odds(value) + self.centring + self.shift


@dataclass(frozen=True)
class LevelCalibration:
    r"""Probabilities of K ordered levels from scores.

    Each of the K - 1 maps gives :math:`P(y > k)` from the score. They are learned one by one, and
    may cross where rows are few: a row's are made non-increasing in k, half way between the least
    change that only lowers them and the least that only raises them. Level k then has
    :math:`P(y > k - 1) - P(y > k)` (Frank and Hall 2001).
    """

    above: list[Calibration | float]  # a number where no row lies on one side: 0 or 1

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """Probability of each level, of shape (n, K); rows sum to 1."""
        values = np.asarray(scores, dtype=np.float64)
        parts = [p(values) if callable(p) else np.full_like(values, p) for p in self.above]
        exceeded = np.column_stack(parts)
        lowered = np.minimum.accumulate(exceeded, axis=1)
        raised = np.maximum.accumulate(exceeded[:, ::-1], axis=1)[:, ::-1]
        ends = np.ones((len(values), 1))
        exceeded = np.hstack([ends, 0.5 * (lowered + raised), 0.0 * ends])
        return exceeded[:, :-1] - exceeded[:, 1:]


def log_odds_shift(
    trained: float, prevalence: Any = None, majority_sampling_rate: Any = None
) -> float:
    r"""Shift of the log-odds from the base rate of the training rows to the true one.

    With `prevalence` :math:`\pi` it is :math:`\ln\frac{\pi}{1 - \pi} - \ln\frac{\pi'}{1 - \pi'}`,
    :math:`\pi'` being the prevalence `trained`, by weight. With `majority_sampling_rate` r, the
    share of the majority that was kept, it is :math:`\ln r`. Neither: 0.

    Raises `InputError` where both are given, or one is out of range.
    """
    if prevalence is not None and majority_sampling_rate is not None:
        raise ErrorKind.COMBINATION.error(
            f"prevalence={prevalence!r} and majority_sampling_rate={majority_sampling_rate!r} say "
            "the same thing twice.",
            "Give one of them.",
        )
    check_prevalence(prevalence)
    if prevalence is not None:
        return float(_logit(float(prevalence)) - _logit(trained))
    if majority_sampling_rate is not None:
        rate, remedy = majority_sampling_rate, "It is the share of majority rows that were kept."
        allowed = "above 0 and at most 1"
        check_number("majority_sampling_rate", rate, allowed, 0.0, 1.0, "(]", remedy)
        return float(np.log(majority_sampling_rate))
    return 0.0


def weights_at_prevalence(
    is_rare: np.ndarray, weight: FloatArray | None, prevalence: float
) -> FloatArray:
    """Return weights of rows with those of the majority multiplied, so that this share is rare."""
    given = np.ones(len(is_rare)) if weight is None else np.asarray(weight, dtype=np.float64)
    share = float(given[is_rare].sum() / given.sum())
    return np.where(is_rare, given, given * np.exp(-log_odds_shift(share, prevalence)))


def at_prevalence(
    probability: ArrayLike,
    *,
    trained: float,
    prevalence: float | None = None,
    majority_sampling_rate: float | None = None,
) -> FloatArray:
    r"""Probabilities of the rare class as they are where the rare class is more or less frequent.

    .. math:: \frac{p}{1 - p} \cdot \frac{\pi}{1 - \pi} \cdot \frac{1 - \pi'}{\pi'}

    are the new odds: those of a model that was learned where a share :math:`\pi'` of the rows was
    rare, used where a share :math:`\pi` is. It holds where rare rows look alike in both, and
    majority rows do: of training rows that were thinned by class, of cases and controls, of a base
    rate that has moved.

    Parameters
    ----------
    probability : array-like
        Of the rare class, in [0, 1], of any shape, which the answer has as well.
    trained : float
        The share of rare rows that `probability` was learned on, between 0 and 1. Where weights
        put back rows that were left out, the share by weight.
    prevalence : float, optional
        The share of rare rows that is wanted, between 0 and 1.
    majority_sampling_rate : float, optional
        In its place: the share of the majority that was kept for training, in (0, 1].

    Raises
    ------
    InputError
        On a probability outside [0, 1] and shares out of range, or where both are given or neither.

    References
    ----------
    Saerens, Latinne, Decaestecker (2002), "Adjusting the outputs of a classifier to new a priori
    probabilities"; King, Zeng (2001), "Logistic regression in rare events data".

    Examples
    --------
    >>> at_prevalence([0.5], trained=0.5, prevalence=0.01).round(3)
    array([0.01])
    """
    p = np.asarray(probability, dtype=np.float64)
    bad = ~((p >= 0.0) & (p <= 1.0))
    if bad.any():
        place = np.unravel_index(int(bad.argmax()), p.shape)
        where = ", ".join(map(str, place))
        raise ErrorKind.CELL.error(
            f"probability[{where}] = {p[place]!r} is not between 0 and 1.",
            "Scores become probabilities by CalibratedRanker.",
            value=p[place],
        )
    check_number("trained", trained, "a number between 0 and 1, both left out", high=1.0)
    if prevalence is None and majority_sampling_rate is None:
        raise ErrorKind.COMBINATION.error(
            "neither prevalence nor majority_sampling_rate is given.", "Give one."
        )
    factor = np.exp(log_odds_shift(trained, prevalence, majority_sampling_rate))
    return np.asarray(p * factor / (p * factor + (1.0 - p)))


def _logit(share: float) -> float:
    return float(np.log(share) - np.log1p(-share))
