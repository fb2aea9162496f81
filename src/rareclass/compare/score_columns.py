"""Score columns of the same rows: each with intervals, and the best beside the others."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.compare.comparison import BesideTheBest, Comparison, Standing, Standings
from rareclass.compare.measures import DEFAULT, Measure, chosen_measures
from rareclass.compare.told_apart import adjusted_for_the_choice
from rareclass.errors import InputError
from rareclass.folds.score_scale import on_scale_of_folds
from rareclass.metrics import Interval
from rareclass.metrics.interval import normal_quantile, p_value_of_intervals
from rareclass.metrics.paired_evidence import EVIDENCE, Draws, PairEvidence
from rareclass.metrics.scored_classes import (
    amount_column,
    label_column,
    same_length,
    score_column,
    split_pair,
)
from rareclass.parameters import check_number, check_whole


class _Judged(NamedTuple):
    """The rows that everything is measured on, and how."""

    y: NDArray[np.bool_]
    weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None
    draws: Draws
    level: float
    stretch: float  # of differences

    def evidence(
        self, measure: Measure, a: NDArray[np.float64], b: NDArray[np.float64]
    ) -> PairEvidence:
        """What two columns say of a measure."""
        pair = split_pair(self.y, a, b, self.weight, self.groups)
        return EVIDENCE[measure.name](pair, self.draws, **measure.options)

    def difference(self, evidence: PairEvidence, level: float) -> Interval:
        """Of the first column less the second, with its interval."""
        value, low, high = evidence.interval(level)
        return Interval(
            value, value - self.stretch * (value - low), value + self.stretch * (high - value)
        )


def compare_scores(
    y: ArrayLike,
    scores: Mapping[str, ArrayLike],
    measures: Sequence[str] = DEFAULT,
    *,
    k: float | Sequence[float | None] | None = None,
    max_fpr: float = 0.1,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    folds: ArrayLike | None = None,
    n_train: float | None = None,
    n_replicates: int = 2000,
    level: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool | str = False,
) -> Comparison:
    """Compare score columns of the same rows: which is best, and which may be as good.

    Each has its values with intervals. The one of the highest value is compared with each other by
    the paired test of `rareclass.metrics.paired_difference`, and the p-values are corrected for its
    being the best of these very rows (Holm's method over all pairs, in Shaffer's form). Rankings
    that the test does not tell apart from the best may well be as good. P-values of one measure are
    not corrected for those of another.

    Parameters
    ----------
    y : array-like of shape (n,)
        True or 1 where the row is rare.
    scores : mapping of names to array-likes of shape (n,)
        Of any origin and on any scale: only their order counts. Higher means rarer.
    measures : sequence of str
        Of "roc_auc", "average_precision", "precision_at_k", "recall_at_k", "lift_at_k" and
        "partial_auc".
    k : float or sequence of float or None, optional
        Rows at the top of the list, for measures at k; None is as many as are rare.
    max_fpr : float, default 0.1
        Of the partial AUC.
    sample_weight : array-like of shape (n,), optional
        Copies that each row stands for; 0 leaves the row out.
    groups : array-like of shape (n,), optional
        Rows of equal group move together, such as those of one customer. Intervals and tests are
        then of groups.
    folds : array-like of shape (n,), optional
        For out-of-fold scores, the fold of each row: its scores are of a model of its own, on a
        scale of its own. They are put on the scale of the false-positive rates within the fold
        first.
    n_train : float, optional
        With `folds`, how many rows the model of each learned from (the mean of them). Tests are
        then of the methods: they allow for what other training rows would have changed. Without,
        they are of these very models, and tell equal methods apart too often:
        docs/decisions/0032 has how often. Intervals of the values are of the models in any case.
    n_replicates, level, random_state, n_jobs, progress
        As in `paired_difference`.

    Returns
    -------
    Comparison
        Frozen plain data with ``to_dict()`` and ``says()``. The time is that of a paired test for
        every measure and column but one.

    Raises
    ------
    ValueError
        As `paired_difference`; `InputError`, which is one, where a column is all tied or `scores`
        is empty, naming the column.

    Examples
    --------
    >>> y = [0] * 12 + [1] * 4
    >>> good, bad = list(range(16)), [3, 1, 2] * 5 + [1]
    >>> found = compare_scores(y, {"bad": bad, "good": good}, ["roc_auc"], n_replicates=50)
    >>> print(*found.says(), sep="\\n")
    16 rows, 4 of them rare
    AUC: good has the highest, 1.000; statistically indistinguishable: bad.
    """
    normal_quantile(level)
    label = label_column(y)
    columns = {name: _column(name, column, len(label)) for name, column in scores.items()}
    if not columns:
        raise InputError("scores= holds no column of scores.", "Give a mapping of names to scores.")
    weight = None
    if sample_weight is not None:
        weight = amount_column(sample_weight, "sample_weight", len(label))
    if folds is not None:
        columns = {
            name: on_scale_of_folds(label, column, folds, weight)
            for name, column in columns.items()
        }
    check_whole("n_replicates", n_replicates, "a whole number of at least 2", 2)
    check_whole("random_state", random_state, "a whole number of at least 0", 0)
    given = None if groups is None else np.asarray(groups)
    stretch = _stretch(len(label), folds, n_train)
    seeds = np.random.SeedSequence(random_state).generate_state(n_replicates, np.uint64)
    draws = Draws(seeds.astype(np.uint64), n_jobs, progress)
    judged = _Judged(label, weight, given, draws, level, stretch)
    # Also refuses groups that are missing or too few, and a class without rows.
    first = next(iter(columns.values()))
    pair = split_pair(label, first, first, weight, given)
    n_rows = pair.rare.mass + pair.majority.mass
    asked = chosen_measures(measures, k, max_fpr, pair.rare.mass, n_rows)
    return Comparison(
        tuple(_standings(measure, columns, judged) for measure in asked),
        n_rows,
        pair.rare.mass,
        pair.n_groups if groups is not None else None,
        None if folds is None else len(np.unique(np.asarray(folds))),
        level,
    )


def _column(name: str, column: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    values = score_column(column, f"scores[{name!r}]")
    same_length(f"scores[{name!r}]", values, n_rows, "y")
    if values.size and (values == values[0]).all():
        raise InputError(
            f"scores[{name!r}] are all {values[0]:g}: that ranks nothing.",
            "Leave the column out, or look at how it was made.",
        )
    return values


def _stretch(n_rows: int, folds: Any, n_train: float | None) -> float:
    if n_train is None:
        return 1.0
    check_number("n_train", n_train)
    if folds is None:
        raise InputError("n_train= is about models of folds, and folds= is not given.")
    return stretch_for_training(n_rows, n_train)


def stretch_for_training(n_tested: float, n_train: float) -> float:
    """Factor from the interval of a difference of models to that of a difference of methods.

    A paired test of out-of-fold scores has the variance V of which rows were tested. Other training
    rows would have given other models, and the folds' models share most of theirs, so that the luck
    of one is the luck of all. Nadeau and Bengio (2003, "Inference for the generalization error",
    Machine Learning 52) put the variance of the mean of K folds, each of variance K V, at
    ``K V (1 / K + n_test / n_train)``; with ``n_tested = K n_test`` that is
    ``V (1 + n_tested / n_train)``. Its square root is 1.5 for 5 folds, whatever their number of
    rows.

    >>> stretch_for_training(100, 80)
    1.5
    """
    return math.sqrt(1.0 + n_tested / n_train)


def _standings(
    measure: Measure, columns: Mapping[str, NDArray[np.float64]], judged: _Judged
) -> Standings:
    level = judged.level
    alone = {
        name: measure.interval(judged.y, column, judged.weight, level)
        for name, column in columns.items()
    }
    # Among equals the one that was given first.
    best, *others = sorted(alone, key=lambda name: -alone[name].value)
    pairs = {name: judged.evidence(measure, columns[name], columns[best]) for name in others}
    if judged.groups is not None:
        itself = judged.evidence(measure, columns[best], columns[best]) if not pairs else None
        alone = {name: evidence.a(level) for name, evidence in pairs.items()}
        alone[best] = (itself or next(iter(pairs.values()))).b(level)
    p_values = [
        p_value_of_intervals(partial(judged.difference, evidence), level)
        for evidence in pairs.values()
    ]
    standings = [Standing(best, *alone[best], beside_the_best=None)]
    adjusted = adjusted_for_the_choice(p_values)
    for (name, evidence), p, of_choice in zip(pairs.items(), p_values, adjusted, strict=True):
        found = judged.difference(evidence, level)
        beside = BesideTheBest(*found, p, of_choice, of_choice < 1.0 - level)
        standings.append(Standing(name, *alone[name], beside_the_best=beside))
    return Standings(measure.name, dict(measure.options), measure.words, tuple(standings))
