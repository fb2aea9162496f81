"""From members learned to a model: common scale, weights, and what held-out rows say of it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rareclass.ensemble.combination import mean_of_greedy
from rareclass.ensemble.false_positive_rate import FalsePositiveRate
from rareclass.ensemble.held_out import HeldOut
from rareclass.ensemble.learned_member import LearnedMember
from rareclass.ensemble.race import Candidate
from rareclass.estimators.search import Scoring
from rareclass.metrics import (
    average_precision,
    average_precision_interval,
    roc_auc,
    roc_auc_interval,
)

# Majority rows that weights are chosen on, at most: as many of the highest as of the others.
_MOST_JUDGED = 20_000
# Settings of one member that the combination chooses from.
_SETTINGS_A_MEMBER = 2
# Level of the interval that says which members are in the running, and the part of the weight that
# they share alike.
_LEVEL = 0.8
_ALIKE = 0.5
# AUC from which on held-out rows do not tell members apart: those as near to the best count
# alike, as their differences say nothing of rows that have drifted.
_FAULTLESS = 0.999
# And in average precision: what a member behind by more misses is plain to see.
_CLOSE = 0.05
# What `compact=True` may lose.
COMPACT_LOSS = 0.01


class Judged(NamedTuple):
    """A candidate with its scale and the objective on held-out rows."""

    candidate: Candidate
    scale: FalsePositiveRate
    rarity: np.ndarray  # -ln F of held-out scores, shape (n_tested,)
    merit: float


class Combined(NamedTuple):
    """The model: members with their weights, and the scale of their combination.

    `rarity` are combined held-out scores of the rows `tested`, `judged` all candidates and
    `weights` theirs, in order of merit.
    """

    tested: np.ndarray
    rarity: np.ndarray
    scale: FalsePositiveRate
    judged: list[Judged]
    weights: np.ndarray

    def rarity_of(self, rows: np.ndarray) -> np.ndarray:
        """The combination of the candidates' held-out scores of any training rows."""
        total = np.zeros(len(rows))
        for each, weight in zip(self.judged, self.weights, strict=True):
            if weight > 0.0:
                total -= weight * each.scale(each.candidate.held_out[rows])
        return total

    def members(self) -> list[LearnedMember]:
        """Those that count, as they are kept."""
        return [
            LearnedMember(
                each.candidate.member.name,
                each.candidate.setting,
                each.candidate.member.view,
                each.candidate.function,
                each.scale,
                float(weight),
            )
            for each, weight in zip(self.judged, self.weights, strict=True)
            if weight > 0.0
        ]


def combine(
    candidates: Sequence[Candidate],
    held_out: HeldOut,
    objective: Scoring,
    compact: bool | float,
    seed: int,
) -> Combined:
    """Weights of the candidates by held-out rows, and the combination's own scale.

    Where no rare row is held out (there is one), the first setting of each member counts alike.
    """
    tested = held_out.tested
    judged = [_judged(each, held_out, objective) for each in candidates]
    if np.isnan([each.merit for each in judged]).any():
        first = {each.candidate.member.name: each for each in reversed(judged)}
        judged = list(reversed(first.values()))
        weights = np.full(len(judged), 1.0 / len(judged))
    else:
        judged.sort(key=lambda each: -each.merit)
        weights = _chosen_weights(judged, held_out, objective, compact, seed)
    rarity = np.column_stack([each.rarity for each in judged]) @ weights
    rest = ~held_out.is_rare[tested]
    weight = held_out.tested_weight
    weight = None if weight is None else weight[rest]
    return Combined(
        tested,
        rarity,
        FalsePositiveRate.of(rarity[rest], weight),
        judged,
        weights,
    )


def cross_fitted_log_rates(
    candidates: Sequence[Candidate],
    held_out: HeldOut,
    fold: np.ndarray,
    objective: Scoring,
    compact: bool | float,
    seed: int,
) -> np.ndarray:
    """ln F of every tested row by scales and weights of the other folds alone, in their order.

    What is chosen on rows flatters them: scores of these say what the combination is worth on new
    ones. O(n_folds) times `combine`.
    """
    rates = np.empty(len(held_out.tested))
    of_row = fold[held_out.tested]
    for number in np.unique(of_row):
        within = of_row == number
        others = held_out._replace(tested=held_out.tested[~within])
        combined = combine(candidates, others, objective, compact, seed)
        rates[within] = combined.scale(combined.rarity_of(held_out.tested[within]))
    return rates


