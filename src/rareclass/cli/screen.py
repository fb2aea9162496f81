"""Printing that several commands share: tables that fit narrow screens, plain text in a pipe."""

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, repeat
from pathlib import Path
from shlex import quote, split
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rareclass.errors import counted, first_names
from rareclass.table_block import TableBlock, are_numbers

if TYPE_CHECKING:
    from rareclass.decide.chosen_threshold import ChosenThreshold
    from rareclass.metrics import Interval
    from rareclass.model.drift import Drift
    from rareclass.model.facts import CombinationFacts, LeaderboardRow, RankingEstimate
    from rareclass.tables.columns import Column

WIDE = 100
_MOST_NAMED = 5
# Rows of a table on the screen; files and pages have all of them.
_MOST_ROWS = 12
# Least widths of a column with the names of rows, and of other words that may take several lines.
_LEAST_NAME, _LEAST_FOLDED = 14, 8
# Difference of two shares of rare rows that is rounding.
_SAME_SHARE = 1e-9
_is_quiet = False


def be_quiet(is_quiet: bool) -> None:
    """Let commands print nothing but faults from now on, or again what they have to say."""
    from rareclass.machine import hush

    global _is_quiet
    _is_quiet = is_quiet
    hush(is_quiet)


def output() -> Console:
    """Return the console on standard output."""
    # Names of files, columns and labels are shown as they are: "[b]" and ":x:" mean nothing.
    return Console(highlight=False, markup=False, emoji=False, quiet=_is_quiet)


def new_table(show_header: bool = True) -> Table:
    """Return an empty table without lines."""
    look: dict[str, Any] = {"box": None, "header_style": "bold", "pad_edge": False}
    return Table(**look, padding=(0, 2, 0, 0), show_header=show_header)


def print_table(console: Console, *cells: Any, **options: Any) -> None:
    """Print a table that fits the screen."""
    console.print(fitted_table(console, *cells, **options))


def print_block(
    console: Console,
    block: TableBlock,
    most: int = _MOST_ROWS,
    bounds_below: bool = False,
    **options: Any,
) -> None:
    """Print the first rows under their title, over the note; bounds may stand below values."""
    rows = block.rows[:most]
    if bounds_below:
        rows = tuple(
            (name, *(each.replace(" (", "\n(") for each in cells)) for name, *cells in rows
        )
    if block.title:
        console.print(block.title, style="bold")
    if rows:
        print_table(console, block.heads, rows, **options)
    if note := block.shortened(most).note:
        more = " --json FILE has them all." if len(rows) < len(block.rows) else ""
        console.print(note + more, style="dim")


def fitted_table(
    console: Console,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    spare: Sequence[str] = (),
    folded: Collection[str] = (),
    styles: Sequence[str] = (),
) -> Table:
    """Return cells under their heads: the names of rows first, numbers to the right.

    Names of rows and the columns `folded` take several lines where they must. Of columns for which
    the screen has no room the `spare` ones are left out, in that order, then the last first.
    """
    cells = {head: each for head, *each in zip(heads, *rows, strict=True)}
    least = {head: max(map(_longest_line, (head, *each))) for head, each in cells.items()}
    for head in (heads[0], *folded):
        least[head] = min(least[head], _LEAST_NAME if head == heads[0] else _LEAST_FOLDED)
    for head in (*spare, *heads[:1:-1]):
        if sum(least.values()) + 2 * len(least) - 2 > console.width:
            least.pop(head, None)
    table = new_table()
    for head in least:
        if head == heads[0] or head in folded:
            table.add_column(head, overflow="fold")  # one of a least width may push others out
        else:
            is_number = are_numbers(cells[head]) and " " not in "".join(cells[head])
            table.add_column(head, justify="right" if is_number else "left", no_wrap=True)
    lines = zip(*(cells[head] for head in least), strict=True)
    for line, style in zip(lines, chain(styles, repeat("")), strict=False):
        table.add_row(*map(Text, line), style=style)
    return table


def _longest_line(cell: str) -> int:
    return max(map(cell_len, cell.split("\n")))


def print_fault(message: str, remedy: str) -> None:
    """Print what is wrong and what to do on standard error."""
    console = Console(stderr=True, highlight=False)
    for part in (Text.assemble(("Error: ", "bold red"), (message, "red")), Text(remedy)):
        if part:
            # A path longer than the line is left whole: it is there to be copied.
            is_long = max(map(len, part.plain.split()), default=0) >= console.width
            console.print(part, soft_wrap=is_long)


