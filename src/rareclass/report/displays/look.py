"""Colours and axes that all plots share: Okabe and Ito's colours, told apart by the colour-blind.

What differs by colour differs by dash or marker as well.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, VERMILLION, GREEN, AMBER = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, GREY, BLACK = "#CC79A7", "#56B4E9", "#8F8F8F", "#000000"
CYCLE = ((BLUE, "-"), (VERMILLION, "--"), (GREEN, "-."), (PURPLE, ":"), (AMBER, (0, (5, 1))))
"""Colours with their dashes, for curves that are compared."""
# Colours that a page replaces by its own: those of text and lines are unlike any of a curve.
INK, MUTED, LINE, PAPER = "#1A1B1E", "#5C6370", "#DDE1E7", "#FEFEFE"
THEME = {
    BLUE: "blue",
    VERMILLION: "vermillion",
    GREEN: "green",
    AMBER: "amber",
    PURPLE: "purple",
    SKY: "sky",
    GREY: "grey",
    INK: "ink",
    MUTED: "muted",
    LINE: "line",
    PAPER: "paper",
}
BAND = 0.18
"""Opacity of intervals."""


def new_axes(ax: Any) -> "Axes":
    """The axes given, or those of a new figure of pyplot, as scikit-learn's displays do.

    Raises `ImportError` naming the remedy, without matplotlib.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'rareclass[cli]'.") from error
    return pyplot.subplots(layout="constrained")[1]


def share_axis(axis: Any, label: str) -> None:
    """An axis of shares from 0 to 1, in percent."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axis.set_label_text(label)


def log_axis(axis: Any, label: str, percent: bool = False) -> None:
    """A logarithmic axis with plain numbers, or percent, at its tens."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis._set_axes_scale("log")
    axis.set_major_locator(LogLocator(numticks=8))
    axis.set_major_formatter(FuncFormatter(_percent if percent else _plain))
    axis.set_minor_formatter(NullFormatter())
    axis.set_label_text(label)


def _plain(value: float, _: Any = None) -> str:
    """A number without an exponent.

    >>> _plain(1000.0), _plain(0.01)
    ('1,000', '0.01')
    """
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _percent(value: float, _: Any = None) -> str:
    """A share in percent.

    >>> _percent(0.0001), _percent(1.0)
    ('0.01%', '100%')
    """
    return f"{100 * value:.6g}%"
