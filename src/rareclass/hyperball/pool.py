"""The parameters of RACH, and the rows of a table that they give to each ball.

1. Draw a background sample of the rows that are not known to be rare (`survey`).
2. Deal the rare rows of each category out to its balls (`Grouping`).
3. For each ball, keep the unlabelled rows near its cases: Algorithm 1 (`gather`, `near_rows`).
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from rareclass.errors import ErrorKind
from rareclass.hyperball.problem import BallSpace, InputSpace, Points, kernel_space, nearest
from rareclass.hyperball.solver import one_class_center
from rareclass.kernels.kernels import make_kernel, mean_width, needs_width
from rareclass.labels.partial_labels import PartialLabels
from rareclass.labels.spelling import plain
from rareclass.parameters import check_number, check_whole, is_number
from rareclass.rows import ArrayRows, RowSource
from rareclass.rows.source import equal_rows

# Kinds of rows.
RARE, MAJORITY, UNLABELLED = 1, -1, 0
# Quantiles of a feature and shares are known to about one percent from so many.
MOST_ROWS = 5_000
# With more groups than this the rare rows are scattered and not grouped.
MOST_GROUPS = 8
# Where the border of a ball is: at the solved radius, or where the rare share falls inside.
SOLVED, SHARE = "solved", "share"
# Unlabelled rows farther than this many times the threshold are left out: the paper's number.
PAPER_REACH = 3.0


@dataclass(eq=False, repr=False, kw_only=True)
class BallParameters:
    """Parameters that `RACH` and `RACHCV` share; see `RACH`."""

    kernel: Any = None
    n_landmarks: int = 500
    rare_share: float | None = None
    filter: Any = True
    max_kept: int = 20_000
    tol: float = 1e-6
    max_outer: int = 50
    max_inner: int = 5000
    random_state: Any = None
    n_jobs: int | None = None
    pos_label: Any = None


@dataclass(eq=False, repr=False)
class RACHParameters(BallParameters):
    """Parameters of `RACH`: of balls and of the rows that shape them."""

    C1: float = 1.0
    C2: float = 0.0
    _: KW_ONLY
    width: Any = "mean"
    margin: float = 0.0
    radius: Any = SOLVED
    radius_slack: Any = 0.0
    n_balls: Any = 1

    def _checked(self) -> Self:
        """Return this object; refuse a value out of range, naming the parameter."""
        for name in ("C1", "C2", "margin"):
            check_number(name, vars(self)[name], "a finite number at or above 0", ends="[)")
        check_number("tol", self.tol)
        for name in ("max_outer", "max_inner", "n_landmarks", "max_kept"):
            check_whole(name, vars(self)[name])
        if not (isinstance(self.n_balls, str) and self.n_balls == "auto"):
            check_whole("n_balls", self.n_balls, "a whole number above 0, or 'auto'")
        if not (isinstance(self.width, str) and self.width == "mean"):
            check_number("width", self.width, "'mean' or a number above 0")
        if self.rare_share is not None:
            allowed = "the share of unlabelled rows that are rare, above 0 and at most 1, or None"
            check_number("rare_share", self.rare_share, allowed, high=1.0, ends="(]")
        for slack in _values(self.radius_slack):
            allowed = "a number, or a dict with one for each rare label"
            check_number("radius_slack", slack, allowed, low=-np.inf)
        for rule in _values(self.radius):
            if rule not in (SOLVED, SHARE):
                raise ErrorKind.SETTING.error(
                    f"radius={rule!r} must be 'solved' or 'share', or a dict with one of them for "
                    "each rare label."
                )
        reach_of(self.filter)
        return self

    def _check_labels_named(self, rare: tuple) -> None:
        """Refuse a dict by label that names one without a ball."""
        for name in ("radius", "radius_slack"):
            value = vars(self)[name]
            for label in value if isinstance(value, dict) else ():
                if label not in rare:
                    raise ErrorKind.SETTING.error(
                        f"{name}={value!r} names {label!r}, which is not a rare label: "
                        f"{[plain(known) for known in rare]}."
                    )

    def _of_ball(self, label: Any) -> Self:
        """Return the parameters of the balls of one category; as solved where no dict names it."""
        radius, slack = self.radius, self.radius_slack
        return replace(
            self,
            radius=radius.get(label, SOLVED) if isinstance(radius, dict) else radius,
            radius_slack=slack.get(label, 0.0) if isinstance(slack, dict) else slack,
        )


def _values(given: Any) -> list[Any]:
    """Return the values of a dict by label, or the one value given for all labels."""
    return list(given.values()) if isinstance(given, dict) else [given]


def reach_of(value: Any) -> float | None:
    """Return how many times the threshold the filter keeps; None where it is off."""
    if isinstance(value, (bool, np.bool_)):
        return PAPER_REACH if value else None
    if is_number(value):
        return float(value)
    raise ErrorKind.SETTING.error(
        f"filter={value!r} must be True (3 times the threshold, as in the paper), False, or a "
        "number above 0 in place of 3."
    )


class Pool(NamedTuple):
    """The n rare, majority and near unlabelled rows of a ball, in increasing order of numbers."""

    label: Any  # the rare category
    rows: np.ndarray  # their numbers in the table
    kinds: np.ndarray  # int8: RARE, MAJORITY or UNLABELLED
    weight: np.ndarray
    X: Any  # (n, n_features), dense or CSR
    n_unlabelled: int  # before the filter
    weight_unlabelled: float  # of these, together
    n_near: int  # that the filter kept; `rows` may hold only the nearest of them
    n_majority: int  # labelled rows outside the category, in `rows` or not
    rare_share: float  # of the unlabelled rows, taken to be rare (Algorithm 1)

    def which(self, kind: int) -> np.ndarray:
        """Return positions in the pool of the rows of a kind."""
        return np.flatnonzero(self.kinds == kind)

    def share_radius(self, distances: np.ndarray, otherwise: float) -> float:
        """Return the squared radius within which the rare share of the unlabelled rows falls.

        Rows that the filter left out are taken to lie farther away; without any unlabelled row it
        is `otherwise`. `distances` are squared.
        """
        unlabelled = self.which(UNLABELLED)
        if not len(unlabelled):
            return otherwise
        weight, whole = self.weight[unlabelled], self.weight_unlabelled
        return _quantile(distances[unlabelled], weight, self.rare_share, whole)


class Background(NamedTuple):
    """Uniform sample of the unlabelled rows and of rows with the majority's label."""

    rows: np.ndarray  # their numbers, increasing
    X: Any  # (n, n_features), dense or CSR
    is_labelled: np.ndarray
    weight: np.ndarray


