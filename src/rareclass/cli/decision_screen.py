"""The table of decisions, and how good probabilities are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from rareclass.cli.screen import print_notes

if TYPE_CHECKING:
    from rareclass.metrics import Interval
    from rareclass.model.evaluate import DecisionRow, ProbabilityQuality

# From here on a share and its interval stand on one line, and below there is no room for a third.
_WIDE, _NARROW = 100, 60


def print_decisions(console: Console, rows: Sequence["DecisionRow"]) -> None:
    """Print what comes of calling rows rare, with 95 % intervals; narrow screens lack the last."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    narrow = console.width < _NARROW
    table.add_column("Called rare")
    table.add_column("Rows", justify="right", no_wrap=True)
    heads = ["Precision", "Recall", "False-positive rate"]
    for head in heads[:2] if narrow else heads:
        table.add_column(head, no_wrap=True)
    digits = (2, 2, 2) if narrow else (3, 3, 4)
    for row in rows:
        name = "above threshold" if row.name == "threshold" and not narrow else row.name
        shares = (row.precision, row.recall, row.false_positive_rate)
        cells = [_cell(*each, console.width) for each in zip(shares, digits, strict=True)]
        table.add_row(name, f"{row.alerts:,}", *cells[: len(table.columns) - 2])
    console.print(table)


def _cell(share: "Interval", digits: int, width: int) -> str:
    if share.value != share.value:
        return "none called"
    value, low, high = (f"{each:.{digits}f}" for each in share)
    if width < _NARROW:
        return f"{value}\n{low} to {high}"
    return f"{value}{' ' if width >= _WIDE else chr(10)}({low} to {high})"


def print_probabilities(console: Console, quality: "ProbabilityQuality") -> None:
    """Print what probabilities come to, beside the true share for every row."""
    console.print(
        f"Probabilities: {quality.mean:.4f} on average; {quality.share:.4f} of the rows are rare"
    )
    console.print(
        f"Log loss {quality.log_loss:.4f} ({quality.log_loss_of_share:.4f} for that share in every "
        f"row), Brier score {quality.brier:.4f} ({quality.brier_of_share:.4f})"
    )
    if quality.log_loss > quality.log_loss_of_share:
        print_notes(
            console,
            [
                "log loss is larger than that of giving every row the true share: that share is "
                "not the one of training, or the rows are others."
            ],
        )
