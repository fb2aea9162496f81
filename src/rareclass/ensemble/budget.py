"""Time: what is left of it, and what a member is likely to take."""

import time
from dataclasses import dataclass, field

from rareclass.ensemble.members.member import Member, Size, Stopped

# A member that takes longer than foretold is stopped at this multiple of the budget.
_HARD_LIMIT = 1.15


@dataclass
class Budget:
    """Seconds for a fit, counted from when it is made."""

    seconds: float
    started: float = field(default_factory=time.perf_counter)

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


@dataclass
class CostModel:
    """Seconds that members take, from what each took on fewer rows."""

    seconds_a_unit: dict[str, float] = field(default_factory=dict)

    def learn(self, member: Member, size: Size, n_folds: int, seconds: float) -> None:
        """Remember what a member took."""
        self.seconds_a_unit[member.name] = seconds / (n_folds * member.cost(size))

    def foretell(self, member: Member, size: Size, n_folds: int) -> float | None:
        """Seconds that a member is likely to take; None where it was never seen."""
        unit = self.seconds_a_unit.get(member.name)
        return None if unit is None else unit * n_folds * member.cost(size)
