"""Targets: what the labels of a training file mean, as codes that encoders and methods learn from.

Of both kinds of target the greater code is to be ranked higher, a code may stand for many labels,
and methods hold the rows of all codes but `majority` whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.target import Positive, RareClass, rare_class_among
from rareclass.errors import ErrorKind, InputError, counted, first_names, nearest_name
from rareclass.labels.rare_classes import few_of, words_of_few
from rareclass.labels.two_classes import label_value
from rareclass.model.decisions import as_numbers, codes_among
from rareclass.model.facts import LevelFacts, RankingEstimate, RareClassFacts

# Numbers with more different values than this are a measurement; those of levels are few.
MOST_LEVELS = 100
# Fewer held-out rows than this, rare or of a level, make for rough measures.
_FEW_RARE, _FEW_OF_LEVEL = 10, 5
_MOST_OTHERS, _MOST_SHOWN = 5, 20


class FoundLabels(NamedTuple):
    """Labels of a training file, before it is known what they mean."""

    column: str
    counts: dict[str, int]  # by label as text, the most frequent first
    row_of: Callable[[str], int]  # first row with a label, from 1: the file is read again


@dataclass(frozen=True)
class RareTarget:
    """Code 1 is the rare class; code 0 stands for all other labels."""

    n_codes: ClassVar[int] = 2
    majority: ClassVar[int] = 0  # even where it is less than half of the rows

    column: str
    rare_class: RareClass

    @property
    def counts(self) -> dict[str, int]:
        """Rows of every label, copies included."""
        return self.rare_class.counts

    @property
    def code_of(self) -> dict[str, int]:
        """The code of every label, in each of its spellings."""
        rare = self.rare_class
        return {written: int(label == rare.label) for written, label in rare.spelled.items()}

    @property
    def class_of(self) -> dict[str, int]:
        """The position among several rare classes of each spelling of theirs; empty for one."""
        return self.rare_class.class_of

    @property
    def n_rare(self) -> int:
        """Rare rows, copies included."""
        return self.counts[self.rare_class.label]

    def description(self) -> list[str]:
        """Return the rare class and the others, with their rows."""
        rare = self.rare_class
        others = [f"{label} ({rare.counts[label]:,})" for label in rare.others]
        share = self.n_rare / sum(self.counts.values())
        named = f"Rare class: {self.column} = {rare.label}"
        if rare.several:
            counts = zip(rare.several, rare.class_counts, strict=True)
            named = f"Rare classes of {self.column}: {_some([f'{c} ({n:,})' for c, n in counts])}"
        return [
            f"{named}, {counted(self.n_rare, 'row')} ({share:.2%})",
            f"Majority: {first_names(others, _MOST_OTHERS)}",
        ]

    def notes(self) -> list[str]:
        """Return a doubt where the rare class is not rare, and several classes of few rows."""
        rare, notes = self.rare_class, list[str]()
        if 2 * self.n_rare > sum(self.counts.values()):
            notes.append(
                f"{rare.label} is more than half of the rows; --positive names the rare class."
            )
        few = few_of(dict(zip(rare.several, rare.class_counts, strict=True)))
        return [*notes, words_of_few(few)] if few else notes

    def notes_on_held_out(self, y: NDArray[np.int16], estimate: RankingEstimate) -> list[str]:
        """Say when intervals stand on few rare rows, or on copies; `y` are the codes held out."""
        n_distinct, n_rare = int((y == 1).sum()), estimate.n_rare
        assert n_rare is not None
        notes = []
        if n_distinct < _FEW_RARE:
            notes.append(
                f"only {counted(n_distinct, 'distinct rare row')} held out: the intervals are wide "
                "and inexact."
            )
        if round(n_rare) > n_distinct:
            notes.append(
                f"only {n_distinct:,} of the {counted(n_rare, 'rare row')} held out are distinct: "
                "the intervals are too short unless duplicates are independent observations; "
                "--copies drop counts distinct rows only."
            )
        return notes

    def compared_with(self, y: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Return the training rows that the percentile of a new score is among: the majority."""
        return y == 0

    def facts(self) -> RareClassFacts:
        """Return what a model file says of the target."""
        rare = self.rare_class
        counts = dict(self.counts)
        return RareClassFacts(
            self.column,
            rare.label,
            rare.rest_label,
            self.n_rare,
            counts,
            rare.several,
            rare.class_counts,
        )


