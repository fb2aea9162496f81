"""RankRC by mini-batches of the majority, for tables and streams that do not fit."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rareclass.decide.threshold import threshold_between
from rareclass.errors import ErrorKind
from rareclass.estimators.estimator import RankScorer, read_features, settings_of
from rareclass.estimators.rankings import KernelRanking
from rareclass.findings import Status, warn
from rareclass.folds.majority_part import draw_class
from rareclass.kernels.expansion import Coordinates, whiten
from rareclass.labels.partial_labels import StreamLabels
from rareclass.labels.two_classes import Labels, read_labels
from rareclass.labels.weights import weight_of_each
from rareclass.machine import all_or_nothing, in_one_thread, track
from rareclass.metrics.scored_classes import ScoredClasses
from rareclass.parameters import check_number, check_whole, drawn_seed
from rareclass.ranking.losses import make_loss
from rareclass.ranking.losses.piecewise_quadratic import PiecewiseQuadratic
from rareclass.ranking.machine import KernelModel
from rareclass.ranking.ranking_data import KernelSettings, RankingData, prepare, width_of_rows
from rareclass.ranking.running_model import MiniBatchState, WeightedRows
from rareclass.ranking.targets import TwoClasses
from rareclass.rows import as_source
from rareclass.rows.protocol import RUN_ROWS

# Majority rows that are kept for the threshold: shares are then known to about half a percent.
CAPACITY = 8192
# Of "auto": Newton steps on up to so many rows need no more passes than mini-batches of them; at
# least so many steps a pass where there are more; rows of a mini-batch in a stream.
_MOST_BATCH, _BATCHES_A_PASS, _STREAM_BATCH = 4096, 16, 2048
# Steps on the first mini-batch of a stream, and the relative gap that ends them.
_MOST_STEPS, _SETTLED = 30, 1e-6


@dataclass(eq=False, repr=False)
class StochasticRankRC(RankScorer, KernelModel):
    r"""`RankRC` that sees the majority in mini-batches and holds nothing of it.

    The objective is problem (13), as in `RankRC`; a mini-batch b of majority rows stands for it by

    .. math::

        F_b(w) = \frac{1}{W_+ W_b} \sum_{i \in P} \sum_{j \in b} w_i w_j \,
        \ell\bigl(f(x_i) - f(x_j)\bigr) + \frac{\lambda}{2} \|w\|^2,

    with all rare rows P in every step, and w in whitened coordinates of the landmarks. Every batch
    adds its second-order expansion at the point of its time to a running quadratic model of the
    objective, and the next point is the minimum of that (`RunningModel`). So gradients are
    averaged, carried to one point along their curvature, in place of iterates. There is no step
    size: the model gives the step, and the next batch, which had no part in it, shortens it where
    it leads up.

    Parameters
    ----------
    kernel, width, lam, eps, loss_params, memory, n_jobs, pos_label, verbose : as in `RankRC`
        In a stream ``width="mean"`` is taken from the rows up to the call after which both classes
        were seen: let there be some hundreds, or give a width. `verbose` is for `fit`.
    landmarks : as in `RankRC`, default="rare"
        Which rows carry the model. In a stream rows are picked from the first mini-batch; with
        "rare" and ("rare", k) rare rows that come later become landmarks, too, while there are
        fewer than k.
    loss : {"smoothed_hinge", "squared_hinge"}, SmoothedHinge or SquaredHinge
        Loss of the score difference of a pair.
    batch_size : int or "auto", default="auto"
        Rows of a mini-batch. More rows take fewer, less noisy steps. In `fit` a mini-batch is runs
        of 1,024 rows from all over the table: "auto" takes a sixteenth of the majority, 4,096 at
        most, and all of it where there are no more than that, which makes Newton steps. In
        `partial_fit` it is the rows of a call, with "auto" 2,048 at a time.
    tol : float, default=1e-2
        Wanted distance of the objective from its minimum, relative to it, as the running average
        of the steps estimates it. The estimate knows nothing of rows that were visited before, and
        so errs on the safe side. Smaller takes more passes.
    max_iter : int, default=20
        Most passes of `fit`.
    random_state : int, RandomState or None
        For the order of mini-batches, the pairs whose curvature is looked at, and landmarks; None
        draws others each time.

    Attributes
    ----------
    n_rare_ : int
        Rare rows held.
    offset_ : float
        Score above which a row is called rare: the best balanced accuracy between the rare rows and
        a uniform sample of up to 8,192 majority rows seen.
    objective_, optimality_ : float
        Estimates: the running model at its minimum, and the distance from it, relative to it.
    n_iter_, status_ : int, str
        Passes begun, 1 in a stream; "converged" when `optimality_` is at most `tol`,
        "reached max_iter", or "learning" in a stream.
    state_ : MiniBatchState
        Everything that moves; enough to go on from.

    Notes
    -----
    Memory of a stream: O(landmarks^2 + m+ landmarks + batch_size landmarks), whatever the number of
    rows: with ``landmarks="rare"`` O(m+^2).

    Time a mini-batch of B rows: O((B + m+) landmarks (features + 1)) for kernel and scores,
    O(512 rank (landmarks + rank)) for the curvature of sampled pairs, O(rank^3 / 3) for the step,
    O(landmarks^3) where a call brings landmarks. Few rows a call cost as much as many.

    Scores are 0 everywhere before both classes were seen. Ctrl-C between two mini-batches: what was
    learned until then stays, and can be used.

    References
    ----------
    .. [1] Tayal, Coleman, Li, "RankRC: Large-Scale Nonlinear Rare Class Ranking", IEEE TKDE
       27(12), 2015: section 7, "Stochastic learning", which proposes first-order steps.
    .. [2] Tran, Cutkosky, "Better SGD using second-order momentum", NeurIPS 2022: averages of
       gradients that are carried along by Hessians.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(2000, weights=[0.95], random_state=0)
    >>> model = StochasticRankRC(lam=0.01, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> stream = StochasticRankRC(lam=0.01, random_state=0)
    >>> for start in range(0, 2000, 200):
    ...     part = slice(start, start + 200)
    ...     stream = stream.partial_fit(X[part], y[part], classes=[0, 1])
    >>> bool(stream.score(X, y) > 0.9)
    True
    """

    _undoes: ClassVar[type[BaseException]] = Exception

    kernel: Any = "gaussian"
    width: Any = "mean"
    lam: float = 2**-8
    landmarks: Any = "rare"
    loss: Any = "smoothed_hinge"
    eps: float = 0.5
    loss_params: dict[str, Any] | None = None
    batch_size: int | str = "auto"
    tol: float = 1e-2
    max_iter: int = 20
    memory: int | str = "2GiB"
    n_jobs: int | None = None
    random_state: Any = None
    pos_label: Any = None
    verbose: bool | str = "auto"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn as `RankRC.fit` does, in passes over the rows; what was learned is lost."""
        loss = self._checked_loss()
        source = read_features(self, X, squares=True)
        labels = read_labels(y, sample_weight, self.pos_label, source.n_rows)
        settings = settings_of(KernelSettings, self)
        width = width_of_rows(settings, source, labels)
        prepared = prepare(RankingData(settings, source, TwoClasses(labels), loss, width))
        problem = prepared.problem(self.lam)
        n_rows, whole = prepared.rows.n_rows, problem.majority_total
        self.classes_, self.pos_label_ = labels.classes, labels.pos_label
        rng = np.random.default_rng(drawn_seed(self.random_state))
        drawn = draw_class(n_rows, CAPACITY, rng).rows
        rare = WeightedRows(source.take(labels.rare), labels.rare_weight)
        sample = WeightedRows(prepared.rows.take(drawn), prepared.rows.weight[drawn])
        state = MiniBatchState.empty(rng, rare)._replace(sample=sample, keys=rng.random(len(drawn)))
        self._keep(state.moved(prepared, problem))
        n_parts = self._n_parts(n_rows)
        with track(f"{len(rare.weight)} rare rows", None, self.verbose) as advance:
            for number in range(int(self.max_iter)):
                self.n_iter_ = number + 1
                for first in rng.permutation(n_parts):
                    part = problem.on_part(n_parts, int(first), keeps_arrays=False)
                    weight = part.majority_total / part.factor
                    # Its kernel stays while the batch is learned.
                    every = np.arange(part.rows.n_rows)
                    batch = part.in_memory(every, part.rows.weight, RUN_ROWS)
                    self._keep(self.state_.after_batch(batch, weight, whole))
                advance(1, f"estimated relative gap {self.optimality_:.1e}")
                if self.optimality_ <= self.tol:
                    break
        self.status_ = str(Status.CONVERGED if self.optimality_ <= self.tol else Status.MAX_ITER)
        if self.status_ != Status.CONVERGED:
            found = f"an estimated relative gap of {self.optimality_:.1e}, wanted {self.tol:.1e}"
            how = f"lam={self.lam:.3g}: {self.status_} after {self.n_iter_} passes with {found}."
            warn(f"{how} Raise max_iter, tol or lam, or scale the features.", ConvergenceWarning)
        _ = self.offset_  # kept now, so that `predict` changes nothing
        return self

    @in_one_thread
    @partial(all_or_nothing, undoes=Exception)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the next rows of a stream: the rows of a call are a mini-batch, or several.

        Parameters are those of `OnlineRanker.partial_fit`; the order of rows should be random. Rare
        rows are held. Those that come later join the loss, and what was learned before counts less,
        in proportion to the rare rows it did not know.
        """
        loss, first = self._checked_loss(), "state_" not in vars(self)
        before = None if first else StreamLabels(self.classes_, self.pos_label_)
        labels = StreamLabels.of_call(classes, self.pos_label, before)
        source = read_features(self, X, reset=first, squares=True)
        is_rare = labels.signs(y, source.n_rows) > 0
        weight = weight_of_each(sample_weight, source.n_rows)
        counts = np.flatnonzero(weight)
        if first:
            self.classes_, self.pos_label_ = labels
            rng = np.random.default_rng(drawn_seed(self.random_state))
            none = WeightedRows(source.take(counts[:0]), np.empty(0))
            self._keep(MiniBatchState.empty(rng, none))
        size = _STREAM_BATCH if self.batch_size == "auto" else int(self.batch_size)
        for start in range(0, len(counts), size):
            part = counts[start : start + size]
            rows, rare = WeightedRows(source.take(part), weight[part]), is_rare[part]
            self._keep(self._after_rows(rows.pick(rare), rows.pick(~rare), loss))
        is_done = self.optimality_ <= self.tol
        self.n_iter_, self.status_ = 1, str(Status.CONVERGED) if is_done else "learning"
        return self

    @cached_property
    def offset_(self) -> float:
        """Score above which a row is called rare; worked out when it is first asked for."""
        state = self.state_
        if not state.n_batches:
            return 0.0
        scored = KernelRanking.of(self)
        rare, majority = (scored.score_samples(rows.X) for rows in (state.rare, state.sample))
        split = ScoredClasses(rare, majority, state.rare.weight, state.sample.weight)
        return threshold_between(split)

    def __sklearn_is_fitted__(self) -> bool:
        return "state_" in vars(self)

    def _after_rows(
        self, more: WeightedRows, majority: WeightedRows, loss: PiecewiseQuadratic
    ) -> MiniBatchState:
        """Return the state once further rows of a stream are learned."""
        state = self.state_
        keys = np.concatenate([state.keys, state.rng.random(len(majority.weight))])
        kept = np.sort(np.argsort(keys)[:CAPACITY])
        sample, rare = state.sample.joined(majority).pick(kept), state.rare.joined(more)
        known = float(state.rare.weight.sum() / max(rare.weight.sum(), np.finfo(float).tiny))
        state = state._replace(
            rare=rare, sample=sample, keys=keys[kept], model=state.model.discounted(known)
        )
        is_first, n_rare = not state.n_batches, len(rare.weight)
        if is_first:  # the majority rows before the first rare one had no pairs
            majority = sample
        if not n_rare or not len(majority.weight):
            return state
        both = rare.joined(majority)
        rows = np.arange(n_rare), np.arange(n_rare, len(both.weight))
        labels = Labels(self.classes_, self.pos_label_, *rows, rare.weight, majority.weight)
        settings, source = settings_of(KernelSettings, self), as_source(both.X)
        width = width_of_rows(settings, source, labels) if is_first else state.width
        picks = is_first or (state.n_spanned < n_rare and self._has_room(state.points.shape[0]))
        coordinates: Coordinates = whiten
        if not picks:
            settings = replace(settings, landmarks=state.points)
            coordinates = lambda *_: state.whitener  # noqa: E731 - the coordinates of before
        prepared = prepare(RankingData(settings, source, TwoClasses(labels), loss, width))
        problem = prepared.problem(self.lam, coordinates=coordinates)
        state = state.moved(prepared, problem) if picks else state
        weight = float(majority.weight.sum())
        if not is_first:
            return state.after_batch(problem, weight)
        for _ in range(_MOST_STEPS):
            state = state.after_batch(problem, weight, whole=0.0)
            if state.relative_gap <= _SETTLED:
                break
        return state

    def _has_room(self, n_landmarks: int) -> bool:
        """Return True where rare rows that come later become landmarks."""
        rule = self.landmarks
        is_counted = isinstance(rule, tuple) and rule[0] == "rare" and n_landmarks < rule[1]
        return is_counted or (isinstance(rule, str) and rule == "rare")

    def _keep(self, state: MiniBatchState) -> None:
        """Assign what was learned."""
        self.__dict__.pop("offset_", None)
        self.state_, w = state, state.w + state.step
        self.landmarks_, self.whitener_, self.width_ = state.points, state.whitener, state.width
        self.dual_coef_ = state.whitener @ w
        self.n_landmarks_, self.n_rare_ = len(self.dual_coef_), len(state.rare.weight)
        self.objective_, self.optimality_ = state.model.value(w), state.relative_gap

    def _n_parts(self, n_rows: int) -> int:
        """Return the number of mini-batches of a pass of so many rows."""
        size = self.batch_size
        if size == "auto":
            size = n_rows if n_rows <= _MOST_BATCH else min(n_rows // _BATCHES_A_PASS, _MOST_BATCH)
        n_runs = -(-n_rows // RUN_ROWS)
        return int(min(max(n_rows // int(size), 1), n_runs))

    def _checked_loss(self) -> PiecewiseQuadratic:
        """Check the parameters; return the loss of a pair."""
        check_number("lam", self.lam)
        check_number("tol", self.tol)
        check_whole("max_iter", self.max_iter)
        if self.batch_size != "auto":
            check_whole("batch_size", self.batch_size, "a whole number above 0 or 'auto'")
        loss = make_loss(self.loss, self.eps, self.loss_params)
        if not isinstance(loss, PiecewiseQuadratic):
            raise ErrorKind.UNSUPPORTED.error(
                f"loss={self.loss!r} is not a plain sum over pairs, which mini-batches stand for.",
                "Use 'smoothed_hinge' or 'squared_hinge', or RankRC, which sees all rows at once.",
                value=self.loss,
            )
        return loss
