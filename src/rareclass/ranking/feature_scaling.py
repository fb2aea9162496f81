r"""Scales of the features, learned by descent on the loss of held-out pairs.

With :math:`s_d = a_d^2`, kernels of a distance have
:math:`\partial k(x, z) / \partial s_d = S(x, z) (x_d - z_d)^2`, kernels of an inner product
:math:`S(x, z) x_d z_d`: one matrix S serves all features, which then cost a matrix product.

Rounds start at equal scales. Each has other folds: choose lam by the held-out AUC, take the
derivative of each fold's held-out loss by the squared scales (see `held_out_gradients`), along the
scales that keep the mean distance of rows. The step of :math:`\log s_d` is the mean over the folds
by its standard error, cut at :math:`\pm 1`, times a rate that falls. At the end scales far below
the largest are 0. The rounds are repeated without the rows of each fold, and scales are kept only
where the AUC on those rows is significantly higher than without scales.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse, stats
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from rareclass.estimators.search import Fold, make_folds
from rareclass.findings import warn
from rareclass.folds.majority_part import DrawnRows, draw_class
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
    make_kernel,
)
from rareclass.machine import Advance, blas_threads, parse_bytes, track
from rareclass.ranking.losses import SmoothedHinge
from rareclass.ranking.problem import Evaluation, RankingProblem, ValueQuestion, answer, solve
from rareclass.ranking.ranking_data import (
    KernelSettings,
    PreparedRanking,
    RankingData,
    prepare,
    some_rows,
)
from rareclass.ranking.solvers.newton import PathSettings, conjugate_gradients
from rareclass.ranking.solvers.path import solve_paths
from rareclass.ranking.targets import RankingTarget, training_part
from rareclass.rows import Block, RowSource, RowValues
from rareclass.rows.source import equal_rows, order_of_values

N_FOLDS = 5
# Chance that scales pass for a gain where they are none.
_LEVEL = 0.05
# More rows cost time and say little more: how certain an AUC is depends on the rare rows, and ten
# majority rows for each are nearly as good as all.
_MOST_RARE, _MAJORITY_A_RARE_ROW, _LEAST_MAJORITY = 500, 10, 2_000
_LEAST_ROWS = 2 * N_FOLDS
_LAMS = 2.0 ** np.arange(2, -15, -4)
_N_ROUNDS, _FULL_RATE_ROUNDS, _RATE_DECAY = 8, 4, 0.7
# Below this share of the largest squared scale a feature is dropped.
_NEGLIGIBLE = 0.05
# Standard errors at which the folds agree: from there on a step is a full one.
_AGREEMENT = 3.0
# A start for the gradient, and for a comparison of AUCs: no more digits are needed.
_TOL, _MAX_ITER = 1e-2, 100
# The residual of v relative to the right side, and most products for it. Stopping early leaves
# the directions out that the rows determine worst.
_RESIDUAL, _MOST_PRODUCTS = 1e-2, 100
# Entries of a product of features and landmarks that are worked out at once.
_MOST_ENTRIES = 2**22


def learn_feature_scales(
    settings: KernelSettings,
    source: RowSource,
    target: RankingTarget,
    width: float,
    eps: float,
    verbose: bool | str,
) -> np.ndarray:
    """Learn the scales inside a kernel on training rows; `width` is sigma, `eps` the hinge's.

    They have shape (n_features,) and are all ones where no scales were better; else rows are as far
    apart in the mean as without.

    Cost: eight cross-validated paths of a few lams on at most 500 rare and 5,000 other rows, in
    memory, and, unless these gain nothing, five times as many on four fifths of the rows.

    Raises `ValueError` when the kernel is not one whose derivative by the scales is known.
    """
    kernel = make_kernel(settings.kernel, width)
    if type(kernel) not in KERNELS.values():
        raise ValueError(
            f"feature_scaling='learned' needs the derivative of the kernel, and that of "
            f"{type(kernel).__name__} is not known: pass kernel='gaussian', 'laplace', "
            "'polynomial' or 'linear', or feature_scaling=None."
        )
    state = settings.random_state
    seed = 0 if state is None else int(check_random_state(state).randint(2**31))
    rows, distinct = distinct_rows(source, target, _fitting_rows(settings.memory, source), seed)
    labels, ones = distinct.labels, np.ones(source.n_features)
    if min(len(labels.rare), len(labels.majority)) < _LEAST_ROWS:
        warn(
            f"feature_scaling='learned' needs {_LEAST_ROWS} distinct rows of each class; there are "
            f"{len(labels.rare)} rare and {len(labels.majority)} others. All scales are 1."
        )
        return ones
    study = Study(rows, distinct, kernel, width, eps, settings.memory, settings.n_jobs, seed)
    if not study.variance.any():
        return ones
    with track("Learning feature scales", None, verbose) as advance:
        squares, rounds = _descend(study, advance)
        gains = rounds[-1].auc > rounds[0].auc and clear_gain(_gains_elsewhere(study, advance))
        return np.sqrt(squares) if gains else ones


def _fitting_rows(memory: int | str, source: RowSource) -> int:
    """Dense rows of a class that take an eighth of the memory; never fewer than are needed."""
    if source.is_sparse:
        return _MOST_RARE * _MAJORITY_A_RARE_ROW
    return max(_LEAST_ROWS, parse_bytes(memory) // 8 // (8 * source.n_features))


def distinct_rows(
    source: RowSource, target: RankingTarget, fitting: int, seed: int
) -> tuple[RowSource, RankingTarget]:
    """Draw rows of each class into memory, in float64, and merge equal rows of the same label.

    Rows that are held come first, of each class at most `fitting`; a row weighs what its copies do.
    """
    rng, labels = np.random.default_rng(seed), target.labels

    def drawn(n_rows: int, most: int, weight: np.ndarray | None) -> DrawnRows:
        most = min(most, fitting)
        return draw_class(n_rows, most if n_rows > most else None, rng, weight)

    held = drawn(len(labels.rare), _MOST_RARE, labels.rare_weight)
    most = max(_LEAST_MAJORITY, _MAJORITY_A_RARE_ROW * len(held.rows))
    rest = drawn(len(labels.majority), most, labels.majority_weight)
    source, target = some_rows(source, target, held, rest, np.float64)
    X, n_held = source.take(slice(None)), len(held.rows)
    first, group = equal_rows(X)
    place = np.argsort(order_of_values(X[first]))
    label = np.concatenate([target.held_code + 1, np.zeros(len(rest.rows), dtype=np.int64)])
    by_value = np.column_stack([place[group], label])
    _, first, group = np.unique(by_value, axis=0, return_index=True, return_inverse=True)
    weight = np.bincount(group.ravel(), np.concatenate([held.weight, rest.weight]))
    is_held = first < n_held
    held = DrawnRows(first[is_held], weight[is_held])
    rest = DrawnRows(first[~is_held] - n_held, weight[~is_held])
    return some_rows(source, target, held, rest)


class Trial(NamedTuple):
    """Models of all folds at the best lam of some; lams are relative to the mean of k(z, z)."""

    prepared: PreparedRanking
    folds: list[Fold]
    weights: list[np.ndarray]  # by fold, whitened coordinates
    scores: np.ndarray  # held-out AUC by fold
    lam: float
    unit: float  # the mean of k(z, z) over the landmarks

    @property
    def auc(self) -> float:
        """Mean held-out AUC."""
        return float(self.scores.mean())


@dataclass(frozen=True)
class Study:
    """Rows in memory to try scales on; `eps` is of the smoothed hinge."""

    source: RowSource
    target: RankingTarget
    kernel: Any
    width: float
    eps: float
    memory: int | str
    n_jobs: int | None
    seed: int

    @cached_property
    def variance(self) -> np.ndarray:
        """Variance of every feature, by weight."""
        labels = self.target.labels
        X = self.source.take(np.concatenate([labels.rare, labels.majority]))
        weight = np.concatenate([labels.rare_weight, labels.majority_weight])
        variance: np.ndarray = StandardScaler(with_mean=False).fit(X, sample_weight=weight).var_
        return variance

    def normalised(self, squares: np.ndarray) -> np.ndarray:
        """Squared scales times a number, so that rows are as far apart as without scales.

        The mean squared distance of two rows is twice the sum of the variances.
        """
        total = squares @ self.variance
        return squares * (self.variance.sum() / total) if total > 0.0 else squares

    def folds(self, number: int) -> list[Fold]:
        """Folds stratified by label, where each has enough rows; another `number`, other folds."""
        labels, n_rows = self.target.labels, self.source.n_rows
        _, of_label = np.unique(self.target.held_code, return_counts=True)
        strata = self.target.strata(n_rows) if of_label.min() >= N_FOLDS else None
        seed = self.seed + number
        return make_folds(N_FOLDS, labels, n_rows, seed, "feature_scaling=None", strata)

    def attempt(self, squares: np.ndarray, lams: np.ndarray, folds: list[Fold]) -> Trial:
        """Cross-validate squared scales at the lam of the highest mean AUC."""
        landmarks = self.target.labels.rare
        settings = KernelSettings(self.kernel, self.width, landmarks, self.memory, self.n_jobs, 0)
        loss, scales = SmoothedHinge(self.eps), np.sqrt(squares)
        data = RankingData(settings, self.source, self.target, loss, self.width, scales)
        prepared = prepare(data, several=True)
        unit = float(np.trace(prepared.landmark_kernel)) / len(prepared.landmark_kernel) or 1.0
        solutions = solve_paths(
            [partial(prepared.problem, 1.0, fold.held_out) for fold in folds],
            [float(lam) for lam in lams * unit],
            PathSettings(_TOL, _MAX_ITER),
            prepared.at_once,
        )
        (scores,) = prepared.fold_scores(folds, solutions, self.target.measure)
        best = int(np.argmax(scores.mean(axis=0)))
        weights = [path[best].at.w for path in solutions]
        return Trial(prepared, folds, weights, scores[:, best], float(lams[best]), unit)

    def gradients(self, trial: Trial) -> np.ndarray:
        """Derivative of every fold's held-out loss by the squared scales."""
        rare_rows = self.source.take(self.target.labels.rare)
        lam = trial.lam * trial.unit
        return held_out_gradients(trial.prepared, rare_rows, trial.folds, trial.weights, lam)


