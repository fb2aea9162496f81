"""Whole numbers that are codes: columns whose single values say more than where they lie."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.base import BaseEstimator

from rareclass.encoding.category_statistics import CategoryStatistics, log_loss, rare_share

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]

FEWEST_CODES = 20
# Of codes that are met fewer times than this on average, too little is known.
ROWS_A_CODE = 3
_MOST_BINS = 32
# Bins are to be wider than a code, or they say as much as codes do.
_CODES_A_BIN = 4
_STANDARD_ERRORS = 2.0
_LEAST_GAIN = 0.005


class KnownCodes(BaseEstimator):
    """The whole numbers of a column in increasing order, in up to 32 bins of about equal weight.

    Rare rows and others weigh as much together when bins are laid: rare rows often lie where few
    others do, and a bin must not hold most of them.

    Numbers that training had are levels 0 to k - 1; level k is missing, level k + 1 + b every
    other number in bin b.

    Attributes
    ----------
    n_bins_ : int
        32, or a fourth of the number of codes.
    values_ : ndarray of shape (k,)
    bins_ : ndarray of int of shape (k,)
        The bin of each of them.

    Examples
    --------
    >>> import numpy as np
    >>> known = KnownCodes().fit(np.array([7.0, 3.0]), np.array([True, False]), np.ones(2))
    >>> known.levels(np.array([7.0, 5.0, np.nan])).tolist(), known.bins_.tolist(), known.name(1)
    ([1, 3, 2], [0, 0], '7')
    """

    def fit(self, values: Floats, y: NDArray[np.bool_], weight: Floats) -> "KnownCodes":
        """Remember the numbers of rows with weight that are not missing."""
        present = ~np.isnan(values) & (weight > 0)
        self.values_, position = np.unique(values[present], return_inverse=True)
        share = rare_share(y[present], weight[present])
        evened = weight[present] * np.where(y[present], 1.0 / share, 1.0 / (1.0 - share))
        weights = np.bincount(position, evened, len(self.values_))
        ranks = (np.cumsum(weights) - weights / 2) / max(weights.sum(), 1e-300)
        self.n_bins_ = max(1, min(_MOST_BINS, self.n_known // _CODES_A_BIN))
        self.bins_ = np.minimum(self.n_bins_ * ranks, self.n_bins_ - 1).astype(np.int32)
        return self

    @property
    def n_known(self) -> int:
        """How many codes."""
        return len(self.values_)

    @property
    def n_levels(self) -> int:
        """How many levels."""
        return self.n_known + 1 + self.n_bins_

    @property
    def groups(self) -> NDArray[np.int32]:
        """The bin of each level; missing is a bin of its own."""
        every = np.arange(self.n_bins_)
        return np.concatenate([self.bins_, [self.n_bins_], every]).astype(np.int32)

    def name(self, level: int) -> str:
        """The code of a level, or what the level is."""
        if level >= self.n_known:
            return "missing" if level == self.n_known else "unseen"
        return f"{self.values_[level]:.0f}"

    def levels(self, values: Floats) -> NDArray[np.int32]:
        """The level of each number; time: a binary search a number."""
        if not self.n_known:
            return np.where(np.isnan(values), 0, 1).astype(np.int32)
        found = np.minimum(np.searchsorted(self.values_, values), self.n_known - 1)
        unseen = self.n_known + 1 + self.bins_[found]
        levels = np.where(self.values_[found] == values, found, unseen)
        return np.where(np.isnan(values), self.n_known, levels).astype(np.int32)


class CodeColumn(NamedTuple):
    """A column of numbers looked at as codes: `levels` and `log_odds` are those of each row.

    `tells_more`: single values say more than where they lie. `has_order`: that says something, too.
    """

    known: KnownCodes
    statistics: CategoryStatistics
    levels: NDArray[np.int32]
    log_odds: Floats
    tells_more: bool
    has_order: bool


def could_be_codes(values: Floats, weight: Floats) -> bool:
    """Whether a column holds whole numbers, many of them and each several times."""
    first = values[:1000]
    if (np.floor(first) != first)[~np.isnan(first) & (weight[:1000] > 0)].any():
        return False  # most columns are done with here
    present = values[~np.isnan(values) & (weight > 0)]
    if len(present) < FEWEST_CODES * ROWS_A_CODE or (present != np.floor(present)).any():
        return False
    n_distinct = len(np.unique(present))
    return FEWEST_CODES <= n_distinct <= len(present) / ROWS_A_CODE


def as_codes(values: Floats, y: NDArray[np.bool_], weight: Floats, fold: Codes) -> CodeColumn:
    """A column as codes, and whether they tell the rare class better than where they lie.

    The log loss, out of fold, of the rare share of each value is compared with that of each bin; it
    must be lower by two standard errors of the paired difference, and by half a percent of what the
    rare share of all rows loses. Time: that of a sort.
    """
    known = KnownCodes().fit(values, y, weight)
    levels, groups = known.levels(values), known.groups
    statistics, of_bins = CategoryStatistics(), CategoryStatistics()
    log_odds = statistics.fit_transform(levels, known.n_levels, y, weight, fold, groups)
    by_bin = of_bins.fit_transform(groups[levels], known.n_bins_ + 1, y, weight, fold)
    prior = logit(statistics.prior_)
    of_prior = log_loss(np.full(len(y), statistics.prior_), y)
    binned = log_loss(expit(by_bin + prior), y)
    gain = binned - log_loss(expit(log_odds + prior), y)
    clear = (of_prior, weight, _STANDARD_ERRORS, _LEAST_GAIN)
    tells_more, has_order = is_clear_gain(gain, *clear), is_clear_gain(of_prior - binned, *clear)
    return CodeColumn(known, statistics, levels, log_odds, tells_more, has_order)


def is_clear_gain(
    gain: Floats, of_prior: Floats, weight: Floats, standard_errors: float, least: float
) -> bool:
    """Whether rows gain log loss clearly, and noticeably.

    The mean gain must be above 0 by so many standard errors, and above the share `least` of the
    log loss of the prior share alone. A weight is so many copies.
    """
    total = weight.sum()
    mean = weight @ gain / total
    error = np.sqrt(weight @ (gain - mean) ** 2) / total
    return bool(mean > standard_errors * error and weight @ gain > least * (weight @ of_prior))
