"""Section VI of the RACH paper and RACH's speed: problems, choice, methods, figures, commands."""

import json

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from benchmarks import performance_page, rach_page, rach_speed
from benchmarks.paper_tables import __main__ as command
from benchmarks.paper_tables import (
    rach_choice,
    rach_figures,
    rach_methods,
    rach_protocol,
    rach_sets,
    rach_tables,
)
from benchmarks.paper_tables.protocol import gaussian_gamma
from benchmarks.paper_tables.rach_choice import Task
from benchmarks.paper_tables.rach_methods import METHODS, RACH
from benchmarks.paper_tables.rach_protocol import Run
from real_data import FOLDER, real_file

PEERS = [name for name in METHODS if name != RACH]

# -- problems ----------------------------------------------------------------------------


SIZES = [("disc", 84), ("bar", 150), ("crescent", 267), ("ring", 280)]


@pytest.mark.parametrize(("shape", "rare"), SIZES)
def test_shapes_have_the_papers_sizes_and_lie_inside_the_majority(shape, rare):
    X, y = rach_sets.synthetic(shape)
    assert (len(y), y.sum()) == (3000 + rare, rare)
    assert np.linalg.norm(X[y == 1], axis=1).max() < 2.0
    low, high = X[y == 1].min(axis=0), X[y == 1].max(axis=0)
    inside = ((X[y == 0] >= low) & (X[y == 0] <= high)).all(axis=1)
    assert inside.sum() >= 5  # not separable
    assert inside.sum() < rare


def test_shapes_share_their_majority_and_do_not_meet():
    made = [rach_sets.synthetic(shape) for shape in rach_sets.SHAPES]
    assert all((X[y == 0] == made[0].X[made[0].y == 0]).all() for X, y in made)
    boxes = [(X[y == 1].min(axis=0), X[y == 1].max(axis=0)) for X, y in made]
    for k, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:k]:
            assert ((high < other_low) | (other_high < low)).any()


@pytest.mark.parametrize(
    ("problem", "rows", "rare"),
    [
        ("glass 2:3", 93, 17),
        ("ecoli rest:imU", 336, 35),
        ("abalone 9:16", 756, 67),
        ("segment cement:foliage", 360, 30),
        ("satimage rest:4", 2000, 150),
        ("shuttle radiator:fpv open", 2171, 171),
    ],
)
def test_problems_have_two_classes_and_are_standardised(problem, rows, rare):
    real_file(f"{problem.split()[0]}.parquet")
    X, y = rach_sets.load(problem, FOLDER)
    assert (len(y), y.sum()) == (rows, rare)
    assert X.mean(axis=0) == pytest.approx(0.0, abs=1e-9)
    spread = X.std(axis=0)
    assert spread[spread > 0.0] == pytest.approx(1.0)
    assert (rach_sets.load.__wrapped__(problem, FOLDER).X == X).all()  # drawn once and for all


def test_no_label_is_a_column():
    real_file("glass.parquet")
    X, label = rach_sets._table("glass", FOLDER)
    assert X.shape == (214, 9)
    assert sorted(set(label)) == ["1", "2", "3", "5", "6", "7"]


def test_texts_have_unit_length_and_few_columns():
    words = [f"alpha beta{k % 3} gamma{k % 7} delta{k % 5} word{k % 2}" for k in range(200)]
    rows = rach_sets._words([" ".join([one] * 3) + f" rare{k % 40}" for k, one in enumerate(words)])
    assert rows.shape[1] <= rach_sets.SVD_COLUMNS
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0)


def test_every_problem_is_named_once():
    every = [problem for name in rach_sets.SETS for problem in rach_sets.problems(name)]
    assert len(every) == len(set(every)) == 22
    assert set(rach_sets.PAIRS) == set(rach_sets.LABELS)


# -- labels and choice -------------------------------------------------------------------


def overlapping(rows=200, rare=0.15, seed=0):
    """Two classes that overlap a little, standardised."""
    rng = np.random.default_rng(seed)
    y = (rng.permutation(rows) < rare * rows).astype(int)
    return rng.normal(size=(rows, 3)) * np.where(y, 0.4, 1.0)[:, None] + 2.0 * y[:, None], y


def test_labels_are_a_share_of_each_class_and_grow():
    X, y = overlapping()
    few, more = (rach_protocol.labelled(X, y, share, 4) for share in (5, 20))
    assert [(few.y == kind).sum() for kind in (1, 0)] == [round(0.05 * 30), round(0.05 * 170)]
    assert [(more.y == kind).sum() for kind in (1, 0)] == [6, 34]
    for task in (few, more):
        assert (task.y[task.known] == y[task.known]).all()
        assert len(task.known) + len(task.unknown) == 200
    assert set(few.known) < set(more.known)
    assert (rach_protocol.labelled(X, y, 5, 5).y != few.y).any()


