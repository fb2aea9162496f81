"""Packages that are imported on first use, and the numbers that need no import."""

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, special

from rareclass import later


def before() -> later._Special:
    """Return functions as they are before the import: no module has this name."""
    return later._Special("not imported")


def same_bits(found: object, expected: object) -> None:
    np.testing.assert_array_equal(np.asarray(found).view(np.int64), np.asarray(expected).view("i8"))


def same_logits(found: object, expected: object) -> None:
    """Compare the bits; SciPy before 1.17 rounds otherwise."""
    if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 17):
        same_bits(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@given(st.lists(st.floats(-700, 700) | st.floats(-1, 1), max_size=60))
def test_expit_of_few_numbers_has_the_bits_of_scipy(numbers: list[float]) -> None:
    x = np.array(numbers, np.float64)
    same_bits(before().expit(x), special.expit(x))


@given(st.lists(st.floats(0, 1, exclude_min=True, exclude_max=True), max_size=60))
def test_logit_of_few_numbers_has_the_bits_of_scipy(numbers: list[float]) -> None:
    p = np.array(numbers, np.float64)
    same_logits(before().logit(p), special.logit(p))


def test_many_numbers_of_each_size_have_the_bits_of_scipy() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([scale * rng.normal(size=2500) for scale in (0.01, 1.0, 10.0, 100.0)])
    same_bits(before().expit(x), special.expit(x))
    ends = 10.0 ** rng.uniform(-16, -1, 2500)
    p = np.concatenate([rng.uniform(size=2500), ends, 1 - ends, rng.normal(0.5, 1e-3, 2500)])
    same_logits(before().logit(p), special.logit(p))


@pytest.mark.parametrize("x", [np.inf, -np.inf, np.nan, -709.9, 0.0, 1.0, -2.0, 0.5])
def test_numbers_at_and_beyond_the_ends_are_as_in_scipy(x: float) -> None:
    few = later._Special("scipy.special")
    for name in ("expit", "logit"):
        with np.errstate(all="ignore"):
            found, expected = vars(later._Special)[name](few, x), vars(special)[name](x)
        np.testing.assert_array_equal(found, expected)


def test_a_scalar_a_matrix_and_other_types_keep_their_form() -> None:
    assert type(before().expit(0.5)) is np.float64
    assert before().expit(np.zeros((2, 3))).shape == (2, 3)
    with pytest.raises(ModuleNotFoundError, match="not imported"):  # SciPy is asked
        before().expit(np.zeros(3, np.float32))
    with pytest.raises(ModuleNotFoundError, match="not imported"):
        before().expit(np.zeros(10_001))


def test_nothing_is_sparse_before_the_import() -> None:
    matrix = sparse.csr_array(np.eye(2))
    assert not later._Sparse("not imported").issparse(matrix)
    assert later.sparse.issparse(matrix)
    assert not later.sparse.issparse(np.eye(2))
