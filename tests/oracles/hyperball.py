"""Slow and plain ways to the solutions of RACH's problems."""

from itertools import product

import numpy as np
from scipy.optimize import minimize

from rareclass.hyperball.problem import BallProblem, Points


def knapsack_by_enumeration(v, upper, signs, total):
    """Problem 4 by trying each entry at 0, at its bound and between: 3^n ways."""
    best, least = None, np.inf
    finite = np.where(np.isfinite(upper), upper, 0.0)
    blur = 1e-13 * (np.abs(v).max() + abs(total) + finite.max())
    for ways in product((0, 1, 2), repeat=len(v)):
        at_upper, free = np.array(ways) == 1, np.array(ways) == 2
        if np.isinf(upper[at_upper]).any():
            continue
        held = np.where(at_upper, upper, 0.0)
        missing = total - signs @ held
        if free.any():
            mu = (missing - signs[free] @ v[free]) / np.count_nonzero(free)
            held = np.where(free, v + signs * mu, held)
        if abs(signs @ held - total) > blur * len(v):
            continue
        if (held < -blur).any() or (held > upper + blur).any():
            continue
        distance = ((held - v) ** 2).sum()
        if distance < least:
            best, least = np.clip(held, 0.0, upper), distance
    return best


def problem_1_value(problem, center, squared_radius):
    """The objective of Problem 1, in extended precision, with rows of infinite price inside."""
    long = np.longdouble
    points, signs, price = problem
    apart = points.features.astype(long) - center.astype(long)
    distances = (apart**2).sum(axis=1) + points.residual
    over = np.maximum(signs * (distances - squared_radius), 0)
    finite = np.isfinite(price)
    return float(squared_radius + price[finite] @ over[finite])


def dual_of_problem_1(problem, multipliers, origin):
    """D(l) in extended precision, the rows seen from a point near them."""
    long = np.longdouble
    seen = problem.points.features.astype(long) - origin.astype(long)
    w = problem.signs.astype(long) * multipliers
    squares = (seen**2).sum(axis=1) + problem.points.residual
    V = w @ seen
    return float(w @ squares - V @ V), float(w.sum())


def problem_1_on_a_grid(problem, half_width, n_grid=41, n_zooms=12):
    """Least objective over centres on a grid about the mean that is made finer about the best one.

    Problem 1 as the paper states it, with the best of all R^2 tried: nothing is known of it. The
    best centres may lie on a ridge across the axes, along which a simplex goes on from the grid.
    """
    points, signs, price = problem
    X = points.features
    hard = np.isinf(price)

    def least_at(centers):
        distances = ((X[None] - centers[:, None]) ** 2).sum(axis=2) + points.residual
        least = np.full(len(centers), np.inf)
        for radii in distances.T:  # one of the distances is the best R^2
            over = np.maximum(signs * (distances - radii[:, None]), 0.0)
            values = radii + over[:, ~hard] @ price[~hard]
            values[(over[:, hard] > 1e-12 * (1 + radii[:, None])).any(axis=1)] = np.inf
            least = np.minimum(least, values)
        return least

    middle, best = X.mean(axis=0), np.inf
    for _ in range(n_zooms):
        ticks = np.linspace(-half_width, half_width, n_grid)
        grid = np.stack(np.meshgrid(*[ticks] * X.shape[1]), axis=-1).reshape(-1, X.shape[1])
        values = least_at(middle + grid)
        i = int(values.argmin())
        if values[i] < best:
            best, middle = values[i], middle + grid[i]
        half_width *= 0.25
    for _ in range(3):
        found = minimize(lambda c: least_at(c[None])[0], middle, method="Nelder-Mead")
        if found.fun < best:
            best, middle = found.fun, found.x
    return best, middle


def problem_2_by_slsqp(problem, tangent_point):
    """Problem 2 with its slacks, by sequential quadratic programming."""
    points, signs, price = problem
    X, ct = points.features, tangent_point
    squares, soft = (X**2).sum(axis=1) + points.residual, np.isfinite(price)
    n, p = X.shape

    def reach(z):
        c = z[:p]
        tangent = squares - ct @ ct + 2 * (ct - X) @ c
        return np.where(signs > 0, squares - 2 * X @ c + c @ c, tangent)

    def slope(z):
        c = z[:p]
        J = np.zeros((n, len(z)))
        J[:, :p] = np.where(signs[:, None] > 0, 2 * (c - X), 2 * (ct - X))
        J[:, p] = -1.0
        J *= -signs[:, None]
        J[np.flatnonzero(soft), p + 1 + np.arange(soft.sum())] = 1.0
        return J

    def room(z):
        slack = np.zeros(n)
        slack[soft] = z[p + 1 :]
        return slack - signs * (reach(z) - z[p])

    cost = np.concatenate([np.zeros(p), [1.0], price[soft]])
    start = np.concatenate([ct, [squares.max() * 4 + 1.0], np.zeros(soft.sum())])
    start[p + 1 :] = np.maximum(signs * (reach(start) - start[p]), 0.0)[soft]
    found = minimize(
        lambda z: cost @ z,
        start,
        jac=lambda z: cost,
        method="SLSQP",
        bounds=[(None, None)] * (p + 1) + [(0, None)] * int(soft.sum()),
        constraints={"type": "ineq", "fun": room, "jac": slope},
        options={"maxiter": 2000, "ftol": 1e-14},
    )
    return found.fun, found.x[:p]


def ball_problem(X, signs, price, residual=None):
    X = np.asarray(X, float)
    residual = np.zeros(len(X)) if residual is None else residual
    return BallProblem(Points(X, residual), np.asarray(signs, float), np.asarray(price, float))


def random_problem(seed, n=120, p=5, n_rare=4, n_majority=25, C1=1.0, C2=0.1):
    """A cluster in a cloud: rare rows without bound, cleared ones, the rest unlabelled."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    cluster = np.arange(n) < n // 5
    X[cluster] = 1.0 + 0.3 * X[cluster]
    price = np.full(n, C2)
    price[:n_rare] = np.inf
    signs = np.ones(n)
    signs[n - n_majority :] = -1.0
    price[n - n_majority :] = C1
    return ball_problem(X, signs, price)
