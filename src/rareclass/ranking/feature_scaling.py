r"""Scales of the features, learned by descent on the cross-validated loss and then thinned out.

1. Rounds. From equal scales: choose lam by the held-out AUC, take the derivative of each fold's
   held-out loss by the squared scales :math:`s_d` (see `held_out_gradients`), along the scales that
   keep the mean distance of rows. A feature's scale grows when the folds agree that it should and
   shrinks when they agree on that: the step of :math:`\log s_d` is the mean over the folds by
   its standard error, cut at :math:`\pm 1`, times a rate. It does not know how large the loss or
   the gradient is. Every round has other folds, and the rate falls: what is a matter of the folds
   averages out.
2. Selection. The features in the order of their scales; models of equal scales on the first
   1, 2, 3, ... of them, on fresh folds. The smallest number is taken whose AUC is within
   the spread of the best one's.
3. Choice. Equal scales on these features, the roots of the learned scales and the learned scales
   are compared with no scales at all. These AUCs flatter what was learned from the same rows:
   where nothing is as good as the best but no scales, there are none. Else steps 1 and 2 are
   repeated in each fold without the rows that it holds out, and the AUCs of those decide: scales
   are taken only where their gain is clear, by a one-sided test.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, stats
from sklearn.utils import check_random_state

from rareclass.estimators.search import Fold
from rareclass.findings import warn
from rareclass.folds.majority_part import DrawnRows, weight_for_all
from rareclass.kernels.kernels import make_kernel
from rareclass.machine import Advance, blas_threads, parse_bytes, track
from rareclass.ranking.losses import SmoothedHinge
from rareclass.ranking.ranking_data import (
    KernelSettings,
    PreparedRanking,
    RankingData,
    prepare,
    some_rows,
)
from rareclass.ranking.scale_gradients import has_slopes, held_out_gradients
from rareclass.ranking.solvers.newton import PathSettings
from rareclass.ranking.solvers.path import solve_paths
from rareclass.ranking.targets import RankingTarget
from rareclass.rows import Block, RowSource, rows_of

N_FOLDS = 5
# Every number of features up to the first, then in steps of the second.
_EVERY, _FACTOR = 8, 1.3
_MOST_WORSE = 3
# Sets of folds that a comparison takes its scores from, and the folds of the last comparison.
_FOLD_SETS, _UNSEEN_FOLDS = (1001, 1002), 1003
# Differences of fold scores, in their standard deviations, that are a matter of the folds. The
# training parts overlap, so the mean of ten of them is out by sqrt(1 / 10 + 1 / 4) of these and
# not by sqrt(1 / 10) (Nadeau and Bengio, "Inference for the generalization error", 2003).
_AS_GOOD = 0.6
# Chance that any of the candidates passes for a gain over no scales where none is one.
_LEVEL = 0.05
# More rows cost time and say little more: how certain an AUC is depends on the rare rows, and ten
# majority rows for each are nearly as good as all.
_MOST_RARE, _MAJORITY_A_RARE_ROW, _LEAST_MAJORITY = 500, 10, 2_000
_LEAST_ROWS = 2 * N_FOLDS
_LAMS = 2.0 ** np.arange(2, -15, -4)
_N_ROUNDS, _FULL_RATE_ROUNDS, _RATE_DECAY = 8, 4, 0.7
# Below this share of the largest squared scale a feature is not tried alone.
_NEGLIGIBLE = 0.01
# Standard errors at which the folds agree: from there on a step is a full one.
_AGREEMENT = 3.0
# A start for the gradient, and for a comparison of AUCs: no more digits are needed.
_TOL, _MAX_ITER = 1e-2, 100
_BLOCK_BYTES = 2**24
# Odd multipliers of a mixing step that spreads every bit (MurmurHash3's finaliser).
_FIRST, _SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)


class LearnedScales(NamedTuple):
    """Scales of the features, and how they came about.

    ``scales`` of shape (n_features,) are all ones where no scales were better; else rows are as far
    apart in the mean as without. ``rounds`` has the held-out AUC and the lam, relative to the mean
    of k(z, z), of each round; ``candidates`` held-out AUCs of what was compared at the end, by
    name, empty when nothing was learned; ``unseen`` the same on rows that nothing was learned from,
    empty where no scales at all were as good as the best even by the flattering AUCs.
    """

    scales: np.ndarray
    rounds: list[tuple[float, float]]
    candidates: dict[str, np.ndarray]
    unseen: dict[str, np.ndarray]


def learn_feature_scales(
    settings: KernelSettings,
    source: RowSource,
    target: RankingTarget,
    width: float,
    eps: float,
    verbose: bool | str,
) -> LearnedScales:
    """Learn the scales inside a kernel on training rows; `width` is sigma, `eps` the hinge's.

    Cost: one reading of the rows; then 30 to 50 cross-validated paths of a few lams on at most 500
    rare and 5,000 other rows, in memory, and, unless these are for no scales, five times as many on
    four fifths of the rows.

    Raises `ValueError` when the kernel is not one whose derivative by the scales is known.
    """
    kernel = make_kernel(settings.kernel, width)
    if not has_slopes(kernel):
        raise ValueError(
            f"feature_scaling='learned' needs the derivative of the kernel, and that of "
            f"{type(kernel).__name__} is not known: pass kernel='gaussian', 'laplace', "
            "'polynomial' or 'linear', or feature_scaling=None."
        )
    fitting = _fitting_rows(settings.memory, source)

    def most_majority(n_rare: int) -> int:
        return min(max(_LEAST_MAJORITY, _MAJORITY_A_RARE_ROW * n_rare), fitting)

    rows, distinct = distinct_rows(source, target, min(_MOST_RARE, fitting), most_majority)
    labels = distinct.labels
    unlearned = LearnedScales(np.ones(source.n_features), [], {}, {})
    if min(len(labels.rare), len(labels.majority)) < _LEAST_ROWS:
        warn(
            f"feature_scaling='learned' needs {_LEAST_ROWS} distinct rows of each class; there are "
            f"{len(labels.rare)} rare and {len(labels.majority)} others. All scales are 1."
        )
        return unlearned
    state = settings.random_state
    seed = 0 if state is None else int(check_random_state(state).randint(2**31))
    study = Study(rows, distinct, kernel, width, eps, settings.memory, settings.n_jobs, seed)
    if not study.variance.any():
        return unlearned
    with track("Learning feature scales", None, verbose) as advance:
        squares, rounds = _descend(study, advance)
        candidates = _candidates(study, squares, rounds, advance)
        scores = {}
        for name, candidate in candidates.items():
            lams = _LAMS if name == "plain" else near(rounds[-1][1])
            scores[name] = _held_out_scores(study, candidate, lams)
            advance(1, f"{name}, held-out AUC {scores[name].mean():.3f}")
        chosen, unseen = "plain", {}
        if smallest_as_good(list(scores.values())) > 0:
            unseen = _on_unseen_rows(study, advance)
            chosen = _clear_gain(unseen)
        return LearnedScales(np.sqrt(candidates[chosen]), rounds, scores, unseen)


def _fitting_rows(memory: int | str, source: RowSource) -> int:
    """Dense rows of a class that take an eighth of the memory; never fewer than are needed."""
    if source.is_sparse:
        return _MOST_RARE * _MAJORITY_A_RARE_ROW
    return max(_LEAST_ROWS, parse_bytes(memory) // 8 // (8 * source.n_features))


def distinct_rows(
    source: RowSource, target: RankingTarget, most_held: int, most_majority: Callable[[int], int]
) -> tuple[RowSource, RankingTarget]:
    """Distinct rows in memory, in float64; each class weighs what it did.

    Rows that are held come first. There are no more of them than `most_held`, those of the
    smallest hashes, and of the majority than `most_majority` of the number that are held. Cost:
    one reading of the rows, in order, and one of those that are kept.
    """
    labels, code = target.labels, target.held_code
    size = max(1, _BLOCK_BYTES // (8 * source.n_features))
    hashes = rows_of(source, block_rows=size, n_jobs=1).map(_hashes_of_block)
    of_held = hashes[labels.rare]
    if (code != code[0]).any():  # equal rows of different labels differ, too
        of_held = _mixed(of_held ^ _mixed(code.astype(np.uint64) + np.uint64(1)))
    held = _merged(of_held, labels.rare_weight, most_held)
    most = most_majority(len(held.rows))
    rest = _merged(hashes[labels.majority], labels.majority_weight, most)
    return some_rows(source, target, held, rest, np.float64)


def _merged(hashes: np.ndarray, weight: np.ndarray | None, most: int) -> DrawnRows:
    """Positions of one row of each hash, in the order of the hashes, and the weight of its copies.

    The weights of the rows that are kept sum to the weight of all rows.
    """
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    summed = np.bincount(which, weight, minlength=len(first)).astype(np.float64)
    return DrawnRows(first[:most], weight_for_all(summed, np.arange(len(first))[:most]))


def _hashes_of_block(block: Block) -> np.ndarray:
    return row_hashes(block.X)


def row_hashes(X: Any) -> np.ndarray:
    """A number for each row that depends on its values alone: uint64 of shape (n_rows,).

    float32 and float64, dense and CSR rows of equal values have equal numbers.
    """
    # The bits of small whole numbers are nearly all zero: they are mixed before columns tell them
    # apart, and again so that sums do not cancel.
    rng = np.random.default_rng(0)
    columns = rng.integers(1, 2**63, X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    is_sparse = sparse.issparse(X)
    X = sparse.csr_array(X) if is_sparse else X
    values = np.asarray(X.data if is_sparse else X, dtype=np.float64)
    # Adding zero makes -0.0 the 0.0 that it equals, whose bits are all zero.
    mixed = _mixed((values + 0.0).view(np.uint64))
    if not is_sparse:
        return _mixed(mixed * columns).sum(axis=1, dtype=np.uint64)
    sums = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(_mixed(mixed * columns[X.indices]), dtype=np.uint64, out=sums[1:])
    return sums[X.indptr[1:]] - sums[X.indptr[:-1]]


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Zero stays zero, so that a CSR row need not list its zeros."""
    numbers = (numbers ^ (numbers >> _SHIFT)) * _FIRST
    numbers = (numbers ^ (numbers >> _SHIFT)) * _SECOND
    return numbers ^ (numbers >> _SHIFT)


