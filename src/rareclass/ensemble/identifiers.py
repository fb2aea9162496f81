"""Identifiers whose values do not carry over to other parts of the table are not learned from."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from rareclass.encoding.known_levels import (
    FEWEST_RARE,
    FEWEST_VALUES,
    LEAST_LOSS,
    STANDARD_ERRORS,
    halves,
)
from rareclass.encoding.log_odds import is_clear_gain, log_loss, rare_share
from rareclass.ensemble.training_rows import FoldedRows, TrainingViews
from rareclass.ensemble.tree_sum import TreeSum
from rareclass.findings import Finding, FindingKind, warn
from rareclass.metrics import paired_difference
from rareclass.tables.columns import Column, learned_by_value, not_carried_over

# Of longer tables, log-odds of the other half say well enough what a column is worth: fewer rows
# for a trial would say less.
_MOST_ROWS = 30_000
# A column that holds nearby only is kept where chance alone would hardly make it look that useful.
_KEPT_BELOW = 0.3
_MOST_TRIED = 8
# Few quick trees: those of the trial with a column are compared with those without it.
_ROUNDS, _RATE, _LEAVES, _TRIALS = 40, 0.15, 15, 4


def without_identifiers(views: TrainingViews, absolute_time: bool, seed: int) -> TrainingViews:
    """Return views without the identifiers that do not carry over, and warn of these.

    Each fold decides by the rows that it learns from. Tried are categories whose values tell
    clearly less of rows far away (`holds_nearby_only`). Boosted trees learn from the first third of
    the rows and rank the last one, and the other way round. A column in turn is left out, unless
    they are better with it (p below .3 in average precision): it was shown already that its values
    mislead. Cost: that of the views, and four small trainings a fold and column. Tables of more
    than 30,000 rows are left as they are.
    """
    rows, statistics = views.rows, views.statistics
    if not statistics.nearby_only_ or rows.table.n_rows > _MOST_ROWS:
        return views
    left_out = []
    for number, learned in enumerate(views.sets):
        suspects = statistics.labels_[views.set_of(number)].nearby_only_[:_MOST_TRIED]
        weight = None if rows.weight is None else rows.weight[learned.rows]
        part = rows.part(learned.rows, weight)
        left_out.append(_left_out(part, suspects, absolute_time, seed))
    if not any(left_out):
        return views
    times = Counter(name for names in left_out for name in names)
    told = [name for name, n in times.items() if 2 * n > len(left_out)]
    everywhere = [name for name in told if times[name] == len(left_out)]
    if told:
        most = "" if told == everywhere else ", or in few folds only"
        warn(
            f"{', '.join(told)} is not used{most}: its values predict nearby rows of the table "
            "only, and other rows rank as well without it.",
            finding=Finding(FindingKind.DOES_NOT_CARRY_OVER, {"columns": told}),
        )
    if everywhere:
        rows = _without(rows, everywhere)
    return TrainingViews(rows, absolute_time, left_out)


def _left_out(
    rows: FoldedRows,
    suspects: Sequence[str],
    absolute_time: bool,
    seed: int,
) -> tuple[str, ...]:
    """Return the suspects that rows far away rank as well without."""
    trial = _Trial.of(rows, absolute_time, seed) if suspects else None
    if trial is None:
        return ()
    left_out: list[str] = []
    scores = trial.scores_without(left_out)
    for name in suspects:
        if len(left_out) + 1 == len(rows.table.columns):
            break
        others = trial.scores_without([*left_out, name])
        if not trial.is_better(scores, others):
            left_out.append(name)
            scores = others
    return tuple(left_out)


def columns_by_value(views: TrainingViews) -> list[Column]:
    """Warn of categories of many values that tell much one by one; the columns, marked as such.

    On held-out rows, a column's log-odds alone lower the log loss by 4 standard errors, and by 5
    percent of what the rare share of all rows loses. Those that hold nearby only have a warning of
    their own.
    """
    rows, known = views.rows, views.statistics
    weight = np.ones(rows.table.n_rows) if rows.weight is None else rows.weight
    share = rare_share(rows.is_rare, weight)
    of_prior = log_loss(np.full(rows.table.n_rows, share), rows.is_rare)
    found = []
    for k, name in enumerate(known.category_names_):
        if known.known_[k].n_known < FEWEST_VALUES or name in known.nearby_only_:
            continue
        gain = of_prior - log_loss(
            special.expit(views.held_out_log_odds(k) + special.logit(share)), rows.is_rare
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
        from rareclass.encoding.table_statistics import TableStatistics
        from rareclass.encoding.views import DenseView

        # Log-odds of one half for the other, as where a column holds nearby only.
        self.statistics = TableStatistics(absolute_time)
        fold = halves(self.rows.table.n_rows)
        encoded = self.statistics.fit_encode(self.rows.table, self.is_rare, weight, fold)
        self.view = DenseView("raw")
        self.X = self.view.fit_transform(encoded, self.is_rare, weight, fold, self.statistics)

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
        from rareclass.ensemble.members.trees import HistogramBoosting

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
        )
        return bool(found.difference > 0 and found.p_value < _KEPT_BELOW)
