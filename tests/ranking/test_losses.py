"""Every pair loss against all pairs, to 1e-10 relative."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from draws import draws
from oracles.pairs import pair_curvature, ranking_loss
from rareclass.ranking.losses import SmoothedHinge, make_loss

# Whole and half numbers make ties between rare and majority rows and pairs exactly at 1 - 2 eps
# and at 1, where the pieces of the loss meet.
score = st.one_of(
    st.integers(-6, 6).map(lambda k: k / 2),
    st.floats(-20, 20, allow_subnormal=False),
)
weight = st.one_of(st.integers(0, 3).map(float), st.floats(1e-3, 1e3))
eps = st.sampled_from([0.5, 0.25, 0.125])


def column(n, elements):
    return arrays(np.float64, n, elements=elements)


@st.composite
def pairs(draw, most=40):
    n, m = draw(st.integers(1, most)), draw(st.integers(1, most))
    return (
        draw(column(n, score)),
        draw(column(m, score)),
        draw(column(n, weight)),
        draw(column(m, weight)),
        draw(eps),
    )


def assert_near(found, wanted, scale):
    """Equal to 1e-10 of the sum of the magnitudes that were added up."""
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * scale)


@draws(200)
@given(pairs(), st.integers(1, 4))
def test_value_and_gradient_equal_all_pairs(data, n_blocks):
    rare_scores, majority, w_rare, w_majority, eps = data
    loss = SmoothedHinge(eps)
    rare = loss.rare(rare_scores, w_rare)
    parts = np.array_split(np.arange(len(majority)), n_blocks)
    terms = [loss.block(rare, majority[part], w_majority[part]) for part in parts]
    # Sums are split where float arithmetic splits the pair: s < t + 1, not s - t < 1.
    wanted, wanted_rare, wanted_majority, _ = ranking_loss(
        rare_scores, majority, w_rare, w_majority, eps
    )
    reach = 1 + np.abs(rare_scores).max() + np.abs(majority).max()
    scale = w_rare.sum() * w_majority.sum()
    assert_near(sum(part.value for part in terms), wanted, scale * reach)
    assert_near(np.concatenate([part.gradient for part in terms]), wanted_majority, scale)
    sums = sum(part.sums for part in terms)
    assert_near(loss.finish(rare, sums).gradient, wanted_rare, scale * reach)


@draws(50)
@given(pairs(most=10))
def test_a_weight_of_k_is_k_copies_and_of_zero_is_absence(data):
    rare_scores, majority, w_rare, w_majority, eps = data
    w_rare, w_majority = np.floor(w_rare % 4), np.floor(w_majority % 4)
    loss = SmoothedHinge(eps)
    weighted = loss.block(loss.rare(rare_scores, w_rare), majority, w_majority).value
    copies = np.repeat(rare_scores, w_rare.astype(int))
    rows = np.repeat(majority, w_majority.astype(int))
    repeated = loss.block(loss.rare(copies, np.ones(len(copies))), rows, np.ones(len(rows)))
    assert weighted == pytest.approx(repeated.value, rel=1e-10, abs=1e-9)


def test_curvature_of_pairs_is_that_of_each_pair_in_the_callers_order():
    z = np.array([-1.0, 0.0, 0.25, 0.5, 0.999, 1.0, 2.0])
    loss = SmoothedHinge(0.25)
    scores, weight = np.array([0.5, -1.0, 2.0]), np.array([2.0, 3.0, 0.0])
    rare = loss.rare(scores, weight)
    found = loss.pair_curvature(rare, slice(0, 2), rare.centre - z)
    each = pair_curvature((scores[:, None] - rare.centre) + z, 0.25)
    np.testing.assert_array_equal(found, (weight[:, None] * each)[:2])


@pytest.mark.parametrize("eps", [0.0, -1.0, 0.6, np.nan])
def test_eps_out_of_range_is_refused(eps):
    with pytest.raises(ValueError, match="eps"):
        SmoothedHinge(eps)


def test_an_unknown_loss_is_refused_by_name():
    with pytest.raises(ValueError, match="smoothed_hinge"):
        make_loss("hinge", 0.5)
    own = SmoothedHinge(0.1)
    assert make_loss(own, 0.5) is own
