"""Folds whose parts all hold rare rows, or an error that says how many folds there can be."""

import itertools
import re
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score

from draws import draws
from rareclass import RankRCCV
from rareclass.errors import InputError
from rareclass.folds import RareGroupKFold, RareStratifiedKFold, RareTimeSplit
from rareclass.folds.dealing import days_of, dealt_with_both, exactly, most_folds, read_times

N = 40
Y = (np.arange(N) % 5 == 0).astype(int)
X = np.random.default_rng(0).normal(size=(N, 2)) + Y[:, None]


@st.composite
def grouped(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(6, 50))
    y = random.permutation(n) < draw(st.integers(1, n - 1))
    return y, random.integers(0, draw(st.sampled_from([2, 4, 8, 40])), n)


def rare_of(y):
    return y if y.sum() <= (~y).sum() else ~y


def check_folds(folds, y, n_splits):
    assert len(folds) == n_splits
    for train, test in folds:
        assert not np.intersect1d(train, test).size
        assert all(len(np.unique(y[part])) == 2 for part in (train, test))


def at_most(told):
    found = re.search(r"Use n_splits=(\d+)", str(told.value))
    return int(found[1]) if found else 0


@given(grouped(), st.integers(2, 6))
@draws(60)
def test_stratified_folds_are_scikit_learn_s_wherever_each_can_hold_rare_rows(table, n_splits):
    y, _ = table
    splitter = RareStratifiedKFold(n_splits, repeats=2, random_state=3)
    fewest = min(y.sum(), (~y).sum())
    if fewest < n_splits:
        with pytest.raises(InputError, match=r"rows? cannot be in the test part") as told:
            list(splitter.split(y, y))
        assert at_most(told) == (fewest if fewest > 1 else 0)
        return
    folds = list(splitter.split(y, y))
    assert splitter.get_n_splits() == 2 * n_splits
    check_folds(folds, y, 2 * n_splits)
    first = StratifiedKFold(n_splits, shuffle=True, random_state=3).split(y, y)
    for (_, test), (_, expected) in zip(folds, first, strict=False):
        np.testing.assert_array_equal(test, expected)


def test_more_labels_than_two_are_dealt_evenly():
    y = np.repeat(["a", "b", "c"], [20, 15, 5])
    folds = list(RareStratifiedKFold(5).split(y, y))
    assert all((np.unique(y[test], return_counts=True)[1] == [4, 3, 1]).all() for _, test in folds)
    # A label of fewer rows than folds is nobody's concern where another one is the rare one.
    folds = list(RareStratifiedKFold(8, pos_label="b").split(y, y))
    assert all((y[test] == "b").any() for _, test in folds)
    assert max(np.sum(y[test] == "c") for _, test in folds) == 1  # and dealt evenly still


def most_by_trying(is_rare, group):
    group = np.unique(group, return_inverse=True)[1]
    n_groups, best = group.max() + 1, 0
    for dealing in itertools.product(range(n_groups), repeat=n_groups):
        fold = np.array(dealing)[group]
        counts = [(is_rare[fold == k].any(), (~is_rare)[fold == k].any()) for k in set(dealing)]
        best = max(best, len(counts) if all(map(all, counts)) else 0)
    return best


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(12))
def test_how_many_folds_groups_can_make(seed):
    random = np.random.default_rng(seed)
    group, is_rare = random.integers(0, 5, 8), random.random(8) < 0.5
    group = np.unique(group, return_inverse=True)[1]
    assert most_folds(is_rare, group) == most_by_trying(is_rare, group)


@given(grouped(), st.integers(2, 6), st.integers(0, 3))
@draws(120)
def test_groups_stay_together_and_every_part_has_both_classes(table, n_splits, seed):
    y, group = table
    is_rare = rare_of(y)
    splitter = RareGroupKFold(n_splits, random_state=seed)
    possible = most_folds(is_rare, np.unique(group, return_inverse=True)[1])
    if possible < n_splits:
        with pytest.raises(InputError) as told:
            list(splitter.split(y, y, group))
        assert at_most(told) in (0, possible)
        return
    folds = list(splitter.split(y, y, group))
    check_folds(folds, y, n_splits)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(y)))
    words = np.random.default_rng(seed).permutation(group.max() + 1).astype(str)
    renamed = splitter.split(y, y, words[group].tolist())
    for (train, test), (_, by_words) in zip(folds, renamed, strict=True):
        assert not np.intersect1d(group[train], group[test]).size
        np.testing.assert_array_equal(test, by_words)  # names of groups decide nothing


