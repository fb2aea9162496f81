"""Findings: facts that a user should know of a result, as data that each reader words itself."""

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


class TableWarning(UserWarning):
    """Something in a table was read otherwise than one may expect."""


class FindingKind(StrEnum):
    """Kinds of findings, words that code can ask for."""

    # tables
    UNKNOWN_LABELS = "unknown labels"
    TRAINING_ROWS = "rows of training"  # where new ones are wanted
    NO_GROUPS = "no groups"  # where training had some
    RARE_BY_ROWS = "rare by rows, not by weight"
    FEW_OF_CLASS = "few rows of a rare class"
    LABEL_SPELLINGS = "label in several spellings"
    LABELS_LOOK_ALIKE = "labels that look alike"
    COLUMNS_RENAMED = "columns renamed"
    ENCODING = "not UTF-8"  # read as cp1252
    COMMENT = "header like a comment"
    MOSTLY_NUMBERS = "mostly numbers"  # a column of text with many numbers
    CODES = "codes"  # a column of numbers that look like codes
    NUMBER_FORMAT = "number format"  # numbers written with separators or signs
    LONG_NUMBERS = "too long for a number"
    TWO_DATE_FORMATS = "dates of two formats"  # day or month first
    UNREAD_DATES = "dates read as words"
    NO_ZONE = "times without a zone"  # where training had one
    ID_LIKE = "id-like column"
    UNUSABLE = "column that cannot be used"
    # thresholds and calibration
    CONSTRAINT_NOT_MET = "constraint not met"
    NO_ALERTS = "no held-out alerts"
    APPROXIMATE = "guarantee is approximate"
    NOTHING_TO_REVIEW = "nothing to review"
    WEIGHTS_IN_MAP = "weights in the map alone"
    CONSTANT_SCORES = "constant scores"
    # kernels, MIBC
    ONE_COLUMN_DECIDES = "one column decides"
    RIDGE_ADDED = "ridge added"
    # ensemble
    LABEL_LEAK = "gives the label away"
    HOLDS_NEARBY = "holds nearby only"
    DOES_NOT_CARRY_OVER = "does not carry over"
    LEARNED_BY_VALUE = "learned value by value"
    INTERRUPTED = "interrupted"
    NO_IMPORTANCES = "no importances"
    MEMBER_FAILED = "member failed"
    TIME_LIMIT = "time limit"
    # balls of RACH
    USELESS_RADIUS = "useless radius"
    NO_MAJORITY = "no majority"
    ALL_FILTERED = "all filtered"
    BEYOND_SHARE = "beyond the share"
    SHARE_NOT_REACHED = "share not reached"
    ROWS_LEFT_ASIDE = "rows left aside"
    ALL_INSIDE = "all inside"
    NONE_INSIDE = "none inside"
    STOPPED_SHORT = "stopped short"
    SINGLE_ROW = "single row"
    # hunts
    NONE_HELD_OUT = "none held out"
    # reviews
    LINE_CUT_SHORT = "line cut short"


@dataclass(frozen=True)
class Finding:
    """Fact that a user should know of a result before trusting it.

    Attributes
    ----------
    kind : FindingKind
        Kind of finding, equal to a word such as "useless radius".
    values : mapping
        Numbers and names that it is about.
    remedy : mapping
        Parameters of the estimator that would change it: a value to set, or the direction
        ("larger", "smaller"), or None where any other value may do.
    """

    kind: FindingKind
    values: Mapping[str, Any] = field(default_factory=dict)
    remedy: Mapping[str, Any] = field(default_factory=dict)


def warn(
    message: str, category: type[Warning] = UserWarning, finding: Finding | None = None
) -> None:
    """Warn the caller of the package, with the finding behind the words where there is one.

    The reported line is the first outside of this package, at any depth of calls.
    """
    warning = category(message)
    warning.finding = finding  # type: ignore[attr-defined]
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def finding_of(warning: Warning | str) -> Finding | None:
    """Finding behind a warning, if there is one."""
    return None if isinstance(warning, str) else vars(warning).get("finding")


class Status(StrEnum):
    """Values of ``status_``."""

    CONVERGED = "converged"
    ROUNDING = "stopped at rounding error"
    MAX_ITER = "reached max_iter"


@contextmanager
def warnings_as(notes: list[Any], say: Callable[[Finding], Any] | None = None) -> Iterator[None]:
    """Collect warnings as notes, each once, so that none is printed raw.

    `say` makes notes of the findings behind them: "" leaves one out, None keeps the warning's text.
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
