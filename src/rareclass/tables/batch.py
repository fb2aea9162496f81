"""A batch of the rows that a source hands over, where each stood, and where to go on."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

TEXT_LIMIT = 500  # characters of a raw row that are kept; such a row may be of any length


class Rejected(NamedTuple):
    """A row that could not be taken, with the reason.

    The file is named as given, or as inside its folder, "-" for standard input; the raw row is cut
    at 500 characters. The reason is in words for the user.
    """

    file: str
    line: int
    reason: str
    text: str


class Batch(NamedTuple):
    """Rows of one file that follow each other, and the position after them.

    `columns` holds one raw cell per row, in the order of the source's columns: object arrays of
    str, float, int, bool or None; numeric columns of Parquet as float64 with NaN for null. `lines`
    says where each row begins, from 1: the line of a text file (the header of CSV is line 1), the
    number of the row in Parquet. `n_read` counts the rejected records too. `position` is where to
    go on after this batch, and can be written as JSON.

    Examples
    --------
    >>> empty = Batch({}, np.empty(0, np.int64), "rows.csv", [], 0, {})
    >>> empty.n_rows
    0
    """

    columns: dict[str, npt.NDArray[Any]]
    lines: npt.NDArray[np.int64]
    file: str
    rejected: list[Rejected]
    n_read: int
    position: dict[str, Any]

    @property
    def n_rows(self) -> int:
        """The number of rows taken, that is n_read less the rejected ones."""
        return len(self.lines)


def object_columns(
    names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Return the cells of rows as one object array per column.

    Examples
    --------
    >>> object_columns(["a", "b"], [["1", "x"], ["2", None]])["b"].tolist()
    ['x', None]
    """
    cells = zip(*rows, strict=True) if rows else [()] * len(names)
    return {
        name: np.fromiter(column, dtype=object, count=len(rows))
        for name, column in zip(names, cells, strict=True)
    }


def columns_fault(wanted: Sequence[str], found: Collection[str]) -> str | None:
    """Return what is wrong with the columns of a row or file, None where they are as wanted.

    Examples
    --------
    >>> columns_fault(["a", "b"], ["b", "a"]) is None
    True
    >>> columns_fault(["a", "b"], ["a", "b", "c"]), columns_fault(["a", "b"], ["a"])
    ("unknown column 'c'", "no column 'b'")
    """
    unknown = [name for name in found if name not in wanted]
    if unknown:
        return f"unknown column {unknown[0]!r}"
    missing = [name for name in wanted if name not in found]
    return f"no column {missing[0]!r}" if missing else None
