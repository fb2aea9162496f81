"""The search of RACHCV: candidates, depths of held-out rows, and the choices made from these.

1. `candidates` lists what is tried.
2. `held_out_choices` fits each candidate without the labels of each fold and measures these rows.
3. `choose_radius` moves the border to the best F1 of the held-out rows.
4. `first_of_equals` or, by `pu_scores`, `fewest_balls` chooses the candidate.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from rareclass.estimators.search import as_good_as_best
from rareclass.hyperball.ball import Ball, fit_ball, one_class_start
from rareclass.hyperball.pool import (
    RARE,
    SHARE,
    SOLVED,
    UNLABELLED,
    Grouping,
    Pool,
    RACHParameters,
    Survey,
    make_space,
)
from rareclass.hyperball.problem import BallSpace, Points
from rareclass.kernels.kernels import make_kernel, needs_width
from rareclass.metrics.intervals import wilson_interval
from rareclass.parameters import read_numbers
from rareclass.rows.source import stacked

# The first of each is what a single rare label, which allows no choice, is left with. Where the
# share puts the border, the first of equally good candidates wins as well, and a few labels are
# best served by a wide and dear ball (docs/decisions/0020).
PRICES = {SHARE: (30.0, 3.0, 0.3), SOLVED: (3.0, 0.3, 30.0)}
# Without a kernel dear majority rows push the centre out of the cases, towards a half-space.
ROUND_PRICES = (0.3, 0.03, 3.0)
# Widths, as multiples of the mean one.
WIDTHS = {SHARE: (8.0, 2.0, 0.5), SOLVED: (1.0, 2.0, 0.5, 4.0)}
# Margins, as multiples of k(x, x); without a kernel there is none, for the same reason.
MARGINS = (0.5, 0.2, 0.05)
# The search needs fewer digits and landmarks than the model that is kept, and finds the border.
_LOOSE: dict[str, Any] = {"tol": 1e-3, "max_outer": 3, "max_inner": 300}
_LOOSE |= {"radius": SOLVED, "radius_slack": 0.0}
_MOST_LANDMARKS = 100
# Depths nearer than this share of the largest one are equal.
_ROUNDING = 1e-9
# The border by share is as good as one learned from so many rare rows.
_SHARE_COUNTS_FOR = 8.0
# A difference of so much of a held-out rare row is none.
_HALF_A_ROW = 0.5


class BallCandidate(NamedTuple):
    """Parameters of one candidate; the width is None without a kernel that has one."""

    C1: float
    C2: float
    width: float | None
    margin: float = 0.0
    n_balls: int | str = 1  # for each category


class SearchGrid(NamedTuple):
    """Values to try for each parameter; None leaves them to `candidates`."""

    C1s: list[float] | None
    C2s: list[float] | None
    widths: list[float] | None
    margins: list[float] | None


def read_grid(**given: Any) -> SearchGrid:
    """Check the values of parameters by name: finite, at or above 0."""
    checked: dict[str, list[float] | None] = {}
    for name, values in given.items():
        above, ends = ("above 0", "()") if name == "widths" else ("at or above 0", "[)")
        allowed = f"a list of finite numbers {above}, or None"
        checked[name] = None if values is None else read_numbers(name, values, allowed, ends=ends)
    return SearchGrid(**checked)


def candidates(grid: SearchGrid, kernel: Any, radius: str, known: Survey) -> list[BallCandidate]:
    """Return the candidates for one kind of border, one width after the other."""
    widths: Sequence[float | None] = [None]
    if kernel is not None and needs_width(kernel):
        widths = grid.widths or [share * known.width for share in WIDTHS[radius]]
    margins, C1s = grid.margins, grid.C1s or PRICES[radius]
    if kernel is None:
        margins, C1s = margins or [0.0], grid.C1s or ROUND_PRICES
    elif margins is None:
        # In units of squared distances in the feature space.
        unit = make_kernel(kernel, known.width).diag(known.pools[0].X[:100]).mean()
        margins = [share * float(unit) for share in MARGINS]
    return [
        BallCandidate(C1, C2, width, margin, known.grouping.n_balls)
        for width, margin, C1, C2 in product(widths, margins, C1s, grid.C2s or [0.0])
    ]


class CandidateBalls(NamedTuple):
    """The balls that candidates have for one category."""

    tried: Sequence[BallCandidate]
    pool: Pool  # of all balls of the category together; the share is that of the category
    grouping: Grouping
    settings: RACHParameters  # besides those that the candidates differ in

    @classmethod
    def of(
        cls, label: Any, tried: Sequence[BallCandidate], known: Survey, settings: RACHParameters
    ) -> "CandidateBalls":
        """Join the pools of the balls of one category."""
        pools = [pool for pool in known.pools if pool.label == label]
        whole = pools[0]
        if len(pools) > 1:
            rows, first = np.unique(np.concatenate([one.rows for one in pools]), return_index=True)
            whole = whole._replace(
                rows=rows,
                kinds=np.concatenate([one.kinds for one in pools])[first],
                weight=np.concatenate([one.weight for one in pools])[first],
                X=stacked([one.X for one in pools])[first],
                rare_share=sum(one.rare_share for one in pools),
            )
        return cls(tried, whole, known.grouping, replace(settings, **_LOOSE))

    @property
    def widths(self) -> list[float | None]:
        """Widths that are tried, each once."""
        return list(dict.fromkeys(candidate.width for candidate in self.tried))

    def by_width(self) -> Iterator[tuple[list[int], BallSpace, Points]]:
        """Yield the positions of the candidates of each width, its space, and the pool's points."""
        few = min(self.settings.n_landmarks, _MOST_LANDMARKS)
        for width in self.widths:
            chosen = [k for k, candidate in enumerate(self.tried) if candidate.width == width]
            yield chosen, *make_space(self.settings.kernel, width or 1.0, self.pool, few)

    def fitted(
        self, chosen: list[int], space: BallSpace, points: Points, pool: Pool
    ) -> Iterator[tuple[int, Pool, Ball]]:
        """Fit each ball of candidates of one width: position of the candidate, pool and ball.

        The rare rows of `pool` are dealt out to the balls; those of the other balls weigh nothing.
        """
        rare = pool.which(RARE)
        total = pool.weight[rare].sum()
        for group in self.grouping.deal(rare, lambda positions: pool.X[positions]):
            if not len(group):
                continue
            others = np.setdiff1d(rare, group)
            kinds, weight = pool.kinds.copy(), pool.weight.copy()
            kinds[others], weight[others] = UNLABELLED, 0.0
            part = pool.weight[group].sum() / total if total else 1.0
            share = float(pool.rare_share * part)
            one = pool._replace(kinds=kinds, weight=weight, rare_share=share)
            start = one_class_start(points, one)
            for k in chosen:
                C1, C2, _, margin, _ = self.tried[k]
                settings = replace(self.settings, C1=C1, C2=C2, margin=margin)
                ball = fit_ball(space, points, one, settings, start)
                start = start._replace(multipliers=ball.solution.multipliers)
                yield k, one, ball


