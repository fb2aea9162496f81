"""Evidence of two score columns of the same rows: both intervals of a measure, their correlation.

A measure of `EVIDENCE` gives the interval of each column at any level, as the measure alone has it,
and the correlation r of both estimates: from the influence of each row where that is known (AUC by
DeLong's components, expected cost), by a paired bootstrap elsewhere. In both variances behind r
stands one made-up row of the greatest possible spread, the one of the intervals.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.later import special
from rareclass.metrics.areas import area_estimate, average_precision_estimate, check_max_fpr
from rareclass.metrics.at_k import depth, top_estimate
from rareclass.metrics.bootstrap import all_items, bootstrap
from rareclass.metrics.expected_cost import (
    ClassCost,
    CostEstimate,
    check_threshold,
    class_cost,
    cost_columns,
)
from rareclass.metrics.interval import (
    Interval,
    ShareEstimate,
    difference_interval,
)
from rareclass.metrics.rare_cells import (
    RareCells,
    collapse,
    is_worth_compiling,
    read_cells,
    weigh_distinct,
)
from rareclass.metrics.scored_classes import (
    ClassPair,
    FloatArray,
    ScoredClasses,
    ScoredPair,
)

_BOOTSTRAP = "paired stratified bootstrap"
_CLUSTERED = {
    _BOOTSTRAP: "paired bootstrap of groups",
    "DeLong": "DeLong, clustered",
    "influence": "influence, clustered",
}


class Draws(NamedTuple):
    """How a bootstrap is drawn."""

    seeds: NDArray[np.uint64]
    n_jobs: int | None = None
    progress: bool | str = False


class Estimate(Protocol):
    """Estimate of a measure of one column."""

    def interval(self, level: float) -> Interval:
        """Return its interval at a level."""
        ...


class PairEvidence(NamedTuple):
    """Both columns' intervals at any level, and how their estimates vary together."""

    a: Callable[[float], Interval]
    b: Callable[[float], Interval]
    correlation: float
    deviation: float  # standard deviation of the difference, without made-up rows
    n_trials: float  # rare rows, or groups of them, that it rests on
    method: str

    def interval(self, level: float) -> Interval:
        """Interval of the difference: what holds both Zou's interval and Student's.

        Student's has too short a reach where one ranking is nearly perfect, Zou's where both are:
        docs/decisions/0029. It reaches no farther than if the estimates were unrelated.
        """
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
    """Influence of every row on a mean over both classes; the weighted sum of each class is 0."""

    value: float
    of_rare: FloatArray  # shape (n_rare,)
    of_majority: FloatArray  # shape (n_majority,)


def roc_auc_evidence(pair: ScoredPair, draws: Draws) -> PairEvidence:
    """DeLong's covariance of both AUCs, and the intervals of `roc_auc_interval`."""
    columns = auc_influences(pair)
    spread = spread_of_rows(pair, *columns)
    n_rare, n_majority = (_n_trials(rows) for rows in (pair.rare, pair.majority))
    estimates, made_up = [], []
    for column, variance in zip(columns, spread[:2], strict=True):
        auc = column.value
        extra = auc * (1.0 - auc) * (1.0 / n_rare / n_rare + 1.0 / n_majority / n_majority)
        estimates.append(ShareEstimate(auc, auc, variance + extra, min(n_rare, n_majority)))
        made_up.append(extra)
    return _evidence(pair, estimates, spread, made_up, "DeLong")


def average_precision_evidence(pair: ScoredPair, draws: Draws) -> PairEvidence:
    """Both intervals of `average_precision_interval`, their correlation by bootstrap."""
    from rareclass.metrics import _bootstrap_jit as jit

    shares = [average_precision_estimate(cells) for cells in _columns(pair)]
    return _of_shares(pair, shares, _drawn(pair, draws, jit.AVERAGE_PRECISION, 0.0))


def partial_auc_evidence(
    pair: ScoredPair, draws: Draws, max_fpr: float, standardized: bool = True
) -> PairEvidence:
    """Both intervals of `partial_auc_interval`, their correlation by bootstrap."""
    from rareclass.metrics import _bootstrap_jit as jit

    check_max_fpr(max_fpr)
    shares = [area_estimate(cells, max_fpr, standardized) for cells in _columns(pair)]
    return _of_shares(pair, shares, _drawn(pair, draws, jit.PARTIAL_AUC, max_fpr))


