"""Description of a ball: features that set its rows apart, and a picture."""

from dataclasses import dataclass
from itertools import combinations
from textwrap import wrap
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from rareclass.errors import ErrorKind
from rareclass.hyperball.ball import Ball
from rareclass.hyperball.pool import MAJORITY, RARE, UNLABELLED, Background
from rareclass.hyperball.problem import InputSpace, Points
from rareclass.labels.spelling import plain
from rareclass.rows.source import stacked

# Quantiles that bound the typical range of the inside and of the outside.
_LOW, _HIGH = 0.05, 0.95
# Features that are described, those whose means differ most.
_MOST_FEATURES = 100
_SHOWN = 10
_WIDTH = 80
# Power iterations for the second axis of a picture, which needs no digits.
_ITERATIONS = 50

LABELLED_RARE = "labelled rare"
LABELLED_MAJORITY = "labelled majority"
UNLABELLED_INSIDE = "unlabelled, inside"
UNLABELLED_OUTSIDE = "unlabelled, outside"


class FittedBalls(Protocol):
    """A fitted `RACH` or `RACHCV`."""

    balls_: tuple[Ball, ...]
    background_: Background
    transduction_: np.ndarray

    def names_of(self, columns: Any) -> list[str]:
        """Return the names of columns."""


class BallOverlap(NamedTuple):
    """Overlap of two balls that meet."""

    first: int  # positions in `balls_`
    second: int
    n_rows: int  # of the two optimisations, and of the background, that lie in both
    share: float  # of the rows of the ball that holds fewer


class BallSummary(NamedTuple):
    """Counts of the rows of one ball, and its radius."""

    ball: int
    name: str
    radius: float
    n_rare: int
    n_inside: int
    n_kept: int
    share_of_others: float
    status: str


@dataclass(frozen=True)
class Description:
    """Result of `RACH.describe`; ``print`` shows the most telling part of it.

    Attributes
    ----------
    summaries, overlaps : tuple of BallSummary, list of BallOverlap
        The balls, and pairs of them that meet.
    table : list of dict
        One for each ball and feature, the most different features of a ball first, at most 100:
        ``ball`` (position in ``balls_``), ``label``, ``feature``, ``center`` (of the ball; with a
        kernel the mean of the inside), ``inside_low`` and ``inside_high`` (middle nine tenths of
        the rows inside, labelled rare ones included), ``outside_low`` and ``outside_high`` (of the
        other rows), ``overlap`` (share of the other rows that lie in the inside's range).
    """

    summaries: tuple[BallSummary, ...]
    table: list[dict[str, Any]]
    overlaps: list[BallOverlap]

    def __str__(self) -> str:
        return "\n".join(line for summary in self.summaries for line in self._lines(summary))

    def _lines(self, summary: BallSummary) -> list[str]:
        ball = summary.ball
        lines = [
            *_wrapped(f"Ball of {summary.name}: radius {summary.radius:.4g}", indent=0),
            *_wrapped(
                f"{summary.n_rare:,} labelled rare rows; {summary.n_inside:,} of "
                f"{summary.n_kept:,} unlabelled rows that are near lie inside; so do "
                f"{summary.share_of_others:.2%} of all other rows."
            ),
            "",
            *_table([row for row in self.table if row["ball"] == ball][:_SHOWN]),
            "",
        ]
        meeting = [pair for pair in self.overlaps if ball in (pair.first, pair.second)]
        for pair in meeting:
            other = pair.second if pair.first == ball else pair.first
            lines += _wrapped(
                f"meets the ball of {self.summaries[other].name}: {pair.n_rows:,} rows in "
                f"both, {pair.share:.0%} of the smaller"
            )
        return [*lines, ""] if meeting else lines


def _table(rows: list[dict[str, Any]]) -> list[str]:
    """Print features as lines: names get the room that figures leave."""
    ranges = [
        [f"{row[f'{side}_low']:.3g} to {row[f'{side}_high']:.3g}" for side in ("inside", "outside")]
        for row in rows
    ]
    wide = max([len(text) for pair in ranges for text in pair], default=0)
    most = max(min(24, _WIDTH - 23 - 2 * wide), 8)
    lines = [f"  {'feature':<{most}} {'centre':>10} {'inside':>{wide}} {'outside':>{wide}} overlap"]
    for row, (inside, outside) in zip(rows, ranges, strict=True):
        name = row["feature"]
        name = name if len(name) <= most else name[: most - 1] + "…"
        lines.append(
            f"  {name:<{most}} {row['center']:>10.3g} {inside:>{wide}} {outside:>{wide}} "
            f"{row['overlap']:>7.0%}"
        )
    return lines


