"""The description of a ball against figures worked out from the rows; its picture only shortens."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from hyperball.rach_cases import CLEARED, RARE, UNKNOWN, ball_of, hidden_cluster, several_clusters
from rareclass.hyperball.description import (
    LABELLED_MAJORITY,
    LABELLED_RARE,
    UNLABELLED_INSIDE,
    UNLABELLED_OUTSIDE,
)
from rareclass.hyperball.pool import MOST_ROWS

COLUMNS = ["ball", "label", "feature", "center", "inside_low", "inside_high", "outside_low"]
COLUMNS += ["outside_high", "overlap"]


def row_by_hand(X, inside, outside, column):
    a, b = X[inside, column], X[outside, column]
    low, high = np.quantile(a, [0.05, 0.95])
    return {
        "inside_low": low,
        "inside_high": high,
        "outside_low": np.quantile(b, 0.05),
        "outside_high": np.quantile(b, 0.95),
        "overlap": np.mean([low <= value <= high for value in b]),
    }


@pytest.mark.parametrize("kernel", [None, "gaussian"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_the_table_is_that_of_numpy(make, kernel):
    X, y, _ = hidden_cluster(p=4)
    X[:, 1] *= 100.0
    X[np.abs(X) < 0.2] = 0.0
    options = {"kernel": kernel, "C1": 0.0, "C2": 0.02} if kernel is None else {"kernel": kernel}
    model = ball_of(make(X), y, **options)
    description = model.describe()
    inside = (y == RARE) | (np.isin(np.arange(len(y)), model.balls_[0].found))
    outside = (y != RARE) & (model.predict(make(X)) != RARE)
    assert sorted(row["feature"] for row in description.table) == ["x0", "x1", "x2", "x3"]
    for row in description.table:
        assert list(row) == COLUMNS
        column = int(row["feature"][1:])
        by_hand = row_by_hand(X, inside, outside, column)
        assert {name: row[name] for name in by_hand} == pytest.approx(by_hand)
        center = X[inside, column].mean() if kernel else model.center_[column]
        assert row["center"] == pytest.approx(center)
        assert (row["ball"], row["label"]) == (0, RARE)
    overlap = [row["overlap"] for row in description.table]
    assert overlap == sorted(overlap)


@pytest.mark.parametrize(("n_telling", "by", "C2"), [(40, 3.0, 0.01), (120, 2.0, 1e-4)])
def test_of_many_features_the_hundred_whose_means_differ_most(n_telling, by, C2):
    """Among them is one that is constant outside, also where more than a hundred differ."""
    _, y, truth = hidden_cluster()
    X = np.random.default_rng(0).normal(size=(len(y), 200))
    telling = np.arange(n_telling)
    X[np.ix_(truth == 1, telling)] += by
    X[:, 150] = 1e-3 * (y == RARE)
    description = ball_of(X, y, C2=C2).describe()
    table = {row["feature"]: row for row in description.table}
    assert len(table) == 100
    assert n_telling > 100 or {f"x{k}" for k in telling} <= table.keys()
    assert table["x150"]["outside_high"] == 0.0 < table["x150"]["inside_high"]
    assert len(str(description).splitlines()) < 30


def test_the_numbers_at_the_top():
    X, y, _ = hidden_cluster()
    model = ball_of(X, y)
    (summary,) = model.describe().summaries
    ball = model.balls_[0]
    assert summary.radius == model.radius_
    assert summary.n_rare == (y == RARE).sum()
    assert summary.n_inside == (model.transduction_[y == UNKNOWN] == RARE).sum()
    assert summary.n_kept == (ball.kinds == 0).sum()
    assert summary.share_of_others == pytest.approx((model.predict(X[y != RARE]) == RARE).mean())
    assert (summary.ball, summary.name, summary.status) == (0, "1", "converged")


def test_a_constant_column_and_a_single_row_inside():
    X, y, _ = hidden_cluster(n_rare=1)
    X[:, 1] = 7.0
    model = ball_of(X, y, C2=1e-6)
    assert len(model.balls_[0].found) == 0
    table = {row["feature"]: row for row in model.describe().table}
    case = X[y == RARE][0]
    for column in range(3):
        row = table[f"x{column}"]
        assert row["inside_low"] == row["inside_high"] == case[column]
        assert row["center"] == pytest.approx(case[column], abs=1e-4)
    assert table["x1"]["overlap"] == 1.0
    assert table["x1"]["outside_low"] == table["x1"]["outside_high"] == 7.0
    assert "x1" in str(model.describe())


def test_rare_rows_alone():
    model = ball_of(np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]]), [1, 1])
    description, picture = model.describe(), model.picture()
    for row in description.table:
        assert np.isnan(row["outside_low"])
        assert row["overlap"] == 0.0
    (summary,) = description.summaries
    assert (summary.n_rare, summary.n_inside, summary.n_kept) == (2, 0, 0)
    assert str(description)
    assert picture.kinds.tolist() == [LABELLED_RARE, LABELLED_RARE]
    assert len(picture.distances) == 0
    assert np.isfinite(picture.coordinates).all()
    np.testing.assert_allclose(np.linalg.norm(picture.coordinates, axis=1), picture.radius)


def test_rows_of_no_weight_are_nowhere():
    X, y, _ = hidden_cluster()
    far = np.vstack([X, 1e3 * np.ones((2, 3)), X[:1]])
    labels = np.append(y, [UNKNOWN, CLEARED, UNKNOWN])
    weight = np.append(np.ones(len(y)), np.zeros(3))
    assert str(ball_of(far, labels, weight).describe()) == str(ball_of(X, y).describe())


def test_of_many_rows_a_sample_is_described():
    X, y, _ = hidden_cluster(n=7000, n_cluster=300)
    model = ball_of(X, y, C2=0.001)
    assert len(model.background_.rows) == MOST_ROWS
    assert (y[model.background_.rows] != RARE).all()
    assert len(np.unique(model.background_.rows)) == MOST_ROWS
    (summary,) = model.describe().summaries
    truth = (model.predict(X[y != RARE]) == RARE).mean()
    assert summary.share_of_others == pytest.approx(truth, abs=0.01)
    again = ball_of(X, y, C2=0.001)
    assert str(again.describe()) == str(model.describe())
    other = ball_of(X, y, C2=0.001, random_state=1)
    assert not np.array_equal(other.background_.rows, model.background_.rows)


def test_balls_that_meet():
    X, y, _ = several_clusters([[2.0, 0.0], [3.0, 0.0], [-9.0, 0.0]], scale=0.5)
    names = np.array(["ok", "fraud", "theft", "spam", None], dtype=object)[y]
    model = ball_of(X, names, C1=0.01, C2=0.005)
    fraud, spam, theft = model.balls_
    assert [ball.label for ball in model.balls_] == ["fraud", "spam", "theft"]
    (pair,) = model.describe().overlaps
    assert (pair.first, pair.second) == (0, 2)
    in_fraud, in_theft = fraud.depth(X) >= 0, theft.depth(X) >= 0
    assert pair.n_rows == (in_fraud & in_theft).sum() > 0
    assert pair.share == pytest.approx(pair.n_rows / min(in_fraud.sum(), in_theft.sum()))
    text = " ".join(str(model.describe()).split())
    assert f"meets the ball of theft: {pair.n_rows} rows in both, {pair.share:.0%} of the" in text
    assert f"meets the ball of fraud: {pair.n_rows} rows in both" in text
    assert "meets the ball of spam" not in text
    labels = [row["label"] for row in model.describe().table]
    assert labels == np.repeat(["fraud", "spam", "theft"], 2).tolist()
    assert (spam.depth(X) >= 0).any()


def test_surfaces_that_meet_where_no_row_is():
    X = np.array([[0.0, 0.0], [2.0, 0.0], [1.5, 1.2], [3.5, 1.2], [9.0, 9.0], [8.0, 9.0]])
    model = ball_of(X, [1, 1, 2, 2, 0, 0], pos_label=[1, 2], C1=0.01)
    (pair,) = model.describe().overlaps
    assert (pair.n_rows, pair.share) == (0, 0.0)
    X[2:4] *= 10
    apart = ball_of(X, [1, 1, 2, 2, 0, 0], pos_label=[1, 2], C1=0.01)
    assert apart.describe().overlaps == []


def test_balls_of_a_kernel_meet_only_where_a_row_is_in_both():
    X, y, _ = several_clusters([[6.0, 6.0], [-6.0, -6.0]], scale=0.5)
    model = ball_of(X, y, kernel="gaussian", width=4.0, C2=0.001)
    inside = [ball.depth(X) >= 0.0 for ball in model.balls_]
    assert all(each.any() for each in inside)
    assert not np.logical_and(*inside).any()
    assert model.describe().overlaps == []


def test_several_balls_of_one_category_are_told_apart():
    X, y, _ = several_clusters([[6.0, 6.0], [-6.0, -6.0]])
    model = ball_of(X, np.where(y > 0, RARE, y), n_balls=2, C2=0.05, filter=1.0)
    assert [one.name for one in model.describe().summaries] == ["1, ball 1 of 2", "1, ball 2 of 2"]
    assert "Ball of 1, ball 2 of 2: radius" in str(model.describe())


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_it_fits_on_a_screen(scale):
    X, y, _ = several_clusters([[4.0, 0.0] + [0.0] * 12, [0.0, 4.0] + [0.0] * 12])
    names = [f"a feature with quite a long name, number {k}" for k in range(14)]
    model = ball_of(pd.DataFrame(scale * X, columns=names), y)
    lines = str(model.describe()).splitlines()
    assert max(map(len, lines)) <= 80
    named = [line.split("…")[0] for line in lines if "…" in line]
    assert len(named) == 20  # ten a ball
    assert all(f"  {names[0]}".startswith(name) and len(name) >= 9 for name in named)


def test_the_words():
    X, y, _ = hidden_cluster()
    model = ball_of(pd.DataFrame(X, columns=["amount", "age", "visits"]), y)
    description = model.describe()
    lines = str(description).splitlines()
    (summary,) = description.summaries
    assert lines[0] == f"Ball of 1: radius {model.radius_:.4g}"
    said = (
        f"8 labelled rare rows; {summary.n_inside} of {summary.n_kept} unlabelled rows that are "
        f"near lie inside; so do {summary.share_of_others:.2%} of all other rows."
    )
    assert " ".join(lines[1:3]).split() == said.split()
    first = description.table[0]
    inside, outside = (
        f"{first[f'{side}_low']:.3g} to {first[f'{side}_high']:.3g}"
        for side in ("inside", "outside")
    )
    told = f"{first['feature']} {first['center']:.3g} {inside} {outside} {first['overlap']:.0%}"
    assert " ".join(lines[5].split()) == told


def kind_of(y, transduced):
    if y == RARE:
        return LABELLED_RARE
    if y == CLEARED:
        return LABELLED_MAJORITY
    return UNLABELLED_INSIDE if transduced == RARE else UNLABELLED_OUTSIDE


WAYS = {
    "two features": {"p": 2},
    "one feature": {"p": 1},
    "five features": {"p": 5},
    "sparse": {"p": 5, "make": sparse.csr_array},
    "sparse matrix": {"p": 5, "make": sparse.csr_matrix},
    "gaussian": {"p": 2, "kernel": "gaussian"},
    "few landmarks": {"p": 2, "kernel": "laplace", "n_landmarks": 10},
    "slack": {"p": 3, "radius_slack": 0.5},
    "without a filter": {"p": 3, "filter": False},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_row_is_there_once_and_inside_ones_within_the_disc(way):
    options = dict(WAYS[way])
    X, y, _ = hidden_cluster(p=options.pop("p"))
    held = options.pop("make", np.asarray)(X)
    model = ball_of(held, y, **options)
    picture = model.picture()
    # Those that entered the optimisation first, then the rest of the sample.
    far = np.setdiff1d(model.background_.rows, model.rows_)
    rows = np.concatenate([model.rows_, far])
    assert sorted(rows) == list(range(len(y)))
    assert picture.coordinates.shape == (len(rows), 2)
    by_hand = [kind_of(y[row], model.transduction_[row]) for row in model.rows_]
    by_hand += [kind_of(y[row], model.predict(held[row : row + 1])[0]) for row in far]
    assert picture.kinds.tolist() == by_hand
    # A projection only shortens.
    squared = model.radius_**2 - model.score_samples(held)[rows]
    lengths = np.linalg.norm(picture.coordinates, axis=1)
    assert (lengths**2 <= squared + 1e-9 * (1 + squared)).all()
    inside = np.isin(picture.kinds, [LABELLED_RARE, UNLABELLED_INSIDE])
    assert (lengths[inside] <= picture.radius * (1 + 1e-6)).all()
    assert picture.radius == model.radius_
    entered = y[model.rows_]
    true = np.sqrt(squared[: len(model.rows_)])
    np.testing.assert_allclose(picture.distances, true[entered == UNKNOWN], atol=1e-6)
    np.testing.assert_allclose(picture.rare_distances, true[entered == RARE], atol=1e-6)
    assert picture.title == "1"
    assert np.isfinite(picture.coordinates).all()


def test_of_two_features_the_plane_is_theirs():
    X, y, _ = hidden_cluster(p=2)
    model = ball_of(X, y)
    picture = model.picture()
    rows = np.concatenate([model.rows_, np.setdiff1d(np.arange(len(y)), model.rows_)])
    np.testing.assert_allclose(picture.coordinates, (X - model.center_)[rows], atol=1e-9)
    assert picture.axis_names == ("x0", "x1")
    assert ball_of(X[:, :1], y).picture().axis_names == ("x0", "")


def test_of_more_features_the_axes_are_the_way_to_the_others_and_their_widest_across():
    rng = np.random.default_rng(0)
    X, y, _ = hidden_cluster(p=5)
    others = y != RARE
    X[others, 0] = 60.0 + 20.0 * rng.normal(size=others.sum())  # wider, but the first axis
    X[others, 3] += 8.0 * rng.normal(size=others.sum())  # the widest across
    model = ball_of(X, y, filter=False, C2=1e-5)
    picture = model.picture()
    way = X[others].mean(axis=0) - model.center_
    way /= np.linalg.norm(way)
    apart = (X - model.center_)[model.rows_]
    np.testing.assert_allclose(picture.coordinates[:, 0], apart @ way, atol=1e-8)
    across = X[others] - X[others].mean(axis=0)
    across -= np.outer(across @ way, way)
    widest = np.linalg.svd(across, full_matrices=False)[2][0]
    second = np.abs(apart @ widest)
    np.testing.assert_allclose(np.abs(picture.coordinates[:, 1]), second, atol=1e-3 * second.max())
    assert picture.axis_names == (
        "towards the mean of the other rows",
        "their widest direction across",
    )
    np.testing.assert_array_equal(picture.coordinates, model.picture().coordinates)


def test_each_ball_has_a_picture():
    X, y, _ = several_clusters([[4.0, 0.0], [0.0, 4.0]])
    model = ball_of(X, y)
    for number, ball in enumerate(model.balls_):
        picture = model.picture(number)
        assert picture.title == str(ball.label)
        assert picture.radius == ball.radius
        assert (picture.kinds == LABELLED_RARE).sum() == (y == ball.label).sum()
        # Cases of the other category are majority rows to this one.
        assert (picture.kinds == LABELLED_MAJORITY).sum() == ((y >= 0) & (y != ball.label)).sum()
