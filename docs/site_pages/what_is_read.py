"""The table "what is read as what" of docs/reference/what-is-read.md, made by the reader itself.

`python -m docs.site_pages.what_is_read` writes it anew; `tests/docs/test_what_is_read.py` holds
that it stands on the page as the code has it.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa

from rareclass.errors import InputError
from rareclass.tables.cells import EMPTY_MARKS, TRUTH_PAIRS, type_name
from rareclass.tables.columns import are_too_long, reading_of_type
from rareclass.tables.dates import DAY_FORMATS, way_in_words
from rareclass.tables.frames import frame_of_arrow
from rareclass.tables.reading import CellReading, read_cells
from rareclass.tables.text_columns import CellProfile, check_text, note_of_text, reading_of_text

PAGE = Path(__file__).parents[1] / "reference" / "what-is-read.md"
BEGIN, END = (
    "<!-- what is read as what: made by docs/site_pages/what_is_read.py -->",
    "<!-- end -->",
)
# Days that no two formats share, and the times that may follow any day.
_DAYS = (dt.date(2024, 1, 15), dt.date(2024, 12, 31), dt.date(2024, 5, 9))
_TIMES = ("10:30", "10:30:05.25", "10:30:05,25", "03:04 PM", "3:04:05 a.m.", "10:30:05Z")
_ISO = ("2024-01-15T10", "20240115T103000Z", "2024-W03-1", "2024-015T10:30", "2024-01-15 24:00")
_ISO += ("2024-01-15 10:30:05 +0530", "2024-01-15T10:30+01:00[Europe/Paris]")
_OTHERS = (
    "Mon, 15 Jan 2024 10:30:00 GMT",
    "Mon Jan 15 10:30:00 2024",
    "15/Jan/2024:10:30:00 +0100",
)
_OTHERS += ("Monday, January 15th, 2024", "Mon Jan 15 2024 10:30:00 GMT+0100 (CET)")
_MOST_SHOWN = 10  # cells of a row of the page
_TEXT: tuple[tuple[str, ...], ...] = (
    ("3", "3.0", "3e2"),
    ("007", "7"),
    ("9007199254740993", "9007199254740995"),
    ("1,234.50", "12"),
    ("1.234,50", "12,5"),
    ("1,234", "5,678"),
    ("1 234,50", "12"),
    ("1'234.50", "12"),
    ("1,23,456", "12"),
    ("(1,234.50)", "12"),
    ("12.5-", "12"),
    ("$1,234.50", "-$12"),
    ("12,50 EUR", "USD 7"),
    ("12,50 EUR", "7,00 EUR"),
    ("12 %", "7.5%"),
    ("12 kg", "7.5kg"),
    ("12 kg", "13 g"),
    ("23:59:59", "7:30"),
    *(tuple(pair.split("/")) for pair in TRUTH_PAIRS),
    ("true", "0", "1"),
    ("01/02/2024", "03/02/2024", "02/03/2024"),
    ("15. Januar 2024", "1. Mai 2024"),
    ("2024-01-15T10:30:00+01:00", "2024-07-15T10:30:00+02:00"),
    ("2024-01-15", "0000-00-00"),
    ("3.00", "x"),
    ("1", "2", "3", "tba"),
    (*map(str, range(1, 101)), "1o1"),
    (*map(str, range(1, 101)), "V53", "E81"),
)


def of_text(cells: Sequence[str]) -> tuple[str, str]:
    """Reading of a column of text, with its notes, and its first cell as it is read."""
    profile = CellProfile()
    profile.add(pl.Series("x", cells), 1)
    found = reading_of_text(profile)
    try:
        check_text("x", profile, found.doubt, "")
    except InputError:
        return "refused, unless the column is taken as categories or left out", ""
    note = note_of_text("x", profile, found)
    told = "" if note is None else f"; noted as {note.kind}"
    return _in_words(found.reading) + told, _first(pl.Series("x", cells), found.reading)


def _in_words(reading: CellReading) -> str:
    words: list[str] = [{"string": "word"}.get(reading.reads_as, reading.reads_as)]
    if reading.date_format:
        words.append(way_in_words(reading.date_format))
    if reading.zone:
        words.append(f"by the clock of {reading.zone}")
    if reading.number_format:
        words.append(f"as in {reading.number_format}")
    if reading.truth:
        words = [f"truth value, {reading.truth}, as a {words[0]}"]
    return ", ".join(words)


def _first(cells: pl.Series, reading: CellReading) -> str:
    first = read_cells(cells, reading, 1)[0]
    return "empty" if first is None else f"`{first}`"


def text_rows() -> Iterator[list[str]]:
    """Rows of the table for cells of text."""
    marks = " ".join(f"`{mark or ' '}`" for mark in EMPTY_MARKS)
    yield [f"{marks}, in any case", "empty", ""]
    for way in DAY_FORMATS:
        yield _row([day.strftime(way) for day in _DAYS])
    for cells in _TEXT:
        yield _row(cells)
    for cell in (*(f"2024-01-15 {time}" for time in _TIMES), *_ISO, *_OTHERS):
        yield _row([cell])


def _row(cells: Sequence[str]) -> list[str]:
    shown = [f"`{cell}`" for cell in cells]
    if len(shown) > _MOST_SHOWN:
        shown[2:-3] = ["..."]
    return [", ".join(shown), *of_text(cells)]


def _typed() -> Iterator[pa.Array]:
    day, time, wait = dt.datetime(2024, 1, 15, 10, 30), dt.time(10, 30), dt.timedelta(hours=1)
    for kind in (pa.int64(), pa.uint64(), pa.float16(), pa.float64()):
        yield pa.array([3]).cast(kind)
    yield pa.array([2**53 + 1])
    yield pa.array([True])
    for kind in (pa.decimal128(9, 2), pa.decimal256(50, 2)):
        yield pa.array([Decimal("3.00")], kind)
    yield pa.array([Decimal(10**20)], pa.decimal128(38, 0))
    for kind in (pa.string(), pa.string_view()):
        yield pa.array(["DE"], kind)
    yield pa.array(["DE"]).dictionary_encode()
    yield pa.RunEndEncodedArray.from_arrays([1], ["DE"])
    yield pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"\0" * 16], pa.binary(16)))
    yield pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}']))
    yield pa.array([day.date()])
    for zone in (None, "UTC", "Europe/Berlin", "+05:30", "Mars/Olympus"):
        yield pa.array([day], pa.timestamp("us", zone))
    yield pa.array([time])
    yield pa.array([wait])
    yield pa.nulls(1)
    yield pa.array([b"DE"])
    for cell in ([1], {"a": 1}):
        yield pa.array([cell])
    yield pa.array([pa.MonthDayNano([1, 2, 3])])
    geometry = pa.opaque(pa.binary(), "geometry", "postgis")
    yield pa.ExtensionArray.from_storage(geometry, pa.array([b"DE"]))


def typed_rows() -> Iterator[list[str]]:
    """Rows of the table for cells of Arrow."""
    for array in _typed():
        cells = frame_of_arrow(pa.RecordBatch.from_arrays([array], ["x"])).to_series()
        kind = str(array.type)
        reading = reading_of_type(cells.dtype)
        if are_too_long(cells):
            yield [f"`{kind}`, beyond 2^53", "word, noted", _first(cells, CellReading("string"))]
        elif reading is None:
            yield [f"`{kind}`", f"left out: cells of type {type_name(cells.dtype)}", ""]
        elif array.type != pa.string() and cells.dtype == pl.String:
            yield [f"`{kind}`", "as text is", *of_text(cells.to_list())[1:]]
        else:
            yield [f"`{kind}`", _in_words(reading), _first(cells, reading)]


def tables() -> str:
    """Both tables as they stand on the page."""
    text = _table(["Cells of a column of text", "Read as", "The first"], text_rows())
    typed = _table(["Arrow type of a column", "Read as", "Such as"], typed_rows())
    return f"{BEGIN}\n{text}\n\n{typed}\n{END}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ["---"] * 3, *rows))


def page_with(page: str, content: str) -> str:
    """The page with the tables in their place."""
    before, _, rest = page.partition(BEGIN)
    return before + content + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), tables()), encoding="utf-8")
