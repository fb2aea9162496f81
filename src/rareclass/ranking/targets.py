"""Targets of a ranking: rare rows above the majority, or levels above lower ones.

A target tells the machines everything that depends on the kind of labels: which rows are held,
the loss between rows of different labels, how a ranking is measured and where thresholds lie.
Everything else is the same for both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rareclass.decide.calibration import Calibration, LevelCalibration
from rareclass.decide.threshold import threshold_between, thresholds_of_codes
from rareclass.errors import ErrorKind
from rareclass.estimators.estimator import learn_calibration, learn_level_calibration
from rareclass.folds.score_scale import MajorityScores, match_majority
from rareclass.labels.spelling import plain
from rareclass.labels.two_classes import Labels
from rareclass.metrics import mauc, roc_auc
from rareclass.metrics.held_out_cuts import HeldOutCuts
from rareclass.metrics.scored_classes import ScoredClasses
from rareclass.ranking.losses import LabellingLoss, Loss
from rareclass.ranking.losses.ordinal import OrdinalLoss


class RankingScores(NamedTuple):
    """Training rows, or some of them: their labels, weights, and a column of scores a solution.

    ``held_code`` of shape (n_held,) and ``majority_code`` are what measures take as y; weights
    are None where every row counts once.
    """

    held: np.ndarray
    majority: np.ndarray
    held_code: np.ndarray
    majority_code: Any
    held_weight: np.ndarray | None
    majority_weight: np.ndarray | None

    @property
    def y(self) -> np.ndarray:
        """True for rare rows, or positions of levels: those held first."""
        rest = np.full(len(self.majority), self.majority_code)
        return np.concatenate([self.held_code, rest])

    @property
    def scores(self) -> np.ndarray:
        """Scores of shape (n_rows, n_solutions), the rows held first."""
        return np.concatenate([self.held, self.majority])

    @property
    def weight(self) -> np.ndarray | None:
        """Weight of every row."""
        if self.held_weight is None or self.majority_weight is None:
            return None
        return np.concatenate([self.held_weight, self.majority_weight])

    def column(self, k: int) -> "RankingScores":
        """The same rows with the scores of one solution."""
        one = slice(k, k + 1)  # a view: there may be millions of rows
        return self._replace(held=self.held[:, one], majority=self.majority[:, one])

    def joined(self, others: "list[RankingScores]") -> "RankingScores":
        """Append other rows of the same target."""
        parts: list[Any] = [self, *others]
        names = ["held", "majority", "held_code", "held_weight", "majority_weight"]
        if self.held_weight is None:
            names = names[:3]
        together = {
            name: np.concatenate([part._asdict()[name] for part in parts]) for name in names
        }
        return self._replace(**together)


@dataclass(frozen=True, eq=False)
class TwoClasses:
    """Rare rows above the majority."""

    labels: Labels
    majority_code = False  # label of the majority rows, as measures take it
    measure = staticmethod(roc_auc)
    rows_held = "rare rows"  # for progress

    @property
    def held_code(self) -> np.ndarray:
        """Labels of the rows held, as measures take them: all are rare."""
        return np.ones(len(self.labels.rare), dtype=bool)

    @property
    def attributes(self) -> dict[str, Any]:
        """Learned attributes of an estimator: the labels, sorted, and the rare one."""
        return {"classes_": self.labels.classes, "pos_label_": self.labels.pos_label}

    def loss(self, base: Loss) -> Loss:
        """The loss itself: all pairs are of one kind."""
        return base

    def strata(self, n_rows: int) -> None:
        """Strata of folds: None, for rare or not."""

    def on_part(
        self, held: np.ndarray, held_weight: np.ndarray, majority_weight: np.ndarray
    ) -> "TwoClasses":
        """The same target on a table of fewer rows, in which those held come first.

        `held` are the positions, among the rows held today, of those that are held there.
        """
        rows = _in_order(held_weight, majority_weight)
        return TwoClasses(self.labels._replace(**rows))

    def threshold(self, rows: RankingScores, loss: Loss) -> float:
        """The score of best balanced accuracy; for a loss of labels that of its own measure."""
        if isinstance(loss, LabellingLoss) and np.ptp(rows.scores) > 0.0:
            weight = rows.weight
            n_rows = len(rows.y) if weight is None else float(weight.sum())
            cuts = HeldOutCuts.read(rows.y, rows.scores[:, 0], weight)
            return cuts.threshold(loss.constraint(n_rows).find(cuts, None, None).cut)
        held, majority = rows.held[:, 0], rows.majority[:, 0]
        return threshold_between(
            ScoredClasses(held, majority, rows.held_weight, rows.majority_weight)
        )

    def calibration(self, rows: RankingScores) -> Calibration | None:
        """The map to the probability of the rare class."""
        return learn_calibration(rows.y, rows.scores[:, 0], rows.weight)


@dataclass(frozen=True, eq=False)
class OrderedLevels:
    """Every level above all lower ones; `costs` of shape (n_levels, n_levels) weigh the pairs."""

    labels: Labels
    costs: np.ndarray
    measure = staticmethod(mauc)
    rows_held = "rows outside the majority"

    @property
    def held_code(self) -> np.ndarray:
        """Positions of levels."""
        codes: np.ndarray = self.labels.codes
        return codes

    @property
    def majority_code(self) -> int:
        """The position of the majority level."""
        return self.labels.majority_code

    @property
    def attributes(self) -> dict[str, Any]:
        """The levels, in their order, and the most frequent one."""
        labels = self.labels
        return {"classes_": labels.classes, "majority_level_": labels.majority_label}

    def loss(self, base: Loss) -> Loss:
        """The loss of a pair, summed over pairs of different levels."""
        if isinstance(base, LabellingLoss):
            raise ErrorKind.UNSUPPORTED.error(
                f"loss={type(base).__name__} labels rows rare or not, and here are levels.",
                "Use a loss of pairs, such as 'smoothed_hinge', or RankRC on two classes.",
                value=type(base).__name__,
            )
        return OrdinalLoss(base, self.held_code, self.majority_code, self.costs)

    def strata(self, n_rows: int) -> np.ndarray:
        """The position of the level of every row."""
        codes = np.full(n_rows, self.majority_code)
        codes[self.labels.rare] = self.held_code
        return codes

    def on_part(
        self, held: np.ndarray, held_weight: np.ndarray, majority_weight: np.ndarray
    ) -> "OrderedLevels":
        """Levels of fewer rows."""
        rows = _in_order(held_weight, majority_weight)
        labels = self.labels._replace(codes=self.held_code[held], **rows)
        return OrderedLevels(labels, self.costs)

    def threshold(self, rows: RankingScores, loss: Loss) -> np.ndarray:
        """The scores between levels of least absolute error."""
        n_levels = len(self.labels.classes)
        return thresholds_of_codes(rows.y, rows.scores[:, 0], rows.weight, n_levels)

    def calibration(self, rows: RankingScores) -> LevelCalibration:
        """The maps to the probabilities of levels."""
        n_levels = len(self.labels.classes)
        return learn_level_calibration(rows.y, rows.scores[:, 0], rows.weight, n_levels)


RankingTarget = TwoClasses | OrderedLevels
"""A kind of labels."""


def training_part(target: RankingTarget, held_out: np.ndarray) -> RankingTarget:
    """Return the target of the rows that a fold does not hold out."""
    labels, majority = target.labels, np.asarray(target.labels.majority)
    held, rest = ~held_out[labels.rare], ~held_out[majority]
    weight = labels.majority_weight
    part = target.on_part(
        np.flatnonzero(held),
        labels.rare_weight[held],
        np.ones(np.count_nonzero(rest)) if weight is None else weight[rest],
    )
    numbers: Any = part.labels._replace(rare=labels.rare[held], majority=majority[rest])
    return replace(part, labels=numbers)


def aligned(parts: Sequence[RankingScores], whole: RankingScores) -> RankingScores:
    """Held-out rows of all folds with scores as of the model that is to be used, one column each.

    Pairs say nothing of where a model's scores lie: each fold's are moved and stretched to the mean
    and deviation that the majority has under the model of all rows, which scored `whole`.
    """
    like = MajorityScores.of(whole.majority[:, 0], whole.majority_weight)
    mapped = []
    for part in parts:
        own = MajorityScores.of(part.majority[:, 0], part.majority_weight)
        to_whole = match_majority(own, like)
        mapped.append(part._replace(held=to_whole(part.held), majority=to_whole(part.majority)))
    return mapped[0].joined(mapped[1:])


def _in_order(held_weight: np.ndarray, majority_weight: np.ndarray) -> dict[str, Any]:
    """Row numbers and weights where the rows held come first."""
    n_held, n_rows = len(held_weight), len(held_weight) + len(majority_weight)
    return {
        "rare": np.arange(n_held),
        "majority": np.arange(n_held, n_rows),
        "rare_weight": held_weight,
        "majority_weight": majority_weight,
    }


def pair_costs(pair_cost: Any, levels: Labels) -> np.ndarray:
    """The cost of a pair of each two levels, lower first; the parameter `pair_cost` of estimators.

    Raises `ValueError` on anything else than the parameter allows, naming the two levels.
    """
    n = len(levels.classes)
    r, t = np.triu_indices(n, 1)
    costs = np.ones((n, n))
    if isinstance(pair_cost, str) and pair_cost == "distance":
        costs[r, t] = t - r
    elif callable(pair_cost):
        costs[r, t] = [pair_cost(int(a), int(b)) for a, b in zip(r, t, strict=True)]
    elif pair_cost is not None:
        costs = _cost_matrix(pair_cost, n)
    bad = ~(np.isfinite(costs[r, t]) & (costs[r, t] >= 0.0))
    if bad.any():
        k = int(np.argmax(bad))
        low, high = plain(levels.classes[r[k]]), plain(levels.classes[t[k]])
        raise ErrorKind.SETTING.error(
            f"pair_cost of the levels {low!r} and {high!r} is {costs[r[k], t[k]]}: it must be a "
            "finite number of at least 0."
        )
    present = np.union1d(levels.codes, levels.majority_code)
    if not np.triu(costs, 1)[np.ix_(present, present)].any():
        raise ErrorKind.SETTING.error("pair_cost is 0 for every pair of levels in y.")
    return costs


def _cost_matrix(pair_cost: Any, n: int) -> np.ndarray:
    wanted = f"pair_cost must be None, 'distance', a callable or a matrix of shape ({n}, {n})"
    try:
        costs = np.array(pair_cost, dtype=np.float64)
    except (TypeError, ValueError):
        raise ErrorKind.SETTING.error(f"{wanted}, not {pair_cost!r}.") from None
    if costs.shape != (n, n):
        raise ErrorKind.SETTING.error(f"{wanted}, one a level; its shape is {costs.shape}.")
    below = np.tril(costs, -1)
    if below.any() and not np.array_equal(below.T, np.triu(costs, 1)):
        raise ErrorKind.SETTING.error(
            "pair_cost has entries below the diagonal that are not those above it: the cost of a "
            "pair does not depend on which level is named first."
        )
    return costs
