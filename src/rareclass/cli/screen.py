"""What the verbs print: tables that fit narrow screens, plain text in a pipe."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rareclass.decide.threshold_rule import ChosenThreshold
    from rareclass.fit.baselines import Baseline
    from rareclass.model.facts import LeaderboardRow, RankingEstimate
    from rareclass.model.target import Confusion
    from rareclass.tables.columns import Column

MOST_COLUMNS_SHOWN = 40
_NARROW, _WIDE = 72, 100
# Least width for the names of rows, which may be folded.
_LEAST_CORNER = 14


_is_quiet = False


def be_quiet(is_quiet: bool) -> None:
    """Let verbs print nothing but faults from now on, or again what they have to say."""
    from rareclass.machine import hush

    global _is_quiet
    _is_quiet = is_quiet
    hush(is_quiet)


def output() -> Console:
    """Return the console on standard output."""
    # Brackets in the name of a file or a label are no markup.
    return Console(highlight=False, soft_wrap=False, markup=False, quiet=_is_quiet)


def print_fault(message: str, remedy: str) -> None:
    """Print what is wrong and what to do on standard error."""
    console = Console(stderr=True, highlight=False)
    for part in (Text.assemble(("Error: ", "bold red"), (message, "red")), Text(remedy)):
        if part:
            # A path longer than the line is left whole: it is there to be copied.
            is_long = max(map(len, part.plain.split()), default=0) >= console.width
            console.print(part, soft_wrap=is_long)


def print_notes(console: Console, notes: Iterable[str]) -> None:
    """Print what the user should know."""
    for note in notes:
        console.print(Text.assemble(("Note: ", "yellow"), note))


def print_command(console: Console, label: str, command: str) -> None:
    """Print a command to type next, never broken over lines."""
    console.print(Text(f"{label} "))
    console.print(Text(f"  {command}", style="bold"), soft_wrap=True)


def print_baselines(console: Console, found: Sequence["Baseline"]) -> None:
    """Print what plain methods reach on the same rows, a line each."""
    console.print("Beside it, with their defaults, on the same rows:")
    for each in found:
        console.print(
            f"  {each.name}: AUC {each.auc:.3f}, average precision {each.average_precision:.3f}, "
            f"{each.seconds:.1f} s"
        )


def print_threshold(console: Console, chosen: "ChosenThreshold") -> None:
    """Print what a threshold keeps, or how far it is from that."""
    sure = "" if chosen.confidence is None else f", at confidence {chosen.confidence:g}"
    if chosen.met and chosen.confidence is not None and not chosen.guaranteed:
        sure = f", at confidence {chosen.confidence:g} (about)"
    console.print(f"Threshold {chosen.threshold:.4g} for {chosen.rule}{sure}")
    if not chosen.met:
        best = f"Not met: these rows vouch for {chosen.bound:.4g} at best"
        remedy = "Ask for less, give more rows, or a smaller --confidence."
        if chosen.confidence is None:
            best, remedy = f"Not met: {chosen.bound:.4g} is the best here", "Ask for less."
        print_notes(console, [f"{best}, and the threshold is the one that does. {remedy}"])


def print_columns(console: Console, columns: Sequence["Column"]) -> None:
    """Print a table of what each column holds and what is done with it."""
    shown, rest = list(columns), []
    if len(shown) > MOST_COLUMNS_SHOWN + 3:
        # Plain numbers say the least: they are the ones summed up.
        plain = [column for column in columns if column.kind == "number" and not column.n_missing]
        telling = [column for column in columns if column not in plain]
        chosen = set(map(id, (telling + plain)[:MOST_COLUMNS_SHOWN]))
        shown = [column for column in columns if id(column) in chosen]
        rest = [column for column in columns if id(column) not in chosen]
    wide = console.width >= _NARROW
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    longest = 28 if wide else 20
    table.add_column("Column", no_wrap=True, max_width=longest, overflow="ellipsis")
    table.add_column("Holds", overflow="fold", min_width=8)
    if wide:
        table.add_column("Empty", justify="right", no_wrap=True)
        table.add_column("Distinct", justify="right", no_wrap=True)
    table.add_column("What is done with it", overflow="fold")
    for column in shown:
        style = "" if column.is_used else "dim"
        counts = [f"{column.n_missing:,}" if column.n_missing else "", f"{column.n_distinct:,}"]
        cells = [column.name, column.kind, *(counts if wide else []), column.treatment]
        table.add_row(*(Text(cell, style=style) for cell in cells))
    console.print(table)
    if rest:
        kinds = Counter(column.kind for column in rest)
        listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        console.print(f"and {len(rest)} more like these ({listed})")


def print_estimate(console: Console, estimate: "RankingEstimate") -> None:
    """Print measures with their intervals."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("Measure")
    table.add_column("Value", justify="right", no_wrap=True)
    table.add_column("95 % interval", no_wrap=True)
    for measure in estimate.measures:
        table.add_row(
            measure.name, f"{measure.value:.3f}", f"{measure.low:.3f} to {measure.high:.3f}"
        )
    console.print(table)


