"""RankRC, RankSVM and RankRCCV: kernel AUC ranking as scikit-learn classifiers.

RankRCCV is the paper's selection of lam by cross-validation, and of the width with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rareclass.errors import ErrorKind
from rareclass.estimators.estimator import RankScorer, learned, read_features, same_columns
from rareclass.estimators.search import SCORINGS
from rareclass.kernels.expansion import block_rows
from rareclass.kernels.kernels import DistanceKernel, FeatureScaled, Kernel, Matrix, squared_norms
from rareclass.labels.spelling import plain
from rareclass.labels.two_classes import Labels, RowNumbers, read_labels
from rareclass.machine import one_blas_thread
from rareclass.metrics import roc_auc
from rareclass.parameters import check_number
from rareclass.ranking.losses import SmoothedHinge, make_loss
from rareclass.ranking.machine import KernelMachine
from rareclass.ranking.ranking_data import MOST_AT_ONCE, PreparedRanking
from rareclass.ranking.search import KernelSearch
from rareclass.ranking.solve import LearnedMachine, fit_path
from rareclass.ranking.targets import TwoClasses
from rareclass.rows import Block, LabelledRows, rows_of
from rareclass.rows.source import equal_rows, stacked
from rareclass.theory import subset_bound

_ROUNDING = 1e-9


@dataclass(eq=False, repr=False)
class RankRC(RankScorer, KernelMachine):
    r"""Kernel ranking machine that maximises the AUC, carried by the rare rows.

    .. math::

        \min_\beta \; \frac{1}{W_+ W_-} \sum_{i \in P} \sum_{j \in N} w_i w_j \,
        \ell\bigl(f(x_i) - f(x_j)\bigr) + \frac{\lambda}{2} \beta' K_{RR} \beta,
        \qquad f(x) = \sum_{r \in R} \beta_r k(x_r, x)

    P are the rare rows and N the majority rows with weights w (sums :math:`W_+, W_-`), R the
    landmarks (by default R = P), l the smoothed hinge.

    Parameters
    ----------
    kernel : {"gaussian", "laplace", "linear", "polynomial"}, Kernel or callable
        Similarity of two rows. A callable takes two matrices of rows and returns the matrix of
        similarities; it must be symmetric and positive semi-definite.
    width : "mean" or float, default="mean"
        Sigma of the kernel in the units of the features; larger is smoother. "mean" is the
        root mean squared distance between two rows. Standardise the features first.
    lam : float, default=2**-8
        Strength of the regulariser, above 0. Larger is smoother; see `RankRCCV` for choosing.
    landmarks : {"rare", "all", "random"}, (str, int), int or array, default="rare"
        Rows whose kernel functions carry the model. "rare" is RankRC; ("rare", k) takes at most
        k of the rare rows, spread out by k-means++, and ("rare", k, "pivoted_cholesky") those that
        span the others best under the kernel, for thousands of rare rows, all of which stay in the
        loss; ("rare+majority", k) adds k majority rows drawn at random, for a handful of rare rows.
        "all" is kernel RankSVM; "random" is as many rows drawn from all as there are rare ones; an
        integer is that many; an array holds row numbers, or points as a matrix.
    loss : str, PairLoss or LabellingLoss, default="smoothed_hinge"
        "smoothed_hinge" and "squared_hinge" are losses of the score difference of a pair;
        "pnorm_push" (`PNormPush`, "power") pushes down majority rows that stand above many rare
        ones. "f1", "break_even" and "precision_at_k" (`PrecisionAtK`, "k") are upper bounds of one
        minus these measures (see Notes). The classes are in `rareclass.ranking.losses`.
    eps : float, default=0.5
        Half the width of the quadratic part of the loss, in (0, 0.5]. Smaller is nearer to the
        hinge.
    loss_params : dict or None, default=None
        Further parameters of a loss given by name, such as ``{"power": 4}``.
    penalty : {"l2", "l1"}, default="l2"
        "l2" is the formula above. With "l1" the regulariser is
        :math:`\lambda \sum_r k(x_r, x_r)^{1/2} |\beta_r|`: most landmarks drop out, the more the
        larger lam, and scoring costs as much less.
    feature_scaling : {None, "learned"}, default=None
        "learned" finds a scale for every feature inside a kernel given by name, zero for those that
        do not help to rank, by cross-validation on at most 500 rare and 5,000 other distinct rows.
        It does not depend on `lam` or `loss`. See ``feature_scales_``.
    tol : float or "auto", default="auto"
        Wanted norm of the gradient, relative to its norm at zero; with "l1" the largest violation
        of the conditions of the minimum, relative to the slope at zero; with "f1", "break_even" and
        "precision_at_k" the gap to a lower bound of the objective, relative to it.
        "auto" is 1e-6, for the last three 1e-3, and with "l2" beyond 20,000 majority rows 1e-3,
        which changes the AUC on new rows in the fifth digit. Beyond 100,000 majority rows "auto"
        sums over so many of them that their standard error is a quarter of that of the rare rows;
        parts of the rows tell whether it is reached, and `offset_`.
    max_iter : int, default=200
        Most Newton iterations, or cutting planes.
    memory : str or int, default="2GiB"
        Bytes that fit may hold. Kernel blocks that do not fit are worked out again in each pass:
        slower, with the same result. Three matrices of landmarks and the rare rows' kernel must
        fit, or fit refuses.
    kernel_dtype : {"auto", "float32", "float64"}, default="auto"
        Type of the kernel blocks of float64 rows. "auto" is float32 beyond 100,000 rows, for half
        the time and memory; scores move by about 1e-6. Rows whose values float32 would round by
        more than 1e-4 of `width` stay in float64. Sums are in float64 in any case.
    n_jobs : int or None, default=None
        Threads. None and -1 mean all cores. The result does not depend on it.
    random_state : int, RandomState or None
        For landmarks that are drawn; None draws others each time.
    pos_label : label or None, default=None
        The rare class; None means the label with fewer rows of weight above 0.
    verbose : bool or "auto", default="auto"
        Progress on standard error; "auto" when that is a terminal.

    Attributes
    ----------
    classes_, pos_label_ : ndarray of shape (2,), label
        The labels, sorted; the rare one.
    landmarks_ : ndarray or CSR of shape (n_landmarks, n_features)
        The distinct rows that carry the model, in the units of X. With "l1" those that dropped out
        are left out here, in ``landmark_rows_``, ``dual_coef_`` and ``whitener_``.
    n_landmarks_ : int
        Landmarks with a coefficient that is not zero: what a row's score costs.
    landmark_rows_ : ndarray of int or None
        A training row for each; None when points were given.
    dual_coef_ : ndarray of shape (n_landmarks,)
        beta.
    whitener_ : ndarray of shape (n_landmarks, rank)
        What `transform` multiplies the kernel by.
    width_ : float
        Sigma.
    feature_scales_ : ndarray of shape (n_features,) or None
        What every feature is multiplied by inside the kernel, with ``feature_scaling="learned"``:
        0 drops it, larger looks at it more closely. They keep the mean squared distance of rows.
        All are 1 where none were better on held-out rows.
    offset_ : float
        Score above which a row is called rare: the best balanced accuracy on the training rows,
        which is optimistic where rare rows are landmarks; choose it on held-out rows where it
        matters. With "f1" it is learned with the scores; with "break_even" as many training rows
        are above it as are rare, with "precision_at_k" k.
    objective_, optimality_ : float
        The minimum found, and what `tol` is about there.
    duality_gap_ : float
        With "l1": no model has an objective lower than ``objective_`` by more than this.
    n_iter_, status_ : int, str
        Newton iterations; "converged", "stopped at rounding error" or "reached max_iter".
    history_ : list of Step
        (iteration, objective, optimality, step, passes, in_memory, foreseen) after each iteration:
        passes counts readings of the majority, a part of the rows by its share; in_memory is the
        share of the kernel that fits in `memory`; foreseen is true where parts of the rows tell
        objective and optimality.

    Raises
    ------
    ValueError
        On one class or more than two, missing or infinite values (naming row and column), or
        parameters outside their range.

    Notes
    -----
    Time O(rows x landmarks) a pass of the majority, plus O(landmarks^3) once. On many rows the
    solver starts from a part of them and takes its steps from the part's curvature, which leaves a
    handful of passes. Memory: `memory`, up to about 200 MB for a preconditioner, and a few numbers
    a row. Threads and memory change scores by less than 1e-10 in float64, and by the rounding of
    the kernel, 1e-4 or less, in float32.

    "f1", "break_even" and "precision_at_k" are solved by cutting planes; see `F1`, `BreakEven` and
    `PrecisionAtK`. The objective is at least one minus the measure on the training rows. Each
    cutting plane reads the majority once, and sorts a score of every row. Weights are copies;
    "precision_at_k" with a k takes equal ones only.

    References
    ----------
    .. [1] Tayal, Coleman, Li, "RankRC: Large-Scale Nonlinear Rare Class Ranking", IEEE TKDE
       27(12), 2015: problem (13); (11) for other landmarks; (6) for all of them; section 7.2 names
       losses of F1 and of the break-even point.
    .. [2] Joachims, "A support vector method for multivariate performance measures", ICML 2005.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(500, weights=[0.95], random_state=0)
    >>> model = RankRC(lam=0.01).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    kernel: Any = "gaussian"
    width: Any = "mean"
    lam: float = 2**-8
    landmarks: Any = "rare"
    pos_label: Any = field(default=None, kw_only=True)

    def _read_target(self, y: Any, sample_weight: Any, n_rows: int) -> TwoClasses:
        return TwoClasses(read_labels(y, sample_weight, self.pos_label, n_rows))

    def _keep(self, prepared: PreparedRanking, learned: LearnedMachine) -> Self:
        self.offset_ = learned.threshold
        labels, chosen = prepared.data.target.labels, prepared.landmarks.rows
        # Rows that equal a landmark without having been chosen count as outside: finding them would
        # take a pass, and counting too many keeps a bound a bound.
        self._outside = (1.0, 1.0)  # points were given
        if chosen is not None:
            self._outside = (
                _share_outside(labels.rare, labels.rare_weight, chosen),
                _share_outside(labels.majority, labels.majority_weight, chosen),
            )
        return super()._keep(prepared, learned)

    def stability_bound(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, kappa: float | None = None
    ) -> float:
        r"""Bound the distance of a score from the one that all rows as landmarks would give.

        Corollary 4 of the bounds paper: for every x with :math:`k(x, x) \le \kappa`, :math:`|f_R(x)
        - f(x)|` is at most what this returns, f being the `RankSVM` of the same parameters and
        :math:`f_R` this model, both solved exactly. See `rareclass.theory.subset_bound`. It is for
        the worst of all data and grows as 1 / lam: scores themselves are at most 2 kappa / lam. Use
        it to compare choices of landmarks and lam.

        Parameters
        ----------
        X, y, sample_weight
            The training rows, as in `fit`, for a tighter bound, in one pass: it takes how much of
            each row the landmarks cannot express. Without them every row that is no landmark counts
            in full.
        kappa : float or None, default=None
            Largest k(x, x) of the rows that are asked about, and of the training rows. None is
            that of the training rows: 1 for the Gaussian and the Laplace kernel.

        Raises
        ------
        ValueError
            When `penalty` is not "l2", the loss is not the smoothed hinge, whose slope is at most
            1, or kappa is needed.

        >>> import numpy as np
        >>> X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) < 5
        >>> model = RankRC(lam=0.5).fit(X, y)
        >>> model.stability_bound(), model.stability_bound(X, y) < 4.0
        (4.0, True)
        """
        check_is_fitted(self)
        if self.penalty != "l2":
            raise ErrorKind.COMBINATION.error(
                f"penalty={self.penalty!r}: the bound is about the penalty 'l2'. Refit with "
                "penalty='l2' and landmarks=model.landmark_rows_."
            )
        if not isinstance(make_loss(self.loss, self.eps, self.loss_params), SmoothedHinge):
            raise ErrorKind.UNSUPPORTED.error(
                f"loss={self.loss!r}: the bound is about losses of single pairs with "
                "slopes of at most 1.",
                "Use loss='smoothed_hinge', or give the slope of yours to "
                "rareclass.theory.subset_bound.",
                value=self.loss,
            )
        expansion = self._expansion()
        if X is None:
            if y is not None or sample_weight is not None:
                raise ErrorKind.SETTING.error("X is missing: pass the rows with their labels.")
            kernel = expansion.kernel
            plain_kernel = kernel.kernel if isinstance(kernel, FeatureScaled) else kernel
            if not kappa and not isinstance(plain_kernel, DistanceKernel):
                raise ErrorKind.SETTING.error(
                    f"the largest k(x, x) of the kernel {type(kernel).__name__} depends on the "
                    "rows: pass the training rows, X and y, or kappa=."
                )
            return float(subset_bound(*self._outside, self.lam, kappa=kappa or 1.0))
        if isinstance(X, LabelledRows) and y is None:
            y, sample_weight = X.y, X.sample_weight
        source = read_features(self, X, reset=False, squares=True)
        labels = read_labels(y, sample_weight, plain(self.pos_label_), source.n_rows)
        rows = rows_of(
            source,
            block_rows=block_rows(expansion.n_landmarks, np.dtype(np.float64)),
            n_jobs=self.n_jobs,
        )
        found = rows.map(_residuals, expansion.kernel, expansion.landmarks, self.whitener_)
        return _bound_on_rows(found, labels, self.lam, kappa)


