"""A table as columns of four kinds: what every view of a table starts from."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rareclass.tables.columns import Column

Kind = Literal["number", "category", "date", "text"]


@dataclass(frozen=True)
class TypedColumn:
    """One column of a table.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "date", "text"}
    values : ndarray of shape (n_rows,)
        Numbers: float64, NaN where missing; truth values are 0 and 1. Dates: float64, seconds
        since 1970 by the clock of their own zone, NaN where missing. Categories and texts: int32,
        the position of the cell's word in `levels`, -1 where missing.
    levels : ndarray of str objects, or None
        The words of a category or text, each once; some may not occur.
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    levels: NDArray[np.object_] | None = None

    def words(self) -> NDArray[np.object_]:
        """The cells of a category or text as str, or None where missing: shape (n_rows,)."""
        assert self.levels is not None
        words = self.levels[self.values] if len(self.levels) else np.full(len(self.values), None)
        words[self.values < 0] = None
        return words

    def take(self, rows: Any) -> "TypedColumn":
        """These rows of the column."""
        return TypedColumn(self.name, self.kind, self.values[rows], self.levels)


@dataclass(frozen=True)
class TypedTable:
    """Typed columns of as many rows; `remembered` are all columns, the unused ones too, as read.

    Examples
    --------
    >>> import numpy as np
    >>> from rareclass.encoding.table_reading import read_table
    >>> table = read_table(np.array([[1.0, "a"], [np.nan, "b"]], dtype=object))
    >>> [(column.name, column.kind) for column in table.columns]
    [('x0', 'number'), ('x1', 'category')]
    >>> table.take([1]).column("x1").words().tolist()
    ['b']
    """

    n_rows: int
    columns: tuple[TypedColumn, ...]
    remembered: "list[Column]" = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    @property
    def left_out(self) -> dict[str, str]:
        """The columns of the table that are not learned from, and why not."""
        return {each.name: each.why_dropped for each in self.remembered if not each.is_used}

    def column(self, name: str) -> TypedColumn:
        """The column of this name."""
        return self.columns[self.names.index(name)]

    def of_kind(self, *kinds: Kind) -> list[int]:
        """Where in `columns` the columns of these kinds stand."""
        return [k for k, column in enumerate(self.columns) if column.kind in kinds]

    def take(self, rows: Any) -> "TypedTable":
        """These rows of the table; `rows` are row numbers, a mask or a slice."""
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
        n_rows = len(np.empty(self.n_rows, np.bool_)[rows])
        columns = tuple(column.take(rows) for column in self.columns)
        return TypedTable(n_rows, columns, self.remembered)