class DescentRound(NamedTuple):
    """Held-out AUC of a round, and its lam relative to the mean of k(z, z)."""

    auc: float
    lam: float


def _descend(study: Study, advance: Advance) -> tuple[np.ndarray, list[DescentRound]]:
    """Squared scales after the rounds, zero where they are negligible; the first are equal."""
    squares = study.normalised((study.variance > 0.0).astype(np.float64))
    rounds: list[DescentRound] = []
    for number in range(_N_ROUNDS):
        lams = near(rounds[-1].lam) if rounds else _LAMS
        with blas_threads(1):
            trial = study.attempt(squares, lams, study.folds(number))
            step = _step(study, squares, trial)
        rounds.append(DescentRound(trial.auc, trial.lam))
        advance(1, f"round {number + 1}, held-out AUC {trial.auc:.3f}")
        rate = _RATE_DECAY ** max(0, number + 1 - _FULL_RATE_ROUNDS)
        squares = study.normalised(squares * np.exp(rate * step))
    kept = squares >= _NEGLIGIBLE * squares.max()
    return study.normalised(np.where(kept, squares, 0.0)), rounds


def near(lam: float) -> np.ndarray:
    """A lam of the grid and its neighbours."""
    k = int(np.argmin(np.abs(np.log(_LAMS / lam))))
    return _LAMS[max(k - 1, 0) : k + 2]


