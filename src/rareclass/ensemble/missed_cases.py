"""Majority rows that are probably rare: how many, which ones, and what that makes of a measure.

Members learn from none of the majority rows that score highest out of fold, as many as are rare at
the lower end of the interval. The rows are scored like all others, so that measures stay on
recorded labels.
"""

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rareclass.ensemble.combination import cross_fitted_log_rates
from rareclass.ensemble.race import Race, TimeBudget
from rareclass.ensemble.training_rows import FoldedRows
from rareclass.errors import counted
from rareclass.findings import Finding, FindingKind, finding_of, warn
from rareclass.labels.wrong_labels import WrongLabels, count_missed_cases
from rareclass.metrics.missed_cases import average_precision_with_missed

if TYPE_CHECKING:
    from rareclass.estimators.search import Scoring

# The part of the time for the first look.
_FIRST_LOOK = 0.4


class MissedCases(NamedTuple):
    """Outcome of `RareClassifier(missed_cases=...)`.

    Attributes
    ----------
    estimate : WrongLabels
        Rare rows among the majority rows; a given share has no interval.
    rows : ndarray of int
        Numbers of the majority rows that no member learned from, the highest score first.
    average_precision : float
        Of the rows held out, by their recorded labels.
    corrected : float
        The same where the estimated number of them is rare
        (`rareclass.metrics.missed_case_measures`).
    """

    estimate: WrongLabels
    rows: np.ndarray
    average_precision: float
    corrected: float


def race_with_missed(
    asked: str | float | None,
    rows: FoldedRows,
    within: TimeBudget,
    how: "tuple[Scoring, bool | float, int]",
    race_of: Callable[[FoldedRows, TimeBudget], Race],
) -> tuple[Race, WrongLabels | None]:
    """Learn members; where cases may have been missed, after a look that sets rows aside.

    `how` is what `cross_fitted_log_rates` takes. The race of the look is kept where it sets no row
    aside and had time for every member, and where Ctrl-C ended it.
    """
    if asked is None:
        return race_of(rows, within), None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        race = race_of(rows, TimeBudget(_FIRST_LOOK * within.seconds, within.started))
    scores = -cross_fitted_log_rates(race.candidates, race.held_out, *how) / np.log(10.0)
    of_rows = race.held_out
    is_rare = of_rows.is_rare[of_rows.tested]
    estimate = count_missed_cases(asked, is_rare, scores, of_rows.tested_weight)
    others = set_aside(rows, estimate, race, scores)
    findings = [finding_of(each.message) for each in said]
    is_over = any(each is not None and each.kind is FindingKind.INTERRUPTED for each in findings)
    is_whole = not (race.without_time or race.failed)
    raced = race.views.rows
    is_whole = is_whole and (raced.n_folds, len(raced.fold)) == (rows.n_folds, len(rows.fold))
    if not is_over and (others.set_aside is not None or not is_whole):
        return race_of(others, within), estimate
    for each, finding in zip(said, findings, strict=True):
        warn(str(each.message), each.category, finding)
    return race, estimate


def set_aside(
    rows: FoldedRows, estimate: WrongLabels, race: Race, scores: np.ndarray
) -> FoldedRows:
    """Mark the majority rows of the highest scores: as many as the interval begins with.

    `scores` are those of the rows that the race tested. No row is marked where the interval holds
    zero.
    """
    if not estimate.are_certain:
        return rows
    held_out = race.held_out
    majority = np.flatnonzero(~held_out.is_rare[held_out.tested])
    order = majority[np.argsort(-scores[majority], kind="stable")]
    weight = held_out.tested_weight
    number = np.cumsum(np.ones(len(order)) if weight is None else weight[order])
    n_aside = int(np.searchsorted(number, estimate.low + 0.5, side="right"))
    chosen = held_out.tested[order[: min(n_aside, len(order) - 1)]]
    marked = np.isin(rows.number, race.views.rows.number[chosen])
    return rows._replace(set_aside=marked) if marked.any() else rows


def describe_missed(
    estimate: WrongLabels, rows: FoldedRows, held_out: dict[str, np.ndarray]
) -> MissedCases:
    """Return the outcome, with measures of held-out rows, and warn of it as a finding."""
    is_rare, scores, weight = held_out["rare"], held_out["score"], held_out.get("weight")
    recorded = corrected = float("nan")
    if is_rare.any():
        ratio = estimate.number / estimate.n_labelled
        recorded, corrected = (
            average_precision_with_missed(is_rare, scores, each, weight) for each in (0.0, ratio)
        )
    places = np.zeros(0, dtype=int)
    if rows.set_aside is not None:
        places = np.flatnonzero(np.isin(held_out["row"], rows.number[rows.set_aside]))
        places = places[np.argsort(-scores[places], kind="stable")]
    found = MissedCases(estimate, held_out["row"][places], recorded, corrected)
    warn(
        f"{words_of(found)}.",
        finding=Finding(
            FindingKind.MISSED_CASES,
            {
                "number": estimate.number,
                "low": estimate.low,
                "high": estimate.high,
                "set aside": len(found.rows),
                "average precision": found.average_precision,
                "corrected": found.corrected,
            },
            {"missed_cases": None},
        ),
    )
    return found


def words_of(found: MissedCases) -> str:
    """Return the outcome as a sentence."""
    estimate = found.estimate
    between = "" if estimate.low == estimate.high else f" ({estimate.low:,.0f} to "
    between += f"{estimate.high:,.0f}, 95% interval)" if between else ""
    number = counted(round(estimate.number), "majority row is rare", "majority rows are rare")
    said = f"missed cases: an estimated {number}{between}"
    if not len(found.rows):
        return f"{said}, so all rows were trained on as they are labelled"
    rows = counted(len(found.rows), "row")
    return (
        f"{said}; the {rows} of the highest out-of-fold scores were left out of the training. "
        f"Average precision is {found.average_precision:.3f} by the recorded labels and "
        f"{found.corrected:.3f} corrected for the missed cases"
    )
