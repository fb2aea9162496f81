"""Random search within a time: the peers' tuning.

Candidates are judged by average precision over stratified folds, the defaults first. What is not
judged on every fold when the time is over does not count, so that a method too slow for a single
candidate keeps its defaults; what is behind the best so far on each of its first two folds is not
tried on the others, which leaves time for up to twice as many. Beyond so many rows settings are
tried on a stratified part of them; the chosen ones then learn from all. Folds are prepared once,
each from its own training rows.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.metrics import average_precision_score
from sklearn.model_selection import ParameterSampler, StratifiedKFold, train_test_split

from benchmarks.tabular.learners import Learner

FOLDS = 5
FOLDS_BEHIND = 2
CANDIDATES = 200  # at most


class Fold(NamedTuple):
    """Prepared rows to learn from and to judge on."""

    X: Any
    y: np.ndarray
    X_held: Any
    y_held: np.ndarray


class Choice(NamedTuple):
    """What was found.

    Attributes
    ----------
    settings : dict
        Empty for the defaults.
    score : float or None
        Mean average precision over the folds; None when not even the defaults were judged.
    candidates : int
        Judged in time, those that were given up early among them.
    """

    settings: dict[str, Any]
    score: float | None
    candidates: int


def search(
    learner: Learner,
    space: Mapping[str, Any],
    frame: pl.DataFrame,
    y: np.ndarray,
    seed: int,
    budget: float,
) -> Choice:
    """The best of as many candidates as `budget` seconds allow."""
    deadline = time.perf_counter() + budget
    folds = prepared(learner, *at_most(frame, y, learner.search_rows, seed), seed)
    best: list[float] = []
    choice = Choice({}, None, 0)
    for settings in candidates(space, seed):
        scores = judged(learner, settings, folds, seed, best)
        found = list(takewhile(lambda _: time.perf_counter() <= deadline, scores))
        if time.perf_counter() > deadline:
            break
        if len(found) == len(folds) and (not best or np.mean(found) > np.mean(best)):
            best, choice = found, Choice(settings, float(np.mean(found)), choice.candidates)
        choice = choice._replace(candidates=choice.candidates + 1)
    return choice


def candidates(space: Mapping[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    """The defaults, then random settings."""
    yield {}
    yield from ParameterSampler(space, CANDIDATES - 1, random_state=seed)


def at_most(frame: Any, y: np.ndarray, most: int, seed: int) -> tuple[Any, np.ndarray]:
    """A stratified part of so many rows, or all."""
    if len(y) <= most:
        return frame, y
    kept, _ = train_test_split(np.arange(len(y)), train_size=most, stratify=y, random_state=seed)
    return frame[kept], y[kept]


def prepared(learner: Learner, frame: pl.DataFrame, y: np.ndarray, seed: int) -> list[Fold]:
    """The folds as the method gets them."""
    folds = []
    shuffle = StratifiedKFold(min(FOLDS, int(y.sum())), shuffle=True, random_state=seed)
    for fit, held in shuffle.split(y, y):
        preparation = learner.prepare()
        X = preparation.fit_transform(frame[fit])
        folds.append(Fold(X, y[fit], preparation.transform(frame[held]), y[held]))
    return folds


def judged(
    learner: Learner, settings: dict[str, Any], folds: list[Fold], seed: int, best: Sequence[float]
) -> Iterator[float]:
    """Average precision fold by fold; it ends early when the first two are behind the best's."""
    behind = 0
    for number, fold in enumerate(folds):
        model = learner.build(settings, fold.X, fold.y, seed).fit(fold.X, fold.y)
        score = average_precision_score(fold.y_held, learner.scores(model, fold.X_held))
        yield float(score)
        behind += bool(best) and score < best[number]
        if number + 1 == behind == FOLDS_BEHIND:
            return
