"""From a few labelled rows of a table to the rows that belong with them, and why."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.hunt import HuntEncoder
from rareclass.findings import warnings_as
from rareclass.hunt.ball_choice import HeldOutF1, HuntSettings, fit_balls
from rareclass.hunt.list_order import ListOrder
from rareclass.hunt.sureness import Places, ShareOfCases, find_places, sureness
from rareclass.hunt.table import HuntLabels, HuntTable
from rareclass.progress import track
from rareclass.rows import LabelledRows, as_source

if TYPE_CHECKING:
    from rareclass.hyperball import RACH

# Where no row was found, or no row could be held out, so many of the nearest are written.
LEAST_WRITTEN = 100
# How sure the first so many rows are is said.
_FIRST_READ = (10, 50, 100)
_BLOCK_ROWS = 50_000


@dataclass(frozen=True)
class FoundBall:
    """One ball."""

    name: str  # its rare value, with a number where the value has several balls
    label: str
    radius: float  # in standardised units
    n_found: int  # unlabelled rows that belong to it
    n_weighed: int  # unlabelled rows near enough to shape it


class Ranking(NamedTuple):
    """Unlabelled rows, those that belong with the cases first, the surest in front (`Places`).

    ``sure`` is the share of cases to be expected among the rows from the first down to this one
    (`sureness`), NaN where no case could be held out. ``relative_depth`` is
    ``1 - distance^2 / R^2``: 1 at the centre, 0 on the sphere, below 0 outside, and alike for balls
    of all sizes. RACH's depth, ``R^2 - distance^2``, is this times ``R^2``. The files of a hunt
    call it ``depth``.
    """

    rows: NDArray[np.int64]  # positions in the table
    ball: NDArray[np.int64]  # the one that each belongs to, or is nearest to
    relative_depth: NDArray[np.float64]
    distance: NDArray[np.float64]  # to the centre of that ball, in standardised units
    found: NDArray[np.bool_]  # whether it belongs to the ball
    sure: NDArray[np.float64]


@dataclass(frozen=True)
class Hunt:
    """What a hunt brought home."""

    model: "RACH"  # fitted
    encoder: HuntEncoder
    balls: tuple[FoundBall, ...]
    ranking: Ranking  # the rows that are written
    order: ListOrder  # of all of them: what new rows are scored by
    # for each ball the rows in it: those found, and the rare ones it was fitted to
    members: tuple[NDArray[np.int64], ...]
    # (n_unlabelled, n_balls): of every unlabelled row to every centre
    distances: NDArray[np.float64]
    estimate: HeldOutF1 | None  # None where there were too few labelled rows to hold any out
    # kernel, C1, C2, width; `by`: how they were come by; `given`: the names that the settings gave
    chosen: dict[str, Any]
    notes: list[str] = field(default_factory=list)  # what the user should know

    @property
    def expected(self) -> dict[int, float]:
        """Share of cases to be expected among the first so many rows; empty where not known."""
        sure = self.ranking.sure
        counts = [k for k in _FIRST_READ if k < len(sure)] + [len(sure)]
        return {k: float(sure[k - 1]) for k in counts if k and sure[k - 1] == sure[k - 1]}

    @property
    def n_found(self) -> int:
        """Unlabelled rows that belong to a ball."""
        return sum(ball.n_found for ball in self.balls)


def hunt(table: HuntTable, settings: HuntSettings) -> Hunt:
    """Find the unlabelled rows that belong with the rare ones.

    Raises `InputError` when the settings cannot be met with these rows.
    """
    notes: list[str] = []
    encoder = HuntEncoder([c for c in table.columns if c.is_used], settings.seed)
    with track("Encoding"), warnings_as(notes):
        X = encoder.fit_transform(table.frame)
    names = tuple(feature.name for feature in encoder.coordinates_)
    points = LabelledRows(as_source(X), table.labels.y, None, names)
    model, estimate, held_out, by = fit_balls(points, table.labels, settings, notes)
    distances = _distances(model, X, table.labels.unlabelled)
    places = find_places(X, table.labels, model, distances, held_out)
    n_cases = None if settings.share is None else settings.share * len(distances)
    share = sureness(len(distances), places.of_cases, n_cases)
    ranking = _rank(model, table.labels.unlabelled, distances, places, share)
    balls = _found_balls(model, table.labels, ranking)
    chosen = {
        "kernel": "none" if model.kernel is None else model.kernel,
        "C1": float(model.C1),
        "C2": float(model.C2),
        "width": None if model.width_ is None else float(model.width_),
        "margin": float(model.margin),
        "radius_slack": model.radius_slack,
        "n_balls": model.n_balls,
        "by": by,
        "given": [name for name in settings.given() if name != "width" or model.kernel],
    }
    top = settings.top
    if top is None and (estimate is None or not ranking.found.any()):
        top = min(max(LEAST_WRITTEN, int(ranking.found.sum())), len(ranking.rows))
        notes.append(
            f"how far the ball should reach is not known, so that the {top:,} nearest rows are "
            "written, whether they are found or not."
        )
    kept = _first(ranking, top)
    members = _members(model, ranking)
    order = ListOrder.of(places, share)
    return Hunt(model, encoder, balls, kept, order, members, distances, estimate, chosen, notes)


def _distances(model: "RACH", X: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the distance of some rows to every centre, a block at a time."""
    parts = [
        np.column_stack(
            [np.sqrt(ball.space.squared_distances(X[block], ball.center)) for ball in model.balls_]
        )
        for block in np.array_split(rows, max(1, len(rows) // _BLOCK_ROWS))
    ]
    return np.concatenate(parts)


def _rank(
    model: "RACH",
    rows: NDArray[np.int64],
    distances: NDArray[np.float64],
    places: Places,
    share: ShareOfCases | None,
) -> Ranking:
    """Return all unlabelled rows in order."""
    squared_radius = np.array([ball.squared_radius for ball in model.balls_])
    # As RACH.predict does: rows beyond those that shaped the ball may lie in it as well.
    ball = (squared_radius - distances**2).argmax(axis=1)
    distance = distances[np.arange(len(rows)), ball]
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = 1.0 - distance**2 / squared_radius[ball]
    # A ball without a radius is its centre.
    depth = np.where(squared_radius[ball] > 0.0, depth, np.where(distance == 0.0, 1.0, -np.inf))
    order = np.lexsort((rows, distance, -depth, places.keys, ~places.found))
    unknown = np.full(len(rows), np.nan)
    sure = unknown if share is None else share(np.arange(1, len(rows) + 1))
    found = places.found
    return Ranking(rows[order], ball[order], depth[order], distance[order], found[order], sure)


def _first(ranking: Ranking, top: int | None) -> Ranking:
    """Return what is written: the rows found, or the `top` first ones."""
    n_kept = int(ranking.found.sum()) if top is None else min(top, len(ranking.rows))
    return Ranking._make(column[:n_kept] for column in ranking)


def _members(model: "RACH", ranking: Ranking) -> tuple[NDArray[np.int64], ...]:
    """Return the rows of each ball."""
    return tuple(
        np.concatenate(
            [ball.rows[ball.kinds > 0], ranking.rows[ranking.found & (ranking.ball == number)]]
        )
        for number, ball in enumerate(model.balls_)
    )


def _found_balls(model: "RACH", labels: HuntLabels, ranking: Ranking) -> tuple[FoundBall, ...]:
    """Name the balls and count what they hold."""
    values = [str(ball.label) for ball in model.balls_]
    unlabelled = np.zeros(len(labels.y), dtype=bool)
    unlabelled[labels.unlabelled] = True
    balls = []
    for k, ball in enumerate(model.balls_):
        name = values[k]
        if values.count(name) > 1:
            name = f"{name} ({values[: k + 1].count(values[k])})"
        n_found = int((ranking.found & (ranking.ball == k)).sum())
        n_weighed = int(unlabelled[ball.rows].sum())
        balls.append(FoundBall(name, values[k], ball.radius, n_found, n_weighed))
    return tuple(balls)
