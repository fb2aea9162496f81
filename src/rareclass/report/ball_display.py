"""Display of a ball around a rare class: the rows around it, and their distances to its centre."""

from typing import Any

import numpy as np

from rareclass.errors import counted
from rareclass.hyperball.description import (
    LABELLED_MAJORITY,
    LABELLED_RARE,
    UNLABELLED_INSIDE,
    UNLABELLED_OUTSIDE,
    BallPicture,
)
from rareclass.report.drawing import AMBER, BLACK, BLUE, GREY, VERMILLION, Axes, Figure, new_figure

# Rows of one kind beyond this are thinned: more only make the same black.
MOST_DRAWN = 20_000
# Rows reach farther than this many radii: the ball would be a speck, so the panels zoom on it.
_FAR = 8.0
_SIZE = (11.0, 5.6)
# A panel that zooms shows this many radii, and so many rows from outside the ball, or fewer where
# these are far away.
_ZOOM, _LEAST_SEEN = 3.0, (25, 5, 0)
_N_BINS = 60
# So many dots in sight are drawn small.
_CROWD = 2_000
# Bars inside the ball lower than this share of the highest would not be seen.
_LOW_BAR = 0.05
# Beside a bar of so many rows single ones are not seen either.
_TALL_BAR = 1_000
_VEIL = (1.0, 1.0, 1.0, 0.85)


_NO_EDGE = {"edgecolors": "none", "linewidths": 0.0}
# In the order of drawing: the fewest rows come last and lie on top.
_LOOKS: dict[str, dict[str, Any]] = {
    UNLABELLED_OUTSIDE: {"marker": ".", "color": GREY, "s": 9.0, "alpha": 0.7, **_NO_EDGE},
    UNLABELLED_INSIDE: {"marker": "o", "color": AMBER, "s": 16.0, "alpha": 0.85, **_NO_EDGE},
    LABELLED_MAJORITY: {"marker": "s", "color": BLUE, "s": 20.0, "edgecolors": "white"},
    LABELLED_RARE: {"marker": "*", "color": VERMILLION, "s": 150.0, "edgecolors": BLACK},
}


