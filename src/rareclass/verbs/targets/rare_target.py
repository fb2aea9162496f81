"""A target of which one label is the rare class and all others are the rest."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.target import RareClass, rare_class_among
from rareclass.verbs.targets.held_out import Estimate
from rareclass.verbs.targets.target import FoundLabels

KIND = "rare class"
# Fewer rare rows than this make for rough intervals.
_FEW_ROWS = 10
_MOST_SHOWN = 5


@dataclass(frozen=True)
class RareTarget:
    """Code 1 is the rare class, code 0 the rest; see `rareclass.verbs.targets.target.Target`.

    Attributes
    ----------
    column : str
        Name of the target.
    rare_class : RareClass
        The labels and their counts.
    """

    kind: ClassVar[str] = KIND
    share: ClassVar[str] = "rare share"

    column: str
    rare_class: RareClass

    @property
    def counts(self) -> dict[str, int]:
        """Rows of every label."""
        return self.rare_class.counts

    @property
    def code_of(self) -> dict[str, int]:
        """1 for the rare label, 0 for others."""
        return {label: int(label == self.rare_class.label) for label in self.counts}

    @property
    def n_codes(self) -> int:
        """The rest and the rare class."""
        return 2

    @property
    def majority(self) -> int:
        """All that is not rare, even where it is less than half of the rows."""
        return 0

    @property
    def n_rare(self) -> int:
        """Rare rows, copies included."""
        return self.counts[self.rare_class.label]

    def description(self) -> list[str]:
        """Return the rare class and the others, with their rows."""
        rare = self.rare_class
        others = [f"{label} ({rare.counts[label]:,})" for label in rare.others[:_MOST_SHOWN]]
        n_more = len(rare.others) - _MOST_SHOWN
        more = f" and {n_more} more" if n_more > 0 else ""
        share = self.n_rare / sum(self.counts.values())
        return [
            f"Rare class: {self.column} = {rare.label}, {self.n_rare:,} rows ({share:.2%})",
            f"Rest: {', '.join(others)}{more}",
        ]

    def notes(self) -> list[str]:
        """Return a doubt where the rare class is not rare."""
        if 2 * self.n_rare > sum(self.counts.values()):
            return [f"{self.rare_class.label} is more than half of the rows: is it the rare class?"]
        return []

    def notes_on_held_out(self, y: NDArray[np.int16], estimate: Estimate) -> list[str]:
        """Say when the intervals stand on few rare rows, or on copies."""
        n_distinct, n_rare = int((y == 1).sum()), estimate.n_rare
        assert n_rare is not None
        notes = []
        if n_distinct < _FEW_ROWS:
            notes.append(
                f"Rare rows held out: only {n_distinct}, so the intervals are wide and rough."
                if n_rare == n_distinct
                else f"Distinct rare rows held out: only {n_distinct}, so the intervals are rough."
            )
        if n_rare > n_distinct:
            notes.append(
                f"The {n_rare:,.0f} rare rows held out are copies of {n_distinct:,} distinct "
                "ones. The intervals take every copy as a row of its own, so they are too short "
                "unless copies are independent observations; --copies drop counts distinct rows."
            )
        return notes

    def compared_with(self, y: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Return the majority."""
        return y == 0

    def metadata(self) -> dict[str, Any]:
        """Return the labels of the rare class and of the rest."""
        return {
            "target_kind": self.kind,
            "rare_label": self.rare_class.label,
            "rest_label": self.rare_class.rest_label,
            "n_rare": self.n_rare,
        }


def rare_target(found: FoundLabels, positive: str | None) -> RareTarget:
    """Return the target whose rare class is `positive`, else the rarer one of two.

    Raises
    ------
    InputError
        As `rare_class_among`.
    """
    return RareTarget(found.column, rare_class_among(found.counts, positive))
