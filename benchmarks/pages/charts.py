"""Charts of the pages: matplotlib's SVG, with the site's own colours of text and lines.

The SVG stands in the page itself, so that its text and lines take the colours of the theme, light
or dark. Colours of the series can be read on both.
"""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

SERIES = ("#2f7fd1", "#d9741a", "#2c9c6c", "#a569d3", "#d1495b", "#848b93", "#1b98a6", "#98901c")
MARKERS = "osD^vPX*"
_TEXT, _LINE = "#010203", "#040506"  # stand for the theme's colours until the SVG is written
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rareclass",
    "font.family": "sans-serif",
    "font.size": 10.0,
    "text.color": _TEXT,
    "axes.labelcolor": _TEXT,
    "xtick.color": _TEXT,
    "ytick.color": _TEXT,
    "axes.edgecolor": _LINE,
    "grid.color": _LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_WIDTH = 6.0
_MOST_MARKERS = 15  # of a line; one with more points is drawn without
_SHORT_NAME = 16  # letters of which three names fit beside each other below a chart
Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]


def styled(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Draw with the style of the pages."""

    @wraps(draw)
    def drawn(*args: Any, **settings: Any) -> Any:
        import matplotlib

        with matplotlib.rc_context(_STYLE):
            return draw(*args, **settings)

    return drawn


@styled
def lines(
    panels: Mapping[str, Series], x_label: str, y_label: str, log_x: int = 0, log_y: bool = False
) -> Any:
    """Draw a panel for each title, a line for each name; `log_x` is the base of the axis."""
    across = 2 if len(panels) > 1 else 1
    down = -(-len(panels) // across)
    figure, axes = _axes(down, across, 2.7 * down + 0.5 if across > 1 else 3.4)
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    for axis, (title, panel) in zip(axes, panels.items(), strict=False):
        for name, (x, y) in panel.items():
            place = names.index(name) % len(SERIES)
            marker = MARKERS[place] if len(x) <= _MOST_MARKERS else ""
            axis.plot(x, y, color=SERIES[place], marker=marker, ms=4, lw=1.5, label=name)
        for each, base in ((axis.xaxis, log_x), (axis.yaxis, 10 if log_y else 0)):
            if base:
                _make_logarithmic(each, base)
        axis.set(title=title, xlabel=x_label, ylabel=y_label)
        axis.grid(alpha=0.6, lw=0.6)
    _legend(figure, axes)
    return figure


@styled
def bars(labels: Sequence[str], series: Mapping[str, Sequence[float]], x_label: str) -> Any:
    """Draw horizontal bars, the first label on top, a bar for each series."""
    n_series = len(series)
    figure, (axis,) = _axes(1, 1, 0.7 + (0.16 + 0.15 * n_series) * len(labels) + 0.3)
    height = 0.8 / n_series
    for k, (name, values) in enumerate(series.items()):
        places = [place + (k - (n_series - 1) / 2.0) * height for place in range(len(labels))]
        axis.barh(places, values, height * 0.9, color=SERIES[k % len(SERIES)], label=name)
    axis.set_yticks(range(len(labels)), labels)
    axis.invert_yaxis()
    axis.set_xlabel(x_label)
    axis.grid(axis="x", alpha=0.6, lw=0.6)
    axis.set_axisbelow(True)
    if n_series > 1:
        _legend(figure, [axis])
    return figure


@styled
def svg(figure: Any, words: str) -> str:
    """Return the figure as SVG for a page; `words` say what it shows to those who cannot see it."""
    with io.StringIO() as text:
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
        found = text.getvalue()
    found = found[found.index("<svg") :]
    found = re.sub(r"<metadata>.*?</metadata>\s*", "", found, flags=re.DOTALL)
    found = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", found, count=1)
    found = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", found, count=1)
    words = words.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    found = found.replace("<svg", f'<svg class="chart" role="img" aria-label="{words}"', 1)
    found = found.replace(_TEXT, "var(--pst-color-text-base)")
    return found.replace(_LINE, "var(--pst-color-border)").replace("\n\n", "\n").strip()


def _axes(down: int, across: int, height: float) -> tuple[Any, list[Any]]:
    """Return a figure without pyplot, and its axes in reading order."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH * (1.25 if across > 1 else 1.0), height))
    figure.set_layout_engine("constrained")
    return figure, list(figure.subplots(down, across, squeeze=False).flat)


def _make_logarithmic(axis: Any, base: int) -> None:
    """Make an axis logarithmic, with plain numbers at its ticks, more of them on a short axis."""
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = axis.get_data_interval()
    axis._set_axes_scale("log", base=base)
    is_short = high < 100 * low
    axis.set_major_locator(LogLocator(base, subs=(1.0, 2.0, 5.0) if is_short else (1.0,)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:,.12g}")


def _legend(figure: Any, axes: Sequence[Any]) -> None:
    """Name every line of any panel once."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    columns = min(3 if max(map(len, found)) <= _SHORT_NAME else 2, len(found))
    figure.legend(found.values(), found, loc="outside lower center", ncols=columns, frameon=False)
