"""Held-out scores from the highest down, and what lies above each cut between two of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from rareclass.decide.threshold import steps, threshold_of_cut, widest_gap
from rareclass.errors import ErrorKind, InputError, counted
from rareclass.metrics.scored_classes import FloatArray, amount_column, split_scores


class HeldOutCuts(NamedTuple):
    """Rows of weight above 0, the highest score first, and the d + 1 cuts between distinct scores.

    Cut 0 has no row above, cut d all. Weights are copies. Where they are not whole, rows count as
    so many trials of a test as have the same variance (Kish): ``(sum w)**2 / sum w**2``.
    """

    is_rare: np.ndarray  # shape (n,)
    score: FloatArray  # shape (n,), descending
    weight: FloatArray  # shape (n,)
    rows: np.ndarray  # shape (n,): where each is among the rows given
    ends: np.ndarray  # shape (d + 1,): number of rows above each cut
    rare: FloatArray  # shape (d + 1,): weight of the rare rows above each cut
    majority: FloatArray  # shape (d + 1,)
    trials: FloatArray  # shape (d + 1,): what the rows above count as in a test
    rare_trials: float  # the same of all rare rows
    majority_trials: float
    whole: bool  # whether weights are whole numbers
    time: np.ndarray | None  # shape (n,): as `read_times` has them
    costs: Mapping[str, FloatArray]  # columns of shape (n,)

    @classmethod
    def read(
        cls,
        y: ArrayLike,
        scores: ArrayLike,
        sample_weight: ArrayLike | None = None,
        time: Any = None,
        costs: Mapping[str, Any] | None = None,
    ) -> Self:
        """Check the columns and sort them; O(n log n) time, O(n) memory."""
        split_scores(y, scores, sample_weight)  # refuses what cannot be judged
        n_rows = len(np.asarray(scores))
        of_rows = {name: amount_column(each, name, n_rows) for name, each in (costs or {}).items()}
        value, is_rare = np.asarray(scores, float), np.asarray(y) == 1
        weight = np.ones(len(value)) if sample_weight is None else np.asarray(sample_weight, float)
        rows = np.argsort(-value, kind="stable")
        rows = rows[weight[rows] > 0]
        value, is_rare, weight = value[rows], is_rare[rows], weight[rows]
        if value[0] == value[-1]:
            raise InputError(
                f"all {counted(len(value), 'score')} are {value[0]:g}: no threshold separates rows "
                "apart.",
                "Look at the model that made them.",
                ErrorKind.NOT_REACHABLE,
            )
        ends = steps(value)
        whole = bool((weight == np.round(weight)).all())
        rare, majority = (_above(np.where(is_rare == one, weight, 0.0), ends) for one in (1, 0))
        squares = weight if whole else weight**2
        moments = None
        if time is not None:
            # Not at the top: scikit-learn takes seconds to load, and other rules do without.
            from rareclass.folds.dealing import read_times

            moments = read_times(time, n_rows)[rows]
        return cls(
            is_rare=is_rare,
            score=value,
            weight=weight,
            rows=rows,
            ends=ends,
            rare=rare,
            majority=majority,
            trials=(rare + majority) ** 2 / np.maximum(_above(squares, ends), np.finfo(float).tiny),
            rare_trials=float(weight[is_rare].sum() ** 2 / squares[is_rare].sum()),
            majority_trials=float(weight[~is_rare].sum() ** 2 / squares[~is_rare].sum()),
            whole=whole,
            time=moments,
            costs={name: each[rows] for name, each in of_rows.items()},
        )

    @property
    def n_rare(self) -> float:
        """Weight of all rare rows."""
        return float(self.rare[-1])

    @property
    def n_majority(self) -> float:
        """Weight of all others."""
        return float(self.majority[-1])

    def above(self, amounts: FloatArray) -> FloatArray:
        """Sum of what the rows above each cut have of `amounts`, of shape (n,)."""
        return _above(amounts, self.ends)

    def recalls(self) -> FloatArray:
        """Share of the rare rows above each cut."""
        return self.rare / self.n_rare

    def false_positive_rates(self) -> FloatArray:
        """Share of the majority above each cut."""
        return self.majority / self.n_majority

    @property
    def tests(self) -> tuple[tuple[FloatArray, float], tuple[FloatArray, float]]:
        """Rows above each cut and all rows, as a test counts them: rare ones and others."""
        recall, fpr = self.recalls(), self.false_positive_rates()
        majority = (fpr * self.majority_trials, self.majority_trials)
        return (recall * self.rare_trials, self.rare_trials), majority

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

    def at(self, threshold: float) -> int:
        """Return the cut that has the rows above a threshold above."""
        n_above = int(np.searchsorted(-self.score, -threshold, side="left"))
        return int(np.searchsorted(self.ends, n_above))

    def widest(self, equal: np.ndarray) -> int:
        """Of the cuts that are equally good, the one in the widest gap; among those the highest.

        The gap of a cut lies between the scores on both sides; there is none at either end.
        """
        within = self.ends[1:-1]
        inner = equal[(equal > 0) & (equal <= len(within))]
        if not len(inner):
            return int(equal[0])
        return 1 + widest_gap(self.score[within], self.score[within - 1], inner - 1)


def _above(weight: FloatArray, ends: np.ndarray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(weight)])[ends]
