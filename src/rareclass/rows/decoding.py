"""From batches of columns, as files and databases give them, to rows with labels and weights.

Features are rows of floats in a scratch file, written once and read in any order (`ScratchRows`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rareclass.errors import ErrorKind, InputError, missing_column, no_rows, setting
from rareclass.files import Location
from rareclass.rows.protocol import LabelledRows
from rareclass.rows.source import RowSource, not_finite
from rareclass.scratch_file import Scratch
from rareclass.tables.folders import check_columns_agree

# A column with more values than this is no target.
MOST_LABELS = 10_000
# Bytes of a decoded batch.
_BATCH_BYTES = 16 << 20
# Types whose values float32 holds exactly.
_NARROW = {pa.float32(), pa.float16(), pa.bool_(), pa.int8(), pa.int16(), pa.uint8(), pa.uint16()}
# Reading past this many bytes costs less than asking the system once more.
_GAP_BYTES = 1 << 15
# Most bytes that are read at once to pick rows from.
_SPAN_BYTES = 8 << 20

Batches = Iterator[pa.RecordBatch]


class ScratchRows:
    """Rows of floats in a `Scratch`, row after row.

    Rows are read, not mapped: mapped pages would count as memory of this process.

    `expected_rows` is their number where it is known; `folder` is as in `scratch_folder`.
    """

    def __init__(
        self,
        n_features: int,
        dtype: Any,
        folder: str | Path | None = None,
        expected_rows: int | None = None,
    ) -> None:
        self.n_rows, self.n_features, self.dtype = 0, n_features, np.dtype(dtype)
        self._row_bytes = n_features * self.dtype.itemsize
        self._gap = max(1, _GAP_BYTES // self._row_bytes)
        self._span = max(1, _SPAN_BYTES // self._row_bytes)
        expected = None if expected_rows is None else expected_rows * self._row_bytes
        self._scratch = Scratch(folder, expected)

    def append(self, rows: np.ndarray) -> None:
        """Add rows, an array of shape (n, n_features), at the end."""
        if not len(rows):
            return
        self._scratch.append(np.ascontiguousarray(rows, dtype=self.dtype))
        self.n_rows += len(rows)

    def source(self) -> RowSource:
        """Rows written so far; the file lives until they are closed or collected."""
        shape = (self.n_rows, self.n_features)
        return RowSource(shape, self.dtype, self.take, False, self.close)

    def close(self) -> None:
        """Free the room on disk; nothing can be read any more."""
        self._scratch.close()

    def take(self, rows: slice | np.ndarray) -> np.ndarray:
        """Chosen rows, shape (n, n_features), read in as few requests as pay off."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.n_rows)
            if step == 1:
                return self._read(start, max(start, stop))
            rows = np.arange(start, stop, step)
        index = np.asarray(rows, dtype=np.intp)
        if not len(index):
            return self._read(0, 0)
        if index.min() < 0 or index.max() >= self.n_rows:
            raise IndexError(f"rows must lie between 0 and {self.n_rows - 1:,}.")
        if (index[1:] >= index[:-1]).all():
            return self._pick(index)
        order = np.argsort(index, kind="stable")
        out = np.empty((len(index), self.n_features), self.dtype)
        out[order] = self._pick(index[order])
        return out

    def _pick(self, index: np.ndarray) -> np.ndarray:
        """Rows of an increasing index: runs with small gaps are read through and picked from."""
        out = np.empty((len(index), self.n_features), self.dtype)
        step = np.diff(index)
        is_break = (step > self._gap) | (np.diff(index // self._span) > 0)
        edges = np.concatenate([[0], np.flatnonzero(is_break) + 1, [len(index)]])
        for start, stop in pairwise(edges):
            first, last = int(index[start]), int(index[stop - 1])
            if last - first == stop - start - 1 and (step[start : stop - 1] == 1).all():
                self._scratch.read_into(out[start:stop], first * self._row_bytes)
            else:
                block = self._read(first, last + 1)
                np.take(block, index[start:stop] - first, axis=0, out=out[start:stop], mode="clip")
        return out

    def _read(self, start: int, stop: int) -> np.ndarray:
        block = np.empty((stop - start, self.n_features), self.dtype)
        if block.size:
            self._scratch.read_into(block, start * self._row_bytes)
        return block


@dataclass(frozen=True)
class ColumnRoles:
    """Columns that a caller names: labels, weights and features; None of `features` means others.

    `dtype` is float32 or float64, None for the narrowest of them that holds the features.
    """

    target: str | None = None
    weight: str | None = None
    features: tuple[str, ...] | None = None
    dtype: str | None = None

    @classmethod
    def of(
        cls, target: str | None, weight: str | None, columns: Iterable[str] | None, dtype: Any
    ) -> "ColumnRoles":
        """Check and freeze the parameters that readers of tables share."""
        if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
            raise ErrorKind.SETTING.error(f"dtype={dtype!r} is not 'float32' or 'float64'.")
        dtype_name = None if dtype is None else np.dtype(dtype).name
        return cls(target, weight, None if columns is None else tuple(columns), dtype_name)

    @property
    def all(self) -> list[str]:
        """Every column that is named."""
        return [*(self.features or ()), *(name for name in (self.target, self.weight) if name)]

    @property
    def batch_rows(self) -> int:
        """Rows a batch, so that a decoded batch stays small however many columns there are."""
        return int(np.clip(_BATCH_BYTES // (8 * len(self.all)), 256, 65536))


def select_columns(
    parts: Sequence[tuple[Location, Sequence[str]]], roles: ColumnRoles
) -> ColumnRoles:
    """Find the columns in every part's list, and name the features, by default all others.

    Raises `InputError` on a name that a part does not have, that the first part has twice, or that
    is given twice.
    """
    path, known = parts[0]
    target, weight = roles.target, roles.weight
    features = roles.features
    if features is None:
        features = tuple(name for name in known if name not in (target, weight))
    chosen = replace(roles, features=features)
    option_of = dict.fromkeys(features, "columns") | {weight: "weight", target: "target"}
    for name in chosen.all:
        if name not in known:
            raise missing_column(str(path), name, known, option_of[name])
        if list(known).count(name) > 1:
            raise ErrorKind.COLUMN_NAMES.error(
                f"{path} has two columns {name!r}.", "Give them different names.", column=name
            )
        if chosen.all.count(name) > 1:
            raise ErrorKind.COMBINATION.error(
                f"column {name!r} is named twice among columns=, target= and weight=.",
                "A feature cannot be the label or the weight as well.",
                column=name,
            )
    if not features:
        raise ErrorKind.MISSING_COLUMN.error(
            f"{path} has no column besides target and weight.", "Features are needed."
        )
    for part, names in parts[1:]:
        check_columns_agree(path, chosen.all, part, set(names))
    return chosen


class DecodedBatch(NamedTuple):
    """Rows of a batch: finite features, and codes of the labels in `BatchDecoder.label_values`."""

    X: np.ndarray
    codes: np.ndarray | None
    weights: np.ndarray | None


class BatchDecoder:
    """Decodes batches in row order, and refuses cells that are empty or infinite.

    Features become `dtype`. A label type of None is text, which is read as numbers where all labels
    are numbers.
    """

    def __init__(self, chosen: ColumnRoles, dtype: Any, label_type: pa.DataType | None) -> None:
        self.chosen, self.features = chosen, chosen.features or ()
        self.dtype = np.dtype(dtype)
        self._label_type = label_type
        self._code_of: dict[Any, int] = {}

    @classmethod
    def of_schemas(
        cls,
        parts: Sequence[tuple[Location, pa.Schema]],
        roles: ColumnRoles,
        has_text_labels: bool = False,
    ) -> "BatchDecoder":
        """Make the decoder of a table in typed parts; raises `InputError` for unfit columns.

        `has_text_labels`: labels are names of folders, and read as those of text files are.
        """
        chosen = select_columns([(path, schema.names) for path, schema in parts], roles)
        narrowest = np.float32 if _is_narrow(parts, chosen) else np.float64
        kind = None
        if chosen.target is not None and not has_text_labels:
            kind = _label_type(parts, chosen.target)
        return cls(chosen, roles.dtype or narrowest, kind)

    def decode(self, parts: Iterable[tuple[Location, Batches]]) -> Iterator[DecodedBatch]:
        """Decode the batches of parts in row order; messages count the rows of each part."""
        for path, batches in parts:
            first_row = 1
            for batch in batches:
                yield self._decoded(batch, path, first_row)
                first_row += batch.num_rows

    def _decoded(self, batch: pa.RecordBatch, path: Location, first_row: int) -> DecodedBatch:
        """Decode a batch whose first row is the row `first_row` of the file, counted from 1."""
        chosen, codes, weights = self.chosen, None, None
        for name in chosen.all:
            cells = batch.column(name)
            if cells.null_count:
                place = int(np.argmax(cells.is_null().to_numpy(zero_copy_only=False)))
                raise _bad_cell(path, name, first_row + place, "is empty", ErrorKind.CELL)
        if chosen.target:
            codes = self._coded(batch.column(chosen.target), path, first_row)
        if chosen.weight:
            weights = _weights(batch, chosen.weight, path, first_row)
        columns = [_as_numpy(batch.column(name)) for name in self.features]
        block = np.empty((batch.num_rows, len(columns)), self.dtype)
        with np.errstate(over="ignore"):  # overflow to infinity is found afterwards
            np.stack(columns, axis=1, out=block, casting="unsafe")
        _check_finite(block, columns, self.features, path, first_row)
        return DecodedBatch(block, codes, weights)

    def label_values(self) -> np.ndarray:
        """Label of every code met so far, all of one type."""
        found = list(self._code_of)
        if self._label_type is None:
            return labels_as_written(found)
        return np.asarray(pa.array(found, self._label_type).to_numpy(zero_copy_only=False))

    def _coded(self, labels: pa.Array, path: Location, first_row: int) -> np.ndarray:
        """Small numbers for the labels; equal labels get equal numbers in every batch."""
        if not pa.types.is_dictionary(labels.type):
            labels = labels.dictionary_encode()
        values = labels.dictionary.to_pylist()
        codes = np.array([self._code_of.setdefault(v, len(self._code_of)) for v in values])
        last_row = first_row + len(labels) - 1
        refuse_many_labels(len(self._code_of), self.chosen.target, f"{path} by row {last_row:,}")
        return codes.astype(np.int16)[labels.indices.to_numpy()]


def decode_to_disk(
    path: Location,
    parts: Iterable[tuple[Location, Batches]],
    decoder: BatchDecoder,
    scratch: str | Path | None,
    expected_rows: int | None = None,
) -> LabelledRows:
    """Decode the parts of `path` into a scratch file, which is deleted if anything fails.

    Labels and weights stay in memory.
    """
    names = decoder.features
    rows = ScratchRows(len(names), decoder.dtype, scratch, expected_rows)
    codes: list[Any] = []
    weights: list[Any] = []
    try:
        for decoded in decoder.decode(parts):
            rows.append(decoded.X)
            codes.append(decoded.codes)
            weights.append(decoded.weights)
        if not rows.n_rows:
            raise no_rows(path)
        return LabelledRows(
            rows.source(),
            decoder.label_values()[np.concatenate(codes)] if decoder.chosen.target else None,
            np.concatenate(weights) if decoder.chosen.weight else None,
            names,
        )
    except BaseException:
        rows.close()  # a traceback that somebody keeps would keep the file too
        raise


def refuse_many_labels(n_labels: int, target: str | None, where: str) -> None:
    """Raise `InputError` for a column of so many different values that it is no target."""
    if n_labels > MOST_LABELS:
        raise ErrorKind.LABELS.error(
            f"The target {target!r} of {where} has more than {MOST_LABELS:,} different values.",
            f"Name a column of classes: {setting('target')}.",
            column=target,
        )


def labels_as_written(texts: list[str]) -> np.ndarray:
    """Convert different labels to whole numbers, numbers or words: the first that fits them all.

    Text is a number only where the number is written like that: 01 and 1_0 are words, and so are
    digits that float64 cannot hold exactly. Words of one value stay as they are: who learns from
    them merges them (`labels.spelling`).

    >>> labels_as_written(["0", "1"]), labels_as_written(["0", "1.0", "1"])
    (array([0, 1]), array([0., 1., 1.]))
    >>> labels_as_written(["01", "1"]).tolist()
    ['01', '1']
    """
    cells = pa.array(texts, pa.string())
    for kind in (pa.int64(), pa.float64()):
        try:
            cast = cells.cast(kind)
        except pa.ArrowInvalid:
            continue
        values: np.ndarray = cast.to_numpy()
        # 1 is written "1" by pyarrow and, as a float, "1.0" by Python.
        spellings = zip(texts, cast.cast(pa.string()).to_pylist(), values.tolist(), strict=True)
        if (
            all(text in (short, repr(value)) for text, short, value in spellings)
            and np.isfinite(values).all()
        ):
            return values
    return np.array(texts, dtype=object)


def _is_narrow(parts: Sequence[tuple[Location, pa.Schema]], chosen: ColumnRoles) -> bool:
    """True where float32 holds all features exactly; raises `InputError` for other than numbers."""
    is_narrow = True
    for path, schema in parts:
        for name in chosen.all:
            kind = schema.field(name).type
            if name == chosen.target:
                continue
            is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
            if not (is_number or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
                raise ErrorKind.CELL.error(
                    f"{path}: column {name!r} holds {kind}, not numbers.",
                    "Encode it first, leave it out with columns=, or use the command line, which "
                    "encodes tables.",
                    column=name,
                )
            is_narrow &= kind in _NARROW or name == chosen.weight
    return is_narrow


def _label_type(parts: Sequence[tuple[Location, pa.Schema]], target: str) -> pa.DataType:
    """Common type of the labels in all parts; raises `InputError` where there is none."""

    def type_in(path: Location, schema: pa.Schema) -> pa.DataType:
        kind = schema.field(target).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_nested(kind) or (pa.types.is_timestamp(kind) and kind.tz):
            raise ErrorKind.LABELS.error(
                f"{path}: the target {target!r} holds {kind}, not labels.",
                "Name a column of numbers, truth values or strings as target=.",
                column=target,
            )
        # Widths do not matter: 1 is the same label in all of them.
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return pa.string()
        return kind

    first = type_in(*parts[0])
    for path, schema in parts[1:]:
        kind = type_in(path, schema)
        if kind == first:
            continue
        if not (pa.types.is_integer(kind) and pa.types.is_integer(first)):
            raise ErrorKind.LABELS.error(
                f"{path}: the target {target!r} holds {kind}, in {parts[0][0]} {first}.",
                "Write the labels alike in all parts.",
                column=target,
            )
        first = pa.int64()
    return first


def _weights(batch: pa.RecordBatch, name: str, path: Location, first_row: int) -> np.ndarray:
    weights = _as_numpy(batch.column(name)).astype(np.float64)
    bad = ~((weights >= 0) & (weights < np.inf))
    if bad.any():
        row, value = first_row + int(bad.argmax()), float(weights[bad.argmax()])
        fault = f"{path}: the weight {name!r} is {value} at row {row:,}."
        remedy = "Weights are numbers at or above 0."
        raise ErrorKind.CELL.error(fault, remedy, column=name, row=row, value=value)
    return weights


def _as_numpy(cells: pa.Array) -> np.ndarray:
    if pa.types.is_decimal(cells.type):
        cells = cells.cast(pa.float64())
    return np.asarray(cells.to_numpy(zero_copy_only=False))


def _check_finite(
    block: np.ndarray,
    columns: list[np.ndarray],
    names: Sequence[str],
    path: Location,
    first_row: int,
) -> None:
    bad = not_finite(block)
    if bad is not None and bad.any():
        row, position = (int(k) for k in np.argwhere(bad)[0])
        value = columns[position][row]
        what = f"holds {value}"
        if np.isfinite(value):
            what += ", too large for float32,"
        raise _bad_cell(path, names[position], first_row + row, what, ErrorKind.NOT_FINITE, value)


def _bad_cell(
    path: Location, name: str, row: int, what: str, kind: ErrorKind, value: Any = None
) -> InputError:
    return kind.error(
        f"{path}: column {name!r} {what} at row {row:,} (the first row is 1).",
        "Fill such cells or drop their rows first, or leave the column out with columns=; "
        "the command line fills them.",
        column=name,
        row=row,
        value=value,
    )
