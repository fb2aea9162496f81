"""The sections on columns: those that the ranking rests on, and how far each has moved.

`ColumnTracker` counts the columns of new rows batch by batch; serving counts with it as well.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.metrics.column_drift import (
    MOVED,
    MOVED_FAR,
    drift_verdict,
    population_stability_index,
)
from rareclass.model.model import Model
from rareclass.report.drawing import BLUE, plot_of
from rareclass.report.page import (
    Fact,
    FactList,
    Note,
    PageBlock,
    PageTable,
    Plot,
    Plots,
    Section,
    listed,
    percent,
)
from rareclass.report.scores_section import ScoreDrift, score_drift_plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]
# Rows whose copies are counted, at 8 bytes each.
_MOST_HASHED = 20_000_000
_N_BINS = 10
_MOST_WORDS = 20
_MOST_LISTED = 40
_MOST_DRAWN = 15
_IMPORTANCE = "How much of the ranking is lost when a column is mixed up, relative to the others"


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
        `population_stability_index` of the new rows against training, over tenths of the training
        values or the commonest words; None where the model file has no summary of these.
    """

    name: str
    kind: str
    treatment: str = ""
    missing_before: float | None = None
    missing_now: float | None = None
    outside: float = 0.0
    stability_index: float | None = None

    @property
    def verdict(self) -> str:
        """Word for the index, see `drift_verdict`."""
        return drift_verdict(self.stability_index)


class Bins(NamedTuple):
    """Bins of a training column and the share of its rows in each."""

    edges: Any  # inner edges of numbers; of words: the bin of each common one, others are last
    shares: Floats


class ColumnTracker:
    """Counts of empty cells, copies, and cells in each bin of training, batch by batch."""

    def __init__(self, content: Model, with_copies: bool = True) -> None:
        self._trained = {each.name: each for each in content.facts.columns}
        self._n_trained = content.facts.n_rows or 0
        self._encoded = content.encoder.columns
        self._with_copies = with_copies  # rows are remembered to count copies
        self.n_rows = 0
        self._empty: Counter[str] = Counter()
        self._hashes: list[Any] = []
        statistics = content.statistics
        self._numbers = {} if statistics is None else _number_bins(statistics)
        self._words = {} if statistics is None else _word_bins(statistics)
        self._bins = self._numbers | self._words
        self._counts = {name: np.zeros(len(bins.shares)) for name, bins in self._bins.items()}

    def add(self, rows: pl.DataFrame) -> None:
        """Count typed rows."""
        self.n_rows += rows.height
        if self._with_copies and self.n_rows <= _MOST_HASHED:
            self._hashes.append(rows.hash_rows().to_numpy())
        for column in rows:
            nan = int(column.is_nan().sum()) if column.dtype.is_float() else 0
            self._empty[column.name] += column.null_count() + nan
        for name, (edges, shares) in self._numbers.items():
            if name in rows.columns:
                values = rows[name].cast(pl.Float64, strict=False).to_numpy()
                place = np.searchsorted(edges, values[~np.isnan(values)], side="right")
                self._counts[name] += np.bincount(place, minlength=len(shares))
        for name, (known, shares) in self._words.items():
            if name in rows.columns:
                found = rows[name].cast(pl.String).drop_nulls().value_counts()
                words, counts = found.columns
                for word, count in zip(found[words], found[counts], strict=True):
                    self._counts[name][known.get(word, len(shares) - 1)] += count

    @property
    def n_copies(self) -> int | None:
        """Number of rows equal to an earlier one; None where rows are too many to remember."""
        if self.n_rows > _MOST_HASHED or not self._hashes:
            return None
        return self.n_rows - len(np.unique(np.concatenate(self._hashes)))

    def drifts(self, outside: Mapping[str, float]) -> list[ColumnDrift]:
        """Compare every encoded column; `outside` are shares of cells unlike training."""
        drifts = []
        for column in self._encoded:
            known = self._trained.get(column.name)
            n_missing = None if known is None else known.n_missing
            n_known = self._n_trained - (n_missing or 0)
            counts, index = self._counts.get(column.name), None
            if counts is not None and counts.sum() and n_known:
                shares = self._bins[column.name].shares
                index = population_stability_index(counts, n_known * shares)
            before = None
            if n_missing is not None and self._n_trained:
                before = n_missing / self._n_trained
            drifts.append(
                ColumnDrift(
                    column.name,
                    column.kind,
                    column.treatment,
                    before,
                    self._empty[column.name] / self.n_rows if self.n_rows else None,
                    outside.get(column.name, 0.0),
                    index,
                )
            )
        return drifts


