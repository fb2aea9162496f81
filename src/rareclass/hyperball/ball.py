"""One ball around one rare category: fitting it, and the rows that it holds."""

from typing import Any, NamedTuple

import numpy as np

from rareclass.findings import Status
from rareclass.hyperball.pool import MAJORITY, RARE, UNLABELLED, Pool
from rareclass.hyperball.problem import BallProblem, BallSpace, Points
from rareclass.hyperball.settings import SHARE, BallSettings
from rareclass.hyperball.solver import SOLVERS, BallSolution, one_class_center
from rareclass.labels.partial_labels import PartialLabels

# A row on the sphere is inside, whatever rounding made of its distance.
_ROUNDING = 1e-9
# Share of a multiplier's bound: a multiplier nearer than this is at its bound.
_AT_BOUND = 1e-6


class Ball(NamedTuple):
    """A ball, the n rows that it was fitted to, and how the solver ended."""

    label: Any
    space: BallSpace
    center: np.ndarray  # (p,), in the coordinates of `space`
    squared_radius: float
    is_moved: bool  # whether a margin or slack set the radius apart from that of Problem 1
    rows: np.ndarray  # numbers of the rows that entered the optimisation
    kinds: np.ndarray  # int8: 1 rare, -1 majority, 0 unlabelled
    X: Any  # these rows
    multipliers: np.ndarray  # the solution of the dual problem
    price: np.ndarray  # their upper bounds
    distances: np.ndarray  # squared, of the rows to the centre
    objective_path: tuple  # Problem 1 (with a margin, as `fit_ball` has it) after each outer step
    # relative duality gap: of Problem 1, or with "convex_concave" of the last linearised problem
    gap: float
    n_outer: int  # steps of the two loops
    n_inner: int
    status: Status

    @property
    def radius(self) -> float:
        """Radius in the units of the distances."""
        return float(np.sqrt(self.squared_radius))

    @property
    def support(self) -> np.ndarray:
        """Numbers of the rows with a multiplier above 0."""
        return self.rows[self.multipliers > 0.0]

    @property
    def found(self) -> np.ndarray:
        """Numbers of the unlabelled rows inside, which are predicted rare."""
        return self.rows[self.inside]

    @property
    def inside(self) -> np.ndarray:
        """Positions in ``rows`` of the unlabelled ones inside.

        Their multiplier is below its bound; with a margin or slack they lie within the radius.
        """
        # For a row on the sphere, or of price 0, the distance decides and not the multiplier.
        inside = self.distances <= self.squared_radius
        if not self.is_moved:
            inside |= self.multipliers < self.price * (1.0 - _AT_BOUND)
        return np.flatnonzero(inside & (self.kinds == UNLABELLED))

    def depth(self, X: Any) -> np.ndarray:
        """Return ``R^2 - distance^2`` of every row of X, shape (n,)."""
        return self.squared_radius - self.space.squared_distances(X, self.center)


class BallStart(NamedTuple):
    """A centre and multipliers to begin with (Algorithm 2)."""

    center: np.ndarray
    squared_radius: float
    multipliers: np.ndarray | None = None


