"""Displays of curves over all thresholds, with the interval of each point."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rareclass.metrics import average_precision_interval, roc_auc_interval
from rareclass.metrics.interval import Interval
from rareclass.report.drawing import BAND, BLUE, GREY, INK, VERMILLION, log_axis, share_axis
from rareclass.report.ranking_display import RankingDisplay
from rareclass.report.threshold_table import Band, Gains, ThresholdTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points of a curve that are drawn.
_MOST_DRAWN = 240


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

    _measure: ClassVar[Callable[..., Interval] | None] = None

    def __init__(
        self, table: ThresholdTable, *, name: str | None = None, value: Interval | None = None
    ) -> None:
        self.table, self.name, self.value = table, name, value

    @classmethod
    def _of(
        cls,
        rare: NDArray[np.bool_],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        name: str | None,
        **options: Any,
    ) -> Self:
        table, value = ThresholdTable.of(rare, scores, weight, **options), None
        if cls._measure is not None:
            value = cls._measure(rare, scores, sample_weight=weight)
        return cls(table, name=name, value=value)

    def _label(self, what: str) -> str | None:
        if self.value is None:
            return self.name
        words = f"{what} {self.value.value:.3f}"
        return words if self.name is None else f"{self.name} ({words})"

    def _mark_own(
        self, ax: "Axes", x: NDArray[Any], y: NDArray[Any], in_legend: bool = True
    ) -> None:
        """Mark the model's own threshold by a diamond."""
        if self.table.own is not None and np.isfinite(y[self.table.own]):
            ax.plot(
                x[self.table.own], y[self.table.own], "D", color=INK, markersize=5.5, zorder=5,
                label="the model's threshold" if in_legend else "_",
            )  # fmt: skip


class PrecisionRecallDisplay(TableDisplay):
    """Precision against recall, with the exact interval of the precision of each threshold.

    The band is pointwise: it holds for a threshold that was named beforehand, not for the whole
    curve. The dotted line is the share of rare rows, the precision of a random ranking. The table's
    ``own`` threshold, where it has one, is marked.

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

    _measure = staticmethod(average_precision_interval)

    def _draw(self, ax: "Axes", **style: Any) -> None:
        table = self.table
        kept = _with_alerts(table)
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

    The false-positive rate is on a logarithmic axis unless `log` is False: with a rare class the
    first hundredths matter, and a linear axis puts them on its edge. The band is pointwise, as in
    `PrecisionRecallDisplay`.

    Parameters
    ----------
    table, name, value
        `value` is the AUC.
    """

    log = True

    _measure = staticmethod(roc_auc_interval)

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
    """Share of the rare rows that the highest rows hold, on a logarithmic axis of all rows.

    The axis reaches from a hundredth of a percent to all rows, as budgets for reviewing alerts do.
    With ``lift=True`` in `plot` the vertical axis is the lift: how many times more rare rows the
    highest rows hold than as many rows drawn at random.

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
        """Unit in which alerts are counted."""
        return self.table.alert_unit

    def rate(self) -> NDArray[np.float64]:
        """Alerts in `unit`, at each threshold."""
        return self.table.alerts * self.table.per_alert

    def _draw(self, ax: "Axes", **style: Any) -> None:
        kept = _with_alerts(self.table)
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
    """Cost of errors on all the rows together against the number of alerts, with intervals.

    Parameters
    ----------
    table, name, value
        A table with costs; no `value`.
    """

    def _draw(self, ax: "Axes", **style: Any) -> None:
        cost = self.table.cost
        if cost is None:
            raise ValueError("the table has no costs: give costs={'fp': ..., 'fn': ...}.")
        kept, x = _with_alerts(self.table), self.table.alerts * self.table.per_alert
        _curve(ax, x[kept], Band(cost.value, cost.low, cost.high), kept, self.name or "cost", style)
        least = cost.least
        ax.plot(
            max(x[least], x[kept][0]), cost.value[least], "o", color=VERMILLION, markersize=6,
            label="the least", zorder=5,
        )  # fmt: skip
        self._mark_own(ax, x, cost.value)
        log_axis(ax.xaxis, self.table.alert_unit)
        ax.set_xlim(x[kept][0], x[kept][-1])
        ax.set_ylim(0.0, None)
        ax.set_ylabel(f"cost on these rows ({cost.words})")
        ax.legend()


def _with_alerts(table: ThresholdTable) -> NDArray[np.intp]:
    kept = table.thinned(_MOST_DRAWN)
    return kept[table.alerts[kept] > 0]


def _curve(
    ax: "Axes",
    x: NDArray[Any],
    band: Band,
    kept: NDArray[np.intp],
    label: str | None,
    style: dict[str, Any],
) -> None:
    """Draw a line within its interval."""
    look: dict[str, Any] = {"color": BLUE, "linewidth": 1.8} | style
    value, low, high = (each[kept] for each in band)
    ax.fill_between(x, low, high, color=look["color"], alpha=BAND, linewidth=0)
    ax.plot(x, value, label=label or "_", **look)
