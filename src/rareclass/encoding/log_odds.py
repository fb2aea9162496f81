"""How rare rows go with the values of a category, and of two: smoothed log-odds.

A row of training gets them from the other parts of the training rows, a new row from all parts.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]

# Pseudo-rows that may be best: few where values tell the classes apart, many where hardly.
SMOOTHINGS = 2.0 ** np.arange(-3, 13)


class LevelCounts(NamedTuple):
    """Weight of all rows and of the rare rows with each level: (n_levels,) each."""

    rows: Floats
    rare: Floats


def count_levels(codes: Codes, n_levels: int, y: NDArray[np.bool_], weight: Floats) -> LevelCounts:
    """Count levels, which are 0 .. n_levels - 1."""
    rows = np.bincount(codes, weight, n_levels).astype(np.float64, copy=False)
    rare = np.bincount(codes, weight * y, n_levels).astype(np.float64, copy=False)
    return LevelCounts(rows, rare)


class PartedRows(NamedTuple):
    """Rows that are rare or not, their weights, and parts: rows learn from other parts than theirs.

    A weight of k is k copies in the same part. Parts are any whole numbers.
    """

    y: NDArray[np.bool_]
    weight: Floats
    part: Codes


def rare_share(y: NDArray[np.bool_], weight: Floats) -> float:
    """Share of the weight that is rare, kept within (0, 1) where one class is absent."""
    total = float(weight.sum())
    share = float(weight @ y) / total if total > 0 else 0.5
    return min(max(share, 1e-9), 1 - 1e-9)


def smoothed_share(counts: LevelCounts, prior: float | Floats, smoothing: float) -> Floats:
    """``(r + a p) / (n + a)``: the prior share p for a level without rows."""
    return (counts.rare + smoothing * prior) / (counts.rows + smoothing)


def log_loss(share: Floats, y: NDArray[np.bool_]) -> Floats:
    """Minus the log of the probability that each row's class was given."""
    return -np.log(np.where(y, share, 1.0 - share))


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
    rows, rare = pairs.real, pairs.imag  # equal levels are looked at once
    likelihood = np.array(
        [
            times @ special.betaln(rare + a * prior, rows - rare + a * (1 - prior))
            - np.sum(times * special.betaln(a * prior, a * (1 - prior)))
            for a in SMOOTHINGS
        ]
    )
    near = likelihood >= likelihood.max() - 1e-9 * abs(likelihood.max())
    return float(SMOOTHINGS[near][-1])


def counts_of_other_parts(codes: Codes, n_levels: int, rows: PartedRows) -> LevelCounts:
    """Of each row, the counts of its level in all parts but its own: (n_rows,) each.

    Time: O(n_rows); memory: a few numbers a row, and a level and part.
    """
    total = count_levels(codes, n_levels, *rows[:2])
    numbers, part = np.unique(rows.part, return_inverse=True)
    cell = codes.astype(np.int64) * len(numbers) + part
    of_part = count_levels(cell, n_levels * len(numbers), *rows[:2])
    # Sums of weights are rounded: what is left of them may fall below nothing.
    rare = np.maximum(total.rare[codes] - of_part.rare[cell], 0.0)
    return LevelCounts(np.maximum(total.rows[codes] - of_part.rows[cell], rare), rare)


def is_clear_gain(
    gain: Floats, of_prior: Floats, weight: Floats, standard_errors: float, least: float
) -> bool:
    """Say whether rows gain log loss clearly, and noticeably.

    The mean gain must be above 0 by so many standard errors, and above the share `least` of the
    log loss of the prior share alone. A weight is so many copies.
    """
    total = weight.sum()
    mean = weight @ gain / total
    error = np.sqrt(weight @ (gain - mean) ** 2) / total
    return bool(mean > standard_errors * error and weight @ gain > least * (weight @ of_prior))


