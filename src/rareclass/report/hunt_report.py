"""The report of a hunt: its balls, the values typical of them, and the rows found."""

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rareclass.errors import ErrorKind, InputError, counted
from rareclass.hunt.files import DESCRIPTION_TABLE, SUMMARY, picture_names
from rareclass.report.document import (
    Block,
    Fact,
    FactList,
    Image,
    KeyFigure,
    Note,
    PageTable,
    ReportPage,
    Section,
    settings_section,
)
from rareclass.report.formatting import NONE, amount, percent, whole
from rareclass.report.model_report import FinishedReport
from rareclass.report.page import made_now

# Bytes of pictures on a page, all balls together: as base64 they are a third more.
_MOST_PICTURES = 280_000
_MOST_LINES = 15
_MOST_COLUMNS = 60

Line = dict[str, str]


def report_on_hunt(folder: Path) -> FinishedReport:
    """Report on the folder of a hunt; raises `InputError` where files are missing or damaged."""
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        with (folder / DESCRIPTION_TABLE).open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        counts, balls = summary["counts"], summary["balls"]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{folder} is not the whole folder of a hunt.",
            "Run rareclass hunt again.",
            ErrorKind.DAMAGED_FILE,
        ) from error
    names, held_out = [ball["name"] for ball in balls], summary.get("held_out")
    page = ReportPage(
        f"Hunt for {' and '.join(dict.fromkeys(names))}",
        f"{folder}: {whole(counts['rows'])} rows of {summary['options'].get('data', 'a table')}",
        f"{counted(counts['found'], 'row')} of {whole(counts['unlabelled'])} without a label "
        f"{'lies' if counts['found'] == 1 else 'lie'} in the "
        f"{'ball' if len(balls) == 1 else f'{len(balls)} balls'} around the known cases.",
        _figures(counts, held_out),
        (
            *_balls(folder, balls, lines),
            _certainty(held_out),
            _data(summary),
            settings_section(_settings(folder, summary)),
        ),
        made_now(),
    )
    return FinishedReport(page, {"counts": counts, "balls": balls, "held_out": held_out})


def _figures(counts: dict[str, Any], held_out: dict[str, Any] | None) -> tuple[KeyFigure, ...]:
    figures = [
        KeyFigure(
            "Rows found", whole(counts["found"]), f"of {whole(counts['unlabelled'])} unlabelled"
        ),
        KeyFigure("Known cases", whole(sum(counts["rare"].values())), ", ".join(counts["rare"])),
        KeyFigure("Cleared rows", whole(counts["cleared"]), "that the balls stay out of"),
    ]
    if held_out is not None:
        bounds = f"{held_out['low']:.2f} to {held_out['high']:.2f}"
        figures.append(KeyFigure("F1, cases held out in turn", f"{held_out['f1']:.2f}", bounds))
    return tuple(figures)


def _balls(folder: Path, balls: Sequence[dict[str, Any]], lines: Sequence[Line]) -> list[Section]:
    """A section for each ball, with pictures as long as there is room for them."""
    sections, left = [], _MOST_PICTURES
    pictures = picture_names([ball["name"] for ball in balls])
    for number, (ball, picture) in enumerate(zip(balls, pictures, strict=True)):
        path = folder / picture
        size = path.stat().st_size if path.is_file() else 0
        has_room = 0 < size <= left
        left -= size if has_room else 0
        own = [line for line in lines if line["ball"] == ball["name"]]
        sections.append(_ball(number, ball, folder, path if has_room else None, own))
    return sections


def _ball(
    number: int, ball: dict[str, Any], folder: Path, picture: Path | None, lines: Sequence[Line]
) -> Section:
    """The picture of a ball, and the values typical of its rows."""
    name, n_found = ball["name"], ball["n_found"]
    blocks: list[Block] = []
    if picture is None:
        blocks.append(Note(f"The picture of this ball is not on the page: look into {folder}."))
    else:
        description = (
            f"Ball of {name}: on the left rows in a plane through its centre, on the right the "
            f"distances of unlabelled rows, with the radius {ball['radius']:.3g} as a line. "
            f"{counted(n_found, 'unlabelled row')} inside."
        )
        blocks.append(Image(f"The ball of {name}", description, picture.read_bytes()))
    numbers = tuple(
        (
            line["feature"],
            f"{_number(line['inside_low'])} to {_number(line['inside_high'])}",
            f"{_number(line['outside_low'])} to {_number(line['outside_high'])}",
            _share(line["overlap"]),
        )
        for line in [line for line in lines if not line["share_inside"]][:_MOST_LINES]
    )
    if numbers:
        head: tuple[str, ...] = ("Column", "Inside", "Outside", "Overlap")
        blocks.append(PageTable("Numbers, the most telling first", head, numbers, (1, 2, 3)))
    values = tuple(
        (
            f"{line['feature']} = {line['value']}",
            _share(line["share_inside"]),
            _share(line["share_outside"]),
        )
        for line in [line for line in lines if line["share_inside"]][:_MOST_LINES]
    )
    if values:
        head = ("Value", "Of the rows inside", "Of the rows outside")
        blocks.append(PageTable("Values, the most telling first", head, values, (1, 2)))
    lead = (
        f"{counted(n_found, 'row')} without a label in it; {whole(ball['n_weighed'])} that were "
        "near shaped it."
    )
    return Section(f"ball-{number}", f"The ball of {name}", lead, tuple(blocks))


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


def _certainty(held_out: dict[str, Any] | None) -> Section:
    title = "How sure that is"
    if held_out is None:
        lead = "Too few cases to leave any out: nothing is known of how sure it is."
        return Section("judged", title, lead, ())
    lead = "Each known case is left out in turn, and looked for."
    return Section("judged", title, lead, (Note(held_out["words"]),))


def _data(summary: dict[str, Any]) -> Section:
    counts = summary["counts"]
    facts = (
        Fact("Rows", whole(counts["rows"])),
        *(Fact(f"Known cases of {name}", whole(n)) for name, n in counts["rare"].items()),
        Fact("Cleared", whole(counts["cleared"])),
        Fact("Ignored", whole(counts["ignored"])),
        Fact("Unlabelled", whole(counts["unlabelled"])),
    )
    rows = tuple(
        (each["name"], str(each.get("kind", "")), str(each.get("treatment", "")))
        for each in summary.get("columns", ())
    )
    table = PageTable("Columns", ("Column", "Holds", "What is done with it"), rows[:_MOST_COLUMNS])
    notes = [Note(each) for each in summary.get("messages", ())]
    return Section("data", "The data", "What was read.", (FactList(facts), *notes, table))


def _settings(folder: Path, summary: dict[str, Any]) -> list[Fact]:
    facts = [Fact("Folder", str(folder))]
    for part in ("settings", "chosen"):
        for name, value in (summary.get(part) or {}).items():
            if value is not None and value != []:
                shown = f"{value:.4g}" if isinstance(value, float) else str(value)
                facts.append(Fact(f"{name} ({part})", shown))
    version, date = (str(summary.get(name, "")) for name in ("version", "date"))
    return [*facts, Fact("Version", version), Fact("Date", date)]
