"""A label is its value, however the cells write it, in every command; several may count as rare."""

import json
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rareclass
from cli.conftest import without_drawing as without_drawing
from command_line import invoke, json_of, run
from faults import refused
from made_tables import purchases
from rareclass.compare.leaderboard import CompareSettings, read_compared
from rareclass.encoding.schema import Schema
from rareclass.encoding.target import is_rare, label_counts, read_rare_or_rest
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind, TableWarning, finding_of
from rareclass.hunt.hunting import HuntTable
from rareclass.labels.spelling import label_value, one_spelling
from rareclass.model.decisions import RareDecision
from rareclass.model.targets import RareClassFacts, rare_target
from rareclass.report.reading import ReportOptions, read_rows
from rareclass.review.table import LabelRoles, read_review_table
from rareclass.stored import pack, unpack
from rareclass.stream.state import KINDS
from rareclass.tables.table_file import open_table

# Spellings of one label, and another label.
ONE_LABEL = {
    "case": (["yes", "Yes", "YES"], "no"),
    "spaces": (["fraud", " fraud", "fraud  ", "\u00a0fraud"], "ok"),
    "inner spaces": (["not ok", "not  ok", "Not Ok"], "ok"),
    "numbers": (["1", "1.0", "1.00", "+1", "01", "1e0"], "0"),
    "minus": (["-1", "-1.0"], "1"),
    "truth values": (["True", "true", "TRUE"], "false"),
    "wide": (["\uff21", "a", "A"], "b"),
    "sharp s": (["groß", "GROSS", "gross"], "klein"),
}
each_label = pytest.mark.parametrize(
    ("spellings", "other"), ONE_LABEL.values(), ids=list(ONE_LABEL)
)


def told(warnings):
    found = [finding_of(each.message) for each in warnings]
    return [each.values["label"] for each in found if each.kind is FindingKind.LABEL_SPELLINGS]


@each_label
@pytest.mark.parametrize("asked", [0, -1, None])
def test_training_takes_spellings_for_one_label(spellings, other, asked):
    labels = pl.Series([*spellings, *[other] * 20])
    positive = None if asked is None else spellings[asked]
    with pytest.warns(TableWarning) as warnings:
        found = rare_target(label_counts(labels), positive)
    assert found.label_counts == {other: 20, found.rare_label: len(spellings)}
    assert found.rest_label == other
    assert is_rare(labels, found.rare_label).tolist() == [True] * len(spellings) + [False] * 20
    assert told(warnings) == [found.rare_label]


@each_label
def test_a_new_file_may_write_the_rare_label_in_any_way(spellings, other):
    facts = RareClassFacts("y", spellings[0], other, 3, {other: 9, spellings[0]: 3})
    decision = RareDecision(facts, np.zeros(1))
    with pytest.warns(TableWarning) as warnings:
        codes = decision.codes(pl.Series([other, *spellings, None]), "new.csv")
    assert codes.tolist() == [0, *[1] * len(spellings), -1]
    assert len(told(warnings)) == 1


@each_label
def test_a_stream_and_a_hunt_do_too(spellings, other):
    cells = pl.Series(list(map(str, [other, *spellings])))
    labels = read_rare_or_rest(cells, spellings[-1])
    assert labels.to_list() == [0.0, *[1.0] * len(spellings)]
    y = pl.Series([None, other, *spellings])
    table = pl.DataFrame({"x": pl.int_range(len(y), eager=True) % 2, "y": y})
    with warnings.catch_warnings(action="ignore", category=TableWarning):
        rows = read_review_table(table, "y")
    found = HuntTable.of(rows, LabelRoles((spellings[0],), (other,))).labels
    assert len(found.rare) == 1
    assert found.n_rare[found.rare[0]] == len(spellings)
    assert found.n_cleared == 1


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (["yes", "true", "no", "no"], "yes"),
        (["1", "yes", "0", "0"], "1"),
        (["True", "1", "False", "0"], "True"),
        (["+1", "true", "-1"], "true"),
    ],
)
def test_two_words_that_say_yes_are_refused(labels, positive):
    with refused(ErrorKind.LABELS):
        rare_target(label_counts(pl.Series(labels)), positive)


@pytest.mark.parametrize("labels", [["yes", "Yes", "YES"], ["1", "1.0"], ["a", "A"]])
def test_one_label_in_several_spellings_is_one_class_only(labels):
    with pytest.warns(TableWarning), refused(ErrorKind.LABELS):
        rare_target(label_counts(pl.Series(labels)), None)


words = st.text(st.sampled_from("aAbB1.0 +-eß\u200b"), min_size=1, max_size=4)


