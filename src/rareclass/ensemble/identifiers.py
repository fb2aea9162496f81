"""Identifiers whose values do not carry over to other parts of the table are not learned from."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rareclass.encoding.known_levels import (
    FEWEST_RARE,
    FEWEST_VALUES,
    LEAST_LOSS,
    STANDARD_ERRORS,
)
from rareclass.encoding.log_odds import is_clear_gain, log_loss, rare_share
from rareclass.ensemble.training_rows import FoldedRows, TrainingViews
from rareclass.ensemble.tree_sum import TreeSum
from rareclass.findings import Finding, FindingKind, warn
from rareclass.later import special
from rareclass.metrics import paired_difference
from rareclass.tables.columns import Column, learned_by_value, not_carried_over

if TYPE_CHECKING:
    from rareclass.ensemble.race import TimeBudget

# Of longer tables, log-odds of the other half say well enough what a column is worth: fewer rows
# for a trial would say less.
_MOST_ROWS = 30_000
# The part of the time after which no further column is tried.
_PART_OF_TIME = 0.2
# A column that holds nearby only is kept where chance alone would hardly make it look that useful.
_KEPT_BELOW = 0.3
_REPLICATES = 200
_MOST_TRIED = 8
# Few quick trees: those of the trial with a column are compared with those without it.
_ROUNDS, _RATE, _LEAVES, _TRIALS = 40, 0.15, 15, 4


def without_identifiers(
    views: TrainingViews, absolute_time: bool, budget: "TimeBudget", seed: int
) -> TrainingViews:
    """Return views without the identifiers that do not carry over, and warn of these.

    Tried are categories whose values tell clearly less of rows far away (`holds_nearby_only`).
    Boosted trees learn from the first third of the table and rank the last one, and the other way
    round. A column in turn is left out, unless they are better with it (p below .3 in average
    precision): it was shown already that its values mislead. Cost: that of the views, and four
    small trainings a column. Tables of more than 30,000 rows are left as they are.
    """
    statistics = views.statistics
    suspects = [name for name in statistics.nearby_only_ if name in statistics.category_names_]
    suspects = suspects[:_MOST_TRIED]
    is_short = views.rows.table.n_rows <= _MOST_ROWS
    trial = _Trial.of(views.rows, absolute_time, seed) if suspects and is_short else None
    left_out: list[str] = []
    if trial is not None:
        least = budget.left - _PART_OF_TIME * budget.seconds
        scores = trial.scores_without(left_out)
        for name in suspects:
            if budget.left < least or len(left_out) + 1 == len(views.rows.table.columns):
                break
            others = trial.scores_without([*left_out, name])
            if not trial.is_better(scores, others):
                left_out.append(name)
                scores = others
    if not left_out:
        return views
    warn(
        f"{', '.join(left_out)} is not used: its values predict nearby rows of the table only, and "
        "other rows rank as well without it.",
        finding=Finding(FindingKind.DOES_NOT_CARRY_OVER, {"columns": left_out}),
    )
    # What is left may hold nearby only as well, less clearly.
    return TrainingViews(_without(views.rows, left_out), absolute_time, by_halves=True)


def columns_by_value(views: TrainingViews) -> list[Column]:
    """Warn of categories of many values that tell much one by one; the columns, marked as such.

    Out of fold, a column's log-odds alone lower the log loss by 4 standard errors, and by 5 percent
    of what the rare share of all rows loses. Those that hold nearby only have a warning of their
    own.
    """
    rows, known, encoded = views.rows, views.statistics, views.encoded_table
    weight = np.ones(rows.table.n_rows) if rows.weight is None else rows.weight
    share = rare_share(rows.is_rare, weight)
    of_prior = log_loss(np.full(rows.table.n_rows, share), rows.is_rare)
    found = []
    for k, name in enumerate(known.category_names_):
        if known.known_[k].n_known < FEWEST_VALUES or name in known.nearby_only_:
            continue
        gain = of_prior - log_loss(
            special.expit(encoded.log_odds[:, k] + special.logit(share)), rows.is_rare
        )
        if is_clear_gain(gain, of_prior, weight, STANDARD_ERRORS, LEAST_LOSS):
            found.append(name)
    if found:
        warn(
            f"the values of {', '.join(found)} are learned one by one. If the rows to be scored "
            "have other values, pass the column as groups, so that the estimate is of such rows, "
            "or leave it out.",
            finding=Finding(FindingKind.LEARNED_BY_VALUE, {"columns": found}, {"groups": "fit"}),
        )
    columns = rows.table.remembered
    return [learned_by_value(each) if each.name in found else each for each in columns]


def _without(rows: FoldedRows, names: list[str]) -> FoldedRows:
    """The rows without some columns, which are remembered as dropped."""
    table = rows.table
    remembered = [
        not_carried_over(each) if each.name in names else each for each in table.remembered
    ]
    columns = tuple(each for each in table.columns if each.name not in names)
    return rows._replace(table=replace(table, columns=columns, remembered=remembered))


class _Part:
    """A third of the table, encoded by its own statistics."""

    def __init__(self, rows: FoldedRows, chosen: np.ndarray, absolute_time: bool):
        weight = None if rows.weight is None else rows.weight[chosen]
        self.rows = rows.part(chosen, weight)
        self.is_rare = self.rows.is_rare
        # Log-odds of one half for the other, as where a column holds nearby only.
        views = TrainingViews(self.rows, absolute_time, by_halves=True)
        self.X = views.encoded("trees")
        self.view, self.statistics = views.views["trees"], views.statistics

    def encoded(self, other: "_Part") -> np.ndarray:
        """Return the rows of another part as new rows."""
        return self.view.transform(self.statistics.encode(other.rows.table))

    def features_of(self, names: list[str]) -> np.ndarray:
        """Return which features are of none of these columns."""
        places = [k for k, (name, _) in enumerate(self.statistics.columns_) if name in names]
        view = self.view
        return ~(np.isin(view.source_column_, places) | np.isin(view.second_column_, places))


class _Trial:
    """Boosted trees that learn from one end of the table and rank the other end."""

    def __init__(self, first: _Part, last: _Part, seed: int):
        self.seed = seed
        self.ways = [(first, last, first.encoded(last)), (last, first, last.encoded(first))]
        self.is_rare = np.concatenate([last.is_rare, first.is_rare])
        weights = [each.rows.weight for each in (last, first) if each.rows.weight is not None]
        self.weight = np.concatenate(weights) if weights else None

    @classmethod
    def of(cls, rows: FoldedRows, absolute_time: bool, seed: int) -> "_Trial | None":
        """Return the trial; None where either third has too few rows of a class."""
        n_rows = rows.table.n_rows
        third = 3 * np.arange(n_rows) // n_rows
        ends = [np.flatnonzero(third == end) for end in (0, 2)]
        for end in ends:
            n_rare = int(rows.is_rare[end].sum())
            if min(n_rare, len(end) - n_rare) < FEWEST_RARE // 2:
                return None
        first, last = (_Part(rows, end, absolute_time) for end in ends)
        return cls(first, last, seed)

    def scores_without(self, names: list[str]) -> np.ndarray:
        """Return the share of each part's majority that scores lower, without some columns."""
        from rareclass.ensemble.members.boosting import HistogramBoosting

        booster = HistogramBoosting(_ROUNDS, _RATE, _LEAVES)
        scores = []
        for learned, tested, X in self.ways:
            used = learned.features_of(names)
            rows = learned.X[:, used], learned.is_rare, learned.rows.weight
            trees = [booster.learn(*rows, self.seed + k, 1) for k in range(_TRIALS)]
            found = TreeSum.mean_of(trees).scores(X[:, used], 1)
            majority = np.sort(found[~tested.is_rare])
            scores.append(np.searchsorted(majority, found) / len(majority))
        return np.concatenate(scores)

    def is_better(self, scores: np.ndarray, others: np.ndarray) -> bool:
        """Say whether the first scores rank the rows better, hardly by chance."""
        found = paired_difference(
            self.is_rare,
            scores,
            others,
            "average_precision",
            sample_weight=self.weight,
            n_replicates=_REPLICATES,
            n_jobs=1,
        )
        return bool(found.difference > 0 and found.p_value < _KEPT_BELOW)
