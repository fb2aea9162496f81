"""The state of `StochasticRankRC` between mini-batches, and its quadratic model of the objective.

`RunningModel` is a quadratic model of the objective, the average of second-order expansions of
mini-batches; `MiniBatchState` is that model with the rows and landmarks to go on with.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from scipy import linalg

from rareclass.kernels.expansion import expand
from rareclass.kernels.kernels import Matrix
from rareclass.ranking.problem import Evaluation, RankingProblem, ValueQuestion, answer
from rareclass.ranking.ranking_data import PreparedRanking
from rareclass.rows.source import stacked

# A batch weighs as the cube of what was seen up to it: a model made far from the minimum is soon
# forgotten, and the last pass alone still weighs less than all.
_FORGETTING = 3
# Batches over which the estimate of the gap is averaged, at most.
_BATCHES_OF_GAP = 20
# Once there were more, the average is over the last so many passes: over a whole number of them
# much of the noise of mini-batches cancels.
_PASSES_IN_AVERAGE = 2.0
# Rise of the value of a mini-batch that is taken for its noise, and shares of a step that are tried
# until there is no other.
_NOISE, _SHARES = 0.01, 0.25 ** np.arange(1, 13)
# Rare rows, and half as many majority rows, whose pairs are formed for the curvature: of a batch
# that stands alone, and of one in an average.
_ROWS_ALONE, _ROWS_IN_AVERAGE = 4096, 512


class RunningModel(NamedTuple):
    r"""The average of second-order expansions of mini-batches, each at the point of its time.

    .. math::

        q(w) = \sum_b a_b \bigl( F_b(w_b) + g_b'(w - w_b) + \tfrac12 (w - w_b)' H_b (w - w_b)
        \bigr) = e - c'w + \tfrac12 w' A w

    Its gradient at w is the average of mini-batch gradients, each carried to w along its own
    curvature. Once the pairs on the bends of the loss settle, that is exact, and q over all rows is
    the objective itself.
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
    def empty(cls, rank: int) -> Self:
        """Nothing seen."""
        return cls(np.zeros((rank, rank)), np.zeros(rank))

    def share_of(self, weight: float, least: float) -> float:
        """Share of a batch of this weight in the average; `least` is a lower bound."""
        mass = self.mass + weight
        window = self.window * (self.mass / mass) ** _FORGETTING + weight
        return min(1.0, max(weight / window, least))

    def updated(self, at: Evaluation, H: np.ndarray, weight: float, share: float) -> Self:
        """Add a batch, with curvature H, that weighs `share` in the average; 1 leaves it alone."""
        w, Hw = at.w, H @ at.w
        e = at.value - float(at.gradient @ w) + 0.5 * float(w @ Hw)
        return self._replace(
            A=self.A + share * (H - self.A),
            c=self.c + share * (Hw - at.gradient - self.c),
            e=self.e + share * (e - self.e),
            mass=weight if share == 1.0 else self.mass + weight,
            window=weight / share,
            share=share,
        )

    def value(self, w: np.ndarray) -> float:
        """The model at a point."""
        return self.e - float(self.c @ w) + 0.5 * float(w @ (self.A @ w))

    def relative_gap(self, w: np.ndarray) -> float:
        """Estimated distance of the objective from its minimum, relative to its value at w."""
        value = self.value(w)
        return self.gap / value if value > 0.0 else np.inf

    def step(self, w: np.ndarray) -> tuple[np.ndarray, Self]:
        r"""The step from w to the minimum, O(rank^3), and the model with its gap updated.

        A fresh batch that weighs a in the average moves the minimum of the model by noise of
        variance a^2, while the average itself has variance a / 2: its objective is above the
        minimum by the decrease that one batch brings, over 2 a.
        """
        gradient = self.A @ w - self.c
        try:
            factor = linalg.cho_factor(self.A, lower=True, check_finite=False)
            step = -linalg.cho_solve(factor, gradient, check_finite=False)
        except linalg.LinAlgError:
            # lam is below the rounding error of A: directions that A does not resolve stay.
            values, vectors = linalg.eigh(self.A, check_finite=False)
            noise = len(values) * np.finfo(np.float64).eps * float(np.abs(values).max())
            step = -vectors @ ((gradient @ vectors) / np.maximum(values, noise))
        decrease = max(-0.5 * float(gradient @ step), 0.0)
        share = max(self.share, 1.0 / _BATCHES_OF_GAP)
        gap = self.gap + share * (decrease / (2.0 * self.share) - self.gap)
        return step, self._replace(gap=gap)

    def moved(self, old: np.ndarray) -> Self:
        """The model in other coordinates, of which the old ones are `old` times the new ones.

        Directions that were not there are curved like the most curved one.
        """
        added = np.eye(old.shape[1]) - old.T @ old
        A = old.T @ self.A @ old + self.A.diagonal().max(initial=0.0) * added
        return self._replace(A=A, c=old.T @ self.c)

    def discounted(self, share: float) -> Self:
        """Count what was seen by `share` only: the rest of its pairs were not there yet."""
        return self._replace(mass=share * self.mass, window=share * self.window)


class WeightedRows(NamedTuple):
    """Some rows and how often each counts."""

    X: Any  # ndarray or CSR of shape (n, n_features)
    weight: np.ndarray  # shape (n,)

    def pick(self, which: Any) -> "WeightedRows":
        """Some of the rows, by numbers or a mask."""
        return WeightedRows(self.X[which], self.weight[which])

    def joined(self, more: "WeightedRows") -> "WeightedRows":
        """Append other rows."""
        return WeightedRows(stacked([self.X, more.X]), np.concatenate([self.weight, more.weight]))


