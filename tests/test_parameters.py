"""Parameters that are numbers: which are in range, and what is said of the others."""

import re
from fractions import Fraction

import numpy as np
import pytest

from rareclass.parameters import check_number, check_whole, is_number, is_whole


@pytest.mark.parametrize("value", [True, np.True_, "1", None, np.nan, 1j, [1.0], np.array(1.0)])
def test_what_is_no_number(value):
    assert not is_number(value)
    assert not is_whole(value)


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.int8(1), Fraction(1)])
def test_numbers_of_any_kind(value):
    assert is_number(value)


@pytest.mark.parametrize(
    ("ends", "low", "high"),
    [("()", False, False), ("[)", True, False), ("(]", False, True), ("[]", True, True)],
)
def test_which_ends_belong_to_the_range(ends, low, high):
    assert (is_number(2, 2, 3, ends), is_number(3, 2, 3, ends)) == (low, high)
    assert is_number(2.5, 2, 3, ends)
    assert not is_number(1.9, 2, 3, ends)
    assert not is_number(3.1, 2, 3, ends)


def test_infinity_is_in_range_where_it_is_asked_for():
    assert not is_number(np.inf)
    assert is_number(np.inf, ends="(]")


def test_whole_numbers():
    assert is_whole(1)
    assert is_whole(np.int64(1))
    assert is_whole(0, 0)
    assert not is_whole(0)
    assert not is_whole(1.0)


def test_messages_name_parameter_value_and_range():
    with pytest.raises(ValueError, match=re.escape("lam=-1.0 must be a number above 0.")):
        check_number("lam", -1.0)
    with pytest.raises(ValueError, match=re.escape("n=2.5 must be a whole number, 2 or above.")):
        check_whole("n", 2.5, "a whole number, 2 or above", 2)
    check_number("lam", 1.0)
    check_whole("n", 2)
