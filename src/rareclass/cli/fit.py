"""``rareclass fit``: from a training file to a model file."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.cli.fit_text import print_data, print_next, print_trained
from rareclass.cli.model_file import COST, RuleOptions, rule_option
from rareclass.cli.report import write_page
from rareclass.errors import ErrorKind, InputError, setting
from rareclass.files import Location, check_output
from rareclass.fit import EstimateSettings
from rareclass.parameters import opt, parse_number, read_bytes, read_seconds
from rareclass.remote import RemotePath
from rareclass.tables import ColumnSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rareclass.fit.method import Method
    from rareclass.fit.training import Trained
    from rareclass.fit.training_set import FitSettings
    from rareclass.tables.svmlight_file import SvmlightFile
    from rareclass.tables.table_file import TableFile


MethodName = Literal["auto", "rankrc", "mibc", "ordinal-rankrc"]
Effort = Literal["quick", "standard", "thorough"]


def effort_option(default: Effort | None, **more: Any) -> Any:
    """Option ``--effort`` of the plan of auto."""
    return opt(
        "Plan of auto: quick (half of the time), standard, or thorough (more members and rows). "
        "The same rows, seed and effort give the same model.",
        default,
        metavar="EFFORT",
        **more,
    )


# The options of each method that not all have.
_OWN: dict[MethodName, tuple[str, ...]] = {
    "auto": ("positive", "effort", "time_budget", "objective", "members"),
    "rankrc": ("positive", "lam", "width"),
    "mibc": ("positive", "cost", "covariance"),
    "ordinal-rankrc": ("lam", "levels"),
}


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """Options on how to learn; None where the user gave none."""

    method: MethodName = opt(
        "auto: an ensemble of trees, kernel machines and linear models. rankrc: one kernel "
        "machine, for numeric columns. mibc: a linear model, for very wide or very large tables. "
        "ordinal-rankrc: a kernel machine for ordered levels, such as grades.",
        "auto",
        metavar="METHOD",
    )
    effort: Effort | None = effort_option(None, show_default="standard")
    time_budget: float | None = opt(
        "Time limit of training with auto: seconds, 5m or 1h. It cuts the plan, and the model "
        "then depends on the speed of the machine. Ctrl-C keeps the members so far.",
        reads=read_seconds,
        show_default="none",
    )
    objective: str | None = opt(
        "Measure that auto maximises on held-out rows: average-precision, roc-auc, precision-at-k "
        "(k: the number of rare rows), or precision-at=100.",
        show_default="average-precision",
    )
    members: tuple[str, ...] = opt(
        "Ensemble member of auto: kernel, trees, or a name that fit --details prints. Many times.",
        (),
        show_default="auto",
    )
    lam: float | None = opt(
        "Regularisation strength of rankrc and ordinal-rankrc: a number such as 0.01 or 2^-8; "
        "auto cross-validates.",
        reads=parse_number,
        show_default="auto",
    )
    width: float | str | None = opt(
        "Kernel width of rankrc: a number (sigma), mean (the mean distance of rows), or auto: "
        "cross-validated with lam beyond 20,000 rows, else mean.",
        reads=partial(
            parse_number,
            words={"auto": None, "mean": "mean"},
            remedy="Give auto, mean, or a number such as 2.5.",
        ),
        show_default="auto",
    )
    covariance: Literal["full", "diagonal", "factor"] | None = opt(
        "Covariance estimate of mibc: full, diagonal or factor.",
        metavar="KIND",
        show_default="full; diagonal for svmlight and above 1,000 encoded columns",
    )
    levels: tuple[str, ...] = opt(
        "Levels of the target of ordinal-rankrc from the lowest to the highest, such as "
        "low,medium,high. The last level ranks first.",
        (),
        show_default="numbers by size",
    )

    def learner(self, cost: str | None, positive: "Sequence[str] | None") -> "Method":
        """Return the method of the options; refuse what it cannot read, or belongs to another."""
        given, own = vars(self) | {"cost": cost, "positive": positive}, _OWN[self.method]
        for name in sorted({name for names in _OWN.values() for name in names} - {*own}):
            value, flag = given[name], setting(name)
            if value not in (None, ()):
                owners = [method for method, names in _OWN.items() if name in names]
                shown = setting(name, *(value if isinstance(value, tuple) else (value,)))
                raise ErrorKind.COMBINATION.error(
                    f"{shown} belongs to --method {' or '.join(owners)}; {self.method} has "
                    f"{', '.join(map(setting, own))}.",
                    f"Leave {flag} out, or give --method {owners[0]}.",
                )
        if self.method == "auto":
            return self._auto()
        if self.method == "mibc":
            from rareclass.fit.mibc_method import MIBCMethod

            remedy = "Give auto, a number such as 0.1 or 10^-2, or inf."
            words = {"auto": None, "inf": inf}
            return MIBCMethod(parse_number("--cost", cost, words, remedy), self.covariance)
        from rareclass.fit.kernel_methods import OrdinalMethod, RankRCMethod
        from rareclass.labels.levels import check_levels

        if self.method == "rankrc":
            return RankRCMethod(self.lam, self.width)
        if self.levels:
            check_levels(self.levels)
        return OrdinalMethod(self.lam, self.levels or None)

    def _auto(self) -> "Method":
        from rareclass.fit.auto_method import AutoMethod, check_members, check_objective

        objective = (self.objective or "").lower().replace("-", "_")
        asked: dict[str, Any] = {
            "effort": self.effort,
            "seconds": self.time_budget,
            "objective": objective and check_objective(objective),
            "members": self.members and check_members(self.members),
        }
        return AutoMethod(**{name: value for name, value in asked.items() if value})


@dataclass(frozen=True, kw_only=True)
class FitRuleOptions(RuleOptions):
    """Options on the threshold of a new model; ``--cost`` may also be a parameter of MIBC."""

    cost: str | None = rule_option(
        f"{COST} With --method mibc instead a number: its parameter C, such as "
        "0.1, 10^-2, or inf; auto cross-validates."
    )


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Options of ``rareclass fit``."""

    given: str = cli.argument(
        "File or folder to train on: CSV, JSON lines, Parquet, svmlight; or a database.", "TRAIN"
    )
    out: Path = opt("Model file to write.", cli.REQUIRED)
    target: str | None = opt("Column with the labels.")
    positive: tuple[str, ...] = cli.positive_option()
    columns: ColumnSettings
    method: MethodOptions
    copies: Literal["weigh", "drop"] = opt(
        "Duplicate rows: weigh counts all of them, drop counts one.", "weigh"
    )
    estimate: EstimateSettings
    threshold: FitRuleOptions
    no_baseline: bool = opt(
        "Do not train histogram boosting and logistic regression for comparison, as methods other "
        "than auto do.",
        False,
    )
    seed: int = cli.seed_option("Same seed, same model.")
    no_refit: bool = opt("Do not train the saved model on the held-out rows.", False)
    memory: int | None = opt(
        "Most memory to use, such as 4GiB. By default all that is free.", reads=read_bytes
    )
    report: Path | None = opt(
        "Also write an HTML page on the rows held out, as rareclass report does."
    )
    details: bool = opt("Also print every column, member and parameter.", False)
    written: cli.OutputOptions
    table: cli.TableOptions
    scratch: Path | None = opt(
        "Folder for tables too large for memory. By default TMPDIR or /var/tmp.",
        parser=cli.local_file,
    )


