"""``rareclass stream``: learn from rows as they arrive, and go on after any stop.

The screen is a live table, or in a pipe a line for each report.
"""

import json
from collections import deque
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal, Self

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.errors import ErrorKind, command_line, counted, first_names
from rareclass.parameters import opt
from rareclass.remote import RemotePath, path_of
from rareclass.stream.options import (
    StreamOptions,
    StreamSettings,
    check_alert_options,
    parse_parameters,
    usual_tails,
)
from rareclass.tables import ColumnSettings, TextSettings

if TYPE_CHECKING:
    from rareclass.stream.loop import Event, StreamReport
    from rareclass.stream.state import StreamState

_REPORTS_SHOWN = 10
_WIDE = 90
_MOVED_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class StreamCommandOptions:
    """Options of ``rareclass stream``."""

    source: str = cli.argument("CSV, JSON lines or Parquet file, a folder of them, or - for stdin.")
    target: str = opt("Column that holds the classes; may be empty.", cli.REQUIRED)
    checkpoint: Path = opt("Folder for checkpoints, log, scores and rejected rows.", cli.REQUIRED)
    learner: str = opt(
        "cbr, cbr-diagonal, oam, opauc, adaoam, uniexp, logistic, or mixture: several learners "
        "weighted by how well they have ranked. auto keeps the learner of the folder; in a new "
        "folder it is mixture.",
        "auto",
        metavar="LEARNER",
    )
    param: tuple[str, ...] = opt(
        "Parameter of the learner as NAME=VALUE, such as C=0.5. Many times. cbr and cbr-diagonal "
        "have C=2^-10 and class_weight=balanced by default.",
        (),
    )
    tails: Literal["asinh", "clip", "linear"] | None = opt(
        "Outliers: asinh transform, clip at 10 standard deviations, or linear, no change. By "
        "default linear for mixture, else asinh."
    )
    columns: ColumnSettings
    plain: StreamSettings
    alert_file: Path | None = opt("File to append alerts to, with reasons: .jsonl or .csv.")
    alerts: str | None = opt(
        "Most alerts: 50/day, which needs --time, or 50/10000 for as many rows. By default --top "
        "in --window rows."
    )
    on_drift: Literal["auto", "report", "reset"] = opt(
        "When columns drift or a measure falls: report prints it; reset also resets the learner's "
        "step sizes, so that it adapts quickly. auto keeps the setting of the folder; in a new "
        "folder it is reset for mixture, else report.",
        "auto",
    )
    written: cli.JsonOption
    texts: TextSettings


@cli.command
def stream(options: StreamCommandOptions) -> None:
    """Train online: score each row of SOURCE, then learn from it.

    The same command again continues where the last one stopped, even after a crash.
    """
    checkpoint, source, alerts = options.checkpoint, options.source, options.alert_file
    plain, written = options.plain, options.written
    cli.on_this_machine(checkpoint, "--checkpoint")
    if alerts is not None:
        cli.on_this_machine(alerts, "--alert-file")
    plain.check()
    _check_source(source, plain.follow)
    from rareclass.stream.state import settled

    chosen, drift = settled(options.learner, options.on_drift, checkpoint)
    settings = StreamOptions(
        source=source,
        target=options.target,
        learner=chosen,
        parameters=parse_parameters(chosen, options.param),
        **vars(plain),
        **vars(options.columns),
        **vars(options.texts),
        tails=options.tails or usual_tails(chosen),
        alert_file=None if alerts is None else str(alerts),
        alerts=check_alert_options(source, alerts, options.alerts, plain.time_column),
        on_drift=drift,
    )
    read = {} if source == "-" else {"SOURCE": path_of(source)}
    written.check(read)
    if written.json_file is not None and written.json_file.is_file():
        _check_ours(written.json_file)
    stopped_by = _learn(screen.output(), settings, checkpoint, written)
    if stopped_by is not None:
        raise typer.Exit(128 + stopped_by)


def _check_source(source: str, follow: bool) -> None:
    """Raise `InputError` for a source of rows that is not there, or cannot be followed."""
    from rareclass.tables.databases import DatabaseAddress, is_database

    if is_database(source):
        raise ErrorKind.UNSUPPORTED.error(
            f"{DatabaseAddress(source)} is a database, which cannot be read as a stream.",
            "Write the new rows to a CSV or Parquet file; fit and score read a --query.",
        )
    place = path_of(source)
    if follow and isinstance(place, RemotePath):
        raise ErrorKind.COMBINATION.error(
            f"--follow: {place} is not on this machine.",
            "Leave it out: the same command, given again, continues with the new rows.",
        )
    if source != "-" and not place.exists():
        raise ErrorKind.MISSING_FILE.error(
            f"There is no file or folder {source}.", "Check the name; - reads stdin."
        )


def _check_ours(path: Path) -> None:
    try:
        is_ours = "checkpoint" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        is_ours = False
    if not is_ours:
        raise ErrorKind.EXISTING_FILE.error(
            f"--json {path} exists already, and no stream wrote it.", "Give another name."
        )