def print_notes(console: Console, *notes: str) -> None:
    """Print what the user should know."""
    for note in notes:
        console.print(Text.assemble(("Note: ", "yellow"), note))


def print_command(console: Console, label: str, command: str) -> None:
    """Print a command to type next; a shell takes it on several lines as on one."""
    if label:
        console.print(label)
    for line in folded_command(command, console.width - 2):
        console.print(f"  {line}", style="bold", soft_wrap=True)


def folded_command(command: str, width: int) -> list[str]:
    r"""Return the lines of a command, each but the last with a backslash at its end.

    >>> folded_command("rareclass fit a.csv --target fraud --out a.rareclass", 36)
    ['rareclass fit a.csv --target fraud \\', '  --out a.rareclass']
    """
    parts: list[str] = []  # an option with its values
    for word in map(quote, split(command)):
        if parts and not word.startswith("-"):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    lines = [parts[0]]
    for part in parts[1:]:
        if len(f"{lines[-1]} {part} \\") <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(f"  {part}")
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def print_threshold(
    console: Console,
    chosen: "ChosenThreshold",
    of_classes: dict[str, float],
    rare_class: str | None = None,
) -> None:
    """Print a threshold, its rule, and what it does on held-out rows.

    `of_classes` are those of several rare classes. `rare_class` names the one that was chosen, or
    "all"; None is the one of any rare class.
    """
    from rareclass.model.facts import class_thresholds_text
    from rareclass.model.threshold import EVERY_CLASS

    what, called = "rows that score more", "rare"
    if rare_class is not None:
        what, called = f"rows with a greater probability of {rare_class}", rare_class
    line = f"Threshold {chosen.threshold:.4g}: {what} are called {called}"
    if rare_class == EVERY_CLASS:
        called, line = "any class", class_thresholds_text(of_classes)
    console.print(line)
    console.print(f"  Rule: {chosen.rule_text()}")
    share = f" ({chosen.alerts / chosen.rows:.2%})" if chosen.rows else ""
    console.print(f"  Called {called}: {chosen.alerts:,.0f} of {chosen.rows:,.0f} rows{share}")
    there = ""
    if chosen.rows and abs(chosen.prevalence - chosen.n_rare / chosen.rows) > _SAME_SHARE:
        there = f", where {chosen.prevalence:.3g} of the rows are rare"
    for name, each in (("Precision", chosen.precision), ("Recall", chosen.recall)):
        console.print(f"  {name:<9} {_share_text(each, chosen)}{there}")
        there = ""
    if chosen.budget is not None:
        console.print(f"  Alert budget: {chosen.budget.sentence()}")
    if rare_class is None and of_classes:
        console.print(f"  {class_thresholds_text(of_classes)}")
    if caveat := chosen.caveat():
        remedy = ""
        if not chosen.met:
            weaker = "" if chosen.confidence is None else ", a smaller --confidence"
            remedy = f" To meet it, give a weaker rule{weaker} or more rows."
        print_notes(console, caveat + remedy)


def _share_text(share: "Interval", chosen: "ChosenThreshold") -> str:
    """Return a share with its interval; a precision of no row, or of rows unchecked, has none."""
    if math.isnan(share.value):
        return "unknown" if chosen.alerts else "no row is called"
    if share.low == share.high:
        return f"{share.value:.3f} (exact)"
    return f"{share.value:.3f} ({chosen.level:.0%} interval {share.bounds_text()})"


def print_columns(console: Console, columns: "Sequence[Column]", most: int) -> None:
    """Print a table of what each column holds and how it is encoded."""
    from rareclass.model.columns import columns_block

    block = columns_block(columns)
    styles = ["" if column.is_used else "dim" for column in columns]
    folded = ("Type", "Treatment")
    print_block(console, block, most, spare=block.heads[2:4], folded=folded, styles=styles)


def print_estimate(console: Console, estimate: "RankingEstimate") -> None:
    """Print measures with their intervals."""
    for block in estimate.blocks():
        print_block(console, block)


