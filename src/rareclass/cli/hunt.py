"""``rareclass hunt``: from a few labelled rows to the unlabelled ones that belong with them."""

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rareclass.cli.door import (
    OVERWRITE_OPTION,
    QUERY_OPTION,
    SEPARATOR_OPTION,
    exit_codes_for_faults,
    file_or_url,
    on_this_machine,
    parse_separator,
    table_at,
)
from rareclass.cli.hunt_screen import print_files, print_hunt, print_table_read
from rareclass.cli.json_file import JSON_OPTION, check_json, give_json
from rareclass.cli.method import parse_strength
from rareclass.cli.screen import output
from rareclass.errors import ErrorKind, InputError

if TYPE_CHECKING:
    from rareclass.hunt.hunting import HuntSettings
    from rareclass.hunt.table import LabelRoles
    from rareclass.tables.table_file import TablePlace


class KernelName(StrEnum):
    """Shapes of a ball."""

    none = "none"
    gaussian = "gaussian"


@exit_codes_for_faults
def hunt(
    given: Annotated[
        str,
        typer.Argument(
            help="File or folder in which few rows have labels: CSV, JSON lines, Parquet; or a "
            "database.",
            metavar="DATA",
        ),
    ],
    target: Annotated[
        str,
        typer.Option("--target", "-t", help="Label column; empty cells are rows not looked at."),
    ],
    rare: Annotated[
        list[str], typer.Option(help="Value of confirmed cases. Many times: a ball each.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write.", parser=file_or_url)],
    cleared: Annotated[
        list[str] | None, typer.Option(help="Value of rows known to be no cases. Many times.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Value that counts as an empty cell. Many times.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Column to leave out. May be given many times.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Column to compare by even if it looks like an identifier. Many times."),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(help="Column to take as categories whatever it holds. Many times."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Write so many nearest rows, also from outside the ball."),
    ] = None,
    kernel: Annotated[
        KernelName | None,
        typer.Option(
            help="Shape of the ball: none is round, gaussian is free.",
            show_default="both are tried",
        ),
    ] = None,
    c1: Annotated[
        str | None,
        typer.Option(
            help="Price of a cleared row inside; larger: smaller balls.", show_default="chosen"
        ),
    ] = None,
    c2: Annotated[
        str | None,
        typer.Option(
            help="Price of an unlabelled row outside; larger: larger balls.", show_default="chosen"
        ),
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(
            help="Sigma of the gaussian kernel, in standard deviations; implies that kernel.",
            show_default="chosen",
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Share of the unlabelled rows that is rare, if it is known."
        ),
    ] = None,
    balls: Annotated[
        str | None,
        typer.Option(
            help="Balls for each rare value: a number, or auto.", show_default="1 to 3, chosen"
        ),
    ] = None,
    filter_rows: Annotated[
        str,
        typer.Option(
            "--filter",
            help="Leave out unlabelled rows far from every case before the ball is drawn: yes, no, "
            "or how far, 3 being yes.",
        ),
    ] = "yes",
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same rows.")] = 0,
    json_file: Annotated[Path | None, JSON_OPTION] = None,
    overwrite: Annotated[bool, OVERWRITE_OPTION] = False,
    separator: Annotated[str | None, SEPARATOR_OPTION] = None,
    query: Annotated[str | None, QUERY_OPTION] = None,
) -> None:
    """Find the unlabelled rows of DATA that belong with a few confirmed cases, and say why.

    Writes the rows, surest first, what is typical of them, and a picture.
    """
    from rareclass.files import being_written, check_not_inside
    from rareclass.hunt.files import check_folder, read_summary
    from rareclass.hunt.hunting import HuntSettings
    from rareclass.hunt.table import LabelRoles

    character = parse_separator(separator)
    on_this_machine(out, "--out")
    data = table_at(given, query, "DATA")
    settings = HuntSettings(
        kernel=None if kernel is None else kernel.value,
        c1=parse_strength("--c1", c1),
        c2=parse_strength("--c2", c2),
        width=parse_strength("--width", width),
        share=share,
        n_balls=None if balls is None else parse_balls(balls),
        filter=parse_filter(filter_rows),
        folds=folds,
        top=top,
        seed=seed,
    )
    if width is not None and kernel is KernelName.none:
        raise InputError(
            f"--width {width} belongs to --kernel gaussian.",
            "Leave one of the two out.",
            ErrorKind.COMBINATION,
        )
    if share == 0:
        raise InputError(
            "--share 0 leaves nothing to find.", "Give a share such as 0.001.", ErrorKind.SETTING
        )
    check_not_inside(out, "--out", data)
    check_folder(out, overwrite)
    check_json(json_file, overwrite, {"the file to be read": data, "--out": out})
    roles = LabelRoles(tuple(rare), tuple(cleared or ()), tuple(ignore or ()))
    columns = {"drop": drop or (), "categories": category or (), "keep": keep or ()}
    with being_written(out, f"--out {out}"):
        _hunt_and_report(data, target, roles, columns, settings, out, character)
    give_json(json_file, read_summary(out))


def _hunt_and_report(
    data: "TablePlace",
    target: str,
    roles: "LabelRoles",
    columns: dict[str, Any],
    settings: "HuntSettings",
    out: Path,
    separator: str | None,
) -> None:
    """Hunt in a file, print results on the way, and write the folder."""
    from dataclasses import asdict

    from rareclass.hunt.files import describe_in_units, typical_values, write_hunt
    from rareclass.hunt.hunting import hunt as hunt_in
    from rareclass.hunt.table import read_hunt_table
    from rareclass.machine import available_memory, track

    console = output()
    with track(f"Reading {data.name}"):
        table = read_hunt_table(
            data, target, roles, separator=separator, memory=available_memory(), **columns
        )
    print_table_read(console, data, target, table)
    outcome = hunt_in(table, settings)
    options = {"data": str(data), "target": target, "labels": asdict(roles)} | columns
    with track("Writing"):
        files = write_hunt(out, table, outcome, settings, options)
    values = typical_values(table, outcome)
    print_hunt(console, outcome, describe_in_units(outcome), values)
    print_files(console, files)


def parse_balls(text: str) -> int | str:
    """Read ``--balls``: a number, or "auto".

    >>> parse_balls("2"), parse_balls("auto")
    (2, 'auto')
    """
    if text.strip().lower() == "auto":
        return "auto"
    if text.strip().isdecimal() and int(text) >= 1:
        return int(text)
    raise InputError(
        f"--balls {text} is not a number of balls.",
        "Give a whole number above zero, or auto.",
        ErrorKind.SETTING,
    )


def parse_filter(text: str) -> bool | float:
    """Read ``--filter``: yes, no or a number above zero.

    >>> parse_filter("yes"), parse_filter("no"), parse_filter("4.5")
    (True, False, 4.5)
    """
    word = text.strip().lower()
    if word in ("yes", "no"):
        return word == "yes"
    try:
        margin = float(word)
    except ValueError:
        margin = math.nan
    if not 0.0 < margin < math.inf:
        raise InputError(
            f"--filter {text} is neither yes, no nor a number above zero.",
            "Give one of these; yes stands for 3.",
            ErrorKind.SETTING,
        )
    return margin
