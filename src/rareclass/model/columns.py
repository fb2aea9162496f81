"""One measure of drift: the columns of new rows against the same columns of training.

The cells of a column are counted in bins: tenths of the numbers, or the commonest words and all
others; cells unlike any of training; empty cells. The population stability index of these counts
says how far the column has moved (docs/decisions/0058). Scores are a column like others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.known_levels import KnownWords
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.errors import ErrorKind, InputError, first_names, missing_column, nearest_name
from rareclass.metrics.column_drift import (
    MOVED,
    MOVED_FAR,
    IndexByChance,
    population_stability_index,
)
from rareclass.model.facts import ScoredRows
from rareclass.table_block import TableBlock
from rareclass.tables.cells import TRUTH_SPELLINGS, numbers_in
from rareclass.tables.columns import Column
from rareclass.tables.reading import CellReading, read_cells
from rareclass.tables.table_file import TableFile

Floats = NDArray[np.float64]
# Of the cells of any column: no more may be unlike training, or empty beyond those of training.
MOST_UNLIKE = 0.10
# Chance that a file of rows like those of training has a column that is called moved, at most.
ERROR = 0.01
# Shares of the error of a column: its index; cells unlike training and empty ones, each.
_OF_INDEX, _OF_SHARES = 0.8, 0.1
SCORES = "score"
_TYPES = {"high-cardinality category": "category, many values", "beside": "not learned from"}
_N_BINS = 10
_MOST_WORDS = 20


@dataclass(frozen=True)
class NumberBins:
    """Bins of numbers between inner edges; those beyond `low` and `high` are unlike training."""

    edges: Floats
    low: float = -np.inf
    high: float = np.inf

    def counts(self, cells: pl.Series) -> Floats:
        """Count cells in each bin, beyond, and empty."""
        is_text = cells.dtype == pl.String  # a stream reads all cells as text
        numbers = numbers_in(cells, truth=TRUTH_SPELLINGS) if is_text else cells
        values = numbers.cast(pl.Float64, strict=False).to_numpy()
        present = values[~np.isnan(values)]
        inside = present[(present >= self.low) & (present <= self.high)]
        places = np.searchsorted(self.edges, inside, side="right")
        found = np.bincount(places, minlength=len(self.edges) + 1).astype(np.float64)
        return np.append(found, [len(present) - len(inside), len(values) - len(present)])


@dataclass(frozen=True)
class WordBins:
    """A bin for each of the commonest words and one for the others; unknown ones are unlike."""

    known: KnownWords
    n_common: int

    def counts(self, cells: pl.Series) -> Floats:
        """Count cells in each bin, of unknown words, and empty."""
        words = cells.cast(pl.String).drop_nulls().alias("word").value_counts(name="n")
        names, numbers = words["word"].to_list(), words["n"].to_numpy()
        levels = self.known.levels(np.array(names, object))
        places = np.where(levels > self.known.n_known, -1, np.minimum(levels, self.n_common))
        found = np.bincount(places + 1, numbers, self.n_common + 2)
        return np.concatenate([found[1:], [found[0], cells.null_count()]])


@dataclass(frozen=True)
class PresentOrEmpty:
    """A bin for whatever is there: of dates and texts."""

    def counts(self, cells: pl.Series) -> Floats:
        """Count cells that are there, none that are unlike, and empty ones."""
        return np.array([len(cells) - cells.null_count(), 0.0, cells.null_count()])


class TrainedColumn(NamedTuple):
    """A column as training had it."""

    name: str
    kind: str
    treatment: str
    bins: NumberBins | WordBins | PresentOrEmpty
    # Training rows by bin; unlike all others, with the row itself left out; and empty. None where
    # that is not known.
    counts: Floats | None
    missing: float | None  # share of empty cells, where it is known
    reading: CellReading | None = None  # of a column that is not learned from


@dataclass(frozen=True)
class ColumnDrift:
    """A column of new rows compared with the same column of training.

    Attributes
    ----------
    name, kind : str
    treatment : str
        How the encoder uses it.
    missing_before, missing_now : float or None
        Share of empty cells.
    outside : float
        Share of the new cells beyond the range of training, or with words that training lacks.
    stability_index : float or None
        `population_stability_index` of the new rows against training; None where the model does not
        know how its cells were distributed.
    chance : IndexByChance or None
        Index that rows like those of training seldom exceed: see `ERROR`.
    is_unlike : bool
        Whether a tenth more of the cells than in training, and more than chance explains, are empty
        or unlike all of training.
    is_absent : bool
        Whether the new rows lack the column.
    is_used : bool
        Whether the model learned from the column; of constant ones it knows the value alone.
    """

    name: str
    kind: str
    treatment: str = ""
    missing_before: float | None = None
    missing_now: float | None = None
    outside: float = 0.0
    stability_index: float | None = None
    chance: IndexByChance | None = None
    is_unlike: bool = False
    is_absent: bool = False
    is_used: bool = True

    @property
    def verdict(self) -> str:
        """Say in a word how far the column has moved; empty where that is not known."""
        if self.is_absent:
            return "absent"
        if self.is_unlike:
            return "moved far"
        if self.stability_index is None:
            return ""
        if self.stability_index < MOVED or (
            self.chance is not None and not self.chance.is_exceeded_by(self.stability_index)
        ):
            return "steady"
        return "moved far" if self.stability_index >= MOVED_FAR else "moved"

    @property
    def is_far(self) -> bool:
        """Say whether the column is absent or has moved far."""
        return self.verdict in ("absent", "moved far")

    @property
    def words(self) -> str:
        """Say what has changed: the index, and cells that are empty or unlike training."""
        if self.is_absent:
            return "absent"
        parts = [] if self.stability_index is None else [f"PSI {self.stability_index:.2f}"]
        now, before = self.missing_now or 0.0, self.missing_before or 0.0
        if abs(now - before) >= 0.01:
            parts.append(f"{now:.0%} empty, {before:.0%} in training")
        if self.outside >= 0.01:
            parts.append(f"{self.outside:.0%} unlike training")
        return ", ".join(parts)

    def as_plain_data(self) -> dict[str, Any]:
        """Return the comparison as numbers and words."""
        return {
            "column": self.name,
            "verdict": self.verdict or None,
            "stability_index": self.stability_index,
            "index_by_chance": 0.0 if self.chance is None else self.chance.index,
            "empty": self.missing_now,
            "empty_in_training": self.missing_before,
            "unlike_training": self.outside,
        }


def type_text(kind: str) -> str:
    """Return the type of a column in the words of a reader."""
    return _TYPES.get(kind, kind)


def columns_block(columns: Sequence[Column]) -> TableBlock:
    """Return a table of what columns hold and how they are encoded."""
    columns_of = {
        "Column": [each.name for each in columns],
        "Type": [type_text(each.kind) for each in columns],
        "Empty": [f"{each.n_missing:,}" if each.n_missing else "" for each in columns],
        "Distinct": [f"{each.n_distinct:,}" if each.n_distinct else "" for each in columns],
        "Treatment": [each.treatment for each in columns],
    }
    return TableBlock.of("", columns_of)


def drift_block(shown: Sequence[ColumnDrift]) -> TableBlock:
    """Return a table of how far columns have moved."""

    def shares(values: Iterable[float | None]) -> list[str]:
        known = zip(shown, values, strict=True)
        return ["" if each.is_absent or share is None else f"{share:.1%}" for each, share in known]

    indices = [each.stability_index for each in shown]
    columns = {
        "Column": ["(scores)" if each.kind == SCORES else each.name for each in shown],
        "Verdict": [each.verdict or "not known" for each in shown],
        "PSI": ["" if index is None else f"{index:.2f}" for index in indices],
        "Empty": shares(each.missing_now for each in shown),
        "Empty before": shares(each.missing_before for each in shown),
        "New values": shares(each.outside for each in shown),
    }
    return TableBlock.of("", columns)


class ColumnTracker:
    """Counts of the cells of new rows in the bins of training, batch by batch."""

    def __init__(self, trained: Sequence[TrainedColumn]) -> None:
        self._trained = {each.name: each for each in trained if each.kind != SCORES}
        self._scores = next((each for each in trained if each.kind == SCORES), None)
        self._counts: dict[str, Floats] = {}
        self._of_scores: Floats | float = 0.0

    def add(self, rows: pl.DataFrame) -> None:
        """Count typed rows."""
        for cells in rows:
            if (trained := self._trained.get(cells.name)) is not None:
                self._add(trained, trained.bins.counts(cells))

    def add_unused(self, rows: pl.DataFrame) -> None:
        """Count raw cells of the columns that are not learned from, as they had one value."""
        for cells in rows:
            trained = self._trained.get(cells.name)
            if trained is None or trained.reading is None:
                continue
            try:
                found = trained.bins.counts(read_cells(cells, trained.reading, 1))
            except InputError:  # cells that cannot be read are unlike those of training
                found = trained.bins.counts(cells.clear())
                found[-2:] = len(cells) - cells.null_count(), cells.null_count()
            self._add(trained, found)

    def add_scores(self, scores: Floats) -> None:
        """Count scores of rows."""
        if self._scores is not None:
            self._of_scores = self._of_scores + self._scores.bins.counts(pl.Series(scores))

    def _add(self, trained: TrainedColumn, found: Floats) -> None:
        self._counts[trained.name] = self._counts.get(trained.name, 0.0) + found

    def emptied(self) -> dict[str, int]:
        """Return the empty cells of columns that had none in training."""
        return {
            name: int(found[-1])
            for name, found in self._counts.items()
            if self._trained[name].missing == 0.0 and found[-1]
        }

    def drifts(self, outside: Mapping[str, float]) -> list[ColumnDrift]:
        """Compare every column that was learned from, and others of one value that are there.

        `outside` are shares of cells that an encoder says are unlike training.
        """
        every = [*self._trained.values()]
        error = ERROR / (len(every) + 1)
        return [
            _compared(each, self._counts.get(each.name), outside.get(each.name, 0.0), error)
            for each in every
            if each.reading is None or each.name in self._counts
        ]

    def score_drift(self) -> ColumnDrift | None:
        """Compare the scores with those of rows held out; None where there are none."""
        if self._scores is None or not isinstance(self._of_scores, np.ndarray):
            return None
        return _compared(self._scores, self._of_scores, 0.0, ERROR / (len(self._trained) + 1))


def _compared(
    trained: TrainedColumn, found: Floats | None, outside: float, error: float
) -> ColumnDrift:
    """Compare a column that chance alone calls moved with a probability of at most `error`."""
    about = (trained.name, trained.kind, trained.treatment, trained.missing)
    if found is None:
        return ColumnDrift(*about, is_absent=True)
    n = max(found.sum(), 1.0)
    share, empty = max(outside, float(found[-2] / n)), float(found[-1] / n)
    before = trained.counts
    if before is None or not before.sum():
        is_unlike = share > MOST_UNLIKE or (trained.missing == 0.0 and empty > MOST_UNLIKE)
        return ColumnDrift(*about, empty, share, is_unlike=is_unlike)
    is_there = found + before > 0
    is_unlike = any(
        _exceeds(now, n, then, float(before.sum()), _OF_SHARES * error)
        for now, then in ((share * n, before[-2]), (found[-1], before[-1]))
    )
    return ColumnDrift(
        *about,
        empty,
        share,
        population_stability_index(found[is_there], before[is_there]),
        IndexByChance.of(found, before, _OF_INDEX * error),
        is_unlike,
        is_used=trained.reading is None,
    )


def _exceeds(now: float, n_now: float, then: float, n_then: float, level: float) -> bool:
    """Say whether a share is a tenth larger than before, and more than chance (Fisher's test)."""
    if now / n_now - then / n_then <= MOST_UNLIKE:
        return False
    k, n = round(now), round(n_now)
    marked, every = round(then) + k, round(n_then) + n
    from scipy.stats import hypergeom  # takes as long to import as all else that scores a row

    return bool(hypergeom.sf(k - 1, every, marked, n) <= level)


# -- what a model knows of its training -----------------------------------------------------------


def trained_columns(
    columns: Sequence[Column],
    used: Sequence[Column],
    n_rows: int | None,
    statistics: TableStatistics | None,
    held_out: ScoredRows | None,
) -> list[TrainedColumn]:
    """Return the columns that were `used`, those of one value, and the scores of rows held out.

    `columns` are all of the training table of `n_rows` rows.
    """
    bins = {} if statistics is None else _number_bins(statistics) | _word_bins(statistics)
    found = [_trained(each, n_rows, bins.get(each.name)) for each in used]
    names = {each.name for each in found}
    for column in columns:
        is_empty = not column.n_distinct
        if column.kind != "constant" or column.name in names or not n_rows:
            continue
        if is_empty or column.always is not None:
            words = [] if column.always is None else [column.always]
            counts = np.array([float(n_rows)] * len(words) + [0.0, 0.0, n_rows * is_empty])
            found.append(
                TrainedColumn(
                    column.name, column.kind, column.treatment,
                    WordBins(KnownWords().fit(words), len(words)), counts, float(is_empty),
                    column.reading,
                )
            )  # fmt: skip
    return found if held_out is None else [*found, _trained_scores(held_out)]


class _Distribution(NamedTuple):
    """Bins, the shares of present cells in each, and of those that are unlike all others."""

    bins: NumberBins | WordBins
    shares: Floats
    alone: float


def _trained(column: Column, n_rows: int | None, known: _Distribution | None) -> TrainedColumn:
    about = (column.name, column.kind, column.treatment)
    counts_cells = column.n_distinct > 0  # a stream counts none
    missing = 0.0 if counts_cells and not column.n_missing else None
    if counts_cells and n_rows:
        missing = min(column.n_missing / n_rows, 1.0)
    if known is None or not n_rows or missing is None:
        counts = None
        if n_rows and missing is not None:
            counts = np.array([1.0 - missing, 0.0, missing]) * n_rows
        return TrainedColumn(*about, PresentOrEmpty(), counts, missing)
    present = n_rows * (1.0 - missing)
    n_alone = min(known.alone * present, present)
    counts = np.concatenate([present * known.shares, [n_alone, n_rows * missing]])
    return TrainedColumn(*about, known.bins, counts, missing)


def _number_bins(statistics: TableStatistics) -> dict[str, _Distribution]:
    """Tenths of each number column of training."""
    known = statistics.summaries
    found: dict[str, _Distribution] = {}
    for place, source in enumerate(statistics.number_sources_[: statistics.n_plain_]):
        span = slice(int(known.starts[place]), int(known.starts[place + 1]))
        edges, shares = tenths(known.knots[span], known.ranks[span])
        bins = NumberBins(edges, float(known.low[place]), float(known.high[place]))
        found[statistics.columns_[source][0]] = _Distribution(bins, shares, 0.0)
    return found


def _word_bins(statistics: TableStatistics) -> dict[str, _Distribution]:
    """Commonest words of each column of words, the commonest first, and all others."""
    found: dict[str, _Distribution] = {}
    known = [each for each in statistics.known_ if isinstance(each, KnownWords)]
    for place in range(statistics.n_words_):
        name = statistics.columns_[statistics.category_sources_[place]][0]
        weights = statistics.level_weights_[place][:-1]
        if not weights.sum():
            continue
        # A word of one row is new to all others, as new words are to all rows (Good and Turing).
        shared = np.where(weights <= 1.0, 0.0, weights) / weights.sum()
        n_common = min(len(weights), _MOST_WORDS)
        shares = np.append(shared[:n_common], shared[n_common:].sum())
        bins = WordBins(known[place], n_common)
        found[name] = _Distribution(bins, shares, 1.0 - float(shared.sum()))
    return found


def _trained_scores(held_out: ScoredRows) -> TrainedColumn:
    weight = np.ones(len(held_out.scores)) if held_out.weight is None else held_out.weight
    values, place = np.unique(held_out.scores, return_inverse=True)
    of_each = np.bincount(place, weight, len(values)) / weight.sum()
    edges, shares = tenths(values, np.cumsum(of_each) - of_each / 2.0)
    effective = float(weight.sum() ** 2 / (weight @ weight))
    counts = np.append(effective * shares, [0.0, 0.0])
    return TrainedColumn(SCORES, SCORES, "", NumberBins(edges), counts, 0.0)


class Tenths(NamedTuple):
    """Inner edges of bins, and the share of the rows in each bin."""

    edges: Floats
    shares: Floats


def tenths(knots: Floats, ranks: Floats) -> Tenths:
    """Inner edges of about equal shares of a training column, and the share of each bin.

    `knots` are values in increasing order, `ranks` the share of the rows below each plus half of
    those equal to it. Edges lie midway between knots; a value that many rows have makes for fewer
    bins, and is in one of them as a whole.

    >>> edges, shares = tenths(np.array([0.0, 1.0]), np.array([0.45, 0.95]))
    >>> edges.tolist(), shares.round(6).tolist()
    ([0.5], [0.9, 0.1])
    """
    if len(knots) < 2:
        return Tenths(np.empty(0), np.ones(1))
    below = _shares_below(ranks)
    middles = (knots[1:] + knots[:-1]) / 2.0
    wanted = np.arange(1, _N_BINS) / _N_BINS
    places = np.unique(np.abs(below[:, None] - wanted).argmin(axis=0))
    return Tenths(middles[places], np.diff(np.concatenate([[0.0], below[places], [1.0]])))


def _shares_below(ranks: Floats) -> Floats:
    """Share of the rows up to each knot but the last."""
    # Where every distinct value is a knot: twice the rank, less the share below the knot.
    signs = np.where(np.arange(len(ranks)) % 2, -1.0, 1.0)
    exact = signs * np.cumsum(2.0 * signs * ranks)
    if abs(exact[-1] - 1.0) < 1e-9 and (np.diff(np.append(0.0, exact)) > -1e-12).all():
        return exact[:-1]
    # A knot that many rows have is far in rank from both neighbours: by half of its share.
    gaps = np.diff(np.concatenate([[0.0], ranks, [1.0]]))
    half = np.minimum(gaps[:-1], gaps[1:])
    to_next = half[:-1] / np.maximum(half[:-1] + half[1:], 1e-300)
    return ranks[:-1] + np.diff(ranks) * to_next


def worst_first(columns: Sequence[ColumnDrift]) -> list[ColumnDrift]:
    """Sort by verdict, then index, then the share outside of training; unknown ones come last."""
    order = ("absent", "moved far", "moved", "steady", "")
    return sorted(
        columns,
        key=lambda each: (
            order.index(each.verdict),
            -(each.stability_index or 0.0),
            -each.outside,
        ),
    )


def check_columns(file: TableFile, used: Sequence[str], keep: Sequence[str]) -> None:
    """Raise `InputError` where a file lacks a column that is `used` by the model, or to be kept."""
    absent = [name for name in used if name not in file.columns]
    if absent:
        others = [name for name in file.columns if name not in used]
        named = first_names([repr(name) for name in absent], 10)
        near = nearest_name(absent[0], others) if len(absent) == 1 else None
        them = "it" if len(absent) == 1 else "them"
        raise InputError(
            f"{file.path} lacks {'columns' if len(absent) > 1 else 'column'} {named}, "
            "which the model was trained on.",
            f"Did you mean {near!r}?" if near else f"Add {them}, or fit without {them}.",
            ErrorKind.MISSING_COLUMN,
            column=absent[0],
        )
    for name in keep:
        if name not in file.columns:
            raise missing_column(f"Target: {file.path} has", name, file.columns)