def draw_ball(picture: BallPicture) -> Figure:
    """Draw a ball in two panels: a plane through its centre, and the distances to its centre.

    On the left the disc of radius R with the rows of every kind; their numbers stand in the
    legend. On the right a histogram of the distances of the unlabelled rows, with R as a line and
    the labelled rare rows as stars. Where most rows are many radii away both panels zoom on the
    ball and say how many rows they leave out. Of a kind with more than 20,000 rows that many are
    drawn, evenly spaced in row order, and the legend says so; counts and histogram are of all rows.

    `picture` is as `RACH.picture` returns it. The figure is not known to pyplot, so nothing has to
    be closed: call its ``savefig``. Raises `ImportError` without matplotlib.

    Examples
    --------
    >>> picture = BallPicture(
    ...     np.array([[0.1, 0.0], [0.5, 0.4], [3.0, 1.0]]),
    ...     np.array(["labelled rare", "unlabelled, inside", "unlabelled, outside"]),
    ...     radius=1.0,
    ...     distances=np.array([0.7, 3.3]),
    ...     rare_distances=np.array([0.1]),
    ...     axis_names=("first", "second"),
    ...     title="fraud",
    ... )
    >>> len(draw_ball(picture).axes)
    2
    """
    figure = new_figure(_SIZE, "draw_ball")
    plane, histogram = figure.subplots(1, 2)
    _draw_plane(plane, picture)
    _draw_distances(histogram, picture)
    figure.suptitle(picture.title, parse_math=False)
    legend = figure.legend(
        *plane.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
    for handle in legend.legend_handles:
        handle.set_sizes([45.0])  # type: ignore[union-attr]
    return figure


def _draw_plane(axes: Axes, picture: BallPicture) -> None:
    from matplotlib.patches import Circle

    across = np.abs(picture.coordinates).max(axis=1, initial=0.0)
    reach = _reach(across, picture.radius, picture.kinds == UNLABELLED_OUTSIDE)
    n_seen = int((across <= reach).sum())
    _scatter(axes, picture, is_crowd=n_seen > _CROWD)
    disc = Circle((0.0, 0.0), picture.radius, fill=False, linewidth=1.8, color=BLACK, zorder=6)
    axes.add_patch(disc)
    axes.plot(0.0, 0.0, "+", color=BLACK, markersize=10, markeredgewidth=1.5, zorder=7)
    axes.set_aspect("equal", adjustable="box")
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
    axes.set_xlabel(picture.axis_names[0], parse_math=False)
    axes.set_ylabel(picture.axis_names[1], parse_math=False)
    title = f"Rows around the centre (+), disc of R = {picture.radius:.3g}"
    title += _beyond(len(across) - n_seen) + _over_the_disc(picture)
    axes.set_title(title, fontsize=10)


def _scatter(axes: Axes, picture: BallPicture, is_crowd: bool) -> None:
    for layer, (kind, look) in enumerate(_LOOKS.items()):
        places = picture.coordinates[picture.kinds == kind]
        if not len(places):
            continue
        label = f"{kind}: {len(places):,}"
        if len(places) > MOST_DRAWN:
            chosen = np.linspace(0, len(places) - 1, MOST_DRAWN).astype(np.int64)
            places, label = places[chosen], f"{label} ({MOST_DRAWN:,} drawn)"
        if kind == UNLABELLED_OUTSIDE and not is_crowd:
            look = look | {"s": 2.0 * look["s"]}
        options: dict[str, Any] = {"linewidths": 0.7, "zorder": 2 + layer, "label": label} | look
        axes.scatter(places[:, 0], places[:, 1], **options)


def _over_the_disc(picture: BallPicture) -> str:
    """Words for rows outside the ball that lie in front of it or behind it."""
    outside = picture.coordinates[picture.kinds == UNLABELLED_OUTSIDE]
    n_over = int((np.hypot(outside[:, 0], outside[:, 1]) < picture.radius).sum())
    if not n_over:
        return ""
    rows = counted(n_over, "row on the disc is", "rows on the disc are")
    return f"\n({rows} outside the ball in other directions)"


def _draw_distances(axes: Axes, picture: BallPicture) -> None:
    """Draw a histogram of the unlabelled rows' distances, R and the labelled rare rows."""
    radius, distances = picture.radius, picture.distances
    farthest = float(max(distances.max(initial=0.0), picture.rare_distances.max(initial=0.0)))
    everything = np.append(distances, farthest)
    reach = _reach(everything, radius, everything > radius)
    _bars(axes, distances, radius, reach)
    axes.axvline(radius, color=BLACK, linewidth=1.8)
    n_inside = int((distances <= radius).sum())
    words = f"R = {radius:.3g}: {n_inside:,} of {len(distances):,} within"
    offset, side = (6, "left") if radius < 0.55 * reach else (-6, "right")
    axes.annotate(
        words, (radius, 1.0), xycoords=("data", "axes fraction"), xytext=(offset, -14),
        textcoords="offset points", ha=side, backgroundcolor=_VEIL, zorder=8,
    )  # fmt: skip
    axes.plot(
        picture.rare_distances, np.zeros(len(picture.rare_distances)), "*", color=VERMILLION,
        markeredgecolor=BLACK, markersize=12, transform=axes.get_xaxis_transform(),
        clip_on=False, zorder=9,
    )  # fmt: skip
    axes.set_xlim(0.0, reach)
    axes.set_xlabel("distance to the centre (stars: labelled rare rows)")
    axes.set_ylabel("unlabelled rows" + (" (log scale)" if axes.get_yscale() == "log" else ""))
    title = "Distances of the unlabelled rows"
    axes.set_title(title + _beyond(int((distances > reach).sum())), fontsize=10)


def _bars(axes: Axes, distances: np.ndarray, radius: float, reach: float) -> None:
    """Draw a histogram of which one edge is R; few rows beside many get a logarithmic axis."""
    from matplotlib.ticker import MaxNLocator

    edges = _edges(radius, reach)
    counts, _ = np.histogram(distances[distances <= reach], edges)
    inside = edges[1:] <= np.nextafter(radius, np.inf)
    colors = np.where(inside, AMBER, GREY)
    axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=colors, edgecolor="none")
    highest = float(counts.max(initial=0))
    highest_inside = float(counts[inside].max(initial=0))
    if 0.0 < highest_inside < _LOW_BAR * highest or highest > _TALL_BAR:
        axes.set_yscale("log")
        axes.set_ylim(0.6, (2.0 * highest) ** 1.1)
        return
    axes.set_ylim(0.0, 1.2 * max(highest, 1.0))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _edges(radius: float, reach: float) -> np.ndarray:
    """About 60 bins of nearly equal width; one ends at R, so that none is half inside the ball."""
    if not 0.0 < radius < reach:
        return np.linspace(0.0, reach, _N_BINS + 1)
    n_inside = int(np.clip(round(_N_BINS * radius / reach), 1, _N_BINS - 1))
    within = np.linspace(0.0, radius, n_inside + 1)
    within[-1] = np.nextafter(radius, np.inf)  # bins are open to the right: R itself is inside
    return np.concatenate([within, np.linspace(radius, reach, _N_BINS - n_inside + 1)[1:]])


def _reach(sizes: np.ndarray, radius: float, outside: np.ndarray) -> float:
    """Reach of a panel; where most rows are far away it leaves these out."""
    far = float(sizes.max(initial=0.0))
    if far <= _FAR * radius or far == 0.0:
        return (max(far, radius) or 1.0) * 1.08
    # The nearest rows from outside are what the ball must be seen against.
    nearest = np.sort(sizes[outside])
    for n_seen in _LEAST_SEEN:
        reach = max(_ZOOM * radius, 1.05 * float(nearest[:n_seen].max(initial=0.0)))
        if 0.0 < reach < 0.5 * far:
            return reach
    return far * 1.05


def _beyond(n_rows: int) -> str:
    return f"\n({counted(n_rows, 'row is', 'rows are')} farther out)" if n_rows else ""
