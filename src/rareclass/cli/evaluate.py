"""``rareclass evaluate``: how good a model is on rows with known classes."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rareclass.cli.decision_screen import print_decisions, print_probabilities
from rareclass.cli.door import (
    OVERWRITE_OPTION,
    QUERY_OPTION,
    SEPARATOR_OPTION,
    exit_codes_for_faults,
    file_or_url,
    parse_separator,
    table_at,
)
from rareclass.cli.drift_screen import STRICT_OPTION, print_drift
from rareclass.cli.json_file import JSON_OPTION, check_json, give_json
from rareclass.cli.screen import (
    output,
    print_confusion,
    print_estimate,
    print_notes,
)
from rareclass.errors import counted

if TYPE_CHECKING:
    from rareclass.model.evaluate import EvaluatedFile
    from rareclass.model.model import Model
    from rareclass.tables.table_file import TablePlace


@exit_codes_for_faults
def evaluate(
    model: Annotated[
        Path,
        typer.Argument(
            help="Model file of rareclass fit, or folder of rareclass stream.", parser=file_or_url
        ),
    ],
    given: Annotated[
        str,
        typer.Argument(
            help="File or folder with the target: CSV, JSON lines, Parquet, svmlight; or a "
            "database.",
            metavar="DATA",
        ),
    ],
    strict: Annotated[bool, STRICT_OPTION] = False,
    json_file: Annotated[Path | None, JSON_OPTION] = None,
    overwrite: Annotated[bool, OVERWRITE_OPTION] = False,
    separator: Annotated[str | None, SEPARATOR_OPTION] = None,
    query: Annotated[str | None, QUERY_OPTION] = None,
) -> None:
    """Compare the model's scores with the known classes of DATA."""
    from rareclass.opening import open_model

    character = parse_separator(separator)
    data = table_at(given, query, "DATA")
    check_json(json_file, overwrite, {"the file to be read": data, "the model": model})
    content = open_model(model)
    evaluation = evaluate_and_report(output(), content, data, character, strict)
    give_json(json_file, evaluation.as_plain_data())


def evaluate_and_report(
    console: Console,
    content: "Model",
    data: "TablePlace",
    separator: str | None = None,
    strict: bool = False,
) -> "EvaluatedFile":
    """Evaluate a model on a file and print the measures."""
    from rareclass.model.evaluate import evaluate_file

    print_notes(console, content.notices)
    evaluation = evaluate_file(content, data, separator, strict)
    estimate = evaluation.estimate
    console.print(f"{data.name}: {estimate.rows_text()}", style="bold")
    print_estimate(console, estimate)
    console.print()
    if evaluation.table:  # its first row says what the lines below the counts would
        print_confusion(console, replace(evaluation.confusion, lines=[]))
        console.print()
        print_decisions(console, evaluation.table)
    else:
        print_confusion(console, evaluation.confusion)
    if evaluation.probabilities is not None:
        console.print()
        print_probabilities(console, evaluation.probabilities)
    if evaluation.n_unlabelled:
        rows = counted(evaluation.n_unlabelled, "row has", "rows have")
        left_out = "was" if evaluation.n_unlabelled == 1 else "were"
        print_notes(console, [f"{rows} no target and {left_out} left out."])
    print_drift(console, evaluation.seen, evaluation.drift)
    return evaluation
