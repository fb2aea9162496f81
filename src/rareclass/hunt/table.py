"""A table to hunt in: every row is kept; its label is rare, cleared or not known yet."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.target import label_counts
from rareclass.errors import ErrorKind
from rareclass.labels.states import UNKNOWN
from rareclass.review.journal import ReviewJournal
from rareclass.review.table import HUNT_OPTIONS, LabelRoles, ReviewTable, codes_of, roles_in


@dataclass(frozen=True)
class HuntLabels:
    """Labels of all rows."""

    code: NDArray[np.integer]  # k for the k-th rare value, 0 if cleared, -1 without a label
    rare: tuple[str, ...]  # the rare values, each of which has rows

    @property
    def y(self) -> NDArray[np.str_]:
        """The rare value of each row, one other value for cleared rows, "" without a label."""
        cleared = f"not {' or '.join(self.rare)}"  # longer than every rare value
        return np.array(["", cleared, *self.rare])[self.code + 1]

    @property
    def n_rare(self) -> dict[str, int]:
        """Rows of every rare value."""
        return {v: int((self.code == k).sum()) for k, v in enumerate(self.rare, start=1)}

    @property
    def n_cleared(self) -> int:
        """Rows known to be none of the rare values."""
        return int((self.code == 0).sum())

    @property
    def unlabelled(self) -> NDArray[np.int64]:
        """Positions of the rows without a label."""
        return np.flatnonzero(self.code == UNKNOWN)


@dataclass(frozen=True)
class HuntTable:
    """A table and the labels to hunt by: its own, and the verdicts of a journal."""

    rows: ReviewTable
    labels: HuntLabels

    @classmethod
    def of(cls, rows: ReviewTable, roles: LabelRoles, journal: ReviewJournal | None = None) -> Self:
        """Give each label of a table its role; a journal has roles of its own, and verdicts.

        Raises `InputError` when a value stands for two things or for none of them, no row has one
        that was asked for, no row is a case, or none is left to hunt in.
        """
        target = rows.target
        if journal is None:
            known = label_counts(rows.labels.drop_nulls())
            roles = roles_in(known, target, roles, HUNT_OPTIONS, cleared_may_be_new=False)
        else:
            roles = LabelRoles(journal.header.rare, journal.header.rest)
        code = codes_of(rows.labels, target, roles, HUNT_OPTIONS)
        if journal is not None:
            code = journal.states(rows.keys, code).code
        if not (code > 0).any():
            raise ErrorKind.LABELS.error(
                f"No row of {len(code):,} is known to be {' or '.join(roles.rare)} in column "
                f"{target!r}.",
                "A hunt needs at least one confirmed row: write its value there. rareclass review "
                "lists rows to begin with.",
                column=target,
            )
        if not (code == UNKNOWN).any():
            raise ErrorKind.LABELS.error(
                f"Column {target!r} is filled in all {len(code):,} rows: no row is left to search.",
                "Leave the cells empty whose answer is not known; to learn from rows that are all "
                "labelled there is rareclass fit.",
                column=target,
            )
        there, place = np.unique(code[code > 0], return_inverse=True)
        code = code.astype(np.int64)
        code[code > 0] = place + 1
        return cls(rows, HuntLabels(code, tuple(roles.rare[k - 1] for k in there)))
