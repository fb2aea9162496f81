"""The options of ``rareclass fit`` that say how to learn, and what belongs to which method."""

import re
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING

import typer

from rareclass.errors import InputError

if TYPE_CHECKING:
    from rareclass.workflow.method import Method


class MethodName(StrEnum):
    """Ways to learn a ranking."""

    rankrc = "rankrc"
    mibc = "mibc"


class Covariance(StrEnum):
    """What MIBC keeps of how the majority spreads."""

    full = "full"
    diagonal = "diagonal"
    factor = "factor"
    shrunk = "shrunk"
    sparse_inverse = "sparse-inverse"


METHOD_OPTION = typer.Option(
    help="How to learn: rankrc, a kernel machine on the rare rows; mibc, a linear model of the "
    "rare rows and the mean and covariance of the rest, for tables that are wide or huge."
)
LAM_OPTION = typer.Option(
    help="Regulariser of rankrc: a number such as 0.01 or 2^-8; auto cross-validates.",
    show_default="auto",
)
COST_OPTION = typer.Option(
    help="C of mibc, the price of a rare row on the wrong side: a number such as 0.1 or 10^-2; "
    "inf for none on it; auto cross-validates.",
    show_default="auto",
)
COVARIANCE_OPTION = typer.Option(
    help="Covariance that mibc keeps of the majority.",
    show_default="full; diagonal for svmlight and above 1,000 encoded columns",
)


def method_from(
    method: MethodName, lam: str | None, cost: str | None, covariance: Covariance | None
) -> "Method":
    """Return the method that the options describe.

    Raises
    ------
    InputError
        When an option is no number, or belongs to another method.
    """
    if method is MethodName.mibc:
        _refuse("--lam", lam, "rankrc", "the parameter of mibc is --cost")
        from rareclass.workflow.mibc_method import MIBCMethod

        kept = None if covariance is None else covariance.value.replace("-", "_")
        return MIBCMethod(parse_strength("--cost", cost, may_be_infinite=True), kept)
    _refuse("--cost", cost, "mibc", "the parameter of rankrc is --lam")
    _refuse("--covariance", covariance, "mibc", "rankrc has none")
    from rareclass.workflow.rankrc_method import RankRCMethod

    return RankRCMethod(parse_strength("--lam", lam))


def _refuse(option: str, given: str | None, owner: str, instead: str) -> None:
    if given is not None:
        raise InputError(
            f"{option} {given} belongs to --method {owner}; {instead}.",
            f"Leave {option} out, or give --method {owner}.",
        )


def parse_strength(option: str, text: str | None, may_be_infinite: bool = False) -> float | None:
    """Return the number that an option stands for, None for "auto" and for none given.

    Parameters
    ----------
    option : str
        Its name, for the error.
    text : str or None
        Such as "0.01", "2^-8" or "auto".
    may_be_infinite : bool
        Whether "inf" is one as well.

    Examples
    --------
    >>> [parse_strength("--lam", text) for text in ("2^-8", "2**-1", "1e-3", "auto", None)]
    [0.00390625, 0.5, 0.001, None, None]
    """
    if text is None or text.strip().lower() == "auto":
        return None
    power = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:\^|\*\*)\s*([+-]?\d+(?:\.\d+)?)\s*", text)
    try:
        value = float(power[1]) ** float(power[2]) if power else float(text)
    except (ValueError, OverflowError):
        value = float("nan")
    if not (0 < value < inf or (may_be_infinite and value == inf)):
        example = "0.01 or 2^-8" if not may_be_infinite else "0.1 or 10^-2, or inf"
        raise InputError(
            f"{option} {text} is not a number above zero.", f"Give auto, or one such as {example}."
        )
    return value
