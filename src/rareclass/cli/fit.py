"""``rareclass fit``: from a training file to a model file."""

from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from rareclass.cli.door import (
    ColumnOptions,
    OutputOptions,
    Positive,
    TableOptions,
    check_output,
    command,
    file_or_url,
)
from rareclass.cli.method import MethodOptions
from rareclass.cli.report import write_page
from rareclass.cli.rule import FitRuleOptions
from rareclass.cli.screen import (
    NARROW,
    add_numbers,
    file_text,
    new_table,
    output,
    print_command,
    print_estimate,
    print_leaderboard,
    print_notes,
    print_threshold,
)
from rareclass.errors import ErrorKind, InputError, command_line, counted
from rareclass.files import Location
from rareclass.remote import RemotePath

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rareclass.decide.chosen_threshold import ChosenThreshold
    from rareclass.fit.training import Trained
    from rareclass.fit.training_set import FitSettings, TrainingSet
    from rareclass.model.facts import CombinationFacts, RankingEstimate, TrainingFacts
    from rareclass.tables.columns import Column
    from rareclass.tables.svmlight_file import SvmlightFile
    from rareclass.tables.table_file import TableFile

_MOST_COLUMNS = 40


class Copies(StrEnum):
    """Weights of rows that are copies of another."""

    weigh = "weigh"
    drop = "drop"


@command
def fit(
    given: Annotated[
        str,
        typer.Argument(
            help="File or folder to learn from: CSV, JSON lines, Parquet, svmlight; or a database.",
            metavar="TRAIN",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Model file to write.", parser=file_or_url)
    ],
    *,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column that holds the classes.")
    ] = None,
    positive: Positive = None,
    columns: ColumnOptions,
    how: MethodOptions,
    copies: Annotated[
        Copies,
        typer.Option(help="Rows that are copies of another: weigh counts them all, drop once."),
    ] = Copies.weigh,
    holdout: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.9,
            help="Share of rows held out for the estimate; 0: none. By default auto estimates by "
            "cross-fitting on all rows, the others so with fewer than 20 rare rows, else on .25 of "
            "the rows.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column whose rows of one value, such as a customer's, are held out together."
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
            help="Column that names a row, not learned from: rare rows that the model keeps, to "
            "compare alerts with, have it in place of their number.",
        ),
    ] = None,
    threshold: FitRuleOptions,
    baseline: Annotated[
        bool,
        typer.Option(
            "--baseline/--no-baseline",
            help="Try histogram boosting and logistic regression on the same held-out rows; auto "
            "has them among its members.",
        ),
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same model.")] = 0,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit/--no-refit", help="Train the saved model on the held-out rows as well."
        ),
    ] = True,
    memory: Annotated[
        str | None, typer.Option(help="Most memory to take, such as 4GiB. By default what is free.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Also write an HTML page on the rows held out, as rareclass report does.",
            parser=file_or_url,
        ),
    ] = None,
    written: OutputOptions,
    table: TableOptions,
    dask: Annotated[
        str | None,
        typer.Option(
            help="Learn a table of Parquet on the workers of a Dask cluster: tcp://HOST:PORT, or "
            "local. With --method rankrc, mibc or ordinal."
        ),
    ] = None,
    scratch: Annotated[
        Path | None,
        typer.Option(help="Folder for tables too large for memory. By default TMPDIR or /var/tmp."),
    ] = None,
) -> None:
    """Learn to rank the rare rows of TRAIN, or its highest levels, first, and save the model.

    How good the ranking is of new rows is estimated by cross-fitting, or on rows held out; the
    saved model learns from all of them.
    """
    cost_of_errors = threshold.cost is not None and "=" in threshold.cost
    learner = how.learner(None if cost_of_errors else threshold.cost, positive)
    rule = (threshold if cost_of_errors else replace(threshold, cost=None)).rule(time)
    train, character = table.place(given, "TRAIN"), table.character
    from rareclass.files import being_written
    from rareclass.fit.memory_plan import ENCODED_COPIES, VIEW_COPIES, plan_memory
    from rareclass.fit.rows_elsewhere import dask_client
    from rareclass.fit.training_set import FitSettings
    from rareclass.scratch_file import scratch_folder
    from rareclass.tables.table_file import open_table

    if dask is not None and learner.reads_types:
        raise InputError(
            f"--dask: {learner.name} learns here, from a sample of a table that is too large.",
            "Give --method rankrc, mibc or ordinal, which sum over all rows on the workers.",
            ErrorKind.COMBINATION,
        )
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
        refit=refit,
        kernel_memory=plan.kernel_memory,
        on_disk=plan.on_disk or dask is not None,
        most_sampled=plan.most_sampled,
        scratch=None if scratch is None else scratch_folder(scratch),
        groups=groups,
        id_column=id_column,
        time=time,
        rule=rule,
        prevalence=threshold.prevalence,
        baseline=baseline,
    )
    console = output()
    with ExitStack() as until_saved:
        if not isinstance(out, RemotePath):
            until_saved.enter_context(being_written(out, f"--out {out}"))
        if dask is not None:
            client = until_saved.enter_context(dask_client(dask))
            settings = replace(settings, client=client)
        trained = fit_and_save(console, file, out, settings)
    written.give(trained.as_plain_data())
    if report is not None:
        _write_report(console, report, out, trained)
    print_command(
        console, "Next:", command_line("score", out, "NEW_ROWS.csv", "--out", "scores.csv")
    )


