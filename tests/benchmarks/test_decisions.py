"""Benchmarks of decisions on a few draws, their oracles and their pages."""

import numpy as np
import pytest

from benchmarks.decisions import calibration, folds
from benchmarks.decisions.constraints import (
    CASES,
    POPULATIONS,
    given_scores,
    learned_scores,
    oracle,
    render,
)
from rareclass.folds.score_scale import on_scale_of_folds
from rareclass.metrics import average_precision, roc_auc

# Slow as a whole: `make test-rest` runs it.
pytestmark = pytest.mark.sampled(0)


def test_the_page_counts_sets():
    names = ("rareclass", "as it comes", "scikit-learn, sigmoid", "scikit-learn, isotonic")
    losses = dict(zip(names, (0.10, 0.40, 0.11, 0.12), strict=True))
    about = {"set": "oil", "split": 0, "rare": 9, "classifier": "forest", "prevalence": 0.1}
    cells = [
        {**about, "calibrator": name, "log_loss": loss, "brier": loss / 4, "mean": 0.105}
        for name, loss in losses.items()
    ]
    cells.append({**cells[0], "calibrator": "thinned, rate stated"})
    text = calibration.render({"cells": cells})
    assert "within 10 percent of the prevalence: 1 of 1 sets" in text
    assert "better setting: 1 of 1 sets; on the mean 0.1000 against 0.1100" in text
    assert "| oil | 0.1000 |" in text


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


def test_a_tiny_simulation_is_measured_and_told(monkeypatch):
    monkeypatch.setattr(folds, "RARE_ROWS", {10: 5})
    monkeypatch.setattr(folds, "LEARNERS", [folds.LEARNERS[0], folds.LEARNERS[-1]])
    text = folds.render(folds.measure(2, seed=0))
    assert "in % of 2 samples" in text
    assert "| shared 1, own 1, 5 of noise | 10 | roc auc |" in text


def test_truths_are_those_of_very_many_rows(monkeypatch):
    monkeypatch.setattr(folds, "RARE_ROWS", {4000: 10})
    rng = np.random.default_rng(0)
    models = np.array([[1.0, 1.0], [3.0, 2.0], [0.5, 0.25]])
    y, fold = np.arange(44_000) < 4000, np.arange(44_000) % 3
    raw = rng.normal(size=44_000) * models[fold, 1] + models[fold, 0] * y
    truths = folds.truths(models, 4000)
    for name, scores in (("raw", raw), ("pooled", on_scale_of_folds(y, raw, fold))):
        assert roc_auc(y, scores) == pytest.approx(truths[name]["roc_auc"], abs=0.01)
        ap = truths[name]["average_precision"]
        assert average_precision(y, scores) == pytest.approx(ap, abs=0.02)
