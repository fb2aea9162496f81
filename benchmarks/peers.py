"""The methods that `peers`, `scale` and `fitting` measure beside each other.

Fair settings, for all: the same standardised float32 rows, the same number of threads, the rare
class as class 1, fixed seeds; LIBSVM, LIBLINEAR and SGD have one thread. A method is a function of
(X, y, `Task`) that fits and returns a `Fitted`; all of it is timed. A library is imported when one
of its methods is.

- RankRC: the parameters of the task over the defaults. "16 lams" is the paper's path; its scores
  are those of the lam given in the task (2^-8 if none), so that they compare with one lam. "lam = 1
  / rows" weighs the norm as LIBSVM's default C = 1 does.
- LIBSVM: C = 1, balanced weights, RankRC's kernel; its cache gets 2 GB, as much as RankRC's own
  default. LIBLINEAR: C = 1, ``dual=False``, balanced weights: the floor that a kernel has to beat.
- Nystroem: as many components as RankRC has landmarks, drawn from all rows, made in pieces into one
  float32 array; then SGD with its defaults (hinge, alpha 1e-4) and balanced weights.
- LightGBM and XGBoost: defaults; balanced weights; ``min_child_weight=5``, as a leaf may hold a
  single rare row where rare rows are few among very many; slow trees; and a random search by
  average precision in no less time than RankRCCV takes to choose its own settings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

# RankRCCV with width and lam on 20,000 rows takes 7 to 21 s on the sets of this benchmark.
SEARCH_SECONDS = 30.0
DEFAULT_LAM = 2.0**-8
FOLDS = 3
CACHE_MB = 2000
PIECE_ROWS = 20_000
CHILD_WEIGHT = {"min_child_weight": 5.0}
SLOW = {"n_estimators": 300, "learning_rate": 0.03, "num_leaves": 15, "colsample_bytree": 0.7}
SEARCH = {
    "lams": [2.0**-k for k in range(4, 21, 4)],
    "widths": [0.5, 0.7, 1.0, 1.4],
    "search_rows": 20_000,
    "cv": 2,
}
SEARCH_WIDE = {"widths": [0.35, 0.5, 0.7, 1.0, 1.4], "search_rows": 20_000, "cv": 10}


@dataclass(frozen=True)
class Task:
    """What a method is told besides the rows.

    Parameters
    ----------
    threads : int
        Threads that it may use.
    options : mapping
        RankRC's parameters.
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


def rankrc(
    X: np.ndarray, y: np.ndarray, task: Task, lam: Callable[[int], float] | None = None
) -> Fitted:
    """`RankRC.fit`, at the lam of the task or at that for so many rows."""
    from rareclass import RankRC

    own = {} if lam is None else {"lam": lam(len(X))}
    model = RankRC(**{**_parameters(task), **own}).fit(X, y)
    return Fitted(model.score_samples, _details(model))


