"""How sure it is that a row belongs with the cases: the order in which a hunt's rows are read."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin_min

from rareclass.hyperball.pool import RARE
from rareclass.verbs.hunt.table import UNLABELLED, HuntLabels

if TYPE_CHECKING:
    from rareclass.hyperball import RACH

Floats = NDArray[np.float64]
# Of a distance: what is nearer than this is as near.
_ROUNDING = 1e-9


class HeldOut(NamedTuple):
    """Labelled rows that were held out, and their depth in balls fitted without their label."""

    rows: NDArray[np.int64]  # positions in the table; a row may stand there several times
    depths: Floats  # at or above 0: it would have been found


@dataclass(frozen=True)
class Places:
    """Where rows stand in the list of the unlabelled ones: those found first, the surest in front.

    Two things make a row sure: how deep it lies in its ball, and how near it is to a case, measured
    against the nearest labelled row that is none: ``d_case / (d_case + d_other)``. Each is counted
    in unlabelled rows that lie at least as deep, or as near, for each case of the ball or label, so
    that balls of every size and shape compare. The geometric mean of the two counts is the key that
    the list is sorted by.
    """

    keys: Floats  # of the unlabelled rows: smaller is surer
    found: NDArray[np.bool_]
    of_cases: NDArray[np.int64]  # places of the held-out cases, from 1, increasing


def find_places(
    X: NDArray[np.floating],
    labels: HuntLabels,
    model: "RACH",
    distances: Floats,
    held_out: HeldOut | None,
) -> Places:
    """Place the unlabelled rows of X, and the held-out cases as if they were among them.

    `distances` are those of the unlabelled rows to every centre. Cost: a distance from every
    unlabelled row to every labelled one.
    """
    depths = np.array([ball.squared_radius for ball in model.balls_]) - distances**2
    ball, found = depths.argmax(axis=1), depths.max(axis=1) >= 0.0
    known = held_out or HeldOut(np.zeros(0, dtype=np.int64), np.zeros(0))
    keys, case_keys, case_found = np.empty(len(depths)), [np.zeros(0)], [np.zeros(0, dtype=bool)]
    near: dict[str, _Nearness] = {}
    for number, fitted in enumerate(model.balls_):
        label, rare = str(fitted.label), fitted.rows[fitted.kinds == RARE]
        as_near = near.setdefault(label, _Nearness(X, labels, label))
        as_deep = _Count(-depths[:, number], len(rare))
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
    return Places(keys, found, np.sort(np.maximum(places, 1)).astype(np.int64))


class _Nearness:
    """Unlabelled rows that are as near to a case of one label, for each case of it."""

    def __init__(self, X: NDArray[np.floating], labels: HuntLabels, label: str) -> None:
        self.cases = np.flatnonzero(labels.y == label)
        known = X[self.cases]
        others = X[np.flatnonzero((labels.y != label) & (labels.y != UNLABELLED))]
        rows = X[labels.unlabelled]
        near = _relative(_to_nearest(rows, known), rows, others)
        count = _Count(near, len(known))
        self.of_unlabelled = count(near)
        self._of_cases = count(_relative(_to_other(known), known, others) * (1.0 + _ROUNDING))

    def of_cases(self, rows: NDArray[np.int64]) -> Floats:
        """The same for some of the cases, each without itself."""
        return np.asarray(self._of_cases[np.searchsorted(self.cases, rows)])


def _relative(apart: Floats, X: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
    """Distances to cases, measured against those of the same rows to the others."""
    if not len(others):
        return apart
    other = _to_nearest(X, others)
    with np.errstate(invalid="ignore"):
        return np.where(apart + other > 0.0, apart / (apart + other), 0.5)


class _Count:
    """How many of some values, for each of `per`, are at or below another; at least one is."""

    def __init__(self, values: Floats, per: int) -> None:
        self.values, self.per = np.sort(values), per

    def __call__(self, other: Floats) -> Floats:
        at_most = np.searchsorted(self.values, other, side="right")
        return np.asarray(np.maximum(at_most, 1) / self.per)


def _to_nearest(X: NDArray[np.floating], cases: NDArray[np.floating]) -> Floats:
    """Distance of every row to the nearest case."""
    middle = cases.mean(axis=0, dtype=np.float64)  # far from zero, squares lose digits
    _, apart = pairwise_distances_argmin_min(X - middle, cases - middle)
    return np.asarray(apart, dtype=np.float64)


def _to_other(cases: NDArray[np.floating]) -> Floats:
    """Distance of every case to the nearest other one; none is near to the only one."""
    if len(cases) < 2:
        return np.full(len(cases), np.inf)
    return np.array(
        [_to_nearest(cases[k : k + 1], np.delete(cases, k, axis=0))[0] for k in range(len(cases))]
    )


def sureness(
    n_rows: int, of_cases: NDArray[np.int64], n_cases: float | None = None
) -> tuple[Floats, float] | None:
    r"""Share of cases among the first k rows of a list, for every k from 1, and how many there are.

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

    None where no case was held out. Cost: O(n_rows).

    >>> share, n_cases = sureness(100, np.array([5, 10, 15, 90]))
    >>> round(n_cases, 1), share[[0, 14, 49, 99]].round(2).tolist()
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
    ks = np.arange(1.0, n_rows + 1.0)
    curve = np.interp(ks, places[corners], heights[corners])
    return np.minimum(n_cases * curve / ks, 1.0), n_cases


def _turns_up(x: Floats, y: Floats, a: int, b: int, c: int) -> bool:
    """Whether b lies at or below the line from a to c."""
    return bool((y[b] - y[a]) * (x[c] - x[a]) <= (y[c] - y[a]) * (x[b] - x[a]))
