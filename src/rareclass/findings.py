"""Findings: what a user should know of a result, as data that each reader says in its own words."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).parent) + os.sep


@dataclass(frozen=True)
class Finding:
    """What a user should know of a result before trusting it.

    Attributes
    ----------
    kind : str
        Which finding: a word that code can ask for, such as "useless radius".
    values : mapping
        The numbers and names that it is about.
    remedy : mapping
        Parameters of the estimator that would change it: a value to set, or the way to move it
        ("larger", "smaller"), or None where any other value may do.
    """

    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)
    remedy: Mapping[str, Any] = field(default_factory=dict)


Say = Callable[[Finding], str]
"""Makes a sentence of a finding, in the words of a library or of a command line."""


def warn(
    message: str, category: type[Warning] = UserWarning, finding: Finding | None = None
) -> None:
    """Warn whoever called the package, with the finding behind the words where there is one.

    The line that is shown is the first outside of this package, however deep the finding was made.
    """
    warning = category(message)
    warning.finding = finding  # type: ignore[attr-defined]
    warnings.warn(warning, stacklevel=_levels_to_caller())


def finding_of(warning: Warning | str) -> Finding | None:
    """The finding behind a warning, if there is one."""
    return getattr(warning, "finding", None)


def _levels_to_caller() -> int:
    """How many frames above `warn` the first one outside of this package stands."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


class Status(StrEnum):
    """What ``status_`` says."""

    CONVERGED = "converged"
    ROUNDING = "stopped at rounding error"
    MAX_ITER = "reached max_iter"


@contextmanager
def warnings_as(
    notes: list[str], say: Callable[[Finding], str | None] | None = None
) -> Iterator[None]:
    """Collect warnings as notes, each once, so that none is printed raw.

    `say` puts the findings behind them in words of its own: "" leaves one out, and None the text
    of the warning as it is.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        finding = finding_of(warning.message)
        text = None if say is None or finding is None else say(finding)
        text = str(warning.message) if text is None else text
        if text and text not in notes:
            notes.append(text)
