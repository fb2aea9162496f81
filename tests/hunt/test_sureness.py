"""The order in which a hunt's rows are read, against slow ways to the same figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperball.rach_cases import unwarned
from rareclass.hunt.sureness import HeldOutCases, ListPlaces, find_places, sureness
from rareclass.hunt.table import HuntLabels
from rareclass.hyperball import RACH


def two_groups(seed: int, n_balls: int) -> tuple[np.ndarray, HuntLabels, RACH, np.ndarray]:
    """A table with two groups of cases, one of them copied, and balls around them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    X[:12] = np.where(rng.random((12, 1)) < 0.5, 3.0, -3.0) + 0.4 * X[:12]
    X[1], X[20] = X[0], X[2]  # a case that is another one, and an unlabelled row that is one
    y = np.full(60, "", dtype="U4")
    y[:5], y[50:] = "bad", "good"
    labels = HuntLabels(y, ("bad",), {"bad": 5}, 10, 0, 45)
    model = RACH(C1=0.3, C2=0.0, n_balls=n_balls, radius_slack=0.5, pos_label=["bad"])
    with unwarned():  # one ball around two groups
        model.fit(X, y)
    distances = np.sqrt(
        np.column_stack([b.space.squared_distances(X[y == ""], b.center) for b in model.balls_])
    )
    return X, labels, model, distances


def by_hand(
    X: np.ndarray, labels: HuntLabels, model: RACH, distances: np.ndarray, held_out: HeldOutCases
) -> tuple[list[float], list[int]]:
    """The keys of the unlabelled rows and the places of held-out cases, one at a time."""
    unlabelled, cases = labels.unlabelled, np.flatnonzero(labels.y == "bad")
    depths = np.array([b.squared_radius for b in model.balls_]) - distances**2

    def near(row: int, but: int = -1) -> float:
        apart = [float(np.linalg.norm(X[row] - other)) for other in X]
        case = min(apart[k] for k in cases if k != but)
        other = min(apart[k] for k in np.flatnonzero(labels.y == "good"))
        return case / (case + other)

    def key(depth: float, ball: int, apart: float) -> float:
        fitted = model.balls_[ball]
        as_deep = sum(other >= depth - 1e-12 for other in depths[:, ball])
        as_near = sum(near(row) <= apart + 1e-9 for row in unlabelled)
        deep = max(as_deep, 1) / int((fitted.kinds > 0).sum())
        return float(np.sqrt(deep * max(as_near, 1) / len(cases)))

    keys = [
        key(depths[k].max(), int(depths[k].argmax()), near(row)) for k, row in enumerate(unlabelled)
    ]
    found = depths.max(axis=1) >= 0
    places = []
    for row, depth in zip(held_out.rows, held_out.depths, strict=True):
        if labels.y[row] != "bad":
            continue
        (ball,) = (k for k, b in enumerate(model.balls_) if row in b.rows[b.kinds > 0])
        own, here = key(depth, ball, near(row, row)), depth >= 0
        before = sum(k <= own + 1e-12 for k, f in zip(keys, found, strict=True) if f == here)
        places.append(max(int(before) + (0 if here else int(found.sum())), 1))
    return keys, sorted(places)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("n_balls", [1, 2])
def test_places_are_those_counted_by_hand(seed: int, n_balls: int) -> None:
    table = two_groups(seed, n_balls)
    rng = np.random.default_rng(seed)
    held_out = HeldOutCases(np.array([3, 0, 55, 1, 4, 2]), rng.normal(0.2, 0.8, 6))
    places = find_places(*table, held_out)
    keys, of_cases = by_hand(*table, held_out)
    np.testing.assert_allclose(places.keys, keys, rtol=1e-9)
    assert places.of_cases.tolist() == of_cases
    assert 0 < places.found.sum() < 45


@pytest.mark.parametrize("n_balls", [1, 2])
def test_within_a_ball_a_deeper_and_nearer_row_is_never_less_sure(n_balls: int) -> None:
    X, labels, model, distances = two_groups(5, n_balls)
    places: ListPlaces = find_places(X, labels, model, distances, None)
    depths = np.array([b.squared_radius for b in model.balls_]) - distances**2
    ball, deepest = depths.argmax(axis=1), depths.max(axis=1)
    cases = X[labels.y == "bad"]
    near, other = (
        np.linalg.norm(X[labels.unlabelled][:, None] - known, axis=2).min(axis=1)
        for known in (cases, X[labels.y == "good"])
    )
    near /= near + other
    better = (deepest[:, None] >= deepest) & (near[:, None] <= near + 1e-9)
    better &= ball[:, None] == ball
    assert better.sum() > 200
    assert (places.keys[:, None] <= places.keys + 1e-12)[better].all()
    assert len(places.of_cases) == 0
    assert sureness(45, places.of_cases) is None


PLACES = st.lists(st.integers(1, 40), min_size=1, max_size=8).map(sorted)


def share_by_hand(k: int, places: list[int], n_rows: int, n_cases: float) -> float:
    """N H(k) / k, H being the highest of all chords above k."""
    n = len(places)
    points = [(0.0, 0.0), *((p, (j + 1) / (n + 1)) for j, p in enumerate(places)), (n_rows, 1.0)]
    heights = [y for x, y in points if x == k]
    for a in points:
        for b in points:
            if a[0] < k < b[0]:
                heights.append(a[1] + (b[1] - a[1]) * (k - a[0]) / (b[0] - a[0]))
    return min(n_cases * max(heights) / k, 1.0)


@given(places=PLACES, known=st.sampled_from([None, 3.0, 17.0]))
def test_shares_are_those_of_the_least_concave_curve_and_fall(
    places: list[int], known: float | None
) -> None:
    curve = sureness(50, np.array(places), known)
    assert curve is not None
    curve.check_parts()
    share, n_cases = curve(np.arange(1, 51)), curve.n_cases
    by_hand = [share_by_hand(k, places, 50, n_cases) for k in range(1, 51)]
    np.testing.assert_allclose(share, by_hand, rtol=1e-9)
    assert (np.diff(share) <= 1e-12).all()
    assert n_cases == known or 0 < n_cases <= 50
    expected = share * np.arange(1, 51)  # rows that are cases: more with every row
    assert (np.diff(expected) >= -1e-9).all()


def test_shares_are_the_truth_where_cases_stand_at_random_among_so_many() -> None:
    """200 cases lead a list of 5,000; those held out stand among them as any other would."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(50):
        share = sureness(5000, np.sort(rng.integers(1, 201, 12)))
        assert share is not None
        found.append([share.n_cases, *share([100, 400])])
    n_cases, hundred, four_hundred = np.mean(found, axis=0)
    assert n_cases == pytest.approx(200, rel=0.2)
    assert hundred > 0.9
    assert four_hundred == pytest.approx(0.5, abs=0.1)