@dataclass(frozen=True)
class LevelTarget:
    """Codes are positions of levels; methods are those of `RareTarget`."""

    column: str
    counts: dict[str, int]  # by label; several may be of one level, as 1 and 01
    levels: tuple[str, ...]  # lowest first; some may have no rows
    code_of: dict[str, int]

    @property
    def level_counts(self) -> NDArray[np.int64]:
        """Rows of each level."""
        counts = np.zeros(len(self.levels), dtype=np.int64)
        for label, n_rows in self.counts.items():
            counts[self.code_of[label]] += n_rows
        return counts

    @property
    def n_codes(self) -> int:
        """The number of levels."""
        return len(self.levels)

    @property
    def majority(self) -> int:
        """The most frequent level; of equally frequent ones the lowest."""
        return int(np.argmax(self.level_counts))

    def description(self) -> list[str]:
        """Return the levels in order with their rows, and the most frequent one."""
        counts, majority = self.level_counts, self.majority
        named = [f"{name} ({n:,})" for name, n in zip(self.levels, counts, strict=True)]
        return [
            f"Levels of {self.column}, lowest first: {_some(named)}",
            f"Majority level: {self.levels[majority]}, {counted(counts[majority], 'row')} "
            f"({counts[majority] / counts.sum():.2%})",
        ]

    def notes(self) -> list[str]:
        """Return the levels that no row has, and labels that were taken for a level."""
        notes = []
        empty = [name for name, n in zip(self.levels, self.level_counts, strict=True) if not n]
        if empty:
            notes.append(f"no row is of {_level_word(empty)} {_some(empty)}.")
        others = [
            f"{label!r} as {self.levels[code]}"
            for label, code in sorted(self.code_of.items(), key=lambda each: each[::-1])
            if label != self.levels[code]
        ]
        if others:
            notes.append(f"labels in other spellings were read as levels: {_some(others)}.")
        numbers = as_numbers(self.levels)
        if numbers and numbers not in (sorted(numbers), sorted(numbers, reverse=True)):
            notes.append(
                "the levels are numbers that --levels puts in another order than their size: "
                f"{', '.join(self.levels)}, the last ranked first."
            )
        return notes

    def notes_on_held_out(self, y: NDArray[np.int16], estimate: RankingEstimate) -> list[str]:
        """Say of which levels few distinct rows were held out, or none."""
        counts, present = np.bincount(y, minlength=len(self.levels)), self.level_counts > 0
        is_few = present & (counts > 0) & (counts < _FEW_OF_LEVEL)
        few = [f"{self.levels[k]} ({counts[k]})" for k in np.flatnonzero(is_few)]
        none = [self.levels[k] for k in np.flatnonzero(present & (counts == 0))]
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
        if estimate.n_rows > len(y):
            notes.append(
                f"only {len(y):,} of the {estimate.n_rows:,.0f} rows held out are distinct: the "
                "intervals are too short unless duplicates are independent observations; --copies "
                "drop counts distinct rows only."
            )
        return notes

    def compared_with(self, y: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Return all rows: with levels on both sides the majority is no background."""
        return np.ones(len(y), dtype=bool)

    def facts(self) -> LevelFacts:
        """Return the levels in order, and the rows of each."""
        counts = tuple(int(n) for n in self.level_counts)
        name = self.levels[self.majority]
        return LevelFacts(self.column, self.levels, counts, name, dict(self.counts))


Target = RareTarget | LevelTarget


def rare_target(found: FoundLabels, positive: Positive) -> RareTarget:
    """Return the target whose rare classes are those of `positive`, else as `rare_class_among`.

    Raises `InputError` as `rare_class_among`.
    """
    return RareTarget(found.column, rare_class_among(found.counts, positive))


def level_target(found: FoundLabels, wanted: Sequence[str] | None = None) -> LevelTarget:
    """Put the labels of a file in order: as `wanted` has them, or numbers by size.

    Raises `InputError` on text without an order, naming a row; a label that is not wanted; one
    level only; or so many numbers that they are no levels.
    """
    if not found.counts:
        raise InputError(
            "No row has a target value.", "Check the --target column.", ErrorKind.LABELS
        )
    if wanted is None:
        levels, code_of = _numbers_in_order(found)
    else:
        levels, code_of = tuple(wanted), codes_among(found.counts, wanted)
        _refuse_unknown(found, levels, code_of)
    if len(set(code_of.values())) == 1:
        label, n_rows = levels[next(iter(code_of.values()))], sum(found.counts.values())
        raise InputError(
            f"The target holds one level only: {label!r} in all {counted(n_rows, 'row')}.",
            "Two levels are needed, at least one row of each.",
            ErrorKind.LABELS,
        )
    return LevelTarget(found.column, found.counts, levels, code_of)


def _numbers_in_order(found: FoundLabels) -> tuple[tuple[str, ...], dict[str, int]]:
    """Return the levels and the codes of labels that all are numbers."""
    labels = list(found.counts)
    _refuse_text(found, labels)
    value_of = {label: float(label) for label in labels}
    infinite = [label for label in labels if not np.isfinite(value_of[label])]
    if infinite:
        raise InputError(
            f"The target {found.column!r} holds {infinite[0]} at row {found.row_of(infinite[0])}, "
            "which is not a level.",
            "Correct that cell or leave it empty: rows without a target are left out.",
            ErrorKind.LABELS,
        )
    values = sorted(set(value_of.values()))
    if len(values) > MOST_LEVELS:
        raise _too_many(found, value_of)
    position = {value: code for code, value in enumerate(values)}
    code_of = {label: position[value_of[label]] for label in labels}
    # Of numbers written in several ways the shortest.
    names = [min((x for x in labels if code_of[x] == k), key=len) for k in range(len(values))]
    return tuple(names), code_of


def _refuse_text(found: FoundLabels, labels: list[str]) -> None:
    words = [label for label in labels if not isinstance(label_value(label), float)]
    if not words:
        return
    at = f"{words[0]!r} at row {found.row_of(words[0])}"
    if len(words) < len(labels):
        raise InputError(
            f"The target {found.column!r} holds numbers and text, such as {at}.",
            "Correct the text or leave it empty (rows without a target are left out); or name all "
            "values from the lowest to the highest with --levels.",
            ErrorKind.LABELS,
        )
    raise InputError(
        f"The target {found.column!r} holds text, such as {at}, which has no order.",
        f"Name its values from the lowest to the highest with --levels; they are {_some(labels)}.",
        ErrorKind.LABELS,
    )


def _refuse_unknown(found: FoundLabels, levels: Sequence[str], code_of: dict[str, int]) -> None:
    unknown = [label for label in found.counts if label not in code_of]
    if not unknown:
        return
    first = min(unknown, key=found.row_of)
    more = f" ({_some(unknown)} are not)" if len(unknown) > 1 else ""
    near = nearest_name(first, levels)
    raise InputError(
        f"The target {found.column!r} holds {first!r} at row {found.row_of(first)}, which is not "
        f"among --levels {','.join(levels)}{more}.",
        (f"Did you mean {near!r}? " if near else "")
        + "Add it to --levels at its place, correct it, or leave such cells empty: rows without a "
        "target are left out.",
        ErrorKind.LABELS,
    )


def _too_many(found: FoundLabels, value_of: dict[str, float]) -> InputError:
    """Return the error of numbers that are a measurement, with values at which to cut them."""
    values = np.array([value_of[label] for label in found.counts])
    order = np.argsort(values)
    rows = np.cumsum(np.array(list(found.counts.values()))[order])
    cuts = values[order][np.searchsorted(rows, rows[-1] * np.array([0.5, 0.75, 0.9]))]
    shown = ", ".join(f"{cut:g}" for cut in np.unique(cuts))
    return InputError(
        f"The target {found.column!r} holds {len(set(values)):,} different numbers, a measurement "
        f"rather than levels; {MOST_LEVELS} are taken at most.",
        "Bin them first, into a column that says how many of some bounds a number is above, such "
        f"as {shown} (its median, upper quarter and tenth).",
        ErrorKind.LABELS,
    )


def _some(names: Sequence[str]) -> str:
    return first_names(names, _MOST_SHOWN)


def _level_word(names: Sequence[str]) -> str:
    return "level" if len(names) == 1 else "levels"
