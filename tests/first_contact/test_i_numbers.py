"""Numbers that a user reads: probabilities at a base rate, thresholds and budgets of alerts."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy import special

import rareclass
from command_line import json_of, run, says
from draws import draws, thorough
from faults import refused
from rareclass.cli.model_file import RuleOptions
from rareclass.cli.screen import print_leaderboard
from rareclass.decide import ThresholdRule, at_prevalence, balanced_accuracy_threshold
from rareclass.decide.alert_budget import AtMostAlertsAPeriod, covered_periods
from rareclass.decide.calibration import weights_at_prevalence
from rareclass.decide.chosen_threshold import precision_at
from rareclass.decide.constraints import USEFUL_RECALL, sequence_bounds
from rareclass.decide.threshold_rule import default_thresholds
from rareclass.ensemble.members.machines import LogisticOnQuantiles
from rareclass.errors import ErrorKind, InputError
from rareclass.findings import FindingKind
from rareclass.metrics import average_precision
from rareclass.metrics.held_out_cuts import HeldOutCuts
from rareclass.metrics.intervals import Interval
from rareclass.model.evaluate import probability_quality
from rareclass.model.facts import CombinationFacts, LeaderboardRow, RankingEstimate
from rareclass.model.score_file import score_columns
from rareclass.tables.reading import times_of

STATED = 0.007
QUICK = ("--method", "mibc", "--cost", "1", "--no-baseline")


def payments(n, share, seed):
    random = np.random.default_rng(seed)
    rare = random.random(n) < share
    a, b = random.normal(size=n) + 2.0 * rare, random.normal(size=n) + rare
    return pl.DataFrame({"a": a, "b": b, "fraud": np.where(rare, "yes", "no")})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("base_rate")
    payments(1500, 0.12, 0).write_csv(path / "thinned.csv")
    payments(6000, STATED, 1).write_csv(path / "new.csv")
    for name, words in (("plain", ()), ("stated", ("--prevalence", STATED))):
        run("fit", path / "thinned.csv", "-t", "fraud", *QUICK, *words, "-o", path / f"{name}.m")
    return path


@pytest.mark.sampled(0)
def test_every_way_to_a_probability_has_the_stated_base_rate(folder):
    new = folder / "new.csv"
    plain, stated = (rareclass.load(folder / f"{name}.m") for name in ("plain", "stated"))
    trained = plain.rare_calibration.trained_prevalence
    as_trained = plain.predict_proba(new)[:, 1]
    right = at_prevalence(as_trained, trained=trained, prevalence=STATED)
    assert as_trained.mean() > 5 * STATED
    assert right.mean() == pytest.approx(STATED, rel=0.35)
    assert stated.prevalence == pytest.approx(STATED)
    assert (plain.stated_prevalence, plain.prevalence) == (None, pytest.approx(trained))
    np.testing.assert_allclose(stated.predict_proba(new)[:, 1], right, rtol=1e-9)
    # Scores are as they were; the threshold is for as many rows as are rare there.
    assert stated.threshold > plain.threshold
    np.testing.assert_array_equal(stated.score_samples(new), plain.score_samples(new))
    run("score", folder / "stated.m", new, "-o", folder / "s.csv", "--overwrite")
    np.testing.assert_allclose(pl.read_csv(folder / "s.csv")["probability"], right, rtol=1e-9)
    served = score_columns(stated, stated.score_samples(new))  # what the server answers with
    np.testing.assert_allclose(served[1], right, rtol=1e-9)
    quality = json_of("evaluate", folder / "stated.m", new)["probabilities"]
    assert quality["mean"] == pytest.approx(right.mean())
    assert quality["prevalence"] == pytest.approx(STATED)
    assert quality["log_loss"] < quality["log_loss_of_share"]
    assert json_of("show", folder / "stated.m")["probabilities"]["prevalence"] == pytest.approx(
        STATED
    )


def test_the_loaded_model_takes_a_base_rate_as_an_estimator_does(folder):
    model, new = rareclass.load(folder / "plain.m"), folder / "new.csv"
    before = model.predict_proba(new)
    right = rareclass.load(folder / "stated.m").predict_proba(new)
    assert model.set_prevalence(STATED) is model
    np.testing.assert_allclose(model.predict_proba(new), right, rtol=1e-9)
    np.testing.assert_allclose(model.with_thresholds(1.0).predict_proba(new), right, rtol=1e-9)
    np.testing.assert_allclose(model.set_prevalence().predict_proba(new), before, rtol=1e-12)
    kept = model.set_prevalence(majority_sampling_rate=0.05).prevalence
    assert kept is not None
    assert 0.0 < kept < 0.02
    for bad in (0.0, 1.0, -0.1, float("nan"), "half"):
        with refused(ErrorKind.SETTING):
            model.set_prevalence(bad)
    with refused(ErrorKind.COMBINATION):
        model.set_prevalence(0.1, 0.1)


@pytest.mark.parametrize("share", [0.05, STATED])
def test_fit_says_what_its_precision_is_at_a_base_rate_that_is_near(folder, share):
    facts = json_of(
        "fit", folder / "thinned.csv", "-t", "fraud", *QUICK, "--prevalence", share,
        "-o", folder / "again.m", "--overwrite",
    )  # fmt: skip
    assert facts["prevalence"] == pytest.approx(share)
    found = facts["held_out"]["measures"]
    held = rareclass.load(folder / "again.m").held_out
    rare = held.y == 1
    assert (
        (rare.mean() < 3 * share) == (share > STATED) == ("average precision at 5% rare" in found)
    )
    if share == STATED:  # far below: nobody knows
        assert not any(name.startswith("average precision at") for name in found)
        return
    weight = weights_at_prevalence(rare, held.weight, share)
    assert weight[rare].sum() / weight.sum() == pytest.approx(share)
    there = found["average precision at 5% rare"]["value"]
    assert there == pytest.approx(average_precision(rare, held.scores, weight), rel=0.2)
    assert there < 0.9 * found["average precision"]["value"]


def test_a_threshold_goes_by_the_base_rate_that_the_model_has(folder):
    stated = folder / "stated.m"
    own = json_of("threshold", stated, "--min-precision", 0.05)
    named = json_of(
        "threshold", folder / "plain.m", "--min-precision", 0.05, "--prevalence", STATED
    )
    assert (own["prevalence"], named["prevalence"]) == pytest.approx((STATED, STATED))
    assert own["threshold"] == pytest.approx(named["threshold"])
    assert named["probabilities_at"] == pytest.approx(STATED)
    alone = json_of("threshold", folder / "plain.m", "--prevalence", STATED, "-o", folder / "p.m")
    assert alone["probabilities_at"] == pytest.approx(STATED)
    changed, before = rareclass.load(folder / "p.m"), rareclass.load(folder / "plain.m")
    assert changed.stated_prevalence == pytest.approx(STATED)
    assert changed.threshold == before.threshold
    by_hand = json_of("threshold", stated, "--threshold", before.threshold)
    assert by_hand["prevalence"] == pytest.approx(STATED)
    assert "between 0 and 1" in run("threshold", stated, "--prevalence", 2, code=2)


def test_a_report_weighs_held_out_rows_as_the_base_rate_was_stated(folder):
    from rareclass.report.model_card import JudgedModel

    model = rareclass.load(folder / "stated.m")
    found = JudgedModel.of(model, model.held_out, held_out=True).reliability
    low, high = min(found.foretold), max(found.foretold)
    assert low < STATED < high
    assert found.n_off <= 1


def test_no_base_rate_without_probabilities_of_a_rare_class(tmp_path):
    path = tmp_path / "t.csv"
    payments(150, 0.2, 0).with_columns(pl.Series("fraud", np.arange(150) % 3)).write_csv(path)
    words = ("fit", path, "-t", "fraud", "-o", tmp_path / "m", "--method")
    said = run(*words, "ordinal-rankrc", "--prevalence", 0.1, code=2)
    assert "--prevalence 0.1 needs a rare class" in said
    run(*words, "ordinal-rankrc", "--lam", "1")
    with refused(ErrorKind.UNSUPPORTED):
        rareclass.load(tmp_path / "m").set_prevalence(0.1)


def test_precision_elsewhere_is_that_of_as_many_rows():
    there = precision_at((30, 50), (20, 1000), 0.9, 0.01)
    assert there.value == pytest.approx(0.6 * 0.01 / (0.6 * 0.01 + 0.02 * 0.99))
    assert there.low < there.value < there.high
    same = precision_at((30, 50), (20, 950), 0.9, 0.05)
    assert same.value == pytest.approx(30 / 50)


def test_losses_are_of_the_probabilities_given():
    found = probability_quality(np.array([True, False]), np.array([0.9, 0.1]), 0.5)
    assert (found.mean, found.share, found.prevalence) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(("ap", "noted"), [(0.178, True), (0.190, False)])
def test_a_combination_below_a_member_is_explained(ap, noted):
    console = Console(record=True, width=200)
    row = LeaderboardRow("logistic regression", "C=1", 0.8, 0.189, 0.1, 0.3, 1.0, 1.0)
    measures = {"AUC": Interval(0.85, 0.8, 0.9), "average precision": Interval(ap, 0.1, 0.3)}
    facts = CombinationFacts("average_precision", "quick", "", None, (row,), (), False, {})
    print_leaderboard(console, facts, RankingEstimate(measures, 100, 5))
    assert ("Note: a member above can seem better" in console.export_text()) is noted


@pytest.mark.parametrize("share", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_the_default_calls_as_many_rows_as_are_rare(share, decimals):
    random = np.random.default_rng(0)
    y = random.random(2000) < share
    scores = np.round(random.normal(size=2000) + 1.35 * y, decimals)
    default, f1, balanced = default_thresholds(y, scores)
    counts = np.array([(scores > t).sum() for t in np.unique(scores)] + [len(scores)])
    nearest = np.abs(counts[counts > 0] - y.sum()).min()
    assert abs(default.alerts - y.sum()) == nearest
    hits = np.array([(y & (scores >= t)).sum() for t in np.unique(scores)])
    called = np.array([(scores >= t).sum() for t in np.unique(scores)])
    assert f1.bound == pytest.approx((2.0 * hits / (called + y.sum())).max())
    assert balanced.threshold == balanced_accuracy_threshold(y, scores)
    assert default.alerts <= balanced.alerts
    weight = random.integers(1, 4, 2000)
    weighed = default_thresholds(y, scores, weight)[0]
    copies = default_thresholds(np.repeat(y, weight), np.repeat(scores, weight))[0]
    assert weighed.threshold == copies.threshold


def test_the_default_where_another_share_is_rare_or_nothing_can_be_chosen():
    random = np.random.default_rng(0)
    y = random.random(4000) < 0.2
    scores = random.normal(size=4000) + 2.0 * y
    for prevalence in (0.01, 0.5):
        default = default_thresholds(y, scores, prevalence=prevalence)[0]
        called = scores > default.threshold
        share = prevalence * called[y].mean() + (1 - prevalence) * called[~y].mean()
        assert share == pytest.approx(prevalence, rel=0.02)
    assert default_thresholds(y, np.zeros(4000)) == []
    assert default_thresholds(np.zeros(3), np.arange(3.0)) == []


@pytest.mark.sampled(0)
def test_fit_prints_the_default_and_two_others_that_threshold_takes(folder):
    words = ("fit", folder / "thinned.csv", "-t", "fraud", *QUICK, "--overwrite")
    facts = json_of(*words, "-o", folder / "d.m")
    assert facts["rule"]["rule"] == "as many alerts as rare rows"
    assert facts["rule"]["alerts"] == pytest.approx(facts["rule"]["n_rare"], abs=1)
    named = [each["rule"] for each in facts["other_thresholds"]]
    assert named == ["greatest F1", "best balanced accuracy"]
    for each in facts["other_thresholds"]:
        taken = json_of("threshold", folder / "d.m", "--threshold", each["threshold"])
        assert taken["alerts"] == pytest.approx(each["alerts"], abs=2)
    assert json_of(*words, "-o", folder / "d.m", "--min-recall", 0.5)["other_thresholds"] == []
    shown = run(*words, "-o", folder / "d.m")
    for rule in (facts["rule"]["rule"], *named):
        assert rule in shown


def test_a_classifier_has_the_default_of_the_command_line():
    frame = payments(600, 0.1, 3)
    members = [LogisticOnQuantiles(strengths=(0.1,))]
    model = rareclass.RareClassifier(members=members, cv=2, n_jobs=1)
    model.fit(frame.drop("fraud"), frame["fraud"])
    held = model.held_out_
    assert (held["score"] > model.offset_).sum() == held["rare"].sum()


Rule = ThresholdRule
APART = 1.35  # deviations: an AUC of .83
SHARES = (0.02, 0.05, 0.14, 0.15, 0.3, 0.5, 0.8, 1.0)
CONFIDENCES = (0.5, 0.8, 0.9, 0.99)


def strokes(seed, n=2000, n_rare=100):
    y = np.arange(n) < n_rare
    return y, np.random.default_rng(seed).normal(size=n) + APART * y


@st.composite
def tables(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(5, 600))
    y = random.permutation(n) < max(1, int(n * draw(st.sampled_from([0.01, 0.05, 0.3, 0.8]))))
    scores = random.normal(size=n) + draw(st.sampled_from([0.0, 1.35, 3.0, -1.0])) * y
    scores = np.round(scores, draw(st.sampled_from([0, 1, 8])))
    scores[0] += 100.0  # never all tied
    y[1:3] = [True, False]
    weight = [None, random.integers(1, 4, n), random.uniform(0.2, 3.0, n)]
    return y, scores, weight[draw(st.integers(0, 2))]


# More of what is asked for, and which way the number of alerts may go then.
ASKED = {
    "precision": (Rule.min_precision, SHARES, -1),
    "recall": (Rule.min_recall, SHARES, 1),
    "false-positive rate": (Rule.max_fpr, SHARES[:-1], 1),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("prevalence", [None, 0.003])
@pytest.mark.parametrize("name", ASKED)
@given(tables())
@draws(16)
def test_asking_for_more_goes_one_way(name, prevalence, table):
    make, shares, way = ASKED[name]
    y, scores, weight = table
    is_limit = name == "false-positive rate"
    alerts = np.empty((len(CONFIDENCES) + 1, len(shares)))
    met = np.empty(alerts.shape, dtype=bool)
    for i, confidence in enumerate((None, *CONFIDENCES)):
        for j, share in enumerate(shares):
            rule = make(share, confidence=confidence, prevalence=prevalence)
            chosen = rule.choose(y, scores, weight)
            alerts[i, j], met[i, j] = chosen.alerts, chosen.met
            if not chosen.met:  # what is said to be the best is never what was asked
                best = chosen.findings[0].values["bound"]
                assert chosen.findings[0].kind == FindingKind.CONSTRAINT_NOT_MET
                assert (best > share) if is_limit else (best < share)
    assert (way * np.diff(alerts, axis=1) >= -1e-9).all()
    assert (np.diff(met.astype(int), axis=1) * (1 if is_limit else -1) >= 0).all()
    assert (np.diff(met[1:].astype(int), axis=0) <= 0).all()
    if name != "recall":  # of the thresholds that keep a recall the most precise one is taken
        assert (np.diff(alerts[1:], axis=0)[met[2:]] <= 1e-9).all()


@pytest.mark.parametrize("seed", range(12))
def test_a_little_more_precision_costs_a_little_recall(seed):
    """No threshold of many alerts, or else of a few: what lies between is taken."""
    y, scores = strokes(seed)
    chosen = {p: Rule.min_precision(p).choose(y, scores) for p in (0.12, 0.13, 0.14, 0.15)}
    recalls = [each.recall.value for each in chosen.values()]
    assert all(each.met for each in chosen.values())
    assert recalls == sorted(recalls, reverse=True)
    held = HeldOutCuts.read(y, scores)
    bounds = sequence_bounds(held, 0.1)
    for share, each in chosen.items():
        between = (held.recalls() > each.recall.value) & (bounds >= share)
        assert not between.any()
        assert bounds[int(np.searchsorted(held.ends, each.alerts))] >= share


def test_the_best_precision_is_that_of_a_useful_recall():
    y, scores = strokes(0)
    chosen = Rule.min_precision(0.95).choose(y, scores)
    held = HeldOutCuts.read(y, scores)
    bounds = sequence_bounds(held, 0.1)
    assert chosen.bound == pytest.approx(bounds.max())
    assert chosen.useful_bound == pytest.approx(bounds[held.recalls() >= USEFUL_RECALL].max())
    said = chosen.says()
    says(said, f"{chosen.bound:.4g}", f"{chosen.useful_bound:.4g}")
    met = Rule.min_precision(chosen.useful_bound - 1e-9).choose(y, scores)
    assert met.met
    assert met.recall.value >= USEFUL_RECALL
    assert not met.caveat()
    few = Rule.min_precision(chosen.bound - 1e-9).choose(y, scores)
    assert few.met
    assert few.recall.value < USEFUL_RECALL
    assert f"{few.useful_bound:.4g}" in few.caveat()


CASES = [(0.01, 2000), (0.05, 400), (0.05, 2000), (0.2, 300)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("share", "n"), CASES)
def test_guarantees_hold_as_often_as_they_say(share, n):
    """Each asked precision, and what is said to be the best of all, and at a useful recall."""
    random = np.random.default_rng(0)
    samples = 2000 if thorough() else 150
    asked = (1.5 * share, 3.0 * share)
    broken, best = np.zeros(len(asked)), np.zeros(2)
    for _ in range(samples):
        y = random.random(n) < share
        y[:1] = True
        scores = random.normal(size=n) + APART * y
        held = HeldOutCuts.read(y, scores)
        bounds = sequence_bounds(held, 0.1)
        tested = np.flatnonzero(bounds)
        cuts = np.array([held.threshold(cut) for cut in tested])
        rare = share * special.ndtr(APART - cuts)
        true = rare / (rare + (1 - share) * special.ndtr(-cuts))
        for k, among in enumerate((bounds, bounds * (held.recalls() >= USEFUL_RECALL))):
            place = int(among[tested].argmax())
            best[k] += among[tested][place] > true[place]
        for k, wanted in enumerate(asked):
            kept = np.flatnonzero(bounds[tested] >= wanted)
            broken[k] += len(kept) > 0 and true[kept[-1]] < wanted
    slack = 2.0 * math.sqrt(0.09 / samples)
    assert (broken / samples <= 0.1 + slack).all()
    assert (best / samples <= 0.1 + slack).all()


def rows_of(days, per_day, random):
    start = np.asarray(days, "M8[D]").astype("M8[us]")
    within = (random.random((len(start), per_day)) * 86_399e6).astype("m8[us]")
    return (start[:, None] + within).ravel()


@pytest.mark.parametrize("period", ["hour", "day", "week"])
def test_part_periods_at_both_ends_change_nothing(period):
    random = np.random.default_rng(0)
    length = {"hour": 3600, "day": 86_400, "week": 7 * 86_400}[period]
    begin = np.datetime64("2026-03-02T00:00:00", "us")  # a Monday
    time = begin + (random.random(1170) * 5 * length * 1e6).astype("m8[us]")
    y, scores = random.random(1170) < 0.05, random.normal(size=1170)
    chosen = Rule.max_alerts(10, per=period).choose(y, scores, time=time)
    assert chosen.alerts == pytest.approx(35, abs=12)  # about 7.4 in each of 5
    part = (np.array([-0.04, 5.03, 5.04]) * length * 1e6).astype("m8[us]")
    more = Rule.max_alerts(10, per=period).choose(
        np.append(y, [False] * 3), np.append(scores, [-9.0] * 3), time=np.append(time, begin + part)
    )
    assert more.threshold == chosen.threshold
    assert covered_periods(np.append(time, begin + part), period).n == 5


def test_days_without_rows_are_no_days():
    random = np.random.default_rng(1)
    every = np.arange("2026-03-02", "2026-03-30", dtype="M8[D]")
    working = every[np.is_busday(every)]
    y, scores = random.random(20 * 50) < 0.1, random.normal(size=20 * 50)
    seed = np.random.default_rng(2)
    gaps = Rule.max_alerts(5).choose(y, scores, time=rows_of(working, 50, seed))
    seed = np.random.default_rng(2)
    none = Rule.max_alerts(5).choose(y, scores, time=rows_of(every[:20], 50, seed))
    assert gaps.threshold == none.threshold
    assert gaps.budget.n_periods == 20


DAYS = np.arange("2026-03-02", "2026-03-12", dtype="M8[D]")


@pytest.mark.parametrize("time", [DAYS, DAYS.astype("M8[us]"), np.arange(10), np.arange(10.0)])
def test_days_alone_have_no_hours(time):
    time = np.repeat(time, 9)
    with refused(ErrorKind.SETTING, says="90"):
        Rule.max_alerts(3, per="hour").choose(np.arange(90) < 9, np.arange(90), time=time)
    is_date = time.dtype.kind == "M"
    time = time.astype("M8[us]") if is_date else time + 0.0
    time[4] += np.timedelta64(1, "s") if is_date else 0.25
    assert covered_periods(time, "hour").has_whole


@pytest.mark.parametrize(
    ("hours", "n"),
    [
        ((9, 17), 6.0),  # an office: each day begins at nine, all are whole
        ((0, 24), 6.0),
        ((0, 0.0001), 6.0),  # dates without a time of day
    ],
)
def test_whole_days_are_those_like_the_others(hours, n):
    day = np.arange(6)[:, None] * 24.0
    within = np.linspace(*hours, 40, endpoint=False)
    time = np.datetime64("2026-03-02", "us") + ((day + within).ravel() * 3600e6).astype("m8[us]")
    assert covered_periods(time, "day").n == n
    late = time[np.argsort(time)][30:]  # the first day lacks three quarters of its rows
    assert covered_periods(late, "day").n == (n if hours[1] < 1 else n - 1)


def test_rows_of_less_than_a_day_count_by_their_length():
    time = np.datetime64("2026-03-02T10:00", "us") + np.arange(0, 7200, 20).astype("m8[s]")
    periods = covered_periods(time, "day")
    assert not periods.has_whole
    assert periods.n == pytest.approx(1 / 12, rel=0.01)
    random = np.random.default_rng(0)
    chosen = Rule.max_alerts(60, confidence=None).choose(
        random.random(360) < 0.1, random.normal(size=360), time=time
    )
    assert chosen.alerts == 4  # 48 a day; one more would be 60.2
    assert Rule.max_alerts(60).choose(random.random(360) < 0.1, random.normal(size=360), time=time)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("zone", ["+02:00", "Z", "-05:00", "typed", ""])
def test_days_are_those_of_the_own_clock(zone):
    local = ["2026-03-01T23:30:00", "2026-03-02T00:30:00", "2026-03-02T12:00:00"]
    column = pl.Series("t", [each + zone.replace("typed", "") for each in local])
    if zone == "typed":
        column = column.str.to_datetime().dt.replace_time_zone("America/New_York")
    found = times_of(column, np.arange(1, 4), "--time")
    assert found.tolist() == np.array(local, "M8[us]").tolist()
    assert covered_periods(found, "day").place.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("text", "period"), [("10/day", "day"), ("10/Hour", "hour"), (" 1,000 / week", "week")]
)
def test_periods_of_a_budget(text, period):
    rule = RuleOptions(alerts=text).rule()
    assert isinstance(rule.rule.constraint, AtMostAlertsAPeriod)
    assert rule.rule.constraint.period == period


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"alerts": "10/month"}, ErrorKind.SETTING),
        ({"alerts": "day"}, ErrorKind.SETTING),
        ({"alerts": "10/day", "prevalence": 0.01}, ErrorKind.COMBINATION),
        ({"prevalence": 1.5}, ErrorKind.SETTING),
        ({"confidence": "0.8"}, ErrorKind.COMBINATION),
    ],
)
def test_what_is_no_budget(options, kind):
    with pytest.raises(InputError) as caught:
        RuleOptions(**options).rule()
    assert caught.value.kind is kind
