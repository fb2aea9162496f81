"""The combination of members: a common scale, weights by held-out rows, and its own scale.

1. the best three begin, with one vote each, or as many as are near the best
2. ten times the member whose further vote helps most gets one (Caruana et al., "Ensemble
   selection from libraries of models", ICML 2004)
3. the votes are those of the step that was best
4. so by the objective, and so by AUC: the mean of both
5. of the weight a part is shared equally by all that are not worse than the best by more than
   chance: .3 + .7 * 50 / (50 + n), with n rare rows
6. members of less than .05 are left out

Beginning with three, and sharing, keeps a lucky member from deciding alone where rare rows are few;
AUC looks at every majority row, and so is the steadier judge of the two (docs/decisions/0028 and
0066).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from rareclass.ensemble.score_functions import FalsePositiveRate, LearnedMember, ScoreFunction
from rareclass.ensemble.training_rows import HeldOutRows
from rareclass.errors import ErrorKind
from rareclass.estimators.search import SCORINGS, Scoring, as_scoring
from rareclass.metrics import interval, precision_at_k, roc_auc

if TYPE_CHECKING:
    from rareclass.ensemble.members.member import CrossFitted, Member

N_BEGIN, N_STEPS = 3, 10
# A fold with fewer majority rows, by weight, has no scale of its own.
_LEAST_MAJORITY = 20
# A gain below this is rounding.
_LEAST_GAIN = 1e-9
# Majority rows that weights are chosen on, at most: as many of the highest as of the others.
_MOST_WEIGHED = 20_000
# Settings of one member that the combination chooses from.
_SETTINGS_A_MEMBER = 2
# The part of the weight that all near the best share equally: a part, and all of it as if so many
# rare rows had said nothing of the members.
_SHARED, _RARE_ROWS_UNHEARD = 0.3, 50.0
# A member is near the best one where it reaches the confidence interval of that one, at this level.
_LEVEL = 0.8
# Members of less weight than this are left out: new rows would wait for them, and rank no better.
_LEAST_WEIGHT = 0.05


def precision_at_rare(y: np.ndarray, scores: np.ndarray, weight: Any = None) -> float:
    """Precision among as many rows as there are rare ones: as many alerts as cases."""
    rare = np.asarray(y, dtype=bool)
    k = float(rare.sum()) if weight is None else float(np.asarray(weight)[rare].sum())
    return precision_at_k(y, scores, k, weight)


def precision_at(k: int, y: np.ndarray, scores: np.ndarray, weight: Any = None) -> float:
    """Precision among the first k rows, or all where there are fewer."""
    n_rows = float(len(y)) if weight is None else float(np.asarray(weight).sum())
    return precision_at_k(y, scores, min(float(k), n_rows), weight)


OBJECTIVES: Mapping[str, Scoring] = {**SCORINGS, "precision_at_k": precision_at_rare}


def as_objective(objective: Any) -> Scoring:
    """Return the function that a parameter names; "precision_at=100" is for the first 100 rows.

    Raises `ValueError` on an unknown name.

    >>> y, scores = [True, False, True, False], [4.0, 3.0, 2.0, 1.0]
    >>> as_objective("precision_at=2")(y, scores)
    0.5
    """
    match = re.fullmatch(r"precision_at=(\d+)", objective) if isinstance(objective, str) else None
    if match is None:
        return as_scoring(objective, OBJECTIVES)
    if int(match[1]) < 1:
        raise ErrorKind.SETTING.error(f"objective={objective!r} names 0 rows.", "Name 1 or more.")
    return partial(precision_at, int(match[1]))


class Candidate(NamedTuple):
    """A setting of a member, learned on the folds, with its scale and its objective.

    `held_out` of shape (n_rows,) are scores by functions that did not see the row, NaN for rows
    that nothing is measured on; `by_fold` the functions of the folds, of the features that each
    sees, `function` their mean, of all features. `scale` is learned from all held-out majority
    scores. `rarity` of shape (n_tested,) is -ln F of the tested rows, F being learned from the
    majority of the row's own fold.
    """

    member: "Member"
    setting: str
    held_out: np.ndarray
    by_fold: list[ScoreFunction]
    function: ScoreFunction
    seconds: float
    scale: FalsePositiveRate
    rarity: np.ndarray
    objective: float = float("nan")

    @classmethod
    def of(
        cls,
        member: "Member",
        fitted: "CrossFitted",
        function: ScoreFunction,
        seconds: float,
        rows: HeldOutRows,
    ) -> Self:
        """Place the held-out scores of a setting on a scale."""
        scores = fitted.held_out[rows.tested]
        scale = _scale(scores, rows)
        rarity = rarity_by_fold(scores, scale, rows)
        return cls(member, *fitted, function, seconds, scale, rarity)


def _scale(scores: np.ndarray, held_out: HeldOutRows) -> FalsePositiveRate:
    """Learn the scale of scores of the tested rows."""
    majority = ~held_out.is_rare[held_out.tested]
    weight = held_out.tested_weight
    return FalsePositiveRate.of(scores[majority], None if weight is None else weight[majority])


def rarity_by_fold(
    scores: np.ndarray, scale: FalsePositiveRate, held_out: HeldOutRows
) -> np.ndarray:
    """Return -ln F of scores of the tested rows, each by the majority of its own fold.

    Functions of two folds place equal rows at different scores, so that scores of all folds in one
    list rank worse than any of the functions does (Forman and Scholz, "Apples-to-apples in
    cross-validation studies", SIGKDD Explorations 2010). Folds with fewer than 20 majority rows,
    or copies, share `scale`. O(n log n).
    """
    rarity = -scale(scores)
    if held_out.fold is None:
        return rarity
    of_row, weight = held_out.fold[held_out.tested], held_out.tested_weight
    copies = ~held_out.is_rare[held_out.tested] * (1.0 if weight is None else weight)
    for number in np.unique(of_row):
        within = of_row == number
        if copies[within].sum() >= _LEAST_MAJORITY:
            own = held_out._replace(tested=held_out.tested[within])
            rarity[within] = -_scale(scores[within], own)(scores[within])
    return rarity


class Combination(NamedTuple):
    """All candidates in order of the objective, their weights, and the scale of the combination."""

    candidates: list[Candidate]
    weights: np.ndarray
    scale: FalsePositiveRate

    def in_use(self) -> list[tuple[Candidate, float]]:
        """Return the candidates that have weight, with it."""
        return [
            (each, float(weight))
            for each, weight in zip(self.candidates, self.weights, strict=True)
            if weight > 0.0
        ]

    def learned_members(self) -> list[LearnedMember]:
        """Return what a model keeps of the candidates that have weight."""
        return [
            LearnedMember(
                each.member.name, each.setting, each.member.view, each.function, each.scale, weight
            )
            for each, weight in self.in_use()
        ]

    def rarity(self, scores_of: Callable[[Candidate], np.ndarray]) -> np.ndarray:
        """Return -ln F of rows by their scores, members being on their scales of all folds.

        On the scale of its own fold the highest majority row of each fold has the same score.
        """
        parts = [weight * each.scale(scores_of(each)) for each, weight in self.in_use()]
        return -np.sum(parts, axis=0)


def cross_fitted_log_rates(candidates: Sequence[Candidate], held_out: HeldOutRows) -> np.ndarray:
    """Return ln F of every tested row by weights and scale of the other folds alone, in order.

    Weights flatter the rows that they were chosen on. The rows have at least two folds. O(n_folds)
    times `combine`.
    """
    assert held_out.fold is not None
    rarity_of = {id(each.held_out): each.rarity for each in candidates}
    rates = np.empty(len(held_out.tested))
    of_row = held_out.fold[held_out.tested]
    for number in np.unique(of_row):
        within = of_row == number
        others = held_out._replace(tested=held_out.tested[~within])
        of_others = [each._replace(rarity=each.rarity[~within]) for each in candidates]
        combination = combine(of_others, others)
        rarity = np.zeros(np.count_nonzero(within))
        for each, weight in combination.in_use():
            rarity += weight * rarity_of[id(each.held_out)][within]
        rates[within] = combination.scale(rarity)
    return rates


def combine(candidates: Sequence[Candidate], held_out: HeldOutRows) -> Combination:
    """Choose weights of the candidates by held-out rows, and learn the combination's own scale.

    Where no rare row is held out (there is one), the first settings of all members share equally.
    """
    judged = [each._replace(objective=held_out.measure(each.rarity)) for each in candidates]
    if np.isnan([each.objective for each in judged]).any():
        first = {each.member.name: each for each in reversed(judged)}
        judged = list(reversed(first.values()))
        weights = np.full(len(judged), 1.0 / len(judged))
    else:
        judged.sort(key=lambda each: -each.objective)
        weights = _choose_weights(judged, held_out)
    rarity = np.column_stack([each.rarity for each in judged]) @ weights
    return Combination(judged, weights, _scale(rarity, held_out))


def _choose_weights(candidates: Sequence[Candidate], held_out: HeldOutRows) -> np.ndarray:
    """Choose weights of candidates in order of the objective: of the best settings of members."""
    places, part = _rows_to_weigh_on(candidates, held_out)
    chosen = best_settings(candidates, _SETTINGS_A_MEMBER)
    scores = np.column_stack([candidates[k].rarity[places] for k in chosen])
    # Of AUC where AUC is the objective, else of average precision, which looks at the top as other
    # objectives do.
    measure = "roc_auc" if part.objective is roc_auc else "average_precision"
    y, weight = part.is_rare[part.tested], part.tested_weight
    bounds = [interval(measure, y, column, weight, _LEVEL) for column in scores.T]
    best = max(bounds, key=lambda bound: bound.value)
    near = np.array([bound.value >= best.low for bound in bounds])
    n_begin = min(N_BEGIN, int(near.sum()))
    votes = [
        greedy_weights(scores, part._replace(objective=each).measure, n_begin)
        for each in (part.objective, roc_auc)
    ]
    n_rare = np.count_nonzero(y)
    heard = n_rare / (n_rare + _RARE_ROWS_UNHEARD)
    shared = _SHARED + (1.0 - _SHARED) * (1.0 - heard)
    weights = np.zeros(len(candidates))
    weights[chosen] = shared * near / near.sum() + (1.0 - shared) * np.mean(votes, axis=0)
    weights[weights < min(_LEAST_WEIGHT, weights.max())] = 0.0
    return weights / weights.sum()


def greedy_weights(
    scores: np.ndarray, merit: Callable[[np.ndarray], float], n_begin: int = N_BEGIN
) -> np.ndarray:
    """Select members greedily; return their weights, of shape (n_members,) and sum 1.

    `scores` of shape (n_rows, n_members) are on a common scale; `merit` of combined scores is
    larger where they are better. Ten steps, each of n_members merits.

    >>> rare = np.array([True, False, False])
    >>> scores = np.array([[2.0, 0.0], [1.0, 3.0], [0.0, 1.0]])
    >>> greedy_weights(scores, lambda s: s[rare].mean() - s[~rare].max(), n_begin=1)
    array([1., 0.])
    """
    own = np.array([merit(column) for column in scores.T])
    votes = np.zeros(scores.shape[1])
    votes[np.argsort(-own, kind="stable")[:n_begin]] = 1.0
    total = scores @ votes
    best, chosen = merit(total), votes.copy()
    for _ in range(N_STEPS):
        merits = [merit(total + column) for column in scores.T]
        winner = int(np.argmax(merits))
        votes[winner] += 1.0
        total = total + scores[:, winner]
        if merits[winner] > best + _LEAST_GAIN:
            best, chosen = merits[winner], votes.copy()
    return chosen / chosen.sum()


def best_settings(candidates: Sequence[Candidate], most: int) -> list[int]:
    """Return the places of the first settings of each member, so many at most."""
    seen: dict[str, int] = {}
    chosen = []
    for k, each in enumerate(candidates):
        name = each.member.name
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= most:
            chosen.append(k)
    return chosen


def _rows_to_weigh_on(
    candidates: Sequence[Candidate], held_out: HeldOutRows
) -> tuple[np.ndarray, HeldOutRows]:
    """Return positions among the tested rows, and those rows: enough to choose weights on.

    All are taken that decide the top of a list: the rare ones, and the others that some candidate
    places highest. A draw of the rest stands for all of it by its weight.
    """
    tested = held_out.tested
    kept = held_out.is_rare[tested]
    if len(tested) - np.count_nonzero(kept) <= _MOST_WEIGHED:
        return np.arange(len(tested)), held_out
    highest = np.max([each.rarity for each in candidates], axis=0)
    highest[kept] = -np.inf
    kept[np.argpartition(highest, -_MOST_WEIGHED // 2)[-_MOST_WEIGHED // 2 :]] = True
    return held_out.thinned(kept, _MOST_WEIGHED // 2)