class Trial(NamedTuple):
    """Models of all folds and lams with the same scales.

    ``lams`` are relative to the mean of k(z, z) over the landmarks; ``scores`` of shape (n_folds,
    n_lams) are held-out AUCs.
    """

    lams: np.ndarray
    scores: np.ndarray
    prepared: PreparedRanking
    folds: list[Fold]
    weights: list[list[np.ndarray]]  # by fold and lam, whitened coordinates
    unit: float

    @property
    def best(self) -> int:
        """Position of the lam of the highest mean AUC; the largest of equals."""
        means = self.scores.mean(axis=0)
        return max(range(len(means)), key=lambda k: (means[k], self.lams[k]))


@dataclass(frozen=True)
class Study:
    """Distinct rows in memory to try scales on; `eps` is of the smoothed hinge."""

    source: RowSource
    target: RankingTarget
    kernel: Any
    width: float
    eps: float
    memory: int | str
    n_jobs: int | None
    seed: int
    variance: np.ndarray = field(init=False)  # of every feature, by weight

    def __post_init__(self) -> None:
        X, labels = self.source.take(slice(None)), self.target.labels
        assert labels.majority_weight is not None
        weight = np.concatenate([labels.rare_weight, labels.majority_weight])
        weight = weight / weight.sum()
        mean = X.T @ weight
        if self.source.is_sparse:
            squares = np.asarray(X.multiply(X).T @ weight).ravel()
            variance = np.maximum(squares - mean**2, 0.0)
        else:
            variance = weight @ (X - mean) ** 2
        object.__setattr__(self, "variance", variance)

    def normalised(self, squares: np.ndarray) -> np.ndarray:
        """Squared scales times a number, so that rows are as far apart as without scales.

        The mean squared distance of two rows is twice the sum of the variances.
        """
        total = squares @ self.variance
        return squares * (self.variance.sum() / total) if total > 0.0 else squares

    def equal_squares(self, features: np.ndarray) -> np.ndarray:
        """Equal squared scales of some features, zero for the others."""
        squares = np.zeros(self.source.n_features)
        squares[features] = 1.0
        return self.normalised(squares)

    def folds(self, number: int) -> list[Fold]:
        """Folds of every label; another `number`, other folds."""
        rng = np.random.default_rng([self.seed, number])
        labels, code = self.target.labels, self.target.held_code
        fold_of = np.empty(self.source.n_rows, dtype=np.int64)
        first = 0  # the next label goes on where the last one ended: small ones fill folds together
        for one in np.unique(code):
            rows = labels.rare[code == one]
            fold_of[rows] = (first + rng.permutation(len(rows))) % N_FOLDS
            first += len(rows)
        fold_of[labels.majority] = rng.permutation(len(labels.majority)) % N_FOLDS
        return [Fold(fold_of == k, fold_of == k) for k in range(N_FOLDS)]

    def without(self, rows: np.ndarray) -> "Study":
        """The same study on fewer rows: those where the mask `rows` is false."""
        kept = np.flatnonzero(~rows)
        X, old = self.source.take(kept), self.target.labels
        held, rest = ~rows[old.rare], ~rows[old.majority]
        assert old.majority_weight is not None
        target = self.target.on_part(
            np.flatnonzero(held), old.rare_weight[held], old.majority_weight[rest]
        )
        source = RowSource(X.shape, X.dtype, lambda chosen: X[chosen], self.source.is_sparse)
        return replace(self, source=source, target=target)

    def attempt(self, squares: np.ndarray, lams: np.ndarray, folds: list[Fold]) -> Trial:
        """Cross-validate squared scales."""
        settings = KernelSettings(
            self.kernel, self.width, self.target.labels.rare, self.memory, self.n_jobs, 0
        )
        loss, scales = SmoothedHinge(self.eps), np.sqrt(squares)
        data = RankingData(settings, self.source, self.target, loss, self.width, scales)
        prepared = prepare(data, several=True)
        unit = float(np.trace(prepared.landmark_kernel)) / len(prepared.landmark_kernel) or 1.0
        with blas_threads(1):
            solutions = solve_paths(
                [partial(prepared.problem, 1.0, fold.held_out) for fold in folds],
                [float(lam) for lam in lams * unit],
                PathSettings(_TOL, _MAX_ITER),
                prepared.at_once,
            )
        (scores,) = prepared.fold_scores(folds, solutions, self.target.measure)
        weights = [[solution.at.w for solution in path] for path in solutions]
        return Trial(lams, scores, prepared, folds, weights, unit)

    def gradients(self, trial: Trial) -> np.ndarray:
        """Derivative of every fold's held-out loss by the squared scales, at the best lam."""
        best = trial.best
        with blas_threads(1):
            return held_out_gradients(
                trial.prepared,
                self.source.take(self.target.labels.rare),
                trial.folds,
                [path[best] for path in trial.weights],
                float(trial.lams[best] * trial.unit),
            )


