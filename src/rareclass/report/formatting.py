"""Numbers and names as readers of a page see them."""

import math
from collections.abc import Sequence

from rareclass.metrics.interval import Interval

SPACE = "\u00a0"
"""Between a number and its unit: no line ends there."""
NONE = "\u2013"
"""In place of a number that does not exist."""


def whole(number: float) -> str:
    r"""Format a count: whole, or with one decimal where weights make it fractional.

    >>> whole(12345.0), whole(3.25), whole(float("nan"))
    ('12,345', '3.2', '\u2013')
    """
    if math.isnan(number):
        return NONE
    if abs(number - round(number)) < 1e-9 or abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:,.1f}"


def amount(number: float) -> str:
    """Format a quantity with three digits.

    >>> amount(1234.5), amount(12.345), amount(0.01234), amount(0.0)
    ('1,234', '12.3', '0.0123', '0')
    """
    if math.isnan(number):
        return NONE
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def percent(share: float) -> str:
    r"""Format a share in percent, with enough digits to tell it from 0 and from 100 %.

    >>> percent(0.312), percent(0.00012), percent(1.0), percent(0.0), percent(0.9996)
    ('31.2\xa0%', '0.012\xa0%', '100\xa0%', '0\xa0%', '99.96\xa0%')
    """
    if math.isnan(share):
        return NONE
    return f"{percent_number(share)}{SPACE}%"


def percent_number(share: float) -> str:
    """Format a share in percent without the sign, for the lower bound of a range.

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
    r"""Format a share with the bounds of its interval.

    >>> percent_with_bounds(Interval(0.31, 0.26, 0.364))
    '31.0\xa0% (26.0 to 36.4\xa0%)'
    """
    if math.isnan(interval.value):
        return NONE
    return f"{percent(interval.value)} ({percent_bounds(interval)})"


def percent_bounds(interval: Interval) -> str:
    r"""Format the bounds of a share.

    >>> percent_bounds(Interval(0.31, 0.26, 0.364))
    '26.0 to 36.4\xa0%'
    """
    return f"{percent_number(interval.low)} to {percent(interval.high)}"


def decimal_with_bounds(interval: Interval) -> str:
    """Format a measure between 0 and 1 with the bounds of its interval.

    >>> decimal_with_bounds(Interval(0.93, 0.893, 0.955))
    '0.930 (0.893 to 0.955)'
    """
    return f"{interval.value:.3f} ({decimal_bounds(interval)})"


def decimal_bounds(interval: Interval) -> str:
    """Format the bounds of a measure between 0 and 1."""
    return f"{interval.low:.3f} to {interval.high:.3f}"


def amount_with_bounds(interval: Interval) -> str:
    """Format a quantity with the bounds of its interval.

    >>> amount_with_bounds(Interval(12.0, 9.5, 140.0))
    '12 (9.5 to 140)'
    """
    return f"{amount(interval.value)} ({amount(interval.low)} to {amount(interval.high)})"


def listed(names: Sequence[str]) -> str:
    """Join names for a sentence.

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
