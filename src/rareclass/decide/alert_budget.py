"""Budgets of alerts: at most so many in so many rows, or in an hour, a day or a week to come.

`covered_periods` alone decides which hours, days or weeks some rows cover: by the clock of the
times given, part ones at both ends left out.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import special

from rareclass.decide.constraints import HELD_OUT, ChosenCut, Constraint, Share
from rareclass.errors import ErrorKind, counted, setting
from rareclass.folds.dealing import are_days, check_days
from rareclass.metrics.held_out_cuts import HeldOutCuts, running_sums
from rareclass.metrics.intervals import Interval, chance_of_at_most, upper_bound
from rareclass.metrics.scored_classes import FloatArray
from rareclass.parameters import check_choice, check_whole

EXCHANGEABLE_ROWS = "exact order statistic of rows to come"
EXCHANGEABLE_PERIODS = "exact order statistic of {period}s"
POISSON = "exact order statistic of Poisson arrivals"
TWO_CLASSES = "exact bounds of both classes"
# Days of each period that a budget may be of, and what a budget of it is called.
PERIODS = {"hour": 1.0 / 24.0, "day": 1.0, "week": 7.0}
A_PERIOD = {"hour": "an hour", "day": "a day", "week": "a week"}
# Weeks begin on Mondays: days since 1970 began on a Thursday.
_MONDAY = 4.0
# Part of a period that may be missing at either end, beyond what other periods lack, without it
# being a part period; others are those up to this share of them.
_SLACK, _MOST_PERIODS = 0.05, 0.9


class CoveredPeriods(NamedTuple):
    """Hours, days or weeks that some rows cover.

    ``number`` is that of the whole period of each row, from 0 on, -1 in a part period, which is
    left out; ``n`` is how many whole periods there are. Where there is none, ``has_whole`` is
    False, ``n`` is the length that the rows cover, and ``number`` is 0 throughout. ``starts`` are
    the starts of all periods with rows, part ones included, in days since 1970, and ``place`` tells
    which of them each row is of.
    """

    number: np.ndarray
    n: float
    has_whole: bool
    starts: FloatArray
    place: np.ndarray


def covered_periods(time: np.ndarray, period: str) -> CoveredPeriods:
    """Deal times (`read_times`) into periods by their own clock; O(n log n).

    Periods without any row, as days of a weekend may be, are not counted. The first period with
    rows is a part one where its first row comes later in the period than that of nine of ten other
    periods, and the last one where its last row comes earlier, by a twentieth of the period. So an
    office that opens at nine has whole days, and an extract that begins at noon does not.

    Raises `InputError` for hours of several rows whose times are whole days.
    """
    length = PERIODS[period]
    days = time.astype("M8[us]").astype(np.int64) / 86_400e6 if time.dtype.kind == "M" else time
    if period == "hour" and len(days) > 1 and (days == np.floor(days)).all():
        raise ErrorKind.SETTING.error(
            f"Alerts an hour need the hour of each row; {len(days):,} times are days alone.",
            "Give times such as 2026-03-01T12:00, or so many alerts a day.",
        )
    shift = _MONDAY if period == "week" and time.dtype.kind == "M" else 0.0
    index = np.floor((days - shift) / length + 1e-9)
    offset = np.maximum((days - shift) / length - index, 0.0)
    found, place = np.unique(index, return_inverse=True)
    first, last = np.ones(len(found)), np.zeros(len(found))
    np.minimum.at(first, place, offset)
    np.maximum.at(last, place, offset)
    whole = np.ones(len(found), dtype=bool)
    if len(found) > 1:
        begins, ends = (first[1:-1], last[1:-1]) if len(found) > 2 else (first[1:], last[:-1])
        whole[0] = first[0] <= np.quantile(begins, _MOST_PERIODS) + _SLACK
        whole[-1] &= last[-1] >= np.quantile(ends, 1.0 - _MOST_PERIODS) - _SLACK
    elif last[0] > first[0]:  # of a single period nothing says when it begins
        whole[0] = first[0] <= _SLACK and last[0] >= 1.0 - _SLACK
    starts = found * length + shift
    if not whole.any():
        span = float(days.max() - days.min()) / length
        return CoveredPeriods(np.zeros(len(days), dtype=int), span, False, starts, place)
    number = np.where(whole[place], np.cumsum(whole)[place] - 1, -1)
    return CoveredPeriods(number, float(whole.sum()), True, starts, place)


class AlertsAPeriod(NamedTuple):
    """Alerts above each cut, in the whole periods that rows cover."""

    periods: CoveredPeriods
    mean: FloatArray  # shape (d + 1,)
    variance: FloatArray  # shape (d + 1,): between periods, that of Poisson arrivals at least
    rank: FloatArray  # shape (n,): weight of the row's period down to the row; 0 in a part period

    @classmethod
    def of(cls, held: HeldOutCuts, time: np.ndarray, period: str) -> Self:
        """Count the rows above each cut; `time` is in the order of scores. O(n log n)."""
        periods = covered_periods(time, period)
        number, n = periods.number, max(periods.n, 1e-9)
        weight = np.where(number >= 0, held.weight, 0.0)
        rank = running_sums(weight, number)
        above, squares = (held.above(each) for each in (weight, weight * (2.0 * rank - weight)))
        variance = np.maximum((squares - above**2 / n) / max(n - 1.0, 1.0), above / n)
        return cls(periods, above / n, variance, rank)

    def interval(self, held: HeldOutCuts, cuts: Any, level: float) -> Interval:
        """Return the mean above some cuts with its bounds: Student's, of Poisson's width at least.

        Poisson's alone where there is one period, which says nothing of how periods differ.
        """
        n, high = max(self.periods.n, 1e-9), 0.5 + level / 2.0
        mean, unit = self.mean[cuts], held.row_unit / n
        count = np.maximum(mean / unit, np.finfo(float).tiny)
        below = unit * special.gammaincinv(count, 1.0 - high)
        above = unit * special.gammaincinv(count + 1.0, high)
        if self.periods.has_whole and n > 1:
            reach = special.stdtrit(n - 1.0, high) * np.sqrt(self.variance[cuts] / n)
            below, above = np.minimum(below, mean - reach), np.maximum(above, mean + reach)
        return Interval(mean, np.maximum(below, 0.0), above)

    def limits(self, held: HeldOutCuts, number: int) -> FloatArray:
        """Of each whole period the highest score with more than `number` alerts at or above it."""
        limits, over = np.full(int(self.periods.n), -np.inf), self.rank > number
        np.maximum.at(limits, self.periods.number[over], held.score[over])
        return np.sort(limits)

    def cut_within(self, number: float, length: float, confidence: float) -> int:
        r"""Return the lowest cut whose prediction limit of `length` periods is within `number`.

        .. math:: L m + t \sqrt{L m + L \min(L, 1) (v - m) + L^2 v / n}

        is Student's, of mean m and variance v, at least m, of n periods; the mean where n is 1.
        """
        n, reach, expected = self.periods.n, 0.0, length * self.mean
        if self.periods.has_whole and n > 1:
            differing = length * min(length, 1.0) * (self.variance - self.mean)
            error = np.sqrt(expected + differing + length**2 * self.variance / n)
            reach = special.stdtrit(n - 1.0, confidence) * error
        return int(np.argmin(np.append(expected + reach <= number, False))) - 1


@dataclass(frozen=True)
class AtMostAlerts(Constraint):
    r"""At most `number` alerts in the next `rows` rows; the lowest threshold that keeps it.

    The confidence is that of the count itself: over held-out rows and rows to come together. Of n
    held-out rows and N to come, all drawn alike, the number of those to come that score above the
    (m + 1)-th highest held-out score is beta-binomial with (N, m + 1, n - m), whatever the
    distribution of scores. m is the greatest for which at most `number` has the confidence. Where
    as many rows of groups as c count as one, it also has it with n, N and `number` divided by c:
    rows that score high may be of groups or not.

    With times, the prediction limit of days that differ (`AlertsAPeriod`) is within `number`, too.

    With another prevalence the shares of both classes above a threshold are bounded exactly, and
    the count of a binomial beyond that: half of the chance of error for each.
    """

    formula: ClassVar[str] = "alerts <= {number} in {rows} rows"
    number: int
    rows: int

    def __post_init__(self) -> None:
        check_whole("max_alerts", self.number)
        check_whole("rows", self.rows)
        if self.number >= self.rows:
            given = f"{counted(self.number, 'alert')} in {counted(self.rows, 'row')}"
            raise ErrorKind.SETTING.error(f"{given} do not constrain.", "Give fewer alerts.")

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the lowest cut with few enough alerts."""
        rate = np.add(*held.shares(prevalence))
        if confidence is None:
            return _on_held_out(rate * self.rows, self.number)
        error, n, alike = 1.0 - confidence, held.row_trials, held.alike
        most = None
        if prevalence is not None:  # upper bounds of the share of rows above each cut
            rare, majority = (upper_bound(*each, error / 4.0) for each in held.tests)
            most = np.minimum(prevalence * rare + (1.0 - prevalence) * majority, 1.0)

        def keeps_of(cut: int, number: int, c: float) -> bool:
            """Keep the number where c rows count as one."""
            few, rows, trials = number / c, self.rows / c, n * alike / c
            if most is None:
                above = float(rate[cut]) * trials
                return _beta_binomial(math.floor(few), rows, above, trials) >= confidence
            return bool(1.0 - chance_of_at_most(few, rows, most[cut]) <= error / 2.0)

        def keeps(cut: int, number: int) -> bool:
            return all(keeps_of(cut, number, c) for c in (1.0, alike))

        procedure = EXCHANGEABLE_ROWS if most is None else TWO_CLASSES
        found = _lowest(keeps, len(rate) - 1, self.number, self.rows, procedure)
        if held.time is None or most is not None or not are_days(held.time):
            return found
        days = AlertsAPeriod.of(held, held.time, "day")
        length = self.rows / max(float(days.mean[-1]), 1e-9)
        within = days.cut_within(self.number, length, confidence)
        return found._replace(cut=min(found.cut, within))


