"""`RareClassifier` in ONNX: its encodings of numbers and words, and the mean of its members.

Of a word, or a whole number that is a code, nothing counts but its level. The view itself works out
its features of each level, and of each pair of levels, once; the graph looks them up.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy import sparse

from rareclass.encoding.bounded_numbers import BoundedNumbers
from rareclass.encoding.column_values import KnownWords
from rareclass.encoding.encoders import LevelOdds
from rareclass.encoding.table_statistics import EncodedTable, TableStatistics
from rareclass.encoding.views import DenseView, SparseView
from rareclass.ensemble.combined_ranking import CombinedRanking
from rareclass.ensemble.score_functions import (
    FalsePositiveRate,
    KernelFunction,
    LinearFunction,
    MeanFunction,
)
from rareclass.ensemble.tree_sum import TreeSum
from rareclass.errors import ErrorKind
from rareclass.kernels.expansion import KernelExpansion
from rareclass.kernels.kernels import (
    FeatureScaled,
    Gaussian,
    Laplace,
    Linear,
    Polynomial,
    make_kernel,
)
from rareclass.model.onnx.graph import (
    TableInputs,
    Tensor,
    counts_below,
    looked_up,
    on_lines,
    refuse_column,
    tree_sums,
)
from rareclass.tables.columns import Column

# What is left of |x|^2 + |z|^2 - 2 x.z below this part of it is rounding: as in the library.
_NOISE = 8.0 * np.finfo(np.float64).eps


def function_scores(X: Tensor, function: Any) -> Tensor:
    """Score of a member's function of encoded rows, of shape (n_rows,)."""
    if isinstance(function, TreeSum):
        return summed(X, function)
    if isinstance(function, LinearFunction):
        return X @ function.weights + function.intercept
    if isinstance(function, MeanFunction):
        each = [function_scores(X, part) for part in function.functions]
        return reduce(add, each) * (1.0 / len(each))
    assert isinstance(function, KernelFunction)
    if function.features is not None:
        X = X.columns(function.features)
    X = X.to(np.float32)
    both = np.column_stack([function.coefficients, np.ones(len(function.coefficients))])
    kernel = make_kernel(function.kernel, function.width)
    found = expanded(X.to(np.float64), KernelExpansion(kernel, function.landmarks), both)
    scores, similarity = found.column(0), found.column(1)
    lower = X.graph.op("Min", scores, np.float64(function.most))
    return lower.where(similarity < function.least, scores)


def is_32_bit(model: Any) -> bool:
    """Say whether the library computes scores of a combination's member in 32 bits."""
    functions = [member.function for member in model.members_]
    means = [each for each in functions if isinstance(each, MeanFunction)]
    parts = [part for mean in means for part in mean.functions]
    return any(isinstance(each, KernelFunction) for each in functions + parts)


def log_rate(scores: Tensor, scale: FalsePositiveRate) -> Tensor:
    """ln F of scores of shape (n_rows, 1)."""
    inside = on_lines(scores, [scale.knots], [scale.log_rates])
    beyond = (scores - scale.knots[-1]).at_least(0.0)
    return inside - (beyond / scale.excess + 1.0).log()


def expanded(X: Tensor, expansion: KernelExpansion, coefficients: np.ndarray) -> Tensor:
    """Values of the expansion, of shape (n_rows,) or (n_rows, n_functions) as coefficients have.

    Distances are those of the library, from one matrix product of centred rows: as exact, and
    memory for n_rows x n_landmarks numbers.
    """
    if sparse.issparse(expansion.landmarks):
        raise ErrorKind.UNSUPPORTED.error(
            "This model was learned from sparse rows, which ONNX has no tensors for.",
            "Learn it from dense rows, X.toarray(), if these fit in memory.",
        )
    if not expansion.n_landmarks:  # a sparse model may have none
        return X.graph.op("ReduceSum", X, np.array([1]), keepdims=0) * 0.0
    Z = np.asarray(expansion.landmarks, dtype=np.float64)
    K = _kernel(X, Z, expansion.kernel)
    return K @ np.asarray(coefficients, dtype=np.float64)


