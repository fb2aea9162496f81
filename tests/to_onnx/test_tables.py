"""Tables of numbers and words: encoders, combinations of members, and model files."""

from importlib import import_module

import numpy as np
import onnx
import pandas as pd
import polars as pl
import pytest

import rareclass
from rareclass import RareClassifier, to_onnx
from rareclass.errors import InputError
from rareclass.tables.cells import EMPTY_MARKS, TRUTH_SPELLINGS
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

    from rareclass.cli.command import app

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


WORDS = {
    "yes": ["Yes", "No"], "y": ["Y", "N"], "t": ["t", "f"], "true": ["True", "b", "yes"],
    "none": ["none", "a", "web"], "spaces": ["New York", " x", "\u3000caf\u00e9"],
    "numbers": ["3.0", "4.50", "x", "007"], "marks": ["NA", "no", "-.5"],
}  # fmt: skip
CELLS = [*EMPTY_MARKS, *TRUTH_SPELLINGS, *(word for words in WORDS.values() for word in words)]
CELLS += ["+1", "01", "1e0", "0.00", "3.", "3.000", "-3.0", "4.5", "New  York", "a.0", "CAF\u00c9"]
SPELT = sorted({spelt for c in CELLS for spelt in (c, c.upper(), c.title(), f"\u00a0{c}\t")})


@pytest.mark.filterwarnings("ignore:column 'numbers' is taken as categories")
def test_every_spelling_of_a_word_scores_as_the_library_scores_it(monkeypatch):
    random, rare = np.random.default_rng(0), np.arange(400) % 8 == 3
    often = rare & (random.random(400) < 0.5)
    table = {k: np.where(often, each[0], random.choice(each, 400)) for k, each in WORDS.items()}
    model = RareClassifier(members=["logistic regression"], cv=2, n_jobs=1)
    chosen = dict.fromkeys(["none", "spaces"], "category")  # "none" is a word there
    converted = to_onnx(model.fit(pd.DataFrame(table).astype(chosen), rare))
    for name in WORDS:
        others = {k: each[:1].repeat(len(SPELT)) for k, each in table.items()}
        rows = pl.DataFrame(others | {name: SPELT})
        *apart, same = differences(answers(converted, rows), model, rows)
        assert max(apart) <= PARITY, name
        assert same
    graph = import_module("rareclass.model.onnx.graph")
    monkeypatch.setattr(graph, "one_spelling", lambda words: words)
    with pytest.raises(InputError, match=r"scores .* otherwise than the model does"):
        to_onnx(model)


def test_dates_and_texts_are_refused_by_name():
    table, rare = made(120)
    random = np.random.default_rng(0)
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 9999, 120), unit="h")
    members = ["logistic regression"]
    model = RareClassifier(members=members, cv=2, n_jobs=1).fit(table.assign(when=when), rare)
    with pytest.raises(InputError, match="Column 'when' is read as a date, which has no form"):
        to_onnx(model)
