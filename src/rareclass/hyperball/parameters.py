"""The parameters of RACH, checked."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from rareclass.hyperball.ball import SHARE, SOLVED, SOLVERS
from rareclass.hyperball.pool import PAPER_REACH
from rareclass.labels.two_classes import plain


def check_parameters(estimator: Any) -> None:
    """Refuse what cannot be worked with, naming the parameter."""
    for name in ("C1", "C2", "margin"):
        value = getattr(estimator, name)
        if not (_is_number(value) and 0.0 <= float(value) < np.inf):
            raise ValueError(f"{name}={value!r} must be a finite number at or above 0.")
    if not (_is_number(estimator.tol) and 0.0 < float(estimator.tol) < np.inf):
        raise ValueError(f"tol={estimator.tol!r} must be a number above 0.")
    for name in ("max_outer", "max_inner", "n_landmarks", "max_kept"):
        value = getattr(estimator, name)
        if not _is_count(value):
            raise ValueError(f"{name}={value!r} must be a whole number above 0.")
    if not isinstance(estimator.solver, str) or estimator.solver not in SOLVERS:
        raise ValueError(f"solver={estimator.solver!r} is not one of {sorted(SOLVERS)}.")
    n_balls = estimator.n_balls
    if not (isinstance(n_balls, str) and n_balls == "auto") and not _is_count(n_balls):
        raise ValueError(f"n_balls={n_balls!r} must be a whole number above 0, or 'auto'.")
    width = estimator.width
    if not (isinstance(width, str) and width == "mean") and not (
        _is_number(width) and 0.0 < float(width) < np.inf
    ):
        raise ValueError(f"width={width!r} must be 'mean' or a number above 0.")
    _check_border(estimator)
    reach_of(estimator.filter)


def check_labels_named(estimator: Any, rare: tuple) -> None:
    """Refuse a dict by label that names one without a ball."""
    for name in ("radius", "radius_slack"):
        value = getattr(estimator, name)
        for label in value if isinstance(value, dict) else ():
            if label not in rare:
                raise ValueError(
                    f"{name}={value!r} names {label!r}, which is not a rare label: "
                    f"{[plain(known) for known in rare]}."
                )


def radius_of(radius: Any, label: Any) -> str:
    """Where a category's border is; as solved where a dict does not name it."""
    return radius.get(label, SOLVED) if isinstance(radius, dict) else radius


def slack_of(radius_slack: Any, label: Any) -> float:
    """What a category's squared radius gets on top; 0 where a dict does not name it."""
    return float(radius_slack.get(label, 0.0) if isinstance(radius_slack, dict) else radius_slack)


def reach_of(value: Any) -> float | None:
    """How many times the threshold the filter keeps: None where it is off."""
    if isinstance(value, (bool, np.bool_)):
        return PAPER_REACH if value else None
    if _is_number(value) and 0.0 < float(value) < np.inf:
        return float(value)
    raise ValueError(
        f"filter={value!r} must be True (3 times the threshold, as in the paper), False, or a "
        "number above 0 in place of 3."
    )


def _check_border(estimator: Any) -> None:
    """Refuse what does not say where the border is."""
    slack = estimator.radius_slack
    for value in slack.values() if isinstance(slack, dict) else [slack]:
        if not (_is_number(value) and np.isfinite(float(value))):
            raise ValueError(
                f"radius_slack={slack!r} must be a number, or a dict with one for each rare label."
            )
    share = estimator.rare_share
    if share is not None and not (_is_number(share) and 0.0 < float(share) <= 1.0):
        raise ValueError(
            f"rare_share={share!r} must be the share of the unlabelled rows that is rare, above 0 "
            "and at most 1, or None."
        )
    radius = estimator.radius
    for rule in radius.values() if isinstance(radius, dict) else [radius]:
        if rule not in (SOLVED, SHARE):
            raise ValueError(
                f"radius={radius!r} must be 'solved' or 'share', or a dict with one of them for "
                "each rare label."
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