def _kernel(X: Tensor, Z: np.ndarray, kernel: Any) -> Tensor:
    """k(x, z), of shape (n_rows, n_landmarks)."""
    if isinstance(kernel, FeatureScaled):
        used = np.flatnonzero(kernel.scales)
        factors = kernel.scales[used]
        return _kernel(X.columns(used) * factors, Z[:, used] * factors, kernel.kernel)
    if isinstance(kernel, Gaussian):
        return (_squared_distances(X, Z) * (-1.0 / kernel.width**2)).exp()
    if isinstance(kernel, Laplace):
        distances = X.graph.op("Sqrt", _squared_distances(X, Z))
        return (distances * (-1.0 / kernel.width)).exp()
    if isinstance(kernel, Linear):
        return X @ Z.T
    if isinstance(kernel, Polynomial):
        base = X @ Z.T * (1.0 / kernel.width**2) + kernel.offset
        return X.graph.op("Pow", base, np.float64(kernel.degree))
    raise ErrorKind.UNSUPPORTED.error(
        f"The kernel {type(kernel).__name__} is code of its own, which ONNX cannot hold.",
        "Kernels by name are formulas: gaussian, laplace, linear, polynomial.",
    )


def _squared_distances(X: Tensor, Z: np.ndarray) -> Tensor:
    centre = Z.mean(axis=0)
    X, Z = X - centre, Z - centre
    norms = X.graph.op("ReduceSumSquare", X, np.array([1]))
    total = norms + np.einsum("ij,ij->i", Z, Z)
    distances = total - (X @ Z.T) * 2.0
    return distances.where(distances > total * _NOISE, 0.0)


def summed(X: Tensor, trees: TreeSum) -> Tensor:
    """The sum over trees of each row, of shape (n_rows,)."""
    if not trees.n_trees:
        return X.graph.op("ReduceSum", X, np.array([1]), keepdims=0) * 0.0 + trees.intercept
    left = {"nodes_missing_value_tracks_true": trees.missing_goes_left.astype(int).tolist()}
    splits = (trees.feature, trees.threshold, trees.left, trees.right)
    total = tree_sums(X, trees.start[:-1], splits, trees.value, **left)
    return total.column(0) + trees.intercept


_LN_10 = float(np.log(10.0))
# Pairs of levels of two columns that are worked out, at most: eight bytes a pair and feature.
MOST_PAIRS = 1_000_000


def combined(inputs: TableInputs, model: CombinedRanking) -> Tensor:
    """Scores of the combination, of shape (n_rows, 1)."""
    row = EncodedRow(inputs, model.statistics_, model.columns_)
    rows: dict[str, Tensor] = {}
    total = None
    for member in model.members_:
        view = model.views_[member.view]
        if isinstance(view, SparseView):
            function: Any = member.function
            scores = linear_in_indicators(row, view, function.weights) + function.intercept
        else:
            if member.view not in rows:
                rows[member.view] = dense_rows(row, view)
            scores = function_scores(rows[member.view], member.function)
        part = log_rate(scores.upright(), member.scale) * -member.weight
        total = part if total is None else total + part
    assert total is not None
    return log_rate(total, model.scale_) / -_LN_10


