"""The section on how well the rare rows are ranked: precision and recall, ROC, and gains."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.metrics import Interval, interval
from rareclass.metrics.intervals import amount_text
from rareclass.report.drawing import (
    BAND,
    BLUE,
    GREY,
    INK,
    Axes,
    RankingDisplay,
    log_axis,
    share_axis,
)
from rareclass.report.page import NONE, Plots, Section, percent, percent_with_bounds, whole
from rareclass.report.threshold_table import Band, Gains, ThresholdTable
from rareclass.table_block import TableBlock

# Points of a curve that are drawn.
_MOST_DRAWN = 240
_POINTWISE = "The band is the 95 % interval of each threshold by itself, not of all at once."
_RECALLS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)
_RATES = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5)


class TableDisplay(RankingDisplay):
    """A plot of a `ThresholdTable`; base of the displays of curves.

    Parameters
    ----------
    table : ThresholdTable
        Counts at every threshold; `ThresholdTable.of` makes one.
    name : str, optional
        Name of the ranking in the legend.
    value : Interval, optional
        Measure that belongs to the curve, for the legend.
    """

    _measure: ClassVar[str | None] = None

    def __init__(
        self, table: ThresholdTable, *, name: str | None = None, value: Interval | None = None
    ) -> None:
        self.table, self.name, self.value = table, name, value

    @classmethod
    def of(
        cls,
        y: ArrayLike,
        scores: ArrayLike,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Count at every threshold; `options` as for `ThresholdTable.of`."""
        table, value = ThresholdTable.of(y, scores, sample_weight, **options), None
        if cls._measure is not None:
            groups = options.get("groups")
            value = interval(cls._measure, y, scores, sample_weight, groups=groups)
        return cls(table, name=name, value=value)

    def _value_text(self) -> str:
        return NONE if self.value is None else self.value.text()

    def _label(self, what: str) -> str | None:
        if self.value is None:
            return self.name
        words = f"{what} {self.value.value:.3f}"
        return words if self.name is None else f"{self.name} ({words})"

    def _places(self, alerts: NDArray[np.float64]) -> NDArray[np.intp]:
        """Places of the thresholds that are drawn, all with some of these alerts."""
        kept = self.table.thinned(_MOST_DRAWN)
        return kept[alerts[kept] > 0]

    def _mark_own(self, ax: Axes, x: NDArray[Any], y: NDArray[Any], in_legend: bool = True) -> None:
        own = self.table.own
        if own is not None and np.isfinite(y[own]):
            label = "the model's threshold" if in_legend else "_"
            ax.plot(x[own], y[own], "D", color=INK, markersize=5.5, zorder=5, label=label)


def draw_curve(
    ax: Axes, x: NDArray[Any], band: Band, kept: NDArray[np.intp], label: str | None, style: Any
) -> None:
    """Draw a line within its interval, at the places `kept`."""
    look: dict[str, Any] = {"color": BLUE, "linewidth": 1.8} | style
    value, low, high = (each[kept] for each in band)
    ax.fill_between(x[kept], low, high, color=look["color"], alpha=BAND, linewidth=0)
    ax.plot(x[kept], value, label=label or "_", **look)


class PrecisionRecallDisplay(TableDisplay):
    """Precision against recall, with the exact interval of the precision of each threshold.

    The band is pointwise: it holds for a threshold that was named beforehand, not for the whole
    curve. The dotted line is the share of rare rows, the precision of a random ranking. The table's
    ``own`` threshold, where it has one, is marked.

    Made as `TableDisplay`; `value` is the average precision.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.arange(200) < 10
    >>> display = PrecisionRecallDisplay.from_predictions(y, np.linspace(1, 0, 200), name="ideal")
    >>> display.ax_.get_xlabel(), display.value.value
    ('recall: share of the rare rows found', 1.0)
    """

    key, title = "precision-recall", "Precision and recall"
    _measure = "average_precision"

    def _words(self) -> str:
        table = self.table
        half = percent_with_bounds(table.precision.at(table.at_recall(0.5)))
        return (
            f"Average precision {self._value_text()}; a random order has "
            f"{table.n_rare / table.n_rows:.3f}. Where half of the rare rows are found, {half} of "
            f"the alerts are rare. {_POINTWISE}"
        )

    def rows(self) -> TableBlock:
        """Return the precision at shares of the rare rows."""
        table = self.table
        places = list(dict.fromkeys(table.at_recall(share) for share in _RECALLS))
        return TableBlock.of(
            "Precision where so many rare rows are found",
            {
                "Recall": [percent(float(table.recall.value[k])) for k in places],
                "Precision": [percent_with_bounds(table.precision.at(k)) for k in places],
                "Alerts": [whole(float(table.alerts[k])) for k in places],
                "Score above": [f"{table.thresholds[k]:.4g}" for k in places],
            },
        )

    def _draw(self, ax: Axes, **style: Any) -> None:
        table, kept = self.table, self._places(self.table.alerts)
        precision, recall = table.precision, table.recall.value
        draw_curve(ax, recall, precision, kept, self._label("average precision"), style)
        share = table.n_rare / table.n_rows
        ax.axhline(share, color=GREY, linestyle=":", linewidth=1.2, label="random order")
        self._mark_own(ax, recall, precision.value)
        share_axis(ax.xaxis, "recall: share of the rare rows found")
        share_axis(ax.yaxis, "precision: share of alerts that are rare")
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.05)


