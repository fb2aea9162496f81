"""Commands on a model file: ``rareclass show``, ``threshold`` and ``export``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rareclass.cli.command import (
    OutputOptions,
    TableOptions,
    argument,
    check_new,
    check_output,
    combination_error,
    command,
    journal_option,
    model_argument,
    option,
    out_option,
    overwrite_option,
    setting_error,
)
from rareclass.cli.rule import RuleOptions, rule_option
from rareclass.cli.screen import (
    class_thresholds,
    file_text,
    new_table,
    output,
    print_estimate,
    print_leaderboard,
    print_notes,
    print_threshold,
)
from rareclass.errors import ErrorKind, InputError, counted

if TYPE_CHECKING:
    from rareclass.model.facts import RankingEstimate
    from rareclass.model.model import Model

_MOST_COLUMNS = 40
# How an estimate came about, by what the file says.
_ESTIMATED = {"held-out rows": "held-out rows", "latest rows": "the latest rows, held out"}


@dataclass(frozen=True, kw_only=True)
class ThresholdOptions:
    """Options of ``rareclass threshold``."""

    model: Path = model_argument("Model file of rareclass fit.")
    given: str | None = argument(
        "File or database with the target that the model did not learn from. By default the rows "
        "that were held out when it was fitted, whose scores it holds.",
        "[DATA]",
        None,
    )
    out: Path | None = out_option("Model file to write. Without it the threshold is shown.", None)
    score: float | None = rule_option("The threshold itself, a score.", "--threshold")
    rare_class: str | None = option(
        "One of several rare classes: the threshold is of its probability. all: each has a "
        "threshold, and the rule is for rows that are called any class.",
        "--class",
    )
    rule: RuleOptions
    time: str | None = option("Column of DATA with the time of a row, for alerts a day.")
    journal: Path | None = journal_option()
    written: OutputOptions
    table: TableOptions


@command
def threshold(options: ThresholdOptions) -> None:
    """Choose another threshold for a model by a rule; with --out, save the model with it.

    --prevalence alone keeps the threshold and recalibrates the probabilities to that base rate.
    """
    given, asked, journal = options.given, options.rule, options.journal
    data = None if given is None else options.table.place(given, "DATA")
    score, rare_class, out = options.score, options.rare_class, options.out
    written = options.written
    if score is not None:
        asked.check_score(score)
    rule = asked.rule(options.time)
    needs_all = rare_class is not None or (rule is not None and rule.needs_time)
    if journal is not None and (data is None or needs_all):
        raise combination_error(
            "--journal needs DATA, the table of all rows, and takes no --class or alerts a day.",
            "Give DATA, and alerts for so many rows, as in --alerts 50/10000.",
        )
    wanted = score if rule is None else rule
    if wanted is None and (asked.prevalence is None or data is not None):
        raise setting_error(
            "No rule for the threshold is given.",
            "Give one of --alerts, --min-precision, --min-recall, --max-fpr, --cost and "
            "--threshold; or --prevalence alone, for the probabilities.",
        )
    from rareclass.model.model_file import save_model
    from rareclass.model.threshold import with_threshold

    if out is not None:
        read = {} if data is None else {"the file to be read": data}
        check_output(out, "--out", written.overwrite, read, may_be_inside=True)
    inputs = {"the model": options.model} | ({"DATA": data} if data else {})
    written.check(inputs, written.overwrite)
    console = output()
    content = _of_fit(options.model)
    print_notes(console, *content.notices)
    told: dict[str, Any] = {}
    if wanted is None:
        changed = content.set_prevalence(asked.prevalence)
    else:
        known, separator = None, options.table.separator
        if journal is not None:
            from rareclass.review.estimates import read_checked

            known = read_checked(content, data, journal, separator).rows()
        changed, chosen = with_threshold(
            content, wanted, data, options.time, separator, asked.prevalence, rare_class, known
        )
        print_threshold(console, chosen, changed.facts.class_thresholds, rare_class)
        told = chosen.to_dict()
    if changed.stated_prevalence is not None:
        stated = 100.0 * changed.stated_prevalence
        console.print(f"Probabilities are for {stated:.3g}% rare rows")
    if out is not None:
        save_model(out, changed)
        console.print(f"Saved {file_text(out)}")
    written.give(told | {"probabilities_at": changed.prevalence})


def _of_fit(path: Path) -> "Model":
    from rareclass.model.model_file import load_model

    if path.is_dir():
        raise InputError(
            f"{path} is a folder, and a threshold is kept in a model file of rareclass fit.",
            "For the folder of a stream or hunt, name one where rows are scored: rareclass score "
            "--threshold or --top.",
            ErrorKind.UNSUPPORTED,
        )
    return load_model(path)


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of ``rareclass export``."""

    model: Path = model_argument("Model file of rareclass fit.")
    out: Path = out_option("ONNX file to write.")
    overwrite: bool = overwrite_option()


@command
def export(options: ExportOptions) -> None:
    """Write a model as an ONNX file, which is scored without Python; one input a column."""
    from rareclass.model.onnx import export_file
    from rareclass.opening import load

    out = options.out
    check_new(out, "--out", options.overwrite)
    found = export_file(load(options.model), out)
    inputs = ", ".join(each.name for each in found.graph.input)
    outputs = ", ".join(each.name for each in found.graph.output)
    output().print(f"Wrote {out}. Inputs: {inputs}. Outputs: {outputs}.")


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """Options of ``rareclass show``."""

    model: Path = model_argument()
    written: OutputOptions


