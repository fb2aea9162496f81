"""The plan of a fit, made before training from the shape of the table alone.

Who learns, on which rows and in how many folds depends on the numbers of rows, rare rows and
columns, and on what is installed: the same on every machine, whatever runs beside. Members stand
in the order of their average rank, so that a time limit leaves the strongest
(docs/decisions/0066).
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from platform import processor
from typing import Any, NamedTuple

import numpy as np

from rareclass.ensemble.members.machines import (
    LaplaceOnQuantiles,
    LogisticOnIndicators,
    LogisticOnQuantiles,
    MomentMember,
)
from rareclass.ensemble.members.member import Member, Size
from rareclass.ensemble.members.trees import (
    CatBoost,
    DeepHistogramBoosting,
    ExtraTrees,
    HistogramBoosting,
    SlowHistogramBoosting,
)
from rareclass.errors import ErrorKind, MissingPackageError, counted, unknown_name
from rareclass.estimators.search import Fold, make_folds
from rareclass.folds.dealing import ALWAYS_LEARNED, dealt, group_numbers, moments, stretches
from rareclass.labels.two_classes import Labels
from rareclass.parameters import check_number, is_whole
from rareclass.rows.memory import count_threads

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
_QUICK: tuple[str, ...] = (
    HistogramBoosting.name,
    ExtraTrees.name,
    LogisticOnIndicators.name,
    LogisticOnQuantiles.name,
    MomentMember.name,
)
EFFORTS = ("quick", "standard", "thorough")
# Seconds that the reference machine takes for `_sample_of_work`.
_REFERENCE_SECONDS = 0.009
_REPEATS = 5


def make_members(members: Any, effort: str = "standard") -> list[Member]:
    """Make the members that the parameters of an estimator mean, each once, in order.

    A portfolio ("auto", "kernel", "trees": of it what is installed), the name of a member, or a
    list of such names and of Member objects.

    Raises `InputError` where there is no such member or effort, or a package is not installed.
    """
    if effort not in EFFORTS:
        raise ErrorKind.SETTING.error(
            f"effort={effort!r} is not an effort.",
            f"There are {', '.join(map(repr, EFFORTS))}.",
            value=effort,
        )
    asked = [members] if isinstance(members, str) else members
    if not isinstance(asked, Sequence) or not len(asked):
        raise ErrorKind.SETTING.error(f"members={members!r} is empty.", "Name one, or list some.")
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
        raise ErrorKind.SETTING.error(
            f"members holds {asked!r}, which is neither a name nor a Member.",
            "Give names, or objects of classes derived from Member.",
            value=asked,
        )
    if asked in PORTFOLIOS:
        names = _QUICK if (asked, effort) == ("auto", "quick") else PORTFOLIOS[asked]
        kinds = [MEMBERS[name] for name in names]
        return [kind() for kind in kinds if _is_there(kind)]
    if asked in MEMBERS:
        return [MEMBERS[asked]()]
    known = [*PORTFOLIOS, *MEMBERS]
    raise unknown_name(f"members names {asked!r}, which is not a member.", asked, known)


# Folds of cv="auto", and fewer from so many rows on. With so many rare rows two tenths of many rows
# say enough of members: these alone are held out, and each fold learns from nine tenths.
FOLDS, _FEWER_FOLDS, _MANY_ROWS = 5, 3, 30_000
_RARE_ROWS_FOR_TENTHS, _TENTHS, _HELD_OUT_TENTHS = 1000, 10, 2
# Tables of fewer rows are learned by one thread.
_ONE_THREAD_ROWS = 1_000
# A thorough plan has all members from so many rows on.
_LEAST_ROWS = 1_000
# A table is thinned no further for want of time.
_FEWEST_ROWS = 20_000
# The part of a time limit that the first member may be likely to take on a long table, and the part
# that is for members; the rest is for reading, weights and importances.
_FIRST_PART, _MEMBERS_PART = 0.25, 0.75
# Seconds of everything but the members, for a table and for each of its rows.
_OTHER_SECONDS, _OTHER_SECONDS_A_ROW = 0.2, 4e-5
# Parts of the rows where folds are too few to be parts.
_PARTS = 5
# Rows that are learned from at most, by effort; the members of an effort are in the registry.
MOST_ROWS = {"quick": 50_000, "standard": 200_000, "thorough": 500_000}


@dataclass(frozen=True)
class Plan:
    """Members in the order in which they learn, folds, and rows to learn from.

    `n_rows` of the rows are learned from, all rare ones among them; `seconds` is what this machine
    is likely to take; `without_time` are members that the time limit leaves out.
    """

    effort: str
    members: tuple[Member, ...]
    n_folds: int
    n_rows: int
    seconds: float
    without_time: tuple[str, ...] = ()
    is_thinned_for_time: bool = False

    @property
    def extent(self) -> str:
        """Members, folds and rows in words."""
        members, folds = counted(len(self.members), "member"), counted(self.n_folds, "fold")
        return f"{members}, {folds}, {self.n_rows:,} rows"

    @property
    def line(self) -> str:
        """The plan in a line.

        >>> Plan("standard", (), 5, 20_000, 8.6).line
        '0 members, 5 folds, 20,000 rows; about 9 s on this machine'
        """
        return f"{self.extent}; about {max(self.seconds, 1.0):.0f} s on this machine"


def make_plan(
    effort: str,
    members: Sequence[Member],
    shape: Size,
    n_folds: int,
    n_threads: int = 1,
    seconds: float | None = None,
) -> Plan:
    """Return the plan for a table of a shape whose rows are held out in so many folds.

    `seconds` is a time limit or None. Members that add nothing on such a table are
    not planned. Raises `ValueError` for a time limit that is none.
    """
    most_rows = MOST_ROWS[effort]
    n_rows = min(shape.n_rows, max(most_rows, shape.n_rare + most_rows // 2))
    chosen = [member for member in members if _is_of_use(member, effort, shape)]
    plan = Plan(effort, tuple(chosen or members), n_folds, n_rows, 0.0)
    if seconds is not None:
        check_number("time_budget", seconds, "a number above 0, or None")
        plan = _within(plan, shape, n_threads, seconds)
    return replace(plan, seconds=_seconds(plan.members, plan, shape, n_threads))


def threads_for(n_rows: int, n_jobs: int | None) -> int:
    """Return the threads for a table: few rows are learned sooner by one than by two."""
    return 1 if n_rows < _ONE_THREAD_ROWS else count_threads(n_jobs)


class Folds(NamedTuple):
    """Folds to deal, as `cv`, and how many of them members hold out; None: all."""

    cv: Any
    n_held_out: int | None = None

    @property
    def n_folds(self) -> int:
        """Folds that members hold out, where `cv` is a number."""
        return self.n_held_out or int(self.cv)


def folds_of(cv: Any, n_rows: int, n_rare: int, by_time: bool) -> Folds:
    """Return what cv="auto" means for a table; other values are as they are.

    >>> folds_of("auto", 1000, 50, False).cv, folds_of("auto", 100_000, 2000, False)
    (5, Folds(cv=10, n_held_out=2))
    """
    if not isinstance(cv, str) or cv != "auto":
        return Folds(cv)
    if n_rows < _MANY_ROWS:
        return Folds(FOLDS)
    if n_rare >= _RARE_ROWS_FOR_TENTHS and not by_time:
        return Folds(_TENTHS, _HELD_OUT_TENTHS)
    return Folds(_FEWER_FOLDS)


def fold_numbers(
    cv: Any,
    labels: Labels,
    n_rows: int,
    seed: int,
    groups: Any = None,
    time: Any = None,
    which: np.ndarray | None = None,
) -> np.ndarray:
    """Return the number of the fold that holds each row out, of shape (n_rows,), from 0 on.

    Stratified and shuffled; rows of a group stay together; with `time` a fold is a stretch of it.
    A single rare row is always learned from. Whatever the folds, both classes are among the rows
    that a fold does not hold out. `which` of shape (n_rows,), -1 for the majority, spreads the rows
    of each of several rare classes over the folds.

    Raises `ValueError` on a `cv` that is none, and `InputError` where `cv` holds a row out twice or
    leaves rows out which it does not test, and where groups or times do not fit the rows or leave
    too few folds.
    """
    is_count = isinstance(cv, (bool, int, np.integer))
    _check(cv, labels, is_count, groups is not None, time is not None)
    if is_count and len(labels.rare) == 1:  # folds of the majority alone
        number = np.full(n_rows, ALWAYS_LEARNED)
        n_majority = len(labels.majority)
        order = np.random.default_rng(seed).permutation(n_majority)
        number[labels.majority] = order % min(int(cv), n_majority)
        return number
    if time is not None:
        return _split(labels, "time", partial(stretches, int(cv)), moments(time, n_rows))
    if groups is not None:
        groups = group = group_numbers(groups, n_rows)
        if is_count:
            n_folds = min(int(cv), len(np.unique(group[labels.rare])))
            return _split(labels, "groups", partial(dealt, n_folds, seed), group)
    if is_count:
        cv = min(int(cv), len(labels.rare), len(labels.majority))
    folds = make_folds(cv, labels, n_rows, seed, "more rows", which, groups)
    return _as_numbers(folds, labels, n_rows)


def _check(cv: Any, labels: Labels, is_count: bool, has_groups: bool, has_time: bool) -> None:
    if has_groups and has_time:
        raise ErrorKind.COMBINATION.error("groups and time are both given.", "Give one of them.")
    if has_time and not is_count:
        raise ErrorKind.COMBINATION.error(
            f"cv={cv!r} is not a whole number, which folds by time need.",
            "Give a number of folds, or no time.",
            value=cv,
        )
    if is_count and not is_whole(cv, 2):
        raise ErrorKind.SETTING.error(
            f"cv={cv!r} is not at least 2 folds.", "Give 2 or more.", value=cv
        )
    if is_count and len(labels.majority) < 2:
        raise ErrorKind.TOO_FEW_ROWS.error(
            "The majority has 1 row of weight above 0, which cannot be both trained on and held "
            "out.",
            "Give more majority rows.",
        )


def _as_numbers(folds: list[Fold], labels: Labels, n_rows: int) -> np.ndarray:
    """Return numbers of folds that each learn from all rows but those that they test."""
    kept = labels.kept
    number = np.full(n_rows, ALWAYS_LEARNED)
    for k, fold in enumerate(folds):
        twice = np.flatnonzero(fold.tested & (number >= 0))
        if len(twice):
            raise ErrorKind.ROWS.error(
                f"cv holds row {twice[0]} out twice.",
                "Give folds that hold each row out once at most.",
                row=int(twice[0]),
            )
        idle = kept[(fold.held_out & ~fold.tested)[kept]]
        if len(idle):
            raise ErrorKind.ROWS.error(
                f"Fold {k + 1} of cv neither learns from nor tests {counted(len(idle), 'row')}, "
                f"the first of them row {idle[0]}.",
                "Give folds that learn from all rows but those that they test. For folds by time, "
                "pass time to fit.",
                row=int(idle[0]),
            )
        number[fold.tested] = k
    return number


def _split(
    labels: Labels,
    name: str,
    split: Callable[[np.ndarray, np.ndarray], np.ndarray],
    place: np.ndarray,
) -> np.ndarray:
    """Split the rows that count by group or time, so that each fold leaves both classes."""
    kept, number = labels.kept, np.full(len(place), ALWAYS_LEARNED)
    number[kept] = split(labels.is_rare(len(place))[kept], place[kept])
    for kind, rows in (("rare", labels.rare), ("majority", labels.majority)):
        if len(np.unique(number[rows])) == 1:
            raise ErrorKind.TOO_FEW_ROWS.error(
                f"{name} puts all {kind} rows into one fold, which would have none to learn from.",
                f"Fit without {name}.",
            )
    return number


def parts_of_rows(
    n_rows: int, seed: int, groups: np.ndarray | None = None, time: np.ndarray | None = None
) -> np.ndarray:
    """Return parts of the rows, of shape (n_rows,), where folds are too few to be parts.

    Dealt at random; rows of a group are in one part, and with `time` a part is a stretch of it.
    Groups and times are numbered from 0 on.
    """
    if time is not None:
        return time * _PARTS // (int(time.max()) + 1)
    group = np.arange(n_rows) if groups is None else groups
    return np.random.default_rng(seed).permutation(int(group.max()) + 1)[group] % _PARTS


def _is_of_use(member: Member, effort: str, shape: Size) -> bool:
    """Return whether a member adds something to others on a table of this shape."""
    least = min(member.least_rows, _LEAST_ROWS if effort == "thorough" else member.least_rows)
    is_narrow = member.most_columns is None or shape.n_features <= member.most_columns
    return shape.n_rows >= least and is_narrow


def member_seconds(member: Member, plan: Plan, shape: Size) -> float:
    """Seconds of one thread of the reference machine for all folds of a member."""
    n_majority = plan.n_rows - min(shape.n_rare, plan.n_rows)
    if member.most_majority is not None:
        n_majority = min(n_majority, member.most_majority)
    size = Size(shape.n_rare + n_majority, shape.n_rare, shape.n_features)
    return plan.n_folds * member.seconds(size)


def _seconds(members: Sequence[Member], plan: Plan, shape: Size, n_threads: int) -> float:
    """Seconds of this machine for some members and everything else; folds run side by side."""
    at_once = min(n_threads, plan.n_folds)
    of_members = sum(member_seconds(each, plan, shape) for each in members) / at_once
    others = _OTHER_SECONDS + _OTHER_SECONDS_A_ROW * shape.n_rows
    return (of_members + others) / machine_speed()


def _within(plan: Plan, shape: Size, n_threads: int, seconds: float) -> Plan:
    """Return what of a plan is likely to end in time: fewer rows, then the first members alone."""
    first = plan.members[:1]
    while (
        plan.n_rows // 2 >= max(_FEWEST_ROWS, 2 * shape.n_rare)
        and _seconds(first, plan, shape, n_threads) > _FIRST_PART * seconds
    ):
        plan = replace(plan, n_rows=plan.n_rows // 2, is_thinned_for_time=True)
    n_members = 1
    while (
        n_members < len(plan.members)
        and _seconds(plan.members[: n_members + 1], plan, shape, n_threads)
        <= _MEMBERS_PART * seconds
    ):
        n_members += 1
    left_out = tuple(member.name for member in plan.members[n_members:])
    return replace(plan, members=plan.members[:n_members], without_time=left_out)


@cache
def machine_speed() -> float:
    """Speed of a core of this machine, as a multiple of that of the reference machine.

    Measured once on a machine, in a tenth of a second, and stored in the user's cache folder: what
    a plan is cut to does not depend on what runs beside the fit.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rareclass"
    file, name = folder / "machine_speed.json", processor()
    with suppress(OSError, ValueError, KeyError, TypeError):
        return float(json.loads(file.read_text())[name])
    speed = _REFERENCE_SECONDS / min(_sample_of_work() for _ in range(_REPEATS))
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        written = file.with_suffix(".part")
        written.write_text(json.dumps({name: speed}))
        os.replace(written, file)
    return speed


def _sample_of_work() -> float:
    """Return the seconds of binary searches, which no library hands to several threads."""
    random = np.random.default_rng(0)
    values, sorted_ones = random.random(100_000), np.sort(random.random(20_000))
    started = time.perf_counter()
    np.searchsorted(sorted_ones, values)
    return time.perf_counter() - started
