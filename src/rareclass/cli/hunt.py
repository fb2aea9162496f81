"""``rareclass hunt``: from a few labelled rows to the unlabelled ones that belong with them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.cli.review import VerdictOptions, print_known
from rareclass.errors import counted, first_names
from rareclass.hunt import HuntSettings
from rareclass.parameters import opt
from rareclass.tables import ColumnSettings

if TYPE_CHECKING:
    from rareclass.files import Location
    from rareclass.hunt.files import Described
    from rareclass.hunt.hunting import ChosenParameters, Hunt, HuntTable

_MOST_LEFT_OUT = 8


@dataclass(frozen=True, kw_only=True)
class HuntOptions:
    """Options of ``rareclass hunt``."""

    given: str = cli.argument(
        "File or folder in which few rows have labels: CSV, JSON lines, Parquet; or a database.",
        "DATA",
    )
    target: str = opt("Column with the labels; empty where a row is unlabelled.", cli.REQUIRED)
    rare: tuple[str, ...] = opt(
        "Label of confirmed cases. Many times: one ball for each.", cli.REQUIRED
    )
    out: Path = opt("Folder to write.", cli.REQUIRED)
    cleared: tuple[str, ...] = opt("Label of rows that are not cases. Many times.", ())
    ignore: tuple[str, ...] = opt("Label to treat as unlabelled. Many times.", ())
    journal: Path | None = opt(
        "Journal of verdicts, as of rareclass review; the list is its next round.",
        names=("--journal", "-j"),
    )
    verdicts: VerdictOptions
    columns: ColumnSettings
    balls: HuntSettings
    written: cli.OutputOptions
    table: cli.TableOptions


@cli.command
def hunt(options: HuntOptions) -> None:
    """Find unlabelled rows of DATA that resemble a few confirmed cases.

    Writes the rows that are most likely cases, the columns that set them apart, and a picture. With
    --journal its verdicts count as labels.
    """
    from rareclass.files import being_written, check_not_inside
    from rareclass.hunt.files import SUMMARY, check_folder, describe_in_units, round_of, write_hunt
    from rareclass.hunt.hunting import HuntTable
    from rareclass.hunt.hunting import hunt as hunt_in
    from rareclass.machine import available_memory, track
    from rareclass.review.table import HUNT_OPTIONS, LabelRoles, open_journal, read_review_table

    target, out, journal = options.target, options.out, options.journal
    said, written = options.verdicts, options.written
    cli.on_this_machine(out, "--out")
    data = options.table.place(options.given, "DATA")
    settings = options.balls
    settings.check()
    check_not_inside(out, "--out", data)
    check_folder(out, written.overwrite)
    written.check({"the file to be read": data, "--out": out})
    roles = LabelRoles(options.rare, options.cleared)
    said.check(journal, out)
    console = screen.output()
    with being_written(out, f"--out {out}"):
        with track(f"Reading {data.name}"):
            rows = read_review_table(
                data,
                target,
                said.key,
                **vars(options.columns),
                ignored=options.ignore,
                text=options.table.text,
                memory=available_memory(),
                has_labels=journal is None,
                is_named_first=journal is not None and not journal.exists(),
            )
        kept = None
        if journal is not None:
            kept = open_journal(journal, rows, None, roles.rare, roles.cleared, HUNT_OPTIONS)
            said.read(console, kept, rows)
        read = HuntTable.of(rows, roles, kept)
        _print_read(console, data, target, read)
        outcome = hunt_in(read, settings)
        about: dict[str, Any] = {"data": str(data), "target": target, "labels": roles._asdict()}
        with track("Writing"):
            described = describe_in_units(read, outcome)
            about |= vars(options.columns)
            files = write_hunt(out, read, outcome, described, settings, about)
        if kept is not None:
            kept.add_round(round_of(read, outcome, len(kept.rounds) + 1, settings.seed))
        _print_hunt(console, outcome, described)
        console.print("\nSaved", style="bold")
        for path in files:
            console.print(screen.file_text(path), soft_wrap=True)
        if kept is not None:
            print_known(console, kept)
    written.give(json.loads((out / SUMMARY).read_text(encoding="utf-8")))


def _print_read(console: Console, path: "Location", target: str, table: "HuntTable") -> None:
    labels = table.labels
    counts = f"{counted(len(labels.code), 'row')}, {counted(len(table.rows.used), 'column')} used"
    console.print(f"{path.name}: {counts}", style="bold")
    rare = ", ".join(f"{value} ({count:,})" for value, count in labels.n_rare.items())
    ignored = f" ({table.rows.n_ignored:,} by --ignore)" if table.rows.n_ignored else ""
    console.print(
        f"Labels in {target}: rare {rare}, cleared {labels.n_cleared:,}, unlabelled "
        f"{len(labels.unlabelled):,}{ignored}"
    )
    left_out = [column for column in table.rows.columns if not column.is_used]
    if left_out:
        named = [f"{column.name} ({column.why_dropped})" for column in left_out]
        console.print(f"Not used: {first_names(named, _MOST_LEFT_OUT)}")


def _print_hunt(console: Console, hunt: "Hunt", described: "Described") -> None:
    """Print what to expect of the list, the balls, and what is typical of their rows."""
    from rareclass.hunt.files import typical_block

    console.print()
    _print_expected(console, hunt)
    console.print()
    _print_chosen(console, hunt)
    for ball in hunt.balls:
        console.print()
        rows = counted(ball.n_found, "unlabelled row")
        console.print(f"Ball of {ball.name}: {rows} inside", style="bold")
        if hunt.chosen.C2 > 0.0:
            console.print(
                f"Its shape also fits the {counted(ball.n_weighed, 'nearest unlabelled row')}."
            )
        typical = typical_block(described.lines, ball.name)
        if typical.rows:
            screen.print_block(console, typical)
    for pair in described.overlaps:
        first, second = hunt.balls[pair.first].name, hunt.balls[pair.second].name
        rows = counted(pair.n_rows, "row lies", "rows lie")
        console.print(
            f"\nThe balls of {first} and {second} overlap: {rows} in both ({pair.share:.0%} of "
            "the smaller)."
        )
    if hunt.notes:
        console.print()
        screen.print_notes(console, *hunt.notes)


def _print_chosen(console: Console, hunt: "Hunt") -> None:
    estimate, chosen = hunt.estimate, hunt.chosen
    if estimate is not None:
        console.print(f"Ball, cross-validated: F1 {estimate.f1:.2f}. {estimate.words}")
    is_round, several = chosen.kernel == "none", chosen.n_balls != 1
    shape = "a round ball" if is_round else f"{chosen.kernel} kernel"
    if several and is_round:
        shape = counted(len(hunt.balls), "round ball")
    elif several:
        shape = f"{counted(len(hunt.balls), 'ball')}, {shape}"
    width = "" if chosen.width is None else f", width {chosen.width:.3g}"
    console.print(
        f"Model: {shape}, C1 = {chosen.C1:.3g}, C2 = {chosen.C2:.3g}{width} ({_how_chosen(chosen)})"
    )


def _print_expected(console: Console, hunt: "Hunt") -> None:
    """Print the size of the list, and how many cases to expect among its first rows."""
    n_written, n_inside = len(hunt.ranking.rows), int(hunt.ranking.found.sum())
    where = "the ball" if len(hunt.balls) == 1 else "a ball"
    console.print(
        f"List: the highest {n_written:,} of {counted(len(hunt.distances), 'unlabelled row')} "
        f"(--top sets the number), {n_inside:,} of them in {where}"
    )
    if hunt.refound:
        found = [f"{n:,} in the first {k:,} rows" for k, n in hunt.refound.items()]
        n_cases = counted(len(hunt.held_out_places), "known case")
        console.print(f"Test, each of {n_cases} hidden in turn: {', '.join(found)}")
    shares = [
        f"{share:.0%} of {'all' if k == len(hunt.ranking.rows) else 'the first'} {k:,}"
        for k, share in hunt.expected.items()
    ]
    is_bound = hunt.model.rare_share is None  # the first rows are then taken to be cases
    if not shares or (is_bound and min(hunt.expected.values()) == 1.0):
        return
    given = ", at best" if is_bound else ""
    console.print(f"Expected share of cases{given}: {', '.join(shares)}")


def _how_chosen(chosen: "ChosenParameters") -> str:
    """Say which of prices and width were given, and the source of the others."""
    held_out = chosen.by == "cross-validation"
    others = "chosen by cross-validation" if held_out else "defaults, not tuned on your rows"
    given = chosen.given
    if not given:
        return others
    named = {"C1", "C2"} | ({"width"} if chosen.width is not None else set())
    return "as given" if named <= set(given) else f"{' and '.join(given)} as given, else {others}"