def held_out_choices(
    balls: CandidateBalls,
    folds: Sequence[np.ndarray],
    by_share: bool,
    learn_radius: bool,
    advance: Callable[..., None],
) -> "list[HeldOutChoice]":
    """Fit every candidate without the labels of each fold, and choose its radius on these rows.

    `folds` are numbers of the rows that stay without their label. The radius is the solved one or,
    `by_share`, that of the rare share. `advance` is called after each fold and width.
    """
    pool, tried = balls.pool, balls.tried
    tested = [np.flatnonzero(np.isin(pool.rows, fold)) for fold in folds]
    found = [np.full((len(tried), len(rows)), -np.inf) for rows in tested]
    for chosen, space, points in balls.by_width():
        width = tried[chosen[0]].width
        for rows, deepest in zip(tested, found, strict=True):
            kinds = pool.kinds.copy()
            kinds[rows] = UNLABELLED
            weight = pool.weight_unlabelled + float(pool.weight[rows].sum())
            without = pool._replace(kinds=kinds, weight_unlabelled=weight)
            for k, one, ball in balls.fitted(chosen, space, points, without):
                squared = ball.squared_radius
                if by_share:
                    squared = one.share_radius(ball.distances, squared)
                deepest[k] = np.maximum(deepest[k], squared - ball.distances[rows])
            advance(note="" if width is None else f"width {width:.3g}")
    depths = np.concatenate([np.zeros((len(tried), 0)), *found], axis=1)
    numbers = np.concatenate([np.zeros(0, np.intp), *tested])
    # Folds that left no rare label have no ball: their rows are far outside.
    is_finite = np.isfinite(depths)
    lowest = np.min(depths, initial=0.0, where=is_finite)
    depths = np.where(is_finite, depths, 2.0 * lowest - 1.0)
    known = pool.kinds[numbers] == RARE, pool.weight[numbers]
    prior = _SHARE_COUNTS_FOR if by_share else 0.0
    return [
        HeldOutChoice(choose_radius(row, *known, learn_radius, prior), pool.rows[numbers], row)
        for row in depths
    ]


