"""Values of a column as numbers, learned without labels: words, codes, dates and texts."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from rareclass.encoding.typed_table import TypedColumn

Floats = NDArray[np.float64]

_DAY = 86400.0
# 1970-01-01, where seconds start, was a Thursday; weeks start on Mondays.
_THURSDAY = 3


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


FEWEST_CODES = 20
# Of codes that are met fewer times than this on average, too little is known.
ROWS_A_CODE = 3


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


class RecurringDates:
    """Turns dates into numbers that rows of later years may have too.

    Of a date come the sine and cosine of the hour of the day, the day of the week and the month,
    and the day of the month; of every two dates the days from one to the other. What does not
    vary in training is left out. The moment itself is left out too: new rows lie beyond it.

    Parameters
    ----------
    absolute_time : bool
        Also give the days since 1970 of each date.

    Attributes
    ----------
    features_ : list of (part, first, second)
        What each number is: the part's name, and the columns of the dates that it is of.
    n_cycles_ : int
        How many come first that are sines and cosines; those after them are days.

    Examples
    --------
    >>> import numpy as np
    >>> dates = np.array([[0.0], [6 * 3600.0]])  # midnight and six, Thursday 1970-01-01
    >>> recurring = RecurringDates().fit(dates)
    >>> [part for part, *_ in recurring.features_]
    ['hour (sine)', 'hour (cosine)']
    >>> recurring.transform(dates).round(6)
    array([[0., 1.],
           [1., 0.]])
    """

    def __init__(self, absolute_time: bool = False) -> None:
        self.absolute_time = absolute_time

    def fit(self, dates: Floats, weight: Floats | None = None) -> "RecurringDates":
        """Find what varies: dates are seconds since 1970 (n_rows, n_dates), NaN where missing."""
        self.features_ = [(part, k, k) for k in range(dates.shape[1]) for part in CYCLES]
        self.n_cycles_ = len(self.features_)
        self.features_ += [("day of the month", k, k) for k in range(dates.shape[1])]
        self.features_ += [("days", i, j) for i, j in combinations(range(dates.shape[1]), 2)]
        if self.absolute_time:
            self.features_ += [("time", k, k) for k in range(dates.shape[1])]
        parts = self.transform(dates if weight is None else dates[weight > 0])
        low = np.min(np.nan_to_num(parts, nan=np.inf), axis=0, initial=np.inf)
        high = np.max(np.nan_to_num(parts, nan=-np.inf), axis=0, initial=-np.inf)
        varies = high > low + 1e-9  # the time of day is rounded
        self.features_ = [each for each, kept in zip(self.features_, varies, strict=True) if kept]
        self.n_cycles_ = int(varies[: self.n_cycles_].sum())
        return self

    def transform(self, dates: Floats) -> Floats:
        """Return the recurring parts: (n_rows, n_features), NaN for a missing date; F order."""
        parts = np.empty((len(dates), len(self.features_)), order="F")
        for k, (part, first, second) in enumerate(self.features_):
            if part == "days":
                parts[:, k] = (dates[:, second] - dates[:, first]) / _DAY
            elif part == "time":
                parts[:, k] = dates[:, first] / _DAY
            elif part == "day of the month":
                parts[:, k] = _calendar(dates[:, first])[1]
            else:
                parts[:, k] = _cycle(part, dates[:, first])
        return parts


CYCLES = tuple(
    f"{unit} ({wave})" for unit in ("hour", "weekday", "month") for wave in ("sine", "cosine")
)


def _cycle(part: str, seconds: Floats) -> Floats:
    """The sine or cosine of where in the day, the week or the year a date is."""
    unit, wave = part.split(" ")
    if unit == "hour":
        turn = np.mod(seconds, _DAY) / _DAY
    elif unit == "weekday":
        turn = np.mod(np.floor(seconds / _DAY) + _THURSDAY, 7) / 7
    else:
        turn = _calendar(seconds)[0] / 12
    return np.asarray((np.sin if wave == "(sine)" else np.cos)(2 * np.pi * turn))


def _calendar(seconds: Floats) -> tuple[Floats, Floats]:
    """Month from 0 to 11 and day of the month from 1; NaN where missing."""
    missing = np.isnan(seconds)
    days = np.floor(np.where(missing, 0.0, seconds) / _DAY).astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    month = months.astype(np.int64) % 12
    day = (days - months).astype(np.int64) + 1
    return np.where(missing, np.nan, month), np.where(missing, np.nan, day)


COMPONENTS = 30
_LETTER_GROUPS = (3, 4)
_BUCKETS = 1 << 15
# Directions are found on so many texts.
_MOST_TEXTS = 20_000


class TextComponents:
    """Turns texts into 30 numbers, the main directions of their groups of 3 and 4 letters.

    Groups are counted in 32,768 buckets, weighted by how few texts have them (tf-idf), and rows
    brought to unit length, so that no text lies farther out than another; a truncated singular
    value decomposition (section 18 of Manning, Raghavan and Schuetze, 2008) keeps 30 directions.

    Attributes
    ----------
    idf_ : ndarray of shape (n_buckets,)
    directions_ : ndarray of float32 of shape (n_components, n_buckets)

    Notes
    -----
    Time: proportional to the letters; memory: 4 MB for the directions.
    """

    def fit(self, texts: NDArray[np.object_], weight: Floats) -> "TextComponents":
        """Learn from distinct texts, each of a weight above 0."""
        counts = _letter_groups(texts)
        met = (counts > 0).astype(np.float64)
        self.idf_ = np.log((1 + weight.sum()) / (1 + weight @ met)) + 1
        rows = slice(None, None, -(-len(texts) // _MOST_TEXTS))
        from sklearn.decomposition import TruncatedSVD

        scaled = sparse.diags(np.sqrt(weight[rows])) @ self._weighted(counts[rows])
        n_components = min(COMPONENTS, scaled.shape[0])
        svd = TruncatedSVD(n_components, random_state=0).fit(scaled)
        self.directions_ = svd.components_.astype(np.float32)
        return self

    def transform(self, texts: NDArray[np.object_]) -> Floats:
        """(n_texts, n_components); a text without letters is all zeros."""
        if not len(texts):
            return np.empty((0, len(self.directions_)))
        return np.asarray(self._weighted(_letter_groups(texts)) @ self.directions_.T, np.float64)

    def _weighted(self, counts: "sparse.csr_matrix") -> "sparse.csr_matrix":
        from sklearn.preprocessing import normalize

        return normalize(counts @ sparse.diags(self.idf_))


def _letter_groups(texts: NDArray[np.object_]) -> "sparse.csr_matrix":
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        analyzer="char_wb",
        ngram_range=_LETTER_GROUPS,
        n_features=_BUCKETS,
        alternate_sign=False,
        norm=None,
    )
    return vectorizer.transform(texts)


def text_components(column: TypedColumn, weight: Floats) -> TextComponents:
    """Learn the main directions of the letters of a text column; a weight counts as copies."""
    return TextComponents().fit(*_weighed_words(column, weight))


def rows_of_text(column: TypedColumn, components: TextComponents) -> Floats:
    """Return the numbers of each cell, zeros where it is empty: (n_rows, n_components)."""
    assert column.levels is not None
    # Only words that these rows have.
    used, position = np.unique(column.values, return_inverse=True)
    zeros = np.zeros((int(len(used) > 0 and used[0] < 0), len(components.directions_)))
    return np.vstack([zeros, components.transform(column.levels[used[used >= 0]])])[position]


def known_words(column: TypedColumn, weight: Floats) -> KnownWords:
    """The words that rows with weight have, from the commonest on."""
    words, weights = _weighed_words(column, weight)
    # By word among equals: the order of the rows does not matter.
    by_word = np.argsort(words, kind="stable")
    order = by_word[np.argsort(-weights[by_word], kind="stable")]
    return KnownWords().fit(words[order])


def _weighed_words(column: TypedColumn, weight: Floats) -> tuple[NDArray[np.object_], Floats]:
    """Return the words that rows with weight have, and their weight."""
    assert column.levels is not None
    present = column.values >= 0
    weights = np.bincount(column.values[present], weight[present], len(column.levels))
    kept = weights > 0
    return column.levels[kept], weights[kept].astype(np.float64, copy=False)
