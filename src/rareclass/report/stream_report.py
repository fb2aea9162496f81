"""The report of a stream: measures, drift and alerts over time, from the folder of the stream."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, command_line, setting
from rareclass.metrics import interval
from rareclass.metrics.column_drift import MOVED_FAR, ColumnShift
from rareclass.report.curves import ranking_section, threshold_section
from rareclass.report.drawing import BLUE, CYCLE, GREY, VERMILLION, WIDE, Axes, Display, log_axis
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
from rareclass.report.threshold_table import ThresholdTable
from rareclass.stream.log import read_log
from rareclass.stream.state import SavedStream, load_newest
from rareclass.table_block import TableBlock

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
        read = {each.name: row[each.name] for each in fields(cls)}
        read["moved"] = tuple(ColumnShift(**each) for each in row["moved"] or ())
        read["falls"] = tuple(each["measure"] for each in row["falls"] or ())
        return cls(**read | {"time": row["time"].strftime("%Y-%m-%d %H:%M UTC")})

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
        raise ErrorKind.MISSING_FILE.error(
            f"{folder} has no checkpoint.", "rareclass stream makes one."
        )
    log = [LoggedReport.of(row) for row in read_log(folder).to_pylist()]
    if not log:
        raise ErrorKind.TOO_FEW_ROWS.error(
            f"The stream in {folder} has not come to a report yet.",
            f"Let it go on, or give it a smaller {setting('report_every')}.",
        )
    state, last = loaded.state, log[-1]
    scores, is_rare = state.window.rows()
    target = state.target.in_words
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
            of_window = [
                threshold_section(table, target, state.target.rest_in_words, "", command),
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


class MeasuresDisplay(Display):
    """Measures of the window at each report of a stream, with crosses where one had fallen."""

    key, title = "measures-over-time", "Measures of the last rows, as the stream went"
    size = WIDE

    def __init__(self, log: Sequence[LoggedReport], window: int, top: int) -> None:
        self.log, self.window = log, window
        names = "auc", "average_precision", "precision_at_k"
        self.labels = "AUC", "average precision", f"precision at {top:,}"
        self.values = {name: [getattr(each, name) for each in log] for name in names}

    def _words(self) -> str:
        return (
            f"Each point is of the {self.window:,} rows before it, scored before they were learned "
            "from. Crosses are reports in which a measure was lower than in its best window by "
            "more than chance explains."
        )

    def rows(self) -> TableBlock:
        """Return about twelve reports, the last among them."""
        step = max(1, -(-len(self.log) // _MOST_LISTED))
        shown = range(len(self.log))[::-step][::-1]
        reports = [self.log[k] for k in shown]
        of_window = ([_decimal(each[k]) for k in shown] for each in self.values.values())
        columns = {
            "Rows so far": [whole(each.rows) for each in reports],
            "Rare so far": [whole(each.rare) for each in reports],
            **dict(zip(self.labels, of_window, strict=True)),
            "Fell": [", ".join(each.falls) or NONE for each in reports],
        }
        return TableBlock.of(self.title, columns)

    def _draw(self, ax: Axes, **style: Any) -> None:
        x = np.array([each.rows for each in self.log])
        of_measures = zip(self.labels, self.values.items(), CYCLE, strict=False)
        for label, (name, values), (color, dashes) in of_measures:
            y = np.array(values, dtype=float)
            ax.plot(x, y, color=color, linestyle=dashes, marker="o", markersize=3, label=label)
            fell = np.array([name in each.falls for each in self.log])
            if fell.any():
                ax.plot(x[fell], y[fell], "x", color=color, markersize=8)
        _rows_axis(ax)
        ax.set_ylim(0.0, 1.02)


def _measures_section(log: Sequence[LoggedReport], window: int, top: int) -> Section:
    n_fell = sum(bool(each.falls) for each in log)
    last = f" In the last report {', '.join(log[-1].falls)} had fallen." if log[-1].falls else ""
    lead = f"In {n_fell or 'none'} of {len(log)} reports a measure had fallen.{last}"
    plots = Plots((MeasuresDisplay(log, window, top).on_page(),))
    return Section("over-time", "How it did over time", lead, (plots,))


class DriftDisplay(Display):
    """Stability index of the columns that moved most, at each report of a stream."""

    key, title = "drift-over-time", "Columns that moved, as the stream went"
    size = WIDE

    def __init__(self, log: Sequence[LoggedReport]) -> None:
        self.log = log
        most: dict[str, float] = {}
        for each in log:
            for shift in each.moved:
                most[shift.column] = max(most.get(shift.column, 0.0), shift.stability_index)
        self.most = dict(sorted(most.items(), key=lambda each: -each[1]))

    def _words(self) -> str:
        return (
            "Stability index of recent cells against past cells, on a logarithmic axis, of the "
            f"columns that moved most; from {MOVED_FAR:g} on that is read as moved far."
        )

    def rows(self) -> TableBlock:
        """Return the columns that moved, the farthest first."""
        names = list(self.most)[:_MOST_LISTED]
        reports = {name: [each for each in self.log if each.shift_of(name)] for name in names}
        last = [self.log[-1].shift_of(name) for name in names]
        of_all = [f"{len(reports[name])} of {len(self.log)}" for name in names]
        columns = {
            "Column": names,
            "Reports in which it had moved": of_all,
            "Greatest index": [f"{self.most[name]:.2f}" for name in names],
            "First at row": [whole(reports[name][0].rows) for name in names],
            "Index now": [NONE if each is None else f"{each.stability_index:.2f}" for each in last],
            "Outside now": [NONE if each is None else percent(each.outside) for each in last],
        }
        return TableBlock.of("Columns that moved, the farthest first", columns)

    def _draw(self, ax: Axes, **style: Any) -> None:
        for name, (color, dashes) in zip(list(self.most)[:_MOST_DRAWN], CYCLE, strict=False):
            shifts = [(each.rows, shift) for each in self.log if (shift := each.shift_of(name))]
            ax.plot(
                [rows for rows, _ in shifts], [shift.stability_index for _, shift in shifts],
                color=color, linestyle=dashes, marker="o", markersize=3.5,
                label=name if len(name) <= 30 else f"{name[:29]}…",
            )  # fmt: skip
        ax.axhline(MOVED_FAR, color=GREY, linestyle=":", label=f"moved far: {MOVED_FAR:g}")
        _rows_axis(ax)
        ax.set_xlim(0, self.log[-1].rows * 1.02)
        log_axis(ax.yaxis, "stability index", times=(1, 2, 5))


def _drift_section(log: Sequence[LoggedReport]) -> Section:
    display = DriftDisplay(log)
    if not display.most:
        return Section("drift", "Drift", "No column moved.", (Text("None was reported."),))
    n_now = len(log[-1].moved)
    lead = f"{len(display.most)} columns moved at some time; {n_now} in the last report."
    return Section("drift", "Drift", lead, (Plots((display.on_page(),)),))


class AlertsInTimeDisplay(Display):
    """Alerts in parts of a stream of equal length, with the threshold in force."""

    key, size = "alerts-over-time", WIDE

    def __init__(self, row: NDArray[Any], threshold: NDArray[Any], n_rows: int) -> None:
        self.row, self.threshold = row, threshold
        self.edges = np.linspace(0, max(n_rows, row.max()), 41)
        self.counts, _ = np.histogram(row, self.edges)
        self.per = f"{self.edges[1]:,.0f} rows"
        self.title = f"Alerts in each {self.per}, and the threshold"

    def _words(self) -> str:
        return (
            f"Bars: alerts in each of 40 parts of the stream, of {self.per}. The line is the "
            "threshold in force, which follows the recent scores."
        )

    def rows(self) -> TableBlock:
        """Return the alerts in tenths of the stream."""
        columns = {
            "Rows": [f"{low:,.0f} to {high:,.0f}" for low, high in pairwise(self.edges[::4])],
            "Alerts": map(whole, self.counts.reshape(10, 4).sum(axis=1).tolist()),
        }
        return TableBlock.of("Alerts in tenths of the stream", columns)

    def _draw(self, ax: Axes, **style: Any) -> None:
        ax.stairs(self.counts, self.edges, fill=True, color=BLUE, alpha=0.45)
        ax.set_ylabel(f"alerts in {self.per}")
        ax.set_xlim(0.0, self.edges[-1])
        _rows_axis(ax)
        beside: Any = ax.twinx()
        step = max(1, len(self.row) // _MOST_POINTS)
        x, y = self.row[::step], self.threshold[::step]
        beside.plot(x, y, color=VERMILLION, linestyle="--", linewidth=1.2)
        beside.set_ylabel("threshold (dashed)")
        beside.grid(visible=False)


def _alerts_section(state: SavedStream, n_rows: int, n_alerts: int, budget: str) -> Section:
    """Section on alerts over time, with the threshold in force."""
    lead = f"{n_alerts:,} alerts, at most {budget}."
    path = state.options["alert_file"]
    if not Path(path).is_file():
        note = Note(f"The file of alerts {path} is not there: only their number is known.")
        return Section("alerts", "Alerts", lead, (note,))
    names = ["row", "threshold"]
    if Path(path).suffix.lower() == ".csv":
        frame = pl.read_csv(path, columns=names)
    else:
        frame = pl.read_ndjson(path, infer_schema_length=None).select(names)
    row, threshold = (frame[name].head(n_alerts).to_numpy() for name in names)
    if not len(row):
        return Section("alerts", "Alerts", lead, ())
    plots = Plots((AlertsInTimeDisplay(row, threshold, n_rows).on_page(),))
    return Section("alerts", "Alerts", lead, (plots,))


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


def _rows_axis(ax: Axes) -> None:
    ax.set_xlabel("rows of the stream so far")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _decimal(value: float | None) -> str:
    return NONE if value is None or np.isnan(value) else f"{value:.3f}"