@dataclass(frozen=True)
class AtMostAlertsAPeriod(Constraint):
    r"""At most `number` alerts in an hour, day or week to come; the lowest threshold that keeps it.

    Given the time of each row. Counted are the periods that rows cover (`covered_periods`). With D
    of them, at least ``confidence / (1 - confidence)``, periods are exchangeable and nothing else:
    each has a highest threshold that it would have exceeded `number` times, and of these the
    ``ceil(confidence (D + 1))``-th smallest keeps a new period within `number` with the confidence,
    however many rows a period has. So on the mean over samples a share ``1 - confidence`` of the
    periods to come has more at most. With fewer periods alerts are taken to arrive at random
    (Poisson): of those that score above the (m + 1)-th highest held-out score, the number in a new
    period is negative binomial, exactly. Periods that differ by more than chance would break it:
    their prediction limit (`AlertsAPeriod`) is within `number` too, and no held-out period has
    more, which alone bounds the share by ``1 / (D + 1)``.
    """

    formula: ClassVar[str] = "alerts <= {number} {a_period}"
    number: int
    period: str = "day"

    def __post_init__(self) -> None:
        check_whole("max_alerts", self.number)
        check_choice("per", self.period, list(PERIODS))

    @property
    def words(self) -> str:
        """The constraint as a formula."""
        return self.formula.format(number=self.number, a_period=A_PERIOD[self.period])

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the lowest cut with few enough alerts a period."""
        if held.time is None:
            raise ErrorKind.MISSING_COLUMN.error(
                f"{self.words}: the {self.period} of each row is not known.",
                "Pass time=, one date a row, or give the alerts per number of rows.",
            )
        check_days(held.time, setting("time"), "time")
        alerts = AlertsAPeriod.of(held, held.time, self.period)
        periods, n = alerts.periods, max(alerts.periods.n, 1e-9)
        if confidence is None:
            return _on_held_out(alerts.mean, self.number)
        place = math.ceil(confidence * (n + 1) - 1e-9)
        limits = alerts.limits(held, self.number) if periods.has_whole else np.array([-np.inf])
        if periods.has_whole and place <= len(limits):
            procedure = EXCHANGEABLE_PERIODS.format(period=self.period)
            cut = held.at(limits[place - 1])
            return ChosenCut(cut, True, self.number, self.number, procedure, True)
        share, above = n / (n + 1.0), n * alerts.mean

        def keeps(cut: int, number: int) -> bool:
            alike = np.array([1.0, held.alike])
            few = np.floor(number / alike)
            chance = special.betainc(above[cut] / alike + 1.0, few + 1.0, share)
            return bool((chance >= confidence).all())

        found = _lowest(keeps, len(above) - 1, self.number, 2**40, POISSON)
        within = alerts.cut_within(self.number, 1.0, confidence)
        return found._replace(cut=min(found.cut, within, held.at(limits[-1])))


class PeriodBudget(NamedTuple):
    """A budget of alerts a period, and how often some rows have more.

    ``n_periods`` is how many periods the rows are of, part ones included, ``n_above`` how many of
    them have more alerts than `number`, ``most`` the alerts of the worst, which begins at ``worst``
    (a date, or a number where times are numbers). ``allowed`` is the share of periods to come that
    may have more, on the mean over samples, where the rule states a confidence; ``time`` the column
    of times, where known.
    """

    number: int
    period: str
    n_periods: int = 0
    n_above: int = 0
    most: float = 0.0
    worst: str = ""
    allowed: float | None = None
    time: str | None = None
    n_part: int = 0  # periods that the rows cover in part, among `n_periods`

    def on(self, time: np.ndarray, alerts: Any) -> "PeriodBudget":
        """Count the alerts of each period; `alerts` is how many each row stands for, 0 for none."""
        periods = covered_periods(time, self.period)
        counts = np.bincount(periods.place, np.asarray(alerts, float), len(periods.starts))
        worst = int(counts.argmax())
        start = float(periods.starts[worst])
        name = f"{start:g}"
        if time.dtype.kind == "M":
            moment = np.datetime64(round(start * 1440.0), "m")
            name = str(moment if self.period == "hour" else moment.astype("M8[D]"))
        return self._replace(
            n_periods=len(counts),
            n_part=len(counts) - (int(periods.n) if periods.has_whole else 0),
            n_above=int((counts > self.number * (1.0 + 1e-12)).sum()),
            most=float(counts[worst]),
            worst=name,
        )

    def sentence(self) -> str:
        """Say in how many periods there are more alerts than the budget."""
        allowed = ""
        if self.allowed:
            allowed = f" (allowed: 1 {self.period} in {1.0 / self.allowed:.3g})"
        part = f" ({self.n_part} in part)" if self.n_part else ""
        exceed = "exceeds" if self.n_above == 1 else "exceed"
        place = "on" if self.period == "day" else f"in the {self.period} of"
        most = f"; most {self.most:g} {place} {self.worst}" if self.worst else ""
        return (
            f"{self.n_above} of {counted(self.n_periods, self.period)}{part} {exceed} "
            f"{counted(self.number, 'alert')}{allowed}{most}."
        )


def _on_held_out(alerts: FloatArray, number: int) -> ChosenCut:
    """The last of the cuts with at most `number` alerts on the held-out rows."""
    cut = int(np.flatnonzero(alerts <= number * (1.0 + 1e-12))[-1])
    return ChosenCut(cut, True, float(alerts[cut]), number, HELD_OUT)


def _lowest(
    keeps: Callable[[int, int], bool], n_cuts: int, number: int, most: int, procedure: str
) -> ChosenCut:
    """The last of the cuts that keeps at most `number` alerts; `keeps` is of a cut and a number."""
    n_kept = bisect_left(range(n_cuts), True, key=lambda cut: not keeps(cut, number))
    if n_kept:
        return ChosenCut(n_kept - 1, True, number, number, procedure, guaranteed=True)
    enough = bisect_left(range(most), True, number + 1, key=lambda more: keeps(0, more))
    return ChosenCut(0, False, enough, number, procedure)


def _beta_binomial(most: int, trials: float, above: float, n: float) -> float:
    """Chance of at most `most` of `trials` new rows above the (above + 1)-th highest of n."""
    j = np.arange(most + 1.0)
    log_choose = -np.log1p(trials) - special.betaln(trials - j + 1.0, j + 1.0)
    a, b = above + 1.0, n - above
    log_chance = log_choose + special.betaln(j + a, trials - j + b) - special.betaln(a, b)
    return float(np.exp(log_chance).sum())
