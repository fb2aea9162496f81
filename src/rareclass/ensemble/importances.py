"""Leaderboard of members, importances of columns and warnings of columns, by held-out rows."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rareclass.ensemble.combination import Combination
from rareclass.ensemble.training_rows import HeldOutRows, TrainingViews
from rareclass.estimators.search import Scoring
from rareclass.findings import Finding, FindingKind, warn
from rareclass.later import sparse
from rareclass.metrics import average_precision_interval, roc_auc

# Held-out rows that importances are measured on.
_MOST_RARE, _MOST_ROWS = 500, 2000
# Numbers in the tables of shuffled columns that are scored at once.
_CELLS_AT_ONCE = 4_000_000
# AUC of one column from which on `fit` warns, and the rows that it is measured on.
GIVEAWAY_AUC = 0.999
_FEWEST_RARE, _MOST_MAJORITY = 5, 20_000


def leaderboard(
    combination: Combination, y: np.ndarray, weight: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Return a column a measure, an entry a member and setting, in order of the objective.

    `y` and `weight` are those of the held-out rows; measures are NaN where none of them is rare.
    """
    candidates, nan = combination.candidates, float("nan")
    aucs = [roc_auc(y, each.rarity, weight) if y.any() else nan for each in candidates]
    precisions = [
        average_precision_interval(y, each.rarity, weight) if y.any() else (nan, nan, nan)
        for each in candidates
    ]
    precision, low, high = np.array(precisions, dtype=np.float64).T
    return {
        "member": np.array([each.candidate.member.name for each in candidates]),
        "setting": np.array([each.candidate.setting for each in candidates]),
        "objective": np.array([each.objective for each in candidates]),
        "roc_auc": np.array(aucs),
        "average_precision": precision,
        "average_precision_low": low,
        "average_precision_high": high,
        "seconds": np.array([each.candidate.seconds for each in candidates]),
        "weight": np.array(combination.weights, dtype=np.float64),
    }


def permutation_importances(
    views: TrainingViews,
    held_out: HeldOutRows,
    combination: Combination,
    objective: Scoring,
    seed: int,
    n_jobs: int,
    has_time: Callable[[], bool],
) -> np.ndarray:
    """Return the loss of the objective as each column is shuffled among held-out rows.

    Held-out rows, all of them or 500 rare and 1,500 others, are scored by the functions of the fold
    that held them out. Shape (n_columns,), NaN where time ran out. Cost: a scoring of these rows a
    column.
    """
    rng = np.random.default_rng(seed)
    tested, is_rare = held_out.tested, held_out.is_rare[held_out.tested]
    rare = rng.permutation(tested[is_rare])[:_MOST_RARE]
    majority = rng.permutation(tested[~is_rare])[: _MOST_ROWS - len(rare)]
    rows = np.sort(np.concatenate([rare, majority]))
    order = rng.permutation(len(rows))
    fold = views.rows.fold[rows]
    members = combination.in_use()
    names = dict.fromkeys(each.candidate.member.view for each, _ in members)
    encoded = {name: views.encoded(name)[rows] for name in names}
    sources = {
        name: np.stack([views.views[name].source_column_, views.views[name].second_column_])
        for name in names
    }

    def merits_of(tables: Sequence[dict[str, Any]]) -> list[float]:
        """Return the objective of tables of the same rows, scored as if they were one."""
        total = np.zeros((len(tables), len(rows)))
        for number in np.unique(fold):
            chosen = np.flatnonzero(fold == number)
            X = {name: _stacked([table[name][chosen] for table in tables]) for name in names}
            for each, weight in members:
                scores = each.candidate.by_fold[number].scores(
                    X[each.candidate.member.view], n_jobs
                )
                total[:, chosen] -= weight * each.scale(scores).reshape(len(tables), -1)
        return [held_out.measure(objective, each, rows) for each in total]

    [whole] = merits_of([encoded])
    losses = np.full(len(views.rows.table.columns), np.nan)
    n_cells = len(rows) * sum(X.shape[1] for X in encoded.values())
    at_once = max(1, _CELLS_AT_ONCE // max(1, n_cells))
    for first in range(0, len(losses), at_once):
        if not has_time():
            break
        shuffled = [
            {
                name: shuffled_features(X, (sources[name] == column).any(axis=0), order)
                for name, X in encoded.items()
            }
            for column in range(first, min(first + at_once, len(losses)))
        ]
        losses[first : first + at_once] = whole - np.array(merits_of(shuffled))
    return losses


def _stacked(tables: Sequence[Any]) -> Any:
    """Return the rows of dense or sparse tables below each other."""
    if sparse.issparse(tables[0]):
        return sparse.vstack(tables, format="csr")
    return np.concatenate(tables)


def shuffled_features(X: Any, features: np.ndarray, order: np.ndarray) -> Any:
    """Return X with some features taken from other rows, in this order."""
    if not features.any():
        return X
    if sparse.issparse(X):
        keep, move = (sparse.diags_array(mask.astype(np.float64)) for mask in (~features, features))
        return sparse.csr_array(X @ keep + X[order] @ move)
    shuffled = X.copy()
    shuffled[:, features] = X[np.ix_(order, features)]
    return shuffled


def warn_of_columns(views: TrainingViews) -> None:
    """Warn of columns that give the label away, and of those that say little of rows far away.

    A column gives it away where one number or value of it ranks the rows almost without a fault:
    it was most often not known before the label was.
    """
    is_rare = views.rows.is_rare
    if is_rare.sum() >= _FEWEST_RARE:
        X, view = views.encoded("trees"), views.views["trees"]
        majority = np.flatnonzero(~is_rare)
        step = max(1, len(majority) // _MOST_MAJORITY)
        rows = np.sort(np.concatenate([np.flatnonzero(is_rare), majority[::step]]))
        best: dict[int, float] = {}
        sources = zip(view.source_column_, view.second_column_, strict=True)
        for feature, (source, second) in enumerate(sources):
            if second >= 0:
                continue  # no column alone
            values = X[rows, feature]
            below = np.nextafter(np.nanmin(values, initial=np.finfo(np.float64).max), -np.inf)
            auc = roc_auc(is_rare[rows], np.where(np.isnan(values), below, values))
            best[source] = max(best.get(source, 0.0), auc, 1.0 - auc)
        for source, auc in best.items():
            if auc > GIVEAWAY_AUC:
                name = views.rows.table.columns[source].name
                warn(
                    f"column {name!r} alone ranks the rows with an AUC of {auc:.4f}: was it known "
                    "before the label was? If not, leave it out.",
                    finding=Finding(FindingKind.LABEL_LEAK, {"column": name, "roc_auc": auc}),
                )
    columns = views.statistics.nearby_only_
    if columns:
        warn(
            f"rare rows of one {', '.join(columns)} stand close together in the table, so the "
            "column says much less of rows far away: the model allows for that. If the rows are "
            "in the order of time, pass time to fit, so that the estimate does, too.",
            finding=Finding(FindingKind.HOLDS_NEARBY, {"columns": columns}, {"time": "fit"}),
        )
