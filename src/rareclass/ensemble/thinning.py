"""How many majority rows there is time for."""

from collections.abc import Sequence

from rareclass.ensemble.budget import CostModel
from rareclass.ensemble.members.member import Member, Size

# Fewer majority rows than this, or than so many a rare row, are not thinned further.
LEAST_ROWS = 20_000
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
