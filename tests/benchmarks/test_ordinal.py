"""The ordinal benchmark: every method learns an order, splits do not leak, tests are as said."""

import json

import numpy as np
import pytest
from scipy import stats

from benchmarks.ordinal import __main__ as command
from benchmarks.ordinal import figures, methods, page, peers, protocol, sets
from benchmarks.ordinal.sets import Rows
from benchmarks.paper_tables.protocol import data_folder
from draws import quick


@pytest.fixture(scope="module")
def rows():
    """Four levels along a curve: level 1 is most frequent."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=400)
    return Rows(X, np.searchsorted(np.quantile(score, [0.15, 0.75, 0.9]), score))


@pytest.mark.parametrize("name", quick(4, methods.METHODS))
def test_method_ranks_levels(name, rows):
    if name not in methods.available():
        pytest.skip(f"the library of {name} is not installed")
    part = protocol.one_split(rows, 0)
    found = protocol.measure(part, name)
    assert found["mauc"] > 0.8
    assert found["fit_seconds"] > 0.0
    assert found["parameter"]
    assert (found["size"] is not None) == bool(methods.METHODS[name].carries)
    assert found["parts"] == []


def test_too_many_rows_for_a_method_are_left_out(rows, monkeypatch):
    limited = methods.Method(methods.METHODS["ridge"].choose, most_rows=100)
    monkeypatch.setitem(methods.METHODS, "ridge", limited)
    assert protocol.measure(protocol.one_split(rows, 0), "ridge") is None


def test_split_is_stratified_and_keeps_parts_apart(rows):
    part = protocol.one_split(rows, 3)
    task = part.task
    assert len(part.y_test) + len(task.y) == 400
    np.testing.assert_allclose(np.bincount(part.y_test) / len(part.y_test),
                               np.bincount(rows.y) / 400, atol=0.01)  # fmt: skip
    np.testing.assert_array_equal(np.sort([*task.fitting, *task.validation]), task.final)
    np.testing.assert_allclose(task.X.mean(axis=0), 0.0, atol=1e-12)
    seen = {tuple(row) for row in np.round(task.X, 9)}
    assert not any(tuple(row) in seen for row in np.round(part.X_test, 9))
    again = protocol.one_split(rows, 3)
    np.testing.assert_array_equal(part.X_test, again.X_test)
    assert not np.array_equal(part.X_test, protocol.one_split(rows, 4).X_test)


def test_large_sets_are_cut(rows, monkeypatch):
    monkeypatch.setattr(protocol, "TRAIN_ROWS", 120)
    monkeypatch.setattr(protocol, "TEST_ROWS", 50)
    part = protocol.one_split(rows, 0)
    assert (len(part.task.y), len(part.y_test)) == (120, 50)


def test_growing_part_has_the_paper_s_design(rows):
    part = protocol.growing(rows, 25.0, held_out=(1000, 1000))
    task = part.task
    assert (len(task.fitting), len(task.validation), len(part.y_test)) == (100, 150, 150)
    np.testing.assert_array_equal(task.final, task.fitting)
    np.testing.assert_allclose(task.X[task.fitting].std(axis=0), 1.0)
    assert task.landmarks is None
    short = protocol.growing(rows, 25.0, held_out=(40, 60))
    assert (len(short.task.validation), len(short.y_test)) == (40, 60)


def test_many_held_rows_get_fewer_landmarks(rows, monkeypatch):
    monkeypatch.setattr(protocol, "DAYS_LANDMARKS", 30)
    part = protocol.growing(rows, 50.0)
    assert part.task.landmarks == 30
    for name in (methods.OURS, methods.RANDOM):
        assert protocol.measure(part, name)["size"] <= 30


def test_one_split_is_tested_on_disjoint_parts(rows):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=900)
    scores = y + rng.normal(size=900)
    values = protocol.part_values(y, scores)
    assert len(values) == protocol.PARTS
    assert np.mean(values) == pytest.approx(0.85, abs=0.05)
    assert protocol.part_values(np.array([0] * 50 + [1] * 3), np.zeros(53)) == []


def test_knn_at_every_k_is_the_mean_of_its_neighbours():
    X = np.arange(6.0)[:, None]
    y = np.array([0, 3, 1, 2, 5, 4])
    path = peers.knn(X, y, [1, 2, 3, 9], 0)
    np.testing.assert_allclose(path.scores(np.array([[0.9], [4.1]]), [0, 2]),
                               [[3, 4 / 3], [5, 11 / 3]])  # fmt: skip
    assert list(path.params) == [1, 2, 3]


@pytest.mark.parametrize("n_rows", [5, 10_000, 10_001, 25_000])
def test_groups_of_the_ranking_objective(n_rows):
    order, sizes = peers.groups(n_rows, seed=0)
    np.testing.assert_array_equal(np.sort(order), np.arange(n_rows))
    assert sizes.sum() == n_rows
    assert sizes.max() <= peers.GROUP_ROWS
    assert sizes.max() - sizes.min() <= 1


def test_ranking_objective_learns_from_several_groups(rows, monkeypatch):
    monkeypatch.setattr(peers, "GROUP_ROWS", 90)
    found = protocol.measure(protocol.one_split(rows, 0), "LightGBM xendcg")
    assert found["mauc"] > 0.8


def test_svr_scores_are_libsvm_s_predictions(rows):
    from sklearn.svm import SVR

    X, y = rows.X[:150], rows.y[:150].astype(float)
    path = peers.svr(X, y, [0.5, 2.0], 0)
    gamma = 1.0 / (2.0 * X.var(axis=0).sum())
    direct = SVR(C=2.0, gamma=gamma, tol=1e-8).fit(X, y).predict(rows.X[150:])
    found = path.scores(rows.X[150:], [1])[:, 0]
    np.testing.assert_allclose(found - found.mean(), direct - direct.mean(), atol=2e-2)


def test_paired_test_without_shared_rows_is_the_t_test():
    differences = np.array([0.01, 0.02, -0.005, 0.015])
    found = figures.paired(differences)
    assert found.p == pytest.approx(stats.ttest_1samp(differences, 0.0).pvalue)
    assert found.difference == pytest.approx(1.0)
    corrected = figures.paired(differences, test_share=0.5)
    t = 1.0 / np.sqrt(np.var(100 * differences, ddof=1) * (1 / 4 + 0.5))
    assert corrected.p == pytest.approx(2 * stats.t.sf(t, 3))
    assert corrected.p > found.p


@pytest.mark.parametrize(("value", "p"), [(0.0, 1.0), (0.01, 0.0)])
def test_equal_differences(value, p):
    assert figures.paired([value] * 3, 0.5).p == p


def made_up(**values):
    """Fits of each method on three splits."""
    return {
        "title": "made up", "features": 3, "levels": [40, 300, 60], "date": "2026-01-01",
        "fits": [
            {"split": k, "method": name, "mauc": mauc, "parts": [], "rows": 200, "test_rows": 100,
             "fit_seconds": 0.5, "choice_seconds": 2.0, "parameter": "lam 2^-4", "size": 99,
             "stopped": 0}
            for name, own in values.items()
            for k, mauc in enumerate(own)
        ],
    }  # fmt: skip


def test_page_marks_who_is_above_and_below():
    ours = [0.800, 0.802, 0.804]
    found = made_up(**{
        methods.OURS: ours,
        "KNN": [v - 0.1 - 0.001 * k for k, v in enumerate(ours)],
        "ridge": [v + 0.1 + 0.001 * k for k, v in enumerate(ours)],
        "LightGBM xendcg": [0.81, 0.80, 0.80],
        methods.ALL: ours[:2],
    })  # fmt: skip
    text = page.page({"sets": {"wine": found}})
    assert "| ridge | **90.3** |" in text
    assert "| KNN | (70.1) |" in text
    assert "| OrdinalRankRC | 80.2 |" in text
    assert "3 comparisons" in text
    assert "above in 1, significantly below in 1, level in 1" in text
    assert "ordinal RankSVM on 2 of them" in text
    assert "99 landmarks" in text


def test_command_keeps_what_is_not_measured_again(tmp_path, capsys, monkeypatch, rows):
    monkeypatch.setattr(sets, "load", lambda name, folder: rows)
    monkeypatch.setattr(sets, "is_there", lambda name, folder: True)
    file = tmp_path / "ordinal.json"
    base = ["--json", str(file), "--splits", "2"]
    assert command.main([*base, "--sets", "wine", "--methods", methods.OURS, "ridge"]) == 0
    first = json.loads(file.read_text())["sets"]["wine"]
    words = ["--sets", "wine", "days", "--percents", "25", "--methods", "ridge"]
    assert command.main([*base, *words]) == 0
    second = json.loads(file.read_text())["sets"]
    assert list(second) == ["wine", "days"]
    assert first["levels"] == np.bincount(rows.y).tolist()

    def ours(found):
        return [fit for fit in found["fits"] if fit["method"] == methods.OURS]

    assert ours(second["wine"]) == ours(first)
    assert len(second["wine"]["fits"]) == 4
    assert [fit["percent"] for fit in second["days"]["fits"]] == [25.0]
    assert "OrdinalRankRC" in capsys.readouterr().out


def test_resumed_command_measures_only_what_is_missing(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(sets, "load", lambda name, folder: rows)
    monkeypatch.setattr(sets, "is_there", lambda name, folder: True)
    file = tmp_path / "ordinal.json"
    base = ["--json", str(file), "--sets", "wine", "--methods", "ridge"]
    assert command.main([*base, "--splits", "1"]) == 0
    (first,) = json.loads(file.read_text())["sets"]["wine"]["fits"]
    assert command.main([*base, "--splits", "2", "--resume"]) == 0
    second = json.loads(file.read_text())["sets"]["wine"]["fits"]
    assert second[0] == first
    assert [fit["split"] for fit in second] == [0, 1]


def test_sets_that_are_not_there_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RARECLASS_DATA", str(tmp_path / "none"))
    assert not sets.is_there("wine", data_folder())
    assert sets.is_there("days", data_folder())
    words = ["--sets", "wine", "--methods", "ridge", "--json", str(tmp_path / "x.json")]
    assert command.main(words) == 0
    assert "left out: wine" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "shape", "levels", "fewest"),
    [
        ("wine", (4898, 11), 7, 5),
        ("wine_distinct", (3961, 11), 7, 5),
        ("abalone", (4177, 10), 13, 74),
        ("living", (1473, 9), 4, 129),
        ("children", (1473, 9), 9, 49),
        ("credit", (149_731, 9), 5, 1328),
    ],
)
def test_real_sets(name, shape, levels, fewest):
    if not sets.is_there(name, data_folder()):
        pytest.skip(f"{name} is not in {data_folder()}; set RARECLASS_DATA to the folder with it")
    X, y = sets.load(name, data_folder())
    assert X.shape == shape
    counts = np.bincount(y)
    assert (len(counts), counts.min()) == (levels, fewest)
    assert np.isfinite(X).all() or name == "credit"
