"""What `_logistic_jit` loops over, by the array API alone.

Rows in the order of their scores run through the gaps and cells in turn, so that what is scattered
there row by row is a difference of prefix sums over them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rareclass.array_api import like, namespace, sums_between


class OrderedCells(NamedTuple):
    """Cells and places of majority rows as `_logistic_jit` has them, and the rows' order by score.

    ``bend`` is their curvature as a share of the rare weight. Gap 0, cell 0, gap 1 and so on are
    one sequence of places: the first ``ends[k]`` rows in order lie in the first k + 1 of them.
    """

    cell: Any
    place: Any
    bend: Any
    order: Any
    ends: Any


def cells(scores: Any, rare_cells: Any) -> OrderedCells:
    """The table cell of every row and the place in it; no curvature yet."""
    xp, n = namespace(scores), rare_cells.shape[0]
    wanted = xp.floor(scores)
    low = xp.searchsorted(rare_cells, wanted, side="left")
    inside = low < n
    nearest = xp.take(rare_cells, xp.where(inside, low, xp.zeros_like(low)))
    in_cell = inside & (nearest == wanted)
    order = xp.argsort(scores)
    which = xp.take(xp.where(in_cell, 2 * low + 1, 2 * low), order)
    return OrderedCells(
        xp.where(in_cell, low, -1 - low),
        xp.where(in_cell, 2.0 * (scores - wanted) - 1.0, scores),
        xp.zeros_like(scores),
        order,
        xp.searchsorted(which, like(np.arange(2 * n + 1), scores), side="right"),
    )


def interpolate(
    cell: Any, place: Any, table: Any, gap_count: Any | None, gap_sum: Any | None
) -> Any:
    """Values at rows: the table's polynomial, or count t - sum in a gap."""
    xp = namespace(place)
    in_gap, none = cell < 0, xp.zeros_like(cell)
    c, x = xp.where(in_gap, none, cell), _in_cells(cell, place)
    # Clenshaw's recurrence.
    after = last = xp.zeros_like(x)
    for k in range(table.shape[1] - 1, 0, -1):
        after, last = last, xp.take(table[:, k], c) + 2.0 * x * last - after
    value = xp.take(table[:, 0], c) + x * last - after
    gap = xp.where(in_gap, -1 - cell, none)
    of_gap = xp.zeros_like(x)
    if gap_count is not None:
        of_gap = of_gap + xp.take(gap_count, gap) * place
    if gap_sum is not None:
        of_gap = of_gap - xp.take(gap_sum, gap)
    return xp.where(in_gap, of_gap, value)


def moments(zone: Sequence[Any], weight: Any, n_terms: int) -> tuple[Any, Any]:
    """Sums of w T_k(place) by cell, and of w by gap."""
    xp, (cell, place, _, order, ends) = namespace(weight), zone
    x, w = xp.take(_in_cells(cell, place), order), xp.take(weight, order)
    by_place = sums_between(w, ends)
    columns = []
    before, term = w * x, w
    for _ in range(n_terms):
        columns.append(sums_between(term, ends)[1::2])
        # T_{k+1} = 2 x T_k - T_{k-1}, and T_{-1} = T_1.
        before, term = term, 2.0 * x * term - before
    return xp.stack(columns, axis=1), by_place[::2]


def gap_sums(zone: Sequence[Any], values: Any) -> Any:
    """Sums of values by gap."""
    *_, order, ends = zone
    return sums_between(namespace(values).take(values, order), ends)[::2]


def _in_cells(cell: Any, place: Any) -> Any:
    """Places in cells; zero in gaps, where they are scores of any size."""
    return namespace(place).where(cell < 0, 0.0, place)
