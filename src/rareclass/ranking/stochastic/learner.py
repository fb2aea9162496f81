"""A function in the span of landmarks, learned so far, and how a mini-batch changes it."""

from typing import Any, NamedTuple, Self

import numpy as np
from scipy import linalg

from rareclass.kernels.expansion import KernelExpansion, expand, pull_back, whiten
from rareclass.kernels.kernels import Kernel, Matrix
from rareclass.kernels.landmarks import pivots_of
from rareclass.machine import size_text
from rareclass.ranking.losses import PairLoss
from rareclass.ranking.ranking_data import landmark_kernel
from rareclass.ranking.stochastic.weighted_rows import WeightedRows
from rareclass.rows import ArrayRows, Block, RowSource
from rareclass.rows.source import stacked

# Rows whose kernel is held at a time.
_ROWS_AT_ONCE = 1024
SQUARES = 5
"""Matrices of landmarks that are held at a time: the running model, a batch's, and their like."""


class LandmarkSpace(NamedTuple):
    """Landmarks, their kernel, and the coordinates in which the regulariser is the identity."""

    expansion: KernelExpansion  # kernel and landmarks
    # T, shape (n_landmarks, rank): coefficients are T @ w, rows k(x, landmarks) @ T
    whitener: np.ndarray

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return self.whitener.shape[1]

    def kernel(self, X: Matrix) -> np.ndarray:
        """Kernel of rows against the landmarks: shape (n, n_landmarks)."""
        return self.expansion.kernel.block(X, self.expansion.landmarks)

    def features(self, X: Matrix) -> np.ndarray:
        """Whitened coordinates of rows, in the dtype of the landmarks: shape (n, rank).

        Where landmarks are float32 so is the kernel: rounding its coordinates loses no more than
        that did.
        """
        found = np.empty((X.shape[0], self.rank), dtype=self.expansion.landmarks.dtype)
        for start in range(0, len(found), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            found[rows] = expand(self.kernel(X[rows]), self.whitener)
        return found


def span(kernel: Kernel, points: Matrix) -> LandmarkSpace:
    """The span of the kernel functions of some points: O(n_landmarks^3) time."""
    whitener = whiten(landmark_kernel(kernel, points), points.dtype)
    return LandmarkSpace(KernelExpansion(kernel, points), whitener)


def widened(space: LandmarkSpace, rows: Matrix, most: float) -> LandmarkSpace:
    r"""The same coordinates and further ones, for rows that lie outside the span.

    With coordinates u of the new landmarks z and :math:`k(z, z') - u u' = L L'`, the new
    coordinates of a row x are :math:`L^{-1} (k(z, x) - u \, T' k(Z, x))`: what is left of the new
    kernel functions outside the span, orthonormal. Rows are taken by pivoted Cholesky, the one
    farthest from the span first, while their squared distance can be told from rounding: it exceeds
    ``max(eps(dtype), sqrt(eps64))`` times the mean of k(z, z).

    At most `most` landmarks in all; `space` itself when no row is worth one.

    Cost: O(n (n_landmarks + new landmarks) (n_features + rank + new landmarks)) time and O(n
    (n_landmarks + new landmarks)) memory; nothing where `most` leaves no room.
    """
    room = int(min(most - space.expansion.n_landmarks, rows.shape[0]))
    if room < 1:
        return space
    (kernel, landmarks), T = (space.expansion.kernel, space.expansion.landmarks), space.whitener
    wide: Any = rows.astype(np.float64)
    u = kernel.block(wide, landmarks.astype(np.float64)) @ T
    diagonal = np.asarray(kernel.diag(wide), dtype=np.float64)
    scale = float(np.abs(diagonal).mean())
    least = max(np.finfo(landmarks.dtype).eps, np.finfo(np.float64).eps ** 0.5) * scale
    chosen = pivots_of(
        diagonal - (u * u).sum(axis=1),
        lambda p: kernel.block(wide, wide[p : p + 1])[:, 0] - u @ u[p],
        room,
        least,
    )
    if not len(chosen):
        return space
    K = kernel.block(wide[chosen], wide[chosen])
    L = linalg.cholesky(0.5 * (K + K.T) - u[chosen] @ u[chosen].T, lower=True)
    out = linalg.solve_triangular(L, np.eye(len(chosen)), lower=True).T
    wider = np.block([[T, -T @ (u[chosen].T @ out)], [np.zeros((len(chosen), T.shape[1])), out]])
    return LandmarkSpace(KernelExpansion(kernel, stacked([landmarks, rows[chosen]])), wider)


def check_memory(landmarks: Matrix, n_rare: int, memory: int) -> None:
    """Raise `ValueError` when landmarks and rare rows take more than `memory` bytes."""
    n_landmarks, size = landmarks.shape[0], landmarks.dtype.itemsize
    squares, rare = 8 * SQUARES * n_landmarks**2, size * n_rare * n_landmarks
    if squares + rare <= memory:
        return
    most = int(min((memory / (2 * 8 * SQUARES)) ** 0.5, memory / (2 * size * n_rare)))
    remedy = f"Allow at least memory='{-(-(squares + rare) // 1024)}KiB'"
    if most > 0:
        remedy += f", or pass landmarks=('rare', k) with k of at most {most:,}"
    raise ValueError(
        f"memory= allows {size_text(memory)}; the matrices of {n_landmarks:,} landmarks take "
        f"{size_text(squares)}, {n_rare:,} rare rows in their coordinates {size_text(rare)}. "
        f"{remedy}."
    )


# A batch weighs as the cube of what was seen up to it: a model made far from the minimum is soon
# forgotten, and the last pass alone still weighs less than all.
_FORGETTING = 3
# Batches over which the estimate of the gap is averaged, at most.
_FEW = 20


class BatchModel(NamedTuple):
    """Value, gradient and curvature of the loss over one mini-batch at a point, no regulariser."""

    value: float
    gradient: np.ndarray
    curvature: np.ndarray


class Minimum(NamedTuple):
    """Minimum of the regularised model."""

    w: np.ndarray
    value: float  # the model there
    decrease: float  # by how much that is below the model at the point where it was asked for


class RunningModel(NamedTuple):
    r"""The average of second-order expansions of mini-batch losses, each at the point of its time.

    .. math::

        q(w) = \sum_b a_b \bigl( F_b(w_b) + g_b'(w - w_b) + \tfrac12 (w - w_b)' H_b (w - w_b)
        \bigr) = e - c'w + \tfrac12 w' A w

    Its gradient at w is the average of mini-batch gradients, each carried to w along its own
    curvature. Once the pairs on the bends of the loss settle, that is exact, and q + the
    regulariser over all rows is the objective itself.
    """

    A: np.ndarray  # shape (rank, rank)
    c: np.ndarray  # shape (rank,)
    e: float = 0.0
    mass: float = 0.0  # total weight of the batches
    # total of their weights in the average, relative to the last: what a batch is set against
    window: float = 0.0
    share: float = 1.0  # weight of the last batch in the average
    gap: float = 0.0  # estimated distance of the objective from its minimum, over the last batches

    @classmethod
    def empty(cls, rank: int) -> "RunningModel":
        """Nothing seen."""
        return cls(np.zeros((rank, rank)), np.zeros(rank))

    def share_of(self, weight: float, least: float) -> float:
        """Share of a batch of this weight in the average; `least` is a lower bound."""
        mass = self.mass + weight
        window = self.window * (self.mass / mass) ** _FORGETTING + weight
        return min(1.0, max(weight / window, least))

    def updated(self, batch: BatchModel, w: np.ndarray, weight: float, share: float) -> Self:
        """The average with one more batch, seen at w, which weighs `share` in it."""
        Hw = batch.curvature @ w
        e = batch.value - float(batch.gradient @ w) + 0.5 * float(w @ Hw)
        return self._replace(
            A=self.A + share * (batch.curvature - self.A),
            c=self.c + share * (Hw - batch.gradient - self.c),
            e=self.e + share * (e - self.e),
            mass=self.mass + weight,
            window=weight / share,
            share=share,
        )

    def value(self, w: np.ndarray, lam: float) -> float:
        """The regularised model at a point."""
        return self.e - float(self.c @ w) + 0.5 * float(w @ (self.A @ w) + lam * (w @ w))

    def minimum(self, w: np.ndarray, lam: float) -> Minimum:
        """The minimum of the regularised model, looked for from w: O(rank^3)."""
        H = self.A.copy()
        H[np.diag_indices_from(H)] += lam
        gradient = H @ w - self.c
        try:
            factor = linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
            step = -linalg.cho_solve(factor, gradient, check_finite=False)
        except linalg.LinAlgError:
            # lam is below the rounding error of A: directions that A does not resolve stay.
            values, vectors = linalg.eigh(self.A, check_finite=False)
            noise = len(values) * np.finfo(np.float64).eps * float(np.abs(values).max())
            step = -vectors @ ((gradient @ vectors) / np.maximum(values + lam, lam + noise))
        found = w + step
        return Minimum(found, self.value(found, lam), max(-0.5 * float(gradient @ step), 0.0))

    def noted(self, decrease: float) -> Self:
        r"""Update the gap from the decrease of the regularised model by the last batch.

        A fresh batch that weighs a in the average moves the minimum of the model by noise of
        variance a^2, while the average itself has variance a / 2: its objective is above the
        minimum by the decrease that one batch brings, over 2 a.
        """
        share = max(self.share, 1.0 / _FEW)
        return self._replace(gap=self.gap + share * (decrease / (2.0 * self.share) - self.gap))

    def widened(self, rank: int) -> Self:
        """Add coordinates, curved like the most curved one until batches say better."""
        more = rank - len(self.c)
        A = np.zeros((rank, rank))
        A[:-more, :-more] = self.A
        A[np.arange(rank - more, rank), np.arange(rank - more, rank)] = self.A.diagonal().max(
            initial=0.0
        )
        return self._replace(A=A, c=np.pad(self.c, (0, more)))

    def discounted(self, share: float) -> Self:
        """Count what was seen by `share` only: the rest of its pairs were not there yet."""
        return self._replace(mass=share * self.mass, window=share * self.window)


# Rows a block when the kernel of a batch is worked out.
_BLOCK_ROWS = 512
# Rows of either class whose pairs are formed for the curvature: in a batch that stands alone, in
# the average over many, and at least in one of these.
_ROWS_ALONE, _ROWS_IN_AVERAGE, _LEAST_MAJORITY, _LEAST_RARE = 4096, 2048, 256, 512
# Of a line search: trials, and the least share of a step that the next trial keeps.
_MOST_TRIALS, _LEAST_SHARE = 12, 0.05


class HeldRare(NamedTuple):
    """All rare rows: themselves, their weights and their whitened coordinates."""

    rows: WeightedRows
    features: np.ndarray

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Scores of the function with weights w, in float64."""
        return expand(self.features, w)


class Scores(NamedTuple):
    """Scores of a function, or their changes along a direction."""

    rare: np.ndarray
    majority: np.ndarray


class TrialStep(NamedTuple):
    """A step in the coordinates, and what it means for the scores of a batch."""

    w: np.ndarray  # shape (rank,), as step
    step: np.ndarray
    scores: Scores  # at w
    changes: Scores  # along the step

    def taken(self, t: float) -> tuple[np.ndarray, Scores]:
        """The point and the scores when `t` of it is taken."""
        (rare, majority), (by_rare, by_row) = self.scores, self.changes
        return self.w + t * self.step, Scores(rare + t * by_rare, majority + t * by_row)


class MiniBatch:
    r"""The objective over some majority rows b and all rare rows:

    .. math::

        F_b(w) = \frac{1}{W_+ W_b} \sum_{i \in P} \sum_{j \in b} w_i w_j \,
        \ell\bigl(w'\phi(x_i) - w'\phi(x_j)\bigr) + \frac{\lambda}{2} \|w\|^2 .

    `n_jobs` threads work out the kernel.
    """

    def __init__(
        self,
        loss: PairLoss,
        lam: float,
        space: LandmarkSpace,
        rare: HeldRare,
        rows: WeightedRows,
        n_jobs: int | None,
    ) -> None:
        self.loss, self.lam, self.space, self.rare = loss, lam, space, rare
        self.rare_weight = rare.rows.weight / rare.rows.weight.sum()
        self.weight = rows.weight / rows.weight.sum()
        X: Any = rows.X
        source = RowSource(X.shape, X.dtype, lambda which: X[which], not isinstance(X, np.ndarray))
        self.K = ArrayRows(source, block_rows=_BLOCK_ROWS, n_jobs=n_jobs).map(_block_kernel, space)

    def scores(self, w: np.ndarray) -> Scores:
        """Scores of the function with weights w; they are linear in w."""
        return Scores(self.rare.scores(w), expand(self.K, self.space.whitener @ w))

    def step(self, w: np.ndarray, step: np.ndarray) -> TrialStep:
        """A step from w, as this batch sees it."""
        return TrialStep(w, step, self.scores(w), self.scores(step))

    def length(self, step: TrialStep, noise: float) -> float:
        """Share of a step to take: all, unless the batch says that the step leads up.

        A step comes from batches before this one, which judges it.

        A rise by the share `noise` of its value is taken for noise of the batch.
        """
        value, slope = self._along(step, 0.0)
        t = 1.0
        for _ in range(_MOST_TRIALS):
            trial, trial_slope = self._along(step, t)
            if trial <= (1.0 + noise) * value:
                return t
            # The root of the slope, as far as its two ends tell; inf and nan mean far too far.
            share = -slope / (trial_slope - slope) if np.isfinite(trial_slope) else 0.0
            t *= min(max(share, _LEAST_SHARE), 0.5)
        return 0.0

    def _along(self, step: TrialStep, t: float) -> tuple[float, float]:
        """Value and slope part of the way."""
        w, at = step.taken(t)
        value, by_rare, by_row, *_ = self._pairs(at)
        slope = float(by_rare @ step.changes.rare + by_row @ step.changes.majority)
        regulariser = 0.5 * self.lam * float(w @ w)
        return value + regulariser, slope + self.lam * float(w @ step.step)

    def _pairs(self, at: Scores) -> tuple[float, np.ndarray, np.ndarray, Any, Any]:
        """Value of the pairs, slopes by rare and majority row, the rare side, the zones."""
        side = self.loss.rare(at.rare, self.rare_weight)
        terms = self.loss.block(side, at.majority, self.weight)
        done = self.loss.finish(side, terms.sums)
        return terms.value + done.value, done.gradient, terms.gradient, side, terms.zone

    def model(self, at: Scores, share: float, rng: np.random.Generator) -> BatchModel:
        """Value and gradient of the loss, exactly, and its curvature from a sample of the pairs.

        The more the batch will weigh in an average, its `share`, the larger the sample. One draw a
        majority row and one more.
        """
        value, by_rare, by_row, side, zone = self._pairs(at)
        pulled = pull_back(self.K, by_row) @ self.space.whitener
        gradient = pull_back(self.rare.features, by_rare) + pulled
        return BatchModel(value, gradient, self._curvature(at, side, zone, share, rng))

    def _curvature(
        self, at: Scores, side: Any, zone: Any, share: float, rng: np.random.Generator
    ) -> np.ndarray:
        r"""An unbiased estimate of :math:`F' C F` for pair curvatures, with sampled rows."""
        draws, start = rng.random(len(self.weight)), rng.random()
        curved = np.flatnonzero(self.loss.curved(zone) & (self.weight > 0.0))
        rank = self.space.rank
        if not len(curved):
            return np.zeros((rank, rank))
        in_average = int(share * _ROWS_IN_AVERAGE) if share < 1.0 else _ROWS_ALONE
        chosen = curved
        most = max(_LEAST_MAJORITY, in_average)
        if len(curved) > most:
            chosen = np.sort(curved[np.argpartition(draws[curved], most)[:most]])
        n_rare = len(self.rare_weight)
        stride = -(-n_rare // max(_LEAST_RARE, in_average))
        first = int(start * stride)
        n_chosen = len(range(first, n_rare, stride))
        factor = (len(curved) / len(chosen)) * (n_rare / max(n_chosen, 1))
        weight = factor * self.weight[chosen]
        majority = expand(self.K[chosen], self.space.whitener)
        by_row, crossing = np.zeros(len(chosen)), np.zeros((len(chosen), rank))
        half = np.zeros((rank, rank))
        # All pairs with some of the rare rows are formed at a time.
        n_parts = -(-n_chosen // _LEAST_RARE)
        for part in range(n_parts):
            which = slice(first + part * stride, None, n_parts * stride)
            rare = self.rare.features[which].astype(np.float64)
            C = self.loss.pair_curvature(side, which, at.majority[chosen]) * weight
            by_row += C.sum(axis=0)
            crossing += C.T @ rare
            half += 0.5 * (rare * C.sum(axis=1)[:, None]).T @ rare
        # The crossing term once, the squares by half: with the transpose added it is all there.
        half += majority.T @ (0.5 * majority * by_row[:, None] - crossing)
        return half + half.T


def _block_kernel(block: Block, space: LandmarkSpace) -> np.ndarray:
    return space.kernel(block.X)


# Rise of the value of a mini-batch that is taken for its noise.
_NOISE = 0.01
# Once there were more, the average is over the last so many passes: over a whole number of them
# much of the noise of mini-batches cancels.
_PASSES_IN_AVERAGE = 2.0


class LearnerSettings(NamedTuple):
    """Settings of the learner."""

    loss: PairLoss
    lam: float
    n_jobs: int | None
    most_landmarks: float  # rare rows that come later become landmarks up to so many
    memory: int  # bytes for landmarks and rare rows


class LearnedFunction(NamedTuple):
    """A function in the span of landmarks and what it was learned from."""

    space: LandmarkSpace
    width: float  # sigma
    rare: HeldRare
    model: RunningModel  # of the objective
    w: np.ndarray  # shape (rank,): where the last batch was looked at
    # from there to the minimum of the model: the function that is learned is w + step
    step: np.ndarray
    n_batches: int = 0

    @classmethod
    def start(cls, space: LandmarkSpace, width: float, rare: WeightedRows) -> Self:
        """The zero function."""
        zero = np.zeros(space.rank)
        held = HeldRare(rare, space.features(rare.X))
        return cls(space, width, held, RunningModel.empty(space.rank), zero, zero)

    @property
    def weights(self) -> np.ndarray:
        """Weights of the function learned, in whitened coordinates."""
        return self.w + self.step

    @property
    def coefficients(self) -> np.ndarray:
        """Coefficients of the function learned, one a landmark."""
        return self.space.whitener @ self.weights

    def objective(self, lam: float) -> float:
        """The objective, as the model knows it."""
        return self.model.value(self.weights, lam)

    def relative_gap(self, lam: float) -> float:
        """Estimated distance of the objective from its minimum, relative to it."""
        value = self.objective(lam)
        return self.model.gap / value if value > 0.0 else np.inf

    def after(
        self,
        rows: WeightedRows,
        settings: LearnerSettings,
        rng: np.random.Generator,
        whole: float = np.inf,
    ) -> Self:
        """One step: the batch judges the last step, joins the model, and a new step is found.

        The rows are of the majority, of weight above 0; `rng` draws the pairs for the curvature,
        and `whole` is the weight of all majority rows, where they are finitely many and visited
        again.
        """
        batch = MiniBatch(settings.loss, settings.lam, self.space, self.rare, rows, settings.n_jobs)
        weight = float(rows.weight.sum())
        share = self.model.share_of(weight, _least_share(weight, whole))
        step = batch.step(self.w, self.step)
        # Where the batch is all there is, it has no noise.
        t = batch.length(step, _NOISE if share < 1.0 else 0.0) if self.step.any() else 1.0
        w, at = step.taken(t)
        model = self.model.updated(batch.model(at, share, rng), w, weight, share)
        found = model.minimum(w, settings.lam)
        return self._replace(
            model=model.noted(found.decrease), w=w, step=found.w - w, n_batches=self.n_batches + 1
        )

    def with_rare(self, more: WeightedRows, settings: LearnerSettings) -> Self:
        """Add rare rows: all of them to the loss, some as landmarks."""
        rows = self.rare.rows.joined(more)
        check_memory(self.space.expansion.landmarks, len(rows), settings.memory)
        space = widened(self.space, more.X, settings.most_landmarks)
        before = float(self.rare.rows.weight.sum())
        model = self.model.discounted(before / float(rows.weight.sum()))
        w, step = self.w, self.step
        if space is self.space:
            features = np.concatenate([self.rare.features, space.features(more.X)])
        else:
            features = space.features(rows.X)
            model = model.widened(space.rank)
            w, step = (np.pad(v, (0, space.rank - len(v))) for v in (w, step))
        return self._replace(
            space=space, rare=HeldRare(rows, features), model=model, w=w, step=step
        )


def _least_share(weight: float, whole: float) -> float:
    """Least share of a batch in the average: 1 where the batch is the whole, 0 in a stream."""
    return 1.0 if weight >= whole else weight / (_PASSES_IN_AVERAGE * whole)
