"""The same labels are the same classes however they arrive: a list, a column, a file, a command."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from draws import draws
from faults import refused
from rareclass import RankRC, RareClassifier
from rareclass.decide import CalibratedRanker
from rareclass.errors import ErrorKind, InputError
from rareclass.findings import FindingKind, TableWarning, finding_of
from rareclass.fit.kernel_methods import OrdinalMethod
from rareclass.fit.training_set import FitSettings, read_training_set
from rareclass.folds.dealing import rare_rows
from rareclass.labels.levels import read_levels
from rareclass.labels.spelling import label_value, one_spelling
from rareclass.labels.two_classes import read_labels
from rareclass.metrics import roc_auc
from rareclass.rows import from_table
from rareclass.tables.table_file import open_table

WORDS = ["1", "1.0", "01", "0", "-1", "10", "9", "Yes", "yes", "no", "b\u200b", "b", "\ufeffB"]
labels_of_rows = st.dictionaries(st.sampled_from(WORDS), st.integers(1, 6), min_size=1).map(
    lambda counts: [label for label, n in counts.items() for _ in range(4 * n)]
)
as_they_come = settings(draws(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def values(labels):
    return [label_value(str(label)) for label in labels]


def rare_of_list(labels, weight=None):
    try:
        found = read_labels(labels, None, None, len(labels), several=True)
    except ValueError:
        return "refused"
    rare = found.pos_label if found.codes is not None else (found.pos_label,)
    rows = [values(labels)[row] in values(rare) for row in range(len(labels))]
    assert np.flatnonzero(rows).tolist() == found.rare.tolist()
    return set(values(rare))


def read_file(path, **options):
    try:
        return read_training_set(open_table(path), FitSettings(target="y", **options)).target
    except InputError as error:
        if error.kind is not ErrorKind.LABELS:
            raise
        return "refused"


def rare_of_file(path):
    target = read_file(path)
    return target if target == "refused" else set(values(target.labels))


def written(labels, folder):
    table = pl.DataFrame({"x": np.arange(len(labels)) % 4, "y": pl.Series(labels)})
    table.write_csv(folder / "t.csv")
    table.write_parquet(folder / "t.parquet")
    return table


@given(labels=labels_of_rows)
@example(labels=["a"] * 40 + ["b"] * 35 + ["c"] * 25)
@example(labels=["1", "1.0", "0", "0", "0"])
@example(labels=["10", "9"] * 2)
@example(labels=["-1", "+1"] * 2)
@example(labels=["yes", "no", "1", "1"])
@as_they_come
def test_the_same_labels_have_the_same_rare_classes(tmp_path, labels):
    table = written(labels, tmp_path)
    rare = rare_of_list(labels)
    assert rare_of_list(np.array(labels)) == rare
    assert rare_of_list(table["y"]) == rare
    assert rare_of_list(from_table(tmp_path / "t.csv", target="y", scratch=tmp_path).y) == rare
    assert rare_of_file(tmp_path / "t.csv") == rare
    assert rare_of_file(tmp_path / "t.parquet") == rare


@given(labels=st.lists(st.integers(-2, 12), min_size=4, max_size=12))
@as_they_come
def test_whole_numbers_have_the_rare_class_and_the_levels_of_their_texts(tmp_path, labels):
    table, texts = written(labels, tmp_path), [f"{label}.0" for label in labels]
    rare = rare_of_list(labels)
    assert rare_of_list(texts) == rare
    assert rare_of_file(tmp_path / "t.csv") == rare
    levels = levels_of_list(labels)
    assert levels_of_list(table["y"]) == levels
    assert levels_of_list(texts) == levels
    assert levels_of_file(tmp_path / "t.csv") == levels


@given(labels=st.lists(st.sampled_from([-1.5, 0.0, 0.5, 1.0, 2.5]), min_size=4, max_size=12))
@example(labels=[1.5, 2.5, 1.5, 1.5])
@example(labels=[1.0, 0.0, 0.0, 0.0])
@as_they_come
def test_numbers_with_a_fraction_are_levels_and_no_classes(tmp_path, labels):
    written(labels, tmp_path)
    rare, levels = rare_of_list(labels), levels_of_list(labels)
    assert rare_of_list(np.array(labels, np.float32)) == rare
    for file in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        assert rare_of_file(file) == rare
        assert levels_of_file(file) == levels
    has_fraction = any(label % 1 for label in labels)
    assert (rare == "refused") == (has_fraction or len(set(labels)) == 1)
    assert (levels == "refused") == (len(set(labels)) == 1)


def levels_of_list(labels, order=None):
    try:
        found = read_levels(labels, levels=order)
    except ValueError:
        return "refused"
    return values(found.classes)


def levels_of_file(path, order=None):
    target = read_file(path, method=OrdinalMethod(0.01, levels=order))
    return target if target == "refused" else values(target.levels)


@given(labels=labels_of_rows, order=st.sampled_from([None, ("no", "yes", "b", "1", "0")]))
@example(labels=["10", "9", "9.0", "9"], order=None)
@example(labels=[str(k) for k in range(100)] * 2, order=None)
@example(labels=[str(k) for k in range(101)] * 2, order=None)
@example(labels=[f"{k}.5" for k in range(60)], order=None)
@as_they_come
def test_the_same_labels_have_the_same_levels(tmp_path, labels, order):
    table = written(labels, tmp_path)
    levels = levels_of_list(labels, order)
    assert levels_of_list(table["y"], order) == levels
    assert levels_of_file(tmp_path / "t.csv", order) == levels
    assert levels_of_file(tmp_path / "t.parquet", order) == levels


def findings(caught):
    return {found.kind: found.values for each in caught if (found := finding_of(each.message))}


@pytest.mark.parametrize(
    ("one", "other"),
    [("a", "\u0430"), ("No", "N\u043e"), ("T1", "\u03a41"), (1, "1"), ("\u0441\u043e", "co")],
)
def test_labels_that_only_look_alike_are_told_and_stay_two(one, other):
    y = np.array([one] * 3 + [other] * 5, dtype=object)
    with pytest.warns(TableWarning) as caught:
        found = read_labels(y, None, None, len(y))
    assert found.pos_label == one
    assert set(findings(caught)[FindingKind.LABELS_LOOK_ALIKE]["labels"]) == {one, other}
    if isinstance(one, str):
        with pytest.warns(TableWarning, match="look alike"):
            assert one_spelling({one: 3, other: 5}) == {one: one, other: other}


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("two", [("a", "b"), (0, 1), (0, "b"), (False, True)])
def test_a_missing_label_is_no_label_in_a_column_of_any_kind(two, missing):
    y = [*two, two[0]] * 4 + [missing]
    for column in (y, tuple(y), np.array([*y, None], object)[:-1], pd.Series(y)):
        with pytest.raises(ValueError, match="no label at all: row 12"):
            read_labels(column, None, None, 13, several=True)
        whole = column[:12]
        classes = read_labels(whole, None, None, 12, several=True).classes
        assert set(classes.tolist()) == set(np.array([*two, None], object)[:-1].tolist())
        assert rare_rows(whole).tolist() == [False, True, False] * 4


def test_nothing_is_said_of_labels_that_differ():
    with warnings.catch_warnings(action="error"):
        one_spelling({"a": 1, "b": 2, "\u0431": 3, "10": 4, "100": 5})


def test_a_cell_without_a_visible_character_is_no_label(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,yes\n2,\u200b\n3,no\n4,\u00ad no\u200b\n")
    data = read_training_set(open_table(tmp_path / "t.csv"), FitSettings(target="y"))
    assert data.n_unlabelled == 1
    assert data.target.label_counts == {"no": 2, "yes": 1}


QUICK = RareClassifier(members=["mibc"], verbose=False)


@pytest.mark.parametrize(
    ("model", "several"),
    [
        (RankRC(pos_label="YES"), False),
        (CalibratedRanker(LogisticRegression(), cv=2), False),
        (QUICK, True),
    ],
    ids=lambda given: type(given).__name__,
)
def test_an_estimator_knows_its_labels_in_other_spellings(model, several):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(["no", "Yes", "yes", "no "], [60, 20, 10, 5]))
    X = rng.normal(size=(len(y), 2)) + (np.char.lower(y) == "yes")[:, None]
    if several:
        y = np.append(y, ["maybe"] * 15)
        X = np.append(X, rng.normal(3.0, size=(15, 2)), axis=0)
    model.fit(X, y)
    assert model.classes_.tolist() == ["Yes", *["maybe"] * several, "no"]
    is_rare = ~np.isin(y, ["no", "no "])
    assert model.score(X, y) == roc_auc(is_rare, model.score_samples(X))
    other = np.char.upper(y)
    assert model.score(X, other) == model.score(X, y)


@pytest.mark.parametrize(
    ("labels", "value"),
    [([1.0, 1.0], 1.0), (["a", "a"], "a"), ([0.0, np.inf], np.inf), ([1.5, 2.5], None)],
)
def test_labels_that_are_no_two_classes_are_refused_by_kind_from_all(labels, value, tmp_path):
    rows = pl.DataFrame({"x": [k % 7 + 0.5 for k in range(20)], "y": labels * 10})
    rows.write_csv(tmp_path / "t.csv")
    rows.write_parquet(tmp_path / "t.parquet")
    columns = (rows["y"], rows["y"].to_numpy(), rows["y"].to_arrow(), rows["y"].to_list())
    for column in columns:
        with refused(ErrorKind.LABELS):
            read_labels(column, None, None, 20, several=True)
    for name in ("t.csv", "t.parquet"):
        with refused(ErrorKind.LABELS) as caught:
            read_training_set(open_table(tmp_path / name), FitSettings(target="y"))
        assert value is None or label_value(str(caught.value.value)) == value
