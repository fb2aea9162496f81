"""Labels that are not all known: `--journal` of checked rows, and `--missed-cases`."""

from functools import cache

import numpy as np
import polars as pl
import pytest

from command_line import invoke, json_of, run, run_with_json, says
from faults import refusal, refused
from made_tables import purchases
from rareclass.decide.threshold_rule import ThresholdRule
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind
from rareclass.metrics import average_precision, checked_measures
from rareclass.model.model_file import load_model
from rareclass.model.threshold import DecisionRule, with_threshold
from rareclass.report.model_report import checked_section
from rareclass.report.reading import ReportOptions, read_rows
from rareclass.review import Header, Listed, ReviewJournal, Round, Verdict
from rareclass.review.estimates import evaluate_checked, import_checks, read_checked
from rareclass.review.table import read_review_table


@cache
def scored_month(path):
    model, rows = load_model(path), purchases(600, seed=7)
    return model, rows, model.score_samples(rows.drop("fraud"))


class Month:
    def __init__(self, fitted, folder, n_random=90):
        self.folder, self.model_path = folder, fitted.model
        self.model, rows, self.scores = scored_month(self.model_path)
        self.y, self.keys = (rows["fraud"] == "yes").to_numpy(), rows["order"].to_list()
        self.table = folder / "month.csv"
        rows.drop("fraud").write_csv(self.table)
        alerts = np.flatnonzero(self.scores > self.model.threshold)
        others = np.setdiff1d(np.arange(600), alerts)
        drawn = np.random.default_rng(0).choice(others, n_random, replace=False)
        self.rows = np.concatenate([alerts, drawn])
        self.chance = n_random / len(others)
        self.weight = np.repeat([1.0, 1 / self.chance], [len(alerts), n_random])
        self.checks = pl.DataFrame(
            {
                "order": [self.keys[row] for row in self.rows],
                "label": np.where(self.y[self.rows], "yes", "no"),
                "reason": np.repeat(["alert", "random"], [len(alerts), n_random]),
            }
        )
        self.checked = folder / "checked.csv"
        self.checks.write_csv(self.checked)

    def journal(self, name="review.jsonl", **changed):
        read = read_review_table(self.table, "fraud", "order")
        facts = {"target": "fraud", "rare": ("yes",), "rest": ("no",), "key": "order"}
        facts |= {"n_rows": 600, "fingerprint": read.fingerprint} | changed
        return ReviewJournal.create(self.folder / name, Header(**facts))

    def listed(self, **changed):
        chances = {"alert": 1.0, "random": self.chance} | changed
        return Round(
            1,
            tuple(
                Listed(key, "score" if why == "alert" else "random", chances[why])
                for key, _, why in self.checks.iter_rows()
            ),
        )

    def verdicts(self):
        return [Verdict(key, label) for key, label, _ in self.checks.iter_rows()]


@pytest.fixture
def month(fitted, tmp_path):
    return Month(fitted, tmp_path)


def test_a_csv_of_alerts_and_random_rows_gives_the_measures_of_all(month):
    words = ("evaluate", month.model_path, month.table, "--journal", month.checked)
    done, found = run_with_json(*words)
    assert found["n_rare"]["value"] == pytest.approx(month.weight @ month.y[month.rows])
    above = month.scores > month.model.threshold
    assert found["precision"]["value"] == pytest.approx(month.y[above].mean())
    assert found["n_random_below"] == 90
    assert found["recall"]["low"] <= month.y[above].sum() / month.y.sum() <= found["recall"]["high"]
    says(done, "600", "90")


def test_a_journal_and_its_csv_say_the_same(month):
    journal = month.journal()
    journal.add_round(month.listed())
    journal.add(month.verdicts())
    for method in ("weights", "stratified"):
        by_journal, by_csv = (
            evaluate_checked(month.model, month.table, path, method=method)
            for path in (journal.path, month.checked)
        )
        assert by_journal == by_csv
    states = read_checked(month.model, pl.read_csv(month.table), journal.path)
    one = checked_measures(states.scores, states.sample, month.model.threshold)
    assert one == by_journal
    imported = import_checks(
        month.model, month.table, month.checked, month.folder / "imported.jsonl"
    )
    assert len(imported.verdicts) == len(month.rows)


