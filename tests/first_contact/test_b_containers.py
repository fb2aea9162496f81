"""Numbers are read whatever holds them: the same scores from every container of the same values."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from rareclass import MIBC, OrdinalRankRC, RankRC, RareClassifier, StochasticRankRC
from rareclass.ensemble.members.machines import LogisticOnQuantiles
from rareclass.online import OnlineLogistic

N = 120
RANDOM = np.random.default_rng(0)
VALUES = RANDOM.normal(size=(N, 2)).round(3)
Y = (VALUES[:, 0] + 0.5 * RANDOM.normal(size=N) > 1.2).astype(int)
PLAIN = pd.DataFrame(VALUES, columns=["a", "b"])
MODELS = [
    RankRC(),
    OrdinalRankRC(),
    StochasticRankRC(random_state=0),
    MIBC(),
    OnlineLogistic(random_state=0),
    RareClassifier(members=[LogisticOnQuantiles(strengths=(0.1,))], cv=2, n_jobs=1),
]


def decimals(name):
    return [Decimal(f"{value:.3f}") for value in PLAIN[name]]


CONTAINERS = {
    "nullable floats": lambda: PLAIN.astype("Float64"),
    "floats of Arrow": lambda: PLAIN.astype("double[pyarrow]"),
    "decimals of Arrow": lambda: pd.DataFrame(
        {name: pd.Series(decimals(name), dtype=pd.ArrowDtype(pa.decimal128(9, 3))) for name in "ab"}
    ),
    "decimals as objects": lambda: pd.DataFrame({name: decimals(name) for name in "ab"}),
    "floats as objects": lambda: PLAIN.astype(object),
    "sparse": lambda: PLAIN.astype(pd.SparseDtype(float)),
    "categories of numbers": lambda: PLAIN.astype("category"),
    "one column in another type": lambda: PLAIN.assign(b=PLAIN["b"].astype("double[pyarrow]")),
    "polars": lambda: pl.DataFrame(VALUES, schema=["a", "b"]),
    "decimals of polars": lambda: pl.DataFrame({name: decimals(name) for name in "ab"}),
    "objects of polars": lambda: pl.DataFrame(
        {name: pl.Series(PLAIN[name].tolist(), dtype=pl.Object) for name in "ab"}
    ),
    "a table of Arrow": lambda: pa.table({name: PLAIN[name] for name in "ab"}),
    "decimals of 256 bits": lambda: pa.table(
        {name: pa.array(decimals(name), pa.decimal256(50, 3)) for name in "ab"}
    ),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("model", MODELS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("name", list(CONTAINERS))
def test_a_container_changes_nothing(name, model):
    if name == "categories of numbers" and isinstance(model, RareClassifier):
        return  # there a category is one
    table = CONTAINERS[name]()
    expected = clone(model).fit(PLAIN, Y)
    fitted = clone(model).fit(table, Y)
    np.testing.assert_allclose(fitted.score_samples(table), expected.score_samples(PLAIN))
    np.testing.assert_allclose(expected.score_samples(table), expected.score_samples(PLAIN))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_truth_values_are_0_and_1(make):
    truth = VALUES[:, 1] > 0
    expected = RankRC().fit(np.column_stack([VALUES[:, 0], truth]), Y)
    table = make({"a": VALUES[:, 0], "b": truth})
    found = RankRC().fit(table, Y).score_samples(table)
    rows = np.column_stack([VALUES[:, 0], truth])
    np.testing.assert_allclose(found, expected.score_samples(rows))
    arrow = pd.DataFrame({"a": VALUES[:, 0], "b": pd.Series(truth).astype("bool[pyarrow]")})
    np.testing.assert_allclose(RankRC().fit(arrow, Y).score_samples(arrow), found)


@pytest.mark.parametrize("kind", ["Float64", "double[pyarrow]", "object"])
def test_a_missing_number_is_named_by_row_and_column(kind):
    table = PLAIN.astype(kind)
    table.loc[17, "b"] = None if kind == "object" else pd.NA
    for model in (RankRC(), MIBC(), StochasticRankRC()):
        with pytest.raises(ValueError, match=r"NaN: row 17, column 'b'"):
            model.fit(table, Y)


@pytest.mark.parametrize("words", ["object", "string", "string[pyarrow]", "category"])
def test_a_column_of_words_is_named(words):
    table = PLAIN.assign(kind=pd.Series(["x", "y"] * (N // 2), dtype=words))
    for model in (RankRC(), MIBC(), OnlineLogistic()):
        with pytest.raises(ValueError, match=r"column 'kind' holds .*, not numbers"):
            model.fit(table, Y)
