"""What in a file is unlike training, as notes."""

from typing import TYPE_CHECKING

import typer
from rich.console import Console

from rareclass.cli.screen import print_notes
from rareclass.errors import counted

if TYPE_CHECKING:
    from collections import Counter

    from rareclass.metrics import Interval
    from rareclass.model.drift import AlertRate, Drift, InputSummary

STRICT_OPTION = typer.Option(
    "--strict",
    help="Refuse rows unlike those of training: more than 10 % of a column's cells unseen, out of "
    "range or empty where none was, or alerts twice or half as frequent as held out, beyond "
    "chance.",
)
_MOST_NAMED = 5


def print_drift(console: Console, seen: "InputSummary", drift: "Drift") -> None:
    """Print what the file held that the model did not know, and whether alerts are as frequent."""
    notes = []
    for name, count in seen.unseen_values.most_common(10):
        cells = "cell holds" if count == 1 else "cells hold"
        share = _share(count / seen.n_rows)
        notes.append(f"column {name!r}: {count:,} {cells} values not seen in training ({share}).")
    for counts, words in (
        (seen.outside, "cells outside the range of training, taken as its nearest"),
        (seen.emptied, "empty cells in columns that had none in training"),
    ):
        if counts:
            notes.append(f"{words}: {_listed(counts, seen.n_rows)}.")
    if seen.extra_columns:
        listed = ", ".join(seen.extra_columns[:8])
        more = ", ..." if len(seen.extra_columns) > 8 else ""
        notes.append(f"columns that the model does not know were left out: {listed}{more}.")
    if drift.alerts is not None:
        console.print(_alerts(drift.alerts))
        if drift.alerts.differs:
            change = "more" if drift.alerts.found.value > drift.alerts.expected.value else "fewer"
            notes.append(
                f"{change} alerts than chance explains: the rows are others than those held out, "
                "or rare ones have another share."
            )
    print_notes(console, notes)


def _listed(cells: "Counter[str]", n_rows: int) -> str:
    """The columns with most such cells, and how many they are."""
    worst = cells.most_common(_MOST_NAMED)
    listed = ", ".join(f"{name} ({count:,}, {_share(count / n_rows)})" for name, count in worst)
    n_more = len(cells) - len(worst)
    return listed + (f" and {counted(n_more, 'more column')}" if n_more > 0 else "")


def _alerts(rate: "AlertRate") -> str:
    found, held_out = (_in_10_000(each) for each in (rate.found, rate.expected))
    return f"Alerts in 10,000 rows: {found}; held out: {held_out}"


def _in_10_000(share: "Interval") -> str:
    value, low, high = (_number(1e4 * each) for each in share)
    return f"{value} ({low} to {high})"


def _number(value: float) -> str:
    """A number of rows to three digits.

    >>> _number(1234.5), _number(12.345), _number(0.01234)
    ('1,234', '12.3', '0.0123')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _share(share: float) -> str:
    """A share that is not nothing, in percent.

    >>> _share(0.0512), _share(0.00001)
    ('5.1%', '<0.1%')
    """
    return f"{share:.1%}" if share >= 0.001 else "<0.1%"
