"""From batches of columns, as files give them, to rows with labels and weights."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rareclass.errors import InputError, name_hint
from rareclass.files import Location
from rareclass.rows.labelled import LabelledRows
from rareclass.rows.scratch import ScratchRows
from rareclass.tables.folders import check_columns_agree

# A column with more values than this is no target.
MOST_LABELS = 10_000
# Columns are woven into rows this many at a time, so that both sides stay in cache.
_WOVEN_ROWS = 1024
# Bytes of a decoded batch.
_BATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class Selection:
    """Which columns of a file are the features, the labels and the weights."""

    features: list[str]
    target: str | None
    weight: str | None

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return [*self.features, *(name for name in (self.target, self.weight) if name)]

    @property
    def batch_rows(self) -> int:
        """Rows a batch, so that a decoded batch stays small however many columns there are."""
        return int(np.clip(_BATCH_BYTES // (8 * len(self.all)), 256, 65536))


def select_columns(
    parts: Sequence[tuple[Location, Sequence[str]]],
    target: str | None,
    weight: str | None,
    columns: Iterable[str] | None,
) -> Selection:
    """Find the columns in every part's list, all but target and weight being features by default.

    Raises `InputError` on a name that a part does not have, that the first has twice, or that is
    given twice.
    """
    path, known = parts[0]
    features = [n for n in known if n not in (target, weight)] if columns is None else [*columns]
    chosen = Selection(features, target, weight)
    option_of = dict.fromkeys(features, "columns=") | {weight: "weight=", target: "target="}
    for name in chosen.all:
        if name not in known:
            raise InputError(
                f"{path}: {option_of[name]} there is no column {name!r}.", name_hint(name, known)
            )
        if list(known).count(name) > 1:
            raise InputError(f"{path} has two columns {name!r}.", "Give them different names.")
        if chosen.all.count(name) > 1:
            raise InputError(
                f"column {name!r} is named twice among columns=, target= and weight=.",
                "A feature cannot be the label or the weight as well.",
            )
    if not features:
        raise InputError(f"{path} has no column besides target and weight.", "Features are needed.")
    for part, names in parts[1:]:
        check_columns_agree(path, chosen.all, part, set(names))
    return chosen


class DecodedBatch(NamedTuple):
    """A batch taken apart.

    X is finite; codes are places of the labels in `BatchDecoder.label_values`.
    """

    X: np.ndarray
    codes: np.ndarray | None
    weights: np.ndarray | None


class BatchDecoder:
    """Takes batches apart in row order, and refuses cells that are empty or infinite.

    Features become `dtype`. A label type of None is text, which is read as numbers where all labels
    are some.
    """

    def __init__(self, chosen: Selection, dtype: Any, label_type: pa.DataType | None) -> None:
        self.chosen, self.dtype = chosen, np.dtype(dtype)
        self._label_type = label_type
        self._code_of: dict[Any, int] = {}

    def decode(self, batch: pa.RecordBatch, path: Location, first_row: int) -> DecodedBatch:
        """Take a batch apart whose first row is the row `first_row` of the file, from 1 on."""
        chosen, codes, weights = self.chosen, None, None
        for name in chosen.all:
            _check_present(batch.column(name), name, path, first_row)
        if chosen.target:
            codes = self._coded(batch.column(chosen.target), path, first_row)
        if chosen.weight:
            weights = _weights(batch, chosen.weight, path, first_row)
        columns = [_as_numpy(batch.column(name)) for name in chosen.features]
        block = _woven(columns, self.dtype)
        _check_finite(block, columns, chosen.features, path, first_row)
        return DecodedBatch(block, codes, weights)

    def label_values(self) -> np.ndarray:
        """The label of every code met so far, of one kind however many there are."""
        found = list(self._code_of)
        if self._label_type is None:
            return labels_as_written(found)
        values: np.ndarray = pa.array(found, self._label_type).to_numpy(zero_copy_only=False)
        return values

    def _coded(self, labels: pa.Array, path: Location, first_row: int) -> np.ndarray:
        """Small numbers for the labels; equal labels get equal numbers in every batch."""
        if not pa.types.is_dictionary(labels.type):
            labels = labels.dictionary_encode()
        values = labels.dictionary.to_pylist()
        codes = np.array([self._code_of.setdefault(v, len(self._code_of)) for v in values])
        if len(self._code_of) > MOST_LABELS:
            raise InputError(
                f"{path}: the target {self.chosen.target!r} has more than {MOST_LABELS:,} "
                f"different values by row {first_row + len(labels) - 1:,}.",
                "Name a column of classes as target=.",
            )
        return codes.astype(np.int16)[labels.indices.to_numpy()]


class Decoder:
    """Takes batches in row order, and turns them into `LabelledRows` on disk."""

    def __init__(
        self,
        batches: BatchDecoder,
        scratch: str | Path | None,
        expected_rows: int | None = None,
    ) -> None:
        self._batches, self._chosen = batches, batches.chosen
        self._rows = ScratchRows(len(self._chosen.features), batches.dtype, scratch, expected_rows)
        self._codes: list[np.ndarray] = []
        self._weights: list[np.ndarray] = []

    @property
    def n_rows(self) -> int:
        """Rows taken in so far."""
        return self._rows.n_rows

    def read(
        self, path: Location, parts: Iterable[tuple[Location, Iterator[pa.RecordBatch]]]
    ) -> LabelledRows:
        """Take in all batches of the parts of `path`; the scratch file goes if that fails."""
        try:
            for part, batches in parts:
                first_row = 1
                for batch in batches:
                    self.add(batch, part, first_row)
                    first_row += batch.num_rows
            return self._finish(path)
        except BaseException:
            # A traceback that somebody keeps would keep the file too.
            self._rows.close()
            raise

    def add(self, batch: pa.RecordBatch, path: Location, first_row: int) -> None:
        """Take in a batch whose first row is the row `first_row` of the file, counted from 1."""
        decoded = self._batches.decode(batch, path, first_row)
        if decoded.codes is not None:
            self._codes.append(decoded.codes)
        if decoded.weights is not None:
            self._weights.append(decoded.weights)
        self._rows.append(decoded.X)

    def _finish(self, path: Location) -> LabelledRows:
        """All rows that were taken in."""
        if not self.n_rows:
            raise no_rows(path)
        labels = None
        if self._codes:
            labels = self._batches.label_values()[np.concatenate(self._codes)]
        return LabelledRows(
            self._rows.source(),
            labels,
            np.concatenate(self._weights) if self._weights else None,
            tuple(self._chosen.features),
        )


def labels_as_written(texts: list[str]) -> np.ndarray:
    """Different labels as whole numbers, numbers or words, whichever all of them are.

    Text is a number only where the number is written like that: 01 and 1_0 are words, and so is
    what no float64 holds to the last digit. Two texts never become one label.

    Examples
    --------
    >>> labels_as_written(["0", "1"]), labels_as_written(["0.0", "1"])
    (array([0, 1]), array([0., 1.]))
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
            and len(np.unique(values)) == len(texts)
        ):
            return values
    return np.array(texts, dtype=object)


