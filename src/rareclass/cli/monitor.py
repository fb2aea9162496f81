"""``rareclass monitor``: how far new rows have moved from those of training, without labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from rareclass.cli.door import MOVED_FAR, ModelPath, OutputOptions, TableOptions, command
from rareclass.cli.screen import NARROW, add_numbers, new_table, output, print_drift, print_notes
from rareclass.errors import counted

if TYPE_CHECKING:
    from rareclass.model.columns import ColumnDrift
    from rareclass.model.drift import Drift

_MOST_LISTED = 40


@command
def monitor(
    model: ModelPath,
    given: Annotated[
        str,
        typer.Argument(
            help="File or folder of new rows, of any size; no labels are needed. Or a database.",
            metavar="NEW",
        ),
    ],
    *,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with code 3 if a column is absent, a column or the scores have moved far, "
            "or alerts are significantly twice or half as frequent as on held-out rows.",
        ),
    ] = False,
    written: OutputOptions,
    table: TableOptions,
) -> None:
    """Compare the columns and the scores of NEW with those of training.

    The population stability index (PSI) compares the distribution of each column with training:
    tenths of the training values or the most frequent words, new values, empty cells. A column has
    moved from 0.1 on, and far from 0.25 on; changes that are not significant do not count.
    """
    from rareclass.model.evaluate import monitor_file
    from rareclass.opening import open_model

    data = table.place(given, "NEW")
    written.check({"the file to be read": data, "the model": model}, written.overwrite)
    content, console = open_model(model), output()
    print_notes(console, content.notices)
    found = monitor_file(content, data, table.character)
    drift, trained = found.drift, found.n_trained
    against = "" if trained is None else f", against {trained:,} of training"
    name = data.name if isinstance(data, Path) else str(data)
    console.print(f"{name}: {counted(found.seen.n_rows, 'row')}{against}", style="bold")
    _print_columns(console, drift)
    print_drift(console, found.seen, drift)
    written.give(found.as_plain_data())
    if strict and drift.is_far:
        raise typer.Exit(MOVED_FAR)


def _print_columns(console: Console, drift: "Drift") -> None:
    """Print the columns, those that moved most first, and the scores."""
    table, is_wide = new_table(), console.width >= NARROW
    table.add_column("Column", overflow="fold")
    table.add_column("Verdict")
    add_numbers(table, "PSI", "Empty", "Empty before")
    add_numbers(table, *(["New values"] if is_wide else []))
    scores = [] if drift.scores is None else [drift.scores]
    for each in (*drift.compared[:_MOST_LISTED], *scores):
        name = "(scores)" if each is drift.scores else each.name
        cells = [name, each.verdict or "not known", *_numbers(each)]
        style = "bold" if each.is_far else ""
        table.add_row(*map(Text, cells[: len(table.columns)]), style=style)
    console.print(table)
    if more := len(drift.compared) - _MOST_LISTED:
        print_notes(console, [f"{more} more columns are not listed."] if more > 0 else [])


def _numbers(column: "ColumnDrift") -> list[str]:
    index = column.stability_index
    shares = [column.missing_now, column.missing_before, column.outside]
    return ["" if index is None else f"{index:.2f}"] + [
        "" if share is None or column.is_absent else f"{share:.1%}" for share in shares
    ]
