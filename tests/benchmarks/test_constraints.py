"""The benchmark of constraints on a few draws."""

import numpy as np
import pytest

from benchmarks.decisions.constraints import (
    CASES,
    MAJORITY_PER_RARE,
    POPULATIONS,
    given_scores,
    learned_scores,
    oracle,
    render,
)


@pytest.mark.parametrize("population", POPULATIONS, ids=lambda one: one.name)
def test_what_lies_above_a_threshold_is_known(population):
    random = np.random.default_rng(0)
    y = np.arange(200_000) < 100_000
    scores = population.draw(y, random)
    for threshold in (0.2, 1.75, 2.5):
        rare, majority = population.above(threshold)
        assert (scores[y] > threshold).mean() == pytest.approx(rare, abs=0.006)
        assert (scores[~y] > threshold).mean() == pytest.approx(majority, abs=0.006)
    near = np.abs(scores - 1.5) < 0.05
    share = np.average(y[near], weights=np.where(y[near], 1.0, MAJORITY_PER_RARE))
    if not population.step:
        assert population.probability(np.array([1.5])) == pytest.approx(share, rel=0.2)


def test_the_oracle_keeps_the_constraint():
    case = CASES[2]  # false-positive rate <= .01, at 2.326
    assert oracle(case, POPULATIONS[0].above) == pytest.approx(0.569, abs=0.002)


def test_cells_and_their_table():
    cells = [*given_scores(POPULATIONS[0], 20, 2, 0), *learned_scores(20, 1, 0)]
    assert len(cells) == 8
    for cell in cells:
        assert 0.0 <= cell["rareclass"]["broken"] <= cell["rareclass"]["promised"] <= 1.0
        assert cell["scikit-learn"]["draws"] == 1
    assert "| recall >= 0.7 | 20 |" in render({"cells": cells})
