"""The options of a stream, its learner among them, and which of them must stay the same."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from rareclass.errors import ErrorKind, called_from, counted, name_hint, setting, unknown_name
from rareclass.files import check_not_inside, check_suffix
from rareclass.parameters import check_number, opt, read_number, read_rate
from rareclass.remote import path_of
from rareclass.tables import ColumnSettings

if TYPE_CHECKING:
    from rareclass.online.ranker import OnlineRanker

# Options that may be others when a stream continues.
_PASSING = ("every", "report_every", "follow", "max_rejected", "strict")
_OF_ALERTS = ("alert_file", "alerts", "time_column")
# The paper's C = 1 with no weights is the library's default. In a stream, where rare rows are few
# and the majority never ends, its large steps use up the variance on the few rare rows that are
# buffered, and later ones move nothing: small steps, balanced by class, keep it. Steps so small are
# alike, and the printed ones take less time (docs/decisions/0062).
_CBR_IN_STREAMS: dict[str, Any] = {
    "C": 2.0**-10,
    "class_weight": "balanced",
    "diagonal_step": "printed",
}


class NamedLearner(NamedTuple):
    """Class and parameters behind a name on the command line."""

    class_name: str  # in `rareclass.online`
    fixed: dict[str, Any]  # parameters that the name sets
    defaults: dict[str, Any]  # those that begin elsewhere than in the class


LEARNERS: dict[str, NamedLearner] = {
    "cbr": NamedLearner("CBR", {"covariance": "full"}, _CBR_IN_STREAMS),
    "cbr-diagonal": NamedLearner("CBR", {"covariance": "diagonal"}, _CBR_IN_STREAMS),
    "oam": NamedLearner("OAM", {}, {}),
    "opauc": NamedLearner("OPAUC", {}, {}),
    "adaoam": NamedLearner("AdaOAM", {}, {}),
    "uniexp": NamedLearner("UniExp", {}, {}),
    "logistic": NamedLearner("OnlineLogistic", {}, {}),
    "mixture": NamedLearner("OnlineMixture", {"members": None}, {}),
}
# What a stream begins with: nobody can know which of them suits it.
DEFAULT = "mixture"
# A stream is seen once, and its rare class is --positive.
_NOT_FOR_STREAMS = ("n_epochs", "pos_label")


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
        """The budget as the command line takes it."""
        return f"{self.number}/{'day' if self.rows is None else self.rows}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``50/day`` or ``50/10000``.

        Raises `InputError` for anything else, and for a budget that lets no row or every row
        through.
        """
        found = read_rate(text)
        file = setting("alert_file")
        remedy = f"Give so many a day, 50/day, or in rows, 50/10000; their file is {file}."
        if found is None or found[1] in ("hour", "week"):
            raise ErrorKind.SETTING.error(f"{setting('alerts', text)} cannot be read.", remedy)
        budget = cls(found[0], None if isinstance(found[1], str) else found[1])
        if budget.number < 1:
            raise ErrorKind.SETTING.error(
                f"{setting('alerts', text)} lets no alert through.", remedy
            )
        if budget.rows is not None and budget.number >= budget.rows:
            raise ErrorKind.SETTING.error(
                f"{setting('alerts', text)} does not constrain: it lets every row through.",
                "Give fewer alerts than rows.",
            )
        return budget


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """Settings of a stream that its command takes as they are."""

    positive: tuple[str, ...] = opt(
        "Label of the rare class. Many times: any of them is rare. By default 1, true or yes.", ()
    )
    id_column: str | None = opt("Column with row identifiers, by which late labels are matched.")
    hold: int = opt(
        "Most rows to keep while they wait for a label, and labels for a row.", 100_000, min=1
    )
    max_categories: int = opt(
        "Most values of a category column that get a feature each.", 32, min=1
    )
    half_life: float = opt(
        "Rows after which older rows count half in means and standard deviations.", 100_000
    )
    every: int = opt("Save a checkpoint every so many rows.", 10_000, min=1)
    report_every: int = opt("Print a line every so many rows.", 10_000, min=1)
    window: int = opt("Number of latest rows that the measures are of.", 10_000, min=2)
    top: int = opt("The k of precision at k.", 100, min=1)
    follow: bool = opt("At the end of the file wait for more rows, until Ctrl-C.", False)
    max_rejected: int | None = opt("Stop if more rows than this cannot be read.", min=0)
    time_column: str | None = opt("Column with the time of a row.")
    strict: bool = opt("Stop if a tenth of a column lies outside the range seen so far.", False)

    def check(self) -> None:
        """Raise `InputError` for numbers of rows that contradict each other."""
        if self.top > self.window:
            raise ErrorKind.COMBINATION.error(
                f"{setting('top', self.top)}: the window has {counted(self.window, 'row')} only.",
                f"Raise {setting('window')} or lower {setting('top')}.",
            )
        check_number("half_life", self.half_life, "a number of rows above 0, such as 10000")