@cli.command
def fit(options: FitOptions) -> None:
    """Train a model that ranks rare rows first, estimate how good it is, and save it.

    The estimate is of new rows: by cross-validation, or on held-out rows. The saved model is
    trained on all rows.
    """
    threshold, written, out = options.threshold, options.written, options.out
    cost_of_errors = threshold.cost is not None and "=" in threshold.cost
    learner = options.method.learner(None if cost_of_errors else threshold.cost, options.positive)
    named = threshold if cost_of_errors else replace(threshold, cost=None)
    rule = named.rule()
    if rule is not None:
        rule.check_time(options.estimate.time)
    train = options.table.place(options.given, "TRAIN")
    from rareclass.files import being_written
    from rareclass.fit.rows_on_disk import ENCODED_COPIES, VIEW_COPIES, plan_memory
    from rareclass.fit.training_set import FitSettings
    from rareclass.machine import available_memory
    from rareclass.scratch_file import scratch_folder
    from rareclass.tables.table_file import open_table

    read: dict[str, Location] = {"the training file": train}
    check_output(out, "--out", written.overwrite, read, may_be_inside=True)
    read["--out"] = out
    written.check(read)
    report, scratch = options.report, options.scratch
    if report is not None:
        check_output(report, "--report", written.overwrite, read)
    file = open_table(train, options.table.text, scratch=scratch)
    memory = available_memory() if options.memory is None else options.memory
    plan = plan_memory(file, memory, VIEW_COPIES if learner.reads_types else ENCODED_COPIES)
    settings = FitSettings(
        target=options.target,
        positive=options.positive,
        **vars(options.columns),
        **vars(options.estimate),
        method=learner,
        weigh_copies=options.copies == "weigh",
        seed=options.seed,
        refit=not options.no_refit,
        kernel_memory=plan.kernel_memory,
        on_disk=plan.on_disk,
        most_sampled=plan.most_sampled,
        scratch=None if scratch is None else scratch_folder(scratch),
        rule=rule,
        prevalence=threshold.prevalence,
        baseline=not options.no_baseline,
        report=report is not None,
    )
    console, details = screen.output(), options.details
    writing = nullcontext() if isinstance(out, RemotePath) else being_written(out, f"--out {out}")
    with writing:
        trained = fit_and_save(console, file, out, settings, details)
    written.give(trained.as_plain_data())
    if report is not None:
        _write_report(console, report, out, trained)
    words = options.table.words(train)
    print_next(console, train.name, words, out, trained, report is not None, details)


def _write_report(console: Console, report: Path, out: Path, trained: "Trained") -> None:
    """Write the page, unless all rows held out were of one class."""
    from rareclass.report.model_report import report_on_held_out

    try:
        page = report_on_held_out(trained.content, out).page
    except InputError as error:
        screen.print_notes(console, f"no report was written: {error}")
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
        screen.print_notes(
            console, f"method auto needs named columns; {method.name} is used instead."
        )
        settings = replace(settings, method=method)
    with track(f"Reading {file.path.name}"):
        data = read_training_set(file, settings)
    print_data(console, data, file.path.name, settings, details)
    if outlook := settings.method.outlook(data.size, terms_of(data.y, settings)):
        console.print(outlook)
    trained = train_model(data, settings)
    print_trained(console, trained, settings, details)
    save_model(out, trained.content)
    console.print(f"\nSaved {screen.file_text(out)}", soft_wrap=True)
    return trained