def _step(study: Study, squares: np.ndarray, trial: Trial) -> np.ndarray:
    """Step of each feature, from -1 to 1: agreement of the folds that its scale should grow."""
    gradients = study.gradients(trial)
    mean = gradients.mean(axis=0)
    # What all scales together would gain is the width's business: along the constraint only.
    common = (squares @ mean) / (squares @ study.variance)
    descent = common * study.variance - gradients
    error = descent.std(axis=0, ddof=1) / np.sqrt(len(descent))
    agreement = np.divide(descent.mean(axis=0), error, out=np.zeros(len(error)), where=error > 0.0)
    return np.clip(agreement / _AGREEMENT, -1.0, 1.0)


def _gains_elsewhere(study: Study, advance: Advance) -> np.ndarray:
    """Gain in AUC over no scales on every fold's rows, of scales learned without them."""
    gains = []
    for fold in study.folds(_N_ROUNDS):
        inner = replace(study, target=training_part(study.target, fold.held_out))
        squares, rounds = _descend(inner, advance)
        with blas_threads(1):
            learned = study.attempt(squares, np.array([rounds[-1].lam]), [fold])
            plain = study.attempt(np.ones(len(squares)), np.array([rounds[0].lam]), [fold])
        gains.append(learned.auc - plain.auc)
    return np.array(gains)