def test_rare_rows_are_spread_evenly_over_groups():
    group = np.repeat(np.arange(20), 5)
    y = np.isin(np.arange(100), np.flatnonzero(group < 10)[::2])
    fold = dealt_with_both(5, 0, y, group)
    np.testing.assert_array_equal(np.bincount(fold[y]), [5] * 5)
    np.testing.assert_array_equal(np.bincount(fold), [20] * 5)


def test_folds_of_groups_of_one_class_are_found_where_there_is_one_dealing_only():
    # The groups of most rare rows have none but those: by their size alone they were two folds.
    group = np.repeat([0, 1, 2, 3, 4], [5, 4, 6, 6, 6])
    y = (group < 2) | (np.arange(27) % 6 == 3)
    check_folds(list(RareGroupKFold(3).split(y, y, group)), y, 3)
    # Two groups of both classes, one of rare rows alone, one of others alone: three folds.
    y, group = np.array([1, 0, 1, 0, 1, 1, 0, 0, 0], bool), np.array([0, 0, 1, 1, 2, 2, 3, 3, 3])
    check_folds(list(RareGroupKFold(3).split(y, y, group)), y, 3)


@given(grouped(), st.integers(1, 5), st.integers(0, 6), st.sampled_from(["expanding", "around"]))
@draws(120)
def test_time_is_in_order_with_its_gap(table, n_splits, gap, window):
    y, time = table
    n_splits = max(n_splits, 2 if window == "around" else 1)
    embargo = gap // 2 if window == "around" else 0
    splitter = RareTimeSplit(n_splits, gap=gap, embargo=embargo, window=window)
    try:
        folds = list(splitter.split(y, y, time))
    except InputError as error:
        found = re.search(r"Use n_splits=(\d+)", str(error))
        if found:
            fewer = RareTimeSplit(int(found[1]), gap=gap, embargo=embargo, window=window)
            check_folds(list(fewer.split(y, y, time)), y, int(found[1]))
        return
    check_folds(folds, y, n_splits)
    for train, test in folds:
        begin, end = time[test].min(), time[test].max()
        allowed = time < begin - gap
        if window == "around":
            allowed |= time > end + embargo
        np.testing.assert_array_equal(train, np.flatnonzero(allowed))
        np.testing.assert_array_equal(test, np.flatnonzero((time >= begin) & (time <= end)))
    ends = [time[test].max() for _, test in folds]
    assert ends == sorted(set(ends))
    assert ends[-1] == time.max()


@given(grouped(), st.integers(1, 6))
@draws(60)
def test_as_many_stretches_as_asked_for(table, n):
    y, time = table
    moment = np.unique(time, return_inverse=True)[1]
    stretch = exactly(n, y, moment)
    if stretch is None:
        assert len(np.unique(moment[y])) < n
        return
    assert set(stretch[y]) == set(range(n))
    assert (np.diff(stretch[np.argsort(moment, kind="stable")]) >= 0).all()


def test_a_sliding_window_has_its_length():
    day = pd.date_range("2026-01-01", periods=N).repeat(5)
    y = np.arange(5 * N) % 7 == 0
    splitter = RareTimeSplit(3, gap="2D", window="sliding", train_span=pd.Timedelta(days=6))
    with pytest.raises(ValueError, match="gap='2D' must be a length of time"):
        list(splitter.split(y, y, day))
    splitter.gap = 2
    for train, test in splitter.split(y, y, day):
        begin = day[test].min()
        assert day[train].min() == begin - pd.Timedelta(days=8)
        assert day[train].max() == begin - pd.Timedelta(days=3)


@pytest.mark.parametrize(
    "splitter", [RareStratifiedKFold(3, repeats=2), RareGroupKFold(3), RareTimeSplit(3, gap=1)]
)
def test_used_as_any_splitter(splitter):
    groups = np.arange(N) // 2
    scores = cross_val_score(LogisticRegression(), X, Y, groups=groups, cv=splitter)
    assert len(scores) == splitter.get_n_splits()
    assert type(splitter).__name__ in repr(splitter)
    folds = splitter if not isinstance(splitter, RareGroupKFold) else splitter.split(X, Y, groups)
    model = RankRCCV(lams=[1.0], cv=folds, refit=False).fit(X, Y)
    assert model.n_splits_ == splitter.get_n_splits()


