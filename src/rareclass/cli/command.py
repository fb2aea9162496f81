"""The command ``rareclass``: its commands, their options, and faults as exit codes."""

import csv
import functools
import inspect
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import partial
from importlib import import_module
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from rareclass.cli.screen import be_quiet, file_text, output, print_fault, print_notes
from rareclass.errors import ErrorKind, InputError, called_from, option_name, system_faults
from rareclass.files import Location, check_output
from rareclass.findings import TableWarning
from rareclass.parameters import LARGEST_SEED, opt, read_limited
from rareclass.remote import RemotePath, path_of
from rareclass.tables import TextSettings

if TYPE_CHECKING:
    from rareclass.model.model import Model
    from rareclass.tables.table_file import TablePlace

# In the order of ``rareclass --help``; a command's module has its name, some share one.
_COMMANDS = (
    "fit", "score", "evaluate", "monitor", "threshold", "compare", "report", "show", "export",
    "serve", "audit", "hunt", "review", "stream", "demo",
)  # fmt: skip
_MODULES = {
    "threshold": "model_file", "show": "model_file", "export": "model_file", "monitor": "evaluate",
    "serve": "model_file",
}  # fmt: skip
BAD_INPUT = 2
MOVED_FAR = 3
REQUIRED = MISSING
"""Default of an option that has to be given."""
ANY_MODEL = "Model file of rareclass fit, or folder of a stream or hunt."
"""Help of an argument that is a model of any kind."""
_TO_SCREEN = Path("-")
_SHORT = {"out": ("-o",), "target": ("-t",)}


def argument(help: str, metavar: str | None = None, default: Any = REQUIRED) -> Any:
    """Field of a class of options that is given by its place."""
    return field(default=default, metadata={"argument": typer.Argument(help=help, metavar=metavar)})


def local_file(given: str) -> Path:
    """Parse an option that may not be a URL."""
    return on_this_machine(path_of(given), "The file or folder")


def seed_option(help: str) -> Any:
    """Option of a seed: the same range for every command."""
    return opt(help, 0, min=0, max=LARGEST_SEED)


def positive_option() -> Any:
    """Option ``--positive`` of the rare class."""
    return opt(
        "Label of the rare class. Many times: each is a rare class. By default the less frequent "
        "of two labels; of more, all but the one of most rows.",
        (),
    )


def opened(path: Path) -> "Model":
    """Load a model of any kind, and print what its file says to whoever uses it."""
    from rareclass.opening import open_model

    content = open_model(path)
    print_notes(output(), *content.notices)
    return content


def journal_option() -> Any:
    """Option ``--journal`` of the rows that were checked."""
    return opt(
        "Journal of rareclass review, or CSV file of checked rows, where only some rows of DATA "
        "have a known class.",
        parser=local_file,
    )


def overwrite_option() -> Any:
    """Option ``--overwrite``."""
    return opt("Replace existing files.", False)


