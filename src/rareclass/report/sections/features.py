"""The section on the columns that matter, and on why the highest rows score as they do."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rareclass.report.displays.look import BLUE
from rareclass.report.page.document import Block, Plot, Plots, Section, Table
from rareclass.report.page.svg import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_DRAWN = 15


def features_section(
    importances: Mapping[str, float],
    what: str,
    reasons: Mapping[str, tuple[int, float]],
    n_alerts: int,
) -> Section:
    """Which columns matter.

    `importances` by column, `what` they are in words; `reasons`, of the highest `n_alerts` rows:
    of how many a column is the first reason, and by how much it raises their scores on average.
    """
    blocks: list[Block] = []
    if importances:
        blocks.append(Plots((importance_plot(importances, what),)))
    if reasons:
        ranked = sorted(reasons.items(), key=lambda each: (-each[1][0], -each[1][1]))
        rows = tuple(
            (name, f"{count:,}", f"{effect:+.3g}") for name, (count, effect) in ranked[:_MOST_DRAWN]
        )
        blocks.append(
            Table(
                f"Why the {n_alerts:,} highest rows score as high as they do",
                ("Column", "First reason of", "Raises their scores by, on average"),
                rows,
                (1, 2),
                "How much less a row would score with a typical cell in that column.",
            )
        )
    lead = "Which columns the ranking rests on."
    if importances:
        first = sorted(importances, key=lambda name: -importances[name])[:3]
        lead = f"The ranking rests on {_and(first)} most."
    return Section("features", "Columns that matter", lead, tuple(blocks))


def importance_plot(importances: Mapping[str, float], what: str) -> Plot:
    """A bar a column, the longest first."""
    ranked = sorted(importances.items(), key=lambda each: -each[1])
    shown = ranked[:_MOST_DRAWN]
    title = "Importance of columns"
    more = len(ranked) - len(shown)
    description = f"{what}." + (f" {more} more columns matter less." if more > 0 else "")

    def draw(ax: "Axes") -> None:
        names = [_short(name) for name, _ in reversed(shown)]
        values = [value for _, value in reversed(shown)]
        ax.barh(range(len(values)), values, color=BLUE, height=0.65)
        ax.set_yticks(range(len(names)), names, parse_math=False)
        ax.grid(axis="y", visible=False)
        ax.set_xlabel("importance")

    height = max(1.6, 0.55 + 0.24 * len(shown))
    svg = drawn(draw, "importance", title, description, (4.7, height))
    rows = tuple((name, f"{value:.3g}") for name, value in ranked[:40])
    table = Table("Importance of columns", ("Column", "Importance"), rows, (1,))
    return Plot("importance-plot", title, description, svg, table)


def _and(names: list[str]) -> str:
    """Names in a row.

    >>> _and(["a", "b", "c"]), _and(["a"])
    ('a, b and c', 'a')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _short(name: str) -> str:
    """Both ends of a long name: the middle tells the least.

    >>> _short("CUSTOMER_ID_NB_TX_30DAY_WINDOW")
    'CUSTOMER_ID_…30DAY_WINDOW'
    """
    return name if len(name) <= 25 else f"{name[:12]}…{name[-12:]}"
