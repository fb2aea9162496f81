"""What recurs in dates, against the calendar of the standard library."""

import datetime as dt
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from rareclass.encoding.dates_and_texts import RecurringDates

MOMENT = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))


def seconds(moment):
    return moment.replace(tzinfo=dt.UTC).timestamp()


@draws(60)
@given(st.lists(MOMENT, min_size=2, max_size=6, unique=True))
def test_the_calendar(moments):
    dates = np.array([[seconds(moment)] for moment in moments])
    recurring = RecurringDates(absolute_time=True).fit(dates)
    found = dict(
        zip([part for part, *_ in recurring.features_], recurring.transform(dates).T, strict=True)
    )
    for k, moment in enumerate(moments):
        day = (moment - moment.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds()
        turns = {
            "hour": day / 86400,
            "weekday": moment.weekday() / 7,
            "month": (moment.month - 1) / 12,
        }
        for unit, turn in turns.items():
            for wave, function in (("sine", math.sin), ("cosine", math.cos)):
                if f"{unit} ({wave})" in found:
                    wanted = function(2 * math.pi * turn)
                    assert np.isclose(found[f"{unit} ({wave})"][k], wanted, atol=1e-6)
        if "day of the month" in found:
            assert found["day of the month"][k] == moment.day
        assert np.isclose(found["time"][k], seconds(moment) / 86400)


def test_what_does_not_vary_is_left_out():
    week = 7 * 86400.0
    recurring = RecurringDates().fit(np.array([[0.0, week], [week, 3 * week], [np.nan, 0.0]]))
    names = [(part, first, second) for part, first, second in recurring.features_]
    assert names == [("day of the month", 0, 0), ("day of the month", 1, 1), ("days", 0, 1)]
    assert recurring.n_cycles_ == 0
    days = recurring.transform(np.array([[0.0, 1.5 * 86400], [np.nan, 0.0]]))[:, 2]
    np.testing.assert_array_equal(days, [1.5, np.nan])


def test_rows_without_weight_do_not_vary():
    dates = np.array([[0.0], [3600.0]])
    assert RecurringDates().fit(dates, np.array([1.0, 0.0])).features_ == []
    assert RecurringDates().fit(dates, np.ones(2)).features_ != []
