"""Columns as they are written: facts of their text, and the one decision on how they are read."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, first_names, setting
from rareclass.findings import Finding, FindingKind, TableWarning, warn
from rareclass.tables.cells import (
    LARGEST_EXACT,
    NUMBER_STYLES,
    TIME_OF_DAY,
    TRUTH_PAIRS,
    TRUTH_VALUES,
    WrittenNumbers,
    are_plain,
    are_written,
    shown,
    without_empty_marks,
    written_numbers,
)
from rareclass.tables.columns import are_whole, reading_of_type
from rareclass.tables.dates import HOW_TO_WRITE, DateProfile, look_of_dates, way_in_words
from rareclass.tables.reading import CellReading

# Numbers of fewer distinct values may be the codes of words.
MANY_VALUES = 20
# A column of numbers with a few cells of text is a mistake in the file, not a set of categories.
NUMBER_SHARE = 0.95
# Cells that a column's look is judged by.
_SAMPLE = 200
_FIRST = 50  # cells that are looked at before all are
_MOST_SHOWN = 5  # words in a message
_SAME_UNIT = 0.8  # of the numbers of a column, by which they are no codes such as 12A and 7B
_MOST_WORDS = 1000  # different words that are counted
_CODE = r"^0\d+$"


@dataclass
class CellProfile:
    """Facts about the text cells of one column, gathered batch by batch.

    Counted are the cells that are not empty, that are plain numbers, truth values, whole numbers,
    and whole numbers too long for a float64; then nulls, and marks such as ``NA``. The styles are
    those that have fitted every cell so far; `units` stand beside numbers. The first text is the
    first cell that is no number, its row counted as `first_row` is; the first code is the first
    whole number that begins with a zero, as zip codes do. The sample are the first cells that are
    not empty; `words` counts those that are no numbers, in lower case.
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
    words: Counter[str] = field(default_factory=Counter)
    is_money: bool = False
    _n_units: int = 0
    _numbers: set[str] = field(default_factory=set)

    @property
    def has_many_numbers(self) -> bool:
        """Say whether the column holds more than a handful of different numbers."""
        return len(self._numbers) > MANY_VALUES

    @property
    def has_codes(self) -> bool:
        """Say whether all cells are whole numbers and some begin with a zero, as zip codes do."""
        return bool(self.first_code) and self.n_integers == self.n_present

    @property
    def n_text(self) -> int:
        """Cells that are neither empty nor plain numbers nor truth values."""
        return self.n_present - self.n_numbers - self.n_truth

    def add(self, cells: pl.Series, first_row: int, times: NDArray[np.int64] | None = None) -> None:
        """Take in the next cells of the column; `first_row` is the first one's row.

        With `times` they are distinct cells, each of so many rows.
        """
        times = np.ones(len(cells), np.int64) if times is None else times
        plain, numbers = cells, cells.cast(pl.Float64, strict=False)
        n_blank = numbers.null_count() and cells.null_count() + int((cells == "").sum())
        # A wide table has few columns with other cells than numbers and blanks: these cost more.
        if numbers.null_count() > n_blank or not are_plain(numbers):
            plain = without_empty_marks(cells)
            numbers = plain.cast(pl.Float64, strict=False)
            is_mark = plain.is_null() & (cells.str.strip_chars() != "").fill_null(False)
            self.n_marks += _total(times, is_mark.to_numpy())
        self.n_null += _total(times, ~_are_there(cells))
        is_number = _are_there(numbers)
        is_present = is_number if plain is cells else _are_there(plain)
        if not is_present.any():
            return
        self.n_present += _total(times, is_present)
        present = _those(plain, is_present)
        self.sample = self.sample or present.head(_SAMPLE).to_list()
        if (is_text := is_present & ~is_number).any():
            self._add_text(plain, is_text, times, first_row)
        if is_number.any():
            self.n_numbers += _total(times, is_number)
            values = numbers.to_numpy()[is_number]
            self._add_numbers(_those(plain, is_number), values, times[is_number])
        if self.n_numbers or self.n_truth:  # years and day counts are numbers
            self.dates.clear()
        else:
            self.dates.add(present)

    def _add_numbers(
        self, cells: pl.Series, values: NDArray[np.float64], times: NDArray[np.int64]
    ) -> None:
        is_whole = values == np.floor(values)
        n_whole = 0
        if is_whole.any():
            n_whole = self._add_whole(_those(cells, is_whole), values[is_whole], times[is_whole])
        if not self.has_many_numbers:
            self._numbers.update(cells.head(_FIRST).to_list())
        if not self.has_many_numbers:
            self._numbers.update(cells.unique().head(2 * MANY_VALUES))
        self.number_styles = [style for style in self.number_styles if style != "12:34:56"]
        if "1.234,5" in self.number_styles and n_whole < len(cells):
            # Three digits follow a point that groups thousands.
            others = values[~is_whole]
            may_be = not (np.abs(np.rint(1000 * others) / 1000 - others) > 0).any()
            points = cells.filter(cells.str.contains(".", literal=True)) if may_be else cells
            if not (may_be and are_written(points, "1.234,5")):
                self.number_styles.remove("1.234,5")

    def _add_whole(
        self, cells: pl.Series, values: NDArray[np.float64], times: NDArray[np.int64]
    ) -> int:
        """Take in whole numbers; return how many of them have neither point nor exponent."""
        is_integer = cells.str.contains(r"^[+-]?\d+$").to_numpy()
        self.n_integers += _total(times, is_integer)
        size = np.abs(values)
        self.n_long += _total(times, is_integer & (size > LARGEST_EXACT) & (size < np.inf))
        if not self.first_code:
            codes = cells.filter(cells.str.contains(_CODE))
            self.first_code = codes[0] if len(codes) else ""
        return int(is_integer.sum())

    def _add_text(
        self, cells: pl.Series, is_text: NDArray[np.bool_], times: NDArray[np.int64], first_row: int
    ) -> None:
        text, times = _those(cells, is_text), times[is_text]
        if len(self.words) < _MOST_WORDS:
            counted = pl.DataFrame({"word": text.str.to_lowercase(), "times": times})
            counted = counted.group_by("word", maintain_order=True).sum().head(_MOST_WORDS)
            self.words.update(dict(counted.iter_rows()))
        is_truth = text.is_in(tuple(TRUTH_VALUES)).to_numpy()
        self.n_truth += _total(times, is_truth)
        text, times = _those(text, ~is_truth), times[~is_truth]
        if text.is_empty():
            return
        if not self.first_text:
            self.first_text = text[0]
            self.first_text_row = first_row + int((cells == text[0]).arg_max() or 0)
        self._add_written_numbers(text, times)

    def _add_written_numbers(self, text: pl.Series, times: NDArray[np.int64]) -> None:
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
            self._n_units += _total(times, _are_there(found.units) & ~found.is_money.to_numpy())
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
    def numbers_but_text(self) -> str:
        """How many cells hold numbers, and which do not, in words."""
        but = f"numbers in all but {self.n_text:,} of its {self.n_present:,} cells: "
        return f"{but}{shown(self.first_text)} at row {self.first_text_row:,}{self.other_words}"

    @property
    def other_words(self) -> str:
        """Words beside numbers, but for the first one, to be named in a sentence."""
        others = sorted(set(self.words) - {self.first_text.lower()})
        listed = first_names([shown(word) for word in others], _MOST_SHOWN)
        return f"; others are {listed}" if others else ""

    @property
    def truth(self) -> str:
        """How the cells spell truth values, as one of TRUTH_PAIRS; "" where any is none."""
        pairs = (pair for pair in TRUTH_PAIRS if set(self.words) <= set(pair.split("/")))
        return "" if self.n_numbers or not self.words else next(pairs, "")

    @property
    def are_words_codes(self) -> bool:
        """Say whether words among numbers are codes, and no mistakes or a mark of empty cells.

        They are where two words recur, or one with a digit, or two with digits look alike: with
        other letters and digits, V53 is E81.
        """
        words = {word: n for word, n in self.words.items() if word not in TRUTH_VALUES}
        coded = {word: n for word, n in words.items() if any(map(str.isdigit, word))}
        n_recurring = sum(n > 1 for n in words.values())
        alike = Counter(map(_look_of, coded)).values()
        return n_recurring > 1 or any(n > 1 for n in (*coded.values(), *alike))


