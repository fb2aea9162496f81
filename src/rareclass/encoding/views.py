"""Views of a typed table: the numbers that each kind of member learns from, dense or sparse."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rareclass.encoding.bounded_numbers import HOWS, BoundedNumbers
from rareclass.encoding.column_values import COMPONENTS
from rareclass.encoding.label_statistics import LabelFeatures, LabelStatistics
from rareclass.encoding.table_statistics import EncodedTable, TableStatistics

Floats = NDArray[np.float64]

FEWEST_ROWS = 2.0
_BINS = 16
_MOST_PAIRED = 12
_PAIR_VALUE = 0.5
_BUCKETS = 1 << 18
# Odd multipliers of Knuth's and Steele's hashes: nearby levels land far from each other.
_FIRST, _SECOND, _PAIR = (
    np.uint64(m) for m in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


class SparseView:
    """A table as a CSR matrix of indicators, for linear models with a penalty.

    A column stands for each value of a category that at least two rows have, of words and of codes
    alike; for each of 16 bins of a number; and for each pair of values of two categories that at
    least two rows have, hashed into 262,144 buckets. Indicators are 1, those of pairs 0.5: a ridge
    penalty weighs four times on these, which are many and rest on few rows. A value that training
    did not have is in no column.

    Parameters
    ----------
    pairs : bool
        Whether pairs of values have columns: of all pairs of up to twelve categories, which are
        taken from those of most values on.

    Attributes
    ----------
    n_features_ : int
    source_column_, second_column_ : ndarray of int of shape (n_features_,)
        The table's column that each feature comes from; of a pair the second one, too, else -1.
    """

    def __init__(self, pairs: bool = True) -> None:
        self.pairs = pairs

    def fit(
        self,
        encoded: EncodedTable,
        weight: Floats | None,
        statistics: TableStatistics,
        rows_of_labels: Sequence[NDArray[np.intp]] | None = None,
    ) -> "SparseView":
        """Learn from rows that `statistics` encoded, whatever their labels are."""
        known = self.statistics_ = statistics
        shares = np.ones(encoded.n_rows) if weight is None else weight
        # Of each set of labels by itself: another set's codes change nothing.
        every = {pair for labels in range(len(known.labels_)) for pair in self._paired_by(labels)}
        self.paired_ = [list(pair) for pair in sorted(every)]
        self.edges_ = [_edges(known, k) for k in range(encoded.numbers.shape[1])]
        of_category, of_number = known.category_sources_, known.number_sources_
        origins = [(source, -1) for source in of_category + of_number]
        origins += [(of_category[i], of_category[j]) for i, j in self.paired_]
        self.columns_, sizes = [], []
        begin = 0
        for buckets, n_buckets in self._buckets(encoded):
            weights = np.bincount(buckets, shares, n_buckets)
            kept = weights >= FEWEST_ROWS
            self.columns_.append(np.where(kept, begin + np.cumsum(kept) - 1, -1).astype(np.int32))
            sizes.append(int(np.count_nonzero(kept)))
            begin += sizes[-1]
        self.n_features_ = begin
        pairs = np.repeat(np.array(origins, np.int64).reshape(-1, 2), sizes, axis=0)
        self.source_column_, self.second_column_ = pairs.T
        return self

    def features_of(self, labels: int) -> NDArray[np.intp]:
        """Return the features that count for a set of labels: not those of codes it leaves out."""
        kept = self.statistics_.labels_[labels].kept_
        n_categories = len(self.statistics_.known_)
        of_pairs = self.columns_[n_categories + len(self.edges_) :]
        left_out = [self.columns_[k] for k in range(n_categories) if k not in kept]
        own = self._paired_by(labels)
        left_out += [
            columns
            for columns, pair in zip(of_pairs, self.paired_, strict=True)
            if tuple(pair) not in own
        ]
        is_used = np.ones(self.n_features_ + 1, np.bool_)  # the last one for buckets of no column
        is_used[np.concatenate([[-1], *left_out]).astype(np.int64)] = False
        return np.flatnonzero(is_used)

    def _paired_by(self, labels: int) -> list[tuple[int, int]]:
        """Return the pairs of categories of a set of labels: of those with most values."""
        known = self.statistics_
        kept = known.labels_[labels].kept_ if self.pairs else []
        widest = sorted(kept, key=lambda k: -len(known.level_weights_[k]))[:_MOST_PAIRED]
        return list(combinations(sorted(widest), 2))

    def check_parts(self) -> None:
        """Raise `ValueError` where a bucket would stand beside the matrix."""
        for columns in self.columns_:
            if columns.dtype.kind != "i" or columns.ndim != 1:
                raise ValueError("columns_ are not whole numbers")
            if len(columns) and not -1 <= columns.min() <= columns.max() < self.n_features_:
                raise ValueError(f"columns_ point beyond {self.n_features_} features")

    def transform(self, encoded: EncodedTable) -> "sparse.csr_matrix":
        """Rows as a CSR matrix: (n_rows, n_features)."""
        each = zip(self._buckets(encoded), self.columns_, strict=True)
        columns = [column[buckets] for (buckets, _), column in each]
        joined = np.stack(columns, axis=1) if columns else np.empty((encoded.n_rows, 0), np.int32)
        kept = joined >= 0
        starts = np.append(0, np.cumsum(kept.sum(axis=1)))
        indices = joined[kept]
        values = np.where(self.second_column_ < 0, 1.0, _PAIR_VALUE)[indices]
        shape = (encoded.n_rows, self.n_features_)
        return sparse.csr_matrix((values, indices, starts), shape=shape)

    def _buckets(self, encoded: EncodedTable) -> Iterator[tuple[NDArray[np.integer], int]]:
        """The bucket of each row among so many: of each category, number and pair in turn."""
        known = self.statistics_
        for k, levels in enumerate(encoded.levels):
            yield levels, known.known_[k].n_levels
        for k, edges in enumerate(self.edges_):
            numbers = encoded.numbers[:, k]
            bins = np.searchsorted(edges, numbers, side="right")
            yield np.where(np.isnan(numbers), len(edges) + 1, bins), len(edges) + 2
        for i, j in self.paired_:
            first, second = known.category_sources_[i], known.category_sources_[j]
            number = first * len(known.columns_) + second
            mixed = encoded.levels[i].astype(np.uint64) * _FIRST
            mixed += encoded.levels[j].astype(np.uint64) * _SECOND + np.uint64(number)
            mixed ^= mixed >> np.uint64(31)
            yield (mixed * _PAIR >> np.uint64(46)).astype(np.int64), _BUCKETS


def _edges(known: TableStatistics, number: int) -> Floats:
    """Between the bins of a number: quantiles of training."""
    summaries = known.summaries
    own = slice(*summaries.starts[number : number + 2])
    wanted = np.searchsorted(summaries.ranks[own], np.arange(1, _BINS) / _BINS)
    knots = summaries.knots[own]
    return np.unique(knots[np.clip(wanted, 1, len(knots) - 1)]) if len(knots) > 1 else np.empty(0)


# Values of a category that get a column each, for distances and linear parts.
MOST_VALUES_BOUNDED = 20
# Trees need a column a value only where values are few; else their log-odds say more.
MOST_VALUES_RAW = 10
# A category that nearly always has the same value is not stretched to variance 1 altogether: two
# rows that differ in it are at most as far apart as if every fifth pair of rows differed.
_LEAST_DIFFERING = 0.2
# Log-odds that vary less than this say next to nothing and are not stretched.
_LEAST_DEVIATION = 0.25
# Trees find pairs of so few values by themselves.
_FEWEST_PAIRS_RAW = 100


class _Feature(NamedTuple):
    """A feature of a view: its name, and the table's columns that it is of, -1 for no second one.

    `labels` is the set of labels that it rests on, -1 for none.
    """

    name: str
    source: int
    second: int = -1
    labels: int = -1


class DenseView:
    """A table as a matrix of float64.

    Bounded numbers ("quantiles", "clipped"; see `BoundedNumbers`), for distances and
    linear parts: each column counts about as much as one number of variance 1, whose squared
    distance between two rows is 2 on average. A missing number is the median, with a marker where
    training had missing ones. A category is the indicators of its 20 commonest values; where it has
    more, also its log-odds and the log of its count. A code is a number and these two. Dates are
    what recurs in them, a text 30 numbers of variance 1/30.

    Raw numbers ("raw"), for trees: as they are, within the range of training, NaN where missing.
    Categories are log-odds and the log of the count, or indicators where they have up to 10 values.

    In both, whole numbers that are codes are categories, too, and pairs of categories that tell
    more than both alone have log-odds of their own. What rests on labels stands last, a block for
    each set of labels that the statistics learned from. A number beyond those of training becomes
    what the nearest of training is.

    Parameters
    ----------
    numbers : {"quantiles", "clipped", "raw"}

    Attributes
    ----------
    feature_names_ : list of str
    source_column_ : ndarray of int of shape (n_features,)
        The table's column that each feature comes from; of a pair, the first one.
    second_column_ : ndarray of int of shape (n_features,)
        The second column of a pair; -1 elsewhere.
    labels_of_ : ndarray of int of shape (n_features,)
        The set of labels that each feature rests on, by number; -1 for none.
    blocks_ : list of LabelBlock
        Of each set of labels.
    """

    def __init__(self, numbers: str = "quantiles") -> None:
        self.numbers = numbers

    def fit(
        self,
        encoded: EncodedTable,
        weight: Floats | None,
        statistics: TableStatistics,
        rows_of_labels: Sequence[NDArray[np.intp]] | None = None,
    ) -> "DenseView":
        """Learn from rows that `statistics` encoded, of these weights.

        `rows_of_labels` are the numbers of the rows of each set of labels; None: all rows.
        """
        if self.numbers not in (*HOWS, "raw"):
            allowed = ", ".join(map(repr, (*HOWS, "raw")))
            raise ValueError(f"numbers={self.numbers!r} must be one of {allowed}.")
        self.statistics_ = statistics
        is_raw = self.numbers == "raw"
        if not is_raw:
            self.bounded_ = BoundedNumbers(self.numbers)
            self.bounded_.fit(encoded.numbers, weight, statistics.summaries)
            self.cycles_ = BoundedNumbers("clipped").fit(encoded.cycles, weight)
            self.texts_ = BoundedNumbers("clipped").fit(encoded.texts, weight)
        many = self.with_many_values(MOST_VALUES_RAW if is_raw else MOST_VALUES_BOUNDED)
        self.blocks_ = []
        for k, features in enumerate(encoded.of_labels):
            rows: Any = slice(None) if rows_of_labels is None else rows_of_labels[k]
            shares = None if weight is None else weight[rows]
            block = LabelBlock(is_raw).fit(features.take(rows), shares, statistics.labels_[k], many)
            self.blocks_.append(block)
        found = list(self._features())
        self.feature_names_ = [each.name for each in found]
        self.source_column_ = np.array([each.source for each in found], np.int64)
        self.second_column_ = np.array([each.second for each in found], np.int64)
        self.labels_of_ = np.array([each.labels for each in found], np.int64)
        return self

    def features_of(self, labels: int) -> NDArray[np.intp]:
        """Return the features that count for one set of labels: not those of the others."""
        return np.flatnonzero((self.labels_of_ < 0) | (self.labels_of_ == labels))

    def transform(self, encoded: EncodedTable) -> Floats:
        """Rows as a matrix: (n_rows, n_features), C order."""
        known, words = self.statistics_, range(self.statistics_.n_words_)
        if self.numbers == "raw":
            numbers = np.clip(encoded.numbers, known.low_, known.high_)
            shared = [numbers, encoded.cycles, encoded.texts]
            shared += [self._indicators(encoded, k) for k in words]
        else:
            shared = self._bounded_numbers(encoded)
            shared += [self._scaled_indicators(encoded, k) for k in words]
        each = zip(self.blocks_, encoded.of_labels, strict=True)
        return np.hstack([*shared, *(block.transform(own) for block, own in each)])

    def markers(self) -> tuple[NDArray[np.intp], Floats, Floats]:
        """Return the numbers with a marker of missing cells, its mean and its deviation."""
        share = self.statistics_.missing_share_
        marked = np.flatnonzero(share > 0)
        share = share[marked]
        return marked, share, np.sqrt(np.maximum(share * (1 - share), _LEAST_DIFFERING / 2))

    def _features(self) -> Iterator[_Feature]:
        """Say what each column of the matrix is, in order."""
        known, marked = self.statistics_, []
        names, sources = known.number_names_, known.number_sources_
        if self.numbers != "raw":
            marked = [(f"{names[k]} is missing", sources[k]) for k in self.markers()[0]]
        yield from map(_Feature, names, sources)
        yield from (_Feature(*each) for each in marked)
        yield from map(_Feature, known.cycle_names_, known.cycle_sources_)
        yield from map(_Feature, known.text_names_, known.text_sources_)
        names, sources = known.category_names_, known.category_sources_
        for k in range(known.n_words_):
            for level in self._shown_levels(k):
                yield _Feature(f"{names[k]} = {known.known_[k].name(level)}", sources[k])
        for labels, (block, own) in enumerate(zip(self.blocks_, known.labels_, strict=True)):
            kept, pairs = own.kept_, [own.pairs_[k] for k in block.pairs_]
            for what, chosen in (("log-odds", block.log_odds_), ("log count", block.log_counts_)):
                for k in (kept[each] for each in chosen):
                    yield _Feature(f"{names[k]}: {what}", sources[k], labels=labels)
            for i, j in ((kept[first], kept[second]) for first, second in pairs):
                name = f"{names[i]} & {names[j]}: log-odds"
                yield _Feature(name, sources[i], sources[j], labels)

    def _bounded_numbers(self, encoded: EncodedTable) -> list[Floats]:
        numbers = self.bounded_.transform(encoded.numbers)
        missing = np.isnan(numbers)
        marked, share, deviation = self.markers()
        np.copyto(numbers, self.bounded_.typical_, where=missing)
        markers = (missing[:, marked] - share) / deviation
        cycles = np.nan_to_num(self.cycles_.transform(encoded.cycles), copy=False)
        return [
            numbers,
            markers,
            cycles,
            self.texts_.transform(encoded.texts) / np.sqrt(COMPONENTS),
        ]

    def with_many_values(self, most: int) -> list[int]:
        """Return the categories that have more than so many values in training."""
        weights = self.statistics_.level_weights_
        return [k for k, weight in enumerate(weights) if np.count_nonzero(weight) > most]

    def _shown_levels(self, category: int) -> NDArray[np.intp]:
        """The commonest levels, which get a column each; of two the rarer one says it all.

        Trees have none of a category with many values.
        """
        weight = self.statistics_.level_weights_[category]
        most = MOST_VALUES_RAW if self.numbers == "raw" else MOST_VALUES_BOUNDED
        n_levels = int(np.count_nonzero(weight))
        n_shown = 0 if n_levels > most and self.numbers == "raw" else min(most, n_levels)
        shown = np.argsort(-weight, kind="stable")[:n_shown]
        return shown[1:] if n_shown <= 2 else shown

    def _indicators(self, encoded: EncodedTable, category: int) -> Floats:
        """0 and 1 for each of the commonest levels."""
        shown = self._shown_levels(category)
        return (encoded.levels[category][:, None] == shown).astype(np.float64)

    def _scaled_indicators(self, encoded: EncodedTable, category: int) -> Floats:
        """Indicators centred, so scaled that two rows' squared distance is 2 on average."""
        weight = self.statistics_.level_weights_[category]
        shares, shown = weight / weight.sum(), self._shown_levels(category)
        # One column stands for both values of two, and moves once where two columns move.
        scale = np.sqrt(2.0) if len(shown) == 1 else 1.0
        scale /= np.sqrt(max(1.0 - float(shares @ shares), _LEAST_DIFFERING))
        return (self._indicators(encoded, category) - shares[shown]) * scale


