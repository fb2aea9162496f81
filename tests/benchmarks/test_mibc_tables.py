"""Tables 2 to 5 of the MIBC paper: printed figures, tiny runs, tests and speed-ups."""

import json

import numpy as np
import pytest
from scipy import sparse, stats

from benchmarks import mibc_real_speed, mibc_speed
from benchmarks.pages.registry import PAGES
from benchmarks.paper_tables import (
    mibc_figures,
    mibc_methods,
    mibc_protocol,
    mibc_roc,
    mibc_sets,
    mibc_tables,
    paper,
)
from benchmarks.paper_tables.mibc_methods import COST, SQUARED, UNDER
from benchmarks.paper_tables.mibc_sets import Parts, Rows
from draws import quick

# Slow as a whole: `make test-rest` runs it.
pytestmark = pytest.mark.sampled(0)


def test_printed_figures_by_hand():
    assert paper.moment_figures("mibc2")["PHOST"] == {
        "MIBC": [77.4, 1.7], "Cost-sensitive": [73.0, 2.0], "Undersampling": [72.0, 1.5]
    }  # fmt: skip
    assert paper.moment_figures("mibc3")["CAM"] == {"MIBC": 425, "Cost-sensitive": 605}
    assert paper.moment_figures("mibc4")["topic 84"]["Cost-sensitive"] == [96.4, 1.5]
    assert paper.moment_figures("mibc5")["topic 25"] == {"MIBC": 56, "Cost-sensitive": 1211}
    assert [len(paper.moment_figures(name)) for name in mibc_tables.NAMES] == [4, 4, 6, 6]


def overlapping(rows=300, rare=0.2, seed=0):
    rng = np.random.default_rng(seed)
    y = (np.arange(rows) % round(1 / rare) == 0).astype(int)
    return Rows(rng.normal(size=(rows, 4)) + y[:, None] * [1.5, 0.0, 0.0, 0.0], y)


def dense_parts(**named):
    return Parts(*(overlapping(seed=seed, **named) for seed in range(3)))


def as_text(parts):
    return Parts(*(Rows(mibc_sets.narrow(sparse.csr_array(p.X)), p.y) for p in parts))


@pytest.mark.parametrize(
    ("study", "method"),
    quick(4, [(study, name) for study, names in mibc_protocol.METHODS.items() for name in names]),
)
def test_every_method_ranks_and_is_timed_for_every_price(study, method):
    parts = dense_parts() if study == "dense" else as_text(dense_parts())
    found = mibc_protocol.METHODS[study][method](parts, 0)
    assert 0.75 < found["auc"] < 0.99
    assert len(found["ms"]) == len(mibc_methods.CS)
    assert min(found["ms"]) > 0.0
    assert found["fit_ms"] > 0.0
    assert -4 <= found["log10_C"] <= 5
    json.dumps(found)


def fits(aucs, log10_c=0):
    """{problem: {method: AUC of every split}} as fits; liblinear takes 10 + k ms at the k-th C."""
    ms = {"MIBC": np.full(10, 2.0), COST: 10.0 + np.arange(10), SQUARED: 30.0 - np.arange(10)}
    return [
        {"problem": problem, "method": method, "split": split, "auc": auc, "log10_C": log10_c,
         "ms": list(ms.get(method, np.ones(10))), "fit_ms": 4.0, "positives": [5, 2, 3],
         "rows": 50, "features": 7, "code": ""}
        for problem, methods in aucs.items() for method, values in methods.items()
        for split, auc in enumerate(values)
    ]  # fmt: skip


UNEVEN = np.array([0.0, 0.01, -0.01, 0.02, 0.0, -0.02])


def test_paired_test_is_scipys_and_has_a_direction():
    one, other = 0.8 + UNEVEN, 0.9 + UNEVEN[::-1]
    methods = mibc_figures.by_problem(fits({"a": {"MIBC": one, COST: other}}))["a"]
    test = mibc_figures.against(methods, "MIBC", COST, corrected=False)
    assert test.difference == pytest.approx(-10.0)
    assert test.p == pytest.approx(stats.ttest_rel(one, other).pvalue)
    assert mibc_figures.against(methods, "MIBC", COST).p > test.p
    assert test.verdict(mibc_figures.P) == "below"
    assert mibc_figures.against(methods, COST, "MIBC").verdict(mibc_figures.P) == "above"
    assert mibc_figures.against(methods, "MIBC", UNDER) is None


