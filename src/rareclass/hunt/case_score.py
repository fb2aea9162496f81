"""Score of a hunt: its cases against all other rows, most of which nobody has looked at.

Few unlabelled rows are cases. A model that tells the labelled cases from them therefore ranks rows
as one that tells cases from cleared rows would: P(labelled case | x) is proportional to P(case | x)
(Elkan and Noto, 2008). Cleared rows take part as rows that are known to be no cases. Where cases
crowd together the distance to the nearest of them tells more: it is a smaller part of the score.

`sureness` turns the places of held-out cases into the share of cases among the first rows of a
list; `ListOrder` keeps it with the score and the scores of the hunt's unlabelled rows.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances_argmin

from rareclass.kernels.expansion import whiten
from rareclass.kernels.kernels import Gaussian
from rareclass.stored import finite_vector

Floats = NDArray[np.float64]
# Unlabelled rows that are learned from, and those of them that are landmarks of the kernel.
_MOST_LEARNED, _N_LANDMARKS = 50_000, 200
# Numbers of the matrix that is learned from: of very wide tables fewer rows are drawn.
_MOST_NUMBERS = 20_000_000
# Each case weighs as much against the penalty; all other rows weigh as much as the cases together.
_CASE_WEIGHT = 15.0
_TOLERANCE, _MOST_ITERATIONS = 1e-6, 1_000
# The landmark by whose distance the density of other rows is measured, and the weight of nearness.
_NTH_LANDMARK, _NEARNESS = 5, 0.25
# Squared distances below this are as good as none; least kernel value that is told apart.
_SAME, _LEAST = 1e-6, 1e-300
_BLOCK_ROWS = 16_384
# Equal rows have equal scores: later decimals depend on where a row stands in its block.
_DECIMALS = 7


class CaseScore(NamedTuple):
    r"""Score of rows: one function for each rare value, of which the greatest counts.

    .. math:: f(x) + \log(d_o(x) / d_c(x)) / 4,
        \quad f(x) = b + u' x / s + \sum_z a_z \exp(-|x - z|^2 / s^2)

    with s^2 the total variance of the rows, so that the linear kernel and the Gaussian one are of
    one size. f is a logistic regression: the log-odds of a case where cases and other rows weigh
    as much. d_c is the squared distance to the nearest case; d_o that to other rows: to the fifth
    nearest landmark, or to the nearest cleared row where that is less. Both have s^2 / 10^6 added.
    """

    landmarks: Floats  # z: (n_landmarks, n_coordinates)
    scale: float  # s
    intercept: Floats  # b: (n_functions,)
    linear: Floats  # u: (n_coordinates, n_functions)
    gaussian: Floats  # a: (n_landmarks, n_functions)
    cases: tuple[Floats, ...]  # of each function: (n_cases, n_coordinates)
    cleared: Floats  # (n_cleared, n_coordinates)

    def by_value(self, X: NDArray[Any]) -> Floats:
        """Score rows by every function: (n_rows, n_functions), a block of rows at a time."""
        scores = np.empty((len(X), len(self.intercept)))
        kernel = Gaussian(self.scale)
        for first in range(0, len(X), _BLOCK_ROWS):
            block = np.asarray(X[first : first + _BLOCK_ROWS], dtype=np.float64)
            similar = kernel.block(block, self.landmarks)
            odds = self.intercept + (block / self.scale) @ self.linear + similar @ self.gaussian
            nearness = self._nearness(block, similar)
            scores[first : first + _BLOCK_ROWS] = odds + _NEARNESS * nearness
        return np.round(scores, _DECIMALS)

    def _nearness(self, rows: Floats, similar: Floats) -> Floats:
        """Return the logarithm of the squared distance to other rows by that to a case."""
        nth = min(_NTH_LANDMARK, similar.shape[1])
        nearest = np.partition(similar, -nth, axis=1)[:, -nth]
        others = -np.log(np.clip(nearest, _LEAST, 1.0))
        if len(self.cleared):
            others = np.minimum(others, to_nearest(rows, self.cleared) / self.scale**2)
        to_case = np.column_stack([to_nearest(rows, cases) for cases in self.cases])
        return np.asarray(np.log(others + _SAME)[:, None] - np.log(to_case / self.scale**2 + _SAME))

    def __call__(self, X: NDArray[Any]) -> Floats:
        """Score rows; higher is surer."""
        return np.asarray(self.by_value(X).max(axis=1))

    def check_parts(self) -> None:
        """Raise `ValueError` where the parts are not of one size."""
        n_landmarks, n_coordinates = self.landmarks.shape
        n_functions = len(self.intercept)
        if self.linear.shape != (n_coordinates, n_functions):
            raise ValueError("there is not a coefficient for each coordinate")
        if self.gaussian.shape != (n_landmarks, n_functions) or not n_functions:
            raise ValueError("there is not a coefficient for each landmark")
        if len(self.cases) != n_functions or not all(map(len, self.cases)):
            raise ValueError("a function has no case")
        if any(known.shape[1] != n_coordinates for known in (*self.cases, self.cleared)):
            raise ValueError("there is not a coordinate of each known row for each coefficient")
        if not 0.0 < self.scale < np.inf:
            raise ValueError("the scale is not above zero")


class ScoredUnlabelled(NamedTuple):
    """Scores of the unlabelled rows, and the places that cases would have among them."""

    score: CaseScore  # of new rows: a function for each rare value, in the order of the labels
    by_value: Floats  # (n_unlabelled, n_values)
    # of cases that were held out, from 1, increasing; none where every rare value has one case
    of_cases: NDArray[np.int64]


def score_unlabelled(
    X: NDArray[Any], code: NDArray[np.integer], n_folds: int, seed: int
) -> ScoredUnlabelled:
    """Learn the cases of each rare value against all other rows, and score the unlabelled ones.

    `code` is k for a case of the k-th value, 0 for a cleared row and -1 without a label. The cases
    of a fold are held out of another such model: their places in its list are those of cases that
    nobody has labelled. Cost: `n_folds` + 1 logistic regressions on at most 50,000 rows, and one
    pass over all rows, with 200 distances each.
    """
    rng = np.random.default_rng(seed)
    known, unlabelled = np.flatnonzero(code >= 0), np.flatnonzero(code < 0)
    code, values = code[known], range(1, int(code.max()) + 1)
    most = min(_MOST_LEARNED, _MOST_NUMBERS // (X.shape[1] + _N_LANDMARKS))
    drawn = rng.permutation(unlabelled)[:most]
    fold = _folds(code, n_folds, rng)
    rows = np.asarray(X[np.concatenate([known, drawn])], dtype=np.float64)
    scale = float(np.sqrt(rows.var(axis=0).sum())) or 1.0
    points = rows[len(known) :][:_N_LANDMARKS]
    kernel = Gaussian(scale)
    to_span = whiten(kernel.block(points, points), np.dtype(np.float64))
    features = np.hstack([rows / scale, kernel.block(rows, points) @ to_span])
    functions = [
        (code == value, fold == held_out)
        for held_out in range(-1, int(fold.max(initial=-1)) + 1)
        for value in values
    ]
    learned = [_learn(features, is_case, left_out) for is_case, left_out in functions]
    intercept, coefficients = (np.array(each) for each in zip(*learned, strict=True))
    width, of_known = X.shape[1], rows[: len(known)]
    every = CaseScore(
        points,
        scale,
        intercept,
        coefficients[:, :width].T,
        to_span @ coefficients[:, width:].T,
        tuple(of_known[is_case & ~left_out] for is_case, left_out in functions),
        of_known[code == 0],
    )
    n_values = len(values)
    scores = every.by_value(X[unlabelled])
    of_cases = _places(every.by_value(of_known), scores, fold, n_values)
    of_all = every._replace(  # the first functions, of which nothing was held out
        intercept=every.intercept[:n_values],
        linear=np.ascontiguousarray(every.linear[:, :n_values]),
        gaussian=np.ascontiguousarray(every.gaussian[:, :n_values]),
        cases=every.cases[:n_values],
    )
    return ScoredUnlabelled(of_all, scores[:, :n_values].copy(), of_cases)


def _folds(code: NDArray[np.integer], n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Deal the cases out to folds; -2 for rows that are never held out, as where `n_folds` is 1."""
    fold = np.full(len(code), -2, dtype=np.int64)
    for value in range(1, int(code.max()) + 1):
        cases = np.flatnonzero(code == value)
        if len(cases) > 1 and n_folds > 1:
            fold[rng.permutation(cases)] = np.arange(len(cases)) % n_folds
    return fold


