"""The benchmark of probabilities: a tiny run, and its page."""

from benchmarks.decisions import calibration, choice_of_map


def test_a_tiny_choice_is_measured_and_told(monkeypatch):
    monkeypatch.setattr(choice_of_map, "RARE", (5,))
    monkeypatch.setattr(choice_of_map, "SHAPES", {"votes": choice_of_map.votes()})
    text = choice_of_map.render(choice_of_map.measure(1))
    assert "5 rare rows, 1 draws" in text
    assert "| venn_abers |" in text


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