@dataclass(frozen=True)
class StreamOptions(StreamSettings, ColumnSettings):
    """All options of a stream."""

    source: str  # a file, a folder that grows, or - for standard input
    target: str  # its label is still to come where the cell is empty
    learner: str = "cbr"  # one of `LEARNERS`
    parameters: dict[str, Any] = field(default_factory=dict)
    separator: str | None = None  # this and the next: `TextSettings` of the source
    encoding: str | None = None
    tails: str = "asinh"  # of `OnlineEncoder`
    alert_file: str | None = None
    alerts: AlertBudget | None = None  # at most; None: `top` in `window` rows
    on_drift: str = "report"  # or "reset": steps are long again where drift begins

    @property
    def budget(self) -> AlertBudget:
        """The budget of alerts, also where none is given."""
        return self.alerts or AlertBudget(self.top, self.window)

    def lasting(self) -> dict[str, Any]:
        """Return the options that the state depends on, as JSON can write them."""
        lasting = {name: value for name, value in vars(self).items() if name not in _PASSING}
        if self.source != "-":
            lasting["source"] = str(path_of(self.source).resolve())
        for name in ("positive", "drop", "keep", "categories"):
            lasting[name] = sorted(lasting[name])
        if self.alert_file is not None:
            lasting["alert_file"] = str(Path(self.alert_file).resolve())
            lasting["alerts"] = self.budget.words
        return lasting

    def check_same(self, before: dict[str, Any], folder: Path) -> None:
        """Raise `InputError` when the state in `folder` was made with other options."""
        for name, now in self.lasting().items():
            was: Any = before[name]
            # Alerts may be asked for later, but once they are written none is to be left out.
            if was == now or (name in _OF_ALERTS and before["alert_file"] is None):
                continue
            if name == "parameters":  # those that differ
                own: dict[str, Any] = self.parameters
                other = sorted(key for key in {*was, *own} if was.get(key) != own.get(key))
                was, now = ([f"{k}={of.get(k)}" for k in other] for of in (was, own))
            raise ErrorKind.COMBINATION.error(
                f"{folder} was begun with {_given(name, was)}, but now it is {_given(name, now)}.",
                f"Give the same as before, or another folder with {setting('folder')} to "
                "start again.",
            )


def check_alert_options(
    source: str, path: Path | None, budget: str | None, time_column: str | None
) -> AlertBudget | None:
    """Return the budget that was given, None by default.

    Raises `InputError` where the options of alerts contradict each other.
    """
    if path is None:
        for option, given in (("alerts", budget), ("time_column", time_column)):
            if given is not None:
                raise ErrorKind.COMBINATION.error(
                    f"{setting(option)} needs {setting('alert_file')}, which is not given.",
                    f"Name a file for the alerts with {setting('alert_file')}.",
                )
        return None
    check_suffix(path, setting("alert_file"), ".csv", ".jsonl", ".ndjson")
    check_not_inside(path, setting("alert_file"), path_of(source))
    parsed = None if budget is None else AlertBudget.parse(budget)
    if parsed is not None and parsed.rows is None and time_column is None:
        raise ErrorKind.COMBINATION.error(
            f"{setting('alerts', budget)} needs the day of each row.",
            f"Name the column of dates with {setting('time_column')}, or give a budget in rows, "
            "such as 50/10000.",
        )
    return parsed


