"""Settings with what their options say, and numeric parameters: read from text, and checked.

True and False are no numbers here: passing them is a mistake. Nothing heavy is imported here, as
the command line reads its options before it works.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from math import inf, isfinite, nan
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

from rareclass.errors import ErrorKind, InputError, setting

_POWER = re.compile(r"(\d+(?:\.\d+)?)\s*(?:\^|\*\*)\s*([+-]?\d+(?:\.\d+)?)")
_RATE = re.compile(r"\s*(\d[\d,_]*)\s*/\s*(hour|day|week|\d[\d,_]*)\s*")


COSTS = (
    "fp=5,fn=100 for a false alert and a missed rare row, review=1 for any alert; a column of "
    "costs by its name, as in fn=amount."
)
# Of numpy's RandomState, which scikit-learn draws from.
LARGEST_SEED = 2**32 - 1


def opt(help: str, default: Any = None, **limits: Any) -> Any:
    """Field of a class of settings: its default, and what the command line shows, checks and reads.

    `limits` are min and max of a number, others that typer knows, and two of our own.
    ``reads(name, text)`` makes the value of what was typed, by default `read_limited` that of a
    number. ``names`` are those of the option, by default the field's as `rareclass.errors.setting`
    has it. A `Path` may be a URL. A tuple may be given many times, and as words with commas between
    them.
    """
    return field(default=default, metadata={"help": help, **limits})


def read_number(text: str) -> float:
    """Read a number, also a power; raises `ValueError` or `OverflowError` for anything else.

    >>> [read_number(text) for text in ("2^-8", "2**-1", "1e-3")]
    [0.00390625, 0.5, 0.001]
    """
    power = _POWER.fullmatch(text)
    return float(power[1]) ** float(power[2]) if power else float(text)


def read_limited(
    name: str, text: str, kind: type[float] = float, low: float = -inf, high: float = inf
) -> float:
    """Read the number of an option, at least `low` and at most `high`; a whole one for an int.

    >>> read_limited("--folds", "5", int, 2), read_limited("--share", "1e-3", high=1)
    (5, 0.001)
    """
    number, percent, _ = text.partition("%")
    try:
        value = kind(number)
    except ValueError:
        value = nan
    if isfinite(value) and low <= value <= high and not percent:
        return value
    words = "a whole number" if kind is int else "a number" if low > -inf else "a finite number"
    if low > -inf:
        words += f" of at least {low:,}" if high == inf else f" from {low:,} to {high:,}"
    remedy = share_remedy(value, low, 1.0 if percent else high, "[]")
    raise ErrorKind.SETTING.error(f"{name} {text} must be {words}.", remedy)


def parse_number(
    name: str,
    text: str | None,
    words: Mapping[str, Any] = MappingProxyType({"auto": None}),
    remedy: str = "Give auto, or one such as 0.01 or 2^-8.",
    is_whole: bool = False,
) -> Any:
    """Return the number above zero that an option stands for, or what a word means; None for None.

    >>> [parse_number("lam", text) for text in ("2^-8", "2**-1", "1e-3", "auto", None)]
    [0.00390625, 0.5, 0.001, None, None]
    >>> parse_number("filter", "Yes", {"yes": True, "no": False})
    True
    """
    word = "" if text is None else text.strip().lower()
    if text is None or word in words:
        return words.get(word)
    try:
        value = read_number(word)
    except (ValueError, OverflowError):
        value = nan
    if not 0 < value < inf or (is_whole and not value.is_integer()):
        raise ErrorKind.SETTING.error(f"{name} {text} is not a number above zero.", remedy)
    return int(value) if is_whole else value


def read_rate(text: str) -> tuple[int, int | str] | None:
    """Read a number per hour, day or week, or per so many rows; None for anything else.

    >>> read_rate("50/day"), read_rate("5/Hour"), read_rate("50/10,000"), read_rate("50")
    ((50, 'day'), (5, 'hour'), (50, 10000), None)
    """
    found = _RATE.fullmatch(text.lower())
    if found is None:
        return None
    number, per = (re.sub("[,_]", "", part) for part in found.groups())
    return int(number), per if per.isalpha() else int(per)


def read_seconds(name: str, text: str) -> float:
    """Return the seconds that an option stands for.

    >>> [read_seconds("--time-budget", text) for text in ("90", "2.5m", "1 h", "30s")]
    [90.0, 150.0, 3600.0, 30.0]
    """
    units = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([smh]?)\s*", text.lower())
    seconds = float(match[1]) * units[match[2]] if match else 0.0
    if not seconds > 0:
        remedy = "Give seconds, such as 60, or minutes or hours, such as 5m or 1h."
        raise ErrorKind.SETTING.error(f"{name} {text} is not a time above zero.", remedy)
    return seconds


def read_bytes(name: str, text: str) -> int:
    """Return the bytes that an option such as ``4GiB`` stands for."""
    from rareclass.machine import parse_bytes

    try:
        return parse_bytes(text)
    except ValueError as error:
        raise ErrorKind.SETTING.error(
            f"{name} {text} is not a size.", "Give one such as 4GiB."
        ) from error


def read_costs(name: str, text: str) -> dict[str, float | str]:
    """Costs by name; what is no number is the name of a column.

    >>> read_costs("--cost", "fp=5, fn=amount")
    {'fp': 5.0, 'fn': 'amount'}
    """
    costs: dict[str, float | str] = {}
    for part in text.split(","):
        key, separator, value = (piece.strip() for piece in part.partition("="))
        if not separator or key not in ("fp", "fn", "review") or not value or key in costs:
            raise ErrorKind.SETTING.error(
                f"{name} {text} cannot be read at {part.strip()!r}.",
                "Give fp=5,fn=100, each once, with review=1 if looking at an alert costs as well.",
            )
        try:
            costs[key] = float(value)
        except ValueError:
            costs[key] = value
    return costs


def is_number(value: Any, low: float = 0.0, high: float = inf, ends: str = "()") -> bool:
    """True for a number from `low` to `high`; `ends` is "()", "[)", "(]" or "[]".

    >>> [is_number(each) for each in (0.5, 0, float("nan"), True)], is_number(0, ends="[)")
    ([True, False, False, False], True)
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    number = float(value)
    above = number >= low if ends[0] == "[" else number > low
    return above and (number <= high if ends[1] == "]" else number < high)


