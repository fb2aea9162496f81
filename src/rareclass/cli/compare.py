"""``rareclass compare``: which ranking is better, and is it told apart from the others?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rareclass.cli.compare_screen import print_comparison
from rareclass.cli.door import (
    OVERWRITE_OPTION,
    SEPARATOR_OPTION,
    check_new,
    exit_codes_for_faults,
    parse_separator,
)
from rareclass.cli.screen import file_text, output
from rareclass.errors import InputError

if TYPE_CHECKING:
    from rareclass.verbs.compare.score_files import ScoreFiles


@exit_codes_for_faults
def compare(
    data: Annotated[
        list[Path], typer.Argument(help="Two or more files of scores of the same rows.")
    ],
    target: Annotated[str, typer.Option("--target", "-t", help="Column that holds the classes.")],
    scores: Annotated[
        bool, typer.Option("--scores", help="The files hold scores, of any origin.")
    ] = False,
    truth: Annotated[
        Path | None,
        typer.Option(help="File with the classes. By default a file of scores has them."),
    ] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of scores. Many times: several of each file.",
            show_default="score, probability, or the only column of numbers",
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column that rows are matched by.")
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(help="Value of the rare class. By default the rarer of two."),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(help="Column whose rows of one value, such as a customer's, move together."),
    ] = None,
    k: Annotated[
        list[int] | None,
        typer.Option(
            "--k", min=1, help="Also precision at so many rows, beside as many as are rare."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the numbers to this file.")
    ] = None,
    overwrite: Annotated[bool, OVERWRITE_OPTION] = False,
    separator: Annotated[str | None, SEPARATOR_OPTION] = None,
) -> None:
    """Compare rankings of the same rows: values, intervals, and paired tests beside the best."""
    character = parse_separator(separator)
    if not scores:
        raise InputError("--scores is missing.", "rareclass compare --scores a.csv b.csv")
    _check_json(json_file, data, overwrite)
    from rareclass.verbs.compare.score_files import ScoreFiles

    files = ScoreFiles(
        tuple(data),
        target,
        truth,
        tuple(score or ()),
        id_column,
        groups,
        positive,
        tuple(map(float, k or ())),
        character,
    )
    _compare_files(files, seed, json_file)


def _compare_files(files: "ScoreFiles", seed: int, json_file: Path | None) -> None:
    from rareclass.verbs.compare.score_files import compare_score_files

    console = output()
    found = compare_score_files(files, seed, progress="auto")
    console.print(f"{found.comparison.basis()}: {files.target} = {found.rare_label}", style="bold")
    print_comparison(console, found.comparison)
    if json_file is not None:
        write_json(json_file, found.to_dict())
        console.print(f"Saved {file_text(json_file)}")


def _check_json(path: Path | None, data: list[Path], overwrite: bool) -> None:
    """Refuse a file of numbers that cannot be written, before anything is read."""
    from rareclass.atomic_file import check_not_input, check_writable

    if path is not None:
        check_not_input(path, "--json", {f"the file {each.name}": each for each in data})
        check_new(path, "--json", overwrite)
        check_writable(path, "--json")


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write plain data, at once or not at all."""
    import json

    from rareclass.atomic_file import replacing

    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n")
