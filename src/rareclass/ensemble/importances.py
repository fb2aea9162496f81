"""Leaderboard of members, importances of columns and warnings of columns, by held-out rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.ensemble.combination import Combination
from rareclass.ensemble.score_functions import scores_of
from rareclass.ensemble.training_rows import HeldOutRows, TrainingViews
from rareclass.findings import Finding, FindingKind, warn
from rareclass.metrics import interval, roc_auc
from rareclass.rows.source import stacked

# Held-out rows that importances are measured on, fewer of wide tables and a quarter of them rare;
# and columns at most.
_LEAST_ROWS, _MOST_ROWS, _MOST_CELLS, _MOST_COLUMNS = 500, 2_000, 500_000, 100
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
        interval("average_precision", y, each.rarity, weight) if y.any() else (nan, nan, nan)
        for each in candidates
    ]
    precision, low, high = np.array(precisions, dtype=np.float64).T
    return {
        "member": np.array([each.member.name for each in candidates]),
        "setting": np.array([each.setting for each in candidates]),
        "objective": np.array([each.objective for each in candidates]),
        "roc_auc": np.array(aucs),
        "average_precision": precision,
        "average_precision_low": low,
        "average_precision_high": high,
        "seconds": np.array([each.seconds for each in candidates]),
        "weight": np.array(combination.weights, dtype=np.float64),
    }


def permutation_importances(
    views: TrainingViews, held_out: HeldOutRows, combination: Combination, n_jobs: int
) -> np.ndarray:
    """Return the loss of the objective as each column is shuffled among held-out rows.

    Held-out rows, all of them or 500 rare and 1,500 others (fewer of wide tables), are scored by
    the functions of the fold that held them out. Shape (n_columns,); of more than 100 columns those
    that alone tell most are shuffled, and the others are NaN. Cost: a scoring of these rows a
    column.
    """
    rng = np.random.default_rng(held_out.seed)
    tested, is_rare = held_out.tested, held_out.is_rare[held_out.tested]
    most = min(_MOST_ROWS, max(_LEAST_ROWS, _MOST_CELLS // len(views.rows.table.columns)))
    rare = rng.permutation(tested[is_rare])[: most // 4]
    majority = rng.permutation(tested[~is_rare])[: most - len(rare)]
    rows = np.sort(np.concatenate([rare, majority]))
    order = rng.permutation(len(rows))
    fold = views.rows.fold[rows]
    members = combination.in_use()
    names = list(dict.fromkeys(each.member.view for each, _ in members))
    tables = {
        (name, number): _FoldTable.of(views, name, int(number), rows)
        for name in names
        for number in np.unique(fold)
    }

    def merits_of(columns: Sequence[int | None]) -> list[float]:
        """Return the objective with each of some columns shuffled, scored as if it were one."""
        total = np.zeros((len(columns), len(rows)))
        for number in np.unique(fold):
            chosen = np.flatnonzero(fold == number)
            X = {
                name: stacked([tables[name, number].shuffled(chosen, order, c) for c in columns])
                for name in names
            }
            for name in names:
                own = [pair for pair in members if pair[0].member.view == name]
                functions = [each.by_fold[number] for each, _ in own]
                scores = scores_of(functions, X[name], n_jobs)
                for (each, weight), column in zip(own, scores, strict=True):
                    total[:, chosen] -= weight * each.scale(column).reshape(len(columns), -1)
        return [held_out.measure(each, rows) for each in total]

    [whole] = merits_of([None])
    losses = np.full(len(views.rows.table.columns), np.nan)
    n_cells = sum(table.X.shape[0] * table.X.shape[1] for table in tables.values())
    at_once = max(1, _CELLS_AT_ONCE // max(1, n_cells))
    tested_columns = _columns_that_tell(views)
    for first in range(0, len(tested_columns), at_once):
        columns = tested_columns[first : first + at_once]
        losses[columns] = whole - np.array(merits_of(columns))
    return losses


def _columns_that_tell(views: TrainingViews) -> list[int]:
    """Return all columns, or of many the 100 that alone rank the rows best."""
    n_columns = len(views.rows.table.columns)
    if n_columns <= _MOST_COLUMNS:
        return list(range(n_columns))
    auc = column_aucs(views)
    return sorted(auc, key=lambda column: -auc[column])[:_MOST_COLUMNS]


class _FoldTable(NamedTuple):
    """Rows as the functions of a fold see them, and the two columns that each feature is of."""

    X: Any
    sources: np.ndarray  # (2, n_features)

    @classmethod
    def of(cls, views: TrainingViews, name: str, number: int, rows: np.ndarray) -> "_FoldTable":
        folds, view = views.folds(name, 0, 1), views.views[name]
        sources = np.stack([view.source_column_, view.second_column_])
        return cls(folds.part(number, rows), sources[:, folds.features_of(number)])

    def shuffled(self, chosen: np.ndarray, order: np.ndarray, column: int | None) -> Any:
        """Return some rows with a column taken from the row that `order` has in their place."""
        features = (self.sources == (-2 if column is None else column)).any(axis=0)
        return with_features_of(self.X[chosen], features, self.X, order[chosen])


def with_features_of(X: Any, features: np.ndarray, others: Any, order: np.ndarray) -> Any:
    """Return X with some features taken from other rows, in this order."""
    if not features.any():
        return X
    if sparse.issparse(X):
        keep, move = (sparse.diags_array(mask.astype(np.float64)) for mask in (~features, features))
        return sparse.csr_array(X @ keep + others[order] @ move)
    shuffled = X.copy()
    shuffled[:, features] = others[np.ix_(order, features)]
    return shuffled


def column_aucs(views: TrainingViews) -> dict[int, float]:
    """Return the AUC of each column alone, by its best number or value, at least .5."""
    is_rare = views.rows.is_rare
    X, sources = views.held_out_features("trees")
    majority = np.flatnonzero(~is_rare)
    step = max(1, len(majority) // _MOST_MAJORITY)
    rows = np.sort(np.concatenate([np.flatnonzero(is_rare), majority[::step]]))
    best: dict[int, float] = {}
    for feature, source in enumerate(sources.tolist()):
        values = X[rows, feature]
        below = np.nextafter(np.nanmin(values, initial=np.finfo(np.float64).max), -np.inf)
        auc = roc_auc(is_rare[rows], np.where(np.isnan(values), below, values))
        best[source] = max(best.get(source, 0.0), auc, 1.0 - auc)
    return best


def warn_of_columns(views: TrainingViews) -> None:
    """Warn of columns that give the label away, and of those that say little of rows far away.

    A column gives it away where one number or value of it ranks the rows almost without a fault:
    it was most often not known before the label was.
    """
    if views.rows.is_rare.sum() >= _FEWEST_RARE:
        for source, auc in column_aucs(views).items():
            if auc > GIVEAWAY_AUC:
                name = views.rows.table.columns[source].name
                warn(
                    f"column {name!r} alone ranks the rows with an AUC of {auc:.4f}: was it known "
                    "before the label was? If not, leave it out.",
                    finding=Finding(FindingKind.LABEL_LEAK, {"column": name, "roc_auc": auc}),
                )
    columns = views.statistics.nearby_only_
    if columns and views.rows.is_drawn:
        warn(
            f"rare rows with one value of {', '.join(columns)} stand close together in the table, "
            "so the column says much less of rows far away. If the rows are in the order of time, "
            "pass time to fit, so that model and estimate allow for it.",
            finding=Finding(FindingKind.HOLDS_NEARBY, {"columns": columns}, {"time": "fit"}),
        )
