"""Folds: stratified, groups together, stretches of time in order; both classes are always left."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, TimeSeriesSplit

from draws import draws
from faults import refused
from rareclass.encoding.typed_table import read_table, with_equal_rows_together
from rareclass.ensemble import plan
from rareclass.ensemble.plan import fold_numbers
from rareclass.ensemble.training_rows import FitInput, HeldOutRows, read_training_rows
from rareclass.errors import ErrorKind, InputError
from rareclass.folds.dealing import ALWAYS_LEARNED
from rareclass.labels.two_classes import read_labels
from rareclass.metrics import average_precision

N = 40


def labels_of(y, weight=None):
    return read_labels(np.asarray(y), weight, 1, len(y))


def labels_at(n_rare):
    return labels_of(np.random.default_rng(n_rare).permutation(N) < n_rare)


@st.composite
def labelled(draw):
    """Labels with one to many rare rows, and values for each row, few or many of them."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(6, 60))
    n_rare = draw(st.integers(1, n // 2))
    y = random.permutation(n) < n_rare
    weight = random.integers(0, 3, n) if draw(st.booleans()) else np.ones(n)
    weight[np.flatnonzero(y)[0]] = weight[np.flatnonzero(~y)[:2]] = 1
    values = random.integers(0, draw(st.sampled_from([3, 8, 1000])), n)
    return labels_of(y.astype(int), weight), values


def check(number, labels, cv):
    n_folds = number.max() + 1
    assert 2 <= n_folds <= cv
    assert set(number) >= set(range(n_folds))
    for k in range(n_folds):
        assert (number[labels.rare] != k).any()
        assert (number[labels.majority] != k).any()
    assert (number[labels.majority] >= 0).all()


@given(labelled(), st.integers(2, 7), st.integers(0, 5))
@draws(100)
def test_stratified(table, cv, seed):
    labels, values = table
    number = fold_numbers(cv, labels, len(values), seed)
    check(number, labels, cv)
    sizes = [len(labels.majority)]
    if len(labels.rare) == 1:
        assert number[labels.rare[0]] == ALWAYS_LEARNED
    else:
        assert number.max() + 1 == min(cv, len(labels.rare), len(labels.majority))
        sizes = [np.bincount(number[rows]) for rows in (labels.rare, labels.majority)]
        assert all(np.ptp(size) <= 1 for size in sizes)
    np.testing.assert_array_equal(number, fold_numbers(cv, labels, len(values), seed))


@pytest.mark.parametrize("by", ["groups", "time"])
@given(table=labelled(), cv=st.integers(2, 7), seed=st.integers(0, 5))
@draws(100)
def test_rows_of_a_group_or_a_moment_stay_together(by, table, cv, seed):
    labels, values = table
    kept = np.concatenate([labels.rare, labels.majority])
    n_with_rare, told = len(np.unique(values[labels.rare])), ""
    try:
        number = fold_numbers(cv, labels, len(values), seed, **{by: values})
    except InputError as error:
        told = str(error)
    if told:
        assert ("all rare rows" if n_with_rare == 1 else "all majority rows") in told
        assert n_with_rare == 1 or by == "time" or len(np.unique(values[labels.majority])) == 1
        return
    check(number, labels, cv)
    if len(labels.rare) > 1:
        for value in np.unique(values[kept]):
            assert len(np.unique(number[kept][values[kept] == value])) == 1
        assert set(number[labels.rare]) == set(range(number.max() + 1))  # each tests some
        if by == "groups":
            assert number.max() + 1 == min(cv, n_with_rare)
            words = np.random.default_rng(seed).permutation(values.max() + 1).astype(str)
            renamed = fold_numbers(cv, labels, len(values), seed, groups=words[values])
            np.testing.assert_array_equal(renamed, number)  # names say nothing
        else:  # stretches are in order
            assert (np.diff(number[kept][np.argsort(values[kept], kind="stable")]) >= 0).all()


def test_stretches_hold_about_as_many_rare_rows_each():
    labels = labels_at(20)
    number = fold_numbers(5, labels, N, 0, time=np.arange(N))
    np.testing.assert_array_equal(np.bincount(number[labels.rare]), [4, 4, 4, 4, 4])
    # One moment with most of them leaves the rest to be divided.
    y = np.arange(N) % 2
    time = np.maximum(np.arange(N), 20)
    rare = np.bincount(fold_numbers(5, labels_of(y), N, 0, time=time)[y == 1])
    np.testing.assert_array_equal(rare, [10, 3, 3, 2, 2])
    # The last moment is a stretch of its own before there is none.
    y = (np.arange(N) < 1) | (np.arange(N) > 30)
    number = fold_numbers(5, labels_of(y), N, 0, time=(np.arange(N) > 29).astype(int))
    np.testing.assert_array_equal(np.bincount(number[y]), [1, 9])


@pytest.mark.parametrize("n_rare", [2, 3, 4])
def test_two_to_four_rare_rows_are_each_held_out(n_rare):
    labels = labels_at(n_rare)
    for more in ({}, {"time": np.arange(N)}, {"groups": np.arange(N)}):
        number = fold_numbers(5, labels, N, 0, **more)
        assert sorted(number[labels.rare]) == list(range(n_rare))


def test_a_splitter_s_folds_are_taken_with_their_groups():
    labels, groups = labels_at(10), np.arange(N) % 8
    number = fold_numbers(GroupKFold(3), labels, N, 0, groups=groups)
    assert all(len(np.unique(number[groups == group])) == 1 for group in range(8))
    given = list(LeaveOneGroupOut().split(np.empty(N), groups=np.arange(N) % 3))
    np.testing.assert_array_equal(fold_numbers(given, labels, N, 0), np.arange(N) % 3)
    number = fold_numbers(given[:2], labels, N, 0)
    assert (number[np.arange(N) % 3 == 2] == ALWAYS_LEARNED).all()
    assert fold_numbers(KFold(2, shuffle=True, random_state=0), labels, N, 0).max() == 1


HALVES = (np.arange(0, N, 2), np.arange(1, N, 2))
WORDS = np.array(["a", "b"] * (N // 2), dtype=object)
GAP = np.where(np.arange(N) == 7, np.nan, np.arange(N))
DAYS = np.where(np.arange(N) < 7, "31.12.2025 CET", "01.01.2026 CET")


def at_7(value):
    return np.where(np.arange(N) == 7, value, WORDS)


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ({"cv": 1}, ErrorKind.SETTING, "cv=1"),
        ({"cv": True}, ErrorKind.SETTING, "cv=True"),
        ({"cv": [HALVES, HALVES]}, ErrorKind.ROWS, "row 1 "),
        (
            {"cv": TimeSeriesSplit(3), "labels": labels_of(np.arange(N) % 4 == 0)},
            ErrorKind.ROWS,
            "20 rows, the first of them row 20",
        ),
        ({"cv": KFold(2), "time": np.arange(N)}, ErrorKind.COMBINATION, "time"),
        ({"time": np.arange(N), "groups": np.arange(N)}, ErrorKind.COMBINATION, "groups"),
        ({"groups": np.zeros(N)}, ErrorKind.TOO_FEW_ROWS, "groups puts all rare rows"),
        ({"time": np.zeros(N)}, ErrorKind.TOO_FEW_ROWS, "time puts all rare rows"),
        ({"time": (np.arange(N) < 39) + 0}, ErrorKind.TOO_FEW_ROWS, "time puts all rare rows"),
        ({"time": np.arange(N)}, ErrorKind.TOO_FEW_ROWS, "time puts all majority rows"),
        ({"labels": labels_of([0, 1]), "n_rows": 2}, ErrorKind.TOO_FEW_ROWS, "1 row"),
        ({"cv": "5"}, ErrorKind.SETTING, "cv='5'"),
        ({"time": np.arange(9)}, ErrorKind.SHAPE, "time has the shape (9,)"),
        ({"groups": np.ones((N, 2))}, ErrorKind.SHAPE, "groups has the shape (40, 2)"),
        ({"time": GAP}, ErrorKind.CELL, "time has no value at row 7"),
        ({"time": GAP.astype("M8[D]")}, ErrorKind.CELL, "time has no value at row 7"),
        ({"groups": at_7(None)}, ErrorKind.CELL, "groups has no value at row 7"),
        ({"time": DAYS}, ErrorKind.CELL, "'31.12.2025 CET' at row 0"),
    ],
)
def test_folds_that_cannot_be_made_are_refused(given, kind, says):
    labels = labels_of(np.arange(N) < 8)
    with refused(kind, says=says, remedy=given.get("cv") != "5"):
        fold_numbers(**{"cv": 5, "labels": labels, "n_rows": N, "seed": 0} | given)


@draws(40)
@given(seed=st.integers(0, 2**32), n_folds=st.integers(2, 4), n_values=st.integers(1, 3))
def test_by_comparing_every_pair(seed, n_folds, n_values):
    random = np.random.default_rng(seed)
    numbers = random.choice([0.0, -0.0, 1.5, np.nan], 30)
    words = random.choice(["a", "b", None], 30)
    frame = pd.DataFrame({"n": numbers, "w": words, "m": random.integers(0, n_values, 30) / 3})
    is_rare = np.arange(30) % 10 == 0
    fold = random.integers(0, n_folds, 30)
    found = with_equal_rows_together(read_table(frame).groups_of_equal(), is_rare, fold)
    cells = [tuple(None if pd.isna(v) else v for v in row) for row in frame.to_numpy(object)]
    rare = {row: k for k, row in enumerate(cells) if is_rare[k]}
    expected = fold.copy()
    for k, row in enumerate(cells):
        if not is_rare[k] and row in rare:
            expected[k] = fold[rare[row]]
    whole = len(np.unique(expected[~is_rare])) == len(np.unique(fold[~is_rare]))
    np.testing.assert_array_equal(found, expected if whole else fold)


@pytest.mark.parametrize("is_weighted", [True, False])
def test_rows_that_stand_for_copies_are_held_out_with_their_like(is_weighted):
    random = np.random.default_rng(0)
    y = np.arange(100) % 10 == 0
    X = random.normal(size=(100, 3))
    X[1] = X[0]  # a majority row that equals a rare one
    weight = np.where(np.arange(100) == 1, 3000.0, 1.0) if is_weighted else None
    rows = [read_training_rows(FitInput(X, y, weight), "auto", None, seed)[0] for seed in range(8)]
    assert all(row.fold[0] == row.fold[1] for row in rows) == is_weighted
    for row in rows:
        assert np.bincount(row.fold[y]).tolist() == [2] * 5


@pytest.mark.parametrize(("n_rare", "is_in_tenths"), [(999, False), (1000, True)])
def test_of_many_rare_rows_two_tenths_of_many_rows_are_held_out(n_rare, is_in_tenths, monkeypatch):
    y = np.arange(4000) < n_rare
    X = np.random.default_rng(0).normal(size=(4000, 2))
    given = FitInput(X, y)
    rows = read_training_rows(given, "auto", None, 0)[0]
    assert rows.n_folds == 5
    assert rows.held_out_fold is rows.fold
    monkeypatch.setattr(plan, "_MANY_ROWS", 4000)
    few = read_training_rows(given, "auto", None, 0)[0]
    if not is_in_tenths:
        assert np.unique(few.held_out_fold).tolist() == [0, 1, 2]
        return
    # What a column says of the label is out of ten folds; two of these are held out of members.
    assert np.unique(few.fold).tolist() == list(range(10))
    assert np.unique(few.held_out_fold).tolist() == [ALWAYS_LEARNED, 0, 1]
    assert few.n_folds == 2
    np.testing.assert_array_equal(np.bincount(few.fold[y]), 100)
    held_out = HeldOutRows.of(few, 0, average_precision)
    np.testing.assert_array_equal(held_out.tested, np.flatnonzero(few.fold < 2))
    part = few.part(np.arange(0, 4000, 2), None)
    assert part.n_held_out == 2
    assert read_training_rows(given, 4, None, 0)[0].n_folds == 4  # as the user chose
