"""Output of ``rareclass hunt`` on the terminal."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rareclass.cli.screen import file_text, print_notes
from rareclass.errors import counted
from rareclass.files import Location

if TYPE_CHECKING:
    from rareclass.hunt.files import TypicalValue
    from rareclass.hunt.hunting import ChosenParameters, Hunt
    from rareclass.hunt.table import HuntTable
    from rareclass.hyperball.description import Description

_MOST_FEATURES = 10
_MOST_LEFT_OUT = 8
# On a terminal narrower than this names are cut shorter.
_NARROW = 72


class _Line(NamedTuple):
    """A column, its range or share on both sides, and their overlap."""

    name: str
    inside: str
    outside: str
    overlap: float


def print_table_read(console: Console, path: Location, target: str, table: "HuntTable") -> None:
    """Print the size of the file and the counts of its labels."""
    labels = table.labels
    used = sum(column.is_used for column in table.columns)
    counts = f"{counted(len(labels.y), 'row')}, {counted(used, 'column')} to compare them by"
    # As Text, for brackets in a name are no markup.
    console.print(Text(f"{path.name}: {counts}", style="bold"))
    rare = ", ".join(f"{value} ({count:,})" for value, count in labels.n_rare.items())
    ignored = f", {labels.n_ignored:,} of them by --ignore" if labels.n_ignored else ""
    console.print(
        f"Column {target}: rare {rare}; cleared {labels.n_cleared:,}; unlabelled "
        f"{labels.n_unlabelled:,}{ignored}",
        markup=False,
    )
    left_out = [column for column in table.columns if not column.is_used]
    if left_out:
        named = [
            f"{column.name} ({column.treatment.removeprefix('dropped: ')})"
            for column in left_out[:_MOST_LEFT_OUT]
        ]
        n_more = len(left_out) - len(named)
        more = f" and {n_more} more" if n_more else ""
        console.print(f"Left out: {', '.join(named)}{more}", markup=False)


def print_hunt(
    console: Console,
    hunt: "Hunt",
    description: "Description",
    values: Sequence["TypicalValue"],
) -> None:
    """Print the chosen parameters, the balls, and what is typical of their rows."""
    console.print()
    _print_chosen(console, hunt)
    _print_expected(console, hunt)
    for number, ball in enumerate(hunt.balls):
        console.print()
        rows = counted(ball.n_found, "unlabelled row lies", "unlabelled rows lie")
        console.print(Text(f"Ball of {ball.name}: {rows} in it", style="bold"))
        if hunt.chosen.C2 > 0.0:
            console.print(
                f"The {counted(ball.n_weighed, 'nearest unlabelled row')} had a say in its shape."
            )
        lines = [_of_number(row) for row in description.table if row["ball"] == number]
        lines += [_of_category(one) for one in values if one.ball == number]
        if lines:
            _print_typical(console, sorted(lines, key=lambda line: line.overlap))
    _print_meetings(console, hunt, description)
    n_out = len(hunt.ranking.rows) - int(hunt.ranking.found.sum())
    if n_out:
        console.print(f"\nWritten as well: the {counted(n_out, 'nearest row')} outside.")
    if hunt.notes:
        console.print()
        print_notes(console, hunt.notes)


def print_files(console: Console, files: Iterable[Path]) -> None:
    """Print the files that were written."""
    console.print("\nSaved", style="bold")
    for path in files:
        console.print(file_text(path), markup=False, soft_wrap=True)


def _print_chosen(console: Console, hunt: "Hunt") -> None:
    estimate, chosen = hunt.estimate, hunt.chosen
    if estimate is not None:
        console.print(f"Held out in turn: F1 {estimate.f1:.2f}. {estimate.words}", markup=False)
    is_round, several = chosen.kernel == "none", chosen.n_balls != 1
    shape = "a round ball" if is_round else f"{chosen.kernel} kernel"
    if several and is_round:
        shape = counted(len(hunt.balls), "round ball")
    elif several:
        shape = f"{counted(len(hunt.balls), 'ball')}, {shape}"
    width = "" if chosen.width is None else f", width {chosen.width:.3g}"
    console.print(
        f"Shape: {shape}, C1 = {chosen.C1:.3g}, C2 = {chosen.C2:.3g}{width} "
        f"({_how_chosen(chosen)})",
        markup=False,
    )


def _print_expected(console: Console, hunt: "Hunt") -> None:
    """Print the expected share of cases, for a reader who stops after the first rows."""
    shares = [
        f"{share:.0%} of {'all' if k == len(hunt.ranking.rows) else 'the first'} {k:,}"
        for k, share in hunt.expected.items()
    ]
    if not shares:
        return
    # Where the share is not known, how many cases there are is read from the surest rows.
    given = "If the surest are cases, so" if hunt.model.rare_share is None else "Cases"
    console.print(
        f"Surest rows first (column sure). {given} are about {', '.join(shares)}", markup=False
    )


def _how_chosen(chosen: "ChosenParameters") -> str:
    """Say which of prices and width were given, and the source of the others."""
    held_out = chosen.by == "cross-validation"
    others = "chosen by it" if held_out else "defaults, not chosen on your rows"
    given = chosen.given
    if not given:
        return others
    named = {"C1", "C2"} | ({"width"} if chosen.width is not None else set())
    return "as given" if named <= set(given) else f"{' and '.join(given)} as given, else {others}"


def _of_number(row: dict) -> _Line:
    return _Line(
        row["feature"],
        _range(row["inside_low"], row["inside_high"]),
        _range(row["outside_low"], row["outside_high"]),
        row["overlap"],
    )


def _of_category(one: "TypicalValue") -> _Line:
    overlap = 1.0 - max(one.inside - one.outside, 0.0)
    return _Line(f"{one.column} = {one.value}", f"{one.inside:.0%}", f"{one.outside:.0%}", overlap)


def _print_typical(console: Console, lines: Sequence[_Line]) -> None:
    """Print the columns that set the inside apart most."""
    wide = console.width >= _NARROW
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("Typical", no_wrap=True, max_width=30 if wide else 22, overflow="ellipsis")
    table.add_column("inside", no_wrap=True)
    table.add_column("outside", no_wrap=True)
    for line in lines[:_MOST_FEATURES]:
        table.add_row(*(Text(cell) for cell in (line.name, line.inside, line.outside)))
    console.print(table)
    n_more = len(lines) - _MOST_FEATURES
    more = (
        f"; {counted(n_more, 'more column is', 'more columns are')} in description.csv"
        if n_more > 0
        else ""
    )
    console.print(f"(9 of 10 rows have a number in its range{more})", style="dim")


def _range(low: float, high: float) -> str:
    if low != low or high != high:
        return "no rows"
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _print_meetings(console: Console, hunt: "Hunt", description: "Description") -> None:
    for pair in description.overlaps:
        first, second = hunt.balls[pair.first].name, hunt.balls[pair.second].name
        rows = counted(pair.n_rows, "row lies", "rows lie")
        console.print(
            f"\nThe balls of {first} and {second} meet: {rows} in both ({pair.share:.0%} of the "
            "smaller).",
            markup=False,
        )
