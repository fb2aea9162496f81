"""A ball and the rows around it in two dimensions, for a plot."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.hyperball.ball import Ball
from rareclass.hyperball.description import FittedBalls, ball_name
from rareclass.hyperball.pool import MAJORITY, RARE, UNLABELLED
from rareclass.hyperball.problem import InputSpace, Points

LABELLED_RARE = "labelled rare"
LABELLED_MAJORITY = "labelled majority"
UNLABELLED_INSIDE = "unlabelled, inside"
UNLABELLED_OUTSIDE = "unlabelled, outside"


class BallPicture(NamedTuple):
    """Rows around a ball, projected to two dimensions.

    Attributes
    ----------
    coordinates : ndarray of shape (m, 2)
        Rows projected on a plane through the centre, which is the origin. A projection only
        shortens: rows inside the ball stay inside the disc, some from outside fall into it.
    kinds : ndarray of str of shape (m,)
        "labelled rare", "labelled majority", "unlabelled, inside" or "unlabelled, outside".
    radius : float
        R.
    distances : ndarray of shape (k,)
        To the centre, from every unlabelled row that entered the optimisation.
    rare_distances : ndarray of shape (l,)
        From every labelled rare row to the centre.
    axis_names : tuple of two str
        Names of the axes of the plane.
    title : str
        The name of the ball.
    """

    coordinates: np.ndarray
    kinds: np.ndarray
    radius: float
    distances: np.ndarray
    rare_distances: np.ndarray
    axis_names: tuple[str, str]
    title: str


# Power iterations for the second axis; a picture needs no digits.
_ITERATIONS = 50


def take_picture(model: FittedBalls, number: int) -> BallPicture:
    """Project the rows around a ball on a plane through its centre.

    For a ball without a kernel among two features the plane is theirs. For others the first axis
    points from the centre to the mean of the other rows, the second along the widest direction of
    these across the first.
    """
    if not 0 <= number < len(model.balls_):
        raise ValueError(f"ball={number!r}: there are balls 0 to {len(model.balls_) - 1}.")
    ball = model.balls_[number]
    background = model.background_
    far = np.flatnonzero(~np.isin(background.rows, ball.rows))
    near_points = ball.space.points(ball.X)
    far_points = ball.space.points(background.X[far])
    axes, names = _plane(model, ball, near_points, far_points)
    origin = ball.center @ axes
    far_kinds = np.where(
        background.is_labelled[far],
        LABELLED_MAJORITY,
        _inside_or_out(ball.squared_radius - far_points.squared_distances(ball.center) >= 0.0),
    )
    distances = np.sqrt(ball.distances)
    return BallPicture(
        coordinates=np.concatenate(
            [near_points.features @ axes - origin, far_points.features @ axes - origin]
        ),
        kinds=np.concatenate([_near_kinds(ball), far_kinds]),
        radius=ball.radius,
        distances=distances[ball.kinds == UNLABELLED],
        rare_distances=distances[ball.kinds == RARE],
        axis_names=names,
        title=ball_name(model, number),
    )


def _near_kinds(ball: Ball) -> np.ndarray:
    inside = np.zeros(len(ball.rows), dtype=bool)
    inside[ball.inside] = True
    kinds = _inside_or_out(inside)
    kinds = np.where(ball.kinds == RARE, LABELLED_RARE, kinds)
    return np.where(ball.kinds == MAJORITY, LABELLED_MAJORITY, kinds)


def _inside_or_out(inside: np.ndarray) -> np.ndarray:
    return np.where(inside, UNLABELLED_INSIDE, UNLABELLED_OUTSIDE)


def _plane(
    model: FittedBalls, ball: Ball, near: Points, far: Points
) -> tuple[np.ndarray, tuple[str, str]]:
    """Return two orthonormal axes, shape (p, 2), and their names."""
    p = len(ball.center)
    if isinstance(ball.space, InputSpace) and p <= 2:
        names = [*model.names_of(range(p)), ""]
        return np.eye(2)[:p], (names[0], names[1])
    others = _joined(near.take(np.flatnonzero(ball.kinds != RARE)).features, far.features)
    if not others.shape[0]:
        others = near.features
    mean = np.asarray(others.mean(axis=0)).ravel()
    first = _unit(mean - ball.center)
    second = np.random.RandomState(0).standard_normal(p)
    for _ in range(_ITERATIONS):
        second = _unit(second - (second @ first) * first)
        scores = others @ second
        second = others.T @ (scores - scores.mean())
    second = _unit(second - (second @ first) * first)
    second *= 1.0 if second[np.argmax(np.abs(second))] >= 0.0 else -1.0
    return np.column_stack([first, second]), (
        "towards the mean of the other rows",
        "their widest direction across",
    )


def _joined(a: Any, b: Any) -> Any:
    return sparse.vstack([a, b], format="csr") if sparse.issparse(a) else np.concatenate([a, b])


def _unit(vector: np.ndarray) -> np.ndarray:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0.0 else vector