def _judged(candidate: Candidate, held_out: HeldOut, objective: Scoring) -> Judged:
    tested = held_out.tested
    scores = candidate.held_out[tested]
    rest = ~held_out.is_rare[tested]
    weight = None if held_out.weight is None else held_out.weight[tested][rest]
    scale = FalsePositiveRate.of(scores[rest], weight)
    rarity = -scale(scores)
    return Judged(candidate, scale, rarity, held_out.measure(objective, rarity, tested))


def _chosen_weights(
    judged: Sequence[Judged],
    held_out: HeldOut,
    objective: Scoring,
    compact: bool | float,
    seed: int,
) -> np.ndarray:
    """Weights of candidates in order of merit: of the best settings of each member."""
    places, part = _judging_part(judged, held_out, seed)

    def merit(combined: np.ndarray) -> float:
        return part.measure(objective, combined, part.tested)

    def auc(combined: np.ndarray) -> float:
        return part.measure(roc_auc, combined, part.tested)

    chosen, shared = _faultless(judged, places, part), 1.0
    if not chosen:
        chosen, shared = _near_the_best(judged, places, part, objective), _ALIKE
    scores = np.column_stack([judged[k].rarity[places] for k in chosen])
    of_chosen = np.full(len(chosen), shared / len(chosen))
    if shared < 1.0:
        of_chosen += (1.0 - shared) * mean_of_greedy(scores, [merit, auc])
    weights = np.zeros(len(judged))
    weights[chosen] = of_chosen
    is_switch = isinstance(compact, (bool, np.bool_))
    loss = COMPACT_LOSS * compact if is_switch else float(compact)
    if loss and merit(judged[0].rarity[places]) >= merit(scores @ of_chosen) - loss:
        weights[:] = 0.0
        weights[0] = 1.0
    return weights


def _best_settings(judged: Sequence[Judged], most: int) -> list[int]:
    """The first settings of each member, so many at most."""
    seen: dict[str, int] = {}
    chosen = []
    for k, each in enumerate(judged):
        name = each.candidate.member.name
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= most:
            chosen.append(k)
    return chosen


def _faultless(judged: Sequence[Judged], places: np.ndarray, part: HeldOut) -> list[int]:
    """Those that held-out rows cannot tell apart, one setting each; none where rows can."""
    aucs, precisions = (
        np.array([part.measure(measure, each.rarity[places], part.tested) for each in judged])
        for measure in (roc_auc, average_precision)
    )
    if aucs.max() < _FAULTLESS:
        return []
    alike = (aucs >= aucs.max() - (1.0 - _FAULTLESS)) & (precisions >= precisions.max() - _CLOSE)
    equal = np.flatnonzero(alike).tolist()
    return [equal[first] for first in _best_settings([judged[k] for k in equal], 1)]


def _near_the_best(
    judged: Sequence[Judged], places: np.ndarray, part: HeldOut, objective: Scoring
) -> list[int]:
    """Those that are in the running.

    They reach the lower end of the interval of the best one: in AUC where that is the objective,
    else in average precision, which looks at the top as other objectives do.
    """
    interval = roc_auc_interval if objective is roc_auc else average_precision_interval
    y, weight = part.is_rare[part.tested], part.tested_weight
    chosen = _best_settings(judged, _SETTINGS_A_MEMBER)
    bounds = [interval(y, judged[k].rarity[places], weight, _LEVEL) for k in chosen]
    best = max(bounds, key=lambda bound: bound.value)
    return [k for k, bound in zip(chosen, bounds, strict=True) if bound.value >= best.low]


def _judging_part(
    judged: Sequence[Judged], held_out: HeldOut, seed: int
) -> tuple[np.ndarray, HeldOut]:
    """Positions among the tested rows, and those rows: enough of them to choose weights on.

    All are taken that decide the top of a list: the rare ones, and the others that some candidate
    places highest. A draw of the rest stands for all of it by its weight.
    """
    tested = held_out.tested
    kept = held_out.is_rare[tested]
    if len(tested) - np.count_nonzero(kept) <= _MOST_JUDGED:
        return np.arange(len(tested)), held_out
    highest = np.max([each.rarity for each in judged], axis=0)
    highest[kept] = -np.inf
    kept[np.argpartition(highest, -_MOST_JUDGED // 2)[-_MOST_JUDGED // 2 :]] = True
    return held_out.thinned(kept, _MOST_JUDGED // 2, seed)
