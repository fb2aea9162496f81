"""``rareclass report``: one HTML page on a model, a comparison, a stream or a hunt."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

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
from rareclass.cli.rule import costs_of
from rareclass.cli.screen import file_text, output, print_notes
from rareclass.errors import ErrorKind, InputError
from rareclass.files import Location

if TYPE_CHECKING:
    from rareclass.report.document import ReportPage
    from rareclass.report.model_report import FinishedReport
    from rareclass.report.reading import ReportOptions
    from rareclass.tables.table_file import TablePlace

_REPORT_OPTION = typer.Option("--out", "-o", help="HTML file to write.", parser=file_or_url)


@exit_codes_for_faults
def report(
    model: Annotated[
        Path,
        typer.Argument(
            help="Model file of rareclass fit, folder of a stream or hunt, or a file of scores.",
            parser=file_or_url,
        ),
    ],
    out: Annotated[Path, _REPORT_OPTION],
    given: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]",
            help="File, folder or database with the target that the model did not learn from. By "
            "default the rows that were held out when it was fitted, whose scores it holds. Beside "
            "a file of scores, another one to compare it with.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column with the classes, if it has another name."),
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column with the time of a row: alerts are a day then.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column whose values are looked at one by one.")
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            help="fp=5,fn=100 for a false alert and a missed rare row, review=1 for any alert; a "
            "column of costs by its name, as in fn=amount."
        ),
    ] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(
            help="Model to compare with on the same rows. May be given many times.",
            parser=file_or_url,
        ),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="File with the classes, where files of scores lack them.")
    ] = None,
    rows: Annotated[
        int,
        typer.Option(
            min=0, max=100, help="Show so many of the highest rows, with cells. By default none."
        ),
    ] = 0,
    json_file: Annotated[Path | None, JSON_OPTION] = None,
    overwrite: Annotated[bool, OVERWRITE_OPTION] = False,
    separator: Annotated[str | None, SEPARATOR_OPTION] = None,
    query: Annotated[str | None, QUERY_OPTION] = None,
) -> None:
    """Write a page that shows how good a model is, and at which threshold.

    One HTML file that needs no network: curves with intervals, a threshold to drag, what errors
    cost, where the model fails, how far the rows have moved since training, and a model card.
    """
    character = parse_separator(separator)
    data = None if given is None else table_at(given, query, "DATA")
    from rareclass.report.reading import ReportOptions

    costs = None if cost is None else costs_of(cost)
    options = ReportOptions(target, time, groups, costs, rows, character)
    inputs = {"the model": model} | ({"DATA": data} if data else {})
    check_page(out, "--out", overwrite, inputs)
    check_json(json_file, overwrite, inputs)
    made = _made(Sources(model, data, tuple(compare or ()), truth), options)
    write_page(out, made.page)
    give_json(json_file, made.numbers)


def check_page(path: Path, option: str, overwrite: bool, inputs: Mapping[str, Location]) -> None:
    """Raise `InputError` where the page cannot be written, or would replace what was read."""
    from rareclass.files import check_not_input, check_not_inside, check_writable

    check_not_input(path, option, inputs)
    for read in inputs.values():
        check_not_inside(path, option, read)
    check_new(path, option, overwrite)
    check_writable(path, option)


def write_page(path: Path, page: "ReportPage") -> None:
    """Write the page, and print its verdict and its path."""
    from rareclass.files import replacing
    from rareclass.report.page import rendered

    html = rendered(page)
    with replacing(path) as temporary:
        temporary.write_text(html, encoding="utf-8")
    console = output()
    console.print(page.subtitle, style="bold", markup=False)
    console.print(page.verdict, markup=False)
    console.print(f"Saved {file_text(path)}: open it in a browser; it needs no network.")


class Sources(NamedTuple):
    """Paths that a report is made from."""

    model: Path
    data: "TablePlace | None"
    others: tuple[Path, ...]
    truth: Path | None


def _made(sources: Sources, options: "ReportOptions") -> "FinishedReport":
    """Make the kind of report that the paths call for."""
    from rareclass.model.model_file import HUNT_SUMMARY
    from rareclass.stream.checkpoint import is_checkpoint

    model, data, others, truth = sources
    if _is_table(model):
        return _of_scores(sources, options)
    if truth is not None:
        raise InputError(
            "--truth is about files of scores, and this is a model.",
            "Leave it out.",
            ErrorKind.COMBINATION,
        )
    if others:
        if data is None:
            raise _needs_data("--compare needs rows to compare on.")
        _refuse(options, "--compare", ("--time", "--cost", "--rows"))
        from rareclass.report.comparison_report import report_on_models

        return report_on_models([model, *others], data, options)
    if data is None and (model / HUNT_SUMMARY).is_file():
        _refuse(options, "The report of a hunt", _OPTIONS)
        from rareclass.report.hunt_report import report_on_hunt

        return report_on_hunt(model)
    if data is None and model.is_dir() and is_checkpoint(model):
        _refuse(options, "The report of a stream", _OPTIONS)
        from rareclass.report.stream_report import report_on_stream

        return report_on_stream(model)
    return _of_model(model, data, options)


def _of_model(model: Path, data: "TablePlace | None", options: "ReportOptions") -> "FinishedReport":
    from rareclass.opening import open_model
    from rareclass.report.model_report import report_on_held_out, report_on_model

    content = open_model(model)
    print_notes(output(), content.notices)
    if data is not None:
        return report_on_model(content, model, data, options)
    for name in _given(options):
        if name != "--cost":
            raise _needs_data(f"{name} is about the rows of a file.")
    if any(isinstance(each, str) for each in (options.costs or {}).values()):
        raise _needs_data("--cost names a column, and there is no DATA.")
    return report_on_held_out(content, model, options.costs)


def _of_scores(sources: Sources, options: "ReportOptions") -> "FinishedReport":
    from rareclass.compare.score_files import ScoreFiles
    from rareclass.report.comparison_report import report_on_scores

    if options.target is None:
        raise InputError(
            f"{sources.model} is a file of scores: which column has the classes?",
            "Name it by --target.",
            ErrorKind.COMBINATION,
        )
    _refuse(options, "A report of files of scores", ("--time", "--cost", "--rows"))
    paths = tuple(each for each in (sources.model, sources.data, *sources.others) if each)
    files = ScoreFiles(
        paths, options.target, sources.truth, groups=options.groups, separator=options.separator
    )
    return report_on_scores(files)


def _is_table(path: Path) -> bool:
    """Tell a table from a model by the ending of its name."""
    endings = {".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".txt"}
    return path.is_file() and bool(endings & {each.lower() for each in path.suffixes})


_OPTIONS = ("--target", "--time", "--groups", "--cost", "--rows")


def _given(options: "ReportOptions") -> list[str]:
    values = (options.target, options.time, options.groups, options.costs, options.n_shown or None)
    return [name for name, value in zip(_OPTIONS, values, strict=True) if value is not None]


def _refuse(options: "ReportOptions", what: str, refused: tuple[str, ...]) -> None:
    for name in _given(options):
        if name in refused:
            raise InputError(f"{what} takes no {name}.", "Leave it out.", ErrorKind.COMBINATION)


def _needs_data(message: str) -> InputError:
    return InputError(message, "Give DATA as well.", ErrorKind.COMBINATION)
