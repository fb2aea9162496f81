"""Displays of a fitted kernel machine: learned feature scales, the path of lam, its landmarks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from rareclass.errors import counted
from rareclass.report.drawing import (
    BAND,
    BLUE,
    GREY,
    INK,
    VERMILLION,
    Display,
    new_figure,
    rare_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
MOST_BARS = 30
"""Bars of feature scales, unless another number is given."""
_LONGEST_NAME = 32
_BAR_HEIGHT, _MARGINS, _WIDTH = 0.26, 1.5, 7.5
MOST_ROWS = 3_000
"""Rows of a map of landmarks; more are thinned."""
_LARGEST_MARK = 160.0
_GRID = 80
_N_CONTOURS = 7


class FeatureScalesDisplay(Display):
    """A bar for the learned scale of every feature in use, see `draw_feature_scales`.

    Parameters
    ----------
    scales : array-like of shape (n_features,)
    names : sequence of str
    most : int, default=30
        Largest number of bars.

    Examples
    --------
    >>> display = FeatureScalesDisplay([0.0, 1.2, 0.7], ["age", "amount", "hour"]).plot()
    >>> display.ax_.get_title()
    '2 of 3 features in use'
    """

    def __init__(self, scales: ArrayLike, names: Sequence[str], *, most: int = MOST_BARS) -> None:
        self.scales, self.names, self.most = np.asarray(scales, dtype=float), list(names), most

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Any = None, most: int = MOST_BARS, ax: Any = None
    ) -> Self:
        """Draw the scales of a model fitted with ``feature_scaling="learned"``.

        Raises `ValueError` as `draw_feature_scales`, `ImportError` without matplotlib.
        """
        return cls(*_read_scales(estimator, feature_names, most), most=most).plot(ax=ax)

    def _draw(self, ax: "Axes", **style: Any) -> None:
        _draw_scales(ax, self.scales, self.names, self.most, None)


def draw_feature_scales(
    model: Any, feature_names: Any = None, most: int = MOST_BARS, title: str | None = None
) -> "Figure":
    """Draw a bar for the learned scale of every feature in use, the largest first.

    A line below the bars gives the number of features that were dropped, and of those in use that
    are not drawn. The dashed line at 1 is the scale of a feature without learning.

    Parameters
    ----------
    model : RankRC or RankRCCV
        Fitted with ``feature_scaling="learned"``.
    feature_names : sequence of str or None
        In the order of the columns; None takes ``feature_names_in_``, or column numbers.
    most : int, default=30
        Largest number of bars.
    title : str or None
        None gives the number of features in use.

    Returns
    -------
    matplotlib.figure.Figure
        Not known to pyplot, so nothing has to be closed: call its ``savefig``.

    Raises
    ------
    ImportError
        Without matplotlib.
    ValueError
        When the model has no learned scales, or there is not a name for each of them.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(feature_scales_=np.array([0.0, 1.2, 0.7]))
    >>> figure = draw_feature_scales(model, ["age", "amount", "hour"])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['amount', 'hour']
    """
    scales, names = _read_scales(model, feature_names, most)
    n_bars = max(min(int(np.count_nonzero(scales)), most), 1)
    figure = new_figure((_WIDTH, _MARGINS + _BAR_HEIGHT * n_bars), "draw_feature_scales")
    _draw_scales(figure.subplots(), scales, names, most, title)
    return figure


def _read_scales(model: Any, feature_names: Any, most: int) -> tuple[Floats, list[str]]:
    """Scales of a model, and a name for each of them."""
    scales = getattr(model, "feature_scales_", None)
    if scales is None:
        raise ValueError("this model has no learned scales: fit it with feature_scaling='learned'.")
    scales = np.asarray(scales)
    if most < 1:
        raise ValueError(f"most={most} must be at least 1.")
    if feature_names is None:
        feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is None:
        feature_names = [f"column {k}" for k in range(len(scales))]
    names = [str(name) for name in feature_names]
    if len(names) != len(scales):
        raise ValueError(f"feature_names has {len(names)} names for {len(scales)} features.")
    longest = _LONGEST_NAME
    return scales, [n if len(n) <= longest else f"{n[: longest - 1]}…" for n in names]


def _draw_scales(
    axes: "Axes", scales: Floats, names: list[str], most: int, title: str | None
) -> None:
    """Draw bars from the top down, each with its value."""
    order = np.argsort(-scales, kind="stable")
    n_used = int(np.count_nonzero(scales))
    drawn = order[: min(n_used, most)]
    shown, places = scales[drawn], np.arange(len(drawn))
    bars = axes.barh(places, shown, color=BLUE, height=0.72)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    axes.bar_label(bars, [f"{scale:.2f}" for scale in shown], padding=3, fontsize=8, bbox=box)
    axes.axvline(1.0, color=GREY, linewidth=1.0, linestyle="--", zorder=0)
    axes.set_yticks(places, [names[k] for k in drawn], parse_math=False)
    axes.set_ylim(max(len(drawn), 1) - 0.4, -0.6)
    axes.set_xlim(0.0, 1.12 * max(float(shown.max(initial=0.0)), 1.0))
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(f"scale inside the kernel\n{_left_out(scales, n_used, len(drawn))}")
    default = f"{n_used:,} of {len(scales):,} features in use"
    axes.set_title(default if title is None else title, fontsize=10, parse_math=False)


def _left_out(scales: Floats, n_used: int, n_drawn: int) -> str:
    """Words for the features without a bar."""
    if (scales == 1.0).all():
        return "no scales ranked held-out rows better: all are 1"
    n_dropped = len(scales) - n_used
    parts = [f"{counted(n_dropped, 'feature')} dropped (scale 0)"]
    if n_drawn < n_used:
        smallest = float(np.sort(scales)[::-1][n_drawn])
        parts.append(f"{n_used - n_drawn:,} more in use, at {smallest:.2f} or below")
    return "; ".join(parts)


class LamPathDisplay(Display):
    """The mean score of the folds against lam, with one standard deviation to each side.

    Parameters
    ----------
    lams : array-like of shape (n_lams,)
    scores : array-like of shape (n_folds, n_lams)
        Score of each fold at each lam; NaN where there is none.
    best_lam : float, optional
        The chosen lam, drawn as a line.
    n_landmarks : array-like of shape (n_lams,), optional
        Landmarks in use at each lam, drawn against an axis of their own.
    scoring : str, default="score"
        Name of the scores.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rareclass import RankRCCV
    >>> X, y = make_classification(200, weights=[0.9], random_state=0)
    >>> model = RankRCCV(lams=[1.0, 0.1, 0.01], cv=3).fit(X, y)
    >>> display = LamPathDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel(), display.scores.shape
    ('lam (from strong to weak regularisation)', (3, 3))
    """

    def __init__(
        self,
        lams: ArrayLike,
        scores: ArrayLike,
        *,
        best_lam: float | None = None,
        n_landmarks: ArrayLike | None = None,
        scoring: str = "score",
    ) -> None:
        self.lams, self.scores = np.asarray(lams, float), np.atleast_2d(np.asarray(scores, float))
        self.best_lam, self.scoring = best_lam, scoring
        self.n_landmarks = None if n_landmarks is None else np.asarray(n_landmarks, float)

    @classmethod
    def from_estimator(cls, search: Any, *, ax: Any = None) -> Self:
        """Draw the path of a fitted `RankRCCV` or `OrdinalRankRCCV`, for the loss that was chosen.

        Raises `ValueError` for an estimator without one, `ImportError` without matplotlib.
        """
        results = getattr(search, "cv_results_", None)
        if results is None or "lam" not in results:
            raise ValueError(
                f"{type(search).__name__} has no path of lam: fit RankRCCV or OrdinalRankRCCV."
            )
        chosen = np.ones(len(results["lam"]), dtype=bool)
        if "loss" in results:
            loss = results["loss"][search.best_index_]
            chosen = np.array([each == loss for each in results["loss"]])
        names = sorted(name for name in results if name.startswith("split"))
        scoring = search.scoring if isinstance(search.scoring, str) else "score"
        landmarks = results.get("mean_n_landmarks")
        sparse = search.get_params().get("penalty") == "l1" and landmarks is not None
        return cls(
            np.asarray(results["lam"])[chosen],
            np.array([np.asarray(results[name])[chosen] for name in names]),
            best_lam=search.best_lam_,
            n_landmarks=np.asarray(landmarks)[chosen] if sparse else None,
            scoring=scoring.replace("roc_auc", "AUC").replace("_", " "),
        ).plot(ax=ax)

    def _draw(self, ax: "Axes", **style: Any) -> None:
        order = np.argsort(-self.lams, kind="stable")
        lams, scores = self.lams[order], self.scores[:, order]
        mean, spread = np.nanmean(scores, axis=0), np.nanstd(scores, axis=0)
        ax.fill_between(lams, mean - spread, mean + spread, color=BLUE, alpha=BAND, linewidth=0)
        n_folds = len(scores)
        ax.plot(lams, mean, color=BLUE, marker="o", markersize=4, label=f"mean of {n_folds} folds")
        if self.best_lam is not None:
            label = f"chosen: {self.best_lam:.3g}"
            ax.axvline(self.best_lam, color=INK, linestyle=":", linewidth=1.3, label=label)
        ax.set_xscale("log", base=2)
        ax.invert_xaxis()
        ax.set_xlabel("lam (from strong to weak regularisation)")
        ax.set_ylabel(f"{self.scoring} on held-out rows")
        if self.n_landmarks is not None:
            beside = ax.twinx()
            beside.plot(lams, self.n_landmarks[order], color=VERMILLION, linestyle="--")
            beside.set_ylabel("landmarks in use (dashed)")
        ax.legend()


class LandmarkMapDisplay(Display):
    """Rows in two dimensions, with the landmarks by the size and sign of their coefficients.

    Triangles that point up raise the scores of rows near them, triangles that point down lower
    them; larger triangles do so more. With two features the map has these as axes, and lines of
    equal score; with more it has the first two principal components of the rows.

    Parameters
    ----------
    rows, landmarks : ndarray of shape (n, 2), (n_landmarks, 2)
    coef : ndarray of shape (n_landmarks,)
    rare : ndarray of bool of shape (n,), optional
        True where a row is rare.
    axis_names : tuple of two str
    surface : tuple of three ndarray, optional
        Places along both axes, and scores on their grid: lines of equal score.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rareclass import RankRC
    >>> X, y = make_classification(200, weights=[0.9], random_state=0)
    >>> display = LandmarkMapDisplay.from_estimator(RankRC().fit(X, y), X, y)
    >>> display.landmarks.shape[1], display.ax_.get_xlabel()
    (2, 'first principal component')
    """

    def __init__(
        self,
        rows: Floats,
        landmarks: Floats,
        coef: Floats,
        *,
        rare: NDArray[np.bool_] | None = None,
        axis_names: tuple[str, str] = ("first", "second"),
        surface: tuple[Floats, Floats, Floats] | None = None,
    ) -> None:
        self.rows, self.landmarks, self.coef, self.rare = rows, landmarks, coef, rare
        self.axis_names, self.surface = axis_names, surface

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: ArrayLike | None = None, *, ax: Any = None
    ) -> Self:
        """Draw the landmarks of a fitted kernel machine, or of a search for one, among rows.

        X are dense rows, such as those of training; of more than 3,000 that many are drawn. y are
        their classes, to mark the rare rows.

        Raises `ValueError` for an estimator without landmarks, sparse rows or landmarks, and fewer
        than two features.
        """
        model = getattr(estimator, "best_estimator_", estimator)
        landmarks, coef = getattr(model, "landmarks_", None), getattr(model, "dual_coef_", None)
        if landmarks is None or coef is None or len(coef) != landmarks.shape[0]:
            raise ValueError(f"{type(estimator).__name__} has no landmarks: fit a kernel machine.")
        if issparse(landmarks) or issparse(X):
            raise ValueError("rows and landmarks must be dense: a map is of few features.")
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] < 2:
            raise ValueError(f"X has the shape {rows.shape}: a map needs two features at least.")
        rare = None
        if y is not None:
            column = np.asarray(y)
            rare = rare_rows(column, len(column), getattr(model, "pos_label_", None))
        if len(rows) > MOST_ROWS:
            kept = _thinned(len(rows), rare)
            rows, rare = rows[kept], None if rare is None else rare[kept]
        landmarks = np.asarray(landmarks, dtype=np.float64)
        plane = _plane(rows, getattr(estimator, "feature_names_in_", None))
        display = cls(
            (rows - plane.origin) @ plane.axes,
            (landmarks - plane.origin) @ plane.axes,
            np.asarray(coef, dtype=np.float64),
            rare=rare,
            axis_names=plane.names,
        )
        if rows.shape[1] == 2:
            display.surface = _surface(model, rows)
        return display.plot(ax=ax)

    def _draw(self, ax: "Axes", **style: Any) -> None:
        if self.surface is not None:
            first, second, scores = self.surface
            ax.contour(first, second, scores, levels=_N_CONTOURS, colors=GREY, linewidths=0.8)
        rare = np.zeros(len(self.rows), bool) if self.rare is None else self.rare
        ax.plot(*self.rows[~rare].T, ".", color=GREY, markersize=3, alpha=0.5, label="rows")
        if rare.any():
            ax.plot(
                *self.rows[rare].T, "o", color=INK, markersize=4, fillstyle="none",
                label="rare rows",
            )  # fmt: skip
        largest = float(np.abs(self.coef).max(initial=0.0)) or 1.0
        for sign, marker, color, label in (
            (1, "^", VERMILLION, "raise scores"),
            (-1, "v", BLUE, "lower scores"),
        ):
            chosen = np.sign(self.coef) == sign
            sizes = _LARGEST_MARK * np.abs(self.coef[chosen]) / largest
            across, up = self.landmarks[chosen].T
            ax.scatter(
                across, up, s=sizes, marker=marker, color=color, alpha=0.75,
                edgecolors="white", linewidths=0.5, zorder=3,
                label=f"{int(chosen.sum()):,} landmarks that {label}",
            )  # fmt: skip
        ax.set_xlabel(self.axis_names[0], parse_math=False)
        ax.set_ylabel(self.axis_names[1], parse_math=False)
        ax.legend()


def _thinned(n_rows: int, rare: NDArray[np.bool_] | None) -> NDArray[np.intp]:
    """Places of evenly spaced rows, rare ones first."""
    held = np.empty(0, np.intp) if rare is None else np.flatnonzero(rare)[:MOST_ROWS]
    rest = np.setdiff1d(np.arange(n_rows), held)
    n_rest = min(len(rest), MOST_ROWS - len(held))
    spread = np.linspace(0, len(rest) - 1, n_rest).astype(int) if n_rest else np.empty(0, int)
    return np.sort(np.concatenate([held, rest[spread]]))


class _Plane(NamedTuple):
    """Two directions in the space of features."""

    axes: Floats  # shape (n_features, 2)
    origin: Floats
    names: tuple[str, str]


def _plane(rows: Floats, feature_names: Any) -> _Plane:
    """The plane of two features, or of the first two principal components."""
    if rows.shape[1] == 2:
        first, second = ("x0", "x1") if feature_names is None else map(str, feature_names)
        return _Plane(np.eye(2), np.zeros(2), (first, second))
    origin = rows.mean(axis=0)
    _, _, directions = np.linalg.svd(rows - origin, full_matrices=False)
    axes = directions[:2].T
    signs = np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] >= 0, 1.0, -1.0)
    names = ("first principal component", "second principal component")
    return _Plane(axes * signs, origin, names)


def _surface(model: Any, rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Places along two features, and the scores on their grid."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    first, second = (np.linspace(low[k], high[k], _GRID) for k in (0, 1))
    grid = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    scores = model.score_samples(grid).reshape(_GRID, _GRID)
    return first, second, scores
