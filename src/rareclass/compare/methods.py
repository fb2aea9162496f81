"""Methods beside each other on the same folds: out-of-fold scores, seconds, memory, tests."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.compare.comparison import Comparison
from rareclass.compare.fold_scores import FoldRows, Split, fold_scores
from rareclass.compare.measures import DEFAULT, chosen_measures
from rareclass.compare.own_process import Outcome, OwnProcesses
from rareclass.compare.score_columns import compare_scores
from rareclass.errors import InputError, counted
from rareclass.folds import RareGroupKFold, RareStratifiedKFold, RareTimeSplit
from rareclass.folds.dealing import rare_rows
from rareclass.folds.times import days_of, read_times
from rareclass.labels.two_classes import given_labels, label_array, row_weights
from rareclass.parameters import check_number, check_whole, is_whole
from rareclass.progress import track

Advance = Callable[..., None]


@dataclass(frozen=True)
class MethodRun:
    """What became of a method."""

    name: str
    status: str  # "ok", "failed", "not tried", "stopped" at its time, "interrupted" by Ctrl-C
    message: str  # why, where it is not "ok"
    seconds: float  # of all folds that were done, learning and scoring
    n_folds: int  # done
    memory: int | None  # most bytes beyond the rows; None where it was not measured
    warnings: tuple[str, ...] = ()

    @property
    def is_judged(self) -> bool:
        """Whether it has scores of all test rows."""
        return self.status == "ok"

    def why_not(self) -> str:
        """Why it has no place, in a line."""
        failed = "failed, " if self.status == "failed" else ""
        return f"{self.name}: {failed}{self.message.rstrip('.')}."


@dataclass(frozen=True)
class MethodComparison:
    """Methods on the same folds.

    Attributes
    ----------
    runs : tuple of MethodRun
        One for every method, in the order given.
    comparison : Comparison or None
        Of those that were judged; None where there is none.
    folds : str
        In words, such as "5 folds by group".
    n_unfinished : int
        Methods that failed, were stopped or interrupted.
    scores : dict of name to ndarray
        Out-of-fold scores, on the scale of each fold's model.
    rows, fold : ndarray
        Which row each score is of, and which fold's test part it was in.
    """

    runs: tuple[MethodRun, ...]
    comparison: Comparison | None
    folds: str
    scores: dict[str, NDArray[np.float64]] = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)
    fold: NDArray[np.intp] = field(repr=False)

    @property
    def n_unfinished(self) -> int:
        """Methods without a place."""
        return sum(not run.is_judged for run in self.runs)

    def basis(self) -> str:
        """Which rows all this rests on, and how they were held out."""
        return "" if self.comparison is None else self.comparison.basis(self.folds)

    def to_dict(self) -> dict[str, Any]:
        """Dictionaries, lists, words and numbers, for JSON; without the scores."""
        return {
            "folds": self.folds,
            "methods": [asdict(run) for run in self.runs],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }

    def says(self) -> list[str]:
        """What was judged, a line a measure, and a line for each method that has no place."""
        found = []
        if self.comparison is not None:
            found = [self.basis(), *(each.says() for each in self.comparison.measures)]
        return found + [run.why_not() for run in self.runs if not run.is_judged]


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
    isolate: bool = False,
    level: float = 0.95,
    random_state: int = 0,
    progress: bool | str = "auto",
) -> MethodComparison:
    """Compare classifiers on the same folds: which ranks the rare rows best, and is it told apart?

    Each learns the training rows of each fold and scores its test rows. The scores of a fold are
    put on the scale of its false-positive rates and compared by `compare_scores`: values with
    intervals, and paired tests of the best against each other one. Tests allow for what another
    training set would change (docs/decisions/0032), so that equal methods are rarely told apart by
    the luck of their training rows.

    A method that fails is a line of the result and no error. Ctrl-C ends it with those that are
    done.

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
    measures, k
        As in `compare_scores`.
    pos_label : label, optional
        The rare class; by default the label of fewest rows.
    time_budget : float or mapping of names to float, optional
        Seconds for each method, all folds together: one that needs more is stopped and has no
        place. With ``isolate=False`` only between folds.
    isolate : bool, default False
        Run each method in a process of its own: its memory is measured, and a crash is its own. It
        and X must be such as pickle can send.
    level : float, default 0.95
        Of intervals and tests.
    random_state : int, default 0
        Of the folds that a number makes, and of the bootstrap.
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
    200 rows, 20 of them rare, by the models of 5 folds
    AUC: logistic has the highest, 0.976; statistically indistinguishable: bayes.
    """
    if not methods:
        raise InputError("methods= is empty.", "Give a mapping of names to estimators.")
    limits: dict[str, float] = {}
    if isinstance(time_budget, Mapping):
        limits = dict(time_budget)
    elif time_budget is not None:
        limits = dict.fromkeys(methods, time_budget)
    for seconds in limits.values():
        check_number("time_budget", seconds)
    check_whole("random_state", random_state, "a whole number of at least 0", 0)
    rows, words = _fold_rows(X, y, cv, groups, time, sample_weight, pos_label, random_state)
    tested = np.concatenate([test for _, test in rows.folds])
    fold = np.repeat(np.arange(len(rows.folds)), [len(test) for _, test in rows.folds])
    judged = _Judged(rows, tested, fold)
    judged.check(measures, k)
    with _runner(rows, isolate) as run:
        outcomes = _outcomes(methods, run, limits, len(rows.folds), progress)
    if not any(outcome.status == "ok" for outcome in outcomes.values()) and any(
        outcome.status == "interrupted" for outcome in outcomes.values()
    ):
        raise KeyboardInterrupt
    scores = {
        name: outcome.scores for name, outcome in outcomes.items() if outcome.scores is not None
    }
    runs = tuple(
        MethodRun(
            name,
            outcome.status,
            outcome.message,
            sum(outcome.seconds),
            len(outcome.seconds),
            outcome.memory,
            outcome.warnings,
        )
        for name, outcome in outcomes.items()
    )
    found = None
    if scores:
        found = judged.compared(scores, measures=measures, k=k, level=level, seed=random_state)
    return MethodComparison(runs, found, words, scores, tested, fold)


class _Judged(NamedTuple):
    """The test rows of all folds, one after the other."""

    rows: FoldRows
    tested: NDArray[np.intp]
    fold: NDArray[np.intp]

    def check(self, measures: Sequence[str], k: float | Sequence[float | None] | None) -> None:
        """Refuse what could not be measured before anything is learned."""
        rows = self.rows
        is_rare = rows.y[self.tested] == rows.pos_label
        weight = np.ones(len(is_rare)) if rows.weight is None else rows.weight[self.tested]
        chosen_measures(measures, k, 1.0, float(weight[is_rare].sum()), float(weight.sum()))

    def compared(
        self, scores: Mapping[str, NDArray[np.float64]], seed: int, **asked: Any
    ) -> Comparison:
        rows, tested = self.rows, self.tested
        groups = rows.groups
        if groups is None and rows.time is not None:
            days = days_of(read_times(rows.time, len(rows.y)))
            groups = days if len(np.unique(days[tested])) < len(tested) else None
        if groups is None and len(np.unique(tested)) < len(tested):
            groups = np.arange(len(rows.y))  # a row that is tested twice says little more
        train = float(np.mean([len(train) for train, _ in rows.folds]))
        return compare_scores(
            rows.y[tested] == rows.pos_label,
            scores,
            sample_weight=None if rows.weight is None else rows.weight[tested],
            groups=None if groups is None else groups[tested],
            folds=self.fold,
            n_train=train * len(tested) / len(np.unique(tested)),
            random_state=seed,
            **asked,
        )


def _fold_rows(
    X: Any,
    y: Any,
    cv: Any,
    groups: Any,
    time: Any,
    sample_weight: Any,
    pos_label: Any,
    seed: int,
) -> tuple[FoldRows, str]:
    """The rows with their folds, and what the folds are in words."""
    is_rare = rare_rows(y, pos_label)
    labels = label_array(given_labels(y))
    if len(np.unique(labels)) > 2:
        raise InputError(
            f"y holds {counted(len(np.unique(labels)), 'label')}.",
            "Use y == label to compare how one is told from the rest.",
        )
    if groups is not None and time is not None:
        raise InputError("groups and time are both given.", "Folds are made by one of them.")
    n_rows = len(labels)
    weight = row_weights(sample_weight, n_rows)
    beside = [None if column is None else np.asarray(column) for column in (groups, time)]
    splits, words = _folds(cv, labels, is_rare, beside, seed)
    rare_label = labels[is_rare][0]
    return FoldRows(X, labels, rare_label, weight, beside[0], beside[1], splits), words


def _folds(
    cv: Any,
    labels: NDArray[Any],
    is_rare: NDArray[np.bool_],
    beside: list[NDArray[Any] | None],
    seed: int,
) -> tuple[list[Split], str]:
    groups, time = beside
    splitter, by = cv, ""
    if is_whole(cv):
        if groups is not None:
            splitter, by = RareGroupKFold(cv, random_state=seed, pos_label=True), " by group"
        elif time is not None:
            splitter, by = RareTimeSplit(cv, pos_label=True), " in the order of time"
        else:
            splitter = RareStratifiedKFold(cv, random_state=seed, pos_label=True)
    if hasattr(splitter, "split") and not isinstance(cv, str):
        column = time if groups is None else groups
        splits = list(splitter.split(np.empty((len(labels), 0)), is_rare, column))
    elif isinstance(cv, str) or not hasattr(cv, "__iter__"):
        raise ValueError(f"cv={cv!r} is not a number of folds, a splitter or a list of folds.")
    else:
        splits = [(np.asarray(train), np.asarray(test)) for train, test in cv]
    for number, parts in enumerate(splits, 1):
        for side, rows in zip(("training", "test"), parts, strict=True):
            if not is_rare[rows].any() or is_rare[rows].all():
                lacks = "other" if is_rare[rows].any() else "rare"
                raise InputError(
                    f"fold {number} has no {lacks} row in its {side} part.",
                    "Use the splitters of rareclass.folds, or fewer folds.",
                )
    return splits, f"{counted(len(splits), 'fold')}{by}"


Run = Callable[[Any, float | None, Advance], Outcome]


@contextmanager
def _runner(rows: FoldRows, isolate: bool) -> Iterator[Run]:
    """What runs a method on the rows."""
    if isolate:
        with OwnProcesses(rows) as processes:
            yield processes.run
        return

    def run(estimator: Any, limit: float | None, advance: Advance) -> Outcome:
        seconds, scores = [], []
        try:
            for fold in fold_scores(estimator, rows):
                seconds.append(fold.seconds)
                scores.append(fold.scores)
                advance()
                if limit is not None and sum(seconds) > limit and len(seconds) < len(rows.folds):
                    return Outcome("stopped", f"stopped after {limit:g} s", seconds, None, None)
        except Exception as error:
            message = " ".join(f"{type(error).__name__}: {error}".split())
            return Outcome("failed", message, seconds, None, None)
        return Outcome("ok", "", seconds, None, np.concatenate(scores))

    yield run


def _outcomes(
    methods: Mapping[str, Any],
    run: Run,
    limits: Mapping[str, float],
    n_folds: int,
    progress: bool | str,
) -> dict[str, Outcome]:
    """Every method's outcome; those that Ctrl-C left no time for are interrupted."""
    outcomes: dict[str, Outcome] = {}
    with track("Comparing", len(methods) * n_folds, enabled=progress) as advance:
        for place, (name, estimator) in enumerate(methods.items()):
            advance(0, note=name)
            try:
                outcomes[name] = run(
                    estimator, limits.get(name), lambda name=name: advance(note=name)
                )
            except InputError as error:
                outcomes[name] = Outcome("failed", str(error), [], None, None)
            except KeyboardInterrupt:
                message = "ended by Ctrl-C"
                for left in list(methods)[place:]:
                    outcomes[left] = Outcome("interrupted", message, [], None, None)
                break
            n_left = n_folds - len(outcomes[name].seconds)
            if n_left:
                advance(n_left)
    return outcomes
