"""Colours and axes that all plots share, and matplotlib's drawings as SVG in the page's colours.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; curves that differ
by colour differ by dash or marker as well. matplotlib is imported where something is drawn.
"""

import io
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.decide.rarity_scores import rarity_scores
from rareclass.errors import ErrorKind, needed_for
from rareclass.labels.two_classes import read_labels
from rareclass.report.page import AxisSpan, Plot
from rareclass.table_block import TableBlock

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Axes = Figure = Any


BLUE, VERMILLION, GREEN, AMBER = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, GREY, BLACK = "#CC79A7", "#56B4E9", "#8F8F8F", "#000000"
CYCLE = ((BLUE, "-"), (VERMILLION, "--"), (GREEN, "-."), (PURPLE, ":"), (AMBER, (0, (5, 1))))
"""Colours with their dashes, for curves that are compared."""
# Colours of text and lines, unlike any of a curve: a page replaces them by its own.
INK, MUTED, LINE, PAPER = "#1A1B1E", "#5C6370", "#DDE1E7", "#FEFEFE"
_THEME = {
    BLUE: "blue", VERMILLION: "vermillion", GREEN: "green", AMBER: "amber", PURPLE: "purple",
    SKY: "sky", GREY: "grey", INK: "ink", MUTED: "muted", LINE: "line", PAPER: "paper",
}  # fmt: skip
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
    "legend.edgecolor": "none",
    "legend.facecolor": PAPER,
    "legend.fontsize": 8.5,
    "path.simplify": True,
}

Floats = NDArray[np.float64]


def new_figure(size: tuple[float, float], name: str) -> Figure:
    """Return a figure that pyplot does not know; raises `ImportError` without matplotlib."""
    with needed_for(name, "rareclass[cli]"):
        from matplotlib.figure import Figure
    return Figure(figsize=size, layout="constrained")


Limits = tuple[float | None, float | None] | None
"""Ends of an axis; None leaves an end to matplotlib."""


def share_axis(axis: Any, label: str, limits: Limits = None) -> None:
    """Format an axis of shares in percent, with as many digits as its range needs."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0))
    _name_axis(axis, label, limits)


def log_axis(
    axis: Any, label: str, limits: Limits = None, percent: bool = False, times: Sequence[int] = (1,)
) -> None:
    """Make an axis logarithmic, with plain numbers or percent at some `times` powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis._set_axes_scale("log")
    axis.set_major_locator(LogLocator(subs=times, numticks=8))
    axis.set_major_formatter(FuncFormatter(_percent if percent else plain_number))
    axis.set_minor_formatter(NullFormatter())
    _name_axis(axis, label, limits)


def _name_axis(axis: Any, label: str, limits: Limits) -> None:
    axis.set_label_text(label)
    if limits is not None:
        axis.axes.set(**{f"{axis.axis_name}lim": limits})


def plain_number(value: float, _: Any = None) -> str:
    """Format a number without an exponent.

    >>> plain_number(1000.0), plain_number(0.01)
    ('1,000', '0.01')
    """
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _percent(value: float, _: Any = None) -> str:
    """Format a share in percent.

    >>> _percent(0.0001), _percent(1.0)
    ('0.01%', '100%')
    """
    return f"{100 * value:.6g}%"


def _written(figure: Figure) -> str:
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
    unseen = r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->"
    svg = re.sub(unseen, "", svg, flags=re.DOTALL)
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


class Display(ABC):
    """A plot: the numbers behind it, how they are drawn, and what a page says of them."""

    key: str  # unique on a page
    title: str
    size = SMALL  # inches; one that is WIDE fills the width of a page where it stands alone
    legend: ClassVar[dict[str, Any]] = {}  # where it stands

    @abstractmethod
    def _draw(self, ax: Axes, **style: Any) -> None:
        """Draw on axes, without the legend."""

    @abstractmethod
    def rows(self) -> TableBlock | None:
        """Return the numbers behind the drawing."""

    @abstractmethod
    def _words(self) -> str:
        """Describe the drawing to readers who cannot see it."""

    def _draw_with_legend(self, ax: Axes, **style: Any) -> None:
        """Draw on axes; the legend has each name once."""
        self._draw(ax, **style)
        handles, labels = ax.get_legend_handles_labels()
        if named := dict(zip(labels, handles, strict=True)):
            ax.legend([*named.values()], [*named], **self.legend)

    def on_page(self) -> Plot:
        """Return the part of a page, drawn on new axes in its style."""
        import matplotlib

        with matplotlib.rc_context({**matplotlib.rcParamsDefault, **_STYLE}):
            figure = new_figure(self.size, "A plot")
            axes = figure.subplots()
            self._draw_with_legend(axes)
            svg = _written(figure)
            box, limits = axes.get_position(), axes.get_xlim()
        axis = AxisSpan(float(box.x0), float(box.x1), float(limits[0]), float(limits[1]))
        name, words = f"{self.key}-plot", self._words()
        svg = _themed(svg, self.key, self.title, words)
        return Plot(name, self.title, words, svg, axis, self.rows(), self.size == WIDE)


