"""Several labels that count as rare, and options that would take the last of several values."""

import json

import numpy as np
import polars as pl
import pytest

import rareclass
from command_line import json_of, run
from faults import refused
from rareclass.compare.leaderboard import CompareSettings, read_compared
from rareclass.encoding.schema import Schema
from rareclass.encoding.target import is_rare, read_rare_or_rest
from rareclass.errors import ErrorKind
from rareclass.model.targets import rare_target
from rareclass.report.reading import ReportOptions, read_rows
from rareclass.tables.table_file import open_table

BOTH = ("--positive", "theft", "--positive", "fake")
QUICK = ("--method", "mibc", "--cost", "1", "--no-baseline")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Payments of three kinds, the same with two, and files of scores."""
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
    run("fit", path / "three.csv", "-t", "kind", *BOTH, *QUICK, "-o", path / "three.m")
    run("fit", path / "two.csv", "-t", "kind", *QUICK, "-o", path / "two.m")
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
    assert "theft or fake" in run("show", folder / "three.m")


@pytest.mark.sampled(0)
def test_compare_takes_several_labels(folder):
    settings = CompareSettings("kind", ("theft", "fake"), folds=2, methods=("logistic",))
    read = read_compared(open_table(folder / "three.csv"), settings)
    n_rare = rareclass.load(folder / "two.m").rare_class.n_rare
    assert read.target.facts.rare_label == "theft or fake"
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
    assert Schema.from_state(json.loads(json.dumps(schema.to_state()))) == schema


def test_levels_have_no_rare_labels(folder):
    words = ("fit", folder / "three.csv", "-t", "kind", "--method", "ordinal-rankrc", *BOTH)
    assert "--positive theft fake" in run(*words, "-o", folder / "x", code=2)


COUNTS = {"ok": 90, "theft": 6, "Theft": 1, "fake": 3}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_several_labels_are_one_class():
    target = rare_target(COUNTS, ["fake", "theft", "fake"])
    found = target.facts
    assert (found.rare_label, found.labels) == ("fake or theft", ("fake", "theft"))
    assert found.label_counts == {"ok": 90, "fake or theft": 10}
    assert target.code_of == {"ok": 0, "theft": 1, "Theft": 1, "fake": 1}
    assert target.class_of == {"theft": 1, "Theft": 1, "fake": 0}
    assert rare_target(COUNTS, ["fake"]) == rare_target(COUNTS, "fake")
    assert rare_target(COUNTS, "fake").facts.labels == ("fake",)
    labels = pl.Series(["Fake", "ok", "theft", "other"])
    assert is_rare(labels, found.labels).tolist() == [True, False, True, False]
    cells = pl.Series(["fake", "ok", None, "theft"])
    read = read_rare_or_rest(cells, ("theft", "fake"))
    np.testing.assert_array_equal(read.values, [1.0, 0.0, np.nan, 1.0])
    with refused(ErrorKind.LABELS, says="nope"):
        rare_target(COUNTS, ["fake", "nope"])
    with refused(ErrorKind.LABELS):
        rare_target(COUNTS, ["fake", "theft", "ok"])
    yes = rare_target({"no": 9, "yes": 1, "true": 1}, ["yes", "true"])
    assert yes.facts.label_counts == {"no": 9, "yes or true": 2}


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
    words = ("fit", folder / "three.csv", "-t", "kind", *BOTH, *QUICK, "--drop", "b")
    facts = json_of(
        *words, "--category", "a", "--category", "kind", "-o", tmp_path / "m", "--overwrite"
    )
    assert facts["rare_labels"] == ["theft", "fake"]