def _learn(
    console: Console, options: StreamOptions, folder: Path, written: cli.JsonOption
) -> int | None:
    """Run the stream on the screen; return the signal that stopped it, if any."""
    from rareclass.stream.loop import StreamLoop
    from rareclass.stream.reading import Interruption
    from rareclass.stream.state import checkpoints_in, claimed

    interruption = Interruption()
    with claimed(folder), interruption.heeded():
        loop = StreamLoop(options, folder, interruption)
        shown = StreamScreen(console, options)
        with closing(loop), shown:
            for event in loop.run():
                shown.show(event)
        if not loop.has_begun:
            console.print("Stopped before the first rows came; nothing was saved.")
            return interruption.signal
        report, saved = loop.report(), checkpoints_in(folder)[0]
        rows = counted(report.counters.rows, "row")
        name = "Standard input" if options.source == "-" else str(options.source)
        said = f"Read {name} to its end: {rows}."
        if interruption.signal is not None:
            said = f"Stopped after {rows}."
        elif report.counters.rows == shown.rows_at_start:
            said = f"No new rows: {name} ends after the {rows} already learned."
        console.print(said, style="bold", soft_wrap=True)
        _print_counts(console, options, loop.state, report)
        console.print(f"Checkpoint: {screen.file_text(saved)}", soft_wrap=True)
        if interruption.signal is not None:
            console.print("The same command continues from there.")
        elif report.counters.has_both_classes:
            command = command_line("score", folder, "NEW_ROWS.csv", "--out", "scores.csv")
            screen.print_command(console, "Next, score new rows:", command)
        parts = report.as_plain_data() | {"checkpoint": str(saved)}
        parts["stopped_by"] = interruption.signal
        del parts["rows_per_second"]  # it may be of the last row alone
        written.give(parts)
    return interruption.signal


def _print_counts(
    console: Console, options: StreamOptions, state: "StreamState", report: "StreamReport"
) -> None:
    """Print the rows by what became of them, and the files that have the odd ones."""
    counters = report.counters
    parts = [f"{counters.labelled:,} labelled", f"{counters.rare:,} of them rare"]
    if counters.unlabelled:
        parts.append(f"{counters.unlabelled:,} without a label")
    if options.id_column is not None:
        parts += [f"{report.held:,} waiting for a label", f"{report.dropped:,} dropped unlabelled"]
    console.print(f"Rows: {', '.join(parts)}.")
    if report.early_labels or report.early_labels_dropped:
        held = counted(report.early_labels, "waits", "wait")
        dropped = f", {report.early_labels_dropped:,} were dropped (--hold keeps more)"
        said = f"{held} for a later row{dropped if report.early_labels_dropped else ''}."
        console.print(f"Labels: {said}")
    if counters.labelled and not counters.rare:
        rare = state.saved.target.rare_label
        console.print(
            f"No label is {rare!r} so far, so nothing was learned. If the rare class has another "
            "name, give it with --positive, and a new --checkpoint folder.",
            )  # fmt: skip
    if report.rejected:
        rejected = counted(report.rejected, "row")
        said = f"Rejected: {rejected}, with reasons in {state.rejected.path}"
        console.print(said, soft_wrap=True)
    if state.alerts is not None:
        said = f"Alerts: {report.alerts:,}, at most {options.budget.words}, in {options.alert_file}"
        console.print(said, soft_wrap=True)


class StreamScreen:
    """Shows the events of a stream."""

    def __init__(self, console: Console, options: StreamOptions) -> None:
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
            screen.print_notes(self._console, event.text)
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
            facts = [self._facts(report) for report in self._reports]
            heads = [f"{name[0].upper()}{name[1:]}" for name in facts[0]]
            spare = heads[-2:4:-1]
            rows = [[*each.values()] for each in facts]
            parts.append(screen.fitted_table(self._console, heads, rows, spare))
            if words := drift_words(self._reports[-1], self._options.top):
                said = " · ".join(words)
                parts.append(Text(said, style="yellow", no_wrap=True, overflow="ellipsis"))
        if self._live is not None and (self._recent or self._waiting):
            parts.append(self._present())
        return Group(*parts)

    def _facts(self, report: "StreamReport") -> dict[str, str]:
        """Return the facts of a report by their names, measures in capitals."""
        options, measures = self._options, report.measures
        facts = {
            "rows": f"{report.counters.rows:,}",
            "rare": f"{report.counters.rare:,}",
            "AUC": screen.measure_text(measures.auc),
            "AP": screen.measure_text(measures.average_precision),
            f"P@{options.top}": screen.measure_text(measures.precision_at_k),
        }
        if options.id_column is not None:
            facts |= {"held": f"{report.held:,}", "dropped": f"{report.dropped:,}"}
        facts["rejected"] = f"{report.rejected:,}"
        if options.alert_file is not None:
            facts["alerts"] = f"{report.alerts:,}"
        return facts | {"rows/s": f"{report.rows_per_second:,.0f}"}

    def _present(self) -> Text:
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
        facts = self._facts(report)
        rows, speed = counted(report.counters.rows, "row"), facts.pop("rows/s")
        del facts["rows"]
        parts = [
            f"{name} {cell}" if name[0].isupper() else f"{cell} {name}"
            for name, cell in facts.items()
            if cell != "0" or name not in ("dropped", "rejected")
        ]
        if report.early_labels:
            parts.append(f"{counted(report.early_labels, 'label')} early")
        words = drift_words(report, self._options.top)
        return "\n  ".join(["  ".join([rows, *parts, f"{speed}/s"]), *words])


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
