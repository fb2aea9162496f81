"""The levels of a category: words, or codes; and whether they tell of rows nearby only."""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import special

from rareclass.encoding.log_odds import (
    CategoryStatistics,
    PartedRows,
    is_clear_gain,
    log_loss,
    rare_share,
)
from rareclass.encoding.typed_table import TypedColumn


class KnownLevels:
    """Values of a column in an order: levels 0 to k - 1; level k is missing, k + 1 any other.

    Subclasses define `n_known`, the number k, and how values are written and found.
    """

    n_known: int

    @property
    def n_levels(self) -> int:
        """How many levels."""
        return self.n_known + 2

    def name(self, level: int) -> str:
        """The value of a level, or what the level is."""
        if level >= self.n_known:
            return "missing" if level == self.n_known else "unseen"
        return self._word(level)

    def _word(self, level: int) -> str:
        raise NotImplementedError

    def levels_in(self, column: TypedColumn) -> NDArray[np.int32]:
        """Return the level of each cell of a column."""
        raise NotImplementedError


class KnownWords(KnownLevels):
    """Words in an order, held as two arrays so that a model file of many words stays small.

    Attributes
    ----------
    text_ : ndarray of uint8
        All words in UTF-8, one after the other.
    ends_ : ndarray of int64 of shape (n_words + 1,)
        Word k is ``text_[ends_[k]:ends_[k + 1]]``.

    Examples
    --------
    >>> import numpy as np
    >>> known = KnownWords().fit(["red", "blue"])
    >>> known.levels(np.array(["blue", "green"], dtype=object)).tolist()
    [1, 3]
    >>> known.name(0), known.n_known, known.n_levels
    ('red', 2, 4)
    """

    def fit(self, words: Sequence[str] | NDArray[np.object_]) -> "KnownWords":
        """Remember distinct words in this order."""
        written = [word.encode() for word in words]
        self.text_ = np.frombuffer(b"".join(written), np.uint8).copy()
        self.ends_ = np.cumsum([0, *map(len, written)], dtype=np.int64)
        return self

    def check_parts(self) -> None:
        """Raise `ValueError` where the ends of words do not lie in the text."""
        ends, text = self.ends_, self.text_
        if ends.dtype != np.int64 or text.dtype != np.uint8 or ends.ndim != 1 or text.ndim != 1:
            raise ValueError("ends_ and text_ are not whole numbers and bytes")
        if not len(ends) or ends[0] != 0 or ends[-1] > len(text) or (np.diff(ends) < 0).any():
            raise ValueError("ends_ point outside of text_")
        text.tobytes().decode()

    @property
    def n_known(self) -> int:  # type: ignore[override]
        """How many words."""
        return len(self.ends_) - 1

    def _word(self, level: int) -> str:
        begin, end = self.ends_[level : level + 2]
        return self.text_[begin:end].tobytes().decode()

    def levels(self, words: NDArray[np.object_]) -> NDArray[np.int32]:
        """The level of each word; time: one hash a word."""
        buffers = [None, pa.py_buffer(self.ends_), pa.py_buffer(self.text_)]
        known = pa.Array.from_buffers(pa.large_string(), self.n_known, buffers)
        # By way of polars: from and to NumPy, Arrow imports pandas where it is installed.
        found = pc.index_in(pl.Series(words.tolist(), dtype=pl.String).to_arrow(), value_set=known)
        places = pl.Series(pl.from_arrow(found), dtype=pl.Int32).fill_null(self.n_known + 1)
        return places.to_numpy().astype(np.int32)

    def levels_in(self, column: TypedColumn) -> NDArray[np.int32]:
        """Return the level of each cell: of its word, or of an empty cell."""
        assert column.levels is not None
        return np.append(self.levels(column.levels), np.int32(self.n_known))[column.values]


Floats = NDArray[np.float64]
Codes = NDArray[np.integer]

FEWEST_CODES = 20
# Of codes that are met fewer times than this on average, too little is known.
ROWS_A_CODE = 3
_MOST_BINS = 32
# Bins are to be wider than a code, or they say as much as codes do.
_CODES_A_BIN = 4
_ERRORS_OF_CODES = 2.0
_LEAST_GAIN = 0.005


class KnownCodes(KnownLevels):
    """The whole numbers that a column had in training, in increasing order.

    Attributes
    ----------
    values_ : ndarray of shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> known = KnownCodes().fit(np.array([7.0, 3.0]), np.ones(2))
    >>> known.levels(np.array([7.0, 5.0, np.nan])).tolist(), known.name(1)
    ([1, 3, 2], '7')
    """

    def fit(self, values: Floats, weight: Floats) -> "KnownCodes":
        """Remember the numbers of rows with weight that are not missing."""
        self.values_ = np.unique(values[~np.isnan(values) & (weight > 0)])
        return self

    @property
    def n_known(self) -> int:  # type: ignore[override]
        """How many codes."""
        return len(self.values_)

    def _word(self, level: int) -> str:
        return f"{self.values_[level]:.0f}"

    def levels(self, values: Floats) -> NDArray[np.int32]:
        """The level of each number; time: a binary search a number."""
        if not self.n_known:
            return np.where(np.isnan(values), 0, 1).astype(np.int32)
        found = np.minimum(np.searchsorted(self.values_, values), self.n_known - 1)
        levels = np.where(self.values_[found] == values, found, self.n_known + 1)
        return np.where(np.isnan(values), self.n_known, levels).astype(np.int32)

    def levels_in(self, column: TypedColumn) -> NDArray[np.int32]:
        """Return the level of each number of a column."""
        return self.levels(column.values)


