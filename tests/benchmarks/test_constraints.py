"""The benchmark of constraints on a few draws."""

import pytest

from benchmarks.decisions.constraints import (
    CASES,
    POPULATIONS,
    given_scores,
    learned_scores,
    oracle,
    render,
)


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
