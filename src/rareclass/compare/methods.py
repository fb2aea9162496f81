"""Comparison of methods on the same folds: out-of-fold scores, seconds and tests."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import check_cv

from rareclass.compare.out_of_fold import FoldRows, MethodOutcome, MethodRun, OwnProcesses, run_here
from rareclass.compare.score_columns import DEFAULT, Comparison, chosen_measures, compare_scores
from rareclass.errors import ErrorKind, counted, setting
from rareclass.folds.dealing import days_of, rare_rows, read_times
from rareclass.folds.score_scale import on_scale_of_folds
from rareclass.folds.splitters import splitter_for
from rareclass.labels.two_classes import label_array
from rareclass.labels.weights import row_weights
from rareclass.machine import track
from rareclass.metrics import average_precision
from rareclass.parameters import check_number, check_whole, is_whole

Report = Callable[[MethodRun, float | None], None]


@dataclass(frozen=True)
class MethodComparison:
    """Methods on the same folds."""

    runs: tuple[MethodRun, ...]  # one for every method, in the order given
    comparison: Comparison | None  # of the methods with scores; None where there is none
    folds: str  # in words, such as "5 folds by group"
    # Out-of-fold scores by method, on the scale of each fold's model; row of each, and its fold.
    scores: dict[str, NDArray[np.float64]] = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)
    fold: NDArray[np.intp] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return dictionaries, lists, words and numbers, for JSON; without the scores."""
        return {
            "folds": self.folds,
            "methods": [asdict(run) for run in self.runs],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }

    def says(self) -> list[str]:
        """Return a line on the rows, a line a measure, and a line a method without scores."""
        lines = [] if self.comparison is None else self.comparison.says(self.folds)
        return lines + [run.why_not() for run in self.runs if not run.is_judged]


def compare_methods(
    X: Any,
    y: ArrayLike,
    methods: Mapping[str, Any],
    cv: Any = 5,
    *,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    measures: Sequence[str] = DEFAULT,
    k: float | Sequence[float | None] | None = None,
    pos_label: Any = None,
    time_budget: float | Mapping[str, float] | None = None,
    report: Report | None = None,
    isolate: bool = False,
    level: float = 0.95,
    random_state: int = 0,
    progress: bool | str = "auto",
) -> MethodComparison:
    """Compare classifiers on the same folds: the best ranking, and the significance of its lead.

    Each method learns the training rows of each fold and scores its test rows. The scores of a fold
    are mapped to its false-positive rates and compared by `compare_scores`: values with intervals,
    and paired tests of the best against each other one. Tests allow for the effect of other
    training rows (docs/decisions/0032), so that equal methods rarely differ significantly by the
    luck of their training rows.

    A method that fails is a line of the result and no error. Ctrl-C ends the comparison with the
    methods that are done.

    Parameters
    ----------
    X : array, sparse matrix, or pandas, polars or pyarrow table of shape (n_rows, n_features)
        Handed to the methods as it is.
    y : array-like of shape (n_rows,)
        Two labels, handed on as they are: some methods take only 0 and 1.
    methods : mapping of names to estimators
        Any scikit-learn classifier or ranker, unfitted: one with ``decision_function``,
        ``predict_proba`` or, if of this package, ``score_samples``. It is cloned for each fold.
    cv : int, splitter or list of (train, test), default 5
        A number makes folds of `rareclass.folds`: by group or by time where they are given. Rows
        that are tested more than once count as a group each.
    groups : array-like of shape (n_rows,), optional
        Rows of equal group, such as one customer's, are held out together, and move together in
        intervals and tests. Passed to methods whose ``fit`` takes groups.
    time : array-like of shape (n_rows,), optional
        Folds are stretches of time, each tested by what was learned before it. Rows of one day (of
        numbers: between two whole ones) move together in intervals and tests. Passed to methods
        whose ``fit`` takes time. Not together with `groups`.
    sample_weight : array-like of shape (n_rows,), optional
        Copies that each row stands for. A method that takes none is given the copies.
    measures, k, level
        As in `compare_scores`.
    pos_label : label, optional
        The rare class; by default the label of fewest rows.
    time_budget : float or mapping of names to float, optional
        Seconds for each method, all folds together: one that needs more is stopped and has no
        place. With ``isolate=False`` only between folds.
    report : callable, optional
        Called after each method with its `MethodRun` and the average precision of its out-of-fold
        scores, None where it has none.
    isolate : bool, default False
        Run each method in a process of its own: it is stopped at its time, and a crash is its own.
        It and X must be such as pickle can send.
    random_state : int, default 0
        Of the folds that a number makes.
    progress : bool or "auto", default "auto"
        Show a bar on standard error.

    Returns
    -------
    MethodComparison
        Frozen; ``runs``, ``comparison``, ``scores``, with ``to_dict()`` and ``says()``.

    Raises
    ------
    ValueError
        On parameters out of range; `InputError`, which is one, on labels that are not two, a row
        without one, folds that cannot hold rare rows, or no methods.
    KeyboardInterrupt
        Where Ctrl-C came before any method was done.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(200) % 10 == 0
    >>> X = rng.normal(size=(200, 3)) + y[:, None]
    >>> found = compare_methods(
    ...     X, y, {"logistic": LogisticRegression(), "bayes": GaussianNB()}, measures=["roc_auc"]
    ... )
    >>> print(*found.says(), sep="\\n")
    200 rows, 20 of them rare, cross-validated on 5 folds
    AUC: logistic is best (0.976); not significantly worse: bayes.
    """
    if not methods:
        raise ErrorKind.SHAPE.error("methods= is empty.", "Give a mapping of names to estimators.")
    own = time_budget if isinstance(time_budget, Mapping) else dict.fromkeys(methods, time_budget)
    for seconds in own.values():
        if seconds is not None:
            check_number("time_budget", seconds)
    check_whole("random_state", random_state, "a whole number of at least 0", 0)
    rows, words = _fold_rows(X, y, cv, groups, time, sample_weight, pos_label, random_state)
    tested = np.concatenate([test for _, test in rows.folds])
    fold = np.repeat(np.arange(len(rows.folds)), [len(test) for _, test in rows.folds])
    is_rare = rows.y[tested] == rows.pos_label
    weight = np.ones(len(is_rare)) if rows.weight is None else rows.weight[tested]
    # Refuses measures that cannot be taken, before anything is learned.
    chosen_measures(measures, k, 1.0, float(weight[is_rare].sum()), float(weight.sum()))

    def done(outcome: MethodOutcome) -> None:
        if report is not None:
            found = None
            if outcome.scores is not None:
                rates = on_scale_of_folds(is_rare, outcome.scores, fold, weight)
                found = average_precision(is_rare, rates, weight)
            report(outcome.run, found)

    outcomes = _outcomes(methods, rows, isolate, own, progress, done)
    runs = tuple(outcome.run for outcome in outcomes)
    if not any(run.is_judged for run in runs) and runs[-1].status == "interrupted":
        raise KeyboardInterrupt
    scores = {run.name: scores for run, scores in outcomes if scores is not None}
    comparison = None
    if scores:
        comparison = _compared(rows, tested, fold, scores, measures=measures, k=k, level=level)
    return MethodComparison(runs, comparison, words, scores, tested, fold)


