"""What two score columns say of a measure: both intervals, and how the estimates go together."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rareclass.metrics.average_precision import with_variance
from rareclass.metrics.bootstrap import all_items, bootstrap
from rareclass.metrics.expected_cost import ClassCost, check_threshold, class_cost, cost_columns
from rareclass.metrics.interval import (
    Interval,
    difference_interval,
    share_interval,
    sum_interval,
    wilson_interval,
)
from rareclass.metrics.joint_spread import JointSpread, spread_of_rows
from rareclass.metrics.lift_at_k import depth
from rareclass.metrics.paired_auc import RowInfluences, auc_influences
from rareclass.metrics.partial_auc import AreaScale, area_scale, share_with_variance
from rareclass.metrics.rare_cells import RareCells, collapse
from rareclass.metrics.recall_at_k import recall_in_top
from rareclass.metrics.scored_classes import ScoredClasses
from rareclass.metrics.scored_pair import ClassPair, ScoredPair

Bounds = Callable[[float], Interval]


class Evidence(NamedTuple):
    """Both columns' intervals at any level, and how their estimates go together."""

    a: Bounds
    b: Bounds
    correlation: float
    deviation: float  # standard deviation of the difference, without made-up rows
    n_trials: float  # rare rows, or groups of them, that it rests on
    method: str

    def interval(self, level: float) -> Interval:
        """Of the difference: what holds both Zou's interval and Student's.

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


class Draws(NamedTuple):
    """How a bootstrap is drawn."""

    seeds: NDArray[np.uint64]
    n_jobs: int | None = None
    progress: bool | str = False


class _Share(NamedTuple):
    """A share s in [0, 1] as one column has it, and ``scale.of(s)``, which is reported."""

    value: float
    centre: float
    variance: float  # cautious, of rows that are independent
    scale: AreaScale


def roc_auc_evidence(pair: ScoredPair, draws: Draws) -> Evidence:
    """DeLong's covariance of both AUCs, and the intervals of `roc_auc_interval`."""
    columns = auc_influences(pair)
    spread = spread_of_rows(pair, *columns)
    n_rare, n_majority = (_n_trials(pair, rows) for rows in (pair.rare, pair.majority))
    bounds, made_up = [], []
    for column, variance in zip(columns, spread[:2], strict=True):
        auc = column.value
        extra = auc * (1.0 - auc) * (1.0 / n_rare / n_rare + 1.0 / n_majority / n_majority)
        n = min(n_rare, n_majority)
        bounds.append(_share_bounds(_Share(auc, auc, variance + extra, _AS_IT_IS), n))
        made_up.append(extra)
    method = "DeLong" if not pair.n_groups else "DeLong, clustered"
    return _evidence(bounds[0], bounds[1], spread, made_up, _n_trials(pair, pair.rare), method)


def average_precision_evidence(pair: ScoredPair, draws: Draws) -> Evidence:
    """Both intervals of `average_precision_interval`, their correlation by bootstrap."""
    from rareclass.metrics import _bootstrap_jit as jit

    shares = [_Share(*with_variance(cells), _AS_IT_IS) for cells in _columns(pair)]
    return _of_shares(pair, draws, shares, pair.rare.mass, jit.AVERAGE_PRECISION, 0.0)


def partial_auc_evidence(
    pair: ScoredPair, draws: Draws, max_fpr: float, standardized: bool = True
) -> Evidence:
    """Both intervals of `partial_auc_interval`, their correlation by bootstrap."""
    from rareclass.metrics import _bootstrap_jit as jit

    scale = area_scale(max_fpr, standardized)
    shares = []
    for cells in _columns(pair):
        share, variance = share_with_variance(cells, max_fpr)
        shares.append(_Share(share, share, variance, scale))
    n = min(pair.rare.mass, max_fpr * pair.majority.mass)
    return _of_shares(pair, draws, shares, n, jit.PARTIAL_AUC, max_fpr)