def _number_bins(statistics: Any) -> dict[str, Bins]:
    """Tenths of each number column of training."""
    known = statistics.summaries
    found = {}
    for place, source in enumerate(statistics.number_sources_[: statistics.n_plain_]):
        span = slice(int(known.starts[place]), int(known.starts[place + 1]))
        bins = tenths(known.knots[span], known.ranks[span])
        if len(bins.edges):
            found[statistics.columns_[source][0]] = bins
    return found


def _word_bins(statistics: Any) -> dict[str, Bins]:
    """Commonest words of each column of words, each with its bin; all others are the last bin."""
    found = {}
    for place in range(statistics.n_words_):
        name = statistics.columns_[statistics.category_sources_[place]][0]
        known, weights = statistics.known_[place], statistics.level_weights_[place][:-1]
        if not len(weights) or not weights.sum():
            continue
        common = np.argsort(-weights, kind="stable")[:_MOST_WORDS]
        counts = np.append(weights[common], weights.sum() - weights[common].sum())
        words = {known.name(int(k)): at for at, k in enumerate(common)}
        found[name] = Bins(words, counts / weights.sum())
    return found


def tenths(knots: Floats, ranks: Floats) -> Bins:
    """Inner edges of about equal shares of a training column, and the share of each bin.

    `knots` are values in increasing order, `ranks` the share of the rows below each plus half of
    those equal to it. Edges lie midway between knots; a value that many rows have makes for fewer
    bins, and is in one of them as a whole.

    >>> edges, shares = tenths(np.array([0.0, 1.0]), np.array([0.45, 0.95]))
    >>> edges.tolist(), shares.round(6).tolist()
    ([0.5], [0.9, 0.1])
    """
    if len(knots) < 2:
        return Bins(np.empty(0), np.ones(1))
    below = _shares_below(ranks)
    middles = (knots[1:] + knots[:-1]) / 2.0
    wanted = np.arange(1, _N_BINS) / _N_BINS
    places = np.unique(np.abs(below[:, None] - wanted).argmin(axis=0))
    return Bins(middles[places], np.diff(np.concatenate([[0.0], below[places], [1.0]])))


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
    """Sort by index, then by the share outside of training; unknown indices come last."""
    return sorted(
        columns,
        key=lambda each: (
            -1.0 if each.stability_index is None else -each.stability_index - 1.0,
            -each.outside,
        ),
    )


def data_section(
    facts: Sequence[Fact],
    columns: Sequence[ColumnDrift],
    score: ScoreDrift | None,
    notes: Sequence[str],
) -> Section:
    """Section with facts of the rows, the columns, and the scores against those held out."""
    blocks: list[PageBlock] = [FactList(tuple(facts)), *(Note(each) for each in notes)]
    if columns:
        blocks.append(_columns_table(columns))
    if score is not None:
        blocks.append(Plots((score_drift_plot(score),)))
    indices = [each.stability_index for each in columns if each.stability_index is not None]
    lead = "What was read, and how it was understood."
    if indices:
        n_moved = sum(index >= MOVED for index in indices)
        lead = (
            f"{n_moved or 'None'} of {len(indices)} columns "
            f"{'have' if n_moved > 1 else 'has'} moved since training, by the stability index."
        )
    return Section("data", "The data", lead, tuple(blocks))


