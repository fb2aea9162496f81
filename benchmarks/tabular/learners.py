"""The methods before any tuning: which class, which preparation, which score.

All have one thread, the seed of the split and, besides what `spaces` tries, the defaults of their
library. Scores are raw margins where there are any: probabilities near 0 or 1 tie in float32. Two
have limits of size, which the results page says: the SVM learns from at most `SVM_ROWS` rows, all
rare ones (up to half of that) and some of the others; RankRC has at most `LANDMARKS` landmarks, and
3 folds in place of 10 beyond `FEW_FOLDS_ROWS` rows. AutoGluon, FLAML and RealMLP get the table
itself, and give probabilities alone (`automl`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.tabular import automl, estimates
from benchmarks.tabular.preparation import (
    Filled,
    NativeCategories,
    Preparation,
    TextCategories,
    Unchanged,
    codes,
    filled_codes,
    standardised,
)

Settings = Mapping[str, Any]
SVM_ROWS = 20_000
SVM_SEARCH_ROWS = 5_000
SEARCH_ROWS = 50_000
LANDMARKS = 1000
FEW_FOLDS_ROWS = 12_000


@dataclass(frozen=True)
class Learner:
    """A method.

    Parameters
    ----------
    title : str
    build : callable
        ``build(settings, X, y, seed)`` gives the unfitted estimator; X is prepared.
    prepare : callable
        Gives a fresh preparation.
    scores : callable
        ``scores(model, X)``: higher is rarer.
    most_rows, search_rows : int or None
        Rows that it learns from, and that its settings are tried on, at most.
    has_budget : bool
        The estimator chooses for itself within a time, which is its setting ``time_budget``.
    details : callable
        ``details(model, y)``: what else a run keeps of the estimator, fitted on labels y.
    is_apart : bool
        It is learned by an interpreter of its own (`automl`).
    """

    title: str
    build: Callable[[Settings, Any, np.ndarray, int], Any]
    prepare: Callable[[], Preparation]
    scores: Callable[[Any, Any], np.ndarray]
    most_rows: int | None = None
    search_rows: int = SEARCH_ROWS
    has_budget: bool = False
    details: Callable[[Any, np.ndarray], dict[str, Any]] = lambda model, y: {}
    is_apart: bool = False


def decision(model: Any, X: Any) -> np.ndarray:
    """Decision function."""
    return model.decision_function(X)


def probability(model: Any, X: Any) -> np.ndarray:
    """Probability of the rare class."""
    return model.predict_proba(X)[:, 1]


def samples(model: Any, X: Any) -> np.ndarray:
    """What this library's estimators rank by."""
    return model.score_samples(X)


def _lightgbm(settings: Settings, X: Any, y: np.ndarray, seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1, **settings)


def _lightgbm_slow(settings: Settings, X: Any, y: np.ndarray, seed: int) -> Any:
    slow = {"n_estimators": 400, "learning_rate": 0.03, "num_leaves": 15}
    return _lightgbm(slow | dict(settings), X, y, seed)


def _xgboost(settings: Settings, X: Any, y: np.ndarray, seed: int) -> Any:
    from xgboost import XGBClassifier

    settings = dict(settings)
    if settings.pop("class_weight", None) == "balanced":  # it has the ratio only
        settings["scale_pos_weight"] = float((y == 0).sum() / (y == 1).sum())
    return XGBClassifier(n_jobs=1, random_state=seed, enable_categorical=True, **settings)


def _catboost(settings: Settings, X: Any, y: np.ndarray, seed: int) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        thread_count=1,
        random_seed=seed,
        verbose=False,
        allow_writing_files=False,
        cat_features=[name for name in X if X[name].dtype == object],
        **settings,
    )


def _forest(settings: Settings, X: Any, y: np.ndarray, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_jobs=1, random_state=seed, **settings)


def _balanced_forest(settings: Settings, X: Any, y: np.ndarray, seed: int) -> Any:
    from imblearn.ensemble import BalancedRandomForestClassifier

    return BalancedRandomForestClassifier(n_jobs=1, random_state=seed, **settings)


def _easy_ensemble(settings: Settings, X: Any, y: np.ndarray, seed: int) -> Any:
    from imblearn.ensemble import EasyEnsembleClassifier

    return EasyEnsembleClassifier(n_jobs=1, random_state=seed, **settings)


