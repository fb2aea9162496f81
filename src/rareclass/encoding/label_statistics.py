"""Statistics of categories from the labels of one set of training rows, as features of any rows.

A set is the training rows of a fold, or all rows. Its own rows get what the other parts of the set
say, so that no row's own label is among its features; every other row gets what the whole set says,
a row that is held out like a new one. Nothing here looks at a label outside the set.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rareclass.encoding.column_values import KnownCodes
from rareclass.encoding.log_odds import (
    CategoryStatistics,
    FoundPair,
    PairStatistics,
    PartedRows,
    find_pairs,
    is_clear_gain,
    log_loss,
    rare_share,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

_MOST_BINS = 32
# Bins are to be wider than a code, or they say as much as codes do.
_CODES_A_BIN = 4
_ERRORS_OF_CODES = 2.0
_LEAST_GAIN = 0.005
# Copies of a rare row, on average, up to which the order of the rows may mean something.
_MOST_COPIES = 1.1
# Pairs were found to tell more than both codes alone: of their bins it is enough to be behind.
_ERRORS_OF_PAIRS = 1.0


class LabelFeatures(NamedTuple):
    """Features of rows that rest on labels: (n_rows, n_kept) each, and (n_rows, n_pairs)."""

    log_odds: Floats
    log_counts: Floats
    pairs: Floats

    def take(self, rows: Any) -> "LabelFeatures":
        """Take some rows."""
        return LabelFeatures(*(values[rows] for values in self))


class TrainingPart(NamedTuple):
    """Rows whose labels are learned from: their numbers, and the part that each is in.

    `moment` is the place of each row in time, where that is known. With `is_drawn` the parts were
    drawn at random, and say nothing of rows far away. Columns `left_out`, by name, are not learned
    from.
    """

    rows: NDArray[np.intp]
    part: NDArray[np.integer]
    moment: NDArray[np.integer] | None = None
    is_drawn: bool = False
    left_out: tuple[str, ...] = ()

    def in_time(self, y: NDArray[np.bool_], weight: Floats) -> NDArray[np.intp] | None:
        """Return the order of time, or of the table; None where it says nothing of single rows.

        Rows that stand for their copies are where the first of them was.
        """
        if weight[y].sum() > _MOST_COPIES * np.count_nonzero(y):
            return None
        if self.moment is None:
            return np.arange(len(y)) if self.is_drawn else None
        return np.argsort(self.moment, kind="stable")


class LabelStatistics:
    """Learns the log-odds of categories, and of pairs of them, from one set of rows.

    Words are always kept. Whole numbers that may be codes are where their values tell more of the
    rare class than where they lie, or where they tell something beside another column.

    Attributes
    ----------
    kept_ : list of int
        The categories that have features, by their place in the table's.
    statistics_ : list of CategoryStatistics
        Of each category that is kept.
    pairs_ : list of [int, int]
        The places of the categories of each pair among those kept.
    pair_statistics_ : list of PairStatistics
    stand_ins_ : list of int or None
        Of each category kept, the level that levels without rows in the set count as; None where
        they are a level of their own.
    nearby_only_ : list of str
        Columns whose values tell clearly less of rows far away (`holds_nearby_only`). Where there
        are any, parts were drawn and times are known, the halves of the time take their place, for
        members to learn what values are worth farther away.
    """

    def fit_transform(
        self,
        names: Sequence[str],
        known: Sequence[Any],
        levels: Sequence[Codes],
        stand_ins: Sequence[int | None],
        y: NDArray[np.bool_],
        weight: Floats,
        learned: TrainingPart,
    ) -> LabelFeatures:
        """Learn from rows and return their features, out of part.

        names, known: the column of every category, and its levels (`KnownWords` or `KnownCodes`);
        levels, y and weight: those of the rows of `learned`, in its order. Time: that of the sorts
        of `find_pairs`.
        """
        places = [k for k, name in enumerate(names) if name not in learned.left_out]
        rows = PartedRows(y, weight, learned.part)
        every = [_Category.of(k, known[k], levels[k], rows) for k in places]
        order = learned.in_time(y, weight)
        self.nearby_only_ = [
            names[each.place]
            for each in every
            if order is not None
            and each.tells_more
            and holds_nearby_only(each.levels[order], each.known.n_levels, y[order], weight[order])
        ]
        is_known = learned.moment is not None and order is not None
        if is_known and learned.is_drawn and (self.nearby_only_ or learned.left_out):
            part = np.empty(len(y), np.int64)
            part[order] = halves(len(y))
            rows = rows._replace(part=part)
            every = [_Category.of(k, known[k], levels[k], rows) for k in places]
        log_odds = side_by_side([each.log_odds for each in every], len(y))
        found = find_pairs([each.levels for each in every], log_odds, rows)
        found = [
            pair
            for pair in found
            if _tell_more_than_bins(pair, (every[pair.first], every[pair.second]), rows)
        ]
        # A code may tell something only beside another column.
        paired = {k for pair in found for k in (pair.first, pair.second)}
        kept = [k for k, each in enumerate(every) if each.tells_more or k in paired]
        self.kept_ = [every[k].place for k in kept]
        self.statistics_ = [every[k].statistics for k in kept]
        self.stand_ins_ = [stand_ins[place] for place in self.kept_]
        self.pairs_ = [[kept.index(pair.first), kept.index(pair.second)] for pair in found]
        self.pair_statistics_ = [pair.statistics for pair in found]
        log_counts = [
            CategoryStatistics.log_counts_out_of_part(every[k].levels, *rows[1:]) for k in kept
        ]
        return LabelFeatures(
            log_odds[:, kept],
            side_by_side(log_counts, len(y)),
            side_by_side([pair.log_odds for pair in found], len(y)),
        )

    def transform(self, levels: Sequence[Codes], n_rows: int) -> LabelFeatures:
        """Return what the whole set says of rows with these levels of every category."""
        own = [self.as_seen(k, levels[place]) for k, place in enumerate(self.kept_)]
        of_levels = list(zip(self.statistics_, own, strict=True))
        log_odds = side_by_side([known.transform(each) for known, each in of_levels], n_rows)
        log_counts = side_by_side([known.log_counts(each) for known, each in of_levels], n_rows)
        pairs = [
            known.transform((own[i], own[j]), (log_odds[:, i], log_odds[:, j]))
            for known, (i, j) in zip(self.pair_statistics_, self.pairs_, strict=True)
        ]
        return LabelFeatures(log_odds, log_counts, side_by_side(pairs, n_rows))

    def as_seen(self, kept: int, levels: Codes) -> Codes:
        """Return levels with the stand-in in place of those without rows in the set."""
        stand_in = self.stand_ins_[kept]
        if stand_in is None:
            return levels
        return np.where(self.is_unseen(kept)[levels], np.int32(stand_in), levels)

    def is_unseen(self, kept: int) -> NDArray[np.bool_]:
        """Return which levels of a category have no rows in the set."""
        return self.statistics_[kept].log_count_ <= 0.0

    def keep(self, chosen: Sequence[int]) -> None:
        """Name categories by their place among those chosen of the table's."""
        self.kept_ = [chosen.index(place) for place in self.kept_]


