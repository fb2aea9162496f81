"""How deep labelled rows lie in balls that were fitted without their labels."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rareclass.hyperball.ball import Ball, Start, fit_ball, one_class_start, share_radius
from rareclass.hyperball.candidates import Candidate
from rareclass.hyperball.fitting import Task, make_space
from rareclass.hyperball.points import Points
from rareclass.hyperball.pool import RARE, UNLABELLED, Pool
from rareclass.hyperball.spaces import Space

# Choosing needs fewer digits and fewer landmarks than the model that is kept.
_TOL = 1e-3
_MOST_OUTER, _MOST_INNER = 3, 300
_MOST_LANDMARKS = 100


class Depths(NamedTuple):
    """Of the rows that were held out from one category's balls.

    Attributes
    ----------
    is_rare : ndarray of bool of shape (n,)
    weight : ndarray of shape (n,)
    depths : ndarray of shape (candidates, n)
        ``R^2 - distance^2``, in the ball of the category in which a row lies deepest.
    depths_by_share : ndarray of shape (candidates, n)
        The same if R is where the rare share of the unlabelled rows lies inside.
    """

    is_rare: np.ndarray
    weight: np.ndarray
    depths: np.ndarray
    depths_by_share: np.ndarray


class _Prepared(NamedTuple):
    """A task in one space: what all folds and prices share."""

    task: Task
    space: Space
    points: Points


def held_out_depths(
    tasks: Sequence[Task],
    folds: Sequence[np.ndarray],
    tried: Sequence[Candidate],
    kernel: Any,
    n_landmarks: int,
    advance: Callable[..., None],
) -> Depths:
    """Fit every candidate without the labels of each fold, and measure the fold's rows.

    Parameters
    ----------
    tasks : sequence of Task
        The balls of one category.
    folds : sequence of ndarray of int
        Numbers of the rows that lose their label: they stay, unlabelled.
    tried : sequence of Candidate
    kernel, n_landmarks
        As in `RACH`; at most 100 landmarks are used.
    advance : callable
        Called after each fold and width.
    """
    in_pools, first = np.unique(
        np.concatenate([task.pool.rows for task in tasks]), return_index=True
    )
    weight = np.concatenate([task.pool.weight for task in tasks])[first]
    tested = [np.intersect1d(fold, in_pools) for fold in folds]
    rare = np.concatenate([task.pool.rows[task.pool.which(RARE)] for task in tasks])
    found = [
        (np.full(shape, -np.inf), np.full(shape, -np.inf))
        for shape in ((len(tried), len(rows)) for rows in tested)
    ]
    for chosen, prepared in _by_width(tasks, tried, kernel, n_landmarks):
        width = tried[chosen[0]].width
        for rows, tables in zip(tested, found, strict=True):
            for one in prepared:
                _measure(one, rows, [tried[k] for k in chosen], tables, chosen)
            advance(note="" if width is None else f"width {width:.3g}")
    plain, by_share = (
        _finite(np.concatenate(tables, axis=1)) for tables in zip(*found, strict=True)
    )
    numbers = np.concatenate(tested)
    weight = weight[np.searchsorted(in_pools, numbers)]
    return Depths(np.isin(numbers, rare), weight, plain, by_share)


def unlabelled_inside(
    tasks: Sequence[Task],
    tried: Sequence[Candidate],
    slacks: Sequence[float],
    kernel: Any,
    n_landmarks: int,
) -> np.ndarray:
    """Unlabelled rows that the balls of one category hold, with all labels: shape (candidates,).

    Parameters
    ----------
    tasks, tried, kernel, n_landmarks
        As above.
    slacks : sequence of float
        What each candidate adds to the squared radius.
    """
    found = np.zeros(len(tried), dtype=int)
    for chosen, prepared in _by_width(tasks, tried, kernel, n_landmarks):
        for one in prepared:
            unlabelled = one.task.pool.which(UNLABELLED)
            path = _path(one, one.task.pool, [tried[k] for k in chosen])
            for k, ball in zip(chosen, path, strict=True):
                limit = ball.squared_radius + slacks[k]
                found[k] += np.count_nonzero(ball.distances[unlabelled] <= limit)
    return found


def _by_width(
    tasks: Sequence[Task], tried: Sequence[Candidate], kernel: Any, n_landmarks: int
) -> Iterator[tuple[list[int], list[_Prepared]]]:
    """Positions of the candidates of each width, and the tasks in its space."""
    few = min(n_landmarks, _MOST_LANDMARKS)
    for width in dict.fromkeys(candidate.width for candidate in tried):
        chosen = [k for k, candidate in enumerate(tried) if candidate.width == width]
        yield (
            chosen,
            [_Prepared(task, *make_space(kernel, width or 1.0, task.pool, few)) for task in tasks],
        )


def _finite(depths: np.ndarray) -> np.ndarray:
    """Without a rare label in the rest of a group there was no ball: far outside."""
    lowest = np.min(depths, initial=0.0, where=np.isfinite(depths))
    return np.where(np.isfinite(depths), depths, 2.0 * lowest - 1.0)


def _measure(
    one: _Prepared,
    rows: np.ndarray,
    tried: list[Candidate],
    tables: tuple[np.ndarray, np.ndarray],
    chosen: list[int],
) -> None:
    """Raise the depths of the rows to those in the balls of one task."""
    pool = one.task.pool
    positions = np.flatnonzero(np.isin(pool.rows, rows))
    columns = np.searchsorted(rows, pool.rows[positions])
    pool = _without_labels(pool, positions)
    for k, ball in zip(chosen, _path(one, pool, tried), strict=False):
        for table, squared_radius in zip(
            tables, (ball.squared_radius, _by_share(ball, pool)), strict=True
        ):
            here = squared_radius - ball.distances[positions]
            table[k, columns] = np.maximum(table[k, columns], here)


def _by_share(ball: Ball, pool: Pool) -> float:
    found = share_radius(ball.distances, pool)
    return ball.squared_radius if found is None else found


def _path(one: _Prepared, pool: Pool, tried: list[Candidate]) -> Iterator[Ball]:
    """A ball for each candidate; none without any rare row."""
    if not (pool.kinds == RARE).any():
        return
    start: Start = one_class_start(one.points, pool)
    for candidate in tried:
        ball = fit_ball(
            one.task.label,
            one.space,
            one.points,
            pool,
            candidate.C1,
            candidate.C2,
            start,
            margin=candidate.margin,
            tol=_TOL,
            max_outer=_MOST_OUTER,
            max_inner=_MOST_INNER,
        )
        start = start._replace(multipliers=ball.multipliers)
        yield ball


def _without_labels(pool: Pool, positions: np.ndarray) -> Pool:
    kinds = pool.kinds.copy()
    kinds[positions] = UNLABELLED
    more = float(pool.weight[positions].sum())
    return pool._replace(kinds=kinds, weight_unlabelled=pool.weight_unlabelled + more)
