"""Targets: what the labels of a table mean, as codes that encoders and methods learn from.

Of both kinds of target the greater code is to be ranked higher, a code may stand for many labels,
and methods hold the rows of all codes but `majority` whole. A model file has them as facts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.target import (
    Positive,
    absent_label,
    labels_among,
    positives,
    read_rare_or_rest,
)
from rareclass.errors import ErrorKind, counted, first_names, setting
from rareclass.labels.levels import order_labels, refuse_measurements
from rareclass.labels.spelling import (
    codes_among,
    label_value,
    one_spelling,
    refuse_two_words_for_yes,
)
from rareclass.labels.two_classes import (
    few_of,
    one_only,
    rare_among,
    refuse_fractions,
    words_of_few,
)

# Fewer held-out rows than this, rare or of a level, make for rough measures.
_FEW_RARE, _FEW_OF_LEVEL = 10, 5
_MOST_OTHERS, _MOST_SHOWN = 5, 20
# Rare classes that a name for all of them has.
_MOST_NAMED = 3
_OTHER_LABEL = {"0": "1", "-1": "1", "false": "true", "no": "yes"}


class FoundLabels(NamedTuple):
    """Labels of a training file, before it is known what they mean."""

    column: str
    counts: dict[str, int]  # by label as text, the most frequent first
    row_of: Callable[[str], int]  # first row with a label, from 1: the file is read again


@dataclass(frozen=True)
class RareClassFacts:
    """A target with one rare label, code 1; all other labels are the rest, code 0."""

    target_kind: ClassVar[str] = "rare class"
    n_codes: ClassVar[int] = 2
    majority: ClassVar[int] = 0  # even where it is less than half of the rows

    target: str  # name of the column
    rare_label: str
    rest_label: str
    n_rare: int | None = None  # rare training rows, copies included
    label_counts: dict[str, int] = field(default_factory=dict)  # training rows of each label
    rare_labels: tuple[str, ...] = ()  # of several rare classes, which `rare_label` names together
    class_counts: tuple[int, ...] = ()  # training rows of each of them

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that count as rare."""
        return self.rare_labels or (self.rare_label,)

    @property
    def in_words(self) -> str:
        """Condition that a rare row meets, such as fraud = yes."""
        return f"{self.target} = {self.rare_label}"

    @property
    def rest_in_words(self) -> str:
        """Condition that other rows meet, such as fraud = no."""
        return "the majority" if self.rest_label == "rest" else f"{self.target} = {self.rest_label}"

    @property
    def known(self) -> tuple[str, ...]:
        """All labels that training had, and names for several of them."""
        return (*self.labels, self.rest_label, *self.label_counts)

    def codes(self, labels: pl.Series) -> NDArray[np.int16]:
        """Return the code of each label as text, however it is written; -1 where it is empty."""
        others = dict.fromkeys(labels.drop_nulls().unique(), 0)
        return coded(labels, others | dict.fromkeys(labels_among(others, self.labels), 1))

    def which(self, labels: pl.Series) -> NDArray[np.int16] | None:
        """Return the place of each label's class among several rare ones, -1 for other labels.

        None where one class is rare.
        """
        if not self.rare_labels:
            return None
        return coded(labels, codes_among(labels.drop_nulls().unique(), self.rare_labels))

    def description(self) -> list[str]:
        """Return the rare class and the others, with their rows where these are known."""
        counts, n_rare = self.label_counts, self.n_rare
        others = [f"{label} ({n:,})" for label, n in counts.items() if label != self.rare_label]
        named = f"Rare class: {self.in_words}"
        if self.class_counts:
            each = [f"{label} ({n:,})" for label, n in self._class_counts().items()]
            named = f"Rare classes of {self.target}: {_some(each)}"
        if n_rare is not None and counts:
            named += f", {counted(n_rare, 'row')} ({n_rare / sum(counts.values()):.2%})"
        return [named, f"Majority: {first_names(others or [self.rest_label], _MOST_OTHERS)}"]

    def notes(self) -> list[str]:
        """Return a doubt where the rare class is not rare, and several classes of few rows."""
        notes = []
        if 2 * (self.n_rare or 0) > sum(self.label_counts.values()):
            of_several = f"; for ordered levels give {setting('method', 'ordinal-rankrc')}"
            notes.append(
                f"{self.rare_label} is more than half of the rows; {setting('positive')} "
                f"names the rare class{of_several if self.rare_labels else ''}."
            )
        few = few_of(self._class_counts())
        return [*notes, words_of_few(few)] if few else notes

    def _class_counts(self) -> dict[str, int]:
        return dict(zip(self.rare_labels, self.class_counts, strict=True))

    def notes_on_held_out(self, y: NDArray[np.int16], n_rows: float, n_rare: float) -> list[str]:
        """Say when intervals stand on few rare rows, or on copies.

        `y` are the codes held out; with their copies they are `n_rows`, of which `n_rare` are rare.
        """
        n_distinct = int((y == 1).sum())
        notes = []
        if n_distinct < _FEW_RARE:
            notes.append(
                f"only {counted(n_distinct, 'distinct rare row')} held out: the intervals are wide "
                "and inexact."
            )
        if round(n_rare) > n_distinct:
            notes.append(_of_duplicates(n_distinct, counted(n_rare, "rare row")))
        return notes

    def compared_with(self, y: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Return the training rows that the percentile of a new score is among: the majority."""
        return y == 0


@dataclass(frozen=True)
class LevelFacts:
    """A target whose labels are levels in order; methods are those of `RareClassFacts`.

    Codes are positions of levels. Several labels may be of one level, as 1 and 01.
    """

    target_kind: ClassVar[str] = "levels"

    target: str
    levels: tuple[str, ...]  # lowest first
    level_counts: tuple[int, ...] = ()  # training rows of each level; some may have none
    majority_level: str = ""  # the most frequent; of equally frequent ones the lowest
    label_counts: dict[str, int] = field(default_factory=dict)

    @property
    def n_codes(self) -> int:
        """The number of levels."""
        return len(self.levels)

    @property
    def majority(self) -> int:
        """The code of the most frequent level."""
        return self.levels.index(self.majority_level)

    def codes(self, labels: pl.Series) -> NDArray[np.int16]:
        """Return the position of each label's level, -1 for labels of none."""
        return coded(labels, codes_among(labels.drop_nulls().unique(), self.levels))

    def which(self, labels: pl.Series) -> None:
        """Return None: there are no rare classes."""

    def description(self) -> list[str]:
        """Return the levels in order with their rows, and the most frequent one."""
        n_majority = self.level_counts[self.majority]
        named = [f"{name} ({n:,})" for name, n in zip(self.levels, self.level_counts, strict=True)]
        return [
            f"Levels of {self.target}, lowest first: {_some(named)}",
            f"Majority level: {self.majority_level}, {counted(n_majority, 'row')} "
            f"({n_majority / sum(self.level_counts):.2%})",
        ]

    def notes(self) -> list[str]:
        """Return the levels that no row has, and labels that were taken for a level."""
        notes = []
        empty = [name for name, n in zip(self.levels, self.level_counts, strict=True) if not n]
        if empty:
            notes.append(f"no row is of {_level_word(empty)} {_some(empty)}.")
        codes = codes_among(self.label_counts, self.levels)
        others = [
            f"{label!r} as {self.levels[code]}"
            for label, code in sorted(codes.items(), key=lambda each: each[::-1])
            if label != self.levels[code]
        ]
        if others:
            notes.append(f"labels in other spellings were read as levels: {_some(others)}.")
        numbers = as_numbers(self.levels)
        if numbers and numbers not in (sorted(numbers), sorted(numbers, reverse=True)):
            notes.append(
                f"the levels are numbers that {setting('levels')} puts in another order than "
                f"their size: {', '.join(self.levels)}, the last ranked first."
            )
        return notes

    def notes_on_held_out(self, y: NDArray[np.int16], n_rows: float, n_rare: float) -> list[str]:
        """Say of which levels few distinct rows were held out, or none."""
        held_out = np.bincount(y, minlength=self.n_codes)
        of_each = list(zip(self.levels, self.level_counts, held_out, strict=True))
        few = [f"{name} ({k})" for name, n, k in of_each if n and 0 < k < _FEW_OF_LEVEL]
        none = [name for name, n, k in of_each if n and not k]
        notes = []
        if few:
            notes.append(
                f"few distinct rows of {_level_word(few)} {_some(few)} were held out: their "
                "measures are inexact."
            )
        if none:
            notes.append(
                f"no row of {_level_word(none)} {_some(none)} was held out: the measures leave "
                f"{'it' if len(none) == 1 else 'them'} out."
            )
        if n_rows > len(y):
            notes.append(_of_duplicates(len(y), counted(n_rows, "row")))
        return notes

    def compared_with(self, y: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Return all rows: with levels on both sides the majority is no background."""
        return np.ones(len(y), dtype=bool)


TargetFacts = RareClassFacts | LevelFacts


def coded(labels: pl.Series, code_of: Mapping[str, int]) -> NDArray[np.int16]:
    """Return the code of each label, -1 for those without one."""
    codes = labels.replace_strict(code_of, default=-1, return_dtype=pl.Int16)
    return codes.to_numpy()


def as_numbers(labels: Sequence[str]) -> list[float] | None:
    """Return labels as numbers, whole ones as such; None when one of them is text.

    >>> as_numbers(["3", "10.0"]), as_numbers(["0.5", "1"]), as_numbers(["3", "low"])
    ([3, 10], [0.5, 1.0], None)
    """
    if not all(isinstance(label_value(label), float) for label in labels):
        return None
    numbers = [float(label) for label in labels]
    is_whole = all(np.isfinite(number) and number == int(number) for number in numbers)
    return [int(number) for number in numbers] if is_whole else numbers


def rare_target(counts: dict[str, int], positive: Positive, column: str = "") -> RareClassFacts:
    """Find the rare class among the rows of every label: what is asked for, else the rarer of two.

    Of several labels that are asked for each is a rare class; together they are called ``a or b``.
    Where none is asked for the rare ones are those of `rare_among`. Raises `InputError` with one
    label only, with more than 100 where none is asked for, when no row has a label that is asked
    for, or every row has one of them.
    """
    _check_labels(counts)
    numbers, learner = as_numbers([*counts]) or (), setting("method", "ordinal-rankrc")
    or_words = f"write words, such as 'grade 1.5'; {learner} learns ordered levels"
    refuse_fractions(np.array(numbers, np.float64), column or "the target", or_words)
    spelled, merged = one_spelling(counts), dict[str, int]()
    for written, n_rows in counts.items():
        merged[spelled[written]] = merged.get(spelled[written], 0) + n_rows
    merged = dict(sorted(merged.items(), key=lambda each: -each[1]))
    if len(merged) == 1:
        raise one_only(*merged.popitem())
    names = list(merged)
    labels = tuple(dict.fromkeys(_asked_for(label, names) for label in positives(positive)))
    labels = labels or tuple(names[k] for k in rare_among(names, list(merged.values())))
    others = [other for other in merged if other not in labels]
    if not others:
        raise ErrorKind.LABELS.error(
            f"{setting('positive')}: every row has one of the target values {', '.join(labels)}.",
            "Leave one out: rows of another value are needed as the majority.",
        )
    refuse_two_words_for_yes(labels, merged)
    rest = others[0] if len(others) == 1 else "rest"
    if len(labels) == 1:
        return RareClassFacts(column, labels[0], rest, merged[labels[0]], merged)
    name, class_counts = _together(labels), tuple(merged[label] for label in labels)
    counts = {name: sum(class_counts)} | {label: merged[label] for label in others}
    counts = dict(sorted(counts.items(), key=lambda each: -each[1]))
    return RareClassFacts(column, name, rest, counts[name], counts, labels, class_counts)


def stream_target(first: pl.Series, positive: Positive) -> RareClassFacts:
    """Name the rare class and the rest as the first labels of a stream do.

    >>> stream_target(pl.Series("y", ["no", None]), None).rare_label
    'yes'
    """
    names = dict[float, str]()
    for value, cell in zip(read_rare_or_rest(first, positive), first, strict=True):
        names.setdefault(value, str(cell).strip())
    named = positives(positive)
    rest = names.get(0.0, "rest" if named else "0")
    rare = " or ".join(named) or names.get(1.0) or _OTHER_LABEL.get(rest.lower(), "1")
    return RareClassFacts(first.name, rare, rest, rare_labels=named if len(named) > 1 else ())


def _together(labels: Sequence[str]) -> str:
    """Return a name for several rare classes."""
    named, n_more = labels[:_MOST_NAMED], len(labels) - _MOST_NAMED
    return " or ".join([*named, *([f"{n_more} more"] if n_more > 0 else [])])


def _asked_for(positive: str, known: Sequence[str]) -> str:
    found = codes_among([positive], known)
    if positive not in found:
        raise absent_label("positive", positive, known)
    return known[found[positive]]


def level_target(found: FoundLabels, wanted: Sequence[str] | None = None) -> LevelFacts:
    """Put the labels of a file in order: as `wanted` has them, or numbers by size.

    Raises `InputError` on text without an order, naming a row; a label that is not wanted; one
    level only; or so many numbers that they are no levels.
    """
    _check_labels(found.counts)
    column = f"target {found.column!r}"
    levels, code_of = order_labels([*found.counts], wanted, f"the {column}", found.row_of)
    counts = [0] * len(levels)
    for label, n_rows in found.counts.items():
        counts[code_of[label]] += n_rows
    if wanted is None:
        refuse_measurements(
            np.array(levels, float), np.array(counts), f"The target {found.column!r}"
        )
    majority = levels[counts.index(max(counts))]
    if max(counts) == sum(counts):
        raise one_only(majority, max(counts))
    return LevelFacts(found.column, tuple(levels), tuple(counts), majority, dict(found.counts))


def _check_labels(counts: dict[str, int]) -> None:
    if not counts:
        raise ErrorKind.LABELS.error(
            "No row has a target value.", f"Check the {setting('target')} column."
        )


def _of_duplicates(n_distinct: int, rows: str) -> str:
    return (
        f"only {n_distinct:,} of the {rows} held out are distinct: the intervals are too short "
        "unless duplicates are independent observations; "
        f"{setting('weigh_copies', False)} counts distinct rows only."
    )


def _some(names: Sequence[str]) -> str:
    return first_names(names, _MOST_SHOWN)


def _level_word(names: Sequence[str]) -> str:
    return "level" if len(names) == 1 else "levels"
