"""Pairs of categories that together tell more than the two of them one by one."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.base import BaseEstimator

from rareclass.encoding.category_statistics import (
    LevelCounts,
    count_levels,
    counts_of_other_folds,
    log_loss,
    rare_share,
    smoothed_log_odds,
    smoothed_share,
)
from rareclass.encoding.code_columns import is_clear_gain

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]

MOST_COLUMNS = 12
MOST_PAIRS = 8
# So many pairs are tried that some look better by two standard errors by chance.
_STANDARD_ERRORS = 3.0
_LEAST_GAIN = 0.001
_SMOOTHINGS = (2.0, 8.0, 32.0, 128.0)
# Pairs are looked for on so many rows, the rare ones among them; what is found is learned on all.
_MOST_ROWS = 50_000
_NEWTON_STEPS = 8
_RIDGE = 1.0


class PairStatistics(BaseEstimator):
    """The log-odds of the rare class for each pair of levels of two categories.

    They start from what both levels say one by one, ``q = sigmoid(b0 + b1 u + b2 v)`` with their
    log-odds u and v and b of a logistic regression, and go towards the share of the pair:
    ``log((r + a q) / (n - r + a (1 - q))) - log(p / (1 - p))`` for r of n rows rare, smoothing a
    and the rare share p of all rows. A pair that training did not have says what both levels say.

    Attributes
    ----------
    coefficients_ : ndarray of shape (3,)
        b.
    smoothing_, prior_ : float
    cells_ : ndarray of int64
        The pairs that training had: first code times `width_` plus second code, increasing.
    rows_, rare_ : ndarray
        Weight of their rows, and of their rare rows.

    Notes
    -----
    Time: that of sorting the pairs. A weight of k is k copies in the same fold.
    """

    def fit_transform(
        self,
        codes: tuple[Codes, Codes],
        log_odds: tuple[Floats, Floats],
        y: NDArray[np.bool_],
        weight: Floats,
        fold: Codes,
    ) -> Floats:
        """Learn from all rows and return each row's log-odds in the other folds: (n_rows,).

        `log_odds` are those of both levels in the other folds, too.
        """
        self.prior_ = rare_share(y, weight)
        self.width_ = int(codes[1].max(initial=0)) + 1
        self.cells_, position = np.unique(self._cells(codes), return_inverse=True)
        self.coefficients_ = _logistic_regression(log_odds, y, weight)
        share = self._share_of_both(log_odds)
        others = counts_of_other_folds(position, len(self.cells_), y, weight, fold)
        self.smoothing_ = min(
            _SMOOTHINGS, key=lambda a: weight @ log_loss(smoothed_share(others, share, a), y)
        )
        self.rows_, self.rare_ = count_levels(position, len(self.cells_), y, weight)
        return self._log_odds(others, share)

    def transform(self, codes: tuple[Codes, Codes], log_odds: tuple[Floats, Floats]) -> Floats:
        """The log-odds of each row's pair: (n_rows,)."""
        cells = self._cells(codes)
        found = np.minimum(np.searchsorted(self.cells_, cells), len(self.cells_) - 1)
        known = (self.cells_[found] == cells) & (codes[1] < self.width_)
        counts = LevelCounts(known * self.rows_[found], known * self.rare_[found])
        return self._log_odds(counts, self._share_of_both(log_odds))

    def gain(self, log_odds: Floats, alone: tuple[Floats, Floats], y: NDArray[np.bool_]) -> Floats:
        """By how much the pair's log-odds lower each row's log loss, against both alone."""
        pair = expit(log_odds + logit(self.prior_))
        return log_loss(self._share_of_both(alone), y) - log_loss(pair, y)

    def _cells(self, codes: tuple[Codes, Codes]) -> NDArray[np.int64]:
        return codes[0].astype(np.int64) * self.width_ + codes[1]

    def _share_of_both(self, log_odds: tuple[Floats, Floats]) -> Floats:
        b = self.coefficients_
        return np.clip(expit(b[0] + b[1] * log_odds[0] + b[2] * log_odds[1]), 1e-9, 1 - 1e-9)

    def _log_odds(self, counts: LevelCounts, share: Floats) -> Floats:
        beyond = smoothed_log_odds(counts, share, self.smoothing_)
        return beyond + logit(share) - logit(self.prior_)


