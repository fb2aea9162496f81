"""One label is the rare class and all others are the rest: called rare above a threshold."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.target import RareClass, is_rare, rare_class_among, unknown_labels
from rareclass.errors import ErrorKind, InputError, counted
from rareclass.findings import Finding, FindingKind, warn
from rareclass.metrics import (
    Interval,
    average_precision_interval,
    precision_at_k_interval,
    roc_auc_interval,
)
from rareclass.metrics.interval import exact_interval
from rareclass.model.facts import RankingEstimate, RareClassFacts, as_measure
from rareclass.model.target import Confusion, FoundLabels
from rareclass.tables import TableWarning

# Precision among this many top rows is shown as well when there are enough rows.
SECOND_TOP = 100
# Fewer rare rows than this make for rough intervals.
_FEW_ROWS = 10
_MOST_SHOWN = 5
# Of the intervals of precision and recall.
_LEVEL = 0.95


@dataclass(frozen=True)
class RareTarget:
    """Code 1 is the rare class, code 0 the rest; see `rareclass.model.target.Target`."""

    column: str
    rare_class: RareClass

    @property
    def counts(self) -> dict[str, int]:
        """Rows of every label."""
        return self.rare_class.counts

    @property
    def code_of(self) -> dict[str, int]:
        """1 for the rare label, 0 for others."""
        return {label: int(label == self.rare_class.label) for label in self.counts}

    @property
    def n_codes(self) -> int:
        """The rest and the rare class."""
        return 2

    @property
    def majority(self) -> int:
        """All that is not rare, even where it is less than half of the rows."""
        return 0

    @property
    def n_rare(self) -> int:
        """Rare rows, copies included."""
        return self.counts[self.rare_class.label]

    def description(self) -> list[str]:
        """Return the rare class and the others, with their rows."""
        rare = self.rare_class
        others = [f"{label} ({rare.counts[label]:,})" for label in rare.others[:_MOST_SHOWN]]
        n_more = len(rare.others) - _MOST_SHOWN
        more = f" and {n_more} more" if n_more > 0 else ""
        share = self.n_rare / sum(self.counts.values())
        return [
            f"Rare class: {self.column} = {rare.label}, "
            f"{counted(self.n_rare, 'row')} ({share:.2%})",
            f"Rest: {', '.join(others)}{more}",
        ]

    def notes(self) -> list[str]:
        """Return a doubt where the rare class is not rare."""
        if 2 * self.n_rare > sum(self.counts.values()):
            return [f"{self.rare_class.label} is more than half of the rows: is it the rare class?"]
        return []

    def notes_on_held_out(self, y: NDArray[np.int16], estimate: RankingEstimate) -> list[str]:
        """Say when the intervals stand on few rare rows, or on copies."""
        n_distinct, n_rare = int((y == 1).sum()), estimate.n_rare
        assert n_rare is not None
        notes = []
        if n_distinct < _FEW_ROWS:
            notes.append(
                f"Rare rows held out: only {n_distinct}, so the intervals are wide and rough."
                if round(n_rare) == n_distinct
                else f"Distinct rare rows held out: only {n_distinct}, so the intervals are rough."
            )
        if round(n_rare) > n_distinct:
            notes.append(
                f"The {counted(n_rare, 'rare row')} held out are copies of {n_distinct:,} distinct "
                "ones. The intervals take every copy as a row of its own, so they are too short "
                "unless copies are independent observations; --copies drop counts distinct rows."
            )
        return notes

    def compared_with(self, y: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Return the majority."""
        return y == 0

    def facts(self) -> RareClassFacts:
        """Return the labels of the rare class and of the rest, and their rows."""
        rare = self.rare_class
        return RareClassFacts(
            self.column, rare.label, rare.rest_label, self.n_rare, dict(self.counts)
        )


def rare_target(found: FoundLabels, positive: str | None) -> RareTarget:
    """Return the target whose rare class is `positive`, else the rarer one of two.

    Raises `InputError` as `rare_class_among`.
    """
    return RareTarget(found.column, rare_class_among(found.counts, positive))