def _wrapped(text: str, indent: int = 2) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2))


def describe(model: FittedBalls) -> Description:
    """Describe the balls of a fitted model."""
    background = model.background_
    summaries: list[BallSummary] = []
    table: list[dict[str, Any]] = []
    for number, ball in enumerate(model.balls_):
        depth = ball.depth(background.X) if len(background.rows) else np.zeros(0)
        summaries.append(
            BallSummary(
                ball=number,
                name=_ball_name(model, number),
                radius=ball.radius,
                n_rare=int(np.count_nonzero(ball.kinds == RARE)),
                n_inside=len(ball.inside),
                n_kept=int(np.count_nonzero(ball.kinds == UNLABELLED)),
                share_of_others=float(np.mean(depth >= 0.0)) if len(depth) else 0.0,
                status=str(ball.solution.status),
            )
        )
        table += _features(model, number, background.X[np.flatnonzero(depth < 0.0)])
    return Description(tuple(summaries), table, overlaps(model))


def overlaps(model: FittedBalls) -> list[BallOverlap]:
    """Return pairs of balls with rows in both or, without a kernel, whose surfaces meet."""
    balls = model.balls_
    if len(balls) < 2:
        return []
    # The rows in each, among all rows that any ball was fitted to and the background.
    tables: list[Ball | Background] = [*balls, model.background_]
    inside = []
    for ball in balls:
        numbers = [ball.rows[ball.distances <= ball.squared_radius]]
        for other in tables:
            if other is not ball and len(other.rows):
                numbers.append(other.rows[ball.depth(other.X) >= 0.0])
        inside.append(np.unique(np.concatenate(numbers)))
    found = []
    for first, second in combinations(range(len(balls)), 2):
        n_both = len(np.intersect1d(inside[first], inside[second]))
        if n_both or _surfaces_meet(balls[first], balls[second]):
            fewer = max(min(len(inside[first]), len(inside[second])), 1)
            found.append(BallOverlap(first, second, n_both, n_both / fewer))
    return found


def _surfaces_meet(a: Ball, b: Ball) -> bool:
    if not (isinstance(a.space, InputSpace) and isinstance(b.space, InputSpace)):
        return False
    apart = a.space.input_center(a.center) - b.space.input_center(b.center)
    return bool(np.linalg.norm(apart) < a.radius + b.radius)


def _ball_name(model: FittedBalls, number: int) -> str:
    """Return the category of a ball, numbered where the category has several balls."""
    label = model.balls_[number].label
    same = [k for k, other in enumerate(model.balls_) if other.label == label]
    which = f", ball {same.index(number) + 1} of {len(same)}" if len(same) > 1 else ""
    return f"{plain(label)}{which}"


def _features(model: FittedBalls, number: int, outside: Any) -> list[dict[str, Any]]:
    """Compare the rows inside a ball with those outside, feature by feature; see `Description`."""
    ball = model.balls_[number]
    chosen = ball.kinds == RARE
    chosen[ball.inside] = True
    inside = ball.X[np.flatnonzero(chosen)]
    mean_in, _ = _mean_and_spread(inside)
    mean_out, spread = _mean_and_spread(outside if outside.shape[0] else inside)
    # The columns whose means differ most in units of the outside's spread.
    scale = np.where(spread > 0.0, spread, np.where(mean_in == mean_out, 1.0, 1e-12))
    difference = np.abs(mean_in - mean_out) / scale
    columns = np.argsort(-difference, kind="stable")[:_MOST_FEATURES]
    a, b = _dense(inside, columns), _dense(outside, columns)
    low, high = np.quantile(a, [_LOW, _HIGH], axis=0)
    out_low, out_high = np.full((2, len(columns)), np.nan)
    overlap = np.zeros(len(columns))
    if len(b):
        out_low, out_high = np.quantile(b, [_LOW, _HIGH], axis=0)
        overlap = np.mean((b >= low) & (b <= high), axis=0)
    center = a.mean(axis=0)
    if isinstance(ball.space, InputSpace):
        center = ball.space.input_center(ball.center)[columns]
    names, about = model.names_of(columns), {"ball": number, "label": plain(ball.label)}
    figures = {"center": center, "inside_low": low, "inside_high": high}
    figures |= {"outside_low": out_low, "outside_high": out_high, "overlap": overlap}
    return [
        {**about, "feature": names[k], **{name: float(each[k]) for name, each in figures.items()}}
        for k in np.argsort(overlap, kind="stable")
    ]


