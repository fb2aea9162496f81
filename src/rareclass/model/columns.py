"""The columns of a table as training had them: what they hold, and their cells counted in bins.

Bins are tenths of the numbers, or the commonest words and all others; cells unlike any of training;
empty cells. `rareclass.model.drift` counts new rows in them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.column_values import KnownWords
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.model.facts import GroupedColumn
from rareclass.table_block import TableBlock
from rareclass.tables.cells import TRUTH_SPELLINGS, numbers_in
from rareclass.tables.columns import Column
from rareclass.tables.reading import CellReading

Floats = NDArray[np.float64]
_TYPES = {"high-cardinality category": "category, many values", "beside": "not learned from"}
_N_BINS = 10
_MOST_WORDS = 20


class Bins:
    """Bins of a column's cells, one more for cells that are unlike training, and one for empty."""

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return 1

    def places(self, cells: pl.Series) -> NDArray[np.intp]:
        """Find the bin of each cell; `n_bins` where it is unlike training, one more where empty."""
        raise NotImplementedError

    def counts(self, cells: pl.Series) -> Floats:
        """Count cells in each bin, unlike training, and empty."""
        return np.bincount(self.places(cells), minlength=self.n_bins + 2).astype(np.float64)


@dataclass(frozen=True)
class NumberBins(Bins):
    """Bins of numbers between inner edges; those beyond `low` and `high` are unlike training."""

    edges: Floats
    low: float = -np.inf
    high: float = np.inf

    @property
    def n_bins(self) -> int:
        """One more than there are edges."""
        return len(self.edges) + 1

    def places(self, cells: pl.Series) -> NDArray[np.intp]:
        """Find the bin of each cell."""
        is_text = cells.dtype == pl.String  # a stream reads all cells as text
        numbers = numbers_in(cells, truth=TRUTH_SPELLINGS) if is_text else cells
        values = numbers.cast(pl.Float64, strict=False).to_numpy()
        found = np.searchsorted(self.edges, values, side="right")
        found[(values < self.low) | (values > self.high)] = self.n_bins
        found[np.isnan(values)] = self.n_bins + 1
        return found


@dataclass(frozen=True)
class WordBins(Bins):
    """A bin for each of the commonest words and one for the others; unknown ones are unlike."""

    known: KnownWords
    n_common: int

    @property
    def n_bins(self) -> int:
        """One more than there are common words."""
        return self.n_common + 1

    def places(self, cells: pl.Series) -> NDArray[np.intp]:
        """Find the bin of each cell."""
        words = cells.cast(pl.String)
        levels = self.known.levels(words.to_numpy())
        found = np.where(
            levels > self.known.n_known, self.n_bins, np.minimum(levels, self.n_common)
        )
        found[words.is_null().to_numpy()] = self.n_bins + 1
        return found


@dataclass(frozen=True)
class PresentOrEmpty(Bins):
    """A bin for whatever is there: of dates and texts."""

    def places(self, cells: pl.Series) -> NDArray[np.intp]:
        """Find the bin of each cell."""
        return 2 * cells.is_null().to_numpy()


class TrainedColumn(NamedTuple):
    """A column as training had it."""

    name: str
    kind: str
    bins: Bins
    counts: Floats | None  # training rows by bin, unlike all others, empty; None where not known
    missing: float | None  # share of empty cells, where it is known
    reading: CellReading | None = None  # of a column that is not learned from
    n_alone: float = 0.0  # training rows whose number, learned by its value, no other row has
    grouped: GroupedColumn = GroupedColumn(1.0, 1.0, 1.0, 0.0)

    def of_groups(self, grouped: GroupedColumn | None) -> Self:
        """Return the column as rows of other groups see it."""
        if grouped is None:
            return self
        counts = np.array(grouped.counts) if grouped.counts else self.counts
        n_alone = max(self.n_alone, grouped.n_alone) if self.n_alone else 0.0
        return self._replace(counts=counts, n_alone=n_alone, grouped=grouped)


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


