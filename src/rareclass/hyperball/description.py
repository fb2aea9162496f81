"""Description of a ball: features that set its rows apart, and the rows nearest to its centre."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from rareclass.hyperball.ball import Ball
from rareclass.hyperball.pool import RARE, UNLABELLED, Background
from rareclass.hyperball.problem import InputSpace
from rareclass.labels.two_classes import plain

# Quantiles that bound the typical range of the inside and of the outside.
_LOW, _HIGH = 0.05, 0.95
# Features that are described, those whose means differ most.
_MOST_FEATURES = 100
_SHOWN = 10
_NEAREST = 5
_WIDTH = 80


class FittedBalls(Protocol):
    """A fitted `RACH` or `RACHCV`."""

    @property
    def balls_(self) -> Sequence[Ball]:
        """Fitted balls."""
        ...

    @property
    def background_(self) -> Background:
        """Sample of the other rows."""
        ...

    @property
    def transduction_(self) -> np.ndarray:
        """Label of every row of the training table."""
        ...

    def names_of(self, columns: Iterable[int]) -> list[str]:
        """Return the names of columns."""
        ...


class FeatureRow(NamedTuple):
    """One feature, inside and outside of a ball."""

    ball: int  # position in `balls_`
    label: Any  # the category
    feature: str
    center: float  # of the ball; with a kernel, where rows have no centre, mean of the inside
    inside_low: float  # middle nine tenths of the rows inside, labelled rare ones included
    inside_high: float
    outside_low: float  # middle nine tenths of the other rows
    outside_high: float
    overlap: float  # share of the other rows that lie in the inside's range


class Neighbour(NamedTuple):
    """A row near the centre of a ball: its number, label (None: unlabelled) and distance."""

    ball: int
    row: int
    label: Any
    distance: float


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
    summaries : tuple of BallSummary
    table : list of dict
        One for each ball and feature, the most different features of a ball first: ``ball``,
        ``label``, ``feature``, ``center``, ``inside_low``, ``inside_high``, ``outside_low``,
        ``outside_high``, ``overlap``. At most 100 features a ball.
    nearest_labelled, nearest_unlabelled : list of Neighbour
    overlaps : list of BallOverlap
        Pairs of balls that meet.
    """

    summaries: tuple[BallSummary, ...]
    table: list[dict[str, Any]]
    nearest_labelled: list[Neighbour]
    nearest_unlabelled: list[Neighbour]
    overlaps: list[BallOverlap]

    def __str__(self) -> str:
        return "\n".join(line for summary in self.summaries for line in self._lines(summary))

    def _lines(self, summary: BallSummary) -> list[str]:
        return [
            *_wrapped(f"Ball of {summary.name}: radius {summary.radius:.4g}", indent=0),
            *_wrapped(
                f"{summary.n_rare:,} labelled rare rows; {summary.n_inside:,} of "
                f"{summary.n_kept:,} unlabelled rows that are near lie inside; so do "
                f"{summary.share_of_others:.2%} of all other rows."
            ),
            "",
            *_table([row for row in self.table if row["ball"] == summary.ball][:_SHOWN]),
            "",
            *self._neighbours(summary.ball),
            *self._meeting(summary.ball),
        ]

    def _neighbours(self, ball: int) -> list[str]:
        lines = []
        for name, rows in (
            ("labelled", self.nearest_labelled),
            ("unlabelled", self.nearest_unlabelled),
        ):
            near = [f"{row.row} ({row.distance:.3g})" for row in rows if row.ball == ball]
            if near:
                lines += _wrapped(f"nearest {name} rows (distance): {', '.join(near)}")
        return [*lines, ""]

    def _meeting(self, ball: int) -> list[str]:
        lines = []
        for pair in self.overlaps:
            if ball in (pair.first, pair.second):
                other = pair.second if pair.first == ball else pair.first
                lines += _wrapped(
                    f"meets the ball of {self.summaries[other].name}: {pair.n_rows:,} rows in "
                    f"both, {pair.share:.0%} of the smaller"
                )
        return [*lines, ""] if lines else []


def describe(model: FittedBalls) -> Description:
    """Describe the balls of a fitted model."""
    balls = model.balls_
    table: list[dict[str, Any]] = []
    labelled: list[Neighbour] = []
    unlabelled: list[Neighbour] = []
    for number, ball in enumerate(balls):
        table += [row._asdict() for row in _features(model, number, ball)]
        labelled += _nearest(model, number, ball, ball.kinds != UNLABELLED)
        unlabelled += _nearest(model, number, ball, ball.kinds == UNLABELLED)
    summaries = tuple(_summary(model, number, ball) for number, ball in enumerate(balls))
    return Description(summaries, table, labelled, unlabelled, overlaps(model))


def overlaps(model: FittedBalls) -> list[BallOverlap]:
    """Return pairs of balls with rows in both or, without a kernel, whose surfaces meet."""
    balls = model.balls_
    if len(balls) < 2:
        return []
    inside = [_rows_inside(ball, balls, model.background_) for ball in balls]
    found = []
    for first in range(len(balls)):
        for second in range(first + 1, len(balls)):
            n_both = len(np.intersect1d(inside[first], inside[second]))
            if n_both or _surfaces_meet(balls[first], balls[second]):
                fewer = max(min(len(inside[first]), len(inside[second])), 1)
                found.append(BallOverlap(first, second, n_both, n_both / fewer))
    return found