def test_one_label_at_least():
    X, y = overlapping(rows=60, rare=0.1)
    assert (rach_protocol.labelled(X, y, 5, 0).y == 1).sum() == 1


@pytest.mark.parametrize(("rare", "count"), [(1, 0), (2, 2), (4, 4), (5, 5), (30, 5)])
def test_folds_leave_every_label_out_once(rare, count):
    y = np.repeat([1, 0, -1], [rare, 40, 20])
    task = Task(np.zeros((len(y), 1)), y)
    parts = rach_choice.folds(task, 0)
    assert len(parts) == count
    if not count:
        return
    left_out = np.concatenate([rows for _, rows in parts])
    assert sorted(left_out) == list(range(rare + 40))
    for train, rows in parts:
        assert (y[rows] == 1).any()
        assert (y[train] == 1).any()
        assert not set(train) & set(rows)


def test_left_out_labels_are_hidden_from_methods_that_see_all_rows():
    y = np.repeat([1, 0, -1], [4, 8, 3])
    task = Task(np.zeros((15, 1)), y)
    for train, left_out in rach_choice.folds(task, 0):
        labels = task.labels_of(train)
        assert (labels[train] == y[train]).all()
        assert (labels[left_out] == -1).all()


def test_choice_is_by_f1_of_all_left_out_rows_and_defaults_come_first():
    y = np.repeat([1, 0, -1], [6, 30, 10])
    task = Task(np.arange(46.0)[:, None], y)

    def scores(shift, train, rows):
        return shift - task.X[rows, 0]  # rare is what lies before the shift

    assert rach_choice.choose(task, 0, (20.0, 2.0, 5.5, 5.2, 10.0), scores) == 5.5
    lonely = Task(task.X, np.repeat([1, -1, 0], [1, 5, 40]))
    assert rach_choice.choose(lonely, 0, (20.0, 0.5), scores) == 20.0


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


# -- methods -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", PEERS)
def test_every_method_finds_the_rare_rows(method):
    X, y = overlapping()
    task = rach_protocol.labelled(X, y, 25, 0)
    guess, chosen = METHODS[method](task, 0)
    assert guess.shape == y.shape
    assert rach_choice.f1(y[task.unknown], guess[task.unknown]) > 0.6
    json.dumps(chosen)


@pytest.mark.parametrize("method", PEERS)
def test_every_method_works_with_one_rare_label(method):
    X, y = overlapping(rows=60, rare=0.1)
    task = rach_protocol.labelled(X, y, 5, 0)
    guess, _ = METHODS[method](task, 0)
    assert set(np.unique(guess)) <= {0, 1}


def test_rach_finds_the_rare_rows():
    pytest.importorskip("rareclass.hyperball.rach_cv")
    X, y = overlapping()
    task = rach_protocol.labelled(X, y, 25, 0)
    guess, chosen = METHODS[RACH](task, 0)
    assert rach_choice.f1(y[task.unknown], guess[task.unknown]) > 0.6
    assert len(chosen) == 3


def test_undersampling_is_scikit_learns_svm_on_even_classes():
    X, y = overlapping()
    task = rach_protocol.labelled(X, y, 25, 0)
    guess, (C, width) = rach_methods.undersampling(task, 3)
    rows = rach_methods.balanced(task.known, task.y, 3)
    assert np.bincount(task.y[rows]).tolist() == [8, 8]
    model = SVC(C=C, gamma=width * gaussian_gamma(X)).fit(X[rows], y[rows])
    assert (guess[task.unknown] == model.predict(X[task.unknown])).all()


def test_label_spreading_is_scikit_learns_on_a_symmetric_graph():
    X, y = overlapping()
    graph = rach_methods.graph(X, 5)
    assert (abs(graph - graph.T)).max() == 0.0
    assert np.diff(graph.indptr).min() >= 5
    assert graph.data.max() <= 1.0
    task = rach_protocol.labelled(X, y, 25, 0)
    guess, (k, alpha) = rach_methods.label_spreading(task, 0)
    own = rach_methods.graph(X, k)
    model = LabelSpreading(kernel=lambda _, __: own, alpha=alpha, max_iter=2000)
    model.fit(X, task.y)
    assert (guess[task.unknown] == model.transduction_[task.unknown]).mean() > 0.99


