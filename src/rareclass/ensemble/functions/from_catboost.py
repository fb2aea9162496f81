"""Trees of CatBoost as a `TreeSum`."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rareclass.ensemble.functions.float32_thresholds import before_rounding
from rareclass.ensemble.functions.tree_sum import Tree, TreeSum


def from_catboost(model: Any) -> TreeSum:
    """The raw score of a CatBoost model of one output, oblivious trees and numerical splits.

    An oblivious tree asks the same at all splits of a level: depth d makes 2^d leaves, few of
    which may ever be reached.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.json"
        model.save_model(str(file), format="json")
        saved = json.loads(file.read_text())
    features = saved["features_info"]["float_features"]
    scale, (bias,) = saved["scale_and_bias"]
    trees = [_tree(tree, features, scale) for tree in saved["oblivious_trees"]]
    return TreeSum.of(trees, float(bias))


def _tree(tree: dict[str, Any], features: list[dict[str, Any]], scale: float) -> Tree:
    splits = tree["splits"] or []
    if any(split["split_type"] != "FloatFeature" for split in splits):
        raise ValueError("a split by category is no comparison with a threshold.")
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
