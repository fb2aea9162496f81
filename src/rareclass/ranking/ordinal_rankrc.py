"""OrdinalRankRC: kernel ranking of ordered levels of which one is frequent."""

from typing import Any, Self

from rareclass.ranking.fitting import LearnedMachine
from rareclass.ranking.machine import KernelMachine, RanksLevels
from rareclass.ranking.preparation import Prepared


class OrdinalRankRC(RanksLevels, KernelMachine):
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
    penalty : {"l2", "l1"}, default="l2"
        As in `RankRC`: with "l1" most landmarks drop out.
    feature_scaling : {None, "learned"}, default=None
        As in `RankRC`, by the held-out MAUC.
    memory, kernel_dtype, n_jobs, random_state, verbose : as in `RankRC`

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
    feature_scales_, duality_gap_ : as in `RankRC`
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
    >>> import numpy as np
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
        penalty: str = "l2",
        feature_scaling: str | None = None,
        tol: float | str = "auto",
        max_iter: int = 200,
        memory: int | str = "2GiB",
        kernel_dtype: str = "auto",
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
        self.penalty = penalty
        self.feature_scaling = feature_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory
        self.kernel_dtype = kernel_dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _learned(self, prepared: Prepared, learned: LearnedMachine) -> Self:
        self.thresholds_ = learned.threshold
        return super()._learned(prepared, learned)
