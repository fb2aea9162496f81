"""The code in guides and gallery runs: sections from top to bottom, on small tables made here."""

import ast
import datetime as dt
import re
import runpy
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from adbc_driver_sqlite import dbapi
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

from rareclass import RankRC
from rareclass.cli.command import app

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    "index", "tutorial",
    *sorted(f"how-to/{page.stem}" for page in (DOCS / "how-to").glob("*.md")),
)  # fmt: skip
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Sections that take more than some tenths of a second: left to `make test-thorough`.
SLOW_IN_PYTHON = (
    "checked-rows", "compare-models", "dask", "few-labels", "groups-and-time", "lightgbm-scores",
    "ordered-classes", "probabilities", "review", "several-classes", "train", "wide-tables",
)  # fmt: skip
SLOW = {
    *((f"how-to/{page}", "In Python") for page in SLOW_IN_PYTHON),
    ("how-to/coming-from", "From LightGBM, XGBoost or CatBoost"),
    ("how-to/coming-from", "From imbalanced-learn"),
    ("how-to/dask", "RareClassifier on a cluster"),
    ("how-to/kernel-machine", "A kernel machine: RankRC"),
    ("how-to/kernel-options", "A majority in mini-batches"),
    ("how-to/kernel-options", "Fast scoring: few landmarks"),
    ("how-to/kernel-options", "Noisy features: learned scales"),
    ("how-to/late-labels-and-drift", "Late labels"),
    ("how-to/scikit-learn", "Estimators"),
    ("index", "Find a rare class in your table"),
    ("tutorial", "From Python"),
}
# Sections that need what is not in the project.
ELSEWHERE = {("how-to/spark", "Add a column of scores")}


def sections():
    for page in PAGES:
        for part in re.split(r"^## ", (DOCS / f"{page}.md").read_text(), flags=re.MULTILINE):
            title = part.partition("\n")[0].strip("# ")
            code = FENCE.findall(part)
            if code and (page, title) not in ELSEWHERE:
                marks = [pytest.mark.thorough] if (page, title) in SLOW else []
                yield pytest.param(page, title, code, marks=marks, id=f"{page}: {title}")


SECTIONS = list(sections())


