"""Errors about the input, with their kind, place, value and remedy."""

import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from shlex import join, quote
from typing import Literal

# Errors of the machine: no room, no right, a broken device, too many open files.
_OF_THE_MACHINE = {
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EACCES, errno.EPERM, errno.EROFS,
    errno.EMFILE, errno.ENFILE, errno.ENOMEM,
}  # fmt: skip
# Letters by which a name may differ from the one that was meant.
_MOST_SLIPS = 3
# Parameters of Python whose option of the command line has another name.
OPTIONS = {
    "categories": "category", "costs": "cost", "file": "token_file", "folder": "checkpoint",
    "id_column": "id", "id_columns": "id", "ignored": "ignore", "kernel_memory": "memory",
    "key": "id", "n_balls": "balls", "parameters": "param", "pos_label": "positive",
    "rare_class": "class", "scores": "score", "seconds": "time_budget", "time_column": "time",
    "weigh_copies": "copies",
}  # fmt: skip
# Estimators behind the values of ``--method``.
ESTIMATORS = {
    "auto": "RareClassifier", "mibc": "MIBC", "ordinal-rankrc": "OrdinalRankRC", "rankrc": "RankRC",
}  # fmt: skip
# Parameters that take a list, and whose option may be given many times.
_LISTS = {
    "drop", "keep", "categories", "ignored", "positive", "rest", "rare", "cleared", "members",
    "levels",
}  # fmt: skip


Interface = Literal["Python", "command line", "HTTP"]
# Interface of the process, which its threads share, and of a request that a thread answers.
_process: list[Interface] = ["Python"]
_request: ContextVar[Interface] = ContextVar("request")


class ErrorKind(StrEnum):
    """Kind of error, a word that code can ask for; messages may change, kinds do not."""

    MISSING_FILE = "missing file"  # no such file, folder, table or model
    EXISTING_FILE = "existing file"  # an output that is there already, or is an input
    UNWRITABLE = "unwritable"  # no permission, no room, no folder
    LOCKED = "locked"  # another process writes it, or another thread learns with it
    DAMAGED_FILE = "damaged file"  # cut short, changed, not what its format says
    FILE_FORMAT = "file format"  # a kind or version of file that is not read
    CONNECTION = "connection"  # a server, database, bucket or cluster that does not answer
    MISSING_COLUMN = "missing column"
    COLUMN_NAMES = "column names"  # twice the same, empty, or one of ours
    CELL = "cell"  # a cell, or a whole column, that cannot be read as what it should be
    LABELS = "labels"  # unknown, missing, of one class, of too many
    TOO_FEW_ROWS = "too few rows"
    ROWS = "rows"  # their number, order or identity: not as many, not sorted, twice
    SHAPE = "shape"  # dimensions or type of an array or a table
    NOT_FINITE = "not finite"  # NaN or infinite where a number is needed
    SETTING = "setting"  # the value of a parameter or an option
    COMBINATION = "combination"  # options or parameters that exclude each other
    NOT_REACHABLE = "not reachable"  # a constraint that no threshold or setting keeps
    UNSUPPORTED = "unsupported"  # what this model, method or table cannot do
    MISSING_PACKAGE = "missing package"
    MEMORY = "memory"  # needs more than there is
    REFUSED = "refused"  # not opened or not answered, for safety or by a limit

    def error(
        self,
        message: str,
        remedy: str = "",
        *,
        column: str | None = None,
        row: int | None = None,
        value: object = None,
    ) -> "InputError":
        """Return the error of this kind, as `InputError` has it."""
        return InputError(message, remedy, self, column=column, row=row, value=value)


class InputError(ValueError):
    """Input that cannot be used, with the remedy.

    The command line prints it without a traceback and exits with code 2.

    Parameters
    ----------
    message : str
        Fault, naming the file, column, row and value where they are known.
    remedy : str, optional
        Action that mends it.
    kind : ErrorKind
        Kind, for code that handles errors.
    column : str, optional
        Column of the fault.
    row : int, optional
        Row of the fault, from 1 in a file or a request, from 0 in an array or a data frame; None
        where it is the whole column.
    value : object, optional
        Value that cannot be used.

    Examples
    --------
    >>> error = InputError("no column 'agee'.", "Did you mean 'age'?", ErrorKind.MISSING_COLUMN)
    >>> str(error), error.kind.value
    ("no column 'agee'. Did you mean 'age'?", 'missing column')
    """

    def __init__(
        self,
        message: str,
        remedy: str = "",
        kind: ErrorKind = ErrorKind.SETTING,
        *,
        column: str | None = None,
        row: int | None = None,
        value: object = None,
    ) -> None:
        super().__init__(f"{message} {remedy}".strip())
        self.message = message
        self.remedy = remedy
        self.kind = kind
        self.column = column
        self.row = row
        self.value = value


