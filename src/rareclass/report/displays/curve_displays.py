"""Curves over all thresholds with the interval of each point."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rareclass.metrics import average_precision_interval, roc_auc_interval
from rareclass.metrics.interval import Interval
from rareclass.report.displays.look import BAND, BLUE, GREY, INK, VERMILLION, log_axis, share_axis
from rareclass.report.displays.ranking_display import RankingDisplay
from rareclass.report.summaries.gains import Gains
from rareclass.report.summaries.threshold_table import Band, ThresholdTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points of a curve that are drawn.
_MOST_DRAWN = 240


class TableDisplay(RankingDisplay):
    """A plot of a `ThresholdTable`; what the displays of curves share.

    Parameters
    ----------
    table : ThresholdTable
        What every threshold comes to; `ThresholdTable.of` makes one.
    name : str, optional
        Of the ranking, in the legend.
    value : Interval, optional
        The measure that belongs to the curve, for the legend.
    """

    def __init__(
        self, table: ThresholdTable, *, name: str | None = None, value: Interval | None = None
    ) -> None:
        self.table, self.name, self.value = table, name, value

    @classmethod
    def _measure(
        cls, rare: NDArray[np.bool_], scores: NDArray[Any], weight: Any
    ) -> Interval | None:
        return None

    @classmethod
    def _of(
        cls,
        rare: NDArray[np.bool_],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        name: str | None,
        **options: Any,
    ) -> Self:
        table = ThresholdTable.of(rare, scores, weight, **options)
        return cls(table, name=name, value=cls._measure(rare, scores, weight))

    def _label(self, what: str) -> str | None:
        if self.value is None:
            return self.name
        words = f"{what} {self.value.value:.3f}"
        return words if self.name is None else f"{self.name} ({words})"

    def _mark_own(
        self, ax: "Axes", x: NDArray[Any], y: NDArray[Any], in_legend: bool = True
    ) -> None:
        """A diamond at the model's own threshold."""
        if self.table.own is not None and np.isfinite(y[self.table.own]):
            ax.plot(
                x[self.table.own], y[self.table.own], "D", color=INK, markersize=5.5, zorder=5,
                label="the model's threshold" if in_legend else "_",
            )  # fmt: skip


class PrecisionRecallDisplay(TableDisplay):
    """Precision against recall, with the exact interval of the precision of each threshold.

    The band is pointwise: it holds for a threshold that was named before, not for the whole curve.
    The dotted line is the share of rare rows, which is the precision of no ranking at all. The
    table's ``own`` threshold, where it has one, is marked.

    Parameters
    ----------
    table, name, value
        As for the other displays of curves; `value` is the average precision.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.arange(200) < 10
    >>> display = PrecisionRecallDisplay.from_predictions(y, np.linspace(1, 0, 200), name="ideal")
    >>> display.ax_.get_xlabel(), display.value.value
    ('recall: share of the rare rows found', 1.0)
    """

    @classmethod
    def _measure(
        cls, rare: NDArray[np.bool_], scores: NDArray[Any], weight: Any
    ) -> Interval | None:
        return average_precision_interval(rare, scores, sample_weight=weight)

    def _draw(self, ax: "Axes", **style: Any) -> None:
        table = self.table
        kept = _with_alerts(table, _MOST_DRAWN)
        precision, recall = table.precision, table.recall.value
        _curve(ax, recall[kept], precision, kept, self._label("average precision"), style)
        share = table.n_rare / table.n_rows
        ax.axhline(share, color=GREY, linestyle=":", linewidth=1.2, label="no ranking at all")
        self._mark_own(ax, recall, precision.value)
        share_axis(ax.xaxis, "recall: share of the rare rows found")
        share_axis(ax.yaxis, "precision: share of alerts that are rare")
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.05)
        ax.legend()


class RocDisplay(TableDisplay):
    """Recall against the false-positive rate, with the exact interval of the recall.

    The false-positive rate is on a logarithmic axis unless `log` is False: with a class that is
    rare what matters happens among its first hundredths, which a linear axis puts on its edge. The
    band is pointwise, as that of `PrecisionRecallDisplay`.

    Parameters
    ----------
    table, name, value
        `value` is the AUC.
    """

    log = True

    @classmethod
    def _measure(
        cls, rare: NDArray[np.bool_], scores: NDArray[Any], weight: Any
    ) -> Interval | None:
        return roc_auc_interval(rare, scores, sample_weight=weight)

    def _draw(self, ax: "Axes", log: bool | None = None, **style: Any) -> None:
        table, log = self.table, self.log if log is None else log
        rate = table.false_positive_rate.value
        least = 0.5 / table.n_rest
        x = np.maximum(rate, least) if log else rate
        kept = table.thinned(_MOST_DRAWN)
        _curve(ax, x[kept], table.recall, kept, self._label("AUC"), style)
        chance = np.geomspace(least, 1.0, 60) if log else np.array([0.0, 1.0])
        ax.plot(chance, chance, color=GREY, linestyle=":", linewidth=1.2, label="no ranking at all")
        self._mark_own(ax, x, table.recall.value)
        label = "false-positive rate: share of the rest that raises alerts"
        if log:
            log_axis(ax.xaxis, label, percent=True)
            ax.set_xlim(least, 1.0)
        else:
            share_axis(ax.xaxis, label)
        share_axis(ax.yaxis, "recall: share of the rare rows found")
        ax.set_ylim(-0.02, 1.05)
        ax.legend()


