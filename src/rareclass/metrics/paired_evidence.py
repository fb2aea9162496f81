"""Evidence of two score columns of the same rows: both intervals of a measure, their correlation.

A measure of `EVIDENCE` gives the interval of each column at any level, as the measure alone has it,
and the correlation r of both estimates, from the influence of each row on them: DeLong's components
for AUC. In both variances behind r stands one made-up row of the greatest possible spread, the one
of the intervals.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rareclass.errors import ErrorKind
from rareclass.metrics.areas import (
    area_estimate,
    auc_estimate,
    auc_influences,
    average_precision_estimate,
    average_precision_influences,
    partial_auc_influences,
)
from rareclass.metrics.at_k import (
    TopEstimate,
    lift_estimate,
    precision_estimate,
    rare_at_cut,
    recall_estimate,
)
from rareclass.metrics.expected_cost import (
    ClassCost,
    CostEstimate,
    check_threshold,
    class_cost,
    cost_columns,
)
from rareclass.metrics.intervals import Estimate, Interval, ShareEstimate, difference_interval
from rareclass.metrics.scored_classes import (
    ClassPair,
    FloatArray,
    PlacedRows,
    RareCells,
    ScoredClasses,
    ScoredPair,
    is_worth_compiling,
    place_rows,
)

_ROUNDING = 1e-9


class PairEvidence(NamedTuple):
    """Both columns' intervals at any level, and how their estimates vary together."""

    a: Callable[[float], Interval]
    b: Callable[[float], Interval]
    correlation: float
    deviation: float  # standard deviation of the difference, without made-up rows
    n_trials: float  # rare rows, or groups of them, that it rests on
    method: str
    is_same: bool  # both columns rank all rows alike, or raise the same alerts: no difference

    def interval(self, level: float) -> Interval:
        """Interval of the difference: what holds both Zou's interval and Student's.

        Student's has too short a reach where one ranking is nearly perfect, Zou's where both are:
        docs/decisions/0029. It reaches no farther than if the estimates were unrelated.
        """
        if self.is_same:
            return Interval(0.0, 0.0, 0.0)
        a, b = self.a(level), self.b(level)
        found = difference_interval(a, b, self.correlation)
        n = self.n_trials
        if n <= 1.0:
            return found
        t = float(special.stdtrit(n - 1.0, 0.5 + level / 2.0))
        reach = t * self.deviation * math.sqrt(n / (n - 1.0))
        most = difference_interval(a, b, min(self.correlation, 0.0))
        low, high = max(found.value - reach, most.low), min(found.value + reach, most.high)
        return Interval(found.value, min(found.low, low), max(found.high, high))


class JointSpread(NamedTuple):
    """Variances and covariance of two estimates."""

    variance_a: float
    variance_b: float
    covariance: float

    def scaled(self, factor: float) -> "JointSpread":
        """Return the spread of both estimates in other units, `factor` being the squared unit."""
        return JointSpread(*(factor * each for each in self))

    def correlation(self, made_up_a: float, made_up_b: float) -> float:
        """Correlation of the estimates, each variance with a made-up row added to it.

        The made-up rows are those of the intervals of both. Where the estimates have a correlation
        r, theirs is ``max(2 r - 1, 0)``: they differ by twice as much as a row usually does.
        """
        a, b = self.variance_a + made_up_a, self.variance_b + made_up_b
        if not (a > 0.0 and b > 0.0):
            return 0.0
        as_it_is = _correlation(self.covariance, self.variance_a, self.variance_b)
        shared = max(2.0 * as_it_is - 1.0, 0.0) * math.sqrt(made_up_a) * math.sqrt(made_up_b)
        return _correlation(self.covariance + shared, a, b)


class RowInfluences(NamedTuple):
    """Influence of every row on an estimate; the weighted sum of each class is 0."""

    of_rare: FloatArray  # shape (n_rare,)
    of_majority: FloatArray  # shape (n_majority,)


def _of_rows(placed: PlacedRows, of_rare: FloatArray, of_majority: FloatArray) -> RowInfluences:
    """Hand the influences of cells out to the rows; of the majority the gaps, then the ties."""
    n_gaps = placed.cells.gaps.size
    table = np.empty(of_majority.size)
    table[0::2], table[1::2] = of_majority[:n_gaps], of_majority[n_gaps:]
    return RowInfluences(of_rare[placed.rare_at], table[placed.majority_at])


def _columns(pair: ScoredPair) -> list[PlacedRows]:
    """Both columns; many rows in two threads, as compiled code lets go of the interpreter."""
    if not is_worth_compiling(pair.rare.a.size + pair.majority.a.size):
        return [place_rows(each) for each in pair.columns]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(place_rows, pair.columns))


