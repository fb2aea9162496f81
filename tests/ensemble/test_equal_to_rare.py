"""Majority rows that equal a rare one are held out with it."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from rareclass.encoding.typed_table import read_table
from rareclass.ensemble.equal_to_rare import held_out_together
from rareclass.ensemble.training_rows import Given, read_training_rows


@draws(40)
@given(seed=st.integers(0, 2**32), n_folds=st.integers(2, 4), n_values=st.integers(1, 3))
def test_by_comparing_every_pair(seed, n_folds, n_values):
    random = np.random.default_rng(seed)
    numbers = random.choice([0.0, -0.0, 1.5, np.nan], 30)
    words = random.choice(["a", "b", None], 30)
    frame = pd.DataFrame({"n": numbers, "w": words, "m": random.integers(0, n_values, 30) / 3})
    is_rare = np.arange(30) % 10 == 0
    fold = random.integers(0, n_folds, 30)
    found = held_out_together(read_table(frame), is_rare, fold)
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
    rows = [read_training_rows(Given(X, y, weight), "auto", None, seed)[0] for seed in range(8)]
    together = [row.fold[0] == row.fold[1] for row in rows]
    fewer = [row.fewer_folds[0] == row.fewer_folds[1] for row in rows]
    assert all(together + fewer) == is_weighted
    for row in rows:
        assert np.bincount(row.fold[y]).tolist() == [2] * 5
