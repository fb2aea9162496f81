"""Learned scales of features, drawn: which of them the model looks at, and how closely."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rareclass.report.displays.look import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_DRAWN = 30
"""Bars that are drawn unless another number is asked for."""
# Okabe and Ito's colours, as in the other plots.
_BLUE, _GREY = "#0072B2", "#8F8F8F"
_LONGEST_NAME = 32
_BAR_HEIGHT, _MARGINS, _WIDTH = 0.26, 1.5, 7.5


class FeatureScalesDisplay:
    """A bar for the learned scale of every feature in use, as `draw_feature_scales` has them.

    Parameters
    ----------
    scales : array-like of shape (n_features,)
    names : sequence of str
    most : int, default=30
        Most bars.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Set by `plot`.
    figure_ : matplotlib.figure.Figure
        Set by `plot`.

    Examples
    --------
    >>> display = FeatureScalesDisplay([0.0, 1.2, 0.7], ["age", "amount", "hour"]).plot()
    >>> display.ax_.get_title()
    '2 of 3 features in use'
    """

    def __init__(self, scales: ArrayLike, names: Sequence[str], *, most: int = MOST_DRAWN) -> None:
        self.scales, self.names, self.most = np.asarray(scales, dtype=float), list(names), most

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Any = None, most: int = MOST_DRAWN, ax: Any = None
    ) -> Self:
        """Draw the scales of a model fitted with ``feature_scaling="learned"``.

        Raises `ValueError` as `draw_feature_scales`, `ImportError` without matplotlib.
        """
        return cls(*_read(estimator, feature_names, most), most=most).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw it on axes, by default those of a new figure of pyplot."""
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.get_figure()
        _draw(self.ax_, self.scales, self.names, self.most, None)
        return self


def draw_feature_scales(
    model: Any, feature_names: Any = None, most: int = MOST_DRAWN, title: str | None = None
) -> "Figure":
    """Draw a bar for the learned scale of every feature in use, the largest first.

    A line below the bars says how many features were dropped, and how many more are in use than
    are drawn. The dashed line at 1 is where a feature would be without learning.

    Parameters
    ----------
    model : RankRC or RankRCCV
        Fitted with ``feature_scaling="learned"``.
    feature_names : sequence of str or None
        In the order of the columns; None takes ``feature_names_in_``, or column numbers.
    most : int, default=30
        Most bars.
    title : str or None
        None says how many of the features are in use.

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
    scales, names = _read(model, feature_names, most)
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "draw_feature_scales needs matplotlib: pip install 'rareclass[cli]'."
        ) from error
    height = _MARGINS + _BAR_HEIGHT * max(min(int(np.count_nonzero(scales)), most), 1)
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    _draw(figure.subplots(), scales, names, most, title)
    return figure


def _read(model: Any, feature_names: Any, most: int) -> tuple[np.ndarray, list[str]]:
    """Scales and a name for each of them."""
    scales = getattr(model, "feature_scales_", None)
    if scales is None:
        raise ValueError("this model has no learned scales: fit it with feature_scaling='learned'.")
    scales = np.asarray(scales)
    names = _names(model, feature_names, len(scales))
    if most < 1:
        raise ValueError(f"most={most} must be at least 1.")
    return scales, names


def _draw(axes: "Axes", scales: np.ndarray, names: list[str], most: int, title: str | None) -> None:
    order = np.argsort(-scales, kind="stable")
    n_used = int(np.count_nonzero(scales))
    drawn = order[: min(n_used, most)]
    _draw_bars(axes, scales[drawn], [names[k] for k in drawn])
    axes.set_xlabel(f"scale inside the kernel\n{_left_out(scales, n_used, len(drawn))}")
    default = f"{n_used:,} of {len(scales):,} features in use"
    axes.set_title(default if title is None else title, fontsize=10, parse_math=False)


def _draw_bars(axes: "Axes", scales: np.ndarray, names: list[str]) -> None:
    """Bars from the top down, each with its value."""
    places = np.arange(len(scales))
    bars = axes.barh(places, scales, color=_BLUE, height=0.72)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    axes.bar_label(bars, [f"{scale:.2f}" for scale in scales], padding=3, fontsize=8, bbox=box)
    axes.axvline(1.0, color=_GREY, linewidth=1.0, linestyle="--", zorder=0)
    axes.set_yticks(places, names, parse_math=False)
    axes.set_ylim(max(len(scales), 1) - 0.4, -0.6)
    axes.set_xlim(0.0, 1.12 * max(float(scales.max(initial=0.0)), 1.0))
    axes.spines[["top", "right"]].set_visible(False)


def _left_out(scales: np.ndarray, n_used: int, n_drawn: int) -> str:
    """What the bars do not show."""
    if (scales == 1.0).all():
        return "no scales ranked held-out rows better: all are 1"
    n_dropped = len(scales) - n_used
    parts = ["1 dropped, scale 0" if n_dropped == 1 else f"{n_dropped:,} dropped, scale 0"]
    if n_drawn < n_used:
        smallest = float(np.sort(scales)[::-1][n_drawn])
        parts.append(f"{n_used - n_drawn:,} more in use, at {smallest:.2f} or below")
    return "; ".join(parts)


def _names(model: Any, given: Any, n_features: int) -> list[str]:
    if given is None:
        given = getattr(model, "feature_names_in_", None)
    if given is None:
        return [f"column {k}" for k in range(n_features)]
    names = [str(name) for name in given]
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} names for {n_features} features.")
    return [
        name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…" for name in names
    ]
