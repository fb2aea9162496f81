"""Section VI of the RACH paper: problems, choice, methods, figures, commands."""

import json

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score

from benchmarks.pages import few_labels
from benchmarks.paper_tables import __main__ as command
from benchmarks.paper_tables import (
    rach_choice,
    rach_figures,
    rach_protocol,
    rach_sets,
    rach_tables,
)
from benchmarks.paper_tables.rach_methods import METHODS, RACH

# Slow as a whole: `make test-rest` runs it.
pytestmark = pytest.mark.sampled(0)

PEERS = [name for name in METHODS if name != RACH]


def overlapping(rows=200, rare=0.15, seed=0):
    """Two classes that overlap a little, standardised."""
    rng = np.random.default_rng(seed)
    y = (rng.permutation(rows) < rare * rows).astype(int)
    return rng.normal(size=(rows, 3)) * np.where(y, 0.4, 1.0)[:, None] + 2.0 * y[:, None], y


def test_best_threshold_beside_every_threshold():
    rng = np.random.default_rng(0)
    for _ in range(40):
        truth = rng.integers(0, 2, size=12)
        truth[0] = 1
        scores = rng.integers(0, 6, size=12).astype(float)
        value, threshold = rach_choice.best_threshold(truth, scores)
        every = [f1_score(truth, scores > t, zero_division=0.0) for t in np.arange(-0.5, 6.0)]
        assert value == pytest.approx(max(every))
        assert f1_score(truth, scores > threshold) == pytest.approx(value)


@pytest.mark.parametrize("method", PEERS)
def test_every_method_finds_the_rare_rows(method):
    X, y = overlapping()
    task = rach_protocol.labelled(X, y, 25, 0)
    guess, chosen = METHODS[method](task, 0)
    assert guess.shape == y.shape
    assert rach_choice.f1(y[task.unknown], guess[task.unknown]) > 0.6
    json.dumps(chosen)


UNEVEN = np.array([0.0, 0.02, -0.01, 0.01, -0.02])


def fits(cells):
    """{(problem, share): {method: F1 of every split}} as fits."""
    return [
        {"problem": problem, "share": share, "method": method, "splits": 5, "f1": list(values),
         "rows": 50, "rare": 5, "labels": [1, 5], "chosen": [], "seconds": 0.1, "code": ""}
        for (problem, share), methods in cells.items() for method, values in methods.items()
    ]  # fmt: skip


def test_top_of_a_cell_is_a_paired_t_test():
    """Corrected for the rows that splits share; with many labels these are fewer."""
    one, near, far = 0.8 + UNEVEN, 0.795 + UNEVEN[::-1], 0.7 + UNEVEN[::-1]
    cell = {"KNN": far, RACH: near, "One-class": one}
    assert stats.ttest_rel(one, near).pvalue > 0.05
    assert stats.ttest_rel(one, far).pvalue < 0.05
    assert rach_figures.first(cell) == "One-class"
    assert rach_figures.top(cell, 5, corrected=False) == [RACH, "One-class"]
    assert rach_figures.top(cell, 25) == [RACH, "One-class"]
    assert rach_figures.top(cell, 5) == ["KNN", RACH, "One-class"]
    for other in (0.5, 0.4):  # the same each time: there is no p
        assert rach_figures.top({"KNN": [0.5] * 5, RACH: [other] * 5}, 5) == ["KNN", RACH]


def test_over_data_sets_the_mean_of_each_is_one_pair():
    cells = {
        rach_figures.Key("glass 2:3", 5): {RACH: [0.5, 0.7], "KNN": [0.4, 0.6]},
        rach_figures.Key("glass 2:5", 5): {RACH: [0.6, 0.6], "KNN": [0.3, 0.3]},
        rach_figures.Key("ecoli rest:imU", 5): {RACH: [0.6, 0.6], "KNN": [0.5, 0.6], "TSVM": [1.0]},
    }
    found = rach_figures.over_sets(cells, "KNN")
    assert found.difference == pytest.approx((20.0 + 5.0) / 2)
    assert found.p == pytest.approx(stats.ttest_1samp([20.0, 5.0], 0.0).pvalue)
    assert rach_figures.over_sets(cells, "TSVM").p is None


