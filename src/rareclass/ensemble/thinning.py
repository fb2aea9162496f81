"""A part of the majority, where there is no time for all of it."""

from collections.abc import Sequence

import numpy as np

from rareclass.ensemble.budget import CostModel
from rareclass.ensemble.members.member import Member, Size

# Fewer majority rows than this, or than so many a rare row, are not thinned further.
LEAST_ROWS = 10_000
LEAST_PER_RARE = 5
# The part of the time that the first members may be likely to take.
_SHARE = 0.6


def affordable_rows(
    costs: CostModel,
    members: Sequence[Member],
    n_features: Sequence[int],
    n_rare: int,
    n_majority: int,
    n_folds: int,
    seconds: float,
) -> int:
    """How many majority rows the members are likely to manage in a part of `seconds`.

    `n_features` are those of the members' views. All of them, where there is time for all.
    """

    def foretold(n: int) -> float:
        sizes = [Size(n_rare + n, n_rare, k) for k in n_features]
        return sum(
            costs.foretell(member, size, n_folds) or 0.0
            for member, size in zip(members, sizes, strict=True)
        )

    least = min(n_majority, max(LEAST_ROWS, LEAST_PER_RARE * n_rare))
    low, high = least, n_majority
    if foretold(high) <= _SHARE * seconds:
        return high
    while high - low > 0.02 * low:
        middle = (low + high) // 2
        low, high = (middle, high) if foretold(middle) <= _SHARE * seconds else (low, middle)
    return low


def thinned(
    is_rare: np.ndarray, weight: np.ndarray | None, n_majority: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of all rare rows and of `n_majority` others, and the weights that make up.

    The others are drawn alike; what is left of them weighs together what all did.
    """
    rng = np.random.default_rng(seed)
    majority = np.flatnonzero(~is_rare)
    chosen = rng.choice(majority, n_majority, replace=False)
    rows = np.sort(np.concatenate([np.flatnonzero(is_rare), chosen]))
    all_weights = np.ones(len(is_rare)) if weight is None else weight
    weights = all_weights[rows].copy()
    weights[~is_rare[rows]] *= all_weights[majority].sum() / all_weights[chosen].sum()
    return rows, weights
