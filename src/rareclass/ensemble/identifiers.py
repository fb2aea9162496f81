"""Identifiers whose values do not carry over to other parts of the table are not learned from."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from rareclass.encoding.label_statistics import (
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
from rareclass.metrics import average_precision
from rareclass.tables.columns import Column

if TYPE_CHECKING:
    from rareclass.encoding.views import DenseView

# Of longer tables, log-odds of the other half say well enough what a column is worth: fewer rows
# for a trial would say less.
_MOST_ROWS = 30_000
_MOST_TRIED = 8
# Few quick trees: those of the trial with a column are compared with those without it.
_ROUNDS, _RATE, _LEAVES, _TRIALS = 40, 0.15, 15, 4


def without_identifiers(views: TrainingViews, absolute_time: bool, seed: int) -> TrainingViews:
    """Return views without the identifiers that mislead on rows farther away, and warn of these.

    Each fold decides by the rows that it learns from, where their order in time is known. Tried are
    categories whose values tell clearly less of rows far away (`holds_nearby_only`). Boosted trees
    learn from the first third of the rows and rank the last one, and the other way round. A column
    in turn is left out where their average precision is higher without it. Cost: that of the views,
    and four small trainings a fold and column. Tables of more than 30,000 rows are left as they
    are.
    """
    rows, statistics = views.rows, views.statistics
    is_known = rows.moment is not None and rows.table.n_rows <= _MOST_ROWS
    if not statistics.nearby_only_ or not is_known:
        return views
    found = []
    for number in range(len(views.sets)):
        suspects = statistics.labels_[views.set_of(number)].nearby_only_[:_MOST_TRIED]
        found.append(_left_out(views.in_time(number), suspects, absolute_time, seed))
    left_out = [tuple(each.left_out) for each in found]
    if not any(left_out):
        return views
    times = Counter(name for names in left_out for name in names)
    told = [name for name, n in times.items() if 2 * n > len(left_out)]
    everywhere = [name for name in told if times[name] == len(left_out)]
    with_it, without = np.mean([each.precision for each in found if each.left_out], axis=0)
    why = (
        f"other times rank better without it (average precision {without:.3f}, with it "
        f"{with_it:.3f})"
    )
    if told:
        few = "" if told == everywhere else ", or in few folds only"
        warn(
            f"{', '.join(told)} is not used{few}: {why}.",
            finding=Finding(
                FindingKind.DOES_NOT_CARRY_OVER,
                {"columns": told, "average_precision": without, "with_them": with_it},
            ),
        )
    if everywhere:
        rows = _without(rows, everywhere, why)
    return TrainingViews(rows, absolute_time, left_out)


class _LeftOut(NamedTuple):
    """Columns left out, and the average precision of the trial with and without them."""

    left_out: list[str]
    precision: tuple[float, float] = (0.0, 0.0)


def _left_out(
    rows: FoldedRows, suspects: Sequence[str], absolute_time: bool, seed: int
) -> _LeftOut:
    """Return the suspects that rows far away rank better without."""
    trial = _Trial.of(rows, absolute_time, seed) if suspects else None
    left_out: list[str] = []
    if trial is None:
        return _LeftOut(left_out)
    with_all = scores = trial.scores_without(left_out)
    for name in suspects:
        if len(left_out) + 1 == len(rows.table.columns):
            break
        others = trial.scores_without([*left_out, name])
        if trial.precision(others) > trial.precision(scores):
            left_out.append(name)
            scores = others
    return _LeftOut(left_out, (trial.precision(with_all), trial.precision(scores)))


def columns_by_value(views: TrainingViews) -> list[Column]:
    """Warn of categories of many values that tell much one by one; the columns, marked as such.

    On held-out rows, a column's log-odds alone lower the log loss by 4 standard errors, and by 5
    percent of what the rare share of all rows loses. Those that hold nearby only have a warning of
    their own. Numbers are marked wherever a fold learns from their single values.
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
    told = {*found, *known.category_names_[known.n_words_ :]}  # the codes, which are numbers, too
    how = "; learned value by value"
    return [
        replace(c, treatment=c.treatment + how, is_by_value=True) if c.name in told else c
        for c in rows.table.remembered
    ]


