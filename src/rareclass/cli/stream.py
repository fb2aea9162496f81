"""``rareclass stream``: learn from rows as they arrive, and go on after any stop."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rareclass.cli.door import (
    QUERY_OPTION,
    SEPARATOR_OPTION,
    exit_codes_for_faults,
    file_or_url,
    on_this_machine,
    parse_separator,
    table_at,
)
from rareclass.cli.json_file import JSON_OPTION, check_json, give_json
from rareclass.cli.screen import file_text, output, print_command
from rareclass.errors import ErrorKind, InputError, counted
from rareclass.remote import RemotePath, path_of

if TYPE_CHECKING:
    from rich.console import Console

    from rareclass.stream.loop import StreamLoop, StreamReport
    from rareclass.stream.options import StreamOptions
    from rareclass.stream.state import StreamState
    from rareclass.tables.databases.drivers import Query


class Tails(StrEnum):
    """Treatments of numbers far from their mean."""

    asinh = "asinh"
    clip = "clip"
    linear = "linear"


class OnDrift(StrEnum):
    """Reactions to the beginning of a drift."""

    auto = "auto"
    report = "report"
    reset = "reset"


class Learner(StrEnum):
    """Learners that see a row once."""

    auto = "auto"
    cbr = "cbr"
    cbr_diagonal = "cbr-diagonal"
    oam = "oam"
    opauc = "opauc"
    adaoam = "adaoam"
    uniexp = "uniexp"
    logistic = "logistic"
    mixture = "mixture"


@exit_codes_for_faults
def stream(
    given: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="CSV, JSON lines or Parquet file, a folder of them, a database, or - for stdin.",
        ),
    ],
    target: Annotated[
        str, typer.Option("--target", "-t", help="Column that holds the classes; may be empty.")
    ],
    checkpoint: Annotated[
        Path,
        typer.Option(
            "--checkpoint",
            help="Folder for checkpoints, log, scores and rejected rows.",
            parser=file_or_url,
        ),
    ],
    learner: Annotated[
        Learner,
        typer.Option(
            help="How to learn. auto goes on as the folder began, and begins with mixture: several "
            "learners at once, weighed by how they have ranked."
        ),
    ] = Learner.auto,
    param: Annotated[
        list[str] | None,
        typer.Option(
            help="Parameter of the learner as NAME=VALUE, such as C=0.5. Many times. "
            "cbr and cbr-diagonal begin with C=2^-10 and class_weight=balanced, not with the "
            "library's C=1: large steps on the few rare rows would soon leave it unable to move."
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(help="Value of the rare class. By default 1, true or yes."),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option("--id", help="Column that names a row: labels may come later under it."),
    ] = None,
    hold: Annotated[
        int, typer.Option(min=1, help="Most rows to hold for labels that are to come.")
    ] = 100_000,
    drop: Annotated[
        list[str] | None, typer.Option(help="Column to leave out. May be given many times.")
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(help="Column to take as categories though it holds numbers. Many times."),
    ] = None,
    max_categories: Annotated[
        int, typer.Option(min=1, help="Values of a category column that get a feature each.")
    ] = 32,
    half_life: Annotated[
        float, typer.Option(help="Rows after which the past counts half in means and deviations.")
    ] = 100_000,
    tails: Annotated[
        Tails | None,
        typer.Option(
            help="Numbers far out: drawn in by asinh, cut at 10 deviations, or as is. By default "
            "as is for mixture, which draws them in itself for some of its members, else asinh."
        ),
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Rows between two checkpoints.")] = 10_000,
    report_every: Annotated[int, typer.Option(min=1, help="Rows between two reports.")] = 10_000,
    window: Annotated[int, typer.Option(min=2, help="Last rows that are measured.")] = 10_000,
    top: Annotated[int, typer.Option(min=1, help="The k of precision at k.")] = 100,
    follow: Annotated[
        bool, typer.Option("--follow", help="At the end wait for more, until Ctrl-C.")
    ] = False,
    max_rejected: Annotated[
        int | None, typer.Option(min=0, help="Stop at more bad rows than that.")
    ] = None,
    alerts: Annotated[
        Path | None,
        typer.Option(
            help="File to append alerts to, with reasons: .jsonl or .csv.", parser=file_or_url
        ),
    ] = None,
    alert_budget: Annotated[
        str | None,
        typer.Option(
            help="Most alerts: 50/day, which needs --time, or 50/10000 for as many rows. "
            "By default --top in --window rows."
        ),
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", help="Column of dates: the day of each row.")
    ] = None,
    on_drift: Annotated[
        OnDrift,
        typer.Option(
            help="Where many columns begin to move or a measure to fall: report it only, or reset "
            "the learner's steps as well, so that it learns quickly again. auto goes on as the "
            "folder began, and begins with reset for a mixture."
        ),
    ] = OnDrift.auto,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Stop where a tenth of a column lies outside what was seen."),
    ] = False,
    json_file: Annotated[Path | None, JSON_OPTION] = None,
    separator: Annotated[str | None, SEPARATOR_OPTION] = None,
    query: Annotated[str | None, QUERY_OPTION] = None,
) -> None:
    """Learn from the rows of SOURCE in their order, each scored before it is learned from.

    The same command again goes on where the last one stopped, however it was stopped.
    """
    character = parse_separator(separator)
    on_this_machine(checkpoint, "--checkpoint")
    if alerts is not None:
        on_this_machine(alerts, "--alerts")
    if top > window:
        raise InputError(
            f"--top {top}: the window has {counted(window, 'row')} only.",
            "Raise --window or lower --top.",
            ErrorKind.COMBINATION,
        )
    if not 0 < half_life < float("inf"):
        raise InputError(
            f"--half-life {half_life} is not a number of rows above 0.",
            "Give rows, such as 10000.",
            ErrorKind.SETTING,
        )
    source = _source(given, query, follow)
    from rareclass.stream.learners import parse_parameters, settled, usual_tails
    from rareclass.stream.options import StreamOptions, check_alert_options

    chosen, drift = settled(learner.value, on_drift.value, checkpoint)
    options = StreamOptions(
        source=source,
        target=target,
        learner=chosen,
        parameters=parse_parameters(chosen, param or ()),
        positive=positive,
        id_column=id_column,
        drop=tuple(drop or ()),
        categories=tuple(category or ()),
        separator=character,
        max_categories=max_categories,
        half_life=half_life,
        tails=usual_tails(chosen) if tails is None else tails.value,
        window=window,
        top=top,
        hold=hold,
        every=every,
        report_every=report_every,
        follow=follow,
        max_rejected=max_rejected,
        alerts=None if alerts is None else str(alerts),
        alert_budget=check_alert_options(source, alerts, alert_budget, time),
        time_column=time,
        on_drift=drift,
        strict=strict,
    )
    _check_json(json_file, source)
    stopped_by = _learn(output(), options, checkpoint, json_file)
    if stopped_by is not None:
        raise typer.Exit(128 + stopped_by)


def _source(given: str, query: str | None, follow: bool) -> "str | Query":
    """Return the source of rows; refuse a source that is not there."""
    from rareclass.tables.databases.drivers import Query

    place = table_at(given, query, "SOURCE")
    is_query, is_remote = isinstance(place, Query), isinstance(place, RemotePath)
    if follow and (is_query or is_remote):
        why = "the answer to a query ends" if is_query else f"{place} is not on this machine"
        raise InputError(
            f"--follow: {why}.",
            "Leave it out: the same command, given again, goes on with what has come since.",
            ErrorKind.COMBINATION,
        )
    if isinstance(place, Query):
        return place
    if given != "-" and not place.exists():
        raise InputError(
            f"There is no file or folder {given}.",
            "Check the name; - reads stdin.",
            ErrorKind.MISSING_FILE,
        )
    return given


def _check_json(path: Path | None, source: "str | Query") -> None:
    """Refuse a file that cannot be written; one of a stream is replaced by the same command."""
    check_json(
        path, True, {"SOURCE": path_of(source)} if isinstance(source, str) and source != "-" else {}
    )
    if path is None or not path.is_file():
        return
    try:
        is_ours = "checkpoint" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        is_ours = False
    if not is_ours:
        raise InputError(
            f"--json {path} exists already, and no stream wrote it.",
            "Give another name.",
            ErrorKind.EXISTING_FILE,
        )


def _learn(
    console: "Console", options: "StreamOptions", folder: Path, json_file: Path | None
) -> int | None:
    """Run the stream on the screen; returns the signal that stopped it, if any."""
    from rareclass.cli.stream_screen import StreamScreen
    from rareclass.stream.checkpoint import claimed
    from rareclass.stream.loop import StreamLoop
    from rareclass.stream.reading import Interruption

    interruption = Interruption()
    with claimed(folder), interruption.heeded():
        loop = StreamLoop(options, folder, interruption)
        screen = StreamScreen(console, options)
        try:
            with screen:
                for event in loop.run():
                    screen.show(event)
        finally:
            loop.close()
        _print_end(console, options, folder, loop, screen.rows_at_start, interruption.signal)
        if loop.has_begun:
            give_json(json_file, _as_plain_data(loop, folder, interruption.signal))
    return interruption.signal


def _as_plain_data(loop: "StreamLoop", folder: Path, stopped_by: int | None) -> dict[str, Any]:
    """Return the last report with the names of files."""
    from rareclass.stream.checkpoint import checkpoints_in

    report = loop.report()
    parts = report._asdict()
    del parts["rows_per_second"]  # since the report before, which may be the last row
    return {
        **vars(parts.pop("counters")),
        **parts,
        "measures": report.measures._asdict(),
        "moved": [each._asdict() for each in report.moved],
        "falls": [each._asdict() for each in report.falls],
        "members": [each._asdict() for each in report.members],
        "checkpoint": str(checkpoints_in(folder)[0]),
        "stopped_by": stopped_by,
    }


def _print_end(
    console: "Console",
    options: "StreamOptions",
    folder: Path,
    loop: "StreamLoop",
    rows_at_start: int,
    stopped_by: int | None,
) -> None:
    from rareclass.stream.checkpoint import checkpoints_in

    if not loop.has_begun:
        console.print("Stopped before the first rows came; nothing was saved.")
        return
    report = loop.report()
    counters, rows = report.counters, report.counters.rows
    name = "Standard input" if options.source == "-" else str(options.source)
    if stopped_by is not None:
        said = f"Stopped after {counted(rows, 'row')}."
    elif rows == rows_at_start:
        said = f"Nothing new: {name} ends after the {counted(rows, 'row')} already learned from."
    else:
        said = f"{name} is at its end: {counted(rows, 'row')}."
    console.print(said, style="bold", markup=False, soft_wrap=True)
    parts = [f"{counters.labelled:,} labelled", f"{counters.rare:,} of them rare"]
    if counters.unlabelled:
        parts.append(f"{counters.unlabelled:,} came without a label")
    if options.id_column is not None:
        parts += [f"{report.held:,} held", f"{report.dropped:,} dropped"]
    console.print(f"Rows: {', '.join(parts)}.", markup=False)
    if counters.labelled and not counters.rare:
        console.print(
            f"No label was {loop.state.labels.rare!r}: nothing can be learned until one is. "
            "If the rare class has another name, give it with --positive, and a new folder.",
            markup=False,
        )  # fmt: skip
    _print_files(console, options, loop.state, report)
    saved = checkpoints_in(folder)[0]
    console.print(f"Checkpoint: {file_text(saved)}", markup=False, soft_wrap=True)
    if stopped_by is not None:
        console.print("The same command goes on from there.")
    else:
        print_command(console, "Next:", f"rareclass score {folder} NEW_ROWS.csv --out scores.csv")


def _print_files(
    console: "Console", options: "StreamOptions", state: "StreamState", report: "StreamReport"
) -> None:
    """Say what stands in the files beside the checkpoint."""
    if report.rejected:
        rejected = counted(report.rejected, "row")
        console.print(
            f"Rejected: {rejected}, with reasons in {state.rejected.path}",
            markup=False, soft_wrap=True,
        )  # fmt: skip
    if state.alerts is not None:
        said = f"Alerts: {report.alerts:,}, at most {options.budget.words}, in {options.alerts}"
        console.print(said, markup=False, soft_wrap=True)
    if report.contradicted:
        again = counted(report.contradicted, "row came", "rows came")
        console.print(
            f"Contradicted: {again} under another label than was learned before, listed in "
            f"{state.contradicted.path}",
            markup=False, soft_wrap=True,
        )  # fmt: skip
