"""What each column of a stream holds, and the rows that do not keep to it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rareclass.errors import InputError, column_hint
from rareclass.tables.batch import TEXT_LIMIT, Batch, Rejected
from rareclass.tables.cells import LARGEST_NUMBER, MANY_VALUES, shown
from rareclass.tables.columns import NUMBER_SHARE
from rareclass.tables.raw_cells import (
    Cells,
    Mask,
    is_empty,
    read_numbers,
    read_rare_or_rest,
    read_words,
    writable,
)

Kind = Literal["number", "category", "time"]

_FEW_ROWS = 20  # too few to call a column an id


@dataclass(frozen=True)
class Schema:
    """The kind of every column of a stream; never changes once found.

    The kinds are of every column that is not target, id or dropped, in the order of the source. A
    column of "time" holds dates in ISO form; it is not learned from, as the clock of a stream only
    ever shows new values. Dropped columns may be absent and may hold anything. The id column names
    a row, by which a label that comes later finds it. Without `positive` the rare label is 1, true
    or yes (and 0, -1, false or no are the rest). `notes` tell how the columns were taken.

    Examples
    --------
    >>> import numpy as np
    >>> columns = {"amount": np.array(["3", "abc"], object), "y": np.array(["0", "1"], object)}
    >>> batch = Batch(columns, np.array([2, 3]), "a.csv", [], 2, {})
    >>> schema = Schema("y", {"amount": "number"})
    >>> good, rejected = schema.check(batch)
    >>> good.columns["amount"], good.columns["y"]
    (array([3.]), array([0.]))
    >>> rejected[0].line, rejected[0].reason
    (3, "column 'amount': 'abc' is not a number")
    """

    target: str
    kinds: Mapping[str, Kind]
    dropped: tuple[str, ...] = ()
    id_column: str | None = None
    positive: str | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def features(self) -> dict[str, Kind]:
        """The columns to learn from with their kinds, in order."""
        return {name: kind for name, kind in self.kinds.items() if kind != "time"}

    def check(self, batch: Batch, *, fixed_columns: bool = True) -> tuple[Batch, list[Rejected]]:
        """Parse the cells and take out the rows that do not keep to the schema.

        Where all rows of the source have the same columns, as in CSV and Parquet (`fixed_columns`),
        a column that the batch does not have is a fault of every row; in JSON lines a name left out
        is an empty cell. Returned are the good rows in their order, and the others with the first
        fault of each: an unknown column that is not empty, a column that is not there, text or an
        infinite number in a number column, a list in a category column, a label that is neither
        rare nor rest. In the good ones number columns are float64 (NaN: empty), category columns
        and the id str or None, the target float64: 1 rare, 0 rest, NaN no label yet; columns not
        learned from are left raw.

        Notes
        -----
        A row is judged by its own cells alone, so the verdict does not depend on how the stream is
        cut into batches. A batch without the target column has rows that wait for their label.
        """
        faults: dict[int, str] = {}
        self._find_unknown(batch, faults)
        columns = dict(batch.columns)
        for name, kind in self.features.items():
            if name in columns:
                columns[name] = _parsed(name, columns[name], kind, faults)
                continue
            if fixed_columns:
                _add(faults, range(batch.n_rows), f"no column {name!r}")
            columns[name] = _empty_cells(batch.n_rows, kind)
        columns[self.target] = self._labels(batch, faults)
        if self.id_column is not None:
            raw_ids = columns.get(self.id_column, _empty_cells(batch.n_rows, "category"))
            columns[self.id_column] = _parsed(self.id_column, raw_ids, "category", faults)
        if not faults:
            return batch._replace(columns=columns), []
        keep = np.ones(batch.n_rows, dtype=np.bool_)
        keep[list(faults)] = False
        kept = {name: cells[keep] for name, cells in columns.items()}
        rejected = [rejected_row(batch, row, faults[row]) for row in sorted(faults)]
        return batch._replace(columns=kept, lines=batch.lines[keep]), rejected

    def to_state(self) -> dict[str, Any]:
        """Return what `from_state` needs, in types that JSON has."""
        return {
            "target": self.target,
            # Pairs: the order of the columns must outlive a file with sorted keys.
            "kinds": [list(pair) for pair in self.kinds.items()],
            "dropped": list(self.dropped),
            "id_column": self.id_column,
            "positive": self.positive,
            "notes": list(self.notes),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Schema:
        """Return the schema that `to_state` wrote down."""
        return cls(
            target=state["target"],
            kinds={name: kind for name, kind in state["kinds"]},
            dropped=tuple(state["dropped"]),
            id_column=state["id_column"],
            positive=state["positive"],
            notes=tuple(state["notes"]),
        )

    def _find_unknown(self, batch: Batch, faults: dict[int, str]) -> None:
        known = {*self.kinds, *self.dropped, self.target, self.id_column}
        # In alphabetical order: the order in which JSON rows bring new names is the batch's.
        for name in sorted(set(batch.columns) - known):
            cells = batch.columns[name].tolist()
            rows = [row for row, cell in enumerate(cells) if not is_empty(cell)]
            _add(faults, rows, f"unknown column {name!r}")

    def _labels(self, batch: Batch, faults: dict[int, str]) -> NDArray[np.float64]:
        cells = batch.columns.get(self.target)
        if cells is None:
            return np.full(batch.n_rows, np.nan)
        labels, wrong = read_rare_or_rest(cells, self.positive)
        for row in np.flatnonzero(wrong).tolist():
            cell = shown(cells[row])
            reason = (
                f"column {self.target!r}: {cell} is neither 1, true or yes nor 0, -1, false or "
                "no; name the rare label with --positive"
            )
            faults.setdefault(row, reason)
        return labels


def find_schema(
    batch: Batch,
    target: str,
    *,
    id_column: str | None = None,
    drop: Collection[str] = (),
    category: Collection[str] = (),
    positive: str | None = None,
) -> Schema:
    """Find what each column holds from the first rows of a stream.

    A column is a number when all of its present cells read as numbers (truth values are 0 and 1),
    a time when all are dates or dates with a time in ISO form, a category otherwise. As in
    ``rareclass fit``, a few cells of text (5 percent) among many different numbers are mistakes:
    such a column is a number, with a note, and rows with text in it are rejected. A column that is
    empty in all of these rows is taken for a number, with a note.

    A stream that is started again must take its schema from the checkpoint, not from the rows after
    it. The first rows need not show the label `positive`. Raises `InputError` when there are no
    rows, a named column is not there, nothing is left to learn from, or `positive` is needed to
    tell the labels apart.

    Examples
    --------
    >>> import numpy as np
    >>> columns = {"amount": np.array(["3", ""], object), "y": np.array(["0", "1"], object)}
    >>> find_schema(Batch(columns, np.array([2, 3]), "a.csv", [], 2, {}), "y").features
    {'amount': 'number'}
    """
    if not batch.n_rows:
        raise InputError(
            f"{batch.file}: no row could be read to find the columns from.",
            batch.rejected[0].reason if batch.rejected else "",
        )
    by_id = () if id_column is None else (id_column,)
    wanted = {"--target": (target,), "--id": by_id, "--drop": drop, "--category": category}
    for option, names in wanted.items():
        for name in names:
            if name not in batch.columns:
                hint = column_hint(name, batch.columns, option)
                raise InputError(f"{batch.file} has no column {name!r}.", hint)
    _check_labels(batch, target, positive)
    left_out = {target, id_column, *drop}
    kinds: dict[str, Kind] = {}
    notes: list[str] = []
    for name, cells in batch.columns.items():
        if name not in left_out:
            kinds[name], note = _kind(name, cells, batch.lines, forced=name in category)
            notes += note
    schema = Schema(target, kinds, tuple(drop), id_column, positive, tuple(notes))
    if not schema.features:
        raise InputError(f"{batch.file} has no column to learn from.", " ".join(notes))
    return schema


def rejected_row(batch: Batch, row: int, reason: str) -> Rejected:
    """Return the record of a row that is turned away; its cells stand in `text` as JSON.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Batch({"a": np.array([1.0, np.nan])}, np.array([2, 3]), "a.csv", [], 2, {})
    >>> rejected_row(rows, 1, "a is empty")
    Rejected(file='a.csv', line=3, reason='a is empty', text='{"a": null}')
    """
    cells = {name: cells[row : row + 1].tolist()[0] for name, cells in batch.columns.items()}
    # NaN is not JSON; it stands for an empty cell.
    plain = {name: None if cell != cell else cell for name, cell in cells.items()}
    text = writable(json.dumps(plain, ensure_ascii=False, default=str))
    return Rejected(batch.file, int(batch.lines[row]), reason, text[:TEXT_LIMIT])


def _check_labels(batch: Batch, target: str, positive: str | None) -> None:
    cells = batch.columns[target]
    labels, wrong = read_rare_or_rest(cells, positive)
    if not wrong.any() or not np.isnan(labels).all():
        return
    names = sorted({shown(cell) for cell in cells[wrong]})
    listed = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    raise InputError(
        f"{batch.file}: column {target!r} holds {listed}, and which of them is rare is not known.",
        "Name the rare label with --positive LABEL.",
    )


def _kind(
    name: str, cells: Cells, lines: NDArray[np.int64], *, forced: bool
) -> tuple[Kind, list[str]]:
    """Return the kind of a column and notes, none or one."""
    numbers, wrong = read_numbers(cells)
    if not forced and not wrong.any():
        if not np.isnan(numbers).all():
            return "number", []
        note = f"column {name!r} is empty in the first {len(cells):,} rows: taken for a number."
        return "number", [f"{note} Text in it will be rejected; --category {name} takes words."]
    if not forced and _are_times(cells):
        return "time", [f"column {name!r} holds dates: not learned from."]
    n_numbers = int((~np.isnan(numbers)).sum())
    n_wrong = int(wrong.sum())
    if not forced and n_numbers > n_wrong:
        row = int(wrong.argmax())
        note = f"column {name!r} holds {n_numbers:,} numbers but, in line {lines[row]}, "
        note += f"{shown(cells[row])}: taken for a"
        if n_numbers >= NUMBER_SHARE * (n_numbers + n_wrong) and _are_many(numbers):
            note += " number. Rows with text in it are rejected"
            return "number", [f"{note}; --category {name} takes words."]
        return "category", [f"{note} category."]
    words = read_words(cells)[0]
    present = words[words != None]  # noqa: E711 (each element is compared)
    if not forced and len(present) >= _FEW_ROWS and len(set(present.tolist())) == len(present):
        note = f"column {name!r} has another word in each of the first {len(present):,} rows"
        return "category", [f"{note}: it looks like an id; --drop {name} leaves it out."]
    return "category", []


def _are_many(numbers: NDArray[np.float64]) -> bool:
    """Whether a column takes more than a handful of values: few may be the codes of words."""
    return len(np.unique(numbers[~np.isnan(numbers)])) > MANY_VALUES


def _are_times(cells: Cells) -> bool:
    try:
        for cell in cells.tolist():
            if not is_empty(cell) and not isinstance(cell, dt.date):
                dt.datetime.fromisoformat(cell.strip())
    except (ValueError, AttributeError):
        return False
    return True


def _parsed(name: str, cells: Cells, kind: Kind, faults: dict[int, str]) -> Cells:
    values: Cells
    if kind == "category":
        values, wrong = read_words(cells)
        too_large = None
    else:
        values, wrong = read_numbers(cells)
        too_large = np.abs(values) > LARGEST_NUMBER
    _add_wrong(name, cells, wrong, "text" if kind == "category" else "a number", faults)
    if too_large is not None and too_large.any():
        for row in np.flatnonzero(too_large).tolist():
            cell = shown(cells[row])
            reason = f"column {name!r}: {cell} is too large to compute with"
            if np.isinf(values[row]):
                reason = f"column {name!r} is infinite"
            faults.setdefault(row, reason)
    return values


def _add_wrong(name: str, cells: Cells, wrong: Mask, wanted: str, faults: dict[int, str]) -> None:
    for row in np.flatnonzero(wrong).tolist():
        faults.setdefault(row, f"column {name!r}: {shown(cells[row])} is not {wanted}")


def _add(faults: dict[int, str], rows: Collection[int], reason: str) -> None:
    for row in rows:
        faults.setdefault(row, reason)


def _empty_cells(n: int, kind: Kind) -> Cells:
    return np.full(n, np.nan) if kind == "number" else np.full(n, None, dtype=object)
