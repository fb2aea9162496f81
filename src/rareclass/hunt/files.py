"""The folder of a hunt: rows found, what is typical of them in the table's units, and pictures.

The folder is there whole or not at all.
"""

import json
import math
import os
import re
import warnings
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from rareclass.encoding.hunt import Coordinate
from rareclass.errors import ErrorKind, counted, setting
from rareclass.files import check_own_folder, csv_bytes, replacing_folder
from rareclass.hunt import HuntSettings
from rareclass.hunt.hunting import Hunt, HuntTable
from rareclass.labels.states import CheckReason
from rareclass.model.facts import HuntFacts, ModelFacts
from rareclass.model.model import Model
from rareclass.model.model_file import HUNT_MODEL, save_model
from rareclass.model.targets import RareClassFacts
from rareclass.review.journal import Listed, Round
from rareclass.review.reviewing import sheet_of
from rareclass.table_block import TableBlock

if TYPE_CHECKING:
    from rareclass.hyperball.description import BallOverlap

SUMMARY = "hunt.json"
DESCRIPTION_TABLE = "description.csv"
_SIZES = ("center", "inside_low", "inside_high", "outside_low", "outside_high")
_FIGURES = (*_SIZES, "overlap", "share_inside", "share_outside")
# Columns of the table of descriptions.
LINES = {
    **dict.fromkeys(("ball", "feature", "value"), pl.String()),
    **dict.fromkeys(_FIGURES, pl.Float64()),
}
_OF_A_HUNT = re.compile(
    r"found\.(csv|parquet)|description\.(txt|csv)|hunt\.json|score\.rareclass|ball(-.*)?\.png"
)
_DPI = 150
_MOST_TYPICAL = 10
_EMPTY = "(empty)"
# Digits of seven that are left after a subtraction and a product.
_DIGITS = 6


class Described(NamedTuple):
    """Description of the balls: typical cells of their rows, and overlaps."""

    lines: pl.DataFrame  # ranges of a number, or shares of a value, inside and outside of a ball
    overlaps: "list[BallOverlap]"


def check_folder(out: Path, overwrite: bool) -> None:
    """Refuse a folder that cannot be written, or has other files than an earlier hunt's."""
    names = sorted(path.name for path in out.glob("*"))
    is_hunt = SUMMARY in names
    others = [name for name in names if not (is_hunt and _OF_A_HUNT.fullmatch(name))]
    check_own_folder(out, setting("out"), others)
    if names and not overwrite:
        raise ErrorKind.EXISTING_FILE.error(
            f"{setting('out', out)} holds an earlier hunt.",
            f"Give another folder, or {setting('overwrite')} to replace it.",
        )
    ancestor = next(path for path in out.resolve().parents if path.exists())
    if not ancestor.is_dir() or not os.access(ancestor, os.W_OK):
        raise ErrorKind.UNWRITABLE.error(
            f"Cannot make the folder {out}: {ancestor} "
            f"{'may not be written to' if ancestor.is_dir() else 'is not a folder'}.",
            f"Choose another with {setting('out')}.",
        )