def roc_auc_evidence(pair: ScoredPair) -> PairEvidence:
    """Both intervals of the AUC, their correlation by DeLong's components."""
    n_trials = [_n_trials(rows) for rows in pair[:2]]
    return _share_evidence(pair, auc_estimate, auc_influences, n_trials, "DeLong")


def _share_evidence(
    pair: ScoredPair,
    estimate: Callable[..., ShareEstimate],
    influences: Callable[..., tuple[FloatArray, FloatArray]],
    n_trials: Sequence[float] = (),
    method: str = "influence",
    **options: Any,
) -> PairEvidence:
    """Intervals on the logit scale; where rows move together, with the variance of the groups."""
    columns, n_trials = _columns(pair), n_trials or [_n_trials(pair.rare)]
    shares = [estimate(each.cells, **options) for each in columns]
    rows = [_of_rows(each, *influences(each.cells, **options)) for each in columns]
    spread = spread_of_rows(pair, *rows)
    made_up = [sum(_made_up_share(each.value, n) for n in n_trials) for each in shares]
    if pair.n_groups:
        shares = [
            share._replace(variance=variance + extra, n_trials=min(*n_trials, share.n_trials))
            for share, variance, extra in zip(shares, spread[:2], made_up, strict=True)
        ]
    squared = shares[0].factor ** 2
    return _evidence(pair, shares, spread.scaled(squared), [squared * x for x in made_up], method)


def _at_k_evidence(
    pair: ScoredPair, estimate: Callable[..., TopEstimate], **options: Any
) -> PairEvidence:
    """Both Wilson's intervals of the recall among the top k, times a factor."""
    cells, n_rare = [each.cells for each in _columns(pair)], _n_trials(pair.rare)
    estimates = [estimate(each, **options)._replace(n_trials=n_rare) for each in cells]
    of_columns = zip(pair.columns, cells, strict=True)
    rows = [_recall_influences(pair, *each, estimates[0].k) for each in of_columns]
    squared = estimates[0].factor ** 2
    made_up = [squared * _made_up_share(each.recall, n_rare) for each in estimates]
    return _evidence(pair, estimates, spread_of_rows(pair, *rows).scaled(squared), made_up)


def _recall_influences(
    pair: ScoredPair, column: ScoredClasses, cells: RareCells, k: float
) -> RowInfluences:
    """Influence of each row on R, the recall among the top k.

    A row in the top k takes the place of one at the cut, which is rare with the chance L. So the
    influence is ``(1 - L) ([in top] - R)`` of a rare row and ``-L W- / W+ ([in top] - F)`` of a
    majority row, F the share of the majority in the top.
    """
    scores, n_rare = np.concatenate(column[:2]), column.rare.size
    weight = np.concatenate([rows.weights() for rows in (pair.rare, pair.majority)])
    order = np.argsort(-scores, kind="stable")
    reached = np.cumsum(weight[order])
    cut = scores[order[min(int(np.searchsorted(reached, k)), order.size - 1)]]
    tied = float(weight[scores == cut].sum())
    part = min((k - float(weight[scores > cut].sum())) / tied, 1.0)
    in_top = (scores > cut) + part * (scores == cut)
    of_rare, of_majority = in_top[:n_rare], in_top[n_rare:]
    at_cut = rare_at_cut(cells, k)
    of_rare = of_rare - weight[:n_rare] @ of_rare / cells.n_rare
    of_majority = of_majority - weight[n_rare:] @ of_majority / cells.n_majority
    lost = -at_cut * cells.n_majority / cells.n_rare
    return RowInfluences((1.0 - at_cut) * of_rare, lost * of_majority)


def expected_cost_evidence(
    pair: ScoredPair,
    threshold: float | tuple[float, float] = 0.5,
    cost_fp: ArrayLike = 1.0,
    cost_fn: ArrayLike = 1.0,
) -> PairEvidence:
    """Both intervals of `expected_cost`; a mean over rows, so its spread is exact."""
    at: Sequence[float] = threshold if isinstance(threshold, list | tuple) else [threshold] * 2
    if len(at) != 2:
        raise ErrorKind.SETTING.error(f"threshold={threshold!r} must be a number, or one a column.")
    fp, fn = cost_columns(cost_fp, cost_fn, pair.n_rows)
    total = pair.rare.mass + pair.majority.mass
    estimates, columns, made_up, alerts = [], [], [], []
    for column, cut in zip(pair.columns, at, strict=True):
        check_threshold(cut)
        parts: list[ClassCost] = []
        influences = []
        classes = (column.rare <= cut, pair.rare, fn), (column.majority > cut, pair.majority, fp)
        for error, rows, amounts in classes:
            amount = amounts.compress(rows.mask)
            parts.append(class_cost(error, amount, rows.weight, total, rows.group))
            # Of a mean over the class, times the class's share of the rows.
            influences.append(amount * error * (rows.mass / total) - parts[-1].value)
        estimates.append(CostEstimate(tuple(parts)))
        columns.append(RowInfluences(*influences))
        made_up.append(sum(part.made_up for part in parts))
        alerts.append(np.concatenate(column[:2]) > cut)
    evidence = _evidence(pair, estimates, spread_of_rows(pair, *columns), made_up)
    return evidence._replace(is_same=np.array_equal(alerts[0], alerts[1]))


