"""How much worse held-out rows are ranked when a column is shuffled among them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from rareclass.ensemble.false_positive_rate import FalsePositiveRate
from rareclass.ensemble.held_out import HeldOut
from rareclass.ensemble.race import Candidate
from rareclass.ensemble.training_views import TrainingViews
from rareclass.estimators.search import Scoring

_MOST_RARE, _MOST_ROWS = 500, 2000


def permutation_importances(
    views: TrainingViews,
    held_out: HeldOut,
    members: Sequence[tuple[Candidate, FalsePositiveRate, float]],
    objective: Scoring,
    seed: int,
    n_jobs: int,
    has_time: Callable[[], bool],
) -> np.ndarray:
    """Loss of the objective for each column of the table, NaN where time ran out: (n_columns,).

    Held-out rows, all of them or 500 rare and 1,500 others, are scored by the functions of the fold
    that held them out. `members` come with their scale and weight.

    Cost: a scoring of these rows a column.
    """
    rng = np.random.default_rng(seed)
    fold, tested = views.fold, held_out.tested
    rare = tested[views.is_rare[tested]]
    rest = tested[~views.is_rare[tested]]
    rare = rng.permutation(rare)[:_MOST_RARE]
    rows = np.sort(np.concatenate([rare, rng.permutation(rest)[: _MOST_ROWS - len(rare)]]))
    order = rng.permutation(len(rows))
    names = dict.fromkeys(candidate.member.view for candidate, _, _ in members)
    encoded = {name: views.encoded(name)[rows] for name in names}
    sources = {
        name: np.stack([views.views[name].source_column_, views.views[name].second_column_])
        for name in names
    }

    def merit_of(X: dict[str, Any]) -> float:
        total = np.zeros(len(rows))
        for candidate, scale, weight in members:
            total -= weight * scale(
                _held_out(candidate, X[candidate.member.view], fold[rows], n_jobs)
            )
        return held_out.measure(objective, total, rows)

    whole = merit_of(encoded)
    losses = np.full(len(views.table.columns), np.nan)
    for column in range(len(losses)):
        if not has_time():
            break
        shuffled = {
            name: _shuffled(X, (sources[name] == column).any(axis=0), order)
            for name, X in encoded.items()
        }
        losses[column] = whole - merit_of(shuffled)
    return losses


def _held_out(candidate: Candidate, X: Any, fold: np.ndarray, n_jobs: int) -> np.ndarray:
    scores = np.empty(len(fold))
    for number, function in enumerate(candidate.by_fold):
        chosen = np.flatnonzero(fold == number)
        if len(chosen):
            scores[chosen] = function.scores(X[chosen], n_jobs)
    return scores


def _shuffled(X: Any, features: np.ndarray, order: np.ndarray) -> Any:
    """X with some features taken from other rows."""
    if not features.any():
        return X
    if sparse.issparse(X):
        keep, move = (sparse.diags_array(mask.astype(np.float64)) for mask in (~features, features))
        return sparse.csr_array(X @ keep + X[order] @ move)
    shuffled = X.copy()
    shuffled[:, features] = X[np.ix_(order, features)]
    return shuffled
