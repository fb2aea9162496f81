"""The option ``--json``: what a verb found, as a file for scripts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from rareclass.cli.door import check_new, file_or_url
from rareclass.cli.screen import be_quiet, file_text, output
from rareclass.files import Location

JSON_OPTION = typer.Option(
    "--json",
    help="Also write the numbers to this file; - prints them, and nothing else.",
    parser=file_or_url,
)
_TO_SCREEN = Path("-")


def check_json(path: Path | None, overwrite: bool, inputs: Mapping[str, Location]) -> None:
    """Raise `InputError` where the file cannot be written, or is one of those read.

    Where the numbers are to be printed, nothing else is from here on.
    """
    if path is None:
        return
    if path == _TO_SCREEN:
        be_quiet(True)
        return
    from rareclass.files import check_not_input, check_not_inside, check_writable

    check_not_input(path, "--json", inputs)
    for read in inputs.values():
        check_not_inside(path, "--json", read)
    check_new(path, "--json", overwrite)
    check_writable(path, "--json")


def give_json(path: Path | None, data: Any) -> None:
    """Print numbers or write them to a file, as ``--json`` says; nothing where it was not given."""
    if path == _TO_SCREEN:
        typer.echo(as_json(data))
    elif path is not None:
        write_json(path, data)
        output().print(f"Saved {file_text(path)}", soft_wrap=True)


def write_json(path: Path, data: Any) -> None:
    """Write numbers as JSON; what is not finite is null."""
    from rareclass.files import replacing

    with replacing(path) as temporary:
        temporary.write_text(as_json(data) + "\n", encoding="utf-8")


def as_json(data: Any) -> str:
    """Numbers as JSON that any reader takes: NaN and the infinite become null.

    >>> print(as_json({"a": float("nan"), "b": [1.5]}))
    {
      "a": null,
      "b": [
        1.5
      ]
    }
    """
    return json.dumps(_finite(data), indent=2, ensure_ascii=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value
