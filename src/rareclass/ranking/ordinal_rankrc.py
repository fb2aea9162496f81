"""OrdinalRankRC: kernel ranking of ordered levels of which one is frequent."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from rareclass.decide.level_thresholds import thresholds_of_codes
from rareclass.labels.levels import Levels, read_levels
from rareclass.labels.two_classes import plain
from rareclass.progress import track
from rareclass.ranking.fitting import warn_if_short
from rareclass.ranking.kernel_model import KernelModel
from rareclass.ranking.losses import make_loss
from rareclass.ranking.losses.ordinal import OrdinalLoss
from rareclass.ranking.ordinal_scorer import OrdinalScorer
from rareclass.ranking.preparation import Prepared, prepare_rows
from rareclass.ranking.rankrc import check_solver_parameters
from rareclass.ranking.solvers.newton import Solution, Step
from rareclass.ranking.solvers.path import solve_path
from rareclass.rows import LabelledRows, as_source, header


class OrdinalRankRC(KernelModel, OrdinalScorer, BaseEstimator):
    r"""Kernel ranking machine for ordered levels, carried by the rows of the rare ones.

    .. math::

        \min_\beta \; \frac{1}{\sum_{r < t} c_{rt} W_r W_t} \sum_{r < t} c_{rt}
        \sum_{i \in t} \sum_{j \in r} w_i w_j \, \ell\bigl(f(x_i) - f(x_j)\bigr)
        + \frac{\lambda}{2} \beta' K_{RR} \beta,
        \qquad f(x) = \sum_{q \in R} \beta_q k(x_q, x)

    r < t are levels, W their weights, w those of rows, c the cost of a pair of two levels (1 by
    default, which is the paper's problem), l the smoothed hinge. The majority is the level of
    greatest weight, wherever it stands in the order: its rows are only ever summed. R are the
    landmarks, by default the rows of all other levels. With two levels it is `RankRC`.

    Parameters
    ----------
    levels : sequence or None, default=None
        The levels in increasing order; some may have no rows. None takes the order of numbers, or
        that of an ordered categorical. Text needs it.
    kernel, width : as in `RankRC`
    lam : float, default=2**-8
        Strength of the regulariser, above 0. Larger is smoother; see `OrdinalRankRCCV`.
    landmarks : as in `RankRC`, default="rare"
        "rare" are the rows of every level but the majority; ("rare", k) at most k of them, spread
        out; "all" is ordinal kernel RankSVM, for thousands of rows.
    pair_cost : None, "distance", matrix or callable, default=None
        c: what a pair of two levels weighs. None: every pair the same. "distance": as many levels
        as lie from one to the other, so that 0 before 15 matters more than 0 before 1. A matrix
        of shape (n_levels, n_levels): entries above the diagonal, at or above 0, are used;
        what is below must be zero or mirror them. A callable takes the positions (r, t) of two
        levels, r < t.
    loss : "smoothed_hinge" or another loss of `RankRC`, or PairLoss
    eps, loss_params, tol, max_iter : as in `RankRC`
    memory, n_jobs, random_state, verbose : as in `RankRC`

    Attributes
    ----------
    classes_ : ndarray of shape (n_levels,)
        The levels, in increasing order.
    majority_level_ : label
        The level of greatest weight.
    thresholds_ : ndarray of shape (n_levels - 1,)
        Non-decreasing: level k is ``thresholds_[k - 1] < score <= thresholds_[k]``. They minimise
        the absolute error in levels on the training rows, averaged within each level and then
        over levels (`rareclass.decide.level_thresholds`). -inf or inf where a level is never worth
        predicting. Training scores of landmarks are optimistic; `OrdinalRankRCCV` learns the
        thresholds on held-out scores.
    landmarks_, landmark_rows_, n_landmarks_, coef_, whitener_, width_ : as in `RankRC`
    objective_, optimality_, n_iter_, status_, history_ : as in `RankRC`
    n_features_in_, feature_names_in_ : as in `RankRC`

    Raises
    ------
    ValueError
        On fewer than two levels, a label that is not among `levels`, text without `levels`,
        missing or infinite values (naming row and column), or parameters outside their range.

    Notes
    -----
    Time: as `RankRC` with as many rare rows as there are rows outside the majority, and
    O(m_rare log m_rare) for each level and pass. Memory: as `RankRC`, and some numbers for each
    rare row and level.

    `predict` is for when a level must be named; ranking is what the model learns, and what
    `score` measures.

    References
    ----------
    .. [1] Tayal, Coleman, Li, "Bounding the difference between RankRC and RankSVM and application
       to multi-level rare class kernel ranking", 2014, section 5: problem (48), and (47) with
       ``landmarks="all"``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["low", "medium", "high"], [170, 20, 10])
    >>> X = rng.normal(size=(200, 2)) + 2 * (y != "low")[:, None] + 2 * (y == "high")[:, None]
    >>> model = OrdinalRankRC(levels=["low", "medium", "high"]).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model.predict([[0.0, 0.0], [4.0, 4.0]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        levels: Any = None,
        kernel: Any = "gaussian",
        width: Any = "mean",
        lam: float = 2**-8,
        landmarks: Any = "rare",
        pair_cost: Any = None,
        loss: Any = "smoothed_hinge",
        eps: float = 0.5,
        loss_params: dict[str, Any] | None = None,
        tol: float = 1e-6,
        max_iter: int = 200,
        memory: int | str = "2GiB",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | str = "auto",
    ) -> None:
        self.levels = levels
        self.kernel = kernel
        self.width = width
        self.lam = lam
        self.landmarks = landmarks
        self.pair_cost = pair_cost
        self.loss = loss
        self.eps = eps
        self.loss_params = loss_params
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn to rank rows by level.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)
            Numbers, all finite; standardise them first.
        y : array-like of shape (n_rows,)
            Two levels or more: numbers, an ordered categorical, or any labels with `levels`.
        sample_weight : array-like of shape (n_rows,) or None
            Weights at or above 0: k counts a row k times, 0 leaves it out.

        Returns
        -------
        OrdinalRankRC
            This estimator.
        """
        check_solver_parameters(self, [self.lam])
        validate_data(self, header(X), skip_check_array=True)
        fit_ordinal(self, prepare_ordinal(self, X, y, sample_weight))
        return self

    def fit_rows(self, rows: LabelledRows) -> Self:
        """Learn from rows that live on disk, or anywhere; see `RankRC.fit_rows`.

        Parameters
        ----------
        rows : LabelledRows
            Features, levels and weights.

        Returns
        -------
        OrdinalRankRC
            This estimator.
        """
        rows = LabelledRows.to_learn_from(rows)
        return self.fit(rows, rows.y, rows.sample_weight)

    def score_samples(self, X: Any) -> np.ndarray:
        """Rank f(x) of every row: higher is more like the highest level.

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


