"""Learners by the names that the command line has for them, with their parameters."""

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rareclass.errors import ErrorKind, InputError, name_hint
from rareclass.stream.checkpoint import load_newest, sound_state

if TYPE_CHECKING:
    from rareclass.online.ranker import OnlineRanker

# The paper's C = 1 with no weights is the library's default. In a stream, where rare rows are few
# and the majority never ends, its large steps use up the variance on the few rare rows that are
# buffered, and later ones move nothing: small steps, balanced by class, keep it.
_CBR_IN_STREAMS: dict[str, Any] = {"C": 2.0**-10, "class_weight": "balanced"}


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
_POWER = re.compile(r"(\d+(?:\.\d+)?)\s*(?:\^|\*\*)\s*([+-]?\d+(?:\.\d+)?)")


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
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        if not equals:
            raise InputError(
                f"--param {setting!r} is not of the form NAME=VALUE.",
                f"Write for instance --param {known[0]}={parameters[known[0]]}.",
                ErrorKind.SETTING,
            )
        if name not in known:
            hint = name_hint(name, known, "It has")
            if learner == DEFAULT:
                hint += " Another learner is named by --learner, such as cbr."
            why = f" (--learner {learner} sets it)" if name in fixed else ""
            raise InputError(
                f"--param: {learner} has no parameter {name!r}{why}.", hint, ErrorKind.SETTING
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
        model._check_parameters()
    except ValueError as error:
        raise InputError(f"--param: {error}", kind=ErrorKind.SETTING) from error
    return model


def settled(learner: str, on_drift: str, folder: Path) -> tuple[str, str]:
    """Return the learner, and what it does on drift, with "auto" resolved.

    "auto" is what the folder began with; in a new folder `DEFAULT`, and "reset" for a mixture,
    whose members make up for each other where there was no drift (docs/decisions/0039).

    Raises `InputError` for "reset" with another learner.
    """
    before = load_newest(folder) if "auto" in (learner, on_drift) else None
    if before is not None:
        with sound_state(before.path):
            begun = before.state.options
            learner = str(begun["learner"]) if learner == "auto" else learner
            on_drift = str(begun["on-drift"]) if on_drift == "auto" else on_drift
    learner = DEFAULT if learner == "auto" else learner
    shrink = make_learner(learner, parse_parameters(learner, ()))._steps_shrink
    if on_drift == "reset" and not shrink:
        raise InputError(
            f"--on-drift reset: the steps of {learner} do not shrink, so that there is nothing to "
            "reset.",
            "Leave it out, or take another learner, such as mixture.",
            ErrorKind.COMBINATION,
        )
    if on_drift == "auto":
        on_drift = "reset" if learner == "mixture" else "report"
    return learner, on_drift


def usual_tails(learner: str) -> str:
    """Return the default treatment of numbers far out: a mixture draws them in itself."""
    return "linear" if learner == "mixture" else "asinh"


def _class_of(learner: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    import rareclass.online

    if learner not in LEARNERS:
        hint = name_hint(learner, LEARNERS, "There are")
        raise InputError(f"--learner: there is no learner {learner!r}.", hint, ErrorKind.SETTING)
    name, fixed, defaults = LEARNERS[learner]
    return getattr(rareclass.online, name), fixed, defaults


def _value(name: str, text: str, default: Any, may_be_none: bool) -> Any:
    """Read a value as the type of the parameter's default; None for "none" where it may be."""
    if may_be_none and text.lower() in ("none", ""):
        return None
    if isinstance(default, str):
        return text
    power = _POWER.fullmatch(text)
    try:
        value = float(power[1]) ** float(power[2]) if power else float(text)
        if isinstance(default, float):
            return value
        if value.is_integer() and (power or text.lstrip("+-").isdecimal()):
            return int(value)
        if not isinstance(default, int):
            return value
    except (ValueError, OverflowError):
        pass
    kind = "a whole number" if isinstance(default, int) else "a number"
    raise InputError(f"--param {name}={text}: the value is not {kind}.", kind=ErrorKind.SETTING)
