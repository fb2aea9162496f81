"""``rareclass compare``: the best ranking, and the significance of its lead."""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.errors import ErrorKind, counted, seconds_text, setting
from rareclass.files import check_output
from rareclass.parameters import opt, parse_number, read_seconds
from rareclass.tables import ColumnSettings

if TYPE_CHECKING:
    from rareclass.compare.leaderboard import Leaderboard
    from rareclass.compare.out_of_fold import MethodRun
    from rareclass.compare.score_files import ComparedFiles
    from rareclass.tables.table_file import TablePlace


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Options of ``rareclass compare``."""

    given: tuple[str, ...] = cli.argument(
        "A training file or database to compare methods on, or with --scores two or more files of "
        "scores of the same rows.",
        "TRAIN | FILE...",
    )
    target: str | None = opt("Column that holds the classes.")
    scores: bool = opt("The files hold scores, of any origin.", False, names=("--scores",))
    truth: Path | None = opt("File with the classes. By default a file of scores has them.")
    score: tuple[str, ...] = opt(
        "Column of scores. Many times: several of each file.",
        (),
        show_default="score, probability, or the only column of numbers",
    )
    id_column: str | None = opt("Column that rows of scores are matched by.")
    methods: tuple[str, ...] = opt(
        "Method to compare. Many times, or with commas: auto, rankrc, mibc, lightgbm, xgboost, "
        "catboost, hgb, forest, balanced-forest, extra-trees, easy-ensemble, logistic, svm.",
        (),
        show_default="the quick ones; all for all that are installed",
    )
    positive: tuple[str, ...] = cli.positive_option()
    columns: ColumnSettings
    groups: str | None = opt(
        "Column of groups, such as customers: rows of one group are held out together and counted "
        "as one."
    )
    weight: str | None = opt("Column with the number of rows that each row of scores stands for.")
    by: str | None = opt("Column whose values are also compared separately.")
    time: str | None = opt(
        "Column with the time of a row: later rows are predicted from earlier ones."
    )
    folds: int | None = opt("Folds of the cross-validation.", min=2, show_default="5")
    time_budget: float | None = opt(
        "Stop a method that takes longer, all folds together: seconds, or one such as 5m.",
        reads=read_seconds,
        show_default="none",
    )
    k: tuple[int, ...] = opt(
        "Also compare precision at k. Many times.",
        (),
        reads=partial(parse_number, words={}, remedy="Give a whole number.", is_whole=True),
    )
    seed: int = cli.seed_option("Seed of folds and methods.")
    out: Path | None = opt("Leaderboard to write, .csv or .json: a row a method.")
    written: cli.OutputOptions
    table: cli.TableOptions

    def check(self, data: "list[TablePlace]") -> None:
        """Refuse options, and a number of files, that are for the other kind of comparison."""
        kind, remedy = "files of scores", ", or give --scores"
        misplaced = ["truth", "score", "id_column", "weight", "by"]
        if self.scores:
            kind, remedy = "methods on a training file", " or --scores"
            misplaced = ["methods", *vars(self.columns), "time", "folds", "time_budget", "out"]
        for name in misplaced:
            if (vars(self) | vars(self.columns))[name]:
                raise ErrorKind.COMBINATION.error(
                    f"{setting(name)} is for comparing {kind}.",
                    f"Leave out {setting(name)}{remedy}.",
                )
        if not self.scores and len(data) > 1:
            raise ErrorKind.COMBINATION.error(
                f"{counted(len(data), 'file')} are given.",
                "Give one training file, or --scores where they hold scores.",
            )
        if self.scores and self.target is None:
            raise ErrorKind.COMBINATION.error(
                "--target is missing: which column holds the classes?", ""
            )


@cli.command
def compare(options: CompareOptions) -> None:
    """Compare methods on the same folds of TRAIN, or score files of the same rows (--scores).

    Prints each measure with intervals, and paired tests of the best against every other one.
    """
    from polars import DataFrame

    from rareclass.files import write_table

    data, written = [options.table.place(each, "TRAIN") for each in options.given], options.written
    options.check(data)
    inputs, out = {f"the file {each.name}": each for each in data}, options.out
    written.check(inputs)
    if options.scores:
        written.give(_compare_files(options, data))
        return
    if out is not None:
        check_output(out, "--out", written.overwrite, inputs, True, (".csv", ".json"))
    board = _compare_methods(options, data[0])
    if out is not None:
        if out.suffix.lower() == ".json":
            cli.write_json(out, board.rows())
        else:
            write_table(out, DataFrame(board.rows(), infer_schema_length=None))
        screen.output().print(f"Saved {screen.file_text(out)}")
    written.give(board.to_dict())


def _compare_methods(options: CompareOptions, path: "TablePlace") -> "Leaderboard":
    from rareclass.compare import leaderboard
    from rareclass.machine import track
    from rareclass.tables.table_file import open_table

    settings = leaderboard.CompareSettings(
        options.target, options.positive, **vars(options.columns), groups=options.groups,
        time=options.time, folds=options.folds or 5, seed=options.seed,
        methods=leaderboard.check_methods(options.methods), seconds=options.time_budget,
        ks=tuple(map(float, options.k)),
    )  # fmt: skip
    console = screen.output()
    file = open_table(path, options.table.text)
    with track(f"Reading {path.name}"):
        data = leaderboard.read_compared(file, settings)
    console.print(
        f"{path.name}: {counted(data.n_rows, 'row')}, "
        f"{counted(data.rows.shape[1], 'column')} to learn from",
        style="bold",
    )
    for line in data.target.description():
        console.print(line)
    if data.n_copies:
        rows = counted(data.n_copies, "duplicate row was", "duplicate rows were")
        screen.print_notes(console, f"{rows} merged (with weights).")
    if data.which is not None:
        screen.print_notes(console, "methods are compared on any rare class against the majority.")
    console.print(settings.plan())
    if sys.stdout.isatty():
        console.print("Ctrl-C stops it and compares the methods that have finished.")
    board = leaderboard.compare_on(data, settings, report=partial(_print_run, console))
    console.print(f"\n{board.comparison.basis(board.found.folds)}")
    _print_leaderboard(console, board, settings.time is not None)
    return board


def _print_run(console: Console, run: "MethodRun", found: float | None) -> None:
    """Print how a method did, as soon as it has finished."""
    line = run.why_not()
    if found is not None:
        line = f"{run.name}: average precision {found:.3f}, {seconds_text(run.seconds)}"
    console.print(line, style="dim")


def _compare_files(options: CompareOptions, data: "list[TablePlace]") -> dict[str, Any]:
    """Compare files of scores, print what comes out, and return it as plain data."""
    from rareclass.compare.score_files import ScoreFiles, compare_score_files

    files = ScoreFiles(
        tuple(data), options.target or "", options.truth, options.score, options.id_column,
        options.groups, options.positive, tuple(map(float, options.k)), options.table.text,
        options.weight, options.by,
    )  # fmt: skip
    console = screen.output()
    found = compare_score_files(files)
    comparison = found.comparison
    console.print(f"{comparison.basis()}: {files.target} = {found.rare_label}", style="bold")
    for standings in comparison.measures:
        console.print()
        screen.print_block(console, standings.block(), spare=("Minus the best", "p"))
    console.print()
    if len(comparison.measures[0].standings) > 1:
        console.print(comparison.about_verdicts(), style="dim")
    if files.by is not None:
        _print_by_value(console, files.by, found)
    return found.to_dict()


def _print_by_value(console: Console, column: str, found: "ComparedFiles") -> None:
    for value, comparison in found.by.items():
        console.print(f"\n{column} = {value}: {comparison.basis()}", style="bold")
        for standings in comparison.measures:
            console.print(standings.says(with_bounds=True))
    for value, why in found.not_judged.items():
        console.print(f"{column} = {value}: not compared, {why}", style="dim")
    if len(found.by) > 1:
        words = "Each value has its own tests: among many values some differ by chance."
        console.print(words, style="dim")


def _print_leaderboard(console: Console, board: "Leaderboard", by_day: bool) -> None:
    """Print methods, the best first, with their tests, and the reasons of those without scores."""
    comparison = board.comparison
    heads = ("Method", "AP", f"{comparison.level:.0%} interval", "", "AUC", "Seconds")
    rows = []
    for run in board.runs:
        if run.is_judged:
            by_ap, by_auc = board.ordered_by.of(run.name), comparison.by("roc_auc").of(run.name)
            shown = f"{by_ap.value:.3f}", by_ap.interval.bounds_text(), by_ap.verdict
            rows.append((run.name, *shown, f"{by_auc.value:.3f}", f"{run.seconds:.1f}"))
    console.print("By average precision", style="bold")
    screen.print_table(console, heads, rows, (heads[4], heads[2]))
    if board.of_classes:
        _print_of_classes(console, board)
    for run in board.runs:
        if not run.is_judged:
            remedy = " A longer --time-budget lets it finish." if run.status == "stopped" else ""
            console.print(run.why_not() + remedy, style="dim")
    console.print()
    for standings in comparison.measures:
        console.print(standings.says())
    if len(comparison.measures[0].standings) > 1:
        console.print(
            f"Verdicts: paired tests at the {1 - comparison.level:.0%} level, Holm-corrected over "
            "all pairs, with the variation between training sets. The intervals leave that "
            "variation out." + (" Rows of one day count as one." if by_day else ""),
            style="dim",
        )


def _print_of_classes(console: Console, board: "Leaderboard") -> None:
    """Print how well each method ranks the rows of each rare class above the majority."""
    methods = [run.name for run in board.runs if run.is_judged]
    rows = [
        (name, *(f"{value:.3f}" for value in board.of_classes[name].values())) for name in methods
    ]
    console.print("\nAverage precision of each class against the majority", style="bold")
    screen.print_table(console, ("Method", *board.of_classes[methods[0]]), rows)
