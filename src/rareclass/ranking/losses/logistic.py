r"""The logistic loss, summed over all pairs to rounding error without forming one.

The score line is cut into cells of length one. log(1 + e^(t - s)) is analytic in t and in s, so
that for s in one cell and t in another it is a polynomial in both, to rounding error. The rare
rows are summed up as Chebyshev moments of each cell; a fixed matrix for every distance of two
cells carries them to polynomials in t; past 40 cells the loss is t - s, or zero. Each majority
row then evaluates the polynomial of its cell. The rare side's gradient goes the same way back,
from the moments of the majority rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import expit

from rareclass.ranking.losses import _logistic_jit as jit
from rareclass.ranking.losses.pair_loss import (
    NO_LEVELS,
    BlockTerms,
    MarginLoss,
    RareTerms,
    RowTerms,
)

# The nearest singularity is pi away from the real line, so that n terms on a cell of length one
# leave about 12.6^-n.
_TERMS = 16
# exp(-40) is rounding error beside 1.
_REACH = 40
_DISTANCES = np.arange(-_REACH, _REACH + 1)
# A row with less curvature than this share of the rare weight does not count as curved.
_CURVED = 1e-3


class LogisticRare(NamedTuple):
    """Cells and tables of the rare side.

    ``total`` is the weight of the rare rows, or one.
    ``rare_cells`` are those with a rare row, ``cells`` those with a table: within reach of one.
    ``cell`` and ``place`` say where each rare row is; ``reach`` (rare cells x distances) where the
    cells within reach are in ``cells``. The tables are Chebyshev coefficients by cell of
    the rare rows' summed loss, and of its first two derivatives. Below gap g before table cell g
    lie rare rows of weight ``gap_count[g]`` and summed score ``gap_sum[g]``.
    """

    scores: np.ndarray
    weight: np.ndarray
    total: float
    centre: float
    rare_cells: np.ndarray
    cells: np.ndarray
    cell: np.ndarray
    place: np.ndarray
    reach: np.ndarray
    value: np.ndarray
    slope: np.ndarray
    bend: np.ndarray
    gap_count: np.ndarray
    gap_sum: np.ndarray


class LogisticDirection(NamedTuple):
    """Tables of the rare rows' direction: first and second derivatives times w d, summed."""

    slope: np.ndarray
    bend: np.ndarray
    gap_count: np.ndarray


class Cells(NamedTuple):
    """Table cell and place of each majority row; its curvature as a share of the rare weight."""

    cell: np.ndarray
    place: np.ndarray
    bend: np.ndarray


