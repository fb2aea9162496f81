"""Labels of a column by their roles: rare, or known not to be."""

import shlex
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.target import absent_label, is_rare, label_counts
from rareclass.errors import ErrorKind, InputError, counted
from rareclass.labels.states import UNKNOWN

# A column with more values without a role than this is hardly a label column.
_MANY_VALUES = 20


class LabelRoles(NamedTuple):
    """Values of a label column by their roles."""

    rare: tuple[str, ...]  # rare classes, in order
    cleared: tuple[str, ...] = ()  # rows known to be none of these


class RoleOptions(NamedTuple):
    """The options of a command that name labels; whether each label has to be named."""

    rare: str
    cleared: str
    name_all: bool


REVIEW_OPTIONS = RoleOptions("--positive", "--rest", name_all=False)
HUNT_OPTIONS = RoleOptions("--rare", "--cleared", name_all=True)


def roles_in(
    known: Iterable[str],
    target: str,
    roles: LabelRoles,
    options: RoleOptions,
    may_be_new: bool = False,
) -> LabelRoles:
    """Return the roles with values as they are written among the `known` ones of a column.

    1, 1.0 and "1" are one value. Unless they `may_be_new`, rare values have to be there, and
    cleared ones where the options name all. Where no value is known they are as given.

    Raises `InputError` for values that are not there, or have two roles.
    """
    values, taken = pl.Series(list(known), dtype=pl.String), dict[str, str]()

    def written(option: str, wanted: tuple[str, ...], must_occur: bool) -> tuple[str, ...]:
        for value in wanted:
            same = values.filter(pl.Series(is_rare(values, value.strip()), dtype=pl.Boolean))
            if must_occur and same.is_empty() and len(values):
                raise absent_label(option, value, values, target)
            for label in same if len(same) else [value]:
                if taken.setdefault(label, option) != option:
                    raise InputError(
                        f"{label!r} is both {taken[label]} and {option}.",
                        "Give each value of the column to one of them.",
                        ErrorKind.COMBINATION,
                        column=target,
                        value=label,
                    )
        return tuple(label for label, of in taken.items() if of == option)

    return LabelRoles(
        written(options.rare, roles.rare, not may_be_new),
        written(options.cleared, roles.cleared, options.name_all),
    )


def codes_of(
    labels: pl.Series, target: str, roles: LabelRoles, options: RoleOptions
) -> NDArray[np.int16]:
    """Return k for rows of the k-th rare value, 0 for cleared ones, -1 for rows without a label.

    Raises `InputError` at a value without a role: a guess could turn cases into cleared rows.
    """
    code = dict.fromkeys(roles.cleared, 0)
    code |= {label: k for k, label in enumerate(roles.rare, start=1)}
    known = label_counts(labels.drop_nulls())
    others = [label for label in known if label not in code]
    if others:
        raise _without_role(labels, target, others, known[others[0]], options)
    codes = labels.replace_strict(code, default=UNKNOWN, return_dtype=pl.Int16)
    return codes.fill_null(UNKNOWN).to_numpy()


def _without_role(
    labels: pl.Series, target: str, others: list[str], n_rows: int, options: RoleOptions
) -> InputError:
    value = others[0]
    first_row = 1 + int((labels == value).fill_null(False).arg_max() or 0)
    more = ""
    if len(others) > 1:
        more = f" (and {len(others) - 1} more such value{'s' if len(others) > 2 else ''})"
    quoted = shlex.quote(value)
    remedy = (
        f"Add {options.cleared} {quoted} or {options.rare} {quoted}; --ignore {quoted} "
        "takes such rows as unlabelled."
    )
    if len(others) > _MANY_VALUES:
        remedy = f"Is {target!r} the label column? --target names it. If it is: {remedy}"
    return InputError(
        f"Column {target!r} holds {value!r} in {counted(n_rows, 'row')}, first in row {first_row}: "
        f"neither rare nor cleared{more}.",
        remedy,
        ErrorKind.LABELS,
        column=target,
        row=first_row,
        value=value,
    )
