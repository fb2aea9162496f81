"""``rareclass score``: from a model file and a data file to a file of scores."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rareclass.cli.door import (
    ModelPath,
    OutputOptions,
    Strict,
    TableOptions,
    check_new,
    command,
    file_or_url,
)
from rareclass.cli.screen import file_text, output, print_drift, print_notes
from rareclass.errors import ErrorKind, InputError

if TYPE_CHECKING:
    from rareclass.model.score_file import Scoring

_CALLS = "Rows called rare, instead of by the model's threshold: one of"


@command
def score(
    model: ModelPath,
    given: Annotated[
        str,
        typer.Argument(
            help="File or folder of any size: CSV, JSON lines, Parquet, svmlight; or a database.",
            metavar="DATA",
        ),
    ],
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="File of scores to write, .csv or .parquet.",
            parser=file_or_url,
        ),
    ],
    id_columns: Annotated[
        list[str] | None,
        typer.Option("--id", help="Column of DATA to copy to the scores. Many times."),
    ] = None,
    alerts_only: Annotated[
        bool,
        typer.Option(
            "--alerts-only", help="Write only the rows called rare, the highest score first."
        ),
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(help="Number of rows with the highest scores.", rich_help_panel=_CALLS),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Rows above this score.", rich_help_panel=_CALLS)
    ] = None,
    explain: Annotated[
        int | None,
        typer.Option(
            help="For rows called rare, the number of reasons to write: columns reason_1, value_1 "
            "(its cell), effect_1 (score added), ...; and the nearest rare training rows: case_1 "
            "(number in the training file), distance_1, ..."
        ),
    ] = None,
    strict: Strict = False,
    written: OutputOptions,
    table: TableOptions,
) -> None:
    """Score every row of DATA.

    Writes a line a row, in the order of DATA: row number (or --id), score (higher: more likely
    rare), probability where the model has one, called_rare (above the threshold) and percentile.

    For ordered levels: score, probability of each level, level and percentile. For the folder of a
    hunt: score; called_rare (at least the score of the last row that the hunt wrote); and sure,
    the expected share of cases among the hunt's rows with this score or more.
    """
    from rareclass.files import check_not_input
    from rareclass.model.score_file import ScoreSettings, check_score_path, score_rows
    from rareclass.opening import open_model

    data = table.place(given, "DATA")
    settings = ScoreSettings(
        tuple(dict.fromkeys(id_columns or ())),
        table.character,
        top,
        threshold,
        explain,
        strict,
        alerts_only,
    )
    written.check({"the file to be scored": data, "the model": model}, written.overwrite)
    check_score_path(out, data)
    check_not_input(out, "--out", {"the model": model})
    check_new(out, "--out", written.overwrite)
    if written.json_file is not None and written.json_file.resolve() == out.resolve():
        raise InputError(
            f"--json {written.json_file} is the file of --out.",
            "Give another name.",
            ErrorKind.COMBINATION,
        )
    content = open_model(model)
    print_notes(output(), content.notices)
    scoring = score_rows(content, data, out, settings)
    print_scoring(output(), scoring, file_text(out))
    if written.json_file is not None:  # its intervals need SciPy
        written.give(scoring.as_plain_data())


def print_scoring(console: Console, scoring: "Scoring", saved: str) -> None:
    """Print what came of scoring a file, and where the scores are."""
    console.print(scoring.sentence)
    print_drift(console, scoring.seen, scoring.drift)
    print_notes(console, scoring.notes)
    console.print(f"Saved {saved}")