class MissingPackageError(InputError, ImportError):
    """A package that a use needs and that `pip install rareclass` leaves out."""


def is_system_fault(error: BaseException) -> bool:
    """Return whether an error says that the machine refused something, not that a file is wrong."""
    return isinstance(error, OSError) and error.errno in _OF_THE_MACHINE


@contextmanager
def system_faults() -> Iterator[None]:
    """Raise `InputError` where the system refuses memory, room, a right or a device in the block.

    Other errors, whose cause is not the machine, pass.
    """
    try:
        yield
    except MemoryError as error:
        message = "The machine ran out of memory."
        raise ErrorKind.MEMORY.error(message, "Use fewer rows or columns.") from error
    except OSError as error:
        if not is_system_fault(error):
            raise
        where = f" for {error.filename}" if error.filename else ""
        raise ErrorKind.UNWRITABLE.error(
            f"The system reported an error{where}: {error.strerror}.",
            "Check that the disk has room and that you may write to the folder.",
        ) from error


@contextmanager
def needed_for(use: str, install: str) -> Iterator[None]:
    """Say what an import within the block lacks, and how to install it.

    `install` is what pip is to install: an extra of this package, or another package. Raises
    `MissingPackageError` in place of an `ImportError` of another package than this one.

    >>> with needed_for("Reading minds", "rareclass[minds]"):
    ...     import telepathy
    Traceback (most recent call last):
        ...
    rareclass.errors.MissingPackageError: Reading minds needs telepathy, which is not installed. \
Install it: pip install "rareclass[minds]".
    """
    try:
        yield
    except MissingPackageError:
        raise
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "rareclass"):
            raise
        is_absent = isinstance(error, ModuleNotFoundError)
        why = "which is not installed" if is_absent else f"of another version: {error}"
        raise MissingPackageError(
            f"{use} needs {package}, {why}.",
            f'Install it: pip install "{install}".',
            ErrorKind.MISSING_PACKAGE,
            value=package,
        ) from error


def counted(number: float, noun: str, many: str = "") -> str:
    """Word a number of things; `many` is the plural where it is not `noun` with an s.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "row is", "rows are")
    ('1 row', '1,200 rows', '2 rows are')
    """
    return f"{number:,.0f} {noun if number == 1 else many or noun + 's'}"


def command_line(*words: object, **options: object) -> str:
    """Return a command of ours to type in a shell, its words quoted where they need it.

    The value of an option that is None is still to come.

    >>> command_line("score", "pay model.rareclass", out="a.csv", top=None)
    "rareclass score 'pay model.rareclass' --out a.csv --top"
    """
    pairs = [(f"--{name}", value) for name, value in options.items()]
    given = [str(word) for pair in pairs for word in pair if word is not None]
    return join(["rareclass", *map(str, words), *given])


@contextmanager
def called_from(interface: Interface) -> Iterator[None]:
    """Word messages within the block, of all threads, for an interface."""
    _process.append(interface)
    try:
        yield
    finally:
        _process.pop()


def called_by_http() -> None:
    """Word messages of this thread or task for HTTP from now on."""
    _request.set("HTTP")


def setting(name: str, *values: object, elsewhere: str = "") -> str:
    """Return a parameter, with its values where some are given, as the caller would write it.

    `name` is the parameter of Python, and `elsewhere` are the words for callers of Python and HTTP
    where these may have none. A request over HTTP has no settings.

    >>> setting("categories"), setting("drop", "a b"), setting("holdout", 0)
    ('categories=', "drop=['a b']", 'holdout=0')
    >>> with called_from("command line"):
    ...     setting("categories"), setting("drop", "a b"), setting("holdout", 0)
    ('--category', "--drop 'a b'", '--holdout 0')
    """
    interface = _request.get(_process[-1])
    if interface == "command line":
        option = option_name(name)
        words = [_words_of(name, each) for each in values]
        return " ".join(f"{option} {quote(each)}" for each in words) or option
    if elsewhere:
        return elsewhere
    if interface == "HTTP":
        return " ".join(["the setting", name, *map(str, values)])
    if name == "method" and values:
        return ESTIMATORS[str(values[0])]
    given = list(values) if name in _LISTS else values[0] if values else ""
    return f"{name}={given!r}" if values else f"{name}="


def option_name(name: str) -> str:
    """Return the option of the command line for a parameter.

    >>> option_name("id_column"), option_name("max_fpr")
    ('--id', '--max-fpr')
    """
    return f"--{OPTIONS.get(name, name).replace('_', '-').lower()}"


def _words_of(name: str, value: object) -> str:
    """Return a value as the command line takes it."""
    if isinstance(value, bool):
        no, yes = ("drop", "weigh") if name == "weigh_copies" else ("no", "yes")
        return yes if value else no
    is_quoted = name in _LISTS and "," in str(value)  # else it would be several words
    return '"{}"'.format(str(value).replace('"', '""')) if is_quoted else str(value)


