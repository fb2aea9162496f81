"""Learners from single rows: logistic regression, by AdaGrad or Newton steps, and UniExp."""

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from rareclass.online._univariate_jit import learn_by_gradient, learn_by_newton
from rareclass.online.ranker import Learned, OnlineRanker
from rareclass.parameters import check_choice, check_number

# Features that have a full covariance: a row costs their square (docs/decisions/0039).
_FULL = 128
# The log odds of a rare class are far from 0: they begin with a deviation of 10.
_INTERCEPT_VARIANCE, _MOST_VARIANCE = 100.0, 1e300


class LogisticState(NamedTuple):
    """Moving state of logistic regression by AdaGrad."""

    coef: np.ndarray  # shape (n_features,): w
    squares: np.ndarray  # shape (n_features,): sums of the squared slopes of the loss, G
    intercept: np.ndarray  # shape (2,): b, and the sum of its squared slopes
    seen: np.ndarray  # shape (2,): weight of the majority rows and of the rare rows so far
    rng: np.random.Generator  # where the orders of `fit` come from


class GaussianState(NamedTuple):
    """Moving state of logistic regression by Newton steps."""

    mean: np.ndarray  # shape (1 + n_features,): b, then w
    # shape (1 + n_full, 1 + n_full): of b and the first features, 128 of them at most
    covariance: np.ndarray
    alone: np.ndarray  # shape (n_features - n_full,): variances of the others
    seen: np.ndarray  # shape (2,): weight of the majority rows and of the rare rows so far
    rng: np.random.Generator  # where the orders of `fit` come from


