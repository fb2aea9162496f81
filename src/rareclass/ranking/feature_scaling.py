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

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse, stats
from sklearn.preprocessing import StandardScaler

from rareclass.errors import ErrorKind
from rareclass.estimators.search import Fold, make_folds
from rareclass.findings import warn
from rareclass.folds.majority_part import DrawnRows, draw_class
from rareclass.kernels.expansion import expand
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
from rareclass.machine import Advance, parse_bytes, track
from rareclass.parameters import drawn_seed
from rareclass.ranking.losses import SmoothedHinge
from rareclass.ranking.problem import Evaluation, RankingProblem, ValueQuestion, answer, solve
from rareclass.ranking.ranking_data import PreparedRanking, RankingData, prepare, some_rows
from rareclass.ranking.solve import solve_paths
from rareclass.ranking.solvers.newton import PathSettings, conjugate_gradients
from rareclass.ranking.targets import RankingTarget, training_part
from rareclass.rows import RowSource
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


def learn_feature_scales(data: RankingData, eps: float, verbose: bool | str) -> np.ndarray:
    """Learn the scales inside a kernel on training rows; `eps` is that of the smoothed hinge.

    They have shape (n_features,) and are all ones where no scales were better; else rows are as far
    apart in the mean as without.

    Cost: eight cross-validated paths of a few lams on at most 500 rare and 5,000 other rows, in
    memory, and, unless these gain nothing, five times as many on four fifths of the rows.

    Raises `ValueError` when the kernel is not one whose derivative by the scales is known.
    """
    settings, kernel = data.settings, make_kernel(data.settings.kernel, data.width)
    if type(kernel) not in KERNELS.values():
        raise ErrorKind.UNSUPPORTED.error(
            f"feature_scaling='learned' needs the derivative of the kernel, and that of "
            f"{type(kernel).__name__} is not known: pass kernel='gaussian', 'laplace', "
            "'polynomial' or 'linear', or feature_scaling=None."
        )
    state = settings.random_state
    seed = 0 if state is None else drawn_seed(state)
    fitting = _fitting_rows(settings.memory, data.source)
    source, target = distinct_rows(data.source, data.target, fitting, seed)
    n_rare, n_others = len(target.labels.rare), len(target.labels.majority)
    ones = np.ones(source.n_features)
    if min(n_rare, n_others) < _LEAST_ROWS:
        warn(
            f"feature_scaling='learned' needs {_LEAST_ROWS} distinct rows of each class; there are "
            f"{n_rare} rare and {n_others} others. All scales are 1."
        )
        return ones
    settings = replace(settings, landmarks="rare", random_state=0)
    study = Study(RankingData(settings, source, target, SmoothedHinge(eps), data.width), seed)
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
    most = min(_MOST_RARE, fitting)
    held = draw_class(len(labels.rare), most, rng, labels.rare_weight)
    most = min(max(_LEAST_MAJORITY, _MAJORITY_A_RARE_ROW * len(held.rows)), fitting)
    rest = draw_class(len(labels.majority), most, rng, labels.majority_weight)
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
    auc: float  # mean held-out AUC
    lam: float
    unit: float  # the mean of k(z, z) over the landmarks


@dataclass(frozen=True)
class Study:
    """Distinct rows in memory to try scales on."""

    data: RankingData
    seed: int

    @cached_property
    def rows(self) -> Matrix:
        """The rare rows, then those of the majority."""
        labels = self.data.target.labels
        return self.data.source.take(np.concatenate([labels.rare, labels.majority]))

    @cached_property
    def variance(self) -> np.ndarray:
        """Variance of every feature, by weight."""
        labels = self.data.target.labels
        weight = np.concatenate([labels.rare_weight, labels.majority_weight])
        return np.asarray(StandardScaler(with_mean=False).fit(self.rows, None, weight).var_)

    def normalised(self, squares: np.ndarray) -> np.ndarray:
        """Squared scales times a number, so that rows are as far apart as without scales.

        The mean squared distance of two rows is twice the sum of the variances.
        """
        total = squares @ self.variance
        return squares * (self.variance.sum() / total) if total > 0.0 else squares

    def folds(self, number: int) -> list[Fold]:
        """Folds stratified by label; another `number`, other folds."""
        target, n_rows, seed = self.data.target, self.data.source.n_rows, self.seed + number
        strata = target.strata(n_rows)
        return make_folds(N_FOLDS, target.labels, n_rows, seed, "feature_scaling=None", strata)

    def attempt(self, squares: np.ndarray, lams: np.ndarray, folds: list[Fold]) -> Trial:
        """Cross-validate squared scales at the lam of the highest mean AUC."""
        prepared = prepare(replace(self.data, scales=np.sqrt(squares)), several=True)
        unit = float(np.trace(prepared.landmark_kernel)) / len(prepared.landmark_kernel) or 1.0
        solutions = solve_paths(
            [partial(prepared.problem, 1.0, fold.held_out) for fold in folds],
            [float(lam) for lam in lams * unit],
            PathSettings(_TOL, _MAX_ITER),
            prepared.at_once,
        )
        (scores,) = prepared.fold_scores(folds, solutions, self.data.target.measure)
        means = scores.mean(axis=0)
        best = int(np.argmax(means))
        weights = [path[best].at.w for path in solutions]
        return Trial(prepared, folds, weights, float(means[best]), float(lams[best]), unit)


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
        trial = study.attempt(squares, lams, study.folds(number))
        step = _step(held_out_gradients(trial, study.rows), study.variance, squares)
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


