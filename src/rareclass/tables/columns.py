"""Columns: what each holds, found from all of its cells, and what is done with it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, counted, first_names
from rareclass.tables.cells import LARGEST_EXACT, TIME_OF_DAY, TRUTH_PAIRS, is_text_type, type_name
from rareclass.tables.dates import way_in_words
from rareclass.tables.reading import CellReading, ReadsAs, is_usable

# Words of a column of strings with this many distinct values or more say little one by one.
HIGH_CARDINALITY = 40
# Up to here distinct values are counted, beyond they are estimated (standard error 0.8 %).
COUNTED_VALUES = 1 << 14
# A column is id-like when this share of its cells is distinct.
ID_SHARE = 0.95
# Fewer rows than this say too little to call a column an identifier.
ID_LEAST_ROWS = 20
# Cells of this many words on average are text, not names.
TEXT_WORDS = 3.0
# Characters of a constant column's value that is kept.
_LONGEST_WORD = 200

_HASH_SEED = 1
_SLICE_ROWS = 50_000
# Three standard errors: an estimate this near to all of the cells is all of them.
_NEAR_ALL = 3 / COUNTED_VALUES**0.5
_ID_NAME = re.compile(
    r"(^|[\s_.-])(id|uid|uuid|guid|key|pk|index|idx|rowid|row|row_?(no|num|number)|serial)$",
    re.IGNORECASE,
)
_INDEX_NAME = re.compile(r"__index_level_\d+__")  # of an index without a name, stored by pandas
STORED_INDEX = "the index that pandas stored"
_CAMEL_ID_NAME = re.compile(r"[a-z](Id|ID|Key)$")

Kind = Literal[
    "number", "boolean", "date", "category", "high-cardinality category", "text", "constant",
    "id-like", "beside", "unusable",
]  # fmt: skip
DROPPED_KINDS: tuple[Kind, ...] = ("constant", "id-like", "unusable", "beside")
_MANY_VALUED: tuple[Kind, str] = ("high-cardinality category", "commonest values, log-odds")


@dataclass(frozen=True)
class Column:
    """One column of the training table.

    `treatment` says in words what is done with it; its counts are of empty cells and of distinct
    values. `always` is the word of the one value of a constant column, `is_by_value` says that
    single values are learned, or would be if the column were used. The other fields are those of
    its `reading`.
    """

    name: str
    kind: Kind
    treatment: str
    reads_as: ReadsAs
    n_missing: int = 0
    n_distinct: int = 0
    date_format: str | None = None
    number_format: str | None = None
    zone: str = ""
    marks: bool = True
    truth: str = ""
    always: str | None = None
    is_by_value: bool = False

    def check_parts(self) -> None:
        """Raise `ValueError` where one of a file lacks what readers of a table ask it for."""
        words = (self.name, self.kind, self.treatment, self.reads_as, self.zone, self.truth)
        if not all(isinstance(word, str) for word in words):
            raise ValueError("a column has no name, kind, treatment or reading")
        for written in (self.date_format, self.number_format):
            if not isinstance(written, str | None):
                raise ValueError(f"the cells of column {self.name!r} have no format")

    @property
    def is_used(self) -> bool:
        """Say whether the model sees this column."""
        return self.kind not in DROPPED_KINDS

    @property
    def why_dropped(self) -> str:
        """Why the model does not see this column; empty for one that it sees."""
        return "" if self.is_used else self.treatment.removeprefix("dropped: ")

    @property
    def words_of_truth(self) -> dict[float, str]:
        """Words that 1 and 0 stand for in a column of truth values; none where 1 and 0 stood."""
        is_switch = self.kind == "boolean" and self.reads_as == "number" and self.truth
        return dict(zip((1.0, 0.0), self.truth.split("/"), strict=True)) if is_switch else {}

    @property
    def reading(self) -> CellReading:
        """How its cells are read."""
        is_switch = self.kind == "boolean" and self.reads_as == "number"
        return CellReading(
            self.reads_as,
            self.date_format,
            self.number_format,
            self.zone,
            self.marks,
            self.truth or ("true/false" if is_switch else ""),
        )


def reading_of_type(dtype: pl.DataType) -> CellReading | None:
    """Decide what typed cells are read as; None for a type that cannot be used."""
    if not is_usable(dtype):
        return None
    if isinstance(dtype, pl.Datetime):
        return CellReading("date", zone=dtype.time_zone or "")
    if dtype == pl.Date:
        return CellReading("date")
    if dtype == pl.Boolean:  # a text file would say true and false: both are read alike
        return CellReading("number", truth="true/false")
    if dtype == pl.Time:
        return CellReading("number", number_format=TIME_OF_DAY)
    return CellReading("string" if is_text_type(dtype) else "number")


def are_whole(dtype: pl.DataType) -> bool:
    """Say whether typed numbers are integers, or decimals without digits after the point."""
    return dtype.is_integer() or (isinstance(dtype, pl.Decimal) and dtype.scale == 0)


def are_too_long(cells: pl.Series) -> bool:
    """Say whether typed whole numbers are too long for a float64 to tell apart."""
    if not are_whole(cells.dtype) or cells.dtype == pl.Int8 or cells.is_empty():
        return False
    least, most = cells.min(), cells.max()
    return least is not None and max(-int(least), int(most)) > LARGEST_EXACT  # type: ignore[arg-type]


@dataclass(frozen=True)
class ColumnFacts:
    """Facts about a typed column.

    Its type is that after text has been read as numbers or dates. `values` are the distinct ones
    when they are fewer than HIGH_CARDINALITY; numbers are in order when they never fall, or never
    rise; words are counted a cell.
    """

    name: str
    dtype: pl.DataType
    n_rows: int
    n_missing: int
    n_distinct: int
    values: list[object] | None = None
    low: float = np.nan
    high: float = np.nan
    is_in_order: bool = False
    mean_words: float = 0.0


def facts_of(column: pl.Series) -> ColumnFacts:
    """Return the facts of a column that is in memory; every count is exact."""
    gatherer = FactsGatherer(column.name, column.dtype)
    for start in range(0, len(column), _SLICE_ROWS):
        gatherer.add(column.slice(start, _SLICE_ROWS))
    return gatherer.facts(column.drop_nulls().n_unique())


def facts_of_words(
    name: str, levels: NDArray[np.object_], counts: NDArray[np.int64], n_rows: int
) -> ColumnFacts:
    """Return the facts of words by their distinct levels, and the cells of each."""
    n_present = int(counts.sum())
    n_words = np.array([len(level.split()) for level in levels], np.int64)
    few = levels.tolist() if len(levels) < HIGH_CARDINALITY else None
    mean_words = float(n_words @ counts) / max(1, n_present)
    return ColumnFacts(
        name, pl.String(), n_rows, n_rows - n_present, len(levels), few, mean_words=mean_words
    )


def facts_for_kind(column: pl.Series, integers: bool) -> ColumnFacts:
    """Return the facts that the kind of numbers or dates depends on, with few counts.

    Distinct numbers are counted as 2, or 3 with others than 0 and 1 between these, where they are
    more and none can be an identifier.
    """
    facts = ColumnFacts(column.name, column.dtype, len(column), column.null_count(), 0)
    if facts.n_missing == facts.n_rows:
        return facts
    low: Any = column.min()
    high: Any = column.max()
    if column.dtype.is_numeric():
        facts = replace(facts, low=low, high=high)
    if low == high:
        return replace(facts, n_distinct=1, values=[low])
    if integers and not facts.n_missing and facts.n_rows >= ID_LEAST_ROWS:
        in_order = column.is_sorted() or column.is_sorted(descending=True)
        return replace(facts, n_distinct=column.n_unique(), is_in_order=in_order)
    has_others = (low, high) == (0.0, 1.0) and column.is_between(0.0, 1.0, "none").any()
    return replace(facts, n_distinct=2 + bool(has_others))


class FactsGatherer:
    """Takes in a column batch by batch, and holds no more than 16,384 numbers of it."""

    def __init__(self, name: str, dtype: pl.DataType) -> None:
        self._name, self._dtype = name, dtype
        self._n_rows = self._n_missing = self._n_words = 0
        self._values: set[object] | None = None if dtype.is_nested() else set()
        self._distinct = _DistinctCount()
        self._low, self._high = np.inf, -np.inf
        self._last: float | None = None
        self._rises = self._falls = dtype.is_numeric()

    def add(self, cells: pl.Series) -> None:
        """Take in the next cells."""
        self._n_rows += len(cells)
        self._n_missing += cells.null_count()
        present = cells.drop_nulls()
        if present.is_empty():
            return
        self._distinct.add(present.hash(_HASH_SEED).to_numpy())
        if self._values is not None:
            self._values.update(present.unique().head(HIGH_CARDINALITY))
            if len(self._values) >= HIGH_CARDINALITY:
                self._values = None
        if self._dtype.is_numeric():
            self._add_numbers(present)
        elif is_text_type(self._dtype):
            self._n_words += int(present.str.count_matches(r"\S+").sum())

    def facts(self, n_distinct: int | None = None) -> ColumnFacts:
        """Return what is known; `n_distinct` replaces the count where somebody knows better."""
        n_present = self._n_rows - self._n_missing
        return ColumnFacts(
            self._name,
            self._dtype,
            self._n_rows,
            self._n_missing,
            self._distinct.count(n_present) if n_distinct is None else n_distinct,
            None if self._values is None else list(self._values),
            self._low,
            self._high,
            self._rises or self._falls,
            self._n_words / max(1, n_present),
        )

    def _add_numbers(self, present: pl.Series) -> None:
        low: Any = present.min()
        high: Any = present.max()
        self._low, self._high = min(self._low, low), max(self._high, high)
        first, last = present[0], present[-1]
        before = first if self._last is None else self._last
        self._rises = self._rises and before <= first and present.is_sorted()
        self._falls = self._falls and before >= first and present.is_sorted(descending=True)
        self._last = last


class _DistinctCount:
    """Number of distinct values from the least of their hashes (Bar-Yossef et al. 2002).

    Where the k least of n hashes, uniform in [0, 1), end at u, n is about (k - 1) / u.
    """

    def __init__(self) -> None:
        self._least: NDArray[np.uint64] = np.empty(0, np.uint64)

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Take in hashes of further values."""
        if len(self._least) == COUNTED_VALUES:
            hashes = hashes[hashes < self._least[-1]]
        if len(hashes):
            self._least = np.unique(np.concatenate([self._least, hashes]))[:COUNTED_VALUES]

    def count(self, n_values: int) -> int:
        """Return the number of distinct ones among the `n_values` values so far."""
        if len(self._least) < COUNTED_VALUES:
            return len(self._least)
        estimate = (COUNTED_VALUES - 1) / (float(self._least[-1]) / 2.0**64)
        return n_values if estimate > (1 - _NEAR_ALL) * n_values else round(estimate)


