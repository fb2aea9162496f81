"""Members that are sums of trees: histogram boosting, CatBoost and extra trees; their `TreeSum`s.

LightGBM learns the boosted trees where it can be imported, and scikit-learn with the same settings
where it cannot: it needs OpenMP's library, which slim images lack. LightGBM takes a third to two
thirds of the time; held-out figures are level (docs/decisions/0066).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import ThreadpoolController

from rareclass.ensemble.members.member import (
    CELLS_A_BOOSTING_THREAD,
    Size,
    TreeMember,
    float32_rows,
)
from rareclass.ensemble.tree_sum import Tree, TreeSum, before_rounding
from rareclass.findings import warn
from rareclass.rows.memory import count_threads

# Trees of a forest have nothing to wait for, but each is begun in Python, one thread at a time.
_CELLS_A_FOREST_THREAD = 100_000
# Bits of a split's decision_type in LightGBM: a split by category, where missing values go, and,
# from the third bit on, what counts as missing.
_BY_CATEGORY, _LEFT_BY_DEFAULT, _MISSING = 1, 2, 2
_NOTHING, _NAN = 0, 2


@cache
def has_lightgbm() -> bool:
    """Return whether LightGBM is installed and its library can be loaded; warns where it cannot."""
    try:
        import lightgbm  # noqa: F401
    except ImportError:
        return False
    except OSError as error:
        warn(
            f"LightGBM is installed but cannot be loaded ({error}): scikit-learn's boosting takes "
            "its place. On Debian the missing library is most often that of libgomp1."
        )
        return False
    return True


@dataclass(frozen=True)
class HistogramBoosting(TreeMember):
    """Trees that each correct the sum of those before.

    The number of trees is fixed: with few rare rows, those that early stopping would be decided on
    are missed more. The score is the log odds of the rare class.
    """

    rounds: int = 100
    learning_rate: float = 0.1
    leaves: int = 31
    least_in_leaf: int = 5  # few rare rows are split off as they are, or not at all
    l2: float = 1.0
    features_a_split: float = 0.5  # share of the features that each split may choose from

    name: ClassVar[str] = "histogram boosting"
    unit: ClassVar[float] = 7e-7
    cells_a_thread: ClassVar[int | None] = CELLS_A_BOOSTING_THREAD

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: histograms of rows, and of the bins of leaves."""
        if has_lightgbm():
            rows = size.n_rows * (0.030 + 0.0023 * size.n_features)
            return self.rounds * (30 + 2.5 * self.leaves * size.n_features + rows)
        rows = size.n_rows * (0.036 + 0.0038 * size.n_features)
        return self.rounds * (450 + 2.9 * self.leaves * size.n_features + rows)

    def grow(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """Return the log odds as trees."""
        grow = self.by_lightgbm if has_lightgbm() else self.by_scikit_learn
        return grow(X, is_rare, weight, seed, count_threads(n_jobs))

    def by_lightgbm(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_threads: int
    ) -> TreeSum:
        """Return the log odds as trees that LightGBM learns."""
        import lightgbm

        settings = {
            "objective": "binary",
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": self.least_in_leaf,
            "lambda_l2": self.l2,
            "feature_fraction_bynode": self.features_a_split,
            "seed": seed % 2**31,
            "num_threads": n_threads,
            "deterministic": True,
            "force_col_wise": True,
            "verbosity": -1,
        }
        rows = lightgbm.Dataset(X, is_rare.astype(np.float64), weight=weight, params=settings)
        # The booster as it was trained: without it, LightGBM writes and reads its own text first.
        booster = lightgbm.train(settings, rows, self.rounds, keep_training_booster=True)
        return from_lightgbm(booster)

    def by_scikit_learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_threads: int
    ) -> TreeSum:
        """Return the log odds as trees that scikit-learn learns."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        empty = np.isnan(X).all(axis=0)
        if empty.any():  # has no bins; a constant column has one, and splits nothing either
            X = np.where(empty, 0.0, X)

        class BinnedUnweighted(HistGradientBoostingClassifier):
            # Quantiles by weight, which it lays bins by, take several times as long as the trees.
            def _bin_data(self, X: Any, sample_weight: Any, is_training_data: bool) -> Any:
                return super()._bin_data(X, None, is_training_data)

        model = BinnedUnweighted(
            max_iter=self.rounds,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.least_in_leaf,
            l2_regularization=self.l2,
            max_features=self.features_a_split,
            early_stopping=False,
            random_state=seed,
        )
        with _openmp().limit(limits=1, user_api="openmp"):  # sums of several have no fixed order
            model.fit(X, is_rare, sample_weight=weight)
        return from_histogram_boosting(model)


@dataclass(frozen=True)
class SlowHistogramBoosting(HistogramBoosting):
    """More and smaller trees, each of which counts for less."""

    rounds: int = 300
    learning_rate: float = 0.06
    leaves: int = 15
    least_in_leaf: int = 3
    l2: float = 3.0

    name: ClassVar[str] = "slow histogram boosting"
    least_rows: ClassVar[int] = 30_000  # on fewer rows plain boosting ranks as well


@dataclass(frozen=True)
class DeepHistogramBoosting(HistogramBoosting):
    """Large trees that may ask any feature anywhere: what holds for few rows alone."""

    rounds: int = 150
    learning_rate: float = 0.1
    leaves: int = 63
    least_in_leaf: int = 3
    features_a_split: float = 1.0

    name: ClassVar[str] = "deep histogram boosting"
    least_rows: ClassVar[int] = 3000  # fewer rows do not need large trees


# The threads of scikit-learn's boosting: looking for them takes 4 ms.
_openmp = cache(ThreadpoolController)


def from_histogram_boosting(model: Any) -> TreeSum:
    """Return the raw score of a `HistGradientBoostingClassifier`: log odds of the second class.

    There are two classes, and splits must be numerical.
    """
    trees = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        if nodes["is_categorical"].any():
            raise ValueError("a split by category is not a comparison with a threshold.")
        leaf = nodes["is_leaf"].astype(bool)
        trees.append(
            Tree(
                nodes["feature_idx"],
                nodes["num_threshold"],
                np.where(leaf, -1, nodes["left"].astype(np.int64)),
                np.where(leaf, -1, nodes["right"].astype(np.int64)),
                nodes["missing_go_to_left"],
                nodes["value"],
            )
        )
    return TreeSum.of(trees, float(model._baseline_prediction[0, 0]))


def from_lightgbm(booster: Any) -> TreeSum:
    """Return the raw score of a LightGBM `Booster` of one output and numerical splits.

    The booster's model in text is the only public form that holds every number in full. It is read
    for all trees at once: a tree at a time takes as long as learning small ones does.
    """
    text = booster.model_to_string().split("end of trees")[0]
    of_trees: dict[str, list[str]] = {}
    for line in text.split("\n"):
        name, _, entries = line.partition("=")
        of_trees.setdefault(name, []).append(entries)

    def numbers(name: str, kind: Any = np.float64) -> np.ndarray:
        """Return an entry of all trees, one tree after the other."""
        return np.array(" ".join(of_trees.get(name, ())).split(), dtype=np.float64).astype(kind)

    threshold, decision = numbers("threshold"), numbers("decision_type", np.int64)
    missing = decision >> _MISSING
    if (decision & _BY_CATEGORY).any() or not np.isin(missing, (_NOTHING, _NAN)).all():
        raise ValueError("a split by category, or with 0 as missing, is not a plain comparison.")
    n_leaves = numbers("num_leaves", np.int64)
    tree = np.repeat(np.arange(len(n_leaves)), n_leaves - 1)  # of each split
    first = np.cumsum(2 * n_leaves - 1) - (2 * n_leaves - 1)  # node of each tree
    # Nodes of a tree: its splits first, then its leaves.
    is_leaf = np.ones(int((2 * n_leaves - 1).sum()), dtype=bool)
    is_leaf[first[tree] + np.arange(len(tree)) - (np.cumsum(n_leaves - 1) - n_leaves + 1)[tree]] = 0

    def by_node(of_splits: np.ndarray, at_leaves: Any) -> list[np.ndarray]:
        nodes = np.empty(len(is_leaf), of_splits.dtype)
        nodes[is_leaf], nodes[~is_leaf] = at_leaves, of_splits
        return np.split(nodes, first[1:])

    left, right = (
        np.where(child < 0, n_leaves[tree] - 1 + ~child, child)
        for child in (numbers("left_child", np.int64), numbers("right_child", np.int64))
    )
    # Where nothing was missing in training, NaN is compared as if it were 0.
    missing_goes_left = np.where(missing == _NAN, (decision & _LEFT_BY_DEFAULT) > 0, threshold >= 0)
    parts = (
        by_node(numbers("split_feature", np.int64), -1),
        by_node(threshold, 0.0),
        by_node(left, -1),
        by_node(right, -1),
        by_node(missing_goes_left, False),
        by_node(np.zeros(len(tree)), numbers("leaf_value")),
    )
    return TreeSum.of([Tree(*each) for each in zip(*parts, strict=True)])


@dataclass(frozen=True)
class CatBoost(TreeMember):
    """Oblivious trees, which ask the same at all splits of a level, by CatBoost.

    They are plainer than other trees and each is learned from rows in a random order, which makes
    up for much where rare rows are few. The score is the log odds.
    """

    rounds: int = 100
    learning_rate: float = 0.12
    depth: int = 6
    l2: float = 3.0
    bins: int = 64  # of each feature; CatBoost's own 254 take longer and rank no better

    name: ClassVar[str] = "catboost"
    package: ClassVar[str | None] = "catboost"
    unit: ClassVar[float] = 5e-7
    least_rows: ClassVar[int] = 1000
    most_columns: ClassVar[int | None] = 500
    cells_a_thread: ClassVar[int | None] = CELLS_A_BOOSTING_THREAD

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: the bins of leaves, and each level's rows."""
        rows = size.n_rows * self.depth * (0.025 + 0.0005 * size.n_features)
        return self.rounds * (3.0 * 2**self.depth * size.n_features + rows)

    def grow(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """Return the log odds as trees; 0 where no column varies, which CatBoost refuses."""
        import catboost

        X = float32_rows(X)
        if not ((X[0] != X) & ~(np.isnan(X) & np.isnan(X[0]))).any():
            return TreeSum.of([])
        model = catboost.CatBoostClassifier(
            iterations=self.rounds,
            learning_rate=self.learning_rate,
            depth=self.depth,
            l2_leaf_reg=self.l2,
            border_count=self.bins,
            random_seed=seed % 2**31,
            thread_count=1,  # sums of several threads have no fixed order
            allow_writing_files=False,
            logging_level="Silent",
        )
        model.fit(X, is_rare.astype(np.int64), sample_weight=weight)
        return from_catboost(model)


def from_catboost(model: Any) -> TreeSum:
    """Return the raw score of a CatBoost model of one output, oblivious trees, numerical splits.

    An oblivious tree asks the same at all splits of a level: depth d makes 2^d leaves, few of
    which may ever be reached.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.json"
        model.save_model(str(file), format="json")
        saved = json.loads(file.read_text())
    features = saved["features_info"]["float_features"]
    scale, (bias,) = saved["scale_and_bias"]
    trees = [_catboost_tree(tree, features, scale) for tree in saved["oblivious_trees"]]
    return TreeSum.of(trees, float(bias))


def _catboost_tree(tree: dict[str, Any], features: list[dict[str, Any]], scale: float) -> Tree:
    splits = tree["splits"] or []
    if any(split["split_type"] != "FloatFeature" for split in splits):
        raise ValueError("a split by category is not a comparison with a threshold.")
    asked = [features[split["float_feature_index"]] for split in splits]
    depth, n_splits = len(splits), 2 ** len(splits) - 1
    # A heap: the children of node h are 2 h + 1 and 2 h + 2.
    level = np.repeat(np.arange(depth + 1), 2 ** np.arange(depth + 1))
    node = np.arange(len(level))
    is_leaf = node >= n_splits
    # CatBoost numbers leaves by the answers, that of the first level in the lowest bit.
    place = node[is_leaf] - n_splits
    number = sum(((place >> (depth - 1 - k)) & 1) << k for k in range(depth)) + 0 * place
    value = np.zeros(len(level))
    value[is_leaf] = scale * np.array(tree["leaf_values"])[number]

    def by_level(values: list[Any]) -> np.ndarray:
        return np.array([*values, 0])[level]

    return Tree(
        by_level([feature["flat_feature_index"] for feature in asked]),
        before_rounding(by_level([split["border"] for split in splits])),
        np.where(is_leaf, -1, 2 * node + 1),
        np.where(is_leaf, -1, 2 * node + 2),
        by_level([feature["nan_value_treatment"] != "AsTrue" for feature in asked]),
        value,
    )


@dataclass(frozen=True)
class ExtraTrees(TreeMember):
    """Trees of all rows whose splits are the best of random ones, by scikit-learn.

    The score is the mean share of rare rows in x's leaves.
    """

    trees: int = 50
    least_in_leaf: int = 3
    most_leaves: int = 4000  # bounds the model of a large table: a leaf takes 29 bytes
    # Share of the features that each split may choose from, of so many at most.
    features_a_split: float = 0.5
    most_features_a_split: int = 24

    name: ClassVar[str] = "extra trees"
    unit: ClassVar[float] = 6e-7
    most_majority: ClassVar[int | None] = 100_000
    cells_a_thread: ClassVar[int | None] = _CELLS_A_FOREST_THREAD

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: rows above the last rare ones are split on."""
        levels = np.log2(2 + size.n_rare) ** 2
        tried = min(self.features_a_split * size.n_features, self.most_features_a_split)
        return self.trees * (960 + size.n_rows * (0.15 + 0.0013 * levels * tried))

    def grow(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """Return the mean share as trees."""
        from sklearn.ensemble import ExtraTreesClassifier

        model = ExtraTreesClassifier(
            self.trees,
            max_features=min(self.features_a_split, self.most_features_a_split / X.shape[1]),
            min_samples_leaf=self.least_in_leaf,
            max_leaf_nodes=self.most_leaves,
            random_state=seed,
            n_jobs=count_threads(n_jobs),
        )
        model.fit(float32_rows(X), is_rare, sample_weight=weight)
        return from_forest(model.estimators_)


def from_forest(trees: Sequence[Any]) -> TreeSum:
    """Return the mean share of the second class in the leaves of decision trees or extra trees.

    Each was learned from two classes; of a forest, pass its ``estimators_``.
    """
    learned = [each.tree_ for each in trees]
    return TreeSum.of(
        [
            Tree(
                tree.feature,
                before_rounding(tree.threshold),
                tree.children_left,
                tree.children_right,
                tree.missing_go_to_left,
                tree.value[:, 0, 1] / len(learned),
            )
            for tree in learned
        ]
    )
