"""The picture of a ball: who is in it, and that a projection only shortens."""

import numpy as np
import pytest
from scipy import sparse

from hyperball.rach_cases import (
    CLEARED,
    QUIET,
    RARE,
    UNKNOWN,
    hidden_cluster,
    several_clusters,
    unwarned,
)
from rareclass.hyperball import RACH
from rareclass.hyperball.description import (
    LABELLED_MAJORITY,
    LABELLED_RARE,
    UNLABELLED_INSIDE,
    UNLABELLED_OUTSIDE,
)


def fitted(X, y, **options):
    with unwarned():
        return RACH(**{**QUIET, **options}).fit(X, y)


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
    model = fitted(held, y, **options)
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
    model = fitted(X, y)
    picture = model.picture()
    rows = np.concatenate([model.rows_, np.setdiff1d(np.arange(len(y)), model.rows_)])
    np.testing.assert_allclose(picture.coordinates, (X - model.center_)[rows], atol=1e-9)
    assert picture.axis_names == ("x0", "x1")
    assert fitted(X[:, :1], y).picture().axis_names == ("x0", "")


def test_of_more_features_the_axes_are_the_way_to_the_others_and_their_widest_across():
    rng = np.random.default_rng(0)
    X, y, _ = hidden_cluster(p=5)
    others = y != RARE
    X[others, 0] = 60.0 + 20.0 * rng.normal(size=others.sum())  # wider, but the first axis
    X[others, 3] += 8.0 * rng.normal(size=others.sum())  # the widest across
    model = fitted(X, y, filter=False, C2=1e-5)
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
    model = fitted(X, y)
    for number, ball in enumerate(model.balls_):
        picture = model.picture(number)
        assert picture.title == str(ball.label)
        assert picture.radius == ball.radius
        assert (picture.kinds == LABELLED_RARE).sum() == (y == ball.label).sum()
        # Cases of the other category are majority rows to this one.
        assert (picture.kinds == LABELLED_MAJORITY).sum() == ((y >= 0) & (y != ball.label)).sum()


def test_rare_rows_alone():
    picture = fitted(np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]]), [1, 1]).picture()
    assert picture.kinds.tolist() == [LABELLED_RARE, LABELLED_RARE]
    assert len(picture.distances) == 0
    assert np.isfinite(picture.coordinates).all()
    np.testing.assert_allclose(np.linalg.norm(picture.coordinates, axis=1), picture.radius)
