"""The report of a stream: measures, drift and alerts over time, from the folder of the stream."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl

from rareclass.errors import ErrorKind, InputError, command_line, setting, too_few_rows
from rareclass.metrics import interval
from rareclass.metrics.column_drift import MOVED_FAR, ColumnShift
from rareclass.report.drawing import BLUE, CYCLE, GREY, VERMILLION, WIDE, log_axis, plot_of
from rareclass.report.page import (
    NONE,
    Fact,
    FactList,
    FinishedReport,
    KeyFigure,
    Note,
    Plots,
    ReportPage,
    Section,
    Text,
    figure_of,
    percent,
    settings_section,
    whole,
)
from rareclass.report.ranking_section import ranking_section
from rareclass.report.threshold_section import threshold_section
from rareclass.report.threshold_table import ThresholdTable
from rareclass.stream.checkpoint import SavedStream, load_newest
from rareclass.stream.log import read_log
from rareclass.table_block import TableBlock

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LISTED = 12
_MOST_DRAWN = 5
_MOST_POINTS = 300


@dataclass(frozen=True)
class LoggedReport:
    """A report of a stream, from its log."""

    rows: int
    rare: int
    auc: float | None
    average_precision: float | None
    precision_at_k: float | None
    moved: tuple[ColumnShift, ...]
    falls: tuple[str, ...]  # measures significantly lower than in their best window
    time: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Read a row of the log."""
        measures = (row["auc"], row["average_precision"], row["precision_at_k"])
        return cls(
            row["rows"],
            row["rare"],
            *measures,
            tuple(ColumnShift(**each) for each in row["moved"] or ()),
            tuple(each["measure"] for each in row["falls"] or ()),
            row["time"].strftime("%Y-%m-%d %H:%M UTC"),
        )

    def shift_of(self, column: str) -> ColumnShift | None:
        """Shift of a column; None where the report does not name it."""
        return next((each for each in self.moved if each.column == column), None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for scripts."""
        told = asdict(self) | {"moved": [each.column for each in self.moved]}
        del told["time"]
        return told


def report_on_stream(folder: Path) -> FinishedReport:
    """Report on the folder of a stream.

    Raises `InputError` without a checkpoint, and before the first report of the stream.
    """
    loaded = load_newest(folder)
    if loaded is None:
        raise InputError(
            f"{folder} has no checkpoint.", "rareclass stream makes one.", ErrorKind.MISSING_FILE
        )
    log = [LoggedReport.of(row) for row in read_log(folder).to_pylist()]
    if not log:
        raise too_few_rows(
            f"The stream in {folder} has not come to a report yet.",
            f"Let it go on, or give it a smaller {setting('report_every')}.",
        )
    state, last = loaded.state, log[-1]
    scores, is_rare = state.window.rows()
    target = f"{state.target.target} = {state.target.rare_label}"
    figures = [KeyFigure("Rows so far", whole(last.rows), f"{whole(last.rare)} of them rare")]
    verdict = f"After {whole(last.rows)} rows"
    of_window: list[Section] = []
    if 0 < is_rare.sum() < len(is_rare):
        auc = interval("roc_auc", is_rare, scores)
        precision = interval("average_precision", is_rare, scores)
        figures.append(figure_of("AUC of the window", auc))
        figures.append(figure_of("Average precision of the window", precision))
        verdict += (
            f" the last {whole(len(is_rare))} with a class, {whole(int(is_rare.sum()))} of "
            f"them rare, were ranked with an average precision of {precision.value:.3f} "
            f"({precision.bounds_text()}, 95\u00a0% interval)"
        )
        if not (scores == scores[0]).all():
            table = ThresholdTable.of(is_rare, scores)
            words = ("score", folder, "NEW_ROWS.csv")
            command = command_line(*words, out="scores.csv", threshold=None) + " {threshold}"
            rest = f"{state.target.target} = {state.target.rest_label}"
            of_window = [
                threshold_section(table, target, rest, "", command),
                ranking_section(table, auc, precision),
            ]
    verdict += f"; {', '.join(last.falls)} fell beyond chance" if last.falls else ""
    verdict += f"; {len(last.moved)} columns had moved" if last.moved else ""
    sections = [_measures_section(log, state.window.size, state.window.top), _drift_section(log)]
    if state.alerts is not None:
        n_alerts, budget = state.alerts.file.n_rows, state.alerts.threshold.budget.words
        figures.append(KeyFigure("Alerts", whole(n_alerts), f"at most {budget}"))
        sections.append(_alerts_section(state, last.rows, n_alerts, budget))
    sections += [*of_window, _data_section(state, len(log)), _settings_section(folder, state)]
    page = ReportPage(
        f"Stream for {target}",
        f"{folder}: {whole(last.rows)} rows so far, last report of {last.time}",
        f"{verdict}.",
        tuple(figures),
        tuple(sections),
    )
    return FinishedReport(page, {"reports": [each.to_dict() for each in log]})


def _measures_section(log: Sequence[LoggedReport], window: int, top: int) -> Section:
    measures = (
        ("auc", "AUC"),
        ("average_precision", "average precision"),
        ("precision_at_k", f"precision at {top:,}"),
    )
    title = "Measures of the last rows, as the stream went"
    description = (
        f"Each point is of the {window:,} rows before it, scored before they were learned from. "
        "Crosses are reports in which a measure was lower than in its best window by more than "
        "chance explains."
    )
    values = {name: [getattr(each, name) for each in log] for name, _ in measures}

    def draw(ax: "Axes") -> None:
        x = np.array([each.rows for each in log])
        for (name, label), (color, dashes) in zip(measures, CYCLE, strict=False):
            y = np.array(values[name], dtype=float)
            ax.plot(x, y, color=color, linestyle=dashes, marker="o", markersize=3, label=label)
            fell = np.array([name in each.falls for each in log])
            if fell.any():
                ax.plot(x[fell], y[fell], "x", color=color, markersize=8)
        _rows_axis(ax)
        ax.set_ylim(0.0, 1.02)
        ax.legend()

    step = max(1, -(-len(log) // _MOST_LISTED))
    rows = tuple(
        (
            whole(log[k].rows),
            whole(log[k].rare),
            *(_decimal(values[name][k]) for name, _ in measures),
            ", ".join(log[k].falls) or NONE,
        )
        for k in range(len(log))[::-step][::-1]
    )
    head = ("Rows so far", "Rare so far", *(label for _, label in measures), "Fell")
    table = TableBlock(title, head, rows)
    n_fell = sum(bool(each.falls) for each in log)
    last = f" In the last report {', '.join(log[-1].falls)} had fallen." if log[-1].falls else ""
    lead = f"{n_fell or 'None'} of {len(log)} reports found a measure fallen.{last}"
    plot = plot_of(draw, "measures-over-time", title, description, table, WIDE, wide=True)
    return Section("over-time", "How it did over time", lead, (Plots((plot,)),))


def _drift_section(log: Sequence[LoggedReport]) -> Section:
    most: dict[str, float] = {}
    for each in log:
        for shift in each.moved:
            most[shift.column] = max(most.get(shift.column, 0.0), shift.stability_index)
    if not most:
        return Section("drift", "Drift", "No column moved.", (Text("None was reported."),))
    ranked = sorted(most, key=lambda name: -most[name])
    title = "Columns that moved, as the stream went"
    description = (
        "Stability index of recent cells against past cells, on a logarithmic axis, of the "
        f"columns that moved most; from {MOVED_FAR:g} on that is read as moved far."
    )

    def draw(ax: "Axes") -> None:
        for name, (color, dashes) in zip(ranked[:_MOST_DRAWN], CYCLE, strict=False):
            shifts = [(each.rows, shift) for each in log if (shift := each.shift_of(name))]
            ax.plot(
                [rows for rows, _ in shifts], [shift.stability_index for _, shift in shifts],
                color=color, linestyle=dashes, marker="o", markersize=3.5,
                label=name if len(name) <= 30 else f"{name[:29]}…",
            )  # fmt: skip
        ax.axhline(MOVED_FAR, color=GREY, linestyle=":", label=f"moved far: {MOVED_FAR:g}")
        _rows_axis(ax)
        ax.set_xlim(0, log[-1].rows * 1.02)
        log_axis(ax.yaxis, "stability index")
        ax.legend()

    rows = []
    for name in ranked[:_MOST_LISTED]:
        reports = [each for each in log if each.shift_of(name)]
        last = log[-1].shift_of(name)
        rows.append(
            (
                name,
                f"{len(reports)} of {len(log)}",
                f"{most[name]:.2f}",
                whole(reports[0].rows),
                NONE if last is None else f"{last.stability_index:.2f}",
                NONE if last is None else percent(last.outside),
            )
        )
    head = (
        "Column", "Reports in which it had moved", "Greatest index", "First at row", "Index now",
        "Outside now",
    )  # fmt: skip
    caption = "Columns that moved, the farthest first"
    table = TableBlock(caption, head, tuple(rows))
    plot = plot_of(draw, "drift-over-time", title, description, table, WIDE, wide=True)
    lead = f"{len(most)} columns moved at some time; {len(log[-1].moved)} in the last report."
    return Section("drift", "Drift", lead, (Plots((plot,)),))


def _alerts_section(state: SavedStream, n_rows: int, n_alerts: int, budget: str) -> Section:
    """Section on alerts in stretches of the stream, with the threshold in force."""
    lead = f"{n_alerts:,} alerts, at most {budget}."
    path = state.options["alert_file"]
    if path is None or not Path(path).is_file():
        named = "" if path is None else f" {path}"
        note = Note(f"The file of alerts{named} is not there: only their number is known.")
        return Section("alerts", "Alerts", lead, (note,))
    names = ["row", "threshold"]
    if Path(path).suffix.lower() == ".csv":
        frame = pl.read_csv(path, columns=names)
    else:
        frame = pl.read_ndjson(path, infer_schema_length=None).select(names)
    alerts = frame.head(n_alerts)
    row, threshold = (alerts[name].to_numpy() for name in names)
    if not len(row):
        return Section("alerts", "Alerts", lead, ())
    title = "Alerts and their scores"
    edges = np.linspace(0, max(n_rows, row.max()), 41)
    description = (
        f"Bars: alerts in each of 40 stretches of {edges[1]:,.0f} rows. The line is the threshold "
        "in force, which follows the recent scores."
    )
    counts, _ = np.histogram(row, edges)

    def draw(ax: "Axes") -> None:
        ax.stairs(counts, edges, fill=True, color=BLUE, alpha=0.45)
        ax.set_ylabel("alerts in a stretch")
        _rows_axis(ax)
        beside: Any = ax.twinx()
        step = max(1, len(row) // _MOST_POINTS)
        beside.plot(row[::step], threshold[::step], color=VERMILLION, linestyle="--", linewidth=1.2)
        beside.set_ylabel("threshold (dashed)")
        beside.grid(visible=False)

    rows = tuple(
        (
            f"{edges[4 * k]:,.0f} to {edges[4 * k + 4]:,.0f}",
            whole(float(counts[4 * k : 4 * k + 4].sum())),
        )
        for k in range(10)
    )
    table = TableBlock("Alerts in tenths of the stream", ("Rows", "Alerts"), rows)
    plot = plot_of(draw, "alerts-over-time", title, description, table, WIDE, wide=True)
    return Section("alerts", "Alerts", lead, (Plots((plot,)),))


def _data_section(state: SavedStream, n_reports: int) -> Section:
    counters = state.counters
    share = percent(counters.rare / max(counters.labelled, 1))
    facts = (
        Fact("Records", whole(counters.rows)),
        Fact("With a class, learned from", whole(counters.labelled)),
        Fact("Rare", f"{whole(counters.rare)} ({share})"),
        Fact("Without a class, scored only", whole(counters.unlabelled)),
        Fact("Reports", whole(n_reports)),
    )
    return Section("data", "The data", "What has come so far.", (FactList(facts),))


def _settings_section(folder: Path, state: SavedStream) -> Section:
    options = state.options
    parameters = options.get("parameters") or {}
    facts = [
        Fact("Folder", str(folder)),
        Fact("Source", str(options["source"])),
        Fact("Learner", str(options["learner"])),
        Fact("Parameters", ", ".join(f"{name} {value}" for name, value in parameters.items())),
    ]
    if options.get("drop"):
        facts.append(Fact("Columns left out", ", ".join(options["drop"])))
    return settings_section(facts)


def _rows_axis(ax: "Axes") -> None:
    ax.set_xlabel("rows of the stream so far")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _decimal(value: float | None) -> str:
    return NONE if value is None or np.isnan(value) else f"{value:.3f}"
