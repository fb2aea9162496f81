"""Functions of a fitted combination: scores of members, and the scale of false-positive rates.

Scores of different members cannot be compared. The share of the majority that scores as high can:
it is the false-positive rate of calling the row rare.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Protocol, Self

import numpy as np

from rareclass.kernels.expansion import KernelExpansion, block_scores
from rareclass.kernels.kernels import make_kernel
from rareclass.rows import ArrayRows, as_source

# Kernel entries of a block of rows: they stay in cache.
_BLOCK_ENTRIES = 2**19
# Scores that become knots of a scale: every one of the highest, then ever fewer.
_EACH_UP_TO = 32
_STEPS_A_DOUBLING = 12
# Highest majority scores that say how the tail goes on beyond the highest of them.
_TAIL_ROWS = 30
# Differences of scores below this part of them are rounding.
_ROUNDING = 1e-12


class ScoreFunction(Protocol):
    """A score f(x) of an encoded row, higher where the row is more like the rare class.

    There are three kinds: a sum of kernel functions, a sum of trees, and a linear function. They
    hold arrays and numbers alone, so that a model file opens without the library that learned it.
    The mean of several of one kind is one of the same kind where they see the same features, or are
    trees or linear; else it is a `MeanFunction`.
    """

    def scores(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """Return f of every row of X, of shape (n_rows,), in `n_jobs` threads."""
        ...

    def at(self, features: np.ndarray, n_features: int) -> Self:
        """Return the function of rows of so many features, of which it sees some, in order."""
        ...

    @classmethod
    def mean_of(cls, functions: Sequence[Self]) -> Self:
        """Return the function whose score is the mean of the functions' scores."""
        ...


def mean_function(functions: Sequence[ScoreFunction]) -> ScoreFunction:
    """Return the function whose score is the mean, as one of the same kind where there is one."""
    first = functions[0]
    if isinstance(first, KernelFunction) and not all(first.is_like(each) for each in functions):
        return MeanFunction(list(functions))
    return type(first).mean_of(functions)