def _total(times: NDArray[np.int64], which: NDArray[np.bool_]) -> int:
    return int(times[which].sum())


def _are_there(cells: pl.Series) -> NDArray[np.bool_]:
    if not cells.null_count():
        return np.ones(len(cells), np.bool_)
    return cells.is_not_null().to_numpy()


def _those(cells: pl.Series, which: NDArray[np.bool_]) -> pl.Series:
    return cells if which.all() else cells.filter(pl.Series(which))


def _look_of(word: str) -> str:
    return "".join("0" if c.isdigit() else "a" if c.isalpha() else c for c in word)


Doubt = Literal["commas", "stray words", "too long"]


class ColumnNote(NamedTuple):
    """Something to tell of a column that may be meant otherwise than it is read."""

    kind: FindingKind
    words: str

    def tell(self, name: str, is_typed: bool) -> None:
        """Warn of the column; not of codes where a type, and no CSV, says that they are text."""
        if not (is_typed and self.kind == FindingKind.CODES):
            warn(self.words, TableWarning, Finding(self.kind, {"column": name}))


class FoundReading(NamedTuple):
    """How a column is read, what speaks against it, and what to tell of it.

    "commas" may mean decimals or thousands; "stray words" are a few among many different numbers;
    "too long" are whole numbers that float64 cannot tell apart, which are words. `integers`: its
    numbers are whole as written.
    """

    reading: CellReading
    doubt: Doubt | None = None
    integers: bool = False
    note: ColumnNote | None = None


