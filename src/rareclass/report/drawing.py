"""Colours and axes that all plots share, and matplotlib's drawings as SVG in the page's colours.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; curves that differ
by colour differ by dash or marker as well. matplotlib is imported where something is drawn.
"""

import io
import re
import warnings
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from rareclass.report.document import AxisSpan, PageTable, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, VERMILLION, GREEN, AMBER = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, GREY, BLACK = "#CC79A7", "#56B4E9", "#8F8F8F", "#000000"
CYCLE = ((BLUE, "-"), (VERMILLION, "--"), (GREEN, "-."), (PURPLE, ":"), (AMBER, (0, (5, 1))))
"""Colours with their dashes, for curves that are compared."""
# Colours of text and lines, unlike any of a curve: a page replaces them by its own.
INK, MUTED, LINE, PAPER = "#1A1B1E", "#5C6370", "#DDE1E7", "#FEFEFE"
_THEME = {
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
SMALL, WIDE = (4.7, 3.3), (7.2, 3.2)
"""Inches of a plot: small, so that its letters can be read on a telephone."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it is searched, copied and read aloud
    "svg.hashsalt": "rareclass",
    "text.parse_math": False,  # a column may be called anything
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "path.simplify": True,
}

Draw = Callable[["Axes"], None]


def new_axes(ax: Any) -> "Axes":
    """Return the axes given, or those of a new figure of pyplot, as scikit-learn's displays do.

    Raises `ImportError` with the remedy where matplotlib is missing.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'rareclass[cli]'.") from error
    return pyplot.subplots(layout="constrained")[1]


def new_figure(size: tuple[float, float], name: str) -> "Figure":
    """Return a figure that pyplot does not know; raises `ImportError` without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"{name} needs matplotlib: pip install 'rareclass[cli]'.") from error
    return Figure(figsize=size, layout="constrained")


def share_axis(axis: Any, label: str) -> None:
    """Format an axis of shares from 0 to 1 in percent."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axis.set_label_text(label)


def log_axis(axis: Any, label: str, percent: bool = False) -> None:
    """Make an axis logarithmic, with plain numbers or percent at its powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis._set_axes_scale("log")
    axis.set_major_locator(LogLocator(numticks=8))
    axis.set_major_formatter(FuncFormatter(_percent if percent else _plain))
    axis.set_minor_formatter(NullFormatter())
    axis.set_label_text(label)


def _plain(value: float, _: Any = None) -> str:
    """Format a number without an exponent.

    >>> _plain(1000.0), _plain(0.01)
    ('1,000', '0.01')
    """
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _percent(value: float, _: Any = None) -> str:
    """Format a share in percent.

    >>> _percent(0.0001), _percent(1.0)
    ('0.01%', '100%')
    """
    return f"{100 * value:.6g}%"


class Drawing(NamedTuple):
    """An ``<svg>`` element and the place of its axes."""

    svg: str
    axis: AxisSpan


def plot_of(
    draw: Draw,
    key: str,
    title: str,
    description: str,
    table: PageTable | None = None,
    size: tuple[float, float] = SMALL,
    wide: bool = False,
) -> Plot:
    """Draw a plot for a page; `key` is unique on the page."""
    svg = drawn(draw, key, title, description, size).svg
    return Plot(f"{key}-plot", title, description, svg, table, wide)


def drawn(draw: Draw, key: str, title: str, description: str, size: tuple[float, float]) -> Drawing:
    """Draw on new axes, and return an ``<svg>`` element with a title and a description."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **_STYLE}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        draw(axes)
        svg = _written(figure)
        box, limits = axes.get_position(), axes.get_xlim()
    span = AxisSpan(float(box.x0), float(box.x1), float(limits[0]), float(limits[1]))
    return Drawing(_themed(svg, key, title, description), span)


def _written(figure: "Figure") -> str:
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # The reader's own font draws letters that matplotlib's lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(buffer, format="svg", metadata=nothing)
    return buffer.getvalue()


def _themed(svg: str, key: str, title: str, description: str) -> str:
    """The element alone, with ids that are unique on the page and the colours of the page."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="(?!m|p|C|[a-z]*[0-9a-f]{8})[^"]*"', "", svg)  # names of groups
    svg = re.sub(r' id="([^"]+)"', rf' id="{key}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", svg)
    svg = re.sub(r'(?:xlink:)?href="#([^"]+)"', rf'href="#{key}-\1"', svg)
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--font)", svg)
    for color, name in _THEME.items():
        svg = re.sub(re.escape(color), f"var(--{name})", svg, flags=re.IGNORECASE)
    svg = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d\.\d{2})\d+", r"\1", tag[0]), svg)
    svg = re.sub(r">\s+<", "><", svg)
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups()  # type: ignore[union-attr]
    body = svg[svg.index(">") + 1 :]
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-labelledby="{key}-title {key}-desc" class="plot">'
        f'<title id="{key}-title">{escape(title)}</title>'
        f'<desc id="{key}-desc">{escape(description)}</desc>{body}'
    )