def test_alerts_alone_leave_the_recall_unknown(month):
    month.checks.filter(pl.col("reason") == "alert").write_csv(month.checked)
    words = (month.model_path, month.table, "--journal", month.checked)
    found = evaluate_checked(month.model, month.table, month.checked)
    done = run("evaluate", *words)
    assert (found.recall, found.average_precision) == (None, None)
    says(done, f"{found.random_checks:,}", "unknown")
    out = month.folder / "r.html"
    for command in (("threshold", *words, "--min-recall", 0.5), ("report", *words, "-o", out)):
        refusal(invoke(*command), ErrorKind.UNSUPPORTED, month.table.name)


def test_a_threshold_is_chosen_on_the_weighted_rows(month):
    words = ("threshold", month.model_path, month.table, "--journal", month.checked)
    found = json_of(*words, "--min-precision", 0.4)
    rule = ThresholdRule.min_precision(0.4)
    chosen = rule.choose(month.y[month.rows], month.scores[month.rows], month.weight)
    assert found["threshold"] == pytest.approx(chosen.threshold)
    assert found["rows"] == pytest.approx(600)


def journal_of(month, kind):
    random, order = np.random.default_rng(1), np.argsort(-month.scores)
    n_alerts = int((month.scores > month.model.threshold).sum())
    alerts, near, far = order[:n_alerts], order[n_alerts : n_alerts + 100], order[n_alerts + 100 :]
    by_rule, at_random = [(row, "score", 1.0) for row in alerts], [(near, 50), (far, 60)]
    if kind == "alerts by chance":
        by_rule, at_random = [], [(alerts, n_alerts // 2), *at_random]
    for rows, n in at_random:
        drawn = random.choice(rows, n, replace=False)
        by_rule += [(row, "random", n / len(rows)) for row in drawn]
    journal, rounds = month.journal(f"{kind}.jsonl"), [by_rule]
    if kind == "two rounds":
        left = np.setdiff1d(far, [row for row, *_ in by_rule])
        again = [(row, "random", 40 / len(left)) for row in random.choice(left, 40, replace=False)]
        rounds.append([(left[0], "score", 1.0), *(each for each in again if each[0] != left[0])])
    for number, listed in enumerate(rounds, start=1):
        keys = [month.keys[row] for row, *_ in listed]
        whole = zip(keys, listed, strict=True)
        journal.add_round(
            Round(number, tuple(Listed(key, why, chance) for key, (_, why, chance) in whole))
        )
        labels = ["yes" if month.y[row] else "no" for row, *_ in listed]
        if kind == "repeated verdicts":  # each third row was first called something else
            wrong = ["no" if label == "yes" else "yes" for label in labels]
            journal.add([Verdict(*each) for each in zip(keys[::3], wrong[::3], strict=True)])
        journal.add([Verdict(*each, corrects=True) for each in zip(keys, labels, strict=True)])
    return journal.path


RULES = {
    "min_precision": ThresholdRule.min_precision,
    "min_recall": ThresholdRule.min_recall,
    "max_fpr": ThresholdRule.max_fpr,
}
JOURNALS = ("two strata", "alerts by chance", "two rounds", "repeated verdicts")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", JOURNALS)
def test_threshold_and_evaluate_say_the_same(month, kind):
    path, cuts = journal_of(month, kind), np.quantile(month.scores, [0.5, 0.8, 0.9, 0.97])
    checked = read_checked(month.model, month.table, path)
    for cut in map(float, cuts):
        changed, chosen = with_threshold(month.model, cut, month.table, checked=checked.rows())
        found = evaluate_checked(changed, month.table, path)
        assert (chosen.precision, chosen.recall) == (found.precision, found.recall)
        assert (chosen.n_rare, chosen.alerts) == (found.n_rare.value, found.n_above)
        false = chosen.false_positive_rate
        assert false == found.false_positive_rate
        n_false = (1 - found.precision.value) * found.n_above
        assert false.value == pytest.approx(n_false / (600 - found.n_rare.value))
        assert false.low <= false.value <= false.high
    new, given = month.folder / "new.rareclass", (month.table, "--journal", path)
    by_threshold = json_of("threshold", month.model_path, *given, "--threshold", cut, "-o", new)
    by_evaluate = json_of("evaluate", new, *given)
    for name in ("precision", "recall"):
        assert by_threshold[name] == by_evaluate[name]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", JOURNALS)
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_counts_as_met_where_the_estimate_meets_it(month, kind, rule):
    checked = read_checked(month.model, month.table, journal_of(month, kind))
    make = RULES[rule]
    n_lost = 0
    for share in (0.05, 0.3, 0.6, 0.9):
        wanted = DecisionRule(make(share, confidence=None))
        _, chosen = with_threshold(month.model, wanted, month.table, checked=checked.rows())
        value = {"min_precision": chosen.precision, "min_recall": chosen.recall}.get(
            rule, chosen.false_positive_rate
        )[0]
        is_kept = value <= share if rule == "max_fpr" else value >= share
        kinds = {each.kind for each in chosen.findings}
        assert (FindingKind.CONSTRAINT_NOT_MET in kinds) is not chosen.met
        assert is_kept or not chosen.met
        by_weights = wanted.choose(checked.rows().known)
        n_lost += by_weights.met and not chosen.met
    assert n_lost <= 1  # the rule is kept where the weights of the journal would keep it


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "words",
    [*(("--alerts", f"{n}/600") for n in (5, 20, 60, 150, 400)), ("--min-recall", "0.5"),
     ("--threshold", "0.7"), ("--alerts", "60/600", "--prevalence", "0.2")],
)  # fmt: skip
def test_alerts_are_counted_on_all_rows(month, words):
    given = ("threshold", month.model_path, month.table, "--journal", month.checked)
    found = json_of(*given, *words)
    n_above = int((month.scores > found["threshold"]).sum())
    assert (found["alerts"], found["rows"]) == (n_above, 600)
    if words[0] == "--alerts" and len(words) == 2:
        number = int(words[1].split("/")[0])
        rule = ThresholdRule.max_alerts(number, rows=600).choose(month.y, month.scores)
        assert found["threshold"] == rule.threshold
        assert found["met"] == rule.met
        assert n_above <= number
    assert found["recall"]["low"] <= found["recall"]["value"] <= found["recall"]["high"]


@pytest.mark.usefixtures("without_drawing")
def test_a_report_counts_alerts_and_says_how_many_rows_were_checked(month):
    out = month.folder / "r.html"
    words = (month.model_path, month.table, "--journal", month.checked, "-o", out)
    found, page = json_of("report", *words), out.read_text()
    n_above = int((month.scores > month.model.threshold).sum())
    assert f"raises {round(10_000 * n_above / 600)} alerts" in page
    n_found, n_checked = int(month.y[month.rows].sum()), len(month.rows)
    assert f"600 rows, {n_found} of {n_checked} checked" in page
    measured = evaluate_checked(month.model, month.table, month.checked)
    assert found["checked_rows"]["recall"] == pytest.approx(measured.recall._asdict())
    assert found["n_rows"] == pytest.approx(600)
    assert 'id="checked"' in page


def test_a_report_reads_the_checked_rows_with_their_weights(month):
    options = ReportOptions(journal=month.checked)
    rows = read_rows(month.model, month.table, options)
    # Those of the estimates: what the slider counts is what the table says.
    assert rows.scored.weight @ rows.y == pytest.approx(rows.checked.n_rare.value)
    assert rows.scored.weight.sum() == pytest.approx(600)
    assert (rows.y == month.y[rows.rows]).all()
    section = checked_section(rows.checked)
    assert section.blocks[0].rows == rows.checked.block().rows
    assert all(sentence in section.lead for sentence in rows.checked.sentences())


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("evaluate", "--strict"), ErrorKind.COMBINATION),
        (("threshold", "--min-recall", "0.5", "--alerts", "5/day"), ErrorKind.COMBINATION),
        (("threshold", "--alerts", "5/day", "--time", "order"), ErrorKind.COMBINATION),
        (("report", "--groups", "country", "-o", "x.html"), ErrorKind.COMBINATION),
    ],
)
def test_options_that_need_every_row_are_refused(month, words, kind):
    given = (words[0], month.model_path, month.table, "--journal", month.checked, *words[1:])
    refusal(invoke(*given), kind)