def test_standings_and_verdict_by_hand():
    good, bad = 0.8 + UNEVEN, 0.3 - UNEVEN
    cells = rach_figures.by_cell(
        fits(
            {
                ("glass 2:3", 5): {RACH: good, "KNN": bad},
                ("glass 2:3", 10): {RACH: good, "KNN": bad},
                ("ecoli rest:imU", 5): {RACH: bad, "KNN": good},
            }
        )
    )
    found = rach_figures.standings(cells)
    assert found[RACH][:3] == (2, 2, 3)
    assert found["KNN"][:3] == (1, 1, 3)
    assert found[RACH].mean == pytest.approx(100 * (0.8 + 0.8 + 0.3) / 3)
    assert found[RACH].rank == pytest.approx(4 / 3)
    told = rach_figures.verdict(cells)
    assert "first in 2 of 3 cells" in told
    assert "in 2 by the corrected test, in 2 by the test without correction" in told
    assert told.endswith("(goal: more than 50%): reached")
    half = {key: cell for key, cell in cells.items() if key.share == 5}
    assert rach_figures.verdict(half).endswith("NOT reached")  # one of two is not more than half
    _, lines = rach_tables.share_table(cells)
    assert lines[0] == ["5 %", "55.0", "55.0", "1 of 2"]
    assert lines[1] == ["10 %", "80.0", "30.0", "1 of 1"]
    _, lines = rach_tables.problem_table(fits({key: cells[key] for key in cells}))
    assert lines[0] == ["glass 2:3", "5/50", "80.0", "30.0", "2 of 2"]
    _, lines = rach_tables.cell_table(cells)
    assert lines[2] == ["ecoli rest:imU, 5 %", "30.0", "80.0†"]


def test_fewer_splits_are_compared_on_those_that_all_have():
    found = fits({("glass 2:3", 5): {RACH: [0.1, 0.2, 0.9], "KNN": [0.3, 0.4, 0.5]},
                  ("glass 2:3", 10): {RACH: [0.6], "KNN": [0.7]}})  # fmt: skip
    few = {"method": "TSVM", "splits": 2, "f1": [0.5, 0.6]}
    common = rach_figures.on_common_splits([*found, found[0] | few])
    assert {(one["share"], one["splits"]) for one in common} == {(5, 2)}  # 10 has no TSVM
    cell = rach_figures.by_cell(common)["glass 2:3", 5]
    assert cell == {RACH: [0.1, 0.2], "KNN": [0.3, 0.4], "TSVM": [0.5, 0.6]}


@pytest.fixture
def quick(monkeypatch):
    """Problems and methods that take no time; RACH is right and the others are not."""
    X, y = overlapping()
    monkeypatch.setattr(rach_sets, "load", lambda problem, folder: rach_sets.Rows(X, y))
    for name in METHODS:
        value = y if name == RACH else np.zeros_like(y)
        monkeypatch.setitem(METHODS, name, lambda task, seed, v=value: (v, [seed]))


def test_command_prints_keeps_and_goes_on(quick, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(rach_tables, "data_folder", lambda: None)
    file = tmp_path / "rach.json"
    words = ["rach", "--json", str(file), "--splits", "2", "--shares", "5,25"]
    assert command.main([*words, "--methods", "KNN,one-class"]) == 0
    first = capsys.readouterr()
    assert "Skipped, not in the data folder: abalone" in first.err
    assert f"{RACH} was not run" in first.out
    done = []
    perform = rach_tables.perform
    monkeypatch.setattr(rach_tables, "perform", lambda run: done.append(run) or perform(run))
    assert command.main([*words, "--methods", f"KNN,{RACH}", "--cells"]) == 0
    assert {run.method for run in done} == {RACH}
    assert len(done) == 4 * 2
    out = capsys.readouterr().out
    assert "in 8 by the test without correction (goal: more than 50%): reached" in out
    assert "synthetic ring, 25 %" in out
    body = json.loads(file.read_text())
    assert len(body["fits"]) == 4 * 2 * 3
    page = few_labels.study(body)
    assert "| synthetic bar | 30/200 | 100.0 | 0.0 | 0.0 | 2 of 2 |" in page
    assert "means of 2 random splits" in page