class Grouping(NamedTuple):
    """Settings that deal rare rows out to balls."""

    n_balls: int | str
    spread: float  # of the other rows, which "auto" compares with
    seed: int  # of k-means

    def deal(self, rare: np.ndarray, take: Callable[[np.ndarray], Any]) -> list[np.ndarray]:
        """Return the rare rows of each ball; `take` reads rows by their numbers."""
        if self.n_balls == 1 or not len(rare):
            return [rare]
        rng = np.random.RandomState(self.seed)
        return [rare[group] for group in groups_of(take(rare), self.n_balls, self.spread, rng)]


class Survey(NamedTuple):
    """A table as it is known before any ball is fitted."""

    pools: tuple[Pool, ...]  # one for each ball
    background: Background  # a sample of what is not known to be rare
    width: float  # of the kernel where it is not given: width="mean"
    grouping: Grouping


def survey(settings: RACHParameters, source: RowSource, labels: PartialLabels) -> Survey:
    """Read the table: draw a background, split the rare rows, filter the unlabelled ones."""
    rng = check_random_state(0 if settings.random_state is None else settings.random_state)
    rows = labels.not_rare()
    if len(rows) > MOST_ROWS:
        rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
    X, weight = source.take(rows), labels.weight_of(rows)
    background = Background(rows, X, labels.code[rows] >= 0, weight)
    width = 1.0
    if needs_width(settings.kernel):
        present = labels.present()
        of_all = None if labels.weight is None else labels.weight[present]
        index = None if len(present) == source.n_rows else present
        first = InputSpace.around(source.take(present[:1])).origin
        width = mean_width(ArrayRows(source, index, of_all, n_jobs=settings.n_jobs), first)
    spread = spread_of(InputSpace.around(X).points(X), weight)
    grouping = Grouping(settings.n_balls, spread, int(rng.randint(2**31 - 1)))
    known = Survey((), background, width, grouping)
    return with_balls(known, settings.n_balls, settings, source, labels)