class EncodedRow:
    """Numbers and levels of the rows of a graph, by what a table's statistics know.

    Raises `InputError` for columns of dates and texts, naming them.
    """

    def __init__(
        self, inputs: TableInputs, statistics: TableStatistics, columns: Sequence[Column]
    ) -> None:
        self.known, self.graph = statistics, inputs.graph
        self._reading = {column.name: column.reading for column in columns}
        for name, kind in statistics.columns_:
            if kind in ("date", "text"):
                raise refuse_column(name, kind)
        numbers = [inputs.number(statistics.columns_[k][0]) for k in statistics.number_sources_]
        self.numbers = self.graph.side_by_side(numbers) if numbers else None
        self.levels = [self._level(inputs, k) for k in range(len(statistics.known_))]

    def lookup(self, category: int, of_rows: Callable[[EncodedTable], np.ndarray]) -> Tensor:
        """Look up a function of encoded rows by the level of a category: (n_rows, n_features)."""
        rows = _rows_of_levels(self.known, {category: np.arange(self._n_levels(category))})
        return looked_up(self.levels[category], of_rows(rows))

    def lookup_pair(
        self, first: int, second: int, of_rows: Callable[[EncodedTable], np.ndarray]
    ) -> Tensor:
        """Look up a function of encoded rows by the levels of two categories."""
        sizes = self._n_levels(first), self._n_levels(second)
        if sizes[0] * sizes[1] > MOST_PAIRS:
            names = [self.known.category_names_[k] for k in (first, second)]
            raise ErrorKind.UNSUPPORTED.error(
                f"Columns {names[0]!r} and {names[1]!r} count as a pair and have "
                f"{sizes[0]:,} x {sizes[1]:,} values: more than the {MOST_PAIRS:,} that are kept.",
                'Learn without one of them, or without the member "logistic regression on '
                'indicators".',
            )
        one, other = np.divmod(np.arange(sizes[0] * sizes[1]), sizes[1])
        table = of_rows(_rows_of_levels(self.known, {first: one, second: other}))
        return looked_up(self.levels[first] * np.int64(sizes[1]) + self.levels[second], table)

    def _n_levels(self, category: int) -> int:
        return int(self.known.known_[category].n_levels)

    def _level(self, inputs: TableInputs, category: int) -> Tensor:
        known = self.known.known_[category]
        name = self.known.category_names_[category]
        if not isinstance(known, KnownWords):
            return _level_of_number(inputs.number(name), known)
        words = [known.name(level) for level in range(known.n_known)]
        level = inputs.places_of_words(name, words, self._reading[name])
        stand_in = self.known.stand_ins_[category]
        if stand_in is None:
            return level
        is_unknown = np.append(self.known.level_weights_[category] <= 0, True)
        kept = np.where(is_unknown, stand_in, np.arange(known.n_levels))
        return self.graph.constant(kept.astype(np.int64)).take(level)


def dense_rows(row: EncodedRow, view: DenseView) -> Tensor:
    """The rows of a dense view, of shape (n_rows, n_features)."""
    is_raw = view.numbers == "raw"
    parts = []
    if row.numbers is not None and is_raw:
        parts.append(row.numbers.clip(row.known.low_, row.known.high_))
    elif row.numbers is not None:
        parts.append(_bounded_numbers(row.numbers, view))
    n_numbers = len(row.known.number_names_)
    if not is_raw:
        n_numbers += len(view.markers()[0])
    order = list(range(n_numbers))
    places = np.arange(n_numbers, len(view.source_column_))
    sources, seconds = view.source_column_[places], view.second_column_[places]
    for k, source in enumerate(row.known.category_sources_):
        own = places[(sources == source) & (seconds < 0)]
        if len(own):
            parts.append(row.lookup(k, lambda rows, own=own: view.transform(rows)[:, own]))  # type: ignore[misc]
            order += own.tolist()
    every = {(of.kept_[i], of.kept_[j]) for of in row.known.labels_ for i, j in of.pairs_}
    for i, j in sorted(every):
        pair = [row.known.category_sources_[k] for k in (i, j)]
        own = places[(sources == pair[0]) & (seconds == pair[1])]
        if len(own):
            parts.append(row.lookup_pair(i, j, lambda rows, own=own: view.transform(rows)[:, own]))  # type: ignore[misc]
            order += own.tolist()
    return row.graph.side_by_side(parts).columns(np.argsort(order))


def level_odds(row: EncodedRow, odds: LevelOdds) -> list[Tensor]:
    """The log-odds of levels, of shape (n_rows, n_features of a category), a tensor each."""
    found = []
    for k in dict.fromkeys(odds.places_):
        own = [place for place, other in enumerate(odds.places_) if other == k]
        found.append(row.lookup(k, lambda rows, own=own: odds.transform(rows)[:, own]))  # type: ignore[misc]
    return found