def ball_name(model: FittedBalls, number: int) -> str:
    """Return the category of a ball, numbered where the category has several balls."""
    label = model.balls_[number].label
    same = [k for k, other in enumerate(model.balls_) if other.label == label]
    which = f", ball {same.index(number) + 1} of {len(same)}" if len(same) > 1 else ""
    return f"{plain(label)}{which}"


def _rows_inside(ball: Ball, balls: Sequence[Ball], background: Background) -> np.ndarray:
    """Return the rows in a ball, among all rows that any ball was fitted to and the background."""
    numbers = [ball.rows[ball.distances <= ball.squared_radius]]
    for other in balls:
        if other is not ball:
            numbers.append(other.rows[ball.depth(other.X) >= 0.0])
    if len(background.rows):
        numbers.append(background.rows[ball.depth(background.X) >= 0.0])
    return np.unique(np.concatenate(numbers))


def _surfaces_meet(a: Ball, b: Ball) -> bool:
    if not (isinstance(a.space, InputSpace) and isinstance(b.space, InputSpace)):
        return False
    apart = a.space.input_center(a.center) - b.space.input_center(b.center)
    return bool(np.linalg.norm(apart) < a.radius + b.radius)


def _summary(model: FittedBalls, number: int, ball: Ball) -> BallSummary:
    background = model.background_
    share = float(np.mean(ball.depth(background.X) >= 0.0)) if len(background.rows) else 0.0
    return BallSummary(
        ball=number,
        name=ball_name(model, number),
        radius=ball.radius,
        n_rare=int(np.count_nonzero(ball.kinds == RARE)),
        n_inside=len(ball.inside),
        n_kept=int(np.count_nonzero(ball.kinds == UNLABELLED)),
        share_of_others=share,
        status=str(ball.status),
    )


def _nearest(model: FittedBalls, number: int, ball: Ball, wanted: np.ndarray) -> list[Neighbour]:
    positions = np.flatnonzero(wanted)
    order = positions[np.argsort(ball.distances[positions], kind="stable")[:_NEAREST]]
    return [
        Neighbour(
            number,
            int(ball.rows[k]),
            None if ball.kinds[k] == UNLABELLED else plain(model.transduction_[ball.rows[k]]),
            float(np.sqrt(ball.distances[k])),
        )
        for k in order
    ]


def _features(model: FittedBalls, number: int, ball: Ball) -> list[FeatureRow]:
    """Describe the features of one ball, those with few other rows in the inside's range first."""
    background = model.background_
    is_inside = ball.kinds == RARE
    is_inside[ball.inside] = True
    inside = ball.X[np.flatnonzero(is_inside)]
    outside = (
        background.X[np.flatnonzero(ball.depth(background.X) < 0.0)]
        if len(background.rows)
        else background.X
    )
    columns = _telling(inside, outside)
    a, b = _dense(inside, columns), _dense(outside, columns)
    low, high = np.quantile(a, [_LOW, _HIGH], axis=0)
    out_low, out_high = (
        np.quantile(b, [_LOW, _HIGH], axis=0) if len(b) else np.full((2, len(columns)), np.nan)
    )
    overlap = np.mean((b >= low) & (b <= high), axis=0) if len(b) else np.zeros(len(columns))
    center = _center_of(ball, a, columns)
    order = np.argsort(overlap, kind="stable")
    names = model.names_of(columns)
    return [
        FeatureRow(
            number,
            plain(ball.label),
            names[k],
            *(float(v[k]) for v in (center, low, high, out_low, out_high, overlap)),
        )
        for k in order
    ]


def _center_of(ball: Ball, inside: np.ndarray, columns: np.ndarray) -> np.ndarray:
    if isinstance(ball.space, InputSpace):
        return ball.space.input_center(ball.center)[columns]
    return inside.mean(axis=0)


def _telling(inside: Any, outside: Any) -> np.ndarray:
    """Return the columns whose means differ most in units of the outside's spread."""
    mean_in, _ = _mean_and_spread(inside)
    mean_out, spread = _mean_and_spread(outside if outside.shape[0] else inside)
    scale = np.where(spread > 0.0, spread, np.where(mean_in == mean_out, 1.0, 1e-12))
    difference = np.abs(mean_in - mean_out) / scale
    return np.argsort(-difference, kind="stable")[:_MOST_FEATURES]


def _mean_and_spread(X: Any) -> tuple[np.ndarray, np.ndarray]:
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
        return mean, np.sqrt(np.maximum(square - mean**2, 0.0))
    return X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)


def _dense(X: Any, columns: np.ndarray) -> np.ndarray:
    chosen = X[:, columns]
    return chosen.toarray() if sparse.issparse(chosen) else np.asarray(chosen)


def _table(rows: list[dict[str, Any]]) -> list[str]:
    """Print features as lines: names get the room that figures leave."""
    ranges = [
        (
            _range(row["inside_low"], row["inside_high"]),
            _range(row["outside_low"], row["outside_high"]),
        )
        for row in rows
    ]
    wide = max([len(text) for pair in ranges for text in pair], default=0)
    name = max(min(24, _WIDTH - 23 - 2 * wide), 8)
    lines = [f"  {'feature':<{name}} {'centre':>10} {'inside':>{wide}} {'outside':>{wide}} overlap"]
    return lines + [
        f"  {_cut(row['feature'], name):<{name}} {row['center']:>10.3g} {inside:>{wide}} "
        f"{outside:>{wide}} {row['overlap']:>7.0%}"
        for row, (inside, outside) in zip(rows, ranges, strict=True)
    ]


def _wrapped(text: str, indent: int = 2) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2))


def _range(low: float, high: float) -> str:
    return f"{low:.3g} to {high:.3g}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
