"""``rareclass fit``: from a training file to a model file."""

from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rareclass.cli.door import (
    ColumnOptions,
    OutputOptions,
    Positive,
    TableOptions,
    check_output,
    command,
    file_option,
    local_file,
    out_option,
    seed_option,
    setting_error,
)
from rareclass.cli.fit_text import print_data, print_next, print_saved, print_trained
from rareclass.cli.method import MethodOptions
from rareclass.cli.report import write_page
from rareclass.cli.rule import FitRuleOptions
from rareclass.cli.screen import output, print_notes
from rareclass.errors import InputError
from rareclass.files import Location
from rareclass.remote import RemotePath

if TYPE_CHECKING:
    from rareclass.fit.training import Trained
    from rareclass.fit.training_set import FitSettings
    from rareclass.tables.svmlight_file import SvmlightFile
    from rareclass.tables.table_file import TableFile


class Copies(StrEnum):
    """Weights of rows that are copies of another."""

    weigh = "weigh"
    drop = "drop"


@command
def fit(
    given: Annotated[
        str,
        typer.Argument(
            help="File or folder to train on: CSV, JSON lines, Parquet, svmlight; or a database.",
            metavar="TRAIN",
        ),
    ],
    out: Annotated[Path, out_option("Model file to write.")],
    *,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column with the labels.")
    ] = None,
    positive: Positive = None,
    columns: ColumnOptions,
    how: MethodOptions,
    copies: Annotated[
        Copies, typer.Option(help="Duplicate rows: weigh counts all of them, drop counts one.")
    ] = Copies.weigh,
    holdout: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.9,
            help="Share of rows held out for the estimate; 0: none. By default auto "
            "cross-validates; other methods hold out 0.25, or cross-validate with fewer than 20 "
            "rare rows.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column of groups, such as customers: rows of one group are held out together."
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="Column with the time of a row: the latest rows are held out."),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Column with row identifiers: not a feature; --explain of rareclass score names "
            "similar rare training rows by it.",
        ),
    ] = None,
    threshold: FitRuleOptions,
    no_baseline: Annotated[
        bool,
        typer.Option(
            "--no-baseline",
            help="Do not train histogram boosting and logistic regression for comparison, as "
            "methods other than auto do.",
        ),
    ] = False,
    seed: Annotated[int, seed_option("Same seed, same model.")] = 0,
    no_refit: Annotated[
        bool, typer.Option("--no-refit", help="Do not train the saved model on the held-out rows.")
    ] = False,
    memory: Annotated[
        str | None,
        typer.Option(help="Most memory to use, such as 4GiB. By default all that is free."),
    ] = None,
    report: Annotated[
        Path | None,
        file_option("Also write an HTML page on the rows held out, as rareclass report does."),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Also print every column, member and parameter.")
    ] = False,
    written: OutputOptions,
    table: TableOptions,
    scratch: Annotated[
        Path | None,
        typer.Option(
            help="Folder for tables too large for memory. By default TMPDIR or /var/tmp.",
            parser=local_file,
        ),
    ] = None,
) -> None:
    """Train a model that ranks rare rows first, estimate how good it is, and save it.

    The estimate is of new rows: by cross-validation, or on held-out rows. The saved model is
    trained on all rows.
    """
    cost_of_errors = threshold.cost is not None and "=" in threshold.cost
    learner = how.learner(None if cost_of_errors else threshold.cost, positive)
    rule = (threshold if cost_of_errors else replace(threshold, cost=None)).rule(time)
    train, character = table.place(given, "TRAIN"), table.character
    from rareclass.files import being_written
    from rareclass.fit.memory_plan import ENCODED_COPIES, VIEW_COPIES, plan_memory
    from rareclass.fit.training_set import FitSettings
    from rareclass.scratch_file import scratch_folder
    from rareclass.tables.table_file import open_table

    read: dict[str, Location] = {"the training file": train}
    check_output(out, "--out", written.overwrite, read, may_be_inside=True)
    read["--out"] = out
    written.check(read, written.overwrite)
    if report is not None:
        check_output(report, "--report", written.overwrite, read)
    file = open_table(train, character, scratch=scratch)
    plan = plan_memory(
        file, _memory_limit(memory), VIEW_COPIES if learner.reads_types else ENCODED_COPIES
    )
    settings = FitSettings(
        target=target,
        positive=tuple(positive or ()),
        **columns.settings,
        method=learner,
        weigh_copies=copies is Copies.weigh,
        holdout=holdout,
        folds=folds,
        seed=seed,
        refit=not no_refit,
        kernel_memory=plan.kernel_memory,
        on_disk=plan.on_disk,
        most_sampled=plan.most_sampled,
        scratch=None if scratch is None else scratch_folder(scratch),
        groups=groups,
        id_column=id_column,
        time=time,
        rule=rule,
        prevalence=threshold.prevalence,
        baseline=not no_baseline,
    )
    console = output()
    with ExitStack() as until_saved:
        if not isinstance(out, RemotePath):
            until_saved.enter_context(being_written(out, f"--out {out}"))
        trained = fit_and_save(console, file, out, settings, details)
    written.give(trained.as_plain_data())
    if report is not None:
        _write_report(console, report, out, trained)
    print_next(console, train.name, table.words(train), out, trained, report is not None, details)


def _memory_limit(memory: str | None) -> int:
    from rareclass.machine import available_memory, parse_bytes

    try:
        return available_memory() if memory is None else parse_bytes(memory)
    except ValueError as error:
        raise setting_error(
            f"--memory {memory} is not a size.", "Give one such as 4GiB."
        ) from error


def _write_report(console: Console, report: Path, out: Path, trained: "Trained") -> None:
    """Write the page; a model without scores of rows held out, or of levels, has none."""
    from rareclass.report.model_report import report_on_held_out

    try:
        page = report_on_held_out(trained.content, out).page
    except InputError as error:
        print_notes(console, f"no report was written: {error}")
    else:
        write_page(report, page)


def fit_and_save(
    console: Console,
    file: "TableFile | SvmlightFile",
    out: Path,
    settings: "FitSettings",
    details: bool = False,
) -> "Trained":
    """Train on a file, print what is learned on the way, and save the model."""
    from rareclass.fit.auto_method import method_for
    from rareclass.fit.training import terms_of
    from rareclass.fit.training import train as train_model
    from rareclass.fit.training_set import read_training_set
    from rareclass.machine import track
    from rareclass.model.model_file import save_model

    method = method_for(file, settings.method)
    if method is not settings.method:
        print_notes(console, f"method auto needs named columns; {method.name} is used instead.")
        settings = replace(settings, method=method)
    with track(f"Reading {file.path.name}"):
        data = read_training_set(file, settings)
    print_data(console, data, file.path.name, settings, details)
    if outlook := settings.method.outlook(data.size, terms_of(data.y, settings)):
        console.print(outlook)
    trained = train_model(data, settings)
    print_trained(console, trained, settings, details)
    save_model(out, trained.content)
    print_saved(console, out)
    return trained
