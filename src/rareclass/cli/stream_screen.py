"""Screen of ``rareclass stream`` while it learns: a live table, or a line for each report."""

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from rareclass.cli.screen import add_numbers, new_table, print_notes
from rareclass.errors import counted, first_names

if TYPE_CHECKING:
    from rareclass.stream.loop import Event, StreamReport
    from rareclass.stream.options import StreamOptions

_REPORTS_SHOWN = 10
_WIDE = 90
_MOVED_SHOWN = 3


class StreamScreen:
    """Shows the events of a stream."""

    def __init__(self, console: Console, options: "StreamOptions") -> None:
        self._console, self._options = console, options
        self._reports: deque[StreamReport] = deque(maxlen=_REPORTS_SHOWN)
        self._rows, self._waiting, self.rows_at_start = 0, False, 0
        self._recent: deque[tuple[float, int]] = deque(maxlen=40)
        is_live = console.is_terminal and not console.is_dumb_terminal
        self._live = Live(self, console=console, refresh_per_second=4) if is_live else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._recent.clear()
            self._live.stop()

    def show(self, event: "Event") -> None:
        """Bring the screen up to date."""
        self._rows = event.rows
        self._waiting = event.kind == "waiting"
        if event.kind == "note":
            print_notes(self._console, event.text)
        elif event.kind == "went on":
            self.rows_at_start = event.rows
            if event.rows:
                self._console.print(f"Continuing after row {event.rows:,}.")
        elif event.kind == "batch":
            self._recent.append((monotonic(), event.rows))
        elif event.kind == "report" and event.report is not None:
            self._reports.append(event.report)
            if self._live is None:
                self._console.print(self._line(event.report), soft_wrap=True)

    def __rich__(self) -> RenderableType:
        """Return the table of the last reports over a line on the present."""
        parts: list[RenderableType] = []
        if self._reports:
            cells = [self._cells(report) for report in self._reports]
            table = new_table()
            add_numbers(table, *cells[0])
            for row in cells:
                table.add_row(*row.values())
            parts.append(table)
            if words := drift_words(self._reports[-1], self._options.top):
                said = " · ".join(words)
                parts.append(Text(said, style="yellow", no_wrap=True, overflow="ellipsis"))
        if self._live is not None and (self._recent or self._waiting):
            parts.append(self._present())
        return Group(*parts)

    def _cells(self, report: "StreamReport") -> dict[str, str]:
        """Return the cells of a report by the names of their columns."""
        options, measures = self._options, report.measures
        is_wide = self._console.width >= _WIDE
        columns = {
            "Rows": f"{report.counters.rows:,}",
            "Rare": f"{report.counters.rare:,}",
            "AUC": _share(measures.auc),
            "Avg. prec." if is_wide else "AP": _share(measures.average_precision),
            f"P@{options.top}": _share(measures.precision_at_k),
        }
        if is_wide and options.id_column is not None:
            columns |= {"Held": f"{report.held:,}", "Dropped": f"{report.dropped:,}"}
        if is_wide:
            columns["Rejected"] = f"{report.rejected:,}"
        if is_wide and options.alerts is not None:
            columns["Alerts"] = f"{report.alerts:,}"
        return columns | {"Rows/s": f"{report.rows_per_second:,.0f}"}

    def _present(self) -> Text:
        """Return a line on what is going on now."""
        parts = [counted(self._rows, "row")]
        if self._waiting:
            parts.append("waiting for rows")
        elif len(self._recent) > 1:
            (first, rows_before), (last, rows) = self._recent[0], self._recent[-1]
            parts.append(f"{(rows - rows_before) / max(last - first, 1e-9):,.0f} rows/s")
        is_wide = self._console.width >= _WIDE
        if self._reports and self._reports[-1].rejected and not is_wide:
            parts.append(f"{self._reports[-1].rejected:,} rejected")
        parts.append("Ctrl-C stops and saves" if is_wide else "Ctrl-C stops")
        return Text(" · ".join(parts), style="dim", no_wrap=True, overflow="ellipsis")

    def _line(self, report: "StreamReport") -> str:
        """Return a report as a line for a pipe, and a line for each change."""
        measures, top = report.measures, self._options.top
        parts = [
            counted(report.counters.rows, "row"),
            f"{report.counters.rare:,} rare",
            f"AUC {_share(measures.auc)}",
            f"AP {_share(measures.average_precision)}",
            f"P@{top} {_share(measures.precision_at_k)}",
        ]
        if self._options.id_column is not None:
            parts.append(f"{report.held:,} held")
        if report.dropped:
            parts.append(f"{report.dropped:,} dropped")
        if report.early_labels:
            parts.append(f"{counted(report.early_labels, 'label')} early")
        if report.rejected:
            parts.append(f"{report.rejected:,} rejected")
        if self._options.alerts is not None:
            parts.append(f"{report.alerts:,} alerts")
        parts.append(f"{report.rows_per_second:,.0f}/s")
        return "\n  ".join(["  ".join(parts), *drift_words(report, top)])


def drift_words(report: "StreamReport", top: int) -> list[str]:
    """Return in few words the falls of measures, then the columns that moved most."""
    names = {"auc": "AUC", "precision_at_k": f"P@{top}"}
    said = [
        f"{names[fall.measure]} fell from {fall.best:.3f} at {counted(fall.best_rows, 'row')} "
        f"(by {fall.low:.3f} to {fall.high:.3f})"
        for fall in report.falls
    ]
    moved = []
    for each in report.moved:
        outside = f", {each.outside:.0%} outside" if each.outside >= 0.01 else ""
        moved.append(f"{each.column} (PSI {each.stability_index:.2f}{outside})")
    if moved:
        said.append(f"moved: {first_names(moved, _MOVED_SHOWN)}")
    if report.last_reset is not None and report.last_reset > report.counters.reported:
        said.append(f"steps reset at {counted(report.last_reset, 'row')}")
    return said


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