def _descend(study: Study, advance: Advance) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """Squared scales after the rounds, and the (AUC, relative lam) of each."""
    squares = study.normalised((study.variance > 0.0).astype(np.float64))
    found: list[tuple[float, float]] = []
    for number in range(_N_ROUNDS):
        lams = _LAMS if not found else near(found[-1][1])
        if number >= _FULL_RATE_ROUNDS:
            lams = np.array([found[-1][1]])
        trial = study.attempt(squares, lams, study.folds(number))
        best = trial.best
        auc = float(trial.scores[:, best].mean())
        found.append((auc, float(trial.lams[best])))
        advance(1, f"round {number + 1}, held-out AUC {auc:.3f}")
        rate = _RATE_DECAY ** max(0, number + 1 - _FULL_RATE_ROUNDS)
        squares = study.normalised(squares * np.exp(rate * _step(study, squares, trial)))
    return squares, found


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


def _candidates(
    study: Study, squares: np.ndarray, rounds: list[tuple[float, float]], advance: Advance
) -> dict[str, np.ndarray]:
    """Squared scales to choose from, the simplest first."""
    order = np.argsort(-squares, kind="stable")
    order = order[squares[order] >= _NEGLIGIBLE * squares.max()]
    by_size = _try_sizes(study, order, np.array([rounds[-1][1]]), advance)
    size = list(by_size)[smallest_as_good(list(by_size.values()))]
    learned = np.zeros(len(squares))
    learned[order] = squares[order]
    return {
        "plain": np.ones(len(squares)),
        "selected": study.equal_squares(order[:size]),
        "roots": study.normalised(np.sqrt(learned)),
        "learned": study.normalised(learned),
    }