class LabelBlock:
    """The features of a dense view that rest on one set of labels.

    Raw: the log-odds of every category, the log counts of those with many values, and pairs of more
    than 100 values. Bounded: log-odds and log counts of categories with many values, as the
    indicators of few values say what log-odds would, and all pairs; centred and scaled by the rows
    of the set.

    Attributes
    ----------
    log_odds_, log_counts_, pairs_ : list of int
        The columns of `LabelFeatures` that are features.
    scaling_ : CentredColumns or None
    """

    def __init__(self, is_raw: bool) -> None:
        self.is_raw = is_raw

    def fit(
        self,
        features: LabelFeatures,
        weight: Floats | None,
        labels: LabelStatistics,
        many: Sequence[int],
    ) -> "LabelBlock":
        """Learn from the rows of the set; `many` are the categories with many values."""
        self.log_counts_ = [k for k, place in enumerate(labels.kept_) if place in many]
        self.log_odds_ = list(range(len(labels.kept_))) if self.is_raw else self.log_counts_
        self.pairs_ = [
            k
            for k, known in enumerate(labels.pair_statistics_)
            if not self.is_raw or len(known.cells_) > _FEWEST_PAIRS_RAW
        ]
        self.scaling_ = None
        if not self.is_raw:
            self.scaling_ = CentredColumns().fit(self._chosen(features), weight)
        return self

    def transform(self, features: LabelFeatures) -> Floats:
        """Return the features of rows: (n_rows, n_features)."""
        chosen = self._chosen(features)
        return chosen if self.scaling_ is None else self.scaling_.transform(chosen)

    def _chosen(self, features: LabelFeatures) -> Floats:
        log_odds, log_counts, pairs = features
        return np.hstack(
            [log_odds[:, self.log_odds_], log_counts[:, self.log_counts_], pairs[:, self.pairs_]]
        )


class CentredColumns:
    """Centres columns and divides them by their deviation, unless that is small; bounded."""

    def fit(self, X: Floats, weight: Floats | None) -> "CentredColumns":
        """Learn mean, deviation and range of rows with these weights."""
        shares = np.ones(len(X)) if weight is None else weight
        self.mean_ = shares @ X / shares.sum()
        deviation = np.sqrt(shares @ (X - self.mean_) ** 2 / shares.sum())
        self.scale_ = np.maximum(deviation, _LEAST_DEVIATION)
        rows = X[shares > 0]
        self.low_, self.high_ = rows.min(axis=0), rows.max(axis=0)
        return self

    def transform(self, X: Floats) -> Floats:
        """Return the columns clipped to their range, centred and scaled."""
        return (np.clip(X, self.low_, self.high_) - self.mean_) / self.scale_


VIEWS: dict[str, Callable[[], DenseView | SparseView]] = {
    "quantiles": lambda: DenseView("quantiles"),
    "trees": lambda: DenseView("raw"),
    "indicators": SparseView,
}
"""The views by name, each made anew."""