def prepare_ordinal(
    estimator: Any, X: Any, y: Any, sample_weight: Any, several: bool = False
) -> Prepared[Levels]:
    """Read rows and levels with the parameters of an OrdinalRankRC or OrdinalRankRCCV.

    `several` solutions, for lams or folds, or one alone are wanted from them.
    """
    source = as_source(X, getattr(estimator, "feature_names_in_", None))
    levels = read_levels(y, sample_weight, estimator.levels, source.n_rows)
    loss = make_loss(estimator.loss, estimator.eps, estimator.loss_params)
    costs = pair_costs(estimator.pair_cost, levels)
    loss = OrdinalLoss(loss, levels.rare_codes, levels.majority_level, costs)
    return prepare_rows(estimator, source, levels, loss, several)


def fit_ordinal(model: Any, prepared: Prepared[Levels]) -> None:
    """Fit a model on prepared rows, thresholds included."""
    levels = prepared.labels
    title = f"OrdinalRankRC, {len(levels.rare)} rows outside the majority"
    with prepared.blas_threads(), track(title, None, model.verbose) as advance:

        def report(lam: float, step: Step) -> None:
            note = f"iteration {step.iteration}, optimality {step.optimality:.1e}"
            advance(1, f"{note}, {step.in_memory:.0%} of the kernel in memory")

        problem = replace(prepared.problem(1.0), keeps_values=True)
        solution = solve_path(
            problem, [model.lam], model.tol, model.max_iter, prepared.at_once, report
        )[0]
        codes, scores, weight = scored_levels(prepared, [solution], solution.at.token)
    model.thresholds_ = thresholds_of_codes(codes, scores[:, 0], weight, len(levels.levels))
    model.classes_ = levels.levels
    model.majority_level_ = levels.majority_label
    model.landmarks_ = prepared.landmarks.points
    model.landmark_rows_ = prepared.landmarks.first_rows
    model.coef_ = solution.at.coefficients
    model.n_landmarks_ = len(model.coef_)
    model.whitener_ = problem.whitener
    model.width_ = prepared.width
    model.objective_ = solution.at.value
    model.optimality_ = solution.optimality
    model.n_iter_ = solution.n_iter
    model.status_ = str(solution.status)
    model.history_ = solution.history
    warn_if_short(solution, model.lam, model.tol)


