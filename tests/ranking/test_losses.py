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


def all_blocks(loss, rare, majority, majority_weight, n_blocks):
    """Terms of the loss with the majority cut into blocks."""
    parts = [
        loss.block(rare, majority[part], majority_weight[part])
        for part in np.array_split(np.arange(len(majority)), n_blocks)
    ]
    value = sum(part.value for part in parts)
    gradient = np.concatenate([part.gradient for part in parts])
    return value, gradient, sum(part.sums for part in parts), parts


def assert_near(found, wanted, scale):
    """Equal to 1e-10 of the sum of the magnitudes that were added up."""
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * scale)


@draws(200)
@given(pairs(), st.integers(1, 4))
def test_value_and_gradient_equal_all_pairs(data, n_blocks):
    rare_scores, majority, w_rare, w_majority, eps = data
    loss = SmoothedHinge(eps)
    rare = loss.rare(rare_scores, w_rare)
    value, by_majority, sums, _ = all_blocks(loss, rare, majority, w_majority, n_blocks)
    # Sums are split where float arithmetic splits the pair: s < t + 1, not s - t < 1.
    wanted, wanted_rare, wanted_majority, _ = ranking_loss(
        rare_scores, majority, w_rare, w_majority, eps
    )
    reach = 1 + np.abs(rare_scores).max() + np.abs(majority).max()
    scale = w_rare.sum() * w_majority.sum()
    assert_near(value, wanted, scale * reach)
    assert_near(by_majority, wanted_majority, scale)
    assert_near(loss.finish(rare, sums).gradient, wanted_rare, scale * reach)


@draws(200)
@given(pairs(), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_hessian_product_equals_all_pairs(data, n_blocks, seed):
    rare_scores, majority, w_rare, w_majority, eps = data
    # On a grid of eighths s - t and s < t + c are exact, so that both see the same zones.
    rare_scores, majority = np.round(8 * rare_scores) / 8, np.round(8 * majority) / 8
    rng = np.random.default_rng(seed)
    d_rare, d_majority = rng.normal(size=len(rare_scores)), rng.normal(size=len(majority))
    loss = SmoothedHinge(eps)
    # A centre that is not on the grid would move pairs by a rounding error: keep them apart.
    rare = loss.rare(rare_scores, w_rare)._replace(centre=0.0, scores=np.sort(rare_scores))
    rare = rare._replace(order=np.argsort(rare_scores, kind="stable"))
    _, _, _, parts = all_blocks(loss, rare, majority, w_majority, n_blocks)
    prefix = loss.rare_direction(rare, d_rare)
    products, sums = [], 0.0
    for part, terms in zip(np.array_split(np.arange(len(majority)), n_blocks), parts, strict=True):
        product, more = loss.curvature(rare, prefix, terms.zone, d_majority[part], w_majority[part])
        products.append(product)
        sums = sums + more
    found = np.concatenate([loss.finish_curvature(rare, prefix, d_rare, sums).gradient, *products])
    hessian = ranking_loss(rare_scores, majority, w_rare, w_majority, eps)[3]
    scale = w_rare.sum() * w_majority.sum() * 10 / eps
    assert_near(found, hessian @ np.concatenate([d_rare, d_majority]), scale)


@pytest.mark.thorough
def test_many_rows_equal_all_pairs_to_1e_10_of_the_value_itself():
    rng = np.random.default_rng(0)
    rare_scores, majority = rng.normal(1, 2, 300), rng.normal(0, 2, 5000)
    rare_scores[::3] = np.round(rare_scores[::3])
    majority[::3] = np.round(majority[::3])
    w_rare, w_majority = rng.uniform(0.1, 3, 300), rng.uniform(0.1, 3, 5000)
    loss = SmoothedHinge(0.25)
    rare = loss.rare(rare_scores, w_rare)
    terms = loss.block(rare, majority, w_majority)
    wanted, by_rare, by_majority, hessian = ranking_loss(
        rare_scores, majority, w_rare, w_majority, 0.25
    )
    assert terms.value == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(terms.gradient, by_majority, rtol=1e-10)
    np.testing.assert_allclose(loss.finish(rare, terms.sums).gradient, by_rare, rtol=1e-10)
    d = rng.normal(size=5300)
    prefix = loss.rare_direction(rare, d[:300])
    product, sums = loss.curvature(rare, prefix, terms.zone, d[300:], w_majority)
    found = np.concatenate([loss.finish_curvature(rare, prefix, d[:300], sums).gradient, product])
    wanted = hessian @ d
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())


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


def test_gradient_is_the_derivative_of_the_value():
    rng = np.random.default_rng(1)
    rare_scores, majority = rng.normal(size=7), rng.normal(size=30)
    loss, ones = SmoothedHinge(0.3), np.ones

    def value(rare_scores):
        return loss.block(loss.rare(rare_scores, ones(7)), majority, ones(30)).value

    rare = loss.rare(rare_scores, ones(7))
    gradient = loss.finish(rare, loss.block(rare, majority, ones(30)).sums).gradient
    steps = 1e-6 * np.eye(7)
    numeric = [(value(rare_scores + s) - value(rare_scores - s)) / 2e-6 for s in steps]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6)


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