@pytest.mark.parametrize(
    "time",
    [
        pd.date_range("2026-01-01", periods=4, freq="12h"),
        pd.date_range("2026-01-01", periods=4, freq="12h", tz="Europe/Paris"),
        ["2026-01-01", "2026-01-01T12:00", "2026-01-02", "2026-01-02T12:00"],
        [datetime(2026, 1, 1 + k // 2, 12 * (k % 2), tzinfo=UTC) for k in range(4)],
        np.array([0.0, 0.5, 1.0, 1.5]),
        ["0", "0.5", "1", "1.5"],
        pl.from_pandas(pd.date_range("2026-01-01", periods=4, freq="12h", tz="Europe/Paris")),
        pa.array(pd.date_range("2026-01-01", periods=4, freq="12h", tz="Europe/Paris")),
    ],
)
def test_times_of_any_type(time):
    read = read_times(time, 4)
    np.testing.assert_array_equal(days_of(read), [0, 0, 1, 1])
    assert (np.diff(read) == read[1] - read[0]).all()


TIMES = np.array([f"2026-01-{1 + k:02d}" for k in range(28)] * 2)[:N]


@pytest.mark.parametrize(
    ("splitter", "y", "groups", "said"),
    [
        (RareStratifiedKFold(), [1] * N, None, "y holds the label 1 only"),
        (RareStratifiedKFold(), [[1, 0]] * N, None, "1d array"),
        (RareStratifiedKFold(), [None, *[1] * 9], None, "no label at all: row 0"),
        (RareStratifiedKFold(9), Y, None, "8 rare rows cannot .* Use n_splits=8, with repeats"),
        (RareStratifiedKFold(pos_label=7), Y, None, "pos_label=7 is not among"),
        (RareGroupKFold(), Y, None, "'groups' parameter should not be None"),
        (RareGroupKFold(), Y, Y, "the group 1 holds all 8 rare rows"),
        (RareGroupKFold(), Y, np.arange(N) // 20, "2 groups hold rare rows.*Use n_splits=2"),
        (RareGroupKFold(), Y, np.arange(N - 1), r"groups has the shape \(39,\)"),
        (RareGroupKFold(), Y, [None, *range(N - 1)], "groups has no value at row 0"),
        (RareGroupKFold(), Y, [*"ab", "n/a", *"cd" * 20][:N], "at row 2: 'n/a' is read as empty"),
        (RareTimeSplit(8), Y, None, "8 moments have rare rows.*need 9 .*Use n_splits=7"),
        (RareTimeSplit(3, gap=9), Y, None, "fold 1 would have no rare row to train on"),
        (RareTimeSplit(1, gap=N), Y, None, "No number of folds is possible"),
        (RareTimeSplit(), Y, np.array(["soon"] * N), "time: 'soon' at row 0 is not a time"),
        (RareTimeSplit(), Y, ["2026-01-01", "NaT"] * (N // 2), "'NaT' at row 1 is not a time"),
        (RareTimeSplit(), Y, np.arange(N) % 2 == 0, "time: True at row 0 is not a time"),
        (RareTimeSplit(), Y, [*range(N - 1), np.nan], "time has no value at row 39"),
        (RareTimeSplit(gap=-1), Y, TIMES, "gap=-1 must be a length of time"),
        (RareTimeSplit(gap=True), Y, None, "gap=True must be a length of time"),
    ],
)
def test_what_makes_no_folds_is_told(splitter, y, groups, said):
    with pytest.raises(ValueError, match=said):
        list(splitter.split(np.empty((N, 0)), y, groups))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RareStratifiedKFold(1), "n_splits=1 must be a whole number of at least 2"),
        (lambda: RareStratifiedKFold(repeats=0), "repeats=0 must be"),
        (lambda: RareGroupKFold(2.0), "n_splits=2.0 must be"),
        (lambda: RareGroupKFold(random_state=-1), "random_state=-1 must be"),
        (lambda: RareTimeSplit(0), "n_splits=0 must be"),
        (lambda: RareTimeSplit(1, window="around"), "n_splits=1 must be .* at least 2"),
        (lambda: RareTimeSplit(window="rolling"), "window='rolling' is not one of"),
        (lambda: RareTimeSplit(window="sliding"), "do not go together"),
        (lambda: RareTimeSplit(train_span=7), "do not go together"),
        (lambda: RareTimeSplit(embargo=7), "embargo=7 has no effect"),
    ],
)
def test_parameters_outside_their_range(make, said):
    with pytest.raises(ValueError, match=said):
        make()
