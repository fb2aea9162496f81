"""What RACHCV tries, and how deep labelled rows lie in balls fitted without their labels."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.hyperball.ball import (
    SHARE,
    SOLVED,
    Ball,
    BallSettings,
    Start,
    fit_ball,
    one_class_start,
    share_radius,
)
from rareclass.hyperball.ball_problem import Points
from rareclass.hyperball.fitting import Grouping, Survey, make_space
from rareclass.hyperball.pool import RARE, UNLABELLED, Pool
from rareclass.hyperball.spaces import Space
from rareclass.kernels.kernels import make_kernel, needs_width

# The first of each is what a single rare label, which allows no choice, is left with. Where the
# share puts the border, the first of equally good candidates wins as well, and a few labels are
# best served by a wide and dear ball (docs/decisions/0043).
PRICES = {SHARE: (30.0, 3.0, 0.3), SOLVED: (3.0, 0.3, 30.0)}
# Without a kernel dear majority rows push the centre out of the cases, towards a half-space.
ROUND_PRICES = (0.3, 0.03, 3.0)
# Widths, as multiples of the mean one.
WIDTHS = {SHARE: (8.0, 2.0, 0.5), SOLVED: (1.0, 2.0, 0.5, 4.0)}
# Margins, as multiples of k(x, x); without a kernel there is none, for the same reason.
MARGINS = (0.5, 0.2, 0.05)


class BallCandidate(NamedTuple):
    """Parameters to try; the width is None without a kernel that has one."""

    C1: float
    C2: float
    width: float | None
    margin: float = 0.0
    n_balls: int | str = 1  # for each category


class Grid(NamedTuple):
    """Values to try for each parameter; None where they are left to `candidates`."""

    C1s: list[float] | None
    C2s: list[float] | None
    widths: list[float] | None
    margins: list[float] | None


def candidates(grid: Grid, kernel: Any, radius: str, known: Survey) -> list[BallCandidate]:
    """All that is to be tried for one kind of border, one width after the other.

    Unlabelled rows are given no price of their own where none is asked for: they help by telling
    where the border is (docs/decisions/0020).
    """
    widths: Sequence[float | None] = [None]
    if kernel is not None and needs_width(kernel):
        widths = grid.widths or [share * known.width for share in WIDTHS[radius]]
    margins, C1s = grid.margins, grid.C1s or PRICES[radius]
    if kernel is None:
        margins, C1s = margins or [0.0], grid.C1s or ROUND_PRICES
    elif margins is None:
        margins = [share * _unit(kernel, known) for share in MARGINS]
    return [
        BallCandidate(C1, C2, width, margin, known.grouping.n_balls)
        for width, margin, C1, C2 in product(widths, margins, C1s, grid.C2s or [0.0])
    ]


def read_grid(**given: Any) -> Grid:
    """The values of parameters by name, checked: finite, at or above 0."""
    return Grid(**{name: _values(name, values) for name, values in given.items()})


def _values(name: str, values: Any) -> list[float] | None:
    if values is None:
        return None
    least = np.nextafter(0.0, 1.0) if name == "widths" else 0.0
    above = "above 0" if name == "widths" else "at or above 0"
    try:
        given = [float(value) for value in np.ravel(np.asarray(values, dtype=np.float64))]
    except (TypeError, ValueError):
        given = []
    if not given or not all(least <= value < np.inf for value in given):
        raise ValueError(f"{name}={values!r} must be a list of finite numbers {above}, or None.")
    return given


def _unit(kernel: Any, known: Survey) -> float:
    """What squared distances are like in the feature space."""
    X = known.tasks[0].pool.X[:100]
    return float(np.mean(make_kernel(kernel, known.width).diag(X)))


# Choosing needs fewer digits and fewer landmarks than the model that is kept.
_TOL = 1e-3
_MOST_OUTER, _MOST_INNER = 3, 300
_MOST_LANDMARKS = 100


class Depths(NamedTuple):
    """Of the n rows that were held out from one category's balls."""

    rows: np.ndarray  # their numbers, fold by fold
    is_rare: np.ndarray
    weight: np.ndarray
    depths: np.ndarray  # (candidates, n): R^2 - distance^2, in the ball in which a row lies deepest
    # the same if R is where the rare share of the unlabelled rows lies inside
    depths_by_share: np.ndarray


class Cases(NamedTuple):
    """The rows that shape the balls of one category, and how its rare rows are dealt out."""

    label: Any
    pool: Pool  # of all its balls together; the share is that of the category
    grouping: Grouping

    def balls(self, pool: Pool) -> Iterator[Pool]:
        """The pool as each ball sees it, its rare rows dealt out as they are labelled there.

        Rare rows of the other balls weigh nothing.
        """
        rare = pool.which(RARE)
        total = pool.weight[rare].sum()
        for group in self.grouping.deal(rare, lambda positions: pool.X[positions]):
            others = np.setdiff1d(rare, group)
            kinds, weight = pool.kinds.copy(), pool.weight.copy()
            kinds[others], weight[others] = UNLABELLED, 0.0
            part = pool.weight[group].sum() / total if total else 1.0
            share = float(pool.rare_share * part)
            yield pool._replace(kinds=kinds, weight=weight, rare_share=share)


