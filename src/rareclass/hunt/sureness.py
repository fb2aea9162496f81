"""The order of a hunt's list: how deep a row lies in its ball, and how near it is to a case.

`find_places` sorts the unlabelled rows by `SureKey` and places held-out cases among them;
`sureness` turns these places into the share of cases among the first rows; `ListOrder` keeps both,
so that `HuntBalls`, a model, scores new rows by the same order.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import pairwise_distances_argmin

from rareclass.hunt.table import UNLABELLED, HuntLabels
from rareclass.hyperball.pool import RARE
from rareclass.kernels.kernels import make_kernel
from rareclass.model.model_file import finite_vector

if TYPE_CHECKING:
    from rareclass.hyperball import RACH

Floats = NDArray[np.float64]
# Counts that are kept are exact for the first so many values, and to this share for others.
_EXACT, _COARSE = 10_000, 1e-3
_BLOCK_ROWS = 50_000
OTHER = -1  # label of a known row that is no case of any ball
# Distances that differ by less than this share are equal.
_ROUNDING = 1e-9


class HeldOutCases(NamedTuple):
    """Labelled rows that were held out, and their depth in balls fitted without their label."""

    rows: NDArray[np.int64]  # positions in the table, perhaps repeated
    depths: Floats  # at or above 0 where the row would have been found


class CumulativeCounts(NamedTuple):
    """Number of values at or below another value, for each of `per` cases."""

    values: Floats  # (n_values,), increasing
    at_most: NDArray[np.int64]  # of the values at or below each
    per: int = 1

    @classmethod
    def of(cls, values: Floats, per: int = 1) -> Self:
        """Count values; O(n log n)."""
        found, each = np.unique(values, return_counts=True)
        return cls(found, np.cumsum(each, dtype=np.int64), per)

    @property
    def n_all(self) -> int:
        """Number of values that were counted."""
        return int(self.at_most[-1]) if len(self.at_most) else 0

    def __call__(self, other: Floats) -> Floats:
        """Count the values at or below each other one, at least 1, for each case."""
        counts = np.concatenate([[1], self.at_most])
        return np.asarray(counts[np.searchsorted(self.values, other, side="right")] / self.per)

    def between(self, other: Floats) -> Floats:
        """Count as well, interpolated between values; below the least value its count holds.

        So numbers between two values differ, and rounding moves a count by little.
        """
        if not len(self.values):
            return np.full(np.shape(other), 1.0 / self.per)
        return np.asarray(np.interp(other, self.values, self.at_most) / self.per)

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
        if self.per < 1:
            raise ValueError("counts are of no case")


class SureKey(NamedTuple):
    r"""Sort key of rows, from counts of the unlabelled rows of a hunt: smaller is surer.

    Two things make a row sure: how deep it lies in its ball, and how near it is to a case, measured
    against the nearest other labelled row: ``d_case / (d_case + d_other)``. Each is counted
    in unlabelled rows that lie at least as deep, or as near, for each case of the ball or label, so
    that balls of every size and shape compare. The key is the geometric mean of the two counts.
    """

    known: NDArray[np.floating]  # (n_known, n_coordinates): the labelled rows
    label: NDArray[np.int64]  # (n_known,): place of their label in `near`; `OTHER` of the others
    near: tuple[CumulativeCounts, ...]  # of nearness to a case, for each label
    deep: tuple[CumulativeCounts, ...]  # of the negative depth in a ball, for each ball
    label_of: tuple[int, ...]  # of each ball

    def __call__(self, X: NDArray[np.floating], ball: NDArray[np.int64], depth: Floats) -> Floats:
        """Return the keys of rows at a depth (R^2 - distance^2) in these balls, one each.

        Between two of the unlabelled rows counts are interpolated. Cost: a distance from every row
        to every labelled one.
        """
        keys = np.empty(len(X))
        for number, (deep, place) in enumerate(zip(self.deep, self.label_of, strict=True)):
            own, is_case = np.flatnonzero(ball == number), self.label == place
            if len(own):
                apart = relative_distance(X[own], self.known[is_case], self.known[~is_case])
                as_near = self.near[place].between(apart)
                keys[own] = np.sqrt(deep.between(-depth[own]) * as_near)
        return keys

    def check_parts(self) -> None:
        """Raise `ValueError` where the parts are not of one size."""
        places = range(len(self.near))
        if np.ndim(self.known) != 2 or np.shape(self.label) != (len(self.known),):
            raise ValueError("there is not a label for each known row")
        if not all(place in places and (self.label == place).any() for place in self.label_of):
            raise ValueError("a ball has no known case")
        if len(self.deep) != len(self.label_of):
            raise ValueError("there are not counts for each ball")


def relative_distance(
    X: NDArray[np.floating], cases: NDArray[np.floating], others: NDArray[np.floating]
) -> Floats:
    """Return the distance of every row to the nearest case, relative to the nearest other row."""
    return against(to_nearest(X, cases), X, others)


def against(apart: Floats, X: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
    """Return distances to cases, relative to the distances to other known rows, if any."""
    if not len(others):
        return apart
    other = to_nearest(X, others)
    with np.errstate(invalid="ignore"):
        return np.where(apart + other > 0.0, apart / (apart + other), 0.5)


def to_nearest(X: NDArray[np.floating], cases: NDArray[np.floating]) -> Floats:
    """Return the distance of every row to the nearest case: 0 to an equal one."""
    middle = cases.mean(axis=0, dtype=np.float64)  # far from zero, squares lose digits
    centred, apart = cases - middle, np.empty(len(X))
    for first in range(0, len(X), _BLOCK_ROWS):
        block = X[first : first + _BLOCK_ROWS] - middle
        block -= centred[pairwise_distances_argmin(block, centred)]
        apart[first : first + _BLOCK_ROWS] = np.sqrt(np.einsum("ij,ij->i", block, block))
    return apart


@dataclass(frozen=True)
class ListPlaces:
    """Places in the list of the unlabelled rows: found rows first, then others, by `SureKey`."""

    key: SureKey
    keys: Floats  # of the unlabelled rows: smaller is surer
    found: NDArray[np.bool_]
    of_cases: NDArray[np.int64]  # places of the held-out cases, from 1, increasing


def find_places(
    X: NDArray[np.floating],
    labels: HuntLabels,
    model: "RACH",
    distances: Floats,
    held_out: HeldOutCases | None,
) -> ListPlaces:
    """Place the unlabelled rows of X, and the held-out cases as if they were among them.

    `distances` are those of the unlabelled rows to every centre. Cost: a distance from every
    unlabelled row to every labelled one.
    """
    depths = np.array([ball.squared_radius for ball in model.balls_]) - distances**2
    ball, found = depths.argmax(axis=1), depths.max(axis=1) >= 0.0
    known = held_out or HeldOutCases(np.zeros(0, dtype=np.int64), np.zeros(0))
    keys, case_keys, case_found = np.empty(len(depths)), [np.zeros(0)], [np.zeros(0, dtype=bool)]
    near: dict[str, _Nearness] = {}
    deep: list[CumulativeCounts] = []
    for number, fitted in enumerate(model.balls_):
        label, rare = str(fitted.label), fitted.rows[fitted.kinds == RARE]
        if label not in near:
            near[label] = _Nearness(X, labels, label)
        as_near, as_deep = near[label], CumulativeCounts.of(-depths[:, number], len(rare))
        deep.append(as_deep)
        own, mine = ball == number, np.isin(known.rows, rare)
        keys[own] = np.sqrt(as_deep(-depths[own, number]) * as_near.of_unlabelled[own])
        depth = known.depths[mine]
        case_keys.append(np.sqrt(as_deep(-depth) * as_near.of_cases(known.rows[mine])))
        case_found.append(depth >= 0.0)
    inside, outside = np.sort(keys[found]), np.sort(keys[~found])
    of_cases = np.concatenate(case_keys) * (1.0 + _ROUNDING)
    places = np.where(
        np.concatenate(case_found),
        np.searchsorted(inside, of_cases, side="right"),
        len(inside) + np.searchsorted(outside, of_cases, side="right"),
    )
    labelled = np.flatnonzero(labels.y != UNLABELLED)
    place_of = {label: place for place, label in enumerate(near)}
    key = SureKey(
        X[labelled],
        np.array([place_of.get(label, OTHER) for label in labels.y[labelled].tolist()]),
        tuple(one.count for one in near.values()),
        tuple(deep),
        tuple(place_of[str(fitted.label)] for fitted in model.balls_),
    )
    return ListPlaces(key, keys, found, np.sort(np.maximum(places, 1)).astype(np.int64))


class _Nearness:
    """Counts of unlabelled rows at least as near to a case of one label, for each case."""

    def __init__(self, X: NDArray[np.floating], labels: HuntLabels, label: str) -> None:
        self.cases = np.flatnonzero(labels.y == label)
        known = X[self.cases]
        others = X[np.flatnonzero((labels.y != label) & (labels.y != UNLABELLED))]
        rows = X[labels.unlabelled]
        near = relative_distance(rows, known, others)
        self.count = CumulativeCounts.of(near, len(known))
        self.of_unlabelled = self.count(near)
        apart = against(_to_other(known), known, others)
        self._of_cases = self.count(apart * (1.0 + _ROUNDING))

    def of_cases(self, rows: NDArray[np.int64]) -> Floats:
        """Return the counts of some cases, each measured without itself."""
        return np.asarray(self._of_cases[np.searchsorted(self.cases, rows)])


def _to_other(cases: NDArray[np.floating]) -> Floats:
    """Return the distance of every case to the nearest other case; inf for the only one."""
    if len(cases) < 2:
        return np.full(len(cases), np.inf)
    return np.array(
        [to_nearest(cases[k : k + 1], np.delete(cases, k, axis=0))[0] for k in range(len(cases))]
    )


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
    """Order of a hunt's unlabelled rows, surest first, by which new rows are scored.

    The score of a row is ``1 / key`` in a ball, which is above 0, and ``-key`` outside of all
    (`SureKey`), and falls down the list. Rows of the hunt with one key have one score, and are as
    sure as the last of them.
    """

    key: SureKey
    inside: CumulativeCounts  # of the keys of the unlabelled rows that lie in a ball
    outside: CumulativeCounts  # of the others' keys
    share: ShareOfCases | None  # None where no case was held out

    @classmethod
    def of(cls, places: ListPlaces, share: ShareOfCases | None) -> Self:
        """Keep of a list what new rows need; `thinned` makes it small enough to be written."""
        keys, found = places.keys, places.found
        return cls(
            places.key, CumulativeCounts.of(keys[found]), CumulativeCounts.of(keys[~found]), share
        )

    def quantiles(self, n: int) -> Floats:
        """Return n quantiles, from 0 to 1, of the scores of the hunt's unlabelled rows."""
        inside, outside = (
            np.repeat(one.values, np.diff(one.at_most, prepend=0))
            for one in (self.inside, self.outside)
        )
        scores = np.concatenate([-outside, 1.0 / inside])
        return np.asarray(np.quantile(scores, np.linspace(0.0, 1.0, n)))

    def thinned(self) -> Self:
        """Keep fewer counts: exact for the first 10,000 rows by depth, nearness and key."""
        near, deep = ([one.thinned() for one in each] for each in (self.key.near, self.key.deep))
        key = self.key._replace(near=tuple(near), deep=tuple(deep))
        return self._replace(key=key, inside=self.inside.thinned(), outside=self.outside.thinned())

    def scores(self, X: NDArray[np.floating], ball: NDArray[np.int64], depth: Floats) -> Floats:
        """Score rows by their depth (R^2 - distance^2) in the ball in which each is deepest."""
        keys = self.key(X, ball, depth)
        return np.where(depth >= 0.0, 1.0 / keys, -keys)

    def sure(self, scores: Floats) -> Floats | None:
        """Return the expected share of cases among the rows of the hunt that are at least as sure.

        None where no case was held out.
        """
        if self.share is None:
            return None
        found = scores > 0.0
        keys = np.where(found, 1.0 / np.where(found, scores, 1.0), -scores)
        outside = self.inside.n_all + self.outside.between(keys)
        return self.share(np.where(found, self.inside.between(keys), outside))


