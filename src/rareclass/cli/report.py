"""``rareclass report``: one HTML page on a model, a comparison, a stream or a hunt."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rareclass.cli.door import (
    OVERWRITE_OPTION,
    SEPARATOR_OPTION,
    check_new,
    exit_codes_for_faults,
    parse_separator,
)
from rareclass.cli.json_file import JSON_OPTION, check_json, give_json
from rareclass.cli.rule import costs_of
from rareclass.cli.screen import file_text, output, print_notes
from rareclass.errors import InputError

if TYPE_CHECKING:
    from rareclass.report.page.document import Report
    from rareclass.verbs.report.reading import Asked

_REPORT_OPTION = typer.Option("--out", "-o", help="HTML file to write.")


@exit_codes_for_faults
def report(
    model: Annotated[
        Path,
        typer.Argument(help="Model file of rareclass fit, or folder of a stream or hunt."),
    ],
    out: Annotated[Path, _REPORT_OPTION],
    data: Annotated[
        Path | None,
        typer.Argument(
            help="File or folder with the target that the model did not learn from. By default the "
            "rows that were held out when it was fitted, whose scores it holds."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column with the classes, if it has another name."),
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column with the time of a row: alerts are a day then.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column whose values are looked at one by one.")
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            help="fp=5,fn=100 for a false alert and a missed rare row, review=1 for any alert; a "
            "column of costs by its name, as in fn=amount."
        ),
    ] = None,
    rows: Annotated[
        int,
        typer.Option(
            min=0, max=100, help="Show so many of the highest rows, with cells. By default none."
        ),
    ] = 0,
    json_file: Annotated[Path | None, JSON_OPTION] = None,
    overwrite: Annotated[bool, OVERWRITE_OPTION] = False,
    separator: Annotated[str | None, SEPARATOR_OPTION] = None,
) -> None:
    """Write a page that shows how good a model is, and at which threshold.

    One HTML file that needs no network: curves with intervals, a threshold to drag, what errors
    cost, where the model fails, how far the rows have moved since training, and a model card.
    """
    character = parse_separator(separator)
    from rareclass.verbs.report.reading import Asked

    costs = None if cost is None else costs_of(cost)
    asked = Asked(target, time, groups, costs, rows, character)
    check_page(out, "--out", overwrite, {"the model": model} | ({"DATA": data} if data else {}))
    check_json(json_file, overwrite, {"the model": model} | ({"DATA": data} if data else {}))
    page, numbers = _made(model, data, asked)
    write_page(out, page)
    give_json(json_file, numbers)


def check_page(path: Path, option: str, overwrite: bool, inputs: dict[str, Path]) -> None:
    """Raise `InputError` where the page cannot be written, or would replace what was read."""
    from rareclass.atomic_file import check_not_input, check_not_inside, check_writable

    check_not_input(path, option, inputs)
    for read in inputs.values():
        check_not_inside(path, option, read)
    check_new(path, option, overwrite)
    check_writable(path, option)


def write_page(path: Path, page: "Report") -> None:
    """Write the page, and say its verdict and where it is."""
    from rareclass.atomic_file import replacing
    from rareclass.report.page.page import rendered

    html = rendered(page)
    with replacing(path) as temporary:
        temporary.write_text(html, encoding="utf-8")
    console = output()
    console.print(page.subtitle, style="bold", markup=False)
    console.print(page.verdict, markup=False)
    console.print(f"Saved {file_text(path)}: open it in a browser; it needs no network.")


def _made(model: Path, data: Path | None, asked: "Asked") -> tuple["Report", dict[str, Any]]:
    """The page, by what there is to report on."""
    from rareclass.verbs.model import open_model
    from rareclass.verbs.report.model_report import report_on_held_out, report_on_model

    content = open_model(model)
    print_notes(output(), content.notices)
    if data is not None:
        return report_on_model(content, model, data, asked)
    beside = {"--time": asked.time, "--groups": asked.groups, "--target": asked.target}
    given = [name for name, value in beside.items() if value is not None]
    given += ["--rows"] if asked.n_shown else []
    if given:
        raise InputError(f"{given[0]} is about the rows of a file.", "Give DATA as well.")
    if any(isinstance(each, str) for each in (asked.costs or {}).values()):
        raise InputError("--cost names a column, and there is no DATA.", "Give DATA as well.")
    return report_on_held_out(content, model, asked.costs)
