"""Balls: how far a row is from the centre, feature by feature."""

from typing import Any

import numpy as np

from rareclass.explain.explanation import Explanation
from rareclass.explain.features import Features


def explain_ball(model: Any, rows: Features) -> Explanation:
    """``R^2`` and minus each group's part of the squared distance: they add up to the depth.

    Of a round ball in the space of the features; no feature raises a depth, and the ones nearest to
    0 are those in which the row is most like the centre. Raises `ValueError` for another ball.
    """
    center, radius = np.asarray(model.center_, dtype=np.float64), float(model.radius_)
    if center.shape != rows.typical.shape:
        raise ValueError("a ball in the space of a kernel has no distance by feature.")
    parts = (rows.X - center) ** 2
    effects = -np.stack([parts[:, group].sum(axis=1) for group in rows.groups], axis=1)
    depth = radius**2 + effects.sum(axis=1)
    if not np.allclose(depth, model.score_samples(rows.X), rtol=1e-6, atol=1e-6 * (1 + radius**2)):
        raise ValueError("an ellipsoid has no distance that is a sum over features.")
    return Explanation(depth, effects, rows.columns, radius**2)
