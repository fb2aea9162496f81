"""XGBoost and CatBoost as members, and their trees as a `TreeSum`."""

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from scipy.special import logit

from rareclass.ensemble.members.member import (
    CELLS_A_BOOSTING_THREAD,
    Size,
    TreeMember,
    float32_rows,
)
from rareclass.ensemble.tree_sum import Tree, TreeSum, before_rounding, below_float32
from rareclass.rows.memory import count_threads


@dataclass(frozen=True)
class XGBoost(TreeMember):
    """Trees that each correct the sum of those before, by XGBoost; the score is the log odds."""

    rounds: int = 200
    learning_rate: float = 0.05
    leaves: int = 15
    # Sum of p (1 - p) over the rows of a leaf; 1 would ask for hundreds of rows where rare rows
    # are one in some hundred.
    least_weight: float = 0.1
    l2: float = 5.0
    features_a_tree: float = 0.7  # share of the features that each tree may choose from

    name: ClassVar[str] = "xgboost"
    package: ClassVar[str | None] = "xgboost"
    cells_a_thread: ClassVar[int | None] = CELLS_A_BOOSTING_THREAD

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: histograms of rows, and of the bins of leaves."""
        rows = size.n_rows * (0.021 + 0.0018 * size.n_features)
        return self.rounds * (30 + 4.3 * self.leaves * size.n_features + rows)

    def grow(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """Return the log odds as trees."""
        import xgboost

        n_threads = count_threads(n_jobs)
        parameters = {
            "objective": "binary:logistic",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,  # as deep as the leaves allow
            "max_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "min_child_weight": self.least_weight,
            "reg_lambda": self.l2,
            "colsample_bytree": self.features_a_tree,
            "seed": seed % 2**31,
            "nthread": n_threads,
            "verbosity": 0,
        }
        rows = xgboost.DMatrix(float32_rows(X), is_rare, weight=weight, nthread=n_threads)
        return from_xgboost(xgboost.train(parameters, rows, self.rounds))


def from_xgboost(booster: Any) -> TreeSum:
    """Return the margin, log odds, of an XGBoost `Booster` of "binary:logistic".

    Its splits must be numerical. XGBoost itself adds up in float32.
    """
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    if learner["objective"]["name"] != "binary:logistic":
        raise ValueError("the margin is known of the objective 'binary:logistic' only.")
    base = np.float32(learner["learner_model_param"]["base_score"].strip("[]"))
    trees = []
    for tree in learner["gradient_booster"]["model"]["trees"]:
        if any(tree["split_type"]):
            raise ValueError("a split by category is not a comparison with a threshold.")
        numbers = np.array(tree["split_conditions"], dtype=np.float32)  # at leaves their values
        trees.append(
            Tree(
                np.array(tree["split_indices"]),
                below_float32(numbers),
                np.array(tree["left_children"]),
                np.array(tree["right_children"]),
                np.array(tree["default_left"]),
                numbers,
            )
        )
    return TreeSum.of(trees, float(logit(float(base))))


@dataclass(frozen=True)
class CatBoost(TreeMember):
    """Oblivious trees, which ask the same at all splits of a level, by CatBoost.

    They are plainer than other trees and each is learned from rows in a random order, which makes
    up for much where rare rows are few. The score is the log odds.
    """

    rounds: int = 200
    learning_rate: float = 0.07
    depth: int = 6
    l2: float = 3.0
    bins: int = 64  # of each feature; CatBoost's own 254 take longer and rank no better

    name: ClassVar[str] = "catboost"
    package: ClassVar[str | None] = "catboost"
    least_rows: ClassVar[int] = 1000
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
            thread_count=count_threads(n_jobs),
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
