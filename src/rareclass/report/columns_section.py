"""The sections on columns: those that the ranking rests on, and how far each has moved."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rareclass.errors import first_names
from rareclass.metrics.column_drift import MOVED, MOVED_FAR
from rareclass.model.drift import ColumnDrift, drift_block, worst_first
from rareclass.report.drawing import BLUE, Axes, Display
from rareclass.report.page import Fact, FactList, Note, PageBlock, Plots, Section
from rareclass.table_block import TableBlock

_MOST_LISTED = 40
_MOST_DRAWN = 15


def data_section(
    facts: Sequence[Fact], columns: TableBlock, notes: Sequence[str], lead: str = ""
) -> Section:
    """Section with facts of the rows, and the columns."""
    blocks: list[PageBlock] = [FactList(tuple(facts)), *map(Note, notes)]
    if columns.rows:
        blocks.append(columns)
    lead = lead or "What was read, and how it was understood."
    return Section("data", "The data", lead, tuple(blocks))


def moved_section(
    facts: Sequence[Fact], columns: Sequence[ColumnDrift], notes: Sequence[str]
) -> Section:
    """Section with facts of the rows, and how far each column has moved since training."""
    known, lead = [each for each in columns if each.verdict], ""
    table = drift_block(worst_first(columns)).shortened(_MOST_LISTED)
    if known:
        n_moved = sum(each.verdict != "steady" for each in known)
        lead = (
            f"{n_moved or 'None'} of {len(known)} columns "
            f"{'have' if n_moved > 1 else 'has'} moved since training, by the stability index."
        )
        note = (
            f"{table.note} PSI, the population stability index: sum of (q - p) log(q / p) over "
            "tenths of the training values, cells unlike these, and empty ones, p of training and "
            f"q of these rows; below {MOVED:g}, or within what chance explains, is read as steady, "
            f"from {MOVED_FAR:g} on as moved far."
        )
        table = replace(table, note=note.strip())
    title = "Columns, those that moved most first"
    return data_section(facts, replace(table, title=title), notes, lead)


class Tally(NamedTuple):
    """Number of rows that name a column or a case first, and the mean of a number in them."""

    n_rows: int
    mean: float


def tallied(
    tallies: Mapping[str, Tally], digits: str, sign: int = -1
) -> tuple[tuple[str, ...], ...]:
    """Cells of the names of most rows, then of the greatest mean; of the least with `sign` 1."""
    ranked = sorted(tallies.items(), key=lambda each: (-each[1].n_rows, sign * each[1].mean))
    return tuple((name, f"{count:,}", f"{mean:{digits}}") for name, (count, mean) in ranked)


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
        blocks.append(Plots((ImportanceDisplay(importances).on_page(),)))
        first = sorted(importances, key=lambda name: -importances[name])[:3]
        lead = f"The ranking rests most on {first_names(first, 3)}."
    if reasons:
        table = TableBlock(
            f"Why the {n_explained:,} highest rows score as high as they do",
            ("Column", "First reason of", "Raises their scores by, on average"),
            tallied(reasons, "+.3g"),
            "How much less a row would score with a typical cell in that column.",
        )
        blocks.append(table.shortened(_MOST_DRAWN))
    return Section("features", "Columns that matter", lead, tuple(blocks))


class ImportanceDisplay(Display):
    """A bar for each column, the longest first.

    `importances` are how much of the ranking is lost when a column is mixed up.
    """

    key, title = "importance", "Importance of columns"

    def __init__(self, importances: Mapping[str, float]) -> None:
        self.ranked = sorted(importances.items(), key=lambda each: -each[1])
        self.size = (4.7, max(1.6, 0.55 + 0.24 * len(self.ranked[:_MOST_DRAWN])))

    def _words(self) -> str:
        more = len(self.ranked) - _MOST_DRAWN
        said = "How much of the ranking is lost when a column is mixed up, relative to the others."
        return f"{said} {more} more columns matter less." if more > 0 else said

    def rows(self) -> TableBlock:
        """Return the columns of most importance."""
        rows = tuple((name, f"{value:.3g}") for name, value in self.ranked[:_MOST_LISTED])
        return TableBlock(self.title, ("Column", "Importance"), rows)

    def _draw(self, ax: Axes, **style: Any) -> None:
        shown = self.ranked[:_MOST_DRAWN][::-1]
        short = {name: _both_ends(name) for name, _ in shown}
        names = list(short.values() if len({*short.values()}) == len(short) else short)
        ax.barh(range(len(shown)), [value for _, value in shown], color=BLUE, height=0.65)
        ax.set_yticks(range(len(names)), names, parse_math=False)
        ax.grid(axis="y", visible=False)
        ax.locator_params(axis="x", nbins=6)
        ax.set_xlabel("importance")


def _both_ends(name: str) -> str:
    """Both ends of a long name: the middle tells the least.

    >>> _both_ends("CUSTOMER_ID_NB_TX_30DAY_WINDOW")
    'CUSTOMER_ID_…30DAY_WINDOW'
    """
    return name if len(name) <= 25 else f"{name[:12]}…{name[-12:]}"
