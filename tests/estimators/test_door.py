"""The door of every estimator: columns, rows anywhere, settings, labels, and who is warned."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rareclass import (
    MIBC,
    MIBCCV,
    RACH,
    RACHCV,
    OrdinalRankRC,
    RankRC,
    RankRCCV,
    StochasticRankRC,
)
from rareclass.estimators.estimator import FitsRows, read_features, same_columns, settings_of
from rareclass.findings import Finding, finding_of, warn
from rareclass.labels.two_classes import StreamLabels, row_weights
from rareclass.online import CBR
from rareclass.rows import from_arrays, from_parquet

X = np.random.default_rng(0).normal(size=(60, 2))
Y = (np.arange(60) < 9).astype(int)
WORDS = np.array(["fine", "rare"])[Y]


KINDS = [
    RankRC(),
    RankRCCV(lams=[1.0, 0.1], cv=2, random_state=0),
    OrdinalRankRC(levels=["fine", "rare"]),
    StochasticRankRC(random_state=0),
    MIBC(),
    MIBC(covariance="diagonal"),
    MIBC(covariance="factor", n_factors=1, random_state=0),
    MIBCCV(Cs=[0.1, 1.0], cv=2, random_state=0),
    RACH(C2=0.01),
    RACH(C2=0.01, kernel="gaussian"),
    RACHCV(C1s=[1.0, 3.0], cv=2, n_balls=1, random_state=0),
    CBR(random_state=0),
]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


def learned(model):
    """Fitted arrays by name, those of a search included, but for counts of steps."""
    parts = {**vars(model), **getattr(model, "cv_results_", {})}
    parts.pop("mean_n_iter", None)
    return {name: part for name, part in parts.items() if isinstance(part, np.ndarray)}


@every_kind
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.filterwarnings("ignore:the ball of")
def test_rows_anywhere_give_the_model_of_rows_in_memory(kind, on_disk, tmp_path):
    weight = np.resize([1.0, 2.0], 60)
    y = np.where(np.arange(60) % 4 == 3, -1, Y) if isinstance(kind, RACH | RACHCV) else WORDS
    table = pd.DataFrame(X, columns=["a", "b"])
    model, other = clone(kind).fit(X, y, weight), clone(kind)
    assert type(kind).fit_rows is FitsRows.fit_rows
    rows = from_arrays(table, y, weight)
    if on_disk:
        path = tmp_path / "rows.parquet"
        table.assign(y=y, w=weight).to_parquet(path, row_group_size=25)
        rows = from_parquet(path, "y", weight="w", scratch=tmp_path)
    with rows:
        other.fit_rows(rows)
        found, wanted = other.score_samples(rows), model.score_samples(X)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(other.predict(rows), model.predict(X))
        assert other.score(rows, rows.y) == pytest.approx(model.score(X, y))
    for each in (other, getattr(other, "best_estimator_", other)):
        assert each.feature_names_in_.tolist() == ["a", "b"]
    found = learned(other)
    for name, part in learned(model).items():
        if part.dtype.kind == "f":
            np.testing.assert_allclose(found[name], part, rtol=1e-7, atol=1e-9, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], part, err_msg=name)


@every_kind
@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
@pytest.mark.filterwarnings("ignore")
def test_missing_and_infinite_values_are_named_by_row_and_column(kind, value, word):
    wrong = X.copy()
    wrong[17, 1] = value
    tables = {np.asarray: "1", sparse.csr_array: "1"}
    tables[lambda rows: pd.DataFrame(rows, columns=["a", "b"])] = "'b'"
    for make, column in tables.items():
        model = clone(kind).fit(make(X), WORDS)
        calls = [lambda rows: clone(kind).fit(rows, WORDS), model.score_samples, model.predict]
        if hasattr(kind, "partial_fit"):
            calls.append(
                lambda rows: clone(kind).partial_fit(rows, WORDS, classes=["fine", "rare"])
            )
        for call in calls:
            with pytest.raises(ValueError, match=rf"(?s){word}.*row 17, column {column}"):
                call(make(wrong))


def test_columns_are_remembered_and_compared():
    table = pd.DataFrame(X, columns=["a", "b"])
    model = RankRC()
    assert read_features(model, table).n_features == 2
    other = MIBC()
    same_columns(other, model)
    assert other.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names should match"):
        read_features(other, table.rename(columns={"a": "c"}), reset=False)
    with pytest.raises(ValueError, match="feature"):
        read_features(other, table[["a"]], reset=False)


def test_settings_are_the_parameters_that_they_have_fields_for():
    @dataclass(frozen=True)
    class Wanted:
        lam: float
        tol: float

    assert settings_of(Wanted, RankRC(lam=3.0, tol=0.1)) == Wanted(3.0, 0.1)


def test_labels_of_a_stream():
    labels = StreamLabels.named(["ok", "fraud"], None)
    assert (labels.classes.tolist(), labels.rare) == (["fraud", "ok"], "ok")
    labels = StreamLabels.named(["ok", "fraud"], "fraud")
    assert StreamLabels.of_call(["ok", "fraud"], "fraud", None).rare == labels.rare
    assert StreamLabels.of_call(None, None, labels) is labels
    assert StreamLabels.of_call(["fraud", "ok"], None, labels) is labels
    with pytest.raises(ValueError, match="as before"):
        StreamLabels.of_call(["fraud", "good"], None, labels)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        StreamLabels.of_call(None, None, None)
    y = np.array(["fraud", None, "ok"], dtype=object)
    assert labels.signs(y, 3, unlabelled=True).tolist() == [1, 0, -1]
    with pytest.raises(ValueError, match=r"row 1\. Drop the rows without a label, or wait\."):
        labels.signs(y, 3, instead=", or wait")
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[4, 3\]"):
        labels.signs(y, 4)
    with pytest.raises(ValueError, match="'maybe' is not among the classes"):
        labels.signs(["fraud", "maybe"], 2)
    with pytest.raises(ValueError, match="y is None"):
        labels.signs(None, 2)
    with pytest.raises(ValueError, match="pos_label='x' is not among"):
        StreamLabels.named(["ok", "fraud"], "x")


def test_only_ratios_of_weights_count():
    assert row_weights(None, 3) is row_weights(None, 3, relative=True) is None
    assert row_weights([1e300, 2e300], 2, relative=True).tolist() == [0.5, 1.0]
    with pytest.raises(ValueError, match="at least one non-zero"):
        row_weights([0.0, 0.0], 2, relative=True)


@pytest.mark.parametrize("deep", [False, True])
def test_a_warning_names_the_line_that_called_the_package(deep):
    rare = np.arange(60) < 3
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = RankRCCV([1.0], cv=5) if deep else RankRC(lam=1e9, penalty="l1")
        model.fit(X, rare)
    assert caught
    assert all(Path(warning.filename) == Path(__file__) for warning in caught)


def test_the_finding_stands_behind_the_words():
    found = Finding("too few", {"n": 3}, {"lam": "larger"})
    with pytest.warns(UserWarning, match="words") as caught:
        warn("words", finding=found)
    assert finding_of(caught[0].message) is found
    assert finding_of(UserWarning("plain")) is None


MODELS = [RankRC(lam=0.5), MIBC(C=1.0), RankRCCV(lams=[1.0, 0.5], cv=2), StochasticRankRC()]


@pytest.mark.parametrize("model", [*MODELS, make_pipeline(StandardScaler(), RankRC(lam=0.5))])
def test_the_diagram_is_drawn_before_and_after_fitting(model):
    for shown in (clone(model), clone(model).fit(X, np.where(Y == 1, "fraud & co", "ok"))):
        drawn = shown._repr_mimebundle_()["text/html"]
        assert type(model).__name__ in drawn
