"""The benchmark of tests on folds: it runs, and its truths are those of very many rows."""

import numpy as np
import pytest

from benchmarks.decisions import folds
from rareclass.folds.score_scale import on_scale_of_folds
from rareclass.metrics import average_precision, roc_auc


def test_a_tiny_simulation_is_measured_and_told(monkeypatch):
    monkeypatch.setattr(folds, "RARE_ROWS", {10: 5})
    monkeypatch.setattr(folds, "REPLICATES", 5)
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
