"""The door of every estimator: columns, rows anywhere, settings, labels, and who is warned."""

import copy
import inspect
import pickle
import sys
import warnings
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import product
from pathlib import Path

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from faults import refused
from rareclass import MIBC, MIBCCV, RACH, RACHCV, OrdinalRankRC, RankRC, RankRCCV, StochasticRankRC
from rareclass.decide import CalibratedRanker, DecisionClassifier
from rareclass.errors import ErrorKind
from rareclass.estimators.estimator import FitsRows, read_features, same_columns, settings_of
from rareclass.findings import Finding, finding_of, warn
from rareclass.folds.dealing import group_numbers
from rareclass.labels.partial_labels import StreamLabels
from rareclass.labels.weights import row_weights
from rareclass.online import CBR
from rareclass.rows import from_arrays, from_table
from registered import ESTIMATORS, ONLINE

X = np.random.default_rng(0).normal(size=(60, 2))
Y = (np.arange(60) < 9).astype(int)
WORDS = np.array(["fine", "rare"])[Y]

each_estimator = pytest.mark.parametrize("model", ESTIMATORS, ids=lambda one: type(one).__name__)


@pytest.mark.sampled(23)
@each_estimator
@pytest.mark.parametrize("value", ["a", "1", np.datetime64(0, "D"), 1j])
def test_weights_that_are_no_numbers_are_refused_by_row(model, value):
    some = np.array([1.0] * 59 + [value], dtype=object)
    for weight, row in ((np.full(60, value), 0), (some, 59)):
        with refused(ErrorKind.CELL, column="sample_weight", row=row):
            clone(model).fit(X, Y, sample_weight=weight)


@pytest.mark.sampled(5)
@each_estimator
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_an_interrupt_in_a_loop_of_somebody_else_is_passed_on(model, share):
    calls, stop_at = 0, np.inf

    def count(frame, event, _):
        nonlocal calls
        calls += event == "call" and "/rareclass/" in frame.f_code.co_filename
        is_generator = frame.f_code.co_flags & inspect.CO_GENERATOR  # lost where one is closed
        if calls >= stop_at and not is_generator:
            raise KeyboardInterrupt

    def loop(folds):
        sys.setprofile(count)
        try:
            with warnings.catch_warnings(action="ignore"):
                cross_val_score(model, X, Y, cv=[(np.arange(60), np.arange(60))] * folds)
        finally:
            sys.setprofile(None)

    loop(1)  # compiles, fills caches
    calls = 0
    loop(1)
    calls, stop_at = 0, calls * share
    with pytest.raises(KeyboardInterrupt):
        loop(2)


@pytest.mark.sampled(6)
@each_estimator
@pytest.mark.filterwarnings("ignore")
def test_what_fails_to_learn_leaves_the_estimator_as_it_was(model):
    wide = pd.DataFrame(np.column_stack([X, X[:, 0]]), columns=["a", "b", "c"])
    infinite = wide.mask(wide == X[17, 1], np.inf)
    unlabelled = np.where(np.arange(60) == 5, np.inf, Y)
    calls = [(infinite, Y, "infinit"), (wide, Y[:-1], "60"), (wide, unlabelled, "row 5")]
    for each in (clone(model), clone(model).fit(X, Y)):
        before = dict(vars(each))
        learn = [each.fit]
        if hasattr(model, "partial_fit") and "classes_" not in before:
            learn.append(partial(each.partial_fit, classes=[0, 1]))
        for call, (*given, said) in product(learn, calls):
            with pytest.raises(ValueError, match=said):
                call(*given)
            assert vars(each).keys() == before.keys()
            assert all(vars(each)[name] is value for name, value in before.items())


TABLE = pd.DataFrame(X, columns=["a", "b"])


