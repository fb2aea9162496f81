"""``rareclass show``: what a model file holds."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rareclass.cli.door import OVERWRITE_OPTION, exit_codes_for_faults, file_or_url
from rareclass.cli.json_file import JSON_OPTION, check_json, give_json
from rareclass.cli.screen import output, print_leaderboard, print_notes
from rareclass.errors import counted

_MOST_COLUMNS = 40
# How an estimate came about, by what the file says.
_ESTIMATED = {"held-out rows": "rows held out", "latest rows": "the latest rows, held out"}


@exit_codes_for_faults
def show(
    model: Annotated[
        Path,
        typer.Argument(
            help="Model file of rareclass fit, or folder of a stream or hunt.", parser=file_or_url
        ),
    ],
    json_file: Annotated[Path | None, JSON_OPTION] = None,
    overwrite: Annotated[bool, OVERWRITE_OPTION] = False,
) -> None:
    """Show what a model file holds: target, columns, training, estimate, members, threshold."""
    from rareclass.opening import describe

    check_json(json_file, overwrite, {"the model": model})
    told = describe(model)
    print_model(output(), told)
    give_json(json_file, told)


def print_model(console: Console, told: dict[str, Any]) -> None:
    """Print what `rareclass.opening.describe` found."""
    from rareclass.machine import size_text

    method = f", method {told['method']}" if "method" in told else ""
    console.print(
        f"{told['file']} ({size_text(told['bytes'])}): {told['model']}{method}", style="bold"
    )
    for line in [*_target(told), *_training(told)]:
        console.print(line)
    if told["columns"]:
        console.print()
        _print_columns(console, told["columns"])
    if told.get("estimate"):
        console.print()
        _print_estimate(console, told)
    if told.get("leaderboard"):
        console.print()
        console.print("Members, by cross-validation", style="bold")
        from rareclass.model.facts import LeaderboardRow

        boards = (told["leaderboard"], told.get("also_tried", []))
        print_leaderboard(console, *([LeaderboardRow(**row) for row in board] for board in boards))
    console.print()
    for line in [*_decision(told), *_packages(told)]:
        console.print(line)
    print_notes(console, told["notices"])


def _target(told: dict[str, Any]) -> list[str]:
    if "levels" in told:
        counts = told.get("level_counts") or [0] * len(told["levels"])
        named = (f"{name} ({n:,})" for name, n in zip(told["levels"], counts, strict=True))
        return [f"Levels of {told['target']}, lowest first: {', '.join(named)}"]
    n_rare = f", {counted(told['n_rare'], 'row')}" if "n_rare" in told else ""
    share = f" ({told['n_rare'] / told['n_rows']:.2%})" if n_rare and told.get("n_rows") else ""
    rest = f"; rest: {told['rest_label']}" if told.get("rest_label") else ""
    return [f"Rare class: {told['target']} = {told['rare_label']}{n_rare}{share}{rest}"]


def _training(told: dict[str, Any]) -> list[str]:
    if "n_rows" not in told:
        return []
    saved = "" if told.get("trained_on_all_rows", True) else ", without the rows held out"
    date = f" on {told['date'][:10]}" if told.get("date") else ""
    seed = f", seed {told['seed']}" if "seed" in told else ""
    lines = [f"Trained{date} on {counted(told['n_rows'], 'row')}{saved}{seed}"]
    if told.get("n_copies_collapsed"):
        how = "counted as often as they are there" if told.get("copies_count") else "counted once"
        lines.append(f"{counted(told['n_copies_collapsed'], 'exact copy', 'exact copies')}, {how}")
    return lines


def _print_columns(console: Console, columns: list[dict[str, Any]]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("Column", max_width=24, overflow="ellipsis", no_wrap=True)
    table.add_column("Holds", overflow="fold", min_width=8)
    table.add_column("What is done with it", overflow="fold")
    for column in columns[:_MOST_COLUMNS]:
        cells = (column.get("name"), column.get("kind"), column.get("treatment"))
        table.add_row(*(Text(str(each or "")) for each in cells))
    console.print(table)
    if len(columns) > _MOST_COLUMNS:
        console.print(f"and {len(columns) - _MOST_COLUMNS} more (--json has them all)")


def _print_estimate(console: Console, told: dict[str, Any]) -> None:
    estimate = told["estimate"]
    rare = f", {estimate['n_rare']:,} of them rare" if "n_rare" in estimate else ""
    by = told.get("estimated_by") or "held-out rows"
    console.print(
        f"Estimate by {_ESTIMATED.get(by, by)}, on {counted(estimate['n_rows'], 'row')}{rare}",
        style="bold",
    )
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("Measure")
    table.add_column("Value", justify="right", no_wrap=True)
    table.add_column("95 % interval", no_wrap=True)
    for name, each in estimate["measures"].items():
        table.add_row(name, f"{each['value']:.3f}", f"{each['low']:.3f} to {each['high']:.3f}")
    console.print(table)


def _decision(told: dict[str, Any]) -> list[str]:
    thresholds = ", ".join(f"{each:.4g}" for each in told["thresholds"])
    rule = told.get("rule")
    if len(told["thresholds"]) > 1 or "levels" in told:
        lines = [f"Thresholds between levels: {thresholds}"]
    elif rule is None:
        lines = [f"Threshold {thresholds}: rows that score more are called rare"]
    else:
        sure = "" if rule["confidence"] is None else f", at confidence {rule['confidence']:g}"
        met = "" if rule["met"] else " (not met)"
        lines = [f"Threshold {thresholds} for {rule['rule']}{sure}{met}"]
    chance = told["probabilities"]
    lines.append(
        "Probabilities: none"
        if chance is None
        else f"Probabilities: yes ({chance['method']}), at {chance['prevalence']:.3%} rare rows"
    )
    if told["held_out_scores"]:
        lines.append(
            f"Held-out scores: {told['held_out_scores']:,} (rareclass threshold sets another "
            "threshold by them)"
        )
    if told["rare_cases"]:
        lines.append(
            f"Rare rows kept: {told['rare_cases']:,} (rareclass score --explain names the nearest)"
        )
    return lines


def _packages(told: dict[str, Any]) -> list[str]:
    versions = told.get("versions")
    if not versions:
        return []
    named = ", ".join(f"{name} {number}" for name, number in versions.items())
    return [f"Made with {named}"]