def is_whole(value: Any, least: int = 1) -> bool:
    """True for a whole number of at least `least`.

    >>> is_whole(3), is_whole(0, 0), is_whole(3.0)
    (True, True, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_number(
    name: str,
    value: Any,
    allowed: str = "a number above 0",
    low: float = 0.0,
    high: float = inf,
    ends: str = "()",
    remedy: str = "",
) -> None:
    """Raise `InputError` for a value that is no number in range; `allowed` words the range.

    >>> check_number("max_fpr", 2, "between 0 and 1", high=1.0)
    Traceback (most recent call last):
    rareclass.errors.InputError: max_fpr=2 must be between 0 and 1. Give 0.02 for 2%.
    """
    if not is_number(value, low, high, ends):
        raise _out_of_range(name, value, allowed, share_remedy(value, low, high, ends) or remedy)


def share_remedy(value: Any, low: float, high: float, ends: str) -> str:
    """Return what to give for a percentage in place of a share; nothing for another value."""
    is_percentage = high <= 1.0 and is_number(value, max(100.0 * low, 1.0), 100.0 * high, ends)
    return f"Give {value / 100:g} for {value:g}%." if is_percentage else ""


def _out_of_range(name: str, value: Any, allowed: str, remedy: str = "") -> InputError:
    fault = f"{setting(name, value)} must be {allowed}."
    return ErrorKind.SETTING.error(fault, remedy, value=value)


def check_prevalence(prevalence: Any) -> None:
    """Raise `InputError` for a share of rare rows that is no number between 0 and 1."""
    if prevalence is not None:
        remedy = "It is the share of rare rows where the model is used, such as 0.002."
        check_number("prevalence", prevalence, "between 0 and 1", high=1.0, remedy=remedy)


def check_whole(
    name: str, value: Any, allowed: str = "a whole number above 0", least: int = 1
) -> None:
    """Raise `InputError` for a value that is no whole number of at least `least`."""
    if not is_whole(value, least):
        raise _out_of_range(name, value, allowed)


def read_numbers(
    name: str, values: Any, allowed: str = "a list of numbers above 0, or None", ends: str = "()"
) -> list[float]:
    """Read the numbers to try for a parameter; raise `InputError` for none or one out of range.

    >>> read_numbers("lams", [1, 0.5]), read_numbers("lams", 2)
    ([1.0, 0.5], [2.0])
    """
    import numpy as np

    listed = np.ravel(np.asarray(values, dtype=object)).tolist()
    if not listed or not all(is_number(value, ends=ends) for value in listed):
        raise _out_of_range(name, values, allowed)
    return [float(value) for value in listed]


def check_choice(name: str, value: Any, known: Sequence[Any]) -> None:
    """Raise `InputError` for a value that is not one of those known.

    >>> check_choice("policy", "lifo", ("fifo", "reservoir"))
    Traceback (most recent call last):
    rareclass.errors.InputError: policy='lifo' is not one of 'fifo', 'reservoir'.
    """
    if value not in known:
        choices = ", ".join(map(repr, known))
        raise ErrorKind.SETTING.error(f"{name}={value!r} is not one of {choices}.", value=value)


def drawn_seed(random_state: Any) -> int:
    """A seed drawn from `random_state`; None draws from numpy's global state."""
    from sklearn.utils import check_random_state  # not for scoring

    return int(check_random_state(random_state).randint(2**31))


def seed_of(random_state: Any) -> int:
    """`random_state` as a seed: None is 0, a whole number itself; a `RandomState` draws one.

    >>> seed_of(None), seed_of(7)
    (0, 7)
    """
    if random_state is None:
        return 0
    return int(random_state) if is_whole(random_state, 0) else drawn_seed(random_state)
