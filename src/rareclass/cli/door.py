"""The door of every command: options that many share, and faults as exit codes."""

import functools
import inspect
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rareclass.cli.screen import be_quiet, file_text, output, print_fault, print_notes
from rareclass.errors import ErrorKind, InputError, system_faults
from rareclass.files import Location
from rareclass.remote import RemotePath, path_of
from rareclass.tables import TableWarning

if TYPE_CHECKING:
    from rareclass.tables.table_file import TablePlace

BAD_INPUT = 2
MOVED_FAR = 3
STOPPED = 130
_TO_SCREEN = Path("-")
_LARGEST_SEED = 2**32 - 1  # of numpy's RandomState, which scikit-learn draws from
_NAMED = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


def setting_error(message: str, remedy: str) -> InputError:
    """Return the error of an option whose value cannot be used."""
    return InputError(message, remedy, ErrorKind.SETTING)


def combination_error(message: str, remedy: str) -> InputError:
    """Return the error of options that exclude each other, or of which one is missing."""
    return InputError(message, remedy, ErrorKind.COMBINATION)


def file_or_url(given: str) -> Path:
    """Parse an option or argument that may be a URL."""
    return path_of(given)


def local_file(given: str) -> Path:
    """Parse an option that may not be a URL."""
    return on_this_machine(path_of(given), "The file or folder")


def file_option(help: str) -> Any:
    """Option of a file or folder, which may be a URL."""
    return typer.Option(help=help, parser=file_or_url)


def out_option(help: str) -> Any:
    """Option ``--out`` of what a command writes."""
    return typer.Option("--out", "-o", help=help, parser=file_or_url)


def seed_option(help: str) -> Any:
    """Option of a seed: the same range for every command."""
    return typer.Option(min=0, max=_LARGEST_SEED, help=help)


ModelPath = Annotated[
    Path,
    typer.Argument(
        help="Model file of rareclass fit, or folder of a stream or hunt.", parser=file_or_url
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse rows unlike training: the distribution of a column or of the scores is "
        "far from training (see rareclass monitor), or alerts are significantly twice or half as "
        "frequent as on held-out rows.",
    ),
]
CheckedRows = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        help="Journal of rareclass review, or CSV file of checked rows, where only some rows of "
        "DATA have a known class.",
        parser=local_file,
    ),
]
Positive = Annotated[
    list[str] | None,
    typer.Option(
        help="Label of the rare class. Many times: each is a rare class. By default the less "
        "frequent of two labels; of more, all but the one of most rows."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")]
Drop = Annotated[
    list[str] | None, typer.Option(help="Column to leave out. May be given many times.")
]


@dataclass(frozen=True)
class SeparatorOption:
    """The option ``--separator``."""

    separator: Annotated[
        str | None,
        typer.Option(
            help="Separator of a CSV file: one character, or tab. By default it is detected."
        ),
    ] = None

    @property
    def character(self) -> str | None:
        r"""The character that ``--separator`` stands for, None for none given.

        >>> [SeparatorOption(each).character for each in ("tab", ";", None)]
        ['\t', ';', None]
        """
        if self.separator is None:
            return None
        character = _NAMED.get(self.separator.lower(), self.separator)
        if len(character) != 1 or not character.isascii() or character in '"\r\n\0':
            raise setting_error(
                f"--separator {self.separator!r} is not one plain character.",
                "Give one such as ';', or tab.",
            )
        return character


@dataclass(frozen=True)
class TableOptions(SeparatorOption):
    """Options on how a table is read."""

    query: Annotated[
        str | None,
        typer.Option(
            help="SQL that gives the rows, where the table is a database: "
            "postgresql://user@host/database, sqlite:///file.db or duckdb:///file.duckdb."
        ),
    ] = None

    def place(self, given: str, what: str) -> "TablePlace":
        """Return where a table is: a file or folder, or the answer of a database to ``--query``.

        `what` it is called in the usage, for messages.
        """
        from rareclass.tables.databases import DatabaseAddress, Query, is_database

        if is_database(given):
            address = DatabaseAddress(given)
            if self.query is None or not self.query.strip():
                raise setting_error(
                    f"--query is missing: which rows of {address}?",
                    'Give one such as --query "SELECT * FROM payments".',
                )
            return Query(address, self.query)
        if self.query is not None:
            raise setting_error(
                f"--query: {what} {path_of(given)} is not a database.",
                "Leave --query out, or give postgresql://user@host/database, sqlite:///file.db or "
                "duckdb:///file.duckdb.",
            )
        return path_of(given)

    def words(self, place: "TablePlace") -> list[object]:
        """Return the words that name a table on the command line; no password is among them."""
        from rareclass.tables.databases import Query

        words: list[object] = [place]
        if isinstance(place, Query):
            words = [place.address, "--query", place.sql]
        return words if self.separator is None else [*words, "--separator", self.separator]


@dataclass(frozen=True)
class ColumnOptions:
    """Options on which columns are used, and how."""

    drop: Drop = None
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Column to use even if it looks like an identifier. Many times."),
    ] = None
    category: Annotated[
        list[str] | None,
        typer.Option(help="Column to treat as categories, whatever it holds. Many times."),
    ] = None

    @property
    def settings(self) -> dict[str, tuple[str, ...]]:
        """The columns by the names that the library has for these lists."""
        return {
            "drop": tuple(self.drop or ()),
            "categories": tuple(self.category or ()),
            "keep": tuple(self.keep or ()),
        }


@dataclass(frozen=True)
class JsonOption:
    """The option ``--json``: what a command found, as a file for scripts."""

    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json",
            help="Also write the results as JSON to this file; - prints nothing but JSON.",
            parser=file_or_url,
        ),
    ] = None

    def check(self, inputs: Mapping[str, Location], overwrite: bool) -> None:
        """Raise `InputError` where the file cannot be written, or is one of those read.

        Where the numbers are to be printed, nothing else is from here on.
        """
        if self.json_file == _TO_SCREEN:
            be_quiet(True)
        elif self.json_file is not None:
            check_output(self.json_file, "--json", overwrite, inputs)

    def give(self, data: Any) -> None:
        """Print numbers or write them to the file; do nothing where it was not given."""
        if self.json_file == _TO_SCREEN:
            typer.echo(as_json(data))
        elif self.json_file is not None:
            write_json(self.json_file, data)
            output().print(f"Saved {file_text(self.json_file)}", soft_wrap=True)


