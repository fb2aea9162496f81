"""The peers, each with candidates that it is chosen from; all see standardised rows, one thread.

A peer is a function (X, y, candidates, seed) -> FittedPath: one model per candidate.

- KNN: the mean level of the k nearest rows, k = 1 .. 100 (the paper's grid).
- SVR: LIBSVM with RankRC's kernel, C = 2^-6 .. 2^6. The paper's grid goes on to 2^20, where LIBSVM
  does not end on overlapping levels; a fit is stopped after `MAX_ITER` steps and counted.
- Ridge: linear, penalty = rows x 2^-14 .. 2^6.
- LightGBM, for regression and for ranking: 7 or 31 leaves, 50 to 400 trees at a learning rate of
  0.05, all else at its defaults. A ranking objective wants groups of rows and takes at most 10,000
  rows a group: up to there all rows are one group, beyond they are shuffled into equal groups, and
  pairs across groups are not seen. lambdarank looks at pairs with the 30 best rows of a group
  (`lambdarank_truncation_level`) and weighs a level by 2^level; beside these defaults "all pairs"
  looks at every row and weighs levels by their number, which is nearer to MAUC. xendcg has neither
  setting.
- mord: logistic models with one direction and a threshold between levels, all-threshold (AT) and
  immediate-threshold (IT); alpha = 10^-2 .. 10^4.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVR

from benchmarks.paper_tables.path import FittedPath
from benchmarks.paper_tables.protocol import gaussian_gamma

MAX_ITER = 200_000
GROUP_ROWS = 10_000  # LightGBM refuses larger groups
LEARNING_RATE = 0.05
_BLOCK = 4096

Candidate = Any
NEIGHBOURS = tuple(range(1, 101))
COSTS = tuple(2.0 ** np.arange(-6, 7, 2))
RIDGES = tuple(2.0 ** np.arange(6, -15, -2))
TREES = tuple((leaves, trees) for leaves in (7, 31) for trees in (50, 100, 200, 400))
ALPHAS = tuple(10.0 ** np.arange(4, -3, -1))

Fit = Callable[[np.ndarray, np.ndarray, Sequence[Candidate], int], FittedPath]


def knn(X: np.ndarray, y: np.ndarray, counts: Sequence[int], seed: int) -> FittedPath:
    """All k at once: the neighbours are found for the largest one."""
    counts = [k for k in counts if k <= len(X)]
    index = NearestNeighbors(n_neighbors=max(counts), n_jobs=1).fit(X)

    def scores(rows: np.ndarray, indices: Sequence[int]) -> np.ndarray:
        wanted = np.array([counts[i] for i in indices])
        found = index.kneighbors(rows, return_distance=False)
        return np.cumsum(y[found], axis=1)[:, wanted - 1] / wanted

    return FittedPath(counts, scores, [len(X)] * len(counts))


def svr(X: np.ndarray, y: np.ndarray, costs: Sequence[float], seed: int) -> FittedPath:
    """One kernel for all C."""
    gamma = gaussian_gamma(X)
    kernel = rbf_kernel(X, gamma=gamma).astype(np.float64)
    models, stopped = [], 0
    for cost in costs:
        model = SVR(kernel="precomputed", C=cost, max_iter=MAX_ITER)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # counted just below instead
            models.append(model.fit(kernel, y))
        stopped += int(model.fit_status_ != 0)

    def scores(rows: np.ndarray, indices: Sequence[int]) -> np.ndarray:
        coef = np.zeros((len(X), len(indices)))
        for column, index in enumerate(indices):
            coef[models[index].support_, column] = models[index].dual_coef_[0]
        used = np.flatnonzero(coef.any(axis=1))
        parts = [
            rbf_kernel(rows[at : at + _BLOCK], X[used], gamma=gamma) @ coef[used]
            for at in range(0, len(rows), _BLOCK)
        ]
        return np.concatenate(parts)

    return FittedPath(list(costs), scores, [len(model.support_) for model in models], stopped)


def ridge(X: np.ndarray, y: np.ndarray, penalties: Sequence[float], seed: int) -> FittedPath:
    """Least squares on the numbers of the levels."""
    models = [Ridge(alpha=len(X) * penalty).fit(X, y) for penalty in penalties]
    return _columns(penalties, [model.predict for model in models])


def lightgbm(
    X: np.ndarray, y: np.ndarray, candidates: Sequence[tuple[int, int]], seed: int, **settings: Any
) -> FittedPath:
    """One booster for all numbers of trees with the same leaves."""
    import lightgbm as lgb

    order = np.arange(len(X))
    group = None
    if settings["objective"] != "regression":
        order, group = groups(len(X), seed)
    common = {"learning_rate": LEARNING_RATE, "num_threads": 1, "seed": seed, "verbose": -1}
    data = lgb.Dataset(X[order], y[order], group=group, params={"verbose": -1})
    boosters = {}
    for leaves in dict.fromkeys(leaves for leaves, _ in candidates):
        trees = max(trees for own, trees in candidates if own == leaves)
        params = {**common, "num_leaves": leaves, **_made_for(settings, y, group)}
        boosters[leaves] = lgb.train(params, data, num_boost_round=trees)

    def of(leaves: int, trees: int) -> Callable[[np.ndarray], np.ndarray]:
        return lambda rows: boosters[leaves].predict(rows, num_iteration=trees, num_threads=1)

    return _columns(candidates, [of(*candidate) for candidate in candidates])


def groups(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in random order and the sizes of equal groups of at most `GROUP_ROWS` of them."""
    n_groups = -(-n_rows // GROUP_ROWS)
    order = np.random.default_rng(seed).permutation(n_rows)
    return order, np.array([len(part) for part in np.array_split(order, n_groups)])


def mord(
    X: np.ndarray, y: np.ndarray, alphas: Sequence[float], seed: int, model: str = "LogisticAT"
) -> FittedPath:
    """Rows by their place along the model's direction: its levels alone would tie most rows."""
    import mord as package

    codes = np.unique(y, return_inverse=True)[1]  # mord wants no gaps
    with warnings.catch_warnings():
        # mord 0.7 passes an option to scipy's L-BFGS that scipy no longer wants.
        warnings.filterwarnings("ignore", "scipy.optimize", DeprecationWarning)
        fitted = [getattr(package, model)(alpha=alpha).fit(X, codes) for alpha in alphas]
    return _columns(alphas, [partial(_along, one.coef_) for one in fitted])


def _along(direction: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return rows @ direction


def _columns(
    candidates: Sequence[Candidate], predictors: Sequence[Callable[[np.ndarray], np.ndarray]]
) -> FittedPath:
    def scores(rows: np.ndarray, indices: Sequence[int]) -> np.ndarray:
        return np.column_stack([predictors[index](rows) for index in indices])

    return FittedPath(list(candidates), scores, [0] * len(candidates))


def _made_for(settings: dict[str, Any], y: np.ndarray, group: np.ndarray | None) -> dict[str, Any]:
    """ "all pairs" in LightGBM's terms, which depend on the rows."""
    own = dict(settings)
    if own.pop("all_pairs", False):
        own["lambdarank_truncation_level"] = int(max(group))
        own["label_gain"] = list(range(int(y.max()) + 1))
    return own
