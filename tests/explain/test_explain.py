"""What explanations add up to, and what they change, beside scores of rows changed one by one."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from draws import draws
from rareclass import MIBC, RACH, OrdinalRankRC, RankRC, RankRCCV, RareClassifier, StochasticRankRC
from rareclass.ensemble.members.machines import LogisticOnQuantiles
from rareclass.explain import Explanation, KernelExplanation, explain
from rareclass.online import CBR

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4)) + 3.0
Y = (np.arange(90) % 8 == 3).astype(int)
X[Y == 1, 1] += 2.0
NEW = RNG.normal(size=(7, 4)) + 3.0
TYPICAL = np.median(X, axis=0)


def one_by_one(model, rows, typical, groups):
    """Scores less the scores of rows whose features of a group are typical."""
    effects = []
    for group in groups:
        changed = rows.copy()
        changed[:, group] = typical[group]
        effects.append(model.score_samples(rows) - model.score_samples(changed))
    return np.column_stack(effects)


class Cubic:
    def block(self, X, Z):
        return (1.0 + X @ Z.T / 50.0) ** 3

    def diag(self, X):
        return (1.0 + np.einsum("ij,ij->i", X, X) / 50.0) ** 3

    def __str__(self):  # names the test, the same in every process
        return "cubic"


KERNELS = [
    RankRC(),
    RankRC(kernel="laplace", landmarks=("rare+majority", 5)),
    RankRC(kernel="linear", landmarks="all"),
    RankRC(kernel="polynomial"),
    RankRC(kernel=Cubic()),
    RankRC(feature_scaling="learned"),
    StochasticRankRC(),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("model", KERNELS, ids=lambda each: f"{type(each).__name__} {each.kernel}")
def test_pulls_add_up_and_features_do_what_replacing_them_does(model):
    model.fit(X, Y)
    told = explain(model, NEW, typical=TYPICAL)
    assert isinstance(told, KernelExplanation)
    scores = model.score_samples(NEW)
    np.testing.assert_allclose(told.pulls.sum(axis=1), scores, rtol=1e-9, atol=1e-9)
    groups = [[j] for j in range(4)]
    expected = one_by_one(model, NEW, TYPICAL, groups)
    np.testing.assert_allclose(told.contributions, expected, rtol=1e-7, atol=1e-9)
    grouped = explain(model, NEW, typical=TYPICAL, groups=["a", "b", "a", "c"])
    assert grouped.columns == ["a", "b", "c"]
    expected = one_by_one(model, NEW, TYPICAL, [[0, 2], [1], [3]])
    np.testing.assert_allclose(grouped.contributions, expected, rtol=1e-7, atol=1e-9)


def test_the_nearest_are_rare_rows_that_pull_up_most():
    model = RankRC(landmarks=("rare+majority", 5)).fit(X, Y)
    told = explain(model, NEW, typical=TYPICAL)
    nearest = told.nearest(3)
    for row, chosen in zip(told.pulls, nearest, strict=True):
        assert Y[told.landmark_rows[chosen[0]]] == 1
        assert sorted(row)[::-1][:3] == row[chosen].tolist()
    none = replace(told, pulls=-np.abs(told.pulls)).nearest(2)
    assert [each.tolist() for each in none] == [[] for _ in NEW]


def test_sparse_rows_searches_and_levels_are_explained_as_dense_machines():
    model = RankRCCV(lams=[1.0, 0.1], cv=2).fit(X, Y)
    dense, thin = explain(model, NEW), explain(model, sparse.csr_array(NEW))
    np.testing.assert_allclose(thin.contributions, dense.contributions, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(dense.score, model.score_samples(NEW), rtol=1e-9)
    levels = OrdinalRankRC().fit(X, np.where(np.arange(90) % 20 == 1, 2, Y))
    told = explain(levels, NEW)
    np.testing.assert_allclose(told.pulls.sum(axis=1), levels.score_samples(NEW), rtol=1e-9)


@pytest.fixture(scope="module")
def linear():
    return {"mibc": MIBC().fit(X, Y), "cbr": CBR(random_state=0).fit(X, Y)}


@draws(20)
@given(seed=st.integers(0, 1000))
def test_linear_contributions_and_base_add_up_to_the_score(linear, seed):
    typical = np.random.default_rng(seed).normal(size=4)
    for model in linear.values():
        told = explain(model, NEW, typical=typical, groups=list("aabc"))
        score = model.score_samples(NEW)
        np.testing.assert_allclose(told.base + told.contributions.sum(axis=1), score, atol=1e-9)
        np.testing.assert_allclose(told.score, score, atol=1e-9)
    # MIBC is compared with the mean of the majority.
    expected = (NEW - X[Y == 0].mean(axis=0)) * linear["mibc"].coef_
    np.testing.assert_allclose(explain(linear["mibc"], NEW).contributions, expected, atol=1e-9)


@pytest.mark.filterwarnings("ignore:the ball of")  # any ball will do
def test_distances_by_feature_add_up_to_the_depth():
    labels = np.where(Y == 1, 1.0, np.where(np.arange(90) % 2 == 0, 0.0, np.nan))
    rows = np.where(Y[:, None] == 1, 0.2 * X + 9.0, X)
    model = RACH(pos_label=1).fit(rows, labels)
    told = explain(model, NEW)
    depth = told.base + told.contributions.sum(axis=1)
    np.testing.assert_allclose(depth, model.score_samples(NEW), rtol=1e-9)
    assert (told.contributions <= 0).all()
    kernel = RACH(kernel="gaussian", pos_label=1).fit(rows, labels)
    with pytest.raises(ValueError, match="space of a kernel"):
        explain(kernel, NEW)


def table(n_rows, seed):
    rng = np.random.default_rng(seed)
    rare = np.arange(n_rows) % 7 == 2
    return pl.DataFrame(
        {
            "x": rng.normal(size=n_rows) + 2 * rare,
            "word": np.where(
                rare & (rng.random(n_rows) < 0.6), "b", rng.choice(["a", "c"], n_rows)
            ),
            "day": [f"2024-01-{1 + 5 * k % 31:02}" for k in range(n_rows)],
            "seldom": [None if k % 4 or not rare[k] else "s" for k in range(n_rows)],
            "empty": [None if k % 3 else float(k % 5) for k in range(n_rows)],
        }
    ), rare


def test_columns_of_a_table_change_the_score_as_scoring_them_replaced_does():
    train, rare = table(120, 0)
    members = [LogisticOnQuantiles(strengths=(0.1,))]
    model = RareClassifier(members=members, cv=2, random_state=0).fit(train, rare)
    new, _ = table(9, 1)
    word = pl.Series([*"abc", None, "z", *"abca"])
    new = new.with_columns(word=word, seldom=pl.Series(["s", None, "t"] * 3))
    told = explain(model, new)
    assert told.columns == ["x", "word", "day", "seldom", "empty"]
    np.testing.assert_allclose(told.score, model.score_samples(new), rtol=1e-12)
    commonest = train["word"].value_counts().sort("count")["word"][-1]
    typical = {"x": train["x"].median(), "word": commonest, "day": None, "seldom": None}
    typical["empty"] = train["empty"].median()
    for name, cell in typical.items():
        changed = new.with_columns(pl.lit(cell).cast(new[name].dtype).alias(name))
        expected = model.score_samples(new) - model.score_samples(changed)
        found = told.contributions[:, told.columns.index(name)]
        np.testing.assert_allclose(found, expected, atol=1e-9, err_msg=name)
    assert np.abs(told.contributions).max() > 0.1
    assert explain(model, new[:0]).contributions.shape == (0, 5)


def test_what_cannot_be_explained_is_refused(linear):
    with pytest.raises(TypeError, match="LogisticRegression is not explained"):
        explain(LogisticRegression(), NEW)
    with pytest.raises(ValueError, match="typical has shape"):
        explain(linear["cbr"], NEW, typical=[1.0])
    with pytest.raises(ValueError, match="groups has 1 entries"):
        explain(linear["cbr"], NEW, groups=["a"])


def test_the_strongest_raise_the_score():
    told = Explanation(np.zeros(2), np.array([[1.0, 0.0, 1.0], [-1.0, -2.0, -3.0]]), list("abc"))
    assert told.strongest(2) == told.strongest(5) == [["a", "c"], []]