def reading_of_text(profile: CellProfile, *, is_category: bool = False) -> FoundReading:
    """Decide what the text cells of a column are read as.

    They are numbers where all are, written plainly or in one format, true and false as 1 and 0;
    dates where one format fits all; words otherwise, or where `is_category` says so. Whole numbers
    of which some begin with a zero are words: 007 is not 7. Marks such as ``NA`` are words
    themselves in a column of words that has nulls of its own.
    """
    marks = not (profile.n_null and profile.n_marks)
    integers = profile.n_integers == profile.n_present
    words = FoundReading(CellReading("string", marks=marks, truth=profile.truth), None, integers)
    if is_category or profile.n_present == 0 or profile.has_codes:
        return words
    if not profile.n_text:
        if profile.n_long and integers:
            return words._replace(doubt="too long")
        truth = "true/false" if profile.n_truth else ""
        return words._replace(reading=CellReading("number", truth=truth))
    dates = profile.dates
    if dates.date_format is not None:
        return words._replace(reading=CellReading("date", dates.date_format, zone=dates.zone))
    if profile.has_formatted_numbers:
        written = profile.number_format
        if written is None:
            return words._replace(doubt="commas")
        return words._replace(reading=CellReading("number", number_format=written))
    share = (profile.n_numbers + profile.n_truth) / profile.n_present
    if share >= NUMBER_SHARE and profile.has_many_numbers and not profile.are_words_codes:
        return words._replace(doubt="stray words")
    return words


def check_text(name: str, profile: CellProfile, doubt: Doubt | None, otherwise: str) -> None:
    """Raise `InputError` for text that may mean two things, or is a mistake among numbers.

    `otherwise` says how else such a column can be taken.
    """
    if doubt not in ("commas", "stray words"):
        return
    cell, row = profile.first_text, profile.first_text_row
    holds, remedy = profile.numbers_but_text, "Correct that cell or leave it empty"
    if doubt == "commas":
        holds = "numbers with commas, which may mean decimals or thousands: "
        holds += f"{shown(cell)} at row {row}"
        remedy = "Write them with a decimal point and nothing else"
    fault, remedy = f"Column {name!r} holds {holds}.", f"{remedy}; {otherwise}."
    raise ErrorKind.CELL.error(fault, remedy, column=name, row=row, value=cell)


def find_reading(
    name: str,
    dtype: pl.DataType,
    profile: CellProfile | None,
    *,
    otherwise: str,
    is_too_long: bool = False,
    is_category: bool = False,
) -> FoundReading | None:
    """Decide how a column is read: text by the profile of its cells, other cells by their type.

    None: its cells cannot be used. `is_too_long`: typed whole numbers that float64 cannot tell
    apart. `is_category`: somebody chose it to be one. Raises `InputError` as `check_text`.
    """
    if profile is None:
        reading = reading_of_type(dtype)
        if reading is not None and (is_category or is_too_long):
            note = None if is_category else _note_of_long_numbers(name)
            return FoundReading(CellReading("string"), note=note)
        return None if reading is None else FoundReading(reading, integers=are_whole(dtype))
    found = reading_of_text(profile, is_category=is_category)
    if is_category:
        return found
    check_text(name, profile, found.doubt, otherwise)
    return found._replace(note=note_of_text(name, profile, found))


