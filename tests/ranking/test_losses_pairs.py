"""Every loss made of margins against all pairs: value, gradient, Hessian product, own sums."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from oracles.pairs import AT_ZERO, MAJORITY_OUTER, PAIRS, RARE_OUTER, rows
from rareclass.ranking.losses import LOSSES, make_loss
from rareclass.ranking.losses.margin_losses import MARGIN_LOSSES


@dataclass
class Case:
    """A loss, its pair's name and its outer function."""

    name: str
    params: dict
    pair: str
    outer: object = None
    n_levels: int = 0


# All that is registered, but what looks at the rare rows' own sums: `test_reweighting` has that.
CASES = [Case(name, {}, name) for name in LOSSES if name in PAIRS]
CASES += [
    Case(name, params | {"pair_loss": pair}, pair, outer, n_levels)
    for name, (params, outer, n_levels) in MAJORITY_OUTER.items()
    for pair in PAIRS
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.name}-{c.pair}")


def all_pairs(case, rare, majority, w_rare, w_majority, levels):
    """Value, gradient and Hessian over (rare, majority, levels), every pair formed."""
    n, m = len(rare), len(majority)
    total = w_rare.sum() or 1.0
    value, slope, curvature = PAIRS[case.pair](rare[:, None] - majority)
    row = (w_rare[:, None] * value).sum(axis=0)
    # Jacobian of each majority row's own sum over (rare, majority).
    by_rare = w_rare[:, None] * slope
    jacobian = np.concatenate([by_rare, np.diag(-by_rare.sum(axis=0))])  # (n + m, m)
    if case.outer is None:
        force, bend, of_levels = w_majority, 0 * row, None
        answer = w_majority @ row
    else:
        outer = case.outer(row / total, levels, AT_ZERO[case.pair])
        answer, force = total * w_majority @ outer[0], w_majority * outer[1]
        bend = w_majority * outer[2] / total
        of_levels = outer[3:] if case.n_levels else None
    c = w_rare[:, None] * curvature * force
    hessian = np.block([[np.diag(c.sum(axis=1)), -c], [-c.T, np.diag(c.sum(axis=0))]])
    hessian += (jacobian * bend) @ jacobian.T
    gradient = jacobian @ force
    if of_levels is not None:
        slopes, bends, shares = of_levels
        gradient = np.append(gradient, total * (w_majority.sum() * shares - slopes @ w_majority))
        cross = -jacobian @ (bends * w_majority).T
        hessian = np.block([[hessian, cross], [cross.T, np.diag(total * bends @ w_majority)]])
    assert gradient.shape == (n + m + case.n_levels,)
    return answer, gradient, hessian


def found_by(case, loss, rare, majority, w_rare, w_majority, levels, d, n_blocks):
    """The same from the loss, over blocks: value, gradient, Hessian times d."""
    n, m = len(rare), len(majority)
    parts = np.array_split(np.arange(m), n_blocks)
    side = loss.rare(rare, w_rare, levels)
    terms = [loss.block(side, majority[part], w_majority[part]) for part in parts]
    of_rare = loss.finish(side, sum(t.sums for t in terms))
    value = sum(t.value for t in terms) + of_rare.value
    gradient = np.concatenate([of_rare.gradient, *(t.gradient for t in terms), of_rare.levels])
    d_majority = d[n : n + m]
    prefix = loss.rare_direction(side, d[:n], d[n + m :])
    products = [
        loss.curvature(side, prefix, t.zone, d_majority[part], w_majority[part])
        for t, part in zip(terms, parts, strict=True)
    ]
    sums = sum(more for _, more in products)
    last = loss.finish_curvature(side, prefix, d[:n], sums)
    assert last.value == 0.0
    product = np.concatenate([last.gradient, *(by_row for by_row, _ in products), last.levels])
    return value, gradient, product


def assert_near(found, wanted, scale):
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * scale)


def make(case):
    return make_loss(case.name, 0.25, case.params)


def test_every_loss_has_its_oracle():
    assert LOSSES.keys() == PAIRS.keys() | MAJORITY_OUTER.keys() | RARE_OUTER.keys()
    assert MARGIN_LOSSES.keys() == PAIRS.keys()