def describe_column(
    facts: ColumnFacts,
    reading: CellReading | None,
    *,
    integers: bool = False,
    is_category: bool = False,
    is_kept: bool = False,
    is_index: bool = False,
) -> Column:
    """Say what a typed column holds and what will be done with it.

    `integers`: its numbers are whole as written. `is_category`: somebody chose it to be one.
    `is_kept`: it is to be used even if it looks like an identifier. `is_index`: pandas stored it as
    the index of the table; names like ``__index_level_0__`` say so, too.
    """
    kind, treatment = kind_of(facts, integers and not is_kept, is_category)
    is_index = (is_index or has_name_of_index(facts.name)) and not (is_kept or is_category)
    if is_index:
        kind, treatment = "id-like", f"dropped: {STORED_INDEX}"
    if kind == "id-like" and is_kept:
        kind, treatment = _MANY_VALUED
    reading = reading or CellReading("number")
    written = reading.date_format
    if kind == "date" and written and not written.startswith("%Y") and "%B" not in written:
        treatment += f" (read as {way_in_words(written)})"
    if kind == "number" and reading.number_format == TIME_OF_DAY:
        treatment = f"time of day: {treatment}"
    if facts.n_missing and kind not in DROPPED_KINDS and kind != "text":
        treatment += "; empty: " + ("a value too" if reading.reads_as == "string" else "marked")
    return Column(
        facts.name,
        kind,
        treatment,
        n_missing=facts.n_missing,
        n_distinct=facts.n_distinct,
        always=_always(facts) if kind == "constant" else None,
        **vars(reading),
    )


