"""A target with several rare classes: from the table to scores, measures and files."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import rareclass as package
from command_line import QUICK, fit_in, invoke, json_of, run, says, scores_of
from faults import refusal
from rareclass.compare.leaderboard import CompareSettings, compare_on, of_classes, read_compared
from rareclass.decide.threshold import called_class
from rareclass.errors import ErrorKind
from rareclass.model.facts import facts_as_json
from rareclass.model.model_file import load_model
from rareclass.tables.table_file import open_table

MEMBERS = ("--members", "extra trees,logistic regression", "--folds", "3")
FAILURES = ("heat", "power", "wear")


def machines(n=400, seed=0):
    rng = np.random.default_rng(seed)
    kind = np.full(n, "none", dtype=object)
    kind[:60] = np.repeat(FAILURES, 20)
    columns = {name: rng.normal(size=n) + 4.0 * (kind == name) for name in FAILURES}
    order = rng.permutation(n)
    table = pl.DataFrame({name: column[order] for name, column in columns.items()})
    return table.with_columns(pl.Series("failure", kind[order], pl.String))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    words = ("-t", "failure", *MEMBERS, "--time-budget", "5m", "--json", folder / "fit.json")
    return fit_in(folder, machines(), machines(seed=1), *words)


def test_without_a_name_all_labels_but_the_frequent_one_are_rare(fitted):
    target = load_model(fitted.model).rare_class
    assert sorted(target.rare_labels) == sorted(FAILURES)
    assert (target.rest_label, target.n_rare) == ("none", 60)
    assert target.class_counts == (20, 20, 20)


def test_each_class_has_measures(fitted):
    told = json.loads((fitted.folder / "fit.json").read_text())
    classes = told["held_out"]["classes"]
    assert sorted(each["name"] for each in classes) == sorted(FAILURES)
    precisions = [each["average_precision"] for each in classes]
    assert all(each["low"] <= each["value"] <= each["high"] for each in precisions)
    mean = told["held_out"]["measures"]["mean average precision of classes"]["value"]
    assert mean == pytest.approx(np.mean([each["value"] for each in precisions]))
    facts = load_model(fitted.model).facts
    assert json.loads(json.dumps(facts_as_json(facts))) == facts_as_json(facts)


def test_compare_says_that_it_measures_any_rare_class(fitted, in_this_process):
    shown = run("compare", fitted.train, "-t", "failure", "--methods", "logistic", "--folds", 2)
    says(shown, "any rare class", "60 of them rare", "precision of each class against the majority")


def test_compare_measures_each_class_by_what_ranks_any(fitted):
    settings = CompareSettings("failure", methods=("logistic",), folds=2)
    data = read_compared(open_table(fitted.train), settings)
    board = compare_on(data, settings, isolate=False)
    (found,) = board.of_classes.values()
    assert list(found) == list(data.target.rare_labels)
    # As many rows of each class, alike: each is found about as well as any, among fewer rows.
    assert min(found.values()) > 0.5
    assert board.to_dict()["average_precision_of_classes"] == board.of_classes
    # With rows of one class alone the figures are those of two classes.
    scores = {name: column.copy() for name, column in board.found.scores.items()}
    assert data.which is not None
    one = replace(data, which=np.where(data.which >= 0, 0, -1).astype(np.int16))
    (any_class,) = of_classes(replace(board.found, scores=scores), one, ("any",)).values()
    values = board.ordered_by.standings
    assert next(iter(any_class.values())) == pytest.approx(values[0].value, abs=1e-9)


def test_scores_say_which_class_is_likely(fitted, tmp_path):
    scores, truth = scores_of(fitted.model, fitted.new), machines(seed=1)["failure"]
    names = load_model(fitted.model).rare_classes
    by_class = scores.select([f"probability_{name}" for name in names]).to_numpy()
    np.testing.assert_allclose(by_class.sum(axis=1), scores["probability"], rtol=1e-9)
    assert scores["likely_class"].to_list() == [names[k] for k in by_class.argmax(axis=1)]
    rare = (truth != "none").to_numpy()
    assert (scores["likely_class"].to_numpy()[rare] == truth.to_numpy()[rare]).mean() > 0.9
    proba = package.load(fitted.model).predict_proba(machines(seed=1))
    assert proba.shape == (400, 4)
    np.testing.assert_allclose(proba[:, 1:], by_class, rtol=1e-9)


def test_named_classes_are_rare_and_the_others_the_majority(fitted, tmp_path):
    out = tmp_path / "named.rareclass"
    words = ("--positive", "heat", "--positive", "wear", *QUICK)
    run("fit", fitted.train, "-t", "failure", *words, "-o", out)
    model = load_model(out)
    assert model.rare_classes == ("heat", "wear")
    assert model.rare_class.rest_label == "rest"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("more", [("--holdout", "0.3"), ("--copies", "drop"), ("--no-refit",)])
def test_other_ways_to_hold_out_have_classes(fitted, tmp_path, more):
    words = ("fit", fitted.train, "-t", "failure", *QUICK, "-o", tmp_path / "m.rareclass")
    assert len(json_of(*words, *more)["held_out"]["classes"]) == 3


def test_labels_without_a_frequent_one_are_doubted(tmp_path):
    table = machines(90).with_columns(pl.Series("failure", list("abc") * 30))
    table.write_csv(tmp_path / "even.csv")
    words = ("fit", tmp_path / "even.csv", "-t", "failure", "--method", "mibc", "--cost", "1")
    said = run(*words, "-o", tmp_path / "m.rareclass")
    assert "b or c is more than half of the rows; --positive names the rare class" in said


def test_a_class_that_new_rows_lack_has_no_measures(fitted, tmp_path):
    new, out = tmp_path / "new.csv", tmp_path / "evaluated.json"
    machines(seed=1).filter(pl.col("failure") != "heat").write_csv(new)
    run("evaluate", fitted.model, new, "--json", out)
    assert sorted(e["name"] for e in json.loads(out.read_text())["classes"]) == ["power", "wear"]


def test_rows_are_called_a_class_by_its_own_threshold(fitted, tmp_path):
    model = tmp_path / "strict.rareclass"
    run("threshold", fitted.model, "--class", "HEAT", "--threshold", "0.9", "-o", model)
    rules = load_model(model).facts.class_rules
    assert rules["heat"].threshold == 0.9
    assert rules["wear"] == load_model(fitted.model).facts.class_rules["wear"]
    scores = scores_of(model, fitted.new)
    for row in scores.iter_rows(named=True):
        multiple = {name: row[f"probability_{name}"] / rules[name].threshold for name in FAILURES}
        best = max(multiple, key=lambda name: multiple[name])
        assert row["called_class"] == (best if multiple[best] > 1.0 else None)
    assert 0 < (scores["called_class"] == "heat").sum() < 25


def test_a_class_is_judged_against_all_other_rows(fitted, tmp_path):
    rule = ("--class", "power", "--min-recall", "0.5", "--confidence", "none")
    told = json_of("threshold", fitted.model, fitted.new, *rule)
    assert (told["n_rare"], told["rows"]) == (20, 400)
    assert told["recall"]["value"] >= 0.5
    decisions = json_of("evaluate", fitted.model, fitted.new)["class_decisions"]
    by_class = {each["name"]: each for each in decisions}
    assert sorted(by_class) == sorted(FAILURES)
    assert all(each["precision"]["value"] > 0.5 for each in by_class.values())


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        (("--class", "rust", "--min-recall", "0.5"), ErrorKind.LABELS),
        (("--class", "heat", "--min-recall", "0.5", "--prevalence", "0.1"), ErrorKind.COMBINATION),
    ],
)
def test_classes_that_are_none_are_refused(fitted, more, kind):
    refusal(invoke("threshold", fitted.model, *more), kind, "--class")


@pytest.mark.usefixtures("without_drawing")
@pytest.mark.sampled(1)
@pytest.mark.parametrize("on_file", [True, False])
def test_a_report_has_a_section_on_the_classes(fitted, tmp_path, on_file):
    out = tmp_path / "report.html"
    data = [fitted.new] if on_file else []
    run("report", fitted.model, *data, "--out", out)
    page = out.read_text()
    section = page[page.index('id="classes"') :]
    assert all(name in section for name in FAILURES)


def test_every_way_to_ask_calls_a_row_the_same_class(fitted, tmp_path):
    from rareclass.serving.live_model import open_served

    model, rows = fitted.model, machines(seed=1)
    called = scores_of(model, fitted.new)["called_class"].fill_null("none")
    assert package.load(model).predict(rows).tolist() == called.to_list()
    served = open_served(model).answer(rows.drop("failure")).columns
    assert served["decision"].to_list() == called.to_list()
    told = json_of("evaluate", model, fitted.new)
    confusion = told["confusion"]
    own = {each["name"]: each["alerts"] for each in told["class_decisions"]}
    counts = np.array(confusion["is_by_called"])
    assert (counts.sum(), counts[:3].sum()) == (400, 60)
    assert own == {name: (called == name).sum() for name in FAILURES}
    for place, name in enumerate(confusion["classes"]):
        of_name = called.filter(rows["failure"] == name)
        counts = [int((of_name == other).sum()) for other in confusion["classes"]]
        assert confusion["is_by_called"][place] == counts


def test_classes_keep_in_step_with_the_threshold_of_any(fitted, tmp_path):
    strict = tmp_path / "strict.rareclass"
    words = ("threshold", fitted.model, "--alerts", "20/400", "--confidence", "none")
    assert "Called each class above a probability of:" in run(*words, "--out", strict)
    for path in (fitted.model, strict):
        model = load_model(path)
        held_out = model.held_out
        called = model.called_class(held_out.classes.probability) >= 0
        assert called.sum() == (held_out.scores > model.threshold).sum()
        ratio = model.decision.class_thresholds
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)  # as many rows of each
    threshold = load_model(strict).threshold
    found = scores_of(strict, fitted.new)
    named = scores_of(fitted.model, fitted.new, "--threshold", threshold)
    assert found["called_class"].to_list() == named["called_class"].to_list()
    assert found["called_class"].null_count() > 340


def test_reasons_speak_for_the_class(fitted, tmp_path):
    told = scores_of(fitted.model, fitted.new, "--explain", "1", "--alerts-only")
    assert (told["class_effect_1"] > 0.0).all()
    assert (told["class_reason_1"] == told["likely_class"]).mean() > 0.8


def test_a_class_of_few_rows_is_named(tmp_path):
    kind = machines()["failure"].to_numpy().copy()
    kind[np.flatnonzero(kind == "heat")[3:]] = "none"
    machines().with_columns(pl.Series("failure", kind)).write_csv(tmp_path / "few.csv")
    words = ("fit", tmp_path / "few.csv", "-t", "failure", *QUICK)
    said = " ".join(invoke(*words, "-o", tmp_path / "m.rareclass").output.split())
    assert said.count("fewer than 5 rows") == 1
    assert "heat (3 rows)" in said


def test_all_classes_share_a_budget(fitted, out):
    words = ("threshold", fitted.model, "--class", "all", "--alerts", "40/400", "--out", out)
    says(run(*words), "Called each class above a probability of:", "Called any class:")
    changed = load_model(out)
    held = changed.held_out
    in_a_class = called_class(held.classes.probability, changed.decision.class_thresholds)
    above = float((held.scores > changed.threshold) @ np.ones(len(held.y)))
    assert above == (in_a_class >= 0).sum() > 0  # as many are called rare as are called a class
    assert (changed.facts.rule.rule, changed.facts.rule.alerts) == (
        "alerts <= 40 in 400 rows, of rows called a class",
        above,
    )
    counts = np.array(changed.rare_class.class_counts)
    ratio = changed.decision.class_thresholds / counts**0.75
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)
    scores = scores_of(out, fitted.new)
    called = scores["called_class"]
    assert 20 < scores["called_rare"].sum() < 60
    truth = machines(seed=1)["failure"]
    assert 20 < called.len() - called.null_count() < 60
    assert (called == truth).sum() > 15
    refusal(invoke(*words[:4], "--prevalence", "0.1", "--alerts", "40/400"), ErrorKind.COMBINATION)


def test_onnx_would_call_rows_otherwise_and_is_refused(fitted, tmp_path):
    pytest.importorskip("onnx")
    out = tmp_path / "m.onnx"
    refusal(invoke("export", fitted.model, "--out", out), ErrorKind.UNSUPPORTED, "3 rare classes")
    assert not out.exists()
