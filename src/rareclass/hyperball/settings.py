"""Parameters of RACH, checked: of balls and of the rows that shape them."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from rareclass.labels.two_classes import plain
from rareclass.parameters import check_number, check_whole, is_number, is_whole

# Where the border of a ball is: at the solved radius, or where the rare share falls inside.
SOLVED, SHARE = "solved", "share"
# Unlabelled rows farther than this many times the threshold are left out: the paper's number.
PAPER_REACH = 3.0


@dataclass(frozen=True)
class RACHSettings:
    """Parameters of `RACH`: of balls and of the rows that shape them."""

    C1: float
    C2: float
    margin: float
    radius: Any
    radius_slack: Any
    kernel: Any
    width: Any
    n_landmarks: int
    rare_share: float | None
    filter: Any
    max_kept: int
    n_balls: Any
    tol: float
    max_outer: int
    max_inner: int
    random_state: Any
    n_jobs: int | None

    def checked(self) -> Self:
        """Return these settings; refuse a value out of range, naming the parameter."""
        for name, value in (("C1", self.C1), ("C2", self.C2), ("margin", self.margin)):
            check_number(name, value, "a finite number at or above 0", ends="[)")
        check_number("tol", self.tol)
        for name in ("max_outer", "max_inner", "n_landmarks", "max_kept"):
            check_whole(name, vars(self)[name])
        if not (isinstance(self.n_balls, str) and self.n_balls == "auto") and not is_whole(
            self.n_balls
        ):
            raise ValueError(f"n_balls={self.n_balls!r} must be a whole number above 0, or 'auto'.")
        width = self.width
        if not (isinstance(width, str) and width == "mean") and not is_number(width):
            raise ValueError(f"width={width!r} must be 'mean' or a number above 0.")
        self._check_border()
        reach_of(self.filter)
        return self

    def check_labels_named(self, rare: tuple) -> None:
        """Refuse a dict by label that names one without a ball."""
        for name in ("radius", "radius_slack"):
            value = vars(self)[name]
            for label in value if isinstance(value, dict) else ():
                if label not in rare:
                    raise ValueError(
                        f"{name}={value!r} names {label!r}, which is not a rare label: "
                        f"{[plain(known) for known in rare]}."
                    )

    def of_ball(self, label: Any) -> Self:
        """Return the settings of the balls of one category; as solved where no dict names it."""
        radius, slack = self.radius, self.radius_slack
        return replace(
            self,
            radius=radius.get(label, SOLVED) if isinstance(radius, dict) else radius,
            radius_slack=slack.get(label, 0.0) if isinstance(slack, dict) else slack,
        )

    def _check_border(self) -> None:
        """Refuse values that do not place the border."""
        slack, share, radius = self.radius_slack, self.rare_share, self.radius
        for value in slack.values() if isinstance(slack, dict) else [slack]:
            if not is_number(value, low=-np.inf):
                raise ValueError(
                    f"radius_slack={slack!r} must be a number, or a dict with one for each rare "
                    "label."
                )
        if share is not None and not is_number(share, high=1.0, ends="(]"):
            raise ValueError(
                f"rare_share={share!r} must be the share of the unlabelled rows that is rare, "
                "above 0 and at most 1, or None."
            )
        for rule in radius.values() if isinstance(radius, dict) else [radius]:
            if rule not in (SOLVED, SHARE):
                raise ValueError(
                    f"radius={radius!r} must be 'solved' or 'share', or a dict with one of them "
                    "for each rare label."
                )


def reach_of(value: Any) -> float | None:
    """Return how many times the threshold the filter keeps; None where it is off."""
    if isinstance(value, (bool, np.bool_)):
        return PAPER_REACH if value else None
    if is_number(value):
        return float(value)
    raise ValueError(
        f"filter={value!r} must be True (3 times the threshold, as in the paper), False, or a "
        "number above 0 in place of 3."
    )
