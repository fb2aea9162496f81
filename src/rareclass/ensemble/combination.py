"""Which members count, and for how much: greedy selection on held-out scores.

1. members that are worse than the best by more than chance are left out
2. the best five begin, with one vote each
3. ten times the member whose further vote helps most gets one (Caruana et al., "Ensemble
   selection from libraries of models", ICML 2004)
4. the votes are those of the step that was best
5. so by the objective, and so by AUC; half of the weight is the mean of both, half is shared alike
   by all that are not left out

Beginning with five, and sharing, keeps a lucky member from deciding alone where rare rows are few;
AUC looks at every majority row, and so is the steadier judge of the two (docs/decisions/0028).
"""

from collections.abc import Callable, Sequence

import numpy as np

Merit = Callable[[np.ndarray], float]
"""Of combined held-out scores: larger is better."""

N_BEGIN, N_STEPS = 5, 10
# A gain below this is rounding.
_LEAST_GAIN = 1e-9


def mean_of_greedy(scores: np.ndarray, merits: Sequence[Merit]) -> np.ndarray:
    """Weights of the members, of shape (n_members,) and sum 1: the mean over several merits."""
    return np.mean([greedy_weights(scores, merit) for merit in merits], axis=0)


def greedy_weights(
    scores: np.ndarray, merit: Merit, n_begin: int = N_BEGIN, n_steps: int = N_STEPS
) -> np.ndarray:
    """Weights of the members, of shape (n_members,) and sum 1; many are 0.

    `scores` of shape (n_rows, n_members) are on a common scale. O(n_steps n_members) merits.

    >>> rare = np.array([True, False, False])
    >>> scores = np.array([[2.0, 0.0], [1.0, 3.0], [0.0, 1.0]])
    >>> greedy_weights(scores, lambda s: s[rare].mean() - s[~rare].max(), n_begin=1)
    array([1., 0.])
    """
    n_members = scores.shape[1]
    own = np.array([merit(column) for column in scores.T])
    votes = np.zeros(n_members)
    votes[np.argsort(-own, kind="stable")[:n_begin]] = 1.0
    total = scores @ votes
    best, chosen = merit(total), votes.copy()
    for _ in range(n_steps):
        merits = [merit(total + column) for column in scores.T]
        winner = int(np.argmax(merits))
        votes[winner] += 1.0
        total = total + scores[:, winner]
        if merits[winner] > best + _LEAST_GAIN:
            best, chosen = merits[winner], votes.copy()
    return chosen / chosen.sum()
