"""RareClassifier: kernels, trees and linear models on one table, combined; nothing to tune."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from rareclass.decide.threshold import balanced_accuracy_threshold
from rareclass.encoding.typed_table import TypedTable, read_table
from rareclass.ensemble.budget import Budget, CostModel
from rareclass.ensemble.held_out import HeldOut
from rareclass.ensemble.members.member import Member, Size
from rareclass.ensemble.objectives import as_objective
from rareclass.ensemble.thinning import affordable_rows, most_rows
from rareclass.ensemble.training_rows import Given, TrainingRows, in_memory, read_training_rows
from rareclass.estimators.estimator import FitsRows, RankScorer, learn_calibration
from rareclass.estimators.search import Scoring
from rareclass.findings import Finding, warn
from rareclass.parameters import check_number, check_whole
from rareclass.progress import track
from rareclass.rows.memory import count_threads

# What only `fit` needs is imported there: a model is opened and scores without it.
if TYPE_CHECKING:
    from rareclass.ensemble.combined import Combined
    from rareclass.ensemble.race import Race
    from rareclass.ensemble.training_views import TrainingViews

# Tables of fewer rows are learned without a look at a piece of them first.
_SMALL_ROWS = 10_000
_PILOT_MEMBERS = 3
# Tables of fewer rows are learned by one thread.
_ONE_THREAD_ROWS = 1_000
# The part of the time that the first member may be likely to take on all rows: the table is
# thinned to as many. Each of the others then takes as many of these as it has time for.
_FIRST_PART = 0.25
# The part of the time kept for what comes after the members.
_AFTERWARDS = 0.12
# Rows that are scored at a time: what bounds the memory of their views.
_SCORED_ROWS = 50_000
_LN_10 = float(np.log(10.0))


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
    objective : {"average_precision", "roc_auc", "precision_at_k", "precision_at=100"} or callable
        What weights maximise on held-out rows; "precision_at_k" is that of as many rows as there
        are rare ones, "precision_at=100" that of the first 100 of the held-out rows (any number).
        A callable takes (y, scores, sample_weight) with y true for rare rows.
    members : str or list, default="auto"
        "auto", "kernel" (this package's own methods), "trees", a member's name as `leaderboard_`
        has it, or a list of these: ``["auto", "catboost"]`` adds one. Of fewer than 1,000 rows,
        slow and deep boosting and the kernel on logarithms add nothing to others, and are not
        learned beside them.
    cv : "auto", int, splitter or iterable of (train, test), default="auto"
        Folds. An integer makes stratified, shuffled folds, fewer when there are fewer rare rows.
        "auto" is 5, or 3 where there is not time for 5 on all rows: each learns from more of them
        then. Every row is held out once at most.
    compact : bool or float, default=False
        Keep the best single member where the objective on held-out rows loses at most 0.01, or
        the loss given: a smaller, quicker model.
    absolute_time : bool, default=False
        Learn from dates as moments as well. Without it they count by what recurs (hour, weekday,
        day, month, days between two dates): a clock only ever shows new moments.
    random_state : int or None, default=None
        Seeds folds, landmarks and trees; None is 0.
    n_jobs : int or None, default=None
        Threads; None is all cores. Fewer than 1,000 rows are learned by one, which is quicker.
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
    held_out_ : dict of ndarray
        Scores of training rows by functions, scales and weights that did not see them: ``row``
        (its number in X), ``rare``, ``score`` and, where rows are weighted or thinned, ``weight``.
        They stand for new rows: for estimates, thresholds and calibration.
    calibration_ : Calibration
        From them to the probabilities of `predict_proba`; None where no rare row was held out.
    held_out_score_ : float
        The objective of these scores, for an estimate of how good the model is. NaN where it could
        not be measured.
    without_time_ : dict
        Members that were not learned for want of time, with the seconds foretold.
    interrupted_ : bool
        Whether Ctrl-C ended `fit` before all members that there was time for were learned.
    feature_importances_ : ndarray of shape (n_features,)
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
        Where a column alone gives the label away, rare rows of one value of a column stand close
        together in the table, there was time for one member alone, a member
        failed, or `fit` was interrupted. `rareclass.findings.finding_of` gives what a warning says
        as data.

    Notes
    -----
    `fit`:

    1. the table is typed, the labels read, rows of no weight left out
    2. folds, the same for all members
    3. where the members are not likely to end in time, folds are fewer, and a table of which the
       first member alone would take a quarter of the time is thinned in the majority, with weights
       that put it back
    4. members are learned in turn, each on all folds, and on as many of the majority rows as it
       has time for (`race`)
    5. held-out scores become false-positive rates; weights by greedy selection
    6. the same weights once more without each fold in turn: scores of its rows that stand for new
       ones, and from them the threshold
    7. the leaderboard and the importances

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
    _calibrates = True

    def __init__(
        self,
        time_budget: float = 60.0,
        objective: Any = "average_precision",
        members: Any = "auto",
        cv: Any = "auto",
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
            Folds are stretches of time, so that held-out rows are not neighbours of others. Dates,
            text such as "2026-03-01T12:00", or numbers.

        Returns
        -------
        estimator
            This one.
        """
        from rareclass.ensemble.members.registry import make_members
        from rareclass.ensemble.race import Race
        from rareclass.ensemble.training_views import TrainingViews

        check_number("time_budget", self.time_budget)
        if not isinstance(self.compact, (bool, np.bool_)):
            check_number("compact", self.compact, "True, False or a loss of at least 0", ends="[)")
        budget = Budget(self.time_budget)
        objective = as_objective(self.objective)
        members = make_members(self.members)
        seed = self._seed()
        rows = self._read(Given(X, y, sample_weight, groups, time))
        n_jobs = _threads(self.n_jobs, rows.table.n_rows)
        costs = CostModel()
        with track("RareClassifier", len(members), self.verbose) as advance:
            within = Budget((1.0 - _AFTERWARDS) * budget.seconds, budget.started)
            rows = self._affordable(rows, members, costs, within, n_jobs)
            views = TrainingViews(rows, self.absolute_time)
            held_out = HeldOut.of(rows, seed)

            begun: set[str] = set()

            def report(name: str) -> None:
                advance(name not in begun, f"{name}, {max(within.left, 0.0):.0f} s left")
                begun.add(name)

            members = [member for member in members if _is_of_use(member, views)] or members
            race = Race(views, held_out, within, costs, seed, n_jobs, report)
            with threadpool_limits(1, user_api="blas"):  # waiting, they spin in the way of others
                self._run(race, members)
        combined = self._combined(race, objective)
        self._keep(race, combined, members)
        self._judge(race, rows, objective)
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
        return self.score_typed(self._typed(X))

    def score_typed(self, table: TypedTable) -> np.ndarray:
        """`score_samples` of a table that was read already, as one of training."""
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

    def _typed(self, X: Any) -> TypedTable:
        return read_table(in_memory(X), self.columns_)

    def _read(self, given: Given) -> TrainingRows:
        """The rows to learn from; what labels and columns there are is remembered."""
        rows, labels = read_training_rows(given, self.cv, self.pos_label, self._seed())
        self.classes_, self.pos_label_ = labels.classes, labels.pos_label
        self.columns_ = rows.table.remembered
        self.n_features_in_ = len(self.columns_)
        self.__dict__.pop("feature_names_in_", None)
        if rows.has_names:
            names = [column["name"] for column in self.columns_]
            self.feature_names_in_ = np.array(names, dtype=object)
        return rows

    def _affordable(
        self,
        rows: TrainingRows,
        members: Sequence[Member],
        costs: CostModel,
        budget: Budget,
        n_jobs: int,
    ) -> TrainingRows:
        """All rows where there is time for all members; else fewer folds, and such of the rows.

        So many are kept that the first member manages them in a quarter of the time, or its share.
        """
        from rareclass.ensemble.race import pilot
        from rareclass.ensemble.training_views import TrainingViews

        n_rows, n_rare = rows.table.n_rows, int(rows.is_rare.sum())
        if n_rows < _SMALL_ROWS:
            return rows
        views = TrainingViews(rows.piece(self._seed()), self.absolute_time)
        pilot(members[:_PILOT_MEMBERS], views, costs, self._seed(), n_jobs)

        def foretold(member: Member) -> float:
            n_learned = n_rare + most_rows(member, n_rows - n_rare)
            size = Size(n_learned, n_rare, views.encoded(member.view).shape[1])
            return costs.foretell(member, size, int(rows.fold.max()) + 1) or 0.0

        if sum(foretold(member) for member in members) <= budget.left:
            return rows
        rows, first = rows.in_fewer_folds(), members[0]
        share = first.share / sum(member.share for member in members)
        n_majority = affordable_rows(
            costs,
            first,
            views.encoded(first.view).shape[1],
            n_rare,
            n_rows - n_rare,
            int(rows.fold.max()) + 1,
            max(_FIRST_PART, share) * budget.left,
        )
        if n_majority >= most_rows(first, n_rows - n_rare):
            return rows
        return rows.thinned(n_majority, self._seed())

    def _run(self, race: "Race", members: Sequence[Member]) -> None:
        """Members in turn; Ctrl-C ends it."""
        self.interrupted_ = False
        try:
            race.run(members)
        except KeyboardInterrupt:
            if not race.candidates:
                raise
            self.interrupted_ = True
            learned = list(dict.fromkeys(name for name, _ in race.candidates))
            warn(
                f"interrupted: the model is made of what was learned, {', '.join(learned)}.",
                finding=Finding("interrupted", {"learned": learned}),
            )

    def _combined(self, race: "Race", objective: Scoring) -> "Combined":
        from rareclass.ensemble.combined import combine

        candidates = list(race.candidates.values())
        return combine(candidates, race.held_out, objective, self.compact, self._seed())

    def _judge(self, race: "Race", rows: TrainingRows, objective: Scoring) -> None:
        """What the model is worth on new rows, and its threshold."""
        from rareclass.ensemble.combined import cross_fitted_log_rates

        held_out, tested = race.held_out, race.held_out.tested
        log_rates = cross_fitted_log_rates(
            list(race.candidates.values()),
            held_out,
            race.views.fold,
            objective,
            self.compact,
            self._seed(),
        )
        scores, y = -log_rates / _LN_10, held_out.is_rare[tested]
        weight = held_out.tested_weight
        self.held_out_ = {"row": rows.number[tested], "rare": y, "score": scores}
        if weight is not None:
            self.held_out_["weight"] = weight
        self.held_out_score_ = held_out.measure(objective, scores, tested)
        self.calibration_ = learn_calibration(y, scores, weight)
        self.offset_ = (
            float(balanced_accuracy_threshold(y, scores, weight))
            if y.any()
            else float(scores.max())
        )

    def _keep(self, race: "Race", combined: "Combined", members: Sequence[Member]) -> None:
        """What scoring needs, and what was left undone."""
        views = race.views
        self.members_ = combined.members()
        self.scale_ = combined.scale
        self.statistics_ = views.statistics
        self.views_ = {each.view: views.views[each.view] for each in self.members_}
        learned = {name for name, _ in race.candidates}
        for name, error in race.failed.items():
            warn(
                f"{name} is left out, as it failed: {type(error).__name__}: {error}",
                finding=Finding("member failed", {"member": name, "error": str(error)}),
            )
        missing = self.without_time_ = dict(race.without_time)
        if missing and len(learned) == 1:
            left_out = [member.name for member in members if member.name not in learned]
            warn(
                f"time_budget={self.time_budget:g} was enough for {next(iter(learned))} alone, "
                f"not for {', '.join(left_out)}: allow more seconds.",
                finding=Finding("one member", {"left out": left_out}, {"time_budget": "larger"}),
            )

    def _describe(
        self, race: "Race", combined: "Combined", objective: Scoring, budget: Budget
    ) -> None:
        """Leaderboard and importances, of held-out rows."""
        from rareclass.ensemble.giveaway import warn_of_giveaways
        from rareclass.ensemble.importances import permutation_importances
        from rareclass.ensemble.leaderboard import leaderboard
        from rareclass.ensemble.nearby_columns import warn_of_nearby_columns

        views, held_out = race.views, race.held_out
        y = views.is_rare[held_out.tested]
        self.leaderboard_ = leaderboard(combined, y, held_out.tested_weight)
        warn_of_giveaways(views)
        warn_of_nearby_columns(views.statistics)
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
                    held_out,
                    in_use,
                    objective,
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


def _threads(n_jobs: int | None, n_rows: int) -> int:
    """Threads to learn by: few rows are learned sooner than work is handed to a second one."""
    n_threads = count_threads(n_jobs)
    return 1 if n_rows < _ONE_THREAD_ROWS else n_threads


def _is_of_use(member: Member, views: "TrainingViews") -> bool:
    """Whether there is anything for a member to see, and rows enough for it to be any better."""
    if views.table.n_rows < member.least_rows:
        return False
    # A view of indicators holds nothing of its own where there are no categories.
    return member.view != "indicators" or bool(views.statistics.category_names_)
