"""Precision, recall, average precision and prevalence when only some rows were checked.

Rows that a rule chose, such as the highest scores, say nothing of the others. Rows that were drawn
at random with known chances do: each stands for ``1 / chance`` rows. All measures here are those
of the table itself, as if every row had been checked, and so are their intervals: where every row
is known, they have no width.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.errors import ErrorKind, counted, setting
from rareclass.labels.states import ListedRows, check_spreads, check_weights
from rareclass.metrics.intervals import Interval, measures_block, normal_quantile
from rareclass.metrics.scored_classes import FloatArray, score_column
from rareclass.parameters import check_number
from rareclass.stored import PlainData
from rareclass.table_block import TableBlock

N_REPLICATES = 2_000
# Numbers drawn at a time: 32 MB each.
_BLOCK = 4_000_000
# Random rows whose weights differ by less than this factor are one group of the unseen case.
_GROUP = 4.0
_SAYS_LITTLE = 0.5  # width of an interval of recall from which on its middle says nothing
_BINS = 200  # columns that hold the open rows that are not rare
_RARE, _OTHERS, _UNSEEN = 1, 2, 3  # kinds of columns
_ENDLESS = 1e9  # trials whose share of the class is as good as nil


class CheckMethod(StrEnum):
    """How the rows without a label are estimated."""

    WEIGHTS = "weights"  # Horvitz-Thompson: each checked row counts by its weight
    STRATIFIED = "stratified"  # weights scaled to the numbers of rows above and below the threshold
    ASSISTED = "model-assisted"  # probabilities of all rows, corrected by the checked rows


class CheckedSample(NamedTuple):
    """Known labels of a table, their weights, and their parts in the variance of weighted sums."""

    y: NDArray[np.int8]  # shape (n_rows,): 1 rare, 0 not, -1 unknown
    weight: FloatArray  # rows that a known row stands for; 0 of unknown rows
    spread: FloatArray

    @classmethod
    def of(cls, code: ArrayLike, known_after: ArrayLike, rounds: Sequence[ListedRows]) -> Self:
        """Weigh the known rows of a review by `check_weights` and `check_spreads`."""
        given = np.asarray(known_after), rounds
        signs = np.sign(np.asarray(code)).astype(np.int8)
        return cls(signs, check_weights(*given), check_spreads(*given))


@dataclass(frozen=True)
class CheckedMeasures(PlainData):
    """Measures of a table of which some rows are checked, with intervals; None: cannot be known."""

    method: CheckMethod
    threshold: float
    level: float
    n_rows: int
    n_checked: int  # rows with a known label
    n_found: int  # rare ones
    n_above: int  # rows above the threshold: alerts
    n_random_above: int  # known rows that stand for others
    n_random_below: int
    precision: Interval | None
    recall: Interval | None
    average_precision: Interval | None
    prevalence: Interval | None
    n_rare: Interval | None
    random_checks: int | None  # rows below that would bring recall to +- `half_width`
    half_width: float

    @property
    def false_positive_rate(self) -> Interval | None:
        """Share of the other rows that are alerts, with the outermost bounds of both numbers."""
        if self.precision is None or self.n_rare is None:
            return None
        false = (self.n_above * (1.0 - each) for each in (self.precision[k] for k in (0, 2, 1)))
        rates = (n / max(self.n_rows - of, 1.0) for n, of in zip(false, self.n_rare, strict=True))
        return Interval(*(min(each, 1.0) for each in rates))

    def block(self) -> TableBlock:
        """Return the table of all measures."""
        measures = (
            ("precision above threshold", self.precision, 3),
            ("recall above threshold", self.recall, 3),
            ("average precision", self.average_precision, 3),
            ("share of rare rows", self.prevalence, 5),
            ("rare rows", self.n_rare, 0),
        )
        return measures_block("Measure, of all rows", measures, self.level)

    def sentences(self) -> list[str]:
        """Say what the rows below the threshold stand on, and how many checks would tell more."""
        n_random, recall = self.n_random_below, self.recall
        stands = f"{counted(n_random, 'row stands', 'rows stand')} for those that were not checked"
        stands = stands if n_random else "no row was drawn at random"
        said = [f"Below the threshold {stands}."]
        if recall is not None and recall.high - recall.low > _SAYS_LITTLE:
            said.append(
                "The random checks are too few to say what the recall is: it may be anything from "
                f"{recall.low:.2g} to {recall.high:.2g}."
            )
        is_wide = recall is None or recall.high - recall.low > 2.0 * self.half_width
        if self.random_checks and is_wide:
            most = "at most about" if recall is None else "about"
            said.append(
                f"Recall would be known to +-{self.half_width:g} with {most} "
                f"{self.random_checks:,} random checks below the threshold "
                f"(rareclass review {setting('random')})."
            )
        return said


def checked_measures(
    scores: ArrayLike,
    sample: CheckedSample,
    threshold: float,
    *,
    method: str = CheckMethod.STRATIFIED,
    probability: ArrayLike | None = None,
    level: float = 0.95,
    half_width: float = 0.1,
) -> CheckedMeasures:
    r"""Estimate the measures of a table from the rows that were checked.

    Row i counts as :math:`u_i = m_i + w_i (y_i - m_i)` rare rows, an unknown row as :math:`m_i`.
    The method says what :math:`m_i` is: 0 (weights), the share of rare rows on the row's side of
    the threshold (stratified), or its probability (model-assisted). The sum of u estimates the
    rare rows, its part above the threshold the hits, and

    .. math:: AP = \sum_i u_i (U_i - u_i + 1) / (k_i \sum_i u_i),

    with :math:`U_i` the sum of u, and :math:`k_i` the number of rows, that score at least as high
    as i. Numbers of rows are known and not estimated.

    Intervals are percentiles of replicates, with a fixed seed. Each gives a row's weight a gamma
    distribution of the weight's mean and variance. An unseen row of each weight and class is added
    to the limit that it widens: x rare rows of a weight get Garwood's exact limits of a Poisson
    mean. Where none of the n random rows of a weight is of the class, the unseen rows have the
    limits of drawing n rows without replacement (`_Varying.of_empty`).

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        Of every row, by a model that did not learn from the verdicts; higher means rarer.
    sample : CheckedSample
    threshold : float
        Rows that score more are alerts.
    method : {"stratified", "weights", "model-assisted"}
    probability : array-like of shape (n_rows,), optional
        Calibrated probabilities of a model that did not learn from the verdicts.
    level : float, default=0.95
    half_width : float, default=0.1
        Wanted precision of the recall, for `CheckedMeasures.random_checks`.

    Raises
    ------
    ValueError
        On columns of different lengths, numbers outside of their range, and no rare checked row.
    """
    score = score_column(scores, "scores", len(sample.y), "y")
    method = CheckMethod(method)
    check_number("level", level, "strictly between 0 and 1", 0.0, 1.0)
    check_number("half_width", half_width, "strictly between 0 and 1", 0.0, 1.0)
    if not (sample.y == 1).any():
        raise ErrorKind.LABELS.error(
            "None of the checked rows is rare.", "Check more rows, the highest scores first."
        )
    above = score > threshold
    sides = [_Side.of(sample, each, score, method) for each in (above, ~above)]
    expected = _expected(method, sample, sides, probability)
    is_blind = [a.is_blind(b, sample.weight) for a, b in (sides, sides[::-1])]
    estimate, n_above = _Estimate(score, sample, expected, sides), int(above.sum())
    precision = recall = area = n_rare = prevalence = None
    if n_above and not is_blind[0]:
        precision = estimate.interval(lambda each: each.above / n_above, level)
    if not any(is_blind):
        recall = estimate.interval(lambda each: each.recall, level, is_ratio=True)
        area = estimate.interval(lambda each: each.area, level, is_ratio=True)
        n_rare = estimate.interval(lambda each: each.above + each.below, level)
        prevalence = Interval(*(each / len(score) for each in n_rare))
    hits = sides[0].least if precision is None else precision.value * n_above
    n_known, n_rare_known = (int((sample.y >= least).sum()) for least in (0, 1))
    n_random, n_random_below = (len(side.open) for side in sides)
    n_checks = random_checks(hits, sides[1].n_unseen, recall, half_width, level)
    return CheckedMeasures(
        method, float(threshold), level, len(score), n_known, n_rare_known, n_above,
        n_random, n_random_below, precision, recall, area, prevalence, n_rare, n_checks, half_width,
    )  # fmt: skip


def weights_at(scores: FloatArray, sample: CheckedSample, threshold: float) -> FloatArray:
    """Return the weights with which checked rows give the stratified estimates at a threshold.

    Those of the rows that stand for others add up to the number of these, on each side.
    """
    weight = np.zeros(len(scores))
    for mask in (scores > threshold, scores <= threshold):
        side = _Side.of(sample, mask, scores, CheckMethod.STRATIFIED)
        of_open = sample.weight[side.open]
        weight[side.fixed] = 1.0
        weight[side.open] = of_open * (side.n_unseen / max(of_open.sum(), 1e-300))
    return weight


def random_checks(
    hits: float, n_unseen: int, recall: Interval | None, half_width: float, level: float = 0.95
) -> int | None:
    r"""Return how many random checks below the threshold would bring recall to ``+- half_width``.

    With A rare rows above and U rows below it, n checks give recall R the variance
    :math:`R^3 (1 - R) U / (n A)`, which is greatest at R = 3/4. R is the recall of the interval,
    or any where there is none, at which n is greatest. None where A is 0.

    >>> random_checks(100, 10_000, None, 0.1)
    2884
    """
    if hits <= 0:
        return None
    low, high = (0.0, 1.0) if recall is None else recall[1:]
    worst = float(np.clip(0.75, low, high))
    variance = worst**3 * (1.0 - worst) * n_unseen / hits
    n = variance * (normal_quantile(level) / half_width) ** 2
    return math.ceil(n / (1.0 + n / n_unseen)) if n else 0


class _Side(NamedTuple):
    """The rows above the threshold, or the others."""

    mask: NDArray[np.bool_]
    fixed: NDArray[np.bool_]  # rows of the side that count as they are
    open: NDArray[np.intp]  # known rows of the side that stand for others
    n_unseen: int  # rows that are not fixed
    least: int  # known rare rows
    most: int  # rows that are not known to be of the majority

    @classmethod
    def of(
        cls, sample: CheckedSample, mask: NDArray[np.bool_], score: FloatArray, method: CheckMethod
    ) -> Self:
        """Sort the rows of a side.

        Except by plain weights, rows that stand for no other, the highest ones down to the first
        unknown one, and all rows of a side of which every row is known are fixed.
        """
        known = sample.y >= 0
        fixed = (sample.weight > 0.0) & (sample.spread == 0.0)
        if method is not CheckMethod.WEIGHTS:
            fixed |= known & (sample.weight > 0.0) & (sample.weight <= 1.0)
            unknown = score[~known]
            fixed |= known & (score > (unknown.max() if len(unknown) else -np.inf))
            if known[mask].all():
                fixed |= known
        fixed &= mask
        rows = np.flatnonzero(mask & ~fixed & (sample.weight > 0.0))
        rare, cleared = (int((sample.y[mask] == each).sum()) for each in (1, 0))
        n = int(mask.sum())
        return cls(mask, fixed, rows, n - int(fixed.sum()), rare, n - cleared)

    def is_blind(self, other: Self, weight: FloatArray) -> bool:
        """Say whether no open row stands for the unknown rows.

        Unless by the chances of the other side none would be drawn in 1 of 20 samples or more:
        then no open row is chance.
        """
        expected = self.n_unseen / weight[other.open].mean() if len(other.open) else np.inf
        return self.n_unseen > 0 and not len(self.open) and expected > -math.log(0.05)


class _Varying(NamedTuple):
    """Corrections that vary with weights, a column each; the highest score first."""

    row: NDArray[np.intp]  # where the column stands
    mean: FloatArray
    variance: FloatArray
    sign: FloatArray  # 1 or -1
    itself: FloatArray  # part of the correction that is not above itself
    kind: FloatArray  # of `_RARE`, `_OTHERS`, `_UNSEEN`
    scale: FloatArray  # correction by an unseen row of a class without rows, else 0
    weight: FloatArray  # rows that a random row stands for
    n_trials: FloatArray  # random rows among which there is none of the class

    @classmethod
    def of(
        cls, sides: Sequence[_Side], sample: CheckedSample, expected: FloatArray, score: FloatArray
    ) -> Self:
        """Collect the columns of the first side.

        Each open rare row is one; the other open rows are at most `_BINS`, each at its middle row.
        A group of open rows of similar weight has an unseen row of each class. Where a side has
        unknown rows and no open one, the unseen rows have the weight of those of the other.
        """
        side, other = sides
        rows = side.open[np.argsort(-score[side.open], kind="stable")]
        is_rare = sample.y[rows] == 1
        group = np.floor(np.log(sample.weight[rows]) / math.log(_GROUP))
        parts = [(each, 1.0, _RARE) for each in rows[is_rare][:, None]]
        others = rows[~is_rare]
        bins = np.array_split(others, min(max(len(others), 1), _BINS))
        parts += [(each, 1.0, _OTHERS) for each in bins if len(each)]
        for each in np.unique(group):
            alike = rows[group == each]
            parts += [(alike, 0.5 / len(alike), kind) for kind in (_UNSEEN, -_UNSEEN)]
        unknown = np.flatnonzero(side.mask & ~side.fixed)
        if not len(rows) and len(unknown) and len(other.open):
            parts = [(other.open, 0.5 / len(other.open), _UNSEEN)]
        columns = []
        for alike, part, kind in parts:
            is_class = kind in (_RARE, _UNSEEN)
            factor, sign = is_class - expected[alike], 1.0 if is_class else -1.0
            mean = part * (sample.weight[alike] @ np.abs(factor))
            if mean == 0.0:  # no correction: the label is as expected
                continue
            variance = part * (sample.spread[alike] @ factor**2)
            # Of the pairs of rows in a bin, each counts for the lower row alone.
            squares = (sample.weight[alike] * factor) @ (sample.weight[alike] * factor)
            itself = 0.5 + 0.5 * squares * part**2 / mean**2
            place = alike[len(alike) // 2] if len(rows) else unknown[len(unknown) // 2]
            is_class = (sample.y[alike] == 1) == (kind == _UNSEEN)
            is_empty = abs(kind) == _UNSEEN and not (len(rows) and is_class.any())
            scale, weight = np.abs(factor).max() * is_empty, sample.weight[alike].max()
            of_empty = scale, weight, len(alike) if len(rows) else _ENDLESS
            columns.append((place, mean, variance, sign, itself, abs(kind), *of_empty))
        table = np.array(columns, float).reshape(-1, 9).T
        return cls(table[0].astype(np.intp), *table[1:])

    def of_empty(self, n: int) -> FloatArray:
        r"""Draw, evenly spread, n numbers of unseen rows for each class without rows.

        With M rows of the class in a group of N = n w, none is among the n drawn with a chance U
        of at most :math:`(1 - 1 / w)^M`, and of about :math:`(1 - M / (N - (n - 1) / 2))^n` (Cannon
        2001). The lesser M of a uniform U exceeds the hypergeometric limit by 5 % at most.
        """
        columns = self.scale, self.weight, self.n_trials
        scale, weight, n_trials = (each[self.scale > 0.0] for each in columns)
        chance = np.tile(np.linspace(0.0, 1.0, n)[:, None], len(scale))
        chance = np.random.default_rng(1).permuted(chance, axis=0)
        n_rows = n_trials * weight - 0.5 * (n_trials - 1.0) * (weight > 1.0)
        unseen = n_rows * (1.0 - chance ** (1.0 / n_trials))
        with np.errstate(divide="ignore", invalid="ignore"):
            one_by_one = np.log(chance) / np.log1p(-1.0 / weight)
        return scale * np.where(weight > 1.0, np.fmin(unseen, one_by_one), unseen)


class _Totals(NamedTuple):
    """Estimates, an entry for each replicate."""

    above: FloatArray  # rare rows above the threshold
    below: FloatArray
    recall: FloatArray
    area: FloatArray  # average precision


class _Estimate:
    """Totals as functions of the weights of open rows; sums over the table are made once."""

    def __init__(
        self, score: FloatArray, sample: CheckedSample, expected: FloatArray, sides: Sequence[_Side]
    ) -> None:
        of_sides = [_Varying.of(each, sample, expected, score) for each in (sides, sides[::-1])]
        every = _Varying(*(np.concatenate(pair) for pair in zip(*of_sides, strict=True)))
        order = np.argsort(-score[every.row], kind="stable")
        self._varying = varying = _Varying(*(column[order] for column in every))  # type: ignore[arg-type]
        self._n_above, self._sides = len(of_sides[0].row), sides
        base, rows = expected.copy(), varying.row
        for side in sides:
            base[side.fixed] = sample.y[side.fixed]
        self._base = [float(base[side.mask].sum()) for side in sides]
        by_score = np.argsort(-score, kind="stable")
        ranked = -score[by_score]
        last = np.searchsorted(ranked, ranked, side="right")
        rank, above = np.empty(len(score)), np.empty(len(score))
        rank[by_score] = last
        above[by_score] = np.append(0.0, np.cumsum(base[by_score]))[last]
        # Open rare rows are columns as a whole, of all others the expectation stays in the table.
        is_whole = varying.kind == _RARE
        self._own = np.where(is_whole, base[rows], 0.0)
        share = base / rank
        share[rows[is_whole]] = 0.0
        self._constant = float(share @ (above - base + 1.0))
        from_top = np.append(0.0, np.cumsum(share[by_score]))
        first = np.searchsorted(ranked, -score[rows], side="left")
        self._lifts = from_top[-1] - from_top[first]
        self._above = above[rows] - 2.0 * np.where(is_whole, 0.0, base[rows])
        self._rank = rank[rows]
        # Columns of equal score are one step of a cumulative sum.
        ours = -score[rows]
        self._start, self._end = (np.searchsorted(ours, ours, side) for side in ("left", "right"))
        self._value, self._drawn = self.value(), self.replicates(N_REPLICATES)

    def interval(
        self, of: Callable[[_Totals], FloatArray], level: float, is_ratio: bool = False
    ) -> Interval:
        """Return a measure and percentiles of its replicates; a sum, or a ratio of sums."""
        middle = float(of(self._value)[0])
        lower, upper = self._drawn[2:] if is_ratio else self._drawn[:2]
        low = float(np.quantile(of(lower), (1.0 - level) / 2.0))
        high = float(np.quantile(of(upper), (1.0 + level) / 2.0))
        return Interval(middle, min(low, middle), max(high, middle))

    def value(self) -> _Totals:
        r"""Return the estimates, ratios freed from their bias.

        A ratio S / T of unbiased sums is too great on average, as T varies below the line. One
        unseen rare row balances that: with H rare rows above and M below, of variances
        :math:`c_H H` and :math:`c_M M` (of the unseen rows where no random row of a side is rare),

        .. math:: R = \frac{H + c_H R}{H + M + c_H R + c_M (1 - R)}

        is the recall, right to the second order as Beale's estimator is, and also where M = 0.
        Average precision has the same unseen row, shared among the columns of a side by variance.
        """
        varying = self._varying
        is_seen, of_hits = varying.kind != _UNSEEN, np.arange(len(varying.mean)) < self._n_above
        mean = np.where(is_seen, varying.mean, 0.0)
        found = self._totals(mean[None, :], varying.itself, 1.0)
        hits, missed = float(found.above[0]), float(found.below[0])
        total, units, shares = hits + missed, [], []
        for rows, number in ((of_hits, hits), (~of_hits, missed)):
            has_rare = (rows & (varying.kind == _RARE)).any()
            counted = rows & (is_seen if has_rare else is_seen | (varying.sign > 0.0))
            variance = np.where(counted, varying.variance, 0.0)
            number += varying.mean[counted & ~is_seen].sum()
            units.append(variance.sum() / max(number, 1e-300))
            shares.append(variance / max(variance.sum(), 1e-300))
        wider = units[1] - units[0]
        root = math.sqrt(max((total + wider) ** 2 - 4.0 * wider * hits, 0.0))
        recall = min(2.0 * hits / (total + wider + root), 1.0)
        added = units[0] * recall * shares[0] + units[1] * (1.0 - recall) * shares[1]
        own = self._own + mean * varying.sign
        sums = np.append(0.0, np.cumsum(mean * varying.sign))[self._end]
        per_rank = np.append(0.0, np.cumsum(own / self._rank))
        of_area = (self._above + sums - 2.0 * own + 1.0) / self._rank + self._lifts
        of_area += per_rank[-1] - per_rank[self._start]
        area = (found.area * total + added @ of_area) / (total + added.sum())
        return found._replace(recall=np.array([recall]), area=np.clip(area, 0.0, 1.0))

    def replicates(self, n: int) -> list[_Totals]:
        """Draw the corrections n times, for lower and upper limits of sums, then of ratios.

        Of the unseen rows those that raise a measure count for its upper limit, and those that
        lower it for its lower limit: rare rows raise sums; above the threshold they raise ratios,
        and below it they lower them.
        """
        random, varying = np.random.default_rng(0), self._varying
        scale, is_seen = varying.variance / varying.mean, varying.kind != _UNSEEN
        rows = np.where(is_seen, 1.0, 2.0) * varying.mean / scale  # a column has half an unseen row
        raises_sums = varying.sign > 0.0
        raises_ratios = raises_sums == (np.arange(len(scale)) < self._n_above)
        counted = [is_seen | each for up in (raises_sums, raises_ratios) for each in (~up, up)]
        parts, of_empty = [], varying.of_empty(n)
        step = max(_BLOCK // max(len(scale), 1), 1)
        for start in range(0, n, step):
            drawn = random.gamma(rows, scale, (min(step, n - start), len(scale)))
            drawn[:, varying.scale > 0.0] = of_empty[start : start + step]
            # The rows that a weight stands for are spread around its score: half lie above.
            parts.append([self._totals(np.where(mask, drawn, 0.0), 0.5, 0.5) for mask in counted])
        of_bounds = [zip(*each, strict=True) for each in zip(*parts, strict=True)]
        return [_Totals(*map(np.concatenate, each)) for each in of_bounds]

    def _totals(self, amount: FloatArray, itself: FloatArray | float, once: float) -> _Totals:
        n_above, correction = self._n_above, amount * self._varying.sign
        sums = np.append(np.zeros((len(amount), 1)), np.cumsum(correction, axis=1), axis=1)
        rare = sums[:, n_above], sums[:, -1] - sums[:, n_above]
        sides = zip(self._base, rare, self._sides, strict=True)
        above, below = (np.clip(base + part, side.least, side.most) for base, part, side in sides)
        total = np.maximum(sum(self._base) + sums[:, -1], sum(s.least for s in self._sides))
        own = self._own + correction
        at_least = self._above + sums[:, self._end] - itself * own + once
        area = self._constant + correction @ self._lifts + (own * at_least) @ (1.0 / self._rank)
        return _Totals(above, below, above / (above + below), np.clip(area / total, 0.0, 1.0))


def _expected(
    method: CheckMethod, sample: CheckedSample, sides: Sequence[_Side], probability: Any
) -> FloatArray:
    """Return what each row is expected to be without its label."""
    expected = np.zeros(len(sample.y))
    if method is CheckMethod.ASSISTED:
        if probability is None:
            raise ErrorKind.SETTING.error("method='model-assisted' needs probability, one a row.")
        expected = score_column(probability, "probability", len(expected), "scores")
        if not ((expected >= 0.0) & (expected <= 1.0)).all():
            raise ErrorKind.CELL.error("probability must lie between 0 and 1.")
    elif method is CheckMethod.STRATIFIED:
        for side in sides:
            weight = sample.weight[side.open]
            if len(weight):
                expected[side.mask] = weight @ (sample.y[side.open] == 1) / weight.sum()
    return expected