def _svm(settings: Settings, X: Any, y: np.ndarray, seed: int) -> Any:
    from sklearn.svm import SVC

    settings = {"class_weight": "balanced", **settings}
    if "gamma_times" in settings:  # of scikit-learn's default, columns having unit variance
        settings["gamma"] = settings.pop("gamma_times") / X.shape[1]
    return SVC(cache_size=500, **settings)


def _logistic(settings: Settings, X: Any, y: np.ndarray, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    settings = {"max_iter": 1000, **settings}
    if settings.pop("penalty", "l2") == "l1":
        settings |= {"solver": "liblinear", "l1_ratio": 1.0, "max_iter": 100}
    return LogisticRegression(random_state=seed, **settings)


def _rankrc(settings: Settings, X: Any, y: np.ndarray, seed: int) -> Any:
    from rareclass import RankRCCV

    of_size = {
        "cv": 10 if len(y) <= FEW_FOLDS_ROWS else 3,
        "equal_within": 0,
        "landmarks": "rare" if y.sum() <= LANDMARKS else ("rare", LANDMARKS),
    }
    return RankRCCV(random_state=seed, n_jobs=1, verbose=False, **of_size | dict(settings))


def _rareclass(settings: Settings, X: Any, y: np.ndarray, seed: int) -> Any:
    from rareclass import RareClassifier

    return RareClassifier(objective="average_precision", random_state=seed, n_jobs=1, **settings)


def _rareclass_kernel(settings: Settings, X: Any, y: np.ndarray, seed: int) -> Any:
    return _rareclass({"members": "kernel", **settings}, X, y, seed)


def _automl(library: str) -> Callable[[Settings, Any, np.ndarray, int], Any]:
    def build(settings: Settings, X: Any, y: np.ndarray, seed: int) -> Any:
        return automl.OtherInterpreter(library, settings.get("time_budget"), seed)

    return build


def _automl_details(model: Any, y: np.ndarray) -> dict[str, Any]:
    return {"seconds": model.seconds_, "version": model.version_}


def _lightgbm_scores(model: Any, X: Any) -> np.ndarray:
    return model.predict(X, raw_score=True)


def _xgboost_scores(model: Any, X: Any) -> np.ndarray:
    return model.predict(X, output_margin=True)


def _catboost_scores(model: Any, X: Any) -> np.ndarray:
    return model.predict(X, prediction_type="RawFormulaVal")


_OURS = {"details": estimates.of_fit}
_APART = {"details": _automl_details, "is_apart": True}
_AUTOML = {"has_budget": True, **_APART}
LEARNERS: dict[str, Learner] = {
    "rareclass": Learner("RareClassifier", _rareclass, Unchanged, samples, **_OURS),
    "rareclass_kernel": Learner(
        "RareClassifier, kernel members", _rareclass_kernel, Unchanged, samples, **_OURS
    ),
    "rankrc": Learner("RankRCCV", _rankrc, standardised, samples),
    "lightgbm": Learner("LightGBM", _lightgbm, NativeCategories, _lightgbm_scores),
    "lightgbm_slow": Learner(
        "LightGBM, 400 slow trees", _lightgbm_slow, NativeCategories, _lightgbm_scores
    ),
    "xgboost": Learner("XGBoost", _xgboost, NativeCategories, _xgboost_scores),
    "catboost": Learner("CatBoost", _catboost, TextCategories, _catboost_scores),
    "forest": Learner("random forest", _forest, codes, probability),
    "balanced_forest": Learner("balanced random forest", _balanced_forest, codes, probability),
    "easy_ensemble": Learner("EasyEnsemble", _easy_ensemble, filled_codes, decision),
    "svm": Learner(
        "SVM, balanced", _svm, standardised, decision, SVM_ROWS, search_rows=SVM_SEARCH_ROWS
    ),
    "logistic": Learner("logistic regression", _logistic, standardised, decision),
    "autogluon": Learner("AutoGluon", _automl("autogluon"), Unchanged, probability, **_AUTOML),
    "flaml": Learner("FLAML", _automl("flaml"), Unchanged, probability, **_AUTOML),
    "realmlp": Learner("RealMLP", _automl("realmlp"), Filled, probability, **_APART),
}
