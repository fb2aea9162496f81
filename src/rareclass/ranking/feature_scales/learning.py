r"""Scales of the features, learned by descent on the cross-validated loss and then thinned out.

1. Rounds. From equal scales: choose lam by the held-out AUC, take the derivative of each fold's
   held-out loss by the squared scales :math:`s_d` (see `held_out_gradient`), along the scales that
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
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.utils import check_random_state

from rareclass.findings import warn
from rareclass.kernels.kernels import make_kernel
from rareclass.machine import Advance, parse_bytes, track
from rareclass.ranking.feature_scales.gradients import has_slopes
from rareclass.ranking.feature_scales.trial import N_FOLDS, Study, Trial, distinct_rows
from rareclass.ranking.targets import RankingTarget
from rareclass.rows import RowSource

# Every number of features up to the first, then in steps of the second.
_EVERY, _FACTOR = 8, 1.3
_MOST_WORSE = 3
# Sets of folds that a comparison takes its scores from.
_FOLD_SETS = (1001, 1002)
UNSEEN_FOLDS = 1003
"""Number of the folds for a last comparison."""
# Differences of fold scores, in their standard deviations, that are a matter of the folds. The
# training parts overlap, so the mean of ten of them is out by sqrt(1 / 10 + 1 / 4) of these and
# not by sqrt(1 / 10) (Nadeau and Bengio, "Inference for the generalization error", 2003).
AS_GOOD = 0.6
# Chance that any of the candidates passes for a gain over no scales where none is one.
_LEVEL = 0.05


def sizes(n_features: int) -> list[int]:
    """Numbers of features to try, increasing, the last one `n_features`.

    Examples
    --------
    >>> sizes(12)
    [1, 2, 3, 4, 5, 6, 7, 8, 11, 12]
    """
    numbers = list(range(1, min(n_features, _EVERY) + 1))
    while numbers[-1] < n_features:
        numbers.append(min(int(np.ceil(numbers[-1] * _FACTOR)), n_features))
    return numbers


def held_out_scores(study: Study, squares: np.ndarray, lams: np.ndarray) -> np.ndarray:
    """AUC of every held-out part of some sets of folds, at the lam that is best for all."""
    trials = [study.attempt(squares, lams, study.folds(number)) for number in _FOLD_SETS]
    scores = np.concatenate([trial.scores for trial in trials])
    return scores[:, int(np.argmax(scores.mean(axis=0)))]


def try_sizes(
    study: Study, order: np.ndarray, lams: np.ndarray, advance: Callable[..., None]
) -> dict[int, np.ndarray]:
    """Held-out scores of equal scales on the first features of an order, by their number.

    It ends early when several numbers in a row were no better.
    """
    found: dict[int, np.ndarray] = {}
    best, n_worse = -np.inf, 0
    for size in sizes(len(order)):
        squares = equal_squares(study, order[:size])
        found[size] = held_out_scores(study, squares, lams)
        auc = float(found[size].mean())
        advance(1, f"{size} features, held-out AUC {auc:.3f}")
        n_worse = 0 if auc > best else n_worse + 1
        best = max(best, auc)
        if n_worse == _MOST_WORSE:
            break
    return found


def equal_squares(study: Study, features: np.ndarray) -> np.ndarray:
    """Equal squared scales of some features, zero for the others."""
    squares = np.zeros(study.source.n_features)
    squares[features] = 1.0
    return study.normalised(squares)


def smallest_as_good(scores: Sequence[np.ndarray], as_good: float = AS_GOOD) -> int:
    """Position of the first candidate that is as good as the best.

    Scores are those of the candidates, the simplest first, on the same held-out parts. One counts
    as good up to a mean difference from the best of `as_good` standard deviations of the
    differences.

    Examples
    --------
    >>> smallest_as_good([np.array([0.7, 0.6]), np.array([0.9, 0.8]), np.array([0.9, 0.81])])
    2
    >>> smallest_as_good([np.array([0.7, 0.6]), np.array([0.9, 0.8]), np.array([0.91, 0.79])])
    1
    """
    best = max(scores, key=lambda column: float(column.mean()))
    for k, column in enumerate(scores):
        gap = best - column
        if gap.mean() <= as_good * gap.std(ddof=1):
            return k
    raise ValueError("no candidates.")


def clearly_better(scores: np.ndarray, than: np.ndarray, n_compared: int = 1) -> bool:
    """Test a gain against the noise of the folds: one-sided paired t test at 5 per cent.

    AUCs are those on the same parts, of models that were learned without them. Each of `n_compared`
    candidates is tested at its share of the 5 per cent (Bonferroni).

    The variance of the mean of n differences is :math:`(1 / n + 1 / (N - 1))` times theirs, where
    a part is one of N: training parts overlap (Nadeau and Bengio, 2003).

    Examples
    --------
    >>> plain = np.array([0.70, 0.72, 0.69, 0.71, 0.70])
    >>> clearly_better(plain + [0.05, 0.06, 0.04, 0.05, 0.05], plain)
    True
    >>> clearly_better(plain + [0.01, -0.01, 0.0, 0.02, 0.03], plain)
    False
    """
    gain = scores - than
    error = gain.std(ddof=1) * np.sqrt(1.0 / len(gain) + 1.0 / (N_FOLDS - 1))
    return bool(gain.mean() > stats.t.ppf(1.0 - _LEVEL / n_compared, len(gain) - 1) * error)


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


@dataclass(frozen=True)
class ScaleSettings:
    """Parameters of learned scales, as `RankRC` has them."""

    kernel: Any
    eps: float
    memory: int | str
    n_jobs: int | None
    random_state: Any
    verbose: bool | str


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
    settings: ScaleSettings, source: RowSource, target: RankingTarget, width: float
) -> LearnedScales:
    """Learn the scales inside a kernel on training rows; `width` is sigma.

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
    plain = np.ones(source.n_features)
    if min(len(labels.rare), len(labels.majority)) < _LEAST_ROWS:
        warn(
            f"feature_scaling='learned' needs {_LEAST_ROWS} distinct rows of each class; there are "
            f"{len(labels.rare)} rare and {len(labels.majority)} others. All scales are 1."
        )
        return LearnedScales(plain, [], {}, {})
    state = settings.random_state
    seed = 0 if state is None else int(check_random_state(state).randint(2**31))
    study = Study(
        rows, distinct, kernel, width, settings.eps, settings.memory, settings.n_jobs, seed
    )
    if not study.variance.any():
        return LearnedScales(plain, [], {}, {})
    with track("Learning feature scales", None, settings.verbose) as advance:
        squares, rounds = descend(study, advance)
        return choose(study, squares, rounds, advance)


