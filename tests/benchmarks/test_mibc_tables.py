"""Tables 2 to 5 of the MIBC paper and MIBC's speed: figures, problems, methods, tests, commands."""

import json

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.svm import LinearSVC

from benchmarks import mibc_page, mibc_rows, mibc_speed, performance_page
from benchmarks.paper_tables import __main__ as command
from benchmarks.paper_tables import (
    mibc_figures,
    mibc_methods,
    mibc_protocol,
    mibc_sets,
    mibc_tables,
    paper,
)
from benchmarks.paper_tables.mibc_methods import COST, SQUARED, UNDER
from benchmarks.paper_tables.mibc_sets import Documents, Parts, Rows
from draws import quick
from rareclass.metrics import roc_auc
from rareclass.moments import MIBC
from real_data import FOLDER, real_file


def test_printed_figures_by_hand():
    assert paper.moment_figures("mibc2")["PHOST"] == {
        "MIBC": [77.4, 1.7], "Cost-sensitive": [73.0, 2.0], "Undersampling": [72.0, 1.5]
    }  # fmt: skip
    assert paper.moment_figures("mibc3")["CAM"] == {"MIBC": 425, "Cost-sensitive": 605}
    assert paper.moment_figures("mibc4")["topic 84"]["Cost-sensitive"] == [96.4, 1.5]
    assert paper.moment_figures("mibc5")["topic 25"] == {"MIBC": 56, "Cost-sensitive": 1211}
    assert [len(paper.moment_figures(name)) for name in mibc_tables.NAMES] == [4, 4, 6, 6]


# -- problems ----------------------------------------------------------------------------


def test_split_is_50_20_30_of_either_class():
    y = (np.arange(1000) % 10 == 0).astype(int)
    found = mibc_sets.split(y, 3)
    assert [len(part) for part in found] == [500, 200, 300]
    assert [y[part].sum() for part in found] == [50, 20, 30]
    assert sorted(np.concatenate(found)) == list(range(1000))
    assert (mibc_sets.split(y, 4)[0] != found[0]).any()


@pytest.mark.parametrize(("negatives", "least", "left"), [(4000, 2, 4), (900, 2, 2), (900, 1, 1)])
def test_positives_are_thinned_to_one_in_a_thousand(negatives, least, left):
    y = np.repeat([1, 0], [50, negatives])
    rows = mibc_sets.thinned(np.arange(len(y)), y, least, np.random.default_rng(0))
    assert y[rows].sum() == left
    assert (y[rows] == 0).sum() == negatives


def test_largest_groups_are_taken_and_equal_ones_by_name():
    group = np.repeat(["c", "a", "b", "d"], [3, 3, 5, 1])
    assert mibc_sets.largest_groups(group, 3) == ["b", "a", "c"]


def documents(rows=400, words=60, seed=0):
    """Counts of words; each of four groups has words of its own."""
    rng = np.random.default_rng(seed)
    group = np.arange(rows) % 4
    mean = np.full((rows, words), 0.3)
    for k in range(4):
        mean[group == k, 5 * k : 5 * k + 5] = 2.0
    X = sparse.csr_array(rng.poisson(mean).astype(float))
    return Documents(mibc_sets.narrow(X), group.astype(str))


@pytest.fixture
def texts(monkeypatch):
    monkeypatch.setattr(mibc_sets, "documents", lambda name, folder: documents())
    monkeypatch.setattr(mibc_sets, "is_there", lambda name, folder: True)
    mibc_sets.parts.cache_clear()
    yield
    mibc_sets.parts.cache_clear()


def test_texts_are_thinned_weighed_and_tested_on_all_positives(texts, tmp_path):
    assert mibc_sets.problems("tdt2", tmp_path, 2) == ["tdt2 0", "tdt2 1"]
    train, validation, test = mibc_sets.parts("tdt2 1", tmp_path, 0)
    assert [part.y.sum() for part in (train, validation, test)] == [2, 1, 30]
    assert len(train.y) == 150 + 2
    assert sparse.linalg.norm(train.X, axis=1) == pytest.approx(1.0)
    assert train.X.indices.dtype == np.int32
    raw = mibc_sets.parts("sector 1", tmp_path, 0).train.X
    assert (raw.data == raw.data.round()).all()  # comes as TF-IDF: left as it is


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["sector", "tdt2"])
def test_real_texts_are_read(name):
    real_file(mibc_sets.TEXTS[name])
    (first, *_) = mibc_sets.problems(name, FOLDER)
    train, validation, test = mibc_sets.parts(first, FOLDER, 0)
    assert 2 <= train.y.sum() <= 9
    assert 1 <= validation.y.sum() <= 4
    assert test.y.sum() > 30
    assert np.median(sparse.linalg.norm(train.X, axis=1)) == pytest.approx(1.0, abs=1e-4)


# -- methods -----------------------------------------------------------------------------


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


