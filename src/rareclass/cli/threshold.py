"""``rareclass threshold``: another rule for the threshold of a model, without training again."""

from pathlib import Path
from typing import Annotated

import typer

from rareclass.cli.door import (
    OVERWRITE_OPTION,
    QUERY_OPTION,
    SEPARATOR_OPTION,
    check_new,
    exit_codes_for_faults,
    file_or_url,
    parse_separator,
    table_at,
)
from rareclass.cli.json_file import JSON_OPTION, check_json, give_json
from rareclass.cli.rule import (
    ALERTS_OPTION,
    CONFIDENCE_OPTION,
    LEAST_COST_OPTION,
    MAX_FPR_OPTION,
    MIN_PRECISION_OPTION,
    MIN_RECALL_OPTION,
    PANEL,
    PREVALENCE_OPTION,
    RuleGiven,
    check_score,
    rule_from,
)
from rareclass.cli.screen import file_text, output, print_notes, print_threshold
from rareclass.errors import ErrorKind, InputError


@exit_codes_for_faults
def threshold(
    model: Annotated[Path, typer.Argument(help="Model file of rareclass fit.", parser=file_or_url)],
    given: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]",
            help="File or database with the target that the model did not learn from. By "
            "default the rows that were held out when it was fitted, whose scores it holds.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Model file to write. Without it the threshold is shown.",
            parser=file_or_url,
        ),
    ] = None,
    score: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            help="This score itself, as rareclass report shows it.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    alerts: Annotated[str | None, ALERTS_OPTION] = None,
    min_precision: Annotated[float | None, MIN_PRECISION_OPTION] = None,
    min_recall: Annotated[float | None, MIN_RECALL_OPTION] = None,
    max_fpr: Annotated[float | None, MAX_FPR_OPTION] = None,
    cost: Annotated[str | None, LEAST_COST_OPTION] = None,
    confidence: Annotated[str | None, CONFIDENCE_OPTION] = None,
    prevalence: Annotated[float | None, PREVALENCE_OPTION] = None,
    time: Annotated[
        str | None, typer.Option(help="Column of DATA with the time of a row, for alerts a day.")
    ] = None,
    json_file: Annotated[Path | None, JSON_OPTION] = None,
    overwrite: Annotated[bool, OVERWRITE_OPTION] = False,
    separator: Annotated[str | None, SEPARATOR_OPTION] = None,
    query: Annotated[str | None, QUERY_OPTION] = None,
) -> None:
    """Choose another threshold for a model, by a rule, and save the model with it."""
    character = parse_separator(separator)
    data = None if given is None else table_at(given, query, "DATA")
    asked = RuleGiven(alerts, min_precision, min_recall, max_fpr, cost, confidence, prevalence)
    if score is not None:
        check_score(score, asked)
    rule = rule_from(asked, time)
    if rule is None and score is None:
        raise InputError(
            "What is the threshold to keep?",
            "Give one of --alerts, --min-precision, --min-recall, --max-fpr, --cost and "
            "--threshold.",
            ErrorKind.SETTING,
        )
    from rareclass.files import check_not_input, check_writable
    from rareclass.model.model_file import load_model, save_model
    from rareclass.model.set_threshold import with_rule, with_score

    if out is not None:
        if data is not None:
            check_not_input(out, "--out", {"the file to be read": data})
        check_new(out, "--out", overwrite)
        check_writable(out)
    check_json(json_file, overwrite, {"the model": model} | ({"DATA": data} if data else {}))
    console = output()
    content = load_model(model)
    print_notes(console, content.notices)
    if rule is not None:
        changed, chosen = with_rule(content, rule, data, time, character)
    else:
        assert score is not None
        changed, chosen = with_score(content, score, data, character)
    print_threshold(console, chosen)
    for name, share in (("Precision", chosen.precision), ("Recall", chosen.recall)):
        console.print(
            f"{name} {share.value:.3f} ({share.low:.3f} to {share.high:.3f}, {chosen.level:.0%})"
        )
    console.print(f"Called rare: {chosen.alerts:,.0f} of {chosen.rows:,.0f} rows")
    if out is not None:
        save_model(out, changed)
        console.print(f"Saved {file_text(out)}")
    give_json(json_file, chosen.to_dict())
