"""Rows that wait: by id, bounded, the oldest leaving first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rareclass.stream.reading import WaitingRows


@given(
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 6)), max_size=60),
    capacity=st.integers(1, 4),
)
def test_holds_what_a_plain_list_holds(steps, capacity):
    held, plain, dropped = WaitingRows(capacity), [], 0
    for number, (adds, which) in enumerate(steps):
        name = f"id-{which}"
        known = [arrival for waiting, arrival in plain if waiting == name]
        if not adds:
            row = held.take(name)
            assert (row is None) == (not known)
            assert row is None or [row.arrival] == known
            plain = [pair for pair in plain if pair[0] != name]
        elif not known:
            row = held.hold(name, number)
            row.vector, row.score = np.full(which, float(number)), number / 2
            plain.append((name, number))
            if len(plain) > capacity:
                plain, dropped = plain[1:], dropped + 1
        assert len(held) == len(plain)
        assert all(waiting in held for waiting, _ in plain)
        assert held.n_dropped == dropped
    again = WaitingRows.from_state(held.to_state())
    assert again.n_dropped == dropped
    for waiting, arrival in plain:
        row = again.take(waiting)
        assert (row.arrival, row.score) == (arrival, arrival / 2)
        np.testing.assert_array_equal(row.vector, np.full(int(waiting[3:]), float(arrival)))


def test_the_same_id_twice_is_refused():
    held = WaitingRows(3)
    held.hold("a", 1)
    with pytest.raises(ValueError, match="'a' is held already"):
        held.hold("a", 2)


def test_a_state_keeps_who_is_oldest():
    held = WaitingRows(2)
    held.hold("a", 1)
    held.hold("b", 2)
    again = WaitingRows.from_state(held.to_state())
    again.hold("c", 3)
    assert "a" not in again
    assert "b" in again
