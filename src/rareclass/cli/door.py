"""What every verb does at its door: options that many share, and faults as messages and codes."""

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import typer

from rareclass.cli.screen import output, print_fault, print_notes
from rareclass.errors import ErrorKind, InputError
from rareclass.remote import RemotePath, path_of
from rareclass.tables import TableWarning

if TYPE_CHECKING:
    from rareclass.tables.table_file import TablePlace

BAD_INPUT = 2
STOPPED = 130


def file_or_url(given: str) -> Path:
    """Parse an option or argument that may be a URL."""
    return path_of(given)


def on_this_machine(place: Path, option: str) -> Path:
    """Return the name of something that grows while it is written; raise `InputError` for a URL."""
    if isinstance(place, RemotePath):
        raise InputError(
            f"{option} {place} is not on this machine's disk, where this has to be.",
            "Give a name here, and copy it afterwards.",
            ErrorKind.SETTING,
        )
    return place


SEPARATOR_OPTION = typer.Option(
    "--separator",
    help="What separates the cells of a CSV file: one character, or tab. By default found out.",
)
QUERY_OPTION = typer.Option(
    "--query",
    help="SQL that gives the rows, where the table is a database: postgresql://user@host/database, "
    "sqlite:///file.db or duckdb:///file.duckdb.",
)
OVERWRITE_OPTION = typer.Option("--overwrite", help="Replace what is there already.")
_NAMED = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


Parameters = ParamSpec("Parameters")


@contextmanager
def _notes_of_tables() -> Iterator[None]:
    """Print what is odd in a table, where it is found, as a note."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def note(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if issubclass(category, TableWarning):
                print_notes(output(), [str(message)])
            else:
                show(message, category, *where)

        warnings.simplefilter("always", TableWarning)
        warnings.showwarning = note  # type: ignore[assignment]
        yield


def exit_codes_for_faults(verb: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Wrap a verb: bad input exits with 2, Ctrl-C with 130, each with one message on stderr."""

    @functools.wraps(verb)
    def wrapped(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            with _notes_of_tables():
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

    >>> parse_separator("tab"), parse_separator(";"), parse_separator(None)
    ('\\t', ';', None)
    """
    if text is None:
        return None
    character = _NAMED.get(text.lower(), text)
    if len(character) != 1 or not character.isascii() or character in '"\r\n\0':
        raise InputError(
            f"--separator {text!r} is not one plain character.",
            "Give one such as ';', or tab.",
            ErrorKind.SETTING,
        )
    return character


def table_at(given: str, query: str | None, what: str) -> "TablePlace":
    """Return where a table is: a file or folder, or the answer of a database to ``--query``.

    `what` it is called in the usage, for messages.
    """
    from rareclass.tables.databases.drivers import DatabaseAddress, Query, is_database

    if is_database(given):
        address = DatabaseAddress(given)
        if query is None or not query.strip():
            raise InputError(
                f"--query is missing: which rows of {address}?",
                'Give one such as --query "SELECT * FROM payments".',
                ErrorKind.SETTING,
            )
        return Query(address, query)
    if query is not None:
        raise InputError(
            f"--query: {what} {path_of(given)} is no database that can be read.",
            "Such are postgresql://user@host/database, sqlite:///file.db, duckdb:///file.duckdb.",
            ErrorKind.SETTING,
        )
    return path_of(given)


def check_new(path: Path, option: str, overwrite: bool) -> None:
    """Raise `InputError` when a file would be replaced that the user did not say may be."""
    if isinstance(path, RemotePath):
        path.check_writable(option)
    if path.is_file() and not overwrite:
        raise InputError(
            f"{option} {path} exists already.",
            "Give another name, or --overwrite to replace it.",
            ErrorKind.EXISTING_FILE,
        )
