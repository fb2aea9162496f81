r"""The ranking objective in whitened landmark coordinates, one pass of the majority a question.

With landmarks z_r, f(x) = sum_r beta_r k(z_r, x) and beta = T w (see `whitening`), problem (13)
of the paper is

.. math::

    F(w) = \frac{1}{W_+ W_-} \sum_{i \in P} \sum_{j \in N} w_i w_j \,
           \ell\bigl(f(x_i) - f(x_j)\bigr) + \frac{\lambda}{2} \|w\|^2 .

Its value and gradient together, and each Hessian-vector product, read every majority block once:
scores, pair terms and pull-back to the landmarks are worked out while the block is in cache.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rareclass.ranking.expansion import KernelExpansion, expand, pull_back
from rareclass.ranking.losses import PairLoss, RareSide, Zone
from rareclass.rows import Block, Rows


class Evaluation(NamedTuple):
    """What is known of the objective at one point."""

    w: np.ndarray
    value: float
    gradient: np.ndarray
    coefficients: np.ndarray
    rare: RareSide
    token: object  # names this point to the blocks, which may remember their zones at it


@dataclass(frozen=True)
class RankingProblem:
    """Problem (13), or (11) with other landmarks.

    Parameters
    ----------
    rows : Rows
        The majority rows, with their weights.
    expansion : KernelExpansion
        Kernel and landmarks.
    loss : PairLoss
    rare_kernel : ndarray of shape (m+, n_landmarks)
        Kernel of the rare rows against the landmarks.
    rare_weight : ndarray of shape (m+,)
        Weights of the rare rows; zero takes a row out.
    whitener : ndarray of shape (n_landmarks, rank)
        T. Its rows are zero at landmarks that this problem must not use.
    lam : float
        Strength of the regulariser, above 0.
    scale : float
        1 / (W+ W-), the total weight of all pairs.
    """

    rows: Rows
    expansion: KernelExpansion
    loss: PairLoss
    rare_kernel: np.ndarray
    rare_weight: np.ndarray
    whitener: np.ndarray
    lam: float
    scale: float

    @property
    def size(self) -> int:
        """Number of unknowns: the rank of the landmarks."""
        return self.whitener.shape[1]

    def with_lam(self, lam: float) -> "RankingProblem":
        """The same problem with another regularisation; shares all kernel work."""
        return replace(self, lam=lam)

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Value and gradient at `w`, in one pass."""
        coefficients = self.whitener @ w
        rare = self.loss.rare(expand(self.rare_kernel, coefficients), self.rare_weight)
        token = object()
        value, pull, sums = self.rows.sum(
            _evaluate_block, self.expansion, self.loss, rare, coefficients, token
        )
        pull = pull + pull_back(self.rare_kernel, self.loss.finish(rare, sums))
        value = float(self.scale * value + 0.5 * self.lam * (w @ w))
        gradient = self.scale * (pull @ self.whitener) + self.lam * w
        return Evaluation(w, value, gradient, coefficients, rare, token)

    def hessian_product(self, at: Evaluation, v: np.ndarray) -> np.ndarray:
        """(Generalised) Hessian at `at` times `v`, in one pass."""
        direction = self.whitener @ v
        rare_direction = expand(self.rare_kernel, direction)
        prefix = self.loss.rare_direction(at.rare, rare_direction)
        pull, sums = self.rows.sum(
            _curvature_block, self.expansion, self.loss, at, prefix, direction
        )
        by_rare = self.loss.finish_curvature(at.rare, rare_direction, sums)
        pull = pull + pull_back(self.rare_kernel, by_rare)
        return self.scale * (pull @ self.whitener) + self.lam * v

    def curved_rows(self, at: Evaluation) -> np.ndarray:
        """Which majority rows have a pair with curvature at a point: bool, shape (n_rows,)."""
        return self.rows.map(_is_curved, self.expansion, self.loss, at)


def _evaluate_block(
    block: Block,
    expansion: KernelExpansion,
    loss: PairLoss,
    rare: RareSide,
    coefficients: np.ndarray,
    token: object,
) -> tuple[float, np.ndarray, np.ndarray]:
    K = expansion.matrix(block)
    terms = loss.block(rare, expand(K, coefficients), block.weight)
    block.memo.put("zone", token, terms.zone, terms.zone.low.nbytes + terms.zone.high.nbytes)
    return terms.value, pull_back(K, terms.gradient), terms.sums


def _curvature_block(
    block: Block,
    expansion: KernelExpansion,
    loss: PairLoss,
    at: Evaluation,
    prefix: np.ndarray,
    direction: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    K = expansion.matrix(block)
    zone = _zone(block, expansion, loss, at)
    by_row, sums = loss.curvature(at.rare, prefix, zone, expand(K, direction), block.weight)
    return pull_back(K, by_row), sums


def _is_curved(
    block: Block, expansion: KernelExpansion, loss: PairLoss, at: Evaluation
) -> np.ndarray:
    zone = _zone(block, expansion, loss, at)
    return zone.high > zone.low


def _zone(block: Block, expansion: KernelExpansion, loss: PairLoss, at: Evaluation) -> Zone:
    """The zones of a block at a point: remembered from its evaluation, or found again."""
    zone = block.memo.get("zone", at.token)
    if zone is None:
        scores = expand(expansion.matrix(block), at.coefficients)
        zone = loss.block(at.rare, scores, block.weight).zone
    return zone
