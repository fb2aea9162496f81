r"""The gradient of the held-out loss by the squared scales of the features, exactly.

In a fold, beta minimises the objective F(beta, s) on the training part, and V(beta, s) is the loss
of the pairs of held-out rows. As s moves, so does beta, by the implicit function theorem:

.. math::

    \frac{d V}{d s} = \frac{\partial V}{\partial s} - v' \frac{\partial^2 F}{\partial \beta
    \, \partial s}, \qquad \frac{\partial^2 F}{\partial \beta^2} v =
    \frac{\partial V}{\partial \beta} .

v comes from conjugate gradients on the Hessian products that Newton's method uses. With f = K beta
and h = K v, the second term is the derivative by s of :math:`\sum_i g_i h_i + \lambda \beta' K v`
where g, the slopes of the loss by score, change with s through f. All of it is sums of
:math:`c_i b_r \, \partial k(x_i, z_r) / \partial s_d` (see `kernel_slopes`), in one pass.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rareclass.estimators.folds import Fold
from rareclass.kernels.expansion import KernelExpansion, expand
from rareclass.kernels.kernels import FeatureScaled, Matrix
from rareclass.ranking.feature_scales.kernel_slopes import KernelSlopes
from rareclass.ranking.preparation import Prepared
from rareclass.ranking.problem import Evaluation, RankingProblem
from rareclass.ranking.solvers.questions import Solver, answer, solve_in_step
from rareclass.rows import Block, RowValues

# The residual of v relative to the right side, and most products for it. Stopping early leaves
# the directions out that the rows determine worst.
_RESIDUAL, _MOST_PRODUCTS = 1e-2, 100


class _FoldTerms(NamedTuple):
    """What a fold's derivative is made of."""

    training: RankingProblem
    held_out: RankingProblem
    at: Evaluation
    held_out_at: Evaluation
    adjoint: np.ndarray  # v, a coefficient for each landmark
    rare_values: np.ndarray  # h at the rare rows
    prefix: Any

    def by_row(self, training: Any, curved: Any, held_out: Any) -> np.ndarray:
        """The columns c that go with beta and with v, from slopes by row."""
        beside_beta = self.held_out.scale * held_out - self.training.scale * curved
        return np.column_stack([beside_beta, -self.training.scale * training])

    @property
    def by_landmark(self) -> np.ndarray:
        """beta and v."""
        return np.column_stack([self.at.coefficients, self.adjoint])


def held_out_gradients(
    prepared: Prepared,
    rare_rows: Matrix,
    folds: Sequence[Fold],
    weights: Sequence[np.ndarray],
    lam: float,
    residual: float = _RESIDUAL,
) -> np.ndarray:
    """Derivative of every fold's held-out loss by the squared scales.

    The shape is (n_folds, n_features). `prepared` has a `FeatureScaled` kernel, and a loss without
    unknowns of its own; `rare_rows` are not scaled; `weights` are the solution of each fold at
    `lam`, in whitened coordinates. `residual` is that of the linear system for v; smaller is more
    exact.

    Cost: up to 100 Hessian products, which the folds share passes for, and one pass that costs
    as much as the kernel, twice for each fold.
    """
    kernel = prepared.expansion.kernel
    assert isinstance(kernel, FeatureScaled)
    slopes = KernelSlopes(kernel, prepared.expansion.landmarks)
    terms = _fold_terms(prepared, folds, weights, lam, residual)
    gradients, *sums = prepared.rows.sum(_of_block, prepared.expansion, slopes, terms)
    for k, term in enumerate(terms):
        loss, at = term.training.loss, term.at
        by_row = term.by_row(
            loss.finish(at.rare, sums[3 * k]).gradient,
            loss.finish_curvature(at.rare, term.prefix, term.rare_values, sums[3 * k + 1]).gradient,
            loss.finish(term.held_out_at.rare, sums[3 * k + 2]).gradient,
        )
        of_rare = slopes.sums(rare_rows, prepared.rare_kernel, by_row, term.by_landmark)
        gradients[k] += of_rare.sum(axis=0)
    beta = np.column_stack([term.at.coefficients for term in terms])
    adjoint = np.column_stack([term.adjoint for term in terms])
    landmarks = prepared.expansion.landmarks
    return gradients - lam * slopes.sums(landmarks, prepared.landmark_kernel, beta, adjoint)


