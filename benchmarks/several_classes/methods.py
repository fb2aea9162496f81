"""Methods: `RareClassifier` with its defaults, and multiclass peers; one thread each.

Classes are whole numbers, 0 for the rest. Peers get native categories, CatBoost text, the forest
indicators and codes (`benchmarks.tabular.preparation`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from benchmarks.tabular.preparation import NativeCategories, Preparation, TextCategories, codes

# Trees of a forest of all classes, and of one for each class (the default of the library).
FOREST_TREES, FOREST_TREES_OF_EACH = 500, 100


class Problem(NamedTuple):
    """Training rows with their classes, test rows, and what a fit is given besides."""

    X: pl.DataFrame
    y: np.ndarray
    new: pl.DataFrame
    seed: int
    catboost_trees: int

    def prepared(self, preparation: Preparation) -> tuple[Any, Any]:
        """Training and test rows as a method takes them."""
        X = preparation.fit_transform(self.X)
        return X, preparation.transform(self.new)


class Probabilities(NamedTuple):
    """Answers of a method for the test rows.

    `of_class` has a column a class and sums to one in each row; `ranking` has a column a rare
    class, and orders the rows of that class against all others.
    """

    of_class: np.ndarray
    ranking: np.ndarray

    @classmethod
    def of(cls, of_class: np.ndarray) -> "Probabilities":
        """Of a method whose probabilities are its ranking."""
        return cls(of_class, of_class[:, 1:])


Fit = Callable[[Any, np.ndarray, Any], np.ndarray]


def rare_classifier(problem: Problem) -> Probabilities:
    """`RareClassifier` with its defaults."""
    return Probabilities.of(_rare_classifier(problem, problem.y))


def two_classes(problem: Problem) -> Probabilities:
    """The same with all rare classes as one: what the time of several is compared with."""
    return Probabilities.of(_rare_classifier(problem, (problem.y > 0).astype(int)))


def _rare_classifier(problem: Problem, y: np.ndarray) -> np.ndarray:
    from rareclass import RareClassifier

    rare = np.unique(y[y > 0]).tolist()
    model = RareClassifier(
        pos_label=rare if len(rare) > 1 else rare[0],
        random_state=problem.seed,
        n_jobs=1,
        verbose=False,
    )
    return model.fit(problem.X, y).predict_proba(problem.new)


def lightgbm(problem: Problem, **settings: Any) -> Probabilities:
    """LightGBM's multiclass loss."""
    X, new = problem.prepared(NativeCategories())
    return Probabilities.of(_lightgbm(problem.seed, settings)(X, problem.y, new))


def slow_lightgbm(problem: Problem) -> Probabilities:
    """LightGBM with more and slower trees, and leaves with some weight."""
    return lightgbm(problem, n_estimators=400, learning_rate=0.05, min_child_weight=5.0)


def lightgbm_of_each(problem: Problem) -> Probabilities:
    """LightGBM for each class against all other rows."""
    X, new = problem.prepared(NativeCategories())
    return one_versus_rest(_lightgbm(problem.seed, {}), X, problem.y, new)


def _lightgbm(seed: int, settings: dict[str, Any]) -> Fit:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1, **settings)
    return lambda X, y, new: model.fit(X, y).predict_proba(new)


def catboost(problem: Problem) -> Probabilities:
    """CatBoost's multiclass loss."""
    X, new = problem.prepared(TextCategories())
    return Probabilities.of(_catboost(problem)(X, problem.y, new))


def catboost_of_each(problem: Problem) -> Probabilities:
    """CatBoost for each class against all other rows."""
    X, new = problem.prepared(TextCategories())
    return one_versus_rest(_catboost(problem), X, problem.y, new)


def _catboost(problem: Problem) -> Fit:
    from catboost import CatBoostClassifier

    def fit(X: Any, y: np.ndarray, new: Any) -> np.ndarray:
        model = CatBoostClassifier(
            iterations=problem.catboost_trees,
            thread_count=1,
            random_seed=problem.seed,
            verbose=False,
            allow_writing_files=False,
            cat_features=[name for name in X if X[name].dtype == object],
        )
        return model.fit(X, y).predict_proba(new)

    return fit


def balanced_forest(problem: Problem) -> Probabilities:
    """A forest whose trees learn as many rows of each class as the rarest has."""
    X, new = problem.prepared(codes())
    return Probabilities.of(_balanced_forest(problem.seed, FOREST_TREES)(X, problem.y, new))


def balanced_forest_of_each(problem: Problem) -> Probabilities:
    """Balanced forests for each class against all other rows."""
    X, new = problem.prepared(codes())
    return one_versus_rest(_balanced_forest(problem.seed, FOREST_TREES_OF_EACH), X, problem.y, new)


def _balanced_forest(seed: int, trees: int) -> Fit:
    from imblearn.ensemble import BalancedRandomForestClassifier

    model = BalancedRandomForestClassifier(trees, n_jobs=1, random_state=seed)
    return lambda X, y, new: model.fit(X, y).predict_proba(new)


def one_versus_rest(fit: Fit, X: Any, y: np.ndarray, new: Any) -> Probabilities:
    """Fit every class against all others; probabilities are divided by their sum."""
    each = [fit(X, (y == k).astype(int), new)[:, 1] for k in range(int(y.max()) + 1)]
    columns = np.column_stack(each)
    return Probabilities(columns / columns.sum(axis=1, keepdims=True), columns[:, 1:])


OURS, TWO_CLASSES = "RareClassifier", "RareClassifier, two classes"
METHODS: dict[str, Callable[[Problem], Probabilities]] = {
    OURS: rare_classifier,
    "LightGBM": lightgbm,
    "LightGBM, 400 slow trees": slow_lightgbm,
    "LightGBM, one versus rest": lightgbm_of_each,
    "CatBoost": catboost,
    "CatBoost, one versus rest": catboost_of_each,
    "balanced forest": balanced_forest,
    "balanced forest, one versus rest": balanced_forest_of_each,
    TWO_CLASSES: two_classes,
}