@command
def show(options: ShowOptions) -> None:
    """Show what a model file holds: target, columns, estimate, ensemble members, threshold."""
    from rareclass.machine import size_text
    from rareclass.model.facts import LeaderboardRow
    from rareclass.opening import describe

    written = options.written
    written.check({"the model": options.model}, written.overwrite)
    told, console = describe(options.model), output()
    method = f", method {told['method']}" if "method" in told else ""
    title = f"{told['file']} ({size_text(told['bytes'])}): {told['model']}{method}"
    console.print(title, style="bold")
    console.print(_target(told))
    for line in _training(told):
        console.print(line)
    if told["columns"]:
        console.print()
        _print_columns(console, told["columns"])
    estimate = _estimate(told)
    if estimate is not None:
        by = told.get("estimated_by") or "held-out rows"
        title = f"Estimate by {_ESTIMATED.get(by, by)}, on {estimate.rows_text()}"
        console.print()
        console.print(title, style="bold")
        print_estimate(console, estimate)
    if told.get("leaderboard"):
        console.print()
        boards = (told["leaderboard"], told.get("also_tried", []))
        shown, tried = ([LeaderboardRow(**row) for row in board] for board in boards)
        print_leaderboard(console, shown, tried, estimate)
    console.print()
    for line in _decision(told):
        console.print(line)
    if rules := told.get("class_rules"):
        found = {name: rule["threshold"] for name, rule in rules.items()}
        console.print(class_thresholds(found))
    if told.get("versions"):
        named = ", ".join(f"{name} {number}" for name, number in told["versions"].items())
        console.print(f"Trained with {named}")
    print_notes(console, *told["notices"])
    written.give(told)


def _target(told: dict[str, Any]) -> str:
    if "levels" in told:
        counts = told.get("level_counts") or [0] * len(told["levels"])
        named = (f"{name} ({n:,})" for name, n in zip(told["levels"], counts, strict=True))
        return f"Levels of {told['target']}, lowest first: {', '.join(named)}"
    n_rare = f", {counted(told['n_rare'], 'row')}" if "n_rare" in told else ""
    share = f" ({told['n_rare'] / told['n_rows']:.2%})" if n_rare and told.get("n_rows") else ""
    rest = f"; majority: {told['rest_label']}" if told.get("rest_label") else ""
    return f"Rare class: {told['target']} = {told['rare_label']}{n_rare}{share}{rest}"


def _training(told: dict[str, Any]) -> list[str]:
    if "n_rows" not in told:
        return []
    saved = "" if told.get("trained_on_all_rows", True) else ", without the held-out rows"
    date = f" on {told['date'][:10]}" if told.get("date") else ""
    seed = f", seed {told['seed']}" if "seed" in told else ""
    plan = f"; effort {told['effort']}: {told['plan']}" if "plan" in told else ""
    lines = [f"Trained{date} on {counted(told['n_rows'], 'row')}{saved}{seed}{plan}"]
    if told.get("n_copies_collapsed"):
        how = "with weights" if told.get("copies_count") else "each counts once"
        lines.append(f"{counted(told['n_copies_collapsed'], 'duplicate row')} merged ({how})")
    return lines


def _print_columns(console: Console, columns: list[dict[str, Any]]) -> None:
    table = new_table()
    table.add_column("Column", max_width=24, overflow="ellipsis", no_wrap=True)
    table.add_column("Type", overflow="fold", min_width=8)
    table.add_column("Treatment", overflow="fold")
    for column in columns[:_MOST_COLUMNS]:
        cells = (column.get("name"), column.get("kind"), column.get("treatment"))
        table.add_row(*(str(each or "") for each in cells))
    console.print(table)
    if len(columns) > _MOST_COLUMNS:
        console.print(f"and {len(columns) - _MOST_COLUMNS} more (--json FILE has all)")


def _estimate(told: dict[str, Any]) -> "RankingEstimate | None":
    from rareclass.metrics import Interval
    from rareclass.model.facts import ClassEstimate, RankingEstimate

    facts = told.get("estimate")
    if not facts:
        return None
    measures = {name: Interval(**each) for name, each in facts["measures"].items()}
    classes = tuple(
        ClassEstimate(
            each["name"],
            each["n_rows"],
            Interval(**each["auc"]),
            Interval(**each["average_precision"]),
        )
        for each in facts.get("classes", ())
    )
    return RankingEstimate(measures, facts["n_rows"], facts.get("n_rare"), classes)


def _decision(told: dict[str, Any]) -> list[str]:
    thresholds = ", ".join(f"{each:.4g}" for each in told["thresholds"])
    rule = told.get("rule")
    if len(told["thresholds"]) > 1 or "levels" in told:
        lines = [f"Thresholds between levels: {thresholds}"]
    elif rule is None:
        lines = [f"Threshold {thresholds}: rows that score more are called rare"]
    else:
        sure = "" if rule["confidence"] is None else f", confidence {rule['confidence']:g}"
        met = "" if rule["met"] else " (not met)"
        lines = [f"Threshold {thresholds}; rule: {rule['rule']}{sure}{met}"]
    chance = told["probabilities"]
    lines.append(
        "Probabilities: none"
        if chance is None
        else f"Probabilities: yes ({chance['method']}), for {chance['prevalence']:.3%} rare rows"
    )
    if told["held_out_scores"]:
        n_scores = f"{told['held_out_scores']:,}"
        lines.append(f"Held-out scores: {n_scores} (used by rareclass threshold and report)")
    if told["rare_cases"]:
        lines.append(f"Rare rows kept: {told['rare_cases']:,} (used by rareclass score --explain)")
    return lines
