"""RareClassifier beside other libraries: sets and splits, preparation, peers, search, figures."""

import json
from datetime import datetime, timedelta
from time import sleep

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from benchmarks import cells, run
from benchmarks.cells import Cell, Group
from benchmarks.ledger import Ledger
from benchmarks.ordinal.figures import Against
from benchmarks.tabular import figures, measure, page, plan, preparation, processes, search, sets
from benchmarks.tabular.learners import LEARNERS, Learner
from benchmarks.tabular.sets import CHOSEN_ON, CONFIRMED_ON, SETS, Rows
from benchmarks.tabular.spaces import METHODS, SPACES, LogInteger
from draws import draws
from real_data import FOLDER

# So that a fit of 200 rows takes little: what is tried is whether it takes such a table at all.
QUICK = {
    "catboost": {"iterations": 20},
    "forest": {"n_estimators": 15},
    "balanced_forest": {"n_estimators": 15},
    "extra_trees": {"n_estimators": 15},
    "easy_ensemble": {"n_estimators": 2},
    "histogram": {"max_iter": 20},
    "rankrc": {"cv": 2, "lams": [1.0, 0.01]},
}


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


@pytest.mark.parametrize("name", [name for name, one in LEARNERS.items() if not one.has_budget])
def test_each_peer_learns_from_strings_times_and_missing_cells(name):
    rows = table()
    train, test = sets.split(rows, 0)
    held, y_held = rows.part(test)
    held = held.with_columns(
        pl.when(pl.int_range(pl.len()) % 9 == 1).then(pl.lit("new")).otherwise("many").alias("many")
    )
    fitted = measure.fit_with(QUICK.get(name, {}), LEARNERS[name], *rows.part(train), 0)
    scores = fitted.scores(held)
    assert scores.shape == y_held.shape
    assert roc_auc_score(y_held, scores) > 0.85
    if fitted.probabilities is not None:
        chances = fitted.probabilities(held)
        assert chances.min() >= 0.0
        assert chances.max() <= 1.0


@pytest.mark.thorough
@pytest.mark.parametrize("name", SPACES)
def test_each_tuned_peer(name):
    rows = table()
    train, test = sets.split(rows, 0)
    fitted = measure.fit(
        name + "_tuned", *rows.part(train), 0, budget=12.0 if name == "catboost" else 2.0
    )
    held, y_held = rows.part(test)
    assert roc_auc_score(y_held, fitted.scores(held)) > 0.8
    assert fitted.details["candidates"] >= 1


def test_native_categories_keep_the_frequent_values_and_what_is_missing():
    frame = pl.DataFrame({"s": ["a", "a", "b", "b", "c", "d", None], "x": [1, 2, None, 4, 5, 6, 7]})
    made = preparation.NativeCategories(most_values=3)
    first = made.fit_transform(frame)
    assert list(first) == ["c0", "c1"]
    rarer = preparation.RARER
    assert first["c0"].astype(object).tolist()[:6] == ["a", "a", "b", "b", rarer, rarer]
    assert first["c0"].isna().tolist() == [False] * 6 + [True]
    assert np.isnan(first["c1"][2])
    new = made.transform(pl.DataFrame({"s": ["new", "b"], "x": [1, 2]}))
    assert new["c0"].astype(object).tolist() == [rarer, "b"]
    assert len(new["c0"].cat.categories) == 3
    every = preparation.NativeCategories()
    every.fit_transform(frame)
    new = every.transform(pl.DataFrame({"s": ["new", "b"], "x": [1, 2]}))
    assert new["c0"].isna().tolist() == [True, False]


def test_matrices_are_learned_from_the_training_rows():
    frame, _ = table().part(np.arange(200))
    Z = preparation.standardised().fit_transform(frame)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-9)
    spread = Z.std(axis=0)
    assert set(np.round(spread[spread > 0], 6)) == {1.0}
    codes = preparation.codes()
    assert np.isnan(codes.fit_transform(frame)).any()
    filled = preparation.filled_codes()
    assert np.isfinite(filled.fit_transform(frame)).all()
    odd = frame[:2].with_columns(pl.lit("new").alias("many"))
    assert np.isnan(codes.transform(odd)[:, -1]).all()
    assert (filled.transform(odd)[:, -1] == -1).all()


def test_halves_are_all_sets_and_do_not_meet():
    assert set(CHOSEN_ON) | set(CONFIRMED_ON) == set(SETS)
    assert not set(CHOSEN_ON) & set(CONFIRMED_ON)
    assert {SETS[name].n_splits for name in ("kdd", "fraud_stream")} == {1}
    assert (SETS["cod_rna"].n_splits, SETS["oil"].n_splits) == (5, 10)