class _Category(NamedTuple):
    """A category of the rows of a set: its levels and their log-odds, out of part."""

    place: int
    known: Any
    levels: Codes
    statistics: CategoryStatistics
    log_odds: Floats
    tells_more: bool

    @classmethod
    def of(cls, place: int, known: Any, levels: Codes, rows: PartedRows) -> "_Category":
        statistics = CategoryStatistics()
        log_odds = statistics.fit_transform(levels, known.n_levels, rows)
        is_code = isinstance(known, KnownCodes)
        tells_more = not is_code or tells_more_than_bins(known, levels, log_odds, rows)
        return cls(place, known, levels, statistics, log_odds, tells_more)


def _tell_more_than_bins(
    pair: FoundPair, both: tuple[_Category, _Category], rows: PartedRows
) -> bool:
    """Say whether a pair tells more than the bins of its codes do together."""
    if all(each.tells_more for each in both):
        return True
    coarse, alone = [], []
    for each in both:
        levels, log_odds = each.levels, each.log_odds
        if not each.tells_more:
            bins = bins_of_codes(each.known, levels, rows)
            levels, n_bins = bins[levels], int(bins[-1]) + 1
            log_odds = CategoryStatistics().fit_transform(levels, n_bins, rows)
        coarse.append(levels)
        alone.append(log_odds)
    of_bins = PairStatistics()
    binned = of_bins.fit_transform((coarse[0], coarse[1]), (alone[0], alone[1]), rows)
    return tells_more(pair.log_odds, binned, rows, _ERRORS_OF_PAIRS)


def side_by_side(columns: Sequence[NDArray[Any]], n_rows: int) -> Floats:
    """Columns as a matrix in F order, (n_rows, n_columns)."""
    return np.asarray(columns, np.float64).reshape(len(columns), n_rows).T


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
