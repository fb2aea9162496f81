"""Labels that have an order: levels, each called between the thresholds of its scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError, counted, nearest_name
from rareclass.labels.two_classes import label_value
from rareclass.metrics import mauc_interval, roc_auc_interval
from rareclass.model.facts import LevelFacts, RankingEstimate, as_measure
from rareclass.model.target import Confusion, FoundLabels

# Numbers with more different values than this are a measurement; those of levels are few.
MOST_LEVELS = 100
# Fewer held-out rows of a level than this make for rough measures of it.
_FEW_ROWS = 5
_MOST_SHOWN = 20


@dataclass(frozen=True)
class LevelTarget:
    """Codes are positions of levels; see `rareclass.model.target.Target`."""

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
        counts = self.level_counts
        notes = []
        empty = [name for name, n in zip(self.levels, counts, strict=True) if not n]
        if empty:
            notes.append(f"no row is of {_level_word(empty)} {_some(empty)}.")
        others = [
            f"{label!r} as {self.levels[code]}"
            for label, code in sorted(self.code_of.items(), key=lambda each: each[::-1])
            if label != self.levels[code]
        ]
        if others:
            notes.append(f"labels written otherwise were taken as the level: {_some(others)}.")
        numbers = as_numbers(self.levels)
        if numbers and numbers not in (sorted(numbers), sorted(numbers, reverse=True)):
            notes.append(
                "the levels are numbers that --levels puts in another order than their size: "
                f"{', '.join(self.levels)}, the last ranked first."
            )
        return notes

    def notes_on_held_out(self, y: NDArray[np.int16], estimate: RankingEstimate) -> list[str]:
        """Say of which levels few distinct rows were held out, or none."""
        counts = np.bincount(y, minlength=len(self.levels))
        present = self.level_counts > 0
        few = [
            f"{self.levels[k]} ({counts[k]})"
            for k in np.flatnonzero(present)
            if 0 < counts[k] < _FEW_ROWS
        ]
        none = [self.levels[k] for k in np.flatnonzero(present & (counts == 0))]
        notes = []
        if few:
            notes.append(
                f"Few distinct rows were held out of {_level_word(few)} {_some(few)}: "
                "measures that stand on them are rough."
            )
        if none:
            notes.append(
                f"No row was held out of {_level_word(none)} {_some(none)}: the measures say "
                "nothing of it."
                if len(none) == 1
                else f"No row was held out of {_level_word(none)} {_some(none)}: the measures say "
                "nothing of them."
            )
        if estimate.n_rows > len(y):
            notes.append(
                f"The {estimate.n_rows:,.0f} rows held out are copies of {len(y):,} distinct ones: "
                "intervals are too short unless copies are independent observations; --copies "
                "drop counts distinct rows."
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


class LevelDecision:
    """Code k where ``thresholds[k - 1] < score <= thresholds[k]``.

    See `rareclass.model.target.Decision`.
    """

    column: ClassVar[str] = "level"

    def __init__(self, facts: LevelFacts, thresholds: NDArray[np.float64]) -> None:
        self.thresholds = thresholds
        self.names = list(facts.levels)
        self.n_codes = len(self.names)

    def decide(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the position of the level of each score."""
        return np.searchsorted(self.thresholds, scores, side="left")

    def cells(self, called: NDArray[np.intp]) -> pl.Series:
        """Return levels, as numbers where all of them are."""
        numbers = as_numbers(self.names)
        names = pl.Series(self.column, self.names if numbers is None else numbers)
        return names.gather(called)

    def rules(self) -> list[str]:
        """Return the scores of each level, and the levels that no score is called."""
        ends = [-np.inf, *self.thresholds, np.inf]
        called = [k for k in range(self.n_codes) if ends[k] < ends[k + 1]]
        named = [f"{self.names[k]} up to {ends[k + 1]:.3g}" for k in called[:-1]]
        named.append(f"{self.names[called[-1]]} above" if named else self.names[called[-1]])
        lines = [f"Levels by score: {', '.join(named)}"]
        never = [self.names[k] for k in range(self.n_codes) if k not in called]
        if never:
            lines.append(f"Never called, for others are nearer at any score: {', '.join(never)}")
        return lines

    def sentence(self, n_called: NDArray[np.intp]) -> str:
        """Say how many were called each level."""
        each = zip(self.names, n_called, strict=True)
        named = ", ".join(f"{name} ({n:,})" for name, n in each if n)
        n_rows = int(n_called.sum())
        return f"Scored {counted(n_rows, 'row; it is', 'rows; they are')} called {named}."

    def codes(self, labels: pl.Series, file: str) -> NDArray[np.intp]:
        """Return positions of levels, however the new file writes them."""
        code_of = codes_among(labels.drop_nulls().unique().to_list(), self.names)
        codes = labels.replace_strict(code_of, default=-1, return_dtype=pl.Int64).to_numpy()
        unknown = np.flatnonzero((codes < 0) & labels.is_not_null().to_numpy())
        if len(unknown):
            row = int(unknown[0])
            raise InputError(
                f"{file}: the target value {labels[row]!r} at row {row + 1} is not among the "
                f"levels of the model: {', '.join(self.names)}.",
                "Correct it, or leave it empty: rows without a target are left out.",
                ErrorKind.LABELS,
            )
        present = np.unique(codes[codes >= 0])
        if len(present) < 2:
            held = f"only {self.names[present[0]]!r}" if len(present) else "nothing"
            raise InputError(
                f"{file}: the target holds {held}.",
                "Rows of two levels are needed to measure a ranking.",
                ErrorKind.LABELS,
            )
        return codes.astype(np.intp)

    def estimate(
        self,
        y: NDArray[np.integer],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
    ) -> RankingEstimate:
        """Return MAUC, and the AUC of the rows above each level that some are above."""
        order = range(self.n_codes)
        measures = [as_measure("MAUC", mauc_interval(y, scores, weight, levels=order))]
        present = np.unique(y)
        if len(present) > 2:  # of two levels it is the MAUC
            for code in present[:-1]:
                interval = roc_auc_interval(y > code, scores, weight)
                measures.append(as_measure(f"AUC above {self.names[code]}", interval))
        return RankingEstimate(measures, float(len(y) if weight is None else weight.sum()))

    def confusion(
        self,
        y: NDArray[np.integer],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
    ) -> Confusion:
        """Return rows by level and called level, and how far these are apart."""
        called, n = self.decide(scores), self.n_codes
        counts = np.bincount(n * np.asarray(y, dtype=np.intp) + called, weight, n * n)
        counts = counts.reshape(n, n)
        distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        n_rows = counts.sum(axis=1)
        present = n_rows > 0
        errors = (counts * distance).sum(axis=1)
        right, near = counts.trace() / n_rows.sum(), counts[distance <= 1].sum() / n_rows.sum()
        error = errors.sum() / n_rows.sum()
        balanced = (errors[present] / n_rows[present]).mean()
        within = f", {near:.1%} within one level" if n > 2 else ""
        lines = [
            f"Called the right level: {right:.1%} of the rows{within}",
            f"Distance to the right level: {error:.3f} levels on average; {balanced:.3f} when each "
            "level counts the same",
        ]
        return Confusion(
            "At the model's thresholds",
            self.names,
            self.names,
            counts,
            lines,
            {
                "confusion": {"levels": self.names, "is_by_called": counts.tolist()},
                "right": float(right),
                "within_one_level": float(near),
                "mean_distance": float(error),
                "mean_distance_levels_alike": float(balanced),
            },
            in_brief=lines,
        )


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


