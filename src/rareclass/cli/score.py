"""``rareclass score``: from a model file and a data file to a file of scores."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rareclass.cli.door import (
    OVERWRITE_OPTION,
    QUERY_OPTION,
    SEPARATOR_OPTION,
    check_new,
    exit_codes_for_faults,
    file_or_url,
    on_this_machine,
    parse_separator,
    table_at,
)
from rareclass.cli.drift_screen import STRICT_OPTION, print_drift
from rareclass.cli.json_file import JSON_OPTION, check_json, give_json
from rareclass.cli.screen import file_text, output, print_notes
from rareclass.errors import ErrorKind, InputError
from rareclass.remote import RemotePath, path_of

if TYPE_CHECKING:
    from rareclass.model.model import Model
    from rareclass.model.score_file import ScoreSettings, Scoring
    from rareclass.tables.databases.result_table import ResultTable
    from rareclass.tables.table_file import TablePlace

_CALLS = "Called rare, in place of the model's threshold: one of"


@exit_codes_for_faults
def score(
    model: Annotated[
        Path,
        typer.Argument(
            help="Model file of rareclass fit, or folder of a stream or hunt.", parser=file_or_url
        ),
    ],
    given: Annotated[
        str,
        typer.Argument(
            help="File or folder of any size: CSV, JSON lines, Parquet, svmlight; or a database.",
            metavar="DATA",
        ),
    ],
    written: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            help="File of scores to write, .csv or .parquet; or the database of --out-table.",
            show_default="the database of DATA, with --out-table",
        ),
    ] = None,
    out_table: Annotated[
        str | None,
        typer.Option(
            help="Table of scores to write in a database, in one transaction: table or "
            "schema.table."
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column of DATA to carry over to the scores.")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(help="So many rows of the highest score.", rich_help_panel=_CALLS),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Rows above this score.", rich_help_panel=_CALLS)
    ] = None,
    explain: Annotated[
        int | None,
        typer.Option(
            help="Beside rows called rare, so many columns that raise their score most: reason_1, "
            "value_1 (its cell), effect_1 (by how much), ...; and the rare training rows nearest "
            "to them: case_1 (its number in the training file), distance_1, ..."
        ),
    ] = None,
    probability_interval: Annotated[
        bool,
        typer.Option(
            "--probability-interval",
            help="Also write probability_low and probability_high: how little the held-out rows "
            "of training tell of the probability.",
        ),
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(
            help="Score a table of Parquet on the workers of a Dask cluster, tcp://HOST:PORT or "
            "local, into a folder --out of Parquet files."
        ),
    ] = None,
    strict: Annotated[bool, STRICT_OPTION] = False,
    json_file: Annotated[Path | None, JSON_OPTION] = None,
    overwrite: Annotated[bool, OVERWRITE_OPTION] = False,
    separator: Annotated[str | None, SEPARATOR_OPTION] = None,
    query: Annotated[str | None, QUERY_OPTION] = None,
) -> None:
    """Score every row of DATA, in its order, reading a batch at a time.

    Writes row number (or --id), score (higher: rarer), probability where the model has one,
    called_rare (above threshold), percentile.

    For a model of levels: score (higher: a higher level), probability of each level, level, and
    percentile of all rows. For
    the folder of a hunt the score falls down the hunt's list, above 0 in a ball and below outside,
    and sure is the share of cases to be expected among rows of the hunt that are as sure.
    """
    from rareclass.files import check_not_input
    from rareclass.model.score_file import ScoreSettings, check_score_path
    from rareclass.opening import open_model
    from rareclass.tables.databases.result_table import ResultTable

    data = table_at(given, query, "DATA")
    settings = ScoreSettings(
        id_column,
        parse_separator(separator),
        top,
        threshold,
        explain,
        strict,
        probability_interval,
    )
    check_json(json_file, overwrite, {"the file to be scored": data, "the model": model})
    if dask is not None:
        folder = _folder(written, out_table, data, overwrite)
        scoring = _score_on_workers(open_model(model), data, folder, settings, dask)
        give_json(json_file, scoring.as_plain_data())
        return
    out = _out(written, out_table, data, overwrite)
    check_score_path(out, data)
    if not isinstance(out, ResultTable):
        check_not_input(out, "--out", {"the model": model})
        check_new(out, "--out", overwrite)
        if json_file is not None and json_file.resolve() == out.resolve():
            raise InputError(
                f"--json {json_file} is the file of --out.",
                "Give another name.",
                ErrorKind.COMBINATION,
            )
    scoring = score_and_report(output(), open_model(model), data, out, settings)
    give_json(json_file, scoring.as_plain_data())


def _folder(
    written: str | None, out_table: str | None, data: "TablePlace", overwrite: bool
) -> Path:
    """Where workers are to write scores."""
    from rareclass.model.score_file import check_score_folder

    if written is None or out_table is not None:
        raise InputError(
            "--dask writes a folder of Parquet files.", "Name it by --out.", ErrorKind.COMBINATION
        )
    folder = on_this_machine(path_of(written), "--dask: --out")
    if isinstance(data, Path | RemotePath):
        on_this_machine(data, "--dask: DATA")
    check_score_folder(folder, data, overwrite)
    return folder


def _score_on_workers(
    content: "Model", data: "TablePlace", folder: Path, settings: "ScoreSettings", dask: str
) -> "Scoring":
    """Score a table on a cluster and print what came out."""
    from rareclass.fit.rows_elsewhere import dask_client
    from rareclass.model.score_file import score_on_workers

    print_notes(output(), content.notices)
    with dask_client(dask) as client:
        scoring = score_on_workers(content, data, folder, settings, client)
    _print_scoring(output(), scoring, str(folder))
    return scoring


def _out(
    written: str | None, out_table: str | None, data: "TablePlace", overwrite: bool
) -> "Path | ResultTable":
    """Where scores are to be written, from what was given for it."""
    from rareclass.tables.databases.drivers import DatabaseAddress, Query, is_database
    from rareclass.tables.databases.result_table import ResultTable

    if out_table is None:
        if written is None:
            raise InputError(
                "Where are the scores to be written?",
                "Give --out with a file, or --out-table with a table of a database.",
                ErrorKind.SETTING,
            )
        if is_database(written):
            raise InputError(
                f"--out {DatabaseAddress(written)} is a database: which table is to be written?",
                "Name it by --out-table.",
                ErrorKind.SETTING,
            )
        return path_of(written)
    if written is not None and is_database(written):
        address = DatabaseAddress(written)
    elif written is None and isinstance(data, Query) and data.address is not None:
        address = data.address
    else:
        where = f"DATA {data}" if written is None else f"--out {path_of(written)}"
        raise InputError(
            f"--out-table {out_table}: {where} is no database that can be written to.",
            "Name the database by --out postgresql://..., sqlite:///... or duckdb:///...",
            ErrorKind.SETTING,
        )
    return ResultTable.named(address, out_table, overwrite)


def score_and_report(
    console: Console,
    content: "Model",
    data: "TablePlace",
    out: "Path | ResultTable",
    settings: "ScoreSettings | None" = None,
) -> "Scoring":
    """Score a file and print what came out."""
    from rareclass.model.score_file import ScoreSettings, score_rows
    from rareclass.tables.databases.result_table import ResultTable

    print_notes(console, content.notices)
    scoring = score_rows(content, data, out, settings or ScoreSettings())
    _print_scoring(console, scoring, str(out) if isinstance(out, ResultTable) else file_text(out))
    return scoring


def _print_scoring(console: Console, scoring: "Scoring", saved: str) -> None:
    console.print(scoring.sentence)
    print_drift(console, scoring.seen, scoring.drift)
    print_notes(console, scoring.notes)
    console.print(f"Saved {saved}")