@dataclass(frozen=True)
class OutputOptions(JsonOption):
    """Options on what a command writes."""

    overwrite: Overwrite = False


def command(verb: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function: its options, and its faults as messages and exit codes.

    A parameter whose type is a dataclass stands for an option for each field. Bad input exits with
    2, Ctrl-C with 130, each with one message on stderr; what is odd in a table is printed as a note
    where it is found.
    """
    parameters: list[inspect.Parameter] = []
    blocks: dict[str, Any] = {}
    for name, each in inspect.signature(verb).parameters.items():
        if is_dataclass(each.annotation):
            blocks[name] = each.annotation
            parameters += [
                inspect.Parameter(
                    part.name, each.KEYWORD_ONLY, default=part.default, annotation=part.type
                )
                for part in fields(each.annotation)
            ]
        else:
            parameters.append(each.replace(kind=each.KEYWORD_ONLY))

    @functools.wraps(verb)
    def wrapped(**given: Any) -> None:
        for name, block in blocks.items():
            given[name] = block(**{part.name: given.pop(part.name) for part in fields(block)})
        show = warnings.showwarning

        def note(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if issubclass(category, TableWarning):
                print_notes(output(), str(message))
            else:
                show(message, category, *where)

        try:
            with warnings.catch_warnings(), system_faults():
                warnings.simplefilter("always", TableWarning)
                warnings.showwarning = note  # type: ignore[assignment]
                verb(**given)
        except InputError as error:
            print_fault(error.message, error.remedy)
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            print_fault("Stopped; nothing was left half-written.", "")
            raise typer.Exit(STOPPED) from None

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapped


def on_this_machine(place: Path, option: str) -> Path:
    """Return the name of something that grows while it is written; raise `InputError` for a URL."""
    if isinstance(place, RemotePath):
        raise setting_error(
            f"{option} {place} is not on this machine's disk, and has to be.",
            "Give a local name, and copy it afterwards.",
        )
    return place


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


def check_output(
    path: Path,
    option: str,
    overwrite: bool,
    inputs: Mapping[str, Location],
    may_be_inside: bool = False,
) -> None:
    """Raise `InputError` where a file cannot be written, or would replace what is read.

    `may_be_inside`: the file may stand in a folder that is read.
    """
    from rareclass.files import check_not_input, check_not_inside, check_writable

    check_not_input(path, option, inputs)
    if not may_be_inside:
        for read in inputs.values():
            check_not_inside(path, option, read)
    check_new(path, option, overwrite)
    check_writable(path, option)


def write_json(path: Path, data: Any) -> None:
    """Write numbers as JSON; what is not finite is null."""
    from rareclass.files import replacing

    with replacing(path) as temporary:
        temporary.write_text(as_json(data) + "\n", encoding="utf-8")


def as_json(data: Any) -> str:
    """Return numbers as JSON that any reader takes: NaN and the infinite become null.

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