def _step(gradients: np.ndarray, variance: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Step of each feature, from -1 to 1: agreement of the folds that its scale should grow."""
    # What all scales together would gain is the width's business: along the constraint only.
    common = (squares @ gradients.mean(axis=0)) / (squares @ variance)
    descent = common * variance - gradients
    error = descent.std(axis=0, ddof=1) / np.sqrt(len(descent))
    agreement = np.divide(descent.mean(axis=0), error, out=np.zeros(len(error)), where=error > 0.0)
    return np.clip(agreement / _AGREEMENT, -1.0, 1.0)


def _gains_elsewhere(study: Study, advance: Advance) -> np.ndarray:
    """Gain in AUC over no scales on every fold's rows, of scales learned without them."""
    gains = []
    for fold in study.folds(_N_ROUNDS):
        target = training_part(study.data.target, fold.held_out)
        squares, rounds = _descend(replace(study, data=replace(study.data, target=target)), advance)
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


class ScaleSlopes(NamedTuple):
    r"""Derivatives :math:`\partial k(x_i, z_r) / \partial s_d` of all pairs, by S and features."""

    X: Matrix
    Z: Matrix
    S: np.ndarray
    is_distance: bool  # of a kernel of a distance, else of an inner product

    @classmethod
    def of(cls, kernel: FeatureScaled, X: Matrix, Z: Matrix, K: np.ndarray) -> "ScaleSlopes":
        """Derivatives for rows X and landmarks Z, neither of them scaled, whose kernel is K."""
        S = _slope(kernel.kernel, kernel.scaled(X), kernel.scaled(Z), K)
        is_distance = isinstance(kernel.kernel, DistanceKernel)
        if is_distance and not sparse.issparse(X):
            # Differences do not change with the origin; near the landmarks fewer digits cancel.
            centre = Z.mean(axis=0)
            X, Z = X - centre, Z - centre
        return cls(X, Z, S, is_distance)

    def sums(self, c: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Sums of c_i b_r times the derivatives, by feature; some landmarks at a time.

        Cost: as much as the kernel.
        """
        X, Z, S, total = self.X, self.Z, self.S, np.zeros(self.X.shape[1])
        size = max(1, _MOST_ENTRIES // max(X.shape[1], 1))
        for start in range(0, S.shape[1], size):
            part = slice(start, start + size)
            landmarks = Z[part].toarray() if sparse.issparse(Z) else Z[part]
            pulled: Any = X.T @ (c[:, None] * S[:, part])
            total += np.einsum("dr,rd,r->d", pulled, landmarks, b[part])
        if not self.is_distance:
            return total
        return _squares(X, c * (S @ b)) + _squares(Z, b * (c @ S)) - 2.0 * total


def _squares(X: Matrix, weight: np.ndarray) -> np.ndarray:
    """Weighted sums of squares by column."""
    squares: Any = X.multiply(X) if sparse.issparse(X) else X * X
    return np.asarray(weight @ squares)


def held_out_gradients(trial: Trial, rows: Matrix, residual: float = _RESIDUAL) -> np.ndarray:
    """Derivative of every fold's held-out loss by the squared scales: (n_folds, n_features).

    `rows` are those of the trial, not scaled, the rare ones first. `residual` is that of the linear
    system for v; smaller is more exact.

    Cost: the kernel of all rows; for each fold up to 100 Hessian products, and twice as much as the
    kernel.
    """
    prepared, lam, gradients = trial.prepared, trial.lam * trial.unit, []
    kernel = cast(FeatureScaled, prepared.expansion.kernel)
    points, n_rare = prepared.expansion.landmarks, len(prepared.rare_kernel)
    K = np.concatenate([prepared.rare_kernel, kernel.block(rows[n_rare:], points)])
    of_rows = ScaleSlopes.of(kernel, rows, points, K)
    of_norm = ScaleSlopes.of(kernel, points, points, prepared.landmark_kernel)
    for fold, w in zip(trial.folds, trial.weights, strict=True):
        training = prepared.problem(lam, fold.held_out)
        tested = prepared.problem(0.0, ~fold.tested)
        held_out = replace(tested, whitener=training.whitener, slot=None)
        at, held_out_at = answer([ValueQuestion(training, w), ValueQuestion(held_out, w)])
        right = held_out_at.gradient
        wanted, zero = residual * float(np.linalg.norm(right)), np.zeros_like(right)
        v = solve(conjugate_gradients(training, at, zero, right, wanted, _MOST_PRODUCTS, None))[0]
        beta, adjoint = at.coefficients, training.whitener @ v
        by_row, curved = _slopes_by_row(training, at, K, adjoint)
        of_held_out, _ = _slopes_by_row(held_out, held_out_at, K, adjoint)
        gradient = of_rows.sums(of_held_out - curved, beta) - of_rows.sums(by_row, adjoint)
        gradients.append(gradient - lam * of_norm.sums(beta, adjoint))
    return np.array(gradients)


def _slopes_by_row(
    problem: RankingProblem, at: Evaluation, K: np.ndarray, direction: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of the loss in the scores of all rows, and their change along coefficients."""
    loss, n_rare, weight = problem.loss, len(problem.rare_weight), problem.majority_weight
    along = expand(K, direction)
    prefix = loss.rare_direction(at.rare, along[:n_rare])
    terms = loss.block(at.rare, expand(K[n_rare:], at.coefficients), weight)
    change, sums = loss.curvature(at.rare, prefix, terms.zone, along[n_rare:], weight)
    of_rare = loss.finish_curvature(at.rare, prefix, along[:n_rare], sums)
    slopes = np.concatenate([loss.finish(at.rare, terms.sums).gradient, terms.gradient])
    return problem.scale * slopes, problem.scale * np.concatenate([of_rare, change])
