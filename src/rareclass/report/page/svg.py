"""matplotlib's drawings as SVG that takes the colours of the page and is the same every time."""

import io
import re
import warnings
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from rareclass.report.displays.look import INK, LINE, MUTED, PAPER, THEME

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 4.7, 3.3
"""Inches of a plot: small, so that its letters are still read on a telephone."""
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


def drawn(
    draw: Callable[["Axes"], None],
    key: str,
    title: str,
    description: str,
    size: tuple[float, float] = (WIDTH, HEIGHT),
) -> str:
    """What `draw` draws on axes, as an ``<svg>`` element with a title and a description."""
    return drawn_with_axes(draw, key, title, description, size)[0]


def drawn_with_axes(
    draw: Callable[["Axes"], None],
    key: str,
    title: str,
    description: str,
    size: tuple[float, float] = (WIDTH, HEIGHT),
) -> tuple[str, tuple[float, float, float, float]]:
    """The same, and where the axes lie: left and right as shares of the width, then the limits."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **_STYLE}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        draw(axes)
        svg = _written(figure)
        box, limits = axes.get_position(), axes.get_xlim()
    spans = (float(box.x0), float(box.x1), float(limits[0]), float(limits[1]))
    return _themed(svg, key, title, description), spans


def svg_of_figure(figure: "Figure", key: str, title: str, description: str) -> str:
    """A figure that was drawn elsewhere."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "rareclass"}):
        svg = _written(figure)
    return _themed(svg, key, title, description)


def _written(figure: "Figure") -> str:
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # The reader's own font draws what matplotlib's lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(buffer, format="svg", metadata=nothing)
    return buffer.getvalue()


def _themed(svg: str, key: str, title: str, description: str) -> str:
    """The element alone: names unlike those of other plots, colours those of the page."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="(?!m|p|C|[a-z]*[0-9a-f]{8})[^"]*"', "", svg)  # names of groups
    svg = re.sub(r' id="([^"]+)"', rf' id="{key}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", svg)
    svg = re.sub(r'(?:xlink:)?href="#([^"]+)"', rf'href="#{key}-\1"', svg)
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--font)", svg)
    for color, name in THEME.items():
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


__all__ = ["HEIGHT", "PAPER", "WIDTH", "drawn", "drawn_with_axes", "svg_of_figure"]
