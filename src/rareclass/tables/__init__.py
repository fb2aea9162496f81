"""Tables of any format: how texts are written, which columns are used, and names of columns."""

import codecs
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from rareclass.errors import ErrorKind, first_names, setting
from rareclass.findings import Finding, FindingKind, TableWarning, warn
from rareclass.parameters import opt

_NAMED = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


@dataclass(frozen=True, kw_only=True)
class ColumnSettings:
    """Settings of the columns that are used, and how."""

    drop: tuple[str, ...] = opt("Column to leave out. Many times, or with commas.", ())
    keep: tuple[str, ...] = opt(
        "Column to use even if it looks like an identifier. Many times.", ()
    )
    categories: tuple[str, ...] = opt(
        "Column to treat as categories, whatever it holds. Many times.", ()
    )


def read_separator(name: str, text: str) -> str:
    r"""Return the character that ``--separator`` stands for.

    >>> [read_separator("--separator", each) for each in ("tab", ";")]
    ['\t', ';']
    """
    character = _NAMED.get(text.lower(), text)
    if len(character) != 1 or not character.isascii() or character in '"\r\n\0':
        raise ErrorKind.SETTING.error(
            f"{name} {text!r} is not one plain character.", "Give one such as ';', or tab."
        )
    return character


@dataclass(frozen=True)
class TextSettings:
    """Separator of CSV and encoding of texts without a byte order mark; None detects them.

    Raises `InputError` for an encoding that Python does not know, or in which commas and line ends
    are not those of ASCII.
    """

    separator: str | None = opt(
        "Separator of a CSV file: one character, or tab. By default it is detected.",
        reads=read_separator,
    )
    encoding: str | None = opt(
        "Encoding of text tables, such as cp1251 or gb18030. By default UTF-8, UTF-16 where the "
        "file begins so, or cp1252, with a note, where it is not UTF-8."
    )

    def __post_init__(self) -> None:
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _encoding_of_name(self.encoding))

    def check(self, place: object, is_what: str, *, is_text: bool = False) -> None:
        """Raise `InputError` where a table that is no CSV, or no text, has settings of one."""
        for option, value in (("separator", self.separator), ("encoding", self.encoding)):
            if value is not None and not (is_text and option == "encoding"):
                raise ErrorKind.SETTING.error(
                    f"{setting(option)}: {place} is {is_what}.", "Leave the option out."
                )


DETECTED = TextSettings()


def _encoding_of_name(name: str) -> str:
    """Return Python's name of an encoding in which lines can be told apart."""
    try:
        found = codecs.lookup(name).name.removesuffix("-sig")
        if found.startswith("utf-16"):
            return "utf-16-le" if found == "utf-16" else found
        if "a,\n".encode(found) == b"a,\n":
            return found
        fault = f"Texts in {name!r} cannot be read: its line ends are not those of ASCII."
    except (LookupError, ValueError):
        fault = f"There is no encoding {name!r}."
    raise ErrorKind.SETTING.error(
        fault, "Give one that Python knows, such as cp1251, cp932 or gb18030."
    )


def columns_fault(wanted: Sequence[str], found: Collection[str]) -> str | None:
    """Return what is wrong with the columns of a row or file, None where they are as wanted.

    >>> columns_fault(["a", "b"], ["b", "a"]) is None
    True
    >>> columns_fault(["a", "b"], ["a", "b", "c"]), columns_fault(["a", "b"], ["a"])
    ("unknown column 'c'", "no column 'b'")
    """
    of_wanted, of_found = set(wanted), set(found)
    if of_wanted == of_found:
        return None
    unknown = [name for name in found if name not in of_wanted]
    missing = [name for name in wanted if name not in of_found]
    return f"unknown column {unknown[0]!r}" if unknown else f"no column {missing[0]!r}"


def refuse_twice(title: str, names: Sequence[str]) -> None:
    """Raise `InputError` where two columns have one name: neither can be asked for."""
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        places = first_names([str(k) for k, name in enumerate(names, 1) if name == twice], 6)
        raise ErrorKind.COLUMN_NAMES.error(
            f"{title} has several columns named {twice!r}: {places}.",
            "Give each column a name of its own.",
            column=twice,
        )


def plain_names(names: Iterable[str]) -> list[str]:
    """Return the names that columns have in every table: without spaces around, none empty.

    pandas writes its index under an empty name.

    >>> plain_names(["", " age ", "sex"])
    ['column_1', 'age', 'sex']
    """
    return [name.strip() or f"column_{place}" for place, name in enumerate(names, start=1)]


def unique_names(title: str, names: list[str]) -> list[str]:
    """Return `plain_names` of columns with none twice, and warn of those that were.

    The first column of a name keeps it; the others get a number, as pandas does it: name.1.
    """
    names = plain_names(names)
    wanted, seen = set(names), set[str]()
    unique, renamed = list[str](), list[str]()
    for name in names:
        free, number = name, 0
        while free in seen or (number and free in wanted):
            number += 1
            free = f"{name}.{number}"
        if number:
            renamed.append(f"{free!r} (column {len(unique) + 1})")
        seen.add(free)
        unique.append(free)
    if renamed:
        warn(
            f"{title} has several columns of one name; the later ones are called "
            f"{first_names(renamed, 6)}.",
            TableWarning,
            Finding(FindingKind.COLUMNS_RENAMED, {"path": title}),
        )
    return unique
