"""A column that gives the label away by itself: most often it was not known at the time."""

import numpy as np

from rareclass.ensemble.training_views import TrainingViews
from rareclass.findings import Finding, warn
from rareclass.metrics import roc_auc

# AUC of one column from which on it is said.
GIVEAWAY_AUC = 0.999
_FEWEST_RARE = 5
_MOST_ROWS = 20_000


def warn_of_giveaways(views: TrainingViews) -> None:
    """Warn of each column of which one number or value ranks the rows almost without a fault."""
    if views.is_rare.sum() < _FEWEST_RARE:
        return
    X = views.encoded("trees")
    view = views.views["trees"]
    rows = _some_rows(views.is_rare)
    y = views.is_rare[rows]
    best: dict[int, float] = {}
    for feature, (source, second) in enumerate(
        zip(view.source_column_, view.second_column_, strict=True)
    ):
        if second >= 0:
            continue  # no column alone
        values = X[rows, feature]
        below = np.nextafter(np.nanmin(values, initial=np.finfo(np.float64).max), -np.inf)
        filled = np.where(np.isnan(values), below, values)
        auc = roc_auc(y, filled)
        best[source] = max(best.get(source, 0.0), auc, 1.0 - auc)
    for source, auc in best.items():
        if auc > GIVEAWAY_AUC:
            name = views.table.columns[source].name
            warn(
                f"column {name!r} alone ranks the rows with an AUC of {auc:.4f}: was it known "
                "before the label was? If not, leave it out.",
                finding=Finding("gives the label away", {"column": name, "roc_auc": auc}),
            )


def _some_rows(is_rare: np.ndarray) -> np.ndarray:
    rest = np.flatnonzero(~is_rare)
    step = max(1, len(rest) // _MOST_ROWS)
    return np.sort(np.concatenate([np.flatnonzero(is_rare), rest[::step]]))
