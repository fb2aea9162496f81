"""Whether rare rows of one value stand close together: what random folds make too much of.

Where rows are in the order of time and a card is abused for some days, held-out rows of these days
are ranked well by the card's other rows, and those of next month are not.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from rareclass.encoding.category_statistics import (
    CategoryStatistics,
    log_loss,
    rare_share,
)
from rareclass.encoding.code_columns import is_clear_gain

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]

# Columns of fewer values are no names of cards, customers or machines.
FEWEST_VALUES = 50
# Of fewer rare rows a half says too little.
FEWEST_RARE = 40
# Runs of equal values, in number of values, up to which the table is sorted by them.
_SORTED_RUNS = 1.5
_STANDARD_ERRORS = 5.0
_LEAST_LOSS = 0.05


def halves(n_rows: int) -> NDArray[np.int64]:
    """The first half of the rows, 0, and the second one, 1: (n_rows,)."""
    return 2 * np.arange(n_rows) // max(n_rows, 1)


def holds_nearby_only(
    levels: Codes,
    n_levels: int,
    y: NDArray[np.bool_],
    weight: Floats,
    groups: Codes | None = None,
) -> bool:
    """Whether the values of a column tell clearly less of rows that are far away in the table.

    The log loss of each value's rare share, learned from every second row and taken for the others,
    is compared with that of the share learned from one half of the table and taken for the other.
    Halves are those of each class, so that a table sorted by its label is none in bursts. The
    difference must exceed 5 standard errors, and 5 percent of the log loss of the rare share alone.
    With fewer than 40 rare rows nothing is said, nor of a column that the table is sorted by, whose
    values have no rows far away: False. Time: O(n_rows).
    """
    if n_levels < FEWEST_VALUES or y.sum() < FEWEST_RARE or _is_sorted_by(levels):
        return False
    place = np.empty(len(y), np.int64)
    half = np.empty(len(y), np.int64)
    for is_rare in (False, True):
        rows = np.flatnonzero(y == is_rare)
        place[rows] = np.arange(len(rows))
        half[rows] = halves(len(rows))
    near, far = (_log_loss(levels, n_levels, y, weight, fold, groups) for fold in (place % 2, half))
    of_prior = log_loss(np.full(len(y), rare_share(y, weight)), y)
    return is_clear_gain(far - near, of_prior, weight, _STANDARD_ERRORS, _LEAST_LOSS)


def _is_sorted_by(levels: Codes) -> bool:
    """Whether equal levels stand together, nearly all of them."""
    n_runs = 1 + np.count_nonzero(levels[1:] != levels[:-1])
    return bool(n_runs <= _SORTED_RUNS * len(np.unique(levels)))


def _log_loss(
    levels: Codes,
    n_levels: int,
    y: NDArray[np.bool_],
    weight: Floats,
    fold: Codes,
    groups: Codes | None,
) -> Floats:
    """Of each row, by what the other fold says of its level."""
    statistics = CategoryStatistics()
    log_odds = statistics.fit_transform(levels, n_levels, y, weight, fold, groups)
    return log_loss(expit(log_odds + logit(statistics.prior_)), y)