class GainsDisplay(TableDisplay):
    """What share of the rare rows the highest rows hold, on a logarithmic axis of all rows.

    From a hundredth of a percent to all, as budgets for looking at alerts are. With
    ``lift=True`` in `plot` the axis up is how many times more rare rows there are among the
    highest than among as many drawn at random.

    Parameters
    ----------
    table, name, value
        No `value`.
    """

    def _draw(self, ax: "Axes", lift: bool = False, **style: Any) -> None:
        gains = Gains.of(self.table)
        band = gains.lift if lift else gains.gain
        kept = np.unique(np.linspace(0, len(gains.share) - 1, _MOST_DRAWN).astype(int))
        _curve(ax, gains.share[kept], band, kept, self.name, style)
        x = np.geomspace(gains.share[0], 1.0, 60)
        chance = np.ones(60) if lift else x
        ax.plot(x, chance, color=GREY, linestyle=":", linewidth=1.2, label="no ranking at all")
        rate = self.table.n_rare / self.table.n_rows
        best = np.minimum(x / rate, 1.0) / (x if lift else 1.0)
        ax.plot(x, best, color=GREY, linestyle="--", linewidth=1.0, label="all rare rows first")
        log_axis(ax.xaxis, "highest rows, as a share of all", percent=True)
        ax.set_xlim(max(gains.share[0], 1e-5), 1.0)
        if lift:
            log_axis(ax.yaxis, "lift: times as many as at random")
        else:
            share_axis(ax.yaxis, "share of the rare rows among them")
            ax.set_ylim(-0.02, 1.05)
        ax.legend()


class AlertsDisplay(TableDisplay):
    """Precision and recall against the number of alerts, with the exact interval of each.

    Alerts are a day where the table has days, else in 10,000 rows.

    Parameters
    ----------
    table, name, value
        No `value`.
    """

    @property
    def unit(self) -> str:
        """What alerts are counted in."""
        return "alerts a day" if self.table.n_days else "alerts in 10,000 rows"

    def rate(self) -> NDArray[np.float64]:
        """Alerts in that unit, at each threshold."""
        return alerts_in_unit(self.table)

    def _draw(self, ax: "Axes", **style: Any) -> None:
        kept = _with_alerts(self.table, _MOST_DRAWN)
        x = self.rate()
        for band, label, color, dashes in (
            (self.table.precision, "precision", VERMILLION, "--"),
            (self.table.recall, "recall", BLUE, "-"),
        ):
            name = label if self.name is None else f"{label}, {self.name}"
            look = {"color": color, "linestyle": dashes} | style
            _curve(ax, x[kept], band, kept, name, look)
            self._mark_own(ax, x, band.value, label == "recall")
        log_axis(ax.xaxis, self.unit)
        ax.set_xlim(x[kept][0], x[kept][-1])
        share_axis(ax.yaxis, "")
        ax.set_ylim(-0.02, 1.05)
        ax.legend()


class CostDisplay(TableDisplay):
    """What errors cost on all the rows together against the number of alerts, with intervals.

    Parameters
    ----------
    table, name, value
        A table with costs; no `value`.
    """

    def _draw(self, ax: "Axes", **style: Any) -> None:
        cost = self.table.cost
        if cost is None:
            raise ValueError("the table has no costs: give costs={'fp': ..., 'fn': ...}.")
        kept, x = _with_alerts(self.table, _MOST_DRAWN), alerts_in_unit(self.table)
        _curve(ax, x[kept], Band(cost.value, cost.low, cost.high), kept, self.name or "cost", style)
        least = cost.least
        ax.plot(
            max(x[least], x[kept][0]), cost.value[least], "o", color=VERMILLION, markersize=6,
            label="the least", zorder=5,
        )  # fmt: skip
        self._mark_own(ax, x, cost.value)
        log_axis(ax.xaxis, "alerts a day" if self.table.n_days else "alerts in 10,000 rows")
        ax.set_xlim(x[kept][0], x[kept][-1])
        ax.set_ylim(0.0, None)
        ax.set_ylabel(f"cost on these rows ({cost.words})")
        ax.legend()


def alerts_in_unit(table: ThresholdTable) -> NDArray[np.float64]:
    """Alerts a day where days are known, else in 10,000 rows."""
    if table.n_days:
        return table.alerts / table.n_days
    return 1e4 * table.alerts / table.n_rows


def _with_alerts(table: ThresholdTable, most: int) -> NDArray[np.intp]:
    kept = table.thinned(most)
    return kept[table.alerts[kept] > 0]


def _curve(
    ax: "Axes",
    x: NDArray[Any],
    band: Band,
    kept: NDArray[np.intp],
    label: str | None,
    style: dict[str, Any],
) -> None:
    """A line within its interval."""
    look: dict[str, Any] = {"color": BLUE, "linewidth": 1.8} | style
    value, low, high = (each[kept] for each in band)
    ax.fill_between(x, low, high, color=look["color"], alpha=BAND, linewidth=0)
    ax.plot(x, value, label=label or "_", **look)