def test_there_are_some():
    assert len(SECTIONS) > 30
    assert len(EXAMPLES) >= 10
    ids = {each.id for each in SECTIONS}
    for page, title in SLOW:
        assert f"{page}: {title}" in ids


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("page", "title", "code"), SECTIONS)
def test_code_of_a_page_runs(page, title, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "\n".join(code)
    names = made_names(text)
    names |= OTHERS.get((page, title), lambda names: {})(names)
    if "payments/" in text or "new.parquet" in text:
        write_payments()
    if ".rareclass" in text:
        write_model(re.findall(r"\w+\.rareclass", text)[0])
    if "month.csv" in text:
        write_checked()
    if "shop.db" in text:
        write_shop()
    if '"run"' in text:
        write_stream()
    with threadpool_limits(1):  # threads of boosters wait for each other beside other tests
        for block in code:
            exec(compile(block, f"{page}.md", "exec"), names)


def test_the_function_for_spark_scores_each_frame(tmp_path, monkeypatch):
    """The page's function is what each executor runs; Spark itself is not installed here."""
    monkeypatch.chdir(tmp_path)
    write_model("payments.rareclass")
    (block,) = FENCE.findall((DOCS / "how-to/spark.md").read_text())
    function = block.split("\npayments = ")[0].replace("from pyspark.sql import types", "")
    names = {}
    exec(function.replace("/models/", ""), names)
    frame = made_table(made_names()["X"]).to_pandas()
    parts = list(names["with_scores"](iter([frame[:100], frame[100:]])))
    scores = np.concatenate([part["score"] for part in parts])
    model = names["rareclass"].load("payments.rareclass")
    np.testing.assert_allclose(scores, model.score_samples(frame), rtol=1e-12)
    assert [*parts[0].columns] == [*frame.columns, "score"]


N_ROWS = 240
Y = np.arange(N_ROWS) % 8 == 0
STAYS = np.array(["none", "none", "short", "none", "long"])[np.arange(N_ROWS) % 5]
LOOKED_AT = np.where(np.arange(N_ROWS) % 24 == 0, 1, np.where(np.arange(N_ROWS) % 7 == 3, 0, -1))


# What a section takes for granted beside the rest, given the rest.
def a_checked_month(given):
    rng = np.random.default_rng(0)
    rare = np.arange(14_100) % 25 == 0
    scores = rng.normal(size=len(rare)) + 2.0 * rare
    order = np.argsort(-scores)
    scores, rare = scores[order], rare[order]
    drawn = 500 + rng.permutation(13_600)[:600]
    is_known = np.isin(np.arange(len(rare)), drawn) | (np.arange(len(rare)) < 500)
    return {"scores": scores, "drawn": drawn, "labels": np.where(is_known, rare, -1)}


OTHERS = {
    ("index", "Find a rare class in your table"): lambda given: {"new_rows": given["table"][::2]},
    ("how-to/train", "In Python"): lambda given: {"new_rows": given["table"][::2]},
    ("how-to/export", "Model files"): lambda given: {"new_rows": given["table"][::2]},
    ("how-to/checked-rows", "In Python"): a_checked_month,
    ("how-to/ordered-classes", "In Python"): lambda given: {"y": STAYS, "y_test": STAYS[::2]},
    ("how-to/few-labels", "In Python"): lambda given: {"y": LOOKED_AT},
    ("how-to/several-classes", "In Python"): lambda given: {"y": np.where(Y, STAYS, "no")},
    ("how-to/report", "Plots"): lambda given: {
        name: given[name][::2] for name in ("scores", "date")
    },
}


def made_names(text=""):
    """What the pages take for granted: rows, labels, scores, and the imports of their beginning."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4)) + 1.5 * Y[:, None]
    table = made_table(X)
    scores = X.sum(axis=1)
    days = np.datetime64("2026-01-01") + np.arange(N_ROWS) // 2
    given = {
        "X": X, "y": Y, "X_new": X[::2] + 0.01, "X_test": X[::2] + 0.01,
        "y_new": Y[::2], "y_test": Y[::2], "table": table, "new_rows": X[::2],
        "X_train": X, "y_train": Y,
        "alerts": X[:3], "scores": scores, "scores_a": scores, "scores_b": X[:, 0],
        "old": X[:, 0], "new": scores, "rules": np.round(X[:, 1]), "p": np.linspace(0, 1, N_ROWS),
        "customer": np.arange(N_ROWS) // 3, "date": days, "amount": np.exp(X[:, 0]),
        "copies": np.ones(N_ROWS), "n_features": 4,
        "batches": [(X[:120], Y[:120]), (X[120:], Y[120:])],
        "stream": [(dict(enumerate(row)), label) for row, label in zip(X.tolist(), Y, strict=True)],
    }  # fmt: skip
    for line in BEGINNING.strip().splitlines():
        if line.rpartition(" ")[2] in text:
            exec(line, given)
    return given | {"model": RankRC().fit(X, Y)}


BEGINNING = """
from imblearn.ensemble import BalancedRandomForestClassifier
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from rareclass import RankRC
from rareclass import RankRCCV
"""


def made_table(X):
    return pl.DataFrame(
        {
            "amount": X[:, 0],
            "age": X[:, 1],
            "kind": [("a", "b", "c")[k % 3] for k in range(len(X))],
            "day": [dt.date(2026, 1, 1) + dt.timedelta(days=k // 4) for k in range(len(X))],
        }
    )


def write_payments():
    Path("payments").mkdir()
    numbers = pl.DataFrame(made_names()["X"], schema=list("abcd"))
    numbers.write_parquet("new.parquet")
    numbers.with_columns(fraud=pl.Series(Y.astype(int))).write_parquet("payments/part.parquet")


def write_model(name):
    table = made_table(made_names()["X"])
    table.with_columns(fraud=pl.Series(Y.astype(int))).write_csv("train.csv")
    table.write_parquet("new_rows.parquet")
    table.write_csv("last_weeks.csv")
    table.write_csv("new.csv")
    words = ["fit", "train.csv", "-t", "fraud", "--method", "mibc", "--out", name]
    assert CliRunner().invoke(app, words).exit_code == 0


def write_checked():
    made_table(made_names()["X"]).write_csv("month.csv")
    rows = np.flatnonzero(Y | (np.arange(N_ROWS) % 5 == 1))
    reason = np.where(Y[rows], "alert", "random")
    checked = {"row": rows + 1, "label": Y[rows].astype(int), "reason": reason}
    pl.DataFrame(checked).write_csv("checked.csv")


def write_shop():
    table = made_table(made_names()["X"]).with_columns(fraud=pl.Series(Y.astype(int)))
    table.write_parquet("new_rows.parquet")
    with dbapi.connect("shop.db") as shop, shop.cursor() as cursor:
        cursor.adbc_ingest("payments", table.drop("day").to_arrow())
        shop.commit()


def write_stream():
    table = made_table(made_names()["X"]).drop("day")
    labels = pl.Series(Y.astype(int))
    table.with_columns(fraud=labels, id=pl.int_range(N_ROWS)).write_csv("stream.csv")
    words = ["stream", "stream.csv", "--target", "fraud", "--checkpoint", "run", "--id", "id"]
    assert CliRunner().invoke(app, words).exit_code == 0


EXAMPLES = sorted((DOCS / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_has_a_story_and_needs_no_files(path):
    text = path.read_text()
    title, line, _, *story = ast.get_docstring(ast.parse(text)).split("\n")
    assert set(line) == {"="}
    assert len(line) >= len(title)
    assert len(" ".join(story)) > 100
    assert "# %%\n# " in text
    assert not re.search(r"https?:|fetch_|read_csv|read_parquet\(|open\(", text)


@pytest.mark.thorough
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs_and_draws(path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    pyplot.switch_backend("agg")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    names = runpy.run_path(str(path))
    drawn = [value for value in names.values() if isinstance(value, Figure)]
    pyplot.close("all")
    assert drawn
