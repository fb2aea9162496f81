"""How a text table is written: encoding, separator, header line, decimals, ends of rows.

Decided here from the first bytes, whoever reads the rows and at what pace.
"""

import csv
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError, first_names, setting
from rareclass.findings import Finding, FindingKind, TableWarning, warn
from rareclass.tables import TextSettings, plain_names, unique_names
from rareclass.tables.cells import numbers_in

SEPARATORS = (",", ";", "\t", "|", "^", ":", " ")
_IN_CELLS = ":", " "  # stand in cells as well: others that fit all lines come first
SAMPLE_BYTES = 1 << 18
# No table has longer rows: one is taken for a quote that is never closed, or no text.
ROW_LIMIT = 16 << 20
# Byte order marks and the encodings that they say.
MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"\xef\xbb\xbf": "utf-8"}
NUL = "holds a NUL byte: was the file written completely?"
UNCLOSED = "a quote is opened and not closed"

# A number with one comma among its digits. With a point three of them would be thousands, too.
_COMMA_CELLS = (
    (r"^(\s*[+-]?\d+),(\d{3})(\s*)$", "${1}.${2}0${3}"),
    (r"^(\s*[+-]?\d+),(\d+(?:[eE][+-]?\d+)?\s*)$", "${1}.${2}"),
)
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
# 1,234 may be either; 1,234,567 and 1,234.5 can only have thousands set off by commas.
_MAYBE_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_SURELY_THOUSANDS = re.compile(
    r"[+-]?[1-9]\d{0,2}(?:,\d{3}){2,}(?:\.\d*)?|[+-]?[1-9]\d{0,2},\d{3}\.\d+"
)
# 1.234 may be either where a comma marks decimals; 1.234,5 and 1.234.567 have thousands set off.
_MAYBE_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
_SURELY_GROUPED = re.compile(
    r"[+-]?[1-9]\d{0,2}(?:[.' \u00a0\u202f]\d{3})+,\d+|[+-]?[1-9]\d{0,2}(?:\.\d{3}){2,}"
)
_POINT_NUMBER = re.compile(r"[+-]?\d+\.\d+(?:[eE][+-]?\d+)?")
# Such as sep=; which Excel writes and reads, perhaps in quotes, and with the empty cells of a row.
_SEPARATOR_LINE = re.compile(r"\ufeff?\"?sep=(.)\"?\1*[ ]*(?:\r\n|\n|\r|\Z)", re.IGNORECASE)
_MOST_TITLES = 10  # lines above the header line
_COMMENTS = ("#", "%")
# Bytes that are not UTF-8, as "surrogateescape" gives them.
_ESCAPED = re.compile("[\udc80-\udcff]")
_CUT_OFF = re.compile("[\udc80-\udcff]+$")


def _name_it() -> str:
    return f"give its encoding: {setting('encoding', 'cp1251')}"


@dataclass(frozen=True)
class Dialect:
    """How a CSV text is written.

    Cells such as 1,5 of the columns `decimal_commas` are handed out with a point: 1.5. Columns
    whose numbers also have thousands set off, as in 1.234,5, are handed out as they stand. The
    header ends with line `header_lines`.
    """

    encoding: str
    separator: str
    decimal_commas: list[str]
    names: list[str]
    header_lines: int = 0


def dialect_of(title: str, sample: bytes, is_whole: bool, known: TextSettings) -> Dialect | None:
    """Return how the text is written that begins with `sample`; None where more of it is needed.

    256 KiB of it say enough, but for a longer header line; `is_whole` where nothing follows. The
    separator is by default the one under which most of the first rows are as wide as the first.
    The sample is UTF-8 where the encoding of the text is known. Raises `InputError` when it is no
    text, or has no header line, or one of numbers; warns of one that looks like a comment.
    """
    found = "utf-8" if known.encoding else encoding_of(sample)
    encoding, separator = known.encoding or found, known.separator
    text = sample.decode(found, "surrogateescape")
    if len(sample) >= SAMPLE_BYTES:  # what is cut off at its end is no fault
        text = _CUT_OFF.sub("", text)
    said = _SEPARATOR_LINE.match(text)
    if said is not None:  # Excel's first line names the separator
        separator, text = separator or said[1], text[said.end() :]
    if not text.strip():
        if not is_whole:
            return None
        raise ErrorKind.TOO_FEW_ROWS.error(
            f"{title} holds no text.", "Check how it was made or copied."
        )
    others = () if separator else SEPARATORS
    first = _first_lines(text, is_whole)
    separator = separator or _separator_of(first)
    _refuse_title(title, first, separator, others)
    header = _header(title, text, separator, is_whole, encoding)
    if header is None:
        return None
    names, n_lines = header
    if not numbers_in(pl.Series(names).str.strip_chars(), truth={}).null_count():
        raise ErrorKind.COLUMN_NAMES.error(
            f"The first line of {title} holds numbers, not column names: {', '.join(names[:4])}.",
            "Put a header line with the column names first.",
        )
    if names[0].startswith(_COMMENTS):
        warn(
            f"The first line of {title} begins with {names[0][0]!r}, as comments do, and is read "
            f"as the names of its columns: {first_names(names, 4)}. Take it out if it is one.",
            TableWarning,
            Finding(FindingKind.COMMENT, {"path": title}),
        )
    names, n_lines = unique_names(title, names), n_lines + (said is not None)
    return Dialect(encoding, separator, _decimal_commas(text, separator, names), names, n_lines)


