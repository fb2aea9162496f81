"""Spark DataFrames: a real Spark of two tasks at a time on this machine."""

import os
import re
import shutil
import signal
import sys
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from draws import draws
from rareclass import (
    MIBC,
    OrdinalRankRC,
    RankRC,
    RankRCCV,
    RareClassifier,
)
from rareclass.errors import InputError
from rareclass.rows import from_spark, rows_of
from rows import test_rows_contract as contract

pyspark = pytest.importorskip("pyspark", reason="PySpark is not here: make test-spark installs it")
if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    pytest.skip(
        "Spark needs Java, which is not here: apt install default-jre-headless, then "
        "make test-spark",
        allow_module_level=True,
    )

from pyspark.ml.linalg import Vectors  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402, N812 - as everybody names it

from rareclass.estimators.spark import with_scores  # noqa: E402

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
for module in (contract, sys.modules[__name__]):  # executors cannot import tests
    cloudpickle.register_pickle_by_value(module)
    pyspark.cloudpickle.register_pickle_by_value(module)

N = 900
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
Y = (X[:, 0] ** 2 + X[:, 1] / 2 + RNG.normal(size=N) / 2 > 3.5).astype(int)
LEVELS = Y + (X[:, 0] > 2)
WEIGHT = RNG.integers(0, 4, N).astype(float)
FRAME = pd.DataFrame(X, columns=list("abcd"))


@pytest.fixture(scope="module")
def spark():
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",
    }
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    before = os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = builder.getOrCreate()
    yield session
    session.stop()
    del os.environ["PYSPARK_PYTHON"]
    if before is not None:
        os.environ["PYSPARK_PYTHON"] = before


def frame_of(spark, table, edges):
    """A DataFrame with rows ``edges[k]:edges[k + 1]`` in partition k."""
    rows = list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    parts = [rows[start:stop] for start, stop in pairwise(edges)]
    cells = spark.sparkContext.parallelize(parts, len(parts)).flatMap(lambda part: part)
    kinds = {
        pa.float64(): "double", pa.float32(): "float", pa.int64(): "long", pa.string(): "string",
        pa.bool_(): "boolean",
    }  # fmt: skip
    return spark.createDataFrame(
        cells, ", ".join(f"`{field.name}` {kinds[field.type]}" for field in table.schema)
    )


def table_of(**beside):
    return pa.table({name: X[:, k] for k, name in enumerate("abcd")} | beside)


def even(n_parts):
    return np.linspace(0, N, n_parts + 1).astype(int).tolist()


def rows_from(spark, edges, **beside):
    names = {"target": "y"} | ({"weight": "w"} if "w" in beside else {})
    return from_spark(frame_of(spark, table_of(**beside), edges), **names)


def assert_same_scores(estimator, rows, y=Y, weight=None):
    expected = estimator.fit(FRAME, y, weight).score_samples(FRAME)
    found = estimator.fit_rows(rows).score_samples(FRAME)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


thorough = pytest.mark.thorough
RANKRC = RankRC(lam=2**-6, tol=1e-10)
FITS = [
    (MIBC(), 2, thorough),
    (RankRC(lam=1.0, tol=1e-3, landmarks=("rare", 5), random_state=0), 2, thorough),
    *((RANKRC, n, thorough) for n in (1, 2, 7)),
    (MIBC(), 1, thorough),
    (MIBC(), 7, thorough),
    (RankRC(lam=2**-6, tol=1e-10, landmarks=("rare", 20), random_state=0), 7, thorough),
    (RankRC(lam=2**-6, tol=1e-10, loss="partial_auc"), 2, thorough),
    (RankRCCV(lams=[1.0, 0.1], cv=2, tol=1e-8, random_state=0), 2, thorough),
]


@pytest.mark.parametrize(
    ("estimator", "n_parts"), [pytest.param(e, n, marks=marks) for e, n, marks in FITS], ids=str
)
def test_a_fit_is_the_one_in_memory(spark, estimator, n_parts):
    weight = WEIGHT if n_parts == 2 else None
    beside = {"y": Y} if weight is None else {"y": Y, "w": weight}
    with rows_from(spark, even(n_parts), **beside) as rows:
        assert rows.feature_names == tuple("abcd")
        assert_same_scores(estimator, rows, weight=weight)


@thorough
def test_levels_are_the_same_too(spark):
    with rows_from(spark, even(2), y=LEVELS) as rows:
        assert_same_scores(OrdinalRankRC(tol=1e-10), rows, LEVELS)


