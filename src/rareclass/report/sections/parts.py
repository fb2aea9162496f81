"""The section on days or groups in which a model does worse."""

from typing import TYPE_CHECKING

import numpy as np

from rareclass.report.displays.look import BLUE, GREY, VERMILLION, share_axis
from rareclass.report.page.document import Block, Plot, Plots, Section, Table
from rareclass.report.page.svg import drawn
from rareclass.report.page.wording import (
    NONE,
    decimal_with_bounds,
    percent,
    percent_with_bounds,
    whole,
)
from rareclass.report.summaries.parts import PartOfRows, Parts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LISTED = 15
_MOST_DRAWN = 120


def parts_section(days: Parts | None, groups: Parts | None) -> Section:
    """Measures by day and by group."""
    blocks: list[Block] = []
    leads = []
    for parts, what in ((days, "day"), (groups, "group")):
        if parts is None:
            continue
        n_worse = len(parts.worse)
        whats = f"{parts.n_parts:,} {what}{'s' if parts.n_parts != 1 else ''}"
        leads.append(
            f"Of {whats} ({parts.by}), {n_worse or 'none'} {'do' if n_worse > 1 else 'does'} worse "
            "than chance explains."
        )
        if what == "day":
            blocks.append(Plots((_by_day(parts),)))
        blocks.append(_table(parts, what))
    return Section("parts", "Where and when it does worse", " ".join(leads), tuple(blocks))


def _table(parts: Parts, what: str) -> Table:
    listed = list(parts.worse)
    rest = sorted(
        (each for each in parts.parts if each not in listed),
        key=lambda each: (-each.missed, -each.n_rows),
    )
    chosen = (listed + rest)[:_MOST_LISTED]
    rows = tuple(
        (
            each.name + (" ▼" if each in listed else ""),
            whole(each.n_rows),
            whole(each.n_rare),
            whole(each.alerts),
            percent_with_bounds(each.precision),
            percent_with_bounds(each.recall),
            NONE if each.auc is None else decimal_with_bounds(each.auc),
        )
        for each in chosen
    )
    more = parts.n_parts - len(chosen)
    note = f"{more:,} more are not listed. " if more > 0 else ""
    return Table(
        f"At the model's threshold by {what} ({parts.by}), the worst first",
        (what.capitalize(), "Rows", "Rare", "Alerts", "Precision", "Recall", "AUC"),
        rows,
        (1, 2, 3, 4, 5, 6),
        f"{note}▼: fewer of its rare rows are found than chance explains, by exact binomial tests "
        "at 5 % after Holm's correction.",
    )


def _by_day(parts: Parts) -> Plot:
    shown = parts.parts[-_MOST_DRAWN:]
    title = "Recall and alerts by day"
    description = (
        f"{len(shown)} days, from {shown[0].name} to {shown[-1].name}. The recall of all rows is "
        f"{percent(parts.recall.value)}. Bars are exact 95 % intervals; a day with few rare rows "
        "says little."
    )

    def draw(ax: "Axes") -> None:
        _draw_days(ax, shown, parts)

    rows = tuple(
        (
            each.name,
            whole(each.n_rows),
            whole(each.n_rare),
            whole(each.alerts),
            whole(each.hits),
            percent_with_bounds(each.recall),
        )
        for each in shown
    )
    head = ("Day", "Rows", "Rare", "Alerts", "Found", "Recall")
    table = Table("Recall and alerts by day", head, rows, (1, 2, 3, 4, 5))
    svg = drawn(draw, "days", title, description, (7.2, 3.2))
    return Plot("days-plot", title, description, svg, table, wide=True)


def _draw_days(ax: "Axes", shown: tuple[PartOfRows, ...], parts: Parts) -> None:
    x = np.arange(len(shown))
    some = np.array([each.n_rare > 0 for each in shown])
    found = np.array([tuple(each.recall) for each in shown])[some]
    value, low, high = found.T if len(found) else (np.empty(0),) * 3
    ax.errorbar(
        x[some], value, [value - low, high - value], color=BLUE, linestyle="", marker="o",
        markersize=4, elinewidth=1.0, label="recall of the day",
    )  # fmt: skip
    ax.axhline(parts.recall.value, color=GREY, linestyle=":", label="recall of all days")
    most = max(max(each.alerts for each in shown), 1)
    ax.bar(
        x, [0.25 * each.alerts / most for each in shown], color=VERMILLION, alpha=0.35, width=0.8,
        label=f"alerts (the highest bar: {most:,})",
    )  # fmt: skip
    share_axis(ax.yaxis, "recall")
    ax.set_ylim(0.0, 1.05)
    ticks = np.unique(np.linspace(0, len(shown) - 1, min(len(shown), 7)).astype(int))
    ax.set_xticks(ticks, [shown[k].name for k in ticks], rotation=30, ha="right")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.15), ncols=3)