class MiniBatchState(NamedTuple):
    """A function in the span of landmarks, and what further rows are learned with.

    The function is learned at ``w + step``.
    """

    rng: np.random.Generator  # for mini-batches, the sample and pairs of the curvature
    rare: WeightedRows  # all of them
    sample: WeightedRows  # of the majority: the rows of the smallest keys
    keys: np.ndarray  # a random number for each of them
    width: float  # sigma
    points: Matrix  # the landmarks, shape (n_landmarks, n_features)
    whitener: np.ndarray  # from coordinates to coefficients, shape (n_landmarks, rank)
    model: RunningModel  # of the objective
    w: np.ndarray  # shape (rank,): where the last batch was looked at
    step: np.ndarray  # from there to the minimum of the model
    n_spanned: int = 0  # rare rows that the landmarks were picked from
    n_batches: int = 0

    @classmethod
    def empty(cls, rng: np.random.Generator, none: WeightedRows) -> "MiniBatchState":
        """Return the zero function on one far point, without rows."""
        points, whitener, zero = np.zeros((1, none.X.shape[1])), np.zeros((1, 0)), np.zeros(0)
        model = RunningModel.empty(0)
        return cls(rng, none, none, zero, 1.0, points, whitener, model, zero, zero)

    @property
    def relative_gap(self) -> float:
        """Estimated distance of the objective from its minimum, relative to it."""
        return self.model.relative_gap(self.w + self.step)

    def moved(self, prepared: PreparedRanking, problem: RankingProblem) -> "MiniBatchState":
        """Carry what was learned to the coordinates of a problem.

        The old ones are :math:`T' k(Z, z) T_2` times these, as far as the old landmarks Z lie in
        the span of the new z.
        """
        points = prepared.landmarks.points
        old = self.whitener.T @ problem.expansion.kernel.block(self.points, points)
        old = old @ problem.whitener
        return self._replace(
            width=prepared.data.width,
            points=points,
            whitener=problem.whitener,
            model=self.model.moved(old),
            w=old.T @ self.w,
            step=old.T @ self.step,
            n_spanned=len(self.rare.weight),
        )

    def after_batch(
        self, problem: RankingProblem, weight: float, whole: float = np.inf
    ) -> "MiniBatchState":
        """One step: the batch judges the last step, joins the model, and a new step is found.

        `weight` is that of the majority rows of the batch; `whole` that of all majority rows, where
        they are finitely many and visited again.
        """
        least = 1.0 if weight >= whole else weight / (_PASSES_IN_AVERAGE * whole)
        share = self.model.share_of(weight, least)
        # Where the batch is all there is, it has no noise.
        at = end_of_step(problem, self.w, self.step, _NOISE if share < 1.0 else 0.0)
        n_sampled = _ROWS_IN_AVERAGE if share < 1.0 else _ROWS_ALONE
        H = sampled_curvature(problem, at, n_sampled, self.rng)
        step, model = self.model.updated(at, H, weight, share).step(at.w)
        return self._replace(model=model, w=at.w, step=step, n_batches=self.n_batches + 1)


def end_of_step(
    problem: RankingProblem, w: np.ndarray, step: np.ndarray, noise: float
) -> Evaluation:
    """Take a step from w: all of it, unless the mini-batch says that it leads up.

    The step comes from batches before this one, which judges it. A rise by the share `noise` of
    its value is taken for noise of the batch.
    """
    start, at = answer([ValueQuestion(problem, w), ValueQuestion(problem, w + step)])
    for share in _SHARES:
        if at.value <= (1.0 + noise) * start.value:
            return at
        at = problem.evaluate(w + share * step)
    return start


def sampled_curvature(
    problem: RankingProblem, at: Evaluation, n_sampled: int, rng: np.random.Generator
) -> np.ndarray:
    r"""An unbiased estimate of the Hessian, :math:`F' C F + \lambda I`.

    Of the pairs of at most `n_sampled` rare rows, every so many-th, and half as many majority rows,
    drawn from those that have pairs with curvature.
    """
    p, n_rare = problem, len(problem.rare_weight)
    curved = np.flatnonzero(p.curved_rows(at))
    regulariser = p.lam * np.eye(p.rank)
    if not len(curved):
        return regulariser
    chosen = np.sort(rng.choice(curved, min(n_sampled // 2, len(curved)), replace=False))
    stride = -(-n_rare // n_sampled)
    which = slice(int(rng.integers(stride)), None, stride)
    K = p.expansion.kernel.block(p.rows.take(chosen), p.expansion.landmarks)
    T = p.whitener.astype(K.dtype, copy=False)  # a float32 kernel has no more digits
    majority, rare = K @ T, p.rare_kernel[which] @ T
    factor = (len(curved) / len(chosen)) * (n_rare / len(rare)) * p.scale
    C = p.loss.pair_curvature(at.rare, which, expand(K, at.coefficients))
    C = (C * (factor * p.majority_weight[chosen])).astype(T.dtype, copy=False)
    crossing = rare.T @ C @ majority
    of_rare = (rare * C.sum(axis=1)[:, None]).T @ rare
    of_majority = (majority * C.sum(axis=0)[:, None]).T @ majority
    return of_rare + of_majority - crossing - crossing.T + regulariser
