"""What every verb does at its door: options that many share, and faults as messages and codes."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

import typer

from rareclass.cli.screen import print_fault
from rareclass.errors import InputError

BAD_INPUT = 2
STOPPED = 130

SEPARATOR_OPTION = typer.Option(
    "--separator",
    help="What separates the cells of a CSV file: one character, or tab. By default found out.",
)
OVERWRITE_OPTION = typer.Option("--overwrite", help="Replace what is there already.")
_NAMED = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


Parameters = ParamSpec("Parameters")


def exit_codes_for_faults(verb: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Wrap a verb: bad input exits with 2, Ctrl-C with 130, each with one message on stderr."""

    @functools.wraps(verb)
    def wrapped(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            verb(*args, **kwargs)
        except InputError as error:
            print_fault(error.message, error.remedy)
            raise typer.Exit(BAD_INPUT) from None
        except MemoryError:
            print_fault("The machine ran out of memory.", "Use fewer rows or columns (--drop).")
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            print_fault("Stopped; nothing was left half-written.", "")
            raise typer.Exit(STOPPED) from None

    return wrapped


def parse_separator(text: str | None) -> str | None:
    """Return the character that ``--separator`` stands for, None for none given.

    Examples
    --------
    >>> parse_separator("tab"), parse_separator(";"), parse_separator(None)
    ('\\t', ';', None)
    """
    if text is None:
        return None
    character = _NAMED.get(text.lower(), text)
    if len(character) != 1 or not character.isascii() or character in '"\r\n\0':
        raise InputError(
            f"--separator {text!r} is not one plain character.", "Give one such as ';', or tab."
        )
    return character


def check_new(path: Path, option: str, overwrite: bool) -> None:
    """Raise `InputError` when a file would be replaced that the user did not say may be."""
    if path.is_file() and not overwrite:
        raise InputError(
            f"{option} {path} exists already.", "Give another name, or --overwrite to replace it."
        )
