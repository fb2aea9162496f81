"""Which of the candidates that RACHCV tried is kept."""

from collections.abc import Sequence

import numpy as np

from rareclass.hyperball.radius_choice import RadiusChoice

# Of the held-out rare rows: a difference of so much is none.
_HALF_A_ROW = 0.5


def first_of_equals(choices: Sequence[Sequence[RadiusChoice]]) -> int:
    """The first candidate whose F1 is within half a rare row of the best one's.

    `choices` has a row for each category. It is for balls that all hold the same share of the
    unlabelled rows: which of them holds half a held-out row more is chance, and the order of the
    candidates says which is the safer.
    """
    mean = mean_f1(choices)
    a_row = np.mean([1.0 / max(row[0].n_rare, 1.0) for row in choices])
    return int(np.argmax(mean >= mean.max() - _HALF_A_ROW * a_row - 1e-12))


def mean_f1(choices: Sequence[Sequence[RadiusChoice]]) -> np.ndarray:
    """F1 of every candidate, the mean over the categories."""
    return np.mean([[one.f1 for one in row] for row in choices], axis=0)


def pu_scores(choices: Sequence[Sequence[RadiusChoice]], called: np.ndarray) -> np.ndarray:
    r"""Precision times recall of every candidate among the unlabelled rows, up to a factor.

    With r the recall, estimated by (hits + 1/2) / (rare rows + 1) of the held-out ones, and c the
    weight of the unlabelled rows inside (`called`, of shape (categories, candidates)),

    .. math:: \frac{r^2}{c + 1} \propto \frac{r^2}{P(inside)}
        = \frac{P(inside | rare)\, P(rare | inside)}{P(rare)}

    needs no share of rare rows, and sees impurity that a few cleared rows cannot: they do not tell
    a ball with fifty unlabelled rows from one with five hundred. The geometric mean over the
    categories; 0 where nothing rare was found. Lee and Liu, "Learning with positive and unlabeled
    examples using weighted logistic regression", ICML 2003.
    """
    n_rare = np.array([[one.n_rare for one in row] for row in choices])
    hits = np.array([[one.recall for one in row] for row in choices]) * n_rare
    recall = np.where(hits > 0.0, (hits + 0.5) / (n_rare + 1.0), 0.0)
    with np.errstate(divide="ignore"):
        return np.exp(np.mean(2.0 * np.log(recall) - np.log(called + 1.0), axis=0))


def fewest_balls(
    scores: np.ndarray, numbers: Sequence[int | str], choices: Sequence[Sequence[RadiusChoice]]
) -> int:
    """The best candidate of the first number of balls that is as good as any.

    A number is as good where its best score is within what half a rare row more found would make of
    it. `numbers` has an entry for each candidate, the simplest first.
    """
    enough = as_good_from(scores.max(), [row[0].n_rare for row in choices])
    for number in dict.fromkeys(numbers):
        own = np.flatnonzero([other == number for other in numbers])
        if scores[own].max() >= enough:
            break
    return int(own[np.argmax(scores[own])])


def as_good_from(best: float, n_rare: Sequence[float]) -> float:
    """The score of `pu_scores` from which a candidate is as good as the best one.

    It is what the best would have with half a rare row less found, of `n_rare` in each category.

    >>> round(as_good_from(1.0, [2.0]), 4)
    0.5625
    """
    left = [1.0 - _HALF_A_ROW / max(n, 1.0) for n in n_rare]
    return float(best * np.exp(2.0 * np.mean(np.log(left))) * (1.0 - 1e-12))
