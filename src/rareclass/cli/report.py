"""``rareclass report``: one HTML page on a model, a comparison, a stream or a hunt."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.errors import ErrorKind, InputError, setting
from rareclass.files import check_output
from rareclass.parameters import opt
from rareclass.report import ReportOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rareclass.report.model_report import FinishedReport
    from rareclass.report.page import ReportPage
    from rareclass.tables.table_file import TablePlace

_OPTIONS = ("target", "time", "groups", "costs", "rows", "id_column")


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """Options of ``rareclass report``."""

    model: Path = cli.argument(
        "Model file of rareclass fit, folder of a stream or hunt, or a file of scores."
    )
    out: Path = opt("HTML file to write.", cli.REQUIRED)
    given: str | None = cli.argument(
        "File, folder or database with the target that the model did not learn from. By default "
        "the rows held out by fit. With a file of scores: another one to compare.",
        "[DATA]",
        None,
    )
    asked: ReportOptions
    compare: tuple[Path, ...] = opt(
        "Model to compare with on the same rows. May be given many times.", ()
    )
    truth: Path | None = opt("File with the classes, where files of scores lack them.")
    journal: Path | None = cli.journal_option()
    written: cli.OutputOptions
    table: cli.TableOptions


@cli.command
def report(options: PageOptions) -> None:
    """Write an HTML page that shows how good a model is at every threshold.

    One file that needs no network: curves with intervals, a threshold slider, costs, subgroups in
    which the model fails, drift since training, and a model card.
    """
    from rareclass.tables.folders import format_of_name

    model, out = options.model, options.out
    data = None if options.given is None else options.table.place(options.given, "DATA")
    inputs = {"the model": model} | ({"DATA": data} if data else {})
    check_output(out, "--out", options.written.overwrite, inputs)
    options.written.check(inputs)
    has_scores = model.is_file() and format_of_name(model) is not None
    if options.journal is not None:
        if has_scores:
            message = f"--journal is for a model, and {model} is a file of scores."
            raise ErrorKind.COMBINATION.error(message, "Leave it out.")
        _refuse(options.asked, "--journal", ("target", "time", "groups"))
        if data is None or options.compare:
            raise _needs_data("--journal is for one model and the table of all rows.")
    if has_scores:
        found = _of_scores(options, data)
    elif options.truth is not None:
        raise ErrorKind.COMBINATION.error(
            "--truth is for files of scores, and this is a model.", "Leave it out."
        )
    else:
        found = _of_models(options, data)
    write_page(out, found.page)
    options.written.give(found.numbers)


def write_page(path: Path, page: "ReportPage") -> None:
    """Write the page, and print its verdict and its path."""
    from rareclass.files import replacing
    from rareclass.report.page import rendered

    html = rendered(page)
    with replacing(path) as temporary:
        temporary.write_text(html, encoding="utf-8")
    console = screen.output()
    console.print(page.subtitle, style="bold")
    console.print(page.verdict)
    console.print(f"Saved {screen.file_text(path)}: open it in a browser; it needs no network.")


def _of_scores(options: PageOptions, data: "TablePlace | None") -> "FinishedReport":
    from rareclass.compare.score_files import ScoreFiles
    from rareclass.report.comparison_report import report_on_scores

    model, asked, text = options.model, options.asked, options.table.text
    if asked.target is None:
        raise ErrorKind.COMBINATION.error(
            f"{model} is a file of scores: which column has the classes?", "Name it by --target."
        )
    _refuse(asked, "A report of files of scores", ("time", "costs", "rows", "id_column"))
    paths = tuple(each for each in (model, data, *options.compare) if each)
    files = ScoreFiles(paths, asked.target, options.truth, groups=asked.groups, text=text)
    return report_on_scores(files)


def _of_models(options: PageOptions, data: "TablePlace | None") -> "FinishedReport":
    """Make the kind of report that a model, and others to compare it with, call for."""
    from rareclass.model.model_file import HUNT_SUMMARY
    from rareclass.stream.state import is_checkpoint

    model, text = options.model, options.table.text
    asked = replace(options.asked, journal=options.journal)
    if options.compare:
        if data is None:
            raise _needs_data("--compare needs rows to compare on.")
        _refuse(asked, "--compare", ("time", "costs", "rows"))
        from rareclass.report.comparison_report import report_on_models

        return report_on_models([model, *options.compare], data, asked, text)
    if data is None and (model / HUNT_SUMMARY).is_file():
        _refuse(asked, "The report of a hunt", _OPTIONS)
        from rareclass.report.hunt_report import report_on_hunt

        return report_on_hunt(model)
    if data is None and model.is_dir() and is_checkpoint(model):
        _refuse(asked, "The report of a stream", _OPTIONS)
        from rareclass.report.stream_report import report_on_stream

        return report_on_stream(model)
    from rareclass.report.model_report import report_on_held_out, report_on_model

    content = cli.opened(model)
    if data is not None:
        return report_on_model(content, model, data, asked, text)
    has_column = any(isinstance(each, str) for each in (asked.costs or {}).values())
    for name in _OPTIONS:
        if has_column if name == "costs" else vars(asked)[name]:
            raise _needs_data(f"{setting(name)} names a column of DATA, and no DATA is given.")
    return report_on_held_out(content, model, asked.costs)


def _refuse(asked: ReportOptions, what: str, refused: "Iterable[str]") -> None:
    for name in refused:
        if vars(asked)[name]:
            raise ErrorKind.COMBINATION.error(f"{what} takes no {setting(name)}.", "Leave it out.")


def _needs_data(message: str) -> InputError:
    return ErrorKind.COMBINATION.error(message, "Give DATA as well.")