@dataclass(frozen=True)
class Logistic(MarginLoss):
    r"""The logistic loss of the margin, RankNet's.

    .. math:: \ell(z) = \log(1 + e^{-z})

    Convex and infinitely smooth. Linear for pairs far in the wrong order, as the hinge is, and
    never quite zero: pairs in the right order keep pulling a little.

    Notes
    -----
    Cost: O(m+ + cells) to prepare, with 16 numbers for each unit of the score line that has a rare
    row within 40, and O(16) for each majority row. Exact to rounding error.

    References
    ----------
    .. [1] Burges et al., "Learning to rank using gradient descent", ICML 2005.

    Examples
    --------
    >>> loss = Logistic()
    >>> one = np.ones(1)
    >>> round(loss.block(loss.rare(0 * one, one), 0 * one, one).value, 6)  # log 2
    0.693147
    """

    @property
    def at_zero(self) -> float:
        """The loss of a pair with equal scores."""
        return float(np.log(2.0))

    def rare(
        self, scores: np.ndarray, weight: np.ndarray, levels: np.ndarray = NO_LEVELS
    ) -> LogisticRare:
        """Sum up the rare rows by cell and carry them to tables."""
        total = weight.sum()
        # Whole, so that rows keep their places in their cells.
        centre = float(np.round(scores @ weight / total)) if total > 0.0 else 0.0
        s = scores - centre
        rare_cells, cell = np.unique(np.floor(s), return_inverse=True)
        place = 2.0 * (s - rare_cells[cell]) - 1.0
        cells = np.unique(rare_cells[:, None] + _DISTANCES)
        reach = np.searchsorted(cells, rare_cells[:, None] + _DISTANCES)
        cell = cell.astype(np.int32)
        moments = _moments((cell, place), weight, len(rare_cells))[0]
        below = np.searchsorted(rare_cells, cells - _REACH)
        count = np.append(0.0, np.cumsum(moments[:, 0]))
        summed = np.append(0.0, np.cumsum(np.bincount(cell, weight * s, len(rare_cells))))
        value = _carried(moments, reach, len(cells), "value")
        value[:, 0] += count[below] * (cells + 0.5) - summed[below]
        value[:, 1] += 0.5 * count[below]
        slope = _carried(moments, reach, len(cells), "slope")
        slope[:, 0] += count[below]
        bend = _carried(moments, reach, len(cells), "bend")
        # A rare cell is a table cell, too: those before the gap.
        gaps = np.append(np.searchsorted(rare_cells, cells), len(rare_cells))
        return LogisticRare(
            s, weight, float(total) or 1.0, centre, rare_cells, cells, cell, place, reach,
            value, slope, bend, count[gaps], summed[gaps],
        )  # fmt: skip

    def block(self, rare: LogisticRare, scores: np.ndarray, weight: np.ndarray) -> BlockTerms:
        """Value, gradient and rare-side sums of a block of majority rows."""
        terms = super().block(rare, scores, weight)
        bend = np.where(weight > 0.0, terms.zone.bend, 0.0)
        return terms._replace(zone=terms.zone._replace(bend=bend))

    def rows(self, rare: LogisticRare, scores: np.ndarray) -> RowTerms:
        """Each majority row's own sum over the rare rows, and its slope."""
        zone = _cells(rare, scores - rare.centre)
        total = _at(zone, rare.value, rare.gap_count, rare.gap_sum)
        slope = _at(zone, rare.slope, None, -rare.gap_count)
        bend = _at(zone, rare.bend) / rare.total
        total, bend = (np.where(each > 0.0, each, 0.0) for each in (total, bend))
        return RowTerms(total, slope, zone._replace(bend=bend))

    def n_pull(self, rare: LogisticRare) -> int:
        """Number of sums of `pull`."""
        return (_TERMS + 1) * len(rare.cells) + 1

    def pull(self, rare: LogisticRare, zone: tuple, weight: np.ndarray) -> np.ndarray:
        """Moments of weighted rows by cell, and their weight by gap."""
        moments, gaps = _moments(zone, weight, len(rare.cells))
        return np.concatenate([moments.ravel(), gaps])

    def finish(self, rare: LogisticRare, sums: np.ndarray) -> RareTerms:
        """Gradient by rare score, in the caller's order, from the sums of all blocks."""
        moments, gaps = np.split(sums, [_TERMS * len(rare.cells)])
        moments = moments.reshape(-1, _TERMS)
        table = _carried_back(moments, rare.reach, "slope")
        table[:, 0] += _far_above(rare, moments[:, 0], gaps)
        return RareTerms(0.0, -rare.weight * _at_rare(rare, table))

    def rare_direction(
        self, rare: LogisticRare, direction: np.ndarray, levels: np.ndarray = NO_LEVELS
    ) -> LogisticDirection:
        """Tables of the direction of the rare rows."""
        n_cells = len(rare.cells)
        change = rare.weight * direction
        moments = _moments((rare.cell, rare.place), change, len(rare.rare_cells))[0]
        count = np.append(0.0, np.cumsum(moments[:, 0]))
        slope = _carried(moments, rare.reach, n_cells, "slope")
        slope[:, 0] += count[np.searchsorted(rare.rare_cells, rare.cells - _REACH)]
        gaps = np.append(np.searchsorted(rare.rare_cells, rare.cells), len(rare.rare_cells))
        bend = _carried(moments, rare.reach, n_cells, "bend")
        return LogisticDirection(slope, bend, count[gaps])

    def row_change(
        self, rare: LogisticRare, prefix: LogisticDirection, zone: tuple, direction: np.ndarray
    ) -> np.ndarray:
        """Change of each majority row's sum along a direction of all scores."""
        slope = _at(zone, rare.slope, None, -rare.gap_count)
        return direction * slope - _at(zone, prefix.slope, None, -prefix.gap_count)

    def curvature(
        self,
        rare: LogisticRare,
        prefix: LogisticDirection,
        zone: tuple,
        direction: np.ndarray,
        weight: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hessian times direction of a block: by majority row, and rare-side sums."""
        n_cells = len(rare.cells)
        product = weight * (direction * zone[2] * rare.total - _at(zone, prefix.bend))
        sums = [_moments(zone, w, n_cells)[0] for w in (weight, weight * direction)]
        return product, np.stack(sums)

    def finish_curvature(
        self, rare: LogisticRare, prefix: LogisticDirection, direction: np.ndarray, sums: np.ndarray
    ) -> RareTerms:
        """Hessian times direction by rare score, from the sums of all blocks."""
        count, reach = (
            _at_rare(rare, _carried_back(moments, rare.reach, "bend"))
            for moments in sums.reshape(2, -1, _TERMS)
        )
        return RareTerms(0.0, rare.weight * (direction * count - reach))

    def rare_sums(self, rare: LogisticRare, scores: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Add up a block for `rare_totals`."""
        t, zone = scores - rare.centre, _cells(rare, scores - rare.centre)
        reach = _gap_sums(zone, weight * t, len(rare.gap_count))
        return np.concatenate([self.pull(rare, zone, weight), reach])

    def rare_totals(self, rare: LogisticRare, sums: np.ndarray) -> np.ndarray:
        """Each rare row's own sum over the majority, in the caller's order."""
        n = len(rare.cells)
        moments, gaps, reach = np.split(sums, [_TERMS * n, (_TERMS + 1) * n + 1])
        moments = moments.reshape(-1, _TERMS)
        near = _at_rare(rare, _carried_back(moments, rare.reach, "value"))
        summed = moments[:, 0] * (rare.cells + 0.5) + 0.5 * moments[:, 1]
        count = _far_above(rare, moments[:, 0], gaps)[rare.cell]
        return near + _far_above(rare, summed, reach)[rare.cell] - rare.scores * count

    def curved(self, zone: tuple) -> np.ndarray:
        """Rows of a block with curvature that is worth speaking of."""
        return zone[2] > _CURVED

    def pair_curvature(self, rare: LogisticRare, which: slice, scores: np.ndarray) -> np.ndarray:
        """Curvature of pairs, times the rare row's weight."""
        e = np.exp(-np.abs(rare.scores[which, None] - (scores - rare.centre)))
        return rare.weight[which, None] * e / ((1.0 + e) * (1.0 + e))

    def pair_slope(self, rare: LogisticRare, which: slice, scores: np.ndarray) -> np.ndarray:
        """Minus the slope of pairs, times the rare row's weight."""
        z = rare.scores[which, None] - (scores - rare.centre)
        e = np.exp(-np.abs(z))
        return rare.weight[which, None] * np.where(z > 0.0, e, 1.0) / (1.0 + e)


@cache
def _carriers(name: str) -> np.ndarray:
    """Matrices from moments in a cell of s to coefficients in a cell of t, by distance of the two.

    Shape (distances, terms of s, terms of t); t - s is the distance plus the difference of the
    places over two.
    """
    nodes = np.cos(np.pi * (np.arange(_TERMS) + 0.5) / _TERMS)
    basis = chebyshev.chebvander(nodes, _TERMS - 1).T * (2.0 / _TERMS)
    basis[0] /= 2.0
    x = _DISTANCES[:, None, None] + 0.5 * (nodes - nodes[:, None])
    function = {
        "value": lambda x: np.logaddexp(0.0, x),
        "slope": expit,
        "bend": lambda x: expit(x) * expit(-x),
    }[name]
    return np.asarray(basis @ function(x) @ basis.T)


def _carried(moments: np.ndarray, reach: np.ndarray, n_cells: int, name: str) -> np.ndarray:
    """Tables by cell from the moments of the rare cells within reach."""
    tables = np.zeros((n_cells, _TERMS))
    carriers = _carriers(name)
    for k in range(len(_DISTANCES)):
        # A distance leads every rare cell to another cell.
        tables[reach[:, k]] += moments @ carriers[k]
    return tables


def _carried_back(moments: np.ndarray, reach: np.ndarray, name: str) -> np.ndarray:
    """Tables by rare cell, as functions of s, from the moments of the cells within reach."""
    carriers = _carriers(name)
    tables = np.zeros((len(reach), _TERMS))
    for k in range(len(_DISTANCES)):
        tables += moments[reach[:, k]] @ carriers[k].T
    return tables


def _far_above(rare: LogisticRare, by_cell: np.ndarray, by_gap: np.ndarray) -> np.ndarray:
    """Sum over all cells and gaps above those within reach, by rare cell."""
    above = np.append(np.cumsum((by_cell + by_gap[1:])[::-1])[::-1], 0.0)
    return np.asarray(above[rare.reach[:, -1] + 1] + by_gap[rare.reach[:, -1] + 1])


def _cells(rare: LogisticRare, scores: np.ndarray) -> Cells:
    """Table cell and place of majority rows whose scores are centred; no curvature yet."""
    cell, place = np.empty(len(scores), dtype=np.int32), np.empty(len(scores))
    jit._cells(scores, rare.cells, cell, place)
    return Cells(cell, place, np.zeros(0))


def _moments(
    zone: Sequence[np.ndarray], weight: np.ndarray, n_cells: int
) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev moments of weighted rows by cell, and their weight by gap."""
    cell, place = zone[:2]
    moments, gaps = np.zeros((n_cells, _TERMS)), np.zeros(n_cells + 1)
    jit._moments(cell, place, weight, moments, gaps)
    return moments, gaps


def _gap_sums(zone: Sequence[np.ndarray], values: np.ndarray, n_gaps: int) -> np.ndarray:
    """Sums of values by gap."""
    in_gap = zone[0] < 0
    return np.bincount(-1 - zone[0][in_gap], values[in_gap], n_gaps)


def _at(
    zone: Sequence[np.ndarray],
    table: np.ndarray,
    gap_count: np.ndarray | None = None,
    gap_sum: np.ndarray | None = None,
) -> np.ndarray:
    """A table's function at majority rows; ``gap_count t - gap_sum`` in gaps."""
    cell, place = zone[:2]
    none, values = np.zeros(len(table) + 1), np.empty(len(cell))
    of_gaps = (none if each is None else each for each in (gap_count, gap_sum))
    jit._interpolate(cell, place, table, *of_gaps, values)
    return values


def _at_rare(rare: LogisticRare, table: np.ndarray) -> np.ndarray:
    """A table's function at the rare rows."""
    return _at((rare.cell, rare.place), table)