def has_name_of_index(name: str) -> bool:
    """Say whether a column has the name that pandas gives an index without one."""
    return bool(_INDEX_NAME.fullmatch(name))


def _always(facts: ColumnFacts) -> str | None:
    """Return the one value as a word; None for a column without a value, or a long one."""
    word = pl.Series(facts.values or []).cast(pl.String).to_list()
    return word[0] if len(word) == 1 and len(word[0]) <= _LONGEST_WORD else None


def check_some_are_used(
    title: str, columns: Sequence[Column], n_rows: int, otherwise: str = ""
) -> None:
    """Raise `InputError` where no column can be learned from; `otherwise` is what helps as well."""
    if any(column.is_used for column in columns):
        return
    if n_rows < 2:
        fault = f"{title} has {counted(n_rows, 'row')}."
        raise ErrorKind.TOO_FEW_ROWS.error(fault, "Give rows of two classes.")
    whys = first_names([f"{each.name!r}: {each.why_dropped}" for each in columns], 6)
    raise ErrorKind.MISSING_COLUMN.error(
        f"{title} has no column to learn from: {whys or 'it has no columns'}.",
        f"Give a column that differs between rows{otherwise}.",
    )


def kind_of(facts: ColumnFacts, integers: bool, is_category: bool) -> tuple[Kind, str]:
    """Decide the kind of a typed column, and what is done with it in words.

    `integers`: its numbers are whole as written. `is_category`: somebody chose it to be one.
    """
    if facts.n_distinct == 0:
        return "constant", "dropped: every cell is empty"
    if not is_usable(facts.dtype):
        return "unusable", f"dropped: cells of type {type_name(facts.dtype)} cannot be used"
    if facts.n_distinct == 1 and not facts.n_missing:
        always = f" {_short(facts.values[0])}" if facts.values else " the same"
        return "constant", f"dropped: always{always}"
    if facts.dtype.is_numeric():
        return _kind_of_numbers(facts, integers)
    if facts.dtype.is_temporal():
        return "date", "hour, weekday, month, day"
    return _kind_of_strings(facts, is_category)