def test_cost_ratios_and_balance_by_hand():
    y = np.repeat([1, 0], [10, 80])
    assert mibc_methods.cost_ratios(y) == (1.0, 2.0, 4.0, 8.0, 16.0)
    rows = mibc_methods.balanced(Rows(np.arange(90.0)[:, None], y), 1)
    assert rows.y.sum() == 10
    assert len(rows.y) == 20
    assert (rows.X[rows.y == 1].ravel() == np.arange(10)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_cost_sensitive_is_best_on_validation_rows_and_measured_on_test_rows():
    train, validation, test = parts = dense_parts(rows=120)
    found = mibc_methods.DENSE[COST](parts, 0)
    best = (-1.0,)
    for C in mibc_methods.CS:
        for ratio in mibc_methods.cost_ratios(train.y):
            model = LinearSVC(C=C, loss="hinge", class_weight={1: ratio}, random_state=0)
            score = model.fit(*train).decision_function
            auc = roc_auc(validation.y, score(validation.X))
            if auc > best[0]:
                best = (auc, C, ratio, roc_auc(test.y, score(test.X)))
    assert found["validation"] == pytest.approx(best[0], abs=1e-6)
    assert (10.0 ** found["log10_C"], found["other"]) == (pytest.approx(best[1]), best[2])
    assert found["auc"] == pytest.approx(best[3], abs=1e-6)


def test_mibc_that_is_measured_is_the_estimator():
    parts = dense_parts(rows=120)
    found = mibc_methods.DENSE["MIBC ridge"](parts, 0)
    assert found["other"] in mibc_methods.RIDGES
    model = MIBC(10.0 ** found["log10_C"], ridge=found["other"]).fit(*parts.train)
    assert found["auc"] == pytest.approx(roc_auc(parts.test.y, model.score_samples(parts.test.X)))
    # The path, too, ranks as the estimator does.
    own = roc_auc(parts.validation.y, model.score_samples(parts.validation.X))
    assert found["validation"] == pytest.approx(own, abs=1e-6)


def test_a_singular_covariance_leaves_the_ridges():
    parts = Parts(*(Rows(np.hstack([p.X, p.X[:, :1]]), p.y) for p in dense_parts()))
    assert mibc_methods.DENSE["MIBC ridge"](parts, 0)["other"] in mibc_methods.RIDGES[:-1]
    assert mibc_methods.DENSE["MIBC"](parts, 0)["other"] == "auto"


# -- figures -----------------------------------------------------------------------------


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
    test = mibc_figures.against(methods, "MIBC", COST)
    assert test.difference == pytest.approx(-10.0)
    assert test.p == pytest.approx(stats.ttest_rel(one, other).pvalue)
    assert test.is_below
    assert not test.is_above
    assert mibc_figures.against(methods, COST, "MIBC").is_above
    assert mibc_figures.against(methods, "MIBC", UNDER) is None


def test_equal_differences_have_no_t():
    assert mibc_figures.paired([0.0, 0.0, 0.0]) == (0.0, 1.0, 3)
    assert mibc_figures.paired([2.0]) == (2.0, None, 1)
    assert mibc_figures.paired([]) is None


def test_verdicts_name_what_is_below():
    found = mibc_figures.by_problem(
        fits({
            "low": {"MIBC": 0.6 + UNEVEN, COST: 0.7 - UNEVEN, UNDER: 0.5 - UNEVEN},
            "high": {"MIBC": 0.9 + UNEVEN, COST: 0.8 - UNEVEN, UNDER: 0.8 - UNEVEN},
        })
    )  # fmt: skip
    words = "\n".join(mibc_figures.verdicts(found))
    assert "MIBC significantly below Cost-sensitive: low (p = " in words
    assert "of 2; significantly above on 1" in words
    assert "MIBC minus Undersampling, 12 pairs over all problems: +10.00" in words
    assert not mibc_figures.is_best(found["low"], "MIBC")
    header, lines = mibc_tables.auc_table(found)
    assert lines[1][header.index("MIBC")].endswith("†")
    assert lines[0][header.index("p, MIBC : cost")].startswith("- ")


def test_speed_up_is_over_the_faster_peer_at_the_same_price():
    found = mibc_figures.by_problem(
        fits({"a": {"MIBC": [0.9], COST: [0.9], SQUARED: [0.9], UNDER: [0.9]}}, log10_c=4)
    )
    times = mibc_figures.times(found["a"], "MIBC")
    assert times.peers == {COST: 18.0, SQUARED: 22.0, UNDER: 4.0}
    assert times.speed_up(times.fit) == 18.0 / 4.0
    assert times.speed_up(times.solve) == 18.0 / 2.0
    assert "4.5 with moments, 9.0 with moments known" in mibc_tables.speed_line(found, "MIBC")


# -- commands ----------------------------------------------------------------------------


@pytest.mark.thorough
def test_both_tables_of_a_study_come_from_the_same_fits(texts, tmp_path, capsys, monkeypatch):
    done = []
    perform = mibc_tables.perform
    monkeypatch.setattr(mibc_tables, "perform", lambda run: done.append(run) or perform(run))
    monkeypatch.setattr(mibc_tables, "data_folder", lambda: tmp_path)
    file = tmp_path / "x.json"
    words = ["--json", str(file), "--sets", "tdt2", "--groups", "2", "--splits", "2"]
    assert command.main(["mibc4", *words]) == 0
    assert len(done) == 2 * 2 * len(mibc_methods.TEXT)
    out = capsys.readouterr().out
    assert "significantly below Cost-sensitive: " in out
    assert "89.9 ± 1.4" in out
    assert command.main(["mibc5", *words]) == 0
    assert len(done) == 2 * 2 * len(mibc_methods.TEXT)
    assert "median speed-up" in capsys.readouterr().out
    page = mibc_page.study(json.loads(file.read_text()))
    assert "| tdt2 1 | 2/152 |" in page
    assert "2 random splits" in page


@pytest.mark.thorough
def test_dense_command_on_a_real_set(tmp_path, capsys):
    real_file("ecoli.parquet")
    words = ["--json", str(tmp_path / "x.json"), "--sets", "ecoli", "--splits", "2"]
    assert command.main(["mibc2", *words]) == 0
    assert "77.2 ± 0.7" in capsys.readouterr().out
    assert command.main(["mibc3", *words, "--methods", "mibc"]) == 0
    assert "No cost-sensitive fits beside it" in capsys.readouterr().out
    (fit, *_) = json.loads((tmp_path / "x.json").read_text())["fits"]
    assert (fit["rows"], fit["positives"]) == (168, [18, 7, 10])


@pytest.mark.thorough
def test_a_stopped_study_goes_on(tmp_path, capsys, monkeypatch, texts):
    monkeypatch.setattr(mibc_tables, "data_folder", lambda: tmp_path)
    perform, calls = mibc_tables.perform, []

    def stopping(run):
        calls.append(run)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return perform(run)

    monkeypatch.setattr(mibc_tables, "perform", stopping)
    words = ["mibc4", "--json", str(tmp_path / "x.json"), "--sets", "sector", "--groups", "1",
             "--splits", "1"]  # fmt: skip
    assert command.main(words) == 130
    assert "goes on from there" in capsys.readouterr().out
    assert command.main(words) == 0
    assert len(calls) == 3 + len(mibc_methods.TEXT) - 2
    body = json.loads((tmp_path / "x.json").read_text())
    for ours in (False, True):  # other people's code does not age with this one
        next(f for f in body["fits"] if f["method"].startswith("MIBC") == ours)["code"] = "older"
        (tmp_path / "x.json").write_text(json.dumps(body))
        command.main(words)
        assert ("--again" in capsys.readouterr().out) == ours


def test_without_data_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(mibc_tables, "data_folder", lambda: None)
    assert command.main(["mibc3"]) == 0
    assert "RARECLASS_DATA" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no set adult"):
        command.main(["mibc2", "--sets", "adult"])


# -- speed -------------------------------------------------------------------------------


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
    page = tmp_path / "page.md"
    assert performance_page.main(["--results", str(tmp_path), "--out", str(page)]) == 0
    text = page.read_text()
    assert "| text: MIBC, moments known |" in text
    assert "| reading and partial_fit |" in text


def test_speed_up_by_hand():
    ms = {mibc_speed.FIT: [1.0] * 10, mibc_speed.HINGE: [float(k) for k in range(10)]}
    found = {"ms": ms}
    assert mibc_speed.speed_up(found, mibc_speed.FIT, mibc_speed.HINGE) == 4.0  # C = 1 is the fifth
    assert mibc_speed.speed_up(found, mibc_speed.FIT, mibc_speed.HINGE, None) == 4.5


def test_dense_rows_overlap():
    rows = mibc_rows.dense(150, 300, 3000)
    assert rows.X.shape == (3300, 150)
    assert rows.y.sum() == 300
    spread = [np.linalg.eigvalsh(np.cov(rows.X[rows.y == k].T))[-10:] for k in (0, 1)]
    assert not np.allclose(*spread, rtol=0.01)
    half = np.arange(3300) % 2 == 0
    model = MIBC(0.1).fit(rows.X[half], rows.y[half])
    assert 0.6 < roc_auc(rows.y[~half], model.score_samples(rows.X[~half])) < 0.95


def test_mixed_documents_have_words_and_lengths_of_one_group():
    counts = documents(rows=40).X
    words = mibc_rows.as_words(counts)
    assert np.diff(words.start).tolist() == counts.sum(axis=1).tolist()
    first = words.word[words.start[3] : words.start[4]]
    assert np.bincount(first, minlength=60).tolist() == counts[[3]].toarray()[0].tolist()
    only = np.zeros((2, 60))
    only[0, 7], only[1, 9] = 4.0, 6.0
    two = mibc_rows.as_words(mibc_sets.narrow(sparse.csr_array(only)))
    made = mibc_rows.mixed(
        two, np.array(["a", "b"]), np.arange(2), 50, 60, np.random.default_rng(0)
    )
    rows = {tuple(row) for row in made.toarray()}
    assert rows == {tuple(only[0]), tuple(only[1])}  # never a word of the other group