def with_balls(
    known: Survey,
    n_balls: int | str,
    settings: RACHParameters,
    source: RowSource,
    labels: PartialLabels,
) -> Survey:
    """Survey with so many balls for each category: only the near rows are gathered anew."""
    grouping = known.grouping._replace(n_balls=n_balls)
    pools = [
        gather(settings, source, labels, label, group)
        for label in labels.rare
        for group in grouping.deal(labels.rows_of(label), source.take)
    ]
    return known._replace(pools=tuple(pools), grouping=grouping)


def make_space(kernel: Any, width: float, pool: Pool, n_landmarks: int) -> tuple[BallSpace, Points]:
    """Return the space of a ball, and the pool's rows as its points."""
    rare = pool.which(RARE)
    space: BallSpace
    if kernel is None:
        space = InputSpace.around(pool.X[rare])
    else:
        space = kernel_space(make_kernel(kernel, width), pool.X, rare, n_landmarks)
    return space, space.points(pool.X)


def gather(
    settings: RACHParameters, source: RowSource, labels: PartialLabels, label: Any, rare: np.ndarray
) -> Pool:
    """Filter the unlabelled rows by their distance to the centre of the rare ones (Algorithm 1).

    `rare` are the rows to enclose: all of the category, or one group of them. Labelled rows of
    other categories are majority rows. Of these and of the rows that the filter keeps the nearest
    `max_kept` stay. At most one pass over the unlabelled rows and one over the labelled majority.
    """
    others, unlabelled = labels.labelled_but(label), labels.unlabelled()
    rare_share = _share_of(settings, labels, rare)
    n_near = n_unlabelled = len(unlabelled)
    weight_unlabelled = float(labels.weight_of(unlabelled).sum())
    X_rare = source.take(rare)
    space = InputSpace.around(X_rare)
    center, _ = one_class_center(space.points(X_rare), labels.weight_of(rare))

    def apart(index: np.ndarray) -> np.ndarray:
        rows = ArrayRows(source, index, n_jobs=settings.n_jobs)
        return np.sqrt(rows.map(lambda block: space.squared_distances(block.X, center)))

    most, kept = settings.max_kept, others
    if len(others) > most:
        kept = others[nearest(apart(others), most)]
    reach = reach_of(settings.filter)
    if reach is not None and len(unlabelled):
        weight = None if labels.weight is None else labels.weight[unlabelled]
        distances = apart(unlabelled)
        near = near_rows(distances, weight, rare_share, reach)
        n_near = len(near)
        unlabelled = unlabelled[near if n_near <= most else near[nearest(distances[near], most)]]
    rows = np.concatenate([rare, kept, unlabelled])
    kinds = np.repeat(
        np.array([RARE, MAJORITY, UNLABELLED], np.int8), [len(rare), len(kept), len(unlabelled)]
    )
    order = np.argsort(rows, kind="stable")
    rows, kinds = rows[order], kinds[order]
    return Pool(
        label=label,
        rows=rows,
        kinds=kinds,
        weight=labels.weight_of(rows),
        X=source.take(rows),
        n_unlabelled=n_unlabelled,
        weight_unlabelled=weight_unlabelled,
        n_near=n_near,
        n_majority=len(others),
        rare_share=rare_share,
    )