def unlabelled_inside(
    of_category: Sequence[CandidateBalls], held_out: "Sequence[HeldOutChoice]"
) -> np.ndarray:
    """Weigh the unlabelled rows in the balls of a category, with all labels: (candidates,)."""
    slacks, weights = iter(one.choice.slack for one in held_out), []
    for balls in of_category:
        pool, own = balls.pool, [next(slacks) for _ in balls.tried]
        unlabelled = pool.which(UNLABELLED)
        inside = np.zeros((len(own), len(unlabelled)), dtype=bool)
        for width in balls.by_width():
            for k, _, ball in balls.fitted(*width, pool):
                inside[k] |= ball.distances[unlabelled] <= ball.squared_radius + own[k]
        weights.append(inside @ pool.weight[unlabelled])
    return np.concatenate(weights)


class ConfusionCounts(NamedTuple):
    """Counts of true positives, false positives and false negatives."""

    tp: int
    fp: int
    fn: int


def f1_interval(counts: ConfusionCounts) -> tuple[float, float]:
    """Return Wilson's 95 % interval, carried over from the share of hits to F1.

    Of the rows that are rare or were called rare, :math:`J = tp / (tp + fp + fn)` are both. Given
    how many such rows there are, tp is binomial, and :math:`F_1 = 2 J / (1 + J)` grows with J: the
    limits of J are those of F1. (0, 1) where no row is rare or was called rare.

    >>> low, high = f1_interval(ConfusionCounts(3, 1, 1))
    >>> round(low, 2), round(high, 2)
    (0.37, 0.94)
    """
    n = counts.tp + counts.fp + counts.fn
    if not n:
        return 0.0, 1.0
    _, low, high = wilson_interval(counts.tp / n, n, 0.95)
    return 2.0 * low / (1.0 + low), 2.0 * high / (1.0 + high)


class RadiusChoice(NamedTuple):
    """Slack to add to the squared radius, and its results on the held-out rows."""

    slack: float
    counts: ConfusionCounts  # of rows, whatever their weight: chance knows of rows only
    f1: float  # in weights
    n_rare: float  # weight of the rare ones among the held-out rows
    recall: float = 0.0  # the share of it that was called rare


class HeldOutChoice(NamedTuple):
    """Radius chosen for one candidate on the rows held out from one category."""

    choice: RadiusChoice
    rows: np.ndarray  # their numbers
    depths: np.ndarray  # R^2 - distance^2 in the ball in which a row lies deepest, slack apart


def choose_radius(
    depths: np.ndarray,
    is_rare: np.ndarray,
    weight: np.ndarray,
    learn: bool = True,
    prior: float = 0.0,
) -> RadiusChoice:
    """Find the slack s, where rows of depth at or above -s are called rare.

    s* is the slack with the best F1; of several the one nearest to 0, each in the middle between
    the depths of two rows, ``R^2 - distance^2`` of the held-out ones (n,). Where the border at 0 is
    itself an estimate, worth as much as `prior` rare rows, s* is drawn towards it: with r rare rows
    held out, :math:`s = s^* r / (r + prior)`. Without `learn` the slack is 0. O(n log n).

    >>> depths, is_rare = np.array([1.0, -1.0, -3.0]), np.array([True, True, False])
    >>> choose_radius(depths, is_rare, np.ones(3)).slack
    2.0
    >>> choose_radius(depths, is_rare, np.ones(3), prior=2.0).slack
    1.0
    """
    # Whole numbers of rounding errors: equal rows may differ by one, and a border from its row.
    unit = _ROUNDING * float(np.abs(depths).max(initial=0.0)) or 1.0
    level, slack, lowest = np.round(depths / unit), 0.0, 0.0
    n_rare = float(weight[is_rare].sum())
    if learn and n_rare:  # without a rare row no radius is better than another
        slack, lowest = _best_slack(depths, level, is_rare, weight)
        if prior:
            slack *= n_rare / (n_rare + prior)
            lowest = np.round(-slack / unit)
    called = level >= lowest
    kinds = (called & is_rare, called & ~is_rare, ~called & is_rare)
    tp, fp, fn = (float(weight[kind].sum()) for kind in kinds)
    f1 = 2.0 * tp / (2.0 * tp + fp + fn) if tp + fp + fn else 0.0
    counts = ConfusionCounts(*(int(np.count_nonzero(kind)) for kind in kinds))
    return RadiusChoice(slack, counts, f1, tp + fn, tp / (tp + fn) if tp else 0.0)


