"""``rareclass review``: rows that a person should check next, and a journal of the verdicts."""

import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.errors import ErrorKind, counted, needed_for, setting
from rareclass.files import TABLE_SUFFIXES, check_output
from rareclass.parameters import opt
from rareclass.remote import path_of
from rareclass.tables import ColumnSettings

if TYPE_CHECKING:
    from polars import DataFrame

    from rareclass.model.model import Model
    from rareclass.review.journal import ReviewJournal
    from rareclass.review.reviewing import ReviewList
    from rareclass.review.table import ReviewTable
    from rareclass.serving import Address

_NO_MODEL = "none"
_SHOWN = 10
_SCORED_BY = {
    "verdicts": "a model trained on all known labels",
    "model": "the model",
    "cases": "likeness to the known cases, as in a hunt",
    "nothing": "nothing: no case is known yet",
}


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """Options on the next list."""

    budget: int = opt("Rows to check in this round.", 50)
    teaches: float = opt("Share of rows whose labels teach the model most.", 0.1)
    random: float = opt("Share of rows drawn at random, by known chances.", 0.1)
    seed: int = cli.seed_option("Same seed, same list.")
    skip_open: bool = opt("Make a new list although rows of the last one lack a verdict.", False)


@dataclass(frozen=True, kw_only=True)
class VerdictOptions:
    """Options on verdicts that are read first."""

    key: str | None = opt("Column that names the rows; by default row numbers.")
    verdicts: Path | None = opt("List with verdicts filled in, to read first.")
    correct: bool = opt("Verdicts may replace earlier ones.", False)

    def check(self, journal: Path | None, replaced: Path | None = None) -> None:
        """Raise `InputError` where there is no journal for verdicts, or it could not stay there."""
        if journal is not None:
            cli.on_this_machine(journal, "--journal")
            if replaced is not None and replaced.resolve() in journal.resolve().parents:
                raise ErrorKind.COMBINATION.error(
                    f"--journal {journal} is inside --out {replaced}, which is replaced whole.",
                    "Give the journal a name outside of that folder.",
                )
        elif self != VerdictOptions():
            raise ErrorKind.COMBINATION.error(
                "--id, --verdicts and --correct are about a journal.", "Name it: --journal FILE."
            )

    def read(self, console: Console, journal: "ReviewJournal", rows: "ReviewTable") -> None:
        """Take the verdicts into the journal."""
        from rareclass.review.reviewing import read_verdicts

        if self.verdicts is not None:
            n_new = journal.add(read_verdicts(self.verdicts, self.correct, rows), rows.keys)
            console.print(f"{counted(n_new, 'new verdict')} of {screen.file_text(self.verdicts)}.")


@dataclass(frozen=True, kw_only=True)
class ReviewOptions:
    """Options of ``rareclass review``."""

    given: tuple[str, ...] = cli.argument(
        "Model, or none, and the table to review.", "[MODEL] TABLE"
    )
    journal: Path = opt(
        "Journal to continue, or to start.", cli.REQUIRED, names=("--journal", "-j")
    )
    target: str | None = opt("Column of labels; by default the model's.")
    positive: tuple[str, ...] = cli.positive_option()
    rest: tuple[str, ...] = opt("Label of rows that are not rare. Many times.", ())
    ignore: tuple[str, ...] = opt("Label to treat as unknown. Many times.", ())
    sheet: Path | None = opt("File to write the list to, .csv or .parquet.", names=("--list",))
    labelled: Path | None = opt(
        "File to write TABLE to with the labels known so far, for rareclass fit: .csv or .parquet."
    )
    page: bool = opt("Check the rows on a local page.", False)
    port: int = opt("Port of the page.", 8080, min=0, max=65535)
    verdicts: VerdictOptions
    listing: ListOptions
    columns: ColumnSettings
    overwrite: bool = cli.overwrite_option()
    table: cli.TableOptions