def no_rows(path: Location) -> InputError:
    """What is said of a table with columns only."""
    return InputError(f"{path} has columns but no rows.", "Give a file with rows.")


def _check_present(cells: pa.Array, name: str, path: Location, first_row: int) -> None:
    if not cells.null_count:
        return
    row = first_row + int(np.argmax(cells.is_null().to_numpy(zero_copy_only=False)))
    raise _bad_cell(path, name, row, "is empty")


def checked_dtype(dtype: Any) -> np.dtype:
    """float32 or float64 as a numpy dtype; anything else is refused."""
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype={dtype!r} is not 'float32' or 'float64'.")
    return np.dtype(dtype)


def _weights(batch: pa.RecordBatch, name: str, path: Location, first_row: int) -> np.ndarray:
    weights = _as_numpy(batch.column(name)).astype(np.float64)
    bad = ~((weights >= 0) & (weights < np.inf))
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"{path}: the weight {name!r} is {weights[row]} at row {first_row + row:,}.",
            "Weights are numbers at or above 0.",
        )
    return weights


def _as_numpy(cells: pa.Array) -> np.ndarray:
    if pa.types.is_decimal(cells.type):
        cells = cells.cast(pa.float64())
    values: np.ndarray = cells.to_numpy(zero_copy_only=False)
    return values


def _woven(columns: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """Columns side by side as rows."""
    block = np.empty((len(columns[0]), len(columns)), dtype)
    with np.errstate(over="ignore"):  # what becomes infinite is found afterwards
        for start in range(0, len(block), _WOVEN_ROWS):
            rows = slice(start, start + _WOVEN_ROWS)
            for position, cells in enumerate(columns):
                block[rows, position] = cells[rows]
    return block


def _check_finite(
    block: np.ndarray, columns: list[np.ndarray], names: list[str], path: Location, first_row: int
) -> None:
    # A sum is one pass without a temporary; it is finite unless something may be wrong.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(block.sum()):
            return
    bad = ~np.isfinite(block)
    if bad.any():
        row, position = (int(k) for k in np.argwhere(bad)[0])
        value = columns[position][row]
        what = f"holds {value}"
        if np.isfinite(value):
            what += ", too large for float32,"
        raise _bad_cell(path, names[position], first_row + row, what)


def _bad_cell(path: Location, name: str, row: int, what: str) -> InputError:
    return InputError(
        f"{path}: column {name!r} {what} at row {row:,} (the first row is 1).",
        "Fill such cells or drop their rows first, or leave the column out with columns=; "
        "the command line fills them.",
    )
