"""The paired test of the benchmarks, beside SciPy's and on splits that share rows."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.paired_test import paired


def test_paired_test_without_shared_rows_is_the_t_test():
    differences = np.array([1.0, 2.0, -0.5, 1.5])
    found = paired(differences)
    assert found.p == pytest.approx(stats.ttest_1samp(differences, 0.0).pvalue)
    assert found.difference == pytest.approx(1.0)
    corrected = paired(differences, n_train=2.0, n_test=1.0)
    t = 1.0 / np.sqrt(np.var(differences, ddof=1) * (1 / 4 + 0.5))
    assert corrected.p == pytest.approx(2 * stats.t.sf(t, 3))
    assert corrected.p > found.p
    assert paired(differences, n_train=200, n_test=100) == corrected


@pytest.mark.parametrize("differences", [[0.3], [0.1, 0.1], [0.0] * 5, [0.3 - 0.2, 0.4 - 0.3]])
def test_differences_that_do_not_vary_prove_nothing(differences):
    found = paired(differences)
    assert found.p is None
    assert found.verdict() == "level"
    assert found.p_words == "p undefined"


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