def _best_slack(
    depths: np.ndarray, level: np.ndarray, is_rare: np.ndarray, weight: np.ndarray
) -> tuple[float, float]:
    """Return the slack with the best F1, and the lowest level that it calls rare."""
    order = np.argsort(-level, kind="stable")
    falling, steps, called = depths[order], level[order], np.cumsum(weight[order])
    hits = np.cumsum(weight[order] * is_rare[order])
    f1 = 2.0 * hits / (called + hits[-1])
    ends = np.append(steps[1:] < steps[:-1], True)  # equal depths are called together
    best = np.flatnonzero(ends & (f1 >= f1[ends].max() - 1e-12))
    below = np.append(falling[1:], 2.0 * falling[-1] - falling[0])
    at_border = (steps >= 0.0) & (np.append(steps[1:], -1.0) < 0.0)
    slacks = np.where(at_border, 0.0, -0.5 * (falling + below))[best]
    nearest = int(np.argmin(np.abs(slacks)))
    return float(slacks[nearest]), float(steps[best[nearest]])


def first_of_equals(choices: Sequence[Sequence[RadiusChoice]]) -> int:
    """Return the first candidate whose F1 is within half a rare row of the best one's."""
    mean = mean_f1(choices)
    a_row = np.mean([1.0 / max(row[0].n_rare, 1.0) for row in choices])
    return int(as_good_as_best(mean, float(_HALF_A_ROW * a_row) + 1e-12)[0])


def mean_f1(choices: Sequence[Sequence[RadiusChoice]]) -> np.ndarray:
    """Return the F1 of every candidate, the mean over the categories."""
    return np.mean([[one.f1 for one in row] for row in choices], axis=0)


def pu_scores(choices: Sequence[Sequence[RadiusChoice]], called: np.ndarray) -> np.ndarray:
    r"""Estimate precision times recall of candidates among the unlabelled rows, up to a factor.

    With r the recall, estimated by (hits + 1/2) / (rare rows + 1) of the held-out ones, and c the
    weight of the unlabelled rows inside (`called`, of shape (categories, candidates)),

    .. math:: \frac{r^2}{c + 1} \propto \frac{r^2}{P(inside)}
        = \frac{P(inside | rare)\, P(rare | inside)}{P(rare)}

    needs no share of rare rows (Lee and Liu, ICML 2003). The geometric mean over the categories; 0
    where nothing rare was found.
    """
    n_rare = np.array([[one.n_rare for one in row] for row in choices])
    hits = np.array([[one.recall for one in row] for row in choices]) * n_rare
    recall = np.where(hits > 0.0, (hits + 0.5) / (n_rare + 1.0), 0.0)
    with np.errstate(divide="ignore"):
        return np.exp(np.mean(2.0 * np.log(recall) - np.log(called + 1.0), axis=0))


def fewest_balls(
    scores: np.ndarray, numbers: Sequence[int | str], choices: Sequence[Sequence[RadiusChoice]]
) -> int:
    """Return the best candidate of the first number of balls that is as good as any.

    A number is as good where half a rare row more would lift its best score to the overall best.
    `numbers` has an entry for each candidate, the simplest first.
    """
    best = scores.max()
    within = best - as_good_from(best, [row[0].n_rare for row in choices])
    fewest = numbers[as_good_as_best(scores, within)[0]]
    return int(np.argmax(np.where([number == fewest for number in numbers], scores, -np.inf)))


def as_good_from(best: float, n_rare: Sequence[float]) -> float:
    """Return the score from which a candidate is as good as one with half a rare row more found.

    >>> round(as_good_from(1.0, [2.0]), 4)
    0.5625
    """
    left = [1.0 - _HALF_A_ROW / max(n, 1.0) for n in n_rare]
    return float(best * np.exp(2.0 * np.mean(np.log(left))) * (1.0 - 1e-12))
