"""The target column: labels as text, and which of them is the rare class."""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError, counted, name_hint
from rareclass.labels.two_classes import label_value, rarest
from rareclass.tables.cells import is_empty, is_text_type, word_of
from rareclass.tables.reading import Cells, ReadCells, read_distinct, read_strings

RARE_LABELS = ("1", "+1", "true", "yes")
REST_LABELS = ("0", "-1", "false", "no")
_WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)\.0+")


@dataclass(frozen=True)
class RareClass:
    """Rare label of a target, and the others."""

    label: str
    others: list[str]
    counts: dict[str, int]

    @property
    def rest_label(self) -> str:
        """The name of everything else."""
        return self.others[0] if len(self.others) == 1 else "rest"


def labels_as_text(cells: pl.Series) -> pl.Series:
    """Return labels as text: 1, 1.0 and "1" are all ``1``; empty cells and NaN are null.

    Examples
    --------
    >>> labels_as_text(pl.Series([1.0, None, 0.0])).to_list()
    ['1', None, '0']
    """
    if is_text_type(cells.dtype):
        # Unlike in a feature, "none" or "?" may be a label: only nothing at all is empty.
        stripped = cells.cast(pl.String).str.strip_chars()
        whole = stripped.str.replace(r"^([+-]?\d+)\.0+$", "${1}")
        return whole.set(whole == "", None)
    return read_strings(cells)


def read_rare_or_rest(cells: Cells, positive: str | None) -> ReadCells:
    """Read the labels of a stream: 1 for the rare class, 0 for the rest, NaN where empty.

    ``1``, ``1.0`` and ``"1"`` are one label. Without `positive`, ``1``, ``true`` and ``yes`` are
    rare, ``0``, ``-1``, ``false`` and ``no`` are the rest, all else is wrong; with it, everything
    but that label is the rest.

    Examples
    --------
    >>> read_rare_or_rest(np.array(["yes", 0, None, "maybe"], dtype=object), None)
    ReadCells(values=array([ 1.,  0., nan, nan]), wrong=array([False, False, False,  True]))
    """
    rare = RARE_LABELS if positive is None else (_label_text(positive),)

    def label(cell: Any) -> float:
        text = _label_text(cell)
        if text in rare or (positive is None and text.lower() in rare):
            return 1.0
        if is_empty(text):
            return math.nan
        if positive is None and text.lower() not in REST_LABELS:
            raise ValueError
        return 0.0

    labels, wrong = read_distinct(cells, label)
    labels[wrong] = math.nan
    return ReadCells(labels.astype(np.float64), wrong)


def _label_text(cell: Any) -> str:
    """A label in its one spelling; empty marks stay, as one may be the rare label."""
    if not isinstance(cell, str):
        return word_of(cell) or ""
    text = word_of(cell)
    if text is None:
        return cell.strip()
    whole = _WHOLE_NUMBER.fullmatch(text)
    return whole[1] if whole else text


def label_counts(labels: pl.Series) -> dict[str, int]:
    """Return the rows of every label, the most frequent first.

    Examples
    --------
    >>> label_counts(pl.Series(["b", "a", "b"]))
    {'b': 2, 'a': 1}
    """
    table = labels.value_counts(sort=True)
    return dict(zip(table[labels.name], table["count"], strict=True))


def rare_class_among(counts: dict[str, int], positive: str | None) -> RareClass:
    """Find the rare class among the rows of every label: the one asked for, else the rarer of two.

    The most frequent label comes first in `counts`. Raises `InputError` with one label only, with
    more than two and none asked for, or when no row has the one asked for.
    """
    if not counts:
        raise InputError(
            "No row has a target value.", "Check the --target column.", ErrorKind.LABELS
        )
    if len(counts) == 1:
        ((label, n_rows),) = counts.items()
        raise InputError(
            f"The target holds one class only: {label!r} in all {counted(n_rows, 'row')}.",
            "Two classes are needed, at least one row of each.",
            ErrorKind.LABELS,
        )
    label = _asked_for(positive, counts) if positive is not None else _rarest(counts)
    return RareClass(label, [other for other in counts if other != label], counts)


def is_rare(labels: pl.Series, rare: str, known: Collection[str] = ()) -> NDArray[np.bool_]:
    """Return which labels of a new file are the rare one.

    Files write a value differently (1 and 1.0, True and true). So when no label is exactly
    `rare`, those of the same value are taken, unless training knew them as another class.

    Examples
    --------
    >>> is_rare(pl.Series(["true", "false"]), "True").tolist()
    [True, False]
    >>> is_rare(pl.Series(["A", "b"]), "a", known=["a", "A", "b"]).tolist()
    [False, False]
    """
    written = [rare]
    if not (labels == rare).any():
        value = label_value(rare)
        others = set(labels.unique()) - set(known)
        written = [label for label in others if label_value(label) == value]
    return labels.is_in(written).to_numpy()


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


def _rarest(counts: dict[str, int]) -> str:
    if len(counts) > 2:
        shown = ", ".join(f"{label} ({count})" for label, count in list(counts.items())[:6])
        raise InputError(
            f"The target has {len(counts)} values: {shown}{' ...' if len(counts) > 6 else ''}.",
            f"--positive {list(counts)[-1]} ranks one against the rest; for ordered grades give "
            "--method ordinal-rankrc.",
            ErrorKind.LABELS,
        )
    labels = sorted(counts)
    return labels[rarest([counts[label] for label in labels])]


def _asked_for(positive: str, counts: dict[str, int]) -> str:
    if positive in counts:
        return positive
    same = [label for label in counts if label_value(label) == label_value(positive)]
    if len(same) == 1:
        return same[0]
    hint = name_hint(positive, counts, "The target's values are")
    raise InputError(
        f"--positive: no row has the target value {positive!r}.", hint, ErrorKind.LABELS
    )