def cases_of(known: Survey, label: Any) -> Cases:
    """What shapes the balls of one category of a table."""
    pools = [task.pool for task in known.tasks if task.label == label]
    if len(pools) == 1:
        return Cases(label, pools[0], known.grouping)
    rows, first = np.unique(np.concatenate([pool.rows for pool in pools]), return_index=True)
    kinds, weight = (
        np.concatenate([getattr(pool, name) for pool in pools])[first]
        for name in ("kinds", "weight")
    )
    stack = sparse.vstack if sparse.issparse(pools[0].X) else np.concatenate
    X = stack([pool.X for pool in pools])
    X = (sparse.csr_array(X) if sparse.issparse(X) else X)[first]
    share = sum(pool.rare_share for pool in pools)
    together = pools[0]._replace(rows=rows, kinds=kinds, weight=weight, X=X, rare_share=share)
    return Cases(label, together, known.grouping)


def held_out_depths(
    cases: Cases,
    folds: Sequence[np.ndarray],
    tried: Sequence[BallCandidate],
    kernel: Any,
    n_landmarks: int,
    advance: Callable[..., None],
) -> Depths:
    """Fit every candidate without the labels of each fold, and measure the fold's rows.

    `folds` are numbers of the rows that lose their label: they stay, unlabelled. The rare rows that
    are left are dealt out to the balls anew. At most 100 landmarks are used. `advance` is called
    after each fold and width.
    """
    pool = cases.pool
    tested = [np.flatnonzero(np.isin(pool.rows, fold)) for fold in folds]
    found = [np.full((2, len(tried), len(rows)), -np.inf) for rows in tested]
    for chosen, space, points in _by_width(pool, tried, kernel, n_landmarks):
        width = tried[chosen[0]].width
        for rows, tables in zip(tested, found, strict=True):
            for one in cases.balls(_without_labels(pool, rows)):
                path = _path(cases.label, space, points, one, [tried[k] for k in chosen])
                for k, ball in zip(chosen, path, strict=False):
                    borders = np.array([[ball.squared_radius], [_by_share(ball, one)]])
                    here = borders - ball.distances[rows]
                    tables[:, k] = np.maximum(tables[:, k], here)
            advance(note="" if width is None else f"width {width:.3g}")
    plain, by_share = (_finite(table) for table in np.concatenate(found, axis=2))
    numbers = np.concatenate(tested)
    is_rare = pool.kinds[numbers] == RARE
    return Depths(pool.rows[numbers], is_rare, pool.weight[numbers], plain, by_share)


def unlabelled_inside(
    cases: Cases,
    tried: Sequence[BallCandidate],
    slacks: Sequence[float],
    kernel: Any,
    n_landmarks: int,
) -> np.ndarray:
    """Weight of the unlabelled rows in the balls of one category, with all labels: (candidates,).

    `slacks` are what each candidate adds to the squared radius.
    """
    pool = cases.pool
    unlabelled = pool.which(UNLABELLED)
    inside = np.zeros((len(tried), len(unlabelled)), dtype=bool)
    for chosen, space, points in _by_width(pool, tried, kernel, n_landmarks):
        for one in cases.balls(pool):
            path = _path(cases.label, space, points, one, [tried[k] for k in chosen])
            for k, ball in zip(chosen, path, strict=True):
                inside[k] |= ball.distances[unlabelled] <= ball.squared_radius + slacks[k]
    return np.asarray(inside @ pool.weight[unlabelled])


def _by_width(
    pool: Pool, tried: Sequence[BallCandidate], kernel: Any, n_landmarks: int
) -> Iterator[tuple[list[int], Space, Points]]:
    """Positions of the candidates of each width, its space and the pool's rows in it."""
    few = min(n_landmarks, _MOST_LANDMARKS)
    for width in dict.fromkeys(candidate.width for candidate in tried):
        chosen = [k for k, candidate in enumerate(tried) if candidate.width == width]
        yield chosen, *make_space(kernel, width or 1.0, pool, few)


def _finite(depths: np.ndarray) -> np.ndarray:
    """Without a rare label in the rest there was no ball: far outside."""
    lowest = np.min(depths, initial=0.0, where=np.isfinite(depths))
    return np.where(np.isfinite(depths), depths, 2.0 * lowest - 1.0)


def _by_share(ball: Ball, pool: Pool) -> float:
    found = share_radius(ball.distances, pool)
    return ball.squared_radius if found is None else found


def _path(
    label: Any, space: Space, points: Points, pool: Pool, tried: list[BallCandidate]
) -> Iterator[Ball]:
    """A ball for each candidate; none without any rare row."""
    if not (pool.kinds == RARE).any():
        return
    start: Start = one_class_start(points, pool)
    for candidate in tried:
        settings = BallSettings(
            candidate.C1,
            candidate.C2,
            candidate.margin,
            tol=_TOL,
            max_outer=_MOST_OUTER,
            max_inner=_MOST_INNER,
        )
        ball = fit_ball(label, space, points, pool, settings, start)
        start = start._replace(multipliers=ball.multipliers)
        yield ball


def _without_labels(pool: Pool, positions: np.ndarray) -> Pool:
    kinds = pool.kinds.copy()
    kinds[positions] = UNLABELLED
    more = float(pool.weight[positions].sum())
    return pool._replace(kinds=kinds, weight_unlabelled=pool.weight_unlabelled + more)
