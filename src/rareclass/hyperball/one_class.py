"""The smallest ball around most of the rows of one class: where the search for a ball begins."""

import numpy as np

from rareclass.hyperball.ball_problem import BallProblem
from rareclass.hyperball.ball_solver import solve_ball
from rareclass.hyperball.points import Points


def one_class_center(
    points: Points, weight: np.ndarray, nu: float = 0.5
) -> tuple[np.ndarray, float]:
    r"""Find the ball that leaves out at most a share nu of the weight.

    .. math::
        \min_{c, R^2} R^2 + \frac{1}{\nu \sum_i w_i} \sum_i w_i \max(0, \|x_i - c\|^2 - R^2)

    the support vector data description. With a kernel whose k(x, x) is constant it is the one-class
    support vector machine that the paper begins with.

    Parameters
    ----------
    points : Points
    weight : ndarray of shape (n,)
        w, 0 or more. Rows of weight 0 are not there.
    nu : float, default=0.5
        In (0, 1]. Higher draws the centre to the mean of the rows, lower to the middle of the
        farthest.

    Returns
    -------
    center : ndarray of shape (p,)
    squared_radius : float
        Where several are as good, a small one. For a single row, 0.

    Raises
    ------
    ValueError
        If nu is out of its range or no weight is above 0.

    Notes
    -----
    Cost: as of `solve_ball`.

    References
    ----------
    Tax and Duin, "Support vector data description", Machine Learning, 2004.

    Examples
    --------
    >>> rows = Points(np.array([[0.0], [1.0], [2.0], [9.0]]), np.zeros(4))
    >>> center, squared_radius = one_class_center(rows, np.ones(4), nu=0.01)
    >>> center.tolist(), squared_radius
    ([4.5], 20.25)
    """
    weight = np.asarray(weight, np.float64)
    if not 0.0 < nu <= 1.0:
        raise ValueError(f"nu is {nu}, and is to be above 0 and at most 1.")
    if not (weight > 0.0).any():
        raise ValueError("No row has a weight above 0: there is nothing to put a ball around.")
    used = np.flatnonzero(weight > 0.0)
    points, weight = points.take(used), weight[used]
    price = weight / (nu * weight.sum())
    start = points.combine(weight / weight.sum())
    solution = solve_ball(BallProblem(points, np.ones(len(weight)), price), start)
    return solution.center, solution.squared_radius
