r"""SVM-Perf: the linear structural SVM of a multivariate measure (Joachims, ICML 2005).

.. math:: \min_{w, c} \; \tfrac12 \|w\|^2 + C \xi, \qquad
          \xi = \max_{\bar y} \; \Delta(\bar y) - (\text{margin of } y \text{ over } \bar y)

It is `RankRC` with the linear kernel and the unit vectors as landmarks, for which f(x) = w'x with
the penalty |w|^2; lam = 1 / C. The loss is in units of one (the program has percent, so that its C
is a hundredth of this one), and one row or pair costs nothing from a margin of 1 on.

- "f1": what the RACH paper has; c is a threshold that is learned and not regularised.
- "break_even", "precision_at_k": the same for the rows on top.
- "roc_area": one minus the AUC. Its labelling orders each pair of a rare and a majority row, and
  the worst of 2^(m+ m-) orders takes every pair on its own: the problem is the mean hinge of all
  pairs, the linear RankSVM. It is solved as such, with the hinge rounded off between margins of
  1 - 2 `ROUNDED` and 1. Table 4 measures the AUC, so its SVM-Perf has this loss.

The programs' own stopping rule is a gap of 1e-3 in xi, and so is the one here, relative to the
objective.
"""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.paper_tables.path import FittedPath, Params
from rareclass import RankRC, rankrc_path

# Half the width of the rounded part of the hinge of "roc_area".
ROUNDED = 0.05
GAP, MAX_ITER = 1e-3, 1000
LOSSES = ("f1", "roc_area", "break_even", "precision_at_k")

Scorer = Callable[[np.ndarray], np.ndarray]
"""Scores of the rows of a matrix; above 0 is rare."""


def _parameters(X: np.ndarray, loss: str, k: int | None) -> dict[str, object]:
    if loss not in LOSSES:
        raise ValueError(f"loss={loss!r} is not one of {LOSSES}")
    shared = {"kernel": "linear", "landmarks": np.eye(X.shape[1]), "pos_label": 1, "n_jobs": 1}
    shared |= {"verbose": False, "max_iter": MAX_ITER}
    if loss == "roc_area":
        return shared | {"loss": "smoothed_hinge", "eps": ROUNDED}
    params = {"k": k} if loss == "precision_at_k" else None
    return shared | {"loss": loss, "loss_params": params, "tol": GAP}


def fit(X: np.ndarray, y: np.ndarray, C: float, loss: str = "f1", k: int | None = None) -> Scorer:
    """Fit on rows X of shape (n, p), y of 1 (rare) and 0; return the scorer of other rows.

    `C` weighs the loss (in [0, 1]) against |w|^2 / 2: larger follows the labels more closely. `k`
    is that of "precision_at_k". With "f1" zero is the learned threshold; with "roc_area" that of
    the best balanced accuracy on the rows of X; with the others that of as many rows as are rare
    (or k).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # stops short, or learns nothing
        model = RankRC(lam=1.0 / C, **_parameters(X, loss, k)).fit(X, y)
    return model.decision_function


def fit_path(X: np.ndarray, y: np.ndarray, lams: Params, seed: int) -> FittedPath:
    """Models of the loss "roc_area" for `methods.METHODS`; sizes are numbers of features."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        models = rankrc_path(X, y, lams, **_parameters(X, "roc_area", None))

    def scores(rows: np.ndarray, indices: Sequence[int]) -> np.ndarray:
        return np.column_stack([models[index].score_samples(rows) for index in indices])

    return FittedPath(list(lams), scores, [X.shape[1]] * len(models), len(caught))
