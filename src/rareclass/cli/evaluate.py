"""``rareclass evaluate``: how good a model is on rows with known classes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from rareclass.cli.door import (
    CheckedRows,
    OutputOptions,
    Strict,
    TableOptions,
    command,
    file_or_url,
)
from rareclass.cli.screen import (
    WIDE,
    add_numbers,
    new_table,
    output,
    print_checked,
    print_drift,
    print_estimate,
    print_measures,
    print_notes,
)
from rareclass.errors import ErrorKind, InputError, counted

if TYPE_CHECKING:
    from rareclass.metrics import Interval, MissedCaseMeasures
    from rareclass.model.decisions import Confusion
    from rareclass.model.evaluate import DecisionRow, ProbabilityQuality
    from rareclass.model.model import Model
    from rareclass.tables.table_file import TablePlace

# Narrower screens have no room for a third share.
_NARROW = 60
# Least width for the names of rows, which may be folded.
_LEAST_CORNER = 14


@command
def evaluate(
    model: Annotated[
        Path,
        typer.Argument(
            help="Model file of rareclass fit, or folder of rareclass stream.", parser=file_or_url
        ),
    ],
    given: Annotated[
        str,
        typer.Argument(
            help="File or folder with the target: CSV, JSON lines, Parquet, svmlight; or a "
            "database.",
            metavar="DATA",
        ),
    ],
    *,
    time: Annotated[
        str | None,
        typer.Option(
            help="Column of DATA with the time of a row, for alerts a day.",
            show_default="that of the training",
        ),
    ] = None,
    strict: Strict = False,
    journal: CheckedRows = None,
    missed_cases: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Also correct precision for rare rows that DATA labels as majority: their share "
            "of all rare rows, such as 0.2.",
            show_default="labels are right",
        ),
    ] = None,
    written: OutputOptions,
    table: TableOptions,
) -> None:
    """Compare the model's scores with the known classes of DATA.

    With --journal, estimate from the rows that were checked how good it is on all rows.
    """
    from rareclass.model.evaluate import evaluate_file
    from rareclass.opening import open_model

    character, data = table.character, table.place(given, "DATA")
    written.check({"the file to be read": data, "the model": model}, written.overwrite)
    content, console = open_model(model), output()
    print_notes(console, content.notices)
    if journal is not None:
        is_more = bool(time or strict) or missed_cases is not None
        _evaluate_checked(console, content, data, journal, character, is_more, written)
        return
    found = evaluate_file(content, data, character, strict, time, missed_cases)
    console.print(f"{data.name}: {found.estimate.rows_text()}", style="bold")
    print_estimate(console, found.estimate)
    console.print()
    print_confusion(console, found.confusion, with_lines=not found.table)
    if found.table:  # its first row says what the lines below the counts would
        console.print()
        _print_decisions(console, found.table)
    if found.corrected is not None:
        console.print()
        _print_corrected(console, found.corrected)
    if found.by_class:
        console.print()
        _print_decisions(console, found.by_class, "Called each class")
    if found.probabilities is not None:
        console.print()
        _print_probabilities(console, found.probabilities)
    if found.n_unlabelled:
        rows = counted(found.n_unlabelled, "row has", "rows have")
        left_out = "was" if found.n_unlabelled == 1 else "were"
        print_notes(console, [f"{rows} no target and {left_out} left out."])
    if (a_day := found.a_day) is not None:
        days = counted(a_day.n_days, "whole day") if a_day.n_days >= 1 else "part of a day"
        console.print(
            f"Alerts a day: {a_day.mean:.3g} on average, {a_day.least:,.0f} to {a_day.most:,.0f} "
            f"({days}, by column {a_day.time})"
        )
    if found.budget is not None:
        console.print(f"Alert budget: {found.budget.sentence()}")
    print_drift(console, found.seen, found.drift)
    written.give(found.as_plain_data())


def _evaluate_checked(
    console: Console,
    model: "Model",
    data: "TablePlace",
    journal: Path,
    separator: str | None,
    is_more: bool,
    written: OutputOptions,
) -> None:
    """Print estimates from checked rows; `is_more` says that an option of all rows was given."""
    from rareclass.metrics import checked_measures
    from rareclass.review.estimates import read_checked

    if is_more:
        raise InputError(
            "--journal takes none of --time, --strict and --missed-cases.",
            "Leave them out.",
            ErrorKind.COMBINATION,
        )
    table = read_checked(model, data, journal, separator)
    found = checked_measures(table.scores, table.sample, model.threshold)
    rows = f"{found.n_rows:,} rows, {found.n_checked:,} with a known class, {found.n_found:,} rare"
    console.print(f"{data.name}: {rows}", style="bold")
    print_checked(console, found)
    for number in table.incomplete:
        print_notes(console, [f"round {number} lacks verdicts, and does not count."])
    written.give(found.as_plain_data())


def print_confusion(console: Console, confusion: "Confusion", with_lines: bool = True) -> None:
    """Print rows by what they are and what they are called, unless there is no room."""
    console.print(confusion.title, style="bold")
    names = confusion.called_names
    long = [f"called {name}" for name in names]
    for corner, heads in (("", long), ("called", names)):
        if _LEAST_CORNER + sum(cell_len(head) + 2 for head in heads) <= console.width:
            table = new_table()
            table.add_column(corner)
            for head in heads:
                table.add_column(Text(head), justify="right", no_wrap=True)
            for name, counts in zip(confusion.is_names, confusion.counts, strict=True):
                table.add_row(Text(f"is {name}"), *(f"{count:,.0f}" for count in counts))
            console.print(table)
            break
    for line in confusion.lines if with_lines else ():
        console.print(line)


def _print_decisions(
    console: Console, rows: Sequence["DecisionRow"], title: str = "Called rare"
) -> None:
    """Print what comes of calling rows rare, with 95 % intervals; narrow screens lack the last."""
    table, is_narrow = new_table(), console.width < _NARROW
    table.add_column(title)
    add_numbers(table, "Rows")
    heads = ["Precision", "Recall", "False-positive rate"]
    for head in heads[:2] if is_narrow else heads:
        table.add_column(head, no_wrap=True)
    digits = (2, 2, 2) if is_narrow else (3, 3, 4)
    for row in rows:
        name = "above threshold" if row.name == "threshold" and not is_narrow else row.name
        shares = (row.precision, row.recall, row.false_positive_rate)
        cells = [_share(*each, console.width) for each in zip(shares, digits, strict=True)]
        table.add_row(Text(name), f"{row.alerts:,}", *cells[: len(table.columns) - 2])
    console.print(table)


def _print_corrected(console: Console, found: "MissedCaseMeasures") -> None:
    """Print measures that count missed cases as cases, and what they assume."""
    console.print(
        f"Corrected for missed cases: {100.0 * found.share:.3g}% of all cases, as given",
        style="bold",
    )
    measures = [
        ("precision above threshold", found.precision, 3),
        ("recall above threshold", found.recall, 3),
        ("average precision", found.average_precision, 3),
    ]
    print_measures(console, "Measure", measures)
    console.print(
        "This assumes that cases were missed at random, not more often where they resemble the "
        "majority."
    )


def _share(share: "Interval", digits: int, width: int) -> str:
    """A share and its interval: on one line where the screen is wide."""
    if share.value != share.value:
        return "no alerts"
    value, low, high = (f"{each:.{digits}f}" for each in share)
    if width < _NARROW:
        return f"{value}\n{low} to {high}"
    return f"{value}{' ' if width >= WIDE else chr(10)}({low} to {high})"


def _print_probabilities(console: Console, quality: "ProbabilityQuality") -> None:
    """Print how good the probabilities are, against the base rate as a constant probability."""
    table = new_table()
    table.add_column("Probabilities")
    add_numbers(table, "Model", "Constant base rate")
    for name, own, constant in (
        ("mean", quality.mean, quality.share),
        ("log loss", quality.log_loss, quality.log_loss_of_share),
        ("Brier score", quality.brier, quality.brier_of_share),
    ):
        table.add_row(name, f"{own:.4f}", f"{constant:.4f}")
    console.print(table)
    if quality.log_loss > quality.log_loss_of_share:
        print_notes(
            console,
            [
                "the probabilities are worse than the base rate as a constant probability. They "
                f"are calibrated for a base rate of {quality.prevalence:.4f}; rareclass threshold "
                "--prevalence sets another."
            ],
        )