def print_leaderboard(
    console: Console, rows: Sequence["LeaderboardRow"], also_tried: Sequence["LeaderboardRow"]
) -> None:
    """Print what members reach on rows that their folds held out, those in the model first.

    A line a member: the weight and the seconds of all its settings, the measures of the best.
    """
    members: dict[str, list[LeaderboardRow]] = {}
    for row in (*rows, *also_tried):
        members.setdefault(row.member, []).append(row)
    weights = {name: sum(row.weight for row in own) for name, own in members.items()}
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("Member", overflow="fold")
    for name in ("Weight", "AUC", "AP"):
        table.add_column(name, justify="right", no_wrap=True)
    if console.width >= _NARROW:
        table.add_column("95 % interval", no_wrap=True)
        table.add_column("Seconds", justify="right", no_wrap=True)
    if console.width >= _WIDE:
        table.add_column("Settings", overflow="fold")
    for name in sorted(members, key=lambda name: -weights[name]):
        own, weight = members[name], weights[name]
        table.add_row(*_leaderboard_cells(console, own, weight), style="" if weight else "dim")
    console.print(table)


def _leaderboard_cells(
    console: Console, own: Sequence["LeaderboardRow"], weight: float
) -> list[Text | str]:
    """The cells of a member, whose settings are in order of merit."""
    best = own[0]
    cells: list[Text | str] = [
        Text(best.member),
        f"{weight:.2f}" if weight else "-",
        _measure(best.roc_auc),
        _measure(best.average_precision),
    ]
    if console.width >= _NARROW:
        low, high = best.average_precision_low, best.average_precision_high
        between = "-" if _is_none(low) else f"{low:.3f} to {high:.3f}"
        cells += [between, f"{sum(row.seconds for row in own):.1f}"]
    if console.width >= _WIDE:
        used = [row.setting for row in own if row.weight] or [best.setting]
        cells.append(Text(", ".join(used)))
    return cells


def _measure(value: float | None) -> str:
    return "-" if _is_none(value) else f"{value:.3f}"


def _is_none(value: float | None) -> bool:
    """Say whether there is no such measure, as where the only rare row is learned from."""
    return value is None or math.isnan(value)


def print_confusion(console: Console, confusion: "Confusion") -> None:
    """Print rows by what they are and what they are called; where there is no room, the gist."""
    console.print(confusion.title, style="bold")
    names = confusion.called_names
    long = [f"called {name}" for name in names]
    for corner, heads in (("", long), ("called", names)):
        if _LEAST_CORNER + sum(cell_len(head) + 2 for head in heads) <= console.width:
            _print_counts(console, confusion, corner, heads)
            break
    for line in confusion.lines:
        console.print(line)


def _print_counts(
    console: Console, confusion: "Confusion", corner: str, heads: Sequence[str]
) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(corner)
    for head in heads:
        table.add_column(Text(head), justify="right", no_wrap=True)
    for name, counts in zip(confusion.is_names, confusion.counts, strict=True):
        table.add_row(Text(f"is {name}"), *(f"{count:,.0f}" for count in counts))
    console.print(table)


def file_text(path: Path) -> str:
    """Return a path with the size of the file."""
    from rareclass.machine import size_text

    return f"{path} ({size_text(path.stat().st_size)})"
