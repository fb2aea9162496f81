"""The compiled bootstrap: what it draws, what it measures, and slow draws beside it."""

from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from draws import draws
from oracles.paired_metrics import pairs
from rareclass import metrics
from rareclass.metrics import _bootstrap_jit as jit
from rareclass.metrics.bootstrap import PairTable, all_items, bootstrap
from rareclass.metrics.rare_cells import collapse
from rareclass.metrics.scored_classes import split_pair, split_scores

P = 0.3
MEASURES = {
    jit.AVERAGE_PRECISION: metrics.average_precision,
    jit.ROC_AUC: metrics.roc_auc,
    jit.PRECISION_AT_K: lambda y, s, w: metrics.precision_at_k(y, s, P * w.sum(), w),
    jit.RECALL_AT_K: lambda y, s, w: metrics.recall_at_k(y, s, P * w.sum(), w),
    jit.LIFT_AT_K: lambda y, s, w: metrics.lift_at_k(y, s, None, w, share=P),
    jit.PARTIAL_AUC: lambda y, s, w: (
        metrics.partial_auc(y, s, w, max_fpr=P, standardized=False) / P
    ),
}


@draws(60)
@given(pairs())
def test_what_is_measured_is_what_the_measures_say(sample):
    y, s, _, w, _ = sample
    cells = collapse(split_scores(y, s, w))
    majority = np.empty(2 * cells.scores.size + 1)
    majority[0::2], majority[1::2] = cells.gaps, cells.tied
    total = np.concatenate([cells.rare, majority])
    for measure, slow in MEASURES.items():
        found = jit.measured(total, cells.scores.size, measure, P)
        assert found == pytest.approx(slow(y, s, w), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "p"), [(5, 0.3), (100, 0.09), (100, 0.2), (50, 0.97), (10**6, 4e-5), (10**6, 0.3)]
)
def test_binomial_numbers_are_binomial(n, p):
    state = np.array([7], np.uint64)
    drawn = np.array([jit._binomial(state, n, p) for _ in range(4000)])
    law = stats.binom(n, p)
    inner = np.unique(law.ppf(np.linspace(0.1, 0.9, 9)))
    seen = np.histogram(drawn, np.concatenate([[-1], inner, [n]]) + 0.5)[0]
    expected = np.diff(law.cdf(np.concatenate([[-1], inner, [n]]))) * drawn.size
    kept = expected > 1e-9
    assert stats.chisquare(seen[kept], expected[kept]).pvalue > 1e-3
    assert [jit._binomial(state, 9, each) for each in (0.0, 1.0)] == [0, 9]


def test_alias_tables_give_each_item_its_mass():
    rng = np.random.default_rng(0)
    mass = rng.gamma(0.2, size=300)
    block = np.array([0, 1, 40, 300])
    keep, other = np.empty(300), np.empty(300, np.int64)
    jit.alias_tables(mass, block, keep, other)
    for start, end in pairwise(block):
        chance = np.zeros(300)
        np.add.at(chance, np.arange(start, end), keep[start:end])
        np.add.at(chance, other[start:end], 1.0 - keep[start:end])
        own = mass[start:end] / mass[start:end].sum()
        assert chance[start:end] / (end - start) == pytest.approx(own, abs=1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("ties", [False, True])
def test_draws_vary_as_slow_draws_do(weighted, grouped, ties):
    """Items large and small, alone and in blocks, against rows drawn with numpy."""
    rng = np.random.default_rng(1)
    n, n_slow, n_fast = 900, 250, 3000
    y = np.arange(n) < 30
    common = rng.normal(size=n)
    a, b = (common + rng.normal(size=n) + 2 * y for _ in range(2))
    if ties:
        a, b = np.round(a), np.round(b)
    w = rng.integers(1, 4, n) if weighted else None
    groups = rng.integers(0, 80, n) if grouped else None
    pair = split_pair(y, a, b, w, groups)
    strata = all_items(pair)
    seeds = np.random.SeedSequence(0).generate_state(n_fast, np.uint64)
    table = PairTable.of(pair)
    slow_rows = [table.weights_again(rng) for _ in range(n_slow)]
    for measure in (jit.AVERAGE_PRECISION, jit.RECALL_AT_K):
        of = MEASURES[measure]
        fast = bootstrap(strata, measure, P if measure == jit.RECALL_AT_K else 0.0, seeds)
        slow = np.array(
            [[of(table.y[k], s[k], v[k]) for s in (table.a, table.b)]
             for v in slow_rows for k in [v > 0]]
        )  # fmt: skip
        error = slow.std(axis=0) / np.sqrt(n_slow)
        assert (np.abs(fast.mean(axis=0) - slow.mean(axis=0)) < 4 * error + 1e-12).all()
        np.testing.assert_allclose(fast.std(axis=0), slow.std(axis=0), rtol=0.2)
        difference = [(each[:, 0] - each[:, 1]).std() for each in (fast, slow)]
        assert difference[0] == pytest.approx(difference[1], rel=0.2)


def test_classes_keep_their_weight_and_small_items_share_blocks():
    rng = np.random.default_rng(2)
    y = np.arange(2000) < 400
    pair = split_pair(y, rng.normal(size=2000), rng.normal(size=2000))
    strata = all_items(pair)
    assert [items.n_draws for items in strata.items] == [400, 1600]
    assert strata.n_distinct == (400, 400)
    whole = bootstrap(strata, jit.RECALL_AT_K, 1.0, np.arange(20, dtype=np.uint64))
    np.testing.assert_allclose(whole, 1.0)


def test_weights_that_are_no_frequencies_keep_their_sum():
    y, w = np.arange(60) < 3, np.where(np.arange(60) < 3, 0.03, 0.7)
    strata = all_items(split_pair(y, np.zeros(60), np.zeros(60), w))
    seeds = np.arange(5, dtype=np.uint64)
    drawn = bootstrap(strata, jit.AVERAGE_PRECISION, 0.0, seeds)
    np.testing.assert_allclose(drawn, 0.09 / w.sum(), rtol=1e-12)


def test_ctrl_c_ends_a_bootstrap():
    y = np.arange(50) < 5
    pair = split_pair(y, np.arange(50.0), np.arange(50.0))
    seeds = np.arange(2000, dtype=np.uint64)

    class Interrupting:
        def __enter__(self):
            def advance(step=1, note=""):
                raise KeyboardInterrupt

            return advance

        def __exit__(self, *_):
            return None

    for n_jobs in (1, 2):
        with (
            patch("rareclass.metrics.bootstrap.track", return_value=Interrupting()),
            patch("rareclass.metrics.bootstrap._ENTRIES_A_TASK", 1000),
            pytest.raises(KeyboardInterrupt),
        ):
            bootstrap(all_items(pair), jit.AVERAGE_PRECISION, 0.0, seeds, n_jobs)