@pytest.mark.sampled(5)
@each_estimator
@pytest.mark.filterwarnings("ignore")
def test_every_estimator_takes_the_same_tables(model):
    seeded = {"random_state": 0} if "random_state" in model.get_params() else {}
    model = clone(model).set_params(**seeded)
    scores = clone(model).fit(TABLE, Y).score_samples(TABLE)
    for form in (pl.from_pandas, pa.RecordBatch.from_pandas, nw.from_native, pa.table):
        table = form(TABLE)
        fitted = clone(model).fit(table, Y)
        assert fitted.feature_names_in_.tolist() == ["a", "b"]
        np.testing.assert_allclose(fitted.score_samples(table), scores, rtol=1e-9, atol=1e-9)
    lazy = [pl.from_pandas(TABLE).lazy(), nw.from_native(pl.from_pandas(TABLE)).lazy()]
    none = [TABLE.to_dict("list"), TABLE.to_records(index=False)]
    is_wrapper = isinstance(model, DecisionClassifier | CalibratedRanker)  # which takes texts, too
    for given in [*lazy, *none[: 0 if is_wrapper else 2]]:
        for call in (partial(clone(model).fit, given, Y), partial(fitted.score_samples, given)):
            with refused(ErrorKind.SHAPE):
                call()


def test_what_is_masked_is_missing():
    hidden = np.arange(60) == 17
    masked = np.ma.masked_array(X, np.column_stack([hidden & False, hidden]))
    y, weight = (np.ma.masked_array(each, hidden) for each in (Y, np.ones(60)))
    for given, kind, column in (
        ((masked, Y), ErrorKind.NOT_FINITE, "1"),
        ((X, y), ErrorKind.LABELS, None),
        ((X, Y, weight), ErrorKind.CELL, "sample_weight"),
    ):
        with refused(kind, column=column, row=17):
            RankRC().fit(*given)
    with refused(ErrorKind.CELL, column="groups", row=17):
        group_numbers(y, 60)


@pytest.mark.parametrize("kind", ["M8[D]", "m8[h]"])
def test_times_are_no_numbers_in_an_array_either(kind):
    for rows in (X.astype(kind), pd.DataFrame(X.astype(kind).astype(f"{kind[:2]}[us]"))):
        with pytest.raises(ValueError, match=r"column '(x0|0)' holds D.*, not numbers"):
            RankRC().fit(rows, Y)


