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
from rareclass.ranking.losses import (
    Exponential,
    Logistic,
    PartialAUC,
    PNormPush,
    SmoothedHinge,
    SquaredHinge,
    Top,
)
from rareclass.ranking.losses.margin_loss import MarginLoss
from rareclass.ranking.losses.on_device import block_terms, curvature, rare_sums
from rareclass.ranking.losses.ordinal import OrdinalLoss
from rareclass.ranking.solvers import part, preconditioner, questions
from rareclass.ranking.solvers.path import solve_path
from rareclass.rows import as_source, on_device
from rareclass.rows.devices import ArrayLibrary
from rareclass.rows.on_device import DeviceRows

STRICT = ArrayLibrary("array_api_strict")
X, y = rare_mixture(1200, 60)
WEIGHT = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)


there = DeviceRows(STRICT, as_source(X))._sent


def near(found, wanted, terms):
    assert_near(np.asarray(found), wanted, np.abs(terms).sum() + 1.0)


class OfSomebody(SmoothedHinge):
    """A loss that knows numpy alone."""

    by_array_api = False

    def block(self, rare, scores, weight):
        assert isinstance(scores, np.ndarray)
        return super().block(rare, scores, weight)


LOSSES = {
    "smoothed_hinge": SmoothedHinge,
    "squared_hinge": lambda eps: SquaredHinge(),
    "logistic": lambda eps: Logistic(),
    "exponential": lambda eps: Exponential(),
    "top": lambda eps: Top(eps=eps),
    "pnorm_push": lambda eps: PNormPush(1.5, eps=eps),
    "pnorm_push of logistic": lambda eps: PNormPush(pair_loss="logistic"),
    "partial_auc": lambda eps: PartialAUC([0.1, 0.5], [0.2, 0.3], eps=eps),
    "of somebody": OfSomebody,
}


def between_levels(pair_loss, n_held):
    """The loss of held rows of levels 0, 2 and 3 beside a majority of level 1."""
    codes = np.array([0, 2, 3])[np.arange(n_held) % 3]
    return OrdinalLoss(pair_loss, codes, 1, 1.0 + np.arange(16.0).reshape(4, 4))


def check_block(loss, data):
    rare_scores, scores, w_rare, weight, _ = data
    unknowns = np.linspace(-0.1, 0.2, loss.n_levels)
    rare = loss.rare(rare_scores, w_rare, unknowns)
    prefix = loss.rare_direction(rare, rare_scores[::-1].copy(), unknowns[::-1].copy())
    here = loss.block(rare, scores, weight)
    rows = xp.asarray(scores), xp.asarray(weight)
    found = block_terms(loss, there(rare), *rows)
    near(found.value, here.value, here.value)
    near(found.gradient, here.gradient, here.gradient)
    near(found.sums, here.sums, here.sums)
    direction = scores - scores.mean()
    wanted = loss.curvature(rare, prefix, here.zone, direction, weight)
    along = curvature(loss, there(rare), there(prefix), found.zone, xp.asarray(direction), rows[1])
    size = np.abs(direction).max() * (np.abs(here.gradient).sum() + weight.sum() * w_rare.sum())
    for one, other in zip(along, wanted, strict=True):
        near(one, other, size * (1.0 + np.abs(scores).max()))
    np.testing.assert_array_equal(np.asarray(loss.curved(found.zone)), loss.curved(here.zone))
    if loss.by_array_api:
        which = slice(1, len(w_rare))
        of_pairs = loss.pair_curvature(there(rare), which, rows[0])
        near(of_pairs, wanted := loss.pair_curvature(rare, which, scores), wanted)
    pair = getattr(loss, "pair", loss)
    if isinstance(pair, MarginLoss):
        rare = pair.rare(rare_scores, w_rare)
        wanted = pair.rare_sums(rare, scores, weight)
        near(rare_sums(pair, there(rare), *rows), wanted, wanted)


@pytest.mark.parametrize("name", LOSSES)
@draws(30)
@given(pairs(12))
def test_a_block_asks_the_same_of_the_rare_side(name, data):
    check_block(LOSSES[name](data[-1]), data)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "top"])
@draws(15)
@given(pairs(12))
def test_a_block_asks_the_same_of_all_levels(name, data):
    check_block(between_levels(LOSSES[name](data[-1]), len(data[2])), data)