def test_speed_up_is_over_the_faster_peer_at_the_same_price():
    found = mibc_figures.by_problem(
        fits({"a": {"MIBC": [0.9], COST: [0.9], SQUARED: [0.9], UNDER: [0.9]}}, log10_c=4)
    )
    times = mibc_figures.times(found["a"], "MIBC")
    assert times.peers == {COST: 18.0, SQUARED: 22.0, UNDER: 4.0}
    assert times.speed_up(times.fit) == 18.0 / 4.0
    assert times.speed_up(times.solve) == 18.0 / 2.0
    assert "4.5 with moments, 9.0 with moments known" in mibc_tables.speed_line(found, "MIBC")


@pytest.mark.thorough
def test_speed_beside_liblinear_and_reading(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(mibc_speed, "data_folder", lambda: None)
    monkeypatch.setattr(mibc_speed, "DENSE_SHAPE", (6, 12))
    file = tmp_path / "mibc_speed.json"
    words = ["--repeats", "1", "--negatives", "200", "--rows", "3000", "--json", str(file)]
    for what in ("dense", "text", "parquet"):
        assert mibc_speed.main([*words, "--what", what]) == 0
    parts = json.loads(file.read_text())["parts"]
    assert list(parts) == ["dense", "text", "parquet"]
    for what in ("dense", "text"):
        assert all(min(ms) > 0.0 for ms in parts[what]["ms"].values())
        assert {len(ms) for ms in parts[what]["ms"].values()} == {10}
    assert (parts["dense"]["rows"], parts["dense"]["positives"]) == (212, 12)
    assert parts["text"]["made_of"] == "Zipf's law"
    ways = parts["parquet"]["ways"]
    assert [one["rows"] for one in ways.values()] == [3000] * 3
    assert "dense: MIBC, with moments" in capsys.readouterr().out
    text = PAGES["mibc_speed"].body(json.loads(file.read_text()))
    assert "| text: MIBC, moments known |" in text
    assert "| reading and partial_fit |" in text


def test_speed_on_real_sets_takes_the_mean_of_splits_and_the_median_of_problems():
    def cell(problem, split, ours, hinge, squared):
        times = dict.fromkeys(mibc_real_speed.WAYS, 100.0)
        times |= {"MIBC": ours, f"{COST}, at MIBC's C": hinge, f"{SQUARED}, at MIBC's C": squared}
        return {"study": "dense", "problem": problem, "split": split, "rows": 9, "features": 2,
                "ms": times}  # fmt: skip

    cells = [cell("a", 0, 1.0, 2.0, 9.0), cell("a", 1, 3.0, 6.0, 9.0), cell("b", 0, 1.0, 8.0, 4.0)]
    assert mibc_real_speed.speed_ups(cells[:2]) == [2.0, 2.0, 50.0, 50.0]
    assert mibc_real_speed.median_speed_up(cells, "dense") == 3.0
    assert [line[0] for line in mibc_real_speed.lines(cells, "dense")] == ["a", "b", "median"]
    assert mibc_real_speed.lines(cells, "text") == []


@pytest.mark.parametrize("study", ["dense", "text"])
def test_real_sets_are_timed_and_drawn_with_what_each_method_chose(study, monkeypatch):
    parts = dense_parts() if study == "dense" else as_text(dense_parts())
    monkeypatch.setattr(mibc_sets, "parts", lambda *_: parts)
    monkeypatch.setattr(mibc_real_speed, "data_folder", lambda: "here")
    monkeypatch.setattr(mibc_roc, "data_folder", lambda: "here")
    chosen = {("a", 0, name): {"log10_C": -1, "other": 2.0, "split": 0}
              for name in ("MIBC", COST, SQUARED, UNDER)}  # fmt: skip
    found = mibc_real_speed.measure(study, chosen, "a", 0, 1)
    assert min(found["ms"].values()) > 0.0
    for name in ("MIBC", COST, UNDER):
        rates = mibc_roc.curve(study, "a", name, chosen["a", 0, name])
        assert (np.diff(rates) >= 0.0).all()
        assert 0.75 < rates.mean() < 0.99


def test_rates_of_curves_are_read_where_the_table_says():
    straight = {"study": "text", "problem": "a", "splits": 1,
                "true": {"MIBC": mibc_roc.GRID.tolist()}}  # fmt: skip
    assert mibc_roc.lines([straight]) == [["a", "MIBC", "1.0", "5.0", "10.0", "100.0"]]
