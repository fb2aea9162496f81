"""The nearest rare cases, beside distances worked out one pair and one column at a time."""

from bisect import bisect_left, bisect_right

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from draws import draws
from rareclass import MIBC, RACH, RankRC, RareClassifier
from rareclass.ensemble.members.machines import LogisticOnQuantiles
from rareclass.explain import nearest_cases
from rareclass.explain.near_cases import case_features, table_distances

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
Y = (np.arange(90) % 8 == 3).astype(int)
X[Y == 1, 1] += 2.0
NEW = np.vstack([RNG.normal(size=(6, 4)), X[3]])
CASES = X[Y == 1]


def made_table(n_rows, seed):
    rng = np.random.default_rng(seed)
    rare = np.arange(n_rows) % 6 == 2
    amount = (rng.normal(size=n_rows) + 2 * rare).round(1)
    frame = pl.DataFrame(
        {
            "amount": pl.Series([None if k % 7 == 1 else float(amount[k]) for k in range(n_rows)]),
            "word": [None if k % 9 == 0 else "abc"[rng.integers(3)] for k in range(n_rows)],
            "hour": [f"2024-01-01 {rng.integers(24):02}:00:00" for _ in range(n_rows)],
        }
    )
    return frame, rare


@pytest.fixture(scope="module")
def table_model():
    frame, rare = made_table(120, 0)
    members = [LogisticOnQuantiles(strengths=(0.1,))]
    return RareClassifier(members=members, cv=2, random_state=0).fit(frame, rare), frame, rare


def rank(values, cell):
    """The share of the values below a number, and half of those equal."""
    ordered = sorted(value for value in values if value is not None)
    if cell <= ordered[0] or cell >= ordered[-1]:
        cell = min(max(cell, ordered[0]), ordered[-1])
    low, high = bisect_left(ordered, cell), bisect_right(ordered, cell)
    if low == high:  # between two of them, on the line between their ranks
        below, above = ordered[low - 1], ordered[low]
        share = (cell - below) / (above - below)
        return (1 - share) * rank(values, below) + share * rank(values, above)
    return (low + high) / 2 / len(ordered)


def apart(column, values, one, other):
    if one is None or other is None:
        return float((one is None) != (other is None))
    if column == "amount":
        return abs(rank(values, one) - rank(values, other))
    if column == "word":
        return float(one != other)
    waves = []
    for cell in (one, other):
        turn = 2 * np.pi * int(cell[11:13]) / 24
        waves.append((np.sin(turn), np.cos(turn)))
    return float(np.mean(np.abs(np.subtract(*waves)) / 2))


def slow_distances(model, train, rows, cases):
    losses = np.maximum(model.feature_importances_, 0.0)
    weights = 0.5 / len(losses) + 0.5 * losses / losses.sum()
    found = np.zeros((rows.height, cases.height))
    for weight, column in zip(weights, train.columns, strict=True):
        values = train[column].to_list()
        for i, one in enumerate(rows[column]):
            for j, other in enumerate(cases[column]):
                found[i, j] += weight * apart(column, values, one, other)
    return found


@draws(10)
@given(seed=st.integers(1, 1000))
def test_rows_of_a_table_are_apart_by_the_columns(table_model, seed):
    model, train, rare = table_model
    new, cases = made_table(9, seed)[0], train.filter(rare)
    expected = slow_distances(model, train, new, cases)
    found = table_distances(model, case_features(model, new), case_features(model, cases))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    nearest = nearest_cases(model, new, cases, 4)
    order = np.argsort(expected.round(12), axis=1, kind="stable")[:, :4]
    np.testing.assert_allclose(
        nearest.distances, np.take_along_axis(expected, order, axis=1), atol=1e-12
    )


def test_columns_count_alike_where_none_is_known_to_matter(table_model):
    model, train, _ = table_model
    losses = model.feature_importances_
    try:
        model.feature_importances_ = np.full(3, np.nan)
        one, other = (case_features(model, train[k]) for k in (2, 3))
        cells = zip(train.row(2), train.row(3), train.columns, strict=True)
        parts = [apart(name, train[name].to_list(), a, b) for a, b, name in cells]
        np.testing.assert_allclose(table_distances(model, one, other), np.mean(parts), atol=1e-12)
    finally:
        model.feature_importances_ = losses