CHANCES = (0.0, 1.5, -1.0)


def first_cell(**cells):
    at = pl.int_range(pl.len()) == 0
    new = [pl.when(at).then(pl.lit(v)).otherwise(k).alias(k) for k, v in cells.items()]
    return lambda rows: rows.with_columns(new)


def at_chance(chance):
    random = pl.when(pl.col("reason") == "random").then(chance).otherwise(1.0)
    return lambda rows: rows.with_columns(chance=random)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("change", "kind", "column", "value"),
    [
        (first_cell(label="maybe"), ErrorKind.LABELS, "label", "maybe"),
        (first_cell(reason="guess"), ErrorKind.CELL, "reason", "guess"),
        (first_cell(order="o-none"), ErrorKind.ROWS, "order", "o-none"),
        (lambda rows: pl.concat([rows, rows[:1]]), ErrorKind.ROWS, None, None),
        (lambda rows: rows.drop("reason"), ErrorKind.MISSING_COLUMN, None, None),
        (lambda rows: rows.filter(pl.col("label") == "no"), ErrorKind.LABELS, None, None),
        *((at_chance(each), ErrorKind.SETTING, None, each) for each in CHANCES),
    ],
)
def test_checked_rows_that_cannot_be_are_refused(month, change, kind, column, value):
    change(month.checks).write_csv(month.checked)
    of_row = f"{month.checked}, row" if kind in (ErrorKind.ROWS, ErrorKind.CELL) else None
    with refused(kind, column=column, value=value, says=of_row):
        evaluate_checked(month.model, month.table, month.checked)