class RankingDisplay(Display):
    """A plot of scores beside classes, in the convention of scikit-learn's displays.

    `from_estimator` and `from_predictions` make and draw it. The attributes hold the numbers that
    are drawn; `plot` draws them again, on any axes.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Set by `plot`.
    figure_ : matplotlib.figure.Figure
        Set by `plot`.
    """

    of_probabilities: ClassVar[bool] = False  # drawn from probabilities, not scores
    ax_: Axes
    figure_: Figure

    def plot(self, ax: Any = None, **style: Any) -> Self:
        """Draw on axes, by default those of a new figure of pyplot, and return the display.

        `style` is such as ``color`` and ``linestyle`` of the main line, where the plot has one.
        Raises `ImportError` with the remedy where matplotlib is missing.
        """
        if ax is None:
            with needed_for("A plot", "rareclass[cli]"):
                from matplotlib import pyplot
            ax = pyplot.subplots(layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.get_figure()
        self._draw_with_legend(ax, **style)
        return self

    @classmethod
    @abstractmethod
    def of(
        cls, y: Any, scores: Any, sample_weight: Any = None, name: str | None = None, **options: Any
    ) -> Self:
        """Count the rows without drawing; `y` is True or 1 where a row is rare."""

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw scores of rows with known classes.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Two classes.
        y_score : array-like of shape (n,)
            Higher means rarer. Probabilities of the rare class where the plot is of probabilities.
        sample_weight : array-like of shape (n,), optional
            Copies that each row stands for.
        pos_label : label, optional
            The rare class; by default the class of fewer rows.
        name : str, optional
            Name of the ranking in the legend.
        ax : matplotlib.axes.Axes, optional
            By default the axes of a new figure.
        **options
            Parameters that the display's class names.

        Returns
        -------
        RankingDisplay

        Raises
        ------
        ValueError
            On one class, more than two, and scores that are NaN or of another number than classes.
        ImportError
            Without matplotlib.
        """
        scores = np.asarray(y_score, dtype=np.float64)
        labels = read_labels(y_true, sample_weight, pos_label, len(scores))
        rare = labels.is_rare(len(scores))
        return cls.of(rare, scores, sample_weight, name, **options).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the scores that a fitted estimator gives to X.

        Scores are the ``score_samples`` of this package's rankers, else the ``decision_function``,
        else the probability of the rare class. Plots of probabilities take ``predict_proba``.

        Parameters
        ----------
        estimator : fitted estimator
        X : rows for the estimator
            Held out of training.
        y, sample_weight, pos_label, name, ax, **options
            As for `from_predictions`; by default `name` is the name of the estimator's class, and
            `pos_label` the estimator's ``pos_label_`` where it has one.

        Returns
        -------
        RankingDisplay

        Raises
        ------
        ValueError
            As `from_predictions`; where the estimator has no scores.
        """
        if pos_label is None:
            pos_label = getattr(estimator, "pos_label_", None)
        column = np.asarray(y)
        pos_label = read_labels(column, sample_weight, pos_label, len(column)).pos_label
        score = _probabilities if cls.of_probabilities else rarity_scores
        return cls.from_predictions(
            y,
            score(estimator, X, pos_label),
            sample_weight=sample_weight,
            pos_label=pos_label,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            **options,
        )


def _probabilities(estimator: Any, X: Any, pos_label: Any) -> Floats:
    if not hasattr(estimator, "predict_proba"):
        raise ErrorKind.UNSUPPORTED.error(f"{type(estimator).__name__} has no probabilities.")
    place = list(estimator.classes_).index(pos_label)
    return np.asarray(estimator.predict_proba(X)[:, place], dtype=np.float64)
