"""Time: what is left of it, and what a member is likely to take."""

import time
from dataclasses import dataclass, field

import numpy as np

from rareclass.ensemble.members.member import Member, Size, Stopped

# A member that takes longer than foretold is stopped at this multiple of the budget.
_HARD_LIMIT = 1.15


@dataclass
class Budget:
    """Seconds for a fit, counted from when it is made."""

    seconds: float
    started: float = field(default_factory=lambda: time.perf_counter())

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def left(self) -> float:
        """Seconds until the end; negative after it."""
        return self.seconds - self.spent

    def check(self) -> None:
        """Raise `Stopped` when it is well past the end."""
        if self.spent > _HARD_LIMIT * self.seconds:
            raise Stopped


# Seconds of one core for a unit of each member's `cost`, on a machine that others are measured by:
# tables of 1,500 x 12 to 20,000 x 20, three folds (`python -m benchmarks.member_costs`); less for
# forests, which are quicker on indicators, as real tables have them.
_REFERENCE_SECONDS = {
    "histogram boosting": 1e-6,
    "slow histogram boosting": 1e-6,
    "deep histogram boosting": 1e-6,
    "kernel on quantiles": 6.0,
    "kernel on logarithms": 6.0,
    "smooth kernel on logarithms": 8.0,
    "smooth kernel on numbers": 8.0,
    "extra trees": 8e-7,
    "random forest": 4e-7,
    "balanced forest": 4e-7,
    "lightgbm": 1e-6,
    "xgboost": 1.1e-6,
    "catboost": 1e-6,
    "logistic regression": 5e-8,
    "mibc": 2e-9,
}
_FOLD_SECONDS = 0.05  # for a fold of a few rows
# Who is slower than the reference by as much as another is, rather than as all are.
_LIKE = dict.fromkeys(("slow histogram boosting", "deep histogram boosting"), "histogram boosting")


@dataclass
class CostModel:
    """Seconds that members take, from what each took on fewer rows, or others took.

    What one member was slower than the reference, another is likely to be: a machine that is
    slow, or busy, is so for all.
    """

    ratios: dict[str, float] = field(default_factory=dict)

    def learn(self, member: Member, size: Size, n_folds: int, seconds: float) -> None:
        """Remember what a member took."""
        reference = self._reference(member, size, n_folds)
        if reference is not None:
            self.ratios[member.name] = seconds / reference
        else:  # not in the table: its own unit
            self.ratios[member.name] = seconds / (n_folds * member.cost(size))

    def foretell(self, member: Member, size: Size, n_folds: int) -> float | None:
        """Seconds that a member is likely to take; None where nothing is known of it."""
        own = self.ratios.get(member.name, self.ratios.get(_LIKE.get(member.name, "")))
        reference = self._reference(member, size, n_folds)
        if reference is None:
            return None if own is None else own * n_folds * member.cost(size)
        known = [ratio for name, ratio in self.ratios.items() if name in _REFERENCE_SECONDS]
        ratio = own if own is not None else float(np.median(known)) if known else 1.0
        return ratio * reference

    def _reference(self, member: Member, size: Size, n_folds: int) -> float | None:
        unit = _REFERENCE_SECONDS.get(member.name)
        return None if unit is None else n_folds * (unit * member.cost(size) + _FOLD_SECONDS)