@pytest.mark.parametrize("name", ["logistic", "pnorm_push of logistic"])
def test_rows_that_are_far_from_every_rare_one_ask_the_same(name):
    rng = np.random.default_rng(0)
    rare_scores = np.array([-0.5, 0.0, 2.3, 500.0, 500.0])
    scores = np.concatenate([rng.uniform(-700.0, 700.0, 40), rare_scores, [np.nextafter(-40, 0)]])
    weight = rng.integers(0, 3, len(scores)).astype(float)
    check_block(LOSSES[name](0.5), (rare_scores, scores, np.ones(5), weight, 0.5))


def test_a_loss_that_overflows_says_so_without_a_warning():
    loss, one = Exponential(), np.ones(1)
    rare = loss.rare(0.0 * one, one)
    found = block_terms(loss, there(rare), xp.asarray(1000.0 * one), xp.asarray(one))
    assert float(found.value) == np.inf
    assert np.isnan(np.asarray(found.gradient)).all()
    assert np.isnan(np.asarray(found.sums)).all()


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (RankRC, {}),
        (RankRC, {"kernel": "laplace", "penalty": "l1", "lam": 0.01}),
        (RankRC, {"loss": "top", "loss_params": {"pair_loss": "logistic"}}),
        (RankRC, {"kernel": lambda A, B: 1.0 + A @ B.T, "loss": "pnorm_push"}),
        (RankRC, {"loss": "partial_auc"}),
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


@pytest.mark.parametrize(
    "loss",
    [Logistic(), PNormPush(), PartialAUC([0.1, 0.5]), OfSomebody()],
    ids=lambda loss: type(loss).__name__,
)
def test_the_preconditioner_is_the_same_wherever_it_is_built(loss, monkeypatch):
    monkeypatch.setattr(preconditioner, "_RARE_ROWS", 25)
    found = []
    for device in (None, STRICT):
        model = RankRC(loss=loss, device=device)
        problem = model._prepare(X, y, WEIGHT).problem(0.01)
        rng = np.random.default_rng(0)
        at = problem.evaluate(rng.normal(size=problem.size))
        few = preconditioner.SampledHessian(problem, n_sampled=200)
        found.append(few(at)(rng.normal(size=problem.size)))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-8, atol=1e-8 * np.abs(found[0]).max())


def test_a_matrix_that_is_not_positive_definite_has_no_inverse(monkeypatch):
    H = np.diag([1.0, 0.0, 1.0]) + 0.5
    definite = preconditioner._inverse_on_device(H, STRICT)(H[0])
    np.testing.assert_allclose(definite, [1.0, 0.0, 0.0], atol=1e-12)
    H[1, 1] = -1.0
    assert preconditioner._inverse_on_device(H, STRICT) is None
    # CuPy says nothing, and returns what it had.
    monkeypatch.setattr(xp.linalg, "cholesky", lambda H: xp.tril(H))
    assert preconditioner._inverse_on_device(H, STRICT) is None


@pytest.mark.parametrize("n_lams", [4, 16])
def test_lams_of_a_path_share_the_passes_of_all_rows(n_lams, monkeypatch):
    monkeypatch.setattr(part, "_LEAST_ROWS", 100)
    # 4,096 rows a block are too many to choose a part from.
    monkeypatch.setattr(on_device, "_LEAST_BLOCK_ROWS", 50)
    n_asked, asks = [], DeviceRows.sum

    def counted(self, fn, *about):
        if fn is questions._ask_block and self.n_rows > 1000:  # not those of a part
            n_asked.append(len(about[2]))
        return asks(self, fn, *about)

    monkeypatch.setattr(DeviceRows, "sum", counted)
    problem = RankRC(landmarks=("rare", 3), device=STRICT)._prepare(X, y, None).problem(1.0)
    lams = [0.1 * 0.5**k for k in range(n_lams)]
    solve_path(problem, lams, 0.9, 1, at_once=16)
    assert n_asked[0] == n_lams
    assert len(n_asked) <= 3


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
    small, some = ArrayLibrary("array_api_strict", memory=30_000), slice(400)
    models = [RankRC(landmarks=("rare", 5), device=at, random_state=0) for at in (None, small)]
    scores = [model.fit(X[some], y[some]).score_samples(X) for model in models]
    np.testing.assert_allclose(*scores, atol=1e-8)


@pytest.mark.parametrize("make", [RankRC, RankRCCV, StochasticRankRC])
def test_an_unknown_device_is_refused_by_its_name(make):
    with pytest.raises(ValueError, match="device='gpu' is not one of None, 'cpu', 'cuda'"):
        make(device="gpu").fit(X, y)
