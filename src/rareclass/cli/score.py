"""``rareclass score`` and ``serve``: a model on the rows of a file, or of requests over HTTP."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rareclass.cli.door import (
    ModelPath,
    OutputOptions,
    Strict,
    TableOptions,
    check_output,
    combination_error,
    command,
    local_file,
    out_option,
    setting_error,
)
from rareclass.cli.screen import file_text, output, print_drift, print_notes
from rareclass.errors import needed_for

if TYPE_CHECKING:
    from rareclass.model.score_file import Scoring

_LIMITS = "Limits of a request"
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
    out: Annotated[Path, out_option("File of scores to write, .csv or .parquet.")],
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
    check_output(out, "--out", written.overwrite, {"the model": model}, may_be_inside=True)
    if written.json_file is not None and written.json_file.resolve() == out.resolve():
        raise combination_error(
            f"--json {written.json_file} is the file of --out.", "Give another name."
        )
    content = open_model(model)
    print_notes(output(), *content.notices)
    scoring = score_rows(content, data, out, settings)
    print_scoring(output(), scoring, file_text(out))
    if written.json_file is not None:  # its intervals need SciPy
        written.give(scoring.as_plain_data())


def print_scoring(console: Console, scoring: "Scoring", saved: str) -> None:
    """Print what came of scoring a file, and where the scores are."""
    console.print(scoring.sentence)
    print_drift(console, scoring.seen, scoring.drift)
    print_notes(console, *scoring.notes)
    console.print(f"Saved {saved}")


@command
def serve(
    model: ModelPath,
    host: Annotated[
        str, typer.Option(help="Address to listen at; 0.0.0.0: all addresses of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0: any free one.", min=0, max=65535)] = 8080,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the token that requests must carry. By default the environment "
            "variable RARECLASS_TOKEN, if set.",
            parser=local_file,
        ),
    ] = None,
    max_rows: Annotated[
        int, typer.Option(help="Most rows.", min=1, rich_help_panel=_LIMITS)
    ] = 10_000,
    max_body: Annotated[str, typer.Option(help="Largest body.", rich_help_panel=_LIMITS)] = "16MiB",
    max_requests: Annotated[
        int, typer.Option(help="Most requests at once.", min=1, rich_help_panel=_LIMITS)
    ] = 64,
    timeout: Annotated[
        float, typer.Option(help="Most seconds for an answer.", min=0.01, rich_help_panel=_LIMITS)
    ] = 10.0,
    threads: Annotated[int, typer.Option(help="Threads for requests of many rows.", min=1)] = 1,
    reload: Annotated[
        bool, typer.Option(help="Load a new model file when it appears, after a check.")
    ] = True,
    log_requests: Annotated[
        bool, typer.Option(help="Write a line of JSON for each request to standard error.")
    ] = True,
) -> None:
    """Serve a model over HTTP until Ctrl-C.

    POST /score takes rows as JSON and answers score, probability, decision
    and percentile; ?reasons=3 adds the three columns that raised each score. /openapi.json
    describes the requests; /healthz, /readyz and /metrics are for operations.
    """
    with needed_for("rareclass serve", "rareclass[serve]"):
        from rareclass.serving.live_model import LiveModel
        from rareclass.serving.middleware import Limits, find_token
        from rareclass.serving.service import Address, Settings, serve
    from rareclass.machine import parse_bytes

    try:
        n_bytes = parse_bytes(max_body)
    except ValueError as error:
        raise setting_error(
            f"--max-body {max_body} is not a size.", "Give one such as 16MiB."
        ) from error
    limits = Limits(rows=max_rows, body_bytes=n_bytes, requests=max_requests, seconds=timeout)
    token = find_token(token_file)
    settings = Settings(limits, token, threads, 1.0 if reload else 0.0)
    address = Address(host, port)
    served = LiveModel(model)
    if not address.is_loopback and token is None:
        print_notes(
            output(),
            f"anyone who reaches {host} can send requests: no token is set. Set one with "
            "RARECLASS_TOKEN or --token-file.",
        )

    def announce(address: Address) -> None:
        output().print(f"Serving at {address.url} (Ctrl-C stops)")
        output().print(
            f"Rows as JSON: POST {address.url}/score - what they hold: {address.url}/openapi.json"
        )

    serve(served, address, settings, log_requests, announce=announce)
