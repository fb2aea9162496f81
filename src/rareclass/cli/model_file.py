"""Commands on a model file: ``rareclass show``, ``threshold`` and ``export``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.cli.rule import RuleOptions, rule_option
from rareclass.errors import ErrorKind
from rareclass.files import check_output
from rareclass.parameters import opt

if TYPE_CHECKING:
    from rareclass.model.facts import ModelFacts
    from rareclass.model.model import Model

_MOST_COLUMNS = 40
# How an estimate came about, by what the file says.
_ESTIMATED = {"held-out rows": "held-out rows", "latest rows": "the latest rows, held out"}


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions:
    """Options of ``rareclass threshold``."""

    model: Path = cli.argument("Model file of rareclass fit.")
    given: str | None = cli.argument(
        "File or database with the target that the model did not learn from. By default the rows "
        "that were held out when it was fitted, whose scores it holds.",
        "[DATA]",
        None,
    )
    out: Path | None = opt("Model file to write. Without it the threshold is shown.")
    score: float | None = rule_option("The threshold itself, a score.", "--threshold")
    rare_class: str | None = opt(
        "One of several rare classes: the threshold is of its probability. all: each has a "
        "threshold, and the rule is for rows that are called any class."
    )
    rule: RuleOptions
    time: str | None = opt("Column of DATA with the time of a row, for alerts a day.")
    journal: Path | None = cli.journal_option()
    written: cli.OutputOptions
    table: cli.TableOptions


@cli.command
def threshold(options: ThresholdOptions) -> None:
    """Choose another threshold for a model by a rule; with --out, save the model with it.

    --prevalence alone keeps the threshold and recalibrates the probabilities to that base rate.
    """
    given, asked, journal = options.given, options.rule, options.journal
    data = None if given is None else options.table.place(given, "DATA")
    score, rare_class, out = options.score, options.rare_class, options.out
    written = options.written
    rule = asked.rule(options.time, score)
    needs_all = rare_class is not None or (rule is not None and rule.needs_time)
    if journal is not None and (data is None or needs_all):
        raise ErrorKind.COMBINATION.error(
            "--journal needs DATA, the table of all rows, and takes no --class or alerts a day.",
            "Give DATA, and alerts for so many rows, as in --alerts 50/10000.",
        )
    wanted = score if rule is None else rule
    if wanted is None and (asked.prevalence is None or data is not None):
        raise ErrorKind.SETTING.error(
            "No rule for the threshold is given.",
            "Give one of --alerts, --min-precision, --min-recall, --max-fpr, --cost and "
            "--threshold; or --prevalence alone, for the probabilities.",
        )
    from rareclass.model.model_file import save_model
    from rareclass.model.threshold import with_threshold

    if out is not None:
        read = {} if data is None else {"the file to be read": data}
        check_output(out, "--out", written.overwrite, read, may_be_inside=True)
    named = {"the model": options.model, "DATA": data, "--out": out}
    written.check({name: each for name, each in named.items() if each is not None})
    console = screen.output()
    content = _of_fit(options.model)
    screen.print_notes(console, *content.notices)
    told: dict[str, Any] = {}
    if wanted is None:
        changed = content.set_prevalence(asked.prevalence)
    else:
        known, text = None, options.table.text
        if journal is not None:
            from rareclass.review.estimates import read_checked

            known = read_checked(content, data, journal, text).rows()
        changed, chosen = with_threshold(
            content, wanted, data, options.time, text, asked.prevalence, rare_class, known
        )
        screen.print_threshold(console, chosen, changed.facts.class_thresholds, rare_class)
        told = chosen.to_dict()
    if changed.stated_prevalence is not None:
        stated = 100.0 * changed.stated_prevalence
        console.print(f"Probabilities are for {stated:.3g}% rare rows")
    if out is not None:
        save_model(out, changed)
        console.print(f"Saved {screen.file_text(out)}")
    written.give(told | {"probabilities_at": changed.prevalence})


def _of_fit(path: Path) -> "Model":
    from rareclass.model.model_file import load_model

    if path.is_dir():
        raise ErrorKind.UNSUPPORTED.error(
            f"{path} is a folder, and a threshold is kept in a model file of rareclass fit.",
            "For the folder of a stream or hunt, name one where rows are scored: rareclass score "
            "--threshold or --top.",
        )
    return load_model(path)


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of ``rareclass export``."""

    model: Path = cli.argument("Model file of rareclass fit.")
    out: Path = opt("ONNX file to write.", cli.REQUIRED)
    overwrite: bool = cli.overwrite_option()


