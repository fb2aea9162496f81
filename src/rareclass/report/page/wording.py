"""Numbers as people read them."""

import math

from rareclass.metrics.interval import Interval

SPACE = "\u00a0"
"""Between a number and its unit: no line ends there."""
NONE = "\u2013"
"""In place of a number that there is not."""


def whole(number: float) -> str:
    r"""A count: whole, or to a digit where weights make it none.

    >>> whole(12345.0), whole(3.25), whole(float("nan"))
    ('12,345', '3.2', '\u2013')
    """
    if math.isnan(number):
        return NONE
    if abs(number - round(number)) < 1e-9 or abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:,.1f}"


def amount(number: float) -> str:
    """A quantity to three digits.

    >>> amount(1234.5), amount(12.345), amount(0.01234), amount(0.0)
    ('1,234', '12.3', '0.0123', '0')
    """
    if math.isnan(number):
        return NONE
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def percent(share: float) -> str:
    r"""A share in percent, with digits enough to tell it from nothing.

    >>> percent(0.312), percent(0.00012), percent(1.0), percent(0.0), percent(0.9996)
    ('31.2\xa0%', '0.012\xa0%', '100\xa0%', '0\xa0%', '99.96\xa0%')
    """
    if math.isnan(share):
        return NONE
    return f"{percent_number(share)}{SPACE}%"


def percent_number(share: float) -> str:
    """The same without its sign, for the first of two.

    >>> percent_number(0.1234), percent_number(0.00123), percent_number(0.999999)
    ('12.3', '0.12', '99.99')
    """
    number = 100.0 * share
    if number in (0.0, 100.0):
        return f"{number:.0f}"
    if number > 99.9:  # never rounded to all
        return f"{math.floor(100.0 * number + 1e-9) / 100.0:.2f}"
    return f"{number:.1f}" if number >= 1.0 else f"{number:.2g}"


def percent_with_bounds(interval: Interval) -> str:
    r"""A share with the bounds of its interval.

    >>> percent_with_bounds(Interval(0.31, 0.26, 0.364))
    '31.0\xa0% (26.0 to 36.4\xa0%)'
    """
    if math.isnan(interval.value):
        return NONE
    return f"{percent(interval.value)} ({percent_bounds(interval)})"


def percent_bounds(interval: Interval) -> str:
    r"""The bounds alone.

    >>> percent_bounds(Interval(0.31, 0.26, 0.364))
    '26.0 to 36.4\xa0%'
    """
    return f"{percent_number(interval.low)} to {percent(interval.high)}"


def decimal_with_bounds(interval: Interval) -> str:
    """A measure between 0 and 1 with its interval.

    >>> decimal_with_bounds(Interval(0.93, 0.893, 0.955))
    '0.930 (0.893 to 0.955)'
    """
    return f"{interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"