def test_self_training_uses_unlabelled_rows(monkeypatch):
    X, y = overlapping(rows=400)
    task = rach_protocol.labelled(X, y, 10, 1)
    found = []
    for margins in ((None,), (0.1,)):
        monkeypatch.setattr(rach_methods, "MARGINS", margins)
        guess, chosen = rach_methods.self_training(task, 0)
        assert chosen[2] == margins[0]
        found.append(guess)
    assert (found[0] != found[1]).any()


def test_unlabelled_truth_is_not_seen(monkeypatch):
    seen = []
    monkeypatch.setitem(METHODS, "KNN", lambda task, seed: seen.append(task) or (task.y == 1, 1))
    X, y = overlapping()
    monkeypatch.setattr(rach_sets, "load", lambda problem, folder: rach_sets.Rows(X, y))
    found = rach_protocol.perform(Run(None, "synthetic disc", 10, "KNN", 2))
    assert found["f1"] == [0.0, 0.0]  # nothing but the labels is rare: no unlabelled row is
    assert found["labels"] == [3, 17]
    assert all((task.y == -1).sum() == 180 for task in seen)


# -- figures -----------------------------------------------------------------------------

UNEVEN = np.array([0.0, 0.02, -0.01, 0.01, -0.02])


def fits(cells):
    """{(problem, share): {method: F1 of every split}} as fits."""
    return [
        {"problem": problem, "share": share, "method": method, "splits": 5, "f1": list(values),
         "rows": 50, "rare": 5, "labels": [1, 5], "chosen": [], "seconds": 0.1, "code": ""}
        for (problem, share), methods in cells.items() for method, values in methods.items()
    ]  # fmt: skip


def test_top_of_a_cell_is_a_paired_t_test():
    one, near, far = 0.8 + UNEVEN, 0.795 + UNEVEN[::-1], 0.6 + UNEVEN[::-1]
    cell = {"KNN": far, RACH: near, "One-class": one}
    assert stats.ttest_rel(one, near).pvalue > 0.05
    assert stats.ttest_rel(one, far).pvalue < 0.05
    assert rach_figures.first(cell) == "One-class"
    assert rach_figures.top(cell) == [RACH, "One-class"]
    assert rach_figures.top({"KNN": [0.0] * 5, RACH: [0.0] * 5}) == ["KNN", RACH]
    assert rach_figures.top({"KNN": [0.5] * 5, RACH: [0.4] * 5}) == ["KNN"]  # the same each time


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
    assert "in 2 of 3 cells (67%; goal: more than 50%): reached" in rach_figures.verdict(cells)
    half = {key: cell for key, cell in cells.items() if key.share == 5}
    assert rach_figures.verdict(half).endswith("NOT reached")  # one of two is not more than half
    _, lines = rach_tables.share_table(cells)
    assert lines[0] == ["5 %", "55.0", "55.0", "1 of 2"]
    assert lines[1] == ["10 %", "80.0", "30.0", "1 of 1"]
    _, lines = rach_tables.problem_table(fits({key: cells[key] for key in cells}))
    assert lines[0] == ["glass 2:3", "5/50", "80.0", "30.0", "2 of 2"]
    _, lines = rach_tables.cell_table(cells)
    assert lines[2] == ["ecoli rest:imU, 5 %", "30.0", "80.0†"]


# -- commands ----------------------------------------------------------------------------


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
    assert "RACH was not run" in first.out
    done = []
    perform = rach_tables.perform
    monkeypatch.setattr(rach_tables, "perform", lambda run: done.append(run) or perform(run))
    assert command.main([*words, "--methods", "KNN,RACH", "--cells"]) == 0
    assert {run.method for run in done} == {RACH}
    assert len(done) == 4 * 2
    out = capsys.readouterr().out
    assert "in 8 of 8 cells (100%; goal: more than 50%): reached" in out
    assert "synthetic ring, 25 %" in out
    body = json.loads(file.read_text())
    assert len(body["fits"]) == 4 * 2 * 3
    page = rach_page.study(body)
    assert "| synthetic bar | 30/200 | 100.0 | 0.0 | 0.0 | 2 of 2 |" in page
    assert "means of 2 random splits" in page


def test_a_fit_of_another_process_is_not_lost(quick, tmp_path, monkeypatch):
    file = tmp_path / "rach.json"
    keep = rach_tables._keeper(file)
    one, other = (Run(None, "synthetic bar", share, RACH, 2) for share in (5, 10))
    found = rach_protocol.perform(one)
    keep(one, found)
    rach_tables.kept(file).add(other, found)
    keep(one, found | {"seconds": 7.0})
    kept = json.loads(file.read_text())["fits"]
    assert [(fit["share"], fit["seconds"] == 7.0) for fit in kept] == [(5, True), (10, False)]


