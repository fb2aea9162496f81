"""Targets: what the labels of a training file mean, as codes that encoders and methods learn from.

Of both kinds of target the greater code is to be ranked higher, a code may stand for many labels,
and methods hold the rows of all codes but `majority` whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.target import Positive, absent_label, positives
from rareclass.errors import InputError, counted, first_names, label_error, setting
from rareclass.labels.levels import order_labels
from rareclass.labels.spelling import codes_among, one_spelling, refuse_two_words_for_yes
from rareclass.labels.two_classes import few_of, rare_among, words_of_few
from rareclass.model.decisions import as_numbers
from rareclass.model.facts import LevelFacts, RankingEstimate, RareClassFacts

# Numbers with more different values than this are a measurement; those of levels are few.
MOST_LEVELS = 100
# Fewer held-out rows than this, rare or of a level, make for rough measures.
_FEW_RARE, _FEW_OF_LEVEL = 10, 5
_MOST_OTHERS, _MOST_SHOWN = 5, 20
# Rare classes that a name for all of them has.
_MOST_NAMED = 3


class FoundLabels(NamedTuple):
    """Labels of a training file, before it is known what they mean."""

    column: str
    counts: dict[str, int]  # by label as text, the most frequent first
    row_of: Callable[[str], int]  # first row with a label, from 1: the file is read again


@dataclass(frozen=True)
class RareTarget:
    """Code 1 is the rare class; code 0 stands for all other labels.

    `code_of` has the code of each spelling of a label, `class_of` the position among several rare
    classes of each spelling of theirs.
    """

    n_codes: ClassVar[int] = 2
    majority: ClassVar[int] = 0  # even where it is less than half of the rows

    facts: RareClassFacts
    code_of: dict[str, int]
    class_of: dict[str, int]

    @property
    def n_rare(self) -> int:
        """Rare rows, copies included."""
        return self.facts.label_counts[self.facts.rare_label]

    def description(self) -> list[str]:
        """Return the rare class and the others, with their rows."""
        facts, counts = self.facts, self.facts.label_counts
        others = [f"{label} ({n:,})" for label, n in counts.items() if label != facts.rare_label]
        named = f"Rare class: {facts.target} = {facts.rare_label}"
        if facts.rare_labels:
            each = [f"{label} ({n:,})" for label, n in self._class_counts().items()]
            named = f"Rare classes of {facts.target}: {_some(each)}"
        share = self.n_rare / sum(counts.values())
        return [
            f"{named}, {counted(self.n_rare, 'row')} ({share:.2%})",
            f"Majority: {first_names(others, _MOST_OTHERS)}",
        ]

    def notes(self) -> list[str]:
        """Return a doubt where the rare class is not rare, and several classes of few rows."""
        notes = []
        if 2 * self.n_rare > sum(self.facts.label_counts.values()):
            of_several = f"; for ordered levels give {setting('method', 'ordinal-rankrc')}"
            notes.append(
                f"{self.facts.rare_label} is more than half of the rows; {setting('positive')} "
                f"names the rare class{of_several if self.facts.rare_labels else ''}."
            )
        few = few_of(self._class_counts())
        return [*notes, words_of_few(few)] if few else notes

    def _class_counts(self) -> dict[str, int]:
        return dict(zip(self.facts.rare_labels, self.facts.class_counts, strict=True))

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
            notes.append(_of_duplicates(n_distinct, counted(n_rare, "rare row")))
        return notes

    def compared_with(self, y: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Return the training rows that the percentile of a new score is among: the majority."""
        return y == 0


