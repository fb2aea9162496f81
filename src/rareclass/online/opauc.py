"""OPAUC, OPAUCr and AdaOAM: AUC by square loss, from the moments of both classes."""

from typing import Any, Literal, NamedTuple

import numpy as np

from rareclass.online._moments_jit import learn
from rareclass.online.moments import ClassMoments, LowRankState, check_size
from rareclass.online.ranker import OnlineRanker
from rareclass.parameters import check_number, check_whole


class MomentState(NamedTuple):
    """Moving state of OPAUC with full covariances, and of AdaOAM."""

    coef: np.ndarray
    squares: np.ndarray  # AdaOAM's sums of squared gradients, shape (n_features,); (0,) of OPAUC
    moments: ClassMoments
    rng: np.random.Generator


class OPAUC(OnlineRanker):
    r"""Linear ranker that learns AUC in one pass, without a buffer of rows.

    .. math::

        \min_w \; \frac{\lambda}{2} \|w\|^2 + \frac{1}{m_+ m_-} \sum_{i \in P} \sum_{j \in N}
        \tfrac{1}{2} \bigl(1 - w \cdot (x_i - x_j)\bigr)^2

    P are the rare rows, N the majority. The square loss of a row x, y in {+1, -1}, against all
    earlier rows of the other class needs only their mean c and covariance S: a row takes the step

    .. math::

        w \leftarrow w - \eta g, \qquad
        g = \lambda w - y (x - c) + (x - c)(x - c)' w + S w

    Parameters
    ----------
    eta : float, default=2**-8
        Length of a step, above 0. Larger learns faster, and forgets faster. Good ones are some
        tenths of 1 / (squared norm of a row): 2**-10 to 2**-6 on some tens of standardised
        features. It may be too large: see Notes.
    lam : float, default=1e-4
        Strength of the regulariser, at or above 0. Larger keeps the weights smaller.
    rank : int or None, default=None
        None keeps both covariances: for up to some thousand features. A whole number k keeps k
        random projections of each instead (OPAUCr): for many features, sparse above all. Larger
        is closer to the covariance, whose entries are off by about 1 / sqrt(k) of their size;
        50 is usual.
    n_epochs, random_state, pos_label
        As in `OnlineRanker`; the moments count a row in each epoch, and `random_state` draws the
        projections as well.

    Attributes
    ----------
    offset_ : float
        Score above which a row is called rare: as many standard deviations above the mean score
        of the majority as below that of the rare class, by the moments. 0 while a class has no
        rows.
    state_ : MomentState or LowRankState
        Weights, moments, and the generator of random numbers.
    coef_, classes_, pos_label_, n_features_in_, feature_names_in_
        As in `OnlineRanker`.

    Raises
    ------
    ValueError
        As in `OnlineRanker`; on more features than memory can hold the moments of, and on a value
        beyond 1e75.

    Notes
    -----
    Weights stay 0 until both classes were seen. A fractional weight of a row counts as such in
    the moments, and scales eta.

    Steps of a square loss diverge when they are too long. A step that would raise the row's own
    objective (the terms above that hold the row, over all earlier rows of the other class) is
    longer than twice the way to the minimum along g; the minimum is taken in its place. So every
    eta leaves a usable model, and steps that lower the objective are those of the paper. Such a
    step brings w no further from the minimiser of the row's objective, whose norm is at most
    1 / sqrt(lam).

    Cost: O(n_features^2) a row, twice that for shortened steps, and 16 n_features^2 bytes. With a
    rank k, O(non-zeros k + k^2) a row, whatever the number of features: every step but the row
    itself lies along the kept columns, so weights are a sum of those and a part that changes at
    non-zeros only. 16 n_features (k + 1) bytes. Rounding there grows with the squared ratio of
    a feature's mean to its deviation: centre features first where that ratio is above a thousand.

    References
    ----------
    .. [1] Gao, Jin, Zhu, Zhou, "One-Pass AUC Optimization", ICML 2013: Algorithm 1; section 3.3
       for the rank.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(2000, weights=[0.95], random_state=0)
    >>> model = OPAUC(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    delta: float | None = None  # of AdaOAM

    def __init__(
        self,
        eta: float = 2**-8,
        lam: float = 1e-4,
        rank: int | None = None,
        n_epochs: int = 1,
        random_state: Any = None,
        pos_label: Any = None,
    ) -> None:
        self.eta = eta
        self.lam = lam
        self.rank = rank
        self.n_epochs = n_epochs
        self.random_state = random_state
        self.pos_label = pos_label

    @property
    def _takes(self) -> Literal["dense", "sparse"]:  # type: ignore[override]
        return "dense" if self.rank is None else "sparse"

    def _check_parameters(self) -> None:
        check_number("eta", self.eta, "a finite number above 0")
        check_number("lam", self.lam, "a finite number at or above 0", ends="[)")
        check_whole("n_epochs", self.n_epochs)
        if self.rank is not None:
            check_whole("rank", self.rank, "None or a whole number above 0")

    def _start(self, n_features: int, rng: np.random.Generator) -> MomentState | LowRankState:
        if self.rank is not None:
            return LowRankState.empty(n_features, self.rank, rng)
        squares = np.zeros(0 if self.delta is None else n_features)
        return MomentState(np.zeros(n_features), squares, ClassMoments.empty(n_features), rng)

    def _learn(
        self, state: Any, rows: Any, sign: np.ndarray, step: np.ndarray
    ) -> tuple[Any, np.ndarray]:
        check_size(rows)
        if isinstance(state, LowRankState):
            return state, state.learned(rows, sign, step, self.eta, self.lam)
        coef, squares, moments, _ = state
        return state, learn(
            rows, sign, step, self.eta, self.lam, coef, moments, self.delta, squares
        )

    def _offset(self, state: Any) -> float:
        if isinstance(state, LowRankState):
            return state.threshold()
        return state.moments.threshold(state.coef)

    def _grown(self, state: Any, n_features: int) -> Any:
        if isinstance(state, LowRankState):
            return state.grown(n_features)
        more = (0, n_features - len(state.coef))
        return state._replace(
            coef=np.pad(state.coef, more),
            squares=state.squares if self.delta is None else np.pad(state.squares, more),
            moments=state.moments.grown(n_features),
        )


class AdaOAM(OPAUC):
    r"""Linear ranker by AUC whose steps adapt to each feature, without a buffer of rows.

    Objective and gradient g of a row are those of `OPAUC` with full covariances; feature i is moved
    by its own step, short where gradients were large:

    .. math::

        w_i \leftarrow w_i - \eta \, \frac{g_i}{\delta + \sqrt{\sum_{t} g_{t,i}^2}}

    Parameters
    ----------
    eta : float, default=2**-4
        Length of a step, above 0: no weight moves by more in a row. Larger learns faster. It may
        be too large: see Notes.
    lam : float, default=1e-4
        Strength of the regulariser, at or above 0. Larger keeps the weights smaller.
    delta : float, default=0.5
        Above 0. Larger makes the first steps shorter, and all features' steps more alike.
    n_epochs, random_state, pos_label
        As in `OPAUC`.

    Attributes
    ----------
    state_ : MomentState
        Weights, sums of squared gradients, moments, and the generator of random numbers.
    coef_, offset_, classes_, pos_label_, n_features_in_, feature_names_in_
        As in `OPAUC`.

    Raises
    ------
    ValueError
        As in `OPAUC`.

    Notes
    -----
    A step that would raise the row's own objective ends at the minimum along its direction instead,
    as in `OPAUC`: every eta leaves a usable model.

    Cost: O(n_features^2) a row, twice that for shortened steps, and 16 n_features^2 bytes.

    References
    ----------
    .. [1] Ding, Zhao, Hoi, Ong, "An Adaptive Gradient Method for Online AUC Maximization",
       AAAI 2015: Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(2000, weights=[0.95], random_state=0)
    >>> model = AdaOAM(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    _steps_shrink = True
    rank = None

    def __init__(
        self,
        eta: float = 2**-4,
        lam: float = 1e-4,
        delta: float = 0.5,
        n_epochs: int = 1,
        random_state: Any = None,
        pos_label: Any = None,
    ) -> None:
        self.eta = eta
        self.lam = lam
        self.delta = delta
        self.n_epochs = n_epochs
        self.random_state = random_state
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("delta", self.delta, "a finite number above 0")

    def _reopened(self, state: MomentState) -> MomentState:
        return state._replace(squares=np.zeros_like(state.squares))
