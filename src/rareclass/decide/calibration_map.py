"""Maps from scores to probabilities: their base, the score levels they are fitted on, and three.

Two are parametric: log-odds are a line of the score (Platt), or one of two slopes (beta). The third
is isotonic regression, and there is the mean of those of parts.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rareclass.errors import ErrorKind
from rareclass.metrics.scored_classes import FloatArray, check_scores, split_scores

# The nearest to 0 and 1 that a probability comes: the same distance from both ends.
_NEAREST = float(np.finfo(np.float64).eps)
# Larger weights are no numbers of copies, whole or not.
_MOST_COPIES = 1e9
# Parts that scored rows are dealt to, and blocks of copies that are dealt apart.
_N_PARTS, _MOST_DEALT = 10, 100_000
# Nearer to 0 and 1 than this, scores that are probabilities are rounding.
_ROUNDED = 1e-15
# Newton's steps end when the next would take this off the mean loss: it is as good as exact.
_MOST_STEPS, _TOL = 100, 1e-17
_ROUNDING = 1e-15
_RIDGE = 1e-9  # relative to the curvature: features that say the same share the slope


class ScoreLevels(NamedTuple):
    """The distinct scores, ascending, with the weight of the rows at each; all shape (n_levels,).

    Rows of equal score are one level, so that ties get one probability; weights are copies.
    """

    scores: FloatArray
    rare: FloatArray
    total: FloatArray

    @property
    def prevalence(self) -> float:
        """Share of the rare rows, by weight."""
        n_rare, n_majority = self.sums()
        return n_rare / (n_rare + n_majority)

    def sums(self) -> tuple[float, float]:
        """Weight of the rare rows, and of the others."""
        return float(self.rare.sum()), float((self.total - self.rare).sum())

    @property
    def platt_targets(self) -> FloatArray:
        r"""Mean target of each level: :math:`(n_+ + 1) / (n_+ + 2)` if rare, :math:`1 / (n_- + 2)`.

        In place of 1 and 0 (Platt 1999): the mean of the posterior under a uniform prior, which
        keeps slopes finite where the classes do not overlap. n are weights, as copies.
        """
        n_rare, n_majority = self.sums()
        rare, rest = (n_rare + 1.0) / (n_rare + 2.0), 1.0 / (n_majority + 2.0)
        return (self.rare * rare + (self.total - self.rare) * rest) / self.total


class CalibrationMap(ABC):
    """A map that does not fall, from a score to the probability of the rare class.

    Subclasses are frozen dataclasses of numbers and arrays.
    """

    @classmethod
    @abstractmethod
    def of(cls, levels: ScoreLevels) -> Self:
        """Learn from rows that were reduced to their levels."""

    @classmethod
    def fit(cls, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from scored rows: y true where rare, weights as copies. O(n log n)."""
        return cls.of(read_score_levels(y, scores, sample_weight))

    @abstractmethod
    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p / (1 - p) of each finite score."""

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """Probability of the rare class, strictly between 0 and 1, of each score.

        Raises `ValueError` on a NaN score, naming the row.
        """
        value, _ = check_scores(scores, None)
        return to_probability(self.log_odds(value))


def to_probability(log_odds: FloatArray) -> FloatArray:
    """Probability of log-odds, strictly between 0 and 1."""
    return np.clip(special.expit(log_odds), _NEAREST, 1.0 - _NEAREST)


def read_score_levels(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> ScoreLevels:
    """Reduce scored rows to their levels. O(n log n) time, O(n) memory.

    Weights are copies where they are whole numbers. Of others only the ratios count: they are
    scaled to a mean of 1 among the rare rows, which are what evidence is short of.

    Raises `ValueError` as `rareclass.metrics.roc_auc` does: other labels than 0 and 1, NaN scores,
    negative weights, a class without a row of weight above 0; and on infinite scores.
    """
    if sample_weight is not None:
        given = np.asarray(sample_weight)
        if given.dtype.kind in "fiub" and given.size and not given.any():
            raise ErrorKind.TOO_FEW_ROWS.error(
                "sample_weight is 0 for every row: there is nothing to learn from.",
                "Give some rows a weight above 0, or leave it out.",
            )
    split = split_scores(y, scores, sample_weight)
    value = np.concatenate([split.rare, split.majority])
    infinite = ~np.isfinite(value)
    if infinite.any():
        raise ErrorKind.NOT_FINITE.error(
            f"scores hold {infinite.sum()} infinite values, of which no probability is learned.",
            "Give finite scores.",
        )
    weight = np.ones(len(value))
    if split.rare_weight is not None and split.majority_weight is not None:
        weight = np.concatenate([split.rare_weight, split.majority_weight])
        if weight.max() > _MOST_COPIES or (weight != np.round(weight)).any():
            # Sums of very large ones do not fit.
            weight = weight / ((split.rare_weight / weight.max()).mean() * weight.max())
    distinct, place = np.unique(value, return_inverse=True)
    n_rare, n_levels = len(split.rare), len(distinct)
    rare = np.bincount(place[:n_rare], weight[:n_rare], n_levels).astype(np.float64)
    rest = np.bincount(place[n_rare:], weight[n_rare:], n_levels).astype(np.float64)
    return ScoreLevels(distinct, rare, rare + rest)


def coarser(levels: ScoreLevels, most: int) -> ScoreLevels:
    """Join neighbours to at most so many levels of about equal weight, and those with rare rows.

    A joined level stands at the highest of its scores, the lower ones of which count as it.
    """
    if len(levels.scores) <= most:
        return levels
    is_rare = levels.rare > 0.0
    share = np.cumsum(levels.total) / levels.total.sum()
    part = np.minimum((share * most).astype(np.int64), most - 1)
    # A level ends where the next one begins another part, or holds rare rows as it or its next.
    ends = np.append((np.diff(part) > 0) | is_rare[:-1] | is_rare[1:], True)
    last = np.flatnonzero(ends)
    first = np.append(0, last[:-1] + 1)
    return ScoreLevels(
        levels.scores[last],
        np.add.reduceat(levels.rare, first),
        np.add.reduceat(levels.total, first),
    )


def dealt(weight: FloatArray) -> Iterator[FloatArray]:
    """Deal the copies of each level to ten parts; yield the weight that each part gets.

    Copies are numbered in the order of scores and dealt by number, whole blocks of neighbours where
    they are very many. At random, and always in the same way: of every tenth copy, a part would
    hold just what the others do.
    """
    running = np.append(0.0, np.cumsum(weight))
    n_blocks = int(min(np.ceil(running[-1]), _MOST_DEALT))
    edges = np.linspace(0.0, max(n_blocks, running[-1]), n_blocks + 1)
    number = np.random.default_rng(0).permutation(np.arange(n_blocks) % _N_PARTS)
    for part in range(_N_PARTS):
        own = np.append(0.0, np.cumsum(np.where(number == part, np.diff(edges), 0.0)))
        yield np.diff(np.interp(running, edges, own))


@dataclass(frozen=True)
class ScoreScale:
    r"""Increasing function from a score to z, on which parametric maps read scores.

    Scores that all lie in [0, 1] are read as probabilities, :math:`z = \ln(s / (1 - s))`, those
    nearer to 0 or 1 than half of the nearest of training as these: a forest's 0 of 100 votes is
    taken for 1 in 200. Others are centred half way between the medians of the classes and divided
    by their spread, :math:`z = (s - centre) / spread`.
    """

    is_probability: bool
    centre: float = 0.0
    spread: float = 1.0
    lowest: float = 0.0  # bounds of a score that is a probability
    highest: float = 1.0

    @classmethod
    def of(cls, levels: ScoreLevels) -> "ScoreScale":
        """Learn the scale of training scores."""
        scores = levels.scores
        if scores[0] >= 0.0 and scores[-1] <= 1.0:
            inside = scores[(scores > 0.0) & (scores < 1.0)]
            gaps = (inside[0], 1.0 - inside[-1]) if len(inside) else (0.5, 0.5)
            low, high = (max(0.5 * float(gap), _ROUNDED) for gap in gaps)
            return cls(True, lowest=low, highest=1.0 - high)
        rest = levels.total - levels.rare
        medians = [_quantile(scores, weight, 0.5) for weight in (levels.rare, rest)]
        low, high = (_quantile(scores, rest, share) for share in (0.25, 0.75))
        spread = max(high - low, abs(medians[0] - medians[1]), 1e-3 * (scores[-1] - scores[0]))
        return cls(False, 0.5 * medians[0] + 0.5 * medians[1], spread if spread > 0.0 else 1.0)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return z of each score."""
        if self.is_probability:
            return special.logit(np.clip(scores, self.lowest, self.highest))
        return (scores - self.centre) / self.spread