class FoundPair(NamedTuple):
    """Two categories by their position, what their pairs say, and the log-odds of each row."""

    first: int
    second: int
    statistics: PairStatistics
    log_odds: Floats


def find_pairs(
    codes: Sequence[Codes],
    log_odds: Floats,
    y: NDArray[np.bool_],
    weight: Floats,
    fold: Codes,
) -> list[FoundPair]:
    """The pairs of categories that tell the rare class better than both one by one: eight at most.

    `codes` has each category's levels, `log_odds` of shape (n_rows, n_categories) what they say in
    the other folds. Of more than twelve categories the twelve that say most are paired. A pair's
    log loss, out of fold, must be lower than that of a logistic regression on both log-odds by
    three standard errors, and by a thousandth of what the rare share of all rows loses; those that
    gain most are taken. On more than 50,000 rows the rare ones and a part of the others look for
    them. Time: 66 sorts of so many rows at most.
    """
    rows, shares = _some_rows(y, weight)
    few = y[rows], shares, fold[rows]
    of_prior = log_loss(np.full(len(rows), rare_share(few[0], shares)), few[0])
    gains: list[tuple[float, int, int]] = []
    for i, j in combinations(_telling_most(log_odds[rows], few[0], shares), 2):
        alone = log_odds[rows, i], log_odds[rows, j]
        statistics = PairStatistics()
        found = statistics.fit_transform((codes[i][rows], codes[j][rows]), alone, *few)
        gain = statistics.gain(found, alone, few[0])
        if is_clear_gain(gain, of_prior, shares, _STANDARD_ERRORS, _LEAST_GAIN):
            gains.append((-float(shares @ gain), i, j))
    pairs = []
    for _, i, j in sorted(gains)[:MOST_PAIRS]:
        statistics = PairStatistics()
        alone = log_odds[:, i], log_odds[:, j]
        found = statistics.fit_transform((codes[i], codes[j]), alone, y, weight, fold)
        pairs.append(FoundPair(i, j, statistics, found))
    return pairs


def _some_rows(y: NDArray[np.bool_], weight: Floats) -> tuple[NDArray[np.intp], Floats]:
    """All rows, or the rare ones and every k-th of the others, which then count k times."""
    step = -(-len(y) // _MOST_ROWS)
    if step == 1:
        return np.arange(len(y)), weight
    others = np.flatnonzero(~y)[::step]
    rows = np.sort(np.concatenate([np.flatnonzero(y), others]))
    return rows, weight[rows] * np.where(y[rows], 1.0, step)


def _telling_most(log_odds: Floats, y: NDArray[np.bool_], weight: Floats) -> list[int]:
    """The twelve categories whose log-odds lower the log loss most, in order."""
    prior = logit(rare_share(y, weight))
    losses = [weight @ log_loss(expit(column + prior), y) for column in log_odds.T]
    return sorted(np.argsort(losses, kind="stable")[:MOST_COLUMNS].tolist())


def _logistic_regression(
    columns: tuple[Floats, Floats], y: NDArray[np.bool_], weight: Floats
) -> Floats:
    """Coefficients of a constant and two columns, by Newton steps with a slight ridge."""
    X = np.column_stack([np.ones(len(y)), *columns])
    coefficients = np.array([logit(rare_share(y, weight)), 1.0, 1.0])
    start = coefficients.copy()
    for _ in range(_NEWTON_STEPS):
        share = expit(X @ coefficients)
        slope = X.T @ (weight * (share - y)) + _RIDGE * (coefficients - start)
        curvature = (X * (weight * share * (1 - share))[:, None]).T @ X + _RIDGE * np.eye(3)
        coefficients = coefficients - np.linalg.solve(curvature, slope)
    return coefficients
