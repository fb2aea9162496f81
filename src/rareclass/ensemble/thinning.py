"""How many majority rows there is time for."""

from rareclass.ensemble.budget import CostModel
from rareclass.ensemble.members.member import Member, Size

# Fewer majority rows than this, or than so many a rare row, are not thinned further.
LEAST_ROWS = 20_000
LEAST_PER_RARE = 5


def most_rows(member: Member, n_majority: int) -> int:
    """How many majority rows a member learns from where time is no matter."""
    return n_majority if member.most_majority is None else min(n_majority, member.most_majority)


def affordable_rows(
    costs: CostModel,
    member: Member,
    n_features: int,
    n_rare: int,
    n_majority: int,
    n_folds: int,
    seconds: float,
) -> int:
    """How many majority rows a member is likely to manage in so many seconds.

    `n_features` are those of its view. All that it learns from (`most_rows`) where there is time
    for them, and never fewer than 20,000, or 5 a rare row.
    """

    def foretold(n: int) -> float:
        return costs.foretell(member, Size(n_rare + n, n_rare, n_features), n_folds) or 0.0

    high = most_rows(member, n_majority)
    low = min(high, max(LEAST_ROWS, LEAST_PER_RARE * n_rare))
    if foretold(high) <= seconds:
        return high
    while high - low > 0.02 * low:
        middle = (low + high) // 2
        low, high = (middle, high) if foretold(middle) <= seconds else (low, middle)
    return low
