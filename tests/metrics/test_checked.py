"""Measures of a table of which only some rows were checked."""

import re
from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from draws import draws, quick
from faults import refused
from oracles.checked import estimated_labels, freed_ratio, precision_sum, shifts
from rareclass.errors import ErrorKind
from rareclass.labels.states import ListedRows
from rareclass.metrics import average_precision
from rareclass.metrics.checked import (
    CheckedSample,
    CheckMethod,
    checked_measures,
    random_checks,
    weights_at,
)

METHODS = list(CheckMethod)
MEASURES = ("precision", "recall", "average_precision", "n_rare")


def table(n, share, gap, seed):
    random = np.random.default_rng(seed)
    y = (random.random(n) < share).astype(int)
    score = random.normal(size=n) + gap * y
    odds = share / (1 - share) * np.exp(gap * score - gap**2 / 2)
    return y, score, odds / (1 + odds)


def draw(random, rows, n):
    drawn = random.choice(rows, min(n, len(rows)), replace=False)
    return drawn, np.ones(len(drawn), bool), np.full(len(drawn), len(drawn) / max(len(rows), 1))


def by_rule(rows):
    return rows, np.zeros(len(rows), bool), np.ones(len(rows))


def listed(*parts):
    return ListedRows(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def answered(y, after):
    return np.where(after >= 0, y, -1)


def checked_once(y, *parts):
    one = listed(*parts)
    after = np.full(len(y), -1)
    after[one.rows] = 1
    return CheckedSample.of(answered(y, after), after, [one])


def adaptive(y, score, random, n_rounds=4, n_top=12, n_random=40):
    """A review whose model moves towards what was found: top rows and two random strata."""
    after, rounds, model = np.full(len(y), -1), [], score + random.normal(size=len(y))
    for number in range(1, n_rounds + 1):
        left = np.flatnonzero(after < 0)
        by_model = left[np.argsort(-model[left])]
        top, near, far = by_model[:n_top], by_model[n_top:200], by_model[200:]
        rounds.append(
            listed(by_rule(top), draw(random, near, n_random // 2), draw(random, far, n_random))
        )
        after[rounds[-1].rows] = number
        found = np.flatnonzero((after >= 0) & (y == 1))
        if len(found):  # what resembles the cases found so far scores more
            model = score - 0.5 * np.abs(score[:, None] - score[found]).min(axis=1)
    return CheckedSample.of(answered(y, after), after, rounds)


@pytest.mark.parametrize("method", METHODS)
def test_a_table_checked_in_full_has_the_ordinary_measures(method):
    y, score, probability = table(400, 0.1, 1.5, 0)
    score = np.round(score, 1)  # ties
    random = np.random.default_rng(1)
    rows = np.arange(len(y))
    sample = checked_once(y, draw(random, rows, 200))
    rest = np.flatnonzero(sample.y < 0)
    first = listed(draw(np.random.default_rng(1), rows, 200))
    after = np.where(sample.y < 0, 2, 1)
    sample = CheckedSample.of(y, after, [first, listed(by_rule(rest))])
    assert (sample.weight == 1).all()
    assert not sample.spread.any()
    found = checked_measures(score, sample, 1.0, method=method, probability=probability)
    called = score > 1.0
    expected = {
        "precision": y[called].mean(),
        "recall": y[called].sum() / y.sum(),
        "average_precision": average_precision(y, score),
        "n_rare": y.sum(),
        "prevalence": y.mean(),
    }
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx((value,) * 3), name
    assert found.random_checks == 0


def every_review(y, n_first, n_second):
    """Every course of a review of two rounds: one row by rule and some at random in each.

    The rule of the second round looks at what the first one found.
    """
    rows = np.arange(len(y))
    courses = []
    for first in combinations(rows[1:], n_first):
        one = listed(by_rule(rows[:1]), (np.array(first), *at_random(n_first, len(y) - 1)))
        left = np.setdiff1d(rows, one.rows)
        top = left[:1] if y[list(first)].any() else left[-1:]
        others = np.setdiff1d(left, top)
        for second in combinations(others, n_second):
            drawn = (np.array(second), *at_random(n_second, len(others)))
            two = listed(by_rule(top), drawn)
            after = np.full(len(y), -1)
            after[two.rows], after[one.rows] = 2, 1
            courses.append(CheckedSample.of(answered(y, after), after, [one, two]))
    return courses


def at_random(n, among):
    return np.ones(n, bool), np.full(n, n / among)


@pytest.mark.parametrize("seed", range(3))
def test_over_all_samples_weights_average_one_and_totals_the_truth(seed):
    random = np.random.default_rng(seed)
    y = (np.arange(8) % 3 == 0).astype(int)[random.permutation(8)]
    score = random.permutation(8).astype(float)
    courses = every_review(y, 2, 3)
    weights = np.mean([each.weight for each in courses], axis=0)
    assert weights == pytest.approx(np.ones(8))
    called = score > 3.5
    hits = [each.weight[called] @ (each.y[called] == 1) for each in courses]
    assert np.mean(hits) == pytest.approx(y[called].sum())
    guess = random.random(8)  # as the model-assisted estimate has
    totals = [
        guess.sum() + each.weight @ np.where(each.y >= 0, each.y - guess, 0.0) for each in courses
    ]
    assert np.mean(totals) == pytest.approx(y.sum())


@draws(40)
@given(
    st.integers(0, 10_000),
    st.sampled_from(METHODS),
    st.booleans(),
    st.sampled_from([(0.3, 1.0), (0.05, -1.0)]),
)
@example(8, CheckMethod.WEIGHTS, False, (0.05, -1.0))  # less than one rare row in the mean
def test_values_are_their_definitions(seed, method, ties, rows):
    y, score, probability = table(60, *rows, seed)
    score = np.round(score, 0 if ties else 6)
    random = np.random.default_rng(seed)
    above = score > 0.5
    sample = checked_once(
        y, draw(random, np.flatnonzero(above), 12), draw(random, np.flatnonzero(~above), 12)
    )
    unknown = sample.y < 0
    fixed = (sample.weight > 0) & (sample.spread == 0)
    if method != CheckMethod.WEIGHTS:
        fixed |= ~unknown & (score > score[unknown].max())
    sides = [each & ~fixed & ~unknown for each in (above, ~above)]
    if not (sample.y == 1).any() or not all(each.any() for each in sides):
        return
    expected = probability if method == CheckMethod.ASSISTED else np.zeros(len(y))
    if method == CheckMethod.STRATIFIED:
        for rows, side in zip(sides, (above, ~above), strict=True):
            expected[side] = np.average(sample.y[rows], weights=sample.weight[rows])
    u = estimated_labels(sample.y, sample.weight, expected, fixed)
    hits = u[above].sum()
    if not (u.sum() > (sample.y == 1).sum() and hits > (sample.y[above] == 1).sum()):
        return  # what is certain has the last word
    if u[~above].sum() < (sample.y[~above] == 1).sum() or hits > above.sum() - 8:
        return
    if precision_sum(u, score) <= 0.0:  # a measure below 0 is 0, and is not corrected
        return
    found = checked_measures(score, sample, 0.5, method=method, probability=probability)
    assert found.precision.value == pytest.approx(hits / above.sum())
    open_rows = [np.flatnonzero(each) for each in sides]
    columns = (score, sample.y, sample.weight, sample.spread, expected)
    recall, added = shifts(u, list(zip((above, ~above), open_rows, strict=True)), *columns)
    assert found.recall.value == pytest.approx(recall, rel=1e-5)
    if method == CheckMethod.ASSISTED and not all((sample.y[rows] == 1).any() for rows in sides):
        return  # an unseen row is a row of its own, at the place of another
    area = freed_ratio(lambda v: precision_sum(v, score), u, added)
    assert found.average_precision.value == pytest.approx(np.clip(area, 0, 1), rel=1e-4)


@draws(30)
@given(st.integers(0, 10_000), st.booleans())
def test_weights_at_a_threshold_give_its_stratified_estimates(seed, checks_all_alerts):
    y, score, _ = table(300, 0.2, 1.5, seed)
    random, top = np.random.default_rng(seed), np.argsort(-score)
    alerts = by_rule(top[:60]) if checks_all_alerts else draw(random, top[:60], 30)
    sample = checked_once(y, alerts, draw(random, top[60:110], 20), draw(random, top[110:], 20))
    threshold = score[top[random.integers(10, 90)]]
    found = checked_measures(score, sample, threshold)
    weight, above, rare = weights_at(score, sample, threshold), score > threshold, sample.y == 1
    if found.precision is None or found.n_rare is None:
        return
    if found.n_random_above and found.n_random_below:
        assert weight.sum() == pytest.approx(300)
    assert found.precision.value == pytest.approx(weight[above] @ rare[above] / above.sum())
    assert found.n_rare.value == pytest.approx(weight @ rare)


def reviews(kind, y, score, n, seed):
    random = np.random.default_rng(seed)
    top = np.argsort(-score)
    for _ in range(n):
        if kind == "alerts and random rows":
            parts = by_rule(top[:150]), draw(random, top[150:], 1000)
        elif kind == "two strata":
            parts = draw(random, top[:150], 80), draw(random, top[150:], 1000)
        else:
            yield adaptive(y, score, random)
            continue
        yield checked_once(y, *parts)


def simulated(kind, method, n, seed=0):
    size = (1500, 0.06) if kind == "rounds" else (4000, 0.05)
    y, score, probability = table(*size, 1.8, seed)
    threshold = np.sort(score)[-150]
    called = score > threshold
    truth = np.array(
        [y[called].mean(), y[called].sum() / y.sum(), average_precision(y, score), y.sum()]
    )
    found = [
        checked_measures(score, each, threshold, method=method, probability=probability)
        for each in reviews(kind, y, score, n, seed)
    ]
    bounds = np.array([[getattr(each, name) for name in MEASURES] for each in found], float)
    holds = (bounds[..., 1] <= truth + 1e-9) & (truth - 1e-9 <= bounds[..., 2])
    return truth, bounds[..., 0], holds


THOROUGH = [pytest.param(5, 60, method, 0.92, marks=pytest.mark.thorough) for method in METHODS]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["alerts and random rows", "two strata", "rounds"])
@pytest.mark.parametrize(
    ("n_tables", "n", "method", "least"), [(1, 20, "stratified", 0.85), *THOROUGH]
)
def test_estimates_are_unbiased_and_intervals_hold_the_truth(n_tables, n, method, least, kind):
    covered = []
    for seed in range(n_tables):
        truth, value, holds = simulated(kind, method, n, seed)
        error = value.std(axis=0) / np.sqrt(len(value))
        assert (np.abs(value.mean(axis=0) - truth) <= 4 * error + 0.015 * truth).all()
        covered.append(holds.mean(axis=0))
    assert (np.mean(covered, axis=0) >= least).all()


def test_rows_by_rule_alone_say_nothing_of_recall():
    y, score, _ = table(2000, 0.03, 2.0, 0)
    top = np.argsort(-score)[:100]
    found = checked_measures(score, checked_once(y, by_rule(top)), score[top].min() - 1e-9)
    hits = y[top].sum()
    assert found.precision == pytest.approx((hits / 100,) * 3)
    assert (found.recall, found.average_precision, found.prevalence, found.n_rare) == (None,) * 4
    assert found.random_checks == random_checks(hits, 1900, None, 0.1)
    assert 0 < found.random_checks < 1900
    assert f"at most about {found.random_checks:,} random checks" in found.sentences()[-1]


def test_as_many_random_checks_as_it_says_bring_recall_within_the_wanted_width():
    y, score, _ = table(20_000, 0.02, 2.0, 0)
    top = np.argsort(-score)
    hits, recall = y[top[:400]].sum(), y[top[:400]].sum() / y.sum()
    few = random_checks(hits, 19_600, (recall, recall, recall), 0.1)
    random = np.random.default_rng(0)
    widths = []
    for _ in range(5):
        sample = checked_once(y, by_rule(top[:400]), draw(random, top[400:], few))
        found = checked_measures(score, sample, score[top[400]]).recall
        widths.append((found.high - found.low) / 2)
    assert 0.07 < np.mean(widths) < 0.13


def test_no_random_case_found_among_few_says_little():
    y, score = np.repeat([0, 1], [990, 10]), np.arange(1000.0)
    few = (np.arange(0, 980, 49), *at_random(20, 980))
    found = checked_measures(score, checked_once(y, by_rule(np.arange(980, 1000)), few), 979.5)
    assert found.recall.value == pytest.approx(10 / (980 / 20 - 1))
    assert found.recall.high == 1
    assert any("too few to say what the recall is" in each for each in found.sentences())


def test_a_few_unknown_alerts_widen_the_precision_by_no_more_than_themselves():
    y, score, _ = table(2000, 0.05, 2.0, 0)
    top = np.argsort(-score)
    parts = (
        by_rule(np.setdiff1d(top[:100], top[[40, 60]])),
        draw(np.random.default_rng(0), top[100:], 300),
    )
    found = checked_measures(score, checked_once(y, *parts), score[top[100]])
    hits = y[np.setdiff1d(top[:100], top[[40, 60]])].sum()
    assert hits / 100 <= found.precision.low <= found.precision.high <= (hits + 2) / 100
    assert found.precision.low < found.precision.high


FEW_CHECKS = [
    (p, n, r) for p in (0.01, 0.005, 0.002, 0.02) for n in (300, 100, 1000) for r in (3, 6, 9)
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("prevalence", "n_random", "tenths"), quick(3, FEW_CHECKS))
def test_recall_from_few_random_checks(prevalence, n_random, tenths):
    """Exact: all alerts of 20,000 rows are checked, and k of the random rows are rare.

    The mean of the estimate is within a tenth of the truth where two rare rows or more are expected
    in as many random rows of the whole table; with fewer, the messages say that they are too few.
    """
    n_rows, n_rare = 20_000, round(prevalence * 20_000)
    hits = n_rare * tenths // 10
    n_alerts = max(200, 2 * hits)
    y, score, others = np.zeros(n_rows, int), -np.arange(n_rows), np.arange(n_alerts, n_rows)
    y[:n_alerts][np.linspace(0, n_alerts - 1, hits).astype(int)] = 1
    drawn = draw(np.random.default_rng(0), others, n_random)
    k = np.arange(n_rare - hits + 1)
    chance = hypergeom(len(others), n_rare - hits, n_random).pmf(k)
    k, chance = k[chance > 1e-4], chance[chance > 1e-4]
    found = []
    for n_found in k:
        y[others] = 0
        y[drawn[0][:n_found]] = 1
        sample = checked_once(y, by_rule(np.arange(n_alerts)), drawn)
        found.append(checked_measures(score, sample, 0.5 - n_alerts))
    for name, truth in (("recall", hits / n_rare), ("n_rare", n_rare)):
        _, low, high = np.array([getattr(each, name) for each in found]).T
        assert chance @ ((low <= truth + 1e-9) & (truth - 1e-9 <= high)) >= 0.945
    mean = chance @ [each.recall.value for each in found]
    says_little = chance @ ["too few to say" in " ".join(each.sentences()) for each in found]
    if prevalence * n_random >= 2:
        assert mean == pytest.approx(tenths / 10, rel=0.1)
    else:
        assert says_little >= 0.9
    if prevalence * n_random >= 10:
        assert says_little <= 0.1


@draws(30)
@given(st.integers(2, 100), st.floats(1.02, 50.0), st.sampled_from([0.8, 0.95, 0.99]))
def test_limits_are_exact_where_no_random_row_is_rare_or_every_one(n, weight, level):
    n_others = round(n * weight) + 1
    n_unseen, score = np.arange(n_others - n + 1), -np.arange(20 + n_others)
    most = n_unseen[hypergeom(n_others, n_unseen, n).pmf(0) >= (1 - level) / 2 * (1 + 1e-3)].max()
    sample = checked_once((score > -20) * 1, by_rule(np.arange(20)), strata_below((n_others, n)))
    found = checked_measures(score, sample, -19.5, level=level)
    limit = found.n_rare.high - 20
    assert found.n_rare.low == 20
    assert most <= limit * (1 + 2e-3) <= 1.06 * (most + 1)
    assert found.recall[1:] == pytest.approx((20 / (20 + limit), 1), rel=2e-3)
    drawn = checked_once((score <= -20) * 1, by_rule(np.arange(20)), strata_below((n_others, n)))
    turned = np.where(score > -20, -9999, score)
    precision = checked_measures(turned, drawn, -9998, level=level).precision
    assert precision[1:] == pytest.approx((1 - limit / n_others, 1), rel=2e-3)


def strata_below(*sizes):
    """Rows 20, 21, ... in strata of n_rows, of which n are drawn evenly, not the highest."""
    first, parts = 20, []
    for n_rows, n in sizes:
        parts.append((first + np.linspace(1, n_rows - 1, n).astype(int), *at_random(n, n_rows)))
        first += n_rows
    return listed(*parts)


STRATA = [
    [(200, 50, 3), (400, 50, 6), (2000, 60, 60)],
    *([(980, 80, n)] for n in (30, 44, 60)),
    *([each] for each in ((300, 150, 4), (300, 150, 6), (500, 20, 70), (500, 20, 100))),
    *([each] for each in ((5000, 100, 229), (20_000, 200, 466), (500, 250, 34), (300, 270, 2))),
    *([(200, 50, n), (2000, 60, m)] for n, m in ((0, 100), (10, 80), (12, 5))),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("strata", STRATA, ids=str)
def test_intervals_of_strata_with_few_rare_rows_hold_the_truth(strata):
    """Exact: sums over the numbers of rare rows that may be drawn from each stratum."""
    parts = strata_below(*((n_rows, n) for n_rows, n, _ in strata))
    edges = np.cumsum([0] + [n for _, n, _ in strata])
    score, n_rare = -np.arange(20 + sum(each[0] for each in strata)), 20 + sum(s[2] for s in strata)
    chances = [hypergeom(n_rows, m, n).pmf(np.arange(min(n, m) + 1)) for n_rows, n, m in strata]
    of_all = covered = 0.0
    for found in np.argwhere(reduce(np.multiply.outer, chances) > 1e-3):
        y = (score > -20) * 1
        for first, k in zip(edges, found, strict=False):
            y[parts.rows[first : first + k]] = 1
        chance = np.prod([of_k[k] for of_k, k in zip(chances, found, strict=True)])
        got = checked_measures(score, checked_once(y, by_rule(np.arange(20)), parts), -19.5)
        of_all += chance
        holds = got.n_rare.low <= n_rare <= got.n_rare.high
        assert holds == (got.recall.low <= 20 / n_rare <= got.recall.high)
        covered += chance * holds
    assert covered / of_all >= 0.95


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({name: value}, re.escape(f"{name}={value!r} must be strictly between 0 and 1."))
        for name in ("level", "half_width")
        for value in (-0.1, 0.0, 1.0, 1.5, np.nan, "0.9")
    ]
    + [({"method": "model-assisted"}, "needs probability")],
)
def test_settings_that_are_refused(settings, says):
    y, score, _ = table(100, 0.2, 1.0, 0)
    with pytest.raises(ValueError, match=says):
        checked_measures(score, checked_once(y, by_rule(np.arange(50))), 1.0, **settings)
    with refused(ErrorKind.LABELS):  # no checked row is rare
        checked_measures(score, checked_once(0 * y, by_rule(np.arange(50))), 1.0)


def test_checked_rows_that_stand_for_no_other_leave_the_unchecked_alerts_open():
    """Five of 60 alerts were known in every second round; ten others at random, of 1,000 below."""
    scores, y = np.arange(1060.0), np.full(1060, -1, np.int8)
    y[1050:], y[1000:1050:10], y[:1000:100] = 1, [1, 0, 1, 0, 0], 0
    weight, spread = np.where(y >= 0, 1.0, 0.0), np.zeros(1060)
    weight[1000:1050:10], spread[1000:1050:10] = 0.5, 900.0
    weight[:1000:100], spread[:1000:100] = 100.0, 9900.0
    found = checked_measures(scores, CheckedSample(y, weight, spread), 999.5)
    assert found.precision.low == found.precision.value == 12 / 60
    assert found.precision.high > 0.9
