"""Falls of a stream's own measures: found where they are, not where there is none."""

import json

import numpy as np
import pytest

from rareclass.metrics import roc_auc, roc_auc_interval
from rareclass.metrics.interval import difference_interval
from rareclass.stream.best_windows import BestWindows
from rareclass.stream.window import Window
from stream.messy_stream import assert_same

SIZE = 1_000


def window_of(apart: float, seed: int, share: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    rare = generator.random(SIZE) < share
    return generator.normal(size=SIZE) + apart * rare, rare


def seen(aparts: list[float], seed: int = 0) -> tuple[BestWindows, Window]:
    """Windows end to end, the last of them not looked at yet: as a report finds them."""
    best, window = BestWindows(), Window(SIZE, top=50)
    for k, apart in enumerate(aparts):
        if k:
            best.look(window, window.n_added)
        window.add(*window_of(apart, seed + k))
    return best, window


def test_a_fall_is_told_with_its_interval() -> None:
    best, window = seen([1.5, 2.5, 1.5, 0.3])
    falls = {fall.measure: fall for fall in best.falls(window)}
    assert set(falls) == {"auc", "precision_at_k"}
    fall = falls["auc"]
    assert fall.best_rows == 2 * SIZE
    scores, rare = window.rows()
    assert fall.value == roc_auc(rare, scores)
    before = window_of(2.5, 1)
    level = 1 - 0.01 / 3
    ours = difference_interval(
        roc_auc_interval(before[1], before[0], level=level),
        roc_auc_interval(rare, scores, level=level),
        0.0,
    )
    assert (fall.low, fall.high) == pytest.approx((ours.low, ours.high))
    assert 0.0 < fall.low < fall.best - fall.value < fall.high


def test_chance_is_hardly_ever_a_fall() -> None:
    n_told = 0
    best, window = BestWindows(), Window(SIZE, top=50)
    for k in range(120):
        if k:
            best.look(window, window.n_added)
        window.add(*window_of(1.0, 1000 + k))
        n_told += bool(best.falls(window))
    assert n_told <= 2


def test_windows_of_one_class_and_windows_that_are_not_full_are_passed_over() -> None:
    best, window = BestWindows(), Window(SIZE, top=50)
    window.add(np.zeros(SIZE), np.zeros(SIZE, bool))
    best.look(window, window.n_added)
    assert best.falls(window) == []
    window.add(*window_of(3.0, 0))
    best.look(window, window.n_added)
    best.look(window, window.n_added)
    assert best.to_state()["n_windows"] == 1
    window.add(np.zeros(SIZE), np.zeros(SIZE, bool))
    assert best.falls(window) == []


def test_a_restart_does_not_show() -> None:
    best, window = seen([1.5, 2.5, 0.3])
    state = best.to_state()
    again = BestWindows.from_state(state)
    assert again.falls(window) == best.falls(window)
    assert_same(again.to_state(), state)
    plain = {key: value for key, value in state.items() if key != "best"}
    json.dumps(plain)