@given(st.dictionaries(words, st.integers(1, 9), min_size=1, max_size=8))
@pytest.mark.filterwarnings("ignore::rareclass.findings.TableWarning")
def test_each_label_has_one_spelling_the_most_frequent_that_can_be_printed(counts):
    spelled = one_spelling(counts)
    assert list(spelled) == list(counts)
    for written, label in spelled.items():
        alike = [each for each in counts if label_value(each) == label_value(written)]
        assert spelled[label] == label
        printable = [each for each in alike if each.isprintable()] or alike
        assert label in printable
        assert counts[label] == max(counts[each] for each in printable)
        assert {spelled[each] for each in alike} == {label}


def mixed(n_rows=240, seed=0):
    table = purchases(n_rows, seed)
    ways = np.array(["yes", "Yes", "YES"])[np.arange(n_rows) % 3]
    return table.with_columns(
        fraud=pl.when(pl.col("fraud") == "yes").then(pl.Series(ways)).otherwise(pl.lit("no"))
    )


@pytest.mark.usefixtures("without_drawing")
def test_every_command_counts_the_same_rare_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = mixed()
    table.write_csv("t.csv")
    n_rare = int((table["fraud"] != "no").sum())
    target = ["--target", "fraud", "--positive", "yes"]
    fitted = invoke("fit", "t.csv", *target, *MIBC, "--out", "m.rareclass")
    assert "'Yes'" in fitted.output
    assert rareclass.load("m.rareclass").facts.target.n_rare == n_rare
    for words in (
        ["evaluate", "m.rareclass", "t.csv"],
        ["report", "m.rareclass", "t.csv", "--out", "r.html"],
        ["threshold", "m.rareclass", "t.csv", "--alerts", "500/10000"],
    ):
        assert "'Yes'" in invoke(*words).output
    run("score", "m.rareclass", "t.csv", "--out", "s.csv")
    scores = pl.read_csv("s.csv").select("score")
    scores.with_columns(table["fraud"], other=pl.col("score") * 2.0).write_csv("both.csv")
    words = ["--scores", "--score", "score", "--score", "other", *target]
    assert json_of("compare", "both.csv", *words)["n_rare"] == n_rare
    streamed = invoke("stream", "t.csv", *target, "--checkpoint", "stream")
    assert "'Yes'" in streamed.output
    assert f"{n_rare} rare" in streamed.output


BOTH = ("--positive", "theft", "--positive", "fake")
MIBC = ("--method", "mibc", "--cost", "1", "--no-baseline")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("labels")
    random = np.random.default_rng(0)
    kind = random.choice(3, 900, p=[0.88, 0.07, 0.05])
    a = random.normal(size=900) + 2.0 * (kind > 0)
    words = np.array(["ok", "theft", "fake"])[kind]
    frame = pl.DataFrame({"a": a, "b": random.normal(size=900), "kind": words})
    frame.write_csv(path / "three.csv")
    two = frame.with_columns(kind=pl.Series(np.where(kind > 0, "bad", "ok")))
    two.write_csv(path / "two.csv")
    scores = frame.select("kind", s=pl.col("a"), t=pl.col("a") + pl.col("b"))
    scores.write_csv(path / "scores.csv")
    run("fit", path / "three.csv", "-t", "kind", *BOTH, *MIBC, "-o", path / "three.m")
    run("fit", path / "two.csv", "-t", "kind", *MIBC, "-o", path / "two.m")
    return path


@pytest.mark.filterwarnings("ignore:.* seems to hold the rows that the model was trained on")
@pytest.mark.sampled(0)
def test_any_of_several_labels_is_rare_in_fit_and_all_that_reads_its_model(folder):
    three, two = (rareclass.load(folder / f"{name}.m") for name in ("three", "two"))
    assert three.classes == ("ok", "theft or fake")
    assert three.rare_class.n_rare == two.rare_class.n_rare
    np.testing.assert_array_equal(
        three.score_samples(folder / "three.csv"), two.score_samples(folder / "two.csv")
    )
    own = json_of("evaluate", folder / "three.m", folder / "three.csv")
    other = json_of("evaluate", folder / "two.m", folder / "two.csv")
    assert own["measures"] == other["measures"]
    assert own["at_threshold"] == other["at_threshold"]
    read = read_rows(three, folder / "three.csv", ReportOptions())  # as a report does
    assert read.y.sum() == two.rare_class.n_rare
    assert read.y[read.whole.places].sum() == read.y.sum()
    chosen = json_of("threshold", folder / "three.m", folder / "three.csv", "--min-recall", 0.5)
    assert chosen["n_rare"] == two.rare_class.n_rare
    assert set(three.predict(folder / "three.csv")) == {"ok", "theft or fake"}
    assert "Rare classes of kind: theft (" in run("show", folder / "three.m")


