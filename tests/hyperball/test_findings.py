"""What RACH says of a ball, and that following its advice helps."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from draws import draws
from hyperball.rach_cases import (
    CLEARED,
    QUIET,
    RARE,
    UNKNOWN,
    ball_of,
    hidden_cluster,
    several_clusters,
    unwarned,
)
from rareclass.findings import finding_of
from rareclass.hyperball import RACH


def said_of(model, X, y, weight=None):
    """Fit, and return the messages: each is a warning as well, and no other is."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, weight)
    assert [str(warning.message) for warning in caught] == model.messages_
    assert all(warning.category is UserWarning for warning in caught)
    assert all(__file__ == warning.filename for warning in caught)  # the line of the user
    assert [finding_of(warning.message) for warning in caught] == model.findings_
    return model.messages_


def share_found(model, y):
    kept = np.intersect1d(model.rows_, np.flatnonzero(y == UNKNOWN))
    return np.mean(model.transduction_[kept] == RARE)


def test_nothing_is_said_of_an_ordinary_ball():
    X, y, _ = hidden_cluster()
    assert said_of(RACH(**QUIET), X, y) == []
    assert said_of(RACH(**QUIET, kernel="gaussian"), X, y) == []


# -- two far groups ------------------------------------------------------------------------------


def test_two_far_groups_make_a_useless_ball_and_the_advice_a_good_one():
    X, y, truth = several_clusters([[6.0, 6.0], [-6.0, -6.0]])
    y = np.where(y > 0, RARE, y)
    one = RACH(C2=0.01)
    (sentence, *_) = said_of(one, X, y)
    inside, others = one.radius_, X[(y != RARE)]
    spread = np.sqrt(((others - others.mean(axis=0)) ** 2).sum(axis=1).mean())
    share = np.mean(one.predict(others) == RARE)
    assert sentence == (
        f"the ball of 1 is uselessly large: its radius is {inside:.3g}, the spread of the other "
        f"rows {spread:.3g}, and it holds {share:.0%} of them. Rare rows in several far groups do "
        "that: n_balls='auto' gives each group a ball. Otherwise kernel='gaussian' allows other "
        "shapes, and a larger C1 or a smaller C2 makes a smaller ball."
    )
    assert share > 0.9
    split = RACH(C2=0.01, n_balls="auto", filter=1.0)
    assert said_of(split, X, y) == []
    assert np.mean(split.predict(X[truth == 0]) == RARE) < 0.01


def test_a_wide_ball_with_little_in_it_is_not_useless():
    # The radius is above the spread of the others, of whom none is near.
    X, y, _ = hidden_cluster()
    X = np.where((y == RARE)[:, None], 50.0 + 30.0 * X, X)
    assert not any("uselessly" in sentence for sentence in said_of(RACH(C2=1e-4), X, y))


def test_a_useless_ball_of_a_kernel_is_told_by_what_it_holds():
    X, y, _ = hidden_cluster()
    model = RACH(C1=0.01, C2=1.0, kernel="gaussian", width=20.0)
    said = said_of(model, X, y)
    share = np.mean(model.predict(X[y != RARE]) == RARE)
    assert share > 0.5
    assert f"uselessly large: its radius is {model.radius_:.3g}" in said[0]
    assert f"it holds {share:.0%} of them" in said[0]


# -- what is missing -----------------------------------------------------------------------------


def test_no_majority_row():
    X, y, _ = hidden_cluster()
    (sentence,) = said_of(RACH(C2=0.005), X, np.where(y == CLEARED, UNKNOWN, y))
    assert sentence.startswith("the ball of 1 knows no majority row: its label is the only one")
    assert "Labels of a few cleared rows would show where it must end." in sentence


def test_all_unlabelled_rows_left_out():
    X, y, truth = hidden_cluster()
    n = int((y == UNKNOWN).sum())
    (sentence,) = said_of(RACH(**QUIET, filter=0.01), X, y)
    assert sentence == (
        f"the ball of 1: the filter left out all {n} unlabelled rows, so that only the labelled "
        "ones shape it. Pass a larger filter= (3.0 is the paper's), or filter=False."
    )
    for remedy in (3.0, False):
        with_more = RACH(**QUIET, filter=remedy)
        assert not any("left out" in said for said in said_of(with_more, X, y))
        assert with_more.score(X, truth) > 0.5


def test_no_unlabelled_row_is_nothing_to_speak_of():
    X, y, _ = hidden_cluster()
    known = y != UNKNOWN
    assert said_of(RACH(C1=10.0), X[known], y[known]) == []