def write_hunt(
    out: Path,
    table: HuntTable,
    hunt: Hunt,
    described: Described,
    settings: HuntSettings,
    options: dict[str, Any],
) -> list[Path]:
    """Write the rows found, the description, a picture of every ball and a summary.

    The folder is made, or replaced as a whole. `options` of the user go into the summary. Returns
    the files in reading order. Raises `InputError` when the folder cannot be written, or the disk
    is full.
    """
    with replacing_folder(out) as folder:
        names = [_write_rows(folder, table, hunt)]
        (folder / DESCRIPTION_TABLE).write_bytes(csv_bytes(described.lines))
        names += [DESCRIPTION_TABLE, *_draw(folder, hunt), HUNT_MODEL]
        _write_order(folder / HUNT_MODEL, table, hunt, options.get("target", ""))
        summary = _summary(table, hunt, settings, options, names)
        (folder / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        names.append(SUMMARY)
    return [out / name for name in names]


def round_of(table: HuntTable, hunt: Hunt, number: int, seed: int) -> Round:
    """Return the list of a hunt as a round of a journal."""
    keys = [table.rows.keys[row] for row in hunt.ranking.rows]
    scored = zip(keys, hunt.ranking.score.tolist(), strict=True)
    return Round(number, tuple(Listed(key, CheckReason.SCORE, 1.0, score) for key, score in scored),
                 seed)  # fmt: skip


def _write_rows(folder: Path, table: HuntTable, hunt: Hunt) -> str:
    """Write the ranked rows with all cells that they have in the file, in its format."""
    ranking = hunt.ranking
    own = {
        "score": ranking.score,
        "sure": [None if sure != sure else sure for sure in ranking.sure.tolist()],
        "ball": [hunt.balls[k].name for k in ranking.ball],
        "found": ranking.found,
        "depth": ranking.relative_depth,
        "distance": ranking.distance,
    }
    frame = sheet_of(table.rows, ranking.rows, own)
    if table.rows.file.format_name == "Parquet":
        frame.write_parquet(folder / "found.parquet")
        return "found.parquet"
    # Cells of text that hold nothing are written as such, without quotes.
    frame = frame.with_columns(pl.col(pl.String).replace("", None))
    frame = frame.with_columns(pl.col("review found").cast(pl.Int8))
    (folder / "found.csv").write_bytes(csv_bytes(frame))
    return "found.csv"


def describe_in_units(table: HuntTable, hunt: Hunt) -> Described:
    """Describe the balls in the units of the table: numbers first, then typical values.

    Coordinates of categories and text are left out: `typical_values` says more about them than a
    range from 0 to 1.
    """
    description = hunt.model.describe()
    features = {feature.name: feature for feature in hunt.encoder.coordinates_}
    numbers = [
        {"ball": hunt.balls[row["ball"]].name, "feature": row["feature"]}
        | {name: _in_unit(row[name], features[row["feature"]]) for name in _SIZES}
        | {"overlap": row["overlap"]}
        for row in description.table
        if features[row["feature"]].is_number
    ]
    lines = pl.DataFrame([*numbers, *typical_values(table, hunt)], schema=LINES)
    return Described(lines, description.overlaps)


def typical_block(lines: pl.DataFrame, ball: str) -> TableBlock:
    """Return a table of the ranges and values that set the rows of a ball apart, best first."""
    own = lines.filter(pl.col("ball") == ball).sort("overlap", maintain_order=True)
    shown = own.head(_MOST_TYPICAL).rows(named=True)
    names = [
        line["feature"] if line["value"] is None else f"{line['feature']} = {line['value']}"
        for line in shown
    ]
    columns = {"Typical": names} | {
        side: [_on_side(line, side) for line in shown] for side in ("inside", "outside")
    }
    more = counted(own.height - len(shown), "more column is", "more columns are")
    note = f"; {more} in {DESCRIPTION_TABLE}" if own.height > len(shown) else ""
    return TableBlock.of("", columns, f"(ranges hold 9 of 10 rows{note})")


def _on_side(line: dict[str, Any], side: str) -> str:
    """Return the share of a value on one side of a ball, or the range of a number."""
    if line["value"] is not None:
        return f"{line[f'share_{side}']:.0%}"
    low, high = line[f"{side}_low"], line[f"{side}_high"]
    if low is None or high is None or low != low or high != high:
        return "no rows"
    if f"{low:.4g}" != f"{high:.4g}":
        return f"{low:.4g} to {high:.4g}"
    return f"{low:.4g}" if low == high else f"{low:.6g} to {high:.6g}"  # such as years


def typical_values(table: HuntTable, hunt: Hunt) -> list[dict[str, Any]]:
    """Return, for each ball and category, the value that marks the inside most; strongest first."""
    found = []
    for column in table.rows.columns:
        if column.kind not in ("category", "high-cardinality category", "boolean"):
            continue
        name, cells = column.name, table.rows.frame[column.name]
        if cells.dtype.is_float():
            written = column.words_of_truth or {1.0: "1", 0.0: "0"}
            cells = cells.replace_strict(written, return_dtype=pl.String)
        words = cells.fill_null(_EMPTY).alias("value")
        for number, rows in enumerate(hunt.members):
            inside = words[rows].value_counts(name="inside")
            counts = inside.join(words.value_counts(name="all"), on="value").sort("value")
            n_inside, n_all = counts["inside"].to_numpy(), counts["all"].to_numpy()
            share = n_inside / len(rows)
            outside = (n_all - n_inside) / max(len(words) - len(rows), 1)
            best = int(np.argmax(share - outside))
            line: dict[str, Any] = {"ball": hunt.balls[number].name, "feature": name}
            line |= {"value": counts["value"][best], "share_inside": float(share[best])}
            line |= {"share_outside": float(outside[best])}
            found.append(line | {"overlap": 1.0 - max(float(share[best] - outside[best]), 0.0)})
    return sorted(found, key=lambda line: (line["ball"], line["overlap"]))


def _in_unit(coordinate: float, feature: Coordinate) -> float:
    """Return the number behind a coordinate, without digits that float32 has made up."""
    value, size = coordinate * feature.unit + feature.zero, abs(coordinate * feature.unit)
    size = max(size, abs(feature.zero))
    if not 0.0 < size < math.inf:
        return value
    return round(value, _DIGITS - math.ceil(math.log10(size))) + 0.0  # no -0.0


def _draw(folder: Path, hunt: Hunt) -> list[str]:
    """Draw every ball."""
    from rareclass.report import draw_ball

    names = picture_names([ball.name for ball in hunt.balls])
    for number, name in enumerate(names):
        picture = hunt.model.picture(number)._replace(
            distances=hunt.distances[:, number], title=f"Ball of {hunt.balls[number].name}"
        )
        with warnings.catch_warnings():
            # Names may be in letters that the font lacks.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            draw_ball(picture).savefig(folder / name, dpi=_DPI)
    return names


def picture_names(balls: list[str]) -> list[str]:
    """Name the pictures by letters of the ball's name that every disk can hold.

    >>> picture_names(["fraud"]), picture_names(["a/b", "a b"])
    (['ball.png'], ['ball-a_b.png', 'ball-a_b-2.png'])
    """
    if len(balls) == 1:
        return ["ball.png"]
    names: list[str] = []
    for ball in balls:
        stem = name = "ball-" + (re.sub(r"[^\w.-]+", "_", ball).strip("_") or "unnamed")[:60]
        number = 2
        while f"{name}.png".lower() in [taken.lower() for taken in names]:
            name, number = f"{stem}-{number}", number + 1
        names.append(f"{name}.png")
    return names


def _write_order(path: Path, table: HuntTable, hunt: Hunt, target: str) -> None:
    """Write what scores new rows as a model file: encoder, order of the list, quantiles."""
    rare = table.labels.rare
    facts = ModelFacts(
        format="table",
        target=RareClassFacts(target, " or ".join(rare), "others", rare_labels=rare),
        columns=tuple(table.rows.columns),
        quantiles=tuple(hunt.order.quantiles(1001).tolist()),
        method=HuntFacts(len(table.labels.code)),
    )
    order = hunt.order.thinned()
    save_model(path, Model(hunt.encoder, order, facts, np.array([order.offset_])))


def _summary(
    table: HuntTable, hunt: Hunt, settings: HuntSettings, options: dict[str, Any], names: list[str]
) -> dict[str, Any]:
    """Summarise options, counts, chosen parameters and results."""
    labels = table.labels
    return {
        "options": options,
        "settings": asdict(settings),
        "counts": {
            "rows": len(labels.code),
            "rare": labels.n_rare,
            "cleared": labels.n_cleared,
            "ignored": table.rows.n_ignored,
            "unlabelled": len(labels.unlabelled),
            "found": hunt.n_found,
            "written": len(hunt.ranking.rows),
        },
        "chosen": asdict(hunt.chosen),
        "expected": [{"first": k, "share": share} for k, share in hunt.expected.items()],
        "refound": [{"first": k, "cases": n} for k, n in hunt.refound.items()],
        "held_out": None if hunt.estimate is None else asdict(hunt.estimate),
        "balls": [asdict(ball) for ball in hunt.balls],
        "columns": [asdict(column) for column in table.rows.columns],
        "messages": hunt.notes,
        "files": names,
        "version": version("rareclass"),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
