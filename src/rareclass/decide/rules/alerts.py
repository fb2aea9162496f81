"""Constraints on the number of alerts: of so many rows, or of a day."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from rareclass.decide.rules.constraint import Found
from rareclass.decide.rules.exact_bounds import chance_of_at_most, upper_bound
from rareclass.decide.rules.held_out import HeldOut
from rareclass.decide.rules.rates import HELD_OUT
from rareclass.errors import InputError
from rareclass.metrics.scored_classes import FloatArray
from rareclass.parameters import check_whole

EXCHANGEABLE_ROWS = "exact order statistic of rows to come"
EXCHANGEABLE_DAYS = "exact order statistic of days"
POISSON = "exact order statistic of Poisson arrivals"
TWO_CLASSES = "exact bounds of both classes"


@dataclass(frozen=True)
class AtMostAlerts:
    r"""At most `number` alerts in the next `rows` rows; the lowest threshold that keeps it.

    The confidence is that of the count itself: over held-out rows and rows to come together. Of n
    held-out rows and N to come, all drawn alike, the number of those to come that score above the
    (m + 1)-th highest held-out score is beta-binomial with (N, m + 1, n - m), whatever the
    distribution of scores. m is the greatest for which at most `number` has the confidence.

    With another prevalence the shares of both classes above a threshold are bounded exactly, and
    the count of a binomial beyond that: half of the chance of error for each.
    """

    number: int
    rows: int

    def __post_init__(self) -> None:
        check_whole("max_alerts", self.number)
        check_whole("rows", self.rows)
        if self.number >= self.rows:
            raise ValueError(
                f"max_alerts={self.number} in rows={self.rows} is no constraint: give fewer alerts "
                "than rows."
            )

    @property
    def words(self) -> str:
        """What is wanted, as a formula."""
        return f"alerts <= {self.number} in {self.rows} rows"

    def find(self, held: HeldOut, confidence: float | None, prevalence: float | None) -> Found:
        """The lowest cut with few enough alerts."""
        rate = np.add(*held.shares(prevalence))
        if confidence is None:
            cut = int(np.flatnonzero(rate * self.rows <= self.number * (1.0 + 1e-12))[-1])
            return Found(cut, True, float(rate[cut] * self.rows), self.number, HELD_OUT)
        error = 1.0 - confidence
        n = float(held.trials[-1])
        most = None if prevalence is None else self._most(held, error, prevalence)

        def keeps(cut: int, number: int) -> bool:
            if most is None:
                chance = _beta_binomial(number, self.rows, float(rate[cut]) * n, n)
                return chance >= confidence
            over = 1.0 - chance_of_at_most(number, self.rows, most[cut])
            return bool(over <= error / 2.0)

        procedure = EXCHANGEABLE_ROWS if most is None else TWO_CLASSES
        return _lowest(keeps, len(rate) - 1, self.number, self.rows, procedure)

    def _most(self, held: HeldOut, error: float, prevalence: float) -> FloatArray:
        """Upper bound of the share of rows above each cut."""
        rare, majority = (
            upper_bound(share * trials, trials, error / 4.0)
            for share, trials in (
                (held.recalls(), held.rare_trials),
                (held.false_positive_rates(), held.majority_trials),
            )
        )
        return np.minimum(prevalence * rare + (1.0 - prevalence) * majority, 1.0)


@dataclass(frozen=True)
class AtMostAlertsADay:
    r"""At most `number` alerts on a day to come; the lowest threshold that keeps it.

    Given the time of each row. With D days, at least ``confidence / (1 - confidence)``, days are
    exchangeable and nothing else: each has a highest threshold that it would have exceeded `number`
    times, and of these the ``ceil(confidence (D + 1))``-th smallest keeps a new day within
    `number` with the confidence, however many rows a day has. With fewer days alerts are taken to
    arrive at random (Poisson): of those that score above the (m + 1)-th highest held-out score, the
    number on a new day is negative binomial, exactly. Days that differ by more than chance then
    break it more often.
    """

    number: int

    def __post_init__(self) -> None:
        check_whole("max_alerts", self.number)

    @property
    def words(self) -> str:
        """What is wanted, as a formula."""
        return f"alerts <= {self.number} a day"

    def find(self, held: HeldOut, confidence: float | None, prevalence: float | None) -> Found:
        """The lowest cut with few enough alerts a day."""
        if held.days is None:
            raise InputError(
                f"{self.words}: which day each row is of is not known.",
                "Pass time=, one date a row, or ask for so many alerts in so many rows.",
            )
        if prevalence is not None:
            raise InputError(
                f"{self.words} at prevalence={prevalence:g}: the rows of a day are the held-out "
                "rows themselves.",
                "Leave the prevalence out, or ask for so many alerts in so many rows.",
            )
        n_days = int(held.days.max()) + 1
        above = held.rare + held.majority
        if confidence is None:
            kept = above <= self.number * n_days * (1.0 + 1e-12)
            cut = int(np.flatnonzero(kept)[-1])
            return Found(cut, True, float(above[cut] / n_days), self.number, HELD_OUT)
        place = math.ceil(confidence * (n_days + 1) - 1e-9)
        if place <= n_days:
            limit = np.sort(self._limits(held, n_days))[place - 1]
            lowest = np.concatenate([[np.inf], held.score[held.ends[1:] - 1]])  # above each cut
            cut = max(int(np.count_nonzero(lowest > limit)) - 1, 0)
            return Found(cut, True, self.number, self.number, EXCHANGEABLE_DAYS, True)
        share = n_days / (n_days + 1.0)

        def keeps(cut: int, number: int) -> bool:
            return bool(special.betainc(above[cut] + 1.0, number + 1.0, share) >= confidence)

        return _lowest(keeps, len(above) - 1, self.number, 2**40, POISSON)

    def _limits(self, held: HeldOut, n_days: int) -> np.ndarray:
        """Of each day the highest score with more than `number` alerts at or above it."""
        limits = np.full(n_days, -np.inf)
        for day in range(n_days):
            own = np.flatnonzero(held.days == day)
            over = np.flatnonzero(np.cumsum(held.weight[own]) > self.number)
            if len(over):
                limits[day] = held.score[own[over[0]]]
        return limits


def _lowest(
    keeps: Callable[[int, int], bool], n_cuts: int, number: int, most: int, procedure: str
) -> Found:
    """The last of the cuts that keeps at most `number` alerts; `keeps` is of a cut and a number.

    Cuts that keep it come before those that do not. Where there is none: cut 0, no held-out alert,
    with the number that it does keep, at most `most`.
    """
    low, high = -1, n_cuts - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if keeps(middle, number) else (low, middle - 1)
    if low >= 0:
        return Found(low, True, number, number, procedure, guaranteed=True)
    few, many = number, most
    while few + 1 < many:
        middle = (few + many) // 2
        few, many = (few, middle) if keeps(0, middle) else (middle, many)
    return Found(0, False, many, number, procedure)


def _beta_binomial(most: int, trials: int, above: float, n: float) -> float:
    """Chance of at most `most` of `trials` new rows above the (above + 1)-th highest of n."""
    j = np.arange(most + 1.0)
    log_choose = -np.log1p(trials) - special.betaln(trials - j + 1.0, j + 1.0)
    a, b = above + 1.0, n - above
    log_chance = log_choose + special.betaln(j + a, trials - j + b) - special.betaln(a, b)
    return float(np.exp(log_chance).sum())