class CategoryStatistics:
    """The smoothed log-odds of the rare class for each level of a coded column.

    A level's log-odds are ``log((r + a p) / (n - r + a (1 - p))) - log(p / (1 - p))`` with r of
    its n rows rare, p the rare share of all rows, and a the smoothing that makes the counts of
    this column likeliest. A row of training gets the log-odds of its level in the other parts of
    the training rows, so that its own label is not in them. A level without rows has 0, no
    evidence.

    Attributes
    ----------
    prior_, smoothing_ : float
    log_odds_, log_count_ : ndarray of shape (n_levels,)
        Those of all rows; the count c of a level is given as log(1 + c).

    Notes
    -----
    Time and memory: O(n_rows).

    Examples
    --------
    >>> import numpy as np
    >>> codes, rare = np.array([0, 0, 1, 1, 1, 1]), np.array([True, True] + 4 * [False])
    >>> statistics, rows = CategoryStatistics(), PartedRows(rare, np.ones(6), np.arange(6) % 2)
    >>> statistics.fit_transform(codes, 3, rows)[:4]
    array([ 3.21887582,  3.21887582, -3.21887582, -3.21887582])
    >>> statistics.transform(np.array([0, 1, 2]))
    array([ 3.8918203, -3.8918203,  0.       ])
    """

    def fit_transform(self, codes: Codes, n_levels: int, rows: PartedRows) -> Floats:
        """Learn from all rows, and return each row's log-odds in the other parts: (n_rows,).

        codes: from 0 to n_levels - 1, missing and unseen being levels of their own.
        """
        counts = count_levels(codes, n_levels, *rows[:2])
        self.prior_ = rare_share(*rows[:2])
        self.smoothing_ = choose_smoothing(counts, self.prior_)
        self.log_odds_ = smoothed_log_odds(counts, self.prior_, self.smoothing_)
        self.log_count_ = np.log1p(counts.rows)
        others = counts_of_other_parts(codes, n_levels, rows)
        return smoothed_log_odds(others, self.prior_, self.smoothing_)

    def transform(self, codes: Codes) -> Floats:
        """The log-odds of each row's level: (n_rows,)."""
        return self.log_odds_[codes]

    def log_counts(self, codes: Codes) -> Floats:
        """log(1 + rows of training with the row's level): (n_rows,)."""
        return self.log_count_[codes]

    @staticmethod
    def log_counts_out_of_part(codes: Codes, weight: Floats, part: Codes) -> Floats:
        """log(1 + rows of the other parts with the row's level), at the size of all parts.

        A row's own weight is not in it: where the majority was thinned, the weight of a level of
        one row would tell its label.
        """
        n_levels = int(codes.max(initial=0)) + 1
        unlabelled = PartedRows(np.zeros(len(codes), np.bool_), weight, part)
        others = counts_of_other_parts(codes, n_levels, unlabelled)
        numbers, place = np.unique(part, return_inverse=True)
        of_part = np.bincount(place, weight, len(numbers))
        left = of_part.sum() - of_part[place]
        scale = np.divide(of_part.sum(), left, out=np.ones(len(left)), where=left > 0)
        return np.log1p(others.rows * scale)


MOST_COLUMNS = 12
MOST_PAIRS = 8
# So many pairs are tried that some look better by two standard errors by chance.
_ERRORS_OF_PAIRS = 3.0
_GAIN_OF_PAIRS = 0.001
_SMOOTHINGS = (2.0, 8.0, 32.0, 128.0)
# Pairs are looked for on so many rows, the rare ones among them; what is found is learned on all.
_MOST_ROWS = 50_000
_NEWTON_STEPS = 8
_RIDGE = 1.0