def _fitting_rows(memory: int | str, source: RowSource) -> int:
    """Dense rows of a class that take an eighth of the memory; never fewer than are needed."""
    if source.is_sparse:
        return _MOST_RARE * _MAJORITY_A_RARE_ROW
    return max(_LEAST_ROWS, parse_bytes(memory) // 8 // (8 * source.n_features))


def descend(study: Study, advance: Advance) -> tuple[np.ndarray, list[tuple[float, float]]]:
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


def choose(
    study: Study, squares: np.ndarray, rounds: list[tuple[float, float]], advance: Advance
) -> LearnedScales:
    """The simplest scales that are as good as the best; none at all unless these clearly gain."""
    candidates = _candidates(study, squares, rounds, advance)
    lams = near(rounds[-1][1])
    scores = {}
    for name, candidate in candidates.items():
        scores[name] = held_out_scores(study, candidate, _LAMS if name == "plain" else lams)
        advance(1, f"{name}, held-out AUC {scores[name].mean():.3f}")
    chosen, unseen = "plain", {}
    if smallest_as_good(list(scores.values())) > 0:
        unseen = _on_unseen_rows(study, advance)
        chosen = _clear_gain(unseen)
    return LearnedScales(np.sqrt(candidates[chosen]), rounds, scores, unseen)


def _clear_gain(unseen: dict[str, np.ndarray]) -> str:
    """Name the simplest of the candidates as good as the best of the clear gains, or plain."""
    plain, n_compared = unseen["plain"], len(unseen) - 1
    better = [n for n, scores in unseen.items() if clearly_better(scores, plain, n_compared)]
    if not better:
        return "plain"
    return better[smallest_as_good([unseen[name] for name in better])]


def _in_order(squares: np.ndarray) -> np.ndarray:
    """The features that are not negligible, the largest scales first."""
    order = np.argsort(-squares, kind="stable")
    return order[squares[order] >= _NEGLIGIBLE * squares.max()]


def _candidates(
    study: Study, squares: np.ndarray, rounds: list[tuple[float, float]], advance: Advance
) -> dict[str, np.ndarray]:
    """Squared scales to choose from, the simplest first."""
    order = _in_order(squares)
    by_size = try_sizes(study, order, np.array([rounds[-1][1]]), advance)
    size = list(by_size)[smallest_as_good(list(by_size.values()))]
    learned = np.zeros(len(squares))
    learned[order] = squares[order]
    return {
        "plain": np.ones(len(squares)),
        "selected": equal_squares(study, order[:size]),
        "roots": study.normalised(np.sqrt(learned)),
        "learned": study.normalised(learned),
    }


def _on_unseen_rows(study: Study, advance: Advance) -> dict[str, np.ndarray]:
    """AUC of each candidate on every fold's rows, learned without them."""
    found: dict[str, list[float]] = {}
    for fold in study.folds(UNSEEN_FOLDS):
        inner = study.without(fold.held_out)
        squares, rounds = descend(inner, advance)
        for name, candidate in _candidates(inner, squares, rounds, advance).items():
            lams = _LAMS if name == "plain" else near(rounds[-1][1])
            trial = inner.attempt(candidate, lams, inner.folds(UNSEEN_FOLDS))
            lam = trial.lams[[trial.best]]
            auc = study.attempt(candidate, lam, [fold]).scores[0, 0]
            found.setdefault(name, []).append(float(auc))
    return {name: np.array(aucs) for name, aucs in found.items()}
