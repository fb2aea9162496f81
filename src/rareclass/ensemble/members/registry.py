"""Registry of members by name, and the members that `members=` means, the most useful first."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from rareclass.ensemble.members.machines import (
    LaplaceOnQuantiles,
    LogisticOnIndicators,
    LogisticOnQuantiles,
    MomentMember,
)
from rareclass.ensemble.members.member import Member
from rareclass.ensemble.members.trees import (
    CatBoost,
    DeepHistogramBoosting,
    ExtraTrees,
    HistogramBoosting,
    SlowHistogramBoosting,
)
from rareclass.errors import ErrorKind, InputError, MissingPackageError, unknown_name

# By average rank of average precision, the best first (docs/decisions/0066).
MEMBERS: dict[str, type[Member]] = {
    kind.name: kind
    for kind in (
        HistogramBoosting,
        CatBoost,
        LaplaceOnQuantiles,
        ExtraTrees,
        SlowHistogramBoosting,
        DeepHistogramBoosting,
        LogisticOnIndicators,
        LogisticOnQuantiles,
        MomentMember,
    )
}

# What `members=` may name besides members. "auto" is the portfolio of the effort.
PORTFOLIOS: dict[str, tuple[str, ...]] = {
    "auto": tuple(MEMBERS),
    "kernel": (LaplaceOnQuantiles.name, MomentMember.name),
    "trees": (
        HistogramBoosting.name,
        ExtraTrees.name,
        SlowHistogramBoosting.name,
        DeepHistogramBoosting.name,
    ),
}
# Members of "auto" for another effort than the standard one.
_OF_EFFORT: dict[str, tuple[str, ...]] = {
    "quick": (
        HistogramBoosting.name,
        ExtraTrees.name,
        LogisticOnIndicators.name,
        LogisticOnQuantiles.name,
        MomentMember.name,
    ),
}
EFFORTS = ("quick", "standard", "thorough")


def make_members(members: Any, effort: str = "standard") -> list[Member]:
    """Make the members that the parameters of an estimator mean, each once, in order.

    A portfolio ("auto", "kernel", "trees": of it what is installed), the name of a member, or a
    list of such names and of Member objects.

    Raises `InputError` where there is no such member or effort, or a package is not installed.
    """
    if effort not in EFFORTS:
        raise InputError(
            f"effort={effort!r} is not an effort.",
            f"There are {', '.join(map(repr, EFFORTS))}.",
            ErrorKind.SETTING,
            value=effort,
        )
    asked = [members] if isinstance(members, str) else members
    if not isinstance(asked, Sequence) or not len(asked):
        raise InputError(
            f"members={members!r} is empty.", "Name one, or list some.", ErrorKind.SETTING
        )
    made: dict[str, Member] = {}
    for each in asked:
        for member in _named(each, effort):
            made.setdefault(member.name, member)
    for member in made.values():
        if not _is_there(type(member)):
            raise MissingPackageError(
                f"The member {member.name!r} needs {member.package}, which is not installed.",
                f"Install it: pip install {member.package}. Or leave the member out.",
                ErrorKind.MISSING_PACKAGE,
                value=member.package,
            )
    return list(made.values())


def _is_there(kind: type[Member]) -> bool:
    """Return whether the package of a member is installed, or it needs none."""
    return kind.package is None or find_spec(kind.package) is not None


def _named(asked: Any, effort: str) -> list[Member]:
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
        names = _OF_EFFORT.get(effort) if asked == "auto" else None
        kinds = [MEMBERS[name] for name in names or PORTFOLIOS[asked]]
        return [kind() for kind in kinds if _is_there(kind)]
    if asked in MEMBERS:
        return [MEMBERS[asked]()]
    known = [*PORTFOLIOS, *MEMBERS]
    raise unknown_name(f"members names {asked!r}, which is not a member.", asked, known)