class PairStatistics:
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
    Time: that of sorting the pairs.
    """

    def fit_transform(
        self, codes: tuple[Codes, Codes], log_odds: tuple[Floats, Floats], rows: PartedRows
    ) -> Floats:
        """Learn from all rows and return each row's log-odds in the other parts: (n_rows,).

        `log_odds` are those of both levels in the other parts, too.
        """
        y, weight, _ = rows
        self.prior_ = rare_share(y, weight)
        self.width_ = int(codes[1].max(initial=0)) + 1
        self.cells_, position = np.unique(self._cells(codes), return_inverse=True)
        self.coefficients_ = _logistic_regression(log_odds, y, weight)
        share = self._share_of_both(log_odds)
        others = counts_of_other_parts(position, len(self.cells_), rows)
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
        pair = special.expit(log_odds + special.logit(self.prior_))
        return log_loss(self._share_of_both(alone), y) - log_loss(pair, y)

    def _cells(self, codes: tuple[Codes, Codes]) -> NDArray[np.int64]:
        return codes[0].astype(np.int64) * self.width_ + codes[1]

    def _share_of_both(self, log_odds: tuple[Floats, Floats]) -> Floats:
        b = self.coefficients_
        share = special.expit(b[0] + b[1] * log_odds[0] + b[2] * log_odds[1])
        return np.clip(share, 1e-9, 1 - 1e-9)

    def _log_odds(self, counts: LevelCounts, share: Floats) -> Floats:
        beyond = smoothed_log_odds(counts, share, self.smoothing_)
        return beyond + special.logit(share) - special.logit(self.prior_)


class FoundPair(NamedTuple):
    """Two categories by their position, what their pairs say, and the log-odds of each row."""

    first: int
    second: int
    statistics: PairStatistics
    log_odds: Floats


def find_pairs(codes: Sequence[Codes], log_odds: Floats, rows: PartedRows) -> list[FoundPair]:
    """The pairs of categories that tell the rare class better than both one by one: eight at most.

    `codes` has each category's levels, `log_odds` of shape (n_rows, n_categories) what they say in
    the other parts. Of more than twelve categories the twelve that say most are paired. A pair's
    log loss, out of part, must be lower than that of a logistic regression on both log-odds by
    three standard errors, and by a thousandth of what the rare share of all rows loses; those that
    gain most are taken. On more than 50,000 rows the rare ones and a part of the others look for
    them. Time: 66 sorts of so many rows at most.
    """
    few, some = _some_rows(rows)
    of_prior = log_loss(np.full(len(few), rare_share(*some[:2])), some.y)
    gains: list[tuple[float, int, int]] = []
    for i, j in combinations(_telling_most(log_odds[few], *some[:2]), 2):
        alone = log_odds[few, i], log_odds[few, j]
        statistics = PairStatistics()
        found = statistics.fit_transform((codes[i][few], codes[j][few]), alone, some)
        gain = statistics.gain(found, alone, some.y)
        if is_clear_gain(gain, of_prior, some.weight, _ERRORS_OF_PAIRS, _GAIN_OF_PAIRS):
            gains.append((-float(some.weight @ gain), i, j))
    pairs = []
    for _, i, j in sorted(gains)[:MOST_PAIRS]:
        statistics = PairStatistics()
        alone = log_odds[:, i], log_odds[:, j]
        found = statistics.fit_transform((codes[i], codes[j]), alone, rows)
        pairs.append(FoundPair(i, j, statistics, found))
    return pairs


def _some_rows(rows: PartedRows) -> tuple[NDArray[np.intp], PartedRows]:
    """All rows, or the rare ones and every k-th of the others, which then count k times."""
    y, weight, part = rows
    step = -(-len(y) // _MOST_ROWS)
    if step == 1:
        return np.arange(len(y)), rows
    others = np.flatnonzero(~y)[::step]
    few = np.sort(np.concatenate([np.flatnonzero(y), others]))
    counted = weight[few] * np.where(y[few], 1.0, step)
    return few, PartedRows(y[few], counted, part[few])


def _telling_most(log_odds: Floats, y: NDArray[np.bool_], weight: Floats) -> list[int]:
    """The twelve categories whose log-odds lower the log loss most, in order."""
    prior = special.logit(rare_share(y, weight))
    losses = [weight @ log_loss(special.expit(column + prior), y) for column in log_odds.T]
    return sorted(np.argsort(losses, kind="stable")[:MOST_COLUMNS].tolist())


def _logistic_regression(
    columns: tuple[Floats, Floats], y: NDArray[np.bool_], weight: Floats
) -> Floats:
    """Coefficients of a constant and two columns, by Newton steps with a slight ridge."""
    X = np.column_stack([np.ones(len(y)), *columns])
    coefficients = np.array([special.logit(rare_share(y, weight)), 1.0, 1.0])
    start = coefficients.copy()
    for _ in range(_NEWTON_STEPS):
        share = special.expit(X @ coefficients)
        slope = X.T @ (weight * (share - y)) + _RIDGE * (coefficients - start)
        curvature = (X * (weight * share * (1 - share))[:, None]).T @ X + _RIDGE * np.eye(3)
        coefficients = coefficients - np.linalg.solve(curvature, slope)
    return coefficients
