"""What each row of a batch is: to be learned from, to be held, a label that was waited for, or bad.

Decided row by row in their order, so that it does not matter where a batch begins or ends.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.schema import Schema, rejected_row
from rareclass.stream.waiting_rows import HeldRow, LearnedLabels, WaitingRows
from rareclass.tables.batch import Batch, Rejected
from rareclass.tables.raw_cells import is_empty, read_rare_or_rest, read_words


class Arrivals(NamedTuple):
    """The rows of a batch that reach the learner, in their order."""

    rows: Batch  # to be encoded
    places: NDArray[np.int64]  # of `rows` among all that reach the learner
    labels: NDArray[np.float64]  # of all those: 1 rare, 0 rest, nan not known
    numbers: NDArray[np.int64]  # of all those: the record's number in the stream, from 1
    ids: list[str | None]  # of `rows`
    waited_for: list[tuple[int, HeldRow]]  # place, and the row whose label came there
    held: list[tuple[int, HeldRow]]  # place, and the row that waits since then
    rejected: list[Rejected]
    contradicted: list[Rejected]  # whose id had another label before


def sort_arrivals(
    batch: Batch, schema: Schema, held: WaitingRows, learned: LearnedLabels, n_before: int
) -> Arrivals:
    """Decide what the rows of a batch are, and bring what is known by id up to date: O(cells).

    Vectors and scores of rows that are held from now on are yet to be set.
    """
    checked, faults = schema.check(batch)
    rejected = [*batch.rejected, *faults]
    lines = np.sort(np.concatenate([batch.lines, [row.line for row in batch.rejected]]))
    if schema.id_column is None:
        numbers = n_before + 1 + np.searchsorted(lines, checked.lines)
        places = np.arange(checked.n_rows)
        rejected.sort(key=_line)
        nobody: list[str | None] = [None] * checked.n_rows
        labels = checked.columns[schema.target]
        return Arrivals(checked, places, labels, numbers, nobody, [], [], rejected, [])
    numbers = n_before + 1 + np.searchsorted(lines, batch.lines)
    return _sorted_by_id(batch, checked, rejected, schema, held, learned, numbers)


def _sorted_by_id(
    batch: Batch,
    checked: Batch,
    rejected: list[Rejected],
    schema: Schema,
    held: WaitingRows,
    learned: LearnedLabels,
    numbers: NDArray[np.int64],
) -> Arrivals:
    ids, labels = _ids_and_labels(batch, schema)
    is_good = np.zeros(batch.n_rows, np.bool_)
    is_good[np.searchsorted(batch.lines, checked.lines)] = True
    features = [batch.columns[name] for name in schema.features if name in batch.columns]
    encoded: list[int] = []
    reached: list[int] = []
    waited_for: list[tuple[int, HeldRow]] = []
    waiting: list[tuple[int, HeldRow]] = []
    of_known: set[int] = set()
    bad: dict[int, str] = {}
    for row, (name, label, good) in enumerate(zip(ids, labels.tolist(), is_good, strict=True)):
        place = len(reached)
        if not math.isnan(label):
            known = None if name is None else held.take(name)
            if known is not None:
                waited_for.append((place, known))
                reached.append(row)
                of_known.add(int(batch.lines[row]))
                continue
            if good and all(is_empty(cells[row]) for cells in features):
                bad[row] = _why_alone(name)
        elif good and name is not None:
            if name in held:
                bad[row] = f"a row with id {name!r} is held already"
            else:
                waiting.append((place, held.hold(name, int(numbers[row]))))
        if good and row not in bad:
            encoded.append(row)
            reached.append(row)
    # A row that brings a label waited for is known by its id: its own cells do not matter.
    rejected = [each for each in rejected if each.line not in of_known]
    rejected += [rejected_row(batch, row, reason) for row, reason in bad.items()]
    rejected.sort(key=_line)
    return Arrivals(
        rows=_rows_at(checked, batch.lines[encoded]),
        places=np.searchsorted(np.array(reached, np.int64), np.array(encoded, np.int64)),
        labels=labels[reached],
        numbers=numbers[reached],
        ids=[ids[row] for row in encoded],
        waited_for=waited_for,
        held=waiting,
        rejected=rejected,
        contradicted=[
            rejected_row(batch, row, words)
            for row in sorted({*reached, *bad})
            if (words := _contradiction(learned, ids[row], labels[row], numbers[row], row in bad))
        ],
    )


def _contradiction(
    learned: LearnedLabels, name: str | None, label: float, number: int, is_bad: bool
) -> str | None:
    """What the label of a row contradicts, in words; it is remembered if it is learned from."""
    if name is None or math.isnan(label):
        return None
    return (learned.contradiction if is_bad else learned.add)(name, label == 1.0, int(number))


def _why_alone(name: str | None) -> str:
    if name is None:
        return "a label without a row: its id is empty"
    return (
        f"a label without a row: no row with id {name!r} is held (it never came, has its label "
        "already, or was dropped for newer ones: see --hold)"
    )


def _ids_and_labels(batch: Batch, schema: Schema) -> tuple[list[str | None], NDArray[np.float64]]:
    """Of all rows: those whose features are bad may still bring a label."""
    ids: list[str | None] = [None] * batch.n_rows
    labels = np.full(batch.n_rows, np.nan)
    if schema.id_column in batch.columns:
        ids = read_words(batch.columns[schema.id_column])[0].tolist()
    if schema.target in batch.columns:
        labels = read_rare_or_rest(batch.columns[schema.target], schema.positive)[0]
    return ids, labels


def _rows_at(batch: Batch, lines: NDArray[np.int64]) -> Batch:
    which = np.searchsorted(batch.lines, lines)
    if len(which) == batch.n_rows:
        return batch
    columns = {name: cells[which] for name, cells in batch.columns.items()}
    return batch._replace(columns=columns, lines=batch.lines[which])


def _line(row: Rejected) -> int:
    return row.line
