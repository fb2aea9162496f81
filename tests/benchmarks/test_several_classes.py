"""Several rare classes: how tables are made, what is measured, how means and ranks are taken."""

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score

from benchmarks.paper_tables import keel
from benchmarks.several_classes import figures, methods, tables
from benchmarks.several_classes.__main__ import measure
from benchmarks.several_classes.measures import measures
from benchmarks.several_classes.methods import OURS, TWO_CLASSES, Probabilities
from rareclass.ensemble import race


def run_of(table, method, split, aps, seconds=1.0):
    return {
        "key": f"{table} / {method}", "repeat": split, "status": "ok", "table": table,
        "method": method, "average_precisions": aps, "within_budget": [0.5] * len(aps),
        "within_shared_budget": [0.6] * len(aps),
        "log_loss": 0.1, "average_precision_of_any": 0.7, "rare_called_right": 0.8,
        "seconds": seconds, "classes": ["a", "b"], "rare_rows": [9, 8],
    }  # fmt: skip


RUNS = [
    run_of("glass", OURS, 0, [0.4, 0.6], 3.0),
    run_of("glass", "LightGBM", 0, [0.2, 0.4]),
    run_of("glass", TWO_CLASSES, 0, [0.9], 2.0),
    run_of("glass", OURS, 1, [0.2, 0.4]),
    run_of("glass", "LightGBM", 1, [0.3, 0.7]),
    run_of("shuttle", OURS, 0, [0.9, 1.0]),
    run_of("shuttle", "LightGBM", 0, [0.8, 0.9]),
    run_of("wine", OURS, 0, [0.1, 0.1]),  # no other method has learned it yet
]


def test_rows_of_several_two_class_files_get_their_class(tmp_path, monkeypatch):
    rows = pl.DataFrame({"a": [1.0, 1.0, 2.0, 3.0, 3.0], "b": [0.0, 0.0, 0.0, 5.0, 5.0]})
    files = {
        "first": rows.with_columns(target=pl.Series([1, 0, 0, 0, 0])),
        "second": rows[::-1].with_columns(target=pl.Series([1, 1, 0, 0, 0])),
    }
    monkeypatch.setattr(keel, "path", lambda name: name)
    monkeypatch.setattr(keel, "read", files.get)
    X, y = tables.from_keel(("first", "second"), tmp_path)
    found = sorted(zip(X["a"], y, strict=True))
    assert found == [(1, "first"), (1, "rest"), (2, "rest"), (3, "second"), (3, "second")]


def test_made_failures_follow_their_rules(tmp_path):
    X, y = tables.machine_failures(tmp_path)
    kinds, counts = np.unique(y.astype(str), return_counts=True)
    assert set(kinds) == {"rest", "random", "wear", "overstrain", "power", "heat"}
    assert counts[kinds != "rest"].sum() < 0.05 * len(y)
    heat = X.filter(pl.Series(y == "heat"))
    assert heat["speed, rpm"].max() <= 1380
    assert X["wear, min"].max() < 250


def test_recall_counts_alerts_that_are_called_their_own_class():
    y = np.array([1, 1, 2, 2, 0, 0])
    found = np.array([
        [0.1, 0.8, 0.1],  # found
        [0.2, 0.3, 0.5],  # an alert of the wrong class
        [0.3, 0.1, 0.6],  # found
        [0.8, 0.1, 0.1],  # beyond the budget of four
        [0.4, 0.5, 0.1],  # a false alert
        [0.9, 0.0, 0.1],
    ])  # fmt: skip
    run = measures(y, Probabilities.of(found), [2, 2])
    assert run["within_budget"] == run["within_shared_budget"] == [0.5, 0.5]
    # A class of few rows is worth more: the row of 0.3 and 0.5 is called the first class.
    shared = measures(y, Probabilities.of(found), [1, 16])["within_shared_budget"]
    assert shared == [1.0, 0.0]
    assert run["rare_called_right"] == 0.5
    assert run["average_precisions"][0] == average_precision_score(y == 1, found[:, 1])
    assert run["log_loss"] == pytest.approx(-np.log([0.8, 0.3, 0.6, 0.1, 0.4, 0.9]).mean())


def test_alerts_are_rows_of_any_rare_class():
    y = np.array([1, 2, 0])
    found = np.array([[0.1, 0.5, 0.4], [0.2, 0.3, 0.5], [0.4, 0.6, 0.0]])
    run = measures(y, Probabilities.of(found), [2, 2])
    assert run["within_budget"] == [1.0, 1.0]
    assert run["average_precision_of_any"] == 1.0


def test_one_versus_rest_ranks_by_each_fit_and_sums_to_one():
    def fit(X, y, new):
        return np.column_stack([np.zeros(2), np.sqrt([y.mean(), 0.25])])

    found = methods.one_versus_rest(fit, None, np.array([0, 0, 0, 1, 2]), None)
    np.testing.assert_allclose(found.of_class.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.ranking, [[np.sqrt(0.2)] * 2, [0.5, 0.5]])


def test_a_fit_is_measured_whatever_its_method(monkeypatch):
    def perfect(problem):
        y = (problem.new["a"].to_numpy()).astype(int)
        return Probabilities.of(np.eye(3)[y])

    monkeypatch.setitem(methods.METHODS, "LightGBM", perfect)
    labels = np.array([tables.REST, "many", "few"], dtype=object)
    codes = np.repeat([0, 1, 2], [60, 9, 6])
    table = tables.Table(pl.DataFrame({"a": codes}), labels[codes])
    run = measure(table, 0, "LightGBM", 10)
    assert (run["classes"], run["rare_rows"]) == (["many", "few"], [9, 6])
    assert run["average_precisions"] == run["within_budget"] == [1.0, 1.0]


def test_the_budget_is_counted_in_seconds_of_the_process():
    clock = race.learning_clock
    with methods.budget_of_process_seconds():
        assert race.TimeBudget(5.0).left <= 5.0
        assert race.learning_clock is not clock
    assert race.learning_clock is clock


def test_ranks_are_taken_within_splits_that_every_method_has():
    ours, peer = figures.lines(RUNS)
    assert ours[:3] == [OURS, "58.3", "1.33"]
    assert peer[:3] == ["LightGBM", "55.0", "1.67"]
    (chosen, _), (others, _) = (
        figures.lines(RUNS, lambda case, kind=kind: case.is_chosen_on is kind)
        for kind in (True, False)
    )
    assert (chosen[2], others[2]) == ("1.00", "1.50")


def test_times_are_those_of_the_same_split():
    (found,) = figures.times(RUNS)
    assert (found.case.table, found.ratio) == ("glass", 1.5)


def test_the_page_has_every_class_and_both_groups():
    text = figures.page({"runs": RUNS})
    assert "| glass: a | 9 | 30.0 | 25.0 |" in text
    assert "| shuttle | **95.0** | 85.0 |" in text
    assert text.count("| mean rank |") == 12
