"""AdaOAM: OPAUC with a step of its own for every feature."""

from typing import Any, NamedTuple

import numpy as np

from rareclass.online._moments_jit import learn
from rareclass.online.moments import ClassMoments, check_regulariser, check_size
from rareclass.online.ranker import OnlineRanker, check_positive
from rareclass.parameters import check_whole


class AdaptiveState(NamedTuple):
    """Moving state of AdaOAM; `squares` is the sum of squared gradients."""

    coef: np.ndarray
    squares: np.ndarray
    moments: ClassMoments
    rng: np.random.Generator


class AdaOAM(OnlineRanker):
    r"""Linear ranker by AUC whose steps adapt to each feature, without a buffer of rows.

    .. math::

        \min_w \; \frac{\lambda}{2} \|w\|^2 + \frac{1}{m_+ m_-} \sum_{i \in P} \sum_{j \in N}
        \tfrac{1}{2} \bigl(1 - w \cdot (x_i - x_j)\bigr)^2

    P are the rare rows, N the majority. The gradient g of a row x, y in {+1, -1}, against all
    earlier rows of the other class, which have mean c and covariance S, is `OPAUC`'s; feature i is
    moved by its own step, short where gradients were large:

    .. math::

        g = \lambda w - y (x - c) + (x - c)(x - c)' w + S w, \qquad
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
    n_epochs : int, default=1
        Shuffled passes of `fit`; the moments count a row in each.
    random_state : int, RandomState or None
        For the order of rows in `fit`.
    pos_label : label or None, default=None
        The rare class; None means the label with less weight in `fit`, and the one that sorts last
        in `partial_fit`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        w.
    offset_ : float
        Score above which a row is called rare: as many standard deviations above the mean score
        of the majority as below that of the rare class, by the moments. 0 while a class has no
        rows.
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    pos_label_ : label
        The rare class.
    state_ : NamedTuple
        Weights, sums of squared gradients, moments, and the generator of random numbers.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When the columns have names.

    Raises
    ------
    ValueError
        On labels other than the two classes, missing or infinite values (naming row and column),
        parameters outside their range, or more features than memory can hold covariances of.
        On a value beyond 1e75.

    Notes
    -----
    Weights stay 0 until both classes were seen. A fractional weight of a row counts as such in
    the moments, and scales eta. A step that would raise the row's own objective ends at the
    minimum along its direction instead, as in `OPAUC`: every eta leaves a usable model.

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
        check_positive(eta=self.eta, delta=self.delta)
        check_regulariser(self.lam)
        check_whole("n_epochs", self.n_epochs)

    def _start(self, n_features: int, rng: np.random.Generator) -> AdaptiveState:
        moments = ClassMoments.empty(n_features)
        return AdaptiveState(np.zeros(n_features), np.zeros(n_features), moments, rng)

    def _learn(
        self, state: AdaptiveState, rows: Any, sign: np.ndarray, step: np.ndarray
    ) -> tuple[AdaptiveState, np.ndarray]:
        check_size(rows)
        coef, squares, moments, _ = state
        adaptive = (self.delta, squares)
        return state, learn(rows, sign, step, self.eta, self.lam, coef, moments, *adaptive)

    def _coef(self, state: AdaptiveState) -> np.ndarray:
        return state.coef

    def _offset(self, state: AdaptiveState) -> float:
        return state.moments.threshold(state.coef)

    def _grown(self, state: AdaptiveState, n_features: int) -> AdaptiveState:
        more = (0, n_features - len(state.coef))
        return state._replace(
            coef=np.pad(state.coef, more),
            squares=np.pad(state.squares, more),
            moments=state.moments.grown(n_features),
        )

    def _reopened(self, state: AdaptiveState) -> AdaptiveState:
        return state._replace(squares=np.zeros_like(state.squares))
