"""Scores from the highest down, and what lies above each cut between two of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.errors import ErrorKind, counted
from rareclass.folds.dealing import read_times
from rareclass.metrics.intervals import EQUAL, row_units, trials_of_groups
from rareclass.metrics.scored_classes import FloatArray, amount_column, group_codes, split_scores

Test = tuple[float, float]
"""Hits and trials."""
_TINY = np.finfo(float).tiny
WEIGHTED = "weights are not whole"
GROUPED = "rows of a group, or duplicates of a row, are not independent of each other"


class HeldOutCuts(NamedTuple):
    """Rows of weight above 0, the highest score first, and the d + 1 cuts between distinct scores.

    Cut 0 has no row above, cut d all. Weights are copies. Where they are not whole, or the majority
    was thinned (`row_units`), rows count as so many trials of a test as have the same variance
    (Kish): ``(sum w)**2 / sum w**2``; those called, rare ones included, as no more than drawn rows
    of their weight. Rows of groups count as `trials_of_groups` says.
    """

    is_rare: np.ndarray  # shape (n,)
    score: FloatArray  # shape (n,), descending
    weight: FloatArray  # shape (n,)
    rows: np.ndarray  # shape (n,): where each is among the rows given
    ends: np.ndarray  # shape (d + 1,): number of rows above each cut
    rare: FloatArray  # shape (d + 1,): weight of the rare rows above each cut
    majority: FloatArray  # shape (d + 1,)
    ranks: FloatArray  # shape (d + 1,): what the rows above count as, whatever their labels
    trials: FloatArray  # shape (d + 1,): what they count as in a test of precision
    rare_trials: float  # the same of all rare rows
    majority_trials: float
    row_trials: float
    time: np.ndarray | None  # shape (n,): as `read_times` has them
    costs: Mapping[str, FloatArray]  # columns of shape (n,)
    inexact: str  # why tests are not exact; "" where they are
    alike: float = 1.0  # rows that count as one of them, as they are of a group
    group: NDArray[np.intp] | None = None  # shape (n,): code of each row's group

    @classmethod
    def read(
        cls,
        y: ArrayLike,
        scores: ArrayLike,
        sample_weight: ArrayLike | None = None,
        time: Any = None,
        costs: Mapping[str, Any] | None = None,
        groups: Any = None,
        to_count: bool = False,
    ) -> Self:
        """Check the columns and sort them; O(n log n) time, O(n) memory.

        Rows `to_count` alone, no threshold being chosen, may be of one class and of equal scores;
        their columns were checked before.
        """
        if not to_count:
            split_scores(y, scores, sample_weight)  # refuses what cannot be judged
        n_rows = len(np.asarray(scores))
        of_rows = {name: amount_column(each, name, n_rows) for name, each in (costs or {}).items()}
        value, is_rare = np.asarray(scores, float), np.asarray(y) == 1
        weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, float)
        rows = np.argsort(-value, kind="stable")
        rows = rows[weight[rows] > 0]
        value, is_rare, weight = value[rows], is_rare[rows], weight[rows]
        if value[0] == value[-1] and not to_count:
            raise ErrorKind.NOT_REACHABLE.error(
                f"all {counted(len(value), 'score')} are {value[0]:g}: no threshold separates rows "
                "apart.",
                "Look at the model that made them.",
            )
        ends, (_, unit) = steps(value), row_units(is_rare, weight)
        whole = bool((weight == np.round(weight)).all()) and unit == 1.0
        rare, majority = (_above(np.where(is_rare == one, weight, 0.0), ends) for one in (1, 0))
        squares = weight if whole else weight**2
        moments = None if time is None else read_times(time, n_rows)[rows]
        trials = (rare + majority) ** 2 / np.maximum(_above(squares, ends), _TINY)
        if not whole:
            trials = np.minimum(trials, (rare + majority) / _drawn_units(is_rare, weight, ends))
        of_classes = [
            float(weight[each].sum() ** 2 / max(squares[each].sum(), _TINY))
            for each in (is_rare, ~is_rare)
        ]
        held = cls(
            is_rare=is_rare,
            score=value,
            weight=weight,
            rows=rows,
            ends=ends,
            rare=rare,
            majority=majority,
            ranks=trials,
            trials=trials,
            rare_trials=of_classes[0],
            majority_trials=of_classes[1],
            row_trials=float(trials[-1]),
            inexact="" if whole else WEIGHTED,
            time=moments,
            costs={name: each[rows] for name, each in of_rows.items()},
        )
        return held if groups is None else held._in_groups(group_codes(groups, n_rows)[0][rows])

    def _in_groups(self, group: NDArray[np.intp]) -> Self:
        """Return the cuts with tests in which rows of a group, one code each, count together."""
        most, every = self.trials, self.rare + self.majority
        rare, rows = np.where(self.is_rare, self.weight, 0.0), self.weight
        squares, both = (self._products(each, rows, group) for each in (rows, rare))
        share = np.nan_to_num(self.precisions(None))
        spread = self._products(rare, rare, group) - share * (2.0 * both - share * squares)
        is_first = np.zeros(len(group))
        is_first[np.unique(group, return_index=True)[1]] = 1.0
        of_groups = trials_of_groups(every, share, spread, squares, self.above(is_first))
        row_trials = self._trials_of_share(rows, group, float(most[-1]))
        return self._replace(
            ranks=np.minimum(most, every**2 / np.maximum(squares, _TINY)),
            trials=np.minimum(most, of_groups),
            rare_trials=self._trials_of_share(rare, group, self.rare_trials),
            majority_trials=self._trials_of_share(rows - rare, group, self.majority_trials),
            row_trials=row_trials,
            alike=float(most[-1]) / row_trials,
            inexact=GROUPED,
            group=group,
        )

    def _trials_of_share(self, rows: FloatArray, group: NDArray[np.intp], most: float) -> float:
        """Trials that rows of a class, by their weight, count as: the least of all cuts."""
        total = np.bincount(group, rows)
        every = max(float(rows.sum()), _TINY)  # a class may have no row
        squares, share = float(total @ total), self.above(rows) / every
        spread = self._products(rows, rows, group)
        spread += share * (share * squares - 2.0 * self.above(rows * total[group]))
        is_between = (share > EQUAL) & (share < 1.0 - EQUAL)
        n_groups = float((total > 0.0).sum())
        of_groups = trials_of_groups(every, share, spread, squares, n_groups)
        return min(most, float(of_groups[is_between if is_between.any() else ...].min()))

    def _products(self, one: FloatArray, other: FloatArray, group: NDArray[Any]) -> FloatArray:
        """Product of what the rows of a group above a cut have of both amounts, over all groups."""
        of_one, of_other = (running_sums(each, group) for each in (one, other))
        return self.above(one * of_other + other * of_one - one * other)

    @property
    def n_rare(self) -> float:
        """Weight of all rare rows."""
        return float(self.rare[-1])

    @property
    def n_majority(self) -> float:
        """Weight of all others."""
        return float(self.majority[-1])

    @property
    def row_unit(self) -> float:
        """Weight of as many rows as one independent row counts."""
        return (self.n_rare + self.n_majority) / self.row_trials

    def above(self, amounts: FloatArray) -> FloatArray:
        """Sum of what the rows above each cut have of `amounts`, of shape (n,)."""
        return _above(amounts, self.ends)

    def recalls(self) -> FloatArray:
        """Share of the rare rows above each cut; 0 where there are none."""
        return self.rare / max(self.n_rare, _TINY)

    def false_positive_rates(self) -> FloatArray:
        """Share of the majority above each cut."""
        return self.majority / max(self.n_majority, _TINY)

    @property
    def tests(self) -> tuple[tuple[FloatArray, float], tuple[FloatArray, float]]:
        """Rows above each cut and all rows, as a test counts them: rare ones and others."""
        rare, majority = self.rare, self.majority
        if self.rare_trials != self.n_rare:
            rare = self.recalls() * self.rare_trials
        if self.majority_trials != self.n_majority:
            majority = self.false_positive_rates() * self.majority_trials
        return (rare, self.rare_trials), (majority, self.majority_trials)

    def tests_of(self, cut: int) -> tuple[Test, Test, Test]:
        """Hits and trials of precision, recall and false-positive rate above a cut."""
        called, every = float(self.trials[cut]), float(self.rare[cut] + self.majority[cut])
        hits = float(self.rare[cut])
        if called != every:
            hits = hits / every * called
        (rare, of_rare), (majority, of_majority) = self.tests
        of_classes = (float(rare[cut]), of_rare), (float(majority[cut]), of_majority)
        return (hits, called), *of_classes

    def tests_at(self, threshold: float) -> tuple[Test, Test, Test]:
        """Hits and trials of the same above a threshold."""
        return self.tests_of(self.at(threshold))

    def precisions(self, prevalence: float | None) -> FloatArray:
        """Share of rare rows among those above each cut, at the prevalence meant; NaN at cut 0."""
        rare, majority = self.shares(prevalence)
        with np.errstate(invalid="ignore"):
            return rare / (rare + majority)

    def shares(self, prevalence: float | None) -> tuple[FloatArray, FloatArray]:
        """Rare rows and others above each cut, as shares of all rows at the prevalence meant."""
        if prevalence is None:
            prevalence = self.n_rare / (self.n_rare + self.n_majority)
        return prevalence * self.recalls(), (1.0 - prevalence) * self.false_positive_rates()

    def threshold(self, cut: int) -> float:
        """A number below every score above the cut and not below any other."""
        return threshold_of_cut(self.score, int(self.ends[cut]))

    def at(self, threshold: Any) -> Any:
        """Return the cut that has the rows above a threshold, or each of several, above."""
        n_above = np.searchsorted(-self.score, np.negative(threshold), side="left")
        return np.searchsorted(self.ends, n_above)

    def widest(self, equal: np.ndarray) -> int:
        """Of the cuts that are equally good, the one in the widest gap; among those the highest.

        The gap of a cut lies between the scores on both sides; there is none at either end.
        """
        within = self.ends[1:-1]
        inner = equal[(equal > 0) & (equal <= len(within))]
        if not len(inner):
            return int(equal[0])
        return 1 + widest_gap(self.score[within], self.score[within - 1], inner - 1)


def running_sums(amounts: FloatArray, group: NDArray[Any]) -> FloatArray:
    """Sums of amounts down to each row and with it, each within the row's group; O(n log n)."""
    order = np.argsort(group, kind="stable")
    sums, total = np.empty(len(group)), np.cumsum(amounts[order])
    sums[order] = total - (total - amounts[order])[np.searchsorted(group[order], group[order])]
    return sums


