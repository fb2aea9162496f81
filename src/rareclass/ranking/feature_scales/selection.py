"""Which of some scales to take: the simplest whose held-out AUC is as good as the best."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from rareclass.ranking.feature_scales.trial import N_FOLDS, Study

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
    """Whether a gain is more than a matter of the folds: a one-sided paired t test at 5 per cent.

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
