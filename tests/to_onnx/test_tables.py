"""Tables of numbers and words: encoders, combinations of members, and model files."""

import numpy as np
import onnx
import pandas as pd
import polars as pl
import pytest

import rareclass
from rareclass import RareClassifier, to_onnx
from rareclass.errors import InputError
from to_onnx.sessions import answers, differences

PARITY = 1e-6
# The library works kernels of members out in 32 bits, the graph in 64.
PARITY_OF_KERNELS = 1e-4
QUICK = ("--members", "logistic regression", "--folds", "2")


def made(n_rows=300, seed=0):
    random = np.random.default_rng(seed)
    rare = np.arange(n_rows) % 10 == 3
    code = random.integers(0, 24, n_rows).astype(float)
    table = pd.DataFrame(
        {
            "amount": random.normal(50, 10, n_rows) + 15 * rare,
            "code": np.where(rare, 3.0 * (code // 3), code),
            "often": random.choice(list("uvw"), n_rows, p=[0.6, 0.3, 0.1]),
            "seldom": random.choice([f"w{k}" for k in range(60)], n_rows),
            "two": np.where(rare & (code > 8), "yes", random.choice(["yes", "no"], n_rows)),
        }
    )
    table.loc[::9, "amount"] = np.nan
    table.loc[::7, "often"] = None
    return table, rare


def odd(table):
    unseen = table.head(20).assign(often="new", seldom="other", amount=1e9, code=3.5)
    empty = table.head(10).assign(amount=np.nan, code=np.nan, often=None, seldom=None, two=None)
    return pd.concat([table, unseen, empty], ignore_index=True)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("members", "parity"),
    [
        (["logistic regression"], PARITY),
        (["extra trees"], PARITY),
        pytest.param(["logistic regression on indicators"], PARITY, marks=pytest.mark.thorough),
        pytest.param(["mibc"], PARITY, marks=pytest.mark.thorough),
        pytest.param(["histogram boosting"], PARITY, marks=pytest.mark.thorough),
        pytest.param(["catboost"], PARITY, marks=pytest.mark.thorough),
        pytest.param("kernel", PARITY_OF_KERNELS, marks=pytest.mark.thorough),
        pytest.param("auto", PARITY_OF_KERNELS, marks=pytest.mark.thorough),
    ],
    ids=str,
)
def test_a_combination_scores_as_the_library_does(members, parity):
    table, rare = made()
    model = RareClassifier(members=members, cv=2, n_jobs=1).fit(table, rare)
    rows = odd(table)
    *apart, same = differences(answers(to_onnx(model), rows), model, rows)
    assert max(apart) <= parity
    assert same or parity > PARITY


def test_pairs_and_codes_are_looked_up():
    random = np.random.default_rng(1)
    first, second = random.integers(0, 5, 3000), random.integers(0, 5, 3000)
    rare = ((first + second) % 5 == 0) & (random.random(3000) < 0.3)
    code = random.integers(0, 40, 3000)
    rare |= (code % 7 == 0) & (random.random(3000) < 0.5)
    table = pd.DataFrame(
        {"a": [f"a{k}" for k in first], "b": [f"b{k}" for k in second], "code": code.astype(float)}
    )
    members = ["logistic regression", "logistic regression on indicators"]
    model = RareClassifier(members=members, cv=2, n_jobs=1).fit(table, rare)
    assert all(labels.pairs_ for labels in model.statistics_.labels_)
    assert "code" in model.statistics_.category_names_
    unseen = table.head(42).assign(code=np.arange(42) - 0.5, a="new")
    rows = pd.concat([table.head(200), unseen])
    *apart, same = differences(answers(to_onnx(model), rows), model, rows)
    assert max(apart) <= PARITY
    assert same


def test_a_combination_of_an_array_takes_one_matrix():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 4))
    X[::11, 1] = np.nan
    y = X[:, 0] + random.normal(size=200) > 1.8
    model = RareClassifier(members=["extra trees"], cv=2, n_jobs=1).fit(X, y)
    converted = to_onnx(model)
    assert [each.name for each in converted.graph.input] == ["X"]
    *apart, same = differences(answers(converted, X), model, X)
    assert max(apart) <= PARITY
    assert same


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "words",
    [
        QUICK,
        ("--method", "rankrc", "--lam", "2^-4"),
        pytest.param(("--method", "mibc", "--cost", "0.1"), marks=pytest.mark.thorough),
    ],
    ids=" ".join,
)
def test_a_model_file_is_exported_with_its_encoder(words, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from rareclass.cli.app import app

    monkeypatch.setattr("rareclass.fit.training.baselines", lambda *rows: [])
    table, rare = made()
    rows = pl.from_pandas(table)
    rows.with_columns(rare=pl.Series(np.where(rare, "yes", "no"))).write_csv(tmp_path / "t.csv")
    model, out = tmp_path / "m.rareclass", tmp_path / "m.onnx"
    given = ["fit", tmp_path / "t.csv", "-t", "rare", "-o", model, "--holdout", "0.2", *words]
    for command in (given, ["export", model, "-o", out]):
        done = CliRunner().invoke(app, [str(word) for word in command])
        assert done.exit_code == 0, done.output
    assert "Outputs: score, label" in done.output.replace("\n", " ")
    loaded, more = rareclass.load(model), pl.from_pandas(odd(table))
    *apart, same = differences(answers(onnx.load(out), more), loaded, more)
    assert max(apart) <= PARITY
    assert same


def test_dates_and_texts_are_refused_by_name():
    table, rare = made(120)
    random = np.random.default_rng(0)
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 9999, 120), unit="h")
    members = ["logistic regression"]
    model = RareClassifier(members=members, cv=2, n_jobs=1).fit(table.assign(when=when), rare)
    with pytest.raises(InputError, match="Column 'when' is read as a date, which has no form"):
        to_onnx(model)
