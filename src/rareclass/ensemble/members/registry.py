"""Members by name, and which of them `members=` means."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from rareclass.ensemble.members.kernel_machine import (
    GaussianOnNumbers,
    GaussianOnTails,
    LaplaceOnQuantiles,
    LaplaceOnTails,
)
from rareclass.ensemble.members.logistic import LogisticOnIndicators, LogisticOnQuantiles
from rareclass.ensemble.members.member import Member
from rareclass.ensemble.members.mibc import MomentMember
from rareclass.errors import InputError, name_hint

MEMBERS: dict[str, Callable[[], Member]] = {
    kind.name: kind
    for kind in (
        LaplaceOnQuantiles,
        LaplaceOnTails,
        GaussianOnTails,
        GaussianOnNumbers,
        LogisticOnQuantiles,
        LogisticOnIndicators,
        MomentMember,
    )
}