def _learn(
    features: Floats, is_case: NDArray[np.bool_], left_out: NDArray[np.bool_]
) -> tuple[float, Floats]:
    """Learn cases against others; the first rows are the known ones, all others unlabelled."""
    n_known, n_rows = len(is_case), len(features)
    used = np.append(~left_out, np.ones(n_rows - n_known, dtype=bool))
    target = np.append(is_case, np.zeros(n_rows - n_known, dtype=bool))
    cleared = np.append(~is_case & ~left_out, np.zeros(n_rows - n_known, dtype=bool))
    others = _CASE_WEIGHT * np.count_nonzero(target & used)
    share = 0.5 if cleared.any() else 1.0
    weight = np.full(n_rows, share * others / (n_rows - n_known))
    weight[cleared] = (1.0 - share) * others / max(int(np.count_nonzero(cleared)), 1)
    weight[target] = _CASE_WEIGHT
    model = LogisticRegression(tol=_TOLERANCE, max_iter=_MOST_ITERATIONS)
    model.fit(features[used], target[used], sample_weight=weight[used])
    return float(model.intercept_[0]), model.coef_[0]


def _places(
    known: Floats, unlabelled: Floats, fold: NDArray[np.int64], n_values: int
) -> NDArray[np.int64]:
    """Return the places of held-out cases among the unlabelled rows, each by its fold's model."""
    places = [np.zeros(0, dtype=np.int64)]
    for number in range(int(fold.max(initial=-1)) + 1):
        own = slice((number + 1) * n_values, (number + 2) * n_values)
        ordered = np.sort(-unlabelled[:, own].max(axis=1))
        cases = -known[fold == number, own].max(axis=1)
        places.append(np.maximum(np.searchsorted(ordered, cases, side="right"), 1))
    return np.sort(np.concatenate(places))