def test_labels_in_words_and_partitions_without_rows_or_rare_rows(spark):
    order = np.argsort(-Y, kind="stable")  # the rare rows are all in the first partitions
    names = np.where(Y, "fraud", "ok")[order]
    table = table_of().take(order).append_column("y", pa.array(names.tolist()))
    with from_spark(frame_of(spark, table, [0, 0, 20, 500, 500, N]), "y") as rows:
        assert len(rows.source.offsets) == 4
        np.testing.assert_array_equal(rows.y, names)
        some = np.array([N - 1, 0, 30])
        np.testing.assert_array_equal(rows.source.take(some), X[order[some]])
        found = MIBC().fit_rows(rows)
    assert found.classes_.tolist() == ["fraud", "ok"]
    np.testing.assert_allclose(found.coef_, MIBC().fit(X, Y).coef_, rtol=1e-8)


def in_spark(X, edges, y):
    spark = SparkSession.getActiveSession()
    columns = {f"c{k}": column for k, column in enumerate(X.T)}
    return from_spark(frame_of(spark, pa.table(columns | {"y": y}), edges), "y")


DENSE = contract.tables().filter(lambda table: not sparse.issparse(table[0]))
THE_SAME = contract.test_rows_are_the_same_wherever_they_live.hypothesis.inner_test
A_PART = contract.test_a_part_has_the_same_rows_wherever_they_live.hypothesis.inner_test


@thorough
@draws(2)
@given(DENSE, st.integers(1, 20), st.sampled_from([0, 300, 10**6]), st.integers(1, 2))
def test_rows_are_the_same_wherever_they_live(spark, table, block_rows, budget, n_jobs):
    THE_SAME(in_spark, table, block_rows, budget, n_jobs)


@thorough
@draws(1)
@given(DENSE, st.integers(1, 7), st.integers(1, 4))
def test_a_part_has_the_same_rows_wherever_they_live(spark, table, block_rows, stride):
    A_PART(in_spark, table, block_rows, stride, 0, True)


def test_types_of_columns(spark):
    table = pa.table(
        {
            "f": pa.array([0.5, 1.5], pa.float32()), "k": pa.array([7, 8], pa.int64()),
            "b.x": [True, False], "s": ["u", "v"], "y": [0, 1],
        }
    )  # fmt: skip
    frame = frame_of(spark, table, [0, 2])
    with from_spark(frame, "y", columns=["b.x", "f"]) as rows:
        assert rows.source.dtype == np.float32
        np.testing.assert_array_equal(rows.source.take(slice(None)), [[1, 0.5], [0, 1.5]])
    with pytest.raises(InputError, match=r"column 's' holds string, not numbers.*StringIndexer"):
        from_spark(frame, "y")
    with pytest.raises(InputError, match="no column 'z'"):
        from_spark(frame, "z")
    with pytest.raises(TypeError, match="ndarray is no Spark DataFrame"):
        from_spark(X)
    more = spark.createDataFrame(
        [(Decimal("1.5"), [1.0, 2.0], Vectors.dense([5, 6])),
         (Decimal("2.5"), [3.0, 4.0], Vectors.sparse(2, [1], [8.0]))],
        ["d", "a", "v"],
    ).coalesce(1)  # fmt: skip
    with from_spark(more) as rows:
        assert rows.feature_names == ("d", "a[0]", "a[1]", "v[0]", "v[1]")
        assert rows.y is None
        found = rows.source.take(slice(None))
    np.testing.assert_array_equal(found, [[1.5, 1, 2, 5, 6], [2.5, 3, 4, 0, 8]])


def one_partition(spark, rows, schema):
    return spark.createDataFrame(rows, schema).coalesce(1)


BAD = [
    ([(1.0, 0), (None, 1)], "a double, y int", r"NaN: row 1, column 'a'"),
    ([(1.0, 0), (2.0, None)], "a double, y int", r"row 1 .*column 'y': the cell is empty.*dropna"),
    ([([1.0], 0), ([1.0, 2.0], 1)], "a array<double>, y int", r"row 1 .*'a': .*2 entries"),
]  # fmt: skip


@pytest.mark.parametrize(("cells", "schema", "message"), BAD)
def test_bad_cells_are_named(spark, cells, schema, message):
    with pytest.raises(InputError, match=f"part(ition)? 0.*{message}"):
        from_spark(one_partition(spark, cells, schema), "y")


def test_no_rows(spark):
    with pytest.raises(InputError, match="no rows"):
        from_spark(one_partition(spark, [], "a double, y int"), "y")


@thorough
def test_partitions_that_change_are_told(spark):
    frame = spark.range(0, 40, 1, 2).select(F.rand().alias("a"), (F.col("id") % 2).alias("y"))
    frame = frame.mapInArrow(noise, "a double, y long")
    rows = from_spark(frame, "y")
    kept = rows_of(rows.source)
    kept.sum(count)
    rows.source.engine._stored.unpersist(blocking=True)
    with pytest.raises(
        InputError, match=r"partition 0 was lost, and Spark computed it again.*Parquet"
    ):
        kept.sum(count)
    rows.close()


def noise(batches):
    for batch in batches:
        cells = np.frombuffer(os.urandom(4 * batch.num_rows), np.uint32).astype(float)
        yield pa.RecordBatch.from_arrays([pa.array(cells), batch["y"]], names=["a", "y"])


