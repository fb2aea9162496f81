"""CBR: confidence-weighted bipartite ranking (Khalid, Ray and Chitsaz 2016)."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from rareclass.machine import check_fits
from rareclass.online import _cbr_full_jit, _sparse_pairs_jit
from rareclass.online._vectors_jit import LANES, aligned
from rareclass.online.ranker import Learned, OnlineRanker
from rareclass.online.state import DenseBuffers, SparseBuffers, check_buffer, share_of_others, slots
from rareclass.parameters import check_choice, check_number

# Share of pairs that take steps, lately, above which working them all out is faster
# (docs/decisions/0011).
_BUSY = 0.25


class FullState(NamedTuple):
    """The moving state of CBR with a full covariance."""

    mean: np.ndarray  # shape (n_features,)
    # S, shape (n_features, n_features): the identity at the start, only ever shrinking
    covariance: np.ndarray
    buffers: DenseBuffers
    bound: np.ndarray  # shape (2, capacity): at least x_b' S x_b of every buffered row
    share: np.ndarray  # shape (1,): of the pairs of the last rows, those that took a step
    rng: np.random.Generator


class DiagonalState(NamedTuple):
    """The moving state of CBR-diag."""

    mean: np.ndarray  # shape (n_features,): the weights
    # shape (n_features,): G, the inverse of their variances: 1 at the start, only growing
    precision: np.ndarray
    buffers: SparseBuffers
    rng: np.random.Generator


@dataclass(eq=False, repr=False)
class CBR(OnlineRanker):
    """Online ranking with a Gaussian over linear rankers, Algorithms 1 to 3.

    The ranker is ``f(x) = mu . x`` with ``w ~ N(mu, S)``. A new row x_t meets every buffered row
    x_b of the other class; with ``z = x_t - x_b``, ``y`` = +1 where x_t is the rare one and -1
    where x_b is, each pair moves the Gaussian as little as it can, equation (5):

        min over (mu, S) of KL(N(mu, S) || N(mu_t, S_t)) + C max(0, phi sqrt(z'S z) - y mu.z)

    where ``phi`` is the normal quantile of ``eta``: the pair should be in the right order with
    probability eta. Proposition 1 has the closed form, soft confidence-weighted learning's. Along
    directions that many pairs have settled, S is small and so are the steps to come. Where S is to
    stay diagonal, equation (6), with ``G_i = 1 / S_ii``, the minimum is

        mu += alpha y z / G,    G += beta z^2,    beta = alpha phi / sqrt(sum z^2 / (G + beta z^2)),

    alpha being C, or less where the loss after the step is 0: the root of an equation in beta.

    Parameters
    ----------
    C : float, default=1.0
        The largest step of a pair, above 0. Less makes the ranker slower to follow single rows:
        for noisy labels. Powers of two from 2^-10 to 2^10 are worth trying.
    eta : float, default=0.7
        Probability with which a pair should be in order, above 0.5 and below 1. More asks for
        a wider margin.
    buffer_size : int, default=50
        Rows of each class that are held.
    policy : {"fifo", "reservoir"}, default="fifo"
        Whether the newest rows are held, which follows a stream that drifts, or a uniform
        sample of all rows so far.
    covariance : {"full", "diagonal"}, default="full"
        "full" learns from dense rows and takes ``n_features^2`` numbers. "diagonal" is
        CBR-diag, for many features: dense or sparse rows are used by their non-zeros.
    class_weight : {"balanced"} or None, default=None
        Whether C is the same for both classes, as in the paper's experiments, or
        ``C_t = 2 C N_other / N`` with the numbers of rows so far, of the other class and of both:
        the class-specific C_t of Algorithm 3. With "balanced" the rows of either class may move
        the ranker equally far in all. Without it the many rows of the majority use up the variance
        on the few rare rows that are buffered: in a stream with few rare rows choose "balanced".
    n_epochs, random_state, pos_label
        As in `OnlineRanker`.
    diagonal_step : {"exact", "printed"}, default="exact"
        The step of a diagonal covariance; a full one always takes Proposition 1's. "exact" solves
        equation (6) for each pair. "printed" is Proposition 2 as the paper has it, which does not
        minimise (6): at a large C its steps are far too long or too short, at a small one the two
        are alike and it takes about two thirds of the time (docs/decisions/0062). `rareclass
        stream`, where C is small, begins with "printed".

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        mu.
    offset_ : float
        Score above which a row is called rare: the threshold with the greatest balanced accuracy
        between the buffered rows.

    Raises
    ------
    ValueError
        As in `OnlineRanker`, and when a full covariance would not fit in memory.

    Notes
    -----
    Full covariance, a row: O(n_features^2 + buffer_size n_features), and as much again for every
    pair that takes a step. Because S only shrinks, a variance worked out earlier is an upper
    bound for ever, and most pairs are put aside by it at O(1) each (docs/decisions/0011).
    Diagonal: O(buffer_size times non-zeros of a row). Memory does not grow with the stream.
    Scale features first: S begins as the identity, and features with deviations of a million and
    more use up its digits.

    References
    ----------
    Khalid, Ray, Chitsaz, "Confidence-Weighted Bipartite Ranking", ADMA 2016. Wang, Zhao, Hoi,
    "Exact Soft Confidence-Weighted Learning", ICML 2012.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(2000, weights=[0.95], class_sep=2.0, random_state=0)
    >>> stream = CBR(random_state=0).start(X.shape[1], classes=[0, 1])
    >>> scores = stream.test_then_train(X, y)  # each row scored before it is learned
    >>> from rareclass.metrics import roc_auc
    >>> bool(roc_auc(y[200:], scores[200:]) > 0.9)
    True
    """

    _steps_shrink = True

    C: float = 1.0
    eta: float = 0.7
    buffer_size: int = 50
    policy: str = "fifo"
    covariance: str = "full"
    random_state: Any = None
    class_weight: str | None = None
    n_epochs: int = 1
    pos_label: Any = None
    diagonal_step: str = "exact"

    @property
    def _takes(self) -> Any:  # type: ignore[override]
        return "dense" if self.covariance == "full" else "sparse"

    def _check_parameters(self) -> None:
        check_number("C", self.C, "a finite number above 0")
        check_buffer(self.buffer_size, self.policy)
        check_number("eta", self.eta, "above 0.5 and below 1", 0.5, 1.0)
        check_choice("class_weight", self.class_weight, (None, "balanced"))
        check_choice("covariance", self.covariance, ("full", "diagonal"))
        check_choice("diagonal_step", self.diagonal_step, ("exact", "printed"))

    def _start(self, n_features: int, rng: np.random.Generator) -> Any:
        mean = np.zeros(n_features)
        if self.covariance == "diagonal":
            empty = SparseBuffers.empty(self.buffer_size)
            return DiagonalState(mean, np.ones(n_features), empty, rng)
        _check_memory(n_features)
        buffers = DenseBuffers.empty(n_features, self.buffer_size)
        bound = np.zeros((2, self.buffer_size))
        return FullState(mean, np.eye(n_features), buffers, bound, np.zeros(1), rng)

    def _learn(self, state: Any, rows: Any, sign: np.ndarray, step: np.ndarray) -> Learned:
        buffers = state.buffers
        slot = slots(self.policy, self.buffer_size, buffers.seen, sign, state.rng)
        if self.class_weight == "balanced":
            step = step * 2.0 * share_of_others(buffers.seen, sign)
        most, scores = float(self.C) * step, np.empty(len(sign))
        phi = NormalDist().inv_cdf(float(self.eta))
        if self.covariance == "full":
            covariance = _wide(state.covariance)
            state = state._replace(covariance=covariance[:, : len(state.mean)])
            _cbr_full_jit.learn(
                rows, sign, most, slot, state.mean, covariance, *buffers, state.bound, state.share,
                phi, _BUSY, scores,
            )  # fmt: skip
            return state, scores
        buffers = buffers.fitting(int(np.diff(rows.indptr).max(initial=0)))
        added = 0.0 if self.diagonal_step == "exact" else float(self.C)
        _sparse_pairs_jit.learn(
            *rows, sign, most, slot, state.mean, state.precision, *buffers, phi, added, scores
        )
        return state._replace(buffers=buffers), scores

    def _coef(self, state: Any) -> np.ndarray:
        return state.mean

    def _grown(self, state: Any, n_features: int) -> Any:
        more = n_features - len(state.mean)
        state = state._replace(mean=np.pad(state.mean, (0, more)))
        if self.covariance == "diagonal":
            return state._replace(precision=np.pad(state.precision, (0, more), constant_values=1.0))
        _check_memory(n_features)
        covariance = np.eye(n_features)
        covariance[:-more, :-more] = state.covariance
        return state._replace(covariance=covariance, buffers=state.buffers.grown(n_features))

    def _reopened(self, state: Any) -> Any:
        if self.covariance == "diagonal":
            return state._replace(precision=np.ones_like(state.precision))
        # S is the identity again, and x_b' S x_b of a buffered row its squared length.
        return state._replace(
            covariance=np.eye(len(state.mean)),
            bound=(state.buffers.rows**2).sum(axis=1),
            share=np.zeros(1),
        )


def _wide(covariance: np.ndarray) -> np.ndarray:
    """S with columns of zeros up to a multiple of `LANES`: what it is a view of, or a copy.

    The state holds the view: only what was read from a file, unpickled or grown is copied, once.
    """
    d = len(covariance)
    width = -(-d // LANES) * LANES
    held = covariance.base
    if isinstance(held, np.ndarray) and held.dtype == float and held.ndim == 1:
        start = (covariance.ctypes.data - held.ctypes.data) // 8
        if covariance.strides == (8 * width, 8) and 0 <= start <= held.size - d * width:
            return held[start : start + d * width].reshape(d, width)
    wide = aligned(d, width)
    wide[:, :d] = covariance
    return wide


def _check_memory(n_features: int) -> None:
    check_fits(
        8 * n_features**2,
        f"The covariances of {n_features:,} features",
        "covariance='diagonal' takes two numbers a feature.",
    )
