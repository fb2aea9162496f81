"""A report of a hunt: its balls, what is typical of them, and what was found."""

import csv
import json
import math
from pathlib import Path
from typing import Any

from rareclass.errors import InputError, counted
from rareclass.hunt.files import DESCRIPTION_TABLE, SUMMARY, picture_names
from rareclass.report.model_report import made
from rareclass.report.page.document import (
    Block,
    Facts,
    Figure,
    Image,
    Note,
    Report,
    Section,
    Table,
)
from rareclass.report.page.wording import NONE, amount, percent, whole
from rareclass.report.sections.card import settings_section

# Bytes of pictures that a page holds, all balls together: as base64 they are a third more.
_MOST_PICTURES = 280_000
_MOST_LINES = 15


def report_on_hunt(folder: Path) -> tuple[Report, dict[str, Any]]:
    """A report, and its numbers as plain data; raises `InputError` on a folder that is damaged."""
    try:
        told = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        with (folder / DESCRIPTION_TABLE).open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        counts, balls = told["counts"], told["balls"]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{folder} is not the whole folder of a hunt.", "Run rareclass hunt again."
        ) from error
    names = [ball["name"] for ball in balls]
    held_out = told.get("held_out")
    verdict = (
        f"{counted(counts['found'], 'row')} of {whole(counts['unlabelled'])} without a label "
        f"{'lies' if counts['found'] == 1 else 'lie'} in the "
        f"{'ball' if len(balls) == 1 else f'{len(balls)} balls'} around the known cases."
    )
    figures = [
        Figure(
            "Rows found", whole(counts["found"]), f"of {whole(counts['unlabelled'])} unlabelled"
        ),
        Figure("Known cases", whole(sum(counts["rare"].values())), ", ".join(counts["rare"])),
        Figure("Cleared rows", whole(counts["cleared"]), "that the balls stay out of"),
    ]
    if held_out is not None:
        bounds = f"{held_out['low']:.2f} to {held_out['high']:.2f}"
        figures.append(Figure("F1, cases held out in turn", f"{held_out['f1']:.2f}", bounds))
    sections, left = [], _MOST_PICTURES
    for number, (ball, picture) in enumerate(zip(balls, picture_names(names), strict=True)):
        size = (folder / picture).stat().st_size if (folder / picture).is_file() else 0
        sections.append(_ball(number, folder, ball, picture if 0 < size <= left else None, lines))
        left -= size if size <= left else 0
    notes: list[Block] = [Note(each) for each in told.get("messages", ())]
    judged: list[Block] = [] if held_out is None else [Note(held_out["words"])]
    sections += [
        Section(
            "judged",
            "How sure that is",
            "Each known case is left out in turn, and looked for."
            if held_out is not None
            else "Too few cases to leave any out: nothing is known of how sure it is.",
            tuple(judged),
        ),
        _data(told, notes),
        settings_section(_settings(folder, told)),
    ]
    report = Report(
        f"Hunt for {' and '.join(dict.fromkeys(names))}",
        f"{folder}: {whole(counts['rows'])} rows of {told['options'].get('data', 'a table')}",
        verdict,
        tuple(figures),
        tuple(sections),
        made(),
    )
    return report, {"counts": counts, "balls": balls, "held_out": held_out}


def _ball(
    number: int,
    folder: Path,
    ball: dict[str, Any],
    picture: str | None,
    lines: list[dict[str, str]],
) -> Section:
    """The picture of a ball, and what is typical of its rows."""
    name = ball["name"]
    blocks: list[Block] = []
    if picture is not None:
        description = (
            f"Ball of {name}: on the left rows in a plane through its centre, on the right the "
            f"distances of unlabelled rows, with the radius {ball['radius']:.3g} as a line. "
            f"{counted(ball['n_found'], 'unlabelled row')} inside."
        )
        blocks.append(Image(f"The ball of {name}", description, (folder / picture).read_bytes()))
    else:
        blocks.append(Note(f"The picture of this ball is not on the page: look into {folder}."))
    own = [line for line in lines if line["ball"] == name]
    numbers = [line for line in own if not line["share_inside"]][:_MOST_LINES]
    values = [line for line in own if line["share_inside"]][:_MOST_LINES]
    if numbers:
        rows = tuple(
            (
                line["feature"],
                f"{_number(line['inside_low'])} to {_number(line['inside_high'])}",
                f"{_number(line['outside_low'])} to {_number(line['outside_high'])}",
                _share(line["overlap"]),
            )
            for line in numbers
        )
        head = ("Column", "Inside", "Outside", "Overlap")
        blocks.append(Table("Numbers, the most telling first", head, rows, (1, 2, 3)))
    if values:
        shares = tuple(
            (
                f"{line['feature']} = {line['value']}",
                _share(line["share_inside"]),
                _share(line["share_outside"]),
            )
            for line in values
        )
        head_of_values = ("Value", "Of the rows inside", "Of the rows outside")
        blocks.append(Table("Values, the most telling first", head_of_values, shares, (1, 2)))
    return Section(
        f"ball-{number}",
        f"The ball of {name}",
        f"{counted(ball['n_found'], 'row')} without a label in it; {whole(ball['n_weighed'])} that "
        "were near shaped it.",
        tuple(blocks),
    )


def _number(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return NONE
    return amount(value) if math.isfinite(value) else NONE


def _share(text: str) -> str:
    try:
        return percent(float(text))
    except ValueError:
        return NONE


def _data(told: dict[str, Any], notes: list[Block]) -> Section:
    counts = told["counts"]
    facts = (
        ("Rows", whole(counts["rows"])),
        *((f"Known cases of {name}", whole(n)) for name, n in counts["rare"].items()),
        ("Cleared", whole(counts["cleared"])),
        ("Ignored", whole(counts["ignored"])),
        ("Unlabelled", whole(counts["unlabelled"])),
    )
    columns = told.get("columns", ())
    rows = tuple(
        (each["name"], str(each.get("kind", "")), str(each.get("treatment", "")))
        for each in columns
    )[:60]
    table = Table("Columns", ("Column", "Holds", "What is done with it"), rows)
    return Section("data", "The data", "What was read.", (Facts(facts), *notes, table))


def _settings(folder: Path, told: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [("Folder", str(folder))]
    for part in ("settings", "chosen"):
        for name, value in (told.get(part) or {}).items():
            if value is not None and value != []:
                shown = f"{value:.4g}" if isinstance(value, float) else str(value)
                facts.append((f"{name} ({part})", shown))
    facts += [("Version", str(told.get("version", ""))), ("Date", str(told.get("date", "")))]
    return facts
