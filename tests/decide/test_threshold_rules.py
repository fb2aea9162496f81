"""Thresholds that keep a constraint: against slow ones, and as often as they say."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.metrics import fbeta_score

from draws import draws, thorough
from rareclass.decide import ReviewBand, ThresholdRule
from rareclass.decide.alert_budget import (
    EXCHANGEABLE_PERIODS,
    POISSON,
    PeriodBudget,
    _beta_binomial,
    covered_periods,
)
from rareclass.decide.constraints import _ranks, precision_band, sequence_bounds
from rareclass.errors import InputError
from rareclass.findings import FindingKind
from rareclass.metrics.held_out_cuts import HeldOutCuts
from rareclass.metrics.intervals import (
    chance_of_at_least,
    chance_of_at_most,
    exact_interval,
    lower_bound,
    upper_bound,
)

Rule = ThresholdRule
CONFIDENCE = 0.9


@st.composite
def scored(draw, n_max=60):
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(4, n_max))
    y = random.permutation(n) < draw(st.integers(1, n - 1))
    scores = random.integers(0, draw(st.sampled_from([2, 6, 1000])), n) + 2.0 * y
    scores[[0, 1]] = [-1.0, scores[1]]  # never all tied
    return y, scores


def cuts_of(y, scores):
    above = [scores > t for t in [np.inf, *np.unique(scores)[::-1], -np.inf]]
    return [(int(y[a].sum()), int((~y)[a].sum())) for a in above[1:]]


def above(y, scores, chosen):
    called = scores > chosen.threshold
    return int(y[called].sum()), int((~y)[called].sum())


@given(st.integers(1, 40), st.data(), st.floats(0.01, 0.99))
@draws(60)
def test_exact_bounds(trials, data, share):
    hits = data.draw(st.integers(0, trials))
    binomial = stats.binom(trials, share)
    assert chance_of_at_least(hits, trials, share) == pytest.approx(binomial.sf(hits - 1))
    assert chance_of_at_most(hits, trials, share) == pytest.approx(binomial.cdf(hits))
    low, high = lower_bound(hits, trials, 0.1), upper_bound(hits, trials, 0.1)
    assert low <= hits / trials <= high
    if hits:
        assert stats.binom(trials, low).sf(hits - 1) == pytest.approx(0.1)
    if hits < trials:
        assert stats.binom(trials, high).cdf(hits) == pytest.approx(0.1)
    interval = stats.binomtest(hits, trials).proportion_ci(0.9)
    assert exact_interval(hits, trials, 0.9)[1:] == pytest.approx((interval.low, interval.high))


@given(scored())
@draws(60)
def test_what_lies_above_each_cut(table):
    y, scores = table
    held = HeldOutCuts.read(y, scores)
    assert list(zip(held.rare, held.majority, strict=True)) == cuts_of(y, scores)
    for cut in range(len(held.rare)):
        called = scores > held.threshold(cut)
        assert (y[called].sum(), (~y)[called].sum()) == (held.rare[cut], held.majority[cut])


@given(scored(200), st.sampled_from([0.05, 0.3, 0.8]))
@draws(60)
def test_rates_are_kept_by_the_exact_binomial_test(table, share):
    y, scores = table
    n_rare, n_majority = int(y.sum()), int((~y).sum())
    cuts = cuts_of(y, scores)
    chosen = Rule.max_fpr(share).choose(y, scores)
    fine = [c for c in cuts if stats.binom.cdf(c[1], n_majority, share) <= 1 - CONFIDENCE + 1e-12]
    fine = fine if share < 1 else cuts
    assert chosen.met == chosen.guaranteed == bool(fine)
    assert above(y, scores, chosen) == (fine[-1] if fine else [c for c in cuts if c[1] == 0][-1])
    chosen = Rule.min_recall(share).choose(y, scores)
    fine = [c for c in cuts if stats.binom.sf(c[0] - 1, n_rare, share) <= 1 - CONFIDENCE + 1e-12]
    assert chosen.met == bool(fine)
    if fine:
        best = max(fine, key=lambda c: (round(c[0] / sum(c), 12), -sum(c)))
        assert above(y, scores, chosen) == best
    else:
        assert above(y, scores, chosen) == next(c for c in cuts if c[0] == n_rare)
        assert chosen.bound == pytest.approx((1 - CONFIDENCE) ** (1 / n_rare))


def chain_of_tests(held, share, error):
    """The fallback procedure, test by test: the cuts whose precision is at least `share`."""
    kept, level = [], 0.0
    for cut, own in zip(*_ranks(held.ranks), strict=True):
        level += own * error
        rare, rest = held.rare[cut], held.majority[cut]
        if level > 0 and stats.binom.sf(rare - 1, rare + rest, share) <= level:
            kept.append(cut)
        else:
            level = 0.0
    return kept


@given(scored(200), st.sampled_from([0.2, 0.5, 0.9]), st.sampled_from([0.1, 0.5]))
@draws(60)
def test_precision_is_tested_in_order_and_errors_add_up(table, share, error):
    y, scores = table
    held = HeldOutCuts.read(y, scores)
    ranks, part = _ranks(held.ranks)
    assert part.sum() == pytest.approx(1.0)
    assert (part >= 0.0).all()
    assert (np.diff(ranks) > 0).all()
    assert ranks[0] > 0
    chosen = Rule.min_precision(share, confidence=1 - error).choose(y, scores)
    kept = chain_of_tests(held, share, error)
    assert chosen.met == bool(kept)
    if chosen.met:
        assert chosen.threshold == held.threshold(kept[-1])
    np.testing.assert_array_equal(np.flatnonzero(sequence_bounds(held, error) >= share), kept)
    # Labels have no part in which ranks are looked at.
    shuffled = HeldOutCuts.read(np.random.default_rng(0).permutation(y), scores)
    np.testing.assert_array_equal(_ranks(shuffled.ranks)[0], ranks)


@pytest.mark.parametrize("confidence", [None, CONFIDENCE])
def test_a_constraint_that_no_threshold_meets(confidence):
    y, scores = np.arange(30) < 5, np.arange(30.0)
    chosen = Rule.min_precision(0.9, confidence=confidence).choose(y, scores)
    assert not chosen.met
    assert not chosen.guaranteed
    finding = chosen.findings[0]
    assert finding.kind == FindingKind.CONSTRAINT_NOT_MET
    assert finding.values["shortfall"] == pytest.approx(0.9 - chosen.bound) == chosen.shortfall
    assert "is not met" in chosen.says()
    held = HeldOutCuts.read(y, scores)
    expected = 5 / 30 if confidence is None else sequence_bounds(held, 0.1).max()
    assert chosen.bound == pytest.approx(expected)
    below = Rule.min_precision(chosen.bound - 1e-9, confidence=confidence).choose(y, scores)
    assert below.met
    assert below.threshold == chosen.threshold
    assert json.loads(json.dumps(chosen.to_dict()))["findings"][0]["kind"] == finding.kind


@given(scored(120), st.integers(1, 10), st.integers(11, 60))
@draws(40)
def test_the_lowest_threshold_with_few_enough_alerts(table, number, rows):
    y, scores = table
    n, cuts = len(y), cuts_of(y, scores)[:-1]
    chances = [stats.betabinom.cdf(number, rows, sum(c) + 1, n - sum(c)) for c in cuts]
    assert [_beta_binomial(number, rows, sum(c), n) for c in cuts] == pytest.approx(chances)
    fine = [c for c, chance in zip(cuts, chances, strict=True) if chance >= CONFIDENCE]
    chosen = Rule.max_alerts(number, rows=rows).choose(y, scores)
    assert chosen.met == bool(fine)
    assert above(y, scores, chosen) == (fine[-1] if fine else (0, 0))
    if not fine:
        number = int(chosen.bound)
        assert stats.betabinom.cdf(number, rows, 1, n) >= CONFIDENCE
        assert stats.betabinom.cdf(number - 1, rows, 1, n) < CONFIDENCE
    plain = Rule.max_alerts(number, rows=rows, confidence=None).choose(y, scores)
    assert plain.alerts * rows / n <= number * (1 + 1e-9)


@given(scored(120), st.integers(1, 3), st.integers(2, 14))
@draws(40)
def test_alerts_of_a_day_to_come(table, number, n_days):
    y, scores = table
    day = np.arange(len(y)) % n_days
    n_days = len(np.unique(day))
    plain = Rule.max_alerts(number, confidence=None).choose(y, scores, time=day)
    fine = [c for c in cuts_of(y, scores) if sum(c) <= number * n_days * (1 + 1e-12)]
    assert above(y, scores, plain) == fine[-1]
    chosen = Rule.max_alerts(number).choose(y, scores, time=day)
    assert chosen.budget.allowed == pytest.approx(1.0 - CONFIDENCE)
    limits = np.sort([
        ([-np.inf, *np.sort(scores[day == d])][-1 - number :])[0]
        if (day == d).sum() > number
        else -np.inf
        for d in range(n_days)
    ])  # fmt: skip
    if n_days >= 9:
        assert chosen.procedure == EXCHANGEABLE_PERIODS.format(period="day")
        limit = limits[math.ceil(CONFIDENCE * (n_days + 1) - 1e-9) - 1]
        assert (scores > chosen.threshold).sum() == (scores > limit).sum()
        return
    assert chosen.procedure == POISSON
    share = n_days / (n_days + 1)
    cuts = cuts_of(y, scores)[:-1]
    fine = [c for c in cuts if stats.nbinom.cdf(number, sum(c) + 1, share) >= CONFIDENCE - 1e-12]
    alerts = np.array([
        [(scores[day == d] >= s).sum() for d in range(n_days)] for s in np.unique(scores)[::-1]
    ])  # fmt: skip
    spread = np.maximum(alerts.var(axis=1, ddof=1), alerts.mean(axis=1)) * (1.0 + 1.0 / n_days)
    most = alerts.mean(axis=1) + stats.t.ppf(CONFIDENCE, n_days - 1) * np.sqrt(spread)
    n_calm = np.argmax(np.append(most > number, True))
    within = [c for c in fine[: n_calm + 1] if sum(c) <= (scores > limits[-1]).sum()]
    assert above(y, scores, chosen) == (within[-1] if within else (0, 0))
    assert chosen.budget.n_above == 0
    if not fine:
        assert stats.nbinom.cdf(chosen.bound, 1, share) >= CONFIDENCE
        assert stats.nbinom.cdf(chosen.bound - 1, 1, share) < CONFIDENCE


def rows_of_days(random, n_days, burst, differing):
    """Days and scores of rows that come in bursts of like scores, on days that differ; 40 a day."""
    n_bursts = random.poisson(random.gamma(1 / differing, differing, n_days) * 40 / burst)
    size = random.geometric(1 / burst, n_bursts.sum())
    depth = np.repeat(random.random(len(size)), size) * np.exp(random.normal(0, 0.4, size.sum()))
    return np.repeat(np.repeat(np.arange(n_days), n_bursts), size), -depth


DAYS = [(days, number) for days in (2, 3, 5, 8, 10, 14) for number in (2, 20, 8)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_rows", [None, 280])
@pytest.mark.parametrize(("burst", "differing"), [(1, 1e-6), (1, 0.2), (2, 0.05)])
@pytest.mark.parametrize(("n_days", "number"), DAYS)
def test_days_that_differ_keep_a_budget_as_is_said(n_days, number, burst, differing, n_rows):
    """A day, or 280 rows of 7 days; of rows that are independent without times."""
    random, shares, later = np.random.default_rng(0), [], 1 if n_rows is None else 7
    number *= later
    rule, knows = Rule.max_alerts(number, rows=n_rows), n_rows is None or differing > 0.01
    day, depth = rows_of_days(random, 1400, burst, differing)
    for _ in range(100):
        time, scores = rows_of_days(random, n_days, burst, differing)
        rare = random.permutation(len(time)) < 9
        chosen = rule.choose(rare, scores, time=time if knows else None)
        alerts = np.bincount(day // later, depth > chosen.threshold, 1400 // later)
        shares.append(np.mean(alerts > number))
    assert np.mean(shares) <= 0.13 + 2.5 * np.std(shares) / 10.0


@pytest.mark.parametrize("minutes", [2, 30, 600])
def test_of_less_than_a_day_the_least_number_that_holds_is_named(minutes):
    time = np.arange(40) * minutes / 40 / 1440
    share = 1.0 - 1.0 / (covered_periods(time, "day").n + 1.0)
    chosen = Rule.max_alerts(1).choose(np.arange(40) % 5 == 0, np.arange(40.0), time=time)
    assert chosen.procedure == POISSON
    assert not chosen.budget.n_above
    assert stats.nbinom.cdf(chosen.bound, 1, share) >= CONFIDENCE
    assert stats.nbinom.cdf(chosen.bound - 1, 1, share) < CONFIDENCE


@given(scored(), st.floats(0.1, 5.0), st.floats(0.1, 20.0), st.booleans())
@draws(40)
def test_least_cost(table, fp, fn, each):
    y, scores = table
    amount = np.linspace(0.0, 2.0 * fn, len(y)) if each else np.full(len(y), fn)
    rule = Rule.least_cost(fp=fp, fn="amount" if each else fn, review=0.05)
    chosen = rule.choose(y, scores, costs={"amount": amount})

    def cost(threshold):
        alert = scores > threshold
        return np.mean(fp * (alert & ~y) + amount * (~alert & y) + 0.05 * alert)

    least = min(cost(t) for t in [-np.inf, *np.unique(scores)])
    assert chosen.bound == pytest.approx(cost(chosen.threshold)) == pytest.approx(least)
    assert chosen.confidence is None


@given(scored(), st.sampled_from([0.5, 1.0, 2.0]))
@draws(40)
def test_greatest_f_beta(table, beta):
    y, scores = table
    chosen = Rule.f_beta(beta).choose(y, scores)
    square, n_rare = beta**2, y.sum()
    values = [(1 + square) * r / (r + m + square * n_rare) for r, m in cuts_of(y, scores)]
    assert chosen.bound == pytest.approx(max(values))
    assert fbeta_score(y, scores > chosen.threshold, beta=beta) == pytest.approx(max(values))


RULES = [
    Rule.min_precision(0.4),
    Rule.min_precision(0.4, prevalence=0.2),
    Rule.min_recall(0.7),
    Rule.max_fpr(0.2),
    Rule.max_alerts(10, rows=40),
    Rule.max_alerts(10, rows=40, prevalence=0.2),
    Rule.max_alerts(12),
    Rule.least_cost(fp=1.0, fn="amount"),
    Rule.f_beta(),
    Rule.as_many_as_rare(),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.words)
@given(st.integers(0, 2**32))
@draws(8)
def test_a_weight_is_so_many_copies(rule, seed):
    random = np.random.default_rng(seed)
    n = 80
    y, day, weight = random.random(n) < 0.4, random.integers(0, 4, n), random.integers(0, 4, n)
    scores, amount = np.round(random.normal(size=n) + 2 * y, 1), random.random(n)
    weighed = rule.choose(y, scores, weight, time=day, costs={"amount": amount}).to_dict()
    y, scores, day, amount = (np.repeat(one, weight) for one in (y, scores, day, amount))
    copied = rule.choose(y, scores, time=day, costs={"amount": amount}).to_dict()
    for name, value in copied.items():
        if isinstance(value, float):
            assert weighed[name] == pytest.approx(value, rel=1e-9), name
    assert weighed["precision"] == pytest.approx(copied["precision"])


def test_weights_that_are_no_copies_have_an_approximate_guarantee():
    random = np.random.default_rng(0)
    y = np.arange(900) < 300
    scores, weight = random.normal(size=900) + 2 * y, random.uniform(0.1, 3.0, 900)
    chosen = Rule.min_recall(0.8).choose(y, scores, weight)
    assert chosen.met
    assert not chosen.guaranteed
    finding = chosen.findings[0]
    assert finding.kind == FindingKind.APPROXIMATE
    rare = weight[y]
    assert finding.values["rare"] == pytest.approx(rare.sum() ** 2 / (rare**2).sum())
    again = Rule.min_recall(0.8).choose(y, scores, 7.3 * weight)
    assert again.threshold == chosen.threshold


def test_the_band_holds_for_all_thresholds_and_reaches_the_share():
    random = np.random.default_rng(0)
    y = np.arange(4000) < 2000
    scores = random.normal(size=4000) + 3 * y
    chosen = Rule.min_precision(0.5, prevalence=0.02).choose(y, scores)
    t = chosen.threshold
    truth = 0.02 * special.ndtr(3 - t) / (0.02 * special.ndtr(3 - t) + 0.98 * special.ndtr(-t))
    assert 0.5 <= chosen.bound <= truth
    assert chosen.precision.low <= truth <= chosen.precision.high
    assert chosen.prevalence == 0.02


N_RARE, N_MAJORITY, APART = 30, 600, 2.5


def prevalence_free(t):
    return special.ndtr(APART - t), special.ndtr(-t)


def true_precision(t, prevalence=N_RARE / (N_RARE + N_MAJORITY)):
    rare, majority = prevalence_free(t)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(
            prevalence * rare / (prevalence * rare + (1 - prevalence) * majority), nan=1.0
        )


HOLDS = {
    Rule.min_precision(0.4): lambda t: true_precision(t) >= 0.4,
    Rule.min_precision(0.2, prevalence=0.1): lambda t: true_precision(t, 0.1) >= 0.2,
    Rule.min_recall(0.7): lambda t: prevalence_free(t)[0] >= 0.7,
    Rule.max_fpr(0.02): lambda t: prevalence_free(t)[1] <= 0.02,
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rule", HOLDS, ids=lambda rule: rule.words)
def test_it_holds_as_often_as_it_says(rule):
    random = np.random.default_rng(0)
    y = np.arange(N_RARE + N_MAJORITY) < N_RARE
    samples = 2000 if thorough() else 250
    held = [
        HOLDS[rule](rule.choose(y, random.normal(size=len(y)) + APART * y).threshold)
        for _ in range(samples)
    ]
    assert np.mean(held) >= CONFIDENCE - 2.0 * math.sqrt(0.09 / samples)


def test_precision_that_crosses_the_share_three_times():
    """Rare rows around 6 and 4, a few others around 5: good, bad, good, bad as the list goes on."""
    random = np.random.default_rng(0)
    y = np.arange(101 * 100) < 100
    few = 0.004

    def precision(t):
        rare = 0.5 * special.ndtr((6 - t) / 0.2) + 0.5 * special.ndtr((4 - t) / 0.2)
        others = few * special.ndtr((5 - t) / 0.2) + (1 - few) * special.ndtr(-t)
        return rare / (rare + 100 * others)

    assert [precision(t) > 0.6 for t in (5.5, 4.5, 3.5, 2.5)] == [True, False, True, False]
    broken, rule = 0, Rule.min_precision(0.6)
    for _ in range(50):
        centre = np.where(y, random.choice([6.0, 4.0], len(y)), 5.0)
        near = y | (random.random(len(y)) < few)
        scores = np.where(near, centre + 0.2 * random.normal(size=len(y)), 0.0)
        scores = np.where(near, scores, random.normal(size=len(y)))
        chosen = rule.choose(y, scores)
        broken += chosen.met and precision(chosen.threshold) < 0.6
    assert broken <= 5


def test_the_precision_band_is_right_at_once():
    random = np.random.default_rng(0)
    y, wrong = np.arange(300) < 40, 0
    for _ in range(100):
        scores = random.normal(size=300) + APART * y
        held = HeldOutCuts.read(y, scores)
        bound = precision_band(held, 0.1, 0.1)
        thresholds = np.array([held.threshold(cut) for cut in range(len(bound))])
        wrong += bool((bound > true_precision(thresholds, 0.1) + 1e-12).any())
    assert wrong <= 10


def test_a_band_blocks_reviews_and_lets_pass():
    random = np.random.default_rng(0)
    y = np.arange(2000) < 200
    scores = random.normal(size=2000) + 3 * y
    band = ReviewBand(Rule.min_precision(0.9), Rule.min_recall(0.9))
    chosen = band.choose(y, scores)
    assert chosen.block == band.block.choose(y, scores)
    assert chosen.review == band.review.choose(y, scores)
    said = chosen.decide(scores)
    assert (said == "block").sum() == chosen.block.alerts
    assert (said != "pass").sum() == chosen.review.alerts
    assert not chosen.findings
    turned = ReviewBand(band.review, band.block).choose(y, scores)
    assert turned.findings[0].kind == FindingKind.NOTHING_TO_REVIEW
    assert set(turned.decide(scores)) == {"block", "pass"}


Y, SCORES = [0, 0, 1, 1], [0.1, 0.4, 0.3, 0.8]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Rule(0.3), "constraint=0.3 is none: use a class method"),
        (lambda: Rule.min_precision(0), "min_precision=0 must be above 0 and at most 1"),
        (lambda: Rule.min_precision(11), "=11 must be .* at most 1. Give 0.11 for 11%"),
        (lambda: Rule.min_recall(True), "min_recall=True"),
        (lambda: Rule.max_fpr(0.0), "max_fpr=0.0 must be between 0 and 1"),
        (lambda: Rule.max_fpr(1.0), "max_fpr=1.0"),
        (lambda: Rule.max_alerts(0), "max_alerts=0"),
        (lambda: Rule.max_alerts(2.5), "max_alerts=2.5"),
        (lambda: Rule.max_alerts(50, rows=50), "50 alerts in 50 rows do not constrain"),
        (lambda: Rule.least_cost(fp=1), "fn of 0: no alert costs least"),
        (lambda: Rule.least_cost(fn=1), "fp and review of 0: an alert for every row"),
        (lambda: Rule.least_cost(fp=-1, fn=1), "fp=-1 must be a number of at least 0"),
        (lambda: Rule.f_beta(0), "beta=0"),
        (lambda: Rule.min_recall(0.9, confidence=1), "confidence=1 must be None or between"),
        (lambda: Rule.min_recall(0.9, prevalence=0.0), "prevalence=0.0 must be between"),
        (lambda: Rule.max_alerts(1, prevalence=0.1), "a day and prevalence=0.1 contradict"),
        (lambda: ReviewBand(Rule.f_beta(), 0.5), r"review=0.5 must be a ThresholdRule"),
    ],
)
def test_settings_that_are_none(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    ("rule", "given", "said"),
    [
        (Rule.f_beta(), {"scores": [1, 1, 1, 1]}, "all 4 scores are 1: no threshold separates"),
        (Rule.f_beta(), {"scores": [1, 1, 1]}, "y has 4 rows, but scores has 3"),
        (Rule.f_beta(), {"scores": [1, 1, 1, np.nan]}, r"scores\[3\] = .* is NaN"),
        (Rule.f_beta(), {"y": [0, 0, 0, 0]}, "y holds no rare"),
        (Rule.f_beta(), {"sample_weight": [0, 0, 0, 0]}, "of positive weight"),
        (Rule.f_beta(), {"sample_weight": [1, 1, -1, 1]}, r"sample_weight\[2\]"),
        (Rule.max_alerts(1), {}, "the day of each row is not known.*Pass time="),
        (Rule.max_alerts(1), {"time": ["a"] * 4}, "time: 'a' at row 0 is not a time"),
        (Rule.max_alerts(1), {"time": [1, 2]}, r"time has the shape \(2,\)"),
        (Rule.least_cost(1, "fee"), {}, "the cost 'fee' is not among costs"),
        (Rule.least_cost(1, "fee"), {"costs": {"fee": [1, 2, -3, 4]}}, r"fee\[2\] = -3"),
        (Rule.least_cost(1, "fee"), {"costs": {"fee": [1]}}, "fee has 1 rows"),
        (Rule.least_cost(1, "fee"), {"costs": {"fee": ["x"] * 4}}, "fee must be numbers"),
    ],
)
def test_rows_that_cannot_be_judged(rule, given, said):
    with pytest.raises(ValueError, match=said) as told:
        rule.choose(**{"y": Y, "scores": SCORES} | given)
    if "all 4" in said:
        assert isinstance(told.value, InputError)


@given(st.floats(0, 20), st.floats(1, 30), st.integers(1, 9))
def test_days_of_a_budget_are_the_whole_ones_and_those_in_part(start, length, number):
    time = start + np.arange(0.0, length, 0.05)
    found = PeriodBudget(number, "day", allowed=0.1).on(time, time % 1.0 < 0.3)
    days = covered_periods(time, "day")
    whole = days.n if days.has_whole else 0
    assert found.n_periods - found.n_part == whole
    assert "(allowed: 1 day in 10)" in found.sentence()
    assert (f"({found.n_part} in part)" in found.sentence()) == bool(found.n_part)
