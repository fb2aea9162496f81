"""The order of a hunt's list, how sure it is, and what is kept of both, against slow ways."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rareclass.hunt import case_score as order_of_hunt
from rareclass.hunt.case_score import (
    CaseScore,
    CumulativeCounts,
    ListOrder,
    score_unlabelled,
    sureness,
)
from rareclass.hunt.hunting import HuntLabels
from rareclass.model.model_file import STORED
from rareclass.stored import pack, unpack


def two_groups(seed, n_values=1):
    """A table with two groups of cases, one of them copied, of one rare value or of two."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 2))
    second = np.arange(12) % 2 == 1
    X[:12] = np.where(second[:, None], 3.0, -3.0) + 0.4 * X[:12]
    X[2] = X[0]  # a case that is another one
    code = np.full(120, -1)
    code[:8] = 1
    if n_values == 2:
        code[np.flatnonzero(second[:8])] = 2
    code[110:] = 0
    return X, HuntLabels(code, ("bad", "ugly")[:n_values])


def ordered(X, labels):
    scored = score_unlabelled(X, labels.code, 4, 0)
    score = scored.by_value.max(axis=1)
    share = sureness(len(score), scored.of_cases)
    return ListOrder(scored.score, CumulativeCounts.of(-score), share, float(score.min())), scored


@pytest.mark.parametrize("n_values", [1, 2])
def test_rows_of_the_hunt_have_the_places_that_it_gave_them(n_values):
    X, labels = two_groups(2, n_values)
    order, scored = ordered(X, labels)
    order = unpack(pack(order.thinned(), STORED), STORED)
    scores = order.score_samples(X[labels.unlabelled])
    np.testing.assert_allclose(scores, scored.by_value.max(axis=1), rtol=1e-9)
    sure = order.sure(scores)
    assert sure is not None
    assert order.share is not None
    places = (scores[:, None] <= scores + 1e-12).sum(axis=1)
    np.testing.assert_allclose(sure, order.share(places), rtol=1e-6)
    assert order._replace(share=None).sure(scores) is None
    quantiles = order.quantiles(46)
    assert quantiles[[0, -1]] == pytest.approx([scores.min(), scores.max()])


@pytest.mark.parametrize("n_values", [1, 2])
def test_scores_are_their_formula_and_do_not_depend_on_blocks(n_values, monkeypatch):
    X, labels = two_groups(4, n_values)
    score = score_unlabelled(X, labels.code, 1, 0).score
    known = [X[labels.code == code] for code in (*range(1, n_values + 1), 0)]

    def nearness(x, k):
        case, cleared = (((rows - x) ** 2).sum(axis=1).min() for rows in (known[k], known[-1]))
        landmark = np.sort(((score.landmarks - x) ** 2).sum(axis=1))[4]
        floor = score.scale**2 / 1e6
        return float(np.log((min(landmark, cleared) + floor) / (case + floor)))

    by_hand = [
        [
            nearness(x, k) / 4
            + score.intercept[k]
            + score.linear[:, k] @ x / score.scale
            + sum(
                a * np.exp(-np.sum((x - z) ** 2) / score.scale**2)
                for a, z in zip(score.gaussian[:, k], score.landmarks, strict=True)
            )
            for k in range(n_values)
        ]
        for x in X[:20]
    ]
    np.testing.assert_allclose(score.by_value(X[:20]), by_hand, atol=1e-7)
    monkeypatch.setattr("rareclass.hunt.case_score._BLOCK_ROWS", 7)
    np.testing.assert_allclose(score(X[:20]), np.max(by_hand, axis=1), atol=1e-7)


@pytest.mark.parametrize("n_values", [1, 2])
def test_scores_are_least_where_the_objective_says(n_values):
    """Gradient of the penalised log loss, at the weights that the module promises: zero."""
    X, labels = two_groups(5, n_values)
    score = score_unlabelled(X, labels.code, 1, 0).score
    spread = X[np.append(np.flatnonzero(labels.y != ""), labels.unlabelled)]
    assert score.scale == pytest.approx(np.sqrt(spread.var(axis=0).sum()))
    for k, value in enumerate(labels.rare):
        is_case, cleared = labels.y == value, (labels.y != value) & (labels.y != "")
        n = is_case.sum()
        weight = np.where(is_case, 15.0, 7.5 * n / (labels.y == "").sum())
        weight[cleared] = 7.5 * n / cleared.sum()
        near = np.exp(-((X[:, None] - score.landmarks) ** 2).sum(axis=2) / score.scale**2)
        odds = score.intercept + X @ score.linear / score.scale + near @ score.gaussian
        odds = odds[:, k]
        slope = weight * (1.0 / (1.0 + np.exp(-odds)) - is_case)
        assert abs(slope.sum()) < 1e-3 * n
        np.testing.assert_allclose(score.linear[:, k], -(X.T @ slope) / score.scale, atol=1e-3 * n)
        between = ((score.landmarks[:, None] - score.landmarks) ** 2).sum(axis=2)
        span = np.exp(-between / score.scale**2)
        np.testing.assert_allclose(span @ score.gaussian[:, k], -(near.T @ slope), atol=1e-3 * n)


