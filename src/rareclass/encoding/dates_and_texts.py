"""Dates and texts as numbers: what recurs in dates, and the main directions of letter groups."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]

_DAY = 86400.0
# 1970-01-01, where seconds start, was a Thursday; weeks start on Mondays.
_THURSDAY = 3


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
