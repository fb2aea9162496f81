"""``rareclass evaluate`` and ``monitor``: a model on new rows, with known classes and without."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.cells import cell_len
from rich.console import Console

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.errors import combination_error, counted, left_out_text

if TYPE_CHECKING:
    from rareclass.metrics import Interval, MissedCaseMeasures
    from rareclass.model.columns import ColumnDrift
    from rareclass.model.decisions import Confusion
    from rareclass.model.drift import Drift
    from rareclass.model.evaluate import DecisionRow, ProbabilityQuality
    from rareclass.model.model import Model
    from rareclass.tables.table_file import TablePlace

# Columns that monitor lists.
_MOST_LISTED = 40
# Least width for the names of rows, which may be folded.
_LEAST_CORNER = 14


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Options of ``rareclass evaluate``."""

    model: Path = cli.model_argument("Model file of rareclass fit, or folder of rareclass stream.")
    given: str = cli.argument(
        "File or folder with the target: CSV, JSON lines, Parquet, svmlight; or a database.",
        "DATA",
    )
    time: str | None = cli.option(
        "Column of DATA with the time of a row, for alerts a day.",
        show_default="that of the training",
    )
    strict: bool = cli.strict_option()
    journal: Path | None = cli.journal_option()
    missed_cases: float | None = cli.option(
        "Also correct precision for rare rows that DATA labels as majority: their share of all "
        "rare rows, such as 0.2.",
        metavar="SHARE",
        min=0.0,
        max=1.0,
        show_default="labels are right",
    )
    written: cli.OutputOptions
    table: cli.TableOptions


@cli.command
def evaluate(options: EvaluateOptions) -> None:
    """Compare the model's scores with the known classes of DATA.

    With --journal, estimate from the rows that were checked how good it is on all rows.
    """
    from rareclass.model.evaluate import HEADS, evaluate_file

    data, written = options.table.place(options.given, "DATA"), options.written
    written.check({"the file to be read": data, "the model": options.model})
    content, console = cli.opened(options.model), screen.output()
    if options.journal is not None:
        _evaluate_checked(console, content, data, options)
        return
    found = evaluate_file(
        content, data, options.table.text, options.strict, options.time, options.missed_cases
    )
    console.print(f"{data.name}: {found.estimate.rows_text()}", style="bold")
    screen.print_estimate(console, found.estimate)
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
        screen.print_notes(console, left_out_text(found.n_unlabelled, "no target"))
    if found.budget is not None:
        console.print(f"Alert budget: {found.budget.sentence()}")
    if found.promises.rows:
        console.print()
        cells = [each.cells for each in found.promises.rows]
        screen.print_table(console, HEADS, cells, folded=HEADS[2:])
        console.print(found.promises.sentence())
    screen.print_drift(console, found.seen, found.drift)
    written.give(found.as_plain_data())


def _evaluate_checked(
    console: Console, model: "Model", data: "TablePlace", options: EvaluateOptions
) -> None:
    from rareclass.metrics import checked_measures
    from rareclass.review.estimates import read_checked

    assert options.journal is not None
    if options.time or options.strict or options.missed_cases is not None:
        raise combination_error(
            "--journal takes none of --time, --strict and --missed-cases.", "Leave them out."
        )
    table = read_checked(model, data, options.journal, options.table.text)
    found = checked_measures(table.scores, table.sample, model.threshold)
    rows = f"{found.n_rows:,} rows, {found.n_checked:,} with a known class, {found.n_found:,} rare"
    console.print(f"{data.name}: {rows}", style="bold")
    screen.print_checked(console, found)
    for number in table.incomplete:
        screen.print_notes(console, f"round {number} lacks verdicts, and does not count.")
    options.written.give(found.as_plain_data())


def print_confusion(console: Console, confusion: "Confusion", with_lines: bool = True) -> None:
    """Print rows by what they are and what they are called, unless there is no room."""
    console.print(confusion.title, style="bold")
    names = confusion.called_names
    long = [f"called {name}" for name in names]
    for corner, heads in (("", long), ("called", names)):
        if _LEAST_CORNER + sum(cell_len(head) + 2 for head in heads) <= console.width:
            rows = [
                (f"is {name}", *(f"{count:,.0f}" for count in counts))
                for name, counts in zip(confusion.is_names, confusion.counts, strict=True)
            ]
            screen.print_table(console, (corner, *heads), rows)
            break
    for line in confusion.lines if with_lines else ():
        console.print(line)