def _try_sizes(
    study: Study, order: np.ndarray, lams: np.ndarray, advance: Advance
) -> dict[int, np.ndarray]:
    """Held-out scores of equal scales on the first features of an order, by their number.

    It ends early when several numbers in a row were no better.
    """
    found: dict[int, np.ndarray] = {}
    best, n_worse, size = -np.inf, 0, 0
    while size < len(order) and n_worse < _MOST_WORSE:
        size = min(max(size + 1, int(np.ceil(size * _FACTOR)) if size >= _EVERY else 0), len(order))
        found[size] = _held_out_scores(study, study.equal_squares(order[:size]), lams)
        auc = float(found[size].mean())
        advance(1, f"{size} features, held-out AUC {auc:.3f}")
        n_worse = 0 if auc > best else n_worse + 1
        best = max(best, auc)
    return found


def _held_out_scores(study: Study, squares: np.ndarray, lams: np.ndarray) -> np.ndarray:
    """AUC of every held-out part of some sets of folds, at the lam that is best for all."""
    trials = [study.attempt(squares, lams, study.folds(number)) for number in _FOLD_SETS]
    scores = np.concatenate([trial.scores for trial in trials])
    return scores[:, int(np.argmax(scores.mean(axis=0)))]


def _on_unseen_rows(study: Study, advance: Advance) -> dict[str, np.ndarray]:
    """AUC of each candidate on every fold's rows, learned without them."""
    found: dict[str, list[float]] = {}
    for fold in study.folds(_UNSEEN_FOLDS):
        inner = study.without(fold.held_out)
        squares, rounds = _descend(inner, advance)
        for name, candidate in _candidates(inner, squares, rounds, advance).items():
            lams = _LAMS if name == "plain" else near(rounds[-1][1])
            trial = inner.attempt(candidate, lams, inner.folds(_UNSEEN_FOLDS))
            lam = trial.lams[[trial.best]]
            auc = study.attempt(candidate, lam, [fold]).scores[0, 0]
            found.setdefault(name, []).append(float(auc))
    return {name: np.array(aucs) for name, aucs in found.items()}


