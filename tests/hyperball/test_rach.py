"""RACH: what its ball is, what it must not depend on, and several of them."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from draws import draws
from hyperball.rach_cases import (
    CLEARED,
    PRICES,
    QUIET,
    RARE,
    SEEDS,
    UNKNOWN,
    ball_of,
    f1_by_hand,
    hidden_cluster,
    problem_1,
    several_clusters,
)
from rareclass.hyperball import RACH
from rareclass.hyperball.pool import groups_of

MARGINS = st.sampled_from([0.0, 0.0, 0.1, 1.0, 5.0])


@given(SEEDS, PRICES, PRICES, MARGINS, st.booleans(), st.integers(1, 6))
@example(808, 0.001, 0.2, 0.0, True, 4)  # cases outweigh the cleared rows
@draws(65)
def test_no_ball_nearby_is_better(seed, C1, C2, margin, weighted, n_rare):
    X, y, _ = hidden_cluster(n=60, n_cluster=15, p=2, n_rare=n_rare, n_cleared=10, seed=seed)
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 3, len(y)) if weighted else np.ones(len(y))
    weight[np.flatnonzero(y == RARE)[0]] = 1
    weight[np.flatnonzero(y == CLEARED)[0]] = 1
    given_weight = weight if weighted else None
    options = {"C1": C1, "C2": C2, "margin": margin, "filter": False, "pos_label": RARE}
    model = ball_of(X, y, given_weight, **options)
    assume(model.radius_ > 0.0 or not margin)

    def problem(at, squared):
        return problem_1(X, y, weight, at, squared, C1, C2, margin)

    center, squared = model.center_, model.radius_**2 - 0.5 * margin
    value, out = problem(center, squared)
    assert out <= (1e-6 * (1.0 + squared) if margin else 0.0)
    assert value == pytest.approx(model.objective_path_[-1], rel=1e-5, abs=1e-9)
    for _ in range(30):
        step = 10.0 ** rng.uniform(-3, 0)
        moved = center + step * rng.normal(size=2)
        rare = X[(y == RARE) & (weight > 0)]
        least = ((rare - moved) ** 2).sum(axis=1).max()
        for other in (least, max(least, squared * (1 + step * rng.normal()))):
            assert problem(moved, other)[0] >= value * (1 - 1e-6) - 1e-9
    if margin:  # not the multipliers but the border tells
        unknown = np.intersect1d(model.rows_, np.flatnonzero(y == UNKNOWN))
        np.testing.assert_array_equal(model.transduction_[unknown], model.predict(X[unknown]))


@given(seed=SEEDS, C1=PRICES, C2=PRICES)
@draws(25)
def test_multipliers_tell_inside_from_outside(seed, C1, C2):
    X, y, _ = hidden_cluster(n=80, n_cluster=20, seed=seed)
    model = ball_of(X, y, C1=C1, C2=C2)
    rows, given_label = model.rows_, y[model.rows_]
    bound = np.select([given_label == CLEARED, given_label == UNKNOWN], [C1, C2], np.inf)
    multipliers = model.multipliers_
    assert (multipliers >= 0).all()
    assert (multipliers <= bound).all()
    signed = np.where(given_label == CLEARED, -1.0, 1.0) * multipliers
    assert signed.sum() == pytest.approx(1.0, abs=1e-8)
    depth = model.score_samples(X[rows])
    off = np.abs(depth) > 1e-4 * model.radius_**2
    inside = np.where(given_label == CLEARED, depth < 0, depth > 0)
    np.testing.assert_allclose(multipliers[off & inside], 0.0, atol=1e-6)
    wrong = off & ~inside
    np.testing.assert_allclose(multipliers[wrong], bound[wrong], rtol=1e-5)
    assert model.support_.tolist() == rows[multipliers > 0].tolist()
    # Of rows off the sphere, multipliers and distances say the same.
    unknown = off & (given_label == UNKNOWN)
    np.testing.assert_array_equal(
        model.transduction_[rows[unknown]], model.predict(X[rows[unknown]])
    )


@given(seed=SEEDS, C1=PRICES, C2=PRICES, kernel=st.sampled_from([None, "gaussian", "laplace"]))
@draws(20)
def test_labelled_rows_keep_their_labels_and_cases_lie_inside(seed, C1, C2, kernel):
    X, y, _ = hidden_cluster(n=70, n_cluster=20, seed=seed)
    model = ball_of(X, y, C1=C1, C2=C2, kernel=kernel, tol=1e-6)
    known = y != UNKNOWN
    np.testing.assert_array_equal(model.transduction_[known], y[known])
    assert (model.predict(X[y == RARE]) == RARE).all()
    assert set(model.transduction_) <= {RARE, CLEARED}
    left_out = np.setdiff1d(np.arange(len(y)), model.rows_)
    assert (model.transduction_[left_out] == CLEARED).all()
    assert (np.diff(model.objective_path_) <= 0).all()


def test_a_single_case():
    X, y, truth = hidden_cluster(n_rare=1)
    model = ball_of(X, y, C2=1.0)
    assert model.score(X, truth) > 0.9
    assert (model.predict(X[y == RARE]) == RARE).all()


def test_a_case_alone():
    model = ball_of([[1.0, 2.0], [3.0, 4.0]], [1, 0], C1=0.1)
    np.testing.assert_allclose(model.center_, [1.0, 2.0], atol=1e-6)
    assert model.radius_ < 1e-3
    assert model.predict([[1.0, 2.0], [3.0, 4.0], [1.1, 2.0]]).tolist() == [1, 0, 0]


@given(seed=SEEDS, kernel=st.sampled_from([None, "gaussian"]), use_filter=st.booleans())
@draws(20)
def test_a_weight_is_so_many_copies_and_none_is_absence(seed, kernel, use_filter):
    X, y, _ = hidden_cluster(n=60, n_cluster=15, n_cleared=10, seed=seed)
    times = np.random.default_rng(seed).integers(0, 4, len(y))
    times[np.flatnonzero(y == RARE)[:2]] = 2
    times[np.flatnonzero(y == CLEARED)[0]] = 1
    copied = np.repeat(np.arange(len(y)), times)
    options = {"kernel": kernel, "filter": use_filter, "pos_label": RARE}
    weighted = ball_of(X, y, times, **options)
    copies = ball_of(X[copied], y[copied], **options)
    np.testing.assert_allclose(
        weighted.score_samples(X), copies.score_samples(X), atol=2e-5 * copies.radius_**2
    )
    assert sorted(set(copied[copies.rows_])) == weighted.rows_.tolist()
    assert not np.isin(weighted.rows_, np.flatnonzero(times == 0)).any()
    sure = np.abs(copies.score_samples(X)) > 1e-3 * copies.radius_**2
    sure &= times > 0
    found = np.full(len(y), CLEARED)
    found[copied] = copies.transduction_
    np.testing.assert_array_equal(weighted.transduction_[sure], found[sure])


@given(seed=SEEDS, data=st.data())
@draws(20)
def test_shift_rotation_scale_and_order_leave_labels_alone(seed, data):
    X, y, _ = hidden_cluster(n=80, seed=seed)
    plain = ball_of(X, y)
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    scale = data.draw(st.sampled_from([1e-3, 1.0, 1e4]))
    shift = data.draw(st.sampled_from([0.0, 1.0, 100.0])) * rng.normal(size=3)
    order = rng.permutation(len(y))
    moved = ball_of(scale * (X @ rotation + shift)[order], y[order])
    assert moved.radius_ == pytest.approx(scale * plain.radius_, rel=1e-5)
    np.testing.assert_allclose(
        moved.center_, scale * (plain.center_ @ rotation + shift), atol=1e-4 * moved.radius_
    )
    sure = np.abs(plain.score_samples(X)) > 1e-4 * plain.radius_**2
    sure = sure[order]
    np.testing.assert_array_equal(moved.transduction_[sure], plain.transduction_[order][sure])


def test_slack_is_added_to_the_squared_radius():
    X, y, _ = hidden_cluster()
    plain = ball_of(X, y)
    for slack in (0.3, -0.05):
        model = ball_of(X, y, radius_slack=slack)
        assert model.radius_**2 == pytest.approx(plain.radius_**2 + slack)
        np.testing.assert_array_equal(model.center_, plain.center_)
        # Multipliers know nothing of slack: distances tell.
        apart = ((X - model.center_) ** 2).sum(axis=1)
        inside = np.isin(np.arange(len(y)), model.rows_) & (apart <= model.radius_**2)
        unknown = y == UNKNOWN
        np.testing.assert_array_equal(model.transduction_[unknown] == RARE, inside[unknown])
    assert ball_of(X, y, radius_slack=-1e9).radius_ == 0.0


def test_larger_prices_of_unlabelled_rows_make_larger_balls_and_of_majority_rows_smaller_ones():
    X, y, _ = hidden_cluster()
    by_C2 = [len(ball_of(X, y, C2=C2).balls_[0].found) for C2 in (0.002, 0.02, 0.2, 2.0)]
    assert by_C2 == sorted(set(by_C2))
    cleared = X[y == CLEARED]
    by_C1 = [
        (ball_of(X, y, C1=C1, C2=0.1).predict(cleared) == RARE).sum() for C1 in (0.01, 1.0, 100.0)
    ]
    assert by_C1 == sorted(set(by_C1), reverse=True)


def test_unlabelled_rows_of_no_price_are_told_by_their_distance():
    X, y, _ = hidden_cluster()
    model = ball_of(X, y, C2=0.0)
    known = np.flatnonzero(y != UNKNOWN)
    alone = ball_of(X[known], y[known])
    np.testing.assert_allclose(model.center_, alone.center_, atol=1e-4)
    entered = np.intersect1d(model.rows_, np.flatnonzero(y == UNKNOWN))
    np.testing.assert_array_equal(model.transduction_[entered], model.predict(X[entered]))
    assert (model.transduction_[entered] == RARE).any()


def test_the_width_is_the_papers_where_it_is_not_given():
    X, y, _ = hidden_cluster(n=60, n_cleared=15)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weight[y == RARE] = 1
    model = ball_of(X, y, weight, kernel="gaussian")
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    expected = np.sqrt(weight @ squares @ weight) / weight.sum()
    assert model.width_ == pytest.approx(expected)
    assert ball_of(X, y, kernel="gaussian", width=0.7).width_ == 0.7
    assert ball_of(X, y).width_ is None


def test_a_callable_kernel_is_the_kernel():
    X, y, _ = hidden_cluster()

    def gaussian(A, B):
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / 4.0)

    mine = ball_of(X, y, kernel=gaussian)
    named = ball_of(X, y, kernel="gaussian", width=2.0)
    np.testing.assert_allclose(mine.score_samples(X), named.score_samples(X), atol=1e-6)
    np.testing.assert_array_equal(mine.transduction_, named.transduction_)


def test_few_landmarks_serve_about_as_well():
    X, y, _ = hidden_cluster(n=400, n_cluster=80)
    options = {"kernel": "gaussian", "width": 2.0, "C2": 0.01}
    exact, few = ball_of(X, y, **options), ball_of(X, y, n_landmarks=40, **options)
    assert len(few.landmarks_) <= 40
    assert len(exact.landmarks_) == len(exact.rows_)
    assert few.objective_path_[-1] >= exact.objective_path_[-1] * (1 - 1e-6)
    assert few.objective_path_[-1] < exact.objective_path_[-1] * 1.1


def test_a_solver_that_stops_short_says_so():
    X, y, _ = hidden_cluster()
    with pytest.warns(ConvergenceWarning, match=r"1 outer .* Raise max_outer=, max_inner= or tol="):
        model = RACH(**QUIET, max_outer=1, max_inner=1, tol=1e-13).fit(X, y)
    assert model.status_ == "reached max_iter"
    assert model.n_iter_ == 1
    assert ball_of(X, y, tol=1e-6).status_ == "converged"
    assert ball_of(X, y, tol=1e-6).duality_gap_ <= 1e-6


@pytest.mark.parametrize("names", [(0, 1), (1, 0), ("ok", "fraud"), ("a", "b"), (False, True)])
def test_scores_labels_and_their_signs(names):
    X, y, truth = hidden_cluster()
    named = np.array([names[0], names[1], None], dtype=object)[y]
    model = ball_of(X, named, C2=0.02, pos_label=names[1])
    assert model.classes_.tolist() == sorted(names)
    assert (model.pos_label_, model.majority_label_) == (names[1], names[0])
    depth = model.score_samples(X)
    apart = ((X - model.center_) ** 2).sum(axis=1)
    np.testing.assert_allclose(depth, model.radius_**2 - apart, atol=1e-9)
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted == names[1], depth >= 0)
    assert set(predicted) == set(names)
    by_sign = model.classes_[(model.decision_function(X) >= 0).astype(int)]
    np.testing.assert_array_equal(by_sign, predicted)
    unknown = np.intersect1d(model.rows_, np.flatnonzero(y == UNKNOWN))
    np.testing.assert_array_equal(model.transduction_[unknown], predicted[unknown])
    left_out = np.setdiff1d(np.arange(len(y)), model.rows_)
    assert set(model.transduction_[left_out]) == {names[0]}
    truth_named = np.array(names)[truth]
    by_hand = f1_by_hand(truth == 1, depth >= 0)
    assert model.score(X, truth_named) == pytest.approx(by_hand)
    assert by_hand > 0.5
    # Rows without a label do not count.
    known = y != UNKNOWN
    assert model.score(X, named) == pytest.approx(f1_by_hand(y[known] == 1, depth[known] >= 0))
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    copied = np.repeat(np.arange(len(y)), weight)
    assert model.score(X, truth_named, weight) == pytest.approx(
        f1_by_hand(truth[copied] == 1, depth[copied] >= 0)
    )


def test_without_a_majority_label_it_is_a_one_class_ball():
    X, y, _ = hidden_cluster()
    with pytest.warns(UserWarning, match="knows no majority row"):
        model = RACH(C2=0.005).fit(X, np.where(y == RARE, RARE, UNKNOWN))
    assert model.majority_label_ == -1
    assert set(model.predict(X)) == {-1, 1}
    assert model.classes_.tolist() == [-1, 1]
    assert not (model.balls_[0].kinds < 0).any()


def test_each_category_gets_a_ball_to_which_the_others_are_majority():
    X, y, truth = several_clusters([[4.0, 0.0], [0.0, 4.0], [-4.0, 0.0]])
    model = ball_of(X, y, C2=0.003)
    assert model.pos_labels_ == (1, 2, 3)
    assert model.majority_label_ == 0
    assert [ball.label for ball in model.balls_] == [1, 2, 3]
    for ball in model.balls_:
        expected = np.select([y == ball.label, y == UNKNOWN], [1, 0], -1)
        np.testing.assert_array_equal(ball.kinds, expected[ball.rows])
        alone = ball_of(X, np.where(y < 0, -1, y == ball.label), C2=0.003, pos_label=1)
        np.testing.assert_allclose(alone.center_, ball.space.input_center(ball.center), atol=1e-9)
    assert model.score(X, truth) > 0.8
    by_class = model.decision_function(X)
    assert by_class.shape == (len(X), 4)
    np.testing.assert_array_equal(by_class[:, 0], 0.0)
    np.testing.assert_array_equal(by_class.argmax(axis=1), model.predict(X))
    np.testing.assert_array_equal(by_class[:, 1:].max(axis=1), model.score_samples(X))
    mean = np.mean([f1_by_hand(truth == k, model.predict(X) == k) for k in (1, 2, 3)])
    assert model.score(X, truth) == pytest.approx(mean)


def test_a_row_in_two_balls_is_of_the_one_where_it_lies_deepest():
    X, y, _ = several_clusters([[2.0, 0.0], [3.0, 0.0]], scale=0.6)
    model = ball_of(X, y, C1=0.01, C2=0.01)
    depths = np.column_stack([ball.depth(X) for ball in model.balls_])
    in_both = (depths >= 0).all(axis=1)
    assert in_both.any()
    np.testing.assert_array_equal(model.decision_function(X)[:, 1:], depths)
    np.testing.assert_array_equal(model.predict(X)[in_both], 1 + depths[in_both].argmax(axis=1))
    unknown = in_both & (y == UNKNOWN)
    for ball in model.balls_:
        unknown &= np.isin(np.arange(len(y)), ball.rows)
    assert unknown.any()
    np.testing.assert_array_equal(model.transduction_[unknown], 1 + depths[unknown].argmax(axis=1))
    (pair,) = model.describe().overlaps
    assert (pair.first, pair.second) == (0, 1)


def test_some_labels_are_rare_and_the_others_majority():
    X, y, _ = several_clusters([[4.0, 0.0], [0.0, 4.0], [-4.0, 0.0]])
    model = ball_of(X, y, pos_label=[1, 3])
    assert model.pos_labels_ == (1, 3)
    assert set(model.predict(X)) == {0, 1, 3}  # 2 gets no ball
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert (model.transduction_[y == 2] == 2).all()
    with pytest.raises(AttributeError, match=r"there are 2 rare labels: see pos_labels_"):
        _ = model.pos_label_
    with pytest.raises(AttributeError, match=r"there are 2 balls, each with a center"):
        _ = model.center_


FAR_GROUPS = [[6.0, 6.0], [-6.0, -6.0]]


def test_each_group_is_a_group():
    """Of three: what is not in one of them is none."""
    X = np.repeat([[9.0, 0.0], [0.0, 9.0], [-9.0, 0.0]], [2, 3, 4], axis=0)
    X[:, 1] += 0.1 * np.arange(9)
    groups = groups_of(X, 3, 1.0, np.random.RandomState(0))
    assert [group.tolist() for group in groups] == [[0, 1], [2, 3, 4], [5, 6, 7, 8]]


@pytest.mark.parametrize("n_balls", [2, "auto"])
def test_two_far_groups_are_split(n_balls):
    X, y, truth = several_clusters(FAR_GROUPS)
    y, truth = np.where(y > 0, RARE, y), (truth > 0).astype(int)
    one = ball_of(X, y)
    split = RACH(C2=0.05, n_balls=n_balls, filter=1.0).fit(X, y)  # warnings are errors
    assert len(split.balls_) == 2
    assert split.score(X, truth) > 0.8 > 0.5 > one.score(X, truth)
    centers = [ball.space.input_center(ball.center) for ball in split.balls_]
    assert sorted(np.sign(center).tolist() for center in centers) == [[-1, -1], [1, 1]]
    # Every rare row is in one of them, and no majority row of the other.
    rare = [ball.rows[ball.kinds > 0] for ball in split.balls_]
    assert sorted(np.concatenate(rare)) == np.flatnonzero(y == RARE).tolist()
    assert not any(
        (ball.kinds < 0)[np.isin(ball.rows, np.flatnonzero(y == RARE))].any()
        for ball in split.balls_
    )
    assert split.majority_label_ == 0
    assert split.pos_label_ == RARE


def test_one_group_is_not_split_nor_are_equal_cases():
    X, y, _ = hidden_cluster()
    assert len(RACH(**QUIET, n_balls="auto").fit(X, y).balls_) == 1
    X, y, _ = hidden_cluster(n_rare=3)
    rare = np.flatnonzero(y == RARE)
    X[rare[1]] = X[rare[0]]
    assert len(ball_of(X, y, n_balls=7).balls_) == 2
