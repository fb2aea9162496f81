"""Columns of text: the facts of their cells, and the one decision on what they are read as."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from shlex import quote
from typing import Literal, NamedTuple

import polars as pl

from rareclass.errors import ErrorKind, InputError
from rareclass.findings import FindingKind
from rareclass.tables.cells import (
    DATE_FORMATS,
    LARGEST_EXACT,
    LARGEST_NUMBER,
    NUMBER_FORMATS,
    SIGNS,
    TRUTH_VALUES,
    are_written_as,
    formats_that_fit,
    shown,
    without_empty_marks,
    zones_in,
)
from rareclass.tables.reading import CellReading

# Numbers of fewer distinct values may be the codes of words.
MANY_VALUES = 20
# A column of numbers with a few cells of text is a mistake in the file, not a set of categories.
NUMBER_SHARE = 0.95
_CODE = r"^0\d+$"


@dataclass
class CellProfile:
    """Facts about the text cells of one column, gathered batch by batch.

    Counted are the cells that are not empty, that are plain numbers, truth values, whole numbers,
    and whole numbers too long for a float64; then nulls, and marks such as ``NA``. The formats are
    those that have fitted every cell so far. The first text is the first cell that is no number,
    its row counted as `first_row` is; the first code is the first whole number that begins with a
    zero, as zip codes do.
    """

    n_present: int = 0
    n_numbers: int = 0
    n_truth: int = 0
    n_integers: int = 0
    n_long: int = 0
    n_null: int = 0
    n_marks: int = 0
    date_formats: list[str] = field(default_factory=lambda: list(DATE_FORMATS))
    number_formats: list[str] = field(default_factory=lambda: list(NUMBER_FORMATS))
    first_text: str = ""
    first_text_row: int = 0
    first_code: str = ""
    has_commas: bool = False
    has_zones: bool = False
    _signs: set[str] = field(default_factory=set)
    _n_percent: int = 0
    _numbers: set[str] = field(default_factory=set)

    @property
    def has_many_numbers(self) -> bool:
        """Say whether the column holds more than a handful of different numbers."""
        return len(self._numbers) > MANY_VALUES

    @property
    def n_text(self) -> int:
        """Cells that are neither empty nor plain numbers nor truth values."""
        return self.n_present - self.n_numbers - self.n_truth

    def add(self, cells: pl.Series, first_row: int) -> None:
        """Take in the next cells of the column; `first_row` is the first one's row."""
        plain = without_empty_marks(cells)
        self.n_null += cells.null_count()
        if plain.null_count() > cells.null_count():
            is_blank = cells.str.strip_chars() == ""
            self.n_marks += plain.null_count() - cells.null_count() - int(is_blank.sum())
        present = plain.drop_nulls()
        if present.is_empty():
            return
        self.n_present += len(present)
        numbers = plain.cast(pl.Float64, strict=False)
        is_number = numbers.is_not_null()
        n_numbers = int(is_number.sum())
        self.n_numbers += n_numbers
        if n_numbers < len(present):
            self._add_text(plain, ~is_number & plain.is_not_null(), first_row)
        if n_numbers:
            self._add_numbers(plain.filter(is_number), numbers)
        if self.n_numbers or self.n_truth:  # years and day counts are numbers
            self.date_formats = []
        self.date_formats = formats_that_fit(present, self.date_formats)
        if self.date_formats and not self.has_zones:
            self.has_zones = bool(zones_in(present).any())

    def _add_numbers(self, cells: pl.Series, numbers: pl.Series) -> None:
        is_whole = cells.str.contains(r"^[+-]?\d+$")
        self.n_integers += int(is_whole.sum())
        largest = numbers.abs().max()
        if isinstance(largest, float) and largest > LARGEST_EXACT:
            whole = cells.filter(is_whole).cast(pl.Float64).abs()
            self.n_long += int(((whole > LARGEST_EXACT) & (whole <= LARGEST_NUMBER)).sum())
        if not self.first_code:
            codes = cells.filter(cells.str.contains(_CODE))
            self.first_code = codes[0] if len(codes) else ""
        if not self.has_many_numbers:
            self._numbers.update(cells.unique().head(2 * MANY_VALUES))
        if "1.234,5" in self.number_formats:  # where a point groups thousands
            points = cells.filter(cells.str.contains(".", literal=True))
            if not are_written_as(points, "1.234,5"):
                self.number_formats.remove("1.234,5")

    def _add_text(self, cells: pl.Series, is_text: pl.Series, first_row: int) -> None:
        text = cells.filter(is_text)
        is_truth = text.is_in(tuple(TRUTH_VALUES))
        self.n_truth += int(is_truth.sum())
        text = text.filter(~is_truth)
        if text.is_empty():
            return
        if not self.first_text:
            self.first_text = text[0]
            self.first_text_row = first_row + int((cells == text[0]).arg_max() or 0)
        self.number_formats = [x for x in self.number_formats if are_written_as(text, x)]
        if self.number_formats:
            signs = text.str.extract(f"([{SIGNS}])")
            self._signs.update(signs.drop_nulls().unique())
            self._n_percent += int((signs == "%").sum())
            self.has_commas = self.has_commas or bool(text.str.contains(",", literal=True).any())

    @property
    def has_formatted_numbers(self) -> bool:
        """Say whether all cells are numbers, some with separators or a sign, in one format."""
        same_sign = len(self._signs) <= 1 and self._n_percent in (0, self.n_present)
        return bool(self.n_text and self.number_formats and same_sign and not self.n_truth)

    @property
    def number_format(self) -> str | None:
        """How formatted numbers are written; None where a comma may mean decimals or thousands."""
        may_be_either = len(self.number_formats) > 1 and self.has_commas
        is_money = bool(self._signs - {"%"})  # whose decimals are two digits
        return None if may_be_either and not is_money else self.number_formats[0]