def _without(rows: FoldedRows, names: list[str], why: str) -> FoldedRows:
    """The rows without some columns, which are remembered as dropped."""
    table = rows.table
    told: Any = {"kind": "id-like", "treatment": f"dropped: {why}", "is_by_value": True}
    remembered = [replace(c, **told) if c.name in names else c for c in table.remembered]
    columns = tuple(each for each in table.columns if each.name not in names)
    return rows._replace(table=replace(table, columns=columns, remembered=remembered))


class _Way(NamedTuple):
    """Rows of one end of the time to learn from, and those of the other end, both encoded."""

    view: "DenseView"
    names: list[str]
    learned: FoldedRows
    X: np.ndarray
    tested: FoldedRows
    X_tested: np.ndarray

    @classmethod
    def of(cls, learned: FoldedRows, tested: FoldedRows, absolute_time: bool) -> "_Way":
        """Encode by what the rows to learn from say, of one half for the other."""
        from rareclass.encoding.table_statistics import TableStatistics
        from rareclass.encoding.views import DenseView

        statistics, view = TableStatistics(absolute_time), DenseView("raw")
        labels = learned.is_rare, learned.weight, halves(learned.table.n_rows)
        encoded = statistics.fit_encode(learned.table, *labels)
        X = view.fit(encoded, learned.weight, statistics).transform(encoded)
        names = [name for name, _ in statistics.columns_]
        new = view.transform(statistics.encode(tested.table))
        return cls(view, names, learned, X, tested, new)

    def features_without(self, names: list[str]) -> np.ndarray:
        """Return which features are of none of these columns."""
        places = [k for k, name in enumerate(self.names) if name in names]
        of_columns = self.view.source_column_, self.view.second_column_
        return np.invert(np.isin(of_columns, places).any(axis=0))


class _Trial:
    """Boosted trees that learn from one end of the time and rank the other end."""

    def __init__(self, first: FoldedRows, last: FoldedRows, absolute_time: bool, seed: int):
        self.seed = seed
        self.ways = [_Way.of(*each, absolute_time) for each in ((first, last), (last, first))]
        self.is_rare = np.concatenate([way.tested.is_rare for way in self.ways])
        weights = [each.weight for each in (last, first) if each.weight is not None]
        self.weight = np.concatenate(weights) if weights else None

    @classmethod
    def of(cls, rows: FoldedRows, absolute_time: bool, seed: int) -> "_Trial | None":
        """Return the trial of rows in order; None where either third has too few of a class."""
        thirds = np.array_split(np.arange(rows.table.n_rows), 3)
        first, last = rows.take(thirds[0]), rows.take(thirds[2])
        fewest = min(np.bincount(each.is_rare, minlength=2).min() for each in (first, last))
        return None if fewest < FEWEST_RARE // 2 else cls(first, last, absolute_time, seed)

    def scores_without(self, names: list[str]) -> np.ndarray:
        """Return the share of each end's majority that scores lower, without some columns."""
        from rareclass.ensemble.members.trees import HistogramBoosting

        booster = HistogramBoosting(_ROUNDS, _RATE, _LEAVES)
        scores = []
        for way in self.ways:
            used = way.features_without(names)
            rows = way.X[:, used], way.learned.is_rare, way.learned.weight
            trees = [booster.learn(*rows, self.seed + k, 1) for k in range(_TRIALS)]
            found = TreeSum.mean_of(trees).scores(way.X_tested[:, used], 1)
            majority = np.sort(found[~way.tested.is_rare])
            scores.append(np.searchsorted(majority, found) / len(majority))
        return np.concatenate(scores)

    def precision(self, scores: np.ndarray) -> float:
        """Return the average precision of scores."""
        return average_precision(self.is_rare, scores, self.weight)
