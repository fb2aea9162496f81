"""Columns of text: the facts of their cells, and the one decision on what they are read as."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from shlex import quote
from typing import Literal, NamedTuple

import polars as pl

from rareclass.errors import bad_cell, first_names
from rareclass.findings import FindingKind
from rareclass.tables.cells import (
    LARGEST_EXACT,
    NUMBER_STYLES,
    TRUTH_PAIRS,
    TRUTH_VALUES,
    WrittenNumbers,
    shown,
    without_empty_marks,
    written_numbers,
)
from rareclass.tables.dates import DateProfile, look_like_dates, look_of_dates, way_in_words
from rareclass.tables.reading import CellReading

# Numbers of fewer distinct values may be the codes of words.
MANY_VALUES = 20
# A column of numbers with a few cells of text is a mistake in the file, not a set of categories.
NUMBER_SHARE = 0.95
# Cells that a column's look is judged by.
_SAMPLE = 200
_FIRST = 50  # cells that are looked at before all are
_MOST_WORDS = 5
_CODE = r"^0\d+$"


@dataclass
class CellProfile:
    """Facts about the text cells of one column, gathered batch by batch.

    Counted are the cells that are not empty, that are plain numbers, truth values, whole numbers,
    and whole numbers too long for a float64; then nulls, and marks such as ``NA``. The styles are
    those that have fitted every cell so far; `units` stand beside numbers. The first text is the
    first cell that is no number, its row counted as `first_row` is; the first code is the first
    whole number that begins with a zero, as zip codes do. The sample are the first cells that are
    not empty, `words` a few that are no numbers, in lower case.
    """

    n_present: int = 0
    n_numbers: int = 0
    n_truth: int = 0
    n_integers: int = 0
    n_long: int = 0
    n_null: int = 0
    n_marks: int = 0
    dates: DateProfile = field(default_factory=DateProfile)
    number_styles: list[str] = field(default_factory=lambda: list(NUMBER_STYLES))
    first_text: str = ""
    first_text_row: int = 0
    first_code: str = ""
    has_commas: bool = False
    sample: list[str] = field(default_factory=list)
    units: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    is_money: bool = False
    _n_units: int = 0
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
        if not self.sample:
            self.sample = present.head(_SAMPLE).to_list()
        numbers = plain.cast(pl.Float64, strict=False)
        is_number = numbers.is_not_null()
        n_numbers = int(is_number.sum())
        self.n_numbers += n_numbers
        if n_numbers < len(present):
            self._add_text(plain, ~is_number & plain.is_not_null(), first_row)
        if n_numbers:
            self._add_numbers(plain.filter(is_number), numbers)
        if self.n_numbers or self.n_truth:  # years and day counts are numbers
            self.dates.clear()
        self.dates.add(present)

    def _add_numbers(self, cells: pl.Series, numbers: pl.Series) -> None:
        is_whole = cells.str.contains(r"^[+-]?\d+$")
        self.n_integers += int(is_whole.sum())
        largest = numbers.abs().max()
        if isinstance(largest, float) and largest > LARGEST_EXACT:
            whole = cells.filter(is_whole).cast(pl.Float64).abs()
            self.n_long += int(((whole > LARGEST_EXACT) & whole.is_finite()).sum())
        if not self.first_code:
            codes = cells.filter(cells.str.contains(_CODE))
            self.first_code = codes[0] if len(codes) else ""
        if not self.has_many_numbers:
            self._numbers.update(cells.unique().head(2 * MANY_VALUES))
        self.number_styles = [style for style in self.number_styles if style != "12:34:56"]
        if "1.234,5" in self.number_styles:  # where a point groups thousands
            points = cells.filter(cells.str.contains(".", literal=True))
            if written_numbers(points, "1.234,5").values.null_count():
                self.number_styles.remove("1.234,5")

    def _add_text(self, cells: pl.Series, is_text: pl.Series, first_row: int) -> None:
        text = cells.filter(is_text)
        if len(self.words) <= _MOST_WORDS:
            first = text.unique(maintain_order=True).head(_MOST_WORDS + 1)
            self.words.update(first.str.to_lowercase())
        is_truth = text.is_in(tuple(TRUTH_VALUES))
        self.n_truth += int(is_truth.sum())
        text = text.filter(~is_truth)
        if text.is_empty():
            return
        if not self.first_text:
            self.first_text = text[0]
            self.first_text_row = first_row + int((cells == text[0]).arg_max() or 0)
        self._add_written_numbers(text)

    def _add_written_numbers(self, text: pl.Series) -> None:
        fit: dict[str, WrittenNumbers] = {}
        for style in self.number_styles:
            if not written_numbers(text.head(_FIRST), style).values.null_count():
                found = written_numbers(text, style)
                if not found.values.null_count():
                    fit[style] = found
        self.number_styles = list(fit)
        for found in fit.values():
            self.units.update(found.units.drop_nulls().unique())
            self.is_money = bool(found.is_money.any())
            self._n_units += int((found.units.is_not_null() & ~found.is_money).sum())
            self.has_commas = self.has_commas or bool(text.str.contains(",", literal=True).any())
            break  # units are the same in all styles

    @property
    def has_formatted_numbers(self) -> bool:
        """Say whether all cells are numbers, some with separators or a sign, in one format."""
        same_unit = len(self.units) <= 1 and self._n_units in (0, self.n_present)
        return bool(self.n_text and self.number_styles and same_unit and not self.n_truth)

    @property
    def number_format(self) -> str | None:
        """How formatted numbers are written; None where a comma may mean decimals or thousands."""
        may_be_either = len(self.number_styles) > 1 and self.has_commas
        if may_be_either and not self.is_money:  # whose decimals are two digits
            return None
        return " ".join([self.number_styles[0], *self.units])

    @property
    def other_words(self) -> str:
        """Words beside numbers, but for the first one, to be named in a sentence."""
        others = sorted(self.words - {self.first_text.lower()})
        listed = first_names([shown(word) for word in others], _MOST_WORDS)
        return f"; others are {listed}" if others else ""

    @property
    def truth(self) -> str:
        """How the cells spell truth values, as one of TRUTH_PAIRS; "" where any is none."""
        pairs = (pair for pair in TRUTH_PAIRS if self.words <= set(pair.split("/")))
        return "" if self.n_numbers or not self.words else next(pairs, "")


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
    marks = not (profile.n_null and profile.n_marks)
    words = CellReading("string", marks=marks, truth=profile.truth)
    if is_category or profile.n_present == 0:
        return TextReading(words)
    if not profile.n_text:
        if all_truth and not truth_as_numbers:
            return TextReading(words)
        if profile.first_code and zeros_are_codes:
            return TextReading(words)
        if profile.n_long and profile.n_integers == profile.n_present:
            return TextReading(words, "too long")
        return TextReading(CellReading("number", truth="true/false" if profile.n_truth else ""))
    if profile.dates.date_format is not None:
        dates = profile.dates
        return TextReading(CellReading("date", dates.date_format, zone=dates.zone))
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
            f"({share:.1%} of its cells are numbers){profile.other_words}."
        )
        remedy = "Correct that cell or leave it empty"
    raise bad_cell(
        fault,
        f"{remedy}; --category {quote(name)} takes the column as categories, --drop {quote(name)} "
        "leaves it out.",
        name,
        profile.first_text_row,
        profile.first_text,
    )


class ColumnNote(NamedTuple):
    """Something to tell of a column that may be meant otherwise than it is read."""

    kind: FindingKind
    words: str


def notes_of_text(name: str, profile: CellProfile, found: TextReading) -> Iterator[ColumnNote]:
    """Yield what to tell of text cells that are read so.

    Examples
    --------
    >>> profile = CellProfile()
    >>> profile.add(pl.Series(["3", "4", "5", "abc", *map(str, range(6))]), 1)
    >>> [note.words for note in notes_of_text("a", profile, reading_of_text(profile))]
    ["column 'a' is taken as categories: 90.0% of its cells are numbers, but not 'abc' at row 4. \
Leave such cells empty to have it read as numbers."]
    >>> profile = CellProfile(10, 10, n_integers=10, first_code="01067")
    >>> [note.words for note in notes_of_text("zip", profile, reading_of_text(profile))]
    ["column 'zip' is read as numbers, in which 01067 and 1067 are the same. If they are names, as \
of places or cards, --category zip takes them so."]
    """
    is_number, is_words = (found.reading.reads_as == kind for kind in ("number", "string"))
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
    elif found.reading.reads_as == "date" and len(profile.dates.ways) > 1:
        yield _note_of_two_ways(name, profile)
    elif found.doubt == "too long":
        yield note_of_long_numbers(name)
    elif (
        is_words
        and not profile.n_numbers
        and (profile.dates.mistake or look_like_dates(pl.Series(profile.sample)))
    ):
        yield _note_of_unread_dates(name, profile)
    elif is_words and profile.n_numbers > profile.n_text > 0:
        yield ColumnNote(
            FindingKind.MOSTLY_NUMBERS,
            f"column {name!r} is taken as categories: {profile.n_numbers / profile.n_present:.1%} "
            f"of its cells are numbers, but not {shown(profile.first_text)} at row "
            f"{profile.first_text_row:,}{profile.other_words}. Leave such cells empty to have it "
            "read as numbers.",
        )


def _note_of_two_ways(name: str, profile: CellProfile) -> ColumnNote:
    best, other = profile.dates.ways[:2]
    return ColumnNote(
        FindingKind.TWO_DATE_FORMATS,
        f"column {name!r} holds dates such as {shown(profile.sample[0])}, which fit "
        f"{way_in_words(best)} and {way_in_words(other)}; they are read as {way_in_words(best)}. "
        "Write days as 2024-12-31 if that is wrong.",
    )


def _note_of_unread_dates(name: str, profile: CellProfile) -> ColumnNote:
    sample = pl.Series(profile.sample)
    odd = sample.filter(~look_of_dates(sample))
    cell = profile.dates.mistake or (odd[0] if len(odd) else sample[0])
    return ColumnNote(
        FindingKind.UNREAD_DATES,
        f"column {name!r} looks like dates and is read as words: {shown(cell)} is not a date that "
        "is "
        "known, or its cells are written in several ways. Write days as 2024-12-31, and times as "
        "2024-12-31 18:30:00.",
    )


def note_of_long_numbers(name: str) -> ColumnNote:
    """Return what to tell of whole numbers that are too long."""
    return ColumnNote(
        FindingKind.LONG_NUMBERS,
        f"column {name!r} holds whole numbers that are too long for a number to tell them apart; "
        f"they are taken as words, as --category {quote(name)} does.",
    )
