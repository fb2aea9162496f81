"""RankRC and RankSVM: kernel AUC ranking as scikit-learn classifiers."""

from collections.abc import Sequence
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from rareclass.rank_scorer import RankScorer
from rareclass.ranking.expansion import KernelExpansion, block_scores
from rareclass.ranking.fitting import fit_path
from rareclass.ranking.kernels import make_kernel
from rareclass.ranking.preparation import block_rows, prepare
from rareclass.rows import ArrayRows, LabelledRows, as_source, header

_CHOICES: dict[str, tuple[Any, ...]] = {
    "penalty": ("l2", "l1"),
    "feature_scaling": (None, "learned"),
}


class RankRC(ClassNamePrefixFeaturesOutMixin, RankScorer, TransformerMixin, BaseEstimator):
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
        k of the rare rows, spread out by k-means++, for thousands of rare rows, all of which
        stay in the loss; ("rare", k, "pivoted_cholesky") takes those that span the others best
        under the kernel; ("rare+majority", k) adds k majority rows drawn at random: for a
        handful of rare rows. "all" is kernel RankSVM (time and memory grow with the square of the
        rows); "random" is as many rows drawn from all as there are rare ones; an integer is
        that many; an array holds row numbers, or points as a matrix.
    loss : "smoothed_hinge" or PairLoss
        Loss of the score difference of a pair.
    eps : float, default=0.5
        Half the width of the quadratic part of the loss, in (0, 0.5]. Smaller is nearer to the
        hinge.
    loss_params : dict or None, default=None
        Further parameters of a loss given by name, such as ``{"power": 4}``.
    penalty : {"l2", "l1"}, default="l2"
        "l2" is the formula above. "l1" puts lam times the sum of absolute coefficients in its
        place: most landmarks drop out, and scoring costs as much less.
    feature_scaling : {None, "learned"}, default=None
        "learned" finds a scale for every feature inside the kernel, zero for those that do not
        help to rank.
    tol : float, default=1e-6
        Wanted norm of the gradient, relative to its norm at zero. Smaller is more exact.
    max_iter : int, default=200
        Most Newton iterations.
    memory : str or int, default="2GiB"
        Bytes that fit may hold: kernel blocks that do not fit are worked out again in each pass,
        which changes the time and not the result. What cannot be cut (three matrices of
        landmarks, and the rare rows' kernel) must fit in it as well, or fit refuses.
    n_jobs : int or None, default=None
        Threads. None and -1 mean all cores. The result does not depend on it.
    random_state : int, RandomState or None
        For landmarks that are drawn.
    pos_label : label or None, default=None
        The rare class; None means the label with the fewer rows (by weight).
    verbose : bool or "auto", default="auto"
        Progress on standard error; "auto" when that is a terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    pos_label_ : label
        The rare class.
    landmarks_ : ndarray or CSR of shape (n_landmarks, n_features)
        The distinct rows that carry the model: equal rows are one landmark.
    landmark_rows_ : ndarray of int or None
        A training row for each; None when points were given.
    coef_ : ndarray of shape (n_landmarks,)
        beta.
    whitener_ : ndarray of shape (n_landmarks, rank)
        What `transform` multiplies the kernel by. It is kept because eigenvectors of nearly equal
        eigenvalues come out otherwise on another machine.
    width_ : float
        Sigma.
    offset_ : float
        Score above which a row is called rare: the best balanced accuracy on the training rows.
        With rare landmarks those scores are optimistic for the rare rows; choose the threshold
        on held-out rows where it matters.
    objective_ : float
        The minimum found.
    optimality_ : float
        Norm of the gradient there, relative to its norm at zero.
    n_iter_ : int
        Newton iterations.
    status_ : str
        "converged", "stopped at rounding error" or "reached max_iter".
    history_ : list of Step
        (iteration, objective, optimality, step, passes, in_memory) after each iteration: passes
        counts readings of the majority (those of a part of the rows by its share), in_memory is
        the share of the kernel that fits in `memory`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When the columns have names.

    Raises
    ------
    ValueError
        On one class or more than two, missing or infinite values (naming row and column), or
        parameters outside their range.

    Notes
    -----
    Time O(rows x landmarks) a pass of the majority, plus O(landmarks^3) once. On many rows the
    solver starts from a part of them (every so many blocks) and takes its steps from the part's
    curvature, which leaves a handful of passes of all rows. Memory: `memory`, up to about 200 MB
    while a preconditioner is built, and a few numbers a row; arrays are not copied. The kernel is
    stored in the dtype of X; sums are always in float64. Threads and memory change scores by less
    than 1e-10 in float64, and by the rounding of the kernel, 1e-4 or less, in float32.

    References
    ----------
    .. [1] Tayal, Coleman, Li, "RankRC: Large-Scale Nonlinear Rare Class Ranking", IEEE TKDE
       27(12), 2015: problem (13); (11) for other landmarks; (6) for all of them.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(500, weights=[0.95], random_state=0)
    >>> model = RankRC(lam=0.01).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        width: Any = "mean",
        lam: float = 2**-8,
        landmarks: Any = "rare",
        loss: Any = "smoothed_hinge",
        eps: float = 0.5,
        loss_params: dict[str, Any] | None = None,
        penalty: str = "l2",
        feature_scaling: str | None = None,
        tol: float = 1e-6,
        max_iter: int = 200,
        memory: int | str = "2GiB",
        n_jobs: int | None = None,
        random_state: Any = None,
        pos_label: Any = None,
        verbose: bool | str = "auto",
    ) -> None:
        self.kernel = kernel
        self.width = width
        self.lam = lam
        self.landmarks = landmarks
        self.loss = loss
        self.eps = eps
        self.loss_params = loss_params
        self.penalty = penalty
        self.feature_scaling = feature_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.pos_label = pos_label
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn to rank the rare rows first.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)
            Numbers, all finite; standardise them first.
        y : array-like of shape (n_rows,)
            Two labels of any type.
        sample_weight : array-like of shape (n_rows,) or None
            Weights at or above 0: k counts a row k times, 0 leaves it out.

        Returns
        -------
        RankRC
            This estimator.
        """
        check_solver_parameters(self, [self.lam])
        validate_data(self, header(X), skip_check_array=True)
        prepared = prepare(self, X, y, sample_weight)
        fit_path([self], prepared, self.verbose)
        return self

    def fit_rows(self, rows: LabelledRows) -> Self:
        """Learn from rows that live on disk, or anywhere: the same model as `fit` in memory.

        Parameters
        ----------
        rows : LabelledRows
            What `rareclass.rows.from_parquet`, `from_csv` or `from_arrays` gives: features,
            labels and weights. Only labels and weights are in memory.

        Returns
        -------
        RankRC
            This estimator.

        Notes
        -----
        Time: as `fit`, and one reading of the scratch file a pass over what `memory` cannot hold.
        `score_samples`, `predict` and `transform` take such rows in place of X.
        """
        rows = LabelledRows.to_learn_from(rows)
        return self.fit(rows, rows.y, rows.sample_weight)

    def score_samples(self, X: Any) -> np.ndarray:
        """Rarity score f(x) of every row: higher is more like the rare class.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Scores mean something only beside each other.

        Notes
        -----
        Cost: O(n_landmarks n_features) a row, in blocks; no memory but the result.
        """
        check_is_fitted(self)
        return self._map(X, self.coef_)

    def transform(self, X: Any) -> np.ndarray:
        """Nyström features of every row: the paper's linearisation, section 5.1.

        Coordinates of the rows in the span of the landmarks, such that a linear model on them
        with a ridge penalty is the kernel model: inner products of features are the kernel
        projected on the landmarks, and the score is ``transform(X) @ w`` for some w.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, rank)
            rank is at most the number of landmarks: duplicates add no direction.

        Notes
        -----
        Cost: O(n_landmarks (n_features + rank)) a row.
        """
        check_is_fitted(self)
        return self._map(X, self.whitener_)

    @property
    def _n_features_out(self) -> int:
        return self.whitener_.shape[1]

    def _expansion(self) -> KernelExpansion:
        return KernelExpansion(make_kernel(self.kernel, self.width_), self.landmarks_)

    def _map(self, X: Any, coefficients: np.ndarray) -> np.ndarray:
        source = as_source(X, getattr(self, "feature_names_in_", None))
        validate_data(self, header(X), reset=False, skip_check_array=True)
        expansion = self._expansion()
        size = block_rows(expansion.n_landmarks, source.dtype)
        rows = ArrayRows(source, block_rows=size, n_jobs=self.n_jobs)
        return rows.map(block_scores, expansion, coefficients)


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

    def __init__(
        self,
        kernel: Any = "gaussian",
        width: Any = "mean",
        lam: float = 2**-8,
        landmarks: Any = "all",
        loss: Any = "smoothed_hinge",
        eps: float = 0.5,
        loss_params: dict[str, Any] | None = None,
        penalty: str = "l2",
        feature_scaling: str | None = None,
        tol: float = 1e-6,
        max_iter: int = 200,
        memory: int | str = "2GiB",
        n_jobs: int | None = None,
        random_state: Any = None,
        pos_label: Any = None,
        verbose: bool | str = "auto",
    ) -> None:
        super().__init__(
            kernel=kernel,
            width=width,
            lam=lam,
            landmarks=landmarks,
            loss=loss,
            eps=eps,
            loss_params=loss_params,
            penalty=penalty,
            feature_scaling=feature_scaling,
            tol=tol,
            max_iter=max_iter,
            memory=memory,
            n_jobs=n_jobs,
            random_state=random_state,
            pos_label=pos_label,
            verbose=verbose,
        )


def rankrc_path(
    X: Any, y: Any, lams: Sequence[float], sample_weight: Any = None, **parameters: Any
) -> list[RankRC]:
    """A fitted `RankRC` for each lam, at little more than the price of one.

    On few rows each solution starts the next; on many, the lams share every pass of the rows.

    Parameters
    ----------
    X, y, sample_weight
        As in `RankRC.fit`. For rows on disk ``rows, rows.y`` and, if any, ``rows.sample_weight``.
    lams : sequence of float
        In any order.
    **parameters
        Parameters of `RankRC` but lam.

    Returns
    -------
    list of RankRC
        In the order of `lams`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(200, weights=[0.9], random_state=0)
    >>> [model.lam for model in rankrc_path(X, y, [1.0, 0.1])]
    [1.0, 0.1]
    """
    models = [RankRC(lam=lam, **parameters) for lam in lams]
    if not models:
        return []
    check_solver_parameters(models[0], lams)
    for model in models:
        validate_data(model, header(X), skip_check_array=True)
    prepared = prepare(models[0], X, y, sample_weight, several=len(lams) > 1)
    fit_path(models, prepared, models[0].verbose)
    return models


def check_solver_parameters(estimator: Any, lams: Sequence[float]) -> None:
    """Refuse what no solver can work with, naming the parameter and its range."""
    for lam in lams:
        if not _is_positive(lam):
            raise ValueError(f"lam={lam!r} must be a number above 0.")
    if not _is_positive(estimator.tol):
        raise ValueError(f"tol={estimator.tol!r} must be above 0.")
    if not _is_positive(estimator.max_iter) or estimator.max_iter % 1:
        raise ValueError(f"max_iter={estimator.max_iter!r} must be a whole number above 0.")
    for name, known in _CHOICES.items():
        if getattr(estimator, name, known[0]) not in known:
            raise ValueError(f"{name}={getattr(estimator, name)!r} is not one of {list(known)}.")


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and bool(0.0 < float(value) < np.inf)


__all__ = ["RankRC", "RankSVM", "rankrc_path"]
