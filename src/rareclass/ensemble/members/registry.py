"""Registry of members by name, and the members that `members=` means, the most useful first."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from rareclass.ensemble.members.boosters import CatBoost, LightGBM, XGBoost
from rareclass.ensemble.members.machines import (
    GaussianOnNumbers,
    GaussianOnTails,
    KernelMember,
    LaplaceOnQuantiles,
    LaplaceOnTails,
    LogisticOnIndicators,
    LogisticOnQuantiles,
    MomentMember,
)
from rareclass.ensemble.members.member import Member
from rareclass.ensemble.members.scikit_learn import (
    BalancedForest,
    DeepHistogramBoosting,
    ExtraTrees,
    HistogramBoosting,
    RandomForest,
    SlowHistogramBoosting,
)
from rareclass.errors import ErrorKind, InputError, MissingPackageError, nearest_name

MEMBERS: dict[str, type[Member]] = {
    kind.name: kind
    for kind in (
        HistogramBoosting,
        LaplaceOnQuantiles,
        ExtraTrees,
        LaplaceOnTails,
        BalancedForest,
        LogisticOnQuantiles,
        LogisticOnIndicators,
        GaussianOnTails,
        GaussianOnNumbers,
        RandomForest,
        MomentMember,
        SlowHistogramBoosting,
        DeepHistogramBoosting,
        LightGBM,
        XGBoost,
        CatBoost,
    )
}

# In the order in which they are learned while there is time.
PORTFOLIOS: dict[str, tuple[str, ...]] = {
    "auto": tuple(name for name, kind in MEMBERS.items() if kind.package is None),
    "kernel": tuple(
        name for name, kind in MEMBERS.items() if issubclass(kind, KernelMember | MomentMember)
    ),
    "trees": (
        HistogramBoosting.name,
        ExtraTrees.name,
        BalancedForest.name,
        SlowHistogramBoosting.name,
        DeepHistogramBoosting.name,
        RandomForest.name,
    ),
}


def make_members(members: Any) -> list[Member]:
    """Make the members that the parameter of an estimator means, each once, in order.

    A portfolio ("auto", "kernel", "trees"), the name of a member, or a list of such names and of
    Member objects.

    Raises `InputError` where there is no such member, or its package is not installed.
    """
    asked = [members] if isinstance(members, str) else members
    if not isinstance(asked, Sequence) or not len(asked):
        raise InputError(
            f"members={members!r} names no member.", "Name one, or list some.", ErrorKind.SETTING
        )
    made: dict[str, Member] = {}
    for each in asked:
        for member in _named(each):
            made.setdefault(member.name, member)
    for member in made.values():
        if member.package is not None and find_spec(member.package) is None:
            raise MissingPackageError(
                f"The member {member.name!r} needs {member.package}, which is not installed.",
                f"Install it: pip install {member.package}. Or leave the member out.",
                ErrorKind.MISSING_PACKAGE,
                value=member.package,
            )
    return list(made.values())


def _named(asked: Any) -> list[Member]:
    """Make the members of one entry of `members=`."""
    if isinstance(asked, Member):
        return [asked]
    if not isinstance(asked, str):
        raise InputError(
            f"members holds {asked!r}, which is neither a name nor a Member.",
            "Give names, or objects of classes derived from Member.",
            ErrorKind.SETTING,
            value=asked,
        )
    if asked in PORTFOLIOS:
        return [MEMBERS[name]() for name in PORTFOLIOS[asked]]
    if asked in MEMBERS:
        return [MEMBERS[asked]()]
    known = [*PORTFOLIOS, *MEMBERS]
    near = nearest_name(asked, known)
    hint = f"Did you mean {near!r}?" if near else f"There are {', '.join(map(repr, known))}."
    raise InputError(
        f"members names {asked!r}, which is no member.", hint, ErrorKind.SETTING, value=asked
    )
