"""The projection against the enumeration of all faces, and against its own optimality."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from oracles.hyperball import knapsack_by_enumeration
from rareclass.hyperball import problem as ball_problem


def projected(*problem):
    return ball_problem.project_knapsack(*problem)[0]


@st.composite
def knapsacks(draw, most=7):
    """Few different numbers, so that entries tie; bounds of 0 and without end; a total in reach."""
    n = draw(st.integers(1, most))
    scale = draw(st.sampled_from([1e-6, 1.0, 1e6]))
    number = st.sampled_from([-3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 1.0, 2.0])
    bound = st.sampled_from([0.0, 0.5, 1.0, 1.0, 3.0, np.inf])
    v = scale * np.array(draw(st.lists(number, min_size=n, max_size=n)))
    upper = scale * np.array(draw(st.lists(bound, min_size=n, max_size=n)))
    signs = np.array(draw(st.lists(st.sampled_from([1.0, -1.0]), min_size=n, max_size=n)))
    within = scale * np.array(draw(st.lists(st.integers(0, 40), min_size=n, max_size=n))) / 10
    return v, upper, signs, float(signs @ np.minimum(within, upper))


def rounding_of_sum(v, total, found):
    """What adding the entries up may lose, and what subtracting the multiplier from v may."""
    eps = np.finfo(float).eps
    return 4 * eps * (np.abs(found).sum() + abs(total)) + len(v) * eps * np.abs(v).max()


@draws(100)
@given(st.one_of(knapsacks(5), knapsacks(8)))
def test_projection_is_the_nearest_of_all_faces(problem):
    v, upper, signs, total = problem
    found, wanted = projected(*problem), knapsack_by_enumeration(*problem)
    size = np.abs(v).max() + abs(total) + np.where(np.isfinite(upper), upper, 0).max()
    np.testing.assert_allclose(found, wanted, atol=1e-7 * size)
    assert abs(signs @ found - total) <= rounding_of_sum(v, total, found)
    assert ((found - v) ** 2).sum() <= ((wanted - v) ** 2).sum() + 1e-12 * size**2


def assert_optimal(v, upper, signs, total, found):
    assert (found >= 0).all()
    assert (found <= upper).all()
    size = np.abs(v).max() + np.abs(found).max() + abs(total)
    assert abs(signs @ found - total) <= rounding_of_sum(v, total, found)
    # l - v = signs mu where free; not above it at the bound, nor below it at 0, in the sign's way.
    shift = signs * (found - v)
    free = (found > 0) & (found < upper)
    mu = float(np.median(shift[free])) if free.any() else None
    if mu is not None:
        np.testing.assert_allclose(shift[free], mu, atol=1e-9 * size)
        moved = np.clip(v + signs * mu, 0, upper)
        np.testing.assert_allclose(found, moved, atol=1e-9 * size)


@pytest.mark.parametrize("sort", [False, True])
@draws(100)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 300))
def test_projection_is_optimal_whichever_way_the_piece_is_found(sort, seed, n):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-6, 7)
    v = np.round(rng.normal(size=n), rng.integers(0, 3)) * scale
    upper = rng.choice([0.0, 1e-3, 1.0, 50.0, np.inf], n) * scale
    signs = rng.choice([-1.0, 1.0], n)
    total = float(signs @ np.minimum(rng.exponential(scale, n), upper))
    with pytest.MonkeyPatch.context() as patch:
        if sort:
            patch.setattr(ball_problem, "_MOST_STEPS", 0)
        assert_optimal(v, upper, signs, total, projected(v, upper, signs, total))


def test_newton_that_would_go_round_in_circles_is_ended_by_the_sort():
    # Each step overshoots from one steep end of a flat middle to the other.
    n = 50
    v = np.concatenate([np.full(n, -1.0), np.full(n, -9.0), [0.0]])
    upper = np.concatenate([np.full(2 * n, 0.01), [20.0]])
    found = projected(v, upper, np.ones(2 * n + 1), 5.5)
    assert_optimal(v, upper, np.ones(2 * n + 1), 5.5, found)


@pytest.mark.parametrize("total", [-2.0, 3.0])
def test_total_at_the_end_of_its_reach_puts_everything_to_its_bound(total):
    found = projected(
        np.array([9.0, -9.0, 0.1]), np.array([1.0, 2, 2]), np.array([1.0, 1, -1]), total
    )
    assert found.tolist() == ([1.0, 2.0, 0.0] if total > 0 else [0.0, 0.0, 2.0])


def test_sum_is_right_to_the_last_digit_where_the_point_is_far_away():
    v, upper = np.array([1e9, 1e9 + 0.3, 1e9 - 0.2]), np.ones(3)
    found = projected(v, upper, np.ones(3), 1.1)
    assert abs(found.sum() - 1.1) < 1e-15
    np.testing.assert_allclose(found, [1 / 3, 1.9 / 3, 0.4 / 3], atol=1e-6)


def test_prices_that_sum_to_the_total_but_for_rounding_are_within_reach():
    n = next(n for n in range(2, 99) if np.full(n, 1 / n).sum() < 1)
    price = np.full(n, 1 / n)
    np.testing.assert_allclose(projected(np.zeros(n), price, np.ones(n), 1.0), price)
