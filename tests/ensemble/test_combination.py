"""The scale of scores, the weights of members, and their cross-fitted combination."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from draws import draws, thorough
from oracles.ensemble import excess_by_copies, log_rate_by_rows, selection_by_trying
from rareclass.ensemble import combination
from rareclass.ensemble.combination import (
    N_BEGIN,
    Candidate,
    combine,
    cross_fitted_log_rates,
    greedy_weights,
    precision_at_rare,
    rarity_by_fold,
)
from rareclass.ensemble.members.member import CrossFitted
from rareclass.ensemble.score_functions import FalsePositiveRate
from rareclass.ensemble.training_rows import HeldOutRows
from rareclass.metrics import average_precision, interval, roc_auc


@st.composite
def held_out_scores(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, n_rare = draw(st.integers(8, 40)), draw(st.integers(1, 5))
    y = np.zeros(n, bool)
    y[random.permutation(n)[:n_rare]] = True
    n_members = draw(st.integers(1, 6))
    known = random.uniform(-1.0, 2.0, n_members)
    scores = random.normal(size=(n, n_members)) + known * y[:, None]
    if draw(st.booleans()):
        scores = scores.round()
    if n_members > 2 and draw(st.booleans()):
        scores[:, 2] = scores[:, 0]
    return y, scores


@given(held_out_scores(), st.sampled_from([average_precision, roc_auc]), st.integers(1, 6))
@draws(80)
def test_weights_are_those_of_trying_everybody_and_no_worse_than_the_mean_of_the_best(
    table, measure, n_steps
):
    y, scores = table

    def merit(combined):
        return measure(y, combined.round(9))  # ties of sums in another order stay ties

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combination, "N_STEPS", n_steps)
        found = greedy_weights(scores, merit)
    expected = selection_by_trying(scores, merit, N_BEGIN, n_steps)
    np.testing.assert_allclose(found, expected)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0.0).all()
    own = np.array([merit(column) for column in scores.T])
    best = np.argsort(-own, kind="stable")[:N_BEGIN]
    mean = scores[:, best].sum(axis=1)
    assert merit(scores @ found) >= merit(mean) - 0.02  # ties of sums may break when divided


def candidate(name, scores):
    return SimpleNamespace(member=SimpleNamespace(name=name), held_out=scores)


def on_scales(members, rows):
    each_fitted = [(each.member, CrossFitted("", each.held_out, [])) for each in members]
    return [Candidate.of(*each, None, 0.0, rows) for each in each_fitted]


def by_name(combined):
    names = [each.member.name for each in combined.candidates]
    return dict(zip(names, combined.weights.tolist(), strict=True))


def noisy(y, gain, seed):
    return np.random.default_rng(seed).normal(size=len(y)) + gain * y


def held_out_rows(y, weight=None, fold=None):
    return HeldOutRows(y, weight, np.arange(len(y)), fold)


@pytest.mark.parametrize(("n_rows", "seed"), [(200, 0), (600, 0), (600, 1), (3000, 2)])
def test_a_part_of_the_weight_is_shared_by_those_near_the_best_and_the_rest_is_voted(n_rows, seed):
    y = np.arange(n_rows) % 10 == 0
    members = [candidate(f"good {k}", noisy(y, 2.0, 10 * seed + k)) for k in range(3)]
    members += [candidate("none", noisy(y, 0.0, 9))]
    combined = combine(on_scales(members, held_out_rows(y)), held_out_rows(y))
    rarity = {each.member.name: each.rarity for each in combined.candidates}
    bounds = {
        name: interval("average_precision", y, each, None, 0.8) for name, each in rarity.items()
    }
    best = max(bounds.values(), key=lambda bound: bound.value)
    near = np.array([bounds[name].value >= best.low for name in rarity])
    assert not near[list(rarity).index("none")]
    scores = np.column_stack(list(rarity.values()))
    merits = (lambda s: average_precision(y, s), lambda s: roc_auc(y, s))
    votes = np.mean([greedy_weights(scores, each, min(3, near.sum())) for each in merits], axis=0)
    shared = 0.3 + 0.7 * 50 / (50 + y.sum())
    weights = shared * near / near.sum() + (1 - shared) * votes
    weights[weights < 0.05] = 0.0
    expected = dict(zip(rarity, weights / weights.sum(), strict=True))
    assert by_name(combined) == pytest.approx(expected)


def test_some_member_has_weight_where_none_has_much():
    y = np.arange(400) % 10 == 0
    members = [candidate(f"good {k}", noisy(y, 2.0, k)) for k in range(40)]
    combined = combine(on_scales(members, held_out_rows(y)), held_out_rows(y))
    assert combined.weights.sum() == pytest.approx(1.0)


def test_by_the_objective_a_member_shares_in_the_weight_or_not():
    y = np.arange(1000) % 20 == 0
    top = np.where(y, 5.0, 0.0) * (np.arange(1000) < 500) + noisy(y, 0.0, 1)  # half at the top
    all_over = noisy(y, 1.8, 2)
    members = [candidate("top", top), candidate("all over", all_over)]
    assert average_precision(y, top) > average_precision(y, all_over) + 0.1
    assert roc_auc(y, all_over) > roc_auc(y, top) + 0.1
    rows = held_out_rows(y)
    by_precision = by_name(combine(on_scales(members, rows), rows))
    by_auc = by_name(combine(on_scales(members, rows), rows._replace(objective=roc_auc)))
    assert by_precision["top"] > 0.5 > by_precision["all over"]
    assert by_auc["all over"] > 0.5 > by_auc["top"]


def test_of_many_rows_a_part_that_weights_are_chosen_on_says_what_all_of_them_say(monkeypatch):
    y = np.arange(50_000) % 500 == 0
    top = np.where(y, np.random.default_rng(3).normal(2.2, 0.9, len(y)), noisy(y, 0.0, 4))
    all_over = np.where(y, np.random.default_rng(5).normal(2.6, 0.6, len(y)), noisy(y, 0.0, 6))
    rows = held_out_rows(y)
    members = [candidate("top", top), candidate("all over", all_over)]
    judged = [each._replace(rarity=each.held_out) for each in on_scales(members, rows)]
    monkeypatch.setattr(combination, "_MOST_WEIGHED", 4_000)
    places, part = combination._rows_to_weigh_on(judged, rows)
    assert len(places) == np.count_nonzero(y) + 4_000
    assert y[places].sum() == y.sum()
    for scores in (top, all_over, top + all_over):
        for measure, within in ((average_precision, 0.01), (roc_auc, 0.005)):
            of_part = part._replace(objective=measure).measure(scores[places])
            assert of_part == pytest.approx(measure(y, scores), abs=within)


def test_where_nobody_errs_no_member_decides_alone():
    y = np.arange(4000) % 40 == 0
    members = [candidate(f"member {k}", noisy(y, 9.0, k)) for k in range(3)]
    members.append(candidate("behind", noisy(y, 2.0, 8)))
    rows = held_out_rows(y)
    weights = by_name(combine(on_scales(members, rows), rows))
    assert weights.pop("behind") == 0.0
    assert min(weights.values()) > 0.1


@draws(15)
@given(seed=st.integers(0, 2**32), n_folds=st.integers(2, 4), is_weighted=st.booleans())
def test_cross_fitted_scores_have_weights_and_scale_of_the_other_folds(seed, n_folds, is_weighted):
    random = np.random.default_rng(seed)
    y = np.arange(180) % 9 < 2
    fold = random.permutation(np.arange(180) % n_folds)
    weight = random.integers(1, 4, 180).astype(float) if is_weighted else None
    members = [candidate(str(k), noisy(y, 1.0 + 0.2 * k, seed % 1000 + k)) for k in range(4)]
    rows = held_out_rows(y, weight, fold)
    found = cross_fitted_log_rates(on_scales(members, rows), rows)
    rarity = {}
    for each in members:
        rarity[each.member.name] = np.empty(180)
        for number in range(n_folds):  # each fold on the scale of its own majority
            inside = fold == number
            rest = inside & ~y
            own = FalsePositiveRate.of(
                each.held_out[rest], None if weight is None else weight[rest]
            )
            rarity[each.member.name][inside] = -own(each.held_out[inside])
    for number in range(n_folds):
        others = np.flatnonzero(fold != number)
        part = rows._replace(tested=others)
        total = np.zeros(180)
        for name, share in by_name(combine(on_scales(members, part), part)).items():
            total += share * rarity[name]
        rest = others[~y[others]]
        scale = FalsePositiveRate.of(total[rest], None if weight is None else weight[rest])
        inside = fold == number
        np.testing.assert_allclose(found[inside], scale(total[inside]), rtol=1e-12)


@draws(40)
@given(
    seed=st.integers(0, 2**32),
    move=st.floats(-1e3, 1e3),
    factor=st.floats(1e-2, 1e2),
    n_majority=st.sampled_from([19, 20, 40]),
)
def test_where_a_fold_has_its_own_zero_and_unit_its_rarity_is_the_same(
    seed, move, factor, n_majority
):
    n = 3 * n_majority + 12
    y = np.arange(n) < 12
    fold = np.arange(n) % 3
    scores = noisy(y, 1.0, seed)
    moved = np.where(fold == 1, factor * scores + move, scores)
    rows = held_out_rows(y, None, fold)
    found, again = (
        rarity_by_fold(each, FalsePositiveRate.of(each[~y]), rows) for each in (scores, moved)
    )
    within = found[fold == 1]
    order = np.argsort(scores[fold == 1])
    assert (np.diff(within[order]) >= 0.0).all()  # rarer for higher scores
    if n_majority >= 20:
        np.testing.assert_allclose(again, found, rtol=1e-6)
    else:  # too few for a scale of their own
        np.testing.assert_array_equal(again, -FalsePositiveRate.of(moved[~y])(moved))


def test_the_estimate_of_members_without_bias_is_that_of_new_rows():
    """Scores of all folds in one list are too low; each fold on its own scale, they are not."""
    found, new, n_tables = [], [], 30 if thorough() else 15
    for seed in range(n_tables):
        random = np.random.default_rng(seed)
        y = np.arange(400) < 40
        fold = np.arange(400) % 5
        knows = random.normal(size=400) + 1.5 * y
        members = [
            candidate(
                str(k), knows + 0.7 * random.normal(size=400) + 0.5 * random.normal(size=5)[fold]
            )
            for k in range(4)
        ]
        rows = held_out_rows(y, None, fold)
        rates = cross_fitted_log_rates(on_scales(members, rows), rows)
        found.append(average_precision(y, -rates))
        knows = random.normal(size=400) + 1.5 * y
        new.append(average_precision(y, knows + 0.35 * random.normal(size=400)))
    difference = np.subtract(found, new)
    assert abs(difference.mean()) < 2.0 * difference.std() / np.sqrt(n_tables) + 0.01


def test_precision_among_as_many_as_are_rare():
    y = np.array([1, 0, 1, 0, 0], bool)
    assert precision_at_rare(y, np.array([5.0, 4.0, 3.0, 2.0, 1.0])) == 0.5
    # With weights: three copies of the second rare row reach to the third.
    weight = np.array([1.0, 1.0, 3.0, 1.0, 1.0])
    assert precision_at_rare(y, np.array([5.0, 4.0, 3.0, 2.0, 1.0]), weight) == 0.75


@st.composite
def majorities(draw, most=80):
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, most))
    scores = random.normal(size=n) * 10.0 ** draw(st.integers(-6, 6))
    kind = draw(st.sampled_from(["plain", "ties", "heavy", "same"]))
    if kind == "ties":
        scores = random.integers(-3, 4, n).astype(float)
    elif kind == "heavy":
        scores = random.standard_cauchy(n) ** 3
    elif kind == "same":
        scores[:] = scores[0]
    weight = random.integers(0, 4, n).astype(float)
    weight[random.integers(n)] = 1.0
    return scores, weight


@given(majorities())
@draws(200)
def test_rates_are_counted_by_copies_and_in_any_unit_of_weight(table):
    scores, weight = table
    scale = FalsePositiveRate.of(scores, weight)
    expected = [log_rate_by_rows(s, scores, weight) for s in scale.knots]
    np.testing.assert_allclose(scale.log_rates, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(scale(scale.knots), scale.log_rates)
    excess = excess_by_copies(scores, weight)
    if excess > 1e-9 * np.abs(scores).max():
        assert scale.excess == pytest.approx(excess, rel=1e-9)
    assert scale.excess > 0.0
    copies = np.repeat(scores, weight.astype(int))
    asked = np.concatenate([scores, scores + 1.0, np.linspace(-1.0, 2.0, 7) * np.ptp(scores)])
    expected = FalsePositiveRate.of(copies)(asked)
    for other in (weight, weight / 7.0, weight * 1e9):
        scale = FalsePositiveRate.of(scores, other)
        np.testing.assert_allclose(scale(asked), expected, rtol=1e-9, atol=1e-9)


@given(majorities(most=2000), st.integers(0, 2**32))
@draws(60)
@example((np.zeros(1), np.ones(1)), 0)
@example((np.repeat([0.0, 1.0], [1, 40]), np.ones(41)), 0)
def test_rates_fall_with_the_score_and_are_rates(table, seed):
    scores, weight = table
    scale = FalsePositiveRate.of(scores, weight)
    random = np.random.default_rng(seed)
    width = max(np.ptp(scores), 1.0)
    asked = np.sort(scores.min() + width * random.uniform(-1.0, 3.0, 300))
    rates = scale(asked)
    assert (np.diff(rates) <= 0.0).all()
    assert np.isfinite(rates).all()
    assert (rates < 0.0).all()
    assert len(scale.knots) <= 150


def test_the_tail_falls_like_a_power():
    scale = FalsePositiveRate.of(np.arange(100.0))
    top = scale(np.array([99.0]))
    assert scale.excess == 14.5  # of 70 to 99 over 70
    for far in (1.0, 1e3, 1e9, 1e300):
        expected = top - np.log1p(far / 14.5)
        np.testing.assert_allclose(scale(np.array([99.0 + far])), expected)


def test_what_is_kept_of_many_scores_is_within_a_twelfth_of_a_doubling():
    scores = np.random.default_rng(0).normal(size=20_000)
    scale = FalsePositiveRate.of(scores)
    order = np.sort(scores)[::-1]
    exact = np.log((np.arange(20_000) + 1.0) / 20_001.0)
    np.testing.assert_allclose(scale(order), exact, atol=np.log(2.0) / 12.0)
    np.testing.assert_allclose(scale(order[:32]), exact[:32], rtol=1e-12)


def test_scores_that_are_equal_but_for_rounding_have_no_tail_of_their_own():
    scores = 1.0 + np.random.default_rng(0).uniform(-1e-16, 1e-16, 200)
    scale = FalsePositiveRate.of(scores)
    assert scale(np.array([2.0])) > np.log(0.5 / 201.0) - np.log(2.0) - 1e-9
    # The highest are equal: the deviation of all says how far is far.
    scores = np.repeat([0.0, 1.0], [60, 40])
    assert FalsePositiveRate.of(scores).excess == pytest.approx(scores.std())


def test_equal_rows_that_score_differently_in_the_last_digit_are_equal():
    random = np.random.default_rng(0)
    scores = np.repeat(random.normal(size=100), 3)
    rounded = scores * (1.0 + random.choice([-1e-16, 0.0, 1e-16], 300))
    assert len(np.unique(rounded)) > 100
    asked = random.normal(size=500)
    expected = FalsePositiveRate.of(scores)(asked)
    np.testing.assert_allclose(FalsePositiveRate.of(rounded)(asked), expected, rtol=1e-9)


def test_one_row():
    scale = FalsePositiveRate.of(np.array([3.0]))
    np.testing.assert_allclose(np.exp(scale(np.array([-9.0, 3.0, 4.0]))), [0.5, 0.5, 0.25])