EVIDENCE: Mapping[str, Callable[..., PairEvidence]] = {
    "roc_auc": roc_auc_evidence,
    "average_precision": partial(
        _share_evidence,
        estimate=average_precision_estimate,
        influences=average_precision_influences,
    ),
    "partial_auc": partial(
        _share_evidence, estimate=area_estimate, influences=partial_auc_influences
    ),
    "precision_at_k": partial(_at_k_evidence, estimate=precision_estimate),
    "recall_at_k": partial(_at_k_evidence, estimate=recall_estimate),
    "lift_at_k": partial(_at_k_evidence, estimate=lift_estimate),
    "expected_cost": expected_cost_evidence,
}


def spread_of_rows(pair: ScoredPair, a: RowInfluences, b: RowInfluences) -> JointSpread:
    """``sum_i w_i a_i b_i / W**2`` added over both classes; with groups over sums by group.

    A group's sum has what its rare and its majority rows say, so the classes vary together as the
    groups do; the sum over groups is times ``G / (G - 1)``.
    """
    if pair.n_groups:
        of_a, of_b = np.zeros(pair.n_groups), np.zeros(pair.n_groups)
        for rows, *both in zip(pair[:2], a, b, strict=True):
            for total, influence in zip((of_a, of_b), both, strict=True):
                own = influence if rows.weight is None else rows.weight * influence
                total += np.bincount(rows.group, own / rows.mass, pair.n_groups)  # type: ignore[arg-type]
        spread = JointSpread(float(of_a @ of_a), float(of_b @ of_b), float(of_a @ of_b))
        return spread.scaled(pair.n_groups / max(pair.n_groups - 1, 1))
    parts = [_of_class(*of_class) for of_class in zip(pair[:2], a, b, strict=True)]
    return JointSpread(*(x + y for x, y in zip(*parts, strict=True)))


def _of_class(rows: ClassPair, a: FloatArray, b: FloatArray) -> JointSpread:
    own, other = (a, b) if rows.weight is None else (rows.weight * a, rows.weight * b)
    # Two divisions: the square of an extreme weight could overflow.
    sums = (float(x @ y) / rows.mass / rows.mass for x, y in ((own, a), (other, b), (own, b)))
    return JointSpread(*sums)


def _correlation(covariance: float, variance_a: float, variance_b: float) -> float:
    if not (variance_a > 0.0 and variance_b > 0.0):
        return 0.0
    return min(max(covariance / math.sqrt(variance_a) / math.sqrt(variance_b), -1.0), 1.0)


def _evidence(
    pair: ScoredPair,
    estimates: Sequence[Estimate],
    spread: JointSpread,
    made_up: Sequence[float],
    method: str = "influence",
) -> PairEvidence:
    own_a, own_b, both = spread
    deviation = math.sqrt(max(own_a + own_b - 2.0 * both, 0.0))
    method = f"{method}, clustered" if pair.n_groups else method
    a, b = (estimate.interval for estimate in estimates)
    correlation, n_trials = spread.correlation(*made_up), _n_trials(pair.rare)
    # Sorting takes time: first whether the rows have the same influences, but for rounding.
    is_same = both >= (own_a + own_b) * (0.5 - _ROUNDING) and pair.ranks_alike()
    return PairEvidence(a, b, correlation, deviation, n_trials, method, is_same)


def _n_trials(rows: ClassPair) -> float:
    """Independent rows of a class; of groups as many as would vary like ones of equal weight."""
    if rows.group is None:
        return rows.mass
    share = np.bincount(rows.group, rows.weight) / rows.mass
    return 1.0 / float(share @ share)


def _made_up_share(share: float, n_trials: float) -> float:
    """One row of the greatest possible spread, as a part of the variance of a share."""
    return share * (1.0 - share) / n_trials / n_trials