@pytest.mark.parametrize("n_values", [1, 2])
def test_held_out_cases_stand_where_a_model_without_their_label_puts_them(n_values):
    """With a fold for each case: learn without it, and count the rows that are as sure."""
    X, labels = two_groups(3, n_values)
    most = max(labels.n_rare.values())
    scored = score_unlabelled(X, labels.code, most, 0)
    assert len(scored.of_cases) == 8
    assert (np.diff(scored.of_cases) >= 0).all()
    if n_values == 2:
        return
    places = []
    for row in np.flatnonzero(labels.code == 1):
        kept = np.arange(len(X)) != row
        others = HuntLabels(labels.code[kept], labels.rare)
        alone = score_unlabelled(X[kept], others.code, 1, 0)
        places.append(max(int((alone.by_value[:, 0] >= alone.score(X[row : row + 1])).sum()), 1))
    # The scale of the kernel is that of all rows, or of all but one: a place may move by little.
    np.testing.assert_allclose(scored.of_cases, np.sort(places), atol=2)


def between_by_hand(value, values):
    """The count on the line between the two values around one; never below that of the least."""
    counts = {v: sum(other <= v for other in values) for v in values}
    low, high = [v for v in counts if v <= value], [v for v in counts if v > value]
    if not low:
        return counts[min(values)] if values else 1.0
    a = max(low)
    if not high:
        return counts[a]
    b = min(high)
    return counts[a] + (counts[b] - counts[a]) * (value - a) / (b - a)


@given(
    values=st.lists(st.integers(0, 60), max_size=120).map(sorted),
    others=st.lists(st.floats(-5, 65), min_size=1, max_size=20),
)
def test_counts_that_are_thinned_are_near_and_never_turn(values, others):
    whole = CumulativeCounts.of(np.array(values, dtype=float))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_of_hunt, "_EXACT", 10)
        patch.setattr(order_of_hunt, "_COARSE", 0.5)
        thin = whole.thinned()
    thin.check_parts()
    assert thin.at_most[-1:].tolist() == whole.at_most[-1:].tolist()
    at = np.sort(others)
    found, exact = thin.between(at), whole.between(at)
    assert (np.diff(found) >= 0.0).all()
    np.testing.assert_allclose(found, exact, rtol=0.5)
    is_exact = at <= max(values[:10], default=0)
    np.testing.assert_allclose(found[is_exact], exact[is_exact])
    np.testing.assert_allclose(exact, [between_by_hand(x, list(map(float, values))) for x in at])


def test_parts_that_do_not_belong_together_are_refused():
    order, _ = ordered(*two_groups(3, 2))
    counts, score, share = order.counts, order.score, order.share
    assert isinstance(score, CaseScore)
    for wrong in (
        counts._replace(at_most=counts.at_most[::-1]),
        counts._replace(values=counts.values[:-1]),
        score._replace(scale=0.0),
        score._replace(linear=score.linear[:-1]),
        score._replace(gaussian=score.gaussian[:, :1]),
        score._replace(cases=score.cases[:1]),
        score._replace(cleared=score.cleared[:, :1]),
        order._replace(offset_=float("nan")),
        share._replace(places=share.places[::-1]),
    ):
        with pytest.raises(
            ValueError, match=r"case|coordinate|count|coefficient|scale|threshold|increase"
        ):
            wrong.check_parts()


PLACES = st.lists(st.integers(1, 40), min_size=1, max_size=8).map(sorted)


def share_by_hand(k, places, n_rows, n_cases):
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
def test_shares_are_those_of_the_least_concave_curve_and_fall(places, known):
    curve = sureness(50, np.array(places), known)
    curve.check_parts()
    share, n_cases = curve(np.arange(1, 51)), curve.n_cases
    by_hand = [share_by_hand(k, places, 50, n_cases) for k in range(1, 51)]
    np.testing.assert_allclose(share, by_hand, rtol=1e-9)
    assert (np.diff(share) <= 1e-12).all()
    assert n_cases == known or 0 < n_cases <= 50
    expected = share * np.arange(1, 51)  # rows that are cases: more with every row
    assert (np.diff(expected) >= -1e-9).all()


def test_nothing_is_told_where_no_case_was_held_out():
    assert sureness(45, np.zeros(0, dtype=np.int64)) is None


def test_shares_are_the_truth_where_cases_stand_at_random_among_so_many():
    """200 cases lead a list of 5,000; those held out stand among them as any other would."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(50):
        share = sureness(5000, np.sort(rng.integers(1, 201, 12)))
        found.append([share.n_cases, *share([100, 400])])
    n_cases, hundred, four_hundred = np.mean(found, axis=0)
    assert n_cases == pytest.approx(200, rel=0.2)
    assert hundred > 0.9
    assert four_hundred == pytest.approx(0.5, abs=0.1)
