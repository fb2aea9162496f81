"""Several online learners in one pass, judged by what they scored before learning, and mixed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from rareclass.errors import ErrorKind
from rareclass.estimators.estimator import learned
from rareclass.metrics import average_precision, precision_at_k
from rareclass.online import _mixture_jit
from rareclass.online.cbr import CBR
from rareclass.online.feature_maps import (
    KNOTS,
    MAPS,
    WAVES,
    FourierFeatures,
    Ranks,
    as_csr,
    expanded,
    mapped,
    places,
    width,
)
from rareclass.online.ranker import Learned, OnlineRanker, buffer_offset, dense_rows
from rareclass.online.univariate import OnlineLogistic
from rareclass.parameters import check_choice, check_number, check_whole
from rareclass.rows.memory import Workers, check_jobs, count_threads

# Rows of each class that new rows of the other are judged against.
_PAIRS = 200
# Rows that the members' average precision and precision at k are of.
_LAST = 10_000
# Rows from which on members learn in threads: fewer are learned before threads are started.
_SHARED_ROWS = 500
# What the stack is called beside the members.
_STACK_NAME = "logistic regression on all places"
Member = tuple[str, OnlineRanker]


class ExpertRecord(NamedTuple):
    """Losses, weights and last scores of the experts: the members, and the stack behind them."""

    recent: np.ndarray  # shape (n_members, n_recent): last majority scores of each
    ordered: np.ndarray  # the same, sorted
    kept: np.ndarray  # shape (n_members,): how many came
    pairs: np.ndarray  # shape (2, 200, n_experts): places of the last rows of each class
    last: np.ndarray  # shape (10_000, n_experts): scores of the last labelled rows by each alone
    last_rare: np.ndarray  # shape (10_000,): 1 where those were rare
    seen: np.ndarray  # shape (2,): labelled rows of each class
    lately: np.ndarray  # shape (2,): those that have not faded yet
    weights: np.ndarray  # shape (n_experts,): what each counts, 1 in all
    losses: np.ndarray  # shape (n_experts + 1,): sums over the rare rows, the mixture's last
    auc: np.ndarray  # shape (n_experts + 1,): of the last rare rows, the mixture's last
    n_judged: np.ndarray  # shape (1,): rare rows that there were majority rows to set against


class Stack(NamedTuple):
    """Logistic regression on the members' places: a Gaussian over its intercept and weights."""

    mean: np.ndarray  # shape (1 + n_members,); not used where there is one member
    covariance: np.ndarray  # shape (1 + n_members, 1 + n_members)


class MemberStanding(NamedTuple):
    """Figures of a member of a mixture, or of its stack, over rows scored before learned."""

    # a member's map, and the learner with the parameters that are not its class's own
    name: str
    weight: float
    auc: float  # of the last rare rows, which fade with a half-life of 200
    average_precision: float | None  # of the last rows; None while a class is missing
    precision_at_k: float | None  # the same; None also below k rows
    loss: float  # over all of them


class MixtureState(NamedTuple):
    """Moving state of a mixture."""

    members: tuple[Any, ...]  # their states
    ranks: Ranks
    waves: FourierFeatures
    record: ExpertRecord
    stack: Stack
    rng: np.random.Generator  # where the orders of `fit` come from


