"""How learning begins: width, landmarks and the zero function, within a memory budget."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.kernels.kernels import Matrix, kernel_width, make_kernel
from rareclass.kernels.landmarks import LandmarkRule, distinct_landmarks
from rareclass.parameters import check_number, check_whole
from rareclass.ranking.losses import make_loss
from rareclass.ranking.losses.margin_loss import MarginLoss
from rareclass.ranking.stochastic.landmark_space import SQUARES, check_memory, span
from rareclass.ranking.stochastic.learner import Learned
from rareclass.ranking.stochastic.weighted_rows import WeightedRows
from rareclass.rows import ArrayRows, RowSource, as_source


class Beginning(NamedTuple):
    """Parameters that say how to begin."""

    kernel: Any  # as in `StochasticRankRC`, as width and landmarks
    width: Any
    landmarks: Any
    memory: int  # bytes

    def __call__(
        self, rare: WeightedRows, majority: WeightedRows, chooser: np.random.RandomState
    ) -> Learned:
        """The zero function, with the width of these rows if none is given."""
        rows = rare.joined(majority)
        X: Any = rows.X
        source = RowSource(X.shape, X.dtype, lambda which: X[which], sparse.issparse(X))
        width = width_of(self, source, rows.weight, X[:1])
        return self.with_width(width, rare, chooser)

    def with_width(
        self, width: float, rare: WeightedRows, chooser: np.random.RandomState
    ) -> Learned:
        """The zero function in the span of the landmarks."""
        kernel = make_kernel(self.kernel, width)
        rule, X = LandmarkRule(self.landmarks), rare.X
        if rule.points is not None:
            points = as_source(rule.points)
            if points.n_features != X.shape[1]:
                raise ValueError(f"landmarks has {points.n_features} columns, X has {X.shape[1]}.")
            landmarks = distinct_landmarks(points.take(slice(None)), None).points
        else:
            rule.check_memory(len(rare), self.memory)
            numbers = np.arange(len(rare))
            chosen = rule.choose(numbers, lambda: numbers, lambda rows: X[rows], chooser, kernel)
            landmarks = distinct_landmarks(X[chosen], chosen).points
        check_memory(landmarks, len(rare), self.memory)
        return Learned.start(span(kernel, landmarks), width, rare)


def width_of(
    beginning: Beginning, rows: RowSource, weight: np.ndarray | None, near: Matrix
) -> float:
    """Sigma, from rows where it is not a number; `near` is a row near the others."""

    def everything() -> tuple[ArrayRows, np.ndarray | None]:
        shift = None if rows.is_sparse else np.asarray(near, dtype=np.float64)[0]
        return ArrayRows(rows, weight=weight, n_jobs=1), shift

    return kernel_width(beginning.width, beginning.kernel, everything)


def check_numbers(lam: Any, tol: Any, max_iter: Any, block_rows: Any, batch_size: Any) -> None:
    """Refuse what cannot be worked with, naming the parameter and its range."""
    check_number("lam", lam)
    check_number("tol", tol)
    check_whole("max_iter", max_iter)
    check_whole("block_rows", block_rows)
    if batch_size != "auto":
        check_whole("batch_size", batch_size, "a whole number above 0 or 'auto'")


def plain_loss(loss: Any, eps: float, loss_params: dict[str, Any] | None) -> MarginLoss:
    """The loss of the parameters, which mini-batches can stand for: a plain sum over pairs."""
    made = make_loss(loss, eps, loss_params)
    if not isinstance(made, MarginLoss):
        raise ValueError(
            f"loss={loss!r} is no plain sum over pairs, which mini-batches could stand "
            "for. Use 'smoothed_hinge', 'squared_hinge', 'logistic' or 'exponential', or "
            "RankRC, which sees all rows at once."
        )
    return made


def check_landmarks(landmarks: Any) -> None:
    """Refuse landmarks that are not rare rows or points: the majority is not held."""
    rule = LandmarkRule(landmarks)
    if rule.points is not None:
        return
    name = landmarks[0] if isinstance(landmarks, tuple) and landmarks else landmarks
    if not (isinstance(name, str) and name == "rare"):
        raise ValueError(
            f"landmarks={landmarks!r} is not 'rare', ('rare', k), ('rare', k, "
            "'pivoted_cholesky') or a matrix of points: rows of the majority, which is not held, "
            "cannot be picked. RankRC takes them as landmarks."
        )
    if isinstance(landmarks, tuple):
        rule.check_memory(0, 1)  # its form


def most_landmarks(landmarks: Any, memory: int) -> float:
    """How many landmarks there may be, counting rare rows that come later."""
    if LandmarkRule(landmarks).points is not None:
        return 0
    fitting = (memory / (2 * 8 * SQUARES)) ** 0.5
    return min(landmarks[1], fitting) if isinstance(landmarks, tuple) else fitting