@dataclass(frozen=True)
class LevelTarget:
    """Codes are positions of levels; methods are those of `RareTarget`."""

    class_of: ClassVar[dict[str, int]] = {}  # none of several rare classes

    facts: LevelFacts
    code_of: dict[str, int]  # several labels may be of one level, as 1 and 01

    @property
    def level_counts(self) -> NDArray[np.int64]:
        """Rows of each level; some may have none."""
        return np.array(self.facts.level_counts)

    @property
    def n_codes(self) -> int:
        """The number of levels."""
        return len(self.facts.levels)

    @property
    def majority(self) -> int:
        """The most frequent level; of equally frequent ones the lowest."""
        return self.facts.levels.index(self.facts.majority_level)

    def description(self) -> list[str]:
        """Return the levels in order with their rows, and the most frequent one."""
        counts, majority = self.level_counts, self.majority
        named = [f"{name} ({n:,})" for name, n in zip(self.facts.levels, counts, strict=True)]
        return [
            f"Levels of {self.facts.target}, lowest first: {_some(named)}",
            f"Majority level: {self.facts.levels[majority]}, {counted(counts[majority], 'row')} "
            f"({counts[majority] / counts.sum():.2%})",
        ]

    def notes(self) -> list[str]:
        """Return the levels that no row has, and labels that were taken for a level."""
        notes = []
        levels, counts = self.facts.levels, self.level_counts
        empty = [name for name, n in zip(levels, counts, strict=True) if not n]
        if empty:
            notes.append(f"no row is of {_level_word(empty)} {_some(empty)}.")
        others = [
            f"{label!r} as {self.facts.levels[code]}"
            for label, code in sorted(self.code_of.items(), key=lambda each: each[::-1])
            if label != self.facts.levels[code]
        ]
        if others:
            notes.append(f"labels in other spellings were read as levels: {_some(others)}.")
        numbers = as_numbers(self.facts.levels)
        if numbers and numbers not in (sorted(numbers), sorted(numbers, reverse=True)):
            notes.append(
                f"the levels are numbers that {setting('levels')} puts in another order than "
                f"their size: {', '.join(self.facts.levels)}, the last ranked first."
            )
        return notes

    def notes_on_held_out(self, y: NDArray[np.int16], estimate: RankingEstimate) -> list[str]:
        """Say of which levels few distinct rows were held out, or none."""
        counts, present = np.bincount(y, minlength=len(self.facts.levels)), self.level_counts > 0
        is_few = present & (counts > 0) & (counts < _FEW_OF_LEVEL)
        few = [f"{self.facts.levels[k]} ({counts[k]})" for k in np.flatnonzero(is_few)]
        none = [self.facts.levels[k] for k in np.flatnonzero(present & (counts == 0))]
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
            notes.append(_of_duplicates(len(y), counted(estimate.n_rows, "row")))
        return notes

    def compared_with(self, y: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Return all rows: with levels on both sides the majority is no background."""
        return np.ones(len(y), dtype=bool)


Target = RareTarget | LevelTarget


def rare_target(counts: dict[str, int], positive: Positive, column: str = "") -> RareTarget:
    """Find the rare class among the rows of every label: what is asked for, else the rarer of two.

    Of several labels that are asked for each is a rare class; together they are called ``a or b``.
    Where none is asked for the rare ones are those of `rare_among`. Raises `InputError` with one
    label only, with more than 100 where none is asked for, when no row has a label that is asked
    for, or every row has one of them.
    """
    _check_labels(counts)
    spelled, merged = one_spelling(counts), dict[str, int]()
    for written, n_rows in counts.items():
        merged[spelled[written]] = merged.get(spelled[written], 0) + n_rows
    merged = dict(sorted(merged.items(), key=lambda each: -each[1]))
    if len(merged) == 1:
        ((label, n_rows),) = merged.items()
        raise _one_only(label, n_rows, "class", "classes")
    names = list(merged)
    asked = [_asked_for(label, names) for label in positives(positive)]
    labels = tuple(dict.fromkeys(asked))
    if not labels:
        labels = tuple(names[k] for k in rare_among(names, list(merged.values())))
    others = [other for other in merged if other not in labels]
    if not others:
        raise label_error(
            f"{setting('positive')}: every row has one of the target values {', '.join(labels)}.",
            "Leave one out: rows of another value are needed as the majority.",
        )
    refuse_two_words_for_yes(labels, merged)
    code_of = {written: int(of in labels) for written, of in spelled.items()}
    rest = others[0] if len(others) == 1 else "rest"
    if len(labels) == 1:
        n_rare = merged[labels[0]]
        return RareTarget(RareClassFacts(column, labels[0], rest, n_rare, merged), code_of, {})
    name, class_counts = _together(labels), tuple(merged[label] for label in labels)
    counts = {name: sum(class_counts)} | {label: merged[label] for label in others}
    counts = dict(sorted(counts.items(), key=lambda each: -each[1]))
    class_of = {written: labels.index(of) for written, of in spelled.items() if of in labels}
    facts = RareClassFacts(column, name, rest, counts[name], counts, labels, class_counts)
    return RareTarget(facts, code_of, class_of)


def _together(labels: Sequence[str]) -> str:
    """Return a name for several rare classes."""
    named, n_more = labels[:_MOST_NAMED], len(labels) - _MOST_NAMED
    return " or ".join([*named, *([f"{n_more} more"] if n_more > 0 else [])])


def _asked_for(positive: str, known: Sequence[str]) -> str:
    found = codes_among([positive], known)
    if positive not in found:
        raise absent_label("positive", positive, known)
    return known[found[positive]]


def level_target(found: FoundLabels, wanted: Sequence[str] | None = None) -> LevelTarget:
    """Put the labels of a file in order: as `wanted` has them, or numbers by size.

    Raises `InputError` on text without an order, naming a row; a label that is not wanted; one
    level only; or so many numbers that they are no levels.
    """
    _check_labels(found.counts)
    where = f"the target {found.column!r}"
    levels, code_of = order_labels([*found.counts], wanted, where, found.row_of)
    if wanted is None and len(levels) > MOST_LEVELS:
        raise _too_many(found, len(levels))
    code_of = {label: code_of[label] for label in found.counts}
    if len(set(code_of.values())) == 1:
        label, n_rows = levels[next(iter(code_of.values()))], sum(found.counts.values())
        raise _one_only(label, n_rows, "level", "levels")
    counts = [0] * len(levels)
    for label, n_rows in found.counts.items():
        counts[code_of[label]] += n_rows
    majority = levels[counts.index(max(counts))]
    facts = LevelFacts(found.column, tuple(levels), tuple(counts), majority, dict(found.counts))
    return LevelTarget(facts, code_of)


def _check_labels(counts: dict[str, int]) -> None:
    if not counts:
        raise label_error("No row has a target value.", f"Check the {setting('target')} column.")


def _one_only(label: str, n_rows: int, one: str, many: str) -> InputError:
    return label_error(
        f"The target holds one {one} only: {label!r} in all {counted(n_rows, 'row')}.",
        f"Two {many} are needed, at least one row of each.",
    )


def _too_many(found: FoundLabels, n_levels: int) -> InputError:
    """Return the error of numbers that are a measurement, with values at which to cut them."""
    values = np.array([float(label) for label in found.counts])
    order = np.argsort(values)
    rows = np.cumsum(np.array(list(found.counts.values()))[order])
    cuts = values[order][np.searchsorted(rows, rows[-1] * np.array([0.5, 0.75, 0.9]))]
    shown = ", ".join(f"{cut:g}" for cut in np.unique(cuts))
    return label_error(
        f"The target {found.column!r} holds {n_levels:,} different numbers, a measurement "
        f"rather than levels; {MOST_LEVELS} are taken at most.",
        "Bin them first, into a column that says how many of some bounds a number is above, such "
        f"as {shown} (its median, upper quarter and tenth).",
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
