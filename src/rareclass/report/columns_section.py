"""The sections on columns: those that the ranking rests on, and how far each has moved."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.metrics.column_drift import MOVED, MOVED_FAR
from rareclass.model.columns import ColumnDrift, worst_first
from rareclass.report.drawing import BLUE, plot_of
from rareclass.report.page import (
    Fact,
    FactList,
    Note,
    PageBlock,
    Plot,
    Plots,
    Section,
    listed,
    percent,
)
from rareclass.table_block import TableBlock

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]
_MOST_LISTED = 40
_MOST_DRAWN = 15
_IMPORTANCE = "How much of the ranking is lost when a column is mixed up, relative to the others"


def data_section(
    facts: Sequence[Fact],
    columns: Sequence[ColumnDrift],
    notes: Sequence[str],
) -> Section:
    """Section with facts of the rows, and the columns."""
    blocks: list[PageBlock] = [FactList(tuple(facts)), *(Note(each) for each in notes)]
    if columns:
        blocks.append(_columns_table(columns))
    known = [each for each in columns if each.verdict]
    lead = "What was read, and how it was understood."
    if known:
        n_moved = sum(each.verdict != "steady" for each in known)
        lead = (
            f"{n_moved or 'None'} of {len(known)} columns "
            f"{'have' if n_moved > 1 else 'has'} moved since training, by the stability index."
        )
    return Section("data", "The data", lead, tuple(blocks))


def _columns_table(columns: Sequence[ColumnDrift]) -> TableBlock:
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
            "Stability index: sum of (q - p) log(q / p) over tenths of the training values, cells "
            f"unlike these, and empty ones, p of training and q of these rows; below {MOVED:g}, or "
            f"within what chance explains, is read as steady, from {MOVED_FAR:g} on as moved far."
        )
    return TableBlock("Columns, those that moved most first", tuple(head), tuple(rows), note)


def _share(share: float | None) -> str:
    return "" if share is None else percent(share)


class Tally(NamedTuple):
    """Number of rows that name a column or a case first, and the mean of a number in them."""

    n_rows: int
    mean: float


def tallied(
    tallies: Mapping[str, Tally], digits: str, most: int, sign: int = -1
) -> tuple[tuple[str, ...], ...]:
    """Cells of the names of most rows, then of the greatest mean; of the least with `sign` 1."""
    ranked = sorted(tallies.items(), key=lambda each: (-each[1].n_rows, sign * each[1].mean))
    return tuple((name, f"{count:,}", f"{mean:{digits}}") for name, (count, mean) in ranked[:most])


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
        rows = tallied(reasons, "+.3g", _MOST_DRAWN)
        blocks.append(
            TableBlock(
                f"Why the {n_explained:,} highest rows score as high as they do",
                ("Column", "First reason of", "Raises their scores by, on average"),
                rows,
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
        short = {name: _both_ends(name) for name, _ in reversed(shown)}
        names = list(short.values() if len({*short.values()}) == len(short) else short)
        values = [value for _, value in reversed(shown)]
        ax.barh(range(len(values)), values, color=BLUE, height=0.65)
        ax.set_yticks(range(len(names)), names, parse_math=False)
        ax.grid(axis="y", visible=False)
        ax.set_xlabel("importance")

    rows = tuple((name, f"{value:.3g}") for name, value in ranked[:_MOST_LISTED])
    table = TableBlock(title, ("Column", "Importance"), rows)
    size = (4.7, max(1.6, 0.55 + 0.24 * len(shown)))
    return plot_of(draw, "importance", title, description, table, size)


def _both_ends(name: str) -> str:
    """Both ends of a long name: the middle tells the least.

    >>> _both_ends("CUSTOMER_ID_NB_TX_30DAY_WINDOW")
    'CUSTOMER_ID_…30DAY_WINDOW'
    """
    return name if len(name) <= 25 else f"{name[:12]}…{name[-12:]}"
