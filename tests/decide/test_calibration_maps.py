"""Maps from scores to probabilities against their definitions, row by row."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression, isotonic_regression

from draws import draws
from oracles.metrics import samples
from rareclass.decide import Calibration, at_prevalence
from rareclass.decide.calibration import (
    METHODS,
    BetaMap,
    IsotonicMap,
    LevelCalibration,
    LogisticMap,
    PooledMap,
)
from rareclass.decide.calibration_map import (
    IsotonicOfParts,
    ScoreScale,
    coarser,
    fit_increasing,
    read_score_levels,
)

KINDS = [BetaMap, IsotonicMap, LogisticMap, PooledMap]


def rows_of(seed, n_rare=30, n_majority=300, gap=1.5):
    rng = np.random.default_rng(seed)
    y = np.arange(n_rare + n_majority) < n_rare
    return y, rng.normal(size=len(y)) + gap * y


@st.composite
def counted(draw):
    y, scores, _ = draw(samples(max_rows=12, weights=False))
    weight = draw(st.lists(st.integers(1, 3), min_size=len(y), max_size=len(y)))
    return y, scores, np.array(weight, dtype=float)


@pytest.mark.parametrize("kind", [LogisticMap, BetaMap])
@pytest.mark.parametrize("bounded", [False, True])
def test_parametric_maps_have_the_least_log_loss(kind, bounded):
    """Against a general optimiser over the formula, on Platt's targets."""
    y, scores = rows_of(3)
    weight = np.random.default_rng(3).integers(1, 4, len(y)).astype(float)
    scores = expit(2 * scores - 1) if bounded else scores
    rare, rest = weight[y].sum(), weight[~y].sum()
    target = np.where(y, (rare + 1) / (rare + 2), 1 / (rest + 2))
    z = ScoreScale.of(read_score_levels(y, scores, weight))(scores)
    u = expit(z)
    columns = [z] if kind is LogisticMap else [np.log(u), -np.log1p(-u)]
    F = np.column_stack([*columns, np.ones(len(y))])

    def loss(at):
        return weight @ (np.logaddexp(0, F @ at) - target * (F @ at)) / weight.sum()

    bounds = [(0, None)] * len(columns) + [(None, None)]
    best = minimize(loss, np.ones(F.shape[1]), method="L-BFGS-B", bounds=bounds, tol=1e-14)
    found = kind.fit(y, scores, weight)
    expected = expit(F @ best.x)
    np.testing.assert_allclose(found(scores), expected, rtol=1e-3)
    log_odds = found.log_odds(scores)
    assert weight @ (np.logaddexp(0, log_odds) - target * log_odds) / weight.sum() <= (
        best.fun + 1e-12
    )


def test_a_slope_that_would_fall_is_none_and_the_other_the_best():
    y, scores = rows_of(0)
    found = LogisticMap.fit(y, -scores)
    assert found.slope == 0.0
    assert found([-9.0])[0] == found([9.0])[0]
    z = np.linspace(-4, 4, 400)
    y = np.random.default_rng(0).random(400) < np.where(z < 0, 0.3 - 0.03 * z, 0.3 + 0.15 * z)
    found = BetaMap.fit(y, expit(z))
    assert found.low_slope == 0.0
    assert found.high_slope > 0.1


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_slopes_do_not_depend_on_the_unit_of_weights(unit):
    random = np.random.default_rng(0)
    features = random.normal(size=(200, 2))
    targets, weight = expit(features @ [2.0, 0.5] - 1.0 + random.normal(size=200)), np.ones(200)
    wanted = fit_increasing(features, targets, weight)
    found = fit_increasing(features, targets, unit * weight)
    np.testing.assert_allclose(found.slopes, wanted.slopes, rtol=1e-9)
    assert (found.intercept, found.loss) == pytest.approx((wanted.intercept, wanted.loss), rel=1e-9)


