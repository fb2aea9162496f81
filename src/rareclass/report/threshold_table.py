"""Counts, precision, recall and costs at every threshold.

One table is read by the curves, the plots, the tables and the slider of a report.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.decide.alert_budget import AlertsAPeriod
from rareclass.metrics.expected_cost import class_cost
from rareclass.metrics.held_out_cuts import HeldOutCuts
from rareclass.metrics.intervals import (
    Interval,
    WeightedRate,
    lower_bound,
    row_units,
    sum_interval,
    upper_bound,
)

Floats = NDArray[np.float64]

LEVEL = 0.95
"""Confidence level of all intervals in a report."""
SHARES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Shares of all rows that have their own thresholds."""
# Bounds are written in ten-thousandths: more digits are noise, and a tenth of the file.
_SCALE = 10_000
# Every number of alerts up to here has its threshold; beyond, each factor of ten has a hundred.
_EXACT_ALERTS = 200
_A_DECADE = 100
# Thresholds by recall: a recall that the reader types is met within a two-hundredth.
_BY_RECALL = 200


class Band(NamedTuple):
    """A share at every threshold with its exact interval; NaN, 0 and 1 where nothing is counted."""

    value: Floats
    low: Floats
    high: Floats

    def at(self, place: int) -> Interval:
        """Return the share at one threshold, with its interval."""
        return Interval(float(self.value[place]), float(self.low[place]), float(self.high[place]))