def test_splits_are_stratified_and_the_same_for_the_same_seed():
    rows = table()._replace(n_train=None)
    train, test = sets.split(rows, 3)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(300))
    assert (len(train), rows.y[train].sum()) == (200, 20)
    assert np.array_equal(sets.split(rows, 3)[0], train)
    assert not np.array_equal(sets.split(rows, 4)[0], train)


def test_thinning_keeps_the_majority_and_a_share_of_the_rare():
    rows = table()
    frame, y = sets.thinned(rows.frame, rows.y, 0.05)
    assert (y == 0).sum() == 270
    assert y.mean() == pytest.approx(0.05, abs=0.003)
    assert frame.height == len(y)


@pytest.mark.parametrize("name", ["abalone7", "vowel0", "euthyroid", "solarm0", "spambase"])
def test_real_sets_are_read_as_they_are(name):
    if not sets.is_there(name, FOLDER):
        pytest.skip(f"{name} is not in {FOLDER}")
    check_set(name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", SETS)
def test_every_real_set(name):
    if not sets.is_there(name, FOLDER):
        pytest.skip(f"{name} is not in {FOLDER}")
    check_set(name)


def check_set(name):
    rows = sets.load(name, FOLDER)
    assert (rows.frame.shape, rows.y.sum()) == (SETS[name].shape, SETS[name].n_rare)
    labels = {"target", "rings", "quality", "attack", "shuttle_class", "TRANSACTION_ID"}
    assert not labels & set(rows.frame.columns)
    if name == "euthyroid":
        assert rows.frame.null_count().sum_horizontal()[0] == 5329
    if name == "fraud_stream":
        when = rows.frame["datetime"]
        assert when[rows.n_train] - when[rows.n_train - 1] > timedelta(days=6)


def test_part_for_an_svm_has_all_rare_rows_up_to_half():
    rows = table()
    frame, y = measure.all_rare(rows.frame, rows.y, 100, 0)
    assert (frame.height, len(y), y.sum()) == (100, 100, 30)
    assert measure.all_rare(rows.frame, rows.y, 40, 0)[1].sum() == 20
    assert measure.all_rare(rows.frame, rows.y, None, 0)[0] is rows.frame


class Slow:
    """Every fit takes a while, and one setting is the best."""

    def __init__(self, level=0.0):
        self.level = level

    def fit(self, X, y):
        sleep(0.004)
        return self


def slow_learner():
    def scores(model, X):
        noise = np.random.default_rng(0).normal(size=len(X))
        return noise if model.level < 0.5 else X["number [EUR], of it"].fill_nan(0.0).to_numpy()

    return Learner("", lambda settings, X, y, seed: Slow(**settings), preparation.Unchanged, scores)


def test_search_takes_the_best_candidate_within_the_time(monkeypatch):
    rows, space = table(), {"level": stats.uniform()}
    drawn = [one.get("level", 0.0) for one in search.candidates(space, 0)]
    monkeypatch.setattr(search, "CANDIDATES", 6)
    found = search.search(slow_learner(), space, rows.frame, rows.y, 0, budget=30.0)
    best = next(level for level in drawn if level >= 0.5)
    assert (found.settings, found.candidates) == ({"level": best}, 6)
    monkeypatch.setattr(search, "CANDIDATES", 500)
    few = search.search(slow_learner(), space, rows.frame, rows.y, 0, budget=0.06)
    assert few.candidates < 10
    none = search.search(slow_learner(), space, rows.frame, rows.y, 0, budget=0.0)
    assert (none.settings, none.score, none.candidates) == ({}, None, 0)


def test_candidates_behind_on_two_folds_are_given_up():
    rows, learner = table(), slow_learner()
    folds = search.prepared(learner, rows.frame, rows.y, 0)
    good = list(search.judged(learner, {"level": 0.9}, folds, 0, []))
    assert len(good) == search.FOLDS
    assert len(list(search.judged(learner, {"level": 0.1}, folds, 0, good))) == 2
    assert list(search.judged(learner, {"level": 0.9}, folds, 0, good)) == good
    half = [1.0, 0.0, *good[2:]]
    assert list(search.judged(learner, {"level": 0.9}, folds, 0, half)) == good


def test_first_candidate_is_the_defaults_and_draws_follow_the_seed():
    for space in SPACES.values():
        drawn = [one for one, _ in zip(search.candidates(space, 5), range(4), strict=False)]
        assert drawn[0] == {}
        assert all(set(one) == set(space) for one in drawn[1:])
        assert str(next(iter(list(search.candidates(space, 5))[1:2]))) == str(drawn[1])


@draws(30)
@given(low=st.integers(1, 50), span=st.integers(0, 1000), seed=st.integers(0, 99))
def test_log_integers_stay_within_their_range(low, span, seed):
    value = LogInteger(low, low + span).rvs(np.random.RandomState(seed))
    assert low <= value <= low + span


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
    assert one.verdict == "above"


def test_one_split_is_tested_on_parts_and_without_them_not_at_all():
    found = figures.results(made_up_runs()).finished["kdd"]
    one = figures.against(found["rareclass, 60 s"], found["svm_tuned, 60 s"], "auc")
    assert isinstance(one, Against)
    assert one.verdict == "above"
    assert figures.against(found["rareclass, 60 s"], found["svm_tuned, 60 s"], "precision") is None
    assert figures.against(found["rareclass, 60 s"], {}, "auc") is None


def test_best_peer_is_no_method_of_this_library():
    found = figures.results(made_up_runs())
    peers = ["lightgbm", "logistic", "svm_tuned, 60 s"]
    best = figures.best_peer(found.finished["oil"], "rareclass, 60 s", peers, "auc")
    assert best.peer == "logistic"
    assert best.against.verdict == "level"
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


def test_ranks_are_over_sets_where_every_method_was_tried():
    runs = made_up_runs()
    runs.append(fake("glass", "lightgbm", 0, 0.9))
    runs.append({**fake("oil", "forest", 0, 0.9)})
    labels, complete = figures.ranked(figures.results(runs))
    assert "forest" not in labels  # on one set of five
    assert complete == ["oil", "ecoli", "scene", "kdd"]
    stopped = fake("scene", "logistic", 0, 0.9) | {"status": "stopped"}
    runs = [r for r in runs if (r["set"], r["label"]) != ("scene", "logistic")] + [stopped]
    found = figures.results(runs)
    assert figures.ranked(found)[1] == complete
    assert figures.ranks_of(found.part(["scene"]), "auc")["logistic"] == 4.0


def test_page_has_both_halves_and_says_what_was_not_finished():
    runs = made_up_runs()
    runs = [r for r in runs if (r["set"], r["label"], r["repeat"]) != ("oil", "lightgbm", 4)]
    text = page.page({"runs": runs})
    for words in (*page.TITLES.values(), "SVM, balanced, tuned, 60 s", "2 sets: oil, ecoli",
                  "oil: LightGBM (4 of 5)", "above 0, level 2, below 0"):  # fmt: skip
        assert words in text, words
    alone = page.render([r for r in runs if r["method"] != "rareclass"])
    assert "Beside the best peer" not in alone
    assert page.SECTIONS["tabular"][2] is page.page


def spoken(tmp_path, monkeypatch, name, numbers=3, limit=60.0):
    """A cell of a made-up function through `run_all`."""
    cell = Cell("a", f"tests.benchmarks.steps:{name}", {}, 1.0, limit, {"set": "s"})
    ledger = Ledger("x", tmp_path / "x.json", {})
    processes.run_all([Group("", [cell], repeats=numbers)], ledger, jobs=1)
    return cell


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("splits_that_end", ["ok", "failed", "ok"]),
        ("splits_that_stop", ["ok", "stopped"]),
        ("splits_that_die", ["ok", "killed"]),
    ],
)
def test_outcomes_are_written_as_they_come(tmp_path, monkeypatch, capsys, name, statuses):
    cell = spoken(tmp_path, monkeypatch, name, limit=0.2)
    again = Ledger("x", tmp_path / "x.json", {})
    assert [one["status"] for one in again.runs] == statuses
    assert [one["repeat"] for one in again.runs] == list(range(len(statuses)))
    assert all(one["set"] == "s" for one in again.runs)
    left = processes.missing_splits(cell, 3, again)
    assert left == {"splits_that_end": [1], "splits_that_stop": [], "splits_that_die": [1, 2]}[name]
    longer = Cell(cell.key, cell.function, {}, 1.0, limit=9.0)
    assert processes.missing_splits(longer, 3, again) == (left or [1, 2])


def test_plan_has_a_cell_for_each_method_and_a_key_with_its_seconds(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(plan, "is_there", lambda name, folder: name != "oil")
    monkeypatch.setattr(plan, "data_folder", lambda: tmp_path)
    args = run._parser().parse_args(
        [
            "tabular",
            "--sets",
            "oil",
            "kdd",
            "ecoli",
            "--splits",
            "2",
            "--budget",
            "5",
            "--methods",
            "lightgbm",
            "lightgbm_tuned",
        ]
    )
    groups = plan.groups(args)
    assert [(group.title, group.repeats) for group in groups] == [("ecoli", 2), ("kdd", 1)]
    assert [c.key for c in groups[0].cells] == ["ecoli / lightgbm", "ecoli / lightgbm_tuned, 5 s"]
    args.only_half = "confirmed"
    assert [group.title for group in plan.groups(args)] == ["kdd"]
    assert "oil" in capsys.readouterr().out
    assert {
        m.removesuffix("_tuned")
        for m in METHODS
        if not LEARNERS[m.removesuffix("_tuned")].has_budget
    } == set(plan.COST)


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
