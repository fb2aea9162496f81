"""The methods that are measured beside each other, one file for each library.

Fair settings, for all: the same standardised float32 rows, the same number of threads, the rare
class as class 1, fixed seeds. What a method could use and has no setting for (LIBSVM, LIBLINEAR and
SGD have one thread) is said in its file. A method is a function of (X, y, `Task`) that fits and
returns a `Fitted`; all of it is timed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

# RankRCCV with width and lam on 20,000 rows takes 7 to 21 s on the sets of this benchmark.
SEARCH_SECONDS = 30.0


@dataclass(frozen=True)
class Task:
    """What a method is told besides the rows.

    Parameters
    ----------
    threads : int
        Threads that it may use.
    options : mapping
        RankRC's parameters; the other methods have the settings of their file.
    search_seconds : float
        Time of a random search.
    """

    threads: int
    options: Mapping[str, Any] = field(default_factory=dict)
    search_seconds: float = SEARCH_SECONDS


class Fitted(NamedTuple):
    """A fitted method.

    Attributes
    ----------
    scores : callable
        Rows to one score each, higher is rarer.
    details : dict
        Counts that explain the time: trees, support vectors, passes.
    """

    scores: Callable[[np.ndarray], np.ndarray]
    details: dict[str, Any]


Method = Callable[[np.ndarray, np.ndarray, Task], Fitted]

TITLES = {
    "rankrc": "RankRC, one lam",
    "rankrc_matched": "RankRC, lam = 1 / rows",
    "rankrc_least": "RankRC, lam = 2^-20",
    "rankrc_path": "RankRC, 16 lams",
    "rankrc_cv": "RankRCCV, 16 lams, 3 folds",
    "rankrc_part": "RankRCCV, width and lam on 20,000 rows",
    "rankrc_wide": "RankRCCV, 5 widths, 16 lams and 10 folds on 20,000 rows",
    "rankrc_top": "RankRCCV, width, lam and loss on 20,000 rows by average precision",
    "rare_classifier": "RareClassifier",
    "rare_classifier_20": "RareClassifier, 20 s",
    "libsvm": "LIBSVM (SVC, balanced)",
    "linear_svc": "LinearSVC, balanced",
    "lightgbm": "LightGBM",
    "lightgbm_weighted": "LightGBM, is_unbalance",
    "lightgbm_child_weight": "LightGBM, min_child_weight=5",
    "lightgbm_slow": "LightGBM, 300 slow trees",
    "lightgbm_tuned": "LightGBM, random search of 30 s",
    "xgboost": "XGBoost, hist",
    "xgboost_weighted": "XGBoost, hist, scale_pos_weight",
    "xgboost_child_weight": "XGBoost, hist, min_child_weight=5",
    "xgboost_tuned": "XGBoost, hist, random search of 30 s",
    "nystroem_sgd": "Nystroem + SGD, balanced",
    "balanced_forest": "balanced random forest",
}
_FUNCTIONS = {
    "rankrc": "rankrc:one_lam",
    "rankrc_matched": "rankrc:matched",
    "rankrc_least": "rankrc:least",
    "rankrc_path": "rankrc:path",
    "rankrc_cv": "rankrc:cross_validated",
    "rankrc_part": "rankrc:on_a_part",
    "rankrc_wide": "rankrc:on_many_folds",
    "rankrc_top": "rankrc:by_average_precision",
    "rare_classifier": "rare_classifier:default",
    "rare_classifier_20": "rare_classifier:in_20_seconds",
    "libsvm": "libsvm:balanced",
    "linear_svc": "linear_svc:balanced",
    "lightgbm": "lightgbm:default",
    "lightgbm_weighted": "lightgbm:weighted",
    "lightgbm_child_weight": "lightgbm:child_weight",
    "lightgbm_slow": "lightgbm:slow",
    "lightgbm_tuned": "lightgbm:tuned",
    "xgboost": "xgboost:default",
    "xgboost_weighted": "xgboost:weighted",
    "xgboost_child_weight": "xgboost:child_weight",
    "xgboost_tuned": "xgboost:tuned",
    "nystroem_sgd": "nystroem_sgd:balanced",
    "balanced_forest": "balanced_forest:default",
}


def method(name: str) -> Method:
    """The method of that name; only its own library is imported.

    Raises
    ------
    ValueError
        When there is no such method.
    """
    if name not in _FUNCTIONS:
        raise ValueError(f"no method {name!r}; there are {', '.join(_FUNCTIONS)}")
    module, function = _FUNCTIONS[name].split(":")
    return getattr(import_module(f"benchmarks.peers.{module}"), function)


def kernel_gamma(X: np.ndarray) -> float:
    """1 / width**2 of RankRC's default width, so that kernel methods have the same kernel."""
    return 1.0 / (2.0 * float(X.var(axis=0, dtype=np.float64).sum()))