def path(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """`rankrc_path` over the paper's lams."""
    from rareclass import rankrc_path
    from rareclass.ranking.solve import PAPER_LAMS

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
    from rareclass import RankRCCV

    parameters = _parameters(task)
    parameters.pop("lam", None)
    model = RankRCCV(**{"cv": FOLDS, **search, **parameters}).fit(X, y)
    details = _details(model.best_estimator_)
    details["log2_lam"] = float(np.log2(model.best_lam_))
    details["width"] = model.best_width_
    if "search_rows" not in search:
        of_folds = float(FOLDS * np.sum(model.cv_results_["mean_passes"]))
        details["passes"] = details["passes"] + of_folds
    return Fitted(model.score_samples, details)


def _parameters(task: Task) -> dict[str, Any]:
    parameters = {"n_jobs": task.threads, "random_state": 0, "verbose": False, **task.options}
    if isinstance(parameters.get("landmarks"), list):  # JSON has no tuples
        parameters["landmarks"] = tuple(parameters["landmarks"])
    return parameters


def _details(model: Any) -> dict[str, Any]:
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


def rare_classifier(X: np.ndarray, y: np.ndarray, task: Task, **settings: Any) -> Fitted:
    """RareClassifier: nothing set but the threads, and a time."""
    from rareclass import RareClassifier

    model = RareClassifier(n_jobs=task.threads, random_state=0, verbose=False, **settings)
    model.fit(X, y)
    members = [f"{member.name} {member.weight:.2f}" for member in model.members_]
    return Fitted(model.score_samples, {"members": members})


def libsvm(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``SVC(class_weight="balanced")``."""
    from sklearn.svm import SVC

    model = SVC(gamma=_gamma(X), class_weight="balanced", cache_size=CACHE_MB).fit(X, y)
    details = {"support_vectors": int(model.n_support_.sum()), "steps": int(model.n_iter_.max())}
    return Fitted(model.decision_function, details)


def linear_svc(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``LinearSVC(class_weight="balanced", dual=False)``."""
    from sklearn.svm import LinearSVC

    model = LinearSVC(class_weight="balanced", dual=False, random_state=0).fit(X, y)
    return Fitted(model.decision_function, {"iterations": int(model.n_iter_)})


def nystroem_sgd(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``Nystroem(n_components)`` then ``SGDClassifier(class_weight="balanced")``."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier

    landmarks = task.options.get("landmarks")
    wanted = landmarks[1] if isinstance(landmarks, (list, tuple)) else len(y)
    n_components = min(int(y.sum()), wanted, len(X))
    features = Nystroem(gamma=_gamma(X), n_components=n_components, random_state=0).fit(X)
    Z = np.empty((len(X), n_components), dtype=X.dtype)
    for start in range(0, len(X), PIECE_ROWS):
        piece = slice(start, start + PIECE_ROWS)
        Z[piece] = features.transform(X[piece])
    model = SGDClassifier(loss="hinge", class_weight="balanced", random_state=0).fit(Z, y)

    def scores(rows: np.ndarray) -> np.ndarray:
        pieces = [rows[start : start + PIECE_ROWS] for start in range(0, len(rows), PIECE_ROWS)]
        return np.concatenate([model.decision_function(features.transform(p)) for p in pieces])

    return Fitted(scores, {"components": n_components, "epochs": int(model.n_iter_)})


def balanced_forest(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``BalancedRandomForestClassifier()`` with all defaults."""
    from imblearn.ensemble import BalancedRandomForestClassifier

    model = BalancedRandomForestClassifier(n_jobs=task.threads, random_state=0).fit(X, y)
    return Fitted(lambda rows: model.predict_proba(rows)[:, 1], {"trees": len(model.estimators_)})


def lightgbm(X: np.ndarray, y: np.ndarray, task: Task, **settings: Any) -> Fitted:
    """``LGBMClassifier()``: 100 trees of 31 leaves, learning rate 0.1, or other settings."""
    model = _lightgbm(y, task, **settings).fit(X, y)

    def scores(rows: np.ndarray) -> np.ndarray:
        return model.booster_.predict(rows, raw_score=True, num_threads=task.threads)

    return Fitted(scores, {"trees": model.booster_.num_trees(), "settings": settings})


def _lightgbm(y: np.ndarray, task: Task, **settings: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=task.threads, random_state=0, verbose=-1, **settings)


def xgboost(X: np.ndarray, y: np.ndarray, task: Task, **settings: Any) -> Fitted:
    """``XGBClassifier(tree_method="hist")``: 100 trees of depth 6, or other settings."""
    model = _xgboost(y, task, **settings).fit(X, y)

    def scores(rows: np.ndarray) -> np.ndarray:
        return model.predict(rows, output_margin=True)

    return Fitted(scores, {"trees": model.get_booster().num_boosted_rounds(), "settings": settings})


def _xgboost(y: np.ndarray, task: Task, **settings: Any) -> Any:
    from xgboost import XGBClassifier

    if settings.pop("class_weight", None) == "balanced":  # it has the ratio only
        n_rare = int(y.sum())
        settings["scale_pos_weight"] = (len(y) - n_rare) / n_rare
    return XGBClassifier(tree_method="hist", n_jobs=task.threads, random_state=0, **settings)


class Arrays:
    """The preparation of rows that are numbers already."""

    def fit_transform(self, frame: pl.DataFrame) -> np.ndarray:
        """The same rows as an array."""
        return frame.to_numpy()

    transform = fit_transform


def tuned(library: str, X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """Random search of the tabular benchmark, the defaults first, then a fit on all rows."""
    from scipy.stats import loguniform

    from benchmarks.tabular.learners import Learner, probability
    from benchmarks.tabular.search import search
    from benchmarks.tabular.spaces import SPACES

    fit, build = {"lightgbm": (lightgbm, _lightgbm), "xgboost": (xgboost, _xgboost)}[library]
    space = dict(SPACES[library])
    if library == "lightgbm":
        space["min_child_weight"] = loguniform(1e-3, 100.0)
    learner = Learner("", lambda own, X, y, seed: build(y, task, **own), Arrays, probability)
    found = search(learner, space, pl.DataFrame(X), y, seed=0, budget=task.search_seconds)
    return fit(X, y, task, **found.settings)


def _gamma(X: np.ndarray) -> float:
    """1 / width**2 of RankRC's default width, so that kernel methods have the same kernel."""
    return 1.0 / (2.0 * float(X.var(axis=0, dtype=np.float64).sum()))


METHODS: dict[str, tuple[str, Method]] = {
    "rankrc": ("RankRC, one lam", rankrc),
    "rankrc_matched": ("RankRC, lam = 1 / rows", partial(rankrc, lam=lambda rows: 1.0 / rows)),
    "rankrc_least": ("RankRC, lam = 2^-20", partial(rankrc, lam=lambda rows: 2.0**-20)),
    "rankrc_path": ("RankRC, 16 lams", path),
    "rankrc_cv": ("RankRCCV, 16 lams, 3 folds", cross_validated),
    "rankrc_part": ("RankRCCV, width and lam on 20,000 rows", partial(cross_validated, **SEARCH)),
    "rankrc_wide": (
        "RankRCCV, 5 widths, 16 lams and 10 folds on 20,000 rows",
        partial(cross_validated, **SEARCH_WIDE),
    ),
    "rare_classifier": ("RareClassifier", rare_classifier),
    "rare_classifier_20": ("RareClassifier, 20 s", partial(rare_classifier, time_budget=20.0)),
    "libsvm": ("LIBSVM (SVC, balanced)", libsvm),
    "linear_svc": ("LinearSVC, balanced", linear_svc),
    "lightgbm": ("LightGBM", lightgbm),
    "lightgbm_weighted": ("LightGBM, is_unbalance", partial(lightgbm, is_unbalance=True)),
    "lightgbm_child_weight": ("LightGBM, min_child_weight=5", partial(lightgbm, **CHILD_WEIGHT)),
    "lightgbm_slow": ("LightGBM, 300 slow trees", partial(lightgbm, **SLOW, **CHILD_WEIGHT)),
    "lightgbm_tuned": ("LightGBM, random search of 30 s", partial(tuned, "lightgbm")),
    "xgboost": ("XGBoost, hist", xgboost),
    "xgboost_weighted": (
        "XGBoost, hist, scale_pos_weight",
        partial(xgboost, class_weight="balanced"),
    ),
    "xgboost_child_weight": ("XGBoost, hist, min_child_weight=5", partial(xgboost, **CHILD_WEIGHT)),
    "xgboost_tuned": ("XGBoost, hist, random search of 30 s", partial(tuned, "xgboost")),
    "nystroem_sgd": ("Nystroem + SGD, balanced", nystroem_sgd),
    "balanced_forest": ("balanced random forest", balanced_forest),
}
TITLES = {name: title for name, (title, _) in METHODS.items()}