class RocDisplay(TableDisplay):
    """Recall against the false-positive rate, with the exact interval of the recall.

    The false-positive rate is on a logarithmic axis unless `log` is False: with a rare class the
    first hundredths matter, and a linear axis puts them on its edge. The band is pointwise, as in
    `PrecisionRecallDisplay`. Made as `TableDisplay`; `value` is the AUC.
    """

    log = True
    key, title = "roc", "ROC curve, its false-positive rate on a logarithmic axis"
    _measure = "roc_auc"

    def _words(self) -> str:
        return (
            f"AUC {self._value_text()}: the chance that a rare row scores higher than one of the "
            f"majority. {_POINTWISE}"
        )

    def rows(self) -> TableBlock:
        """Return the recall at false-positive rates."""
        table, rates = self.table, self.table.false_positive_rate
        places = list(dict.fromkeys(table.at_false_positive_rate(rate) for rate in _RATES))
        return TableBlock.of(
            "Recall at false-positive rates",
            {
                "False-positive rate": [percent_with_bounds(rates.at(k)) for k in places],
                "Recall": [percent_with_bounds(table.recall.at(k)) for k in places],
                "False alerts": [whole(float(table.false_alerts[k])) for k in places],
            },
        )

    def _draw(self, ax: Axes, log: bool | None = None, **style: Any) -> None:
        table, log = self.table, self.log if log is None else log
        rate = table.false_positive_rate.value
        least = 0.5 / table.n_rest
        x = np.maximum(rate, least) if log else rate
        draw_curve(ax, x, table.recall, table.thinned(_MOST_DRAWN), self._label("AUC"), style)
        chance = np.geomspace(least, 1.0, 60) if log else np.array([0.0, 1.0])
        ax.plot(chance, chance, color=GREY, linestyle=":", linewidth=1.2, label="random order")
        self._mark_own(ax, x, table.recall.value)
        label = "false-positive rate: share of the majority that raises alerts"
        if log:
            log_axis(ax.xaxis, label, percent=True)
            ax.set_xlim(least, 1.0)
        else:
            share_axis(ax.xaxis, label)
        share_axis(ax.yaxis, "recall: share of the rare rows found")
        ax.set_ylim(-0.02, 1.05)


class GainsDisplay(TableDisplay):
    """Share of the rare rows that the highest rows hold, from .01 percent of all rows to all.

    Made as `TableDisplay`, without a `value`.
    """

    key, title = "gains", "Gains: what the highest rows hold"

    def _words(self) -> str:
        table, lift = self.table, Gains.of(self.table).lift.value
        of_top = percent_with_bounds(table.recall.at(table.at_alerts(0.01 * table.n_rows)))
        top = amount_text(lift[min(len(lift) - 1, max(table.at_alerts(100) - 1, 0))])
        n_top = whole(min(100.0, table.n_rows))
        return (
            f"The highest 1 % of the rows hold {of_top} of the rare ones. Among the {n_top} "
            f"highest rows there are {top} times as many rare ones as among {n_top} drawn "
            "at random. The axis of rows is logarithmic: what matters happens among the first."
        )

    def rows(self) -> TableBlock:
        """Return the share of the rare rows in shares of all."""
        gains = Gains.of(self.table)
        places = gains.rows()
        return TableBlock.of(
            "What the highest rows hold",
            {
                "Of all rows": [percent(float(gains.share[k])) for k in places],
                "Of the rare ones": [percent_with_bounds(gains.gain.at(k)) for k in places],
                "Times as many as at random": [gains.lift.at(k).amounts() for k in places],
            },
        )

    def _draw(self, ax: Axes, **style: Any) -> None:
        gains = Gains.of(self.table)
        kept = np.unique(np.linspace(0, len(gains.share) - 1, _MOST_DRAWN).astype(int))
        draw_curve(ax, gains.share, gains.gain, kept, self.name, style)
        x = np.geomspace(gains.share[0], 1.0, 60)
        ax.plot(x, x, color=GREY, linestyle=":", linewidth=1.2, label="random order")
        rate = self.table.n_rare / self.table.n_rows
        best = np.minimum(x / rate, 1.0)
        ax.plot(x, best, color=GREY, linestyle="--", linewidth=1.0, label="perfect order")
        log_axis(ax.xaxis, "highest rows, as a share of all", percent=True)
        ax.set_xlim(max(gains.share[0], 1e-5), 1.0)
        share_axis(ax.yaxis, "share of the rare rows found")
        ax.set_ylim(-0.02, 1.05)


def ranking_section(table: ThresholdTable, auc: Interval, average_precision: Interval) -> Section:
    """Section with three curves and the numbers behind them."""
    displays = (
        PrecisionRecallDisplay(table, value=average_precision),
        RocDisplay(table, value=auc),
        GainsDisplay(table),
    )
    plots = tuple(display.on_page() for display in displays)
    lead = "Whatever the threshold: do rare rows score higher than the majority?"
    return Section("ranking", "How well it ranks", lead, (Plots(plots),))
