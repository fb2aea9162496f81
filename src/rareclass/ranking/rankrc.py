"""RankRC and RankSVM: kernel AUC ranking as scikit-learn classifiers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rareclass.errors import ErrorKind, InputError
from rareclass.estimators.estimator import RankScorer, read_features, same_columns
from rareclass.kernels.expansion import block_rows
from rareclass.kernels.kernels import DistanceKernel, FeatureScaled, Kernel, Matrix, squared_norms
from rareclass.labels.spelling import plain
from rareclass.labels.two_classes import Labels, RowNumbers, read_labels
from rareclass.machine import one_blas_thread
from rareclass.ranking.losses import SmoothedHinge, make_loss
from rareclass.ranking.machine import KernelMachine
from rareclass.ranking.ranking_data import MOST_AT_ONCE, PreparedRanking
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
        For landmarks that are drawn.
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
        labels, chosen = prepared.target.labels, prepared.landmarks.rows
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
            raise ValueError(
                f"penalty={self.penalty!r}: the bound is about the penalty 'l2'. Refit with "
                "penalty='l2' and landmarks=model.landmark_rows_."
            )
        if not isinstance(make_loss(self.loss, self.eps, self.loss_params), SmoothedHinge):
            raise InputError(
                f"loss={self.loss!r}: the bound is about losses of single pairs with "
                "slopes of at most 1.",
                "Use loss='smoothed_hinge', or give the slope of yours to "
                "rareclass.theory.subset_bound.",
                ErrorKind.UNSUPPORTED,
                value=self.loss,
            )
        expansion = self._expansion()
        if X is None:
            if y is not None or sample_weight is not None:
                raise ValueError("X is missing: pass the training rows with their labels.")
            kernel = expansion.kernel
            plain_kernel = kernel.kernel if isinstance(kernel, FeatureScaled) else kernel
            if not kappa and not isinstance(plain_kernel, DistanceKernel):
                raise ValueError(
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
        raise ValueError(f"kappa={kappa!r} is below the largest k(x, x) of the rows, {largest:g}.")
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
    for model, learned in zip(models, machines, strict=True):
        model._keep(prepared, learned)
