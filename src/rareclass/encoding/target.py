"""The target column: labels as text, and which of them is the rare class.

A label is its value (`label_value`), however a cell writes it: ``Yes``, ``yes`` and ``YES`` are one
label, and so are 1 and 1.0. Who finds several spellings of one says so.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError, counted, first_names, name_hint
from rareclass.findings import Finding, FindingKind, warn
from rareclass.labels.rare_classes import MOST_CLASSES
from rareclass.labels.two_classes import label_value, rarest
from rareclass.tables import TableWarning
from rareclass.tables.cells import is_empty, is_text_type, type_name, word_of
from rareclass.tables.columns import reading_of_type
from rareclass.tables.reading import Cells, ReadCells, read_distinct, read_strings

# A label of the rare class that a user names, several of which any counts as rare, or none.
Positive: TypeAlias = str | Sequence[str] | None
_MOST_SPELLINGS = 6
# Rare classes that a name for all of them has.
_MOST_NAMED = 3
RARE_LABELS = ("1", "+1", "true", "yes")
REST_LABELS = ("0", "-1", "false", "no")


@dataclass(frozen=True)
class RareClass:
    """Rare label of a target, and the others; `spelled` has the label of each spelling.

    `several` are the labels of several rare classes, which `label` names together; `class_of` has
    the position among them of each spelling, `class_counts` their rows.
    """

    label: str
    others: list[str]
    counts: dict[str, int]
    spelled: dict[str, str]
    several: tuple[str, ...] = ()
    class_of: dict[str, int] = field(default_factory=dict)
    class_counts: tuple[int, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that count as rare."""
        return self.several or (self.label,)

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
    if reading_of_type(cells.dtype) is None and cells.null_count() < len(cells):
        raise InputError(
            f"The target {cells.name!r} holds cells of type {type_name(cells.dtype)}.",
            "Give a column of words, numbers, dates or truth values.",
            ErrorKind.LABELS,
            column=cells.name,
        )
    return read_strings(cells)


def positives(given: Positive) -> tuple[str, ...]:
    """Return the labels of the rare class that were named: none, one, or several of them.

    >>> positives(None), positives("yes"), positives(["a", "b", "a"])
    ((), ('yes',), ('a', 'b'))
    """
    return () if given is None else (given,) if isinstance(given, str) else (*dict.fromkeys(given),)


def read_rare_or_rest(cells: Cells, positive: Positive) -> ReadCells:
    """Read the labels of a stream: 1 for the rare class, 0 for the rest, NaN where empty.

    Without `positive`, ``1``, ``true`` and ``yes`` are rare, ``0``, ``-1``, ``false`` and ``no``
    are the rest, all else is wrong; with it, everything but that label, or any of these labels, is
    the rest. Marks such as ``none`` are then labels like others, as `labels_as_text` has it.

    Examples
    --------
    >>> read_rare_or_rest(np.array(["yes", 0, None, "maybe"], dtype=object), None)
    ReadCells(values=array([ 1.,  0., nan, nan]), wrong=array([False, False, False,  True]))
    """
    named = positives(positive)
    rare = {label_value(label) for label in named or RARE_LABELS}
    rest = {label_value(label) for label in REST_LABELS}

    def label(cell: Any) -> float:
        text = cell if isinstance(cell, str) else word_of(cell) or ""
        value = label_value(text)
        if value in rare:
            return 1.0
        if not text.strip() or (not named and is_empty(text)):
            return math.nan
        if not named and value not in rest:
            raise ValueError
        return 0.0

    labels, wrong = read_distinct(cells, label)
    labels[wrong] = math.nan
    return ReadCells(labels.astype(np.float64), wrong)


def label_counts(labels: pl.Series) -> dict[str, int]:
    """Return the rows of every label, the most frequent first.

    Examples
    --------
    >>> label_counts(pl.Series(["b", "a", "b"]))
    {'b': 2, 'a': 1}
    """
    table = labels.value_counts(sort=True)
    return dict(zip(table[labels.name], table["count"], strict=True))


def one_spelling(counts: dict[str, int]) -> dict[str, str]:
    """Return the most frequent spelling of each label; warns where a label has several.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     one_spelling({"No": 90, "yes": 6, "no": 3, "1.50": 1})
    {'No': 'No', 'yes': 'yes', 'no': 'No', '1.50': '1.50'}
    """
    most_frequent: dict[float | str, str] = {}
    spelled = {
        label: most_frequent.setdefault(label_value(label), label)
        for label in sorted(counts, key=counts.__getitem__, reverse=True)
    }
    several = {
        label: [other for other in spelled if spelled[other] == label]
        for label in most_frequent.values()
    }
    several = {label: written for label, written in several.items() if len(written) > 1}
    for label, written in several.items():
        shown = [f"{each!r} ({counts[each]:,})" for each in written]
        warn(
            f"{first_names(shown, _MOST_SPELLINGS)} are one target value, {label!r}.",
            TableWarning,
            Finding(FindingKind.LABEL_SPELLINGS, {"label": label, "spellings": written}),
        )
    return {label: spelled[label] for label in counts}