def linear_in_indicators(row: EncodedRow, view: SparseView, weights: np.ndarray) -> Tensor:
    """w . x of the rows of a view of indicators, of shape (n_rows,): they are never formed."""
    at = np.append(weights, 0.0)  # -1 stands for no column
    n_categories = len(row.levels)
    total = [
        row.lookup(k, lambda rows, k=k: at[view.columns_[k]][rows.levels[k]][:, None])  # type: ignore[misc]
        for k in range(n_categories)
    ]
    if row.numbers is not None:
        bins = counts_below(row.numbers, view.edges_, or_equal=True)
        ends = np.array([len(edges) + 1 for edges in view.edges_])
        bins = row.graph.op("Where", row.numbers.is_nan(), ends, bins)
        tables = [at[each] for each in view.columns_[n_categories:][: len(ends)]]
        starts = np.cumsum([0] + [len(each) for each in tables])[:-1]
        values = row.graph.constant(np.concatenate(tables)).take(bins + starts)
        total.append(values)
    for columns, (i, j) in zip(
        view.columns_[n_categories + len(view.edges_) :], view.paired_, strict=True
    ):
        own = np.unique(columns[columns >= 0])
        total.append(row.lookup_pair(i, j, _weighted(view, own, weights)))
    return row.graph.op("ReduceSum", row.graph.side_by_side(total), np.array([1]), keepdims=0)


def _weighted(
    view: SparseView, own: np.ndarray, weights: np.ndarray
) -> Callable[[EncodedTable], np.ndarray]:
    """The part of w . x that some columns make up, as a matrix of one column."""
    return lambda rows: (view.transform(rows)[:, own] @ weights[own])[:, None]


def _rows_of_levels(known: TableStatistics, levels: dict[int, np.ndarray]) -> EncodedTable:
    """Rows that have these levels of some categories, and nothing else of note."""
    n_rows = len(next(iter(levels.values())))
    every = [
        levels.get(k, np.zeros(n_rows, np.int64)).astype(np.int32) for k in range(len(known.known_))
    ]
    return EncodedTable(
        n_rows,
        np.zeros((n_rows, len(known.number_names_)), order="F"),
        np.zeros((n_rows, 0)),
        every,
        np.zeros((n_rows, 0)),
        [labels.transform(every, n_rows) for labels in known.labels_],
    )


def _level_of_number(X: Tensor, known: Any) -> Tensor:
    """The level of a number that may be a code: as `KnownCodes.levels`."""
    if not known.n_known:
        return (1.0 - X.is_nan().to(np.float64)).to(np.int64)
    at = known.values_
    found = counts_below(X, [at])
    last = np.int64(known.n_known - 1)
    found = X.graph.op("Min", found, last)
    is_known = X.graph.constant(at).take(found).equals(X)
    level = found.where(is_known, np.int64(known.n_known + 1))
    return X.graph.op("Where", X.is_nan(), np.int64(known.n_known), level)


def _bounded_numbers(X: Tensor, view: DenseView) -> Tensor:
    """Bounded numbers, the typical one where missing, and markers: as the view makes them."""
    numbers = bounded(X, view.bounded_)
    missing = X.is_nan()
    parts = [X.graph.op("Where", missing, view.bounded_.typical_, numbers)]
    marked, share, deviation = view.markers()
    if len(marked):
        parts.append((missing.columns(marked).to(np.float64) - share) / deviation)
    return X.graph.side_by_side(parts)


def bounded(X: Tensor, numbers: BoundedNumbers) -> Tensor:
    """Return the columns as `BoundedNumbers` transforms them; NaN stays."""
    if numbers.how == "quantiles":
        parts = [slice(*numbers.starts_[j : j + 2]) for j in range(len(numbers.starts_) - 1)]
        knots, heights = ([of[own] for own in parts] for of in (numbers.knots_, numbers.heights_))
        found = on_lines(X, knots, heights)
    else:
        found = (X.clip(numbers.low_, numbers.high_) - numbers.centre_) / numbers.spread_
    return (found - numbers.mean_) / numbers.scale_