def to_nearest(rows: Floats, known: Floats) -> Floats:
    """Return the squared distance of every row to the nearest known one: inf where none is."""
    if not len(known) or not len(rows):
        return np.full(len(rows), np.inf)
    apart = rows - known[pairwise_distances_argmin(rows, known)]
    return np.asarray(np.einsum("ij,ij->i", apart, apart))


# Counts that are kept are exact for the first so many values, and to this share for others.
_EXACT, _COARSE = 10_000, 1e-3
# Of scores of the same rows in other batches.
_ROUNDING = 1e-9


class CumulativeCounts(NamedTuple):
    """Number of values at or below another value."""

    values: Floats  # (n_values,), increasing
    at_most: NDArray[np.int64]  # of the values at or below each

    @classmethod
    def of(cls, values: Floats) -> Self:
        """Count values; O(n log n)."""
        found, each = np.unique(values, return_counts=True)
        return cls(found, np.cumsum(each, dtype=np.int64))

    def between(self, other: Floats) -> Floats:
        """Count the values at or below each other one, at least 1, interpolated between values."""
        if not len(self.values):
            return np.ones(np.shape(other))
        return np.asarray(np.interp(other, self.values, self.at_most))

    def thinned(self) -> Self:
        """Keep fewer values: counts are exact to the 10,000th, then to a thousandth."""
        step = np.log(np.maximum(self.at_most / _EXACT, 1.0)) // np.log1p(_COARSE)
        # The first and the last value of every step: between two steps nothing is left out.
        begins = np.diff(step, prepend=-1.0) > 0.0
        ends = np.append(begins[1:], True)[: len(begins)]
        kept = np.flatnonzero(begins | ends | (self.at_most <= _EXACT))
        return self._replace(values=self.values[kept], at_most=self.at_most[kept])

    def check_parts(self) -> None:
        """Raise `ValueError` where values and counts do not belong together."""
        if np.shape(self.at_most) != np.shape(self.values) or np.ndim(self.values) != 1:
            raise ValueError("there is not a count for each value")
        if (np.diff(self.values) <= 0.0).any() or (np.diff(self.at_most, prepend=0) <= 0).any():
            raise ValueError("counts do not increase")


class ShareOfCases(NamedTuple):
    """Share of cases among the first k rows of a list: ``min(1, N H(k) / k)`` (`sureness`)."""

    places: Floats  # corners of H, increasing from 0 to the number of rows
    heights: Floats  # H there, from 0 to 1
    n_cases: float  # N: among all rows

    def __call__(self, k: ArrayLike) -> Floats:
        """Return the share for any k from 1."""
        first = np.asarray(k, dtype=np.float64)
        held = np.interp(first, self.places, self.heights)
        return np.asarray(np.minimum(self.n_cases * held / first, 1.0))

    def check_parts(self) -> None:
        """Raise `ValueError` where places and heights are no curve."""
        places = finite_vector(self.places, "places")
        finite_vector(self.heights, "heights", len(places))
        if not len(places) or (np.diff(places) <= 0.0).any() or not np.isfinite(self.n_cases):
            raise ValueError("places do not increase")


