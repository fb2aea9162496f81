"""The section on the columns that matter, and on the reasons for the highest scores."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rareclass.report.document import Block, PageTable, Plot, Plots, Section
from rareclass.report.drawing import BLUE, plot_of
from rareclass.report.formatting import listed
from rareclass.report.single_rows import Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_DRAWN = 15
_MOST_LISTED = 40
_IMPORTANCE = "How much of the ranking is lost when a column is mixed up, relative to the others"


def features_section(
    importances: Mapping[str, float], reasons: Mapping[str, Tally], n_explained: int
) -> Section:
    """Section on importances by column, and on the first reasons of the highest rows.

    `reasons` has, for each column, the number of the `n_explained` highest rows whose first reason
    it is, and by how much it raises their scores on average.
    """
    blocks: list[Block] = []
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
        names = [_short(name) for name, _ in reversed(shown)]
        values = [value for _, value in reversed(shown)]
        ax.barh(range(len(values)), values, color=BLUE, height=0.65)
        ax.set_yticks(range(len(names)), names, parse_math=False)
        ax.grid(axis="y", visible=False)
        ax.set_xlabel("importance")

    rows = tuple((name, f"{value:.3g}") for name, value in ranked[:_MOST_LISTED])
    table = PageTable(title, ("Column", "Importance"), rows, (1,))
    size = (4.7, max(1.6, 0.55 + 0.24 * len(shown)))
    return plot_of(draw, "importance", title, description, table, size)


def _short(name: str) -> str:
    """Both ends of a long name: the middle tells the least.

    >>> _short("CUSTOMER_ID_NB_TX_30DAY_WINDOW")
    'CUSTOMER_ID_…30DAY_WINDOW'
    """
    return name if len(name) <= 25 else f"{name[:12]}…{name[-12:]}"
