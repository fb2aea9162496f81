"""The benchmark of paired tests runs, and its truths are those of very many rows."""

from unittest.mock import patch

import numpy as np
import pytest

from benchmarks.decisions import paired
from rareclass import metrics


@pytest.mark.sampled(1)
def test_it_measures_and_renders():
    with (
        patch.object(paired, "RARE_ROWS", {5: 10, 6: 10}),
        patch.object(paired, "POPULATIONS", [paired.POPULATIONS[i] for i in (0, 9, 10)]),
    ):
        result = paired.measure(draws=2)
        text = paired.render(result)
    assert len(result["rows"]) == 2 * 3 * len(paired.MEASURES)
    assert text.count("| roc_auc |") == 2 + 2 + 1


@pytest.mark.parametrize("rounded", [False, True])
def test_truths_are_those_of_very_many_rows(rounded):
    population = paired.Population((2.5, 1.5), 0.5, rounded)
    # The truth is for 20 rare rows to 2,000 others: 250 such samples in one.
    with patch.dict(paired.RARE_ROWS, {5_000: 100}):
        truths = population.truths(20)
        y = np.arange(5_000 * 101) < 5_000
        a, b = population.draw(5_000, np.random.default_rng(0))
    at = {"k": 5_000}
    cost = {"threshold": paired.CUT, "cost_fn": paired.COST_MISSED}
    for name, options in (
        ("roc_auc", {}),
        ("average_precision", {}),
        ("precision_at_k", at),
        ("expected_cost", cost),
    ):
        of = getattr(metrics, name)
        assert of(y, a, **options) - of(y, b, **options) == pytest.approx(truths[name], abs=0.02)