@pytest.mark.sampled(0)
def test_compare_takes_several_labels(folder):
    settings = CompareSettings("kind", ("theft", "fake"), folds=2, methods=("logistic",))
    read = read_compared(open_table(folder / "three.csv"), settings)
    n_rare = rareclass.load(folder / "two.m").rare_class.n_rare
    assert read.target.rare_label == "theft or fake"
    assert int(read.rare.sum()) == n_rare
    scored = ("compare", folder / "scores.csv", "--scores", "--score", "s", "--score", "t")
    both = json_of(*scored, "-t", "kind", *BOTH)
    assert both["rare_label"] == "theft or fake"
    assert json.dumps(both) != json.dumps(json_of(*scored, "-t", "kind", "--positive", "theft"))


def test_a_stream_takes_several_labels(folder):
    words = ("stream", folder / "three.csv", "-t", "kind", "--learner", "cbr")
    checkpoint = ("--checkpoint", folder / "stream")
    n_rare = rareclass.load(folder / "two.m").rare_class.n_rare
    assert f"{n_rare} of them rare" in run(*words, *BOTH, *checkpoint)
    run(*words, *BOTH, *checkpoint)  # goes on
    assert "--positive" in run(*words, "--positive", "theft", *checkpoint, code=2)
    assert json_of("evaluate", folder / "stream", folder / "three.csv")["n_rare"] == n_rare
    schema = Schema("y", {"a": "number"}, positive=("a", "b"))
    assert unpack(pack(schema, KINDS), KINDS) == schema


def test_levels_have_no_rare_labels(folder):
    words = ("fit", folder / "three.csv", "-t", "kind", "--method", "ordinal-rankrc", *BOTH)
    assert "--positive theft --positive fake" in run(*words, "-o", folder / "x", code=2)


COUNTS = {"ok": 90, "theft": 6, "Theft": 1, "fake": 3}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_several_labels_are_one_class():
    found = rare_target(COUNTS, ["fake", "theft", "fake"])
    assert (found.rare_label, found.labels) == ("fake or theft", ("fake", "theft"))
    assert found.label_counts == {"ok": 90, "fake or theft": 10}
    written = pl.Series([*COUNTS, None])
    assert found.codes(written).tolist() == [0, 1, 1, 1, -1]
    assert found.which(written).tolist() == [-1, 1, 1, 0, -1]
    assert rare_target(COUNTS, ["fake"]) == rare_target(COUNTS, "fake")
    assert rare_target(COUNTS, "fake").labels == ("fake",)
    labels = pl.Series(["Fake", "ok", "theft", "other"])
    assert is_rare(labels, found.labels).tolist() == [True, False, True, False]
    cells = pl.Series(["fake", "ok", None, "theft"])
    read = read_rare_or_rest(cells, ("theft", "fake"))
    np.testing.assert_array_equal(read.to_list(), [1.0, 0.0, np.nan, 1.0])
    with refused(ErrorKind.LABELS, says="nope"):
        rare_target(COUNTS, ["fake", "nope"])
    with refused(ErrorKind.LABELS):
        rare_target(COUNTS, ["fake", "theft", "ok"])
    yes = rare_target({"no": 9, "yes": 1, "true": 1}, ["yes", "true"])
    assert yes.label_counts == {"no": 9, "yes or true": 2}


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("fit", "a.csv", "-t", "x", "--target", "y", "-o", "m"), "--target"),
        (("fit", "a.csv", "-t", "x", "--alerts", "1/day", "--alerts", "2/day", "-o", "m"),
         "--alerts"),
        (("score", "m", "a.csv", "-o", "s.csv", "--out", "t.csv"), "--out"),
        (("score", "m", "a.csv", "-o", "s.csv", "--threshold", "1", "--threshold=2"),
         "--threshold"),
        (("evaluate", "m", "a.csv", "--json", "a", "--json", "b"), "--json"),
        (("report", "m", "-o", "r.html", "--time", "a", "--time", "b"), "--time"),
        (("compare", "a.csv", "--folds", "2", "--folds", "3"), "--folds"),
        (("stream", "a.csv", "-t", "y", "--checkpoint", "c", "--window", "9", "--window", "8"),
         "--window"),
        (("fit", "a.csv", "-t", "x", "-o", "m", "--no-refit", "--no-refit"), "--no-refit"),
    ],
)  # fmt: skip
def test_an_option_of_one_value_is_not_given_twice(words, option):
    assert f"{option} is given 2 times" in run(*words, code=2)


def test_options_of_many_values_are_given_many_times(folder, tmp_path):
    words = ("fit", folder / "three.csv", "-t", "kind", *BOTH, *MIBC, "--drop", "b")
    facts = json_of(
        *words, "--category", "a", "--category", "kind", "-o", tmp_path / "m", "--overwrite"
    )
    assert facts["rare_labels"] == ["theft", "fake"]