def _bound_on_rows(found: np.ndarray, labels: Labels, lam: float, kappa: float | None) -> float:
    """Bound from the `_residuals` of all rows: how much of each the landmarks cannot express."""
    rare = np.average(found[labels.rare], axis=0, weights=labels.rare_weight)
    rest = np.average(found[labels.majority], axis=0, weights=labels.majority_weight)
    largest = float(found[np.concatenate([labels.rare, labels.majority]), 2].max())
    if kappa is not None and kappa < largest * (1.0 - _ROUNDING):
        raise ErrorKind.SETTING.error(f"kappa={kappa!r} is below the rows' k(x, x), {largest:g}.")
    kappa = max(kappa or 0.0, largest)
    if kappa == 0.0:
        return 0.0  # every score is 0
    # Both are bounds. Where nearly all rows are landmarks the residuals are rounding errors,
    # whose fourth root is large.
    by_residuals = subset_bound(rare[0], rest[0], lam=lam, kappa=kappa, residuals=True)
    return float(min(by_residuals, subset_bound(rare[1], rest[1], lam=lam, kappa=kappa)))


def _residuals(block: Block, kernel: Kernel, points: Matrix, whitener: np.ndarray) -> np.ndarray:
    """Columns ||phi(x) - phi_R(x)||, 1 where a row equals no landmark, and k(x, x)."""
    group = equal_rows(stacked([points, block.X]))[1]
    outside = ~np.isin(group[points.shape[0] :], group[: points.shape[0]])
    X, Z = (A.astype(np.float64, copy=False) for A in (block.X, points))
    squares = np.asarray(kernel.diag(X), dtype=np.float64)
    features = kernel.block(X, Z) @ whitener
    left = np.maximum(squares - squared_norms(features), 0.0)
    return np.column_stack([outside * np.sqrt(left), outside, squares])