def trained_columns(
    columns: Sequence[Column],
    used: Sequence[Column],
    n_rows: int | None,
    statistics: TableStatistics | None,
    grouped: Mapping[str, GroupedColumn] = MappingProxyType({}),
) -> list[TrainedColumn]:
    """Return the columns that were `used`, and those of one value.

    `columns` are all of the training table of `n_rows` rows, `grouped` those of a table of groups.
    """
    bins = {} if statistics is None else _distributions(statistics)
    found = [_trained(each, n_rows, bins.get(each.name)) for each in used]
    names = {each.name for each in found}
    for column in columns:
        is_empty = not column.n_distinct
        if column.kind != "constant" or column.name in names or not n_rows:
            continue
        if is_empty or column.always is not None:
            words = [] if column.always is None else [column.always]
            counts = np.array([float(n_rows)] * len(words) + [0.0, 0.0, n_rows * is_empty])
            of_word = WordBins(KnownWords().fit(words), len(words))
            about = (of_word, counts, float(is_empty), column.reading)
            found.append(TrainedColumn(column.name, column.kind, *about))
    return [each.of_groups(grouped.get(each.name)) for each in found]


class _Distribution(NamedTuple):
    """Bins, shares of present cells in each (what they lack of 1 is unlike all others) and alone.

    `alone` are numbers that are learned by their value, and that one row has.
    """

    bins: NumberBins | WordBins
    shares: Floats
    alone: float = 0.0


def _trained(column: Column, n_rows: int | None, known: _Distribution | None) -> TrainedColumn:
    about = (column.name, column.kind)
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
    n_unlike = max(present * (1.0 - known.shares.sum()), 0.0)
    counts = np.concatenate([present * known.shares, [n_unlike, n_rows * missing]])
    return TrainedColumn(*about, known.bins, counts, missing, n_alone=present * known.alone)


def _distributions(statistics: TableStatistics) -> dict[str, _Distribution]:
    """Tenths of each number column of training; the commonest words, and all others, of words."""
    known = statistics.summaries
    found, alone = {}, {}
    for place, source in enumerate(statistics.category_sources_):
        # A word of one row is new to all others, as new words are to all rows (Good and Turing).
        weights, is_lone = statistics.level_weights_[place][:-1], statistics.is_lone_[place]
        shared = np.where(is_lone, 0.0, weights) / max(weights.sum(), 1e-300)
        alone[source] = 1.0 - float(shared.sum())
        words = statistics.known_[place]
        if isinstance(words, KnownWords) and weights.sum():
            n_common = min(len(weights), _MOST_WORDS)
            shares = np.append(shared[:n_common], shared[n_common:].sum())
            bins = WordBins(words, n_common)
            found[statistics.columns_[source][0]] = _Distribution(bins, shares)
    for place, source in enumerate(statistics.number_sources_[: statistics.n_plain_]):
        span = slice(int(known.starts[place]), int(known.starts[place + 1]))
        edges, shares = tenths(known.knots[span], known.ranks[span])
        of_number = NumberBins(edges, float(known.low[place]), float(known.high[place]))
        name = statistics.columns_[source][0]
        found[name] = _Distribution(of_number, shares, alone.get(source, 0.0))
    return found


def tenths(knots: Floats, ranks: Floats) -> tuple[Floats, Floats]:
    """Inner edges of about equal shares of a training column, and the share of each bin.

    `knots` are values in increasing order, `ranks` the share of the rows below each plus half of
    those equal to it. Edges lie midway between knots; a value that many rows have makes for fewer
    bins, and is in one of them as a whole.

    >>> edges, shares = tenths(np.array([0.0, 1.0]), np.array([0.45, 0.95]))
    >>> edges.tolist(), shares.round(6).tolist()
    ([0.5], [0.9, 0.1])
    """
    if len(knots) < 2:
        return np.empty(0), np.ones(1)
    below = _shares_below(ranks)
    middles = (knots[1:] + knots[:-1]) / 2.0
    wanted = np.arange(1, _N_BINS) / _N_BINS
    places = np.unique(np.abs(below[:, None] - wanted).argmin(axis=0))
    return middles[places], np.diff(np.concatenate([[0.0], below[places], [1.0]]))


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