def _kind_of_numbers(facts: ColumnFacts, integers: bool) -> tuple[Kind, str]:
    is_key = not facts.n_missing and facts.n_distinct == facts.n_rows >= ID_LEAST_ROWS
    if integers and is_key:
        if facts.high - facts.low + 1 == facts.n_rows:
            return "id-like", "dropped: consecutive whole numbers, one a row"
        if facts.is_in_order:
            return "id-like", "dropped: distinct whole numbers in row order"
        if _ID_NAME.search(facts.name) or _CAMEL_ID_NAME.search(facts.name):
            return "id-like", "dropped: named like an identifier and different in every row"
    if facts.n_distinct == 2 and {facts.low, facts.high} == {0.0, 1.0}:
        return "boolean", "0 or 1"
    return "number", "value, rank, logarithm"


def _kind_of_strings(facts: ColumnFacts, is_category: bool) -> tuple[Kind, str]:
    n_present = facts.n_rows - facts.n_missing
    if facts.n_distinct < HIGH_CARDINALITY:
        values = {str(value).strip().lower() for value in facts.values or ()}
        if any(values == set(pair.split("/")) for pair in TRUTH_PAIRS):
            return "boolean", "0 or 1"
        return "category", "commonest values, log-odds"
    if not is_category and facts.n_distinct >= 0.5 * n_present:
        if facts.mean_words >= TEXT_WORDS:
            return "text", "30 numbers from letter groups"
        if facts.n_distinct >= ID_SHARE * n_present:
            return "id-like", "dropped: different in (nearly) every row"
    return _MANY_VALUED


def _short(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 20 else text[:19] + "…"
