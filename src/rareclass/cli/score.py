"""``rareclass score``: from a model file and a data file to a file of scores."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rareclass.cli.door import (
    OVERWRITE_OPTION,
    SEPARATOR_OPTION,
    check_new,
    exit_codes_for_faults,
    parse_separator,
)
from rareclass.cli.screen import file_text, output, print_notes, print_seen

if TYPE_CHECKING:
    from rareclass.verbs.model_file import ModelFile


@exit_codes_for_faults
def score(
    model: Annotated[
        Path, typer.Argument(help="Model file of rareclass fit, or folder of rareclass stream.")
    ],
    data: Annotated[
        Path, typer.Argument(help="File or folder of any size: CSV, JSON lines, Parquet, svmlight.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File of scores to write, .csv or .parquet.")
    ],
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column of DATA to carry over to the scores.")
    ] = None,
    overwrite: Annotated[bool, OVERWRITE_OPTION] = False,
    separator: Annotated[str | None, SEPARATOR_OPTION] = None,
) -> None:
    """Score every row of DATA, in its order, reading a batch at a time.

    Writes row number (or --id), score (higher: rarer), called_rare (above threshold), percentile.

    For a model of levels: score (higher: a higher level), level, and percentile of all rows.
    """
    from rareclass.atomic_file import check_not_input
    from rareclass.verbs.model import open_model
    from rareclass.verbs.score import check_score_path

    character = parse_separator(separator)
    check_not_input(out, "--out", {"the model": model})
    check_score_path(out, data)
    check_new(out, "--out", overwrite)
    content = open_model(model)
    score_and_report(output(), content, data, out, id_column, character)


def score_and_report(
    console: Console,
    content: "ModelFile",
    data: Path,
    out: Path,
    id_column: str | None,
    separator: str | None = None,
) -> None:
    """Score a file and print what came out."""
    from rareclass.verbs.score import score_file

    print_notes(console, content.notices)
    scoring = score_file(content, data, out, id_column, separator)
    console.print(scoring.sentence)
    print_seen(console, scoring.seen)
    console.print(f"Saved {file_text(out)}")