def _drawn_units(is_rare: NDArray[np.bool_], weight: FloatArray, ends: np.ndarray) -> FloatArray:
    """Weight of a drawn majority row above each cut; of the first below it where none is above."""
    others, n = np.where(is_rare, 0.0, weight), len(weight)
    place = np.where(is_rare, n, np.arange(n))
    first = np.append(np.minimum.accumulate(place[::-1])[::-1], n)[ends]
    above, squares = _above(others, ends), _above(others**2, ends)
    return np.where(above > 0.0, squares / np.maximum(above, _TINY), np.append(weight, 1.0)[first])


def _above(weight: FloatArray, ends: np.ndarray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(weight)])[ends]


def widest_gap(lower: FloatArray, upper: FloatArray, among: np.ndarray) -> int:
    """Return the widest of some gaps between scores; of equally wide ones the highest.

    >>> widest_gap(np.array([0.0, 2.0, 5.0]), np.array([2.0, 4.0, 6.0]), np.arange(3))
    1
    """
    with np.errstate(over="ignore"):
        width = upper[among] - lower[among]
    return int(among[np.lexsort((upper[among], width))[-1]])


def steps(ordered: FloatArray) -> np.ndarray:
    """Return the cuts of ordered scores: how many come before each distinct one, and all."""
    new = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1  # no differences: two may be infinite
    return np.concatenate([[0], new, [len(ordered)]])


def threshold_of_cut(scores: FloatArray, n_above: int, lowest: float = -np.inf) -> float:
    """Return a threshold that the first scores are above, of scores from the highest down.

    `lowest` is the threshold that all are above.
    """
    below = float(scores[n_above]) if n_above < len(scores) else lowest
    return between(below, float(scores[n_above - 1])) if n_above else below


def between(low: float, high: float) -> float:
    """Return a number t with ``low <= t < high``, the midpoint where floats have one."""
    middle = low / 2 + high / 2
    return middle if low <= middle < high else low
