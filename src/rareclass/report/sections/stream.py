"""The sections on a stream: its measures over time, what moved, its alerts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rareclass.metrics.column_drift import MOVED_FAR
from rareclass.report.displays.look import BLUE, CYCLE, GREY, VERMILLION, log_axis
from rareclass.report.page.document import Block, Note, Plot, Plots, Section, Table, Text
from rareclass.report.page.svg import drawn
from rareclass.report.page.wording import NONE, percent, whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LISTED = 12
_MOST_MOVED = 5
_WIDE = (7.2, 3.2)


@dataclass(frozen=True)
class LogRow:
    """A report of a stream, as its log has it."""

    rows: int
    rare: int
    auc: float | None
    average_precision: float | None
    precision_at_k: float | None
    moved: tuple[tuple[str, float, float], ...]  # column, stability index, share outside
    falls: tuple[str, ...]  # measures lower than in their best window, beyond chance
    time: str


@dataclass(frozen=True)
class AlertRow:
    """An alert of a stream."""

    row: int
    score: float
    threshold: float


def measures_over_time_section(log: Sequence[LogRow], window: int, top: int) -> Section:
    """The measures of the window at each report."""
    title = "Measures of the last rows, as the stream went"
    description = (
        f"Each point is of the {window:,} rows before it, scored before they were learned from. "
        "Crosses are reports in which a measure was lower than in its best window by more than "
        "chance explains."
    )

    def draw(ax: "Axes") -> None:
        x = [each.rows for each in log]
        for (attribute, label), (color, dashes) in zip(_measures(top), CYCLE, strict=False):
            y = np.array([getattr(each, attribute) for each in log], dtype=float)
            ax.plot(x, y, color=color, linestyle=dashes, marker="o", markersize=3, label=label)
            fell = np.array([attribute in each.falls for each in log])
            if fell.any():
                ax.plot(np.array(x)[fell], y[fell], "x", color=color, markersize=8)
        _rows_axis(ax)
        ax.set_ylim(0.0, 1.02)
        ax.legend()

    step = max(1, -(-len(log) // _MOST_LISTED))
    shown = [*log[::-step]][::-1]
    rows = tuple(
        (
            whole(each.rows),
            whole(each.rare),
            *(_decimal(getattr(each, name)) for name, _ in _measures(top)),
            ", ".join(each.falls) or NONE,
        )
        for each in shown
    )
    head = ("Rows so far", "Rare so far", *(label for _, label in _measures(top)), "Fell")
    table = Table(title, head, rows, (0, 1, 2, 3, 4))
    svg = drawn(draw, "measures-over-time", title, description, _WIDE)
    fell = [each for each in log if each.falls]
    last = f" In the last report {', '.join(log[-1].falls)} had fallen." if log[-1].falls else ""
    lead = f"{len(fell) or 'None'} of {len(log)} reports found a measure fallen.{last}"
    plot = Plot("measures-over-time-plot", title, description, svg, table, wide=True)
    return Section("over-time", "How it did over time", lead, (Plots((plot,)),))


def _measures(top: int) -> tuple[tuple[str, str], ...]:
    return (
        ("auc", "AUC"),
        ("average_precision", "average precision"),
        ("precision_at_k", f"precision at {top:,}"),
    )


def drift_over_time_section(log: Sequence[LogRow]) -> Section:
    """Which columns moved, and when."""
    most: dict[str, float] = {}
    for each in log:
        for name, index, _ in each.moved:
            most[name] = max(most.get(name, 0.0), index)
    if not most:
        return Section("drift", "Drift", "No column moved.", (Text("None was reported."),))
    ranked = sorted(most, key=lambda name: -most[name])
    title = "Columns that moved, as the stream went"
    description = (
        "Stability index of recent cells beside those of the past, on a logarithmic axis, of the "
        f"columns that moved most; from {MOVED_FAR:g} on that is read as moved far."
    )

    def draw(ax: "Axes") -> None:
        for name, (color, dashes) in zip(ranked[:_MOST_MOVED], CYCLE, strict=False):
            points = [
                (each.rows, index) for each in log for at, index, _ in each.moved if at == name
            ]
            x, y = zip(*points, strict=True)
            ax.plot(
                x, y, color=color, linestyle=dashes, marker="o", markersize=3.5,
                label=name if len(name) <= 30 else f"{name[:29]}…",
            )  # fmt: skip
        ax.axhline(MOVED_FAR, color=GREY, linestyle=":", label=f"moved far: {MOVED_FAR:g}")
        _rows_axis(ax)
        ax.set_xlim(0, log[-1].rows * 1.02)
        log_axis(ax.yaxis, "stability index")
        ax.legend()

    rows = []
    for name in ranked[:_MOST_LISTED]:
        reports = [each for each in log if name in [at for at, _, _ in each.moved]]
        last = [entry for entry in log[-1].moved if entry[0] == name]
        rows.append(
            (
                name,
                f"{len(reports)} of {len(log)}",
                f"{most[name]:.2f}",
                whole(reports[0].rows),
                f"{last[0][1]:.2f}" if last else NONE,
                percent(last[0][2]) if last else NONE,
            )
        )
    head = (
        "Column", "Reports in which it had moved", "Greatest index", "First at row", "Index now",
        "Outside now",
    )  # fmt: skip
    table = Table("Columns that moved, the farthest first", head, tuple(rows), (1, 2, 3, 4, 5))
    now = [name for name, _, _ in log[-1].moved]
    lead = f"{len(most)} columns moved at some time; {len(now)} in the last report."
    svg = drawn(draw, "drift-over-time", title, description, _WIDE)
    plot = Plot("drift-over-time-plot", title, description, svg, table, wide=True)
    return Section("drift", "Drift", lead, (Plots((plot,)),))


def alerts_over_time_section(
    count: int, budget: str, alerts: Sequence[AlertRow], n_rows: int, missing: str
) -> Section:
    """Alerts in stretches of the stream, with the threshold in force."""
    lead = f"{count:,} alerts, at most {budget}."
    if not alerts:
        return Section("alerts", "Alerts", lead, (Note(missing),) if missing else ())
    title = "Alerts and their scores"
    edges = np.linspace(0, max(n_rows, max(each.row for each in alerts)), 41)
    description = (
        f"Bars: alerts in each of 40 stretches of {edges[1]:,.0f} rows. The line is the threshold "
        "in force, which follows the recent scores."
    )
    counts, _ = np.histogram([each.row for each in alerts], edges)

    def draw(ax: "Axes") -> None:
        ax.stairs(counts, edges, fill=True, color=BLUE, alpha=0.45)
        ax.set_ylabel("alerts in a stretch")
        _rows_axis(ax)
        beside: Any = ax.twinx()
        step = max(1, len(alerts) // 300)
        chosen = alerts[::step]
        beside.plot(
            [each.row for each in chosen], [each.threshold for each in chosen], color=VERMILLION,
            linestyle="--", linewidth=1.2,
        )  # fmt: skip
        beside.set_ylabel("threshold (dashed)")
        beside.grid(visible=False)

    rows = tuple(
        (
            f"{edges[4 * k]:,.0f} to {edges[4 * k + 4]:,.0f}",
            whole(float(counts[4 * k : 4 * k + 4].sum())),
        )
        for k in range(10)
    )
    table = Table("Alerts in tenths of the stream", ("Rows", "Alerts"), rows, (0, 1))
    svg = drawn(draw, "alerts-over-time", title, description, _WIDE)
    blocks: tuple[Block, ...] = (
        Plots((Plot("alerts-over-time-plot", title, description, svg, table, wide=True),)),
    )
    return Section("alerts", "Alerts", lead, blocks)


def _rows_axis(ax: "Axes") -> None:
    ax.set_xlabel("rows of the stream so far")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _decimal(value: float | None) -> str:
    return NONE if value is None or np.isnan(value) else f"{value:.3f}"
