"""Views of a table: bounded, centred, the same row by row, and nothing of a row's own label."""

import re

import numpy as np
import pandas as pd
import pytest

from encoding.label_tables import learned, seen
from rareclass.encoding import log_odds as category_statistics
from rareclass.encoding.bounded_numbers import HOWS
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.typed_table import read_table
from rareclass.encoding.views import VIEWS, DenseView

N = 600
WAYS = (*HOWS, "raw")
RNG = np.random.default_rng(0)
RARE = RNG.random(N) < 0.1
FOLD = RNG.integers(0, 5, N)
WEIGHT = RNG.integers(0, 3, N).astype(float)
START = pd.Timestamp("2020-01-01")


def frame():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "number": rng.normal(size=N) + RARE,
            "gaps": np.where(rng.random(N) < 0.2, np.nan, np.exp(rng.normal(size=N))),
            "few": rng.choice(list("abc"), N),
            "two": np.where(rng.random(N) < 0.1, "yes", "no"),
            "many": [f"k{k}" for k in rng.integers(0, 60, N)],
            "begin": START + pd.to_timedelta(rng.integers(0, 10**7, N), unit="s"),
            "end": START + pd.to_timedelta(rng.integers(0, 400, N), unit="D"),
        }
    )
    table.loc[::7, "few"] = None
    table.loc[::9, "end"] = pd.NaT
    return table


TABLE = read_table(frame())


@pytest.fixture(scope="module", params=WAYS)
def fitted(request):
    view = DenseView(request.param)
    return view, learned(view, TABLE, RARE, None, FOLD)


def test_every_feature_has_a_name_and_a_column(fitted):
    view, X = fitted
    assert X.shape == (N, len(view.feature_names_))
    assert X.flags.c_contiguous
    assert len(set(view.feature_names_)) == X.shape[1]
    for name, source in zip(view.feature_names_, view.source_column_, strict=True):
        assert name.startswith(TABLE.names[source])
    assert set(view.source_column_) == set(range(len(TABLE.columns)))


def test_bounded_features_are_finite_and_centred(fitted):
    view, X = fitted
    if view.numbers != "raw":
        assert np.isfinite(X).all()
        dense = [k for k, name in enumerate(view.feature_names_) if "gaps" not in name]
        np.testing.assert_allclose(X[:, dense].mean(axis=0), 0, atol=0.02)
        assert X.std(axis=0).max() < 1.1


def test_rows_are_the_same_alone_and_together_and_what_looks_at_no_label_as_in_training(fitted):
    view, X = fitted
    again = seen(view, TABLE)
    # Log-odds and counts are those of the other folds in training.
    names = view.feature_names_
    plain = [k for k, name in enumerate(names) if "log-odds" not in name and "count" not in name]
    np.testing.assert_array_equal(again[:, plain], X[:, plain])
    alone = np.vstack([seen(view, TABLE.take([k])) for k in range(40)])
    np.testing.assert_array_equal(alone, again[:40])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("far", [1e6, 1e30, -1e30])
@pytest.mark.parametrize("name", ["number", "gaps"])
def test_a_number_beyond_training_is_the_end_of_training(fitted, name, far):
    view, _ = fitted
    end = frame()[name].max() if far > 0 else frame()[name].min()
    beyond, at_end = (
        seen(view, read_table(frame().assign(**{name: value}), like=TABLE.remembered))
        for value in (far, end)
    )
    np.testing.assert_array_equal(beyond, at_end)


def test_dates_of_later_years_and_words_never_seen_are_near_those_of_training(fitted):
    view, X = fitted
    later = frame().assign(
        begin=frame()["begin"] + pd.Timedelta(days=70000), few="z", many="z", two=None
    )
    found = seen(view, read_table(later, like=TABLE.remembered))
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    plain = [k for k, name in enumerate(view.feature_names_) if not re.search("log|sine", name)]
    assert (found >= low - 1e-9)[:, plain][~np.isnan(found[:, plain])].all()
    assert (found <= high + 1e-9)[:, plain][~np.isnan(found[:, plain])].all()
    counts = view.statistics_.outside(read_table(later, like=TABLE.remembered))
    assert counts["few"] == counts["many"] == N
    assert counts.keys() <= {"few", "many", "begin", "end"}
    assert view.statistics_.outside(TABLE) == {}


def test_two_rows_are_as_far_apart_in_a_category_as_in_a_number():
    view = DenseView("clipped")
    X = learned(view, TABLE, RARE, None, FOLD)
    for name in ("number", "few", "two"):
        own = [
            k
            for k, (feature, source) in enumerate(
                zip(view.feature_names_, view.source_column_, strict=True)
            )
            if TABLE.names[source] == name and "log" not in feature
        ]
        mean_squared = 2 * X[:, own].var(axis=0).sum()
        # A category that nearly always is the same is stretched less.
        assert mean_squared == pytest.approx(2, rel=0.02) or (name == "two" and mean_squared < 2)


@pytest.mark.parametrize("way", WAYS)
def test_a_weight_is_so_many_copies_in_the_same_fold(way):
    copies = np.repeat(np.arange(N), WEIGHT.astype(int))
    weighted, repeated = DenseView(way), DenseView(way)
    a = learned(weighted, TABLE, RARE, WEIGHT, FOLD)
    b = learned(repeated, TABLE.take(copies), RARE[copies], None, FOLD[copies])
    assert weighted.feature_names_ == repeated.feature_names_
    np.testing.assert_allclose(a[copies], b, atol=1e-9)
    np.testing.assert_allclose(seen(weighted, TABLE), seen(repeated, TABLE), atol=1e-9)