class RareDecision:
    """Code 1 above the threshold; see `rareclass.model.target.Decision`."""

    column: ClassVar[str] = "called_rare"
    n_codes = 2

    def __init__(self, facts: RareClassFacts, thresholds: NDArray[np.float64]) -> None:
        self.thresholds = thresholds
        self._rare, self._rest = facts.rare_label, facts.rest_label
        self.names = [self._rest, self._rare]
        self._known = facts.label_counts

    def decide(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return 1 above the threshold."""
        return (scores > self.thresholds[0]).astype(np.intp)

    def cells(self, called: NDArray[np.intp]) -> pl.Series:
        """Return truth values."""
        return pl.Series(self.column, called == 1)

    def rules(self) -> list[str]:
        """Return nothing: a threshold of scores says little."""
        return []

    def sentence(self, n_called: NDArray[np.intp]) -> str:
        """Say how many are above the threshold."""
        n_rows, n_rare = int(n_called.sum()), int(n_called[1])
        return (
            f"Scored {counted(n_rows, 'row')}; {n_rare:,} ({n_rare / n_rows:.2%}) "
            f"{'is' if n_rare == 1 else 'are'} above the threshold "
            f"for {self._rare}."
        )

    def codes(self, labels: pl.Series, file: str) -> NDArray[np.intp]:
        """Return 1 for the rare label, however the new file writes it; tell of unknown ones."""
        labelled = labels.is_not_null().to_numpy()
        given = labels.filter(pl.Series(labelled))
        rare = is_rare(given, self._rare, self._known)
        if not rare.any() or rare.all():
            share = "every" if len(rare) and rare.all() else "no"
            raise InputError(
                f"{file}: {share} row has the target value {self._rare!r}.",
                "Both classes are needed to measure a ranking.",
                ErrorKind.LABELS,
            )
        self._tell_unknown(given.filter(pl.Series(~rare)))
        codes = np.full(len(labels), -1, dtype=np.intp)
        codes[labelled] = rare
        return codes

    def _tell_unknown(self, rest: pl.Series) -> None:
        """Warn of labels that count as the rest and were none of it in training."""
        if not self._known:
            return
        unknown = unknown_labels(rest, set(self._known) - {self._rare})
        if unknown:
            shown = [f"{label} ({n:,})" for label, n in unknown.items()][:_MOST_SHOWN]
            more = ", ..." if len(unknown) > _MOST_SHOWN else ""
            warn(
                f"target values that training had not count as the rest: {', '.join(shown)}{more}.",
                TableWarning,
                Finding(FindingKind.UNKNOWN_LABELS, {"rows": unknown}),
            )

    def estimate(
        self,
        y: NDArray[np.integer],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
    ) -> RankingEstimate:
        """Return AUC, average precision and precision at k."""
        return estimate_rare(y == 1, scores, weight)

    def confusion(
        self,
        y: NDArray[np.integer],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
    ) -> Confusion:
        """Return the four counts, precision and recall."""
        called, rare = self.decide(scores), (y == 1).astype(np.intp)
        counts = np.bincount(2 * rare + called, weight, 4).reshape(2, 2)[::-1, ::-1]
        (true_rare, missed_rare), (false_rare, true_rest) = counts
        n_called = true_rare + false_rare
        precision = exact_interval(true_rare, n_called, _LEVEL) if n_called else None
        recall = exact_interval(true_rare, true_rare + missed_rare, _LEVEL)
        shown = "none called" if precision is None else _with_bounds(precision)
        measures = f"precision {shown}, recall {_with_bounds(recall)}"
        return Confusion(
            "At the model's threshold",
            [self._rare, self._rest],
            ["rare", "rest"],
            counts,
            [measures[0].upper() + measures[1:]],
            {
                "at_threshold": {
                    "true_rare": int(true_rare),
                    "false_rare": int(false_rare),
                    "missed_rare": int(missed_rare),
                    "true_rest": int(true_rest),
                    "precision": None if precision is None else precision.value,
                    "recall": recall.value,
                },
                "intervals_at_threshold": {
                    "precision": None if precision is None else list(precision[1:]),
                    "recall": list(recall[1:]),
                },
            },
            [f"Called rare: {counted(round(n_called), 'row')}, {measures}"],
        )


def _with_bounds(interval: Interval) -> str:
    return f"{interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def estimate_rare(
    rare: NDArray[np.bool_],
    scores: NDArray[np.float64],
    weight: NDArray[np.float64] | None = None,
) -> RankingEstimate:
    """Return AUC, average precision and precision at k, with 95 % intervals."""
    counts = np.ones(len(rare)) if weight is None else weight
    n_rows, n_rare = float(counts.sum()), float(counts[rare].sum())
    measures = [
        as_measure("AUC", roc_auc_interval(rare, scores, sample_weight=weight)),
        as_measure(
            "average precision", average_precision_interval(rare, scores, sample_weight=weight)
        ),
    ]
    for k in _tops(n_rows, n_rare):
        interval = precision_at_k_interval(rare, scores, k, sample_weight=weight)
        measures.append(as_measure(f"precision at {k}", interval))
    return RankingEstimate(measures, n_rows, n_rare)


def _tops(n_rows: float, n_rare: float) -> list[int]:
    first = max(1, round(n_rare))
    return sorted({first, SECOND_TOP}) if n_rows >= 10 * SECOND_TOP else [first]