def near_rows(
    distances: np.ndarray, weight: np.ndarray | None, rare_share: float, reach: float = PAPER_REACH
) -> np.ndarray:
    """Choose the unlabelled rows that enter the optimisation, by increasing row numbers.

    Rows stay within ``reach`` times the distance within which the share `rare_share`, in (0, 1],
    of the rows falls.

    `distances` are to the centre of the labelled rare rows; a weight of 0 takes a row out. O(n).

    >>> near_rows(np.array([1.0, 2.0, 3.5, 9.0]), None, 0.25).tolist()
    [0, 1]
    """
    here = np.arange(len(distances)) if weight is None else np.flatnonzero(weight > 0.0)
    if not len(here):
        return here
    threshold = _quantile(distances[here], None if weight is None else weight[here], rare_share)
    return here[distances[here] <= reach * threshold]


def _quantile(
    distances: np.ndarray, weight: np.ndarray | None, share: float, whole: float = 0.0
) -> float:
    """Return the smallest distance within which the share of the weight falls."""
    if weight is None:
        rank = min(max(int(np.ceil(share * len(distances) - 1e-9)), 1), len(distances))
        return float(np.partition(distances, rank - 1)[rank - 1])
    order = np.argsort(distances, kind="stable")
    reached = np.cumsum(weight[order])
    wanted = share * max(float(reached[-1]), whole) * (1.0 - 1e-12)
    return float(distances[order[min(int(np.searchsorted(reached, wanted)), len(order) - 1)]])


def _share_of(settings: RACHParameters, labels: PartialLabels, rare: np.ndarray) -> float:
    """Return the share of the unlabelled rows that belongs with some of the rare rows."""
    all_rare = sum(labels.weight_of(labels.rows_of(label)).sum() for label in labels.rare)
    share = settings.rare_share
    if share is None:
        labelled = sum(labels.weight_of(labels.rows_of(label)).sum() for label in labels.classes)
        share = all_rare / labelled
    return float(share * labels.weight_of(rare).sum() / all_rare)


def spread_of(points: Points, weight: np.ndarray) -> float:
    """Return the root mean squared distance of points to their mean; 0 without points."""
    if not points.n_rows:
        return 0.0
    mean = points.combine(weight / weight.sum())
    return float(np.sqrt(np.average(points.squared_distances(mean), weights=weight)))


def groups_of(
    X_rare: Any, n_balls: int | str, spread: float, random_state: np.random.RandomState
) -> list[np.ndarray]:
    """Return positions of the rare rows of each ball.

    "auto": the fewest k-means groups that are each narrower than `spread`, the root mean squared
    distance of the majority to its mean; one, if there are no such groups up to `MOST_GROUPS`.
    """
    n_distinct = len(equal_rows(X_rare)[0])
    if n_balls != "auto":
        return _k_groups(X_rare, min(int(n_balls), n_distinct), random_state)
    for k in range(1, min(MOST_GROUPS, n_distinct) + 1):
        groups = _k_groups(X_rare, k, random_state)
        if all(_enclosing_radius(X_rare[group]) < spread for group in groups):
            return groups
    return [np.arange(X_rare.shape[0])]


def _k_groups(X: Any, k: int, random_state: np.random.RandomState) -> list[np.ndarray]:
    if k <= 1:
        return [np.arange(X.shape[0])]
    from sklearn.cluster import KMeans

    with threadpool_limits(1):  # a few rows: threads would only get in each other's way
        labels = KMeans(k, n_init=10, random_state=random_state).fit_predict(X)
    groups = [np.flatnonzero(labels == label) for label in range(k)]
    return sorted((group for group in groups if len(group)), key=lambda group: int(group[0]))


def _enclosing_radius(X: Any) -> float:
    """Return the distance from the one-class centre of some rows to the farthest of them."""
    points = InputSpace.around(X).points(X)
    center, _ = one_class_center(points, np.ones(points.n_rows))
    return float(np.sqrt(points.squared_distances(center).max()))
