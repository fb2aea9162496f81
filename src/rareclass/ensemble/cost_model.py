"""Seconds that a member is likely to take: measured units of its cost, and what others took."""

from dataclasses import dataclass, field, replace

import numpy as np

from rareclass.ensemble.members.member import Member, Size

# Fewer majority rows than this, or than so many a rare row, are not thinned further.
LEAST_ROWS, LEAST_PER_RARE = 20_000, 5
# Seconds of one core for a unit of each member's `cost`, on a machine that others are measured by:
# tables of 1,500 x 12 to 20,000 x 20, three folds; less for extra trees, which are quicker on
# indicators, as real tables have them.
_REFERENCE_SECONDS = {
    "histogram boosting": 1e-6,
    "slow histogram boosting": 1e-6,
    "deep histogram boosting": 1e-6,
    "kernel on quantiles": 3.0,
    "smooth kernel on logarithms": 4.0,
    "extra trees": 8e-7,
    "catboost": 1e-6,
    "logistic regression": 5e-8,
    "mibc": 2e-9,
}
_FOLD_SECONDS = 0.05  # for a fold of a few rows
# Members that are slower than the reference by as much as another one is, not as all are.
_LIKE = dict.fromkeys(("slow histogram boosting", "deep histogram boosting"), "histogram boosting")


@dataclass
class CostModel:
    """Seconds that members take, from what each took on fewer rows, or others took.

    A member is likely to be slower than the reference by as much as others were: a machine that is
    slow, or busy, is so for all.
    """

    ratios: dict[str, float] = field(default_factory=dict)

    def learn(self, member: Member, size: Size, n_folds: int, seconds: float) -> None:
        """Remember the seconds that a member took."""
        self.ratios[member.name] = seconds / reference_seconds(member, size, n_folds)

    def predict(self, member: Member, size: Size, n_folds: int) -> float | None:
        """Return the seconds that a member is likely to take; None where nothing is known."""
        ratio = self.ratios.get(member.name, self.ratios.get(_LIKE.get(member.name, "")))
        if ratio is None and member.name not in _REFERENCE_SECONDS:
            return None
        if ratio is None:
            known = [each for name, each in self.ratios.items() if name in _REFERENCE_SECONDS]
            ratio = float(np.median(known)) if known else 1.0
        return ratio * reference_seconds(member, size, n_folds)

    def affordable(self, member: Member, size: Size, n_folds: int, seconds: float) -> Size:
        """Return `size` with as many majority rows as a member is likely to manage in so long.

        All that the member learns from where there is time for them, and never fewer than 20,000,
        or 5 a rare row.
        """
        n_majority = size.n_rows - size.n_rare
        high = min(n_majority, member.most_majority or n_majority)
        low = min(high, max(LEAST_ROWS, LEAST_PER_RARE * size.n_rare))

        def fits(n: int) -> bool:
            asked = replace(size, n_rows=size.n_rare + n)
            return (self.predict(member, asked, n_folds) or 0.0) <= seconds

        if fits(high):
            low = high
        while high - low > 0.02 * low:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return replace(size, n_rows=size.n_rare + low)


def reference_seconds(member: Member, size: Size, n_folds: int) -> float:
    """Seconds on the reference machine; of a member that was not measured there, its own unit."""
    unit = _REFERENCE_SECONDS.get(member.name)
    cost = member.cost(size)
    return n_folds * (cost if unit is None else unit * cost + _FOLD_SECONDS)
