"""Numbers that a user reads: probabilities at the stated base rate, names of columns, members."""

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import rareclass
from command_line import json_of, run
from faults import refused
from rareclass.cli.screen import print_leaderboard
from rareclass.decide import at_prevalence, balanced_accuracy_threshold
from rareclass.decide.calibration import weights_at_prevalence
from rareclass.decide.chosen_threshold import precision_at
from rareclass.decide.threshold_rule import default_thresholds
from rareclass.ensemble.members.machines import LogisticOnQuantiles
from rareclass.errors import ErrorKind
from rareclass.metrics import average_precision
from rareclass.metrics.intervals import Interval
from rareclass.model.evaluate import probability_quality
from rareclass.model.facts import CombinationFacts, LeaderboardRow, RankingEstimate
from rareclass.model.score_file import score_columns

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


def test_fit_says_what_its_precision_is_at_the_stated_base_rate(folder):
    facts = json_of(
        "fit", folder / "thinned.csv", "-t", "fraud", *QUICK, "--prevalence", STATED,
        "-o", folder / "again.m", "--overwrite",
    )  # fmt: skip
    assert facts["prevalence"] == pytest.approx(STATED)
    found = facts["held_out"]["measures"]
    held = rareclass.load(folder / "again.m").held_out
    rare = held.y == 1
    weight = weights_at_prevalence(rare, held.weight, STATED)
    assert weight[rare].sum() / weight.sum() == pytest.approx(STATED)
    there = found["average precision at 0.7% rare"]["value"]
    assert there == pytest.approx(average_precision(rare, held.scores, weight), rel=0.2)
    assert there < 0.6 * found["average precision"]["value"]


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
    payments(300, 0.2, 0).with_columns(pl.Series("fraud", np.arange(300) % 3)).write_csv(path)
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