def _of_shares(
    pair: ScoredPair, shares: Sequence[ShareEstimate], spread: JointSpread
) -> PairEvidence:
    """Intervals on the logit scale; rows that move together have the bootstrap's variance."""
    n_rare = _n_trials(pair.rare)
    made_up = [_made_up_share(share.value, n_rare) for share in shares]
    if pair.n_groups:
        shares = [
            share._replace(variance=variance + extra, n_trials=min(n_rare, share.n_trials))
            for share, variance, extra in zip(shares, spread[:2], made_up, strict=True)
        ]
    squared = shares[0].factor ** 2
    made_up = [squared * each for each in made_up]
    return _evidence(pair, shares, spread.scaled(squared), made_up, _BOOTSTRAP)


def _at_k_evidence(measure: str, pair: ScoredPair, draws: Draws, k: float) -> PairEvidence:
    """Both Wilson's intervals of the recall among the top k, times a factor."""
    from rareclass.metrics import _bootstrap_jit as jit

    n_trials = _n_trials(pair.rare)
    estimates = [
        top_estimate(cells, k, measure)._replace(n_trials=n_trials) for cells in _columns(pair)
    ]
    share = min(k / (pair.rare.mass + pair.majority.mass), 1.0)
    squared = estimates[0].factor ** 2
    spread = _drawn(pair, draws, jit.RECALL_AT_K, share).scaled(squared)
    made_up = [squared * _made_up_share(each.recall, n_trials) for each in estimates]
    return _evidence(pair, estimates, spread, made_up, _BOOTSTRAP)


def lift_at_k_evidence(
    pair: ScoredPair, draws: Draws, k: float | None = None, share: float | None = None
) -> PairEvidence:
    """Both intervals of `lift_at_k_interval`, their correlation by bootstrap."""
    return _at_k_evidence("lift", pair, draws, depth(_columns(pair)[0], k, share))


def expected_cost_evidence(
    pair: ScoredPair,
    draws: Draws,
    threshold: float | tuple[float, float] = 0.5,
    cost_fp: ArrayLike = 1.0,
    cost_fn: ArrayLike = 1.0,
) -> PairEvidence:
    """Both intervals of `expected_cost_interval`; a mean over rows, so its spread is exact."""
    at: Sequence[float] = threshold if isinstance(threshold, list | tuple) else [threshold] * 2
    if len(at) != 2:
        raise ValueError(f"threshold={threshold!r} must be one number, or one for each column.")
    fp, fn = cost_columns(cost_fp, cost_fn, pair.n_rows)
    total = pair.rare.mass + pair.majority.mass
    estimates, columns, made_up = [], [], []
    for one, cut in enumerate(at):
        check_threshold(cut)
        parts: list[ClassCost] = []
        influences = []
        for rows, amounts, is_error_above in ((pair.rare, fn, False), (pair.majority, fp, True)):
            error = ((rows.a, rows.b)[one] > cut) == is_error_above
            amount = amounts.compress(rows.mask)
            parts.append(class_cost(error, amount, rows.weight, total, rows.group))
            # Of a mean over the class, times the class's share of the rows.
            influences.append(amount * error * (rows.mass / total) - parts[-1].value)
        estimates.append(CostEstimate(tuple(parts)))
        columns.append(RowInfluences(0.0, *influences))
        made_up.append(sum(part.made_up for part in parts))
    return _evidence(pair, estimates, spread_of_rows(pair, *columns), made_up, "influence")


EVIDENCE: Mapping[str, Callable[..., PairEvidence]] = {
    "roc_auc": roc_auc_evidence,
    "average_precision": average_precision_evidence,
    "precision_at_k": partial(_at_k_evidence, "precision"),
    "recall_at_k": partial(_at_k_evidence, "recall"),
    "lift_at_k": lift_at_k_evidence,
    "partial_auc": partial_auc_evidence,
    "expected_cost": expected_cost_evidence,
}


