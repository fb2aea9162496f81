"""What is worked out by the array API on a device equals what numpy and compiled loops find."""

import array_api_strict as xp
import numpy as np
import pytest
from hypothesis import given
from sklearn.base import clone

from draws import draws
from made_tables import ordinal_table, rare_mixture
from ranking.test_losses import assert_near, pairs
from rareclass import OrdinalRankRC, RankRC, RankRCCV, StochasticRankRC
from rareclass.ranking.losses import make_loss
from rareclass.ranking.losses.on_device import block_terms, curvature, curved, rare_sums
from rareclass.rows.devices import ArrayLibrary

STRICT = ArrayLibrary("array_api_strict")
X, y = rare_mixture(1200, 60)
WEIGHT = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)


def there(side):
    """The rare side as a device has it."""
    return type(side)(*(xp.asarray(v) if isinstance(v, np.ndarray) else v for v in side))


def near(found, wanted, terms):
    assert_near(np.asarray(found), wanted, np.abs(terms).sum() + 1.0)


@pytest.mark.parametrize("name", ["smoothed_hinge", "squared_hinge", "top", "logistic"])
@draws(60)
@given(pairs(12))
def test_a_block_asks_the_same_of_the_rare_side(name, data):
    rare_scores, scores, w_rare, weight, eps = data
    loss = make_loss(name, eps)
    rare = loss.rare(rare_scores, w_rare)
    prefix = loss.rare_direction(rare, rare_scores[::-1].copy())
    here = loss.block(rare, scores, weight)
    rows = xp.asarray(scores), xp.asarray(weight)
    found = block_terms(loss, there(rare), *rows)
    near(found.value, here.value, here.value)
    near(found.gradient, here.gradient, here.gradient)
    near(found.sums, here.sums, here.sums)
    direction = scores - scores.mean()
    wanted = loss.curvature(rare, prefix, here.zone, direction, weight)
    along = curvature(loss, there(rare), there(prefix), found.zone, xp.asarray(direction), rows[1])
    for one, other in zip(along, wanted, strict=True):
        near(one, other, np.abs(direction).max() * weight.sum() * w_rare.sum())
    np.testing.assert_array_equal(np.asarray(curved(loss, found.zone)), loss.curved(here.zone))
    pair = getattr(loss, "pair", loss)
    near(
        rare_sums(pair, there(rare), *rows),
        wanted := pair.rare_sums(rare, scores, weight),
        wanted,
    )


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (RankRC, {}),
        (RankRC, {"kernel": "laplace", "penalty": "l1", "lam": 0.01}),
        (RankRC, {"loss": "top"}),
        (RankRC, {"kernel": lambda A, B: 1.0 + A @ B.T, "loss": "pnorm_push"}),
        (RankRCCV, {"lams": [0.1, 0.01], "cv": 2, "random_state": 0}),
        (StochasticRankRC, {"random_state": 0}),
    ],
)
def test_a_model_is_the_same_wherever_it_is_learned(make, parameters):
    here = make(**parameters).fit(X, y, WEIGHT)
    device = clone(make(device=STRICT, **parameters)).fit(X, y, WEIGHT)
    assert device.score_samples(X).dtype == np.float64
    np.testing.assert_allclose(device.score_samples(X), here.score_samples(X), atol=1e-8)
    chosen = getattr(here, "best_params_", None)
    assert chosen == getattr(device, "best_params_", None)


def test_levels_are_the_same_wherever_they_are_learned():
    X, y = ordinal_table(500, [0.9, 0.06, 0.04])
    here, device = (OrdinalRankRC(device=at).fit(X, y) for at in (None, STRICT))
    np.testing.assert_allclose(device.score_samples(X), here.score_samples(X), atol=1e-8)


def test_float32_is_as_near_as_it_is_here():
    narrow = X.astype(np.float32)
    device = RankRC(device=STRICT).fit(narrow, y)
    here = RankRC().fit(narrow, y)
    np.testing.assert_allclose(device.score_samples(narrow), here.score_samples(narrow), atol=1e-4)


def test_rows_that_the_device_cannot_hold_make_the_same_model():
    # 400 rows of 32 bytes: four tenths of this do not hold them.
    small, part = ArrayLibrary("array_api_strict", memory=30_000), slice(400)
    scores = [RankRC(device=at).fit(X[part], y[part]).score_samples(X) for at in (None, small)]
    np.testing.assert_allclose(*scores, atol=1e-8)


@pytest.mark.parametrize("make", [RankRC, RankRCCV, StochasticRankRC])
def test_an_unknown_device_is_refused_by_its_name(make):
    with pytest.raises(ValueError, match="device='gpu' is not one of None, 'cpu', 'cuda'"):
        make(device="gpu").fit(X, y)