def precision_at_k_evidence(pair: ScoredPair, draws: Draws, k: float) -> Evidence:
    """Both intervals of `precision_at_k_interval`, their correlation by bootstrap."""
    return _in_top(pair, draws, k, lambda n_rare, n: n_rare / k, most=1.0)


def recall_at_k_evidence(pair: ScoredPair, draws: Draws, k: float) -> Evidence:
    """Both intervals of `recall_at_k_interval`, their correlation by bootstrap."""
    return _in_top(pair, draws, k, lambda n_rare, n: 1.0, most=1.0)


def lift_at_k_evidence(
    pair: ScoredPair, draws: Draws, k: float | None = None, share: float | None = None
) -> Evidence:
    """Both intervals of `lift_at_k_interval`, their correlation by bootstrap."""
    looked_at = depth(_columns(pair)[0], k, share)
    return _in_top(pair, draws, looked_at, lambda n_rare, n: n / looked_at, most=math.inf)


def expected_cost_evidence(
    pair: ScoredPair,
    draws: Draws,
    threshold: float | tuple[float, float] = 0.5,
    cost_fp: ArrayLike = 1.0,
    cost_fn: ArrayLike = 1.0,
) -> Evidence:
    """Both intervals of `expected_cost_interval`; a mean over rows, so its spread is exact."""
    at: Sequence[float] = threshold if isinstance(threshold, list | tuple) else [threshold] * 2
    if len(at) != 2:
        raise ValueError(f"threshold={threshold!r} must be one number, or one for each column.")
    fp, fn = cost_columns(cost_fp, cost_fn, pair.n_rows)
    total = pair.rare.mass + pair.majority.mass
    bounds, columns, made_up = [], [], []
    for one, cut in enumerate(at):
        check_threshold(cut)
        parts, influences, extra = [], [], 0.0
        for rows, amounts, wanted in ((pair.rare, fn, False), (pair.majority, fp, True)):
            error = ((rows.a, rows.b)[one] > cut) == wanted
            amount = amounts.compress(rows.mask)
            part = class_cost(error, amount, rows.weight, total, rows.group)
            parts.append(part)
            # Of a mean over the class, times the class's share of the rows.
            influences.append(amount * error * (rows.mass / total) - part.value)
            extra += _made_up_cost(part)
        bounds.append(partial(_summed, tuple(parts)))
        columns.append(RowInfluences(0.0, *influences))
        made_up.append(extra)
    spread = spread_of_rows(pair, *columns)
    method = "influence" if not pair.n_groups else "influence, clustered"
    return _evidence(bounds[0], bounds[1], spread, made_up, _n_trials(pair, pair.rare), method)


EVIDENCE: Mapping[str, Callable[..., Evidence]] = {
    "roc_auc": roc_auc_evidence,
    "average_precision": average_precision_evidence,
    "precision_at_k": precision_at_k_evidence,
    "recall_at_k": recall_at_k_evidence,
    "lift_at_k": lift_at_k_evidence,
    "partial_auc": partial_auc_evidence,
    "expected_cost": expected_cost_evidence,
}

_AS_IT_IS = AreaScale(0.0, 1.0)


def _columns(pair: ScoredPair) -> tuple[RareCells, RareCells]:
    rare, majority = pair.rare, pair.majority
    splits = (
        ScoredClasses(rare.a, majority.a, rare.weight, majority.weight),
        ScoredClasses(rare.b, majority.b, rare.weight, majority.weight),
    )
    return collapse(splits[0]), collapse(splits[1])


