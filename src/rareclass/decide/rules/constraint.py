"""What every constraint and aim of a threshold answers."""

from typing import NamedTuple, Protocol

from rareclass.decide.rules.held_out import HeldOut


class Found(NamedTuple):
    """The cut that a rule takes.

    ``bound`` is what the confidence vouches for of the constrained measure (without a confidence
    or a constraint: what the held-out rows have), ``met`` whether that is enough, ``wanted`` what
    was asked for, None for an aim without a constraint.
    """

    cut: int
    met: bool
    bound: float
    wanted: float | None
    procedure: str
    guaranteed: bool = False


class Constraint(Protocol):
    """Settings of a constraint or aim, checked when they are made."""

    @property
    def words(self) -> str:
        """What is wanted, as a formula."""
        ...

    def find(self, held: HeldOut, confidence: float | None, prevalence: float | None) -> Found:
        """The cut that serves best among those that meet the constraint, or comes closest."""
        ...
