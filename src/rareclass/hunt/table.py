"""A table to hunt in: every row is kept; its label is rare, cleared or not known yet."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.target import absent_label, is_rare, label_counts, one_spelling
from rareclass.encoding.training_table import ReadingPlan, plan_reading
from rareclass.errors import ErrorKind, InputError, counted
from rareclass.fit.memory_plan import ENCODED_COPIES, plan_memory
from rareclass.labels.states import UNKNOWN
from rareclass.machine import size_text
from rareclass.tables.columns import Column, facts_of
from rareclass.tables.table_file import TableFile, TablePlace, named_columns, open_table

# Label of a row without a label.
UNLABELLED = ""
# A column with more values without a role than this is hardly a label column.
_MANY_VALUES = 20


@dataclass(frozen=True)
class LabelRoles:
    """Values of the label column by their roles."""

    rare: tuple[str, ...]  # rare categories: a ball each
    cleared: tuple[str, ...] = ()  # rows known to be none of these
    ignored: tuple[str, ...] = ()  # values without information: such rows count as unlabelled


@dataclass(frozen=True)
class HuntLabels:
    """Labels of all rows."""

    # (n_rows,): the rare value, the first cleared value for all cleared rows, "" for unlabelled
    y: NDArray[np.str_]
    rare: tuple[str, ...]  # the rare values as they are written in the file
    n_rare: dict[str, int]  # rows of every rare value
    n_cleared: int
    n_ignored: int
    n_unlabelled: int  # rows without a label, ignored rows included

    @property
    def code(self) -> NDArray[np.int64]:
        """State of each row: k for the k-th rare value, 0 if cleared, -1 without a label."""
        places = {value: place for place, value in enumerate(self.rare, start=1)}
        known, row = np.unique(self.y, return_inverse=True)
        return np.array([places.get(y, 0 if y else UNKNOWN) for y in known.tolist()])[row]

    @property
    def unlabelled(self) -> NDArray[np.int64]:
        """Positions of the rows without a label."""
        return np.flatnonzero(self.y == UNLABELLED)


@dataclass(frozen=True)
class HuntTable:
    """A file read for a hunt."""

    file: TableFile  # to read rows again that are written out
    frame: pl.DataFrame  # the columns to compare rows by: float64, datetime or string
    columns: list[Column]  # every column that was looked at, the unused ones too
    labels: HuntLabels


def read_hunt_table(
    path: TablePlace,
    target: str,
    roles: LabelRoles,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    keep: Sequence[str] = (),
    separator: str | None = None,
    memory: int | None = None,
) -> HuntTable:
    """Read a table with a label column, `target`, that may be mostly empty.

    Columns are left out (`drop`), taken as categories, or kept although they look like identifiers.
    `memory` is the most bytes that may be taken; a larger table is refused. Raises `InputError` for
    whatever is wrong with the file, its columns or its labels.
    """
    file = named_columns(open_table(path, separator))
    plan = plan_reading(file, target, drop, categories, keep)
    if memory is not None:
        _check_memory(file, memory)
    frame, columns, labels = read_typed(plan)
    return HuntTable(file, frame, columns, sort_labels(labels, target, roles))


def read_typed(plan: ReadingPlan) -> tuple[pl.DataFrame, list[Column], pl.Series]:
    """Return the used columns of a table, all columns described, and the labels as text."""
    batches = list(plan.typed_batches())
    labels = pl.concat([named for _, named in batches], rechunk=True)
    frame = pl.concat([typed for typed, _ in batches], rechunk=True)
    del batches
    columns = plan.describe(facts_of(cells) for cells in frame)
    return frame.select([each.name for each in columns if each.is_used]), columns, labels


def sort_labels(labels: pl.Series, target: str, roles: LabelRoles) -> HuntLabels:
    """Sort rows into rare, cleared and unlabelled ones; 1, 1.0 and "1" are one value.

    `labels` are text, null where there is none. Raises `InputError` when a value stands for two
    things or for none of them, when no row has one that was asked for, or when no row is left to
    hunt in.

    >>> found = sort_labels(
    ...     pl.Series(["1", None, "0", None]), "case", LabelRoles(("1.0",), ("0",))
    ... )
    >>> found.y.tolist(), found.n_unlabelled
    (['1', '', '0', ''], 2)
    """
    known = label_counts(labels.drop_nulls())
    if not known:
        raise InputError(
            f"Column {target!r} is empty in all {len(labels):,} rows.",
            "A hunt needs at least one confirmed row: write its value there.",
            ErrorKind.LABELS,
            column=target,
        )
    spelled = one_spelling(known)
    labels = labels.replace(spelled)
    known = label_counts(labels.drop_nulls())
    roles = _as_written(target, roles, known)
    _check_neither(labels, target, known, roles)
    n_ignored = sum(known[value] for value in roles.ignored)
    n_unlabelled = labels.null_count() + n_ignored
    if not n_unlabelled:
        raise InputError(
            f"Column {target!r} is filled in all {len(labels):,} rows: no row is left to search.",
            "Leave the cells empty whose answer is not known; to learn from rows that are all "
            "labelled there is rareclass fit.",
            ErrorKind.LABELS,
            column=target,
        )
    cleared = roles.cleared[0] if roles.cleared else None
    meaning = (
        {value: value for value in roles.rare}
        | dict.fromkeys(roles.cleared, cleared)
        | dict.fromkeys(roles.ignored, UNLABELLED)
    )
    y = labels.fill_null(UNLABELLED).replace(meaning).to_numpy().astype(np.str_)
    return HuntLabels(
        y,
        roles.rare,
        {value: known[value] for value in roles.rare},
        sum(known[value] for value in roles.cleared),
        n_ignored,
        n_unlabelled,
    )


def _as_written(target: str, roles: LabelRoles, known: dict[str, int]) -> LabelRoles:
    """Return the roles with values as they are written in the file."""
    values = pl.Series(list(known))
    taken: dict[str, str] = {}

    def written(option: str, wanted: tuple[str, ...], must_occur: bool) -> tuple[str, ...]:
        found: list[str] = []
        for value in wanted:
            same = values.filter(pl.Series(is_rare(values, value.strip())))
            if must_occur and same.is_empty():
                raise absent_label(option, value, known, target)
            for label in same:
                if taken.setdefault(label, option) != option:
                    raise InputError(
                        f"{label!r} is both {taken[label]} and {option}.",
                        "Give each value of the column to one of them.",
                        ErrorKind.COMBINATION,
                        column=target,
                        value=label,
                    )
                found.append(label)
        return tuple(dict.fromkeys(found))

    return LabelRoles(
        written("--rare", roles.rare, True),
        written("--cleared", roles.cleared, True),
        # A list of values to ignore may be longer than this file needs.
        written("--ignore", roles.ignored, False),
    )


def _check_neither(
    labels: pl.Series, target: str, known: dict[str, int], roles: LabelRoles
) -> None:
    """Refuse values without a role: a guess could turn cases into cleared rows."""
    spoken_for = {*roles.rare, *roles.cleared, *roles.ignored}
    others = [value for value in known if value not in spoken_for]
    if not others:
        return
    value = others[0]
    first_row = 1 + int((labels == value).fill_null(False).arg_max() or 0)
    more = ""
    if len(others) > 1:
        more = f" (and {len(others) - 1} more such value{'s' if len(others) > 2 else ''})"
    rows = counted(known[value], "row")
    quoted = shlex.quote(value)
    remedy = (
        f"Add --cleared {quoted} or --rare {quoted}; --ignore {quoted} takes such rows as "
        "unlabelled."
    )
    if len(others) > _MANY_VALUES:
        remedy = f"Is {target!r} the label column? --target names it. If it is: {remedy}"
    raise InputError(
        f"Column {target!r} holds {value!r} in {rows}, first in row {first_row}: neither rare nor "
        f"cleared{more}.",
        remedy,
        ErrorKind.LABELS,
        column=target,
        row=first_row,
        value=value,
    )


def _check_memory(file: TableFile, limit: int) -> None:
    """Refuse a table that will not fit, before it is read."""
    plan = plan_memory(file, limit)
    if not plan.on_disk:
        return
    needed = ENCODED_COPIES * 4 * plan.n_encoded_columns * plan.n_rows
    if needed > limit:
        raise InputError(
            f"A hunt in {file.path} needs about {size_text(needed)} of memory (about "
            f"{plan.n_rows:,} rows, {plan.n_encoded_columns} columns once encoded); "
            f"{size_text(limit)} may be used.",
            "Leave columns out with --drop, or hunt in a part of the unlabelled rows. From Python, "
            "RACH.fit_rows takes numbers of any length from disk.",
            ErrorKind.MEMORY,
        )
