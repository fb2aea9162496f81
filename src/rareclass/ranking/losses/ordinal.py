r"""A pair loss over rows of several ordered levels, made of any pair loss of two.

Pairs of a held row and a majority row are the two-class loss itself where the held row stands
higher, and the two-class loss of negated scores where it stands lower. Pairs of held rows are
worked out with the held side, once for all blocks: each level in turn is the majority of those
above it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from rareclass.errors import ErrorKind
from rareclass.ranking.losses.pair_loss import BlockTerms, PairLoss, RareTerms


class OrdinalZone(tuple):
    """The zones of a block on each side, as one flat tuple of arrays."""

    sides: Sequence[Any]
    n_rows: int

    def __new__(cls, sides: Sequence[Any], n_rows: int) -> "OrdinalZone":
        """Lay the arrays of both sides one after the other."""
        zone = super().__new__(cls, [array for side in sides for array in side])
        zone.sides, zone.n_rows = tuple(sides), n_rows
        return zone


class Crossing(NamedTuple):
    """The held rows on one side of the majority level."""

    sign: float  # -1 where they stand lower: the loss then sees negated scores
    rows: np.ndarray  # which held rows, increasing
    cost: np.ndarray  # of a pair of each with a majority row


class Side(NamedTuple):
    """A `Crossing` whose pairs weigh something, at some scores."""

    crossing: Crossing
    rare: Any  # what the loss made of the held scores


class Within(NamedTuple):
    """One level of the held rows against those above it, at some scores."""

    lower: np.ndarray  # which held rows
    upper: np.ndarray  # in increasing order of score, which makes sorting them again quick
    rare: Any  # what the loss made of upper
    terms: BlockTerms  # of lower as a block of the majority


class OrdinalSide(NamedTuple):
    """Held rows as blocks see them, and the terms of pairs of held rows, where pairs weigh."""

    sides: list[Side]
    within: list[Within]
    weight: np.ndarray


class OrdinalDirection(NamedTuple):
    """A direction of the held scores, as the loss made it for the same sides and pairs."""

    sides: list[Any]
    within: list[Any]


@dataclass(frozen=True, eq=False)
class OrdinalLoss(PairLoss):
    r"""A pair loss summed over all pairs of different levels: problems (47) and (48) of the paper.

    .. math:: L(s) = \sum_{r < t} c_{rt} \sum_{i \in t} \sum_{j \in r} w_i w_j \,
        \ell(s_i - s_j)

    A pair loss that is no plain sum over pairs, such as a p-norm push, is taken of every group of
    pairs as a two-class problem of its own: the majority against the held rows above it; the same
    with negated scores against those below it; each held level against the held levels above it.

    Two binary searches among the held rows for each majority row, whatever the number of levels;
    O(m+ log m+) once, and O(m+ + m_r log m+) for each held level r; memory O(m+) for each level.

    >>> from rareclass.ranking.losses import SmoothedHinge
    >>> loss = OrdinalLoss(SmoothedHinge(), np.array([1, 2]), 0, np.ones((3, 3)))
    >>> loss.pair_weight(np.ones(2), 10.0)  # 10 majority rows, one row of each of two levels above
    21.0
    """

    pair_loss: PairLoss  # l: any loss of two classes
    codes: np.ndarray  # shape (m+,): level of each held row, its position in the order
    majority_level: int  # level of the rows that are summed
    # c, shape (n_levels, n_levels): costs[r, t] for r < t, at or above 0; others are not read
    costs: np.ndarray

    @cached_property
    def crossing(self) -> list[Crossing]:
        """The held rows above the majority, and those below it, where pairs with it cost."""
        middle = self.majority_level
        above, below = np.flatnonzero(self.codes > middle), np.flatnonzero(self.codes < middle)
        both = [
            Crossing(1.0, above, self.costs[middle, self.codes[above]]),
            Crossing(-1.0, below, self.costs[self.codes[below], middle]),
        ]
        return [side for side in both if side.cost.any()]

    @cached_property
    def bases(self) -> list[int]:
        """Held levels with held levels above them, pairs with which cost."""
        held = np.unique(self.codes)
        return [int(level) for level in held if self.costs[level, held[held > level]].any()]

    def pair_weight(self, rare_weight: np.ndarray, majority: float) -> float:
        r"""Total weight of all pairs, :math:`\sum_{r<t} c_{rt} W_r W_t` for plain pair losses."""
        total = 0.0
        for side in self.crossing:
            weight = rare_weight[side.rows] * side.cost
            total += self.pair_loss.pair_weight(weight, majority) if weight.any() else 0.0
        everything = np.arange(len(self.codes))
        for level in self.bases:
            lower, _, weight = self._split_at(level, everything, self.codes, rare_weight)
            below = float(rare_weight[lower].sum())
            if below > 0.0 and weight.any():
                total += self.pair_loss.pair_weight(weight, below)
        if not total > 0.0:
            raise ErrorKind.LABELS.error(
                "no two levels that have rows make pairs that cost: give pair_cost above 0 for "
                "some of them, or folds that leave rows of both."
            )
        return total

    def rare(self, scores: np.ndarray, weight: np.ndarray) -> OrdinalSide:
        """Sort the held rows, sum prefixes, and work out the pairs among them."""
        loss = self.pair_loss
        sides, within = [], []
        for crossing in self.crossing:
            of_pairs = weight[crossing.rows] * crossing.cost
            if of_pairs.any():
                side = loss.rare(crossing.sign * scores[crossing.rows], of_pairs)
                sides.append(Side(crossing, side))
        by_score = np.argsort(scores, kind="stable")
        codes = self.codes[by_score]
        for level in self.bases:
            lower, upper, of_pairs = self._split_at(level, by_score, codes, weight)
            if of_pairs.any() and weight[lower].any():
                side = loss.rare(scores[upper], of_pairs)
                terms = loss.block(side, scores[lower], weight[lower])
                within.append(Within(lower, upper, side, terms))
        return OrdinalSide(sides, within, weight)

    def block(self, rare: OrdinalSide, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """Value, gradient and held-side sums of a block of majority rows."""
        value, gradient = 0.0, np.zeros_like(scores)
        sums, zones = [], []
        for crossing, side in rare.sides:
            terms = self.pair_loss.block(side, crossing.sign * scores, weight)
            value += terms.value
            gradient += crossing.sign * terms.gradient
            sums.append(terms.sums)
            zones.append(terms.zone)
        return BlockTerms(value, gradient, _joined(sums), OrdinalZone(zones, len(scores)))

    def finish(self, rare: OrdinalSide, sums: np.ndarray) -> RareTerms:
        """Value of pairs of held rows; gradient by held score, in the caller's order."""
        value, gradient = 0.0, np.zeros(len(self.codes))
        for (crossing, side), own in zip(rare.sides, _cut(sums, rare.sides), strict=True):
            terms = self.pair_loss.finish(side, own)
            value += terms.value
            gradient[crossing.rows] += crossing.sign * terms.gradient
        for pairs in rare.within:
            terms = self.pair_loss.finish(pairs.rare, pairs.terms.sums)
            value += pairs.terms.value + terms.value
            gradient[pairs.lower] += pairs.terms.gradient
            gradient[pairs.upper] += terms.gradient
        return RareTerms(value, gradient)

    def rare_direction(self, rare: OrdinalSide, direction: np.ndarray) -> OrdinalDirection:
        """Prepare a direction of the held scores for `curvature`."""
        loss = self.pair_loss
        sides = [
            loss.rare_direction(side, crossing.sign * direction[crossing.rows])
            for crossing, side in rare.sides
        ]
        within = [loss.rare_direction(pairs.rare, direction[pairs.upper]) for pairs in rare.within]
        return OrdinalDirection(sides, within)

    def curvature(
        self,
        rare: OrdinalSide,
        prefix: OrdinalDirection,
        zone: OrdinalZone,
        direction: np.ndarray,
        weight: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hessian times direction of a block: by majority row, and held-side sums."""
        product, sums = np.zeros_like(direction), []
        for (crossing, side), own, part in zip(rare.sides, prefix.sides, zone.sides, strict=True):
            by_row, more = self.pair_loss.curvature(
                side, own, part, crossing.sign * direction, weight
            )
            product += crossing.sign * by_row
            sums.append(more)
        return product, _joined(sums)

    def finish_curvature(
        self, rare: OrdinalSide, prefix: OrdinalDirection, direction: np.ndarray, sums: np.ndarray
    ) -> np.ndarray:
        """Hessian times direction by held score, from the sums of all blocks."""
        product, loss = np.zeros(len(self.codes)), self.pair_loss
        each = zip(rare.sides, prefix.sides, _cut(sums, rare.sides), strict=True)
        for (crossing, side), own, more in each:
            d = crossing.sign * direction[crossing.rows]
            of_side = loss.finish_curvature(side, own, d, more)
            product[crossing.rows] += crossing.sign * of_side
        for pairs, own in zip(rare.within, prefix.within, strict=True):
            below, above = direction[pairs.lower], direction[pairs.upper]
            by_row, more = loss.curvature(
                pairs.rare, own, pairs.terms.zone, below, rare.weight[pairs.lower]
            )
            product[pairs.lower] += by_row
            product[pairs.upper] += loss.finish_curvature(pairs.rare, own, above, more)
        return product

    def curved(self, zone: OrdinalZone) -> np.ndarray:
        """Mask of the rows with a pair that has curvature, on either side."""
        each = [self.pair_loss.curved(side) for side in zone.sides]
        return reduce(or_, each) if each else np.zeros(zone.n_rows, dtype=bool)

    def pair_curvature(self, rare: OrdinalSide, which: slice, scores: np.ndarray) -> np.ndarray:
        """Curvature of pairs of some held rows with majority scores; pairs of held rows are not."""
        start, stop, _ = which.indices(len(self.codes))
        found = np.zeros((stop - start, len(scores)))
        for crossing, side in rare.sides:
            first, last = (int(k) for k in np.searchsorted(crossing.rows, [start, stop]))
            found[crossing.rows[first:last] - start] = self.pair_loss.pair_curvature(
                side, slice(first, last), crossing.sign * scores
            )
        return found

    def _split_at(
        self, level: int, order: np.ndarray, codes: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Held rows of a level, those above it, and what a pair of each weighs."""
        upper = order[codes > level]
        return order[codes == level], upper, weight[upper] * self.costs[level, self.codes[upper]]


def _joined(sums: list[np.ndarray]) -> np.ndarray:
    """Sums of both sides one after the other."""
    return np.concatenate(sums, axis=1) if sums else np.empty((0, 0))


def _cut(sums: np.ndarray, sides: Sequence[Side]) -> list[np.ndarray]:
    """Sums of each side, as they were before they were joined."""
    ends = np.cumsum([len(side.crossing.rows) + 1 for side in sides])
    return np.split(sums, ends[:-1], axis=1) if sides else []
