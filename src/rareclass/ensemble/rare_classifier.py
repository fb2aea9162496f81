"""RareClassifier: kernels, trees and linear models on one table, combined; nothing to tune."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from rareclass.decide.threshold import balanced_accuracy_threshold
from rareclass.encoding.typed_table import TypedTable, read_table
from rareclass.ensemble.budget import Budget, CostModel
from rareclass.ensemble.combined import Combined, HeldOut, combine
from rareclass.ensemble.fold_numbers import fold_numbers
from rareclass.ensemble.giveaway import warn_of_giveaways
from rareclass.ensemble.importances import permutation_importances
from rareclass.ensemble.leaderboard import leaderboard
from rareclass.ensemble.majority_part import thinned
from rareclass.ensemble.members.member import Member
from rareclass.ensemble.members.registry import make_members
from rareclass.ensemble.objectives import OBJECTIVES
from rareclass.ensemble.race import Race, pilot
from rareclass.ensemble.thinning import affordable_rows
from rareclass.ensemble.training_views import TrainingViews
from rareclass.estimators.door import FitsRows
from rareclass.estimators.rank_scorer import RankScorer
from rareclass.estimators.search import Scoring, as_scoring
from rareclass.findings import Finding, warn
from rareclass.labels.two_classes import read_labels, row_weights
from rareclass.parameters import check_number, check_whole
from rareclass.progress import track
from rareclass.rows import LabelledRows, RowSource
from rareclass.rows.memory import count_threads

# Tables of fewer rows are learned without a look at a piece of them first.
_SMALL_ROWS = 10_000
_PILOT_ROWS, _PILOT_RARE, _PILOT_MEMBERS = 3_000, 300, 2
# The first members, which thinning makes room for.
_N_FIRST = 5
# With few rare rows other folds say much: so many rounds, while there is time.
_FEW_RARE, _MOST_ROUNDS = 300, 2
# The part of the time after which no further round is begun.
_ROUNDS_SHARE = 0.15
# The part of the time kept for what comes after the members.
_AFTERWARDS = 0.12
# Larger weights are no numbers of copies, whole or not.
_MOST_COPIES = 1e9
# Rows that are scored at a time: what bounds the memory of their views.
_SCORED_ROWS = 50_000
# Rows elsewhere of which more than these are not read: of the majority a part is learned from.
_MOST_READ = 500_000
_LN_10 = float(np.log(10.0))


class _Rows(NamedTuple):
    """Training rows that count."""

    table: TypedTable
    is_rare: np.ndarray
    weight: np.ndarray | None
    folds: list[np.ndarray]


class RareClassifier(RankScorer, FitsRows, BaseEstimator):
    r"""Learns the rare class of any table, within a time, with nothing to tune.

    Kernel ranking machines, boosted trees, forests and linear models learn the same folds of the
    table. Each becomes, at every row, a false-positive rate :math:`F_k(x)`: the share of held-out
    majority rows that it scores as high. The model is the weighted mean of their logarithms,

    .. math:: g(x) = -\sum_k w_k \ln F_k(x), \qquad w_k \ge 0, \ \sum_k w_k = 1,

    with weights that are best on held-out rows, and many of them zero; a member that hurts is left
    out. Scores are :math:`-\log_{10}` of the false-positive rate of g itself: about one majority
    row in 1,000 scores 3 or more.

    Parameters
    ----------
    time_budget : float, default=60
        Seconds that `fit` may take, kept to within a fifth. Members are learned in turn, the most
        useful first: more time is more members, and on long tables more of the majority rows. What
        is chosen then depends on the speed of the machine; where all members end in time, the
        same rows and `random_state` give the same model.
    objective : {"average_precision", "roc_auc", "precision_at_k"} or callable
        What weights maximise on held-out rows; "precision_at_k" is that of as many rows as there
        are rare ones. A callable takes (y, scores, sample_weight) with y true for rare rows.
    members : str or list, default="auto"
        "auto", "kernel" (this package's own methods), "trees", a member's name as `leaderboard_`
        has it, or a list of these: ``["auto", "catboost"]`` adds one.
    cv : int, splitter or iterable of (train, test), default=5
        Folds. An integer makes stratified, shuffled folds, fewer when there are fewer rare rows.
        Every row is held out once at most.
    compact : bool or float, default=False
        Keep the best single member where the objective on held-out rows loses at most 0.01, or
        the loss given: a smaller, quicker model.
    absolute_time : bool, default=False
        Learn from dates as moments as well. Without it they count by what recurs (hour, weekday,
        day, month, days between two dates): a clock only ever shows new moments.
    random_state : int or None, default=None
        Seeds folds, landmarks and trees; None is 0.
    n_jobs : int or None, default=None
        Threads; None is all cores.
    pos_label : label or None, default=None
        The rare class; None is the label of fewer rows.
    verbose : bool or "auto", default="auto"
        Show what is learned and what is left; "auto" where standard error is a terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    pos_label_ : label
    offset_ : float
        Score above which a row is called rare: the best balanced accuracy on held-out rows.
    leaderboard_ : dict of ndarray
        One entry a member and setting, the best first: ``member``, ``setting``, ``objective``,
        ``roc_auc``, ``average_precision``, ``average_precision_low`` and ``_high`` (95 percent),
        ``seconds``, ``weight``; all on held-out rows. ``pandas.DataFrame(model.leaderboard_)``.
    held_out_score_ : float
        The objective of the combination on held-out rows: the best of many, so a little high. NaN
        where it could not be measured.
    without_time_ : dict
        Members that were not learned for want of time, with the seconds foretold.
    interrupted_ : bool
        Whether Ctrl-C ended `fit` before all members that there was time for were learned.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Loss of the objective when a column is shuffled among held-out rows; 0 for columns that are
        not learned from, NaN where time ran out.
    columns_ : list of dict
        Name and kind of each column as learned from: "number", "category", "date", "text" or "left
        out", and why.
    members_ : list of LearnedMember
    n_features_in_, feature_names_in_
        The columns of the table.

    Raises
    ------
    InputError
        For a table that cannot be read, naming column, row and value.
    ValueError
        On one class or more than two, and parameters outside their range.
    ImportError
        Where a member's package is not installed.

    Warns
    -----
    UserWarning
        Where a column alone gives the label away, there was time for one member alone, or `fit` was
        interrupted. `rareclass.findings.finding_of` gives what a warning says as data.

    Notes
    -----
    `fit`:

    1. the table is typed, the labels read, rows of no weight left out
    2. folds, the same for all members
    3. where the first members are not likely to end in time, the majority is thinned, with
       weights that put it back
    4. members are learned in turn, each on all folds (`race`)
    5. held-out scores become false-positive rates; weights by greedy selection
    6. the threshold, the leaderboard and the importances

    The functions that score new rows are the means of those of the folds: no member is learned
    again. Ctrl-C during 4 ends with what is there. Memory: the table in float64 a few times, and 1
    GiB of kernel.

    Encodings end where the training rows end: a number beyond them counts as the nearest of
    training, a word never seen as that of a typical row (or as a word of a single row, where
    training had such), so that no row is ranked first for being far.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, weights=[0.9], random_state=0)
    >>> model = RareClassifier(members=["logistic regression", "extra trees"]).fit(X, y)
    >>> bool(model.held_out_score_ > 0.5), model.predict(X[:3]).shape
    (True, (3,))
    """

    columns_: list[Any]

    def __init__(
        self,
        time_budget: float = 60.0,
        objective: Any = "average_precision",
        members: Any = "auto",
        cv: Any = 5,
        compact: bool | float = False,
        absolute_time: bool = False,
        random_state: int | None = None,
        n_jobs: int | None = None,
        pos_label: Any = None,
        verbose: bool | str = "auto",
    ) -> None:
        self.time_budget = time_budget
        self.objective = objective
        self.members = members
        self.cv = cv
        self.compact = compact
        self.absolute_time = absolute_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.pos_label = pos_label
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, time: Any = None
    ) -> Self:
        """Learn from a table within the time allowed.

        Parameters
        ----------
        X : pandas, polars or pyarrow table, or array of shape (n_rows, n_features)
            Numbers, truth values, strings, dates; cells may be missing.
        y : array-like of shape (n_rows,)
            Two labels of any type.
        sample_weight : array-like of shape (n_rows,) or None
            Weights at or above 0: whole numbers count a row so many times, 0 leaves it out. Of
            weights that are not all whole only the ratios count.
        groups : array-like of shape (n_rows,) or None
            Rows of one group, such as a customer, are in the same fold.
        time : array-like of shape (n_rows,) or None
            Folds are stretches of time, so that held-out rows are not neighbours of others.

        Returns
        -------
        estimator
            This one.
        """
        check_number("time_budget", self.time_budget)
        if not isinstance(self.compact, (bool, np.bool_)):
            check_number("compact", self.compact, "True, False or a loss of at least 0", ends="[)")
        budget = Budget(self.time_budget)
        objective = as_scoring(self.objective, OBJECTIVES)
        members = make_members(self.members)
        seed, n_jobs = self._seed(), count_threads(self.n_jobs)
        rows = self._read(X, y, sample_weight, groups, time)
        costs = CostModel()
        with track("RareClassifier", len(members), self.verbose) as advance:
            rows = self._thinned(rows, members, costs, budget, n_jobs)
            views = TrainingViews(*rows, self.absolute_time)
            within = Budget((1.0 - _AFTERWARDS) * budget.seconds, budget.started)

            begun: set[str] = set()

            def report(name: str) -> None:
                advance(name not in begun, f"{name}, {max(within.left, 0.0):.0f} s left")
                begun.add(name)

            members = [member for member in members if _can_see(member, views)] or members
            race = Race(views, within, costs, seed, n_jobs, report)
            with threadpool_limits(1, user_api="blas"):  # waiting, they spin in the way of others
                self._run(race, members, objective)
        combined = self._combined(race, objective)
        self._keep(race, combined, members)
        self._describe(race, combined, objective, budget)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Score of every row: the common logarithm of one over its false-positive rate.

        Parameters
        ----------
        X : table or array with the columns of training, in any order where they have names

        Returns
        -------
        ndarray of shape (n_rows,)
            Higher is more like the rare class: about one majority row in 10 ** s scores s or more.

        Raises
        ------
        InputError
            Where a column is missing, or a cell cannot be read as in training.
        """
        check_is_fitted(self)
        table = self._typed(X)
        parts = range(0, table.n_rows, _SCORED_ROWS)
        rarity = [self._rarity(table.take(slice(k, k + _SCORED_ROWS))) for k in parts]
        return -self.scale_(np.concatenate([np.empty(0), *rarity])) / _LN_10

    def outside(self, X: Any) -> dict[str, int]:
        """Cells of each column that are unlike any of training: beyond its numbers, unseen words.

        Parameters
        ----------
        X : table or array, as for `score_samples`

        Returns
        -------
        dict of str to int
            Only of columns that have some. Such cells count as the nearest number of training, or
            as a typical word.
        """
        check_is_fitted(self)
        return self.statistics_.outside(self._typed(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    # -- inside ------------------------------------------------------------------------------

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        check_whole("random_state", self.random_state, "a whole number or None", 0)
        return int(self.random_state)

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any, time: Any) -> _Rows:
        """Typed rows of weight above zero, which of them are rare, and the first folds."""
        chosen, sample_weight = self._part_of_file(X, y, sample_weight)
        if chosen is not None:
            X = _in_memory(X, chosen)
            y, groups, time = (
                None if a is None else np.asarray(a)[chosen] for a in (y, groups, time)
            )
        table = self._typed(X, reset=True)
        labels = read_labels(y, sample_weight, self.pos_label, table.n_rows)
        self.classes_, self.pos_label_ = labels.classes, labels.pos_label
        number = fold_numbers(self.cv, labels, table.n_rows, self._seed(), groups, time)
        is_rare = np.zeros(table.n_rows, dtype=bool)
        is_rare[labels.rare] = True
        kept = np.sort(np.concatenate([labels.rare, labels.majority]))
        weight = row_weights(sample_weight, table.n_rows)
        if weight is not None:
            weight = _as_copies(weight[kept])
        folds = [number]
        if isinstance(self.cv, (int, np.integer)) and groups is None and time is None:
            more = range(1, _MOST_ROUNDS if 1 < len(labels.rare) <= _FEW_RARE else 1)
            folds += [fold_numbers(self.cv, labels, table.n_rows, self._seed() + k) for k in more]
        if len(kept) < table.n_rows:
            table, is_rare = table.take(kept), is_rare[kept]
            folds = [each[kept] for each in folds]
        return _Rows(table, is_rare, weight, folds)

    def _part_of_file(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray | None, Any]:
        """Row numbers of a file too long to be read: all rare ones, some others; their weights.

        None where all rows are read, as for folds that are given by number of row.
        """
        source = X.source if isinstance(X, LabelledRows) else X
        if not isinstance(self.cv, (int, np.integer)):
            return None, sample_weight
        if not isinstance(source, RowSource) or source.n_rows <= _MOST_READ:
            return None, sample_weight
        labels = read_labels(y, sample_weight, self.pos_label, source.n_rows)
        n_majority = max(_MOST_READ - len(labels.rare), _MOST_READ // 2)
        if n_majority >= len(labels.majority):
            return None, sample_weight
        is_rare = np.zeros(source.n_rows, dtype=bool)
        is_rare[labels.rare] = True
        weight = row_weights(sample_weight, source.n_rows)
        return thinned(is_rare, weight, n_majority, self._seed())

    def _typed(self, X: Any, reset: bool = False) -> TypedTable:
        X = _in_memory(X)
        if not reset:
            return read_table(X, self.columns_)
        table = read_table(X)
        self.columns_ = table.remembered
        self.n_features_in_ = len(table.remembered)
        names = [column["name"] for column in table.remembered]
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            self.feature_names_in_ = np.array(names, dtype=object)
        return table

    def _thinned(
        self,
        rows: _Rows,
        members: Sequence[Member],
        costs: CostModel,
        budget: Budget,
        n_jobs: int,
    ) -> _Rows:
        """All rows, or those that the first members are likely to manage."""
        n_rows = rows.table.n_rows
        if n_rows < _SMALL_ROWS:
            return rows
        first = members[:_N_FIRST]
        piece = _part(rows, *_piece(rows, self._seed()))
        views = TrainingViews(*piece, self.absolute_time)
        pilot(first[:_PILOT_MEMBERS], views, costs, self._seed(), n_jobs)
        n_rare = int(rows.is_rare.sum())
        n_majority = affordable_rows(
            costs,
            first,
            [views.encoded(member.view).shape[1] for member in first],
            n_rare,
            n_rows - n_rare,
            int(rows.folds[0].max()) + 1,
            budget.left,
        )
        if n_majority >= n_rows - n_rare:
            return rows
        return _part(rows, *thinned(rows.is_rare, rows.weight, n_majority, self._seed()))

    def _run(self, race: Race, members: Sequence[Member], objective: Scoring) -> None:
        """Members in turn, then further rounds for those that count; Ctrl-C ends it."""
        self.interrupted_ = False
        try:
            race.run(members)
            for number in range(1, len(race.views.folds)):
                if race.budget.spent > _ROUNDS_SHARE * self.time_budget:
                    break
                combined = self._combined(race, objective)
                names = {each.name for each in combined.members()}
                race.run([member for member in members if member.name in names], number)
        except KeyboardInterrupt:
            if not race.candidates:
                raise
            self.interrupted_ = True
            learned = list(dict.fromkeys(name for name, _ in race.candidates))
            warn(
                f"interrupted: the model is made of what was learned, {', '.join(learned)}.",
                finding=Finding("interrupted", {"learned": learned}),
            )

    def _combined(self, race: Race, objective: Scoring) -> Combined:
        views = race.views
        held_out = HeldOut(views.is_rare, views.weight, np.flatnonzero(views.folds[0] >= 0))
        candidates = list(race.candidates.values())
        return combine(candidates, held_out, objective, self.compact, self._seed())

    def _keep(self, race: Race, combined: Combined, members: Sequence[Member]) -> None:
        """What scoring needs, and what was left undone."""
        views = race.views
        self.members_ = combined.members()
        self.scale_ = combined.scale
        self.statistics_ = views.statistics
        self.views_ = {each.view: views.views[each.view] for each in self.members_}
        self.held_out_score_ = combined.merit
        learned = {name for name, _ in race.candidates}
        # A further round of a member that was learned is no loss worth telling.
        missing = {name: took for name, took in race.without_time.items() if name not in learned}
        self.without_time_ = missing
        if missing and len(learned) == 1:
            left_out = [member.name for member in members if member.name not in learned]
            warn(
                f"time_budget={self.time_budget:g} was enough for {next(iter(learned))} alone, "
                f"not for {', '.join(left_out)}: allow more seconds.",
                finding=Finding("one member", {"left out": left_out}, {"time_budget": "larger"}),
            )

    def _describe(self, race: Race, combined: Combined, objective: Scoring, budget: Budget) -> None:
        """Threshold, leaderboard and importances, all of held-out rows."""
        views, tested = race.views, combined.tested
        y = views.is_rare[tested]
        weight = None if views.weight is None else views.weight[tested]
        scores = -combined.scale(combined.rarity) / _LN_10
        self.offset_ = (
            float(balanced_accuracy_threshold(y, scores, weight))
            if y.any()
            else float(scores.max())
        )
        self.leaderboard_ = leaderboard(combined, y, weight)
        warn_of_giveaways(views)
        held_out = HeldOut(views.is_rare, views.weight, tested)
        in_use = [
            (each.candidate, each.scale, float(share))
            for each, share in zip(combined.judged, combined.weights, strict=True)
            if share > 0.0
        ]
        losses = np.full(len(views.table.columns), np.nan)
        if y.any():
            try:
                losses = permutation_importances(
                    views,
                    in_use,
                    lambda rows, scores: held_out.measure(objective, scores, rows),
                    self._seed(),
                    race.n_jobs,
                    lambda: budget.left > 0.0,
                )
            except KeyboardInterrupt:  # a model is there: it is kept
                self.interrupted_ = True
        self.feature_importances_ = np.zeros(self.n_features_in_)
        used = [k for k, column in enumerate(self.columns_) if not column["why"]]
        self.feature_importances_[used] = losses

    def _rarity(self, table: TypedTable) -> np.ndarray:
        """g of every row."""
        encoded = self.statistics_.encode(table)
        total = np.zeros(table.n_rows)
        for name, view in self.views_.items():
            X = view.transform(encoded)
            for member in self.members_:
                if member.view == name:
                    total += member.weight * member.rarity(X, self.n_jobs)
        return total


def _can_see(member: Member, views: TrainingViews) -> bool:
    """Whether a member's view holds anything of its own: indicators are of categories."""
    return member.view != "indicators" or bool(views.statistics.category_names_)


def _in_memory(X: Any, chosen: Any = slice(None)) -> Any:
    """Rows of a file, or those chosen, with the names of their columns; others as they are."""
    names = X.feature_names if isinstance(X, LabelledRows) else None
    source = X.source if isinstance(X, LabelledRows) else X
    if not isinstance(source, RowSource):
        return X
    rows = source.take(chosen)
    return rows if names is None else pa.table(dict(zip(names, rows.T, strict=True)))


def _as_copies(weight: np.ndarray) -> np.ndarray:
    """Whole numbers are numbers of copies; of other weights only ratios count: mean 1."""
    if weight.max() <= _MOST_COPIES and (weight == np.round(weight)).all():
        return weight
    weight = weight / weight.max()  # sums of very large ones do not fit
    return weight / weight.mean()


def _piece(rows: _Rows, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Row numbers of a small part of the table with rare rows in it."""
    rng = np.random.default_rng(seed)
    rare = rng.permutation(np.flatnonzero(rows.is_rare))[:_PILOT_RARE]
    rest = rng.permutation(np.flatnonzero(~rows.is_rare))[: _PILOT_ROWS - len(rare)]
    chosen = np.sort(np.concatenate([rare, rest]))
    return chosen, None if rows.weight is None else rows.weight[chosen]


def _part(rows: _Rows, chosen: np.ndarray, weight: np.ndarray | None) -> _Rows:
    return _Rows(
        rows.table.take(chosen),
        rows.is_rare[chosen],
        weight,
        [fold[chosen] for fold in rows.folds],
    )