def _memory_limit(memory: str | None) -> int:
    from rareclass.machine import available_memory, parse_bytes

    try:
        return available_memory() if memory is None else parse_bytes(memory)
    except ValueError as error:
        raise InputError(
            f"--memory {memory} is not a size.", "Give one such as 4GiB.", ErrorKind.SETTING
        ) from error


def _write_report(console: Console, report: Path, out: Path, trained: "Trained") -> None:
    """Write the page; a model without scores of rows held out, or of levels, has none."""
    from rareclass.report.model_report import report_on_held_out

    try:
        page = report_on_held_out(trained.content, out).page
    except InputError as error:
        print_notes(console, [f"no report was written: {error}"])
    else:
        write_page(report, page)


def fit_and_save(
    console: Console, file: "TableFile | SvmlightFile", out: Path, settings: "FitSettings"
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
        print_notes(console, [f"an svmlight file is learned by {method.name}."])
        settings = replace(settings, method=method)
    with track(f"Reading {file.path.name}"):
        data = read_training_set(file, settings)
    _print_data(console, file.path, data, settings)
    outlook = settings.method.outlook(data.size, terms_of(data.y, settings))
    print_notes(console, [outlook] if outlook else [])
    trained = train_model(data, settings)
    _print_trained(console, trained, settings)
    save_model(out, trained.content)
    console.print(f"\nSaved {file_text(out)}: encoder, model, and what is printed here.")
    return trained


def _print_data(
    console: Console, path: Location, data: "TrainingSet", settings: "FitSettings"
) -> None:
    console.print(
        f"{path.name}: {counted(data.n_rows, 'row')}, "
        f"{counted(data.rows.shape[1], 'column')} to learn from",
        style="bold",
    )
    for line in data.target.description():
        console.print(line)
    if data.columns:
        console.print()
        _print_columns(console, data.columns)
    notes = []
    if settings.on_disk:
        fitted_on = counted(min(len(data.y), settings.most_sampled), "row")
        sampled = f"Its encoder is fitted on {fitted_on} at most, all rare ones first"
        if settings.method.reads_types:
            sampled = (
                f"It is learned from {fitted_on} at most, all rare ones first; the others are "
                "drawn, and weighted to stand for all"
            )
        why = "the table is larger than a quarter of the memory that may be used: it"
        if settings.client is not None:
            n_workers = counted(len(settings.client.nthreads()), "worker")
            why = f"the table is learned from on {n_workers} of Dask; here it"
        notes.append(
            f"{why} was read from disk in pieces. {sampled}; counts of distinct values above "
            "16,384 are estimates."
        )
    if data.n_unlabelled:
        rows = counted(data.n_unlabelled, "row has", "rows have")
        left_out = "was" if data.n_unlabelled == 1 else "were"
        notes.append(f"{rows} no {data.target.column} and {left_out} left out.")
    if data.n_copies:
        worth = "counts as many" if data.weight is not None else "counts once (--copies drop)"
        copies = counted(data.n_copies, "row is an exact copy", "rows are exact copies")
        notes.append(
            f"{copies} of others (same columns, same class): each "
            f"group became one row that {worth}, so that no copy of a training row is held out. "
            "Rows equal in the columns but of the other class may still be."
        )
    notes += data.target.notes()
    if notes:
        console.print()
        print_notes(console, notes)


def _print_columns(console: Console, columns: "Sequence[Column]") -> None:
    """Print a table of what each column holds and what is done with it."""
    shown, rest = list(columns), []
    if len(shown) > _MOST_COLUMNS + 3:
        # Plain numbers say the least: they are the ones summed up.
        plain = [column for column in columns if column.kind == "number" and not column.n_missing]
        telling = [column for column in columns if column not in plain]
        chosen = set(map(id, (telling + plain)[:_MOST_COLUMNS]))
        shown = [column for column in columns if id(column) in chosen]
        rest = [column for column in columns if id(column) not in chosen]
    is_wide = console.width >= NARROW
    table = new_table()
    longest = 28 if is_wide else 20
    table.add_column("Column", no_wrap=True, max_width=longest, overflow="ellipsis")
    table.add_column("Holds", overflow="fold", min_width=8)
    if is_wide:
        add_numbers(table, "Empty", "Distinct")
    table.add_column("What is done with it", overflow="fold")
    for column in shown:
        style = "" if column.is_used else "dim"
        counts = [f"{column.n_missing:,}" if column.n_missing else "", f"{column.n_distinct:,}"]
        cells = [column.name, column.kind, *(counts if is_wide else []), column.treatment]
        table.add_row(*(Text(cell, style=style) for cell in cells))
    console.print(table)
    if rest:
        kinds = Counter(column.kind for column in rest)
        listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        console.print(f"and {len(rest)} more like these ({listed})")


def _print_trained(console: Console, trained: "Trained", settings: "FitSettings") -> None:
    from rareclass.model.facts import CombinationFacts

    estimate, training = trained.estimate, trained.content.facts.training
    assert training is not None
    console.print()
    if estimate is not None:
        console.print(_estimated_on(estimate, training), style="bold")
        print_estimate(console, estimate)
        if trained.rule is not None:
            print_threshold(console, trained.rule)
        for line in trained.decided:
            console.print(line)
        _print_other_thresholds(console, trained.other_thresholds)
        if trained.beside_it:
            console.print("Beside it, with their defaults, on the same rows:")
        for each in trained.beside_it:
            console.print(
                f"  {each.name}: AUC {each.auc:.3f}, average precision "
                f"{each.average_precision:.3f}, {each.seconds:.1f} s"
            )
        console.print()
    method = trained.content.facts.method
    if isinstance(method, CombinationFacts):
        print_leaderboard(console, method.leaderboard, method.also_tried, estimate)
        _print_members_left_out(console, method)
        console.print()
    for line in trained.summary:
        console.print(line, markup=False)
    if estimate is not None and not str(training.estimated_by).startswith("cross-fitting"):
        console.print(
            f"Saved model: trained again on all rows with this {settings.method.parameter}."
            if training.trained_on_all_rows
            else "Saved model: trained without the held-out rows."
        )
    print_notes(console, trained.notes)


def _print_members_left_out(console: Console, method: "CombinationFacts") -> None:
    """Print which members were not trained, or not on all folds, and why."""
    untried = list(dict.fromkeys([*method.not_tried, *method.without_time]))
    if untried:
        console.print(
            f"Not trained, time budget used up: {', '.join(untried)} (--time-budget gives more)",
            markup=False,
        )
    if method.behind:
        console.print(
            "Clearly behind on their first fold, and not trained on others: "
            f"{', '.join(method.behind)}",
            markup=False,
        )


def _print_other_thresholds(console: Console, others: "Sequence[ChosenThreshold]") -> None:
    """Print thresholds that a user may take in place of the default."""
    if others:
        console.print("Other thresholds, for rareclass threshold MODEL --threshold:")
    for each in others:
        console.print(
            f"  {each.threshold:.4g}, {each.rule}: {counted(each.alerts, 'row')} called rare, "
            f"precision {each.precision.value:.3f}, recall {each.recall.value:.3f}"
        )


def _estimated_on(estimate: "RankingEstimate", training: "TrainingFacts") -> str:
    if training.estimated_by == "latest rows":
        return f"On the latest rows by {training.time}: {estimate.rows_text()}"
    together = f"; those of one {training.groups} together" if training.groups else ""
    if str(training.estimated_by).startswith("cross-fitting"):
        return f"By cross-fitting, on {estimate.rows_text()}{together}"
    return f"On {estimate.rows_text('held-out ')}{together}"
