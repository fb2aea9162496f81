"""RareClassifier beside other libraries: a tiny run, the tests, the ranks, the page."""

import json
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks import cells
from benchmarks.tabular import figures, measure, page, sets
from benchmarks.tabular.sets import Rows
from draws import draws

# Slow as a whole: `make test-rest` runs it.
pytestmark = pytest.mark.sampled(0)


def table(n_rows=300, seed=0):
    """Numbers, strings, times and missing cells; held-out rows have values of their own."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n_rows) % 10 == 0).astype(np.int64)
    number = rng.normal(size=n_rows) + 3.0 * y
    kind = np.where(y == 1, "r", rng.choice(["a", "b"], n_rows)).astype(object)
    kind[::17] = None
    frame = pl.DataFrame(
        {
            "number [EUR], of it": np.where(rng.random(n_rows) < 0.1, np.nan, number),
            "count": pl.Series(rng.integers(0, 5, n_rows)).set(
                pl.Series(np.arange(n_rows) % 13 == 0), None
            ),
            "kind": pl.Series(kind.tolist(), dtype=pl.String),
            "many": [f"v{k}" for k in rng.integers(0, 20, n_rows)],
            "when": [datetime(2026, 1, 1) + timedelta(hours=7 * k) for k in range(n_rows)],
        }
    )
    return Rows(frame, y, n_train=200)


def fake(name, label, split, value, **more):
    method = label.split(",")[0]
    return {
        "key": f"{name} / {label}", "set": name, "label": label, "method": method, "repeat": split,
        "status": "ok", "auc": value, "average_precision": value, "precision": value,
        "seconds": 1.0, "rows": 200, "test_rows": 100, **more,
    }  # fmt: skip


def made_up_runs(n_splits=5):
    rng = np.random.default_rng(0)
    level = {"rareclass, 60 s": 0.9, "lightgbm": 0.6, "logistic": 0.89, "svm_tuned, 60 s": 0.5}
    runs = [
        fake(name, label, k, value + 0.02 * rng.normal(), log_loss=0.1)
        for name in ("oil", "ecoli", "scene")
        for label, value in level.items()
        for k in range(n_splits)
    ]
    for label, value in level.items():
        sample = [value + 0.02 * rng.normal() for _ in range(10)]
        parts = dict.fromkeys(("auc", "average_precision"), sample)
        runs.append(fake("kdd", label, 0, value, parts=parts))
    return runs


def test_corrected_test_is_the_one_of_nadeau_and_bengio():
    found = figures.results(made_up_runs())
    labels = found.finished["oil"]
    one = figures.against(labels["rareclass, 60 s"], labels["lightgbm"], "auc")
    d = [
        100 * (labels["rareclass, 60 s"][k]["auc"] - labels["lightgbm"][k]["auc"]) for k in range(5)
    ]
    t = np.mean(d) / np.sqrt(np.var(d, ddof=1) * (1 / 5 + 100 / 200))
    assert one.difference == pytest.approx(np.mean(d))
    assert one.p == pytest.approx(2 * stats.t.sf(abs(t), 4))
    assert one.verdict() == "above"


def test_best_peer_is_no_method_of_this_library():
    found = figures.results(made_up_runs())
    peers = ["lightgbm", "logistic", "svm_tuned, 60 s"]
    best = figures.best_peer(found.finished["oil"], "rareclass, 60 s", peers, "auc")
    assert best.peer == "logistic"
    assert best.against.verdict() == "level"
    assert figures.best_peer({}, "rareclass, 60 s", peers, "auc") is None
    assert page._peers(found) == peers
    assert figures.counts(found, "rareclass, 60 s", "lightgbm", "auc") == (4, 0, 0)


@draws(40)
@given(
    st.lists(st.lists(st.sampled_from([None, 0.1, 0.5, 0.9]), min_size=4, max_size=4), min_size=1)
)
def test_mean_ranks_by_counting(rows):
    labels = "abcd"
    found = figures.mean_ranks(
        {str(k): dict(zip(labels, row, strict=True)) for k, row in enumerate(rows)}
    )
    for column, label in enumerate(labels):
        ranks = []
        for row in rows:
            values = [-1.0 if value is None else value for value in row]
            above = sum(value > values[column] for value in values)
            level = sum(value == values[column] for value in values)
            ranks.append(above + (level + 1) / 2)
        assert found[label] == pytest.approx(np.mean(ranks))


def test_page_has_all_parts_and_says_what_was_not_finished():
    runs = made_up_runs()
    for label in ("rareclass, 60 s", "lightgbm"):
        figures_of = {"estimate": [0.5, 0.3, 0.7], "on_test_rows": [0.55, 0.4, 0.7]}
        runs.append(fake("nass", label, 0, 0.55, **figures_of))
    runs = [r for r in runs if (r["set"], r["label"], r["repeat"]) != ("oil", "lightgbm", 4)]
    text = page.render(runs)
    for words in (*page.TITLES.values(), "SVM, balanced, tuned, 60 s", "2 sets: oil, ecoli",
                  "oil: LightGBM (4 of 5)", "above 0, level 2, below 0", page.ALL,
                  "| RareClassifier, 60 s | 1 | 1 | -5.00 | nan | 100.0 | ",
                  "| RareClassifier, 60 s | - | - | - |"):  # fmt: skip
        assert words in text, words
    alone = page.render([r for r in runs if r["method"] != "rareclass"])
    assert "Beside the best peer" not in alone


def test_measured_in_this_process_one_line_a_split(monkeypatch, capsys):
    rows = table()
    monkeypatch.setattr(measure, "data_folder", lambda: None)
    monkeypatch.setattr(sets, "load", lambda name, folder: rows)
    measure.splits("made", "logistic", [0, 1], 1.0, 1, 60.0)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["split"] for one in lines] == [0, 1]
    first = lines[0]
    assert first["status"] == "ok"
    assert (first["rows"], first["rare"], first["test_rows"], first["test_rare"]) == (
        200,
        20,
        100,
        10,
    )
    assert {"auc", "average_precision", "precision", "log_loss", "seconds", "score_seconds"} <= set(
        first
    )
    assert len(first["parts"]["auc"]) == measure.PARTS
    measure.splits("made", "no_such", [0], 1.0, 1, 60.0)
    out = capsys.readouterr()
    assert json.loads(out.out)["status"] == "failed"
    assert cells.ROOT.is_dir()