def missing_column(where: str, name: str, columns: Iterable[str], option: str = "") -> InputError:
    """Return the error of a column that is not there; a setting, the `option`, may have named it.

    >>> str(missing_column("day.csv", "dya", ["day"]))
    "day.csv has no column 'dya'. Did you mean 'day'?"
    >>> str(missing_column("day.csv", "q", ["day"], "time"))
    "time=: there is no column 'q'. The columns are: day."
    """
    has = f"{setting(option)}: there is" if option else f"{where} has"
    hint = name_hint(name, columns)
    return ErrorKind.MISSING_COLUMN.error(f"{has} no column {name!r}.", hint, column=name)


def named_twice(column: str, setting_: str, other: str) -> InputError:
    """Return the error of a column that two settings name, which exclude each other."""
    message = f"Column {column!r} is both {setting(setting_)} and {setting(other)}."
    return ErrorKind.COMBINATION.error(
        message, f"Name another for {setting(setting_)}.", column=column
    )


def no_rows(where: object) -> InputError:
    """Return the error of a table without rows."""
    return ErrorKind.TOO_FEW_ROWS.error(f"{where} has no rows.", "Give one with rows.")


def fit_of_a_rare_class() -> str:
    """Return the remedy where a model of ordered levels cannot do what one of a rare class can."""
    return f"Fit one of a rare class: {setting('method', 'auto')} {setting('positive', 'LEVEL')}."


def left_out_text(n_rows: int, lacks: str, of: str = "") -> str:
    """Return the note on rows that lack something and do not count: at all, or `of` one result.

    >>> left_out_text(2, "no class")
    '2 rows have no class and were left out.'
    """
    left_out = "was" if n_rows == 1 else "were"
    return f"{counted(n_rows, 'row has', 'rows have')} {lacks} and {left_out} left out{of}."


def seconds_text(seconds: float) -> str:
    """Return seconds with two digits or more.

    >>> seconds_text(0.25), seconds_text(187.4)
    ('0.25 s', '187 s')
    """
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def unknown_name(message: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error of a setting that names what is not `known`.

    >>> str(unknown_name("there is no 'tree'.", "tree", ["trees", "kernel"]))
    "there is no 'tree'. Did you mean 'trees'?"
    """
    names = list(known)
    near = nearest_name(name, names)
    hint = f"Did you mean {near!r}?" if near else f"There are: {', '.join(names)}."
    return ErrorKind.SETTING.error(message, hint, value=name)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Known name that `name` may be a slip of; None where none is close.

    Case, spaces, dots, dashes and underscores do not count. Of the longer name up to a third of the
    letters may be others, missing or exchanged with their neighbours, three at most.

    >>> nearest_name("tagret", ["age", "Target"]), nearest_name("q", ["age", "sex"])
    ('Target', None)
    >>> nearest_name("age", ["target"]), nearest_name("card id", ["card_id"])
    (None, 'card_id')
    """
    plain, best, least = _plain(name), None, _MOST_SLIPS + 1
    for candidate in known:
        other = _plain(candidate)
        allowed = min(max(len(plain), len(other)) // 3, least - 1)
        if abs(len(plain) - len(other)) <= allowed and _n_slips(plain, other) <= allowed:
            best, least = candidate, _n_slips(plain, other)
    return best


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter not in " ._-")


def _n_slips(one: str, other: str) -> int:
    """Letters that are others, missing or exchanged with their neighbours (Damerau's distance)."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        row = [i]
        for j, found in enumerate(other, start=1):
            least = min(last[j] + 1, row[-1] + 1, last[j - 1] + (letter != found))
            if i > 1 and j > 1 and letter == other[j - 2] and found == one[i - 2]:
                least = min(least, before[j - 2] + 1)
            row.append(least)
        before, last = last, row
    return last[-1]


def name_hint(name: str, known: Iterable[str], they: str = "The columns are") -> str:
    """Ask for the closest known name, or list the first twelve after the words `they`.

    >>> name_hint("tagret", ["age", "target"])
    "Did you mean 'target'?"
    >>> name_hint("q", ["1", "0"], "Its values are")
    'Its values are: 1, 0.'
    """
    names = list(known)
    near = nearest_name(name, names)
    if near is not None:
        return f"Did you mean {near!r}?"
    if not names:
        return ""
    return f"{they}: {first_names(names, 12)}."


def first_names(names: Sequence[str], most: int) -> str:
    """Join at most so many names by commas, and count the others.

    >>> [first_names(["a", "b", "c"], most) for most in (2, 3)]
    ['a, b and 1 more', 'a, b, c']
    """
    n_more = len(names) - most
    return ", ".join(names[:most]) + (f" and {n_more:,} more" if n_more > 0 else "")
