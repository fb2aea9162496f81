"""Base of the online learners: batches in, one row at a time learned, scores out."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_is_fitted,
    validate_data,
)

from rareclass.decide.threshold import threshold_between
from rareclass.errors import ErrorKind
from rareclass.estimators.estimator import FitsRows, RankScorer, finite_scores, read_features
from rareclass.labels.partial_labels import StreamLabels
from rareclass.labels.two_classes import read_labels
from rareclass.labels.weights import row_weights
from rareclass.machine import all_or_nothing, check_fits, in_one_thread
from rareclass.metrics.scored_classes import split_scores
from rareclass.online.state import SparseBuffers, unflatten, writable
from rareclass.parameters import check_whole, drawn_seed
from rareclass.rows import RowSource, as_source, header

# Rows are converted and learned from in blocks of about this size: Ctrl-C acts between them.
_BLOCK_BYTES = 2**22
_MOST_BLOCK_ROWS = 8192
# Copies of rows from which their memory is looked at before they are made.
_MANY_COPIES = 10_000_000


# The state after some rows, and the score of each row before it was learned.
Learned = tuple[Any, np.ndarray]


class SparseRows(NamedTuple):
    """The non-zeros of consecutive rows: CSR arrays without zeros or duplicates."""

    indptr: np.ndarray  # int64, as indices
    indices: np.ndarray
    data: np.ndarray  # float64


class OnlineRanker(RankScorer, FitsRows, BaseEstimator):
    """A ranker that learns from one row at a time.

    It scores rows by ``f(x) = w . x``, a mixture aside. A subclass says how an empty state looks
    (`_start`) and how rows change it (`_learn`). All that is drawn at random comes from the
    state's generator in row order, so that the model does not depend on how a stream is cut into
    batches.

    Parameters
    ----------
    n_epochs : int, default=1
        Passes that `fit` makes, each in a new random order.
    random_state : int, RandomState or None, default=None
        For the orders of `fit`, and for reservoirs.
    pos_label : label or None, default=None
        The rare class. None means the label with fewer rows in `fit`, and the one that sorts last
        in `partial_fit`.

    Attributes
    ----------
    coef_, offset_ : ndarray of shape (n_features,), float
        w, and the score above which a row is called rare.
    state_ : NamedTuple
        All that moves; a checkpoint holds nothing else.
    classes_, pos_label_ : ndarray of shape (2,), label
        The labels, sorted, and the rare one.

    Raises
    ------
    ValueError
        On a parameter out of range, labels other than the two classes, and missing or infinite
        values (naming row and column).
    """

    _takes: Literal["dense", "sparse"] = "dense"
    _is_linear = True  # the score is ``w . x``, and there is a coef_
    _steps_shrink = False  # whether `reset_steps` changes anything

    n_epochs: int
    random_state: Any
    pos_label: Any
    state_: Any

    # -- what a learner says -----------------------------------------------------------------

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise `ValueError` for the learner's own parameters; see `_check`."""

    @abstractmethod
    def _start(self, n_features: int, rng: np.random.Generator) -> Any:
        """The state before the first row: a NamedTuple of arrays, numbers and `rng`."""

    @abstractmethod
    def _learn(self, state: Any, rows: Any, sign: np.ndarray, step: np.ndarray) -> Learned:
        """Go through the rows in order; returns the new state and each row's score before it.

        ``rows`` is a C-contiguous float64 array or `SparseRows`, as ``_takes`` says. ``sign`` is +1
        for rare rows, -1 for the majority, 0 for rows to be scored only; ``step`` in (0, 1] scales
        the size of a row's steps. Arrays of the state are changed in place.
        """

    def _coef(self, state: Any) -> np.ndarray:
        """The weights of a state, shape (n_features,)."""
        return state.coef

    def _scores(self, state: Any, block: Any) -> np.ndarray:
        """Scores of rows, dense or CSR, by a state."""
        return block @ self._coef(state)

    def _check_state(self, state: Any, n_features: int) -> None:
        """Raise `ValueError` where compiled code would leave the arrays of a state."""
        for part in state:
            if isinstance(part, SparseBuffers):
                part.check_within(n_features)

    def _offset(self, state: Any) -> float:
        """The score above which a row is called rare: of buffered rows where there are some."""
        return buffer_offset(*state.buffers.scores(self._coef(state)))

    def _grown(self, state: Any, n_features: int) -> Any:
        """The state with more features: new ones have weight 0 and the prior's variance."""
        return state._replace(coef=np.pad(state.coef, (0, n_features - len(state.coef))))

    def _reopened(self, state: Any) -> Any:
        """The state with steps as long as at the start, where they shrink."""
        return state

    # -- learning ----------------------------------------------------------------------------

    def _check(self) -> None:
        """Raise `ValueError` naming a parameter out of range, its value and its range."""
        check_whole("n_epochs", self.n_epochs)
        self._check_parameters()

    @in_one_thread
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from all rows, in a random order, ``n_epochs`` times; what was learned is lost.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)
            Numbers, all finite; standardise them first.
        y : array-like of shape (n_rows,)
            Two labels of any type. The one with fewer rows is rare, unless ``pos_label`` says.
        sample_weight : array-like of shape (n_rows,) or None
            Copies that a row stands for: k is learned k times in a row, 0 is left out. A fraction
            is one more time with the step scaled by it.
        """
        self._check()
        source = read_features(self, X)
        labels = read_labels(y, sample_weight, self.pos_label, source.n_rows)
        sign = np.zeros(source.n_rows, np.int8)
        sign[labels.rare], sign[labels.majority] = 1, -1
        weight = row_weights(sample_weight, source.n_rows)
        self._begin(source.n_features, labels.classes, labels.pos_label)
        rng = self.state_.rng
        for _ in range(self.n_epochs):
            self._learn_in_blocks(source, sign, weight, rng.permutation(source.n_rows))
        return self

    @in_one_thread
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the next rows of a stream, in their order.

        The result is the same however the stream is cut, down to one row a call.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; y may hold one class only.
        classes : sequence of two labels
            Needed in the first call. The rare one is ``pos_label``, by default the one that sorts
            last: the first rows of a stream cannot tell.
        """
        self._learn_in_blocks(*self._next_rows(X, y, classes, sample_weight))
        return self

    def start(self, n_features: int, classes: Any) -> Self:
        """Begin with a model that has seen nothing: every score is 0.

        What was learned before is lost. The first table that is learned from says how the columns
        are called. `classes` are those of `partial_fit`. Returns this estimator.
        """
        self.__dict__.pop("feature_names_in_", None)  # of a fit before
        check_whole("n_features", n_features, "a whole number, 1 or above")
        self._check()
        self._begin(int(n_features), *StreamLabels.named(classes, self.pos_label))
        self._open_names: list[str] = []
        return self

    @in_one_thread
    def test_then_train(self, X: Any, y: Any) -> np.ndarray:
        """Score each row with what was learned before it, then learn from it.

        Return the scores, of shape (n_rows,). A row without a label (None, NaN) is scored and not
        learned from. The model must have begun: after `start`, `partial_fit` or `fit`.
        """
        check_is_fitted(self)
        source = self._source(X)
        labels = StreamLabels(self.classes_, self.pos_label_)
        sign = labels.signs(y, source.n_rows, unlabelled=True)
        return self._learn_in_blocks(source, sign, None)

    def add_features(self, n: int) -> Self:
        """Make room for `n` more columns at the end: weight 0, and as open as at the start.

        Rows that are 0 there are scored and learned from as before. The next table that is
        learned from has the columns of before first, and says how the new ones are called.
        """
        check_is_fitted(self)
        check_whole("n", n, "a whole number, 0 or above", 0)
        n = int(n)
        if n == 0:
            return self
        self.state_ = self._grown(self.state_, self.n_features_in_ + n)
        self.n_features_in_ += n
        names = self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self._open_names = list(names)
        return self

    def reset_steps(self) -> Self:
        """Learn quickly again, from a stream that has changed; what was learned stays.

        What steps have shrunk by is as at the start: the variances of `CBR`, the sums of squared
        slopes of `OnlineLogistic` and `AdaOAM`, and those of a mixture's members. Steps of the
        other learners do not shrink: nothing changes.

        Examples
        --------
        When a detector of drift says so, one of River's for instance::

            for X, y in batches:
                scores = model.test_then_train(X, y)
                for is_wrong in (scores > model.offset_) != y:
                    detector.update(is_wrong)
                    if detector.drift_detected:
                        model.reset_steps()
        """
        check_is_fitted(self)
        self.state_ = self._reopened(self.state_)
        return self

    # -- scoring -----------------------------------------------------------------------------

    def score_samples(self, X: Any) -> np.ndarray:
        """Rarity scores ``w . x``, of shape (n_rows,): higher is more like the rare class."""
        check_is_fitted(self)
        source = self._source(X, learns=False)
        blocks = _blocks(source, None, _block_rows(source, source.is_sparse))
        with np.errstate(over="ignore", invalid="ignore"):
            scores = [self._scores(self.state_, block) for _, block in blocks]
            return finite_scores(np.concatenate(scores))

    def take_up(self, flat: dict[str, Any]) -> None:
        """Go on from what `online.state.flatten` took apart, of a model of as many features.

        Raises `ValueError` where it is none of such a learner.
        """
        state = unflatten(self.state_, flat)
        self._check_state(state, self.n_features_in_)
        self.state_ = state

    # -- reasons -----------------------------------------------------------------------------

    def additive_weights(self) -> np.ndarray:
        """Return the weights that `raises` needs, a constant number a feature."""
        return np.ravel(self.coef_).copy()

    def raises(self, row: np.ndarray, usual: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return how much each feature of a row raises its score above that of a usual row.

        `weights` are those of `additive_weights`, maybe of a time with fewer features: newer ones
        raise nothing.
        """
        known = len(weights)
        return np.pad(weights * (row - usual)[:known], (0, len(row) - known))

    def standing(self, n_rows: int, k: int) -> list[Any]:
        """Return how the members of a mixture do, see `OnlineMixture`; a learner alone has none."""
        return []

    @property
    def has_begun(self) -> bool:
        """True once there is a state to score by: after `start`, `partial_fit` or `fit`."""
        return "state_" in vars(self)

    @property
    def coef_(self) -> np.ndarray:
        """Weights w, one a feature; shape (n_features,)."""
        return self._coef(self.state_)

    @property
    def offset_(self) -> float:
        """Score above which a row is called rare."""
        return self._offset(self.state_)

    # -- the way of a row --------------------------------------------------------------------

    @all_or_nothing
    def _next_rows(
        self, X: Any, y: Any, classes: Any, sample_weight: Any
    ) -> tuple[RowSource, np.ndarray, np.ndarray | None]:
        """Return rows, signs and weights to learn from; the first ones begin the model."""
        first = not self.has_begun
        before = None if first else StreamLabels(self.classes_, self.pos_label_)
        labels = StreamLabels.of_call(classes, self.pos_label, before)
        source = self._source(X, first=first)
        if first:
            self._check()
            self._begin(source.n_features, *labels)
        sign = labels.signs(y, source.n_rows, instead=", or use test_then_train, which scores them")
        return source, sign, row_weights(sample_weight, source.n_rows)

    def _source(self, X: Any, first: bool = False, learns: bool = True) -> RowSource:
        """Return the rows of X, their columns checked against those before."""
        source, head = as_source(X, vars(self).get("feature_names_in_")), header(X)
        if first or "_open_names" not in vars(self):
            validate_data(self, head, reset=first, skip_check_array=True)
        else:
            _check_n_features(self, head, reset=False)
            if learns:
                self._settle_names(head)
        return source

    def _settle_names(self, head: Any) -> None:
        _check_feature_names(self, head, reset=True)
        before = self._open_names
        names = list(vars(self).get("feature_names_in_", before))
        if names[: len(before)] != before:
            del self.feature_names_in_
            raise ErrorKind.COLUMN_NAMES.error(
                f"The first columns are {names[: len(before)]}, and not {before} as before. New "
                "columns go at the end."
            )
        del self._open_names

    def _begin(self, n_features: int, classes: np.ndarray, rare: Any) -> None:
        rng = np.random.default_rng(drawn_seed(self.random_state))
        self.__dict__.pop("_open_names", None)
        self.classes_, self.pos_label_ = classes, rare
        self.n_features_in_ = n_features
        self.state_ = self._start(n_features, rng)

    def _learn_on(self, rows: Any, sign: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Learn from rows as `_learn` takes them; returns each row's score before it."""
        self.state_, before = self._learn(writable(self.state_), rows, sign, step)
        return before

    def _learn_in_blocks(
        self,
        source: RowSource,
        sign: np.ndarray,
        weight: np.ndarray | None,
        order: np.ndarray | None = None,
    ) -> np.ndarray:
        """Learn from the rows in `order`; returns each row's score before, in that order."""
        scores = np.empty(source.n_rows)
        done = 0
        takes_sparse = self._takes == "sparse"
        most = _block_rows(source, source.is_sparse and takes_sparse)
        for which, block in _blocks(source, order, most):
            n = block.shape[0]
            copies, step = row_copies(None if weight is None else weight[which], n)
            signs = sign[which] if copies is None else sign[which][copies]
            # Copies are many where weights are large: no more of them at once than rows.
            for start in range(0, len(step), most):
                part = slice(start, start + most)
                rows = block if copies is None else block[copies[part]]
                given = sparse_rows(rows) if takes_sparse else dense_rows(rows)
                before = self._learn_on(given, signs[part], step[part])
            if copies is None:
                scores[done : done + n] = before
            done += n
        return scores


def row_copies(weight: np.ndarray | None, n: int) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the rows to learn from, repeated by weight, and the factor on the steps of each."""
    if weight is None:
        return None, np.ones(n)
    whole = np.floor(weight)
    part = weight - whole
    if (total := float(weight.sum())) > _MANY_COPIES:
        check_fits(
            int(24 * total),
            f"Sample weights repeat rows: {total:,.0f} rows",
            "Divide sample_weight by its mean.",
        )
    times = whole.astype(np.int64) + (part > 0.0)
    copies = np.repeat(np.arange(n), times)
    step = np.ones(len(copies))
    step[(np.cumsum(times) - 1)[part > 0.0]] = part[part > 0.0]
    return copies, step


def _block_rows(source: RowSource, stay_sparse: bool) -> int:
    """Number of rows to convert at a time; sparse rows that become dense count as dense."""
    if stay_sparse:
        return _MOST_BLOCK_ROWS
    return int(np.clip(_BLOCK_BYTES // (8 * max(source.n_features, 1)), 1, _MOST_BLOCK_ROWS))


def _blocks(source: RowSource, order: np.ndarray | None, size: int) -> Iterator[tuple[Any, Any]]:
    """The rows a block at a time, with what picks their labels."""
    for start in range(0, source.n_rows, size):
        which: Any = slice(start, min(start + size, source.n_rows))
        if order is not None:
            which = order[which]
        yield which, source.take(which)


def dense_rows(block: Any) -> np.ndarray:
    """Rows as a float64 array in C order, from a dense array or any sparse one."""
    dense = block.toarray() if sparse.issparse(block) else block
    return np.ascontiguousarray(dense, dtype=np.float64) + 0.0  # -0.0 becomes 0.0: as in CSR


def sparse_rows(block: Any) -> SparseRows:
    """Rows by their non-zeros, from a dense array or any sparse one."""
    if isinstance(block, np.ndarray):
        is_set = block != 0.0
        ends = np.cumsum(np.count_nonzero(is_set, axis=1))
        columns, values = np.nonzero(is_set)[1], block[is_set].astype(np.float64)
        return SparseRows(np.append(0, ends).astype(np.int64), columns.astype(np.int64), values)
    rows = sparse.csr_array(block, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return SparseRows(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)


def buffer_offset(rare: np.ndarray, majority: np.ndarray) -> float:
    """Threshold of greatest balanced accuracy between buffered scores; 0 while a class has none."""
    if not (len(rare) and len(majority)):
        return 0.0
    y = np.repeat([1, 0], [len(rare), len(majority)])
    return threshold_between(split_scores(y, np.concatenate([rare, majority])))