class PlainBall(NamedTuple):
    """A ball by the numbers that distances need."""

    name: str
    squared_radius: float
    # (n_coordinates,), or with a kernel the weights of the landmarks
    center: Floats
    landmarks: Floats | None = None  # (n_landmarks, n_coordinates)
    kernel: str | None = None
    width: float = 1.0
    squared_norm: float = 0.0  # of the centre in the space of the kernel

    def check_parts(self) -> None:
        """Raise `ValueError` where the parts of a ball are not of one size."""
        center = finite_vector(self.center, "center")
        if self.landmarks is not None and self.landmarks.shape[0] != len(center):
            raise ValueError("center does not have a weight for each landmark")
        if not np.isfinite([self.squared_radius, self.width, self.squared_norm]).all():
            raise ValueError("a ball has no finite radius")

    def squared_distances(self, X: NDArray[Any]) -> Floats:
        """Return ``|x - c|^2`` of every row, or ``k(x, x) - 2 b . k(Z, x) + |c|^2``."""
        X = np.asarray(X, dtype=np.float64)
        if self.kernel is None or self.landmarks is None:
            apart = X - self.center
            return np.einsum("ij,ij->i", apart, apart)
        kernel = make_kernel(self.kernel, self.width)
        inner = kernel.block(X, self.landmarks) @ self.center
        return np.maximum(kernel.diag(X) - 2.0 * inner + self.squared_norm, 0.0)


