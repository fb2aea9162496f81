"""Where a ball ends, what RACH says of a ball, and that following its advice helps."""

import functools
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from draws import draws
from hyperball.rach_cases import (
    CLEARED,
    QUIET,
    RARE,
    UNKNOWN,
    ball_of,
    hidden_cluster,
    several_clusters,
)
from rareclass.findings import FindingKind, finding_of
from rareclass.hyperball import RACH
from rareclass.hyperball.pool import UNLABELLED


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
    share = ball.solution.multipliers / ball.price
    between = (share > 0.01) & (share < 0.99)
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


@pytest.mark.sampled(1)
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


def found_by(model, X, y, weight=None):
    """Fit, and return values and remedies by kind: each is a warning as well, and no other is."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, weight)
    assert [str(warning.message) for warning in caught] == model.messages_
    assert all(warning.category is UserWarning for warning in caught)
    assert all(__file__ == warning.filename for warning in caught)  # the line of the user
    assert [finding_of(warning.message) for warning in caught] == model.findings_
    return {finding.kind: (finding.values, finding.remedy) for finding in model.findings_}


def test_nothing_is_said_of_an_ordinary_ball():
    X, y, _ = hidden_cluster()
    known = y != UNKNOWN
    assert found_by(RACH(**QUIET), X, y) == {}
    assert found_by(RACH(**QUIET, kernel="gaussian"), X, y) == {}
    assert found_by(RACH(C1=10.0), X[known], y[known]) == {}  # without any unlabelled row
    X, y, _ = hidden_cluster(n_rare=1)
    assert found_by(RACH(C2=0.0), X, y) == {}  # nobody who asks for no price needs to be told


@given(
    seed=st.integers(0, 10**6),
    C2=st.sampled_from([0.0, 0.003, 0.02, 0.1, 1.0]),
    n=st.integers(1, 8),
)
@settings(draws(25), derandomize=True)
def test_a_ball_that_holds_more_than_can_be_rare_says_so(seed, C2, n):
    X, y, _ = hidden_cluster(n_rare=n, seed=seed)
    model = RACH(C2=C2)
    found = found_by(model, X, y)
    expected = n / (n + 30) * np.sum(y == UNKNOWN)
    most = expected * stats.chi2.ppf(0.975, 2 * (n + 1)) / (2 * n)  # Garwood's upper limit
    n_found = np.sum(model.transduction_[y == UNKNOWN] == RARE)
    said_already = {FindingKind.USELESS_RADIUS, FindingKind.ALL_INSIDE} & found.keys()
    assert (FindingKind.BEYOND_SHARE in found) == (n_found > 2 * most and not said_already)


def test_a_dear_unlabelled_row_makes_a_ball_beyond_the_share_and_the_default_does_not():
    X, y, _ = hidden_cluster(n=2000, n_cluster=60, n_rare=20, n_cleared=600)
    values, remedy = found_by(RACH(C2=0.1), X, y)[FindingKind.BEYOND_SHARE]
    assert values["share"] == pytest.approx(20 / 620)
    expected = (2000 - 620) * 20 / 620
    assert values["n_most"] == pytest.approx(expected * stats.chi2.ppf(0.975, 42) / 40)
    assert values["n_found"] > 2 * values["n_most"] > 2 * expected
    assert remedy == {"C1": "larger", "C2": "smaller", "rare_share": None}
    (message,) = ball_of(X, y, C1=RACH().C1, C2=0.1).messages_
    assert "A smaller C2 or a larger C1 makes a smaller ball" in message
    assert found_by(RACH(), X, y) == {}


def test_two_far_groups_make_a_useless_ball_and_the_advice_a_good_one():
    X, y, truth = several_clusters([[6.0, 6.0], [-6.0, -6.0]])
    y = np.where(y > 0, RARE, y)
    one = RACH(C2=0.01)
    values, remedy = found_by(one, X, y)[FindingKind.USELESS_RADIUS]
    others = X[y != RARE]
    spread = np.sqrt(((others - others.mean(axis=0)) ** 2).sum(axis=1).mean())
    share = np.mean(one.predict(others) == RARE)
    assert values == pytest.approx({"label": RARE, "radius": one.radius_, "spread": spread,
                                    "share": share})  # fmt: skip
    assert remedy == {"n_balls": "auto", "kernel": "gaussian", "C1": "larger", "C2": "smaller"}
    assert share > 0.9
    split = RACH(C2=0.01, n_balls="auto", filter=1.0)
    assert found_by(split, X, y) == {}
    assert np.mean(split.predict(X[truth == 0]) == RARE) < 0.01


def test_a_wide_ball_with_little_in_it_is_not_useless():
    # The radius is above the spread of the others, of whom none is near.
    X, y, _ = hidden_cluster()
    X = np.where((y == RARE)[:, None], 50.0 + 30.0 * X, X)
    assert FindingKind.USELESS_RADIUS not in found_by(RACH(C2=1e-4), X, y)


def test_a_useless_ball_of_a_kernel_is_told_by_what_it_holds():
    X, y, _ = hidden_cluster()
    model = RACH(C1=0.01, C2=1.0, kernel="gaussian", width=20.0)
    values, remedy = found_by(model, X, y)[FindingKind.USELESS_RADIUS]
    assert values["radius"] == model.radius_
    assert 0.5 < values["share"] == np.mean(model.predict(X[y != RARE]) == RARE)
    assert "kernel" not in remedy


def test_no_majority_row_or_all_unlabelled_rows_left_out():
    X, y, truth = hidden_cluster()
    found = found_by(RACH(C2=0.005), X, np.where(y == CLEARED, UNKNOWN, y))
    assert found == {FindingKind.NO_MAJORITY: ({"label": RARE}, {})}
    found = found_by(RACH(**QUIET, filter=0.01), X, y)
    values = {"label": RARE, "n_unlabelled": int((y == UNKNOWN).sum())}
    assert found == {FindingKind.ALL_FILTERED: (values, {"filter": "larger"})}
    for remedy in (3.0, False):
        with_more = RACH(**QUIET, filter=remedy)
        assert FindingKind.ALL_FILTERED not in found_by(with_more, X, y)
        assert with_more.score(X, truth) > 0.5


@pytest.mark.parametrize(
    ("max_kept", "n_rows", "which"), [(40, 50, "unlabelled"), (100, 110, "majority")]
)
def test_more_rows_than_may_be_kept(max_kept, n_rows, which):
    X, y, _ = hidden_cluster(n=300, n_cluster=60, n_rare=10, n_cleared=110)
    everything = RACH(**QUIET)
    assert found_by(everything, X, y) == {}
    kinds = everything.balls_[0].kinds
    assert ((kinds == 0).sum(), (kinds < 0).sum()) == (50, 110)
    model = RACH(**QUIET, max_kept=max_kept)
    values = {"label": RARE, "n_rows": n_rows, "which": which, "max_kept": max_kept}
    found = found_by(model, X, y)
    assert found == {FindingKind.ROWS_LEFT_ASIDE: (values, {"max_kept": "larger"})}
    kinds = model.balls_[0].kinds
    assert ((kinds == 0).sum(), (kinds < 0).sum()) == (min(50, max_kept), min(110, max_kept))


def test_a_border_by_share_beyond_the_rows_that_were_kept():
    X, y, _ = hidden_cluster()
    n = int((y == UNKNOWN).sum())
    model = RACH(C2=0.0, radius="share", rare_share=0.4, max_kept=20)
    values, remedy = found_by(model, X, y)[FindingKind.SHARE_NOT_REACHED]
    assert values == {"label": RARE, "n_wanted": int(0.4 * n), "share": 0.4, "n_kept": 20}
    assert list(remedy) == ["rare_share", "radius", "max_kept", "filter"]


@pytest.mark.parametrize(
    ("C2", "kind", "change"),
    [(100.0, FindingKind.ALL_INSIDE, "smaller"), (1e-6, FindingKind.NONE_INSIDE, "larger")],
)
@pytest.mark.parametrize("kernel", [None, "gaussian"])
def test_a_price_at_which_all_or_none_are_inside(C2, kind, change, kernel):
    X, y, _ = hidden_cluster(n_rare=1)
    model = RACH(C2=C2, kernel=kernel)
    values, remedy = found_by(model, X, y)[kind]
    kept = np.intersect1d(model.rows_, np.flatnonzero(y == UNKNOWN))
    assert values == {"label": RARE, "n_unlabelled": len(kept)}
    assert remedy == {"C2": change}
    assert (model.transduction_[kept] == RARE).all() == (change == "smaller")


def test_each_ball_speaks_for_itself():
    X, y, _ = several_clusters([[4.0, 0.0], [0.0, 4.0]])
    names = np.array(["ok", "fraud", "theft", None], dtype=object)[y]
    model = RACH(C2=50.0)
    found_by(model, X, names)
    labels = [one.values["label"] for one in model.findings_ if one.kind == FindingKind.ALL_INSIDE]
    assert labels == ["fraud", "theft"]


def test_of_a_weight_the_same_is_said_as_of_so_many_copies():
    X, y, _ = several_clusters([[6.0, 6.0], [-6.0, -6.0]])
    y = np.where(y > 0, RARE, y)
    times = np.where(y == RARE, 1, np.random.default_rng(0).integers(0, 4, len(y)))
    copied = np.repeat(np.arange(len(y)), times)
    for C2, expected in ((1e-3, FindingKind.USELESS_RADIUS), (50.0, FindingKind.ALL_INSIDE)):
        weighted = found_by(RACH(C2=C2, pos_label=RARE, tol=1e-9), X, y, times)
        copies = found_by(RACH(C2=C2, pos_label=RARE, tol=1e-9), X[copied], y[copied])
        assert expected in weighted
        assert weighted.keys() == copies.keys()
        for kind, (values, remedy) in weighted.items():
            more, same = copies[kind]
            assert remedy == same
            # Rows are counted as they are; shares, spreads and prices go by weight.
            counted = {"n_unlabelled": more.get("n_unlabelled")} if "n_unlabelled" in more else {}
            assert {**values, **counted} == pytest.approx(more, rel=1e-3)
