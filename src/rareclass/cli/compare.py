"""``rareclass compare``: which ranking is better, and is it told apart from the others?"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rareclass.cli.compare_screen import print_by_value, print_comparison, print_leaderboard
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
from rareclass.cli.json_file import JSON_OPTION, check_json, give_json, write_json
from rareclass.cli.method import parse_seconds
from rareclass.cli.screen import file_text, output, print_notes
from rareclass.errors import ErrorKind, InputError, counted

if TYPE_CHECKING:
    from rareclass.compare.leaderboard import CompareSettings
    from rareclass.compare.score_files import ScoreFiles
    from rareclass.tables.table_file import TablePlace


@exit_codes_for_faults
def compare(
    given: Annotated[
        list[str],
        typer.Argument(
            help="A training file or database to compare methods on, or with --scores two or more "
            "files of scores of the same rows.",
            metavar="TRAIN | FILE...",
        ),
    ],
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column that holds the classes.")
    ] = None,
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
        str | None, typer.Option("--id", help="Column that rows of scores are matched by.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods to compare, with commas between, of auto, rankrc, mibc, lightgbm, "
            "xgboost, catboost, hgb, forest, balanced-forest, extra-trees, easy-ensemble, "
            "logistic, svm.",
            show_default="all that are installed",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(help="Value of the rare class. By default the rarer of two."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Column to leave out. May be given many times.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Column to learn from even if it looks like an identifier. Many times."),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(help="Column to take as categories whatever it holds. Many times."),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column whose rows of one value, such as a customer's, are held out together and "
            "counted as one."
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(help="Column with the rows that each row of scores stands for."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(help="Column by whose values rows of scores are also compared apart."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="Column with the time of a row: later rows are foretold from earlier."),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Folds of the cross-validation.", show_default="5")
    ] = None,
    time_budget: Annotated[
        str | None,
        typer.Option(
            help="Time for each method, all folds together: seconds, or one such as 5m.",
            show_default="120",
        ),
    ] = None,
    k: Annotated[
        list[int] | None,
        typer.Option("--k", min=1, help="Also precision at so many rows. Many times."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of folds, methods and bootstrap.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Leaderboard to write, .csv or .json: a row a method.",
            parser=file_or_url,
        ),
    ] = None,
    json_file: Annotated[Path | None, JSON_OPTION] = None,
    overwrite: Annotated[bool, OVERWRITE_OPTION] = False,
    separator: Annotated[str | None, SEPARATOR_OPTION] = None,
    query: Annotated[str | None, QUERY_OPTION] = None,
) -> None:
    """Compare methods on the same folds of TRAIN, or score files of the same rows (--scores).

    Values with intervals, and paired tests of the best against each other one.
    """
    character = parse_separator(separator)
    data = [table_at(each, query, "TRAIN") for each in given]
    of_methods = {
        "--methods": methods, "--drop": drop, "--keep": keep, "--category": category,
        "--time": time, "--folds": folds, "--time-budget": time_budget, "--out": out,
    }  # fmt: skip
    of_scores = {
        "--truth": truth, "--score": score, "--id": id_column, "--weight": weight, "--by": by,
    }  # fmt: skip
    _check_options(data, scores, of_scores if not scores else of_methods)
    _check_written(out, json_file, data, overwrite)
    ks = tuple(map(float, k or ()))
    if scores:
        if target is None:
            raise InputError(
                "--target is missing: which column holds the classes?", "", ErrorKind.SETTING
            )
        from rareclass.compare.score_files import ScoreFiles

        columns = tuple(score or ())
        files = ScoreFiles(
            tuple(data),
            target,
            truth,
            columns,
            id_column,
            groups,
            positive,
            ks,
            character,
            weight,
            by,
        )
        _compare_files(files, seed, json_file)
        return
    from rareclass.compare.leaderboard import DEFAULT_SECONDS, CompareSettings
    from rareclass.compare.peers import check_methods

    named = tuple(name.strip() for name in (methods or "").split(",") if name.strip())
    seconds = (
        DEFAULT_SECONDS if time_budget is None else parse_seconds("--time-budget", time_budget)
    )
    settings = CompareSettings(
        target,
        check_methods(named),
        positive,
        tuple(drop or ()),
        tuple(keep or ()),
        tuple(category or ()),
        groups,
        time,
        folds or 5,
        seconds,
        seed,
        ks,
    )
    _compare_methods(data[0], character, settings, out, json_file)


def _compare_methods(
    path: "TablePlace",
    separator: str | None,
    settings: "CompareSettings",
    out: Path | None,
    json_file: Path | None,
) -> None:
    from rareclass.compare.leaderboard import compare_on, read_compared
    from rareclass.progress import track
    from rareclass.tables.table_file import open_table

    console = output()
    file = open_table(path, separator)
    with track(f"Reading {path.name}"):
        data = read_compared(file, settings)
    console.print(
        f"{path.name}: {counted(data.n_rows, 'row')}, "
        f"{counted(data.rows.shape[1], 'column')} to learn from",
        style="bold",
    )
    for line in data.target.description():
        console.print(line)
    if data.n_copies:
        copies = counted(data.n_copies, "row is a copy", "rows are copies")
        print_notes(console, [f"{copies} of others: equal rows are one that counts as often."])
    if sys.stdout.isatty():
        console.print("Ctrl-C ends it with the methods that are done.")
    board = compare_on(data, settings)
    console.print()
    console.print(board.found.basis())
    print_leaderboard(console, board, settings.time is not None)
    if out is not None:
        (write_table if out.suffix == ".csv" else write_json)(out, board.rows())
        console.print(f"Saved {file_text(out)}")
    give_json(json_file, board.to_dict())


def _check_options(data: "list[TablePlace]", scores: bool, misplaced: dict[str, Any]) -> None:
    """Refuse options of the other kind of comparison."""
    for option, given in misplaced.items():
        if given:
            kind = "methods on a training file" if scores else "files of scores"
            remedy = f"Leave out {option}{' or --scores' if scores else ', or give --scores'}."
            raise InputError(f"{option} is for comparing {kind}.", remedy, ErrorKind.COMBINATION)
    if not scores and len(data) > 1:
        raise InputError(
            f"{counted(len(data), 'file')} are given.",
            "Give one training file, or --scores where they hold scores.",
            ErrorKind.SETTING,
        )


def _compare_files(files: "ScoreFiles", seed: int, json_file: Path | None) -> None:
    from rareclass.compare.score_files import compare_score_files

    console = output()
    found = compare_score_files(files, seed, progress="auto")
    console.print(f"{found.comparison.basis()}: {files.target} = {found.rare_label}", style="bold")
    print_comparison(console, found.comparison)
    if files.by is not None:
        print_by_value(console, files.by, found)
    give_json(json_file, found.to_dict())


def _check_written(
    out: Path | None, json_file: Path | None, data: "list[TablePlace]", overwrite: bool
) -> None:
    """Refuse files that cannot be written, before anything is read."""
    from rareclass.files import check_not_input, check_writable

    if out is not None and out.suffix not in (".csv", ".json"):
        raise InputError(
            f"--out {out} is neither .csv nor .json.",
            "Give it one of these endings.",
            ErrorKind.SETTING,
        )
    inputs = {f"the file {each.name}": each for each in data}
    check_json(json_file, overwrite, inputs)
    if out is not None:
        check_not_input(out, "--out", inputs)
        check_new(out, "--out", overwrite)
        check_writable(out, "--out")


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write dictionaries of the same keys as CSV, at once or not at all."""
    import polars as pl

    from rareclass.files import replacing

    with replacing(path) as temporary:
        pl.DataFrame(rows, infer_schema_length=None).write_csv(temporary)