@dataclass(frozen=True)
class ThresholdTable:
    """Counts and measures of calling ``score > threshold`` rare, from the highest threshold down.

    Up to 200 alerts every possible number of alerts has its threshold; beyond, there are a hundred
    for each factor of ten, and two hundred more are spread over the recall. The first threshold
    raises no alert, the last one alerts for all rows. So the table is small at any number of rows
    and still exact: its counts are those of scikit-learn's
    ``confusion_matrix(y, scores > threshold)``.

    Attributes
    ----------
    thresholds : ndarray of shape (t,)
        Falling. Each is the shortest decimal number between two neighbouring scores, so that it
        can be typed; the model's own threshold keeps its digits.
    hits, false_alerts : ndarray of shape (t,)
        Rare rows and others above the threshold; sums of weights where there are weights.
    n_rare, n_rest : float
        All rare rows, and all others.
    precision, recall, false_positive_rate : Band
        With exact (Clopper-Pearson) 95 % intervals. They are pointwise: each holds for a threshold
        that was named beforehand, not for the curve as a whole. Weights that are not whole, and
        rows of groups, count as the number of rows with the same variance: approximately.
    amounts : Band
        Alerts in `alert_unit`, with 95 % intervals: a day, as `AlertsAPeriod` counts them in the
        whole days that rows cover, else in 10,000 rows, as `WeightedRate` does.
    alert_unit : str
        Unit in which alerts are reported.
    own : int or None
        Place of the model's own threshold.
    busiest : ndarray of shape (t,) or None
        Most alerts on one day, where times were given.
    cost : Band or None
        Of errors and reviews on all the rows together, where costs were given. Its bounds hold
        for rows with as many rare ones among them: where their number varies, costs vary more.
    cost_words : str
        The costs that were given.
    """

    thresholds: Floats
    hits: Floats
    false_alerts: Floats
    n_rare: float
    n_rest: float
    precision: Band
    recall: Band
    false_positive_rate: Band
    amounts: Band
    alert_unit: str
    own: int | None = None
    busiest: Floats | None = None
    cost: Band | None = None
    cost_words: str = ""

    @property
    def least_cost(self) -> int:
        """Place of the least cost; among equals the highest threshold."""
        assert self.cost is not None
        return int(np.argmin(self.cost.value))

    @property
    def alerts(self) -> Floats:
        """Rows above each threshold."""
        return self.hits + self.false_alerts

    @property
    def n_rows(self) -> float:
        """Number of all rows, or their weight."""
        return self.n_rare + self.n_rest

    @classmethod
    def of(
        cls,
        y: ArrayLike,
        scores: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        own: float | None = None,
        time: Any = None,
        costs: Mapping[str, ArrayLike | float] | None = None,
        groups: Any = None,
        every: HeldOutCuts | None = None,
    ) -> Self:
        """Count the rows above every threshold.

        Parameters
        ----------
        y : array-like of shape (n,)
            True or 1 where the row is rare.
        scores : array-like of shape (n,)
            Higher means rarer.
        sample_weight : array-like of shape (n,), optional
            Copies that each row stands for.
        own : float, optional
            The model's threshold.
        time : array-like of shape (n,), optional
            Time of each row; numbers are days.
        costs : mapping, optional
            ``fp`` of a false alert, ``fn`` of a missed rare row, ``review`` of any alert: a number,
            or one for each row.
        groups : array-like of shape (n,), optional
            Rows of equal group count together in all intervals.
        every : HeldOutCuts, optional
            All rows that may raise an alert, also those without a class; by default these rows.

        Returns
        -------
        ThresholdTable
            O(n log n) time, O(n) memory.

        Raises
        ------
        ValueError
            On one class, NaN scores, negative weights; `InputError` where all scores are tied.
        """
        held = HeldOutCuts.read(y, scores, sample_weight, time, groups=groups)
        cuts = _chosen_cuts(held)
        thresholds = np.array([_short_threshold(held, int(cut)) for cut in cuts])
        place = None
        if own is not None and not np.isnan(own):
            cut = held.at(own)
            place = int(np.searchsorted(cuts, cut))
            if place == len(cuts) or cuts[place] != cut:
                cuts, thresholds = np.insert(cuts, place, cut), np.insert(thresholds, place, own)
            thresholds[place] = own  # which keeps its digits
        hits, false_alerts = held.rare[cuts], held.majority[cuts]
        alerts, trials = hits + false_alerts, held.trials[cuts]
        every = held if every is None else every
        amounts, busiest = _amounts(every, every.at(thresholds))
        with np.errstate(invalid="ignore", divide="ignore"):
            precision = np.where(alerts > 0, hits / np.maximum(alerts, 1e-300), np.nan)
        return cls(
            thresholds,
            hits,
            false_alerts,
            held.n_rare,
            held.n_majority,
            precision=_band(precision, trials),
            recall=_band(hits / held.n_rare, held.rare_trials),
            false_positive_rate=_band(false_alerts / held.n_majority, held.majority_trials),
            amounts=amounts,
            alert_unit="alerts in 10,000 rows" if every.time is None else "alerts a day",
            own=place,
            busiest=busiest,
            cost=None if not costs else _costs(held, cuts, costs, len(np.asarray(scores))),
            cost_words=", ".join(
                f"{name} {float(given):g}" if isinstance(given, int | float) else f"{name} by row"
                for name, given in (costs or {}).items()
            ),
        )

    def at_alerts(self, alerts: float) -> int:
        """Return the place of the lowest threshold with at most so many alerts."""
        return int(np.searchsorted(self.alerts, alerts, side="right")) - 1

    def at_recall(self, share: float) -> int:
        """Return the place of the highest threshold with at least this recall."""
        return int(np.searchsorted(self.recall.value, share - 1e-12))

    def at_false_positive_rate(self, rate: float) -> int:
        """Return the place of the lowest threshold with at most this false-positive rate."""
        return int((self.false_positive_rate.value <= rate).sum()) - 1

    def thinned(self, most: int) -> NDArray[np.intp]:
        """Return places of about `most` thresholds, spread over the logarithm of alerts."""
        n = len(self.thresholds)
        if n <= most:
            return np.arange(n)
        way = np.log10(np.maximum(self.alerts, 1.0)) + self.recall.value * 2.0
        spread = np.linspace(way[0], way[-1], most)
        return np.union1d(np.clip(np.searchsorted(way, spread), 0, n - 1), [0, n - 1])

    def for_script(self) -> dict[str, Any]:
        """Return what the script of a page reads of each threshold, as JSON can write it."""
        columns: dict[str, Any] = {
            # JSON has no infinity.
            "threshold": np.clip(self.thresholds, -1.7e308, 1.7e308).tolist(),
            "hits": _short(self.hits),
            "false_alerts": _short(self.false_alerts),
            "n_rare": _short([self.n_rare])[0],
            "n_rest": _short([self.n_rest])[0],
            "own": self.own,
            "scale": _SCALE,
        }
        for name, values in zip(("alerts", "alerts_low", "alerts_high"), self.amounts, strict=True):
            columns[name] = _short(values, 6)
        for name, band in (("precision", self.precision), ("recall", self.recall)):
            columns[f"{name}_low"] = [round(_SCALE * each) for each in band.low.tolist()]
            columns[f"{name}_high"] = [round(_SCALE * each) for each in band.high.tolist()]
        if self.cost is None:
            # For costs of errors that the reader types.
            rate = self.false_positive_rate
            columns["false_alerts_low"] = _short(rate.low * self.n_rest, 6)
            columns["false_alerts_high"] = _short(rate.high * self.n_rest, 6)
        else:
            for name, values in zip(("cost", "cost_low", "cost_high"), self.cost, strict=True):
                columns[name] = _short(values, 6)
        if self.busiest is not None:
            columns["busiest"] = _short(self.busiest)
        return columns


def _short(values: Any, digits: int = 7) -> list[float | int]:
    """Numbers to so many digits, counts without a decimal point where they are whole."""
    found: list[float | int] = []
    for value in np.asarray(values, dtype=float).tolist():
        short = float(f"{value:.{digits}g}") if digits < 7 or value != int(value) else value
        found.append(int(short) if short == int(short) else short)
    return found


def _short_threshold(held: HeldOutCuts, cut: int) -> float:
    """Shortest decimal number t with (score below the cut) <= t < (score above the cut)."""
    n_above, n = int(held.ends[cut]), len(held.score)
    over = float(held.score[n_above - 1]) if n_above else np.inf
    under = float(held.score[n_above]) if n_above < n else -np.inf
    middle = held.threshold(cut)
    if not np.isfinite(middle):
        if not np.isfinite(over):
            return middle
        middle = over - max(abs(over), 1.0)  # all rows are above
    if not n_above:  # none is
        middle = under + 1e-9 * max(abs(under), 1.0) if np.isfinite(under) else under
    for digits in range(2, 17):
        short = float(f"{middle:.{digits}g}")
        if under <= short < over:
            return short
    return middle