def sureness(
    n_rows: int, of_cases: NDArray[np.int64], n_cases: float | None = None
) -> ShareOfCases | None:
    r"""Estimate the share of cases among the first k rows of a list, and the number of cases.

    The n cases that were held out would stand at the places :math:`k_1 \le \ldots \le k_n`, and j
    of n + 1 cases are to be expected in the first :math:`k_j` rows. Between these points, and from
    (0, 0) to all cases at the end, H is the least concave curve above them (as Grenander's estimate
    of a falling density): the list is sorted, so that a row is never surer than one before it. With
    N cases among the unlabelled rows the share is :math:`\min(1, N H(k) / k)`.

    Where N, `n_cases`, is not known, no label tells it, since cases were sought. It is then taken
    to be the least number with which a part of the list that holds half of the held-out cases, or
    more, would be cases alone, one standard error allowed for:

    .. math:: N = \min_{j \ge (n + 1) / 2} k_j / (r_j - \sqrt{r_j (1 - r_j) / (n + 1)}),
        \quad r_j = j / (n + 1)

    So the surest rows are taken to be cases, and the others are measured against them.
    None where no case was held out. Cost: O(n).

    >>> share = sureness(100, np.array([5, 10, 15, 90]))
    >>> round(share.n_cases, 1), share([1, 15, 50, 100]).round(2).tolist()
    (39.4, [1.0, 1.0, 0.6, 0.39])
    """
    n = len(of_cases)
    if not n:
        return None
    reached = np.arange(1, n + 1) / (n + 1.0)
    if n_cases is None:
        at_least = reached - np.sqrt(reached * (1.0 - reached) / (n + 1.0))
        half = reached >= 0.5
        n_cases = min(float((of_cases[half] / at_least[half]).min()), float(n_rows))
    places = np.concatenate([[0.0], of_cases, [float(n_rows)]])
    heights = np.concatenate([[0.0], reached, [1.0]])
    corners = [0]
    for k in range(1, len(places)):
        if places[k] == places[corners[-1]] and len(corners) > 1:
            corners.pop()
        while len(corners) > 1 and _turns_up(places, heights, corners[-2], corners[-1], k):
            corners.pop()
        corners.append(k)
    return ShareOfCases(places[corners], heights[corners], float(n_cases))


def _turns_up(x: Floats, y: Floats, a: int, b: int, c: int) -> bool:
    """Check if b lies at or below the line from a to c."""
    return bool((y[b] - y[a]) * (x[c] - x[a]) <= (y[c] - y[a]) * (x[b] - x[a]))


class ListOrder(NamedTuple):
    """Order of a hunt's unlabelled rows, surest first, as a model that scores new rows.

    Rows of the hunt with one score are as sure as the last of them. ``offset_`` is the greatest
    number below the score of the last row that was written: rows as sure as that are called rare.
    """

    score: CaseScore
    counts: CumulativeCounts  # of the negative scores of the unlabelled rows
    share: ShareOfCases | None  # None where it is not known
    offset_: float

    def quantiles(self, n: int) -> Floats:
        """Return n quantiles, from 0 to 1, of the scores of the hunt's unlabelled rows."""
        scores = -np.repeat(self.counts.values, np.diff(self.counts.at_most, prepend=0))
        return np.asarray(np.quantile(scores, np.linspace(0.0, 1.0, n)))

    def thinned(self) -> Self:
        """Keep fewer counts: exact for the first 10,000 rows."""
        return self._replace(counts=self.counts.thinned())

    def score_samples(self, X: NDArray[Any]) -> Floats:
        """Return scores that fall down the list of the hunt."""
        return self.score(X)

    def sure(self, scores: Floats) -> Floats | None:
        """Return the expected share of cases among rows at least as sure; None if not known."""
        return None if self.share is None else self.share(self.counts.between(-scores))

    def is_of(self, scores: Floats) -> bool:
        """Say whether the hunt's unlabelled rows may be among rows with these scores.

        Then no fewer rows have a score, or lie between two that are kept, than at the hunt.
        """
        kept = self.counts.values + _ROUNDING * np.maximum(np.abs(self.counts.values), 1.0)
        more = np.searchsorted(np.sort(-scores), kept, side="right") - self.counts.at_most
        return bool((np.diff(more, prepend=0) >= 0).all())

    def check_parts(self) -> None:
        """Raise `ValueError` where rows could not be called by it."""
        if not np.isfinite(self.offset_):
            raise ValueError("the threshold is not a number")
