"""Choice of parameters for the RACH table: cross-validated F1 of the rare class, labels alone.

As many stratified folds as there are labelled rows of the scarcer class, at most five, so that with
few of them each is left out once. The F1 is that of all left-out rows together: a fold with one
rare row has no F1 worth averaging. With one rare label nothing can be left out, and the first
candidate is used; every grid begins with the most ordinary one. Of equals the first is taken, too.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

MOST_FOLDS = 5
RARE, MAJORITY, UNLABELLED = 1, 0, -1


class Task(NamedTuple):
    """What a method is given: all rows and the labels that are known.

    Attributes
    ----------
    X : ndarray of shape (n, p)
    y : ndarray of shape (n,)
        1 rare, 0 majority, -1 unlabelled.
    """

    X: np.ndarray
    y: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Numbers of the labelled rows."""
        return np.flatnonzero(self.y != UNLABELLED)

    @property
    def unknown(self) -> np.ndarray:
        """Numbers of the others."""
        return np.flatnonzero(self.y == UNLABELLED)

    def labels_of(self, rows: np.ndarray) -> np.ndarray:
        """Labels as if only these rows had one, for methods that look at unlabelled rows."""
        labels = np.full(len(self.y), UNLABELLED)
        labels[rows] = self.y[rows]
        return labels


# (candidate, rows to learn from, rows to score) to one score a row; above 0 is rare.
Scores = Callable[[Any, np.ndarray, np.ndarray], np.ndarray]


def folds(task: Task, seed: int, most: int = MOST_FOLDS) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows that are learned from and rows that are left out; empty with one rare label."""
    known = task.known
    y = task.y[known]
    count = min(most, int((y == RARE).sum()), int((y == MAJORITY).sum()))
    if count < 2:
        return []
    parts = StratifiedKFold(count, shuffle=True, random_state=seed).split(known, y)
    return [(known[train], known[left_out]) for train, left_out in parts]


def left_out_scores(
    task: Task, seed: int, candidates: Sequence[Any], scores: Scores
) -> tuple[np.ndarray, np.ndarray]:
    """Labels of all left-out rows, and their scores by each candidate (one row a candidate)."""
    parts = folds(task, seed)
    truth = np.concatenate([task.y[left_out] for _, left_out in parts] or [np.zeros(0, int)])
    found = [
        np.concatenate([scores(one, train, left_out) for train, left_out in parts])
        for one in (candidates if parts else ())
    ]
    return truth, np.array(found)


def choose(task: Task, seed: int, candidates: Sequence[Any], scores: Scores) -> Any:
    """The candidate with the best F1 on left-out rows."""
    truth, found = left_out_scores(task, seed, candidates, scores)
    if not len(truth):
        return candidates[0]
    return candidates[int(np.argmax([f1(truth, one > 0.0) for one in found]))]


def f1(truth: np.ndarray, guess: np.ndarray) -> float:
    """F1 of the rare class; 0 where nothing rare is found."""
    return float(f1_score(truth == RARE, np.asarray(guess) > 0, zero_division=0.0))


def best_threshold(truth: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """The F1 of the best threshold, and that threshold, midway between two scores."""
    order = np.argsort(-scores, kind="stable")
    ranked, rare = scores[order], truth[order] == RARE
    hits = np.cumsum(rare)
    value = 2.0 * hits / (np.arange(1, len(rare) + 1) + rare.sum())
    value[:-1][ranked[:-1] == ranked[1:]] = -1.0  # equal scores are on one side
    last = int(np.argmax(value))
    below = ranked[last + 1] if last + 1 < len(ranked) else ranked[last] - 1.0
    return float(value[last]), float((ranked[last] + below) / 2.0)
