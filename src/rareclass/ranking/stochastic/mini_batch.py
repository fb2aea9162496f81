"""A mini-batch of majority rows against all rare rows: value, gradient, sampled curvature."""

from typing import Any, NamedTuple

import numpy as np

from rareclass.kernels.expansion import expand, pull_back
from rareclass.ranking.losses import PairLoss
from rareclass.ranking.stochastic.landmark_space import LandmarkSpace
from rareclass.ranking.stochastic.running_model import BatchModel
from rareclass.ranking.stochastic.weighted_rows import WeightedRows
from rareclass.rows import ArrayRows, Block, RowSource

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
        self.K = _kernel(space, rows, n_jobs)

    def scores(self, w: np.ndarray) -> Scores:
        """Scores of the function with weights w; they are linear in w."""
        return Scores(self.rare.scores(w), expand(self.K, self.space.whitener @ w))

    def step(self, w: np.ndarray, step: np.ndarray) -> TrialStep:
        """A step from w, as this batch sees it."""
        return TrialStep(w, step, self.scores(w), self.scores(step))

    def length(self, step: TrialStep, noise: float) -> float:
        """How much of a step to take: all of it, unless this batch says that it leads up.

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


def _kernel(space: LandmarkSpace, rows: WeightedRows, n_jobs: int | None) -> np.ndarray:
    X: Any = rows.X
    source = RowSource(X.shape, X.dtype, lambda which: X[which], not isinstance(X, np.ndarray))
    blocks = ArrayRows(source, block_rows=_BLOCK_ROWS, n_jobs=n_jobs)
    return blocks.map(_block_kernel, space)


def _block_kernel(block: Block, space: LandmarkSpace) -> np.ndarray:
    return space.kernel(block.X)