@draws(40)
@given(counted())
def test_isotonic_pools_platts_targets(sample):
    y, scores, weight = sample
    levels, place = np.unique(scores, return_inverse=True)
    rare, rest = weight[y == 1].sum(), weight[y == 0].sum()
    target = np.where(y == 1, (rare + 1) / (rare + 2), 1 / (rest + 2))
    total = np.bincount(place, weight)
    expected = isotonic_regression(np.bincount(place, weight * target) / total, sample_weight=total)
    found = IsotonicMap.fit(y, scores, weight)
    if len(levels) > 1:
        np.testing.assert_allclose(found(levels), expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@draws(30)
@given(sample=counted())
def test_probabilities_never_fall_are_never_certain_and_weights_are_copies(kind, sample):
    y, scores, weight = sample
    tried = np.unique(np.concatenate([scores, np.linspace(scores.min() - 2, scores.max() + 2, 40)]))
    found = kind.fit(y, scores, weight)
    p = found(tried)
    assert ((p > 0) & (p < 1)).all()
    assert (np.diff(p) >= -1e-12).all()
    times = weight.astype(int)
    copies = kind.fit(np.repeat(y, times), np.repeat(scores, times))
    np.testing.assert_allclose(found(scores), copies(scores), rtol=1e-6)


def test_copies_count_in_the_share_of_the_pooled_map_and_in_the_parts():
    y, scores = rows_of(1, n_rare=12)
    times = np.where(y, 2, 1)
    rows = (np.repeat(y, times), np.repeat(scores, times)), (y, scores, times)
    copied, weighted = (PooledMap.fit(*each) for each in rows)
    assert weighted.isotonic_share == copied.isotonic_share
    copied, weighted = (IsotonicOfParts.of(read_score_levels(*each)) for each in rows)
    np.testing.assert_allclose(weighted.probabilities, copied.probabilities, atol=1e-12)


def test_only_ratios_count_of_weights_that_are_not_whole():
    y, scores = rows_of(2)
    weight = np.random.default_rng(2).uniform(0.5, 2, len(y))
    expected = BetaMap.fit(y, scores, weight)(scores)
    np.testing.assert_allclose(BetaMap.fit(y, scores, 1e-3 * weight)(scores), expected, rtol=1e-9)


def test_the_pooled_map_takes_the_shape_that_the_rows_have():
    rng = np.random.default_rng(0)
    y, scores = rows_of(0, n_rare=400, n_majority=8000)
    assert PooledMap.fit(y, scores).isotonic_share <= 0.25
    hidden = y & (rng.random(len(y)) < 0.5)  # half of the rare rows look like all others
    scores = np.where(hidden, rng.normal(size=len(y)), scores + 3 * y)
    assert PooledMap.fit(y, scores).isotonic_share >= 0.75
    few = np.flatnonzero(y)[:381]
    assert PooledMap.fit(np.delete(y, few), np.delete(scores, few)).isotonic_share == 0.5


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_the_share_is_that_of_least_loss_over_rows_left_out(seed):
    """Row by row: folds by number in the order of scores, maps on the other rows."""
    rng = np.random.default_rng(seed)
    y, scores = rows_of(seed, n_rare=25 + 10 * seed, n_majority=300)
    scores = np.where(y & (rng.random(len(y)) < 0.08 * seed), rng.normal(size=len(y)), scores)
    fold = np.empty(len(y), dtype=int)
    for label in (True, False):
        rows = np.flatnonzero(y == label)[np.argsort(scores[y == label])]
        fold[rows] = np.random.default_rng(0).permutation(np.arange(len(rows)) % 10)
    p = np.empty((2, len(y)))
    for k in range(10):
        for row, kind in zip(p, (BetaMap, IsotonicMap), strict=True):
            row[fold == k] = kind.fit(y[fold != k], scores[fold != k])(scores[fold == k])
    shares = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    mean = (1 - shares)[:, None] * p[0] + shares[:, None] * p[1]
    losses = -np.log(np.where(y, mean, 1 - mean)).sum(axis=1)
    assert PooledMap.fit(y, scores).isotonic_share == shares[losses.argmin()]


@pytest.mark.parametrize("seed", range(4))
def test_the_map_for_several_models_is_half_the_mean_of_isotonic_regressions_of_parts(seed):
    """Row by row: ten parts by number in the order of scores, the plain regression of each."""
    y, scores = rows_of(seed, n_rare=4 + 12 * seed, n_majority=200)
    scores = scores.round(1 if seed % 2 else 8)
    part = np.empty(len(y), dtype=int)
    for label in (True, False):
        rows = np.flatnonzero(y == label)[np.argsort(scores[y == label], kind="stable")]
        part[rows] = np.random.default_rng(0).permutation(np.arange(len(rows)) % 10)
    new = np.unique(np.concatenate([scores, [-9.0, 9.0]]))
    parts = [
        IsotonicRegression(out_of_bounds="clip").fit(scores[part == k], y[part == k]).predict(new)
        for k in range(10)
    ]
    found = Calibration.fit(y, scores, several_models=True).map
    p, _ = found.parts.log_probabilities(new)
    np.testing.assert_allclose(np.exp(p), np.mean(parts, axis=0), atol=1e-12)
    chosen = PooledMap.fit(y, scores)(new)
    np.testing.assert_allclose(found(new), (chosen + np.mean(parts, axis=0)) / 2, atol=1e-12)
    assert (np.diff(found(new)) >= -1e-12).all()


def test_a_score_just_below_the_highest_has_a_probability_of_the_parts():
    lowest, highest = -2.78, -0.98
    for probabilities in (np.array([0.1, 1.0]), np.array([0.0, 0.9])):
        parts = IsotonicOfParts(np.array([lowest, highest]), probabilities)
        near = np.nextafter([lowest, lowest, highest, highest], [-np.inf, np.inf] * 2)
        p, rest = np.exp(parts.log_probabilities(near))
        np.testing.assert_allclose(p, np.repeat(probabilities, 2), atol=1e-12)
        np.testing.assert_allclose(rest, 1.0 - p, atol=1e-12)


def test_auto_has_parts_for_several_models_alone():
    y, scores = rows_of(0)
    assert Calibration.fit(y, scores).map.parts is None
    several = Calibration.fit(y, scores, several_models=True)
    assert several.map.parts is not None
    assert several(scores).mean() == pytest.approx(y.mean(), rel=1e-9)
    same = [
        Calibration.fit(y, scores, method="beta", several_models=each) for each in (True, False)
    ]
    np.testing.assert_array_equal(same[0](scores), same[1](scores))


@pytest.mark.parametrize("method", METHODS)
def test_the_mean_probability_is_the_prevalence_and_that_of_equal_scores(method):
    y, scores = rows_of(5, n_rare=60, n_majority=600)
    found = Calibration.fit(y, scores, method=method)
    assert found(scores).mean() == pytest.approx(y.mean(), rel=1e-6)
    found = Calibration.fit(np.arange(50) < 5, np.full(50, 0.3), method=method)
    assert found([-1.0, 0.3, 7.0]) == pytest.approx([0.1] * 3)


def test_the_scale_of_scores_is_that_of_most_of_them():
    """A thousandth of their range counts where most are equal only."""
    y, scores = np.arange(50) < 9, np.append(np.arange(49.0) % 7, 700.0)
    assert 2.0 <= ScoreScale.of(read_score_levels(y, scores)).spread <= 6.0
    assert ScoreScale.of(
        read_score_levels(y, np.append(np.zeros(49), 700.0))
    ).spread == pytest.approx(0.7)


def test_joining_majority_levels_changes_next_to_nothing():
    y, scores = rows_of(6, n_rare=40, n_majority=4000)
    levels = read_score_levels(y, scores)
    joined = coarser(levels, 500)
    assert len(joined.scores) < 700
    assert joined.rare[joined.rare > 0].tolist() == levels.rare[levels.rare > 0].tolist()
    assert joined.total.sum() == levels.total.sum()
    assert joined.scores[-1] == levels.scores[-1]
    for kind in (BetaMap, IsotonicMap):
        difference = kind.of(joined)(scores) - kind.of(levels)(scores)
        assert np.sqrt(np.mean(difference**2)) < 0.003


def test_the_prevalence_is_that_of_rows_reweighted_by_class():
    """Of isotonic regression exactly: pooling does not depend on the class weights."""
    y, scores = rows_of(7, n_rare=50, n_majority=500)
    levels = np.unique(scores)
    odds = (0.01 / 0.99) / (y.mean() / (1 - y.mean()))
    by_weight = isotonic_regression(
        y[np.argsort(scores)].astype(float),
        sample_weight=np.where(y[np.argsort(scores)], odds, 1.0),
    )
    plain = isotonic_regression(y[np.argsort(scores)].astype(float))
    found = at_prevalence(plain, trained=y.mean(), prevalence=0.01)
    np.testing.assert_allclose(found, by_weight, atol=1e-12)
    assert len(levels) == len(y)


def test_a_sampling_rate_is_the_prevalence_that_it_leads_to():
    p = np.linspace(0.01, 0.99, 9)
    trained, rate = 0.2, 0.1
    before = trained / (trained + (1 - trained) / rate)
    one = at_prevalence(p, trained=trained, majority_sampling_rate=rate)
    np.testing.assert_allclose(one, at_prevalence(p, trained=trained, prevalence=before))
    np.testing.assert_allclose(at_prevalence(one, trained=before, prevalence=trained), p)


@given(st.floats(1e-6, 1 - 1e-6), st.floats(1e-6, 1 - 1e-6))
@example(0.5, 1e-6)
def test_of_a_score_that_tells_nothing_the_probability_is_the_prevalence(trained, prevalence):
    (found,) = at_prevalence([trained], trained=trained, prevalence=prevalence)
    assert found == pytest.approx(prevalence, rel=1e-9)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"prevalence": 0}, "prevalence=0 must be between 0 and 1"),
        ({"prevalence": 1.0}, "prevalence=1.0 must"),
        ({"prevalence": "2%"}, "prevalence='2%' must"),
        ({"majority_sampling_rate": 0.0}, "majority_sampling_rate=0.0 must be"),
        ({"majority_sampling_rate": 1.5}, "majority_sampling_rate=1.5 must be"),
        ({"prevalence": 0.1, "majority_sampling_rate": 0.1}, "the same thing twice"),
    ],
)
def test_shares_out_of_range_are_named(given, told):
    y, scores = rows_of(0)
    with pytest.raises(ValueError, match=told):
        Calibration.fit(y, scores, method="beta").at(**given)
    with pytest.raises(ValueError, match=told):
        at_prevalence([0.5], trained=0.5, **given)


