"""JSON lines: an object with plain values on each line."""

import json
import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from rareclass.tables import columns_fault, plain_names
from rareclass.tables.cells import unusable_cells
from rareclass.tables.dialect import ROW_LIMIT, not_in
from rareclass.tables.reading import text_of_values
from rareclass.tables.text_reader import TakenRows, TextReader

# Rows whose keys are the columns.
NAMING_ROWS = 1_000
# Type of columns of such cells, as `type_name` words it.
_NESTED = "list or object"
_HOLDS = f" holds a {_NESTED}"
_ARRAY = "an array, where each line should be an object"
_KEY = re.compile(rb'"\s*:')


class JsonLinesReader(TextReader):
    """Rows from JSON lines.

    The columns are the keys of the first 1,000 rows, in the order in which they come, unless they
    are given. A key that an object lacks is None there; one that is not a column makes its row
    rejected. A column with a list or an object in these rows is of a type that cannot be used, as
    in Parquet; one in another column makes its row rejected.
    """

    format_name = "JSON lines"

    @property
    def position(self) -> dict[str, Any]:
        """Where to go on after the rows taken, and which columns have lists or objects."""
        return {**super().position, "nested": None if self.nested is None else [*self.nested]}

    def _begin(self, position: dict[str, Any] | None) -> None:
        known = position and position["columns"]
        self.columns = known or (None if self._reading.elsewhere else self.columns)
        self.nested = position["nested"] if position else self.nested

    def find_columns(self) -> None:
        """Take the keys of the first rows for the columns."""
        if not self._lines.ahead:
            self._lines.fill()  # the first bytes say the encoding, also of a place without rows
        if (self.nested is None or not self.columns) and (names := self._names()):
            found = [name for name, is_nested in names.items() if is_nested]
            self.nested = found if self.nested is None else self.nested
            self.columns = self.columns or self._reading.columns_of([*names])

    def remedy(self, reason: str) -> str:
        """Say where a column is named that a row has and the first rows have not."""
        if reason.startswith("unknown column"):
            return f"The first {NAMING_ROWS:,} lines name the columns: write it there, as null."
        if reason.endswith(_HOLDS):
            return (
                f"Give one value, or null; or write [] in one of the first {NAMING_ROWS:,} lines, "
                "and the column is left out."
            )
        return "Write one object a line: jq -c '.[]'." if reason == _ARRAY else "Correct that line."

    def _take(self, taken: TakenRows, max_records: int) -> None:
        lines, at = self._lines, 0
        while taken.n_read < max_records and (at < len(lines.ahead) or lines.fill()):
            self._take_line(taken, lines.line + at, lines.ahead[at])
            at += 1
        lines.take(at)

    def _names(self) -> dict[str, bool]:
        """The keys of the first rows that are there, and which have a list or an object."""
        lines = self._lines
        while len(lines.ahead) < NAMING_ROWS and sum(map(len, lines.ahead)) < ROW_LIMIT:
            if not lines.fill():
                break
        names: dict[str, bool] = {}
        n_bytes = 0
        for raw in lines.ahead[:NAMING_ROWS]:
            n_bytes += len(raw)
            if n_bytes > ROW_LIMIT and names:
                break
            try:
                found = json.loads(raw.decode("utf-8"))
            except (ValueError, RecursionError):  # the row will be rejected
                continue
            if isinstance(found, dict) and _is_text(found):
                for name, cell in zip(plain_names(found), found.values(), strict=True):
                    names[name] = names.get(name, False) or isinstance(cell, dict | list)
        return names

    def _take_line(self, taken: TakenRows, line: int, raw: bytes) -> None:
        row = _ARRAY if raw.lstrip().startswith(b"[") else self._row_in(raw)
        if not isinstance(row, str):
            taken.rows.append(row)
            taken.lines.append(line)
        elif raw.strip():
            self._reject(taken, line, row, raw)

    def _row_in(self, raw: bytes) -> Sequence[Any] | str:
        """Return the cells of the object in a line, or what is wrong with it."""
        try:
            found = json.loads(raw.decode("utf-8"))
        except UnicodeDecodeError:
            return not_in(self._lines.encoding)
        except (ValueError, RecursionError) as error:
            return _json_fault(error)
        if not isinstance(found, dict):
            kind = {str: "a string", type(None): "null"}.get(type(found))
            return f"not a JSON object but {kind or repr(found)[:40]}"
        columns = self.columns or ()
        if not found.keys() <= set(columns):
            found = dict(zip(plain_names(found), found.values(), strict=True))
        if len(_KEY.findall(raw)) > len(found) and (twice := name_twice(raw)) is not None:
            return f"two values of {twice!r}"
        if b"\\u" in raw and not _is_text(found):
            return "half of a surrogate pair (\\ud800 to \\udfff)"
        for name in columns if b"[" in raw or raw.find(b"{", 1) > 0 else ():
            if name not in (self.nested or ()) and isinstance(found.get(name), dict | list):
                return f"column {name!r}{_HOLDS}"
        if self.columns is None:
            return "an object without keys"
        fault = columns_fault(columns, found) if found.keys() - columns else None
        return fault or [found.get(name) for name in columns]

    def _frame_of(self, taken: TakenRows) -> pl.DataFrame:
        columns = self.columns or []
        by_column = zip(*taken.rows, strict=True) if taken.rows else [()] * len(columns)
        cells = dict(zip(columns, by_column, strict=True))
        return pl.DataFrame([self._column(name, cells[name]) for name in self.only or columns])

    def _column(self, name: str, cells: Sequence[Any]) -> pl.Series:
        if name not in (self.nested or ()):
            return text_of_values(cells).alias(name)
        return unusable_cells(name, cells, _NESTED, dict, list)


def name_twice(text: str | bytes) -> str | None:
    """Return a name that an object in JSON has twice; None where there is none."""
    twice: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        names = plain_names(name for name, _ in pairs)
        if len(set(names)) < len(names):
            twice.extend(name for name in names if names.count(name) > 1)

    json.loads(text, object_pairs_hook=look, parse_int=str, parse_float=str)
    return twice[0] if twice else None


def _is_text(found: dict[str, Any]) -> bool:
    """Say whether no string has half of a pair: such a one can be written nowhere."""
    try:
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _json_fault(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} at character {error.colno}"
    if isinstance(error, RecursionError):
        return "not a row: nested too deeply"
    return f"not JSON: {error}"
