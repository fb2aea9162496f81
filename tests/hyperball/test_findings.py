"""What RACH says of a ball, and that following its advice helps."""

import warnings

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
    assert one.messages_[0] == (
        f"the ball of 1 is uselessly large: its radius is {one.radius_:.3g}, the spread of the "
        f"other rows {spread:.3g}, and it holds {share:.0%} of them. Rare rows in several far "
        "groups do that: n_balls='auto' gives each group a ball. Otherwise kernel='gaussian' "
        "allows other shapes, and a larger C1 or a smaller C2 makes a smaller ball."
    )
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
    ("options", "said"),
    [
        ({"filter": 0.01}, "Pass a larger filter= (3.0 is the paper's), or filter=False."),
        ({"max_kept": 5}, "A larger max_kept= takes in more; predict classifies all rows."),
        (
            {"radius": "share", "rare_share": 0.9, "max_kept": 50},
            "or radius='solved', a larger max_kept= or a larger filter=.",
        ),
    ],
)
def test_remedies_are_worded_as_parameters(options, said):
    X, y, _ = hidden_cluster(n_rare=1)
    assert any(said in message for message in ball_of(X, y, **options).messages_)


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