def _mean_and_spread(X: Any) -> tuple[np.ndarray, np.ndarray]:
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
        return mean, np.sqrt(np.maximum(square - mean**2, 0.0))
    return X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)


def _dense(X: Any, columns: np.ndarray) -> np.ndarray:
    chosen = X[:, columns]
    return chosen.toarray() if sparse.issparse(chosen) else np.asarray(chosen)


class BallPicture(NamedTuple):
    """Rows around a ball, projected to two dimensions.

    Attributes
    ----------
    coordinates, kinds : ndarray of shape (m, 2), ndarray of str of shape (m,)
        Rows projected on a plane through the centre, which is the origin, each "labelled rare",
        "labelled majority", "unlabelled, inside" or "unlabelled, outside". A projection only
        shortens: rows inside the ball stay inside the disc, some from outside fall into it.
    radius : float
        R.
    distances, rare_distances : ndarray
        To the centre, from every unlabelled row that entered the optimisation and from every
        labelled rare row.
    axis_names, title : tuple of two str, str
        Names of the axes of the plane, and of the ball.
    """

    coordinates: np.ndarray
    kinds: np.ndarray
    radius: float
    distances: np.ndarray
    rare_distances: np.ndarray
    axis_names: tuple[str, str]
    title: str


def take_picture(model: FittedBalls, number: int) -> BallPicture:
    """Project the rows around a ball on a plane through its centre.

    For a ball without a kernel among two features the plane is theirs. For others the first axis
    points from the centre to the mean of the other rows, the second along the widest direction of
    these across the first.
    """
    if not 0 <= number < len(model.balls_):
        raise ErrorKind.SETTING.error(f"ball={number!r}: balls are 0 to {len(model.balls_) - 1}.")
    ball, background = model.balls_[number], model.background_
    far = np.flatnonzero(~np.isin(background.rows, ball.rows))
    near_points = ball.space.points(ball.X)
    far_points = ball.space.points(background.X[far])
    p = len(ball.center)
    if isinstance(ball.space, InputSpace) and p <= 2:
        first, second = [*model.names_of(range(p)), ""][:2]
        axes, names = np.eye(2)[:p], (first, second)
    else:
        axes = _widest_plane(ball, near_points, far_points)
        names = "towards the mean of the other rows", "their widest direction across"
    inside = ball.squared_radius - far_points.squared_distances(ball.center) >= 0.0
    inside = np.concatenate([np.isin(np.arange(len(ball.rows)), ball.inside), inside])
    of_far = np.where(background.is_labelled[far], MAJORITY, UNLABELLED)
    code = np.concatenate([ball.kinds, of_far])
    named = LABELLED_MAJORITY, LABELLED_RARE, UNLABELLED_INSIDE
    kinds = np.select((code == MAJORITY, code == RARE, inside), named, UNLABELLED_OUTSIDE)
    distances, origin = np.sqrt(ball.distances), ball.center @ axes
    return BallPicture(
        coordinates=np.concatenate(
            [points.features @ axes - origin for points in (near_points, far_points)]
        ),
        kinds=kinds,
        radius=ball.radius,
        distances=distances[ball.kinds == UNLABELLED],
        rare_distances=distances[ball.kinds == RARE],
        axis_names=names,
        title=_ball_name(model, number),
    )


def _widest_plane(ball: Ball, near: Points, far: Points) -> np.ndarray:
    """Return two orthonormal axes, shape (p, 2)."""
    parts = [near.take(np.flatnonzero(ball.kinds != RARE)).features, far.features]
    others = stacked(parts)
    if not others.shape[0]:
        others = near.features
    mean = np.asarray(others.mean(axis=0)).ravel()
    first = _unit(mean - ball.center)
    second = np.random.RandomState(0).standard_normal(len(ball.center))
    for _ in range(_ITERATIONS):
        second = _unit(second - (second @ first) * first)
        scores = others @ second
        second = others.T @ (scores - scores.mean())
    second = _unit(second - (second @ first) * first)
    second *= 1.0 if second[np.argmax(np.abs(second))] >= 0.0 else -1.0
    return np.column_stack([first, second])


def _unit(vector: np.ndarray) -> np.ndarray:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0.0 else vector