@dataclass(eq=False)
class LinearFunction:
    r"""The linear score :math:`f(x) = a + w \cdot x` of dense or sparse rows.

    Examples
    --------
    >>> LinearFunction(np.array([1.0, -1.0]), 0.5).scores(np.array([[2.0, 1.0]]))
    array([1.5])
    """

    weights: np.ndarray  # shape (n_features,)
    intercept: float = 0.0

    def check_parts(self) -> None:
        """Raise `ValueError` where the weights are no list of numbers."""
        if self.weights.ndim != 1 or self.weights.dtype.kind != "f":
            raise ValueError("weights is not a list of numbers")

    def scores(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """Return f of every row, of shape (n_rows,): one product."""
        return X @ self.weights + self.intercept

    def at(self, features: np.ndarray, n_features: int) -> Self:
        """Return the function of rows of more features."""
        weights = np.zeros(n_features)
        weights[features] = self.weights
        return type(self)(weights, self.intercept)

    @classmethod
    def mean_of(cls, functions: Sequence[Self]) -> Self:
        """Return the function of the mean weights."""
        weights = np.mean([each.weights for each in functions], axis=0)
        return cls(weights, float(np.mean([each.intercept for each in functions])))


@dataclass(eq=False)
class KernelFunction:
    r"""The kernel expansion :math:`f(x) = \sum_r b_r \, k(z_r, x)`.

    Kernel values are of 32 bits, six digits (three of the Laplace kernel right beside a landmark),
    as nothing but the order of scores is used.
    """

    kernel: str  # a name that `rareclass.kernels.kernels.make_kernel` knows
    width: float
    # shape (n_landmarks, n_features): used, and best kept, in float32
    landmarks: np.ndarray
    coefficients: np.ndarray  # shape (n_landmarks,)
    # Sum of similarities below which a row is less like the landmarks than any training row
    least: float = 0.0
    # Highest score of such a row: far from everything a kernel score falls to zero, which may be
    # above the majority's
    most: float = 0.0
    features: np.ndarray | None = None  # those of a row that count, in order; None: all

    def check_parts(self) -> None:
        """Raise `ValueError` where the parts of the expansion are not of one size."""
        n_landmarks, n_features = self.landmarks.shape
        if self.coefficients.shape != (n_landmarks,) or self.coefficients.dtype.kind != "f":
            raise ValueError(f"coefficients has not a number for each of {n_landmarks} landmarks")
        if not self.width > 0:
            raise ValueError("width is not above 0")
        if self.features is not None and self.features.shape != (n_features,):
            raise ValueError(f"features does not name {n_features} features")

    def scores(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """Return f of every row, of shape (n_rows,): O(n_landmarks n_features) a row."""
        return self.bounded(*self.with_similarity(X, n_jobs).T)

    def bounded(self, expanded: np.ndarray, similarity: np.ndarray) -> np.ndarray:
        """Return f of rows of a plain expansion and a sum of similarities."""
        return np.where(similarity < self.least, np.minimum(expanded, self.most), expanded)

    @cached_property
    def _expansion(self) -> KernelExpansion:
        """Operator on blocks of rows, with what is the same for all of them."""
        landmarks = np.asarray(self.landmarks, dtype=np.float32)
        return KernelExpansion(make_kernel(self.kernel, self.width), landmarks)

    def __getstate__(self) -> dict[str, Any]:
        return {name: each for name, each in vars(self).items() if not name.startswith("_")}

    def with_similarity(
        self, X: Any, n_jobs: int | None = 1, others: Sequence["KernelFunction"] = ()
    ) -> np.ndarray:
        """Return the plain expansion and the sum of similarities of every row: (n_rows, 2).

        With `others` of the same kernel matrix there is a column for each of their expansions
        between the two.
        """
        if self.features is not None:
            X = X[:, self.features]
        X = np.asarray(X, dtype=np.float32)
        if not len(X):
            return np.empty((0, 2 + len(others)))
        size = max(64, _BLOCK_ENTRIES // max(1, len(self.landmarks)))
        rows = ArrayRows(as_source(X), block_rows=size, n_jobs=n_jobs)
        of_each = [each.coefficients for each in (self, *others)]
        columns = np.column_stack([*of_each, np.ones(len(self.coefficients))])
        return rows.map(block_scores, self._expansion, columns)

    def at(self, features: np.ndarray, n_features: int) -> Self:
        """Return the function of rows of more features."""
        return replace(self, features=features)

    def is_like(self, other: Any) -> bool:
        """Return whether the other function has the same kernel and features."""
        same = (self.kernel, self.width) == (other.kernel, other.width)
        return same and self.features is other.features

    @classmethod
    def mean_of(cls, functions: Sequence[Self]) -> Self:
        """Return one expansion: over the same landmarks their mean, else over all landmarks."""
        first, n = functions[0], len(functions)
        same = all(each.landmarks is first.landmarks for each in functions)
        if not all(first.is_like(each) for each in functions):
            raise ValueError("kernel functions of different kernels have no common expansion.")
        share = [each.coefficients / n for each in functions]
        least = sum(each.least for each in functions)  # of all landmarks together
        return cls(
            first.kernel,
            first.width,
            first.landmarks if same else np.concatenate([each.landmarks for each in functions]),
            np.sum(share, axis=0) if same else np.concatenate(share),
            first.least if same else least,
            float(np.mean([each.most for each in functions])),
            first.features,
        )


@dataclass(eq=False)
class MeanFunction:
    """The mean of functions that have no common form."""

    functions: list[Any]

    def at(self, features: np.ndarray, n_features: int) -> Self:
        """Return the function of rows of more features."""
        return type(self)([each.at(features, n_features) for each in self.functions])

    @classmethod
    def mean_of(cls, functions: Sequence[Self]) -> Self:
        """Return the mean of means of as many functions each."""
        return cls([part for each in functions for part in each.functions])

    def scores(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """Return f of every row, of shape (n_rows,): the time of all functions."""
        return np.mean([each.scores(X, n_jobs) for each in self.functions], axis=0)


def scores_of(
    functions: Sequence[ScoreFunction], X: Any, n_jobs: int | None = 1
) -> list[np.ndarray]:
    """Return f of every row for each function: kernel functions of one matrix share it."""
    found: dict[int, np.ndarray] = {}
    together: dict[Any, list[KernelFunction]] = {}
    parts = [each.functions if isinstance(each, MeanFunction) else [each] for each in functions]
    for function in chain(*parts):
        if isinstance(function, KernelFunction):
            landmarks, features = id(function.landmarks), id(function.features)
            key = function.kernel, function.width, landmarks, features
            together.setdefault(key, []).append(function)
        else:
            found[id(function)] = function.scores(X, n_jobs)
    for first, *others in together.values():
        *expanded, similarity = first.with_similarity(X, n_jobs, others).T
        for function, column in zip((first, *others), expanded, strict=True):
            found[id(function)] = function.bounded(column, similarity)
    return [np.mean([found[id(part)] for part in own], axis=0) for own in parts]


@dataclass(eq=False)
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

    Examples
    --------
    >>> scale = FalsePositiveRate.of(np.arange(99.0))
    >>> np.exp(scale(np.array([98.0, 49.0]))).round(3)
    array([0.01, 0.5 ])
    """

    # shape (n_knots,): increasing scores, every one of the highest and a growing step of ranks
    # below
    knots: np.ndarray
    log_rates: np.ndarray  # shape (n_knots,): ln F there, decreasing
    excess: float  # b, in the units of the scores

    @classmethod
    def of(cls, majority: np.ndarray, weight: np.ndarray | None = None) -> "FalsePositiveRate":
        """Learn the scale from held-out majority scores, `weight` times each. O(n log n)."""
        one = 1.0
        if weight is not None:
            majority, weight = majority[weight > 0.0], weight[weight > 0.0]
            one = float(weight.min())
        # Equal rows may score differently in the last digit, by where they stand among others:
        # distinct are scores that differ by more than rounding.
        order = np.argsort(-majority, kind="stable")
        scores = majority[order]
        noise = _ROUNDING * np.maximum(np.abs(scores), np.median(np.abs(scores)))
        first = np.append(True, scores[:-1] - scores[1:] > noise[:-1])
        of_rows = None if weight is None else weight[order]
        counts = np.bincount(np.cumsum(first) - 1, of_rows).astype(np.float64)
        scores, n = scores[first], len(counts)
        rates = (np.cumsum(counts) - 0.5 * counts + 0.5 * one) / (counts.sum() + one)
        kept = np.arange(min(n, _EACH_UP_TO))
        if n > _EACH_UP_TO:
            steps = int(np.ceil(np.log2(n / _EACH_UP_TO) * _STEPS_A_DOUBLING)) + 1
            spaced = np.geomspace(_EACH_UP_TO, n - 1, steps).astype(np.int64)
            kept = np.unique(np.concatenate([kept, spaced, [n - 1]]))
        log_rates = np.log(rates[kept][::-1])
        return cls(scores[kept][::-1], log_rates, _mean_excess(scores, counts, _TAIL_ROWS * one))

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


def _mean_excess(scores: np.ndarray, counts: np.ndarray, tail: float) -> float:
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


@dataclass(eq=False)
class LearnedMember:
    """A member with weight in a model: its score function, its scale and its weight."""

    name: str
    setting: str
    view: str
    function: ScoreFunction
    scale: FalsePositiveRate  # learned from the member's held-out scores
    weight: float  # share of the combination


def summed_rarity(
    ensembles: Sequence[Sequence[LearnedMember]],
    views: dict[str, Any],
    encoded: Any,
    n_jobs: int | None,
) -> np.ndarray:
    """Return -sum w_k ln F_k of every row for each ensemble: (n_rows, n_ensembles).

    Each view that a member needs is made once, for all ensembles.
    """
    rarity = np.zeros((encoded.n_rows, len(ensembles)))
    every = [(k, member) for k, members in enumerate(ensembles) for member in members]
    for name, view in views.items():
        chosen = [(k, member) for k, member in every if member.view == name]
        if chosen:
            functions = [member.function for _, member in chosen]
            scores = scores_of(functions, view.transform(encoded), n_jobs)
            for (k, member), column in zip(chosen, scores, strict=True):
                rarity[:, k] -= member.weight * member.scale(column)
    return rarity