def print_leaderboard(
    console: Console, method: "CombinationFacts", estimate: "RankingEstimate | None"
) -> None:
    """Print what members reach on rows that their folds held out, those in the model first."""
    every = [*method.leaderboard, *method.also_tried]
    weights = weights_of_members(every)
    console.print("Members, on their held-out folds", style="bold")
    lines, styles = [], []
    for name, weight in weights.items():
        own = [row for row in every if row.member == name]
        best = own[0]  # settings are in order of merit
        low, high = map(measure_text, (best.average_precision_low, best.average_precision_high))
        used = [row.setting for row in own if row.weight] or [best.setting]
        lines.append(
            (
                name,
                f"{weight:.2f}" if weight else "-",
                measure_text(best.roc_auc),
                measure_text(best.average_precision),
                low if low == "-" else f"{low} to {high}",
                f"{sum(row.seconds for row in own):.1f}",
                ", ".join(used),
            )
        )
        styles.append("" if weight else "dim")
    heads = ("Member", "Weight", "AUC", "AP", "95% interval", "Seconds", "Settings")
    print_table(console, heads, lines, folded=("Settings",), styles=styles)
    if estimate is not None and _seems_worse(estimate, every):
        print_notes(
            console,
            "a member above can seem better than the combination: its figures are of its best "
            "setting, on the rows that chose the setting. The combination is measured on rows "
            "that it did not learn from.",
        )


def weights_of_members(rows: Sequence["LeaderboardRow"]) -> dict[str, float]:
    """Return the weight of each member, all settings together; the largest first."""
    weights = dict.fromkeys((row.member for row in rows), 0.0)
    for row in rows:
        weights[row.member] += row.weight
    return dict(sorted(weights.items(), key=lambda each: -each[1]))


def _seems_worse(estimate: "RankingEstimate", rows: Sequence["LeaderboardRow"]) -> bool:
    """Say whether the combination's estimate is below a member's, of what the table shows."""
    shown = {"AUC": "roc_auc", "average precision": "average_precision"}
    return any(
        round(vars(row)[key] or 0.0, 3) > round(estimate.measures[name].value, 3)
        for name, key in shown.items()
        for row in rows
        if name in estimate.measures
    )


def measure_text(value: float | None) -> str:
    """Three decimals; a dash for none, as where the only rare row is learned from."""
    return "-" if value is None or math.isnan(value) else f"{value:.3f}"


def print_drift(console: Console, drift: "Drift") -> None:
    """Print what a file held that the model did not know, and whether alerts are as frequent."""
    from rareclass.model.drift import FEW_ROWS

    seen, notes = drift.seen, []
    for counts, words in (
        (seen.unseen_values, "values not seen in training"),
        (seen.outside, "values outside the training range, clipped to it"),
        (seen.columns.emptied(), "empty cells in columns that had none in training"),
    ):
        if counts:
            of_rows = [f"{k} ({n:,}, {_share(n / seen.n_rows)})" for k, n in counts.most_common()]
            notes.append(f"{words}: {first_names(of_rows, _MOST_NAMED)}.")
    notes += _moved(drift)
    if seen.extra_columns:
        listed = first_names(seen.extra_columns, 8)
        notes.append(f"columns that were not in training were ignored: {listed}.")
    if drift.alerts is not None and (seen.n_rows >= FEW_ROWS or drift.alerts.differs):
        found, expected = drift.alerts.found, drift.alerts.expected
        console.print(
            f"Alerts per 10,000 rows: {_in_10_000(found)}; on held-out rows: {_in_10_000(expected)}"
        )
        if drift.alerts.differs:
            change = "more" if found.value > expected.value else "fewer"
            notes.append(
                f"significantly {change} alerts than on held-out rows: the rows have changed, or "
                "the share of rare rows has."
            )
    print_notes(console, *notes)


def _moved(drift: "Drift") -> list[str]:
    """Notes on the columns that are absent, that have moved far, and that have moved."""
    notes = []
    for verdict, words in (
        ("absent", "columns of training that the file lacks"),
        ("moved far", "distribution moved far from training"),
        ("moved", "distribution moved from training"),
    ):
        moved = [each for each in drift.moved if each.verdict == verdict]
        if moved:
            names = [
                each.name if each.is_absent else f"{each.name} ({each.words})"
                for each in moved[:_MOST_NAMED]
            ]
            more = len(moved) - len(names)
            tail = f" and {counted(more, 'more column')}" if more else ""
            notes.append(f"{words}: {'; '.join(names)}{tail}.")
    return notes


def _in_10_000(share: "Interval") -> str:
    """Number of rows in 10,000, with the bounds."""
    return share._replace(**{name: 1e4 * each for name, each in share._asdict().items()}).amounts()


def _share(share: float) -> str:
    """A share that is not nothing, in percent.

    >>> _share(0.0512), _share(0.00001)
    ('5.1%', '<0.1%')
    """
    return f"{share:.1%}" if share >= 0.001 else "<0.1%"


def file_text(path: Path) -> str:
    """Return a path with the size of the file."""
    from rareclass.machine import size_text

    return f"{path} ({size_text(path.stat().st_size)})"
