"""A label is its value, however the cells write it, in every command."""

import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rareclass
from command_line import invoke, json_of, run
from faults import refused
from made_tables import purchases
from rareclass.encoding.target import (
    is_rare,
    label_counts,
    read_rare_or_rest,
)
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind, TableWarning, finding_of
from rareclass.hunt.table import HuntTable
from rareclass.labels.spelling import label_value, one_spelling
from rareclass.model.decisions import RareDecision
from rareclass.model.facts import RareClassFacts
from rareclass.model.targets import rare_target
from rareclass.review.table import LabelRoles, read_review_table

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
    """Labels that warnings say are written in several ways."""
    found = [finding_of(each.message) for each in warnings]
    return [each.values["label"] for each in found if each.kind is FindingKind.LABEL_SPELLINGS]


@each_label
@pytest.mark.parametrize("asked", [0, -1, None])
def test_training_takes_spellings_for_one_label(spellings, other, asked):
    labels = pl.Series([*spellings, *[other] * 20])
    positive = None if asked is None else spellings[asked]
    with pytest.warns(TableWarning) as warnings:
        found = rare_target(label_counts(labels), positive).facts
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
    labels, wrong = read_rare_or_rest(cells, spellings[-1])
    assert labels.tolist() == [0.0, *[1.0] * len(spellings)]
    assert not wrong.any()
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


words = st.text(st.sampled_from("aAbB1.0 +-eß"), min_size=1, max_size=4)


@given(st.dictionaries(words, st.integers(1, 9), min_size=1, max_size=8))
@pytest.mark.filterwarnings("ignore::rareclass.findings.TableWarning")
def test_each_label_has_one_spelling_the_most_frequent(counts):
    spelled = one_spelling(counts)
    assert list(spelled) == list(counts)
    for written, label in spelled.items():
        alike = [each for each in counts if label_value(each) == label_value(written)]
        assert spelled[label] == label
        assert counts[label] == max(counts[each] for each in alike)
        assert {spelled[each] for each in alike} == {label}


def mixed(n_rows=240, seed=0):
    """Purchases whose fraud is written in three ways."""
    table = purchases(n_rows, seed)
    ways = np.array(["yes", "Yes", "YES"])[np.arange(n_rows) % 3]
    return table.with_columns(
        fraud=pl.when(pl.col("fraud") == "yes").then(pl.Series(ways)).otherwise(pl.lit("no"))
    )


def test_every_command_counts_the_same_rare_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = mixed()
    table.write_csv("t.csv")
    n_rare = int((table["fraud"] != "no").sum())
    target = ["--target", "fraud", "--positive", "yes"]
    fitted = invoke("fit", "t.csv", *target, "--method", "mibc", "--out", "m.rareclass")
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
    scores.with_columns(table["fraud"], other=pl.col("score") + 1.0).write_csv("both.csv")
    words = ["--scores", "--score", "score", "--score", "other", *target]
    assert json_of("compare", "both.csv", *words)["n_rare"] == n_rare
    streamed = invoke("stream", "t.csv", *target, "--checkpoint", "stream")
    assert "'Yes'" in streamed.output
    assert f"{n_rare} rare" in streamed.output