def test_the_label_of_a_row_is_not_in_its_own_features(monkeypatch):
    """Labels that change places within a fold change the features of the other folds only."""
    # The smoothing, one number for all rows, is chosen from all labels.
    monkeypatch.setattr(category_statistics, "choose_smoothing", lambda counts, prior: 8.0)
    own = FOLD == 0
    turned = RARE.copy()
    turned[own] = RNG.permutation(RARE[own])
    a, b = (learned(DenseView("raw"), TABLE, y, None, FOLD) for y in (RARE, turned))
    np.testing.assert_array_equal(a[own], b[own])
    assert not np.allclose(a[~own], b[~own], equal_nan=True)


def test_views_share_statistics_and_give_the_same():
    statistics = TableStatistics()
    encoded = statistics.fit_encode(TABLE, RARE, None, FOLD)
    for way in WAYS:
        shared, own = DenseView(way), DenseView(way)
        X = shared.fit(encoded, None, statistics).transform(encoded)
        np.testing.assert_array_equal(X, learned(own, TABLE, RARE, None, FOLD))
        np.testing.assert_array_equal(seen(shared, TABLE), seen(own, TABLE))


def test_columns_that_become_constant_in_a_part_of_the_rows():
    some = np.flatnonzero((frame()["few"] == "a") & (frame()["two"] == "no"))
    for way in WAYS:
        view = DenseView(way)
        X = learned(view, TABLE.take(some), RARE[some], None, FOLD[some])
        assert np.isfinite(X).all() or way == "raw"
        assert seen(view, TABLE).shape == (N, X.shape[1])


@pytest.fixture(scope="module")
def paired():
    rng = np.random.default_rng(2)
    n = 4000
    codes = pd.DataFrame({name: rng.integers(0, 30, n) for name in "abc"})
    effect = rng.normal(size=(30, 30)) * 2
    own = 1.5 * (-1.0) ** np.arange(30)
    odds = effect[codes["a"] // 3, codes["b"] // 3] + own[codes["c"]] - 2
    y = rng.random(n) < 1 / (1 + np.exp(-odds))
    table, fold = read_table(codes), rng.integers(0, 5, n)
    statistics = TableStatistics()
    return table, statistics, statistics.fit_encode(table, y, None, fold)


def test_codes_and_pairs_that_tell_something_are_features(paired):
    table, statistics, encoded = paired
    view = DenseView("raw")
    X = view.fit(encoded, None, statistics).transform(encoded)
    known = dict(zip(view.feature_names_, view.second_column_.tolist(), strict=True))
    assert known["a & b: log-odds"] == 1
    assert known["c: log-odds"] == known["a"] == -1
    assert seen(view, table).shape == X.shape
    bounded = DenseView("quantiles")
    bounded.fit(encoded, None, statistics)
    # A code stays a number, whatever its values say one by one.
    assert {"c", "c: log-odds", "a & b: log-odds"} <= set(bounded.feature_names_)


def test_views_by_name_are_new_each_time():
    for name, make in VIEWS.items():
        view = make()
        assert view is not make()
        X = learned(view, TABLE, RARE, None, FOLD)
        assert seen(view, TABLE).shape == X.shape, name


def test_an_unknown_way_is_told():
    with pytest.raises(ValueError, match="numbers='log' must be one of 'quantiles'"):
        learned(DenseView("log"), TABLE, RARE, None, FOLD)


def test_a_word_never_seen_is_the_commonest_one_where_training_knew_all_words():
    rng = np.random.default_rng(0)
    y = np.arange(N) % 10 == 0
    # Nearly all rare rows have a word of their own; the others have three, one of them often.
    words = np.where(y & (rng.random(N) < 0.9), "c", rng.choice(list("aaab"), N))
    table = read_table(pd.DataFrame({"word": words, "number": rng.normal(size=N)}))
    new = pd.DataFrame({"word": ["new", None, "a", "b", "c"], "number": np.zeros(5)})
    for way in WAYS:
        view = DenseView(way)
        learned(view, table, y, None, FOLD)
        unseen, missing, a, b, c = seen(view, read_table(new, like=table.remembered))
        np.testing.assert_array_equal(unseen, a)
        np.testing.assert_array_equal(missing, a)
        assert not (a == b).all()
        assert not (a == c).all()
        assert view.statistics_.outside(read_table(new, like=table.remembered)) == {"word": 1}


def test_a_word_never_seen_is_one_of_no_row_where_training_had_such():
    words = [f"w{min(k, 90)}" for k in range(N)]
    table = read_table(pd.DataFrame({"word": pd.Categorical(words), "number": np.arange(N) / 7}))
    statistics = TableStatistics()
    statistics.fit_encode(table, RARE, None, FOLD)
    assert statistics.stand_ins_ == [None]
    new = read_table(pd.DataFrame({"word": ["new"], "number": [0.0]}), like=table.remembered)
    encoded = statistics.encode(new)
    assert encoded.levels[0][0] == statistics.known_[0].n_known + 1
    (features,) = encoded.of_labels
    assert features.log_odds[0, 0] == features.log_counts[0, 0] == 0.0