def _share_outside(rows: RowNumbers, weight: np.ndarray | None, chosen: np.ndarray) -> float:
    """Share of the weight of increasing row numbers that are not chosen; O(chosen log rows)."""
    chosen = np.unique(chosen[chosen <= rows[-1]])
    place = rows.searchsorted(chosen)
    place = place[rows[place] == chosen]
    if weight is None:
        return (len(rows) - len(place)) / len(rows)
    return float((weight.sum() - weight[place].sum()) / weight.sum())


@dataclass(eq=False, repr=False)
class RankSVM(RankRC):
    """Kernel RankSVM: `RankRC` with every training row as a landmark, problem (6).

    Time and memory grow with the square of the rows, and the factorisation with their cube:
    for thousands of rows. It is what RankRC approximates.

    Parameters, attributes and errors are those of `RankRC`.

    Examples
    --------
    >>> RankSVM().landmarks
    'all'
    """

    landmarks: Any = "all"


def rankrc_path(
    X: Any, y: Any, lams: Sequence[float], sample_weight: Any = None, **parameters: Any
) -> list[RankRC]:
    """A fitted `RankRC` for each lam, in their order, at little more than the price of one.

    On few rows each solution starts the next; on many, the lams share every pass of the rows.
    ``X, y, sample_weight`` are those of `RankRC.fit`; for rows on disk ``rows, rows.y`` and
    ``rows.sample_weight``. `parameters` are those of `RankRC` but lam.

    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(200, weights=[0.9], random_state=0)
    >>> [model.lam for model in rankrc_path(X, y, [1.0, 0.1])]
    [1.0, 0.1]
    """
    models = [RankRC(lam=lam, **parameters) for lam in lams]
    fit_along_lam(models, X, y, sample_weight)
    return models