@dataclass(eq=False, repr=False)
class OnlineLogistic(OnlineRanker):
    r"""Ranks by logistic regression, learned a row at a time.

    For a row x of class ``y = +1`` (rare) or ``-1`` the loss is
    ``c_y log(1 + exp(-y (w.x + b)))``. By AdaGrad [1]_, with its slope g along a weight::

        G += g^2,    w -= eta g / sqrt(G)

    and the same for b. So a feature that is rarely other than 0 takes large steps still when it
    comes, and the size of the steps falls as that of the mean's error does.

    By Newton's method the weights have a Gaussian, ``N(m, S)`` with ``m = 0, S = eta^2 I`` at the
    start. A row moves m to where Gaussian times likelihood is greatest, and S to the inverse of the
    curvature there (Laplace's approximation, [2]_); with h the curvature of its loss::

        m <- argmin loss(w) + (w - m)' S^-1 (w - m) / 2,    S <- S - h S x x' S / (1 + h x' S x)

    It knows how features hang together and comes sooner to where all rows so far lead, at
    O(n_features^2) a row. The score is ``w.x``: b, which follows the share of rare rows, moves all
    rows alike.

    Parameters
    ----------
    eta : float, default=0.3
        Size of the first step in each weight; with Newton steps the deviation that the weights are
        expected to have: less holds them nearer to 0. From .03 to 1 is worth trying on
        standardised rows.
    class_weight : {"balanced"} or None, default=None
        c_y: 1, or ``T / (2 T_y)`` after T rows of which T_y are of the class. None learns
        probabilities, and is moved most by the rare rows that score low and the majority rows
        that score highest: the top of the list. "balanced" looks at the whole of it.
    steps : {"adagrad", "newton"}, default="adagrad"
        "adagrad" for speed, and for streams that change: its steps shrink more slowly. "newton"
        where features hang together and rows can take some microseconds.
    n_epochs, random_state, pos_label
        As in `OnlineRanker`.

    Attributes
    ----------
    intercept_ : float
        b.
    offset_ : float
        Score above which a row is called rare: where it is more likely rare than a row is on the
        whole, ``-b`` plus the log odds of the classes so far; ``-b`` with balanced classes.

    Notes
    -----
    AdaGrad: time O(non-zeros) a row, memory O(n_features); there is no ridge, and what one would do
    was not measured. Newton steps: O(d non-zeros + d^2) a row and O(d^2) memory, d the features up
    to 128; those beyond have a variance each and none with each other, at O(1).

    References
    ----------
    .. [1] Duchi, Hazan, Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic
       Optimization", JMLR 2011: the diagonal form.
    .. [2] Spiegelhalter, Lauritzen, "Sequential Updating of Conditional Probabilities on Directed
       Graphical Structures", Networks 1990.

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

    eta: float = 0.3
    class_weight: str | None = None
    steps: str = "adagrad"
    n_epochs: int = 1
    random_state: Any = None
    pos_label: Any = None

    def _check_parameters(self) -> None:
        check_number("eta", self.eta, "a finite number above 0")
        check_choice("class_weight", self.class_weight, (None, "balanced"))
        check_choice("steps", self.steps, ("adagrad", "newton"))

    @property
    def intercept_(self) -> float:
        """Intercept b: a score plus b is the log odds of the row."""
        return _intercept(self.state_)

    def _start(self, n_features: int, rng: np.random.Generator) -> Any:
        zeros = np.zeros(n_features)
        if self.steps == "adagrad":
            return LogisticState(zeros, zeros.copy(), np.zeros(2), np.zeros(2), rng)
        eta = float(self.eta)
        variance = np.full(1 + n_features, min(eta * eta, _MOST_VARIANCE))  # eta**2 may overflow
        variance[0] = _INTERCEPT_VARIANCE
        full = 1 + min(n_features, _FULL)
        covariance = np.diag(variance[:full])
        return GaussianState(np.append(0.0, zeros), covariance, variance[full:], np.zeros(2), rng)

    def _learn(self, state: Any, rows: Any, sign: np.ndarray, step: np.ndarray) -> Learned:
        scores, balanced = np.empty(len(sign)), self.class_weight == "balanced"
        if self.steps == "adagrad":
            learn_by_gradient(
                *rows, sign, step, state.coef, state.squares, state.intercept, state.seen,
                float(self.eta), balanced, scores,
            )  # fmt: skip
        else:
            learn_by_newton(
                *rows, sign, step, state.mean, state.covariance, state.alone, state.seen, balanced,
                scores,
            )  # fmt: skip
        return state, scores

    def _coef(self, state: Any) -> np.ndarray:
        coef: np.ndarray = state.coef if isinstance(state, LogisticState) else state.mean[1:]
        return coef

    def _offset(self, state: Any) -> float:
        if not self._coef(state).any():  # all rows are alike: none of them is called rare
            return 0.0
        majority, rare = state.seen.tolist()
        odds = rare / majority if rare and majority and self.class_weight is None else 1.0
        return log(odds) - _intercept(state)

    def _grown(self, state: Any, n_features: int) -> Any:
        n_before = len(self._coef(state))
        more = (0, n_features - n_before)
        if isinstance(state, LogisticState):
            coef, squares = np.pad(state.coef, more), np.pad(state.squares, more)
            return state._replace(coef=coef, squares=squares)
        begun = self._start(n_features, state.rng)
        full = len(state.covariance)
        begun.mean[: 1 + n_before] = state.mean
        begun.covariance[:full, :full] = state.covariance
        begun.alone[: len(state.alone)] = state.alone
        return begun._replace(seen=state.seen)

    def _reopened(self, state: Any) -> Any:
        begun = self._start(len(self._coef(state)), state.rng)
        if isinstance(state, LogisticState):
            intercept = np.array([state.intercept[0], 0.0])
            return state._replace(squares=begun.squares, intercept=intercept)
        return state._replace(covariance=begun.covariance, alone=begun.alone)


def _intercept(state: Any) -> float:
    return float(state.intercept[0] if isinstance(state, LogisticState) else state.mean[0])


class UniExpState(NamedTuple):
    """Moving state of UniExp."""

    coef: np.ndarray  # shape (n_features,): w
    weight_seen: np.ndarray  # shape (2,): weight of the majority rows and of the rare rows so far
    rng: np.random.Generator  # where the orders of `fit` come from


@dataclass(eq=False, repr=False)
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
    n_epochs, random_state, pos_label
        As in `OnlineRanker`.

    Attributes
    ----------
    offset_ : float
        Score above which a row is called rare: 0, where the loss of both classes is the same.

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

    eta: float = 0.01
    n_epochs: int = 1
    random_state: Any = None
    pos_label: Any = None

    def _check_parameters(self) -> None:
        check_number("eta", self.eta, "a finite number above 0")

    def _start(self, n_features: int, rng: np.random.Generator) -> UniExpState:
        return UniExpState(np.zeros(n_features), np.zeros(2), rng)

    def _learn(self, state: Any, rows: Any, sign: np.ndarray, step: np.ndarray) -> Learned:
        scores = np.empty(len(sign))
        learn_by_gradient(
            *rows, sign, step, state.coef, None, None, state.weight_seen, float(self.eta), True,
            scores,
        )  # fmt: skip
        return state, scores

    def _offset(self, state: UniExpState) -> float:
        return 0.0
