"""Measures of a window against those of the same rows taken from the whole stream."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rareclass.metrics import average_precision, precision_at_k, roc_auc
from rareclass.stream.window import Window, WindowMeasures

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=40)


@given(rows=ROWS, size=st.integers(2, 12), cuts=st.lists(st.integers(0, 40), max_size=5))
def test_measures_are_those_of_the_last_rows(
    rows: list[tuple[int, bool]], size: int, cuts: list[int]
) -> None:
    window = Window(size, top=2)
    edges = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    for start, end in pairwise(edges):
        window.add([score for score, _ in rows[start:end]], [rare for _, rare in rows[start:end]])
    scores = np.array([score for score, _ in rows[-size:]], float)
    rare = np.array([rare for _, rare in rows[-size:]], bool)
    assert len(window) == len(scores)
    if not rare.any() or rare.all():
        assert window.measures() == WindowMeasures(None, None, None)
    else:
        measured = window.measures()
        assert measured.auc == pytest.approx(roc_auc(rare, scores), abs=1e-12)
        expected = average_precision(rare, scores)
        assert measured.average_precision == pytest.approx(expected, abs=1e-12)
        at_top = precision_at_k(rare, scores, 2) if len(rare) >= 2 else None
        assert measured.precision_at_k == pytest.approx(at_top, abs=1e-12)


@given(rows=ROWS, size=st.integers(2, 12), cut=st.integers(0, 40))
def test_the_ring_does_not_show_how_rows_came(
    rows: list[tuple[int, bool]], size: int, cut: int
) -> None:
    scores, rare = [score for score, _ in rows], [rare for _, rare in rows]
    at_once, in_two = Window(size, 2), Window(size, 2)
    at_once.add(scores, rare)
    in_two.add(scores[:cut], rare[:cut])
    in_two = Window.from_state(in_two.to_state())
    in_two.add(scores[cut:], rare[cut:])
    for found, expected in zip(in_two.rows(), at_once.rows(), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert in_two.measures() == at_once.measures()


def test_precision_waits_for_k_rows() -> None:
    window = Window(10, top=3)
    window.add([0.0, 1.0], [False, True])
    assert window.measures() == WindowMeasures(1.0, 1.0, None)
    window.add([2.0], [False])
    assert window.measures().precision_at_k == pytest.approx(1 / 3)


def test_state_is_arrays_and_json() -> None:
    window = Window(4, 2)
    window.add([0.5], [True])
    state = window.to_state()
    json.dumps({key: value for key, value in state.items() if not isinstance(value, np.ndarray)})