def auc_influences(pair: ScoredPair) -> tuple[RowInfluences, RowInfluences]:
    """AUC of both columns, and DeLong's structural components of each row less the AUC.

    Of a rare row the share of the majority below it, of a majority row the share of the rare rows
    above it; ties count one half. O(n log n_rare) time, O(n) memory.
    """
    rare, majority = pair.rare, pair.majority
    compiled = is_worth_compiling(rare.a.size + majority.a.size)

    def of_column(scores: tuple[FloatArray, FloatArray]) -> RowInfluences:
        distinct, held = weigh_distinct(scores[0], rare.weight)
        above = np.append(np.cumsum(held[::-1])[::-1], 0.0) / held.sum()
        of_cells = np.empty(2 * distinct.size + 1)
        of_cells[0::2], of_cells[1::2] = above, (above[:-1] + above[1:]) / 2.0
        cells, of_majority = read_cells(distinct, scores[1], majority.weight, of_cells, compiled)
        found = RareCells(distinct, held, tied=cells[1::2], gaps=cells[0::2])
        below = found.majority_below() / found.n_majority
        of_cells[1::2] = below  # where rare rows are
        _, of_rare = read_cells(distinct, scores[0], None, of_cells, compiled)
        auc = float(np.clip(held @ below / found.n_rare, 0.0, 1.0))
        of_rare -= auc
        of_majority -= auc
        return RowInfluences(auc, of_rare, of_majority)

    columns = [(rare.a, majority.a), (rare.b, majority.b)]
    if not compiled:
        return of_column(columns[0]), of_column(columns[1])
    with ThreadPoolExecutor(2) as pool:  # the search lets go of the interpreter
        a, b = pool.map(of_column, columns)
    return a, b


def spread_of_rows(pair: ScoredPair, a: RowInfluences, b: RowInfluences) -> JointSpread:
    """``sum_i w_i a_i b_i / W**2`` added over both classes; with groups over sums by group.

    A group's sum has what its rare and its majority rows say, so the classes vary together as the
    groups do; the sum over groups is times ``G / (G - 1)``.
    """
    if pair.n_groups:
        of_a, of_b = np.zeros(pair.n_groups), np.zeros(pair.n_groups)
        for rows, *both in (
            (pair.rare, a.of_rare, b.of_rare),
            (pair.majority, a.of_majority, b.of_majority),
        ):
            for total, influence in zip((of_a, of_b), both, strict=True):
                own = influence if rows.weight is None else rows.weight * influence
                total += np.bincount(rows.group, own / rows.mass, pair.n_groups)  # type: ignore[arg-type]
        spread = JointSpread(float(of_a @ of_a), float(of_b @ of_b), float(of_a @ of_b))
        return spread.scaled(pair.n_groups / max(pair.n_groups - 1, 1))
    parts = [
        _of_class(pair.rare, a.of_rare, b.of_rare),
        _of_class(pair.majority, a.of_majority, b.of_majority),
    ]
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


def _columns(pair: ScoredPair) -> tuple[RareCells, RareCells]:
    rare, majority = pair.rare, pair.majority
    return (
        collapse(ScoredClasses(rare.a, majority.a, rare.weight, majority.weight)),
        collapse(ScoredClasses(rare.b, majority.b, rare.weight, majority.weight)),
    )


def _drawn(pair: ScoredPair, draws: Draws, measure: int, option: float) -> JointSpread:
    """Spread of both values over the replicates of the bootstrap."""
    values = bootstrap(all_items(pair), measure, option, *draws)
    (a, both), (_, b) = np.cov(values.T)
    return JointSpread(float(a), float(b), float(both))


def _evidence(
    pair: ScoredPair,
    estimates: Sequence[Estimate],
    spread: JointSpread,
    made_up: Sequence[float],
    method: str,
) -> PairEvidence:
    own_a, own_b, both = spread
    deviation = math.sqrt(max(own_a + own_b - 2.0 * both, 0.0))
    method = _CLUSTERED[method] if pair.n_groups else method
    a, b = (estimate.interval for estimate in estimates)
    correlation = spread.correlation(*made_up)
    return PairEvidence(a, b, correlation, deviation, _n_trials(pair.rare), method)


def _n_trials(rows: ClassPair) -> float:
    """Independent rows of a class; of groups as many as would vary like ones of equal weight."""
    if rows.group is None:
        return rows.mass
    share = np.bincount(rows.group, rows.weight) / rows.mass
    return 1.0 / float(share @ share)


def _made_up_share(share: float, n_trials: float) -> float:
    """One row of the greatest possible spread, as a part of the variance of a share."""
    return share * (1.0 - share) / n_trials / n_trials
