"""From a table and its partial labels to balls: the steps that RACH and RACHCV share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from rareclass.hyperball.ball import Ball
from rareclass.hyperball.ball_problem import Points
from rareclass.hyperball.ball_solver import one_class_center
from rareclass.hyperball.parameters import RACHSettings, reach_of
from rareclass.hyperball.pool import RARE, Background, Pool, draw_background, gather, input_spread
from rareclass.hyperball.spaces import InputSpace, Space, kernel_space
from rareclass.kernels.kernels import kernel_width, make_kernel
from rareclass.labels.partial_labels import PartialLabels
from rareclass.rows import ArrayRows, RowSource
from rareclass.rows.equal_rows import equal_rows


class Task(NamedTuple):
    """One ball to fit: the rows that shape it, for a rare category."""

    label: Any
    pool: Pool


class Grouping(NamedTuple):
    """How rare rows are dealt out to balls."""

    n_balls: int | str
    spread: float  # of the other rows, which "auto" compares with
    seed: int  # of k-means

    def deal(self, rare: np.ndarray, take: Callable[[np.ndarray], Any]) -> list[np.ndarray]:
        """The rare rows of each ball; `take` reads rows by their numbers."""
        if self.n_balls == 1 or not len(rare):
            return [rare]
        rng = np.random.RandomState(self.seed)
        return [rare[group] for group in groups_of(take(rare), self.n_balls, self.spread, rng)]


class Survey(NamedTuple):
    """What is known of the table before any ball is fitted."""

    tasks: tuple[Task, ...]
    background: Background  # a sample of what is not known to be rare
    width: float  # of the kernel where it is not given: width="mean"
    grouping: Grouping


def survey(settings: RACHSettings, source: RowSource, labels: PartialLabels) -> Survey:
    """Read the table: draw a background, split the rare rows, filter the unlabelled ones."""
    rng = check_random_state(0 if settings.random_state is None else settings.random_state)
    background = draw_background(source, labels, rng)
    spread = input_spread(background.X, background.weight)
    width = 1.0
    if settings.kernel is not None:
        width = kernel_width("mean", settings.kernel, lambda: _everything(settings, source, labels))
    grouping = Grouping(settings.n_balls, spread, int(rng.randint(2**31 - 1)))
    known = Survey((), background, width, grouping)
    return with_balls(known, settings.n_balls, settings, source, labels)


def with_balls(
    known: Survey,
    n_balls: int | str,
    settings: RACHSettings,
    source: RowSource,
    labels: PartialLabels,
) -> Survey:
    """The same table, so many balls for each category: only the near rows are gathered anew."""
    grouping = known.grouping._replace(n_balls=n_balls)
    tasks = [
        Task(label, _gathered(settings, source, labels, label, group))
        for label in labels.rare
        for group in grouping.deal(labels.rows_of(label), source.take)
    ]
    return known._replace(tasks=tuple(tasks), grouping=grouping)


def make_space(kernel: Any, width: float, pool: Pool, n_landmarks: int) -> tuple[Space, Points]:
    """The space that a ball lives in, and the pool's rows as its points."""
    rare = pool.which(RARE)
    if kernel is None:
        dense = isinstance(pool.X, np.ndarray)
        origin = pool.X[rare].mean(axis=0, dtype=np.float64) if dense else None
        space: Space = InputSpace(origin)
    else:
        space = kernel_space(make_kernel(kernel, width), pool.X, rare, n_landmarks)
    return space, space.points(pool.X)


def transduced(labels: PartialLabels, balls: tuple[Ball, ...]) -> np.ndarray:
    """Labels of all rows: those that were given, and for unlabelled rows by their multipliers.

    A row that several balls claim goes to the one in which it lies deepest.
    """
    code = labels.code.copy()
    unlabelled = labels.code < 0
    code[unlabelled] = np.flatnonzero(labels.classes == labels.majority)[0]
    deepest = np.full(len(code), -np.inf)
    for ball in balls:
        depth = ball.squared_radius - ball.distances[ball.inside]
        found = ball.found
        wins = depth > deepest[found]
        deepest[found[wins]] = depth[wins]
        code[found[wins]] = np.flatnonzero(labels.classes == ball.label)[0]
    return labels.classes[code]


def _gathered(
    settings: RACHSettings, source: RowSource, labels: PartialLabels, label: Any, rare: np.ndarray
) -> Pool:
    reach = reach_of(settings.filter)
    return gather(
        source,
        labels,
        label,
        rare,
        reach,
        settings.max_kept,
        _share_of(settings, labels, rare),
        settings.n_jobs,
    )


def _share_of(settings: RACHSettings, labels: PartialLabels, rare: np.ndarray) -> float:
    """Share of the unlabelled rows that belongs with some of the rare rows.

    The share of all rare rows, given or that among the labelled, is dealt out to the balls as the
    labelled rare rows are.
    """
    all_rare = sum(labels.weight_of(labels.rows_of(label)).sum() for label in labels.rare)
    share = settings.rare_share
    if share is None:
        labelled = sum(labels.weight_of(labels.rows_of(label)).sum() for label in labels.classes)
        share = all_rare / labelled
    return float(share * labels.weight_of(rare).sum() / all_rare)


def _everything(
    settings: RACHSettings, source: RowSource, labels: PartialLabels
) -> tuple[ArrayRows, np.ndarray | None]:
    """All rows that count, and a point near them."""
    present = labels.present()
    index = None if len(present) == source.n_rows else present
    weight = None if labels.weight is None else labels.weight[present]
    first = source.take(present[:1])
    shift = None if source.is_sparse else first[0].astype(np.float64)
    return ArrayRows(source, index, weight, n_jobs=settings.n_jobs), shift


# More groups than this and the rare rows are no groups but scattered.
MOST_GROUPS = 8


def groups_of(
    X_rare: Any, n_balls: int | str, spread: float, random_state: np.random.RandomState
) -> list[np.ndarray]:
    """Positions of the rare rows of each ball.

    "auto": one ball where it is narrower than the spread of the majority, the root mean squared
    distance to its mean, else the fewest k-means groups of which each is; one, if there are no such
    groups up to `MOST_GROUPS`. Cost: a k-means of the rare rows for each number of groups tried.
    """
    whole = [np.arange(X_rare.shape[0])]
    n_distinct = len(equal_rows(X_rare)[0])
    if n_balls != "auto":
        return _k_groups(X_rare, min(int(n_balls), n_distinct), random_state)
    for k in range(1, min(MOST_GROUPS, n_distinct) + 1):
        groups = _k_groups(X_rare, k, random_state)
        if all(_enclosing_radius(X_rare[group]) < spread for group in groups):
            return groups
    return whole


def _k_groups(X: Any, k: int, random_state: np.random.RandomState) -> list[np.ndarray]:
    if k <= 1:
        return [np.arange(X.shape[0])]
    from sklearn.cluster import KMeans

    with threadpool_limits(1):  # a few rows: threads would only get in each other's way
        labels = KMeans(k, n_init=10, random_state=random_state).fit_predict(X)
    groups = [np.flatnonzero(labels == label) for label in range(k)]
    return sorted((group for group in groups if len(group)), key=lambda group: int(group[0]))


def _enclosing_radius(X: Any) -> float:
    """Distance from the one-class centre of some rows to the farthest of them."""
    is_dense = isinstance(X, np.ndarray)
    points = InputSpace(X.mean(axis=0, dtype=np.float64) if is_dense else None).points(X)
    center, _ = one_class_center(points, np.ones(points.n_rows))
    return float(np.sqrt(points.squared_distances(center).max()))
