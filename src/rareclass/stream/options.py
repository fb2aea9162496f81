"""What a stream is asked to do, and which of it must stay the same when it goes on."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rareclass.errors import InputError
from rareclass.remote import path_of
from rareclass.stream.alert_budget import AlertBudget
from rareclass.tables.databases.address import Query

# As the user knows them, for messages.
_OPTION = {
    "source": "SOURCE",
    "learner": "--learner",
    "parameters": "--param",
    "id_column": "--id",
}
_OF_ALERTS = ("alerts", "alert-budget", "time")
# What a folder that does not say so was begun with.
_BEFORE = {"on-drift": "report"}
_PARAMETERS_BEFORE = {"steps": "adagrad"}


@dataclass(frozen=True)
class StreamOptions:
    """What to do with a stream."""

    source: str | Query  # a file, a folder that grows, a query, or - for standard input
    target: str  # its label is still to come where the cell is empty
    learner: str = "cbr"  # one of `LEARNERS`
    parameters: dict[str, Any] = field(default_factory=dict)
    positive: str | None = None
    id_column: str | None = None  # rows without a label are held under it
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()  # though they look like numbers
    separator: str | None = None  # of a CSV source; found out by default
    max_categories: int = 32  # this and the next two: of `OnlineEncoder`
    half_life: float = 100_000
    tails: str = "asinh"
    window: int = 10_000  # rows that are measured
    top: int = 100  # the k of precision at k
    hold: int = 100_000  # rows for their labels, at most
    every: int = 10_000  # records between two checkpoints
    report_every: int = 10_000  # records between two reports
    follow: bool = False
    max_rejected: int | None = None  # stop at more
    alerts: str | None = None  # file for them
    alert_budget: AlertBudget | None = None  # None: `top` in `window` rows
    time_column: str | None = None  # tells the day of a row
    on_drift: str = "report"  # or "reset": steps are long again where drift begins
    strict: bool = False  # stop where too many cells of a column lie outside of what was seen

    @property
    def budget(self) -> AlertBudget:
        """The budget of alerts, also where none is given."""
        return self.alert_budget or AlertBudget(self.top, self.window)

    def lasting(self) -> dict[str, Any]:
        """Return what the state depends on, as JSON can write it."""
        if isinstance(self.source, Query):
            source = self.source.lasting
        else:
            source = self.source if self.source == "-" else str(path_of(self.source).resolve())
        lasting: dict[str, Any] = {
            "source": source,
            "target": self.target,
            "learner": self.learner,
            "parameters": self.parameters,
            "positive": self.positive,
            "id_column": self.id_column,
            "drop": sorted(self.drop),
            "category": sorted(self.categories),
            "separator": self.separator,
            "max-categories": self.max_categories,
            "half-life": self.half_life,
            "tails": self.tails,
            "window": self.window,
            "top": self.top,
            "hold": self.hold,
        }
        if self.on_drift != _BEFORE["on-drift"]:
            lasting["on-drift"] = self.on_drift
        if self.alerts is not None:
            lasting |= {
                "alerts": str(Path(self.alerts).resolve()),
                "alert-budget": self.budget.words,
                "time": self.time_column,
            }
        return lasting

    def check_same(self, before: dict[str, Any], folder: Path) -> None:
        """Raise `InputError` when the state in `folder` was made with other options."""
        given = self.lasting()
        for name in dict.fromkeys([*given, *before]):
            # Alerts may be asked for later, but once they are written none is to be left out.
            if name in _OF_ALERTS and "alerts" not in before:
                continue
            was: Any = before[name] if name in before else _BEFORE[name]
            now: Any = given.get(name, _BEFORE.get(name))
            if name == "parameters":
                was = {k: v for k, v in _PARAMETERS_BEFORE.items() if k in now} | was
            if was == now:
                continue
            if name == "parameters":
                other = sorted(key for key in {*was, *now} if was.get(key) != now.get(key))
                was = ", ".join(f"{key}={was.get(key)}" for key in other)
                now = ", ".join(f"{key}={now.get(key)}" for key in other)
            option = _OPTION.get(name, f"--{name}")
            raise InputError(
                f"{folder} goes on with {option} {_shown(was)}, but now it is {_shown(now)}.",
                "Give the same as before, or another folder with --checkpoint to begin anew.",
            )


def _shown(value: Any) -> str:
    if value is None or value == []:
        return "not given"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