def fit_along_lam(
    models: Sequence[KernelMachine], X: Any, y: Any, sample_weight: Any = None
) -> None:
    """Fit machines that differ in lam alone over one kernel; see `rankrc_path`."""
    if not models:
        return
    first, lams = models[0], [model.lam for model in models]
    first._check_parameters(lams)
    # Where parts of the rows foresee the end, all lams in step make few passes.
    in_few_passes = first.penalty == "l2" and first.tol == "auto"
    several = len(lams) > (MOST_AT_ONCE if in_few_passes else 1)
    with one_blas_thread():
        prepared = first._prepare(X, y, sample_weight, several)
        for model in models[1:]:
            same_columns(model, first)
        machines = fit_path(prepared, lams, first)
    for model, machine in zip(models, machines, strict=True):
        model._keep(prepared, machine)


@dataclass(eq=False, repr=False)
class RankRCCV(RankScorer, KernelSearch):
    """`RankRC` with lam chosen by cross-validation.

    One kernel serves all folds and lams of a width, which share the passes of the rows. In a fold
    the held-out rows have no weight and held-out rare rows are no landmarks.

    Parameters
    ----------
    lams : sequence of float or None, default=None
        Regularisations to try. None is the paper's grid, 2**10, 2**8, ..., 2**-20; with
        ``penalty="l1"`` it begins where the first landmark comes in, as the data have it:
        :math:`\\lambda_{\\max} 2^{-k/2}` for k = 1/32, 1/16, ..., 1, 2, 3, ..., 32.
    cv : int, splitter or iterable of (train, test), default=10
        Folds. An integer makes stratified, shuffled folds, fewer when there are fewer rare
        rows, so that every fold holds some.
    scoring : {"roc_auc", "average_precision"} or callable, default="roc_auc"
        What to maximise; a callable takes (y, scores, sample_weight) with y true for rare rows.
        Fold means decide; among equals the widest kernel, and the largest lam.
    equal_within : float, default=0.002
        With "roc_auc", areas that are no further below the best are as good as equal, and of them
        the best average precision decides: rare rows that are nearly all first tell models apart
        by little else. 0 takes the largest area, as the paper does.
    refit : bool, default=True
        Fit on all rows with the best lam afterwards, which predicting needs.
    max_landmarks : int or None, default=None
        With ``penalty="l1"``: only lams whose model of all rows uses at most so many landmarks,
        and one at least, are tried. Fewer score faster, and too few rank worse.
    widths : sequence of float or None, default=None
        Widths of the kernel to choose from together with lam, as multiples of `width`, such as
        ``[0.5, 0.7, 1, 1.4]``. Each costs a kernel and its folds and lams.
    search_rows : int or None, default=None
        At most so many rows choose, and the best model is fitted on all: the rare rows, up to
        half as many, and majority rows drawn to fill up, with weights that make up for it. None:
        all rows choose. On many rows some 20,000 are nearly as good a judge, at a small part of the
        price; with them lam comes out a little larger than all rows would have it. Their models
        are found to a `tol` of 1e-2 where that is "auto".
    kernel, width, landmarks, loss, eps, loss_params, penalty, feature_scaling, tol, max_iter, \
memory, kernel_dtype, n_jobs, random_state, pos_label, verbose
        As in `RankRC`; `random_state` also shuffles the folds. ``width="mean"`` is taken over all
        rows.

    Attributes
    ----------
    best_lam_, best_width_ : float
        The best lam, and sigma: a multiple of the width of all rows where `widths` are given.
    best_score_ : float
        Mean score over the folds of the best. It is chosen from many, so a little high.
    best_estimator_, best_index_, n_splits_
        The model of all rows, when `refit`; its position in `cv_results_`; number of folds.
    cv_results_ : dict of ndarray
        ``lam``, ``width``, ``split{k}_test_score``, ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``, with "roc_auc" and `equal_within` above 0
        ``mean_test_average_precision``, ``n_stopped_short`` (folds whose solver did),
        ``mean_n_iter``, ``mean_passes``, ``mean_n_landmarks`` (in use, over the folds), and with
        `max_landmarks` ``n_landmarks`` (in use by the model of all rows), one entry for each width
        and lam.
    offset_ : float
        Score above which a row is called rare: the best balanced accuracy over all rows, each
        scored by the model of the fold that held it out; with "f1" the best F1, with "break_even"
        as many rows as are rare, with "precision_at_k" k.
    calibration_ : Calibration
        From these scores to the probabilities of `predict_proba`.
    feature_scales_ : ndarray of shape (n_features,) or None
        Learned on all rows; each fold learns scales of its own from its training rows.

    Notes
    -----
    Section 6 of the paper. Time: folds x lams solutions over one kernel of rows x landmarks; a pass
    of the rows serves up to 16 of them at once, and held-out scores of all folds and lams take one
    pass together. A fold without a rare or a majority row is an error.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, weights=[0.9], random_state=0)
    >>> model = RankRCCV(lams=[1.0, 0.01], cv=3).fit(X, y)
    >>> model.best_lam_ in (1.0, 0.01)
    True

    The width, too, chosen on 200 of the rows:

    >>> model = RankRCCV(lams=[1.0, 0.01], widths=[0.5, 1.0], search_rows=200, cv=3).fit(X, y)
    >>> model.best_width_ == model.best_estimator_.width_
    True

    At most three landmarks:

    >>> sparse = RankRCCV(penalty="l1", max_landmarks=3, cv=3).fit(X, y)
    >>> sparse.best_estimator_.n_landmarks_ <= 3
    True
    """

    _machine = RankRC
    _scorings = SCORINGS
    _calibrates = True
    calibration_ = learned("_best.calibration_", "From held-out scores to probabilities.")
    offset_ = learned("_best.offset_", "Threshold of the score, learned on held-out scores.")

    lams: Sequence[float] | None = None
    cv: Any = 10
    scoring: Any = "roc_auc"
    equal_within: float = 0.002
    refit: bool = True
    max_landmarks: int | None = None
    widths: Sequence[float] | None = None
    search_rows: int | None = None
    kernel: Any = "gaussian"
    width: Any = "mean"
    landmarks: Any = "rare"
    pos_label: Any = field(default=None, kw_only=True)

    @property
    def _between_equals(self) -> tuple[str, float] | None:
        decides = self.equal_within > 0 and self.scoring in ("roc_auc", roc_auc)
        return ("average_precision", self.equal_within) if decides else None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("equal_within", self.equal_within, "a number of at least 0", ends="[)")