def _fold_terms(
    prepared: Prepared,
    folds: Sequence[Fold],
    weights: Sequence[np.ndarray],
    lam: float,
    residual: float,
) -> list[_FoldTerms]:
    pairs = [_problems(prepared, fold, lam, k) for k, fold in enumerate(folds)]
    found = answer(
        [p.value_at(w) for pair, w in zip(pairs, weights, strict=True) for p in pair],
    )
    starts = [
        partial(_solver, training, at, of_held_out.gradient, residual)
        for (training, _), at, of_held_out in zip(pairs, found[::2], found[1::2], strict=True)
    ]
    adjoints = solve_in_step(starts, len(starts))
    terms = []
    for (training, held_out), at, of_held_out, v in zip(
        pairs, found[::2], found[1::2], adjoints, strict=True
    ):
        adjoint = training.whitener @ v
        values = expand(prepared.rare_kernel, adjoint)
        prefix = training.loss.rare_direction(at.rare, values)
        terms.append(_FoldTerms(training, held_out, at, of_held_out, adjoint, values, prefix))
    return terms


def _problems(
    prepared: Prepared, fold: Fold, lam: float, slot: int
) -> tuple[RankingProblem, RankingProblem]:
    """The training problem of a fold, and the loss of its held-out rows, not regularised."""
    labels = prepared.labels
    training = replace(prepared.problem(lam, fold.held_out), slot=slot)
    rare_weight = labels.rare_weight * fold.tested[labels.rare]
    kept = fold.tested[labels.majority]
    weight = float(prepared.rows.weight[kept].sum())
    scale = 1.0 / training.loss.pair_weight(rare_weight, weight)
    held_out = replace(
        training, rare_weight=rare_weight, kept=RowValues(kept), lam=0.0, scale=scale, slot=None
    )
    return training, held_out


def _solver(
    problem: RankingProblem, at: Evaluation, right: np.ndarray, residual: float, _slot: int
) -> Solver[np.ndarray]:
    """Conjugate gradients for H v = right, from zero."""
    v, r = np.zeros_like(right), right.copy()
    direction, square = r.copy(), float(r @ r)
    wanted = residual**2 * square
    for _ in range(_MOST_PRODUCTS):
        if square <= wanted:
            break
        product = yield problem.product(at, direction)
        step = square / float(direction @ product)
        v += step * direction
        r -= step * product
        before, square = square, float(r @ r)
        direction = r + (square / before) * direction
    return v


def _of_block(
    block: Block, expansion: KernelExpansion, slopes: KernelSlopes, terms: list[_FoldTerms]
) -> tuple:
    """Sums of a block by fold and feature, then the rare-side sums of every fold."""
    K, X = expansion.matrix(block), block.X
    gradients, sums = np.zeros((len(terms), X.shape[1])), []
    for k, term in enumerate(terms):
        loss, at = term.training.loss, term.at
        columns = term.by_landmark
        values, directions = expand(K, columns).T
        weight = term.training.block_weight(block)
        training = loss.block(at.rare, values, weight)
        curved, curvature_sums = loss.curvature(
            at.rare, term.prefix, training.zone, directions, weight
        )
        held_out = loss.block(term.held_out_at.rare, values, term.held_out.block_weight(block))
        by_row = term.by_row(training.gradient, curved, held_out.gradient)
        gradients[k] = slopes.sums(X, K, by_row, columns).sum(axis=0)
        sums += [training.sums, curvature_sums, held_out.sums]
    return gradients, *sums