def count(block):
    return (float(len(block.X)),)


@thorough
def test_what_is_large_goes_once_and_is_let_go_of(spark):
    with rows_from(spark, even(3), y=Y) as rows:
        kept, engine = rows_of(rows.source), rows.source.engine
        factor = contract.Factor(np.zeros(50_000))
        for _ in range(2):
            assert kept.sum(contract.size_of_factor, factor) == (3 * 50_000,)
        (lent,) = next(v for name, v in engine._carried.items() if name.startswith("Factor"))
        assert hasattr(lent, "destroy")
        assert engine.passes[-1].sent_bytes < 3_000
        del factor
        kept.sum(count)
        assert not any(name.startswith("Factor") for name in engine._carried)


@thorough
def test_workers_that_are_killed_change_nothing(spark, tmp_path):
    here, seen = os.getpid(), tmp_path / "seen"

    def kernel(A, B):
        if os.getpid() != here and not seen.exists():
            seen.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return A @ B.T

    with rows_from(spark, even(3), y=Y) as rows:
        assert_same_scores(RankRC(kernel=kernel, tol=1e-8), rows)
    assert seen.exists()


def test_scores_are_a_lazy_column(spark):
    model = MIBC().fit(FRAME, np.where(Y, "fraud", "ok"))
    frame = frame_of(spark, table_of(id=np.arange(N)), [0, 0, 400, N])
    scored = model.predict(with_scores(frame, model)).toArrow().to_pandas()
    assert list(scored.columns) == [*"abcd", "id", "score", "prediction"]
    np.testing.assert_allclose(scored["score"], model.score_samples(FRAME), rtol=1e-12)
    np.testing.assert_array_equal(scored["prediction"], model.predict(FRAME))
    with pytest.raises(InputError, match=r"column 'score' already.*name="):
        model.score_samples(with_scores(frame, model))
    with pytest.raises(InputError, match="no column 'a', which the model was fitted on"):
        with_scores(frame.drop("a"), model)
    with pytest.raises(ValueError, match="method must be one of"):
        with_scores(frame, model, method="fit")


@thorough
def test_other_models_score_too(spark):
    frame = frame_of(spark, table_of(), even(2))
    model = RankRCCV(lams=[0.1], cv=3).fit(X, Y)  # knows no names
    for method in ("score_samples", "decision_function", "predict", "predict_proba", "transform"):
        found = [row[-1] for row in getattr(model, method)(frame).collect()]
        expected = getattr(model, method)(X)
        np.testing.assert_allclose(np.array(found), expected, rtol=1e-9, atol=1e-12)
    words = table_of(word=[("a", "b", "c")[k % 3] for k in range(N)])
    model = RareClassifier(members=["logistic regression"], time_budget=20).fit(words, Y)
    found = model.score_samples(frame_of(spark, words, even(2))).toArrow()["score"]
    np.testing.assert_allclose(found, model.score_samples(words), rtol=1e-9)
    vectors = frame.select(F.array("a", "b", "c", "d").alias("v"))
    with from_spark(vectors.withColumn("y", (F.col("v")[0] > 1).cast("int")), "y") as rows:
        model = MIBC().fit_rows(rows)
    assert len(model.score_samples(vectors).collect()) == N


@thorough
def test_cells_that_cannot_be_scored_are_named(spark):
    model = MIBC().fit(FRAME, Y)
    bad = frame_of(spark, table_of(), even(2)).withColumn("b", F.lit(float("nan")))
    with pytest.raises(Exception, match=r"partition \d .*NaN: row 0, column 'b'"):
        model.score_samples(bad).collect()


@thorough
def test_a_cut_off_fit_goes_on_from_its_checkpoint(spark, tmp_path):
    model = RankRC(tol=1e-6, landmarks=("rare", 10), random_state=0)
    frame = frame_of(spark, table_of(y=Y), even(2))
    with from_spark(frame, "y", checkpoint=tmp_path / "passes") as rows:
        expected = model.fit_rows(rows).score_samples(FRAME)
    with from_spark(frame, "y", checkpoint=tmp_path / "passes") as rows:
        np.testing.assert_array_equal(model.fit_rows(rows).score_samples(FRAME), expected)
        assert all(each.kind != "sum" for each in rows.source.engine.passes)


@thorough
def test_code_of_the_page_runs(spark, tmp_path):
    # Spark's own process began elsewhere: a relative path would be there.
    folder = str(tmp_path / "payments")
    frame_of(spark, table_of(fraud=Y), even(2)).write.parquet(folder)
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "spark.md").read_text()
    names = {"spark": spark}
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        code = block.replace('parquet("payments")', f"parquet({folder!r})")
        exec(compile(code, "spark.md", "exec"), names)
    assert names["alerts"].num_rows == 50
    assert names["alerts"].column_names == [*"abcd", "fraud", "score"]