def scored_levels(
    prepared: Prepared[Levels],
    solutions: list[Solution],
    token: object = None,
    tested: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """(codes, scores, weight) of training rows, or those `tested`; a column a solution."""
    levels = prepared.labels
    coefficients = np.column_stack([solution.at.coefficients for solution in solutions])
    held, majority = prepared.training_scores(coefficients, token, tested)
    of_held = slice(None) if tested is None else tested[levels.rare]
    codes = np.concatenate(
        [levels.rare_codes[of_held], np.full(len(majority), levels.majority_level)]
    )
    weight = None
    if levels.majority_weight is not None:
        of_majority = slice(None) if tested is None else tested[levels.majority]
        weight = np.concatenate([levels.rare_weight[of_held], levels.majority_weight[of_majority]])
    return codes, np.concatenate([held, majority]), weight


def pair_costs(pair_cost: Any, levels: Levels) -> np.ndarray:
    """The cost of a pair of each two levels, lower first; the parameter `pair_cost` of estimators.

    Raises
    ------
    ValueError
        On anything else than the parameter allows, naming the two levels.
    """
    n = len(levels.levels)
    r, t = np.triu_indices(n, 1)
    costs = np.ones((n, n))
    if isinstance(pair_cost, str) and pair_cost == "distance":
        costs[r, t] = t - r
    elif callable(pair_cost):
        costs[r, t] = [pair_cost(int(a), int(b)) for a, b in zip(r, t, strict=True)]
    elif pair_cost is not None:
        costs = _cost_matrix(pair_cost, n)
    bad = ~(np.isfinite(costs[r, t]) & (costs[r, t] >= 0.0))
    if bad.any():
        k = int(np.argmax(bad))
        low, high = plain(levels.levels[r[k]]), plain(levels.levels[t[k]])
        raise ValueError(
            f"pair_cost of the levels {low!r} and {high!r} is {costs[r[k], t[k]]}: it must be a "
            "finite number of at least 0."
        )
    present = np.union1d(levels.rare_codes, levels.majority_level)
    if not np.triu(costs, 1)[np.ix_(present, present)].any():
        raise ValueError("pair_cost is 0 for every pair of levels in y: nothing is to be ranked.")
    return costs


def _cost_matrix(pair_cost: Any, n: int) -> np.ndarray:
    wanted = f"pair_cost must be None, 'distance', a callable or a matrix of shape ({n}, {n})"
    try:
        costs = np.array(pair_cost, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}, not {pair_cost!r}.") from None
    if costs.shape != (n, n):
        raise ValueError(f"{wanted}: a row and a column a level; its shape is {costs.shape}.")
    below = np.tril(costs, -1)
    if below.any() and not np.array_equal(below.T, np.triu(costs, 1)):
        raise ValueError(
            "pair_cost has entries below the diagonal that are not those above it: the cost of a "
            "pair does not depend on which level is named first."
        )
    return costs
