"""``rareclass demo``: from a table to a report, on simulated payments."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.cli.fit import fit_and_save
from rareclass.cli.report import write_page
from rareclass.cli.score import print_scoring
from rareclass.errors import command_line
from rareclass.files import check_new, check_own_folder, writing
from rareclass.parameters import opt

if TYPE_CHECKING:
    from rareclass.fit.demo import Outcome, Weeks


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Options of ``rareclass demo``."""

    out: Path = opt("Folder for the files.", Path("rareclass-demo"))
    seed: int = cli.seed_option("Same seed, same payments.")
    written: cli.OutputOptions


@cli.command
def demo(options: DemoOptions) -> None:
    """Find frauds in simulated payments: learn from the first weeks, raise alerts in the last.

    Prints the frauds and the money that the first alerts of each day catch, against LightGBM, or
    scikit-learn's boosting where LightGBM is not installed.
    """
    out, seed, written = options.out, options.seed, options.written
    check_own_folder(cli.on_this_machine(out, "--out"), "--out", ())
    written.check({"--out": out})
    console = screen.output()
    from rareclass.fit.demo import FILES, boosted_trees, check_not_the_users, judge, write_payments

    check_not_the_users(out)
    for name in FILES:
        check_new(out / name, "The file", written.overwrite)
    with writing(out, "Choose another folder with --out."):
        weeks = write_payments(out, seed)
    console.print(
        f"Simulated card payments: {weeks.n_train_days} days to train on, "
        f"{weeks.n_test_days} days to test on.",
        style="bold",
    )
    scores = _fit_and_score(console, weeks, out, seed)
    _print_step(console, "3. Compare the alerts of the last weeks")
    outcome = judge(weeks, scores, boosted_trees(weeks, seed))
    _print_outcome(console, outcome)
    _report(console, weeks, out)
    console.print(f"\nFiles in {out}: {', '.join(FILES)}")
    console.print()
    screen.print_command(
        console,
        "The payments are simulated. Try it on a table of yours:",
        "rareclass fit TABLE.csv --target COLUMN --out model.rareclass",
    )
    written.give(asdict(outcome))


def _fit_and_score(console: Console, weeks: "Weeks", out: Path, seed: int) -> Path:
    """The first two steps, as the command line does them."""
    from rareclass.decide.threshold_rule import ThresholdRule
    from rareclass.fit.auto_method import AutoMethod
    from rareclass.fit.demo import ALERTS_A_DAY, MODEL_NAME, PAYMENTS, SCORES_NAME, TARGET
    from rareclass.fit.training_set import FitSettings
    from rareclass.model import ScoreSettings
    from rareclass.model.model_file import load_model
    from rareclass.model.score_file import score_rows
    from rareclass.model.threshold import DecisionRule
    from rareclass.tables.table_file import open_table

    model, scores, per_day = out / MODEL_NAME, out / SCORES_NAME, PAYMENTS.payments_a_day
    words = ("--target", TARGET, "--alerts", f"{ALERTS_A_DAY}/{per_day}")
    _print_step(console, "1. Train", command_line("fit", weeks.train, *words, "--out", model))
    rule = DecisionRule(ThresholdRule.max_alerts(ALERTS_A_DAY, rows=per_day))
    settings = FitSettings(target=TARGET, method=AutoMethod(), seed=seed, rule=rule)
    fit_and_save(console, open_table(weeks.train), model, settings)
    _print_step(console, "2. Score", command_line("score", model, weeks.test, "--out", scores))
    scoring = score_rows(load_model(model), weeks.test, scores, ScoreSettings())
    print_scoring(console, scoring, screen.file_text(scores))
    return scores


def _report(console: Console, weeks: "Weeks", out: Path) -> None:
    from rareclass.fit.demo import MODEL_NAME, REPORT_NAME, TIME
    from rareclass.model.model_file import load_model
    from rareclass.report import ReportOptions
    from rareclass.report.model_report import report_on_model

    model, page = out / MODEL_NAME, out / REPORT_NAME
    words = ("--time", TIME, "--cost", "fp=5,fn=amount", "--out", page)
    _print_step(console, "4. Report", command_line("report", model, weeks.test, *words))
    options = ReportOptions(time=TIME, costs={"fp": 5.0, "fn": "amount"})
    write_page(page, report_on_model(load_model(model), model, weeks.test, options).page)


def _print_step(console: Console, title: str, command: str = "") -> None:
    console.print(f"\n{title}", style="bold cyan")
    if command:
        screen.print_command(console, "", command)
    console.print()


def _print_outcome(console: Console, outcome: "Outcome") -> None:
    from rareclass.fit.demo import LEARNING_RATE, N_LEAVES, N_TREES

    console.print(f"{outcome.n_frauds} frauds with amounts of {outcome.money:,.0f} in total.")
    console.print()
    rows = [
        (each.name, f"{each.per_day:.0f}", f"{each.n_caught}", f"{each.money:,.0f}")
        for each in outcome.alerts
    ]
    screen.print_table(console, ("", "Alerts\na day", "Frauds\ncaught", "Money\ncaught"), rows)
    console.print(f"\nAverage precision {outcome.ours:.3f}, {outcome.peer} {outcome.theirs:.3f}.")
    screen.print_notes(
        console,
        f"{outcome.peer} learned {N_TREES} trees of {N_LEAVES} leaves at a rate of "
        f"{LEARNING_RATE}. Of eight settings of LightGBM these are the best on the last weeks of "
        "seed 0 themselves, which favours LightGBM. The difference is not tested. Its own "
        "threshold is .5.",
    )