@pytest.mark.parametrize(
    ("max_kept", "said"),
    [
        (40, "the ball of 1: 50 unlabelled rows are near, of which the nearest 40 shape it"),
        (100, "the ball of 1: 110 majority rows have labels, of which the nearest 100 shape it"),
    ],
)
def test_more_rows_than_may_be_kept(max_kept, said):
    X, y, _ = hidden_cluster(n=300, n_cluster=60, n_rare=10, n_cleared=110)
    everything = RACH(**QUIET)
    assert said_of(everything, X, y) == []
    kinds = everything.balls_[0].kinds
    assert ((kinds == 0).sum(), (kinds < 0).sum()) == (50, 110)
    model = RACH(**QUIET, max_kept=max_kept)
    assert said_of(model, X, y) == [
        f"{said}. A larger max_kept= takes in more; predict judges all."
    ]
    kinds = model.balls_[0].kinds
    assert ((kinds == 0).sum(), (kinds < 0).sum()) == (min(50, max_kept), min(110, max_kept))


# -- C2 ------------------------------------------------------------------------------------------


def advised(model):
    (value,) = [found.remedy["C2"] for found in model.findings_ if found.kind.endswith(" inside")]
    assert f"C2={value:.3g} would" in " ".join(model.messages_)
    return value


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(60, 250),
    p=st.integers(1, 6),
    C1=st.sampled_from([0.01, 0.1, 1.0]),
    n_rare=st.integers(1, 8),
    kernel=st.sampled_from([None, "gaussian"]),
)
@settings(draws(30), derandomize=True)  # advice is a rule of thumb
def test_the_price_advised_where_all_are_inside_halves_them(seed, n, p, C1, n_rare, kernel):
    X, y, _ = hidden_cluster(n, n // 4, p, n_rare, 10, seed)
    model = RACH(C1=C1, C2=100.0, kernel=kernel)
    said = [sentence for sentence in said_of(model, X, y) if "holds all" in sentence]
    n_kept = len(np.intersect1d(model.rows_, np.flatnonzero(y == UNKNOWN)))
    assume(n_kept > 20)
    # Cases that are far apart hold all others between them whatever these cost.
    assume(share_found(ball_of(X, y, C1=C1, C2=0.0, kernel=kernel), y) < 0.5)
    assert said[0].startswith(
        f"the ball of 1 holds all {n_kept} unlabelled rows that were kept: C2=100"
    )
    with unwarned():
        model.set_params(C2=advised(model)).fit(X, y)
    assert 0.05 <= share_found(model, y) <= 0.95


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(60, 250),
    p=st.integers(1, 6),
    C1=st.sampled_from([0.01, 0.1, 1.0]),
    kernel=st.sampled_from([None, "gaussian"]),
)
@example(seed=0, n=249, p=1, C1=10.0, kernel=None)  # what is dear inside counts
@example(seed=2, n=154, p=1, C1=0.01, kernel=None)
@settings(draws(30), derandomize=True)  # advice is a rule of thumb
def test_the_price_advised_where_none_is_inside_takes_some_in(seed, n, p, C1, kernel):
    X, y, _ = hidden_cluster(n, n // 4, p, 1, 10, seed)
    model = RACH(C1=C1, C2=1e-6, kernel=kernel)
    said = [sentence for sentence in said_of(model, X, y) if "holds none" in sentence]
    n_kept = len(np.intersect1d(model.rows_, np.flatnonzero(y == UNKNOWN)))
    assume(n_kept > 20)
    assume(not len(model.balls_[0].inside))  # a row may lie on the only case, to rounding
    assert f"holds none of the {n_kept} unlabelled rows that were kept: C2=1e-06" in said[0]
    with unwarned():
        model.set_params(C2=advised(model)).fit(X, y)
    assert 0.05 <= share_found(model, y) <= 0.95


def test_unlabelled_rows_of_no_price():
    X, y, _ = hidden_cluster(n_rare=1)
    assert said_of(RACH(C2=0.0), X, y) == []  # nobody who asks for this needs to be told


def test_each_ball_speaks_for_itself():
    X, y, _ = several_clusters([[4.0, 0.0], [0.0, 4.0]])
    names = np.array(["ok", "fraud", "theft", None], dtype=object)[y]
    said = said_of(RACH(C2=50.0), X, names)
    for name in ("fraud", "theft"):
        assert any(sentence.startswith(f"the ball of '{name}' holds all") for sentence in said)


def test_of_a_weight_the_same_is_said_as_of_so_many_copies():
    X, y, _ = several_clusters([[6.0, 6.0], [-6.0, -6.0]])
    y = np.where(y > 0, RARE, y)
    times = np.where(y == RARE, 1, np.random.default_rng(0).integers(0, 4, len(y)))
    copied = np.repeat(np.arange(len(y)), times)
    for C2, expected in ((1e-3, "uselessly large"), (50.0, "holds all")):
        weighted = said_of(RACH(C2=C2, pos_label=RARE, tol=1e-9), X, y, times)
        copies = said_of(RACH(C2=C2, pos_label=RARE, tol=1e-9), X[copied], y[copied])
        # Rows are counted as they are; shares, spreads and prices go by weight.
        numbers = re.compile(r"all \d+ unlabelled")
        assert [numbers.sub("", one) for one in weighted] == [
            numbers.sub("", one) for one in copies
        ]
        assert any(expected in one for one in weighted)
