"""The screen of a running stream: a table that stays in place, or plain lines in a pipe."""

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rareclass.cli.screen import print_notes
from rareclass.errors import counted

if TYPE_CHECKING:
    from rareclass.stream.loop import Event, StreamReport
    from rareclass.stream.options import StreamOptions

_SHOWN = 10
_WIDE = 90
_MOVED_SHOWN = 3


class StreamScreen:
    """Shows the events of a stream."""

    def __init__(self, console: Console, options: "StreamOptions") -> None:
        self._console, self._options = console, options
        self._reports: deque[StreamReport] = deque(maxlen=_SHOWN)
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
            print_notes(self._console, [event.text])
        elif event.kind == "went on":
            self.rows_at_start = event.rows
            if event.rows:
                self._console.print(f"Going on after row {event.rows:,}.")
        elif event.kind == "batch":
            self._recent.append((monotonic(), event.rows))
        elif event.kind == "report" and event.report is not None:
            self._reports.append(event.report)
            if self._live is None:
                self._console.print(self._line(event.report), markup=False, soft_wrap=True)

    def __rich__(self) -> RenderableType:
        """Return the table of the last reports over a line on the present."""
        parts: list[RenderableType] = [self._table()] if self._reports else []
        if self._reports and (words := drift_words(self._reports[-1], self._options.top)):
            said = Text(" · ".join(words), style="yellow", no_wrap=True, overflow="ellipsis")
            parts.append(said)
        if self._live is not None and (self._recent or self._waiting):
            parts.append(self._present())
        return Group(*parts)

    def _table(self) -> Table:
        is_wide = self._console.width >= _WIDE
        rows = [self._columns(is_wide, report) for report in self._reports]
        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
        for name in rows[0]:
            table.add_column(name, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*row.values())
        return table

    def _columns(self, is_wide: bool, report: "StreamReport") -> dict[str, str]:
        """Return the cells of a report by the names of their columns."""
        options, measures = self._options, report.measures
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
        parts = [counted(self._rows, "row")]
        rate = self._rate()
        if self._waiting:
            parts.append("waiting for rows")
        elif rate is not None:
            parts.append(f"{rate:,.0f} rows/s")
        is_wide = self._console.width >= _WIDE
        if self._reports and self._reports[-1].rejected and not is_wide:
            parts.append(f"{self._reports[-1].rejected:,} rejected")
        parts.append("Ctrl-C stops and saves" if is_wide else "Ctrl-C stops")
        return Text(" · ".join(parts), style="dim", no_wrap=True, overflow="ellipsis")

    def _rate(self) -> float | None:
        recent = list(self._recent)
        if len(recent) < 2:
            return None
        (first, rows_before), (last, rows) = recent[0], recent[-1]
        return (rows - rows_before) / max(last - first, 1e-9)

    def _line(self, report: "StreamReport") -> str:
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
        if report.rejected:
            parts.append(f"{report.rejected:,} rejected")
        if self._options.alerts is not None:
            parts.append(f"{report.alerts:,} alerts")
        parts.append(f"{report.rows_per_second:,.0f} rows/s")
        return "  ".join([*parts, *drift_words(report, top)])


def drift_words(report: "StreamReport", top: int) -> list[str]:
    """Return in few words the falls of measures, then the columns that moved most."""
    names = {"auc": "AUC", "precision_at_k": f"P@{top}"}
    said = [
        f"{names[fall.measure]} fell from {fall.best:.3f} at {counted(fall.best_rows, 'row')} "
        f"(by {fall.low:.3f} to {fall.high:.3f})"
        for fall in report.falls
    ]
    moved = []
    for each in report.moved[:_MOVED_SHOWN]:
        outside = f", {each.outside:.0%} outside" if each.outside >= 0.01 else ""
        moved.append(f"{each.column} (PSI {each.stability_index:.2f}{outside})")
    more = len(report.moved) - len(moved)
    if moved:
        said.append(f"moved: {', '.join(moved)}{f' and {more} more' if more else ''}")
    if report.last_reset is not None and report.last_reset > report.counters.reported:
        said.append(f"steps reset at {counted(report.last_reset, 'row')}")
    return said


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
