"""Text of ``rareclass fit``: what was understood, how good it is, what was decided, where it is.

The short form is about 45 lines; ``--details`` adds every column, member and parameter.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from rareclass.cli import screen
from rareclass.errors import command_line, counted, first_names, left_out_text

if TYPE_CHECKING:
    from rareclass.decide.chosen_threshold import ChosenThreshold
    from rareclass.fit.hold_out import Baseline
    from rareclass.fit.training import Trained
    from rareclass.fit.training_set import FitSettings, TrainingSet
    from rareclass.model.facts import (
        CombinationFacts,
        LeaderboardRow,
        RankingEstimate,
        TrainingFacts,
    )
    from rareclass.tables.columns import Column

# Columns of one type that the short form names, and all that the table of columns has.
_MOST_NAMED, _MOST_LISTED = 8, 500
# Members and columns in a sentence.
_MOST_IN_A_LINE = 5
# Loss from which a column is worth a name.
_LEAST_LOSS = 0.0005


def print_data(
    console: Console, data: "TrainingSet", name: str, settings: "FitSettings", details: bool
) -> None:
    """Print what was understood of the table: its target, its columns, and the rows left out."""
    n_used = data.rows.shape[1]
    used = counted(n_used, "column")
    if len(data.columns) > n_used:
        used = f"{n_used:,} of {counted(len(data.columns), 'column')} used"
    console.print(f"{name}: {counted(data.n_rows, 'row')}, {used}", style="bold")
    for line in data.target.description():
        console.print(line)
    if data.columns:
        console.print()
        if details:
            screen.print_columns(console, data.columns, _MOST_LISTED)
        else:
            _print_types(console, data.columns, data.n_rows)
    screen.print_notes(console, *_data_notes(data, settings))


_ABOUT_INTERVALS = "Intervals: this model on many new rows; they allow for other training rows."


def print_trained(
    console: Console, trained: "Trained", settings: "FitSettings", details: bool
) -> None:
    """Print how good the model is, what was decided, and what to know before relying on it."""
    from rareclass.model.facts import CombinationFacts

    estimate, training = trained.estimate, trained.content.facts.training
    assert training is not None
    console.print()
    for line in _single_values(trained.content.facts.columns):
        console.print(line)
    if estimate is not None:
        console.print(_estimated_on(estimate, training), style="bold")
        screen.print_estimate(console, estimate)
        console.print(_ABOUT_INTERVALS, style="dim")
        _print_baselines(console, trained.beside_it)
        console.print()
    _print_decision(console, trained)
    method = trained.content.facts.method
    if details or isinstance(method, CombinationFacts):
        console.print()
    if isinstance(method, CombinationFacts):
        _print_combination(console, trained, method, details)
    if details:
        for line in trained.summary:
            console.print(line)
    if estimate is not None and not training.trained_on_all_rows:
        console.print("The saved model did not learn from the held-out rows.")
    elif details and not str(training.estimated_by).startswith("cross-fitting"):
        console.print(
            f"Saved model: trained again on all rows with this {settings.method.parameter}."
        )
    screen.print_notes(console, *trained.notes)


def _single_values(columns: "Sequence[Column]") -> list[str]:
    """Return lines on columns whose single values are learned, or would mislead."""
    of_value = [column for column in columns if column.is_by_value]
    learned = [column.name for column in of_value if column.is_used]
    lines = [f"Learned value by value: {first_names(learned, _MOST_NAMED)}"] if learned else []
    return [*lines, *(f"Not used: {c.name}: {c.why_dropped}" for c in of_value if not c.is_used)]


def print_next(
    console: Console,
    name: str,
    rows: "Sequence[object]",
    out: Path,
    trained: "Trained",
    has_report: bool,
    details: bool,
) -> None:
    """Print three commands to type next; `rows` are the words that name the table, `name` short."""
    from rareclass.model.targets import RareClassFacts

    facts = trained.content.facts
    more = "" if details else " (--details prints more about the model)"
    console.print(f"\nNext{more}", style="bold")
    can_report = trained.content.held_out is not None and isinstance(facts.target, RareClassFacts)
    put = f"(put their file in place of {name})"
    commands = {"See what the model file holds:": command_line("show", out)}
    if can_report and not has_report:
        report = command_line("report", out, "--out", _beside(out, ".html"))
        commands = {"See in a browser how good it is, at any threshold:": report}
    if can_report:
        label = "Try another threshold (--out FILE saves the model with it):"
        commands[label] = command_line("threshold", out, *_other_rule(facts.rule))
    else:
        commands[f"Evaluate on labelled rows {put}:"] = command_line("evaluate", out, *rows)
    score = command_line("score", out, *rows, "--out", _beside(out, "_scores.csv"))
    for label, command in (commands | {f"Score new rows {put}:": score}).items():
        screen.print_command(console, label, command)


def _beside(out: Path, ending: str) -> Path:
    return out.with_name(f"{out.stem}{ending}")


def _other_rule(rule: "ChosenThreshold | None") -> tuple[object, ...]:
    """Return options of another threshold: an alert budget, or a recall where that was the rule."""
    if rule is None or rule.rule.startswith("alerts") or not rule.alerts:
        return ("--min-recall", 0.8)
    rows, share = 1000, rule.alerts / rule.rows
    while share * rows < 1.0:
        rows *= 10
    alerts = round(float(f"{share * rows:.1g}"))
    # Of a class of nearly all rows no number of alerts would be fewer.
    return ("--alerts", f"{alerts}/{rows}") if alerts < rows else ("--min-recall", 0.8)


def _data_notes(data: "TrainingSet", settings: "FitSettings") -> list[str]:
    notes = []
    if settings.on_disk:
        n_rows = counted(min(len(data.y), settings.most_sampled), "row")
        sample = f"{n_rows} at most: all rare ones, and a sample of the majority."
        how = "the table takes over a quarter of the memory and was read from disk in pieces"
        part = (
            "The model learns from" if settings.method.reads_types else "Its encoder is fitted on"
        )
        notes.append(f"{how}. {part} {sample}")
    if data.n_unlabelled:
        notes.append(left_out_text(data.n_unlabelled, f"no value of {data.target.target}"))
    if data.n_copies:
        weight = "with weights" if data.weight is not None else "each counts once"
        rows = counted(data.n_copies, "duplicate row was", "duplicate rows were")
        notes.append(f"{rows} merged ({weight}), so that none is both trained on and held out.")
    return [*notes, *data.target.notes()]


def _print_types(console: Console, columns: "Sequence[Column]", n_rows: int) -> None:
    """Print a line for each type of column, with the first of their names; unused ones last."""
    from rareclass.model.columns import type_text

    by_type: dict[str, list[str]] = {}
    for column in sorted(columns, key=lambda column: not column.is_used):
        kind = type_text(column.kind) if column.is_used else "not used"
        name = column.name
        if not column.is_used:
            name += f" ({column.why_dropped})"
        elif column.n_missing:
            name += f" ({_percent(column.n_missing / n_rows)} empty)"
        by_type.setdefault(kind, []).append(name)
    table = screen.new_table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for kind, names in by_type.items():
        n_more = len(names) - _MOST_NAMED
        shown = names if n_more <= 1 else [*names[:_MOST_NAMED], f"{n_more} more"]
        table.add_row(kind, ", ".join(shown))
    console.print(table)


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "under 1%"


def _estimated_on(estimate: "RankingEstimate", training: "TrainingFacts") -> str:
    rows = estimate.rows_text()
    if training.estimated_by == "latest rows":
        return f"Quality on the latest rows by {training.time}: {rows}"
    by_group = f", held out by {training.groups}" if training.groups else ""
    if not str(training.estimated_by).startswith("cross-fitting"):
        return f"Quality on held-out rows: {rows}{by_group}"
    return f"Quality on new rows, by cross-validation: {rows}{by_group}"


def _print_baselines(console: Console, baselines: "Sequence[Baseline]") -> None:
    if not baselines:
        return
    heads = ("Baseline, default settings", "AUC", "Average precision", "Seconds")
    rows = [
        (each.name, f"{each.auc:.3f}", f"{each.average_precision:.3f}", f"{each.seconds:.1f}")
        for each in baselines
    ]
    console.print()
    screen.print_table(console, heads, rows)


def _print_decision(console: Console, trained: "Trained") -> None:
    content = trained.content
    rule = content.facts.rule
    if rule is not None:
        screen.print_threshold(console, rule, content.facts.class_thresholds)
    else:
        for line in trained.decided:
            console.print(line)
    for line in content.decision.rules():
        console.print(line)
    n_called = None if rule is None else rule.alerts
    others = [each for each in trained.other_thresholds if each.alerts != n_called]
    if others:
        rows = []
        for each in others:
            shares = (f"{share.value:.3f}" for share in (each.precision, each.recall))
            rows.append((each.rule, f"{each.threshold:.4g}", f"{each.alerts:,.0f}", *shares))
        heads = ("Other thresholds", "Score", "Called rare", "Precision", "Recall")
        screen.print_table(console, heads, rows)


def _print_combination(
    console: Console, trained: "Trained", method: "CombinationFacts", details: bool
) -> None:
    """Print the members of a combination, the columns that matter, and what a score means."""
    if details:
        screen.print_leaderboard(console, method, trained.estimate)
    else:
        console.print(f"Ensemble members by weight: {_weights(method.leaderboard)}")
    if untried := method.without_time:
        names = ", ".join(untried) if details else counted(len(untried), "member")
        console.print(f"Not trained, for the time limit: {names} (--time-budget gives more)")
    if matter := _columns_that_matter(method.importances):
        console.print(f"Columns by permutation importance: {matter}")
        n_left = sum(column.is_used for column in trained.content.facts.columns)
        n_left -= len(method.importances)
        left = f"; {counted(n_left, 'column')} not shuffled" if n_left else ""
        if details:
            console.print(
                f"  (in brackets: loss of {method.objective} if the column is shuffled{left})"
            )
    console.print("Score of 2: 1 in 100 held-out majority rows is as high; score of 3: 1 in 1,000.")


def _weights(rows: "Sequence[LeaderboardRow]") -> str:
    """Return the members of the largest weights, all settings together; count the others."""
    weights = screen.weights_of_members(rows)
    named = [f"{name} {weight:.2f}" for name, weight in weights.items() if weight]
    more = len(named) - _MOST_IN_A_LINE
    return ", ".join([*named[:_MOST_IN_A_LINE], *([f"{more} more"] if more > 0 else [])])


def _columns_that_matter(importances: dict[str, float]) -> str:
    """Return the columns without which held-out rows rank worst, with the loss."""
    worst = sorted(importances, key=lambda name: -importances[name])[:_MOST_IN_A_LINE]
    named = [name for name in worst if importances[name] >= _LEAST_LOSS]
    return ", ".join(f"{name} ({importances[name]:.3f})" for name in named)