@pytest.mark.parametrize(
    ("p", "more", "told"),
    [
        ([0.2, 1.5], {"trained": 0.5, "prevalence": 0.1}, r"probability\[1\] = .*1.5"),
        ([[0.2, np.nan]], {"trained": 0.5, "prevalence": 0.1}, r"probability\[0, 1\]"),
        ([0.2], {"trained": 1.0, "prevalence": 0.1}, "trained=1.0 must be"),
        ([0.2], {"trained": 0.5}, "neither prevalence nor"),
    ],
)
def test_what_is_no_probability_is_named(p, more, told):
    with pytest.raises(ValueError, match=told):
        at_prevalence(p, **more)


@pytest.mark.parametrize(
    ("y", "scores", "weight", "told"),
    [
        ([0, 0], [0.0, 1.0], None, "y holds no rare"),
        ([1, 1], [0.0, 1.0], None, "y holds no majority"),
        ([0, 1], [0.0, 1.0], [0.0, 0.0], "sample_weight is 0 for every row"),
        ([0, 1], [0.0, 1.0], [1.0, 0.0], "y holds no rare"),
        ([0, 1], [0.0, 1.0], [1.0, -1.0], r"sample_weight\[1\]"),
        ([0, 1], [0.0, np.nan], None, r"scores\[1\] = .*nan"),
        ([0, 1], [0.0, np.inf], None, "1 infinite"),
        ([0, 2], [0.0, 1.0], None, r"y\[1\] = "),
    ],
)
def test_what_cannot_be_learned_from_is_named(y, scores, weight, told):
    with pytest.raises(ValueError, match=told):
        Calibration.fit(y, scores, weight)
    y, scores = rows_of(0)
    with pytest.raises(ValueError, match=r"method='platt' is not one of"):
        Calibration.fit(y, scores, method="platt")
    with pytest.raises(ValueError, match=r"scores\[0\]"):
        Calibration.fit(y, scores, method="beta")([np.nan])


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        ([0.3], [0.7, 0.3]),
        ([1.0, 0.3, 0.0], [0.0, 0.7, 0.3, 0.0]),
        # Nobody is above the second cut more often than above the first: both become .4.
        ([0.2, 0.6], [0.6, 0.0, 0.4]),
    ],
)
def test_shares_of_levels_by_hand(above, expected):
    found = LevelCalibration(above)([-1.0, 2.0, 5.0])
    np.testing.assert_allclose(found, [expected] * 3, atol=1e-15)
