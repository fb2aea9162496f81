"""Decisions of a model: from scores to a rare class and all other rows, or to levels in order.

Both kinds of decision give codes: code k is called where ``thresholds[k - 1] < score`` and
``score <= thresholds[k]``. `decision_of` chooses the kind by the target.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.decide.calibration import weights_at_prevalence
from rareclass.decide.chosen_threshold import precision_at
from rareclass.decide.threshold import called_class
from rareclass.encoding.target import label_counts, unknown_labels
from rareclass.errors import ErrorKind, counted, first_names
from rareclass.findings import Finding, FindingKind, TableWarning, warn
from rareclass.labels.spelling import one_spelling
from rareclass.metrics import Interval, interval
from rareclass.metrics.intervals import exact_interval, sum_interval, widened
from rareclass.model.facts import (
    MOST_CLASSES,
    ClassEstimate,
    RankingEstimate,
    RareClassScores,
    ScoredRows,
)
from rareclass.model.targets import LevelFacts, RareClassFacts, TargetFacts, as_numbers
from rareclass.stored import plain_data
from rareclass.table_block import TableBlock

# Precision among this many top rows is shown as well when there are enough rows.
SECOND_TOP = 100
_MOST_SHOWN = 5
# A random order of more levels has a VUS below 0.001: three decimals would tell nothing.
_MOST_LEVELS_OF_VUS = 6
# Of the intervals of precision and recall.
_LEVEL = 0.95
# The average precision at a share of rare rows that is further below that of the rows is not known:
# the few majority rows at the top decide it (docs/decisions/0005).
_MOST_TIMES = 3.0
_AREAS = {"roc_auc": "AUC", "average_precision": "average precision"}


@dataclass(frozen=True)
class Confusion:
    """Rows counted by their class and the class that they are called."""

    title: str  # what decides
    is_names: list[str]
    called_names: list[str]
    counts: NDArray[Any]  # (n_is, n_called), copies included
    lines: list[str]  # what the counts come to
    numbers: dict[str, Any]  # the same as plain data
    in_brief: list[str] = field(default_factory=list)  # what ``rareclass fit`` prints

    def block(self, is_narrow: bool = False) -> TableBlock:
        """Return the table of the counts, on a narrow screen with shorter heads."""
        heads = ("called", *self.called_names)
        if not is_narrow:
            heads = ("", *(f"called {name}" for name in self.called_names))
        lines = zip(self.is_names, self.counts, strict=True)
        rows = ((f"is {name}", *(f"{each:,.0f}" for each in counts)) for name, counts in lines)
        return TableBlock(self.title, heads, tuple(rows))

    def pairs_block(self) -> TableBlock:
        """Return a table of the rows called another class, the largest counts first."""
        wrong = self.counts * ~np.eye(len(self.counts), dtype=bool)
        order = np.argsort(-wrong, axis=None, kind="stable")[: np.count_nonzero(wrong)]
        found = [divmod(place, len(wrong)) for place in order.tolist()]
        columns = {
            "Is": [self.is_names[i] for i, _ in found],
            "Called": [self.called_names[k] for _, k in found],
            "Rows": [f"{wrong[pair]:,.0f}" for pair in found],
            "Share of the class": [f"{wrong[i, k] / self.counts[i].sum():.1%}" for i, k in found],
        }
        none = "" if found else "No row is called another class."
        return TableBlock.of(f"{self.title}, the most frequent errors", columns, none)


@dataclass(frozen=True)
class DecisionRow:
    """Rows called rare in one way, and how often that was right, with 95 % intervals.

    Those of a threshold are exact (Clopper-Pearson). Those of the k highest are Wilson's for the
    recall in ``n_rare`` trials, and the same in units of the others, as k and the classes are given
    (`rareclass.metrics.intervals`).
    """

    name: str
    alerts: int
    precision: Interval  # NaN where no row was called
    recall: Interval
    false_positive_rate: Interval

    def as_plain_data(self) -> dict[str, Any]:
        """Return the row as dictionaries and numbers; no precision is null."""
        plain: dict[str, Any] = plain_data(self)
        for name in ("precision", "recall", "false_positive_rate"):
            if np.isnan(plain[name]["value"]):
                plain[name]["value"] = None
        return plain


def decisions_block(head: str, rows: Sequence[DecisionRow]) -> TableBlock:
    """Return a table of what comes of calling rows rare, with 95 % intervals."""
    names = ["above threshold" if row.name == "threshold" else row.name for row in rows]
    columns = {head: names, "Rows": [f"{row.alerts:,}" for row in rows]}
    for name, key, digits in (
        ("Precision", "precision", ".3f"),
        ("Recall", "recall", ".3f"),
        ("False-positive rate", "false_positive_rate", ".4f"),
    ):
        shares = [getattr(row, key) for row in rows]
        columns[name] = [
            "no alerts" if np.isnan(share.value) else share.text(digits) for share in shares
        ]
    return TableBlock.of("", columns)


def decision_row(
    name: str, rows: ScoredRows, threshold: float, level: float = _LEVEL
) -> DecisionRow:
    """Return the shares of rows above a threshold, with exact intervals. O(n), with groups sorted.

    Rows of a group count together, as where a threshold is chosen.
    """
    tests = rows.tests_at(threshold)
    alerts = int((rows.scores > threshold).sum())
    return DecisionRow(name, alerts, *(exact_interval(*each, level) for each in tests))


class RareDecision:
    """Code 1, the rare class, above the threshold; code 0 elsewhere.

    Of several rare classes a row is called one by its own probabilities: `called_class`.
    """

    column: ClassVar[str] = "called_rare"  # of decisions in a file of scores
    n_codes = 2

    def __init__(
        self,
        facts: RareClassFacts,
        thresholds: NDArray[np.float64],
        class_thresholds: Mapping[str, float] | None = None,
    ) -> None:
        self.thresholds = thresholds
        self._facts = facts
        self.names = [facts.rest_label, facts.rare_label]
        self.classes = facts.rare_labels  # of several rare classes; else empty
        of_class = class_thresholds or {}
        self.class_thresholds = np.array([of_class.get(name, np.inf) for name in self.classes])

    def decide(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the code that each score is called."""
        return (scores > self.thresholds[0]).astype(np.intp)

    def called_class(self, probability: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the position of the class that each row is called, -1 for the rest.

        `probability` are those of `classes`, at the share of rare rows of training. A class
        without a threshold is never called.
        """
        return called_class(probability, self.class_thresholds)

    def cells(self, called: NDArray[np.intp]) -> pl.Series:
        """Return codes as a file of scores has them: truth values."""
        return pl.Series(self.column, called == 1)

    def rules(self) -> list[str]:
        """Return nothing: a threshold of scores says little."""
        return []

    def sentence(self, n_called: NDArray[np.intp]) -> str:
        """Say how many rows are above the threshold; `n_called` counts the rows of each code."""
        n_rows, n_rare = int(n_called.sum()), int(n_called[1])
        return (
            f"Scored {counted(n_rows, 'row')}; {n_rare:,} ({n_rare / n_rows:.2%}) "
            f"{'is' if n_rare == 1 else 'are'} called rare "
            f"({self._facts.in_words})."
        )

    def codes(self, labels: pl.Series, file: str) -> NDArray[np.int16]:
        """Return the codes of labels of a new file as text, however they are written; -1 if empty.

        Raises `InputError` where all rows are of one class. Warns of labels that training had not.
        """
        one_spelling(label_counts(labels.drop_nulls()))  # for its warning
        codes = self._facts.codes(labels)
        has_rare, has_rest = (codes == 1).any(), (codes == 0).any()
        if not has_rare or not has_rest:
            share = "every" if has_rare else "no"
            raise ErrorKind.LABELS.error(
                f"{file}: {share} row has the target value {self._facts.rare_label!r}.",
                "Both classes are needed to measure a ranking.",
            )
        known = {*self._facts.label_counts} - {self._facts.rare_label}
        others = labels.filter(pl.Series(codes == 0))
        unknown = unknown_labels(others, known) if known else {}
        if unknown:
            shown = [f"{label} ({n:,})" for label, n in unknown.items()]
            warn(
                "target values not seen in training count as the majority: "
                f"{first_names(shown, _MOST_SHOWN)}.",
                TableWarning,
                Finding(FindingKind.UNKNOWN_LABELS, {"rows": unknown}),
            )
        return codes

    def estimate(self, rows: ScoredRows, prevalence: float | None = None) -> RankingEstimate:
        """Return AUC, average precision and precision at k, with 95 % intervals.

        With a `prevalence` also the average precision where that share of the rows is rare, unless
        it is far below that of these rows; of several classes also AUC and average precision of
        each against all other rows.
        """
        _, scores, weight, _, classes, groups = rows
        rare = rows.y == 1
        measured = partial(interval, y=rare, scores=scores, groups=groups)
        counts = np.ones(len(rare)) if weight is None else weight
        n_rows, n_rare = float(counts.sum()), float(counts[rare].sum())
        measures = {name: measured(each, sample_weight=weight) for each, name in _AREAS.items()}
        first = max(1, round(n_rare))
        for k in sorted({first, SECOND_TOP}) if n_rows >= 10 * SECOND_TOP else [first]:
            measures[f"precision at {k}"] = measured("precision_at_k", sample_weight=weight, k=k)
        if prevalence is not None and n_rare <= _MOST_TIMES * prevalence * n_rows:
            there = weights_at_prevalence(rare, weight, prevalence)
            name = f"average precision at {_percent(prevalence)} rare"
            measures[name] = measured("average_precision", sample_weight=there)
        of_classes = () if classes is None else self._of_classes(classes, weight, groups)
        if len(of_classes) > 1:
            precisions = [each.average_precision for each in of_classes]
            measures["mean average precision of classes"] = _mean_of(precisions)
        return RankingEstimate(measures, n_rows, n_rare, of_classes)

    def _of_classes(
        self, classes: RareClassScores, weight: NDArray[np.float64] | None, groups: Any
    ) -> tuple[ClassEstimate, ...]:
        """Return the measures of each class that has rows, against all other rows."""
        found = []
        for k, name in enumerate(self.classes):
            of_class, probability = classes.which == k, classes.probability[:, k]
            if not of_class.any() or of_class.all():
                continue
            n_rows = float(of_class.sum() if weight is None else weight[of_class].sum())
            measured = partial(interval, y=of_class, scores=probability, groups=groups)
            of_each = (measured(each, sample_weight=weight) for each in _AREAS)
            found.append(ClassEstimate(name, n_rows, *of_each))
        return tuple(found)

    def confusion(
        self, rows: ScoredRows, prevalence: float | None = None, stretch: float = 1.0
    ) -> Confusion:
        """Return the four counts, precision and recall; of several classes a row and column each.

        Rows are called a class by the thresholds of the classes. Intervals are `stretch` times as
        wide as for the rows as they are. With a `prevalence` also the precision where that share of
        the rows is rare.
        """
        y, scores, weight, _, classes, _ = rows
        called, rare = self.decide(scores), (y == 1).astype(np.intp)
        counts = np.bincount(2 * rare + called, weight, 4).reshape(2, 2)[::-1, ::-1]
        (true_rare, missed_rare), (false_rare, true_rest) = counts
        n_called = true_rare + false_rare
        right, found, false = rows.tests_at(self.thresholds[0])
        precision, recall = None, widened(exact_interval(*found, _LEVEL), stretch)
        if n_called:
            precision = widened(exact_interval(*right, _LEVEL), stretch)
        shown = "none called" if precision is None else precision.text()
        measures = f"precision {shown}, recall {recall.text()}"
        brief = [f"Called rare: {counted(round(n_called), 'row')}, {measures}"]
        if prevalence is not None and n_called:
            there = widened(precision_at(found, false, _LEVEL, prevalence), stretch)
            brief.append(f"Where {_percent(prevalence)} are rare: precision {there.text()}")
        lines = [measures[0].upper() + measures[1:]]
        is_names, names = [self._facts.rare_label, self._facts.rest_label], ["rare", "majority"]
        numbers: dict[str, Any] = {}
        title = "At the model's threshold"
        if classes is not None:
            title = "At the thresholds of the classes"
            counts, said = self._called_classes(classes, weight)
            lines, brief = [*lines, said], [*brief, said]
            is_names, names = [*self.classes, self._facts.rest_label], [*self.classes, "majority"]
            numbers = {"confusion": {"classes": is_names, "is_by_called": counts.tolist()}}
        numbers["at_threshold"] = {
            "true_rare": int(true_rare),
            "false_rare": int(false_rare),
            "missed_rare": int(missed_rare),
            "true_rest": int(true_rest),
            "precision": None if precision is None else precision.value,
            "recall": recall.value,
        }
        numbers["intervals_at_threshold"] = {
            "precision": None if precision is None else list(precision[1:]),
            "recall": list(recall[1:]),
        }
        return Confusion(title, is_names, names, counts, lines, numbers, brief)

    def _called_classes(
        self, classes: RareClassScores, weight: NDArray[np.float64] | None
    ) -> tuple[NDArray[Any], str]:
        """Count rows by their class and the class that they are called; the majority comes last."""
        n = len(self.classes)
        called = self.called_class(classes.probability)
        of_row, called = (
            np.where(each < 0, n, each).astype(np.intp) for each in (classes.which, called)
        )
        counts = np.bincount((n + 1) * of_row + called, weight, (n + 1) ** 2)
        counts = counts.reshape(n + 1, n + 1)
        found, own = counts[:n, :n].sum(), counts[:n, :n].trace()
        said = f"Of {round(found):,} rare rows called a class, {round(own):,} are called their own"
        return counts, said


def _mean_of(intervals: Sequence[Interval]) -> Interval:
    """Return the mean of estimates, with an interval as of independent ones."""
    value, low, high = (each / len(intervals) for each in sum_interval(intervals))
    return Interval(value, max(low, 0.0), min(high, 1.0))


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g}%"


class LevelDecision:
    """Codes are positions of levels, the lowest first; methods are those of `RareDecision`."""

    column: ClassVar[str] = "level"

    def __init__(self, facts: LevelFacts, thresholds: NDArray[np.float64]) -> None:
        self.thresholds = thresholds
        self._facts = facts
        self.names = list(facts.levels)
        self.n_codes = len(self.names)

    def decide(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the position of the level that each score is called."""
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
        lines = [f"Levels by score: {first_names(named, MOST_CLASSES)}"]
        never = [self.names[k] for k in range(self.n_codes) if k not in called]
        if never:
            lines.append(f"Levels that no score is called: {first_names(never, MOST_CLASSES)}")
        return lines

    def sentence(self, n_called: NDArray[np.intp]) -> str:
        """Say how many were called each level."""
        each = zip(self.names, n_called, strict=True)
        named = first_names([f"{name} ({n:,})" for name, n in each if n], MOST_CLASSES)
        return f"Scored {counted(int(n_called.sum()), 'row')}; rows called each level: {named}."

    def codes(self, labels: pl.Series, file: str) -> NDArray[np.int16]:
        """Return positions of levels; raises `InputError` as well on a label of no level."""
        codes = self._facts.codes(labels)
        unknown = np.flatnonzero((codes < 0) & labels.is_not_null().to_numpy())
        if len(unknown):
            row = int(unknown[0])
            raise ErrorKind.LABELS.error(
                f"{file}: the target value {labels[row]!r} at row {row + 1} is not among the "
                f"levels of the model: {', '.join(self.names)}.",
                "Correct it, or leave it empty: rows without a target are left out.",
            )
        present = np.unique(codes[codes >= 0])
        if len(present) < 2:
            held = f"only {self.names[present[0]]!r}" if len(present) else "nothing"
            raise ErrorKind.LABELS.error(
                f"{file}: the target holds {held}.",
                "Rows of two levels are needed to measure a ranking.",
            )
        return codes

    def estimate(self, rows: ScoredRows, prevalence: float | None = None) -> RankingEstimate:
        """Return MAUC, VUS of few levels, and the AUC above each level that has rows above it."""
        y, scores, weight, *_ = rows
        measured = partial(interval, scores=scores, sample_weight=weight, groups=rows.group)
        of_levels = partial(measured, y=y, levels=range(self.n_codes))
        measures = {"MAUC": of_levels("mauc")}
        present = np.unique(y)
        if 2 < len(present) <= _MOST_LEVELS_OF_VUS:
            measures["VUS"] = of_levels("vus")
        if len(present) > 2:  # of two levels it is the MAUC
            for code in present[:-1]:
                measures[f"AUC above {self.names[code]}"] = measured("roc_auc", y=y > code)
        return RankingEstimate(measures, float(len(y) if weight is None else weight.sum()))

    def confusion(
        self, rows: ScoredRows, prevalence: float | None = None, stretch: float = 1.0
    ) -> Confusion:
        """Return rows by level and called level, and how far these are apart: no intervals."""
        y, scores, weight, *_ = rows
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
            f"Right level: {right:.1%} of the rows{within}",
            f"Mean distance to the right level: {error:.3f}; {balanced:.3f} with each level "
            "weighted alike",
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


Decision = RareDecision | LevelDecision


def decision_of(
    target: TargetFacts, thresholds: NDArray, class_thresholds: Mapping[str, float] | None = None
) -> Decision:
    """Return what decides by these thresholds for a model of this target.

    `class_thresholds` are those of several rare classes by name.
    """
    if isinstance(target, RareClassFacts):
        return RareDecision(target, thresholds, class_thresholds)
    return LevelDecision(target, thresholds)


def refuse_levels(decision: Decision, what: str, remedy: str) -> None:
    """Raise `InputError` where a model for levels is asked for what needs a rare class."""
    if isinstance(decision, LevelDecision):
        raise ErrorKind.UNSUPPORTED.error(
            f"{what} is for models of a rare class, and this model is for ordered levels.", remedy
        )
