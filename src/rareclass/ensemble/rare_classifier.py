"""RareClassifier: kernels, trees and linear models on one table, combined; nothing to tune."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rareclass.decide.threshold import decades_above, thresholds_in_step
from rareclass.decide.threshold_rule import default_thresholds
from rareclass.ensemble.combined_ranking import CombinedRanking
from rareclass.ensemble.training_rows import FitInput, FoldedRows, HeldOutRows, read_training_rows
from rareclass.ensemble.which_class import LN_10
from rareclass.errors import counted
from rareclass.estimators.estimator import FitsRows, RankScorer, learn_calibration
from rareclass.findings import Finding, FindingKind, warn
from rareclass.machine import announce, track
from rareclass.parameters import check_whole

# Modules that only `fit` needs are imported there: a model is opened and scores without them.
if TYPE_CHECKING:
    from rareclass.encoding.typed_table import TypedTable
    from rareclass.ensemble.combination import Combination
    from rareclass.ensemble.cross_fitting import CrossFitting, TimeLimit
    from rareclass.ensemble.members.member import Member
    from rareclass.ensemble.plan import Plan


@dataclass(eq=False, repr=False)
class RareClassifier(CombinedRanking, RankScorer, FitsRows, BaseEstimator):
    r"""Learns the rare class of any table, with nothing to tune.

    Kernel ranking machines, boosted trees, forests and linear models learn the same folds of the
    table. Each becomes, at every row, a false-positive rate :math:`F_k(x)`: the share of held-out
    majority rows that it scores as high. The model is the weighted mean of their logarithms,

    .. math:: g(x) = -\sum_k w_k \ln F_k(x), \qquad w_k \ge 0, \ \sum_k w_k = 1,

    with weights that are best on held-out rows, and many of them zero; a member that hurts is left
    out. Scores are :math:`-\log_{10}` of the false-positive rate of g itself: about one majority
    row in 1,000 scores 3 or more.

    Parameters
    ----------
    effort : {"quick", "standard", "thorough"}, default="standard"
        How much work `fit` is. Members, folds and, on long tables, the majority rows to learn from
        follow from it and from the shape of the table (`rareclass.ensemble.plan`): the same rows
        and `random_state` give the same model, bit for bit, on machines of one kind, with any
        `n_jobs` and whatever runs beside.
    time_budget : float or None, default=None
        Seconds that `fit` may take; None: as long as the plan takes. The plan is cut beforehand to
        what is likely to end in time, the strongest members first, and a member that runs past the
        end is stopped. The model then depends on the speed of the machine, and a warning says so
        and what was left out. Compiling, up to half a minute in the first run on a machine, comes
        on top.
    objective : {"average_precision", "roc_auc", "precision_at_k", "precision_at=100"} or callable
        Measure that weights maximise on held-out rows; "precision_at_k" is precision among as many
        rows as there are rare ones, "precision_at=100" among the first 100 held-out rows (any
        number).
        A callable takes (y, scores, sample_weight) with y true for rare rows.
    members : str or list, default="auto"
        "auto", "kernel" (this package's own methods), "trees", a member's name as `leaderboard_`
        has it, or a list of these and of `Member` objects. "auto" has CatBoost where it is
        installed. LightGBM learns the boosted trees where it is installed, else
        scikit-learn does.
    cv : "auto", int, splitter or iterable of (train, test), default="auto"
        Folds. An integer makes stratified, shuffled folds, fewer when there are fewer rare rows.
        "auto" is 5. From 30,000 rows on it is 3, or, with 1,000 rare rows, 2 of a tenth of the rows
        each, so that members learn from more of them. Every row is held out once at most.
    absolute_time : bool, default=False
        Learn from dates as moments as well. Without it they count by what recurs (hour, weekday,
        day, month, days between two dates): a clock only ever shows new moments.
    random_state : int or None, default=None
        Seeds folds, landmarks and trees; None is 0.
    n_jobs : int or None, default=None
        Threads; None is all cores. Fewer than 1,000 rows are learned by one, which is quicker.
    pos_label : label, list of labels or None, default=None
        The rare class; None is the label of fewer rows. Of more than two labels each is a rare
        class but the most frequent one, or but the one that a list of them leaves out: the model
        then ranks rows of any rare class above the rest, and says which class each is of.
    verbose : bool or "auto", default="auto"
        Show what is learned and what is left; "auto" where standard error is a terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels in order.
    pos_label_ : label or tuple of labels
        The rare class; a tuple of several rare classes, in order.
    which_class_ : WhichClass or None
        What tells several rare classes apart; None where one class is rare.
    offset_ : float
        Score above which a row is called rare: as many of the held-out rows as are rare, so that
        precision is recall there (`ThresholdRule.as_many_as_rare`).
    class_offsets_ : ndarray of shape (n_rare_classes,)
        Of several rare classes: probability of each, in the order of ``pos_label_``, above which
        `predict` calls a row that class. They call as many held-out rows as ``offset_`` does, and
        are in the ratio of the training rows of the classes to the power 3/4, so that classes of
        few rows have their part of them. Infinite for a class of which no row was held out.
    leaderboard_ : dict of ndarray
        One entry a member and setting, the best first: ``member``, ``setting``, ``objective``,
        ``roc_auc``, ``average_precision``, ``average_precision_low`` and ``_high`` (95 percent),
        ``seconds``, ``weight``; all on held-out rows. ``pandas.DataFrame(model.leaderboard_)``.
    held_out_ : dict of ndarray
        Scores of training rows by functions and weights that did not see them: ``row`` (its number
        in X), ``rare``, ``score`` and, where rows are weighted, thinned or equal, ``weight`` in
        units of `sample_weight`. They stand for new rows: for estimates, thresholds, calibration.
        ``pooled`` orders the majority rows of different folds more finely, on one scale. Of several
        rare classes also ``which`` (place of the row's class in ``pos_label_``, -1 for the rest)
        and ``class_probability`` (one column a rare class, were the row rare).
    calibration_ : Calibration
        Map from scores to probabilities, learned on ``held_out_``; None where no rare row was held
        out.
    held_out_score_ : float
        Objective of the scores in ``held_out_``, an estimate for new rows; NaN where no rare row
        was held out.
    n_splits_ : int
        Folds that rows were held out in.
    plan_ : Plan
        Effort, members, folds and rows, as planned before training (`rareclass.ensemble.plan`).
    without_time_ : list of str
        Members that `time_budget` left out or stopped.
    interrupted_ : bool
        Whether `rareclass fit` kept what was there at Ctrl-C; `fit` itself passes it on.
    feature_importances_ : ndarray of shape (n_features,)
        Loss of the objective when a column is shuffled among held-out rows; 0 for columns that are
        not learned from, NaN beyond the 100 columns that alone tell most; with a warning where
        no rare row was held out or training was interrupted.
    columns_ : list of Column
        Every column: its kind, what is done with it (`treatment`), and how it is read.
    members_ : list of LearnedMember
    n_features_in_, feature_names_in_
        The columns of the table.

    Raises
    ------
    InputError
        For a table that cannot be read, naming column, row and value.
    ValueError
        On one class, and parameters outside their range.
    MissingPackageError
        Where a member's package is not installed.

    Warns
    -----
    UserWarning
        Where a column alone gives the label away, rare rows of one value of a column stand close
        together in the table, an identifier is left out or learned value by value, the time limit
        cut the plan, a member failed, or `fit` was interrupted.
        `rareclass.findings.finding_of` gives what a warning says as data.

    Notes
    -----
    `fit`: the table is typed, its shape makes the plan, and all members learn the same folds. A
    table longer than the plan says is thinned in the majority, with weights that put it back.
    Held-out scores become false-positive rates, with weights by greedy selection, and in part equal
    ones; the same once more without each fold in turn gives scores of its rows that stand for new
    ones, and from them the threshold.

    Folds of trees and linear models run through joblib, also on a cluster
    (``joblib.parallel_config("dask")``).

    The functions that score new rows are the means of those of the folds: no member is learned
    again. `fit` passes Ctrl-C on; `rareclass fit` keeps the members that are there. Memory: the
    table in float64 a few times, and 1 GiB of kernel.

    Rows that are equal, label included, are one row of as much weight, which one fold holds out;
    not where rows recur: as many rare ones equal a majority row as equal rare rows only. Folds that
    `cv` lists are taken as they are.

    What labels say of words and codes is learned by each fold from the rows that it learns from,
    so that rows held out are to it what new rows are.

    A number beyond those of training counts as the nearest of them, a word never seen as the
    commonest one (or as a word of a single row, where training had such), so that no row is ranked
    first for being far.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, weights=[0.9], random_state=0)
    >>> model = RareClassifier(members=["logistic regression", "extra trees"]).fit(X, y)
    >>> bool(model.held_out_score_ > 0.5), model.predict(X[:3]).shape
    (True, (3,))
    """

    _calibrates = True
    _keeps_at_interrupt = False  # the command line does; a loop of somebody else is to end

    effort: str = "standard"
    time_budget: float | None = None
    objective: Any = "average_precision"
    members: Any = "auto"
    cv: Any = "auto"
    absolute_time: bool = False
    random_state: int | None = None
    n_jobs: int | None = None
    pos_label: Any = None
    verbose: bool | str = "auto"

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, time: Any = None
    ) -> Self:
        """Learn from a table.

        Parameters
        ----------
        X : pandas, polars, pyarrow or Dask table, or array of shape (n_rows, n_features)
            Numbers, truth values, strings, dates; cells may be missing. Of a Dask collection of
            more than 500,000 rows, all rare rows and a weighted draw of the others are learned.
        y : array-like of shape (n_rows,)
            Two labels of any type; or one frequent label and several rare ones. Texts that differ
            only by case, blanks or invisible characters are one label, and so are "1" and "1.0".
        sample_weight : array-like of shape (n_rows,) or None
            Weights at or above 0: whole numbers count a row so many times, 0 leaves it out. Of
            weights that are not all whole only the ratios count.
        groups : array-like of shape (n_rows,) or None
            Rows of one group, such as a customer, are in the same fold.
        time : array-like of shape (n_rows,) or None
            Folds are stretches of time, so that held-out rows are not neighbours of others. Dates,
            text such as "2026-03-01T12:00", or numbers.
        """
        from rareclass.ensemble.combination import as_objective, combine, cross_fitted_log_rates
        from rareclass.ensemble.cross_fitting import TimeLimit
        from rareclass.ensemble.plan import make_members, threads_for
        from rareclass.ensemble.which_class import learn_classes

        limit = TimeLimit.from_now(self.time_budget)
        seed = 0 if self.random_state is None else self.random_state
        check_whole("random_state", seed, "a whole number or None", 0)
        seed = int(seed)
        objective, members = as_objective(self.objective), make_members(self.members, self.effort)
        rows = self._read(FitInput(X, y, sample_weight, groups, time), seed)
        n_threads = threads_for(rows.table.n_rows, self.n_jobs)
        self.plan_ = self._plan(rows, members, n_threads)
        rows = rows.thinned(self.plan_.n_rows, seed)
        held_out = HeldOutRows.of(rows, seed, objective)
        fitted = self._cross_fit(rows, held_out, n_threads, limit)
        views = fitted.views
        combination = combine(fitted.candidates, held_out)
        log_rates = cross_fitted_log_rates(fitted.candidates, held_out)
        self.members_ = combination.learned_members()
        self.scale_, self.statistics_ = combination.scale, views.statistics
        self.which_class_ = None
        if self.has_several:
            self.which_class_, probability = learn_classes(fitted, len(self.pos_label_))
        used = {each.view for members in self._ensembles() for each in members}
        self.views_ = {name: view for name, view in views.views.items() if name in used}
        pooled = combination.rarity(lambda each: each.held_out[held_out.tested])
        scores = -log_rates / LN_10
        self.held_out_score_ = held_out.measure(scores)
        self.n_splits_ = views.rows.n_folds
        is_rare = held_out.is_rare[held_out.tested]
        weight = held_out.tested_weight
        self.held_out_ = {
            "row": views.rows.number[held_out.tested],
            "rare": is_rare,
            "score": scores,
            "pooled": pooled / LN_10,
            **({} if weight is None else {"weight": weight * views.rows.unit}),
        }
        self.calibration_ = learn_calibration(is_rare, scores, weight)
        default = default_thresholds(is_rare, scores, weight)
        self.offset_ = default[0].threshold if default else float(scores.max())
        if views.rows.which is not None:
            self.held_out_["which"] = views.rows.which[held_out.tested]
            self.held_out_["class_probability"] = probability
            self.class_offsets_ = self._class_offsets(views.rows, weight)
        if views.rows.merged is not None:
            self.held_out_ = views.rows.merged.spread(self.held_out_)
        self._describe(fitted, combination)
        return self

    def _predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if not self.has_several:
            return super()._predict_proba(X)
        assert self.calibration_ is not None
        scores, which = self.score_and_classes(X)
        rare = self.calibration_(scores)
        return self._by_classes(1.0 - rare, rare[:, None] * which)

    _predict_proba.__name__ = "predict_proba"

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance from the threshold; of several rare classes a column a class.

        With two classes above 0 where ``classes_[1]`` is predicted, see `RankScorer`. With several
        rare classes of shape (n_rows, n_classes): 0 for the rest, and for rare class k
        :math:`log_{10} P(k | x) / t_k` with t_k of ``class_offsets_``, so that the greatest is
        predicted. P is at the share of rare rows of training.
        """
        check_is_fitted(self)
        if not self.has_several:
            return super().decision_function(X)
        scores, which = self.score_and_classes(X)
        known = self.calibration_
        rare = np.zeros(len(scores)) if known is None else known.at()(scores)
        decades = decades_above(rare[:, None] * which, self.class_offsets_)
        return self._by_classes(np.zeros(len(scores)), decades)

    def predict(self, X: Any) -> np.ndarray:
        """The label of every row: the rare one where its score is above ``offset_``.

        Of several rare classes the one whose probability is the greatest multiple of its threshold
        in ``class_offsets_``, where it is above it; else the frequent one.
        """
        check_is_fitted(self)
        if not self.has_several:
            return super().predict(X)
        return self.classes_[self.decision_function(X).argmax(axis=1)]

    def _by_classes(self, rest: np.ndarray, rare: np.ndarray) -> np.ndarray:
        """Return columns in the order of ``classes_``, the frequent class among them."""
        labels = list(self.pos_label_)
        answer = np.empty((len(rest), len(self.classes_)))
        for column, label in enumerate(self.classes_.tolist()):
            answer[:, column] = rare[:, labels.index(label)] if label in labels else rest
        return answer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    # -- inside ------------------------------------------------------------------------------

    def _class_offsets(self, rows: FoldedRows, weight: np.ndarray | None) -> np.ndarray:
        """Return class thresholds that call as many held-out rows as ``offset_`` does."""
        n_classes, scores, which = len(self.pos_label_), self.held_out_["score"], rows.which
        if self.calibration_ is None or which is None:
            return np.full(n_classes, np.inf)
        rare = np.flatnonzero(which >= 0)
        copies = None if rows.weight is None else rows.weight[rare]
        n_rows = np.bincount(which[rare], copies, n_classes)
        probability = self.calibration_(scores)[:, None] * self.held_out_["class_probability"]
        is_above = scores > self.offset_
        return thresholds_in_step(probability, self.held_out_["which"], n_rows, is_above, weight)

    def _typed(self, X: Any) -> "TypedTable":
        check_is_fitted(self)
        return super()._typed(X)

    def _read(self, given: FitInput, seed: int) -> FoldedRows:
        """Read the rows to learn from; keep the labels and columns."""
        rows, labels = read_training_rows(given, self.cv, self.pos_label, seed)
        self.classes_, self.pos_label_ = labels.classes, labels.pos_label
        self.columns_ = rows.table.remembered
        self.n_features_in_ = len(self.columns_)
        self.__dict__.pop("feature_names_in_", None)
        if rows.table.has_names:
            names = [column.name for column in self.columns_]
            self.feature_names_in_ = np.array(names, dtype=object)
        return rows

    def _plan(self, rows: FoldedRows, members: "Sequence[Member]", n_threads: int) -> "Plan":
        """Make the plan for the rows; tell it where progress is shown."""
        from rareclass.ensemble.members.member import Size
        from rareclass.ensemble.plan import make_plan

        size = Size(rows.table.n_rows, int(rows.is_rare.sum()), len(rows.table.columns))
        plan = make_plan(self.effort, members, size, rows.n_folds, n_threads, self.time_budget)
        announce(plan.line, self.verbose)
        return plan

    def _cross_fit(
        self, rows: FoldedRows, held_out: HeldOutRows, n_threads: int, limit: "TimeLimit"
    ) -> "CrossFitting":
        """Learn the members of the plan; Ctrl-C or the time limit ends it early."""
        from rareclass.ensemble.cross_fitting import CrossFitting
        from rareclass.ensemble.identifiers import without_identifiers
        from rareclass.ensemble.training_rows import TrainingViews

        plan, begun = self.plan_, set[str]()
        with track("RareClassifier", len(plan.members), self.verbose) as advance:

            def report(name: str) -> None:
                advance(bool(begun), name)
                begun.add(name)

            views = TrainingViews(rows, self.absolute_time)
            views = without_identifiers(views, self.absolute_time, held_out.seed)
            fitted = CrossFitting(views, held_out, n_threads, limit, report)
            self.interrupted_ = False
            try:
                fitted.run(plan.members)
            except KeyboardInterrupt:
                if not (self._keeps_at_interrupt and fitted.candidates):
                    raise
                self.interrupted_ = True
        self._tell_of_members(fitted)
        return fitted

    def _tell_of_members(self, fitted: "CrossFitting") -> None:
        """Keep what was left out, and warn of it."""
        plan = self.plan_
        learned = list(dict.fromkeys(each.member.name for each in fitted.candidates))
        self.without_time_ = [*fitted.stopped, *plan.without_time]
        if self.interrupted_:
            warn(
                f"stopped by Ctrl-C: the model holds what was trained, {', '.join(learned)}.",
                finding=Finding(FindingKind.INTERRUPTED, {"learned": learned}),
            )
        for name, error in fitted.failed.items():
            warn(
                f"{name} is left out, as it failed: {type(error).__name__}: {error}",
                finding=Finding(FindingKind.MEMBER_FAILED, {"member": name, "error": str(error)}),
            )
        if self.without_time_ or plan.is_thinned_for_time:
            left_out = ", ".join(self.without_time_) or "majority rows"
            values = {"left out": self.without_time_, "members": len(learned), "rows": plan.n_rows}
            remedy = {"time_budget": "larger, or None"}
            warn(
                f"time_budget={self.time_budget:g} cut the plan to "
                f"{counted(len(learned), 'member')} and {plan.n_rows:,} rows, without {left_out}: "
                "the model depends on the speed of the machine.",
                finding=Finding(FindingKind.TIME_LIMIT, values, remedy),
            )

    def _describe(self, fitted: "CrossFitting", combination: "Combination") -> None:
        """Keep the leaderboard and the importances of columns, of held-out rows."""
        from rareclass.ensemble.identifiers import columns_by_value
        from rareclass.ensemble.importances import (
            leaderboard,
            permutation_importances,
            warn_of_columns,
        )

        views, held_out = fitted.views, fitted.held_out
        y = held_out.is_rare[held_out.tested]
        self.leaderboard_ = leaderboard(combination, y, held_out.tested_weight)
        warn_of_columns(views)
        self.columns_ = columns_by_value(views)
        losses = np.full(len(views.rows.table.columns), np.nan)
        if y.any():
            try:
                losses = permutation_importances(views, held_out, combination, fitted.n_jobs)
            except KeyboardInterrupt:
                if not self._keeps_at_interrupt:
                    raise
                self.interrupted_ = True
        if np.isnan(losses).all():
            why = "training was interrupted" if y.any() else "no rare row was held out"
            warn(
                f"feature_importances_ are not known (NaN): {why}.",
                finding=Finding(FindingKind.NO_IMPORTANCES, {"why": why}),
            )
        self.feature_importances_ = np.zeros(self.n_features_in_)
        used = [k for k, column in enumerate(self.columns_) if column.is_used]
        self.feature_importances_[used] = losses