@pytest.mark.parametrize("chance", CHANCES)
def test_chances_of_a_journal_that_are_none_are_refused(month, chance):
    journal = month.journal()
    journal.add_round(month.listed())
    text = journal.path.read_text().replace(str(month.chance), str(chance))
    journal.path.write_text(text)
    with refused(ErrorKind.SETTING, value=chance):
        evaluate_checked(month.model, month.table, journal.path)


def test_a_journal_that_does_not_go_with_the_model_or_the_table_is_refused(month):
    with refused(ErrorKind.ROWS):
        path = month.journal("other.jsonl", fingerprint="0" * 32).path
        evaluate_checked(month.model, month.table, path)
    first, *others = month.verdicts()
    for rare, verdicts, value in (
        (("yes",), month.verdicts()[:-5], 5),  # random rows without verdicts
        (("yes", "theft"), [Verdict(first.key, "theft"), *others], "theft"),
    ):
        journal = month.journal(f"{value}.jsonl", rare=rare)
        journal.add_round(month.listed())
        journal.add(verdicts)
        with refused(ErrorKind.LABELS, value=value):
            evaluate_checked(month.model, month.table, journal.path)


def test_an_incomplete_round_beside_a_complete_one_does_not_count(month):
    journal = month.journal()
    journal.add_round(month.listed())
    journal.add(month.verdicts())
    before = evaluate_checked(month.model, month.table, journal.path)
    left = next(key for key in month.keys if key not in journal.verdicts)
    journal.add_round(Round(2, (Listed(left, "random", 0.5),)))
    assert evaluate_checked(month.model, month.table, journal.path) == before
    assert read_checked(month.model, month.table, journal.path).incomplete == (2,)


