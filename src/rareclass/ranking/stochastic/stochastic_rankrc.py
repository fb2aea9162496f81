"""RankRC by mini-batches of the majority, for tables and streams that do not fit."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from rareclass.errors import ErrorKind, InputError
from rareclass.estimators.estimator import RankScorer, read_features
from rareclass.estimators.one_thread import in_one_thread
from rareclass.findings import Status, warn
from rareclass.labels.two_classes import StreamLabels, read_labels, row_weights
from rareclass.machine import parse_bytes, track
from rareclass.parameters import check_number, check_whole
from rareclass.ranking.losses import make_loss
from rareclass.ranking.losses.piecewise_quadratic import PiecewiseQuadratic
from rareclass.ranking.machine import KernelModel
from rareclass.ranking.stochastic.feeding import (
    MOST_BATCH,
    Beginning,
    Feeder,
    Progress,
    Published,
    Reservoir,
    State,
    batch_size_of,
    most_landmarks,
    publish,
    undone_unless_learned,
)
from rareclass.ranking.stochastic.learner import LearnerSettings
from rareclass.ranking.stochastic.weighted_rows import WeightedTable, visits
from rareclass.rows.memory import count_threads

# Rows that are read at a time, at least.
_LEAST_READ = 256
_LEARNING = "learning"


def _of_model(name: str, meaning: str) -> Any:
    """Attribute that is one of the model as it stands, `Published`."""
    return property(lambda self: attrgetter(name)(self._model()), doc=meaning)


@dataclass(eq=False, repr=False)
class StochasticRankRC(RankScorer, KernelModel):
    r"""`RankRC` that sees the majority in mini-batches and holds nothing of it.

    The objective is problem (13), as in `RankRC`; a mini-batch b of majority rows stands for it by

    .. math::

        F_b(w) = \frac{1}{W_+ W_b} \sum_{i \in P} \sum_{j \in b} w_i w_j \,
        \ell\bigl(f(x_i) - f(x_j)\bigr) + \frac{\lambda}{2} \|w\|^2,

    with all rare rows P in every step, and w in whitened coordinates of the landmarks. Every batch
    adds its second-order expansion at the point of its time, weighing :math:`a_b`, to a running
    quadratic model of the objective, and the next point is the minimum of that:

    .. math::

        w_{b+1} = \arg\min_w \; \sum_{t \le b} a_t \bigl( F_t(w_t) + g_t'(w - w_t) +
        \tfrac12 (w - w_t)' H_t (w - w_t) \bigr)

    That averages gradients, carried to one point along their curvature, in place of iterates. There
    is no step size: the model gives the step, and the next batch, which had no part in it, shortens
    it where it leads up.

    Parameters
    ----------
    kernel, width, lam, eps, pos_label : as in `RankRC`
        In a stream ``width="mean"`` is taken from the rows of the first mini-batch.
    landmarks : "rare", ("rare", int), ("rare", int, str) or matrix, default="rare"
        Which rows carry the model. "rare": all rare rows that add a direction. ("rare", k): at most
        k of them, as `RankRC` picks them. A matrix: those points. In a stream the rare rows of the
        first mini-batch are picked from; rare rows that come later all join the loss, and become
        landmarks while there are fewer than k and they lie outside the span of the others.
    loss : {"smoothed_hinge", "squared_hinge"}, SmoothedHinge or SquaredHinge
        Loss of the score difference of a pair.
    loss_params : dict or None, default=None
        Further parameters of a loss given by name.
    batch_size : int or "auto", default="auto"
        Majority rows of a mini-batch. More rows take fewer, less noisy steps. "auto" is a sixteenth
        of them, 4,096 at most; all of them where there are no more than that, which makes Newton
        steps; and 2,048 in a stream.
    shuffle : bool, default=True
        Whether `fit` visits the rows in an order that is drawn anew in each pass. The order of the
        rows themselves is only good where it is random.
    block_rows : int, default=16
        Rows that stay together in that order. Larger reads a file faster; neighbours that are alike
        then make mini-batches noisier. 1 shuffles all of them.
    tol : float, default=1e-2
        Wanted distance of the objective from its minimum, relative to it, as the running average
        of the steps estimates it. The estimate knows nothing of rows that were visited before, and
        so errs on the safe side. Smaller takes more passes.
    max_iter : int, default=20
        Most passes of `fit`.
    memory : str or int, default="2GiB"
        Bytes that landmarks and rare rows may take. A model that would need more is refused, naming
        what would fit; in a stream no landmarks join beyond it.
    n_jobs : int or None, default=None
        Threads. None and -1 mean all cores.
    random_state : int, RandomState or None
        For the order of rows, the pairs whose curvature is looked at, and landmarks.
    verbose : bool or "auto", default="auto"
        Progress of `fit` on standard error; "auto" when that is a terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    pos_label_ : label
        The rare class.
    landmarks_, dual_coef_, whitener_, width_ : as in `RankRC`
    n_landmarks_, n_rare_ : int
        Landmarks, and rare rows held.
    offset_ : float
        Score above which a row is called rare: the best balanced accuracy between the rare rows and
        a uniform sample of up to 8,192 majority rows seen.
    objective_ : float
        Estimate of the objective: the running model at its minimum.
    optimality_ : float
        Estimate of its distance from the minimum, relative to it.
    n_iter_ : int
        Passes begun; 1 in a stream.
    status_ : str
        "converged" when `optimality_` is at most `tol`, "reached max_iter", or "learning" in a
        stream.
    history_ : list of Progress
        (passes, batches, objective, optimality): after each pass of `fit`, and in a stream each
        time the mini-batches have doubled.
    state_ : State
        Everything that moves; enough to go on from.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Raises
    ------
    ValueError
        As `RankRC`; on a loss that is no sum over pairs; when landmarks and rare rows do not fit in
        `memory`.

    Notes
    -----
    Memory: O(landmarks^2 + m+ landmarks + batch_size landmarks), whatever the number of rows: with
    ``landmarks="rare"`` O(m+^2). Rare rows in the coordinates of the landmarks are float32 where
    the rows are. `fit` holds a number for each `block_rows` rows besides, and for a moment some
    bytes a row while it reads the labels.

    Time a mini-batch of B rows: O(B landmarks (features + 1)) for the kernel, O((256 + 512)
    rank (landmarks + rank)) for the curvature of sampled pairs, O(m+ rank) for the rare scores,
    O(rank^3 / 3) for the step.

    Scores are 0 everywhere before both classes were seen. After `partial_fit` the first call of
    `score_samples` takes a step on the rows that wait.

    Ctrl-C between two mini-batches: what was learned until then stays, and can be used.

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
    >>> stream = StochasticRankRC(lam=0.01, batch_size=200, random_state=0)
    >>> for start in range(0, 2000, 100):
    ...     part = slice(start, start + 100)
    ...     stream = stream.partial_fit(X[part], y[part], classes=[0, 1])
    >>> bool(stream.score(X, y) > 0.9)
    True
    """

    kernel: Any = "gaussian"
    width: Any = "mean"
    lam: float = 2**-8
    landmarks: Any = "rare"
    loss: Any = "smoothed_hinge"
    eps: float = 0.5
    loss_params: dict[str, Any] | None = None
    batch_size: int | str = "auto"
    shuffle: bool = True
    block_rows: int = 16
    tol: float = 1e-2
    max_iter: int = 20
    memory: int | str = "2GiB"
    n_jobs: int | None = None
    random_state: Any = None
    pos_label: Any = None
    verbose: bool | str = "auto"

    # -- learning ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn to rank the rare rows first, in passes over the rows; what was learned is lost.

        Parameters
        ----------
        X : array, CSR matrix or table of shape (n_rows, n_features)
            Numbers, all finite; standardise them first.
        y : array-like of shape (n_rows,)
            Two labels of any type. The one with fewer rows is rare, unless ``pos_label`` says.
        sample_weight : array-like of shape (n_rows,) or None
            Weights at or above 0: k counts a row k times in the objective, 0 leaves it out.

        Returns
        -------
        StochasticRankRC
            This estimator.
        """
        with undone_unless_learned(self):
            feeder, table = self._prepare(X, y, sample_weight)
        with self._threads():
            self._visit(feeder, table)
        self.status_ = str(Status.CONVERGED if self.optimality_ <= self.tol else Status.MAX_ITER)
        if self.status_ != Status.CONVERGED:
            warn(
                f"lam={self.lam:.3g}: {self.status_} after {self.n_iter_} passes with an estimated "
                f"relative gap of {self.optimality_:.1e}, wanted {self.tol:.1e}. Raise max_iter, "
                "tol or lam, or check the scale of the features.",
                ConvergenceWarning,
            )
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> tuple[Feeder, WeightedTable]:
        """Everything checked, and the zero function."""
        feeder = self._feeder()
        source = read_features(self, X, squares=True)
        labels = read_labels(y, sample_weight, self.pos_label, source.n_rows)
        n_majority, rare = len(labels.majority), labels.rare
        self.classes_, self.pos_label_ = labels.classes, labels.pos_label
        del labels
        table = WeightedTable(source, row_weights(sample_weight, source.n_rows), rare)
        chooser = check_random_state(self.random_state)
        with self._threads():
            held = table.rows(rare)
            width = feeder.start.width_of(source, table.weight, held.X[:1])
            learned = feeder.start.with_width(width, held, chooser)
            weight = table.majority_weight(float(held.weight.sum()))
            state = State(
                learned, (), (), Reservoir(), _generator(chooser), chooser, weight, n_majority
            )
        self._keep(state)
        size = batch_size_of(self.batch_size, n_majority)
        return feeder._replace(batch_size=size), table

    @in_one_thread
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the next rows of a stream, in their order.

        Majority rows wait until they are a mini-batch; the model that scores knows those that still
        wait. The result is the same however the stream is cut, down to one row a call. Rare rows
        are held. Those that come later join the loss with the mini-batch in which they came, and
        what was learned before counts less, in proportion to the rare rows it did not know. A call
        that fails before it has learned a mini-batch leaves the estimator as it was.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; y may hold one class only. The order should be random.
        classes : sequence of two labels
            Needed in the first call. The rare one is ``pos_label``, by default the one that sorts
            last: the first rows of a stream cannot tell.

        Returns
        -------
        StochasticRankRC
            This estimator.
        """
        first = "state_" not in vars(self)
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        feeder = self._feeder()
        with undone_unless_learned(self):
            source = read_features(self, X, reset=first, squares=True)
            if first:
                labels = StreamLabels.named(classes, self.pos_label)
            else:
                labels = StreamLabels(self.classes_, self.pos_label_)
                labels.check_same(classes)
            is_rare = labels.signs(y, source.n_rows) > 0
            table = WeightedTable(
                source, row_weights(sample_weight, source.n_rows), np.flatnonzero(is_rare)
            )
            if first:
                self.classes_, self.pos_label_ = labels
                self.history_: list[Progress] = []
                chooser = check_random_state(self.random_state)
                state = State(None, (), (), Reservoir(), _generator(chooser), chooser)
            else:
                state = self.state_._replace(whole=np.inf, unseen=np.inf)
            self._keep(state)
            self._read(feeder, table, is_rare)
        return self

    def _read(self, feeder: Feeder, table: WeightedTable, is_rare: np.ndarray) -> None:
        """The rows of a stream that count, in their order."""
        with self._threads():
            for start in range(0, table.source.n_rows, MOST_BATCH):
                stop = min(start + MOST_BATCH, table.source.n_rows)
                part = table.counting(np.arange(start, stop))
                for state in feeder.states(self.state_, table.rows(part), is_rare[part]):
                    self._keep(state)
                    self.n_iter_, self.status_ = 1, _LEARNING
                    n_batches = 0 if state.learned is None else state.learned.n_batches
                    last = self.history_[-1].batches if self.history_ else 0
                    if n_batches >= max(1, 2 * last):
                        self._note(np.nan)
                    if n_batches and self._has_converged():
                        self.status_ = str(Status.CONVERGED)

    def _visit(self, feeder: Feeder, table: WeightedTable) -> None:
        """Passes over the majority until the model has converged."""
        self.history_ = []
        self.status_ = _LEARNING
        n_rows, rng = table.source.n_rows, self.state_.rng
        size = min(MOST_BATCH, max(feeder.batch_size, _LEAST_READ))
        title = f"StochasticRankRC, {len(table.rare)} rare rows"
        with track(title, None, self.verbose) as advance:
            for number in range(1, int(self.max_iter) + 1):
                self.n_iter_, visited = number, 0
                order = rng if self.shuffle else None
                for index in visits(n_rows, size, int(self.block_rows), order):
                    visited += len(index)
                    rows = table.majority(index)
                    is_rare = np.zeros(len(rows), dtype=bool)
                    for state in feeder.states(self.state_, rows, is_rare):
                        self._keep(state)
                    if number > 1 and self._has_converged():
                        break
                if self.state_.n_waiting:
                    self._keep(feeder.absorbed(self.state_))
                line = self._note(number - 1 + visited / n_rows)
                advance(1, f"pass {number}, estimated relative gap {line.optimality:.1e}")
                if self._has_converged():
                    break

    def _has_converged(self) -> bool:
        learned = self.state_.learned
        return learned is not None and learned.relative_gap(self.lam) <= self.tol

    def _keep(self, state: State) -> None:
        self.state_ = state
        self._published: Published | None = None

    def _note(self, passes: float) -> Progress:
        """Add a line to the history."""
        learned = self.state_.learned
        line = Progress(passes, 0, np.nan, np.inf)
        if learned is not None:
            objective, gap = learned.objective(self.lam), learned.relative_gap(self.lam)
            line = Progress(passes, learned.n_batches, objective, gap)
        self.history_.append(line)
        return line

    # -- beginnings --------------------------------------------------------------------------

    def _feeder(self) -> Feeder:
        """Feeder of a stream, of parameters that are checked."""
        check_number("lam", self.lam)
        check_number("tol", self.tol)
        check_whole("max_iter", self.max_iter)
        check_whole("block_rows", self.block_rows)
        if self.batch_size != "auto":
            check_whole("batch_size", self.batch_size, "a whole number above 0 or 'auto'")
        memory = parse_bytes(self.memory)
        most = most_landmarks(self.landmarks, memory)
        loss = make_loss(self.loss, self.eps, self.loss_params)
        if not isinstance(loss, PiecewiseQuadratic):
            raise InputError(
                f"loss={self.loss!r} is not a plain sum over pairs, which mini-batches stand for.",
                "Use 'smoothed_hinge' or 'squared_hinge', or RankRC, which sees all rows at once.",
                ErrorKind.UNSUPPORTED,
                value=self.loss,
            )
        settings = LearnerSettings(loss, float(self.lam), self.n_jobs, most, memory)
        start = Beginning(self.kernel, self.width, self.landmarks, memory)
        return Feeder(settings, start, batch_size_of(self.batch_size, None))

    def _threads(self) -> AbstractContextManager:
        return threadpool_limits(count_threads(self.n_jobs), user_api="blas")

    # -- what was learned --------------------------------------------------------------------

    def _model(self) -> Published:
        """The model as it stands, with the rows that wait."""
        if self._published is None:
            feeder = self._feeder()
            with self._threads():
                self._published = publish(feeder, self.state_, self.n_features_in_)
        return self._published

    landmarks_ = _of_model("landmarks", "Rows whose kernel functions carry the model.")
    dual_coef_ = _of_model("coef", "Coefficients of the landmarks.")
    whitener_ = _of_model("whitener", "Matrix from kernel values to coordinates.")
    width_ = _of_model("width", "Sigma.")
    n_rare_ = _of_model("n_rare", "Rare rows held.")
    offset_ = _of_model("offset", "Score above which a row is called rare.")
    objective_ = _of_model("objective", "Estimate of the objective.")
    optimality_ = _of_model("optimality", "Estimate of its relative distance from the minimum.")

    @property
    def n_landmarks_(self) -> int:
        """Number of landmarks."""
        return len(self.dual_coef_)


def _generator(chooser: np.random.RandomState) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(chooser.randint(np.iinfo(np.int32).max)))
