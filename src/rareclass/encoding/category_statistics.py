"""How rare rows go with the values of a category: smoothed log-odds, out of fold in training."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln
from sklearn.base import BaseEstimator

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]

# Pseudo-rows that may be best: 1 where values tell the classes apart, many where they hardly do.
SMOOTHINGS = 2.0 ** np.arange(0, 13)


class LevelCounts(NamedTuple):
    """Weight of all rows and of the rare rows with each level: (n_levels,) each."""

    rows: Floats
    rare: Floats


def count_levels(codes: Codes, n_levels: int, y: NDArray[np.bool_], weight: Floats) -> LevelCounts:
    """Count levels; codes outside of 0 .. n_levels - 1 are not counted."""
    known = (codes >= 0) & (codes < n_levels)
    codes, weight = np.where(known, codes, 0), np.where(known, weight, 0.0)
    rows = np.bincount(codes, weight, n_levels).astype(np.float64, copy=False)
    rare = np.bincount(codes, weight * y, n_levels).astype(np.float64, copy=False)
    return LevelCounts(rows, rare)


def rare_share(y: NDArray[np.bool_], weight: Floats) -> float:
    """Share of the weight that is rare, kept within (0, 1) where one class is absent."""
    total = float(weight.sum())
    share = float(weight @ y) / total if total > 0 else 0.5
    return min(max(share, 1e-9), 1 - 1e-9)


def smoothed_log_odds(counts: LevelCounts, prior: float | Floats, smoothing: float) -> Floats:
    """``log((r + a p) / (n - r + a (1 - p))) - log(p / (1 - p))``: 0 for a level without rows.

    r and n are rare and all rows of a level, p the prior share, a the smoothing in rows.
    """
    others = counts.rows - counts.rare + smoothing * (1 - prior)
    return np.log((counts.rare + smoothing * prior) / others) - np.log(prior / (1 - prior))


def choose_smoothing(counts: LevelCounts, prior: float) -> float:
    """The smoothing of SMOOTHINGS under which the counts are likeliest (empirical Bayes).

    The share of a level is drawn from Beta(a p, a (1 - p)) and its rare rows are binomial, so that
    ``sum log B(r + a p, n - r + a (1 - p)) - log B(a p, a (1 - p))`` over levels is largest. Levels
    of one row say nothing of a. Of equal ones, the greatest: a column that says nothing.
    """
    pairs, times = np.unique(counts.rows + 1j * counts.rare, return_counts=True)
    rows, rare = pairs.real, pairs.imag
    alpha, beta = SMOOTHINGS * prior, SMOOTHINGS * (1 - prior)
    terms = betaln(rare[:, None] + alpha, (rows - rare)[:, None] + beta) - betaln(alpha, beta)
    likelihood = times @ terms
    near = likelihood >= likelihood.max() - 1e-9 * abs(likelihood.max())
    return float(SMOOTHINGS[near][-1])


def counts_of_other_folds(
    codes: Codes, n_levels: int, y: NDArray[np.bool_], weight: Floats, fold: Codes
) -> LevelCounts:
    """Of each row, the counts of its level in all folds but its own: (n_rows,) each.

    Time: O(n_rows); memory: a few numbers a row, and a level and fold.
    """
    total = count_levels(codes, n_levels, y, weight)
    numbers, fold = np.unique(fold, return_inverse=True)
    cell = codes.astype(np.int64) * len(numbers) + fold
    of_fold = count_levels(cell, n_levels * len(numbers), y, weight)
    # Sums of weights are rounded: what is left of them may fall below nothing.
    rare = np.maximum(total.rare[codes] - of_fold.rare[cell], 0.0)
    return LevelCounts(np.maximum(total.rows[codes] - of_fold.rows[cell], rare), rare)


class CategoryStatistics(BaseEstimator):
    """The smoothed log-odds of the rare class for each level of a coded column.

    A level's log-odds are ``log((r + a p) / (n - r + a (1 - p))) - log(p / (1 - p))`` with r of
    its n rows rare, p the rare share of all rows, and a the smoothing that makes the counts of
    this column likeliest. A row of training gets those of its level in the other folds, so that
    its own label is not in them. A level that training did not have gets 0, no evidence.

    Attributes
    ----------
    prior_, smoothing_ : float
    log_odds_, log_count_ : ndarray of shape (n_levels,)
        Those of all rows; the count c of a level is given as log(1 + c).

    Notes
    -----
    A weight of k is k copies in the same fold. Time and memory: O(n_rows).

    Examples
    --------
    >>> import numpy as np
    >>> codes, rare = np.array([0, 0, 1, 1, 1, 1]), np.array([True, True] + 4 * [False])
    >>> statistics = CategoryStatistics()
    >>> statistics.fit_transform(codes, 2, rare, np.ones(6), np.array([0, 1, 0, 1, 0, 1]))[:4]
    array([ 1.38629436,  1.38629436, -1.38629436, -1.38629436])
    >>> statistics.transform(np.array([0, 1, -1]))
    array([ 1.94591015, -1.94591015,  0.        ])
    """

    def fit_transform(
        self, codes: Codes, n_levels: int, y: NDArray[np.bool_], weight: Floats, fold: Codes
    ) -> Floats:
        """Learn from all rows, and return each row's log-odds in the other folds: (n_rows,).

        codes: from 0 to n_levels - 1, missing being a level of its own. fold: any whole numbers.
        """
        counts = count_levels(codes, n_levels, y, weight)
        self.prior_ = rare_share(y, weight)
        self.smoothing_ = choose_smoothing(counts, self.prior_)
        self.log_odds_ = smoothed_log_odds(counts, self.prior_, self.smoothing_)
        self.log_count_ = np.log1p(counts.rows)
        others = counts_of_other_folds(codes, n_levels, y, weight, fold)
        return smoothed_log_odds(others, self.prior_, self.smoothing_)

    def transform(self, codes: Codes) -> Floats:
        """The log-odds of each row's level, 0 for a code of -1: (n_rows,)."""
        return np.append(self.log_odds_, 0.0)[codes]

    def log_counts(self, codes: Codes) -> Floats:
        """log(1 + rows of training with the row's level), 0 for a code of -1: (n_rows,)."""
        return np.append(self.log_count_, 0.0)[codes]
