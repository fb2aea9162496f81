"""The loss over several levels against all pairs, and against the loss of two classes."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from draws import draws
from oracles.ordinal import costs, ordinal_loss, ordinal_samples, pair_weights
from rareclass.ranking.losses import LOSSES, SmoothedHinge, make_loss
from rareclass.ranking.losses.ordinal import OrdinalLoss


class Split:
    """A sample cut into held rows and a majority, which comes in blocks."""

    def __init__(self, sample, majority_level, cost, pair_loss, n_blocks=2):
        self.scores, self.codes, self.weight, _ = sample
        self.held = np.flatnonzero(self.codes != majority_level)
        self.majority = np.flatnonzero(self.codes == majority_level)
        self.loss = OrdinalLoss(pair_loss, self.codes[self.held], majority_level, cost)
        self.blocks = np.array_split(self.majority, n_blocks)
        self.side = self.loss.rare(self.scores[self.held], self.weight[self.held])
        self.terms = [
            self.loss.block(self.side, self.scores[b], self.weight[b]) for b in self.blocks
        ]

    def value_and_gradient(self):
        of_held = self.loss.finish(self.side, sum(terms.sums for terms in self.terms))
        gradient = np.zeros(len(self.scores))
        gradient[self.held] = of_held.gradient
        for block, terms in zip(self.blocks, self.terms, strict=True):
            gradient[block] = terms.gradient
        return of_held.value + sum(terms.value for terms in self.terms), gradient

    def product(self, d):
        prefix = self.loss.rare_direction(self.side, d[self.held])
        found, sums = np.zeros(len(d)), 0.0
        for block, terms in zip(self.blocks, self.terms, strict=True):
            found[block], more = self.loss.curvature(
                self.side, prefix, terms.zone, d[block], self.weight[block]
            )
            sums = sums + more
        found[self.held] = self.loss.finish_curvature(self.side, prefix, d[self.held], sums)
        return found

    @property
    def pair_weight(self):
        held, majority = self.weight[self.held], float(self.weight[self.majority].sum())
        if not pair_weights(self.codes, self.weight, self.loss.costs).any():
            with pytest.raises(ValueError, match="no two levels"):
                self.loss.pair_weight(held, majority)
            return 0.0
        return self.loss.pair_weight(held, majority)


@st.composite
def splits(draw, off_the_corners=False):
    scores, codes, weight, n_levels = draw(ordinal_samples())
    eps = draw(st.sampled_from([0.5, 0.25, 0.125]))
    if off_the_corners:  # differences are multiples of 0.097: never 0.4 or 1, where zones meet
        scores, eps = np.round(scores / 0.097) * 0.097, 0.3
    cost = draw(st.one_of(st.just(np.ones((n_levels, n_levels))), costs(n_levels)))
    majority_level = draw(st.integers(0, n_levels - 1))
    assume((codes != majority_level).any())
    return (
        Split(
            (scores, codes, weight, n_levels),
            majority_level,
            cost,
            SmoothedHinge(eps),
            draw(st.integers(1, 3)),
        ),
        cost,
        eps,
    )


def weightless_majority():
    """Its only row, of weight zero, is all that the one cost is between."""
    cost = np.zeros((5, 5))
    cost[1, 3] = 1.0
    codes, weight = np.array([1, 0, 3]), np.array([0.5, 0.5, 0.0])
    return Split((np.zeros(3), codes, weight, 5), 3, cost, SmoothedHinge()), cost, 0.5


@example(weightless_majority())
@draws(100)
@given(splits())
def test_value_gradient_and_pair_weight_equal_all_pairs(data):
    split, cost, eps = data
    value, gradient = split.value_and_gradient()
    wanted, by_row, _ = ordinal_loss(split.scores, split.codes, split.weight, cost, eps)
    total = pair_weights(split.codes, split.weight, cost).sum()
    scale = total * (1 + 2 * np.abs(split.scores).max())
    np.testing.assert_allclose(value, wanted, rtol=1e-10, atol=1e-10 * scale)
    np.testing.assert_allclose(gradient, by_row, rtol=1e-10, atol=1e-10 * scale)
    np.testing.assert_allclose(split.pair_weight, total, rtol=1e-12)


@draws(100)
@given(splits(off_the_corners=True), st.integers(0, 2**32 - 1))
def test_hessian_product_equals_all_pairs(data, seed):
    split, cost, eps = data
    d = np.random.default_rng(seed).normal(size=len(split.scores))
    hessian = ordinal_loss(split.scores, split.codes, split.weight, cost, eps)[2]
    scale = pair_weights(split.codes, split.weight, cost).sum() * 10 / eps
    np.testing.assert_allclose(split.product(d), hessian @ d, rtol=1e-10, atol=1e-10 * scale)


@draws(100)
@given(splits(off_the_corners=True))
def test_curvature_of_pairs_and_curved_rows_are_those_of_all_pairs(data):
    split, cost, eps = data
    hessian = -ordinal_loss(split.scores, split.codes, split.weight, cost, eps)[2]
    wanted = hessian[np.ix_(split.held, split.majority)]
    found = split.loss.pair_curvature(split.side, slice(0, 4096), split.scores[split.majority])
    np.testing.assert_allclose(found * split.weight[split.majority], wanted, rtol=1e-9, atol=1e-9)
    some = split.loss.pair_curvature(split.side, slice(1, 3), split.scores[split.majority])
    np.testing.assert_array_equal(some, found[1:3])
    curved = [split.loss.curved(terms.zone) for terms in split.terms]
    # A held row of weight zero may lie in a zone, too; a majority row of weight zero has none.
    has_curvature = (found > 0).any(axis=0) & (split.weight[split.majority] > 0)
    assert np.concatenate(curved)[has_curvature].all()


@draws(40)
@given(splits())
def test_the_majority_level_changes_nothing(data):
    split, cost, eps = data
    value, gradient = split.value_and_gradient()
    scale = pair_weights(split.codes, split.weight, cost).sum() * (
        1 + 2 * np.abs(split.scores).max()
    )
    for level in np.unique(split.codes):
        sample = split.scores, split.codes, split.weight, len(cost)
        other = Split(sample, level, cost, SmoothedHinge(eps))
        other_value, other_gradient = other.value_and_gradient()
        assert other_value == pytest.approx(value, rel=1e-10, abs=1e-10 * scale)
        np.testing.assert_allclose(other_gradient, gradient, rtol=1e-10, atol=1e-10 * scale)


@pytest.mark.parametrize("sign", [1, -1])
def test_two_levels_are_the_two_class_loss(sign):
    rng = np.random.default_rng(0)
    rare, majority = sign * rng.normal(1, 1, 20), sign * rng.normal(0, 1, 50)
    w_rare, w_majority = rng.uniform(0, 2, 20), rng.uniform(0, 2, 50)
    plain, level = SmoothedHinge(), int(sign > 0)
    loss = OrdinalLoss(plain, np.full(20, level), 1 - level, np.ones((2, 2)))
    side, of_two = loss.rare(rare, w_rare), plain.rare(sign * rare, w_rare)
    terms = loss.block(side, majority, w_majority)
    wanted = plain.block(of_two, sign * majority, w_majority)
    assert terms.value == wanted.value
    np.testing.assert_array_equal(terms.gradient, sign * wanted.gradient)
    of_held, of_rare = loss.finish(side, terms.sums), plain.finish(of_two, wanted.sums)
    np.testing.assert_array_equal(of_held.gradient, sign * of_rare.gradient)
    assert of_held.value == 0.0
    assert loss.pair_weight(w_rare, 7.0) == plain.pair_weight(w_rare, 7.0)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_any_pair_loss_is_taken_of_every_two_class_problem(name):
    """Rows of four levels, the second the majority; each problem put together by hand."""
    rng, base = np.random.default_rng(0), make_loss(name, 0.3)
    codes = rng.choice(4, 60, p=[0.15, 0.6, 0.15, 0.1])
    weight, costs = rng.uniform(0.2, 2, 60), rng.uniform(0.5, 2, (4, 4))
    point, direction = rng.normal(size=60) + 0.3 * codes, rng.normal(size=60)

    def at(scores):
        return Split((scores, codes, weight, 4), 1, costs, base, n_blocks=1)

    wanted = 0.0
    # One level below the majority, two above it, which make a pair of their own, as 0 and 2, 3.
    for summed, *held in [(1, 2, 3), (1, 0), (0, 2, 3), (2, 3)]:
        sign = 1.0 if held[0] > summed else -1.0
        rows, others = np.isin(codes, held), codes == summed
        cost = costs[np.minimum(codes[rows], summed), np.maximum(codes[rows], summed)]
        side = base.rare(sign * point[rows], weight[rows] * cost)
        terms = base.block(side, sign * point[others], weight[others])
        wanted += terms.value + base.finish(side, terms.sums).value
    value, gradient = at(point).value_and_gradient()
    assert value == pytest.approx(wanted, rel=1e-10)
    h, slope = 1e-5, gradient @ direction
    forward, back = (at(point + step * direction).value_and_gradient() for step in (h, -h))
    assert slope == pytest.approx((forward[0] - back[0]) / (2 * h), rel=1e-4, abs=1e-6 * abs(value))
    change, product = (forward[1] - back[1]) / (2 * h), at(point).product(direction)
    np.testing.assert_allclose(product, change, rtol=2e-2, atol=2e-3 * np.abs(change).max())
