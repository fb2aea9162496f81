"""The order of a hunt's list for new rows, against slow ways to the same figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hunt.test_sureness import two_groups
from rareclass.hunt import sureness as order_of_hunt
from rareclass.hunt.sureness import (
    CumulativeCounts,
    HeldOutCases,
    ListOrder,
    ListPlaces,
    find_places,
    sureness,
)
from rareclass.hunt.table import HuntLabels
from rareclass.hyperball import RACH
from rareclass.model.kinds import STORED
from rareclass.stored import pack, unpack

Table = tuple[np.ndarray, HuntLabels, RACH, np.ndarray]


def ordered(table: Table) -> tuple[ListOrder, ListPlaces]:
    places = find_places(*table, HeldOutCases(np.array([3, 0, 1]), np.array([0.5, 0.1, -0.2])))
    return ListOrder.of(places, sureness(45, places.of_cases)), places


def deepest(model: RACH, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    depths = np.array([ball.squared_radius for ball in model.balls_]) - distances**2
    return depths.argmax(axis=1), depths.max(axis=1)


@pytest.mark.parametrize("n_balls", [1, 2])
def test_rows_of_the_hunt_have_the_places_that_it_gave_them(n_balls: int) -> None:
    X, labels, model, distances = two_groups(2, n_balls)
    order, places = ordered((X, labels, model, distances))
    order = unpack(pack(order, STORED), STORED)
    scores = order.scores(X[labels.unlabelled], *deepest(model, distances))
    expected = np.where(places.found, 1.0 / places.keys, -places.keys)
    np.testing.assert_allclose(scores, expected, rtol=1e-9)
    sure = order.sure(scores)
    assert sure is not None
    for row in np.flatnonzero(np.arange(45) % 3 == 0):
        place = int((scores >= scores[row] - 1e-12).sum())
        assert order.share is not None
        assert sure[row] == pytest.approx(order.share(place), rel=1e-6)
    assert ListOrder.of(places, None).sure(scores) is None
    quantiles = order.quantiles(46)
    assert quantiles[[0, -1]] == pytest.approx([scores.min(), scores.max()])


def between_by_hand(value: float, values: list[float], per: int) -> float:
    """The count on the line between the two values around one; never below that of the least."""
    counts = {v: sum(other <= v for other in values) for v in values}
    low, high = [v for v in counts if v <= value], [v for v in counts if v > value]
    if not low:
        return counts[min(values)] / per
    a = max(low)
    if not high:
        return counts[a] / per
    b = min(high)
    return (counts[a] + (counts[b] - counts[a]) * (value - a) / (b - a)) / per


@pytest.mark.parametrize("n_balls", [1, 2])
def test_new_rows_are_placed_as_by_hand(n_balls: int) -> None:
    X, labels, model, distances = two_groups(4, n_balls)
    order, _ = ordered((X, labels, model, distances))
    new = X[:30] + np.random.default_rng(7).normal(scale=0.2, size=(30, 2))
    apart = np.sqrt(
        np.column_stack([b.space.squared_distances(new, b.center) for b in model.balls_])
    )
    ball, depth = deepest(model, apart)
    cases, cleared = X[labels.y == "bad"], X[labels.y == "good"]

    def near(row: np.ndarray) -> float:
        case, other = (
            min(np.linalg.norm(row - one) for one in known) for known in (cases, cleared)
        )
        return float(case / (case + other))

    nearness = [near(X[k]) for k in labels.unlabelled]
    scores = order.scores(new, ball, depth)
    for k, row in enumerate(new):
        fitted = model.balls_[ball[k]]
        depths = (distances[:, ball[k]] ** 2 - fitted.squared_radius).tolist()
        deep = between_by_hand(-depth[k], depths, int((fitted.kinds > 0).sum()))
        key = np.sqrt(deep * between_by_hand(near(row), nearness, len(cases)))
        assert scores[k] == pytest.approx(1.0 / key if depth[k] >= 0 else -key, rel=1e-6)
    assert 0 < (scores > 0).sum() < 30


@given(
    values=st.lists(st.integers(0, 60), max_size=120).map(sorted),
    others=st.lists(st.floats(-5, 65), min_size=1, max_size=20),
)
def test_counts_that_are_thinned_are_near_and_never_turn(
    values: list[int], others: list[float]
) -> None:
    whole = CumulativeCounts.of(np.array(values, dtype=float), 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_of_hunt, "_EXACT", 10)
        patch.setattr(order_of_hunt, "_COARSE", 0.5)
        thin = whole.thinned()
    thin.check_parts()
    assert thin.n_all == whole.n_all == len(values)
    at = np.sort(others)
    found, exact = thin.between(at), whole.between(at)
    assert (np.diff(found) >= 0.0).all()
    np.testing.assert_allclose(found, exact, rtol=0.5)
    is_exact = at <= max(values[:10], default=0)
    np.testing.assert_allclose(found[is_exact], exact[is_exact])
    by_hand = [max(sum(value <= x for value in values), 1) / 2 for x in at]
    np.testing.assert_array_equal(whole(at), by_hand)


def test_parts_that_do_not_belong_together_are_refused() -> None:
    order, _ = ordered(two_groups(3, 2))
    key, deep = order.key, order.key.deep[0]
    for wrong in (
        deep._replace(at_most=deep.at_most[::-1]),
        deep._replace(values=deep.values[:-1]),
        deep._replace(per=0),
        key._replace(label=key.label[:-1]),
        key._replace(label=np.full_like(key.label, order_of_hunt.OTHER)),
        key._replace(label_of=(0, 5)),
        key._replace(deep=key.deep[:1]),
        order.share._replace(places=order.share.places[::-1]),  # type: ignore[union-attr]
    ):
        with pytest.raises(ValueError, match=r"count|label|case|increase"):
            wrong.check_parts()
