"""What ``rareclass compare`` prints: standings by each measure, and the leaderboard."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rareclass.compare import BesideTheBest, Comparison, Standing, Standings
    from rareclass.compare.leaderboard import Leaderboard
    from rareclass.compare.score_files import ComparedFiles

_WIDE = 76


def print_comparison(console: Console, comparison: "Comparison") -> None:
    """Print a table a measure."""
    for found in comparison.measures:
        console.print()
        _print_standings(console, found)
    console.print()
    if any(len(found.standings) > 1 for found in comparison.measures):
        console.print(
            f"Intervals at {comparison.level:.0%}. Paired tests on the same rows, at "
            f"{1 - comparison.level:.0%} after Holm's correction over all pairs: rows that are "
            "hard for one ranking are hard for the other, so a test tells more than intervals do.",
            style="dim",
        )


def print_by_value(console: Console, column: str, found: "ComparedFiles") -> None:
    """Print a sentence a measure for the rows of each value alone."""
    for value, comparison in found.by.items():
        console.print()
        console.print(Text(f"{column} = {value}: {comparison.basis()}", style="bold"))
        for standings in comparison.measures:
            best = standings.best
            shown = f"{best.value:.3f}"
            beside = f"{shown} ({best.low:.3f} to {best.high:.3f})"
            console.print(Text(_sentence(standings).replace(shown, beside, 1)))
    for value, why in found.not_judged.items():
        console.print(Text(f"{column} = {value}: not judged, {why}", style="dim"))
    if len(found.by) > 1:
        said = "The tests of each value are its own: many values find differences by chance."
        console.print(Text(said, style="dim"))


def _print_standings(console: Console, found: "Standings") -> None:
    wide = console.width >= _WIDE
    alone = len(found.standings) == 1
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("Ranking", overflow="fold", min_width=8)
    table.add_column("Value", justify="right", no_wrap=True)
    table.add_column("Interval", no_wrap=True)
    if wide and not alone:
        table.add_column("Less the best", no_wrap=True)
        table.add_column("p", justify="right", no_wrap=True)
    if not alone:
        table.add_column("")
    for standing in found.standings:
        table.add_row(*_cells(standing, wide and not alone, alone))
    console.print(Text(found.words[0].upper() + found.words[1:], style="bold"))
    console.print(table)


def _cells(standing: "Standing", wide: bool, alone: bool) -> list[Text]:
    beside = standing.beside_the_best
    cells = [standing.name, f"{standing.value:.3f}", f"{standing.low:.3f} to {standing.high:.3f}"]
    if wide:
        shown = ("", "") if beside is None else (_reach(beside), p_text(beside.p_adjusted))
        cells += shown
    if not alone:
        cells.append(standing.verdict)
    return [Text(cell) for cell in cells]


def _reach(beside: "BesideTheBest") -> str:
    return f"{beside.low:+.3f} to {beside.high:+.3f}"


def p_text(p_value: float) -> str:
    """A p-value in three places.

    >>> p_text(0.0412), p_text(1e-12)
    ('0.041', '<0.001')
    """
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def print_leaderboard(console: Console, board: "Leaderboard", by_day: bool = False) -> None:
    """Print methods in order of merit, what the tests say, and why some have no place.

    `by_day`: rows of a day moved together.
    """
    wide = console.width >= _WIDE
    comparison = board.found.comparison
    assert comparison is not None
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("Method", overflow="fold", min_width=8)
    table.add_column("AP", justify="right", no_wrap=True)
    if wide:
        table.add_column("Interval", no_wrap=True)
    table.add_column("", overflow="fold")
    if wide:
        table.add_column("AUC", justify="right", no_wrap=True)
    table.add_column("Seconds", justify="right", no_wrap=True)
    if wide:
        table.add_column("MiB", justify="right", no_wrap=True)
    for run in board.runs:
        if not run.is_judged:
            continue
        standing = board.ordered_by.of(run.name)
        cells = [run.name, f"{standing.value:.3f}"]
        cells += [f"{standing.low:.3f} to {standing.high:.3f}"] if wide else []
        cells += [standing.verdict]
        cells += [f"{comparison.by('roc_auc').of(run.name).value:.3f}"] if wide else []
        cells += [f"{run.seconds:.1f}"]
        cells += ["" if run.memory is None else f"{run.memory / 2**20:,.0f}"] if wide else []
        table.add_row(*map(Text, cells))
    console.print(Text("By average precision", style="bold"))
    console.print(table)
    for run in board.runs:
        if not run.is_judged:
            console.print(Text(run.why_not(), style="dim"))
    console.print()
    for standings in comparison.measures:
        console.print(Text(_sentence(standings)))
    if len(comparison.measures[0].standings) > 1:
        console.print(
            f"Paired tests at {1 - comparison.level:.0%}, after Holm's correction over all pairs, "
            "that allow for what other training rows would have changed. Intervals are of the "
            "models of these folds" + (", and rows of one day count as one." if by_day else "."),
            style="dim",
        )


def _sentence(standings: "Standings") -> str:
    said = standings.says()
    return said[0].upper() + said[1:]