@cli.command
def review(options: ReviewOptions) -> None:
    """List the rows that a person should check next, and learn from the verdicts.

    Some rows have the highest scores, some teach the model most, some are drawn at random. Each
    call learns from the labels of TABLE and all verdicts in the journal.
    """
    from rareclass.machine import available_memory
    from rareclass.review.reviewing import Shares, next_rows, open_list
    from rareclass.review.table import open_journal, read_review_table

    how, said, journal = options.listing, options.verdicts, options.journal
    sheet, labelled, given = options.sheet, options.labelled, options.given
    shares = Shares(how.teaches, how.random)
    place, model = options.table.place(given[-1], "TABLE"), _model_of(given)
    of_model = None if model is None else model.target
    target = options.target or of_model
    if target is None:
        raise ErrorKind.SETTING.error("--target is missing.", "Name the column of labels.")
    said.check(journal)
    inputs = {"TABLE": place, "--journal": journal}
    for name, path in (("--list", sheet), ("--labelled", labelled)):
        if path is not None:
            check_output(path, name, options.overwrite, inputs, suffixes=TABLE_SUFFIXES)
    read = read_review_table(
        place,
        target,
        said.key,
        **vars(options.columns),
        ignored=options.ignore,
        text=options.table.text,
        memory=available_memory(),
        has_labels=model is None and not options.positive and not journal.exists(),
        is_named_first=target != of_model and not journal.exists(),
    )
    kept = open_journal(journal, read, model, options.positive or None, options.rest)
    console = screen.output()
    said.read(console, kept, read)

    def more() -> "ReviewList":
        return next_rows(read, kept, model, how.budget, shares, how.seed)

    def announce(address: "Address") -> None:
        console.print(f"Check the rows at {address.url} (Ctrl-C stops)")

    if sheet is not None or options.page or (said.verdicts is None and labelled is None):
        listed = (None if how.skip_open else open_list(read, kept)) or more()
        _print_list(console, listed, len(read.keys))
        if sheet is not None:
            _write(console, sheet, listed.rows)
            console.print("Fill in the column 'review verdict', and give the file as --verdicts.")
        if options.page:
            with needed_for("rareclass review --page", "rareclass[serve]"):
                from rareclass.serving.review_page import serve_review
            serve_review(kept, listed, more, options.port, announce)
    if labelled is not None:
        _write(console, labelled, read.with_labels(kept))
        rare = setting("positive", *kept.header.rare)
        words = f"{shlex.quote(str(labelled))} --target {shlex.quote(target)} {rare}"
        console.print(f"Learn from it: rareclass fit {words}", soft_wrap=True)
    print_known(console, kept)


def _model_of(given: tuple[str, ...]) -> "Model | None":
    from rareclass.opening import open_model

    if not 1 <= len(given) <= 2:
        raise ErrorKind.SETTING.error("Give a model and a table.", "MODEL may be left out.")
    is_named = len(given) == 2 and given[0] != _NO_MODEL
    return open_model(path_of(given[0])) if is_named else None


def _print_list(console: Console, listed: "ReviewList", n_rows: int) -> None:
    reasons = Counter(listed.rows["review reason"].to_list())
    parts = ", ".join(f"{number} {reason}" for reason, number in reasons.items())
    rows = counted(listed.rows.height, "row")
    again = " without a verdict" if listed.is_open else ""
    console.print(f"Round {listed.round.number}: {rows}{again} of {n_rows:,} ({parts})")
    if listed.scored_by:
        console.print(f"Scored by {_SCORED_BY[listed.scored_by]}")
    names = ("row", "reason", "chance", "score", "why")
    cells = [
        [f"{c:.4g}" if isinstance(c, float) else str(c or "") for c in line]
        for line in listed.rows.select(f"review {name}" for name in names).head(_SHOWN).rows()
    ]
    screen.print_table(console, names, cells, ("chance", "score"), ("why",))


def _write(console: Console, path: Path, rows: "DataFrame") -> None:
    from rareclass.files import write_table

    write_table(path, rows)
    console.print(f"Saved {screen.file_text(path)}", soft_wrap=True)


def print_known(console: Console, journal: "ReviewJournal") -> None:
    """Print the verdicts so far, and what the journal lacks."""
    found = Counter(verdict.label for verdict in journal.verdicts.values())
    labels = ", ".join(f"{label}: {n:,}" for label, n in found.most_common())
    n_open = len({row.key for rows in journal.missing().values() for row in rows})
    console.print(
        f"{journal.path.name} has {counted(len(journal.verdicts), 'verdict')}"
        f"{f' ({labels})' if labels else ''}; {counted(n_open, 'listed row')} without one"
    )
    for each in journal.findings:
        screen.print_notes(console, f"line {each.values['line']} was cut short, and dropped.")
