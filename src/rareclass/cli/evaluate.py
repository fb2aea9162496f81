"""``rareclass evaluate``: how good a model is on rows with known classes."""

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
from rareclass.cli.screen import (
    file_text,
    output,
    print_confusion,
    print_estimate,
    print_notes,
    print_seen,
)
from rareclass.errors import counted

if TYPE_CHECKING:
    from rareclass.verbs.evaluate import EvaluatedFile
    from rareclass.verbs.model_file import ModelFile


@exit_codes_for_faults
def evaluate(
    model: Annotated[
        Path, typer.Argument(help="Model file of rareclass fit, or folder of rareclass stream.")
    ],
    data: Annotated[
        Path,
        typer.Argument(help="File or folder with the target: CSV, JSON lines, Parquet, svmlight."),
    ],
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the numbers to this file.")
    ] = None,
    overwrite: Annotated[bool, OVERWRITE_OPTION] = False,
    separator: Annotated[str | None, SEPARATOR_OPTION] = None,
) -> None:
    """Compare the model's scores with the known classes of DATA."""
    from rareclass.atomic_file import check_not_input, check_not_inside, check_writable
    from rareclass.verbs.model import open_model

    character = parse_separator(separator)
    if json_file is not None:
        check_not_input(json_file, "--json", {"the file to be read": data, "the model": model})
        check_not_inside(json_file, "--json", data)
        check_new(json_file, "--json", overwrite)
        check_writable(json_file, "--json")
    content = open_model(model)
    evaluation = evaluate_and_report(output(), content, data, character)
    if json_file is not None:
        _write_json(json_file, evaluation)
        output().print(f"Saved {file_text(json_file)}")


def evaluate_and_report(
    console: Console, content: "ModelFile", data: Path, separator: str | None = None
) -> "EvaluatedFile":
    """Evaluate a model on a file and print the measures."""
    from rareclass.verbs.evaluate import evaluate_file

    print_notes(console, content.notices)
    evaluation = evaluate_file(content, data, separator)
    estimate = evaluation.estimate
    console.print(f"{data.name}: {estimate.rows_text()}", style="bold")
    print_estimate(console, estimate)
    console.print()
    print_confusion(console, evaluation.confusion)
    if evaluation.n_unlabelled:
        rows = counted(evaluation.n_unlabelled, "row has", "rows have")
        left_out = "was" if evaluation.n_unlabelled == 1 else "were"
        print_notes(console, [f"{rows} no target and {left_out} left out."])
    print_seen(console, evaluation.seen)
    return evaluation


def _write_json(path: Path, evaluation: "EvaluatedFile") -> None:
    import json

    from rareclass.atomic_file import replacing

    with replacing(path) as temporary:
        temporary.write_text(json.dumps(evaluation.as_plain_data(), indent=2) + "\n")