def _fold_rows(
    X: Any, y: Any, cv: Any, groups: Any, time: Any, sample_weight: Any, pos_label: Any, seed: int
) -> tuple[FoldRows, str]:
    """The rows with their folds, and words for the folds."""
    is_rare = rare_rows(y, pos_label)
    labels = label_array(y)
    n_labels = len(np.unique(labels))
    if n_labels > 2:
        raise ErrorKind.LABELS.error(
            f"y holds {counted(n_labels, 'label')}.",
            "Use y == label to compare the methods on one label against all others.",
        )
    if groups is not None and time is not None:
        both = f"{setting('groups')} and {setting('time')} are both given."
        raise ErrorKind.COMBINATION.error(both, "Give one of them.")
    group, moment = (None if each is None else np.asarray(each) for each in (groups, time))
    splitter, by = cv, ""
    if is_whole(cv):
        splitter = splitter_for(cv, seed, groups=group, time=moment)
        by = "" if moment is None else " in the order of time"
        by = by if group is None else " by group"
    places, column = np.empty((len(labels), 0)), moment if group is None else group
    pairs = check_cv(splitter).split(places, is_rare, column)
    splits = [(np.asarray(train), np.asarray(test)) for train, test in pairs]
    for number, parts in enumerate(splits, 1):
        for side, part in zip(("training", "test"), parts, strict=True):
            if not is_rare[part].any() or is_rare[part].all():
                lacks = "other" if is_rare[part].any() else "rare"
                raise ErrorKind.TOO_FEW_ROWS.error(
                    f"fold {number} has no {lacks} row in its {side} part.",
                    "Use the splitters of rareclass.folds, or fewer folds.",
                )
    weight = row_weights(sample_weight, len(labels))
    rows = FoldRows(X, labels, labels[is_rare][0], weight, group, moment, splits)
    return rows, f"{counted(len(splits), 'fold')}{by}"


def _compared(
    rows: FoldRows,
    tested: NDArray[np.intp],
    fold: NDArray[np.intp],
    scores: Mapping[str, NDArray[np.float64]],
    **settings: Any,
) -> Comparison:
    """Compare out-of-fold scores; rows of one group, or of one day, count as one."""
    groups = rows.groups
    if groups is None and rows.time is not None:
        days = days_of(read_times(rows.time, len(rows.y)))
        groups = days if len(np.unique(days[tested])) < len(tested) else None
    n_distinct = len(np.unique(tested))
    if groups is None and n_distinct < len(tested):
        groups = np.arange(len(rows.y))  # a row that is tested twice says little more
    n_train = float(np.mean([len(train) for train, _ in rows.folds]))
    return compare_scores(
        rows.y[tested] == rows.pos_label,
        scores,
        sample_weight=None if rows.weight is None else rows.weight[tested],
        groups=None if groups is None else groups[tested],
        folds=fold,
        n_train=n_train * len(tested) / n_distinct,
        **settings,
    )


def _outcomes(
    methods: Mapping[str, Any],
    rows: FoldRows,
    isolate: bool,
    limits: Mapping[str, float | None],
    progress: bool | str,
    done: Callable[[MethodOutcome], None],
) -> list[MethodOutcome]:
    """Outcome of every method; "interrupted" for those not done when Ctrl-C came."""
    outcomes: list[MethodOutcome] = []
    n_folds = len(rows.folds)
    with ExitStack() as open_files:
        run: Callable[..., MethodOutcome] = partial(run_here, rows)
        if isolate:
            run = open_files.enter_context(closing(OwnProcesses(rows))).run
        advance = open_files.enter_context(
            track("Comparing", len(methods) * n_folds, enabled=progress)
        )
        for name, estimator in methods.items():
            advance(0, note=name)
            try:
                found = run(name, estimator, limits.get(name), partial(advance, note=name))
            except KeyboardInterrupt:
                for left in list(methods)[len(outcomes) :]:
                    interrupted = MethodRun(left, "interrupted", "ended by Ctrl-C", 0.0, 0)
                    outcomes.append(MethodOutcome(interrupted))
                break
            outcomes.append(found)
            done(found)
            if n_left := n_folds - found.run.n_folds:
                advance(n_left)
    return outcomes