@cli.command
def export(options: ExportOptions) -> None:
    """Write a model as an ONNX file, which is scored without Python; one input a column."""
    from rareclass.model.onnx import export_file
    from rareclass.opening import load

    out = options.out
    check_output(out, "--out", options.overwrite, {"the model": options.model})
    found = export_file(load(options.model), out)
    inputs = ", ".join(each.name for each in found.graph.input)
    outputs = ", ".join(each.name for each in found.graph.output)
    screen.output().print(f"Wrote {out}. Inputs: {inputs}. Outputs: {outputs}.")


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """Options of ``rareclass show``."""

    model: Path = cli.argument(cli.ANY_MODEL)
    written: cli.OutputOptions


@cli.command
def show(options: ShowOptions) -> None:
    """Show what a model file holds: target, columns, estimate, ensemble members, threshold."""
    from rareclass.machine import size_text
    from rareclass.model.facts import CombinationFacts, class_thresholds_text
    from rareclass.opening import describe, open_model

    written = options.written
    written.check({"the model": options.model})
    content, console = open_model(options.model), screen.output()
    told, facts = describe(options.model, content), content.facts
    training, method = facts.training, facts.method
    named = "" if method is None else f", method {method.method}"
    title = f"{told['file']} ({size_text(told['bytes'])}): {told['model']}{named}"
    console.print(title, style="bold")
    for line in [*facts.target.description(), *_training(facts)]:
        console.print(line)
    if facts.columns:
        console.print()
        screen.print_columns(console, facts.columns, _MOST_COLUMNS)
    estimate = None if training is None else training.held_out
    if estimate is not None and training is not None:
        by = training.estimated_by or "held-out rows"
        title = f"Estimate by {_ESTIMATED.get(by, by)}, on {estimate.rows_text()}"
        console.print(f"\n{title}", style="bold")
        screen.print_estimate(console, estimate)
    if isinstance(method, CombinationFacts):
        console.print()
        screen.print_leaderboard(console, method, estimate)
    console.print()
    for line in _decision(content):
        console.print(line)
    if facts.class_rules:
        console.print(class_thresholds_text(facts.class_thresholds))
    if training is not None:
        console.print(f"Trained with {training.versions_text()}")
    screen.print_notes(console, *content.notices)
    written.give(told)


def _training(facts: "ModelFacts") -> list[str]:
    from rareclass.model.facts import CombinationFacts

    training, method = facts.training, facts.method
    if training is None:
        return []
    saved = "" if training.trained_on_all_rows else ", without the held-out rows"
    plan = ""
    if isinstance(method, CombinationFacts):
        plan = f"; effort {method.effort}: {method.plan}"
    trained = f"{training.trained_text()}{saved}, seed {training.seed}{plan}"
    return [trained, *filter(None, [training.copies_text()])]


def _decision(content: "Model") -> list[str]:
    thresholds = ", ".join(f"{each:.4g}" for each in content.thresholds)
    rule, calibration = content.facts.rule, content.rare_calibration
    line = f"Threshold {thresholds}: rows that score more are called rare"
    if not content.has_rare_class:
        line = f"Thresholds between levels: {thresholds}"
    elif rule is not None:
        line = f"Threshold {thresholds}; rule: {rule.rule_text()}"
    chance = "none"
    if calibration is not None:
        chance = f"yes ({calibration.method}), for {calibration.prevalence:.3%} rare rows"
    lines = [line, f"Probabilities: {chance}"]
    if content.held_out is not None:
        n_scores = f"{len(content.held_out.scores):,}"
        lines.append(f"Held-out scores: {n_scores} (used by rareclass threshold and report)")
    if content.cases is not None and content.cases.n_rare:
        kept = f"{content.cases.n_rare:,}"
        lines.append(f"Rare rows kept: {kept} (used by rareclass score --explain)")
    return lines