@dataclass(frozen=True)
class LogisticMap(CalibrationMap):
    r"""Logistic (Platt's) calibration, :math:`\ln\frac{p}{1-p} = a z(s) + c`, :math:`a \ge 0`.

    z is `ScoreScale`. a and c minimise the log loss against `ScoreLevels.platt_targets`.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines".

    Examples
    --------
    >>> p = LogisticMap.fit([0, 0, 1, 0, 1, 1], [-3.0, -1.0, -0.5, 0.5, 1.0, 3.0])
    >>> p([-3.0, 0.0, 3.0]).round(2)
    array([0.2, 0.5, 0.8])
    """

    scale: ScoreScale
    slope: float
    intercept: float

    @classmethod
    def of(cls, levels: ScoreLevels) -> Self:
        """Learn from rows that were reduced to their levels."""
        scale = ScoreScale.of(levels)
        found = fit_increasing(scale(levels.scores)[:, None], levels.platt_targets, levels.total)
        return cls(scale, float(found.slopes.sum()), found.intercept)

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p / (1 - p) of finite scores."""
        return np.asarray(self.slope * self.scale(scores) + self.intercept)


@dataclass(frozen=True)
class BetaMap(CalibrationMap):
    r"""Beta calibration, :math:`\ln\frac{p}{1-p} = a \ln u - b \ln(1 - u) + c` with a, b >= 0.

    :math:`u = 1 / (1 + e^{-z(s)})` brings any score to (0, 1): z is `ScoreScale`, so that scores in
    [0, 1] are u themselves, and others count from half way between the classes. Below that, the
    log-odds rise with slope a in z, above it with slope b. Fitted as `LogisticMap` is, which it
    is where a = b.

    References
    ----------
    Kull, Silva Filho, Flach (2017), "Beta calibration".

    Examples
    --------
    >>> p = BetaMap.fit([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9])
    >>> bool(p([0.1])[0] < p([0.5])[0] < p([0.9])[0])
    True
    """

    scale: ScoreScale
    low_slope: float  # a
    high_slope: float  # b
    intercept: float

    @classmethod
    def of(cls, levels: ScoreLevels) -> Self:
        """Learn from rows that were reduced to their levels."""
        scale = ScoreScale.of(levels)
        z = scale(levels.scores)
        found = fit_increasing(_log_beta(z), levels.platt_targets, levels.total)
        low, high = (float(slope) for slope in found.slopes)
        return cls(scale, low, high, found.intercept)

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p / (1 - p) of finite scores."""
        slopes = np.array([self.low_slope, self.high_slope])
        return _log_beta(self.scale(scores)) @ slopes + self.intercept


