"""How sure it is that a row belongs with the cases: the order in which a hunt's rows are read."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.hunt.sure_key import (
    OTHER,
    Counts,
    SureKey,
    against,
    relative_distance,
    to_nearest,
)
from rareclass.hunt.table import UNLABELLED, HuntLabels
from rareclass.hyperball.pool import RARE
from rareclass.model.soundness import finite_vector

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

    It is sorted by `SureKey`.
    """

    key: SureKey
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
    deep: list[Counts] = []
    for number, fitted in enumerate(model.balls_):
        label, rare = str(fitted.label), fitted.rows[fitted.kinds == RARE]
        if label not in near:
            near[label] = _Nearness(X, labels, label)
        as_near, as_deep = near[label], Counts.of(-depths[:, number], len(rare))
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
    return Places(key, keys, found, np.sort(np.maximum(places, 1)).astype(np.int64))


class _Nearness:
    """Unlabelled rows that are as near to a case of one label, for each case of it."""

    def __init__(self, X: NDArray[np.floating], labels: HuntLabels, label: str) -> None:
        self.cases = np.flatnonzero(labels.y == label)
        known = X[self.cases]
        others = X[np.flatnonzero((labels.y != label) & (labels.y != UNLABELLED))]
        rows = X[labels.unlabelled]
        near = relative_distance(rows, known, others)
        self.count = Counts.of(near, len(known))
        self.of_unlabelled = self.count(near)
        apart = against(_to_other(known), known, others)
        self._of_cases = self.count(apart * (1.0 + _ROUNDING))

    def of_cases(self, rows: NDArray[np.int64]) -> Floats:
        """The same for some of the cases, each without itself."""
        return np.asarray(self._of_cases[np.searchsorted(self.cases, rows)])


def _to_other(cases: NDArray[np.floating]) -> Floats:
    """Distance of every case to the nearest other one; none is near to the only one."""
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
        """The share for any k from 1."""
        first = np.asarray(k, dtype=np.float64)
        held = np.interp(first, self.places, self.heights)
        return np.asarray(np.minimum(self.n_cases * held / first, 1.0))

    def check_parts(self) -> None:
        """Raise `ValueError` where this is no curve."""
        places = finite_vector(self.places, "places")
        finite_vector(self.heights, "heights", len(places))
        if not len(places) or (np.diff(places) <= 0.0).any() or not np.isfinite(self.n_cases):
            raise ValueError("places do not increase")


def sureness(
    n_rows: int, of_cases: NDArray[np.int64], n_cases: float | None = None
) -> ShareOfCases | None:
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
    """Whether b lies at or below the line from a to c."""
    return bool((y[b] - y[a]) * (x[c] - x[a]) <= (y[c] - y[a]) * (x[b] - x[a]))