def _in_top(
    pair: ScoredPair,
    draws: Draws,
    k: float,
    factor: Callable[[float, float], float],
    most: float,
) -> Evidence:
    """Wilson's intervals of recall, times a factor of the weight of the rare and of all rows."""
    from rareclass.metrics import _bootstrap_jit as jit

    n_rare, n = pair.rare.mass, pair.rare.mass + pair.majority.mass
    recalls = [recall_in_top(cells, k) for cells in _columns(pair)]
    n_trials = _n_trials(pair, pair.rare)
    spread = _bootstrapped(pair, draws, jit.RECALL_AT_K, min(k / n, 1.0))
    made_up = [recall * (1.0 - recall) / n_trials / n_trials for recall in recalls]
    times = factor(n_rare, n)
    a, b = (partial(_wilson_bounds, recall, n_trials, times, most) for recall in recalls)
    spread = JointSpread(*(times * times * each for each in spread))
    made_up = [times * times * each for each in made_up]
    return _evidence(a, b, spread, made_up, n_trials, _bootstrap_name(pair))


def _of_shares(
    pair: ScoredPair,
    draws: Draws,
    shares: list[_Share],
    n_trials: float,
    measure: int,
    option: float,
) -> Evidence:
    """Intervals on the logit scale; rows that move together have the bootstrap's variance."""
    spread = _bootstrapped(pair, draws, measure, option)
    n_rare = _n_trials(pair, pair.rare)
    made_up = [share.value * (1.0 - share.value) / n_rare / n_rare for share in shares]
    if pair.n_groups:
        n_trials = min(n_rare, n_trials)
        shares = [
            share._replace(variance=variance + extra)
            for share, variance, extra in zip(shares, spread[:2], made_up, strict=True)
        ]
    a, b = (_share_bounds(share, n_trials) for share in shares)
    squared = shares[0].scale.factor ** 2
    spread = JointSpread(*(squared * each for each in spread))
    made_up = [squared * each for each in made_up]
    return _evidence(a, b, spread, made_up, n_rare, _bootstrap_name(pair))


def _evidence(
    a: Bounds, b: Bounds, spread: JointSpread, made_up: list[float], n_trials: float, method: str
) -> Evidence:
    deviation = math.sqrt(spread.of_difference)
    return Evidence(a, b, spread.correlation(*made_up), deviation, n_trials, method)


def _bootstrapped(pair: ScoredPair, draws: Draws, measure: int, option: float) -> JointSpread:
    strata, sizes = all_items(pair)
    values = bootstrap(strata, sizes, measure, option, *draws)
    (a, both), (_, b) = np.cov(values.T)
    return JointSpread(float(a), float(b), float(both))


def _bootstrap_name(pair: ScoredPair) -> str:
    return "paired bootstrap of groups" if pair.n_groups else "paired stratified bootstrap"


def _n_trials(pair: ScoredPair, rows: ClassPair) -> float:
    """Independent rows of a class; of groups as many as would vary like ones of equal weight."""
    if rows.group is None:
        return rows.mass
    share = np.bincount(rows.group, rows.weight) / rows.mass
    return 1.0 / float(share @ share)


def _share_bounds(share: _Share, n_trials: float) -> Bounds:
    return partial(_bounds_of_share, share, n_trials)


def _bounds_of_share(share: _Share, n_trials: float, level: float) -> Interval:
    found = share_interval(share.value, share.centre, share.variance, n_trials, level)
    return Interval(*(share.scale.of(bound) for bound in found))


def _wilson_bounds(
    recall: float, n_trials: float, times: float, most: float, level: float
) -> Interval:
    found = wilson_interval(recall, n_trials, level)
    value = recall * times
    return Interval(value, found.low * times, max(min(found.high * times, most), value))


def _summed(parts: tuple[ClassCost, ...], level: float) -> Interval:
    return sum_interval([part.interval(level) for part in parts])


def _made_up_cost(part: ClassCost) -> float:
    """One row of the spread that the class's errors have, as a part of the variance."""
    if part.at_worst == 0.0:
        return 0.0
    incurred = min(part.value / part.at_worst, 1.0)
    return incurred * (1.0 - incurred) * (part.at_worst / part.n_trials) ** 2
