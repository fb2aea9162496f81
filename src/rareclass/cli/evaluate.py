"""``rareclass evaluate`` and ``monitor``: a model on new rows, with known classes and without."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.cells import cell_len
from rich.console import Console

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.errors import ErrorKind, counted, left_out_text
from rareclass.model import strict_option
from rareclass.parameters import opt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rareclass.metrics import MissedCaseMeasures
    from rareclass.model.decisions import Confusion, DecisionRow
    from rareclass.model.evaluate import ProbabilityQuality
    from rareclass.model.model import Model
    from rareclass.tables.table_file import TablePlace

# Columns that monitor lists.
_MOST_LISTED = 40
# Least width for the names of rows, which may be folded.
_LEAST_CORNER = 14


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Options of ``rareclass evaluate``."""

    model: Path = cli.argument("Model file of rareclass fit, or folder of rareclass stream.")
    given: str = cli.argument(
        "File or folder with the target: CSV, JSON lines, Parquet, svmlight; or a database.", "DATA"
    )
    time: str | None = opt(
        "Column of DATA with the time of a row, for alerts a day.",
        show_default="that of the training",
    )
    strict: bool = strict_option()
    journal: Path | None = cli.journal_option()
    missed_cases: float | None = opt(
        "Also correct precision for rare rows that DATA labels as majority: their share of all "
        "rare rows, such as 0.2.",
        metavar="SHARE",
        min=0,
        max=1,
        show_default="labels are right",
    )
    written: cli.OutputOptions
    table: cli.TableOptions


@cli.command
def evaluate(options: EvaluateOptions) -> None:
    """Compare the model's scores with the known classes of DATA.

    With --journal, estimate from the rows that were checked how good it is on all rows.
    """
    from rareclass.model.evaluate import OF_ALERTS, evaluate_file

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
        _print_decided(console, "Called rare", found.table)
    if found.corrected is not None:
        console.print()
        _print_corrected(console, found.corrected)
    if found.by_class:
        _print_decided(console, "Called each class", found.by_class)
    if found.probabilities is not None:
        console.print()
        _print_probabilities(console, found.probabilities)
    if found.n_unlabelled:
        screen.print_notes(console, left_out_text(found.n_unlabelled, "no target"))
    if found.n_undated:
        screen.print_notes(console, left_out_text(found.n_undated, "no time", OF_ALERTS))
    if found.budget is not None:
        console.print(f"Alert budget: {found.budget.sentence()}")
    if found.promises.rows:
        console.print()
        promised = found.promises.block()
        screen.print_block(console, promised, folded=promised.heads[2:])
        console.print(found.promises.sentence())
    screen.print_drift(console, found.drift)
    written.give(found.as_plain_data())


def _print_decided(console: Console, head: str, rows: "Sequence[DecisionRow]") -> None:
    from rareclass.model.decisions import decisions_block

    console.print()
    block = decisions_block(head, rows)
    screen.print_block(console, block, bounds_below=console.width < screen.WIDE)


def _evaluate_checked(
    console: Console, model: "Model", data: "TablePlace", options: EvaluateOptions
) -> None:
    from rareclass.metrics import checked_measures
    from rareclass.review.estimates import read_checked

    assert options.journal is not None
    if options.time or options.strict or options.missed_cases is not None:
        raise ErrorKind.COMBINATION.error(
            "--journal takes none of --time, --strict and --missed-cases.", "Leave them out."
        )
    table = read_checked(model, data, options.journal, options.table.text)
    found = checked_measures(table.scores, table.sample, model.threshold)
    rows = f"{found.n_rows:,} rows, {found.n_checked:,} with a known class, {found.n_found:,} rare"
    console.print(f"{data.name}: {rows}", style="bold")
    screen.print_block(console, found.block())
    stands, *more = found.sentences()
    console.print(stands)
    screen.print_notes(console, *more)
    for number in table.incomplete:
        screen.print_notes(console, f"round {number} lacks verdicts, and does not count.")
    options.written.give(found.as_plain_data())


def print_confusion(console: Console, confusion: "Confusion", with_lines: bool = True) -> None:
    """Print rows by what they are and what they are called; of many classes the errors alone."""
    from rareclass.model.facts import MOST_CLASSES

    for block in map(confusion.block, (False, True)):
        width = _LEAST_CORNER + sum(cell_len(head) + 2 for head in block.heads[1:])
        if len(block.rows) <= MOST_CLASSES and width <= console.width:
            break
    else:
        block = confusion.pairs_block()
    screen.print_block(console, block)
    for line in confusion.lines if with_lines else ():
        console.print(line)


def _print_corrected(console: Console, found: "MissedCaseMeasures") -> None:
    """Print measures that count missed cases as cases, and what they assume."""
    from rareclass.metrics.intervals import measures_block

    console.print(
        f"Corrected for missed cases: {100.0 * found.share:.3g}% of all cases, as given",
        style="bold",
    )
    measures = (
        ("precision above threshold", found.precision, 3),
        ("recall above threshold", found.recall, 3),
        ("average precision", found.average_precision, 3),
    )
    screen.print_block(console, measures_block("Measure", measures))
    console.print(
        "This assumes that cases were missed at random, not more often where they resemble the "
        "majority."
    )


def _print_probabilities(console: Console, quality: "ProbabilityQuality") -> None:
    """Print how good the probabilities are, against the base rate as a constant probability."""
    figures = (
        ("mean", quality.mean, quality.share),
        ("log loss", quality.log_loss, quality.log_loss_of_share),
        ("Brier score", quality.brier, quality.brier_of_share),
    )
    rows = [(name, f"{own:.4f}", f"{constant:.4f}") for name, own, constant in figures]
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

    model: Path = cli.argument(cli.ANY_MODEL)
    given: str = cli.argument(
        "File or folder of new rows, of any size; no labels are needed. Or a database.", "NEW"
    )
    strict: bool = opt(
        "Exit with code 3 if a column is absent, a column has moved far, or alerts are "
        "significantly twice or half as frequent as on held-out rows.",
        False,
    )
    written: cli.OutputOptions
    table: cli.TableOptions


@cli.command
def monitor(options: MonitorOptions) -> None:
    """Compare the columns of NEW, and its rate of alerts, with training.

    The population stability index (PSI) compares the distribution of each column with training:
    tenths of the training values or the most frequent words, new values, empty cells. A column has
    moved from 0.1 on, and far from 0.25 on; changes that are not significant do not count.
    """
    from rareclass.model.drift import drift_block
    from rareclass.model.evaluate import monitor_file

    data, written = options.table.place(options.given, "NEW"), options.written
    written.check({"the file to be read": data, "the model": options.model})
    content, console = cli.opened(options.model), screen.output()
    found = monitor_file(content, data, options.table.text)
    drift, trained = found.drift, found.n_trained
    against = "" if trained is None else f", against {trained:,} of the training table"
    name = data.name if isinstance(data, Path) else str(data)
    console.print(f"{name}: {counted(drift.seen.n_rows, 'row')}{against}", style="bold")
    styles = ["bold" if each.is_far else "" for each in drift.compared]
    screen.print_block(console, drift_block(drift.compared), _MOST_LISTED, styles=styles)
    screen.print_drift(console, drift)
    written.give(found.as_plain_data())
    if options.strict and drift.is_far:
        raise typer.Exit(cli.MOVED_FAR)