def fit_ball(
    space: BallSpace,
    points: Points,
    pool: Pool,
    settings: BallSettings,
    start: BallStart | None = None,
) -> Ball:
    """Solve Problem 1 over a pool, from the one-class ball or from a solution nearby.

    The margin m asks for majority rows beyond ``R^2 + m``: that is Problem 1 with m more squared
    distance to the other rows, and R^2 + m for its R^2. The border lies half way, or
    where the rare share of the unlabelled rows falls inside.
    """
    C1, C2, margin, slack = settings.C1, settings.C2, settings.margin, settings.slack
    # Rare rows have no upper bound.
    price = np.where(pool.kinds == MAJORITY, C1, C2) * pool.weight
    price[pool.kinds == RARE] = np.inf
    start = start or one_class_start(points, pool)
    multipliers = start.multipliers
    if multipliers is None:
        multipliers = _first_multipliers(points, pool, price, start, C1 + C2)
    farther = np.where(pool.kinds != MAJORITY, margin, 0.0)
    seen = Points(points.features, points.residual + farther) if margin else points
    solution = _solve(seen, pool, price, start.center, multipliers, settings)
    distances = points.squared_distances(solution.center)
    squared_radius = solution.squared_radius - 0.5 * margin
    if settings.radius == SHARE:
        squared_radius = pool.share_radius(distances, squared_radius)
    squared_radius += _ROUNDING * (abs(squared_radius) + float(distances.mean()))
    return Ball(
        label=pool.label,
        space=space,
        center=solution.center,
        squared_radius=max(squared_radius + slack, 0.0),
        is_moved=bool(margin or slack or settings.radius == SHARE),
        rows=pool.rows,
        kinds=pool.kinds,
        X=pool.X,
        multipliers=solution.multipliers,
        price=price,
        distances=distances,
        objective_path=solution.objective_path,
        gap=solution.gap,
        n_outer=solution.n_outer,
        n_inner=solution.n_inner,
        status=solution.status,
    )


def _solve(
    points: Points,
    pool: Pool,
    price: np.ndarray,
    center: np.ndarray,
    multipliers: np.ndarray,
    settings: BallSettings,
) -> BallSolution:
    """Solve without the rows of price 0, whose multipliers are 0."""
    there = np.flatnonzero(price > 0.0)
    signs = np.where(pool.kinds[there] == MAJORITY, -1.0, 1.0)
    seen = points if len(there) == points.n_rows else points.take(there)
    solution = SOLVERS[settings.solver](
        BallProblem(seen, signs, price[there]),
        center,
        multipliers[there],
        tol=settings.tol,
        max_outer=settings.max_outer,
        max_inner=settings.max_inner,
    )
    whole = np.zeros(points.n_rows)
    whole[there] = solution.multipliers
    return solution._replace(multipliers=whole)


def one_class_start(points: Points, pool: Pool) -> BallStart:
    """Run steps 1 to 5 of Algorithm 2: the one-class ball of the rare rows.

    A single rare row is the centre, and its nearest majority row lies on the sphere.
    """
    rare = pool.which(RARE)
    center, squared_radius = one_class_center(points.take(rare), pool.weight[rare])
    if len(rare) == 1 and (pool.kinds == MAJORITY).any():
        majority = points.take(pool.which(MAJORITY))
        squared_radius = float(majority.squared_distances(center).min())
    return BallStart(center, squared_radius)


def _first_multipliers(
    points: Points, pool: Pool, price: np.ndarray, start: BallStart, rare_price: float
) -> np.ndarray:
    """Run step 6 of Algorithm 2: multipliers that the optimality conditions give for a ball."""
    distances = points.squared_distances(start.center)
    apart = distances - start.squared_radius
    on_sphere = np.abs(apart) <= _ROUNDING * (start.squared_radius + np.abs(distances))
    signs = np.where(pool.kinds == MAJORITY, -1.0, 1.0)
    at_bound = np.where(signs * apart > 0.0, price, 0.0)
    multipliers = np.where(on_sphere, 0.5 * price, at_bound)
    rare = pool.kinds == RARE
    multipliers[rare] = np.where((apart[rare] >= 0.0) | on_sphere[rare], 0.5 * rare_price, 0.0)
    return multipliers


def transduced(labels: PartialLabels, balls: tuple[Ball, ...]) -> np.ndarray:
    """Return the labels of all rows: given ones, and for unlabelled rows by their multipliers.

    A row that several balls claim goes to the one in which it lies deepest.
    """
    code = labels.code.copy()
    code[labels.code < 0] = np.flatnonzero(labels.classes == labels.majority)[0]
    deepest = np.full(len(code), -np.inf)
    for ball in balls:
        depth = ball.squared_radius - ball.distances[ball.inside]
        found = ball.found
        wins = depth > deepest[found]
        deepest[found[wins]] = depth[wins]
        code[found[wins]] = np.flatnonzero(labels.classes == ball.label)[0]
    return labels.classes[code]