Doubt = Literal["commas", "stray words", "too long"]


class TextReading(NamedTuple):
    """How text cells are read, and what speaks against it.

    "commas" may mean decimals or thousands; "stray words" are a few among many different numbers;
    "too long" are whole numbers that float64 cannot tell apart, which are words.
    """

    reading: CellReading
    doubt: Doubt | None = None


def reading_of_text(
    profile: CellProfile,
    *,
    is_category: bool = False,
    zeros_are_codes: bool = False,
    truth_as_numbers: bool = False,
) -> TextReading:
    """Decide what the text cells of a column are read as.

    They are numbers where all are, written plainly or in one format; dates where one format fits
    all; words otherwise, or where `is_category` says so. Marks such as ``NA`` are words themselves
    in a column of words that has nulls of its own. `zeros_are_codes`: 007 is a word, not the number
    7. `truth_as_numbers`: true and false are 1 and 0, not words.
    """
    all_truth = profile.n_truth == profile.n_present > 0
    words = CellReading("string", marks=not (profile.n_null and profile.n_marks), truth=all_truth)
    if is_category or profile.n_present == 0:
        return TextReading(words)
    if not profile.n_text:
        if all_truth and not truth_as_numbers:
            return TextReading(words)
        if profile.first_code and zeros_are_codes:
            return TextReading(words)
        if profile.n_long and profile.n_integers == profile.n_present:
            return TextReading(words, "too long")
        return TextReading(CellReading("number", truth=profile.n_truth > 0))
    if profile.date_formats:
        zone = "UTC" if profile.has_zones else ""
        return TextReading(CellReading("date", profile.date_formats[0], zone=zone))
    if profile.has_formatted_numbers:
        written = profile.number_format
        if written is None:
            return TextReading(words, "commas")
        return TextReading(CellReading("number", number_format=written))
    share = (profile.n_numbers + profile.n_truth) / profile.n_present
    if share >= NUMBER_SHARE and profile.has_many_numbers:
        return TextReading(words, "stray words")
    return TextReading(words)


def check_text(name: str, profile: CellProfile, doubt: Doubt | None) -> None:
    """Raise `InputError` for text that may mean two things, or is a mistake among numbers."""
    if doubt not in ("commas", "stray words"):
        return
    cell = shown(profile.first_text)
    if doubt == "commas":
        fault = (
            f"Column {name!r} holds numbers with commas, which may mean decimals or thousands: "
            f"{cell} at row {profile.first_text_row}."
        )
        remedy = "Write them with a decimal point and nothing else"
    else:
        share = (profile.n_present - profile.n_text) / profile.n_present
        fault = (
            f"Column {name!r} holds text at row {profile.first_text_row}: {cell} "
            f"({share:.1%} of its cells are numbers)."
        )
        remedy = "Correct that cell or leave it empty"
    raise InputError(
        fault,
        f"{remedy}; --category {quote(name)} takes the column as categories, --drop {quote(name)} "
        "leaves it out.",
        ErrorKind.CELL,
        column=name,
        row=profile.first_text_row,
        value=profile.first_text,
    )


class ColumnNote(NamedTuple):
    """Something to tell of a column that may be meant otherwise than it is read."""

    kind: FindingKind
    words: str


def notes_of_text(name: str, profile: CellProfile, found: TextReading) -> Iterator[ColumnNote]:
    """Yield what to tell of text cells that are read so.

    Examples
    --------
    >>> profile = CellProfile(10, 9, first_text="abc", first_text_row=4)
    >>> [note.words for note in notes_of_text("a", profile, reading_of_text(profile))]
    ["column 'a' is taken as categories: 90.0% of its cells are numbers, but not 'abc' at row 4. \
Leave such cells empty to have it read as numbers."]
    >>> profile = CellProfile(10, 10, n_integers=10, first_code="01067")
    >>> [note.words for note in notes_of_text("zip", profile, reading_of_text(profile))]
    ["column 'zip' is read as numbers, in which 01067 and 1067 are the same. If they are names, as \
of places or cards, --category zip takes them so."]
    """
    is_number = found.reading.reads_as == "number"
    if is_number and profile.first_code:
        as_number = profile.first_code.lstrip("0") or "0"
        yield ColumnNote(
            FindingKind.CODES,
            f"column {name!r} is read as numbers, in which {profile.first_code} and {as_number} "
            "are the same. If they are names, as of places or cards, --category "
            f"{quote(name)} takes them so.",
        )
    elif found.reading.number_format is not None:
        yield ColumnNote(
            FindingKind.NUMBER_FORMAT,
            f"column {name!r} is read as numbers, written like {shown(profile.first_text)} (as in "
            f"{found.reading.number_format}). --category {quote(name)} takes the cells as words.",
        )
    elif found.doubt == "too long":
        yield note_of_long_numbers(name)
    elif not is_number and profile.n_numbers > profile.n_text > 0:
        yield ColumnNote(
            FindingKind.MOSTLY_NUMBERS,
            f"column {name!r} is taken as categories: {profile.n_numbers / profile.n_present:.1%} "
            f"of its cells are numbers, but not {shown(profile.first_text)} at row "
            f"{profile.first_text_row:,}. Leave such cells empty to have it read as numbers.",
        )


def note_of_long_numbers(name: str) -> ColumnNote:
    """Return what to tell of whole numbers that are too long."""
    return ColumnNote(
        FindingKind.LONG_NUMBERS,
        f"column {name!r} holds whole numbers that are too long for a number to tell them apart; "
        f"they are taken as words, as --category {quote(name)} does.",
    )
