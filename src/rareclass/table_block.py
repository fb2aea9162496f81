"""A table of text that is made once, and drawn by the terminal and by a page of a report."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

_STARTS_WITH_NUMBER = re.compile(r"[+<-]?\d[\d,.]*(e[+-]?\d+)?(\s?%)?( \(| to | of |$)")


@dataclass(frozen=True)
class TableBlock:
    """Rows under their heads; the first cell of a row is its name."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    @classmethod
    def of(cls, title: str, columns: Mapping[str, Iterable[str]], note: str = "") -> Self:
        """Make a table of the cells under each head."""
        return cls(title, tuple(columns), tuple(zip(*columns.values(), strict=True)), note)

    def shortened(self, most: int) -> Self:
        """Return the first rows, with a note on how many are left out."""
        n_more = len(self.rows) - most
        if n_more <= 0:
            return self
        note = f"{n_more:,} more are not listed. {self.note}".rstrip()
        return replace(self, rows=self.rows[:most], note=note)

    @cached_property  # a page asks for it at each cell
    def numeric(self) -> tuple[int, ...]:
        """Places of the columns that are aligned as numbers."""
        columns = zip(*self.rows, strict=True)
        return tuple(place for place, cells in enumerate(columns) if are_numbers(cells))


def are_numbers(cells: Sequence[str]) -> bool:
    """Say whether cells are numbers, alone or before their interval; some may be words or empty.

    >>> are_numbers(["0.31 (0.26 to 0.36)", "unknown"]), are_numbers(["2026-11-29", "0 or 1"])
    (True, False)
    """
    found = [_STARTS_WITH_NUMBER.match(cell) is not None for cell in cells]
    is_word = (not any(map(str.isdigit, cell)) for cell in cells)
    return any(found) and all(map(max, found, is_word))