def test_texts_are_apart_by_their_words():
    n_rows, rng = 90, np.random.default_rng(3)
    words = ["late parcel never came", "card stolen abroad again", "please close my account"]
    told = [f"{words[k % 3]} {rng.integers(10**6)}" for k in range(n_rows)]
    frame, rare = pl.DataFrame({"told": told, "x": rng.normal(size=n_rows)}), np.arange(90) % 5 == 1
    members = [LogisticOnQuantiles(strengths=(0.1,))]
    model = RareClassifier(members=members, cv=2, random_state=0).fit(frame, rare)
    model.feature_importances_ = np.array([1.0, 0.0])
    new = pl.DataFrame({"told": [words[0], words[2], None], "x": [0.0, 0.0, 0.0]})
    found = nearest_cases(model, new, frame, 1)
    assert [told[k].startswith(words[j]) for k, j in zip(found.places[:2, 0], (0, 2), strict=True)]
    cases = case_features(model, new)
    apart = table_distances(model, cases, cases)
    np.testing.assert_allclose(np.diag(apart), 0.0, atol=1e-12)
    assert ((apart >= 0) & (apart <= 1)).all()


def test_linear_scores_differ_by_no_more_than_the_distance():
    model = MIBC().fit(X, Y)
    found = nearest_cases(model, NEW, CASES, 2)
    weighed = np.abs((NEW[:, None] - CASES) * model.coef_).sum(axis=2)
    assert found.places.tolist() == np.argsort(weighed, axis=1)[:, :2].tolist()
    np.testing.assert_allclose(found.distances, np.sort(weighed, axis=1)[:, :2], atol=1e-12)
    gap = np.abs(model.score_samples(NEW)[:, None] - model.score_samples(CASES))
    assert (gap <= weighed + 1e-12).all()
    assert (found.places[-1, 0], found.distances[-1, 0]) == (0, 0.0)


@pytest.mark.parametrize("scaling", [None, pytest.param("learned", marks=pytest.mark.thorough)])
def test_kernel_machines_compare_in_the_space_of_the_kernel(scaling):
    model = RankRC(feature_scaling=scaling).fit(X, Y)
    scales = 1.0 if scaling is None else model.feature_scales_
    squared = ((scales * (NEW[:, None] - CASES)) ** 2).sum(axis=2)
    apart = np.sqrt(2.0 - 2.0 * np.exp(-squared / model.width_**2))
    found = nearest_cases(model, NEW, CASES)
    assert found.places.tolist() == np.argsort(apart, axis=1)[:, :3].tolist()
    np.testing.assert_allclose(found.distances, np.sort(apart, axis=1)[:, :3], atol=1e-7)


def test_few_cases_equal_cases_and_none(monkeypatch):
    model = MIBC().fit(X, Y)
    twice = CASES[[1, 0, 0]]
    assert nearest_cases(model, CASES[:1], twice, 2).places.tolist() == [[1, 2]]
    found = nearest_cases(model, NEW, CASES[:2], 3)
    assert found.places.shape == found.distances.shape == (len(NEW), 2)
    whole = nearest_cases(model, NEW, CASES, 3)
    monkeypatch.setattr("rareclass.explain.near_cases._ENTRIES", 20)
    assert nearest_cases(model, NEW, CASES, 3).places.tolist() == whole.places.tolist()


@pytest.mark.filterwarnings("ignore:the ball of")  # any ball will do
def test_what_compares_no_cases_is_refused():
    with pytest.raises(TypeError, match="LogisticRegression compares no cases"):
        nearest_cases(LogisticRegression(), NEW, CASES)
    labels = np.where(Y == 1, 1.0, np.where(np.arange(90) % 2 == 0, 0.0, np.nan))
    ball = RACH(pos_label=1).fit(np.where(Y[:, None] == 1, 0.2 * X + 9.0, X), labels)
    with pytest.raises(TypeError, match="RACH compares no cases"):
        nearest_cases(ball, NEW, CASES)
    with pytest.raises(ValueError, match="k=0 must be"):
        nearest_cases(MIBC().fit(X, Y), NEW, CASES, 0)
