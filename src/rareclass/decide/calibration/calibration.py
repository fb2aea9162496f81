"""A map from scores to probabilities at a stated prevalence: what an estimator keeps."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rareclass.decide.calibration.beta import BetaMap
from rareclass.decide.calibration.isotonic import IsotonicMap
from rareclass.decide.calibration.levels import Levels, coarser, read_levels
from rareclass.decide.calibration.logistic import LogisticMap
from rareclass.decide.calibration.pooled import PooledMap
from rareclass.decide.calibration.prevalence import log_odds_shift
from rareclass.decide.calibration.score_to_probability import ScoreToProbability, to_probability
from rareclass.decide.calibration.venn_abers import ProbabilityInterval, VennAbersMap
from rareclass.errors import InputError
from rareclass.metrics.scored_classes import FloatArray, check_scores

# Levels of majority rows alone that are kept apart: millions say no more.
_MOST_LEVELS = 32_768
METHODS: dict[str, Any] = {
    "auto": PooledMap,
    "isotonic": IsotonicMap,
    "beta": BetaMap,
    "logistic": LogisticMap,
    "venn_abers": VennAbersMap,
}


@dataclass(frozen=True)
class Calibration:
    """Probabilities of the rare class from scores, at a prevalence that can be changed.

    A map of `METHODS`, whose log-odds are moved so that the mean probability of the rows that it
    was fitted on is their prevalence, and from there to another prevalence where one is stated.

    Attributes
    ----------
    method : str
    map : ScoreToProbability
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
    map: ScoreToProbability
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

        Parameters
        ----------
        y : array-like of shape (n,)
            True or 1 where the row is rare.
        scores : array-like of shape (n,)
            Finite; higher means rarer. Scores that all lie in [0, 1] are read as probabilities.
        sample_weight : array-like of shape (n,), optional
            Whole numbers are copies; of others only ratios count.
        method : {"auto", "isotonic", "beta", "logistic", "venn_abers"}, default "auto"
        several_models : bool, default False
            Whether it is for the mean of the probabilities that several models give a row, each of
            which made a part of these scores; "auto" has a map of its own for that.

        Returns
        -------
        Calibration
            O(n log n) time, O(n) memory. Where all scores are equal, every probability is the
            prevalence.

        Raises
        ------
        ValueError
            On labels other than 0 and 1, one class, scores that are not finite, weights below zero
            or all zero, and a method that there is not.
        """
        if method not in METHODS:
            raise InputError(f"method={method!r} is not one of {sorted(METHODS)}.")
        levels = coarser(read_levels(y, scores, sample_weight), _MOST_LEVELS)
        of = PooledMap.for_several if several_models and method == "auto" else METHODS[method].of
        found = of(levels)
        return cls(method, found, _centring(found, levels), levels.prevalence)

    def at(self, prevalence: Any = None, majority_sampling_rate: Any = None) -> Self:
        """The same at another prevalence; at that of training without one.

        Parameters and errors as in `at_prevalence`.
        """
        shift = log_odds_shift(self.trained_prevalence, prevalence, majority_sampling_rate)
        return replace(self, shift=shift)

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """Probability of the rare class of each score, strictly between 0 and 1."""
        return to_probability(self.log_odds(scores))

    def log_odds(self, scores: ArrayLike) -> FloatArray:
        """ln p / (1 - p) of each score."""
        value, _ = check_scores(scores, None)
        log_odds = self.map.log_odds(value) + self.centring
        if isinstance(self.map, VennAbersMap):
            low, high = self.map.interval(value)
            with np.errstate(divide="ignore"):
                log_odds = np.clip(
                    log_odds, np.log(low) - np.log1p(-low), np.log(high) - np.log1p(-high)
                )
        return log_odds + self.shift

    def interval(self, scores: ArrayLike) -> ProbabilityInterval:
        """The two probabilities of `VennAbersMap`, at the prevalence stated.

        Raises `AttributeError` for other methods, which have none.
        """
        if not isinstance(self.map, VennAbersMap):
            raise AttributeError(
                f"method={self.method!r} gives no interval of the probability: use 'venn_abers'."
            )
        factor = np.exp(self.shift)
        low, high = (p * factor / (p * factor + 1.0 - p) for p in self.map.interval(scores))
        return ProbabilityInterval(low, high)


def _centring(found: ScoreToProbability, levels: Levels) -> float:
    """What makes the mean probability the prevalence: the root of an increasing function."""
    from scipy.optimize import brentq

    log_odds = found.log_odds(levels.scores)
    weight = levels.total / levels.total.sum()

    def excess(move: float) -> float:
        return float(weight @ to_probability(log_odds + move)) - levels.prevalence

    # Platt's targets are at most one row in so many away: far less than this.
    low, high = -5.0, 5.0
    return float(brentq(excess, low, high)) if excess(low) < 0.0 < excess(high) else 0.0
