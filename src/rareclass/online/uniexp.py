"""UniExp: ranking by a univariate loss, each class weighed up to half."""

from typing import Any, NamedTuple

import numpy as np

from rareclass.online._uniexp_jit import learn
from rareclass.online.ranker import OnlineRanker, SparseRows, check_positive
from rareclass.parameters import check_whole


class UniExpState(NamedTuple):
    """Moving state of UniExp."""

    coef: np.ndarray  # shape (n_features,): w
    weight_seen: np.ndarray  # shape (2,): weight of the majority rows and of the rare rows so far
    rng: np.random.Generator  # where the orders of `fit` come from


class UniExp(OnlineRanker):
    r"""Ranks by stochastic gradient steps on a class-weighted exponential loss of single rows.

    No pairs and no buffers: the exponential loss of the rows, with either class weighed up to one
    half, bounds the exponential loss of all pairs, so that its minimum ranks well. For a row x of
    class ``y = +1`` (rare) or ``-1``, after T rows of which T_y are of its class (itself counted)::

        w += eta (T / (2 T_y)) y x exp(-y w.x).

    A margin ``y w.x`` below -10 counts as -10: there the loss goes on as its tangent. The step
    grows without bound otherwise, and one badly ranked row (the first rare one after a million of
    the majority weighs half a million) would throw w beyond what floats hold; with the bound, rows
    on the wrong side are met by steps of one size, as a perceptron does, and w recovers. For the
    same reason no weight goes beyond 1e100.

    Parameters
    ----------
    eta : float, default=0.01
        Size of the steps. Larger learns faster and is noisier. What suits goes down with the
        squared length of the rows and with the imbalance.
    n_epochs : int, default=1
        Passes of `fit`, each in a new random order.
    random_state : int, RandomState or None
        For the orders of `fit`.
    pos_label : label or None, default=None
        The rare class. None means the label with less weight in `fit`, and the one that sorts last
        in `partial_fit`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        w.
    offset_ : float
        Score above which a row is called rare: 0, where the loss of both classes is the same.
    classes_ : ndarray of shape (2,)
    pos_label_ : label
        The rare class.
    state_ : UniExpState
        Everything that moves; enough to go on from.
    n_features_in_ : int

    Raises
    ------
    ValueError
        On parameters out of range, and as `fit` and `partial_fit` say.

    Notes
    -----
    Time O(non-zeros) a row, memory O(n_features). There is no intercept, which a ranking does not
    need: centre the columns if `predict` matters.

    References
    ----------
    .. [1] Kotlowski, Dembczynski, Huellermeier, "Bipartite Ranking through Minimization of
       Univariate Loss", ICML 2011: the weighted exponential loss; taken online with running counts
       as one of the baselines of [2].
    .. [2] Khalid, Ray, Chitsaz, "Confidence-Weighted Bipartite Ranking", 2016: Tables 3 to 6.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(2000, weights=[0.95], random_state=0)
    >>> model = UniExp(eta=0.001).partial_fit(X, y, classes=[0, 1])
    >>> bool(model.score(X, y) > 0.85)
    True
    """

    _takes = "sparse"

    def __init__(
        self, eta: float = 0.01, n_epochs: int = 1, random_state: Any = None, pos_label: Any = None
    ) -> None:
        self.eta = eta
        self.n_epochs = n_epochs
        self.random_state = random_state
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        check_positive(eta=self.eta)
        check_whole("n_epochs", self.n_epochs)

    def _start(self, n_features: int, rng: np.random.Generator) -> UniExpState:
        return UniExpState(np.zeros(n_features), np.zeros(2), rng)

    def _learn(
        self, state: UniExpState, rows: SparseRows, sign: np.ndarray, step: np.ndarray
    ) -> tuple[UniExpState, np.ndarray]:
        scores = np.empty(len(sign))
        learn(*rows, sign, step, state.coef, state.weight_seen, float(self.eta), scores)
        return state, scores

    def _coef(self, state: UniExpState) -> np.ndarray:
        return state.coef

    def _offset(self, state: UniExpState) -> float:
        return 0.0

    def _grown(self, state: UniExpState, n_features: int) -> UniExpState:
        return state._replace(coef=np.pad(state.coef, (0, n_features - len(state.coef))))