def rare_class_among(counts: dict[str, int], positive: Positive) -> RareClass:
    """Find the rare class among the rows of every label: what is asked for, else the rarer of two.

    Of several labels that are asked for each is a rare class; together they are called ``a or b``.
    Where none is asked for and one label has most of the rows, all others are rare classes. The
    most frequent label comes first in `counts`. Raises `InputError` with one label only, with more
    than two of which none has most of the rows, when no row has a label that is asked for, or every
    row has one of them.
    """
    if not counts:
        raise InputError(
            "No row has a target value.", "Check the --target column.", ErrorKind.LABELS
        )
    spelled, merged = one_spelling(counts), dict[str, int]()
    for written, n_rows in counts.items():
        merged[spelled[written]] = merged.get(spelled[written], 0) + n_rows
    merged = dict(sorted(merged.items(), key=lambda each: -each[1]))
    if len(merged) == 1:
        ((label, n_rows),) = merged.items()
        raise InputError(
            f"The target holds one class only: {label!r} in all {counted(n_rows, 'row')}.",
            "Two classes are needed, at least one row of each.",
            ErrorKind.LABELS,
        )
    asked = [_asked_for(label, merged) for label in positives(positive)]
    labels = tuple(dict.fromkeys(asked)) or _rarest(merged)
    others = [other for other in merged if other not in labels]
    if not others:
        raise InputError(
            f"--positive: every row has one of the target values {', '.join(labels)}.",
            "Leave one out: rows of another value are needed as the majority.",
            ErrorKind.LABELS,
        )
    _refuse_two_words_for_yes(labels, merged)
    if len(labels) == 1:
        return RareClass(labels[0], others, merged, spelled)
    name, n_rare = _together(labels), sum(merged[label] for label in labels)
    class_of = {written: labels.index(of) for written, of in spelled.items() if of in labels}
    class_counts = tuple(merged[label] for label in labels)
    merged = {name: n_rare} | {label: merged[label] for label in others}
    merged = dict(sorted(merged.items(), key=lambda each: -each[1]))
    spelled = {written: name if of in labels else of for written, of in spelled.items()}
    return RareClass(name, others, merged, spelled, labels, class_of, class_counts)


def _refuse_two_words_for_yes(labels: Sequence[str], counts: dict[str, int]) -> None:
    """Refuse a rare label such as ``yes`` beside another that says the same, as ``true``."""
    says_yes = {label_value(label) for label in RARE_LABELS}
    rare = next((label for label in labels if label_value(label) in says_yes), None)
    if rare is None:
        return
    for other in counts:
        if other not in labels and label_value(other) in says_yes:
            raise InputError(
                f"The target has {rare!r} in {counted(counts[rare], 'row')} and {other!r} in "
                f"{counted(counts[other], 'row')}, which both say yes.",
                "Write them alike: else only one of them counts as rare.",
                ErrorKind.LABELS,
                value=other,
            )


def is_rare(labels: pl.Series, rare: str | Sequence[str]) -> NDArray[np.bool_]:
    """Return which labels of a new file are the rare one (or ones), however the file writes it.

    Examples
    --------
    >>> is_rare(pl.Series(["true", "false", "TRUE"]), "True").tolist()
    [True, False, True]
    """
    values = {label_value(label) for label in positives(rare)}
    return labels.is_in(
        [label for label in labels.unique() if label is not None and label_value(label) in values]
    ).to_numpy()


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


def _together(labels: Sequence[str]) -> str:
    """Return a name for several rare classes."""
    named, n_more = labels[:_MOST_NAMED], len(labels) - _MOST_NAMED
    return " or ".join([*named, *([f"{n_more} more"] if n_more > 0 else [])])


def _rarest(counts: dict[str, int]) -> tuple[str, ...]:
    """Return the rare one of two labels; of more all but the one that has most of the rows."""
    frequent, *others = counts
    if 2 < len(counts) <= MOST_CLASSES and 2 * counts[frequent] > sum(counts.values()):
        return tuple(others)
    if len(counts) > 2:
        shown = first_names([f"{label} ({count})" for label, count in counts.items()], 6)
        raise InputError(
            f"The target has {len(counts):,} values: {shown}.",
            f"Name each rare class, such as --positive {list(counts)[-1]}; for ordered levels give "
            "--method ordinal-rankrc.",
            ErrorKind.LABELS,
        )
    labels = sorted(counts)
    return (labels[rarest([counts[label] for label in labels])],)


def _asked_for(positive: str, counts: dict[str, int]) -> str:
    if positive in counts:
        return positive
    same = [label for label in counts if label_value(label) == label_value(positive)]
    if len(same) == 1:
        return same[0]
    raise absent_label("--positive", positive, counts)


def absent_label(
    option: str, label: str, known: Iterable[str], column: str | None = None
) -> InputError:
    """Return the error for an option that names a label which no row has."""
    where = "the target" if column is None else f"column {column!r}"
    return InputError(
        f"{option}: no row has {label!r} in {where}.",
        name_hint(label, known, "Its values are"),
        ErrorKind.LABELS,
        column=column,
        value=label,
    )