def _clear_gain(unseen: dict[str, np.ndarray]) -> str:
    """Name the simplest of the candidates as good as the best of the clear gains, or plain."""
    plain, n_compared = unseen["plain"], len(unseen) - 1
    better = [n for n, scores in unseen.items() if clearly_better(scores, plain, n_compared)]
    if not better:
        return "plain"
    return better[smallest_as_good([unseen[name] for name in better])]


def smallest_as_good(scores: Sequence[np.ndarray]) -> int:
    """Position of the first candidate that is as good as the best.

    Scores are those of the candidates, the simplest first, on the same held-out parts. One counts
    as good up to a mean difference from the best of 0.6 standard deviations of the differences.

    >>> smallest_as_good([np.array([0.7, 0.6]), np.array([0.9, 0.8]), np.array([0.9, 0.81])])
    2
    >>> smallest_as_good([np.array([0.7, 0.6]), np.array([0.9, 0.8]), np.array([0.91, 0.79])])
    1
    """
    best = max(scores, key=lambda column: float(column.mean()))
    gaps = [best - column for column in scores]
    return next(k for k, gap in enumerate(gaps) if gap.mean() <= _AS_GOOD * gap.std(ddof=1))


def clearly_better(scores: np.ndarray, than: np.ndarray, n_compared: int = 1) -> bool:
    """Test a gain against the noise of the folds: one-sided paired t test at 5 per cent.

    AUCs are those on the same parts, of models that were learned without them. Each of `n_compared`
    candidates is tested at its share of the 5 per cent (Bonferroni).

    The variance of the mean of n differences is :math:`(1 / n + 1 / (N - 1))` times theirs, where
    a part is one of N: training parts overlap (Nadeau and Bengio, 2003).

    >>> plain = np.array([0.70, 0.72, 0.69, 0.71, 0.70])
    >>> clearly_better(plain + [0.05, 0.06, 0.04, 0.05, 0.05], plain)
    True
    >>> clearly_better(plain + [0.01, -0.01, 0.0, 0.02, 0.03], plain)
    False
    """
    gain = scores - than
    error = gain.std(ddof=1) * np.sqrt(1.0 / len(gain) + 1.0 / (N_FOLDS - 1))
    return bool(gain.mean() > stats.t.ppf(1.0 - _LEVEL / n_compared, len(gain) - 1) * error)
