"""``rareclass score``: a model on the rows of a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.files import check_output
from rareclass.model import ScoreSettings
from rareclass.parameters import opt

if TYPE_CHECKING:
    from rareclass.model.score_file import Scoring


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """Options of ``rareclass score``."""

    model: Path = cli.argument(cli.ANY_MODEL)
    given: str = cli.argument(
        "File or folder of any size: CSV, JSON lines, Parquet, svmlight; or a database.", "DATA"
    )
    out: Path = opt("File of scores to write, .csv or .parquet.", cli.REQUIRED)
    asked: ScoreSettings
    written: cli.OutputOptions
    table: cli.TableOptions


@cli.command
def score(options: ScoreOptions) -> None:
    """Score every row of DATA.

    Writes a line a row, in the order of DATA: row number (or --id), score (higher: more likely
    rare), probability where the model has one, called_rare (above the threshold) and percentile.

    For ordered levels: score, probability of each level, level and percentile. For the folder of a
    hunt: score; called_rare (at least the score of the last row that the hunt wrote); and sure,
    the share of cases among the hunt's rows at least as sure: an upper estimate without --share.
    """
    from rareclass.model.score_file import score_rows

    data, written, out = options.table.place(options.given, "DATA"), options.written, options.out
    check_output(out, "--out", written.overwrite, {"the model": options.model}, may_be_inside=True)
    written.check({"the file to be scored": data, "the model": options.model, "--out": out})
    content = cli.opened(options.model)
    scoring = score_rows(content, data, out, options.asked, options.table.text)
    print_scoring(screen.output(), scoring, screen.file_text(out))
    if written.json_file is not None:  # its intervals need SciPy
        written.give(scoring.as_plain_data())


def print_scoring(console: Console, scoring: "Scoring", saved: str) -> None:
    """Print what came of scoring a file, and where the scores are."""
    console.print(scoring.sentence)
    screen.print_drift(console, scoring.drift)
    screen.print_notes(console, *scoring.notes)
    console.print(f"Saved {saved}")