def clear_gain(gains: np.ndarray) -> bool:
    """Test gains in AUC against the noise of the folds: one-sided paired t test at 5 per cent.

    The variance of the mean of n differences is :math:`(1 / n + 1 / (N - 1))` times theirs, where
    a part is one of N: training parts overlap (Nadeau and Bengio, "Inference for the generalization
    error", 2003).

    >>> clear_gain(np.array([0.05, 0.06, 0.04, 0.05, 0.05]))
    True
    >>> clear_gain(np.array([0.01, -0.01, 0.0, 0.02, 0.03]))
    False
    """
    error = gains.std(ddof=1) * np.sqrt(1.0 / len(gains) + 1.0 / (N_FOLDS - 1))
    return bool(gains.mean() > stats.t.ppf(1.0 - _LEVEL, len(gains) - 1) * error)


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


def slope_sums(
    expansion: KernelExpansion,
    X: Matrix,
    K: np.ndarray,
    by_row: np.ndarray,
    by_landmark: np.ndarray,
) -> np.ndarray:
    r"""Sums of :math:`c_i b_r \, \partial k(x_i, z_r) / \partial s_d` over rows and landmarks.

    For several (c, b), by feature: shape (n_pairs, n_features). `expansion` has a `FeatureScaled`
    kernel; X, of shape (n, n_features), are rows that are not scaled, K, of shape
    (n, n_landmarks), their kernel; c has a column for each pair, shape (n, n_pairs), and b has
    shape (n_landmarks, n_pairs).

    Cost: as much as the kernel, for each pair.
    """
    scaled = cast(FeatureScaled, expansion.kernel)
    is_distance = isinstance(scaled.kernel, DistanceKernel)
    X, Z = X.astype(np.float64), expansion.landmarks.astype(np.float64)
    S = _slope(scaled.kernel, scaled.scaled(X), scaled.scaled(Z), K.astype(np.float64))
    if is_distance and not sparse.issparse(X):
        # Differences do not change with the origin; near the landmarks fewer digits cancel.
        centre = Z.mean(axis=0)
        X, Z = X - centre, Z - centre
    result = np.zeros((by_row.shape[1], X.shape[1]))
    for k, (c, b) in enumerate(zip(by_row.T, by_landmark.T, strict=True)):
        result[k] = _products(X, Z, S, c, b)
        if is_distance:
            squares = _squares(X, c * (S @ b)) + _squares(Z, b * (c @ S))
            result[k] = squares - 2.0 * result[k]
    return result


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


