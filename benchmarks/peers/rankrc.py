"""RankRC: the parameters of the task over the defaults, ``n_jobs`` the threads of all methods.

`path` is the paper's 16 values of lam from 2^10 to 2^-20. Its scores are those of the lam given in
the task (2^-8 if none), so that they compare with one lam; nothing is chosen on held-out rows.
`matched` has the lam that weighs the norm as LIBSVM's default C = 1 does, 1 / (C rows); `least`
the least of the paper's 16, for tables where little noise asks for little smoothing.
`cross_validated` chooses lam in 3 folds and fits again. `on_a_part` chooses lam and width in 2
folds of 20,000 rows, all rare ones (up to half of that) among them, and fits on all.
`by_average_precision` does the same by average precision in place of AUC, and chooses between the
plain loss and a partial AUC as well.
"""

from typing import Any

import numpy as np

from benchmarks.peers import Fitted, Task
from rareclass import RankRC, RankRCCV, rankrc_path
from rareclass.ranking.fitting import PAPER_LAMS

DEFAULT_LAM = 2.0**-8
FOLDS = 3
SEARCH = {
    "lams": [2.0**-k for k in range(4, 21, 4)],
    "widths": [0.5, 0.7, 1.0, 1.4],
    "search_rows": 20_000,
    "cv": 2,
}

SEARCH_WIDE = {"widths": [0.35, 0.5, 0.7, 1.0, 1.4], "search_rows": 20_000, "cv": 10}

SEARCH_TOP = {
    **SEARCH,
    "widths": [0.5, 0.7, 1.0],
    "losses": ["smoothed_hinge", "pnorm_push"],
    "scoring": "average_precision",
}


def one_lam(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """`RankRC.fit`."""
    model = RankRC(**_parameters(task)).fit(X, y)
    return Fitted(model.score_samples, _details(model))


def matched(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """`RankRC.fit` with lam = 1 / rows."""
    return one_lam(X, y, Task(task.threads, {**task.options, "lam": 1.0 / len(X)}))


def least(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """`RankRC.fit` with the least lam of the paper."""
    return one_lam(X, y, Task(task.threads, {**task.options, "lam": min(PAPER_LAMS)}))


def path(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """`rankrc_path` over the paper's lams."""
    parameters = _parameters(task)
    lam = parameters.pop("lam", DEFAULT_LAM)
    models = rankrc_path(X, y, PAPER_LAMS, **parameters)
    found = [_details(model) for model in models]
    details = {
        "log2_lam": np.log2(PAPER_LAMS),
        "passes": sum(one["passes"] for one in found),
        "passes_for_each_lam": [one["passes"] for one in found],
        "optimality": max(one["optimality"] for one in found),
        "in_memory": found[-1]["in_memory"],
        "status": sorted({one["status"] for one in found}),
        "landmarks": found[0]["landmarks"],
    }
    chosen = min(models, key=lambda model: abs(np.log2(model.lam / lam)))
    return Fitted(chosen.score_samples, details)


def cross_validated(X: np.ndarray, y: np.ndarray, task: Task, **search: Any) -> Fitted:
    """`RankRCCV.fit`: folds x lams, and the fit on all rows."""
    parameters = _parameters(task)
    parameters.pop("lam", None)
    model = RankRCCV(**{"cv": FOLDS, **search, **parameters}).fit(X, y)
    details = _details(model.best_estimator_)
    details["log2_lam"] = float(np.log2(model.best_lam_))
    details["width"] = model.best_width_
    details["loss"] = model.best_loss_
    if "search_rows" not in search:
        of_folds = float(FOLDS * np.sum(model.cv_results_["mean_passes"]))
        details["passes"] = details["passes"] + of_folds
    return Fitted(model.score_samples, details)


def on_a_part(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """`RankRCCV.fit` with width and lam chosen on a part of the rows."""
    return cross_validated(X, y, task, **SEARCH)


def on_many_folds(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """`RankRCCV.fit` with five widths, the paper's 16 lams and ten folds of a part of the rows."""
    return cross_validated(X, y, task, **SEARCH_WIDE)


def by_average_precision(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """`RankRCCV.fit` with width, lam and loss chosen by average precision on a part of the rows."""
    return cross_validated(X, y, task, **SEARCH_TOP)


def _parameters(task: Task) -> dict[str, Any]:
    parameters = {"n_jobs": task.threads, "random_state": 0, "verbose": False, **task.options}
    if isinstance(parameters.get("landmarks"), list):  # JSON has no tuples
        parameters["landmarks"] = tuple(parameters["landmarks"])
    return parameters


def _details(model: RankRC) -> dict[str, Any]:
    return {
        "passes": model.history_[-1].passes if model.history_ else 1.0,
        "in_memory": model.history_[-1].in_memory if model.history_ else 1.0,
        "iterations": model.n_iter_,
        "objective": model.objective_,
        "optimality": model.optimality_,
        "status": str(model.status_),
        "landmarks": len(model.dual_coef_),
        "log2_lam": float(np.log2(model.lam)),
    }
