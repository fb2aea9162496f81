"""Learners by the names that the command line has for them, with their parameters."""

import inspect
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rareclass.errors import InputError, nearest_name

if TYPE_CHECKING:
    from rareclass.online.ranker import OnlineRanker

# Name, class in rareclass.online, and what the name fixes.
LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "cbr": ("CBR", {"covariance": "full"}),
    "cbr-diagonal": ("CBR", {"covariance": "diagonal"}),
    "oam": ("OAM", {}),
    "opauc": ("OPAUC", {}),
    "adaoam": ("AdaOAM", {}),
    "uniexp": ("UniExp", {}),
}
# A stream is seen once, and its rare class is --positive.
_NOT_FOR_STREAMS = ("n_epochs", "pos_label")
_POWER = re.compile(r"(\d+(?:\.\d+)?)\s*(?:\^|\*\*)\s*([+-]?\d+(?:\.\d+)?)")


def parse_parameters(learner: str, settings: Sequence[str]) -> dict[str, Any]:
    """Return all parameters of a learner: those given, those its name fixes, and a seed.

    Parameters
    ----------
    learner : str
        One of `LEARNERS`.
    settings : sequence of str
        As ``NAME=VALUE``; a value may be a power such as ``2^-3``.

    Returns
    -------
    dict
        ``random_state`` is 0 unless given: a stream that is started again must draw the same.

    Raises
    ------
    InputError
        For an unknown learner or parameter, with the nearest name, or a value that does not fit.

    Examples
    --------
    >>> parse_parameters("cbr", ["C=2^-1"])["C"]
    0.5
    """
    learner_class, fixed = _class_of(learner)
    signature = inspect.signature(learner_class).parameters
    known = [name for name in signature if name not in (*_NOT_FOR_STREAMS, *fixed)]
    parameters = {name: signature[name].default for name in [*known, *fixed]} | fixed
    if "random_state" in parameters:
        parameters["random_state"] = 0
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        if not equals:
            raise InputError(
                f"--param {setting!r} is not of the form NAME=VALUE.",
                f"Write for instance --param {known[0]}={signature[known[0]].default}.",
            )
        if name not in known:
            hint = nearest_name(name, known).replace("The columns are", "It has")
            why = f" (--learner {learner} sets it)" if name in fixed else ""
            raise InputError(f"--param: {learner} has no parameter {name!r}{why}.", hint)
        parameters[name] = _value(name, text, signature[name].default)
    make_learner(learner, parameters)
    return parameters


def make_learner(learner: str, parameters: dict[str, Any]) -> "OnlineRanker":
    """Return a learner that has seen nothing.

    Raises
    ------
    InputError
        When a parameter is out of range.
    """
    model: OnlineRanker = _class_of(learner)[0](**parameters)
    try:
        model._check_parameters()
    except ValueError as error:
        raise InputError(f"--param: {error}") from error
    return model


def _class_of(learner: str) -> tuple[Any, dict[str, Any]]:
    import rareclass.online

    if learner not in LEARNERS:
        hint = nearest_name(learner, LEARNERS).replace("The columns are", "There are")
        raise InputError(f"--learner: there is no learner {learner!r}.", hint)
    name, fixed = LEARNERS[learner]
    return getattr(rareclass.online, name), fixed


def _value(name: str, text: str, default: Any) -> Any:
    """Read a value as the type of the parameter's default; None for "none" where that is it."""
    if isinstance(default, str):
        return text
    if default is None and text.lower() in ("none", ""):
        return None
    power = _POWER.fullmatch(text)
    for read in (int, float):
        if isinstance(default, int) and read is float:
            break
        try:
            value = float(power[1]) ** float(power[2]) if power else read(text)
        except (ValueError, OverflowError):
            continue
        return float(value) if isinstance(default, float) else value
    kind = "a whole number" if isinstance(default, int) else "a number"
    raise InputError(f"--param {name}={text}: the value is not {kind}.")
