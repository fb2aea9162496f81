"""Where the landmarks of a kernel machine lie, and which way each pulls."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.report.displays.look import BLUE, GREY, INK, VERMILLION, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
MOST_DRAWN = 3_000
"""Rows that are drawn; more are thinned."""
_LARGEST = 160.0
_GRID = 80
_LEVELS = 7


class LandmarkMapDisplay:
    """Rows in two dimensions, with the landmarks by the size and sign of their coefficients.

    Triangles that point up raise the scores of rows near them, those that point down lower them;
    the larger, the more. With two features the map has these, and lines of equal score; with more
    it has the two directions in which the rows spread most (principal components).

    Parameters
    ----------
    rows, landmarks : ndarray of shape (n, 2), (n_landmarks, 2)
    coef : ndarray of shape (n_landmarks,)
    rare : ndarray of bool of shape (n,), optional
        Which rows are rare.
    axis_names : tuple of two str
    surface : tuple of three ndarray, optional
        Places along both axes, and scores on their grid: lines of equal score.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Set by `plot`.
    figure_ : matplotlib.figure.Figure
        Set by `plot`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rareclass import RankRC
    >>> X, y = make_classification(200, weights=[0.9], random_state=0)
    >>> display = LandmarkMapDisplay.from_estimator(RankRC().fit(X, y), X, y)
    >>> display.landmarks.shape[1], display.ax_.get_xlabel()
    (2, 'first principal component')
    """

    ax_: "Axes"
    figure_: "Figure"

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
        """Draw the landmarks of a fitted kernel machine among rows.

        Parameters
        ----------
        estimator : RankRC, RankSVM or another kernel machine, or a search for one
        X : array-like of shape (n, n_features)
            Dense rows, such as those of training. Of more than 3,000 that many are drawn.
        y : array-like of shape (n,), optional
            Their classes, to mark the rare rows.
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        LandmarkMapDisplay

        Raises
        ------
        ValueError
            For an estimator without landmarks, sparse rows or landmarks, fewer than two features.
        """
        model = getattr(estimator, "best_estimator_", estimator)
        landmarks, coef = getattr(model, "landmarks_", None), getattr(model, "coef_", None)
        if landmarks is None or coef is None or len(coef) != landmarks.shape[0]:
            raise ValueError(f"{type(estimator).__name__} has no landmarks: fit a kernel machine.")
        if hasattr(landmarks, "tocsr") or hasattr(X, "tocsr"):
            raise ValueError("rows and landmarks must be dense: a map is of few features.")
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] < 2:
            raise ValueError(f"X has the shape {rows.shape}: a map needs two features at least.")
        rare = None if y is None else _rare_rows(y, getattr(model, "pos_label_", None))
        if len(rows) > MOST_DRAWN:
            kept = _thinned(len(rows), rare)
            rows, rare = rows[kept], None if rare is None else rare[kept]
        landmarks = np.asarray(landmarks, dtype=np.float64)
        axes, origin, names = _plane(rows, getattr(estimator, "feature_names_in_", None))
        display = cls(
            (rows - origin) @ axes,
            (landmarks - origin) @ axes,
            np.asarray(coef, dtype=np.float64),
            rare=rare,
            axis_names=names,
        )
        if rows.shape[1] == 2:
            display.surface = _surface(model, rows)
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw it on axes, by default those of a new figure of pyplot."""
        self.ax_ = ax = new_axes(ax)
        self.figure_ = ax.get_figure()
        if self.surface is not None:
            first, second, scores = self.surface
            ax.contour(first, second, scores, levels=_LEVELS, colors=GREY, linewidths=0.8)
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
            sizes = _LARGEST * np.abs(self.coef[chosen]) / largest
            ax.scatter(
                *self.landmarks[chosen].T, s=sizes, marker=marker, color=color, alpha=0.75,
                edgecolors="white", linewidths=0.5, zorder=3,
                label=f"{int(chosen.sum()):,} landmarks that {label}",
            )  # fmt: skip
        ax.set_xlabel(self.axis_names[0], parse_math=False)
        ax.set_ylabel(self.axis_names[1], parse_math=False)
        ax.legend()
        return self


def _rare_rows(y: Any, pos_label: Any) -> NDArray[np.bool_]:
    from rareclass.labels.two_classes import read_labels

    column = np.asarray(y)
    rare = np.zeros(len(column), dtype=bool)
    rare[read_labels(column, None, pos_label, len(column)).rare] = True
    return rare


def _thinned(n_rows: int, rare: NDArray[np.bool_] | None) -> NDArray[np.intp]:
    """Rows evenly spaced, rare ones first."""
    held = np.empty(0, np.intp) if rare is None else np.flatnonzero(rare)[:MOST_DRAWN]
    rest = np.setdiff1d(np.arange(n_rows), held)
    n_rest = min(len(rest), MOST_DRAWN - len(held))
    spread = np.linspace(0, len(rest) - 1, n_rest).astype(int) if n_rest else np.empty(0, int)
    return np.sort(np.concatenate([held, rest[spread]]))


def _plane(rows: Floats, given: Any) -> tuple[Floats, Floats, tuple[str, str]]:
    """Two axes, shape (p, 2), the origin and names."""
    p = rows.shape[1]
    if p == 2:
        names = ["x0", "x1"] if given is None else [str(name) for name in given]
        return np.eye(2), np.zeros(2), (names[0], names[1])
    origin = rows.mean(axis=0)
    _, _, directions = np.linalg.svd(rows - origin, full_matrices=False)
    axes = directions[:2].T
    signs = np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] >= 0, 1.0, -1.0)
    return axes * signs, origin, ("first principal component", "second principal component")


def _surface(model: Any, rows: Floats) -> tuple[Floats, Floats, Floats]:
    low, high = rows.min(axis=0), rows.max(axis=0)
    first, second = (np.linspace(low[k], high[k], _GRID) for k in (0, 1))
    grid = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    scores = model.score_samples(grid).reshape(_GRID, _GRID)
    return first, second, scores
