"""The target column of a table: labels as text, and which rows have some of them.

A label is its value (`label_value`), however a cell writes it: ``Yes``, ``yes`` and ``YES`` are one
label, and so are 1 and 1.0. Who finds several spellings of one says so.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError, name_hint, setting
from rareclass.labels.spelling import RARE_LABELS, REST_LABELS, label_value
from rareclass.tables.cells import is_empty, is_text_type, type_name
from rareclass.tables.columns import reading_of_type
from rareclass.tables.reading import read_strings

# A label of the rare class that a user names, several of which any counts as rare, or none.
Positive: TypeAlias = str | Sequence[str] | None
# Spaces and characters that are not printed (Unicode category Cf) around a label.
_INVISIBLE_ENDS = r"^[\p{Cf}\s]+|[\p{Cf}\s]+$"


def labels_as_text(cells: pl.Series) -> pl.Series:
    """Return labels as text: 1, 1.0 and "1" are all ``1``; empty cells and NaN are null.

    Examples
    --------
    >>> labels_as_text(pl.Series([1.0, None, 0.0])).to_list()
    ['1', None, '0']
    """
    return names_as_text(label_cells(cells))


def names_as_text(cells: pl.Series) -> pl.Series:
    """Return names of rows, or of parts of them, as `labels_as_text` does, of every usable type."""
    # Unlike in a feature, "none" or "?" may be a name: only nothing visible at all is empty.
    text = cells.cast(pl.String) if is_text_type(cells.dtype) else read_strings(cells)
    stripped = text.str.replace_all(_INVISIBLE_ENDS, "")
    whole = stripped.str.replace(r"^([+-]?\d+)\.0+$", "${1}")
    return whole.set(whole == "", None)


def label_cells(cells: pl.Series) -> pl.Series:
    """Return labels as a file would hold them.

    Raises `InputError` for the types that are no labels in Python either (`label_array`): lists,
    bytes, durations, times of day, and times of a zone.
    """
    if is_text_type(cells.dtype):
        return cells.cast(pl.String)
    read = None if cells.dtype == pl.Duration else reading_of_type(cells.dtype)
    is_fit = read is not None and not read.zone and not read.number_format
    if not is_fit and cells.null_count() < len(cells):
        raise ErrorKind.LABELS.error(
            f"The target {cells.name!r} holds cells of type {type_name(cells.dtype)}.",
            "Give a column of words, numbers, dates or truth values.",
            column=cells.name,
        )
    return read_strings(cells)


def positives(given: Positive) -> tuple[str, ...]:
    """Return the labels of the rare class that were named: none, one, or several of them.

    >>> positives(None), positives("yes"), positives(["a", "b", "a"])
    ((), ('yes',), ('a', 'b'))
    """
    return () if given is None else (given,) if isinstance(given, str) else (*dict.fromkeys(given),)


def read_rare_or_rest(cells: pl.Series, positive: Positive) -> pl.Series:
    """Read the labels of a stream: 1 rare, 0 for the rest, NaN where empty, null where neither.

    Without `positive`, ``1``, ``true`` and ``yes`` are rare, ``0``, ``-1``, ``false`` and ``no``
    are the rest, all else is neither; with it, all but that label, or any of these labels, is
    the rest. Marks such as ``none`` are then labels like others, as `labels_as_text` has it.

    Examples
    --------
    >>> read_rare_or_rest(pl.Series(["yes", "0", None, "maybe"]), None).to_list()
    [1.0, 0.0, nan, None]
    """
    named = positives(positive)
    rare = {label_value(label) for label in named or RARE_LABELS}
    rest = {label_value(label) for label in REST_LABELS}

    def label(text: str | None) -> float | None:
        """Return what a label says; None where it is neither."""
        value = label_value(text or "")
        if value in rare:
            return 1.0
        if value == "" or text is None or (not named and is_empty(text)):
            return math.nan
        return 0.0 if named or value in rest else None

    text = label_cells(cells)
    known = {each: label(each) for each in text.unique()}
    # Without any cell polars ignores the type.
    return text.replace_strict(known, return_dtype=pl.Float64).cast(pl.Float64)


def label_counts(labels: pl.Series) -> dict[str, int]:
    """Return the rows of every label, the most frequent first.

    Examples
    --------
    >>> label_counts(pl.Series(["b", "a", "b"]))
    {'b': 2, 'a': 1}
    """
    table = labels.value_counts(sort=True)
    return dict(zip(table[labels.name], table["count"], strict=True))


def is_rare(labels: pl.Series, rare: str | Sequence[str]) -> NDArray[np.bool_]:
    """Return which labels of a new file are the rare one (or ones), however the file writes it.

    Examples
    --------
    >>> is_rare(pl.Series(["true", "false", "TRUE"]), "True").tolist()
    [True, False, True]
    """
    return labels.is_in(labels_among(labels.drop_nulls().unique(), rare)).to_numpy()


def labels_among(labels: Iterable[str], wanted: str | Sequence[str]) -> list[str]:
    """Return the labels that are those wanted, however they are written."""
    values = {label_value(label) for label in positives(wanted)}
    return [label for label in labels if label_value(label) in values]


def unknown_labels(rest: pl.Series, others: Collection[str]) -> dict[str, int]:
    """Return the rows of every label of the rest that is none of the others of training.

    Examples
    --------
    >>> unknown_labels(pl.Series(["No", "maybe", "Yes", "maybe"]), ["no"])
    {'maybe': 2, 'Yes': 1}
    """
    values = {label_value(label) for label in others}
    counts = label_counts(rest)
    return {label: n for label, n in counts.items() if label_value(label) not in values}


def absent_label(
    option: str, label: str, known: Iterable[str], column: str | None = None
) -> InputError:
    """Return the error for a setting that names a label which no row has."""
    where = "the target" if column is None else f"column {column!r}"
    fault = f"{setting(option)}: no row has {label!r} in {where}."
    remedy = name_hint(label, known, "Its values are")
    return ErrorKind.LABELS.error(fault, remedy, column=column, value=label)
