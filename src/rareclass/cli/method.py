"""The options of ``rareclass fit`` that say how to learn, and what belongs to which method."""

from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from rareclass.errors import ErrorKind, setting
from rareclass.parameters import opt, parse_number, read_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rareclass.fit.method import Method


MethodName = Literal["auto", "rankrc", "mibc", "ordinal-rankrc"]
Effort = Literal["quick", "standard", "thorough"]


def effort_option(default: Effort | None, **more: Any) -> Any:
    """Option ``--effort`` of the plan of auto."""
    return opt(
        "Plan of auto: quick (half of the time), standard, or thorough (more members and rows). "
        "The same rows, seed and effort give the same model.",
        default,
        metavar="EFFORT",
        **more,
    )


# The options of each method that not all have.
_OWN: dict[MethodName, tuple[str, ...]] = {
    "auto": ("positive", "effort", "time_budget", "objective", "members"),
    "rankrc": ("positive", "lam", "width"),
    "mibc": ("positive", "cost", "covariance"),
    "ordinal-rankrc": ("lam", "levels"),
}


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """Options on how to learn; None where the user gave none."""

    method: MethodName = opt(
        "auto: an ensemble of trees, kernel machines and linear models. rankrc: one kernel "
        "machine, for numeric columns. mibc: a linear model, for very wide or very large tables. "
        "ordinal-rankrc: a kernel machine for ordered levels, such as grades.",
        "auto",
        metavar="METHOD",
    )
    effort: Effort | None = effort_option(None, show_default="standard")
    time_budget: float | None = opt(
        "Time limit of training with auto: seconds, 5m or 1h. It cuts the plan, and the model "
        "then depends on the speed of the machine. Ctrl-C keeps the members so far.",
        reads=read_seconds,
        show_default="none",
    )
    objective: str | None = opt(
        "Measure that auto maximises on held-out rows: average-precision, roc-auc, precision-at-k "
        "(k: the number of rare rows), or precision-at=100.",
        show_default="average-precision",
    )
    members: tuple[str, ...] = opt(
        "Ensemble member of auto: kernel, trees, or a name that fit --details prints. Many times.",
        (),
        show_default="auto",
    )
    lam: float | None = opt(
        "Regularisation strength of rankrc and ordinal-rankrc: a number such as 0.01 or 2^-8; "
        "auto cross-validates.",
        reads=parse_number,
        show_default="auto",
    )
    width: float | str | None = opt(
        "Kernel width of rankrc: a number (sigma), mean (the mean distance of rows), or auto: "
        "cross-validated with lam beyond 20,000 rows, else mean.",
        reads=partial(
            parse_number,
            words={"auto": None, "mean": "mean"},
            remedy="Give auto, mean, or a number such as 2.5.",
        ),
        show_default="auto",
    )
    covariance: Literal["full", "diagonal", "factor"] | None = opt(
        "Covariance estimate of mibc: full, diagonal or factor.",
        metavar="KIND",
        show_default="full; diagonal for svmlight and above 1,000 encoded columns",
    )
    levels: tuple[str, ...] = opt(
        "Levels of the target of ordinal-rankrc from the lowest to the highest, such as "
        "low,medium,high. The last level ranks first.",
        (),
        show_default="numbers by size",
    )

    def learner(self, cost: str | None, positive: "Sequence[str] | None") -> "Method":
        """Return the method of the options; refuse what it cannot read, or belongs to another."""
        given, own = vars(self) | {"cost": cost, "positive": positive}, _OWN[self.method]
        for name in sorted({name for names in _OWN.values() for name in names} - {*own}):
            value, flag = given[name], setting(name)
            if value not in (None, ()):
                owners = [method for method, names in _OWN.items() if name in names]
                shown = setting(name, *(value if isinstance(value, tuple) else (value,)))
                raise ErrorKind.COMBINATION.error(
                    f"{shown} belongs to --method {' or '.join(owners)}; {self.method} has "
                    f"{', '.join(map(setting, own))}.",
                    f"Leave {flag} out, or give --method {owners[0]}.",
                )
        if self.method == "auto":
            return self._auto()
        if self.method == "mibc":
            from rareclass.fit.mibc_method import MIBCMethod

            remedy = "Give auto, a number such as 0.1 or 10^-2, or inf."
            words = {"auto": None, "inf": inf}
            return MIBCMethod(parse_number("--cost", cost, words, remedy), self.covariance)
        from rareclass.fit.kernel_methods import OrdinalMethod, RankRCMethod
        from rareclass.labels.levels import check_levels

        if self.method == "rankrc":
            return RankRCMethod(self.lam, self.width)
        if self.levels:
            check_levels(self.levels)
        return OrdinalMethod(self.lam, self.levels or None)

    def _auto(self) -> "Method":
        from rareclass.fit.auto_method import AutoMethod, check_members, check_objective

        objective = (self.objective or "").lower().replace("-", "_")
        asked: dict[str, Any] = {
            "effort": self.effort,
            "seconds": self.time_budget,
            "objective": objective and check_objective(objective),
            "members": self.members and check_members(self.members),
        }
        return AutoMethod(**{name: value for name, value in asked.items() if value})