def _given(name: str, value: Any) -> str:
    """Return a lasting option with its value as the caller gives it."""
    if name == "source":
        return f"SOURCE {value}"
    if value is None or value == []:
        return f"no {setting(name)}"
    if name == "parameters":
        return " ".join(setting(name, each) for each in value)
    return setting(name, *value) if isinstance(value, list) else setting(name, value)


def parse_parameters(learner: str, settings: Sequence[str]) -> dict[str, Any]:
    """Return all parameters of a learner: those given, those its name fixes, and a seed.

    Given as ``NAME=VALUE``, where a value may be a power such as ``2^-3``. ``random_state`` is 0
    unless given: a stream that is started again must draw the same. CBR begins with ``C=2^-10``
    and ``class_weight="balanced"``, unlike the class itself.

    Raises `InputError` for an unknown learner or parameter, with the nearest name, or a value that
    does not fit.

    >>> parse_parameters("cbr", ["C=2^-1"])["C"]
    0.5
    """
    learner_class, fixed, defaults = _class_of(learner)
    signature = inspect.signature(learner_class).parameters
    known = [name for name in signature if name not in (*_NOT_FOR_STREAMS, *fixed)]
    parameters = {name: signature[name].default for name in [*known, *fixed]}
    parameters |= defaults | fixed
    if "random_state" in parameters:
        parameters["random_state"] = 0
    for given in settings:
        name, equals, text = (part.strip() for part in given.partition("="))
        if not equals:
            raise ErrorKind.SETTING.error(
                f"{setting('parameters', given)} is not of the form NAME=VALUE.",
                "Write for instance "
                f"{setting('parameters', f'{known[0]}={parameters[known[0]]}')}.",
            )
        if name not in known:
            hint = name_hint(name, known, "It has")
            if learner == DEFAULT:
                hint += f" Another learner is named by {setting('learner')}, such as cbr."
            why = f" ({setting('learner', learner)} sets it)" if name in fixed else ""
            raise ErrorKind.SETTING.error(
                f"{setting('parameters')}: {learner} has no parameter {name!r}{why}.", hint
            )
        may_be_none = signature[name].default is None
        default = defaults.get(name, signature[name].default)
        parameters[name] = _value(name, text, default, may_be_none)
    make_learner(learner, parameters)
    return parameters


def make_learner(learner: str, parameters: dict[str, Any]) -> "OnlineRanker":
    """Return a learner that has seen nothing.

    Raises `InputError` when a parameter is out of range.
    """
    model: OnlineRanker = _class_of(learner)[0](**parameters)
    try:
        with called_from("Python"):
            model._check_parameters()
    except ValueError as error:
        raise ErrorKind.SETTING.error(f"{setting('parameters')}: {error}") from error
    return model


def usual_tails(learner: str) -> str:
    """Return the default treatment of numbers far out: a mixture draws them in itself."""
    return "linear" if learner == "mixture" else "asinh"


def _class_of(learner: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    import rareclass.online

    if learner not in LEARNERS:
        raise unknown_name(
            f"{setting('learner')}: there is no learner {learner!r}.", learner, LEARNERS
        )
    name, fixed, defaults = LEARNERS[learner]
    return getattr(rareclass.online, name), fixed, defaults


def _value(name: str, text: str, default: Any, may_be_none: bool) -> Any:
    """Read a value as the type of the parameter's default; None for "none" where it may be."""
    if may_be_none and text.lower() in ("none", ""):
        return None
    if isinstance(default, str):
        return text
    is_whole = "^" in text or "**" in text or text.lstrip("+-").isdecimal()
    try:
        value = read_number(text)
        if isinstance(default, float):
            return value
        if value.is_integer() and is_whole:
            return int(value)
        if not isinstance(default, int):
            return value
    except (ValueError, OverflowError):
        pass
    kind = "a whole number" if isinstance(default, int) else "a number"
    raise ErrorKind.SETTING.error(
        f"{setting('parameters', f'{name}={text}')}: the value is not {kind}."
    )
