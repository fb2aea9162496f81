"""The common scale of an ensemble: the false-positive rate of a score among held-out rows.

Scores of different members cannot be compared. The share of the majority that scores as high can:
it is the false-positive rate of calling the row rare.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rareclass.ensemble.score_functions import ScoreFunction

# Scores that become knots: every one of the highest, then ever fewer.
_EACH_UP_TO = 32
_STEPS_A_DOUBLING = 12
# Highest majority scores that say how the tail goes on beyond the highest of them.
_TAIL_ROWS = 30
# Differences of scores below this part of them are rounding.
_ROUNDING = 1e-12


class FalsePositiveRate:
    r"""From a score to the logarithm of its estimated false-positive rate.

    Between held-out majority scores :math:`s_1 > s_2 > \dots > s_n`, of weights :math:`w_i` and
    total W,

    .. math:: \ln F(s) = \ln \frac{\sum_{s_i > s} w_i + \frac12 \sum_{s_i = s} w_i + \frac12
              w}{W + w}

    at the scores themselves (w the least weight, as that of one row), linear in s between. Beyond
    the highest the rate falls like a Pareto tail, :math:`F(s) = F(s_1) / (1 + (s - s_1) / b)`, b
    the mean excess over the thirtieth highest row: a row is called rarer for a higher score, but
    how much higher counts for less and less, as no majority row says how rare it is. Below the
    lowest the rate is one of the lowest.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
        Increasing scores, every one of the highest and a growing step of ranks below.
    log_rates : ndarray of shape (n_knots,)
        ln F there, decreasing.
    excess : float
        b, in the units of the scores.

    Examples
    --------
    >>> scale = FalsePositiveRate.of(np.arange(99.0))
    >>> np.exp(scale(np.array([98.0, 49.0]))).round(3)
    array([0.01, 0.5 ])
    """

    def __init__(self, knots: np.ndarray, log_rates: np.ndarray, excess: float) -> None:
        self.knots, self.log_rates, self.excess = knots, log_rates, excess

    @classmethod
    def of(cls, majority: np.ndarray, weight: np.ndarray | None = None) -> "FalsePositiveRate":
        """Learn the scale from held-out majority scores, `weight` times each. O(n log n)."""
        one = 1.0
        if weight is not None:
            majority, weight = majority[weight > 0.0], weight[weight > 0.0]
            one = float(weight.min())
        scores, counts = _distinct(majority, weight)
        rates = (np.cumsum(counts) - 0.5 * counts + 0.5 * one) / (counts.sum() + one)
        kept = _knot_places(len(scores))
        log_rates = np.log(rates[kept][::-1])
        return cls(scores[kept][::-1], log_rates, _excess(scores, counts, _TAIL_ROWS * one))

    def check_parts(self) -> None:
        """Raise `ValueError` where knots do not increase, or not each of them has a value."""
        knots, values = self.knots, self.log_rates
        if knots.ndim != 1 or not len(knots) or values.shape != knots.shape:
            raise ValueError("knots and log_rates are not lists of one length")
        if (np.diff(knots) < 0).any() or {knots.dtype.kind, values.dtype.kind} != {"f"}:
            raise ValueError("knots do not increase")
        if not self.excess > 0:
            raise ValueError("excess is not above 0")

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return ln F of each score, of the same shape. O(log n_knots) a score."""
        beyond = np.maximum(scores - self.knots[-1], 0.0)
        inside = np.interp(scores, self.knots, self.log_rates)
        return inside - np.log1p(beyond / self.excess)


def _distinct(majority: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return decreasing scores that differ by more than rounding, and their weights.

    Equal rows may score differently in the last digit, by where they stand among others.
    """
    order = np.argsort(-majority, kind="stable")
    scores = majority[order]
    noise = _ROUNDING * np.maximum(np.abs(scores), np.median(np.abs(scores)))
    first = np.append(True, scores[:-1] - scores[1:] > noise[:-1])
    counts = np.bincount(np.cumsum(first) - 1, None if weight is None else weight[order])
    return scores[first], counts.astype(np.float64)


def _excess(scores: np.ndarray, counts: np.ndarray, tail: float) -> float:
    """Mean excess of the highest scores over the lowest of them, `tail` being their weight.

    `scores` are distinct and decreasing, `counts` their weights. Where the highest are equal, but
    for rounding, the standard deviation of all scores; 1 where that is 0.
    """
    within = np.minimum(np.cumsum(counts), tail)
    shares = np.diff(within, prepend=0.0)
    lowest = scores[np.flatnonzero(shares > _ROUNDING * tail)[-1]]
    excess = float(shares @ (scores - lowest).clip(0.0) / within[-1])
    noise = _ROUNDING * float(np.abs(scores[[0, -1]]).max())
    if excess > noise:
        return excess
    mean = float(counts @ scores / counts.sum())
    deviation = float(np.sqrt(counts @ (scores - mean) ** 2 / counts.sum()))
    return deviation if deviation > noise else 1.0


def _knot_places(n: int) -> np.ndarray:
    """Positions among n scores, highest first: each of the first, then a dozen a doubling."""
    if n <= _EACH_UP_TO:
        return np.arange(n)
    steps = int(np.ceil(np.log2(n / _EACH_UP_TO) * _STEPS_A_DOUBLING)) + 1
    spaced = np.geomspace(_EACH_UP_TO, n - 1, steps).astype(np.int64)
    return np.unique(np.concatenate([np.arange(_EACH_UP_TO), spaced, [n - 1]]))


class LearnedMember:
    """A member with weight in a model: its score function, scale and weight.

    Attributes
    ----------
    name, setting, view : str
    function : ScoreFunction
    scale : FalsePositiveRate
        Learned from the member's held-out scores.
    weight : float
        Share of the combination.
    """

    def __init__(
        self,
        name: str,
        setting: str,
        view: str,
        function: "ScoreFunction",
        scale: FalsePositiveRate,
        weight: float,
    ) -> None:
        self.name, self.setting, self.view = name, setting, view
        self.function, self.scale, self.weight = function, scale, weight

    def rarity(self, X: Any, n_jobs: int | None) -> np.ndarray:
        """Return ``-ln F`` of encoded rows, F their estimated false-positive rate."""
        return -self.scale(self.function.scores(X, n_jobs))
