"""Online logistic regression: single rows, steps that shrink a feature at a time."""

from math import log
from typing import Any, NamedTuple

import numpy as np

from rareclass.online._logistic_jit import learn
from rareclass.online.ranker import OnlineRanker, SparseRows, check_positive
from rareclass.parameters import check_whole


class LogisticState(NamedTuple):
    """What logistic regression knows at a moment of the stream."""

    coef: np.ndarray  # shape (n_features,): w
    squares: np.ndarray  # shape (n_features,): sums of the squared slopes of the loss, G
    intercept: np.ndarray  # shape (2,): b, and the sum of its squared slopes
    seen: np.ndarray  # shape (2,): weight of the majority rows and of the rare rows so far
    rng: np.random.Generator  # where the orders of `fit` come from


class OnlineLogistic(OnlineRanker):
    r"""Ranks by logistic regression, learned a row at a time by AdaGrad.

    For a row x of class ``y = +1`` (rare) or ``-1`` the loss is
    ``c_y log(1 + exp(-y (w.x + b)))``; with its slope g along a weight::

        G += g^2,    w -= eta g / sqrt(G)

    and the same for b. So a feature that is rarely other than 0 takes large steps still when it
    comes, and the size of the steps falls as that of the mean's error does. The score is ``w.x``:
    b, which follows the share of rare rows, moves all rows alike.

    Parameters
    ----------
    eta : float, default=0.3
        Size of the first step in each weight. From .03 to 1 is worth trying on standardised rows.
    class_weight : {"balanced"} or None, default=None
        c_y: 1, or ``T / (2 T_y)`` after T rows of which T_y are of the class. None learns
        probabilities, and is moved most by the rare rows that score low and the majority rows
        that score highest: the top of the list. "balanced" looks at the whole of it.
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
    intercept_ : float
        b.
    offset_ : float
        Score above which a row is called rare: where it is more likely rare than a row is on the
        whole, ``-b`` plus the log odds of the classes so far; ``-b`` with balanced classes.
    classes_ : ndarray of shape (2,)
    pos_label_ : label
        The rare class.
    state_ : LogisticState
        Everything that moves; enough to go on from.
    n_features_in_ : int

    Raises
    ------
    ValueError
        On parameters out of range, and as `fit` and `partial_fit` say.

    Notes
    -----
    Time O(non-zeros) a row, memory O(n_features). There is no ridge; what one would do was not
    measured.

    References
    ----------
    .. [1] Duchi, Hazan, Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic
       Optimization", JMLR 2011: the diagonal form.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(2000, weights=[0.95], random_state=0)
    >>> model = OnlineLogistic().partial_fit(X, y, classes=[0, 1])
    >>> bool(model.score(X, y) > 0.85)
    True
    """

    _takes = "sparse"
    _steps_shrink = True

    def __init__(
        self,
        eta: float = 0.3,
        class_weight: str | None = None,
        n_epochs: int = 1,
        random_state: Any = None,
        pos_label: Any = None,
    ) -> None:
        self.eta = eta
        self.class_weight = class_weight
        self.n_epochs = n_epochs
        self.random_state = random_state
        self.pos_label = pos_label

    def _check_parameters(self) -> None:
        check_positive(eta=self.eta)
        check_whole("n_epochs", self.n_epochs)
        if self.class_weight not in (None, "balanced"):
            raise ValueError(f"class_weight={self.class_weight!r} is not None or 'balanced'.")

    @property
    def intercept_(self) -> float:
        """What is added to a score for the log odds of the row."""
        return float(self.state_.intercept[0])

    def _start(self, n_features: int, rng: np.random.Generator) -> LogisticState:
        zeros = np.zeros(n_features)
        return LogisticState(zeros, zeros.copy(), np.zeros(2), np.zeros(2), rng)

    def _learn(
        self, state: LogisticState, rows: SparseRows, sign: np.ndarray, step: np.ndarray
    ) -> tuple[LogisticState, np.ndarray]:
        scores = np.empty(len(sign))
        learn(
            *rows, sign, step, state.coef, state.squares, state.intercept, state.seen,
            float(self.eta), self.class_weight == "balanced", scores,
        )  # fmt: skip
        return state, scores

    def _coef(self, state: LogisticState) -> np.ndarray:
        return state.coef

    def _offset(self, state: LogisticState) -> float:
        if not state.coef.any():  # all rows are alike: none of them is called rare
            return 0.0
        majority, rare = state.seen.tolist()
        odds = rare / majority if rare and majority and self.class_weight is None else 1.0
        return log(odds) - float(state.intercept[0])

    def _grown(self, state: LogisticState, n_features: int) -> LogisticState:
        more = (0, n_features - len(state.coef))
        return state._replace(coef=np.pad(state.coef, more), squares=np.pad(state.squares, more))

    def _reopened(self, state: LogisticState) -> LogisticState:
        intercept = np.array([state.intercept[0], 0.0])
        return state._replace(squares=np.zeros_like(state.squares), intercept=intercept)