def orders(seed):
    rows = purchases(600, seed).with_columns(amount=pl.col("amount") + 60.0 * is_fraud())
    lost = is_fraud() & (is_fraud().cum_sum() % 4 == 0)
    recorded = pl.when(lost).then(pl.lit("no")).otherwise("fraud").alias("fraud")
    return rows, rows.with_columns(recorded)


def is_fraud():
    return pl.col("fraud") == "yes"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("missed")
    orders(0)[1].write_csv(folder / "train.csv")
    true, recorded = orders(1)
    true.write_csv(folder / "true.csv")
    recorded.write_csv(folder / "new.csv")
    return folder


@pytest.mark.parametrize("asked", ["0", "1", "-0.1", "20%", "auto", "nan"])
def test_what_is_no_share_is_refused(folder, fitted, asked):
    words = ("evaluate", fitted.model, folder / "new.csv")
    done = invoke(*words, f"--missed-cases={asked}")
    refusal(done, ErrorKind.SETTING, f"--missed-cases {asked}")


def test_evaluate_corrects_to_the_measures_of_the_true_labels(folder, fitted):
    words = ("evaluate", fitted.model, folder / "new.csv", "--missed-cases", "0.25")
    shown, written = run_with_json(*words)
    found = written["missed_cases"]
    model = load_model(fitted.model)
    scores = model.score_samples(folder / "true.csv")
    true = (pl.read_csv(folder / "true.csv")["fraud"] == "yes").to_numpy()
    called = scores > model.threshold
    for name, value in (
        ("precision", true[called].mean()),
        ("recall", called[true].mean()),
        ("average_precision", average_precision(true, scores)),
    ):
        assert found[name]["low"] - 1e-9 <= value <= found[name]["high"] + 1e-9
    of_area = found["average_precision"]
    assert f"{of_area['value']:.3f} {of_area['low']:.3f} to {of_area['high']:.3f}" in shown
    assert found["average_precision"]["value"] == pytest.approx(
        average_precision(true, scores), abs=0.1
    )
    assert found["average_precision"]["value"] > written["measures"]["average precision"]["value"]
    assert (found["share"], round(found["n_rare"])) == (0.25, true.sum())


def test_by_default_labels_are_right(folder, fitted):
    shown, written = run_with_json("evaluate", fitted.model, folder / "new.csv")
    assert "Corrected" not in shown
    assert written["missed_cases"] is None


def test_checked_rows_and_levels_have_no_missed_cases(folder, fitted, tmp_path):
    words = ("evaluate", fitted.model, folder / "new.csv", "--missed-cases", "0.2")
    done = invoke(*words, "--journal", folder / "new.csv")
    refusal(done, ErrorKind.COMBINATION, "--missed-cases", "--journal")
    scores = folder / "new.csv"  # a journal is of a model's table, not of scores
    for more in ((), ("--target", "fraud")):
        done = invoke("report", scores, scores, "--journal", scores, "--out", tmp_path / "r", *more)
        refusal(done, ErrorKind.COMBINATION, "--journal", "file of scores")
    levels = tmp_path / "levels.rareclass"
    rows = pl.read_csv(folder / "train.csv").with_columns(fraud=pl.col("items") % 3)
    rows.write_csv(tmp_path / "levels.csv")
    run(
            "fit", tmp_path / "levels.csv", "--target", "fraud", "--method", "ordinal-rankrc",
            "--levels", "0,1,2", "--lam", "1", "--out", levels,
        )  # fmt: skip
    done = invoke("evaluate", levels, tmp_path / "levels.csv", "--missed-cases", "0.2")
    refusal(done, ErrorKind.UNSUPPORTED, "levels")
