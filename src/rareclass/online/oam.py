"""OAM: online AUC maximisation by first-order steps over two buffers."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from rareclass.online._sparse_pairs_jit import learn
from rareclass.online.ranker import Learned, OnlineRanker
from rareclass.online.state import SparseBuffers, check_buffer, slots
from rareclass.parameters import check_number


class OAMState(NamedTuple):
    """Moving state of OAM."""

    coef: np.ndarray  # shape (n_features,): w
    buffers: SparseBuffers
    rng: np.random.Generator  # where reservoirs draw from


@dataclass(eq=False, repr=False)
class OAM(OnlineRanker):
    r"""Ranks by a weight vector that each new row corrects against a buffer of the other class.

    A pair of the new row x_t of class ``y = +1`` (rare) or ``-1`` and a buffered row b of the other
    class has the difference ``z = x_t - b`` and the hinge loss ``l(w) = max(0, 1 - y w.z)``. Every
    pair stands for the rows of its class that the buffer does not hold::

        C_t = C max(1, N / buffer_size),    N rows of the other class so far.

    The pairs are taken one after the other, in the order of the slots; each solves
    ``min_w |w - w_now|^2 / 2 + C_t l(w)``, a passive-aggressive step::

        w += tau y z,    tau = min(C_t, l(w) / |z|^2).

    Parameters
    ----------
    C : float, default=1.0
        Greatest size of a step. Larger follows the last rows more closely; smaller averages over
        more of the stream.
    buffer_size : int, default=50
        Rows kept of each class. More rows make the steps steadier, at time and memory in
        proportion.
    policy : {"reservoir", "fifo"}, default="reservoir"
        "reservoir" keeps a uniform sample of all rows of a class; "fifo" the latest, for streams
        that drift.
    n_epochs, random_state, pos_label
        As in `OnlineRanker`.

    Attributes
    ----------
    offset_ : float
        Score above which a row is called rare: the best balanced accuracy on the buffered rows.

    Notes
    -----
    Time O(non-zeros of the buffered rows of the other class) a row, and as much again for each
    step; nothing depends on the number of features. Memory: w, a workspace of the same
    size and ``2 buffer_size`` rows as wide as the widest so far. Pairs of equal rows (z = 0) are
    passed over. A row of weight between 0 and 1 has its C_t scaled by it.

    References
    ----------
    .. [1] Zhao, Hoi, Jin, Yang, "Online AUC Maximization", ICML 2011: OAM_seq.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(2000, weights=[0.95], random_state=0)
    >>> model = OAM(C=0.01, random_state=0).partial_fit(X, y, classes=[0, 1])
    >>> bool(model.score(X, y) > 0.85)
    True
    """

    _takes = "sparse"

    C: float = 1.0
    buffer_size: int = 50
    policy: Literal["fifo", "reservoir"] = "reservoir"
    n_epochs: int = 1
    random_state: Any = None
    pos_label: Any = None

    def _check_parameters(self) -> None:
        check_number("C", self.C, "a finite number above 0")
        check_buffer(self.buffer_size, self.policy)

    def _start(self, n_features: int, rng: np.random.Generator) -> OAMState:
        return OAMState(np.zeros(n_features), SparseBuffers.empty(self.buffer_size), rng)

    def _learn(self, state: Any, rows: Any, sign: np.ndarray, step: np.ndarray) -> Learned:
        buffers = state.buffers.fitting(int(np.diff(rows.indptr).max(initial=0)))
        slot = slots(self.policy, self.buffer_size, buffers.seen, sign, state.rng)
        scores = np.empty(len(sign))
        learn(
            *rows, sign, float(self.C) * step, slot, state.coef, None, *buffers, None, 0.0, scores
        )
        return state._replace(buffers=buffers), scores
