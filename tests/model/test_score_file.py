"""Scores of a file: batch by batch, and the highest rows beside a sort of all of them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from draws import draws
from faults import refused
from made_models import made_model
from rareclass import RankRC, RareClassifier
from rareclass.encoding import encoders
from rareclass.encoding.encoders import SparseEncoder, TableEncoder, TypedColumns
from rareclass.errors import ErrorKind
from rareclass.explain import explaining
from rareclass.model import ScoreSettings
from rareclass.model import table_scorer as scored
from rareclass.model.decisions import RareDecision
from rareclass.model.drift import InputSummary
from rareclass.model.explained import _class_reasons, explainer_of
from rareclass.model.facts import RareCases
from rareclass.model.score_file import Part, ScoreWriter, _Best
from rareclass.model.targets import RareClassFacts
from rareclass.tables.columns import Column
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import open_rows, open_table


@pytest.mark.sampled(0)
@draws(60)
@given(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=5), st.integers(1, 8))
def test_the_highest_are_those_of_a_stable_sort(batches, size):
    best = _Best(size)
    first = 0
    for scores in batches:
        places = range(first, first + len(scores))
        rows = pl.DataFrame({"place": list(places)}, {"place": pl.Int64})
        best.add(np.array(scores, dtype=float), rows)
        first += len(scores)
    everything = np.array([score for scores in batches for score in scores], dtype=float)
    expected = np.argsort(-everything, kind="stable")[:size]
    np.testing.assert_array_equal(best.places, expected)
    if best.rows is not None:
        assert best.rows["place"].to_list() == expected.tolist()


def parts(batches):
    first, made = 1, []
    for scores in batches:
        rows = np.arange(first, first + len(scores))
        columns = {"row": rows, "score": scores, "percentile": np.zeros(len(scores))}
        made.append(Part(pl.DataFrame(columns), pl.DataFrame({"x": rows * 10})))
        first += len(scores)
    return made


def told(rows):
    return rows.select(twice=2 * pl.col("x"))


@pytest.mark.parametrize(
    ("top", "threshold", "called"),
    [(None, 2.0, [4, 5]), (3, 2.0, [2, 4, 5]), (99, 2.0, [1, 2, 3, 4, 5]), (None, 1.0, [2, 4, 5])],
)
def test_called_rows_are_told_of_and_no_others(tmp_path, top, threshold, called):
    decision = RareDecision(RareClassFacts("y", "yes", "no"), np.array([threshold]))
    writer = ScoreWriter(decision, ScoreSettings(top=top), told)
    n_called = writer.write(parts([[0.5, 2.0], [], [1.0, 3.0, 4.0]]), tmp_path / "s.parquet")
    assert n_called.tolist() == [5 - len(called), len(called)]
    table = pl.read_parquet(tmp_path / "s.parquet")
    assert table.columns == ["row", "score", "called_rare", "percentile", "twice"]
    assert table["row"].to_list() == [1, 2, 3, 4, 5]
    assert table.filter("called_rare")["row"].to_list() == called
    expected = [20 * row if row in called else None for row in range(1, 6)]
    assert table["twice"].to_list() == expected
    assert [path.name for path in tmp_path.iterdir()] == ["s.parquet"]


N_ROWS = 7
X = np.random.default_rng(0).normal(size=(80, 2))
Y = np.arange(80) % 8 == 0


@pytest.fixture(scope="module")
def model():
    encoder = TableEncoder([Column(name, "number", "standardised", "number") for name in "ab"])
    rows = encoder.fit_transform(pl.DataFrame(X, schema=["a", "b"]), Y)
    return made_model(encoder, RankRC(lam=1.0).fit(rows, Y))


def write(path, cells):
    pl.DataFrame({"a": list(map(str, cells)), "b": [0.5] * len(cells)}).write_csv(path)
    return path


@pytest.mark.parametrize("in_a_batch", [2, 3, 50])
def test_a_cell_that_cannot_be_read_is_named_by_its_row_in_the_file(
    model, tmp_path, monkeypatch, in_a_batch
):
    monkeypatch.setattr(scored, "batch_rows_for", lambda n_columns: in_a_batch)
    for place in range(N_ROWS):
        cells = [*range(N_ROWS)]
        path = write(tmp_path / "new.csv", [*cells[:place], "word", *cells[place + 1 :]])
        with refused(ErrorKind.CELL, column="a", row=place + 1, value="word"):
            list(model.score_batches(open_table(path), [], InputSummary()))
    summary = InputSummary()
    file = open_table(write(tmp_path / "new.csv", cells))
    batches = [*model.score_batches(file, [], summary)]
    assert [len(each.scores) for each in batches[:-1]] == [in_a_batch] * (len(batches) - 1)
    assert summary.n_rows == N_ROWS == sum(len(each.scores) for each in batches)


class FirstFeature:
    def score_samples(self, rows):
        first = rows.toarray()[:, 0]
        return np.where(first == 1.0, np.nan, first)


def test_sparse_rows_are_counted_and_numbered(tmp_path, monkeypatch):
    path = tmp_path / "new.svm"
    whole = SvmlightFile.batches
    monkeypatch.setattr(SvmlightFile, "batches", lambda self, *given: whole(self, *given, 3))
    encoder = SparseEncoder(zero_based=False)
    encoder.largest_, encoder.unit_rows_ = np.array([2.0, 1.0]), False
    model = made_model(encoder, FirstFeature())
    model = replace(model, facts=replace(model.facts, format="svmlight"))
    path.write_text("".join(f"1 1:{k} 2:1\n" for k in (0, 1, 0, 1, 1, 0, 1)))
    summary = InputSummary()
    batches = [*model.score_batches(SvmlightFile(path), ["label"], summary)]
    assert [each.scores.tolist() for each in batches] == [[0, 0.5, 0], [0.5, 0.5, 0], [0.5]]
    assert summary.n_rows == N_ROWS
    path.write_text("".join(f"1 1:{k} 2:1\n" for k in (0, 1, 0, 1, 1, 0, 2)))
    with refused(ErrorKind.NOT_FINITE, row=7):
        list(model.score_batches(SvmlightFile(path), [], InputSummary()))


@pytest.mark.parametrize("kind", [TableEncoder, TypedColumns])
def test_a_row_is_read_into_a_table_once(kind, monkeypatch):
    words = pl.Series("word", np.where(X[:, 0] > 0, "u", "v"))
    frame = pl.DataFrame({"a": X[:, 0], "word": words})
    columns = [Column("a", "number", "", "number"), Column("word", "category", "", "string")]
    encoder = TableEncoder(columns)
    estimator = RankRC(lam=1.0).fit(encoder.fit_transform(frame, Y), Y)
    if kind is TypedColumns:
        members = ["logistic regression"]
        estimator = RareClassifier(members=members, cv=2, n_jobs=1).fit(frame, Y)
        encoder = TypedColumns(columns, estimator.statistics_)
    read = []
    whole = encoders.typed_table
    watched = lambda rows, of: read.append(type(rows)) or whole(rows, of)  # noqa: E731
    monkeypatch.setattr(encoders, "typed_table", watched)
    model = made_model(encoder, estimator)
    summary = model.new_summary()
    new = open_rows(frame.with_columns(pl.col("a") + 100, word=pl.lit("new")))
    [batch] = model.score_batches(new, (), summary)
    assert read.count(pl.DataFrame) == 1
    assert (len(batch.scores), summary.unseen_values["word"], summary.outside["a"]) == (80, 80, 80)


@draws(40)
@given(
    arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.integers(-3, 3)),
    st.integers(1, 3),
)
def test_reasons_are_the_columns_with_the_largest_effects_above_zero(effects, k):
    names = list("abcd")[: effects.shape[1]]
    told = SimpleNamespace(columns=names, contributions=effects)
    content = SimpleNamespace(estimator=SimpleNamespace(has_several=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explaining, "explain_class", lambda model, X: told)
        columns = _class_reasons(content, None, k)
    for row, of_row in enumerate(effects):
        ranked = sorted(zip(-of_row, names, strict=True), key=lambda each: each[0])
        expected = [(name, -effect) for effect, name in ranked if effect < 0.0][:k]
        found = [(columns[2 * place][row], columns[2 * place + 1][row]) for place in range(k)]
        assert found == expected + [(None, None)] * (k - len(expected))
    saw_one_class = SimpleNamespace(estimator=SimpleNamespace(has_several=False))
    assert _class_reasons(saw_one_class, effects, k) == [[None] * len(effects)] * (2 * k)


@pytest.mark.parametrize(
    ("cases", "kind"),
    [
        (None, None),
        (RareCases(np.array([1, 2])), pl.Int64),
        (RareCases(np.array([1, 2]), names=("a", "b")), pl.String),
    ],
)
def test_a_file_without_rows_has_the_columns_of_one_with_rows(cases, kind):
    content = SimpleNamespace(
        decision=None, facts=SimpleNamespace(method=None, format="csv"),
        cases=cases, rare_classes=None,
    )  # fmt: skip
    found = explainer_of(content, 2)(pl.DataFrame({"x": []})).schema
    of_case = {} if kind is None else {"case": kind, "distance": pl.Float64}
    assert dict(found) == {
        f"{name}_{place}": dtype
        for of_each in ({"reason": pl.String, "value": pl.String, "effect": pl.Float64}, of_case)
        for place in (1, 2)
        for name, dtype in of_each.items()
    }