def could_be_codes(values: Floats, weight: Floats) -> bool:
    """Say whether a column holds whole numbers, many of them and each several times."""
    first = values[:1000]
    if (np.floor(first) != first)[~np.isnan(first) & (weight[:1000] > 0)].any():
        return False  # most columns are done with here
    is_present = ~np.isnan(values) & (weight > 0)
    present, n_rows = values[is_present], float(weight[is_present].sum())
    if n_rows < FEWEST_CODES * ROWS_A_CODE or (present != np.floor(present)).any():
        return False
    n_distinct = len(np.unique(present))
    return FEWEST_CODES <= n_distinct <= n_rows / ROWS_A_CODE


def tells_more_than_bins(
    known: KnownCodes, levels: Codes, log_odds: Floats, rows: PartedRows
) -> bool:
    """Say whether the codes of a column tell the rare class better than where they lie.

    That is than the log-odds of their bins. Time: O(n_rows).
    """
    bins = bins_of_codes(known, levels, rows)
    by_bin = CategoryStatistics().fit_transform(bins[levels], int(bins[-1]) + 1, rows)
    return tells_more(log_odds, by_bin, rows, _ERRORS_OF_CODES)


def tells_more(log_odds: Floats, others: Floats, rows: PartedRows, standard_errors: float) -> bool:
    """Say whether log-odds of rows, out of part, tell the rare class better than others do.

    Their log loss must be lower by so many standard errors of the paired difference, and by half a
    percent of what the rare share of all rows loses.
    """
    y, weight, _ = rows
    prior = rare_share(y, weight)
    of_prior = log_loss(np.full(len(y), prior), y)
    better, worse = (
        log_loss(special.expit(each + special.logit(prior)), y) for each in (log_odds, others)
    )
    return is_clear_gain(worse - better, of_prior, weight, standard_errors, _LEAST_GAIN)


def bins_of_codes(known: KnownCodes, levels: Codes, rows: PartedRows) -> NDArray[np.int32]:
    """Return the bin of each level: up to 32 of about equal weight, and two for what is no code.

    Rare rows and others weigh as much together when bins are laid: rare rows often lie where few
    others do, and a bin must not hold most of them.
    """
    share = rare_share(*rows[:2])
    evened = rows.weight * np.where(rows.y, 1.0 / share, 1.0 / (1.0 - share))
    weights = np.bincount(levels, evened, known.n_levels)[: known.n_known]
    ranks = (np.cumsum(weights) - weights / 2) / max(weights.sum(), 1e-300)
    n_bins = max(1, min(_MOST_BINS, known.n_known // _CODES_A_BIN))
    bins = np.minimum(n_bins * ranks, n_bins - 1)
    return np.append(bins, [n_bins, n_bins + 1]).astype(np.int32)


# Columns of fewer values are no names of cards, customers or machines.
FEWEST_VALUES = 50
# Of fewer rare rows a half says too little.
FEWEST_RARE = 40
# Of the repeats that could stand apart, the share that do in a table sorted by the column, at most.
_APART = 0.5
# The table is cut into two parts, then into three, of which the first and the last are compared:
# more rows in one, rows farther apart in the other.
_PARTS = (2, 3)
STANDARD_ERRORS = 4.0
LEAST_LOSS = 0.05


def halves(n_rows: int) -> NDArray[np.int64]:
    """The first half of the rows, 0, and the second one, 1: (n_rows,)."""
    return 2 * np.arange(n_rows) // max(n_rows, 1)


def holds_nearby_only(levels: Codes, n_levels: int, y: NDArray[np.bool_], weight: Floats) -> bool:
    """Say whether the values of a column tell clearly less of rows that are far away in the table.

    The log loss of each value's rare share, learned from every second row and taken for the others,
    is compared with that of the share learned from one half of the table and taken for the other;
    then the same of the first and the last third alone, whose rows are farther apart. Parts are
    those of each class, so that a table sorted by its label is none in bursts. The difference must
    exceed 4 standard errors, and 5 percent of the log loss of the rare share alone. With fewer than
    40 rare rows nothing is said, nor of a column that the table is sorted by, whose values have no
    rows far away: False. Time: O(n_rows).
    """
    if n_levels < FEWEST_VALUES or y.sum() < FEWEST_RARE or _is_sorted_by(levels):
        return False
    for n_parts in _PARTS:
        place, part = np.zeros(len(y), np.int64), np.full(len(y), 1)
        for is_rare in (False, True):
            rows = np.flatnonzero(y == is_rare)
            position = n_parts * np.arange(len(rows)) // max(len(rows), 1)
            rows = rows[outer := (position == 0) | (position == n_parts - 1)]
            place[rows] = np.arange(len(rows))
            part[rows] = np.where(position[outer] == 0, 0, 2)
        used = np.flatnonzero(part != 1)
        ends = y[used], weight[used]
        near, far = (
            _log_loss(levels[used], n_levels, PartedRows(*ends, each[used]))
            for each in (place % 2, part)
        )
        of_prior = log_loss(np.full(len(used), rare_share(*ends)), y[used])
        if is_clear_gain(far - near, of_prior, weight[used], STANDARD_ERRORS, LEAST_LOSS):
            return True
    return False


def _is_sorted_by(levels: Codes) -> bool:
    """Say whether equal levels stand together, nearly all of them."""
    n_distinct = len(np.unique(levels))
    n_apart = np.count_nonzero(levels[1:] != levels[:-1]) + 1 - n_distinct
    return bool(n_apart <= _APART * min(n_distinct, len(levels) - n_distinct))


def _log_loss(levels: Codes, n_levels: int, rows: PartedRows) -> Floats:
    """Of each row, by what the other part says of its level."""
    statistics = CategoryStatistics()
    log_odds = statistics.fit_transform(levels, n_levels, rows)
    return log_loss(special.expit(log_odds + special.logit(statistics.prior_)), rows.y)
