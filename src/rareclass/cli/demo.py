"""``rareclass demo``: the whole of it on digits that come with scikit-learn."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from rareclass.cli.door import OVERWRITE_OPTION, check_new, exit_codes_for_faults
from rareclass.cli.evaluate import evaluate_and_report
from rareclass.cli.fit import fit_and_save
from rareclass.cli.score import score_and_report
from rareclass.cli.screen import file_text, output, print_command, print_notes
from rareclass.errors import InputError

if TYPE_CHECKING:
    from rareclass.verbs.demo import Rival


@exit_codes_for_faults
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files.")] = Path(
        "rareclass-demo"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same files.")] = 0,
    overwrite: Annotated[bool, OVERWRITE_OPTION] = False,
) -> None:
    """Fit, score and evaluate on digits of which one is made rare, beside usual classifiers."""
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is a file.", "Give the name of a folder.")
    console = output()
    from rareclass.verbs.demo import (
        FILES,
        MODEL_NAME,
        SCORES_NAME,
        check_not_the_users,
        rivals,
        write_digits,
    )

    check_not_the_users(out)
    for name in FILES:
        check_new(out / name, "The file", overwrite)
    try:
        train, test = write_digits(out, seed)
    except OSError as error:
        raise InputError(
            f"Cannot use the folder {out}: {error.strerror}.", "Choose another with --out."
        ) from error
    model, scores = out / MODEL_NAME, out / SCORES_NAME
    ours = _run(console, train, test, model, scores, seed)
    _print_step(console, "4. Usual classifiers on the same rows")
    _print_rivals(console, [ours, *rivals(train, test, seed)])
    print_notes(
        console, [f"with {ours.n_rare:.0f} rare test rows, close figures may differ by chance."]
    )
    _print_step(console, "The files")
    for path in (train, test, model, scores):
        console.print(file_text(path), markup=False, soft_wrap=True)
    console.print()
    print_command(
        console,
        "Try it on a table of yours:",
        "rareclass fit TABLE.csv --target COLUMN --out model.skops",
    )


def _run(
    console: Console, train: Path, test: Path, model: Path, scores: Path, seed: int
) -> "Rival":
    from time import perf_counter

    from rareclass.tables.table_file import open_table
    from rareclass.verbs.demo import SECONDS, TARGET, Rival
    from rareclass.verbs.fit.auto_method import AutoMethod
    from rareclass.verbs.fit.training_set import FitSettings
    from rareclass.verbs.model_file import load_model

    words = f"--target {TARGET} --time-budget {SECONDS} --out {model}"
    _print_step(console, f"1. rareclass fit {train} {words}")
    started = perf_counter()
    settings = FitSettings(target=TARGET, method=AutoMethod(seconds=SECONDS), seed=seed)
    fit_and_save(console, open_table(train), model, settings)
    seconds = perf_counter() - started
    content = load_model(model)
    _print_step(console, f"2. rareclass score {model} {test} --out {scores}")
    score_and_report(console, content, test, scores)
    _print_step(console, f"3. rareclass evaluate {model} {test}")
    estimate = evaluate_and_report(console, content, test).estimate
    values = {measure.name: measure.value for measure in estimate.measures}
    return Rival(
        "RareClassifier",
        values["AUC"],
        values["average precision"],
        seconds,
        estimate.n_rare or 0.0,
    )


def _print_step(console: Console, title: str) -> None:
    console.print()
    console.print(title, style="bold cyan", markup=False, soft_wrap=True)


def _print_rivals(console: Console, outcomes: list["Rival"]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("Method")
    for name in ("AUC", "Average precision", "Seconds"):
        table.add_column(name, justify="right")
    for outcome in outcomes:
        table.add_row(
            outcome.name,
            f"{outcome.auc:.3f}",
            f"{outcome.average_precision:.3f}",
            f"{outcome.seconds:.1f}",
        )
    console.print(table)
