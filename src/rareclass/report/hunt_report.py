"""The report of a hunt: its balls, the values typical of them, and the rows found."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from rareclass.errors import ErrorKind, counted
from rareclass.hunt.files import DESCRIPTION_TABLE, LINES, SUMMARY, picture_names, typical_block
from rareclass.model.columns import type_text
from rareclass.report.page import (
    Fact,
    FactList,
    FinishedReport,
    Image,
    KeyFigure,
    Note,
    PageBlock,
    ReportPage,
    Section,
    settings_section,
    whole,
)
from rareclass.table_block import TableBlock

# Bytes of pictures on a page, all balls together: as base64 they are a third more.
_MOST_PICTURES = 280_000
_MOST_COLUMNS = 60


def report_on_hunt(folder: Path) -> FinishedReport:
    """Report on the folder of a hunt; raises `InputError` where files are missing or damaged."""
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        lines = pl.read_csv(folder / DESCRIPTION_TABLE, schema_overrides=LINES)
        counts, balls = summary["counts"], summary["balls"]
    except (OSError, ValueError, KeyError, pl.exceptions.PolarsError) as error:
        raise ErrorKind.DAMAGED_FILE.error(
            f"{folder} is not the whole folder of a hunt.", "Run rareclass hunt again."
        ) from error
    names, held_out = [ball["name"] for ball in balls], summary.get("held_out")
    sections, left = [], _MOST_PICTURES
    for number, picture in enumerate(picture_names(names)):
        path, name = folder / picture, names[number]
        size = path.stat().st_size if path.is_file() else 0
        has_room = 0 < size <= left
        left -= size if has_room else 0
        typical = typical_block(lines, name)
        sections.append(_ball(number, balls[number], folder, path if has_room else None, typical))
    lead = "Too few cases to leave any out: nothing is known of how sure it is."
    if held_out is not None:
        lead = "Each known case is left out in turn, and looked for."
    notes = () if held_out is None else (Note(held_out["words"]),)
    certainty = Section("judged", "How sure that is", lead, notes)
    page = ReportPage(
        f"Hunt for {' and '.join(dict.fromkeys(names))}",
        f"{folder}: {whole(counts['rows'])} rows of {summary['options'].get('data', 'a table')}",
        f"{counted(counts['found'], 'row')} of {whole(counts['unlabelled'])} without a label "
        f"{'lies' if counts['found'] == 1 else 'lie'} in the "
        f"{'ball' if len(balls) == 1 else f'{len(balls)} balls'} around the known cases.",
        _figures(counts, held_out),
        (*sections, certainty, _data(summary), settings_section(_settings(folder, summary))),
    )
    return FinishedReport(page, {"counts": counts, "balls": balls, "held_out": held_out})


def _figures(counts: dict[str, Any], held_out: dict[str, Any] | None) -> tuple[KeyFigure, ...]:
    unlabelled = f"of {whole(counts['unlabelled'])} unlabelled"
    figures = [
        KeyFigure("Rows found", whole(counts["found"]), unlabelled),
        KeyFigure("Known cases", whole(sum(counts["rare"].values())), ", ".join(counts["rare"])),
        KeyFigure("Cleared rows", whole(counts["cleared"]), "that the balls stay out of"),
    ]
    if held_out is not None:
        bounds = f"{held_out['low']:.2f} to {held_out['high']:.2f}"
        figures.append(KeyFigure("F1, cases held out in turn", f"{held_out['f1']:.2f}", bounds))
    return tuple(figures)


def _ball(
    number: int, ball: dict[str, Any], folder: Path, picture: Path | None, typical: TableBlock
) -> Section:
    """The picture of a ball, and the values typical of its rows."""
    name, n_found = ball["name"], ball["n_found"]
    blocks: list[PageBlock] = []
    if picture is None:
        blocks.append(Note(f"The picture of this ball is not on the page: look into {folder}."))
    else:
        description = (
            f"Ball of {name}: on the left rows in a plane through its centre, on the right the "
            f"distances of unlabelled rows, with the radius {ball['radius']:.3g} as a line. "
            f"{counted(n_found, 'unlabelled row')} inside."
        )
        blocks.append(Image(f"The ball of {name}", description, picture.read_bytes()))
    if typical.rows:
        blocks.append(replace(typical, title="Typical of its rows, the most telling first"))
    lead = (
        f"{counted(n_found, 'row')} without a label in it; {whole(ball['n_weighed'])} that were "
        "near shaped it."
    )
    return Section(f"ball-{number}", f"The ball of {name}", lead, tuple(blocks))


def _data(summary: dict[str, Any]) -> Section:
    counts = summary["counts"]
    facts = (
        Fact("Rows", whole(counts["rows"])),
        *(Fact(f"Known cases of {name}", whole(n)) for name, n in counts["rare"].items()),
        Fact("Cleared", whole(counts["cleared"])),
        Fact("Ignored", whole(counts["ignored"])),
        Fact("Unlabelled", whole(counts["unlabelled"])),
    )
    columns = summary.get("columns", ())
    table = TableBlock(
        "Columns",
        ("Column", "Type", "Treatment"),
        tuple((each["name"], type_text(each["kind"]), each["treatment"]) for each in columns),
    ).shortened(_MOST_COLUMNS)
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