@dataclass(frozen=True)
class IsotonicMap(CalibrationMap):
    r"""Isotonic regression on Platt's targets.

    Least squares over all maps that do not fall, by pooling adjacent violators; between two blocks
    the log-odds are interpolated, beyond the first and last they are theirs. `platt_targets` keep
    every probability between them: with 0 and 1, one rare row below all of training costs an
    infinite log loss.

    Examples
    --------
    >>> p = IsotonicMap.fit([0, 0, 0, 1, 1], [0.0, 1.0, 2.0, 3.0, 4.0])
    >>> p([-1.0, 5.0]).round(2)
    array([0.2 , 0.75])
    """

    knots: FloatArray  # shape (n_knots,): increasing scores: first and last of every block
    values: FloatArray  # shape (n_knots,): log-odds there

    @classmethod
    def of(cls, levels: ScoreLevels) -> Self:
        """Learn from rows that were reduced to their levels."""
        # Not at the top: scikit-learn takes seconds to load.
        from sklearn.isotonic import isotonic_regression

        if len(levels.scores) == 1:
            return cls(levels.scores, special.logit(np.array([levels.prevalence])))
        pooled = isotonic_regression(levels.platt_targets, sample_weight=levels.total)
        first = np.append(True, np.diff(pooled) > 0.0)
        kept = np.flatnonzero(first | np.append(first[1:], True))
        return cls(levels.scores[kept], special.logit(pooled[kept]))

    def check_parts(self) -> None:
        """Raise `ValueError` where this is no function: knots increase, each has its value."""
        knots, values = self.knots, self.values
        if knots.ndim != 1 or not len(knots) or values.shape != knots.shape:
            raise ValueError("knots and values are not lists of one length")
        if (np.diff(knots) < 0).any() or {knots.dtype.kind, values.dtype.kind} != {"f"}:
            raise ValueError("knots do not increase")

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p / (1 - p) of scores."""
        return np.interp(scores, self.knots, self.values)


@dataclass(frozen=True)
class IsotonicOfParts:
    r"""The mean of plain isotonic regressions of ten disjoint parts of the rows.

    One isotonic regression is a staircase whose last steps hang on a few rare rows. The mean of
    those of parts (subagging; Buhlmann and Yu, "Analyzing bagging", Annals of Statistics 2002) has
    steps wherever any of them has one. Targets are 0 and 1, and so may probabilities be: it is for
    being averaged with another map.
    """

    scores: FloatArray  # shape (n_levels,): increasing
    # shape (n_levels,): there; between two scores on the line between theirs
    probabilities: FloatArray

    @classmethod
    def of(cls, levels: ScoreLevels) -> Self:
        """Learn from rows that were reduced to their levels. O(n log n)."""
        # Not at the top: scikit-learn takes seconds to load.
        from sklearn.isotonic import isotonic_regression

        parts = []
        for rare, rest in zip(dealt(levels.rare), dealt(levels.total - levels.rare), strict=True):
            weight = rare + rest
            there = np.flatnonzero(weight > 1e-9)  # what rounding leaves of a copy is none
            if len(there):
                share = isotonic_regression(
                    rare[there] / weight[there], sample_weight=weight[there]
                )
                parts.append(np.interp(levels.scores, levels.scores[there], share))
        return cls(levels.scores, np.mean(parts, axis=0))

    def log_probabilities(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """ln p and ln (1 - p) of scores; minus infinity is among them."""
        # Rounding takes the line beyond its end.
        p = np.clip(np.interp(scores, self.scores, self.probabilities), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            return np.log(p), np.log1p(-p)


class IncreasingFit(NamedTuple):
    """Slopes, at or above 0, the intercept and the loss that they reach."""

    slopes: FloatArray
    intercept: float
    loss: float


def fit_increasing(features: FloatArray, targets: FloatArray, weight: FloatArray) -> IncreasingFit:
    r"""Least weighted log loss of :math:`p = 1 / (1 + e^{-(f's + c)})` over slopes s at or above 0.

    The loss is convex, so the best of the sets of features whose own minimum has no slope below 0
    is the minimum under the bounds. `features` of shape (n, q), q at most 2 or 3; O(2^q n) a step.
    A single row has no slopes.
    """
    n_features = features.shape[1] if len(features) > 1 else 0
    best: IncreasingFit | None = None
    for size in range(n_features, -1, -1):
        for chosen in combinations(range(n_features), size):
            columns = list(chosen)
            slopes, intercept, loss = _newton(features[:, columns], targets, weight)
            if (slopes >= 0.0).all() and (best is None or loss < best.loss):
                every = np.zeros(features.shape[1])
                every[columns] = slopes
                best = IncreasingFit(every, intercept, loss)
        if best is not None and size == n_features:
            break  # nothing was in the way
    assert best is not None  # without features there is a constant
    return best


def _newton(features: FloatArray, targets: FloatArray, weight: FloatArray) -> IncreasingFit:
    """Unconstrained minimum by damped Newton steps."""
    design = np.column_stack([features, np.ones(len(features))])
    mean = float(weight @ targets / weight.sum())
    at = np.zeros(design.shape[1])
    at[-1] = np.log(mean) - np.log1p(-mean)
    weight = weight / weight.sum()
    loss = _loss(design @ at, targets, weight)
    for _ in range(_MOST_STEPS):
        p = special.expit(design @ at)
        gradient = design.T @ (weight * (p - targets))
        curvature = (design.T * (weight * p * (1.0 - p))) @ design
        curvature[np.diag_indices_from(curvature)] *= 1.0 + _RIDGE
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        decrease = float(gradient @ step)
        if not decrease > _TOL:
            at = at - step
            break
        length = 1.0
        while length > 1e-10:
            tried = at - length * step
            reached = _loss(design @ tried, targets, weight)
            if reached <= loss - 1e-4 * length * decrease + _ROUNDING:
                break
            length *= 0.5
        else:
            break
        at, loss = tried, reached
    return IncreasingFit(at[:-1], float(at[-1]), _loss(design @ at, targets, weight))


def _loss(log_odds: FloatArray, targets: FloatArray, weight: FloatArray) -> float:
    return float(weight @ (np.logaddexp(0.0, log_odds) - targets * log_odds))


def _log_beta(z: FloatArray) -> FloatArray:
    """ln u and -ln(1 - u)."""
    return np.column_stack([-np.logaddexp(0.0, -z), np.logaddexp(0.0, z)])


def _quantile(scores: FloatArray, weight: FloatArray, share: float) -> float:
    running = np.cumsum(weight)
    return float(scores[np.searchsorted(running, share * running[-1])])
