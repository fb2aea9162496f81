"""The rare rows by their inner products, and the dual problem over them."""

from typing import NamedTuple

import numpy as np

from rareclass.errors import InputError
from rareclass.moments import _dual_jit as jit

# How near to the convex hull, relative to the longest row, doubles still tell inside from outside:
# a score at the projection then has the relative error eps / NEAREST^2, 2 per cent.
NEAREST = 1e-7
# Nanoseconds of a visit to a row, and of a number in it; passes without a look at Ctrl-C.
_ROW, _NUMBER, _INTERRUPTIBLE = 20.0, 1.0, 1e8


class NotSeparableError(InputError):
    """No hyperplane has all rare rows on one side and the majority's mean on the other."""


class RareRows(NamedTuple):
    """The rare rows by their inner products, never as a dense matrix of all columns.

    The inner product of rows i and j, in the metric of Sigma^-1 and centred at the majority's mean,
    is ``a_i . a_j + left_i . right_j``: symmetric, and as a whole positive semi-definite.

    The sparse parts a_i are compressed rows, no column twice in a row, and may hold nothing. Dense
    rows have left and right both equal to the whitened rows Z.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    n_columns: int  # of the sparse parts
    left: np.ndarray  # float64, shape (n, p)
    right: np.ndarray


def dense_rows(Z: np.ndarray) -> RareRows:
    """Rows of which everything is dense.

    Z, of shape (n, p), are whitened: their inner products are those of the metric.

    >>> dense_rows(np.eye(2)).n_columns
    0
    """
    Z = np.ascontiguousarray(Z, np.float64)
    nothing = np.zeros(0)
    return RareRows(np.zeros(len(Z) + 1, np.int64), nothing.astype(np.int32), nothing, 0, Z, Z)


class Point(NamedTuple):
    """An alpha and what it is worth, over all rows."""

    alpha: np.ndarray
    scores: np.ndarray
    objective: float
    gap: float


class Problem:
    """The rows as the compiled passes want them, the box, and room for v and g.

    v and g belong to the point that was measured last: the passes start from them.
    """

    def __init__(self, rows: RareRows, upper: np.ndarray) -> None:
        left = np.ascontiguousarray(rows.left, np.float64)
        same = rows.right is rows.left
        self.rows = RareRows(
            np.ascontiguousarray(rows.indptr, np.int64),
            np.ascontiguousarray(rows.indices),
            np.ascontiguousarray(rows.data, np.float64),
            int(rows.n_columns),
            left,
            left if same else np.ascontiguousarray(rows.right, np.float64),
        )
        self.is_dense = same and not len(rows.data)
        self.upper = upper
        self.norms = np.empty(len(upper))
        jit._squared_norms(self.rows, self.norms)
        self.is_hard = bool(np.isinf(upper).any())
        if self.is_hard and not np.isin(upper, (0.0, np.inf)).all():
            raise ValueError("upper is to be inf for all rows (but those of 0), or for none")
        self._used = upper > 0.0
        self.longest = float(np.sqrt(self.norms[self._used].max(initial=0.0)))
        if self.is_hard and (self.norms[self._used] <= (NEAREST * self.longest) ** 2).any():
            raise mean_in_hull()
        self.v, self.g = np.zeros(self.rows.n_columns), np.zeros(left.shape[1])

    def combined(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """v = A'alpha and g = left'alpha, in the arrays that the passes keep up to date."""
        jit._combine(self.rows, alpha, self.v, self.g)
        return self.v, self.g

    def clipped(self, alpha: np.ndarray) -> np.ndarray:
        """The nearest point of the box."""
        return np.clip(np.asarray(alpha, np.float64), 0.0, self.upper)

    def row_cost(self) -> float:
        """Nanoseconds that a visit to a row takes, on average."""
        numbers = self.rows.left.shape[1] + len(self.rows.data) / max(len(self.upper), 1)
        return _ROW + _NUMBER * numbers

    def measure(self, alpha: np.ndarray, lifted: bool = False) -> Point:
        """Work out v, g and all scores afresh, and from them objective and gap.

        ``lifted`` asks for the objective at t w too, with which all free rows reach the margin: a
        score of 1 - 1e-12 times a large bound is rounding, and no gap.
        """
        scores = np.empty(len(alpha))
        v, g = self.combined(alpha)
        jit._scores(self.rows, v, g, scores)
        square = max(float(alpha @ scores), 0.0)
        if self.is_hard:
            return self._hard_margin(alpha, scores, square)
        objective, gap = self._worth(alpha, scores, square, 1.0)
        if lifted:
            free = (alpha > 0.0) & (alpha < self.upper)
            lowest = float(scores[free].min(initial=1.0))
            if lowest > 0.0:
                objective, gap = min(
                    (objective, gap), self._worth(alpha, scores, square, 1 / lowest)
                )
        return Point(alpha, scores, objective, gap / objective if gap > 0.0 else 0.0)

    def _worth(
        self, alpha: np.ndarray, scores: np.ndarray, square: float, t: float
    ) -> tuple[float, float]:
        """P at t w, and P - D as a sum of terms that are not negative."""
        over = t * scores - 1.0
        missing = np.maximum(-over, 0.0)
        objective = 0.5 * t**2 * square + float(self.upper @ missing)
        gap = float(np.maximum(over, 0.0) @ alpha + missing @ (self.upper - alpha))
        return objective, gap + 0.5 * square * (t - 1.0) ** 2

    def blur(self, point: Point) -> float:
        """The relative gap that rounding errors of the scores may come to.

        A score has an error of up to eps max|z|^2 1'alpha, and weighs as much as the upper bounds;
        in the hard margin, where scores are 1, it is the error itself.
        """
        error = float(np.finfo(float).eps * self.longest**2 * point.alpha.sum())
        return error if self.is_hard else error * float(self.upper.sum()) / point.objective

    def _hard_margin(self, alpha: np.ndarray, scores: np.ndarray, square: float) -> Point:
        """The same for the best multiple of alpha and, in the primal, of its w."""
        total = float(alpha.sum())
        if total == 0.0:
            return Point(alpha, scores, np.inf, float(self._used.any()))
        if np.sqrt(square) <= NEAREST * self.longest * total:
            raise mean_in_hull()
        scale = total / square
        lowest = float(scores[self._used].min()) * scale
        objective = 0.5 * total * scale / lowest**2 if lowest > 0.0 else np.inf
        gap = 1.0 - min(max(lowest, 0.0), 1.0) ** 2
        return Point(alpha * scale, scores * scale, objective, gap)


def mean_in_hull() -> InputError:
    """What to say where there is no hard margin."""
    return NotSeparableError(
        "The mean of the majority lies within the convex hull of the rare rows, or too near to it "
        "to tell: no hyperplane has all rare rows on one side and the mean on the other, which "
        "C=inf asks for.",
        "Use a finite C, for example C=1.0.",
    )


class Order(NamedTuple):
    """State of the random order in which the rows are visited."""

    random: np.ndarray
    rows: np.ndarray


def passes(
    problem: Problem, point: Point, order: Order, tol: float, most: int
) -> tuple[Point, int, int]:
    """Up to ``most`` passes from the point measured last; the new one, passes, rows visited."""
    alpha = point.alpha.copy()
    if problem.is_hard:  # 1 - min(s)^2 is about twice 1 - min(s), and P - D of 1'alpha
        enough = 0.25 * tol * float(alpha.sum())
        problem.combined(alpha)
    else:
        enough = tol * point.objective
    pass_cost = problem.row_cost() * max(len(alpha), 1)
    most = max(1, min(most, int(_INTERRUPTIBLE / pass_cost)))
    n_passes, n_visits = jit._descend(
        problem.rows, problem.norms, problem.upper, alpha, problem.v, problem.g,
        order.rows, order.random, enough, most,
    )  # fmt: skip
    return problem.measure(alpha), n_passes, n_visits
