"""MIBC: rare rows one by one against a majority of which only the moments are known."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from rareclass.errors import ErrorKind, InputError
from rareclass.estimators.estimator import (
    FitsRows,
    RankScorer,
    finite_scores,
    learned,
    read_features,
    same_columns,
)
from rareclass.estimators.rankings import linear_scores
from rareclass.findings import warn
from rareclass.labels.partial_labels import StreamLabels
from rareclass.labels.spelling import plain
from rareclass.labels.two_classes import Labels
from rareclass.labels.weights import weight_of_each
from rareclass.machine import all_or_nothing, in_one_thread
from rareclass.moments.covariance import CovarianceModel
from rareclass.moments.moments import Moments, MomentSettings, merge, moments_of
from rareclass.moments.solution import (
    Hyperplane,
    MIBCParameters,
    check_memory,
    majority_weight,
    solve_path,
    warn_if_short,
    warn_of_ridge,
    weighted_labels,
)
from rareclass.parameters import seed_of
from rareclass.rows import rows_of


@dataclass(eq=False, repr=False)
class MIBC(MIBCParameters, RankScorer, FitsRows, BaseEstimator):
    r"""Moment-based imbalanced binary classifier: the majority is its mean and its covariance.

    .. math::

        \min_{w, \xi \ge 0} \; \tfrac12 w'\Sigma w + C \sum_i c_i \xi_i \quad \text{with} \quad
        (x_i - \mu)'w \ge 1 - \xi_i

    over the rare rows x_i with weights c_i; mu and Sigma are the mean and the covariance of the
    majority. Its hyperplane ``w.x = w.mu + 1`` has, of all that keep the rare rows on its far side,
    the best guarantee on how much of the majority stays on the near one, whatever the majority is
    distributed like. Once the moments are summed, the cost does not depend on the majority's rows.

    Parameters
    ----------
    C : float, default=1.0
        Price of a rare row on the wrong side, above 0. Larger keeps more rare rows right and
        guarantees less; ``np.inf`` keeps all of them (the projection of mu on their convex hull).
        See `MIBCCV`.
    covariance : {"full", "diagonal", "factor"}, default="full"
        Model of Sigma. "full": time d^3 once. "diagonal": variances alone, for texts and other wide
        compressed rows. "factor": a diagonal and `n_factors` factors.
    n_factors : int, default=50
        Factors of "factor".
    ridge : "auto" or float, default="auto"
        Added to each variance, as a multiple of the mean variance. "auto" is 0 for dense rows whose
        covariance has an inverse, what `moments.covariance.Full` says where it has none (with a
        warning), and 1 for the diagonal and factors of compressed rows.
    tol : float, default=1e-6
        Wanted relative duality gap.
    max_iter : int, default=1000
        Most passes over the rare rows.
    random_state : int, RandomState or None
        For the order of the passes, and the sketch of "factor": estimators to be merged need the
        same. None is 0.
    n_jobs : int or None, default=None
        Threads over blocks of rows; None and -1 are all cores. The result does not depend on it.
    pos_label : label or None, default=None
        The rare class; None means the label with fewer rows, and in `partial_fit`
        the label that sorts last.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        w. Solved for when first asked for after `partial_fit`.
    offset_, intercept_ : float
        Score above which a row is called rare (w . mu + 1, less a millionth, so that rare rows at
        the margin are), and its negative.
    dual_coef_ : ndarray of shape (n_rare,)
        alpha, from 0 to C c_i: rare rows with 0 are beyond the margin.
    specificity_bound_ : float
        kappa^2 / (1 + kappa^2) with kappa = (offset_ - w . mu) / sqrt(w' Sigma w), 0 where that is
        negative: at least this share of the majority is called majority, whatever its distribution
        with this mean and this covariance. For the training majority itself with "full"; the other
        models guarantee it as far as they are true.
    moments_ : Moments
        Of the majority, in the features' own units.
    rare_rows_, rare_weight_ : ndarray or CSR of shape (n_rare, n_features), ndarray
        The rare rows and their weights, as given.

    Raises
    ------
    ValueError
        On one class or more than two, missing or infinite values (naming row and column),
        parameters outside their range, a singular covariance with ``ridge=0``, and C=inf where the
        mean of the majority lies within the convex hull of the rare rows.

    Notes
    -----
    Time: one pass of the majority, O(d^2) a row for all but "diagonal" and "factor" (O(stored
    cells) and O(stored cells x n_factors)), then O(d^3), then O(n_rare d) a pass of the solver.
    Memory: d^2 numbers, or d times n_factors + 10, and the rare rows. Rows of a stream or of a file
    go through `partial_fit`, parts that are learned elsewhere through `merge`.

    On 17 tables of numbers the paper's form (full covariance, no ridge) ranks below a
    cost-sensitive linear SVM in the mean (p = 0.04): `MIBCCV` with ``ridges``, or kernel features
    in front, is level with it (docs/method/mibc.md has the figures).

    The guarantee is Chebyshev's and so a loose one: choose the threshold on held-out rows where it
    matters.

    References
    ----------
    .. [1] Grave, El Ghaoui, "Fast imbalanced binary classification: a moment-based approach", 2014:
       problem (3) by its dual (4).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(500, weights=[0.95], n_redundant=0, random_state=0)
    >>> model = MIBC(C=0.1).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), bool(model.duality_gap_ <= 1e-6)
    (True, True)
    """

    C: float = 1.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from all rows, as `RankRC.fit` takes them; what was learned before is lost."""
        model = self._covariance()
        source = read_features(self, X)
        labels = weighted_labels(y, sample_weight, self.pos_label, source.n_rows)
        self._begin(source.n_features, model)
        weight = majority_weight(labels, source.n_rows)
        moments = moments_of(source, model.wanted(self._seed), None, weight, self.n_jobs)
        return self._learned(model, labels, moments, source.take(labels.rare))

    @in_one_thread
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows: majority rows to the moments, rare ones to the examples.

        Parameters are those of `OnlineRanker.partial_fit`. The problem is solved when a weight is
        first asked for. The model is the same, to rounding error, however the rows are cut.
        """
        model = self._covariance()
        first = "moments_" not in vars(self)
        if first and "classes_" in vars(self):
            raise ErrorKind.UNSUPPORTED.error("the model has forgotten its rows.", "Fit again.")
        before = None if first else StreamLabels(self.classes_, self.pos_label_)
        labels = StreamLabels.of_call(classes, self.pos_label, before)
        source = read_features(self, X, reset=first)
        if first:
            self._begin(source.n_features, model)
            self.classes_, self.pos_label_ = labels
            none = np.empty(0, dtype=np.int64)
            self.moments_ = moments_of(source, model.wanted(self._seed), none)
            self.rare_rows_, self.rare_weight_ = source.take(none), np.empty(0)
        wanted = model.wanted(self._seed)
        _check_same_moments(self.moments_, wanted)
        sign, weight = labels.signs(y, source.n_rows), weight_of_each(sample_weight, source.n_rows)
        rare = np.flatnonzero((sign > 0) & (weight > 0.0))
        of_majority = None
        if len(rare) or sample_weight is not None:
            of_majority = np.where(sign < 0, weight, 0.0)
        more = moments_of(source, wanted, None, of_majority, self.n_jobs)
        self.moments_ = merge(self.moments_, more)
        self.rare_rows_ = _stacked(self.rare_rows_, source.take(rare))
        self.rare_weight_ = np.concatenate([self.rare_weight_, weight[rare]])
        self.__dict__.pop("_solved", None)
        return self

    @classmethod
    def merge(cls, a: "MIBC", b: "MIBC") -> "MIBC":
        """Return the model of the rows of two models together, exactly: parts can be learned apart.

        The models have the same parameters, columns and classes, and disjoint rows; they stay as
        they are.

        >>> a = MIBC().partial_fit([[0.0], [9.0]], [0, 1], classes=[0, 1])
        >>> b = MIBC().partial_fit([[1.0], [8.0]], [0, 1], classes=[0, 1])
        >>> MIBC.merge(a, b).moments_.mean.tolist()
        [0.5]
        """
        for model in (a, b):
            check_is_fitted(
                model,
                "moments_",
                msg="this %(name)s has no moments to merge: it was not fitted, or its rows were "
                "forgotten (forget_rows). Fit it again.",
            )
        _check_alike(a, b)
        together = clone(a)
        same_columns(together, a)
        together.classes_, together.pos_label_, together._seed = a.classes_, a.pos_label_, a._seed
        together.moments_ = merge(a.moments_, b.moments_)
        together.rare_rows_ = _stacked(a.rare_rows_, b.rare_rows_)
        together.rare_weight_ = np.concatenate([a.rare_weight_, b.rare_weight_])
        return together

    def forget_rows(self) -> Self:
        """Keep the hyperplane, and no moments and rare rows: nothing can be learned or merged."""
        self._solved = self._solution
        del self.moments_, self.rare_rows_, self.rare_weight_
        return self

    coef_ = learned("_solution.coef", "Weights w, shape (n_features,).")
    dual_coef_ = learned("_solution.dual_coef", "Multipliers alpha, shape (n_rare,).")
    duality_gap_ = learned("_solution.gap", "Relative duality gap of the solution.")
    n_iter_ = learned("_solution.n_iter", "Passes over the rare rows.")
    status_ = learned("_solution.status", "How the solver ended.")
    ridge_ = learned("_solution.ridge", "What was added to each variance, in units of variance.")

    @property
    def offset_(self) -> float:
        """Score above which a row is called rare."""
        return self._solution.offset

    @offset_.setter
    def offset_(self, value: float) -> None:
        self._solved = self._solution._replace(offset=float(value))

    @property
    def intercept_(self) -> float:
        """``-offset_``."""
        return -self.offset_

    @property
    def specificity_bound_(self) -> float:
        """Least share of the majority called majority."""
        return self._solution.specificity_bound()

    def score_samples(self, X: Any) -> np.ndarray:
        """Rarity score ``w . x`` of every row: higher is more like the rare class; shape (n_rows,).

        It is ``w . mu`` at the majority's mean, and 1 more where the rare rows' margin begins.
        """
        check_is_fitted(self, "classes_")
        solved = self._solution
        source = read_features(self, X, reset=False)
        return finite_scores(rows_of(source, n_jobs=self.n_jobs).map(linear_scores, solved.coef))

    def _begin(self, n_features: int, model: CovarianceModel) -> None:
        check_memory(n_features, model)
        for name in ("moments_", "rare_rows_", "rare_weight_", "_solved", "calibration_"):
            self.__dict__.pop(name, None)
        self._seed = seed_of(self.random_state)

    def _learned(
        self, model: CovarianceModel, labels: Labels, moments: Moments, rare_rows: Any
    ) -> Self:
        """Keep what a fit has summed, and solve."""
        self.classes_, self.pos_label_ = labels.classes, labels.pos_label
        self.moments_, self.rare_rows_ = moments, rare_rows
        self.rare_weight_ = labels.rare_weight
        self._solved = self._solve(model)
        return self

    def _covariance(self) -> CovarianceModel:
        return self._covariance_model([self.C], self.ridge)

    @property
    def _solution(self) -> Hyperplane:
        """Return the hyperplane, solved for now if rows came since the last solution."""
        if "_solved" in vars(self):
            return self._solved
        if "moments_" not in vars(self):
            raise NotFittedError("This MIBC instance is not fitted yet: call fit first.")
        self._solved = self._solve(self._covariance())
        if self.pos_label is None and self.rare_weight_.sum() > 1.001 * self.moments_.weight:
            warn(
                f"{plain(self.pos_label_)!r} counts as the rare class, because it sorts last, and "
                "has more rows than the other class. Pass pos_label= to name the rare class."
            )
        return self._solved

    def _solve(self, model: CovarianceModel) -> Hyperplane:
        if not len(self.rare_weight_):
            raise NotFittedError("No rare row was learned yet: there is nothing to find.")
        if not self.moments_.weight:
            raise NotFittedError("No majority row was learned yet: it has no mean and covariance.")
        fitted = model.model(self.moments_, sparse.issparse(self.rare_rows_))
        warn_of_ridge(vars(self).get("feature_names_in_"), fitted, self.moments_)
        mean, rare = self.moments_.mean, (self.rare_rows_, self.rare_weight_)
        path = solve_path(fitted, mean, *rare, [self.C], self.tol, self.max_iter, self._seed)
        warn_if_short(path, self.tol, self.max_iter)
        return path[0]


def _check_alike(a: MIBC, b: MIBC) -> None:
    """Refuse to merge models that differ in more than their rows, naming the difference."""
    for name, value in a.get_params().items():
        other = b.get_params()[name]
        if name not in ("n_jobs", "C", "tol", "max_iter") and value != other:
            raise _not_merged(f"{name}={value!r} and {name}={other!r}")
    for name, what in (("classes_", "classes"), ("feature_names_in_", "columns")):
        one, two = (np.asarray(vars(model).get(name, [])) for model in (a, b))
        if not np.array_equal(one, two):
            raise _not_merged(f"the {what} {one} and {two}")
    n, m = a.n_features_in_, b.n_features_in_
    if n != m:
        raise _not_merged(f"{n} and {m} features")
    rare, other = plain(a.pos_label_), plain(b.pos_label_)
    if rare != other:
        raise _not_merged(f"the rare classes {rare!r} and {other!r}")
    if not np.array_equal(a.moments_.probes, b.moments_.probes):
        remedy = "Pass the same number as random_state to both."
        raise _not_merged("different sketches", remedy)


def _not_merged(differences: str, remedy: str = "") -> InputError:
    return ErrorKind.COMBINATION.error(f"models with {differences} do not merge.", remedy)


def _check_same_moments(moments: Moments, wanted: MomentSettings) -> None:
    """Refuse a covariance parameter that was changed since the first rows."""
    kept = bool(moments.scatter.size), moments.sketch.shape[1]
    if kept != (wanted.scatter, min(wanted.n_probes, len(moments.mean))):
        raise ErrorKind.COMBINATION.error(
            "covariance= or n_factors= was changed: the moments that were summed so far are not "
            "those that it needs. Set it back, or start again with a clone."
        )


def _stacked(above: Any, below: Any) -> Any:
    """Stack rows in the form of those above; an empty part takes the form of the other."""
    if not above.shape[0]:
        return below
    if not below.shape[0]:
        return above
    if sparse.issparse(above):
        return sparse.vstack([above, below], format="csr")
    return np.vstack([above, below.toarray() if sparse.issparse(below) else below])