def note_of_text(name: str, profile: CellProfile, found: FoundReading) -> ColumnNote | None:
    """Return what to tell of text cells that are read so.

    >>> profile = CellProfile()
    >>> profile.add(pl.Series(["3", "4", "5", "abc", *map(str, range(6))]), 1)
    >>> note_of_text("a", profile, reading_of_text(profile)).words
    "column 'a' is taken as categories: it holds numbers in all but 1 of its 10 cells: 'abc' at \
row 4. Leave such cells empty to have it read as numbers."
    >>> profile = CellProfile(10, 10, n_integers=10, first_code="01067")
    >>> note_of_text("zip", profile, reading_of_text(profile)).words
    "column 'zip' is taken as categories: 01067 begins with a zero, as codes of places or cards \
do. Write quantities without such zeros."
    """
    is_words, style = found.reading.reads_as == "string", found.reading.number_format
    if profile.has_codes:
        return ColumnNote(
            FindingKind.CODES,
            f"column {name!r} is taken as categories: {profile.first_code} begins with a zero, as "
            "codes of places or cards do. Write quantities without such zeros.",
        )
    if style is not None:
        what = "times of day, in seconds" if style == TIME_OF_DAY else "numbers"
        return ColumnNote(
            FindingKind.NUMBER_FORMAT,
            f"column {name!r} is read as {what}, written like {shown(profile.first_text)} (as in "
            f"{style}); {_as_category(name)} takes the cells as words.",
        )
    if found.reading.reads_as == "date" and len(profile.dates.ways) > 1:
        return _note_of_two_ways(name, profile)
    if found.doubt == "too long":
        return _note_of_long_numbers(name)
    sample = pl.Series(profile.sample, dtype=pl.String)
    if (
        is_words
        and not profile.n_numbers
        and (profile.dates.mistake or 2 * look_of_dates(sample).sum() >= max(1, len(sample)))
    ):
        return _note_of_unread_dates(name, profile)
    if is_words and profile.n_numbers > profile.n_text > 0:
        return ColumnNote(
            FindingKind.MOSTLY_NUMBERS,
            f"column {name!r} is taken as categories: it holds {profile.numbers_but_text}. Leave "
            "such cells empty to have it read as numbers.",
        )
    return _note_of_unread_numbers(name, sample) if is_words and not profile.truth else None


def _note_of_unread_numbers(name: str, sample: pl.Series) -> ColumnNote | None:
    """Return a note where most cells are numbers, hardly of more than one unit, and others not."""
    if 2 * sample.str.contains(r"\d").sum() < max(1, len(sample)):
        return None
    ways = (written_numbers(sample, style) for style in NUMBER_STYLES)
    best = min(ways, key=lambda found: found.values.null_count())
    units = best.units.fill_null("").zip_with(best.values.is_not_null(), pl.Series([None]))
    common = units.drop_nulls().mode().sort()
    is_usual = (units == common[0]).fill_null(False) if len(common) else pl.Series([False])
    n_numbers, n_usual = int(units.is_not_null().sum()), int(is_usual.sum())
    if 2 * n_numbers <= len(sample) or n_usual < _SAME_UNIT * n_numbers or is_usual.all():
        return None
    usual, other = sample.filter(is_usual)[0], sample.filter(~is_usual)[0]
    return ColumnNote(
        FindingKind.MOSTLY_NUMBERS,
        f"column {name!r} is taken as categories: most of its cells are numbers written like "
        f"{shown(usual)}, and {shown(other)} is not. Write all in one way and one unit, and leave "
        "others empty, to have it read as numbers.",
    )


def _note_of_two_ways(name: str, profile: CellProfile) -> ColumnNote:
    best, other = profile.dates.ways[:2]
    return ColumnNote(
        FindingKind.TWO_DATE_FORMATS,
        f"column {name!r} holds dates such as {shown(profile.sample[0])}, which fit "
        f"{way_in_words(best)} and {way_in_words(other)}; they are read as {way_in_words(best)}. "
        "Write days as 2024-12-31 if that is wrong.",
    )


def warn_of_two_ways(cells: pl.Series) -> None:
    """Warn where several ways to write days fit all cells: nothing says which one is meant."""
    profile = CellProfile()
    profile.add(cells, 0)
    if len(profile.dates.ways) > 1:
        _note_of_two_ways(cells.name, profile).tell(cells.name, is_typed=True)


def _note_of_unread_dates(name: str, profile: CellProfile) -> ColumnNote:
    sample = pl.Series(profile.sample)
    odd = sample.filter(~look_of_dates(sample))
    cell = profile.dates.mistake or (odd[0] if len(odd) else sample[0])
    return ColumnNote(
        FindingKind.UNREAD_DATES,
        f"column {name!r} looks like dates and is read as words: {shown(cell)} is not a date that "
        f"is known, or its cells are written in several ways. {HOW_TO_WRITE}",
    )


def _as_category(name: str) -> str:
    return setting("categories", name, elsewhere="a categorical type")


def _note_of_long_numbers(name: str) -> ColumnNote:
    return ColumnNote(
        FindingKind.LONG_NUMBERS,
        f"column {name!r} holds whole numbers that are too long for a number to tell them apart; "
        f"they are taken as words, as {_as_category(name)} does.",
    )
