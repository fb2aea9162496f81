"""From members learned to a model: common scale, weights, and what held-out rows say of it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rareclass.ensemble.combination import mean_of_greedy
from rareclass.ensemble.false_positive_rate import FalsePositiveRate
from rareclass.ensemble.learned_member import LearnedMember
from rareclass.ensemble.race import Candidate
from rareclass.estimators.search import Scoring
from rareclass.metrics import (
    average_precision,
    average_precision_interval,
    roc_auc,
    roc_auc_interval,
)

# Majority rows that weights are chosen on, at most.
_MOST_JUDGED = 20_000
# Settings of one member that the combination chooses from.
_SETTINGS_A_MEMBER = 2
# Level of the interval that says which members are in the running.
_ODDS = 0.5
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
    merit: float

    def members(self) -> list[LearnedMember]:
        """Those that count, as they are kept."""
        return [
            LearnedMember(
                each.candidate.member.name,
                each.candidate.setting,
                each.candidate.member.view,
                each.candidate.functions,
                each.scale,
                float(weight),
            )
            for each, weight in zip(self.judged, self.weights, strict=True)
            if weight > 0.0
        ]


class HeldOut(NamedTuple):
    """Labels and weights of the training rows, and those of them that folds held out."""

    is_rare: np.ndarray
    weight: np.ndarray | None
    tested: np.ndarray  # row numbers

    def measure(self, objective: Scoring, scores: np.ndarray, rows: np.ndarray) -> float:
        """The objective of scores of rows; NaN where they hold one class only."""
        y = self.is_rare[rows]
        if y.all() or not y.any():
            return float("nan")
        return objective(y, scores, None if self.weight is None else self.weight[rows])


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
    weight = None if held_out.weight is None else held_out.weight[tested][rest]
    return Combined(
        tested,
        rarity,
        FalsePositiveRate.of(rarity[rest], weight),
        judged,
        weights,
        held_out.measure(objective, rarity, tested),
    )


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
    seen: dict[str, int] = {}
    chosen = []
    for k, each in enumerate(judged):
        name = each.candidate.member.name
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= _SETTINGS_A_MEMBER:
            chosen.append(k)
    places = _judging_rows(held_out, seed)
    rows = held_out.tested[places]

    def merit(combined: np.ndarray) -> float:
        return held_out.measure(objective, combined, rows)

    def auc(combined: np.ndarray) -> float:
        return held_out.measure(roc_auc, combined, rows)

    aucs = np.array([auc(judged[k].rarity[places]) for k in chosen])
    if aucs.max() >= _FAULTLESS:
        precisions = np.array(
            [held_out.measure(average_precision, judged[k].rarity[places], rows) for k in chosen]
        )
        alike = (aucs >= aucs.max() - (1.0 - _FAULTLESS)) & (
            precisions >= precisions.max() - _CLOSE
        )
        chosen = _one_each(
            judged, [k for k, is_alike in zip(chosen, alike, strict=True) if is_alike]
        )
        scores = np.column_stack([judged[k].rarity[places] for k in chosen])
        of_chosen = np.full(len(chosen), 1.0 / len(chosen))
    else:
        chosen = [chosen[k] for k in _near_the_best(judged, chosen, places, held_out)]
        scores = np.column_stack([judged[k].rarity[places] for k in chosen])
        of_chosen = 0.5 * mean_of_greedy(scores, [merit, auc]) + 0.5 / len(chosen)
    weights = np.zeros(len(judged))
    weights[chosen] = of_chosen
    is_switch = isinstance(compact, (bool, np.bool_))
    loss = COMPACT_LOSS * compact if is_switch else float(compact)
    if loss and merit(scores[:, 0]) >= merit(scores @ of_chosen) - loss:
        weights[:] = 0.0
        weights[0] = 1.0
    return weights


def _one_each(judged: Sequence[Judged], chosen: Sequence[int]) -> list[int]:
    """The first setting of each member."""
    first: dict[str, int] = {}
    for k in chosen:
        first.setdefault(judged[k].candidate.member.name, k)
    return list(first.values())


def _near_the_best(
    judged: Sequence[Judged], chosen: Sequence[int], places: np.ndarray, held_out: HeldOut
) -> list[int]:
    """Positions in `chosen` of those that are in the running.

    By average precision or by AUC they reach the lower end of the best one's interval, of even
    odds.
    """
    rows = held_out.tested[places]
    y = held_out.is_rare[rows]
    weight = None if held_out.weight is None else held_out.weight[rows]
    near: set[int] = set()
    for interval in (average_precision_interval, roc_auc_interval):
        bounds = [interval(y, judged[k].rarity[places], weight, _ODDS) for k in chosen]
        values = np.array([bound.value for bound in bounds])
        near |= set(np.flatnonzero(values >= bounds[int(values.argmax())].low).tolist())
    return sorted(near)


def _judging_rows(held_out: HeldOut, seed: int) -> np.ndarray:
    """Positions among the tested rows: the rare ones, and some thousands of the others."""
    is_rare = held_out.is_rare[held_out.tested]
    rest = np.flatnonzero(~is_rare)
    if len(rest) > _MOST_JUDGED:
        rest = np.random.default_rng(seed).choice(rest, _MOST_JUDGED, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(is_rare), rest]))