@pytest.mark.sampled(3)
@every_case
@draws(40)
@given(data=rows(), n_blocks=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_value_gradient_and_hessian_equal_all_pairs(case, data, n_blocks, seed):
    rare, majority, w_rare, w_majority = data
    rng = np.random.default_rng(seed)
    # The mean of the rare scores, which centres them, off the grid moves pairs by a rounding error
    # across the border of a zone: all margins are kept off the borders.
    majority = majority + 0.0625
    levels = rng.normal(size=case.n_levels) * 0.1
    d = rng.normal(size=len(rare) + len(majority) + case.n_levels)
    found = found_by(case, make(case), *data[:1], majority, w_rare, w_majority, levels, d, n_blocks)
    value, gradient, hessian = all_pairs(case, rare, majority, w_rare, w_majority, levels)
    wanted = (value, gradient, hessian @ d)
    sizes = (abs(value), np.abs(gradient).max(), np.abs(hessian).sum(axis=1).max() * 4)
    pairs = w_rare.sum() * w_majority.sum()
    for f, w, size in zip(found, wanted, sizes, strict=True):
        assert_near(f, w, size + pairs)


@pytest.mark.parametrize("name", PAIRS)
@draws(40)
@given(data=rows())
def test_slope_and_curvature_of_single_pairs(name, data):
    rare, majority, w_rare, _ = data
    majority = majority + 0.0625  # off the borders of zones, as above
    loss = make_loss(name, 0.25)
    side = loss.rare(rare, w_rare)
    _, slope, curvature = (w_rare[:, None] * part for part in PAIRS[name](rare[:, None] - majority))
    every = slice(0, len(rare))
    for found, wanted in (
        (loss.pair_slope(side, every, majority), -slope),
        (loss.pair_curvature(side, every, majority), curvature),
    ):
        assert_near(found, wanted, np.abs(wanted).max())
        np.testing.assert_array_equal(found[wanted == 0.0], 0.0)


@pytest.mark.sampled(4)
@every_case
def test_many_rows_equal_all_pairs_to_1e_10_of_the_numbers_themselves(case):
    rng = np.random.default_rng(0)
    rare, majority = rng.normal(1, 2, 120), rng.normal(0, 2, 700)
    rare[::3] = np.round(rare[::3])
    w_rare, w_majority = rng.uniform(0.1, 3, 120), rng.uniform(0.1, 3, 700)
    levels, d = 0.1 * rng.normal(size=case.n_levels), rng.normal(size=820 + case.n_levels)
    found = found_by(case, make(case), rare, majority, w_rare, w_majority, levels, d, 3)
    value, gradient, hessian = all_pairs(case, rare, majority, w_rare, w_majority, levels)
    assert found[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found[1], gradient, rtol=1e-10, atol=1e-11 * np.abs(gradient).max())
    product = hessian @ d
    np.testing.assert_allclose(found[2], product, rtol=1e-10, atol=1e-11 * np.abs(product).max())


@every_case
def test_far_scores_equal_all_pairs(case):
    if case.pair == "exponential":
        rare, majority = np.array([-30.0, 0.5, 40.0]), np.array([-90.0, -20.0, 0.25, 25.0])
    else:
        rare = np.array([-1e6, -300.0, -299.5, 0.5, 2.0, 77.0, 1e4])
        majority = np.array([-1e7, -400.0, -299.75, -100.0, 0.25, 0.75, 37.5, 50.0, 1e3, 1e5])
    rng = np.random.default_rng(0)
    w_rare, w_majority = rng.uniform(0.5, 2, len(rare)), rng.uniform(0.5, 2, len(majority))
    levels, d = np.zeros(case.n_levels), rng.normal(size=len(rare) + len(majority) + case.n_levels)
    found = found_by(case, make(case), rare, majority, w_rare, w_majority, levels, d, 2)
    value, gradient, hessian = all_pairs(case, rare, majority, w_rare, w_majority, levels)
    assert found[0] == pytest.approx(value, rel=1e-10)
    assert_near(found[1], gradient, np.abs(gradient).max())
    assert_near(found[2], hessian @ d, np.abs(hessian).max())


@pytest.mark.parametrize("far", [1e80, 1e120])
def test_an_outer_function_that_overflows_says_that_it_is_too_far(far):
    """At 1e80 the value overflows and its slope does not."""
    loss = make_loss("pnorm_push", 0.25, {"power": 4.0, "pair_loss": "smoothed_hinge"})
    side = loss.rare(np.array([0.0, 1.0]), np.ones(2))
    terms = loss.block(side, np.array([-5.0, far]), np.ones(2))
    assert terms.value == np.inf
    assert np.isnan(terms.gradient).all()
    assert np.isnan(terms.sums).all()