def _print_decisions(
    console: Console, rows: Sequence["DecisionRow"], title: str = "Called rare"
) -> None:
    """Print what comes of calling rows rare, with 95 % intervals; narrow screens lack the last."""
    lines = []
    for row in rows:
        name = "above threshold" if row.name == "threshold" else row.name
        shares = (row.precision, row.recall, row.false_positive_rate)
        cells = [_share(*each, console.width) for each in zip(shares, (3, 3, 4), strict=True)]
        lines.append((name, f"{row.alerts:,}", *cells))
    heads = (title, "Rows", "Precision", "Recall", "False-positive rate")
    screen.print_table(console, heads, lines)


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
    screen.print_measures(console, "Measure", measures)
    console.print(
        "This assumes that cases were missed at random, not more often where they resemble the "
        "majority."
    )


def _share(share: "Interval", digits: int, width: int) -> str:
    """A share and its interval: on one line where the screen is wide."""
    if share.value != share.value:
        return "no alerts"
    value, bounds = f"{share.value:.{digits}f}", share.bounds_text(f".{digits}f")
    return f"{value}{' ' if width >= screen.WIDE else chr(10)}({bounds})"


def _print_probabilities(console: Console, quality: "ProbabilityQuality") -> None:
    """Print how good the probabilities are, against the base rate as a constant probability."""
    rows = [
        (name, f"{own:.4f}", f"{constant:.4f}")
        for name, own, constant in (
            ("mean", quality.mean, quality.share),
            ("log loss", quality.log_loss, quality.log_loss_of_share),
            ("Brier score", quality.brier, quality.brier_of_share),
        )
    ]
    screen.print_table(console, ("Probabilities", "Model", "Constant base rate"), rows)
    if quality.log_loss > quality.log_loss_of_share:
        screen.print_notes(
            console,
            "the probabilities are worse than the base rate as a constant probability. They "
            f"are calibrated for a base rate of {quality.prevalence:.4f}; rareclass threshold "
            "--prevalence sets another.",
        )


@dataclass(frozen=True, kw_only=True)
class MonitorOptions:
    """Options of ``rareclass monitor``."""

    model: Path = cli.model_argument()
    given: str = cli.argument(
        "File or folder of new rows, of any size; no labels are needed. Or a database.", "NEW"
    )
    strict: bool = cli.flag(
        "Exit with code 3 if a column is absent, a column or the scores have moved far, or alerts "
        "are significantly twice or half as frequent as on held-out rows.",
        "--strict",
    )
    written: cli.OutputOptions
    table: cli.TableOptions


@cli.command
def monitor(options: MonitorOptions) -> None:
    """Compare the columns and the scores of NEW with those of training.

    The population stability index (PSI) compares the distribution of each column with training:
    tenths of the training values or the most frequent words, new values, empty cells. A column has
    moved from 0.1 on, and far from 0.25 on; changes that are not significant do not count.
    """
    from rareclass.model.evaluate import monitor_file

    data, written = options.table.place(options.given, "NEW"), options.written
    written.check({"the file to be read": data, "the model": options.model})
    content, console = cli.opened(options.model), screen.output()
    found = monitor_file(content, data, options.table.text)
    drift, trained = found.drift, found.n_trained
    against = "" if trained is None else f", against {trained:,} of the training table"
    name = data.name if isinstance(data, Path) else str(data)
    console.print(f"{name}: {counted(found.seen.n_rows, 'row')}{against}", style="bold")
    _print_moved(console, drift)
    screen.print_drift(console, found.seen, drift)
    written.give(found.as_plain_data())
    if options.strict and drift.is_far:
        raise typer.Exit(cli.MOVED_FAR)


def _print_moved(console: Console, drift: "Drift") -> None:
    """Print the columns, those that moved most first, and the scores."""
    listed = [*drift.compared[:_MOST_LISTED], *drift.columns[len(drift.compared) :]]
    rows = []
    for each in listed:
        name = "(scores)" if each is drift.scores else each.name
        rows.append((name, each.verdict or "not known", *_cells_of(each)))
    heads = ("Column", "Verdict", "PSI", "Empty", "Empty before", "New values")
    styles = ["bold" if each.is_far else "" for each in listed]
    screen.print_table(console, heads, rows, styles=styles)
    if (more := len(drift.compared) - _MOST_LISTED) > 0:
        screen.print_notes(console, f"{more} more columns are not listed.")


def _cells_of(column: "ColumnDrift") -> list[str]:
    index = column.stability_index
    shares = [column.missing_now, column.missing_before, column.outside]
    return ["" if index is None else f"{index:.2f}"] + [
        "" if share is None or column.is_absent else f"{share:.1%}" for share in shares
    ]
