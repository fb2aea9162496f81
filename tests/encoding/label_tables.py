"""Small tables with labels in folds, of columns that labels are learned from."""

from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from rareclass.encoding import column_values, label_statistics, log_odds
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.typed_table import read_table
from rareclass.ensemble.training_rows import FoldedRows

# What so few rows can show: gains above a tenth of a standard error, codes of any number of values.
_LITTLE = {
    (column_values, "FEWEST_CODES"): 3,
    (column_values, "ROWS_A_CODE"): 1,
    (label_statistics, "_ERRORS_OF_CODES"): 0.1,
    (label_statistics, "_LEAST_GAIN"): 0.001,
    (label_statistics, "FEWEST_VALUES"): 4,
    (label_statistics, "FEWEST_RARE"): 2,
    (label_statistics, "STANDARD_ERRORS"): 0.1,
    (label_statistics, "LEAST_LOSS"): 0.001,
    (label_statistics, "_ERRORS_OF_PAIRS"): -9.0,
    (log_odds, "_ERRORS_OF_PAIRS"): 0.1,
    (log_odds, "_GAIN_OF_PAIRS"): 0.001,
}


@contextmanager
def little_is_enough():
    with ExitStack() as stack:
        for (module, name), value in _LITTLE.items():
            stack.enter_context(mock.patch.object(module, name, value))
        yield


def made_frame(rng, n, y):
    effect = rng.normal(size=(4, 7)) * 2
    code = rng.integers(0, 7, n)
    word = np.where(y, rng.integers(0, 3, n), rng.integers(0, 4, n))
    burst = np.where(y, np.arange(n) * 6 // n, rng.integers(0, 6, n))
    frame = pd.DataFrame(
        {
            "word": np.array(list("abcd"))[word],
            "shop": [f"s{k}" for k in np.minimum(rng.geometric(0.15, n), n)],
            "card": [f"c{k}" for k in burst],
            "code": code.astype(float),
            "other": (2 * np.argmax(effect[word] + rng.gumbel(size=(n, 7)), axis=1)).astype(float),
            "number": rng.normal(size=n) + y,
        }
    )
    frame.loc[rng.random(n) < 0.1, "word"] = None
    frame.loc[rng.random(n) < 0.1, "code"] = np.nan
    return frame


@st.composite
def folded_rows(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, n_folds = draw(st.integers(30, 60)), draw(st.integers(2, 4))
    y = rng.random(n) < 0.3
    fold = rng.permutation(np.arange(n) % n_folds)
    how = draw(st.sampled_from(["drawn", "groups", "always learned", "duplicates"]))
    if how == "groups":
        fold = (rng.permutation(12) % n_folds)[rng.integers(0, 12, n)]
    if how == "always learned":
        fold[rng.random(n) < 0.2] = -1
    fold[: 2 * n_folds] = np.arange(2 * n_folds) % n_folds
    y[:n_folds], y[n_folds : 2 * n_folds] = True, False  # both classes in every fold
    chosen = list(draw(st.sets(st.sampled_from(["word", "shop", "card", "code", "other"]))))
    frame = made_frame(rng, n, y)[["number", *sorted(chosen)]]
    if how == "duplicates":
        copies = rng.integers(0, n, n)
        copies[: 2 * n_folds] = np.arange(2 * n_folds)
        frame = frame.iloc[copies].reset_index(drop=True)
    weight = None
    if draw(st.booleans()):
        weight = 1.0 + rng.integers(0, 3, n)
    part = rng.integers(0, 3, n) if n_folds == 2 else None
    rows = FoldedRows(
        read_table(frame), y, weight, fold, np.arange(n), is_drawn=how == "drawn", label_part=part
    )
    return rows, rng


def learned(view, table, y, weight, fold):
    """Rows of a table in a view that learns from them by statistics of its own."""
    statistics = TableStatistics()
    encoded = statistics.fit_encode(table, y, weight, fold)
    return view.fit(encoded, weight, statistics).transform(encoded)


def seen(view, table):
    """Other rows of a table in a view."""
    return view.transform(view.statistics_.encode(table))
