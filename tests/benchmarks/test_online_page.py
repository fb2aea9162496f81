"""The sections on streams, rendered from small results."""

from benchmarks import cbr_forms, online_page


def test_forms_are_timed_and_shown(tmp_path):
    cell = cbr_forms.compare(200, 3, 0.3, 1.0, repeats=1)
    text = online_page.forms({"cells": [{"features": 3, "stream": "made up", **cell}]})
    assert "| d = 3, made up | 0." in text


def test_river_stands_beside_cbr():
    figures = {"auc": 0.8, "average_precision": 0.5, "precision_at_100_a_day": 0.4}
    result = {
        "rows": 1000,
        "tried_rows": 100,
        "chosen": {"rareclass": "CBR", "river": "River"},
        "results": {"CBR": {"rows_per_s": 5e5, **figures}},
        "against": {
            "River": {"times_the_rows_per_s": 25.0, "its_standard_error_over_days": 0.01, **figures}
        },
    }
    text = online_page.river(result)
    assert "| CBR | 500,000 | 0.8000 | 0.5000 | 0.4000 |" in text
    assert "- Against River: 25.0 times the rows a second (goal 20), AUC +0.8000" in text
