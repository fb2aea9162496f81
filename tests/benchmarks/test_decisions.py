"""The benchmark of probabilities: its densities, its shared fits, its page."""

import argparse

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from benchmarks.decisions import calibration, choice_of_map, plan


@pytest.mark.parametrize("name", choice_of_map.SHAPES)
def test_the_best_probabilities_are_the_best(name):
    """The ratio of densities has mean 1 among the others, and mean 1 inverted among the rare."""
    shape = choice_of_map.SHAPES[name]
    rng = np.random.default_rng(0)
    scores = np.concatenate([shape.rare(rng, 4000), shape.others(rng, 4000)])
    log_ratio = shape.log_ratio(scores)
    # Of rows half rare: the mean of 2 f / (f + g) over them is 1, and so is that of g.
    mean = np.exp(logsumexp(np.log(2) + log_ratio - np.logaddexp(0, log_ratio))) / 8000
    assert mean == pytest.approx(1.0, abs=0.03)


def test_a_tiny_choice_is_measured_and_told(monkeypatch):
    monkeypatch.setattr(choice_of_map, "RARE", (5,))
    monkeypatch.setattr(choice_of_map, "SHAPES", {"votes": choice_of_map.votes()})
    text = choice_of_map.render(choice_of_map.measure(1))
    assert "5 rare rows, 1 draws" in text
    assert "| venn_abers |" in text


def test_equal_fits_are_made_once_and_others_are_not():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    one = calibration.Remembered(LogisticRegression()).fit(X, y)
    assert calibration.Remembered(LogisticRegression()).fit(X, y).model_ is one.model_
    other = calibration.Remembered(LogisticRegression()).fit(X[:50], y[:50])
    assert other.model_ is not one.model_
    plain = LogisticRegression().fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(one.predict_proba(X[:5]), plain.predict_proba(X[:5]))


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


def test_only_parts_that_there_are_run():
    args = argparse.Namespace(what=["calibration", "paired"], draws=3, seed=1)
    (group,) = plan.groups(args)
    assert group.cells[0].arguments == {"part": "calibration", "draws": 3, "seed": 1}
    assert plan.render([{"key": "calibration", "status": "failed"}]) == ""