def _chosen_cuts(held: HeldOutCuts) -> NDArray[np.intp]:
    """Cuts by number of alerts and by recall; the first and the last."""
    ends, n_cuts = held.rare + held.majority, len(held.ends)
    few = np.flatnonzero(ends <= _EXACT_ALERTS)
    decades = np.log10(max(ends[-1] / _EXACT_ALERTS, 1.0))
    wanted = np.geomspace(_EXACT_ALERTS, max(ends[-1], _EXACT_ALERTS), int(_A_DECADE * decades) + 2)
    wanted = np.concatenate([wanted, (1.0 + 1e-12) * ends[-1] * np.array(SHARES)])
    by_alerts = np.searchsorted(ends, wanted, side="right") - 1
    shares = np.linspace(0.0, 1.0, _BY_RECALL + 1)
    by_recall = np.searchsorted(held.rare, shares * held.n_rare * (1 - 1e-12))
    every = np.concatenate([[0, n_cuts - 1], few, by_alerts, by_recall])
    return np.unique(np.clip(every, 0, n_cuts - 1))


def _band(share: Floats, trials: Floats | float) -> Band:
    tail = (1.0 - LEVEL) / 2.0
    known = np.where(np.isnan(share), 0.0, share)
    some = np.maximum(trials, 1e-9)
    hits = np.minimum(known * some, some)
    low = np.minimum(lower_bound(hits, some, tail), known)
    high = np.maximum(upper_bound(hits, some, tail), known)
    counted = ~np.isnan(share)
    return Band(share, np.where(counted, low, 0.0), np.where(counted, high, 1.0))


def _amounts(held: HeldOutCuts, cuts: NDArray[np.intp]) -> tuple[Band, Floats | None]:
    """Alerts a day above each cut and the most on one day, or alerts in 10,000 rows."""
    if held.time is not None:
        alerts = AlertsAPeriod.of(held, held.time, "day")
        band = Band._make(alerts.interval(held, cuts, LEVEL))
        return band, _busiest(held, cuts, alerts.periods.place)
    units = row_units(held.is_rare, held.weight)
    if held.group is not None or held.alike != 1.0:
        units = (held.row_unit, held.row_unit)
    of_classes = held.rare[cuts], held.majority[cuts], held.n_rare, held.n_majority
    rate = WeightedRate(*of_classes, *units)
    return Band(*(1e4 * each for each in (rate.value, *rate.bounds(LEVEL)))), None


def _busiest(held: HeldOutCuts, cuts: NDArray[np.intp], days: NDArray[np.intp]) -> Floats:
    """Greatest number of alerts on one day above each cut; `days` are numbers from 0 on."""
    most = np.zeros(len(cuts))
    order = np.argsort(days, kind="stable")
    bounds = np.searchsorted(days[order], np.arange(int(days.max()) + 2))
    for first, last in pairwise(bounds):
        places = order[first:last]  # rising, as rows are from the highest score down
        above = np.concatenate([[0.0], np.cumsum(held.weight[places])])
        most = np.maximum(most, above[np.searchsorted(places, held.ends[cuts])])
    return most


def _costs(
    held: HeldOutCuts, cuts: NDArray[np.intp], costs: Mapping[str, ArrayLike | float], n_rows: int
) -> Band:
    """Cost of the rows on the wrong side of each cut, and of reviewing alerts."""
    columns = {
        name: np.broadcast_to(np.asarray(costs.get(name, 0.0), float), n_rows)[held.rows]
        for name in ("fp", "fn", "review")
    }
    rare, rest = held.is_rare, ~held.is_rare
    intervals = [
        _cost_of(held, cuts, rare, columns["fn"], False),
        _cost_of(held, cuts, rare, columns["review"], True),
        _cost_of(held, cuts, rest, columns["fp"] + columns["review"], True),
    ]
    sums = [sum_interval(at) for at in zip(*intervals, strict=True)]
    return Band(*(np.array(each) for each in zip(*sums, strict=True)))


def _cost_of(
    held: HeldOutCuts, cuts: NDArray[np.intp], mask: NDArray[np.bool_], amount: Floats, above: bool
) -> list[Interval]:
    """Cost of one class at each cut: of its rows above the cut, or below."""
    weight = np.where(mask, held.weight, 0.0)
    sums = np.concatenate([[0.0], np.cumsum(weight * amount)])[held.ends[cuts]]
    total = float(weight @ amount)
    value = sums if above else np.maximum(total - sums, 0.0)
    group = None if held.group is None else held.group[mask]
    every = np.ones(int(mask.sum()), bool)
    whole = class_cost(every, amount[mask], held.weight[mask], 1.0, group)
    return [whole._replace(value=float(each)).interval(LEVEL) for each in value]
