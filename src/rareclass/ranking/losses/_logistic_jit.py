"""Compiled passes of the logistic loss over the majority rows of a block.

Row j lies in table cell ``cell[j]`` at ``place[j]`` in [-1, 1); or, where ``cell[j]`` is below 0,
in the gap before table cell ``-1 - cell[j]``, and ``place[j]`` is its score. Tables hold Chebyshev
coefficients, one row a cell.
"""

import numpy as np

from rareclass.compiling import njit


@njit(cache=True, nogil=True)
def _cells(scores, cells, cell_out, place_out):
    """The table cell of every row, by binary search, and the place in it."""
    n_cells = cells.shape[0]
    for j in range(scores.shape[0]):
        wanted = np.floor(scores[j])
        low, high = 0, n_cells
        while low < high:
            middle = (low + high) // 2
            if cells[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        if low < n_cells and cells[low] == wanted:
            cell_out[j] = low
            place_out[j] = 2.0 * (scores[j] - wanted) - 1.0
        else:
            cell_out[j] = -1 - low
            place_out[j] = scores[j]


@njit(cache=True, nogil=True)
def _interpolate(cell, place, table, gap_count, gap_sum, value_out):
    """Values at rows: the table's polynomial, or count t - sum in a gap."""
    n_terms = table.shape[1]
    for j in range(cell.shape[0]):
        c, x = cell[j], place[j]
        if c < 0:
            value_out[j] = gap_count[-1 - c] * x - gap_sum[-1 - c]
            continue
        # Clenshaw's recurrence.
        after, last = 0.0, 0.0
        for k in range(n_terms - 1, 0, -1):
            after, last = last, table[c, k] + 2.0 * x * last - after
        value_out[j] = table[c, 0] + x * last - after


@njit(cache=True, nogil=True)
def _moments(cell, place, weight, moments_out, gaps_out):
    """Sums of w T_k(place) by cell, and of w by gap."""
    n_terms = moments_out.shape[1]
    for j in range(cell.shape[0]):
        w, c, x = weight[j], cell[j], place[j]
        if w == 0.0:
            continue
        if c < 0:
            gaps_out[-1 - c] += w
            continue
        before, term = w * x, w
        for k in range(n_terms):
            moments_out[c, k] += term
            # T_{k+1} = 2 x T_k - T_{k-1}, and T_{-1} = T_1.
            before, term = term, 2.0 * x * term - before
