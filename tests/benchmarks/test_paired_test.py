"""The paired tests of the benchmarks against SciPy's and slow oracles, and on shared rows."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.paired_test import across_sets, holm, paired

DIFFERENCES = st.lists(st.integers(-6, 6).map(lambda n: n / 4), min_size=1, max_size=9)


def test_paired_test_without_shared_rows_is_the_t_test():
    differences = np.array([1.0, 2.0, -0.5, 1.5])
    found = paired(differences)
    plain = stats.ttest_1samp(differences, 0.0).pvalue
    assert (found.difference, found.p) == pytest.approx((1.0, plain))
    corrected = paired(differences, n_train=2.0, n_test=1.0)
    t = 1.0 / np.sqrt(np.var(differences, ddof=1) * (1 / 4 + 0.5))
    assert corrected.p == pytest.approx(2 * stats.t.sf(t, 3))
    assert corrected.p > found.p
    assert paired(differences, n_train=200, n_test=100) == corrected


@pytest.mark.parametrize("differences", [[0.3], [0.1, 0.1], [0.0] * 5, [0.3 - 0.2, 0.4 - 0.3]])
def test_differences_that_do_not_vary_prove_nothing(differences):
    found = paired(differences)
    assert (found.p, found.verdict(), found.p_words) == (None, "level", "p undefined")


def test_on_splits_that_share_rows_no_more_is_found_than_is_said():
    """Losses of two equal methods on ten random splits of a table, a quarter of it for testing."""
    rng, n_tables = np.random.default_rng(0), 1000
    corrected = plain = 0
    for _ in range(n_tables):
        rows = np.tile(rng.normal(size=80), (10, 1))
        differences = rng.permuted(rows, axis=1)[:, :20].mean(axis=1)
        corrected += paired(differences, n_train=60, n_test=20).p < 0.05
        plain += paired(differences).p < 0.05
    assert abs(corrected / n_tables - 0.05) < 3 * np.sqrt(0.05 * 0.95 / n_tables)
    assert plain / n_tables > 0.2


@given(differences=DIFFERENCES)
def test_across_sets_counts_choices_of_signs(differences):
    kept = np.array([value for value in differences if value])
    if not len(kept):
        assert across_sets(differences) is None
        return
    ranks = np.array([np.sum(abs(kept) < v) + (np.sum(abs(kept) == v) + 1) / 2 for v in abs(kept)])
    sums = [abs(np.dot(signs, ranks)) for signs in product((-1, 1), repeat=len(kept))]
    expected = np.mean(np.array(sums) >= abs(np.dot(np.sign(kept), ranks)) - 1e-9)
    assert across_sets(differences) == pytest.approx(expected)
    assert across_sets([-value for value in differences]) == across_sets(differences)


@pytest.mark.parametrize("n", [1, 2, 5, 16, 31, 60])
def test_across_sets_is_scipys_exact_test_without_ties(n):
    differences = np.random.default_rng(n).normal(0.3, 1.0, n)
    expected = stats.wilcoxon(differences, method="exact").pvalue
    assert across_sets(differences) == pytest.approx(expected)


@given(p_values=st.lists(st.one_of(st.none(), st.floats(0.0, 1.0)), max_size=8))
def test_holm_is_the_closed_test_of_bonferroni(p_values):
    """The adjusted p is the largest size times least p of the sets of tests that hold this one."""
    ps, found = [1.0 if p is None else p for p in p_values], holm(p_values)
    for which, p in enumerate(p_values):
        sets = product((False, True), repeat=len(ps))
        tests = [[q for q, kept in zip(ps, own, strict=True) if kept] for own in sets if own[which]]
        closed = max(min(1.0, len(own) * min(own)) for own in tests)
        assert found[which] == (None if p is None else pytest.approx(closed))
