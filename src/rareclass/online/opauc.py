"""OPAUC, OPAUCr and AdaOAM: AUC by square loss, from the moments of both classes."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from rareclass.errors import ErrorKind
from rareclass.machine import check_fits
from rareclass.online._opauc_jit import learn, learn_projected
from rareclass.online.ranker import Learned, OnlineRanker
from rareclass.parameters import check_number, check_whole

# Steps take fourth powers of a row's values, and floats end at 1e308.
_LARGEST = 1e75


class ClassMoments(NamedTuple):
    """Moments of the majority (plane 0) and of the rare class (plane 1)."""

    weight: np.ndarray  # shape (2,): rows of a class, by weight
    mean: np.ndarray  # shape (2, n_features)
    # shape (2, n_features, n_features): sum of ``(x - mean)(x - mean)'``: `weight` times the
    # covariance
    scatter: np.ndarray
    spread: np.ndarray  # shape (2,): trace of `scatter`


class MomentState(NamedTuple):
    """Moving state of OPAUC with full covariances, and of AdaOAM."""

    coef: np.ndarray
    squares: np.ndarray  # AdaOAM's sums of squared gradients, shape (n_features,); (0,) of OPAUC
    moments: ClassMoments
    rng: np.random.Generator

    def grown(self, n_features: int) -> Self:
        """The same rows with zeros in the new features."""
        more = (0, n_features - len(self.coef))
        moments = self.moments._replace(
            mean=np.pad(self.moments.mean, ((0, 0), more)),
            scatter=np.pad(self.moments.scatter, ((0, 0), more, more)),
        )
        squares = np.pad(self.squares, more) if len(self.squares) else self.squares
        return self._replace(coef=np.pad(self.coef, more), squares=squares, moments=moments)

    def threshold(self) -> float:
        """The score between the classes: see `equal_error_threshold`."""
        weight, mean, scatter, _ = self.moments
        if not weight.all():
            return 0.0
        variance = ((scatter @ self.coef) @ self.coef) / weight
        return equal_error_threshold(mean @ self.coef, np.sqrt(np.maximum(variance, 0.0)))


class LowRankState(NamedTuple):
    """Moving state of OPAUC with a rank k.

    Each row x comes with its own draw r of k normal numbers. A class of mean c has a covariance
    close to ``Z Z' / (k weight)``, ``Z = sum (x - c) r'``: positive semi-definite, and right on
    average over the draws. The weights are ``w = basis along``, so that a row changes few numbers.
    """

    # shape (n_features, 2 k + 3): columns of sum x r', then sum x, of the majority and of the rare
    # class; and a last column for what of w is no combination of them
    basis: np.ndarray
    along: np.ndarray  # shape (2 k + 3,)
    gram: np.ndarray  # basis' basis
    draws: np.ndarray  # shape (2, k): sum r
    weight: np.ndarray  # shape (2,): rows of a class, by weight
    n_steps: np.ndarray  # shape (1,): since the last column held all of w
    rng: np.random.Generator

    @property
    def coef(self) -> np.ndarray:
        """w; O(n_features rank)."""
        return self.basis @ self.along

    def grown(self, n_features: int) -> Self:
        """The same rows with zeros in the new features."""
        more = n_features - len(self.basis)
        return self._replace(basis=np.pad(self.basis, ((0, more), (0, 0))))

    def threshold(self) -> float:
        """The score between the classes: see `equal_error_threshold`."""
        if not self.weight.all():
            return 0.0
        rank = self.draws.shape[1]
        products = (self.coef @ self.basis)[:-1].reshape(2, rank + 1)
        mean = products[:, rank] / self.weight
        spread = products[:, :rank] - self.draws * mean[:, None]
        return equal_error_threshold(mean, np.sqrt((spread**2).sum(axis=1) / (rank * self.weight)))


def equal_error_threshold(mean: np.ndarray, deviation: np.ndarray) -> float:
    """Point where two Gaussians have tails of equal mass, as many deviations from either mean.

    `mean` and `deviation` are those of the scores of each class. The midpoint when neither is
    spread out.

    >>> float(equal_error_threshold(np.array([0.0, 3.0]), np.array([1.0, 2.0])))
    1.0
    """
    both = deviation.sum()
    if both == 0.0:
        return float(mean.mean())
    return float(mean[0] + (mean[1] - mean[0]) * (deviation[0] / both))


class MomentRanker(OnlineRanker):
    """Linear ranker by the square loss of pairs, from the moments of both classes."""

    eta: float
    lam: float
    rank: int | None = None
    delta: float | None = None

    @property
    def _takes(self) -> Literal["dense", "sparse"]:  # type: ignore[override]
        return "dense" if self.rank is None else "sparse"

    def _check_parameters(self) -> None:
        check_number("eta", self.eta, "a finite number above 0")
        check_number("lam", self.lam, "a finite number at or above 0", ends="[)")
        if self.rank is not None:
            check_whole("rank", self.rank, "None or a whole number above 0")

    def _check_room(self, n_features: int) -> None:
        """Raise `ValueError` where the moments of so many features do not fit in memory."""
        kept, what = n_features, f"Two covariances of {n_features:,} features"
        instead = (
            f"OPAUC(rank=50) keeps 50 columns in place of {n_features:,}; or leave features out."
        )
        if self.rank is not None:
            kept, what = self.rank + 1, f"Sums of rank {self.rank} over {n_features:,} features"
            instead = "Choose a smaller rank, or leave features out."
        check_fits(16 * n_features * kept, what, instead)

    def _start(self, n_features: int, rng: np.random.Generator) -> MomentState | LowRankState:
        self._check_room(n_features)
        d = n_features
        if self.rank is None:
            moments = ClassMoments(np.zeros(2), np.zeros((2, d)), np.zeros((2, d, d)), np.zeros(2))
            return MomentState(np.zeros(d), np.zeros(0 if self.delta is None else d), moments, rng)
        width = 2 * (self.rank + 1) + 1
        along, draws = np.append(np.zeros(width - 1), 1.0), np.zeros((2, self.rank))
        basis, gram = np.zeros((d, width)), np.zeros((width, width))
        return LowRankState(basis, along, gram, draws, np.zeros(2), np.zeros(1, int), rng)

    def _learn(self, state: Any, rows: Any, sign: np.ndarray, step: np.ndarray) -> Learned:
        _check_size(rows)
        eta, lam, scores = float(self.eta), float(self.lam), np.empty(len(sign))
        if isinstance(state, LowRankState):
            # Every row has its draws, with a label or without, so that batches do not matter.
            drawn = state.rng.standard_normal((len(sign), state.draws.shape[1]))
            learn_projected(*rows, sign, step, drawn, eta, lam, *state[:-1], scores)
        else:
            delta, moments = self.delta and float(self.delta), tuple(state.moments)
            learn(rows, sign, step, eta, lam, delta, state.coef, state.squares, moments, scores)
        return state, scores

    def _offset(self, state: Any) -> float:
        return state.threshold()

    def _grown(self, state: Any, n_features: int) -> Any:
        self._check_room(n_features)
        return state.grown(n_features)


@dataclass(eq=False, repr=False)
class OPAUC(MomentRanker):
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

    eta: float = 2**-8
    lam: float = 1e-4
    rank: int | None = None
    n_epochs: int = 1
    random_state: Any = None
    pos_label: Any = None


@dataclass(eq=False, repr=False)
class AdaOAM(MomentRanker):
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
        As in `OnlineRanker`.

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

    eta: float = 2**-4
    lam: float = 1e-4
    delta: float = 0.5
    n_epochs: int = 1
    random_state: Any = None
    pos_label: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("delta", self.delta, "a finite number above 0")

    def _reopened(self, state: MomentState) -> MomentState:
        return state._replace(squares=np.zeros_like(state.squares))


def _check_size(rows: Any) -> None:
    """Raise `ValueError` on a value whose powers in a step would be beyond what floats hold."""
    values = rows if isinstance(rows, np.ndarray) else rows.data
    if not values.size or -_LARGEST <= values.min() <= values.max() <= _LARGEST:
        return
    at = np.unravel_index(int(np.abs(values).argmax()), values.shape)
    column = at[1] if isinstance(rows, np.ndarray) else rows.indices[at]
    raise ErrorKind.NOT_FINITE.error(
        f"column {column}: {float(values[at])!r} is too large to learn from: powers of it are "
        f"beyond what floats hold. Scale the column; values up to {_LARGEST:g} will do."
    )
