"""Where a ball ends: a margin, the share of rare rows, the paper's way to the solution."""

import functools
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from draws import draws
from hyperball.rach_cases import (
    CLEARED,
    PRICES,
    RARE,
    SEEDS,
    UNKNOWN,
    ball_of,
    hidden_cluster,
    several_clusters,
)
from rareclass.hyperball import RACH
from rareclass.hyperball.pool import UNLABELLED


@given(seed=SEEDS, C1=PRICES, C2=PRICES, margin=st.sampled_from([0.1, 1.0, 5.0]))
@draws(25)
def test_no_ball_nearby_is_better_with_a_margin(seed, C1, C2, margin):
    """Majority rows are to lie beyond r^2 + margin, where r^2 holds the rare rows."""
    X, y, _ = hidden_cluster(n=60, n_cluster=15, p=2, n_cleared=10, seed=seed)
    model = ball_of(X, y, C1=C1, C2=C2, margin=margin, filter=False)
    center, inner = model.center_, model.radius_**2 - 0.5 * margin

    def value(at, squared):
        apart = ((X - at) ** 2).sum(axis=1)
        total = squared + margin
        total += C1 * np.maximum(squared + margin - apart, 0.0)[y == CLEARED].sum()
        total += C2 * np.maximum(apart - squared, 0.0)[y == UNKNOWN].sum()
        return total

    assume(model.radius_ > 0.0)
    least = ((X - center) ** 2).sum(axis=1)[y == RARE].max()
    assert inner >= least * (1 - 1e-6) - 1e-9
    found = value(center, inner)
    assert found == pytest.approx(model.objective_path_[-1], rel=1e-5, abs=1e-9)
    rng = np.random.default_rng(seed)
    for _ in range(30):
        step = 10.0 ** rng.uniform(-3, 0)
        moved = center + step * rng.normal(size=2)
        hold = ((X[y == RARE] - moved) ** 2).sum(axis=1).max()
        for other in (hold, max(hold, inner + step * rng.normal())):
            assert value(moved, other) >= found * (1 - 1e-6) - 1e-9
    # Not the multipliers but the border tells.
    unknown = np.intersect1d(model.rows_, np.flatnonzero(y == UNKNOWN))
    np.testing.assert_array_equal(model.transduction_[unknown], model.predict(X[unknown]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{"filter": False}, {"filter": 1.0}, {"max_kept": 20}], ids=str)
def test_the_border_by_the_share_of_unlabelled_rows(weighted, options):
    X, y, _ = hidden_cluster()
    weight = np.random.default_rng(1).integers(0, 4, len(y)) if weighted else None
    times = np.ones(len(y), dtype=int) if weight is None else weight
    for rare_share, share in ((None, times[y == RARE].sum() / times[y >= 0].sum()), (0.1, 0.1)):
        model = ball_of(X, y, weight, radius="share", rare_share=rare_share, **options)
        apart = ((X - model.center_) ** 2).sum(axis=1)
        kept = np.intersect1d(model.rows_, np.flatnonzero(y == UNKNOWN))
        # The smallest distance that holds the share; rows left out are taken to lie farther away.
        wanted = share * times[y == UNKNOWN].sum() - 1e-9
        reached = [d for d in np.sort(apart[kept]) if times[kept][apart[kept] <= d].sum() >= wanted]
        border = reached[0] if reached else apart[kept].max()
        assert model.radius_**2 == pytest.approx(border, rel=1e-6)
        np.testing.assert_array_equal(model.transduction_[kept] == RARE, apart[kept] <= border)
        solved = ball_of(X, y, weight, rare_share=rare_share, **options)
        np.testing.assert_array_equal(solved.center_, model.center_)


def test_without_unlabelled_rows_the_border_is_the_one_solved_for():
    X, y, _ = hidden_cluster()
    known = y != UNKNOWN
    solved, shared = (ball_of(X[known], y[known], radius=r) for r in ("solved", "share"))
    assert shared.radius_ == solved.radius_


def test_the_rare_share_is_what_the_filter_goes_by():
    X, y, _ = hidden_cluster()
    labelled = (y == RARE).sum() / (y >= 0).sum()
    same, fewer = (ball_of(X, y, rare_share=share) for share in (labelled, 0.01))
    np.testing.assert_array_equal(same.rows_, ball_of(X, y).rows_)
    assert set(fewer.rows_) < set(same.rows_)


def test_each_category_may_have_its_own_border():
    X, y, _ = several_clusters([[4.0, 0.0], [0.0, 4.0]])
    plain = ball_of(X, y)
    model = ball_of(X, y, radius={2: "share"}, radius_slack={1: 0.25})
    one, two = (ball.squared_radius for ball in plain.balls_)
    assert model.balls_[0].squared_radius == pytest.approx(one + 0.25)
    shared = ball_of(X, y, radius="share")
    assert model.balls_[1].squared_radius == shared.balls_[1].squared_radius != two


def test_a_row_on_the_sphere_is_inside_whatever_rounding_makes_of_its_distance():
    X, y, _ = hidden_cluster()
    ball = ball_of(X, y, C1=0.01, C2=0.1).balls_[0]
    between = (ball.multipliers > 0.01 * ball.price) & (ball.multipliers < 0.99 * ball.price)
    border = np.flatnonzero(between & (ball.kinds == UNLABELLED))
    assert len(border)
    distances = ball.distances.copy()
    distances[border] = ball.squared_radius * (1.0 + 1e-12)
    assert set(border) <= set(ball._replace(distances=distances).inside)


def test_a_share_is_dealt_out_to_the_balls():
    rng = np.random.RandomState(0)
    X = rng.randn(600, 2)
    y = np.full(600, -1)
    X[:40], X[40:80] = [5.0, 5.0] + 0.1 * X[:40], [-5.0, 5.0] + 0.1 * X[40:80]
    y[:6], y[40:46], y[100:140] = 1, 2, 0
    model = RACH(C2=0.0, radius="share", rare_share=0.1, filter=False).fit(X, y)
    found = [len(ball.found) for ball in model.balls_]
    n_unlabelled = int((y == -1).sum())
    assert abs(sum(found) - 0.1 * n_unlabelled) <= 2
    assert abs(found[0] - found[1]) <= 1


CUT = {"C1": 30.0, "C2": 0.3, "kernel": "gaussian", "filter": False, "tol": 1e-6}


@functools.cache
def table_and_ball(seed):
    """A table whose ball takes many steps, and that ball."""
    rng = np.random.RandomState(seed)
    X, y = rng.randn(240, 20), np.full(240, -1)
    y[:10], y[10:60] = 1, 0
    X[:10] += 0.7
    return X, y, ball_of(X, y, **CUT)


@pytest.mark.parametrize(
    ("seed", "max_inner"),
    [
        pytest.param(*case, marks=() if case in {(0, 1), (0, 5)} else pytest.mark.thorough)
        for case in product(range(2), [1, 2, 3, 5, 10])
    ],
)
def test_the_gap_is_true_however_short_the_solver_is_cut(seed, max_inner):
    X, y, best = table_and_ball(seed)
    model = ball_of(X, y, **CUT, max_inner=max_inner)
    found, least = model.objective_path_[-1], best.objective_path_[-1]
    assert best.duality_gap_ <= 1e-6
    assert (found - least) / abs(found) <= model.duality_gap_ + 2e-6
    if model.duality_gap_ > 1e-4:
        assert model.status_ == "reached max_iter"