def test_a_stopped_run_says_how_to_go_on(quick, tmp_path, capsys, monkeypatch):
    def stopped(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(rach_tables, "perform", stopped)
    words = ["rach", "--json", str(tmp_path / "x.json"), "--sets", "synthetic", "--splits", "2"]
    assert command.main(words) == 130
    assert "goes on from there" in capsys.readouterr().out


@pytest.mark.thorough
def test_only_rach_ages(quick, tmp_path, capsys):
    file = tmp_path / "x.json"
    words = ["rach", "--json", str(file), "--sets", "synthetic", "--shares", "5", "--splits", "2"]
    command.main(words)
    body = json.loads(file.read_text())
    for ours in (False, True):
        next(fit for fit in body["fits"] if (fit["method"] == RACH) == ours)["code"] = "older"
        file.write_text(json.dumps(body))
        capsys.readouterr()
        command.main(words)
        assert ("--again" in capsys.readouterr().out) == ours


def test_unknown_sets_and_shares_are_named():
    with pytest.raises(SystemExit, match="no set adult"):
        command.main(["rach", "--sets", "adult"])
    with pytest.raises(SystemExit, match=r"whole percents from 1 to 99, not 0\.05"):
        command.main(["rach", "--shares", "5,0.05"])


@pytest.mark.thorough
def test_command_on_a_real_set(tmp_path, capsys):
    real_file("glass.parquet")
    words = ["--json", str(tmp_path / "x.json"), "--sets", "glass", "--splits", "2"]
    methods = "KNN,Linear F1"
    assert command.main(["rach", *words, "--shares", "5,25", "--methods", methods]) == 0
    (one, *_) = json.loads((tmp_path / "x.json").read_text())["fits"]
    assert (one["rows"], one["rare"], one["labels"]) == (93, 17, [1, 4])
    assert len(one["f1"]) == 2


# -- speed -------------------------------------------------------------------------------


def test_cluster_has_the_labels_it_says():
    X, truth, y = rach_speed.cluster(2000, 50, (3, 30))
    assert X.shape == (2000, 40)
    assert truth.sum() == 50
    assert [(y == kind).sum() for kind in (1, 0, -1)] == [3, 30, 1967]
    assert (truth[y >= 0] == y[y >= 0]).all()
    assert X[truth == 1, 0].mean() == pytest.approx(4.0, abs=0.2)


def test_speed_of_projection_and_filter(tmp_path, capsys):
    file = tmp_path / "rach_speed.json"
    words = ["--repeats", "1", "--rows", "5000", "--threads", "1", "--json", str(file)]
    for what in ("projection", "filter"):
        assert rach_speed.main([*words, "--what", what]) == 0
    parts = json.loads(file.read_text())["parts"]
    assert list(parts) == ["projection", "filter"]
    assert parts["projection"]["off"] < 1e-6
    assert {run["dtype"] for run in parts["filter"]["runs"]} == {"float32", "float64"}
    assert "projection of 5,000, s" in capsys.readouterr().out
    page = tmp_path / "page.md"
    assert performance_page.main(["--results", str(tmp_path), "--out", str(page)]) == 0
    assert "## RACH part by part" in page.read_text()


@pytest.mark.thorough
def test_speed_of_fits(tmp_path):
    pytest.importorskip("rareclass.hyperball.rach")
    file = tmp_path / "rach_speed.json"
    words = ["--repeats", "1", "--rows", "4000", "--kept-rows", "300", "--json", str(file)]
    for what in ("kept", "million"):
        assert rach_speed.main([*words, "--what", what]) == 0
    body = json.loads(file.read_text())
    assert [fit["kernel"] for fit in body["parts"]["kept"]["fits"]] == [None] * 4 + ["gaussian"] * 4
    page = rach_page.speed(body)
    assert "| 4,000 x 40, kernel gaussian |" in page
    assert "fit, 300 rows kept, kernel none, slowest price, s" in page


def test_goals_by_hand():
    parts = {
        "projection": {"rows": 10, "seconds": 2.0},
        "filter": {"runs": [{"dtype": "float64", "threads": 1,
                             "seconds": {"filter": 0.3, "pass 1": 0.2, "pass 300": 0.6}}]},
    }  # fmt: skip
    found = rach_speed.goal_lines(parts)
    assert found[0] == ["projection of 10, s", "2.00", "1", "**no**"]
    assert found[1][1:] == ["0.50", "1", "yes"]
    assert found[2][1:] == ["1.50", "1", "**no**"]
