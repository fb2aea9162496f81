"""The part of an estimator that a model file holds: the same scores, reasons and refusals."""

import numpy as np
import pytest
from scipy import sparse

from rareclass import MIBC, RankRC
from rareclass.estimators.rankings import KernelRanking, LinearRanking
from rareclass.explain import explain, nearest_cases
from rareclass.ranking import OrdinalRankRC

RNG = np.random.default_rng(0)
Y = np.arange(120) < 15
X = RNG.normal(size=(120, 4)) + 2.0 * Y[:, None]
FITTED = {
    "gaussian": lambda rows: RankRC(lam=0.1).fit(rows, Y),
    "laplace": lambda rows: RankRC("laplace", lam=0.1).fit(rows, Y),
    "polynomial": lambda rows: RankRC("polynomial", lam=0.1).fit(rows, Y),
    "ordinal": lambda rows: OrdinalRankRC(lam=0.1).fit(rows, Y.astype(int)),
    "mibc": lambda rows: MIBC(0.1, covariance="diagonal").fit(rows, Y),
}


def ranking_of(model):
    return LinearRanking(model.coef_) if isinstance(model, MIBC) else KernelRanking.of(model)


@pytest.mark.parametrize("rows", [X, X.astype(np.float32), sparse.csr_array(X)])
@pytest.mark.parametrize("name", FITTED)
def test_scores_and_reasons_are_those_of_the_estimator(name, rows):
    model = FITTED[name](rows)
    ranking = ranking_of(model)
    np.testing.assert_array_equal(ranking.score_samples(rows), model.score_samples(rows))
    found, expected = (explain(each, rows[:5]) for each in (ranking, model))
    if name != "mibc":  # which compares with the mean that it learned, where it is known
        np.testing.assert_array_equal(found.contributions, expected.contributions)
    near, same = (nearest_cases(each, rows[:5], rows[:9]) for each in (ranking, model))
    np.testing.assert_array_equal(near.distances, same.distances)
    ranking.check_parts()


def test_scales_of_features_are_part_of_a_ranking():
    model = RankRC(lam=0.1).fit(X, Y)
    model.feature_scales_ = np.array([1.0, 0.0, 2.0, 0.5])
    ranking = KernelRanking.of(model)
    np.testing.assert_array_equal(ranking.score_samples(X), model.score_samples(X))
    assert not np.array_equal(ranking.score_samples(X), FITTED["gaussian"](X).score_samples(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dual_coef_", np.ones(3)),
        ("dual_coef_", np.ones(15, int)),
        ("feature_scales_", np.ones(3)),
        ("width_", 0.0),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(name, value):
    ranking = KernelRanking.of(FITTED["gaussian"](X))
    vars(ranking)[name] = value
    with pytest.raises(ValueError, match=name):
        ranking.check_parts()


@pytest.mark.parametrize("coef", [np.ones((2, 2)), np.ones(3, int)])
def test_weights_that_are_no_list_of_numbers_are_refused(coef):
    with pytest.raises(ValueError, match="coef_"):
        LinearRanking(coef).check_parts()