def codes_among(labels: Sequence[str] | dict[str, int], levels: Sequence[str]) -> dict[str, int]:
    """Return the position of each label's level; labels of no level are left out.

    A label is a level written the same, or else one of the same value: 1.0 and 1, High and high.

    >>> codes_among(["high", "Low", "2"], ["low", "high"])
    {'high': 1, 'Low': 0}
    """
    exact = {level: code for code, level in enumerate(levels)}
    by_value: dict[Any, list[int]] = {}
    for code, level in enumerate(levels):
        by_value.setdefault(label_value(level), []).append(code)
    codes = {}
    for label in labels:
        same = [exact[label]] if label in exact else by_value.get(label_value(label), [])
        if len(same) == 1:
            codes[label] = same[0]
    return codes


def as_numbers(labels: Sequence[str]) -> list[float] | None:
    """Return labels as numbers, whole ones as such; None when one of them is text.

    >>> as_numbers(["3", "10"]), as_numbers(["0.5", "1"]), as_numbers(["3", "low"])
    ([3, 10], [0.5, 1.0], None)
    """
    if not all(isinstance(label_value(label), float) for label in labels):
        return None
    numbers = [float(label) for label in labels]
    is_whole = all(np.isfinite(number) and number == int(number) for number in numbers)
    return [int(number) for number in numbers] if is_whole else numbers


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
            f"The target {found.column!r} holds numbers and text, {at} for one.",
            "Correct the text or leave it empty (rows without a target are left out); or name all "
            "values from the lowest to the highest with --levels.",
            ErrorKind.LABELS,
        )
    raise InputError(
        f"The target {found.column!r} holds text, {at} for one, which has no order of its own.",
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
    """The numbers are a measurement: say at which values they could be cut."""
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
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    return ", ".join(names[:_MOST_SHOWN]) + more


def _level_word(names: Sequence[str]) -> str:
    return "level" if len(names) == 1 else "levels"