@dataclass(eq=False, repr=False)
class OnlineMixture(OnlineRanker):
    r"""Learns with several learners at once and mixes them by how they have ranked so far.

    A stream is seen once: there is no second run to choose settings with. Every member, a learner
    behind a map of the features, scores each row before it learns it. Scores of different learners
    are put on one scale, the **place** of a row,

        ``u = log(rate) / log(1e-6)``, cut to [0, 1],

    where ``rate`` is the share of the member's last majority scores that are higher; above their
    95th percentile that of an exponential tail, which goes on beyond the highest. So the top of the
    list counts by orders of magnitude.

    From the places of all K members a logistic regression learns the class, by Newton steps
    (`OnlineLogistic`) beside the log odds of the rare class lately. It begins as the members' mean,
    and what it learned fades with a half-life of 200 rare rows. This **stack** is one more expert:
    its place is what it adds to those log odds over ``log(1e6)``, cut to [-1/4, 3/4]. It finds out
    which members say something that others do not, where a weighted mean only finds out who is
    best.

    A rare row is set against the last 200 majority rows: expert k, which put it ``d_k = u_k - v_k``
    above one of them, loses the mean of ``((1 - d_k) / 2)^2``. Weights begin as ``p_k``: 1/2 for
    the stack and 1 / (2 K) for a member. They follow (``share`` is the part that is dealt out
    anew)::

        w_k <- (1 - share) w_k exp(-loss_k / 2) / total + share p_k

    and a row's score is ``log(1e6) sum_k w_k u_k`` plus the log odds of the rare class lately, so
    that scores of different times compare: about the log odds of the row, but no probability.

    **What it guarantees**, for any stream at all: over T rare rows the mixture's places lose at
    most the loss of any expert k plus ``2 ln(1 / p_k) + 2 T ln(1 / (1 - share + share p_k))``, so
    at most 2 ln(2 K) more than the best member where nothing is dealt out. And where the stream
    changes and another expert is the best from then on, at most the loss of the best sequence with
    S changes plus ``2 (S + 1) ln(2 K) + 2 S ln(1 / share)`` and ``2 (T - S) ln(1 / (1 - share))``.

    Parameters
    ----------
    members : list of (map, learner) or None, default=None
        The map is "linear", the features as they are; "asinh", of each one; or "ranks", 16
        features for each, between two of which the value lies by its rank among a thousand rows
        before: lines in them are curves; or "fourier", 256 random waves of all features, in which
        lines are curves of all of them. The learner is one of this package's. None means logistic
        regression by Newton steps on the features as they are, and by AdaGrad on the other three;
        with classes balanced on ranks; and CBR with small balanced steps on asinh and on ranks.
        A single member has no stack.
    share : float, default=0.001
        Part of the weights that is dealt out as at the start at every rare row, 0 or above and
        below 1. More follows changes faster and keeps experts that do badly.
    n_recent : int, default=1000
        Majority scores of each member that places are by.
    half_life : float, default=1000.0
        Labelled rows after which the past counts half in the share of the rare class lately.
    n_jobs : int or None, default=None
        Threads over the members, for blocks of many rows; None and -1 are all cores. The result
        does not depend on it.
    n_epochs, random_state, pos_label
        As in `OnlineRanker`; `random_state` draws the waves as well.

    Attributes
    ----------
    weights_ : ndarray of shape (n_members + 1,)
        What each member counts, and behind them the stack; (1,) for a single member.
    offset_ : float
        Score above which a row is called rare: the threshold with the greatest balanced accuracy
        between the last 200 rows of each class.
    state_ : MixtureState
        All that moves; ``state_.record`` has losses and recent AUC of every expert.

    Notes
    -----
    Time of a row: that of the members, O(members log n_recent) for its places, O(members^2) for the
    stack, and O(200 members) more where it is rare. A member whose scores are no longer finite has
    place 0.5 everywhere, and its weight goes. The bound is that of exponential weights on an
    exp-concave loss [1]_, of which the mean over pairs is one; with a fixed share that of [2]_. It
    is about ``sum_k w_k u_k`` with the weights of the moment: served scores of older rows were
    mixed by theirs.

    References
    ----------
    .. [1] Kivinen, Warmuth, "Averaging Expert Predictions", EuroCOLT 1999.
    .. [2] Herbster, Warmuth, "Tracking the Best Expert", Machine Learning 1998.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(3000, weights=[0.95], class_sep=2.0, random_state=0)
    >>> stream = OnlineMixture(random_state=0).start(X.shape[1], classes=[0, 1])
    >>> scores = stream.test_then_train(X, y)  # each row scored before it is learned
    >>> from rareclass.metrics import roc_auc
    >>> bool(roc_auc(y[200:], scores[200:]) > 0.9)
    True
    """

    _is_linear = False

    members: list[Member] | None = None
    share: float = 0.001
    n_recent: int = 1000
    half_life: float = 1000.0
    n_jobs: int | None = None
    n_epochs: int = 1
    random_state: Any = None
    pos_label: Any = None

    weights_ = learned(
        "state_.record.weights", "Weights of the members, and behind them of the stack: 1 in all."
    )

    def _check_parameters(self) -> None:
        check_number("half_life", self.half_life, "a finite number above 0")
        check_whole("n_recent", self.n_recent)
        check_jobs(self.n_jobs)
        if self.share != 0.0:
            check_number("share", self.share, "0 or above and below 1", 0.0, 1.0)
        if self.members is not None and not len(self.members):
            raise ErrorKind.SETTING.error("members=[] has none: None is those of the class.")
        for name, learner in self._members():
            check_choice("members: map", name, MAPS)
            if not isinstance(learner, OnlineRanker) or isinstance(learner, OnlineMixture):
                raise ErrorKind.SETTING.error(f"members: {learner!r} is not an online learner.")
            learner._check()

    def _members(self) -> tuple[Member, ...]:
        return default_members() if self.members is None else tuple(self.members)

    def _start(self, n_features: int, rng: np.random.Generator) -> MixtureState:
        members = self._members()
        n = len(members)
        seeds = rng.integers(2**63, size=n)
        states = tuple(
            learner._start(width(name, n_features), np.random.Generator(np.random.PCG64(seed)))
            for (name, learner), seed in zip(members, seeds, strict=True)
        )
        prior = _prior(n)
        record = ExpertRecord(
            recent=np.zeros((n, self.n_recent)),
            ordered=np.zeros((n, self.n_recent)),
            kept=np.zeros(n, np.int64),
            pairs=np.zeros((2, _PAIRS, len(prior))),
            last=np.zeros((_LAST, len(prior))),
            last_rare=np.zeros(_LAST, np.int8),
            seen=np.zeros(2, np.int64),
            lately=np.zeros(2),
            weights=prior,
            losses=np.zeros(len(prior) + 1),
            auc=np.zeros(len(prior) + 1),
            n_judged=np.zeros(1),
        )
        has_waves = any(name == "fourier" for name, _ in members)
        # Before it has learned anything the stack is the mean of the members.
        mean = np.append(0.0, np.full(n, _mixture_jit.UNIT / n))
        stack = Stack(mean, _mixture_jit.STACK_VARIANCE * np.eye(1 + n))
        waves = FourierFeatures.drawn(n_features, WAVES if has_waves else 0, rng)
        return MixtureState(states, Ranks.empty(n_features), waves, record, stack, rng)

    def _learn(self, state: Any, rows: Any, sign: np.ndarray, step: np.ndarray) -> Learned:
        mixed = np.empty(len(rows))
        n_threads = count_threads(self.n_jobs) if len(rows) >= _SHARED_ROWS else 1
        share = partial(Workers().map, n_threads=n_threads)
        start, mix = 0, _nothing
        while start < len(rows):
            part = slice(start, start + state.ranks.lacking)
            given = sign[part], step[part]
            state, scores = self._learn_part(state, rows[part], *given, share, mix)
            mix = partial(self._mix, state, scores, *given, mixed[part])
            start = part.stop
        mix()
        return state, mixed

    def _learn_part(
        self,
        state: MixtureState,
        rows: np.ndarray,
        sign: np.ndarray,
        step: np.ndarray,
        share: Callable[..., Any],
        mix: Callable[[], None],
    ) -> Learned:
        """Let each member learn from rows that are ranked among the same ones."""
        members, n_members = self._members(), len(state.members)
        scores = np.empty((n_members, len(rows)))
        ways = list(dict.fromkeys((name, learner._takes) for name, learner in members))
        views = share(lambda way: mapped(way[0], rows, state.ranks, state.waves, way[1]), ways)
        seen_as = dict(zip(ways, views, strict=True))

        def learn(k: int) -> Any:
            if k == n_members:
                return mix()
            name, learner = members[k]
            seen = seen_as[name, learner._takes]
            moved, scores[k] = learner._learn(state.members[k], seen, sign, step)
            return moved

        # The members that take longest come last in the list, and begin first.
        _, *moved = share(learn, range(n_members, -1, -1))
        ranks = state.ranks.with_rows(rows)
        return state._replace(members=tuple(moved[::-1]), ranks=ranks), scores

    def _mix(
        self, state: MixtureState, scores: np.ndarray, sign: np.ndarray, step: np.ndarray, out: Any
    ) -> None:
        """Put the members' scores of rows together, into `out`, and judge the members by them."""
        keeps = 2.0 ** (-1.0 / float(self.half_life))
        _mixture_jit.mix(
            scores, sign, step, *state.record, *state.stack, _prior(len(scores)),
            float(self.share), keeps, out,
        )  # fmt: skip

    def _scores(self, state: MixtureState, block: Any) -> np.ndarray:
        rows, members = dense_rows(block), self._members()
        scores = np.empty((len(members), len(rows)))
        for k, (name, learner) in enumerate(members):
            seen = mapped(name, rows, state.ranks, state.waves, learner._takes)
            if learner._takes == "sparse":
                seen = as_csr(seen, width(name, rows.shape[1]))
            scores[k] = learner._scores(state.members[k], seen)
        record, mixed = state.record, np.empty(len(rows))
        _mixture_jit.mixed_places(
            scores, record.ordered, record.kept, record.weights, state.stack.mean, mixed
        )
        return _mixture_jit.LARGEST * mixed + _mixture_jit.level(record.seen, record.lately)

    def _coef(self, state: MixtureState) -> np.ndarray:
        raise AttributeError("A mixture has no coef_: weights_ says what each member counts.")

    def _offset(self, state: MixtureState) -> float:
        record = state.record
        mixed = record.pairs @ record.weights * _mixture_jit.LARGEST
        rare, majority = mixed[1, : record.seen[1]], mixed[0, : record.seen[0]]
        level = _mixture_jit.level(record.seen, record.lately)
        return buffer_offset(rare, majority) + float(level)

    def _grown(self, state: MixtureState, n_features: int) -> MixtureState:
        members = tuple(
            learner._grown(moving, width(name, n_features)) if name != "fourier" else moving
            for (name, learner), moving in zip(self._members(), state.members, strict=True)
        )
        ranks, waves = state.ranks.grown(n_features), state.waves.grown(n_features, state.rng)
        return state._replace(members=members, ranks=ranks, waves=waves)

    @property
    def _steps_shrink(self) -> bool:  # type: ignore[override]
        return any(learner._steps_shrink for _, learner in self._members())

    def _reopened(self, state: MixtureState) -> MixtureState:
        # Weights and stack stay: dealt out anew they lose more than they gain
        # (docs/decisions/0039).
        members = tuple(
            learner._reopened(moving)
            for (_, learner), moving in zip(self._members(), state.members, strict=True)
        )
        return state._replace(members=members)

    def _check_state(self, state: MixtureState, n_features: int) -> None:
        for (name, learner), moving in zip(self._members(), state.members, strict=True):
            learner._check_state(moving, width(name, n_features))
        state.ranks.check(n_features)
        record = state.record
        filled = np.arange(self.n_recent) < record.kept[:, None]
        falls = (np.diff(record.ordered) < 0.0) & filled[:, 1:]
        if (record.kept < 0).any() or (record.seen < 0).any() or falls.any():
            raise ValueError("the members are judged by what no stream leaves")

    def standing(self, n_rows: int = _LAST, k: int = 100) -> list[MemberStanding]:
        """Return figures of each member, and behind them of the stack.

        Average precision and precision at k are of the last `n_rows` labelled rows, each by the
        score that the expert alone would have given it before it was learned; of 10,000 at most,
        with k in proportion.
        """
        record = self.state_.record
        if n_rows > _LAST:
            n_rows, k = _LAST, -(-k * _LAST // n_rows)
        seen = int(record.seen.sum())
        slots = np.arange(max(seen - n_rows, 0), seen) % _LAST
        rare, of_rows = record.last_rare[slots] == 1, []
        for scores in record.last[slots].T:
            both = bool(rare.any()) and not rare.all()
            at_top = precision_at_k(rare, scores, k) if both and len(rare) >= k else None
            of_rows.append((average_precision(rare, scores) if both else None, at_top))
        # A representation that is long has line ends.
        names = [f"{' '.join(repr(each).split())} on {name}" for name, each in self._members()]
        names += [_STACK_NAME] if len(record.weights) > len(names) else []
        auc, loss = record.auc[:-1].tolist(), record.losses[:-1].tolist()
        columns = names, record.weights.tolist(), auc, *zip(*of_rows, strict=True), loss
        return list(map(MemberStanding, *columns))

    # -- reasons -----------------------------------------------------------------------------

    def additive_weights(self) -> np.ndarray:
        """The members' weights by feature and map, as they count in the tail of the list.

        There a member's place grows by ``1 / (mean excess)`` a unit of its score, and places add
        up. Before them stand the weights of the waves; behind them the values that ranks go by.
        """
        state, n = self.state_, self.n_features_in_
        counts = _mixture_jit.counts(state.record.weights, state.stack.mean)
        weights, of_waves = np.zeros((n, 2 + KNOTS)), np.zeros(len(state.waves.phases))
        for k, (name, learner) in enumerate(self._members()):
            ordered = state.record.ordered[k, : state.record.kept[k]]
            excess = _mixture_jit.tail(ordered)[2]
            if excess <= 0.0:
                continue
            coef = counts[k] / excess * learner._coef(state.members[k])
            if name == "fourier":
                of_waves += coef
            else:
                weights[:, places(name)] += coef.reshape(n, -1)
        ordered, ranked = state.ranks.ordered, state.ranks.ranked
        if not len(ranked):
            ordered, ranked = np.zeros((n, ordered.shape[1])), np.zeros(n)
        of_columns = np.column_stack([weights, ranked, ordered])
        return np.concatenate([of_waves, of_columns.ravel()])

    def raises(self, row: np.ndarray, usual: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return how much each feature raises the score of a row at the top; see `OnlineRanker`.

        Waves are of all features at once: what one raises there is what would be lost without it.
        """
        raised, ranks, waves = np.zeros(len(row)), self.state_.ranks, self.state_.waves
        n_waves = len(waves.phases)
        of_waves, of_columns = weights[:n_waves], weights[n_waves:]
        parts = of_columns.reshape(-1, 3 + KNOTS + ranks.ordered.shape[1])
        known = len(parts)
        ranked, ordered = parts[:, 2 + KNOTS].astype(np.int64), parts[:, 3 + KNOTS :]
        ranks = Ranks(np.zeros((0, known)), np.ascontiguousarray(ordered), ranked)
        both = expanded(np.stack([row[:known], usual[:known]]), ranks)
        raised[:known] = (parts[:, : 2 + KNOTS] * (both[0] - both[1])).sum(axis=1)
        if known and n_waves:
            raised[:known] += waves.raises(row[:known], usual[:known], of_waves)
        return raised


def _nothing() -> None:
    """Mix nothing: there is no part before the first one."""


def _prior(n_members: int) -> np.ndarray:
    """Weights at the start: one half for the stack, if there is one; the members share the rest."""
    if n_members == 1:
        return np.ones(1)
    return np.append(np.full(n_members, 0.5 / n_members), 0.5)


@lru_cache
def default_members() -> tuple[Member, ...]:
    """The members of a mixture that names none (docs/decisions/0039)."""
    balanced: dict[str, Any] = {"class_weight": "balanced"}
    small: dict[str, Any] = {"C": 2.0**-10, "covariance": "diagonal", **balanced}
    small["diagonal_step"] = "printed"  # steps so small are alike, and these are quicker
    return (
        ("linear", OnlineLogistic(eta=1.0, steps="newton")),
        *((name, OnlineLogistic(eta=0.3)) for name in ("asinh", "ranks")),
        ("ranks", OnlineLogistic(eta=0.1, **balanced)),
        ("asinh", CBR(**small)),
        ("ranks", CBR(**small)),
        ("fourier", OnlineLogistic(eta=1.0)),
    )
