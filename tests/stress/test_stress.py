"""Every estimator on tables at the limits of numbers and of sense: finite, or refused by name."""

import numpy as np
import pytest

from rareclass import RACH, RankRC
from rareclass.online import UniExp
from rareclass.rows.source import as_source, with_safe_squares
from registered import ESTIMATORS, MORE_ESTIMATORS
from stress.hard_tables import hard_tables
from stress.tried import tried

TABLES = hard_tables()
# Each of these ended in NaN, or in an error that names nothing.
KNOWN = [
    "scaled 1e-160 float64", "scaled 1e-155 float64", "one_column 1e160 float64",
    "scaled 1e-40 float32", "scaled 1e-20 float32", "scaled 1e19 float32", "scaled 1e25 float32",
    "one_column 1e20 float32", "csr 1e25 float32", "csr 1e160", "big endian",
]  # fmt: skip


def _name(estimator):
    return " ".join(str(estimator).split())[:60]


@pytest.mark.parametrize("table", KNOWN)
def test_what_failed_once(table):
    X, y = TABLES[table]()
    tried(RankRC(), X, y)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("number", range(len(ESTIMATORS)))
def test_each_estimator_on_one_table(number):
    if "RareClassifier" in _name(ESTIMATORS[number]):
        pytest.skip("takes seconds a table: in the thorough run")
    names = sorted(TABLES)
    X, y = TABLES[names[(37 * number) % len(names)]]()
    tried(ESTIMATORS[number], X, y)


@pytest.mark.thorough
@pytest.mark.parametrize("estimator", [*ESTIMATORS, *MORE_ESTIMATORS], ids=_name)
@pytest.mark.parametrize("table", list(TABLES))
def test_every_estimator_on_every_table(estimator, table):
    X, y = TABLES[table]()
    if "RareClassifier" in _name(estimator) and table not in KNOWN:
        pytest.skip("takes seconds a table")
    tried(estimator, X, y)


@pytest.mark.parametrize("exponent", [-30, -20, 19, 25])
def test_a_model_does_not_depend_on_the_unit(exponent):
    """Squares that float32 does not hold are worked out in float64: scores are those of X."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 6 == 0
    X = (rng.normal(size=(60, 3)) + y[:, None]).astype(np.float32)
    scaled = np.ldexp(X, round(exponent * np.log2(10)))
    expected = RankRC(lam=0.1).fit(X.astype(np.float64), y).score_samples(X.astype(np.float64))
    found = RankRC(lam=0.1).fit(scaled, y).score_samples(scaled)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("model", [RankRC(), RACH()], ids=_name)
def test_a_value_whose_square_overflows_is_named(model):
    X, y = np.ones((20, 2)), (np.arange(20) < 4).astype(int)
    X[:, 0] = np.arange(20)
    X[7, 1] = -1e200
    with pytest.raises(ValueError, match=r"column 1 holds 1e\+200 at row 7"):
        model.fit(X, y)
    X[7, 1] = 1.0
    fitted = model.fit(X, y)
    with pytest.raises(ValueError, match=r"column 0 holds 1e\+300 at row 1"):
        fitted.score_samples(np.array([[0.0, 0.0], [1e300, 0.0]]))


def test_rows_all_nearly_zero_are_refused_where_a_scale_is_learned():
    source = as_source(np.full((3, 2), 1e-200))
    with pytest.raises(ValueError, match="nearer to 0"):
        with_safe_squares(source, learns=True)
    assert with_safe_squares(source) is source


def test_a_score_that_overflows_names_its_row():
    X = np.ones((20, 2))
    X[::2] = -1.0
    model = UniExp(random_state=0).fit(1e5 * X, np.arange(20) % 2)
    with pytest.raises(ValueError, match=r"row 1: its score is -?inf"):
        model.score_samples(np.array([[0.0, 0.0], [1.7e308, 1.7e308]]))
