"""Histogram boosting: trees that each correct the sum of those before; its trees as a `TreeSum`.

LightGBM learns the trees where it can be imported, and scikit-learn with the same settings where
it cannot: it needs OpenMP's library, which slim images lack. LightGBM takes a third to two thirds
of the time; held-out figures are level (docs/decisions/0066).
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import ThreadpoolController

from rareclass.ensemble.members.member import CELLS_A_BOOSTING_THREAD, Size, TreeMember
from rareclass.ensemble.tree_sum import Tree, TreeSum
from rareclass.findings import warn
from rareclass.rows.memory import count_threads

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
    share: ClassVar[float] = 2.0
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
        with _openmp().limit(limits=n_threads, user_api="openmp"):
            model.fit(X, is_rare, sample_weight=weight)
        return from_histogram_boosting(model)


@dataclass(frozen=True)
class SlowHistogramBoosting(HistogramBoosting):
    """Many trees, each of which counts for little."""

    rounds: int = 600
    learning_rate: float = 0.03
    leaves: int = 15
    least_in_leaf: int = 3
    l2: float = 3.0

    name: ClassVar[str] = "slow histogram boosting"
    share: ClassVar[float] = 8.0  # the best on long tables, the more rows the better
    least_rows: ClassVar[int] = 1000


@dataclass(frozen=True)
class DeepHistogramBoosting(HistogramBoosting):
    """Large trees that may ask any feature anywhere: what holds for few rows alone."""

    rounds: int = 400
    learning_rate: float = 0.05
    leaves: int = 63
    least_in_leaf: int = 3
    features_a_split: float = 1.0

    name: ClassVar[str] = "deep histogram boosting"
    share: ClassVar[float] = 0.5  # many small trees make more of little time
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