def listed(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the words of an option that is a list; one that holds a comma is in double quotes.

    >>> listed(["a, b", "c"]), listed(['"1, or less",more'])
    (('a', 'b', 'c'), ('1, or less', 'more'))
    """
    rows = (
        next(csv.reader([each], skipinitialspace=True)) if "," in each else [each] for each in texts
    )
    return tuple(word.strip() for row in rows for word in row)


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Options on how a table is read."""

    text: TextSettings
    query: str | None = opt(
        "SQL that gives the rows, where the table is a database: "
        "postgresql://user@host/database, sqlite:///file.db or duckdb:///file.duckdb."
    )

    def place(self, given: str, what: str) -> "TablePlace":
        """Return where a table is, which the usage calls `what`: a file, a folder or a query."""
        from rareclass.tables.databases import DatabaseAddress, Query, is_database

        if is_database(given):
            address = DatabaseAddress(given)
            if self.query is None or not self.query.strip():
                raise ErrorKind.SETTING.error(
                    f"--query is missing: which rows of {address}?",
                    'Give one such as --query "SELECT * FROM payments".',
                )
            return Query(address, self.query)
        if self.query is not None:
            raise ErrorKind.SETTING.error(
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
        text = self.text
        if text.separator is not None:
            words += ["--separator", "tab" if text.separator == "\t" else text.separator]
        if text.encoding is not None:
            words += ["--encoding", text.encoding]
        return words


@dataclass(frozen=True, kw_only=True)
class JsonOption:
    """The option ``--json``: what a command found, as a file for scripts."""

    json_file: Path | None = opt(
        "Also write the results as JSON to this file; - prints nothing but JSON.", names=("--json",)
    )

    overwrite = True  # also without the option, as a stream does by the same command

    def check(self, inputs: Mapping[str, Location]) -> None:
        """Refuse a file that cannot be written or is read; print nothing else where it is -."""
        if self.json_file == _TO_SCREEN:
            be_quiet(True)
        elif self.json_file is not None:
            check_output(self.json_file, "--json", self.overwrite, inputs)

    def give(self, data: Any) -> None:
        """Print numbers or write them to the file; do nothing where it was not given."""
        if self.json_file == _TO_SCREEN:
            typer.echo(as_json(data, is_ascii=not output().encoding.startswith("utf")))
        elif self.json_file is not None:
            write_json(self.json_file, data)
            output().print(f"Saved {file_text(self.json_file)}", soft_wrap=True)


@dataclass(frozen=True, kw_only=True)
class OutputOptions(JsonOption):
    """Options on what a command writes."""

    overwrite: bool = overwrite_option()


def command(verb: Callable[[Any], None]) -> Callable[..., None]:
    """Make a command of a function: its class of options, and its faults as exit codes.

    Each field of the class is an option or an argument; a field whose type is a dataclass stands
    for the fields of that. Bad input exits with 2, with one message on stderr; what is odd in a
    table is printed as a note where it is found.
    """
    [kind] = (each.annotation for each in inspect.signature(verb).parameters.values())
    options = [_option(part) for part in _parts(kind)]
    parameters = [each.parameter for each in options]

    @functools.wraps(verb)
    def wrapped(**given: Any) -> None:
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
                values = {each.parameter.name: each.value(given) for each in options}
                verb(_made(kind, values))
        except InputError as error:
            print_fault(error.message, error.remedy)
            raise typer.Exit(BAD_INPUT) from None

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapped


def _parts(kind: Any) -> Iterator[Field[Any]]:
    """Yield the fields of a class, and of classes within, that are options."""
    for part in fields(kind):
        if is_dataclass(part.type):
            yield from _parts(part.type)
        elif part.metadata:
            yield part


def _made(kind: Any, values: Mapping[str, Any]) -> Any:
    """Make a class of options, and the classes within, of the values of its options."""
    own = {}
    for part in fields(kind):
        if is_dataclass(part.type):
            own[part.name] = _made(part.type, values)
        elif part.metadata:
            own[part.name] = values[part.name]
    return kind(**own)


class _Option(NamedTuple):
    """An option: its parameter for typer, and what makes its value of typer's."""

    parameter: inspect.Parameter
    default: Any
    is_list: bool  # words with commas between them
    read: Callable[[str], Any] | None  # of one text; None where typer reads it

    def value(self, given: Mapping[str, Any]) -> Any:
        """Return the value of what typer read; raise `InputError` where it cannot be."""
        value = given[self.parameter.name]
        if value is None and self.default is not MISSING:
            return self.default
        if isinstance(value, list):
            return tuple(map(self.read or str, listed(value)) if self.is_list else value)
        return value if self.read is None else self.read(value)


def _option(part: Field[Any]) -> _Option:
    """Return the option of a field."""
    about, typed, default = dict(part.metadata), part.type, part.default
    names = about.pop("names", ()) or (option_name(part.name), *_SHORT.get(part.name, ()))
    read, low, high = about.pop("reads", None), about.pop("min", -inf), about.pop("max", inf)
    kinds = (typed, *get_args(typed)) if read is None else ()
    number = next((kind for kind in kinds if kind in (int, float)), None)
    if number is not None:
        read = partial(read_limited, kind=number, low=low, high=high)
        about = {"metavar": f"<{number.__name__}>"} | about
    # Typer names those that can be switched off.
    info = about.get("argument") or typer.Option(*(() if default is True else names), **about)
    is_path = "Path" in str(typed)
    shown: Any = default
    if default == ():
        typed, shown = list[Path if is_path else str] | None, None  # type: ignore[misc]
    elif read is not None:
        typed, shown = str | None, None if None in (number, default) else str(default)
    elif get_origin(typed) is tuple:
        typed = list[get_args(typed)[0]]  # type: ignore[misc]
    if info.parser is None and is_path:
        info.parser = path_of
    parameter = inspect.Parameter(
        part.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if shown is MISSING else shown,
        annotation=Annotated[typed, info],
    )
    is_list = "argument" not in about and not is_path
    return _Option(parameter, default, is_list, None if read is None else partial(read, names[0]))


def on_this_machine(place: Path, option: str) -> Path:
    """Return the name of something that grows while it is written; raise `InputError` for a URL."""
    if isinstance(place, RemotePath):
        raise ErrorKind.SETTING.error(
            f"{option} {place} is not on this machine's disk, and has to be.",
            "Give a local name, and copy it afterwards.",
        )
    return place


def write_json(path: Path, data: Any) -> None:
    """Write numbers as JSON; what is not finite is null."""
    from rareclass.files import replacing

    with replacing(path) as temporary:
        temporary.write_text(as_json(data) + "\n", encoding="utf-8")


def as_json(data: Any, is_ascii: bool = False) -> str:
    """Return numbers as JSON that any reader takes: 3.0 is 3, NaN and the infinite become null.

    >>> print(as_json({"a": float("nan"), "b": [1.5, 120.0]}))
    {
      "a": null,
      "b": [
        1.5,
        120
      ]
    }
    """
    return json.dumps(_plain(data), indent=2, ensure_ascii=is_ascii)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if not isinstance(value, float):
        return value
    is_whole = value.is_integer() and abs(value) < 2**53  # beyond, a count is not exact
    return int(value) if is_whole else value if abs(value) < float("inf") else None


# -- the program ----------------------------------------------------------------------------------


class Program(TyperGroup):
    """The program, whose messages name options of the command line."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command that the arguments name."""
        with called_from("command line"):
            return super().main(*args, **options)


class EachOptionOnce(TyperCommand):
    """A command that refuses an option given twice, of which the last would be taken silently."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options; those that may be given many times are lists."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, number in Counter(given).items():
            takes_one = parameter.param_type_name == "option" and not parameter.multiple
            if number > 1 and takes_one:
                ctx.fail(f"{parameter.opts[0]} is given {number} times, and takes one value.")
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


def unwrapped(text: str) -> str:
    """Return a docstring with each paragraph on one line, for the terminal to wrap.

    >>> unwrapped("Score rows.\\n\\n    Writes a\\n    file.\\n    ")
    'Score rows.\\n\\nWrites a file.'
    """
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))


def app_for(words: Sequence[str]) -> typer.Typer:
    """Return the program with the command that `words` call; with all commands for other words."""
    called = next((word for word in words if not word.startswith("-")), "")
    app = typer.Typer(
        cls=Program,
        name="rareclass",
        help="Find a rare class in tables: train a model, estimate how good it is, choose a "
        "threshold, score new rows.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in [called] if called in _COMMANDS else _COMMANDS:
        verb = vars(import_module(f"rareclass.cli.{_MODULES.get(name, name)}"))[name]
        app.command(cls=EachOptionOnce, help=unwrapped(verb.__doc__ or ""))(verb)
    app.callback()(options)
    return app


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return app_for(())


def _print_version(wanted: bool) -> None:
    if wanted:
        from rareclass import __version__

        typer.echo(f"rareclass {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Find a rare class in tables."""
    be_quiet(quiet)