KINDS = [
    RankRC(),
    RankRCCV(lams=[1.0, 0.1], cv=2, random_state=0),
    OrdinalRankRC(levels=["fine", "rare"]),
    StochasticRankRC(random_state=0),
    MIBC(),
    MIBC(covariance="diagonal", ridge=0.1),
    MIBC(covariance="factor", ridge=0.1, n_factors=1, random_state=0),
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


@pytest.mark.sampled(13)
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
        rows = from_table(path, "y", weight="w", scratch=tmp_path)
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


@pytest.mark.sampled(7)
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


FORMS = {
    "Fortran": np.asfortranarray,
    "backwards": lambda rows: rows[::-1].copy()[::-1],
    "list": np.ndarray.tolist,
    "CSR": sparse.csr_array,
    "CSR matrix": sparse.csr_matrix,
    "CSC": sparse.csc_array,
    "float32": np.float32,
}


def frame(rows):
    return pd.DataFrame(rows, columns=["a", "b"])


def decimals(rows):
    return {name: [Decimal(value) for value in column] for name, column in frame(rows).items()}


def decimals_of(kind):
    return lambda rows: {name: pa.array(each, kind) for name, each in decimals(rows).items()}


NAMED = {
    "pandas": frame,
    "nullable floats": lambda rows: frame(rows).astype("Float64"),
    "floats of Arrow": lambda rows: frame(rows).astype("double[pyarrow]"),
    "decimals of Arrow": lambda rows: pa.table(decimals_of(pa.decimal128(9, 7))(rows)).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "decimals as objects": lambda rows: pd.DataFrame(decimals(rows)),
    "floats as objects": lambda rows: frame(rows).astype(object),
    "sparse": lambda rows: frame(rows).astype(pd.SparseDtype(float)),
    "categories of numbers": lambda rows: frame(rows).astype("category"),
    "one column in another type": lambda rows: frame(rows).astype({"b": "double[pyarrow]"}),
    "polars": lambda rows: pl.DataFrame(rows, schema=["a", "b"]),
    "decimals of polars": lambda rows: pl.DataFrame(decimals(rows)),
    "objects of polars": lambda rows: pl.DataFrame(
        {name: pl.Series(column.tolist(), dtype=pl.Object) for name, column in frame(rows).items()}
    ),
    "pyarrow": lambda rows: pa.table(dict(zip("ab", rows.T, strict=True))),
    "decimals of 256 bits": lambda rows: pa.table(decimals_of(pa.decimal256(50, 7))(rows)),
}


@pytest.mark.sampled(13)
@every_kind
@pytest.mark.parametrize("form", [*FORMS, *NAMED])
@pytest.mark.filterwarnings("ignore:the ball of")
def test_forms_of_rows_and_threads_do_not_matter(kind, form):
    rows = np.round(X * 128) / 128  # the same table in float32 and in seven digits
    rows[np.abs(rows) < 0.1] = 0.0
    y = np.where(np.arange(60) % 4 == 3, -1, Y) if isinstance(kind, RACH | RACHCV) else WORDS
    exact = {"tol": 1e-9} if "tol" in kind.get_params() else {}
    threads = {"n_jobs": 2} if "n_jobs" in kind.get_params() else {}
    given = (FORMS | NAMED)[form](rows)
    model = clone(kind).set_params(**exact).fit(rows, y)
    other = clone(kind).set_params(**exact, **threads).fit(given, y)
    wanted, is_narrow = model.score_samples(rows), form == "float32"
    atol = np.abs(wanted).max() * (1e-3 if is_narrow else 1e-5)
    np.testing.assert_allclose(other.score_samples(given), wanted, atol=atol)
    if form in NAMED:
        assert other.feature_names_in_.tolist() == ["a", "b"]
    else:  # learned from one form, asked about another
        np.testing.assert_allclose(other.score_samples(rows), wanted, atol=atol)
        np.testing.assert_allclose(model.score_samples(given), wanted, atol=atol)
    sure = np.abs(wanted - getattr(model, "offset_", 0.0)) > atol
    if isinstance(kind, OrdinalRankRC):
        sure = np.abs(wanted - model.thresholds_) > atol
    np.testing.assert_array_equal(other.predict(given)[sure], model.predict(rows)[sure])
    for name in ("transduction_", "rows_"):
        np.testing.assert_array_equal(getattr(other, name, []), getattr(model, name, []))
    found = [part.dtype for name, part in learned(other).items() if name == "landmarks_"]
    assert found in ([], [np.dtype(np.float32 if is_narrow else np.float64)])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_truth_values_are_0_and_1(make):
    rows = np.column_stack([X[:, 0], X[:, 1] > 0])
    expected = RankRC().fit(rows, Y).score_samples(rows)
    truth = pd.Series(X[:, 1] > 0).astype("bool[pyarrow]")
    for table in (make({"a": X[:, 0], "b": X[:, 1] > 0}), frame(rows).assign(b=truth)):
        np.testing.assert_allclose(RankRC().fit(table, Y).score_samples(table), expected)


@pytest.mark.parametrize("kind", ["Float64", "double[pyarrow]", "object"])
def test_a_missing_number_of_pandas_is_named_by_row_and_column(kind):
    table = frame(X).astype(kind)
    table.loc[17, "b"] = None if kind == "object" else pd.NA
    for model in (RankRC(), MIBC(), StochasticRankRC()):
        with pytest.raises(ValueError, match=r"NaN: row 17, column 'b'"):
            model.fit(table, Y)


@pytest.mark.parametrize("words", ["object", "string", "string[pyarrow]", "category"])
def test_a_column_of_words_is_named(words):
    table = frame(X).assign(kind=pd.Series(["x", "y"] * 30, dtype=words))
    for model in (RankRC(), MIBC(), CBR()):
        with pytest.raises(ValueError, match=r"column 'kind' holds .*, not numbers"):
            model.fit(table, Y)


TWO_CLASSES = [kind for kind in KINDS if not isinstance(kind, OrdinalRankRC | RACH | RACHCV)]
TWO_CLASSES += [learner for name, learner in ONLINE.items() if name != "cbr"]


@pytest.mark.sampled(14)
@pytest.mark.parametrize("kind", TWO_CLASSES, ids=str)
@pytest.mark.parametrize(
    ("common", "rare"),
    [(0, 1), (1, 0), (False, True), (True, False), ("ok", "fraud"), ("no", "yes"), (-1, 7)],
)
def test_any_labels_whichever_sorts_first(kind, common, rare):
    y = np.where(Y == 1, rare, common)
    model, reference = clone(kind).fit(X, y), clone(kind).fit(X, Y)
    assert model.pos_label_ == rare
    np.testing.assert_array_equal(model.score_samples(X), reference.score_samples(X))
    decision, predicted = model.decision_function(X), model.predict(X)
    np.testing.assert_array_equal(predicted, model.classes_[(decision > 0).astype(int)])
    np.testing.assert_array_equal(predicted == rare, reference.predict(X) == 1)
    # The area under the curve, which must not see the ranking upside down.
    area = roc_auc_score(Y, model.score_samples(X))
    assert model.score(X, y) == reference.score(X, Y) == pytest.approx(area)
    turned = clone(kind).set_params(pos_label=common).fit(X, y)
    assert turned.pos_label_ == common
    assert turned.score(X, y) > 0.5
    if hasattr(kind, "partial_fit"):
        stream, plain = clone(kind).set_params(pos_label=rare), clone(kind)
        stream.partial_fit(X, y, classes=[rare, common])
        wanted = plain.partial_fit(X, Y, classes=[0, 1]).score_samples(X)
        np.testing.assert_array_equal(stream.score_samples(X), wanted)


DRAWN = [
    *(kind for kind in KINDS if "random_state" in kind.get_params()),
    RankRC(landmarks=("rare", 4)),
    RACH(C2=0.01, n_balls=2, filter=False),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", DRAWN, ids=str)
@pytest.mark.filterwarnings("ignore:the ball of")
def test_the_same_seed_is_the_same_model_and_the_global_one_is_left_alone(kind):
    y, state = Y if isinstance(kind, RACH | RACHCV) else WORDS, np.random.get_state()[1].copy()
    one, two = (clone(kind).set_params(random_state=7).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.score_samples(X), two.score_samples(X))
    np.testing.assert_array_equal(np.random.get_state()[1], state)


STREAMS = [kind for kind in KINDS if hasattr(kind, "partial_fit")]


@pytest.mark.parametrize("kind", STREAMS, ids=str)
@pytest.mark.parametrize(
    "through", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_a_copy_goes_on_like_the_original(kind, through):
    model = clone(kind).partial_fit(X[:40], Y[:40], classes=[0, 1])
    other = through(model)
    np.testing.assert_array_equal(other.score_samples(X), model.score_samples(X))
    for each in (other, model):
        each.partial_fit(X[40:], Y[40:])
    np.testing.assert_array_equal(other.score_samples(X), model.score_samples(X))


@pytest.mark.parametrize("kind", STREAMS, ids=str)
@pytest.mark.parametrize(
    ("rows", "y", "classes", "message"),
    [
        (slice(3), [0, 1, 7], None, r"row 2: label 7 is not among the classes \[0, 1\]"),
        (slice(2), [0, np.nan], None, "no label at all: row 1"),
        (slice(2), [0, 1], [1, 2], r"classes=\[1, 2\] is not \[0, 1\] as before"),
        (slice(2), [0], None, "inconsistent numbers of samples"),
        ((slice(2), slice(1)), [0, 1], None, "1 features, but .* is expecting 2"),
    ],
)
def test_parts_of_a_stream_that_are_refused_change_nothing(kind, rows, y, classes, message):
    model = clone(kind)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, Y)
    scores = model.partial_fit(X, Y, classes=[0, 1]).score_samples(X)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X[rows], y, classes=classes)
    np.testing.assert_array_equal(model.score_samples(X), scores)


def test_columns_are_remembered_and_compared():
    table = pd.DataFrame(X, columns=["a", "b"])
    model = RankRC()
    assert read_features(model, table).n_features == 2
    for twice in (table.set_axis(["a", "a"], axis=1), pa.table([*X.T], names=["a", "a"])):
        with refused(ErrorKind.COLUMN_NAMES, column="a"):
            RankRC().fit(twice, Y)
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


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0, "2", None, pd.NA, 1j, Decimal("-1")])
def test_a_weight_that_is_none_is_named_by_its_row(wrong):
    weight = np.ones(60, object)
    weight[17] = wrong
    numbers = [weight.astype(float)] if isinstance(wrong, float) else []
    for given in (weight, weight.tolist(), pd.Series(weight, range(9, 69)), *numbers):
        with refused(ErrorKind.CELL, column="sample_weight", row=17):
            RankRC().fit(X, Y, given)


@pytest.mark.parametrize("deep", [False, True])
def test_a_warning_names_the_line_that_called_the_package(deep):
    rare = np.arange(60) < 3
    with warnings.catch_warnings(record=True, action="always") as caught:
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