class _FoldAt(NamedTuple):
    """A fold's problems at its solution, for its derivative."""

    training: RankingProblem
    held_out: RankingProblem  # the loss of the held-out rows, not regularised
    at: Evaluation
    held_out_at: Evaluation
    by_landmark: np.ndarray  # beta and v, a coefficient for each landmark
    prefix: Any  # the rare side of the direction v

    def by_row(self, training: Any, curved: Any, held_out: Any) -> np.ndarray:
        """The columns c that go with beta and with v, from slopes by row."""
        beside_beta = self.held_out.scale * held_out - self.training.scale * curved
        return np.column_stack([beside_beta, -self.training.scale * training])


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

    Cost: for each fold up to 100 Hessian products, and one pass that costs as much as the kernel,
    twice.
    """
    expansion, gradients = prepared.expansion, []
    for fold, w in zip(folds, weights, strict=True):
        term = _at_solution(prepared, fold, w, lam, residual)
        loss, at = term.training.loss, term.at
        gradient, *sums = prepared.rows.sum(_of_block, expansion, term)
        values = expand(prepared.rare_kernel, term.by_landmark[:, 1])
        by_row = term.by_row(
            loss.finish(at.rare, sums[0]).gradient,
            loss.finish_curvature(at.rare, term.prefix, values, sums[1]),
            loss.finish(term.held_out_at.rare, sums[2]).gradient,
        )
        gradient = gradient + slope_sums(
            expansion, rare_rows, prepared.rare_kernel, by_row, term.by_landmark
        )
        beta, v = term.by_landmark.T[:, :, None]
        of_norm = slope_sums(expansion, expansion.landmarks, prepared.landmark_kernel, beta, v)
        gradients.append(gradient.sum(axis=0) - lam * of_norm[0])
    return np.array(gradients)


def _at_solution(
    prepared: PreparedRanking, fold: Fold, w: np.ndarray, lam: float, residual: float
) -> _FoldAt:
    """Solve H v = the gradient of the held-out loss at the solution w of a fold."""
    labels = prepared.target.labels
    training = cast(RankingProblem, prepared.problem(lam, fold.held_out))
    rare_weight = labels.rare_weight * fold.tested[labels.rare]
    kept = fold.tested[labels.majority]
    scale = 1.0 / training.loss.pair_weight(rare_weight, float(prepared.rows.weight[kept].sum()))
    held_out = replace(
        training, rare_weight=rare_weight, kept=RowValues(kept), lam=0.0, scale=scale, slot=None
    )
    at, held_out_at = answer([ValueQuestion(training, w), ValueQuestion(held_out, w)])
    right = held_out_at.gradient
    wanted = residual * float(np.linalg.norm(right))
    zero = np.zeros_like(right)
    v, _, _ = solve(conjugate_gradients(training, at, zero, right, wanted, _MOST_PRODUCTS, None))
    adjoint = training.whitener @ v
    prefix = training.loss.rare_direction(at.rare, expand(prepared.rare_kernel, adjoint))
    by_landmark = np.column_stack([at.coefficients, adjoint])
    return _FoldAt(training, held_out, at, held_out_at, by_landmark, prefix)


def _of_block(block: Block, expansion: KernelExpansion, term: _FoldAt) -> tuple:
    """Sums of a block by pair and feature, then the rare-side sums."""
    K, loss, at = expansion.matrix(block), term.training.loss, term.at
    values, directions = expand(K, term.by_landmark).T
    weight = term.training.block_weight(block)
    training = loss.block(at.rare, values, weight)
    curved, sums = loss.curvature(at.rare, term.prefix, training.zone, directions, weight)
    held_out = loss.block(term.held_out_at.rare, values, term.held_out.block_weight(block))
    by_row = term.by_row(training.gradient, curved, held_out.gradient)
    gradient = slope_sums(expansion, block.X, K, by_row, term.by_landmark)
    return gradient, training.sums, sums, held_out.sums
