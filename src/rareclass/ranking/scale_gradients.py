r"""How kernel values change with the squared scales of the features.

With :math:`s_d = a_d^2`, kernels of a distance have
:math:`\partial k(x, z) / \partial s_d = S(x, z) (x_d - z_d)^2`, kernels of an inner product
:math:`S(x, z) x_d z_d`: one matrix S serves all features, which then cost a matrix product.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from rareclass.estimators.search import Fold
from rareclass.kernels.expansion import KernelExpansion, expand
from rareclass.kernels.kernels import (
    KERNELS,
    DistanceKernel,
    FeatureScaled,
    Gaussian,
    Kernel,
    Laplace,
    Matrix,
    Polynomial,
)
from rareclass.ranking.problem import (
    Evaluation,
    ProductQuestion,
    RankingProblem,
    Solver,
    ValueQuestion,
    answer,
    solve_in_step,
)
from rareclass.ranking.ranking_data import PreparedRanking
from rareclass.rows import Block, RowValues

# Entries of a product of features and landmarks that are worked out at once.
_MOST_ENTRIES = 2**22


def has_slopes(kernel: Kernel) -> bool:
    """True where the derivative of a kernel by the scales is known."""
    return type(kernel) in KERNELS.values()


def _slope(kernel: Kernel, X: Matrix, Z: Matrix, K: np.ndarray) -> np.ndarray:
    """S, from scaled rows and landmarks and their kernel K."""
    if isinstance(kernel, Gaussian):
        return K * (-1.0 / kernel.width**2)
    if isinstance(kernel, Laplace):
        # -k / (2 sigma distance), where the distance is -sigma log k. Where it is zero, or k is, so
        # is the product with a squared difference.
        inside = (K > 0.0) & (K < 1.0)
        logarithm = np.log(K, out=np.ones_like(K), where=inside)
        return np.where(inside, K / (2.0 * kernel.width**2 * logarithm), 0.0)
    if isinstance(kernel, Polynomial):
        lower = Polynomial(kernel.width, kernel.degree - 1, kernel.offset)
        return lower.block(X, Z) * (kernel.degree / kernel.width**2)
    return np.ones_like(K)  # linear


@dataclass(frozen=True, eq=False)
class KernelSlopes:
    r"""Sums of :math:`c_i b_r \, \partial k(x_i, z_r) / \partial s_d` over rows and landmarks."""

    kernel: FeatureScaled
    landmarks: Matrix  # shape (n_landmarks, n_features), in their own units, not scaled

    def sums(
        self, X: Matrix, K: np.ndarray, by_row: np.ndarray, by_landmark: np.ndarray
    ) -> np.ndarray:
        """The sums for several (c, b), by feature: shape (n_pairs, n_features).

        X, of shape (n, n_features), are rows in their own units, K, of shape (n, n_landmarks),
        their kernel; c has a column for each pair, shape (n, n_pairs), and b has shape
        (n_landmarks, n_pairs).

        Cost: as much as the kernel, for each pair.
        """
        is_distance = isinstance(self.kernel.kernel, DistanceKernel)
        Z = self.landmarks.astype(np.float64)
        X, K = X.astype(np.float64), K.astype(np.float64)
        S = _slope(self.kernel.kernel, self.kernel.scaled(X), self.kernel.scaled(Z), K)
        if is_distance and not sparse.issparse(X):
            # Differences do not change with the origin; near the landmarks fewer digits cancel.
            centre = Z.mean(axis=0)
            X, Z = X - centre, Z - centre
        result = np.zeros((by_row.shape[1], X.shape[1]))
        for k, (c, b) in enumerate(zip(by_row.T, by_landmark.T, strict=True)):
            rows = slice(None) if c.all() else np.flatnonzero(c)
            result[k] = _products(X[rows], Z, S[rows], c[rows], b)
            if is_distance:
                squares = _squares(X[rows], c[rows] * (S[rows] @ b)) + _squares(Z, b * (c @ S))
                result[k] = squares - 2.0 * result[k]
        return result

    def gradients(self, X: np.ndarray, K: np.ndarray, by_landmark: np.ndarray) -> np.ndarray:
        r"""Gradient by x of :math:`\sum_r b_r k(x, z_r)` at dense rows: shape (n, n_features).

        Kernels of a distance alone: :math:`2 s_d \sum_r b_r S(x, z_r) (x_d - z_{rd})`.

        Cost: as much as the kernel.
        """
        kernel = self.kernel.kernel
        if not isinstance(kernel, DistanceKernel):
            raise ValueError(f"no gradient for {type(kernel).__name__}.")
        Z, X = self.landmarks.astype(np.float64), X.astype(np.float64)
        S = _slope(kernel, self.kernel.scaled(X), self.kernel.scaled(Z), K) * by_landmark
        centre = Z.mean(axis=0)
        X, Z = X - centre, Z - centre
        return 2.0 * self.kernel.scales**2 * (S.sum(axis=1)[:, None] * X - S @ Z)


def _products(X: Matrix, Z: Matrix, S: np.ndarray, c: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sums of c_i b_r S_ir x_id z_rd, some landmarks at a time."""
    total = np.zeros(X.shape[1])
    size = max(1, _MOST_ENTRIES // max(X.shape[1], 1))
    for start in range(0, S.shape[1], size):
        part = slice(start, start + size)
        landmarks = Z[part].toarray() if sparse.issparse(Z) else Z[part]
        pulled: Any = X.T @ (c[:, None] * S[:, part])
        total += np.einsum("dr,rd,r->d", pulled, landmarks, b[part])
    return total


def _squares(X: Matrix, weight: np.ndarray) -> np.ndarray:
    """Weighted sums of squares by column."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).T @ weight).ravel()
    return weight @ (X * X)


# Of the mean: a feature of no slope keeps a tenth of the average scale.
_FLOOR = 0.01


def gradient_scales(
    expansion: KernelExpansion, coefficients: np.ndarray, X: np.ndarray
) -> np.ndarray:
    """Scales of the features, of shape (n_features,) and mean square 1, from gradients at X.

    `expansion` is one without scales, `coefficients` of shape (n_landmarks,). Rows at a landmark
    count like others. Cost: twice that of the kernel at X.
    """
    kernel = FeatureScaled(expansion.kernel, np.ones(X.shape[1]))
    K = kernel.block(X, expansion.landmarks)
    gradient = KernelSlopes(kernel, expansion.landmarks).gradients(X, K, coefficients)
    slope = np.sqrt((gradient**2).mean(axis=0))
    mean = slope.mean()
    if not mean > 0.0:
        return np.ones(X.shape[1])
    squared = slope / mean + _FLOOR
    return np.sqrt(squared / squared.mean())


# The residual of v relative to the right side, and most products for it. Stopping early leaves
# the directions out that the rows determine worst.
_RESIDUAL, _MOST_PRODUCTS = 1e-2, 100


class _FoldTerms(NamedTuple):
    """Terms of a fold's derivative."""

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
    prepared: PreparedRanking,
    rare_rows: Matrix,
    folds: Sequence[Fold],
    weights: Sequence[np.ndarray],
    lam: float,
    residual: float = _RESIDUAL,
) -> np.ndarray:
    """Derivative of every fold's held-out loss by the squared scales.

    The shape is (n_folds, n_features). `prepared` has a `FeatureScaled` kernel; `rare_rows` are not
    scaled; `weights` are the solution of each fold at `lam`, in whitened coordinates. `residual` is
    that of the linear system for v; smaller is more exact.

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
            loss.finish_curvature(at.rare, term.prefix, term.rare_values, sums[3 * k + 1]),
            loss.finish(term.held_out_at.rare, sums[3 * k + 2]).gradient,
        )
        of_rare = slopes.sums(rare_rows, prepared.rare_kernel, by_row, term.by_landmark)
        gradients[k] += of_rare.sum(axis=0)
    beta = np.column_stack([term.at.coefficients for term in terms])
    adjoint = np.column_stack([term.adjoint for term in terms])
    landmarks = prepared.expansion.landmarks
    return gradients - lam * slopes.sums(landmarks, prepared.landmark_kernel, beta, adjoint)


def _fold_terms(
    prepared: PreparedRanking,
    folds: Sequence[Fold],
    weights: Sequence[np.ndarray],
    lam: float,
    residual: float,
) -> list[_FoldTerms]:
    pairs = [_problems(prepared, fold, lam, k) for k, fold in enumerate(folds)]
    found = answer(
        [ValueQuestion(p, w) for pair, w in zip(pairs, weights, strict=True) for p in pair],
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
    prepared: PreparedRanking, fold: Fold, lam: float, slot: int
) -> tuple[RankingProblem, RankingProblem]:
    """The training problem of a fold, and the loss of its held-out rows, not regularised."""
    labels = prepared.target.labels
    training = replace(cast(RankingProblem, prepared.problem(lam, fold.held_out)), slot=slot)
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
        product = yield ProductQuestion(problem, at, direction)
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