def with_points(cells: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Write decimal commas of some columns as points.

    >>> with_points(pl.DataFrame({"a": ["1,5", "12,345", "-1,2e3", "1,2,3"]}), ["a"])["a"].to_list()
    ['1.5', '12.3450', '-1.2e3', '1,2,3']
    """
    found = pl.col([name for name in columns if name in cells.columns])
    for pattern, plain in _COMMA_CELLS:
        found = found.str.replace(pattern, plain)
    return cells.with_columns(found) if columns else cells


def encoding_of(sample: bytes) -> str:
    """Return the encoding of a text without a byte order mark from its first bytes.

    It is cp1252 where UTF-8 fails, unless that mostly fits: then some bytes are damaged, and their
    rows are.

    >>> encoding_of("a,é".encode()), encoding_of("a,é\\n".encode("cp1252"))
    ('utf-8', 'cp1252')
    """
    # The sample may end inside a character: four bytes are the longest.
    text = sample[: len(sample) - 4 if len(sample) >= SAMPLE_BYTES else None].decode(
        "utf-8", "surrogateescape"
    )
    if text.isascii():
        return "utf-8"
    n_bad = len(_ESCAPED.findall(text))
    n_good = sum(not letter.isascii() for letter in text) - n_bad
    if not n_bad or n_good >= n_bad:
        return "utf-8"
    try:
        sample.decode("cp1252")
    except UnicodeDecodeError:
        return "utf-8"
    return "cp1252"


def not_in(encoding: str) -> str:
    """Say of a row that its bytes are not of the encoding of its text."""
    return f"not {encoding.upper()} text ({_name_it()})"


def fault_of_text(row: Sequence[str], encoding: str) -> str | None:
    """Return what is wrong with the letters of a row, which "surrogateescape" decoded."""
    cells = "".join(row)
    return NUL if "\0" in cells else not_in(encoding) if _ESCAPED.search(cells) else None


def no_text(title: str) -> InputError:
    """The error to raise where bytes are no text."""
    return ErrorKind.FILE_FORMAT.error(
        f"{title} is not a text file.", "Give CSV, JSON lines or Parquet."
    )


def tell_fallback(title: str, sample: bytes) -> None:
    """Warn of a text that is taken for cp1252 because it is not UTF-8, with a word of it."""
    found = re.search(r"\w*[^\x00-\x7f]+\w*", sample.decode("cp1252"))
    word = found[0][:40] if found else ""
    warn(
        f"{title} is not UTF-8 and is read as cp1252 (Western European): for example "
        f"{word!r}. Where that is wrong, {_name_it()}.",
        TableWarning,
        Finding(FindingKind.ENCODING, {"path": title, "example": word}),
    )


def _refuse_title(title: str, first: str, separator: str, others: Sequence[str]) -> None:
    """Raise `InputError` where a table begins below the first line, as under a title."""
    for each in (separator, *others):
        rows = [row for row in _records(first, each) if "".join(row).strip()]
        widths = [len(row) for row in rows]
        if each == separator and 2 * widths.count(max(widths[:1], default=0)) > len(widths):
            return
        for start in range(1, min(_MOST_TITLES, len(rows) - 3) + 1):
            width, n_alike = widths[start], widths[start:].count(widths[start])
            is_title = widths[0] == 1 or rows[0][0].startswith(_COMMENTS)
            if is_title and width not in (1, widths[0]) and n_alike > 0.9 * (len(rows) - start):
                raise ErrorKind.COLUMN_NAMES.error(
                    f"The first line of {title} does not name the columns: "
                    f"{each.join(rows[0])[:60]!r}. From {each.join(rows[start])[:60]!r} on rows "
                    f"have {width} cells, separated by {each!r}.",
                    "Take out the lines above the one with the column names.",
                )


def _first_lines(text: str, is_whole: bool) -> str:
    """Return lines with something in them, but for one that may be cut off."""
    lines = [line for line in io.StringIO(text, newline=None) if line.strip()]
    is_cut = not is_whole and not text.endswith(("\n", "\r"))
    return "".join(lines[: len(lines) - is_cut][:200] or lines[:1])


def _separator_of(first: str) -> str:
    """Return the separator under which most of the first lines have the header's cell count."""
    best, most = ",", (0.0, False, 1)
    for separator in SEPARATORS:
        widths = [len(row) for row in _records(first, separator)] or [1]
        agreement = round(widths.count(widths[0]) / len(widths), 1)
        rank = agreement, separator not in _IN_CELLS, widths[0]
        if widths[0] > 1 and rank > most:
            best, most = separator, rank
    return best


def _records(text: str, separator: str) -> list[list[str]]:
    """Return the rows that are not empty, as far as the text can be read."""
    rows: list[list[str]] = []
    with suppress(csv.Error):  # such as a quoted cell that never ends
        for row in filter(None, csv.reader(io.StringIO(text, newline=None), delimiter=separator)):
            rows.append(row)
    return rows


def _header(
    title: str, text: str, separator: str, is_whole: bool, encoding: str
) -> tuple[list[str], int] | None:
    """Return the first row with something in it, and the lines up to its end."""
    lines = list(io.StringIO(text, newline=None))
    # A line is added: a row that takes it has a quote that is not closed.
    reader = csv.reader([*lines, "\n"], delimiter=separator)
    try:
        for row in reader:
            is_unclosed, cells = reader.line_num > len(lines), "".join(row)
            is_cut = reader.line_num == len(lines) and not lines[-1].endswith("\n")
            if not is_whole and (is_unclosed or is_cut):
                return None
            if not cells.strip():
                continue
            fault = fault_of_text(row, encoding) or (UNCLOSED if is_unclosed else None)
            if fault is not None:
                raise csv.Error(fault)
            return plain_names(row), reader.line_num
    except csv.Error as error:
        if "\0" in text:
            raise no_text(title) from None
        raise ErrorKind.DAMAGED_FILE.error(
            f"The header line of {title} cannot be read: {error}.", "Check its quotes."
        ) from error
    raise ErrorKind.COLUMN_NAMES.error(
        f"{title} has no header line.", "Put one with the column names first."
    )


def _decimal_commas(text: str, separator: str, names: list[str]) -> list[str]:
    """Return the columns in which a comma within digits marks decimals, by the first lines.

    None where commas set thousands off. Where all that is there could be thousands as well, commas
    mark decimals in files that are separated by semicolons: those are written where they do.
    """
    if separator == ",":
        return []
    rows = [[cell.strip() for cell in row] for row in _records(text, separator)[1:5001]]
    cells = [cell for row in rows for cell in row]
    if any(map(_SURELY_THOUSANDS.fullmatch, cells)):
        return []
    commas = (_COMMA_NUMBER.fullmatch(c) and not _MAYBE_THOUSANDS.fullmatch(c) for c in cells)
    if not any(commas) and (separator != ";" or any(map(_POINT_NUMBER.fullmatch, cells))):
        return []
    columns = zip(*(row for row in rows if len(row) == len(names)), strict=True)
    grouped = {names[k] for k, column in enumerate(columns) if _has_groups(column)}
    return [name for name in names if name not in grouped]


def _has_groups(cells: Sequence[str]) -> bool:
    """Say whether numbers with decimal commas have their thousands set off."""
    if any(map(_SURELY_GROUPED.fullmatch, cells)):
        return True
    points = [cell for cell in cells if _POINT_NUMBER.fullmatch(cell)]
    has_commas = any(map(_COMMA_NUMBER.fullmatch, cells))
    return has_commas and bool(points) and all(map(_MAYBE_GROUPED.fullmatch, points))


def line_ends(text: bytes) -> NDArray[np.int64]:
    r"""Return the bytes up to each end of a line, which is one of \n, \r\n and \r."""
    letters = np.frombuffer(text, np.uint8)
    is_end = letters == ord("\n")
    if b"\r" in text:
        is_end |= (letters == ord("\r")) & ~np.append(is_end[1:], False)
    return np.flatnonzero(is_end) + 1


def row_ends(text: bytes, separator: bytes) -> NDArray[np.int64]:
    """Return the bytes up to each end of a row, where `text` begins with a row.

    Where every quote opens a cell, closes one or is doubled, line ends between them are row ends.
    Any other quote is a letter: then the cells are gone through one by one.
    """
    ends = line_ends(text)
    if b'"' not in text:
        return ends
    letters = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(letters == ord('"'))
    opening, closing = quotes[::2], quotes[1::2]
    beside = np.isin(np.arange(256), list(separator + b'\r\n"'))
    before = beside[letters[opening - 1]] | (opening == 0)
    after = beside[letters[np.minimum(closing + 1, len(text) - 1)]]
    if not (before.all() and after.all()):
        return row_ends_by_cells(text, separator)
    return ends[np.searchsorted(quotes, ends) % 2 == 0]


def row_ends_by_cells(text: bytes, separator: bytes) -> NDArray[np.int64]:
    """Return the same as `row_ends`, cell by cell."""
    stop = re.escape(separator)
    cell = re.compile(
        rb'(?:"(?>[^"]|"")*+(?:"[^%s\r\n]*+|\Z)|(?!")[^%s\r\n]*+)(%s|\r\n|\n|\r)'
        % (stop, stop, stop)
    )
    place, ends = 0, []
    while found := cell.match(text, place):
        place = found.end()
        if found[1] != separator:
            ends.append(place)
    return np.array(ends, np.int64)
