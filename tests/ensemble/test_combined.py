"""From members to a model: who is in the running, their weights, scores that stand for new rows."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from rareclass.ensemble import combined as combined_module
from rareclass.ensemble.combination import mean_of_greedy
from rareclass.ensemble.combined import Judged, combine, cross_fitted_log_rates
from rareclass.ensemble.false_positive_rate import FalsePositiveRate
from rareclass.ensemble.held_out import HeldOut
from rareclass.metrics import average_precision, average_precision_interval, roc_auc


def candidate(name, scores, setting=""):
    return SimpleNamespace(member=SimpleNamespace(name=name), setting=setting, held_out=scores)


def by_name(combined):
    names = [each.candidate.member.name for each in combined.judged]
    return dict(zip(names, combined.weights.tolist(), strict=True))


def noisy(y, gain, seed):
    return np.random.default_rng(seed).normal(size=len(y)) + gain * y


def held_out_rows(y, weight=None):
    return HeldOut(y, weight, np.arange(len(y)))


def test_half_of_the_weight_is_shared_alike_by_those_near_the_best():
    y = np.arange(600) % 10 == 0
    members = [candidate(f"good {k}", noisy(y, 2.0, k)) for k in range(3)]
    members += [candidate("none", noisy(y, 0.0, 9))]
    combined = combine(members, held_out_rows(y), average_precision, False, 0)
    rarity = {each.candidate.member.name: each.rarity for each in combined.judged}
    bounds = {name: average_precision_interval(y, each, None, 0.8) for name, each in rarity.items()}
    best = max(bounds.values(), key=lambda bound: bound.value)
    near = [name for name in rarity if bounds[name].value >= best.low]
    assert "none" not in near
    assert len(near) == 3
    votes = mean_of_greedy(
        np.column_stack([rarity[name] for name in near]),
        [lambda s: average_precision(y, s), lambda s: roc_auc(y, s)],
    )
    expected = dict(zip(near, 0.5 * votes + 0.5 / len(near), strict=True))
    found = by_name(combined)
    assert found.pop("none") == 0.0
    assert found == pytest.approx(expected)


def test_by_the_objective_a_member_is_near_the_best_or_not():
    y = np.arange(1000) % 20 == 0
    top = np.where(y, 5.0, 0.0) * (np.arange(1000) < 500) + noisy(y, 0.0, 1)  # half at the top
    all_over = noisy(y, 1.8, 2)
    members = [candidate("top", top), candidate("all over", all_over)]
    assert average_precision(y, top) > average_precision(y, all_over) + 0.1
    assert roc_auc(y, all_over) > roc_auc(y, top) + 0.1
    rows = held_out_rows(y)
    assert by_name(combine(members, rows, average_precision, False, 0))["all over"] == 0.0
    assert by_name(combine(members, rows, roc_auc, False, 0))["top"] == 0.0


def test_of_many_rows_a_part_that_weights_are_chosen_on_says_what_all_of_them_say(monkeypatch):
    y = np.arange(50_000) % 500 == 0
    top = np.where(y, np.random.default_rng(3).normal(2.2, 0.9, len(y)), noisy(y, 0.0, 4))
    all_over = np.where(y, np.random.default_rng(5).normal(2.6, 0.6, len(y)), noisy(y, 0.0, 6))
    rows = held_out_rows(y)
    judged = [Judged(None, None, scores, 0.0) for scores in (top, all_over)]
    monkeypatch.setattr(combined_module, "_MOST_JUDGED", 4_000)
    places, part = combined_module._judging_part(judged, rows, 0)
    assert len(places) == np.count_nonzero(y) + 4_000
    assert y[places].sum() == y.sum()
    for scores in (top, all_over, top + all_over):
        for measure, within in ((average_precision, 0.01), (roc_auc, 0.005)):
            of_all, of_part = measure(y, scores), part.measure(measure, scores[places], part.tested)
            assert of_part == pytest.approx(of_all, abs=within)


def test_where_nobody_errs_one_setting_of_each_counts_alike():
    y = np.arange(4000) % 40 == 0
    faultless = [candidate(f"member {k}", noisy(y, 9.0, k)) for k in range(3)]
    twice = candidate("member 0", noisy(y, 9.0, 7), "another")
    behind = candidate("behind", noisy(y, 2.0, 8))
    combined = combine([*faultless, twice, behind], held_out_rows(y), average_precision, False, 0)
    assert sorted(combined.weights[combined.weights > 0.0]) == pytest.approx([1 / 3] * 3)
    assert by_name(combined)["behind"] == 0.0


@draws(15)
@given(seed=st.integers(0, 2**32), n_folds=st.integers(2, 4), is_weighted=st.booleans())
def test_cross_fitted_scores_do_not_know_their_rows(seed, n_folds, is_weighted):
    random = np.random.default_rng(seed)
    y = np.arange(90) % 9 < 2
    fold = random.permutation(np.arange(90) % n_folds)
    weight = random.integers(1, 4, 90).astype(float) if is_weighted else None
    members = [candidate(str(k), noisy(y, 1.0 + 0.2 * k, seed % 1000 + k)) for k in range(4)]
    rows = held_out_rows(y, weight)
    found = cross_fitted_log_rates(members, rows, fold, average_precision, False, 0)
    for number in range(n_folds):
        inside = np.flatnonzero(fold == number)
        others = np.flatnonzero(fold != number)
        combined = combine(members, HeldOut(y, weight, others), average_precision, False, 0)
        total = np.zeros(len(inside))
        of_others = np.zeros(len(others))
        rest = others[~y[others]]
        for each, share in zip(combined.judged, combined.weights, strict=True):
            scores = each.candidate.held_out
            scale = FalsePositiveRate.of(scores[rest], None if weight is None else weight[rest])
            total -= share * scale(scores[inside])
            of_others -= share * scale(scores[others])
        scale = FalsePositiveRate.of(
            of_others[~y[others]], None if weight is None else weight[rest]
        )
        np.testing.assert_allclose(found[inside], scale(total), rtol=1e-12)
        # The labels of a fold's own rows have no part in their scores.
        flipped = y.copy()
        flipped[inside] = ~flipped[inside]
        again = cross_fitted_log_rates(
            members, held_out_rows(flipped, weight), fold, average_precision, False, 0
        )
        np.testing.assert_array_equal(again[inside], found[inside])