class HuntBalls:
    """Balls of a hunt, as a model that scores rows.

    ``offset_`` is the greatest number below 0: rows on the sphere belong to a ball.
    """

    offset_ = float(np.nextafter(0.0, -1.0))

    def __init__(self, balls: list[PlainBall], order: ListOrder) -> None:
        self.balls, self.order = balls, order

    def check_parts(self) -> None:
        """Raise `ValueError` where balls and list are not of one hunt."""
        if len(self.order.key.deep) != len(self.balls):
            raise ValueError("there are not counts for each ball")
        width = self.order.key.known.shape[1]
        places = [one.center if one.landmarks is None else one.landmarks for one in self.balls]
        if any(place.shape[-1] != width for place in places):
            raise ValueError("balls and labelled rows are not in one space")

    def score_samples(self, X: NDArray[Any]) -> Floats:
        """Return scores that fall down the list of the hunt (`ListOrder`), above 0 in a ball."""
        squared = np.column_stack([ball.squared_distances(X) for ball in self.balls])
        radius = np.array([ball.squared_radius for ball in self.balls])
        deepest = (radius - squared).argmax(axis=1)
        distance = squared[np.arange(len(squared)), deepest]
        return self.order.scores(X, deepest, radius[deepest] - distance)

    def sure(self, scores: Floats) -> Floats | None:
        """Return the expected share of cases among rows as sure; see `ListOrder.sure`."""
        return self.order.sure(scores)
