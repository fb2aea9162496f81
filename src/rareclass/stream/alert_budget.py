"""So many alerts a day, or in so many rows: what a stream may raise."""

import re
from dataclasses import dataclass
from typing import Self

from rareclass.errors import InputError

_FORM = re.compile(r"\s*([\d,_]+)\s*/\s*(day|[\d,_]+)\s*")


@dataclass(frozen=True)
class AlertBudget:
    """At most `number` alerts in each period: so many `rows` that are scored, or a calendar day.

    >>> AlertBudget.parse("50/day"), AlertBudget.parse("50/10,000").words
    (AlertBudget(number=50, rows=None), '50/10000')
    """

    number: int
    rows: int | None = None  # None: a day

    @property
    def words(self) -> str:
        """As it is given on the command line."""
        return f"{self.number}/{'day' if self.rows is None else self.rows}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``50/day`` or ``50/10000``.

        Raises `InputError` for anything else, and where it is no constraint.
        """
        found = _FORM.fullmatch(text)
        remedy = "Give so many a day, 50/day, or in rows, 50/10000."
        if found is None:
            raise InputError(f"--alert-budget {text} cannot be read.", remedy)
        number, rows = (part.replace(",", "").replace("_", "") for part in found.groups())
        try:
            budget = cls(int(number), None if rows == "day" else int(rows))
        except ValueError:
            raise InputError(f"--alert-budget {text} cannot be read.", remedy) from None
        if budget.number < 1:
            raise InputError(f"--alert-budget {text} lets no alert through.", remedy)
        if budget.rows is not None and budget.number >= budget.rows:
            raise InputError(
                f"--alert-budget {text} is no constraint: it lets every row through.",
                "Give fewer alerts than rows.",
            )
        return budget