def _columns_table(columns: Sequence[ColumnDrift]) -> PageTable:
    rows_of = worst_first(columns)[:_MOST_LISTED]
    known = any(each.stability_index is not None for each in rows_of)
    now = any(each.missing_now is not None for each in rows_of)
    head = ["Column", "Holds", "Empty in training"]
    head += ["Empty here", "Unlike training"] if now else []
    head += ["Stability index"] if known else []
    head += ["What is done with it"]
    rows = []
    for each in rows_of:
        cells = [each.name, each.kind, _share(each.missing_before)]
        cells += [_share(each.missing_now), percent(each.outside)] if now else []
        if known:
            index = each.stability_index
            cells.append("" if index is None else f"{index:.3f} {each.verdict}")
        rows.append((*cells, each.treatment))
    more = len(columns) - len(rows_of)
    note = f"{more} more columns are not listed. " if more > 0 else ""
    if known:
        note += (
            "Stability index: sum of (q - p) log(q / p) over tenths of the training values, p of "
            f"training and q of these rows; below {MOVED:g} is read as steady, from {MOVED_FAR:g} "
            "on as moved far."
        )
    numeric = tuple(k for k, name in enumerate(head) if name[:5] in ("Empty", "Unlik", "Stabi"))
    return PageTable(
        "Columns, those that moved most first", tuple(head), tuple(rows), numeric, note
    )


def _share(share: float | None) -> str:
    return "" if share is None else percent(share)


class Tally(NamedTuple):
    """Number of rows that name a column or a case first, and the mean of a number in them."""

    n_rows: int
    mean: float


def features_section(
    importances: Mapping[str, float], reasons: Mapping[str, Tally], n_explained: int
) -> Section:
    """Section on importances by column, and on the first reasons of the highest rows.

    `reasons` has, for each column, the number of the `n_explained` highest rows whose first reason
    it is, and by how much it raises their scores on average.
    """
    blocks: list[PageBlock] = []
    lead = "Which columns the ranking rests on."
    if importances:
        blocks.append(Plots((importance_plot(importances),)))
        first = sorted(importances, key=lambda name: -importances[name])[:3]
        lead = f"The ranking rests on {listed(first)} most."
    if reasons:
        ranked = sorted(reasons.items(), key=lambda each: (-each[1].n_rows, -each[1].mean))
        rows = tuple(
            (name, f"{count:,}", f"{effect:+.3g}") for name, (count, effect) in ranked[:_MOST_DRAWN]
        )
        blocks.append(
            PageTable(
                f"Why the {n_explained:,} highest rows score as high as they do",
                ("Column", "First reason of", "Raises their scores by, on average"),
                rows,
                (1, 2),
                "How much less a row would score with a typical cell in that column.",
            )
        )
    return Section("features", "Columns that matter", lead, tuple(blocks))


def importance_plot(importances: Mapping[str, float]) -> Plot:
    """Plot with a bar for each column, the longest first."""
    ranked = sorted(importances.items(), key=lambda each: -each[1])
    shown = ranked[:_MOST_DRAWN]
    title = "Importance of columns"
    more = len(ranked) - len(shown)
    description = f"{_IMPORTANCE}." + (f" {more} more columns matter less." if more > 0 else "")

    def draw(ax: "Axes") -> None:
        names = [_both_ends(name) for name, _ in reversed(shown)]
        values = [value for _, value in reversed(shown)]
        ax.barh(range(len(values)), values, color=BLUE, height=0.65)
        ax.set_yticks(range(len(names)), names, parse_math=False)
        ax.grid(axis="y", visible=False)
        ax.set_xlabel("importance")

    rows = tuple((name, f"{value:.3g}") for name, value in ranked[:_MOST_LISTED])
    table = PageTable(title, ("Column", "Importance"), rows, (1,))
    size = (4.7, max(1.6, 0.55 + 0.24 * len(shown)))
    return plot_of(draw, "importance", title, description, table, size)


def _both_ends(name: str) -> str:
    """Both ends of a long name: the middle tells the least.

    >>> _both_ends("CUSTOMER_ID_NB_TX_30DAY_WINDOW")
    'CUSTOMER_ID_…30DAY_WINDOW'
    """
    return name if len(name) <= 25 else f"{name[:12]}…{name[-12:]}"
