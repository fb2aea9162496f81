"""`rareclass report` of a model, of two, of files of scores, of a stream and of a hunt."""

import json
import re
from functools import cache
from html import unescape

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import confusion_matrix

from cli.test_hunt import FEW, payments
from command_line import QUICK, complaint, invoke, json_of, run, run_with_json, says, scores_of
from faults import refusal
from made_tables import purchases
from rareclass.compare import compare_scores
from rareclass.errors import ErrorKind
from rareclass.metrics.intervals import amount_text
from rareclass.model.model_file import load_model
from rareclass.stream.log import read_log

pytestmark = pytest.mark.usefixtures("without_drawing")


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    path = tmp_path_factory.mktemp("dated") / "dated.csv"
    days = np.datetime64("2026-03-01") + np.arange(240) % 6
    table = purchases(seed=5).with_columns(
        pl.Series("day", days),
        shop=pl.col("order").str.slice(2, 1),
        stake=pl.col("amount") * 2,
        fraud=pl.when(pl.col("items") == 8).then(None).otherwise(pl.col("fraud")),
    )
    table.write_csv(path)
    return path


def text_of(page):
    page = re.sub(r"<(style|script|svg).*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", page).replace("\u00a0", " ").split())


@pytest.fixture(scope="module")
def model_of(dated):
    @cache
    def fitted(*rule):
        model = dated.parent / f"{len(rule) and rule[1].replace('/', '-')}.rareclass"
        run("fit", dated, "-t", "fraud", "--time", "day", *QUICK, *rule, "-o", model)
        return model

    return fitted


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rule", [(), ("--alerts", "30/1000"), ("--alerts", "8/day")])
def test_promises_are_judged_as_evaluate_does_by_days_and_rows_without_a_class(
    dated, model_of, tmp_path, rule
):
    model, out = model_of(*rule), tmp_path / "r.html"
    told, shown = json_of("evaluate", model, dated), json_of("report", model, dated, "-o", out)
    assert (shown["promises"], shown["advice"]) == (told["promises"], told["advice"])
    assert all(each["verdict"] in out.read_text() for each in told["promises"])
    alerts = [each["measured"]["value"] for each in told["promises"] if "a day," in each["name"]]
    assert all(f"raises {amount_text(each)} alerts a day" in out.read_text() for each in alerts)
    assert bool(alerts) == ("8/day" in rule)
    assert ("Promised and measured" in out.read_text()) == bool(told["promises"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [1, 2, 120, 30, 240])
def test_rows_without_a_time_are_left_out_of_the_counts_of_alerts_alone(
    dated, model_of, tmp_path, n
):
    model, table, out = model_of("--alerts", "8/day"), pl.read_csv(dated), tmp_path / "r.html"
    chosen = np.random.default_rng(n).choice(table.height, n, replace=False)
    lacks = pl.int_range(pl.len()).is_in(chosen)
    empty = pl.when(lacks).then(None).otherwise("day").alias("day")
    table.with_columns(empty).write_csv(tmp_path / "gaps.csv")
    table.filter(~lacks).write_csv(tmp_path / "fewer.csv")
    told = json_of("evaluate", model, tmp_path / "gaps.csv")
    shown = json_of("report", model, tmp_path / "gaps.csv", "-o", out)
    assert shown["promises"] == told["promises"]
    assert told["n_rows"] == table["fraud"].count()
    if n == table.height:
        assert (told["n_rows_without_time"], told["alert_budget"]) == (0, None)
        return
    fewer = json_of("evaluate", model, tmp_path / "fewer.csv")
    assert (told["n_rows_without_time"], fewer["n_rows_without_time"]) == (n, 0)
    assert told["alert_budget"] == fewer["alert_budget"]
    assert told["promises"][2:] == fewer["promises"][2:]
    assert "no time and w" in text_of(out.read_text())
    done = invoke("evaluate", model, tmp_path / "gaps.csv", "--time", "day")
    refusal(done, ErrorKind.CELL, "--time day: an empty cell at row")


@pytest.mark.sampled(0)
def test_a_model_on_a_file(fitted, dated, tmp_path):
    out = tmp_path / "r.html"
    words = ("--time", "day", "--groups", "shop", "--cost", "fp=5,fn=stake", "--rows", 3)
    done, told = run_with_json("report", fitted.model, dated, "--out", out, *words)
    assert "Saved" in done
    table = pl.read_csv(dated).with_row_index()
    column = scores_of(fitted.model, dated)["score"].to_numpy()
    known = table["fraud"].is_not_null().to_numpy()
    y, scores = (table["fraud"] == "yes").fill_null(False).to_numpy()[known], column[known]
    for threshold, hits, false_alerts in zip(*told["thresholds"].values(), strict=True):
        (_, fp), (_, tp) = confusion_matrix(y, scores > threshold)
        assert (hits, false_alerts) == (tp, fp)
    page = text_of(out.read_text())
    for words in (
        "Finding fraud = yes", "Alerts a day", "Recall and alerts by day", "What errors cost",
        "fp 5, fn by row", "The 3 highest rows", "The worst misses", "Model card", "What it is not",
        "rows have no class and were left out", "New values",
        "--threshold", "Seed",
    ):  # fmt: skip
        assert words in page or words in out.read_text(), words
    top = table["index"].to_numpy()[known][np.argmax(scores)] + 1
    rows = out.read_text().split("The 3 highest rows</caption>")[1].split("<tbody>")[1]
    first = re.search(r"<th[^>]*>([\d,]+)", rows)
    assert first[1] == str(top)


@pytest.mark.sampled(0)
def test_no_cell_is_shown_unless_rows_are_asked_for(tmp_path, fitted):
    country = pl.when(pl.col("fraud") == "yes").then(pl.lit("SECRET")).otherwise(pl.lit("DE"))
    purchases(seed=7).with_columns(country=country).write_csv(tmp_path / "secret.csv")
    words = ("report", fitted.model, tmp_path / "secret.csv", "--out")
    run(*words, tmp_path / "a.html")
    assert "SECRET" not in (tmp_path / "a.html").read_text()
    run(*words, tmp_path / "b.html", "--rows", 5)
    assert "SECRET" in (tmp_path / "b.html").read_text()


def test_the_command_of_the_page_sets_the_threshold(fitted, tmp_path):
    model, out = fitted.model, tmp_path / "other.rareclass"
    held = load_model(model).held_out
    done = run("threshold", model, "--threshold", "0.125", "--out", out)
    assert load_model(out).threshold == 0.125
    assert f"Called rare: {(held.scores > 0.125).sum():,.0f} of" in done
    assert "Rule: score > -1" in run("threshold", model, fitted.new, "--threshold", "-1")
    both = complaint("threshold", model, "--threshold", "1", "--max-fpr", "0.1")
    assert "--threshold and --max-fpr both set the threshold" in both
    assert "must be a finite number" in complaint("threshold", model, "--threshold", "nan")


@pytest.mark.sampled(0)
def test_from_the_rows_held_out_at_training(train_csv, out, tmp_path):
    model, page = out, tmp_path / "fit.html"
    shown = run("fit", train_csv, "-t", "fraud", "-o", model, *QUICK, "--report", page)
    assert page.name in shown.replace(" ", "")
    assert "by cross-fitting" in text_of(page.read_text())
    again = tmp_path / "again.html"
    run("report", model, "-o", again, "--cost", "fp=1,fn=20")
    assert "What errors cost" in again.read_text()
    words = ("report", model, "-o", tmp_path / "x.html")
    assert "--time names a column of DATA" in complaint(*words, "--time", "day")
    assert "--cost names a column" in complaint(*words, "--cost", "fn=amount")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "nothing"), "has no column 'nothing'"),
        (("--time", "nothing"), "--time: there is no column 'nothing'"),
        (("--time", "country"), "--time country: 'DE' at row 1 is not a time"),
        (("--groups", "contry"), "Did you mean 'country'?"),
        (("--cost", "fn=country"), "'DE' at row 1 is not a cost"),
        (("--cost", "fn=-1"), "--cost fn=-1.0 must be a number of at least 0"),
        (("--cost", "x=1"), "cannot be read"),
        (("--rows", "500"), "--rows"),
    ],
)
def test_what_cannot_be_reported_is_refused(fitted, tmp_path, words, said):
    out = tmp_path / "r.html"
    assert said in complaint("report", fitted.model, fitted.new, "--out", out, *words)
    assert list(tmp_path.iterdir()) == []


def test_files_are_not_replaced_and_one_class_is_refused(fitted, tmp_path):
    model, data, out = fitted.model, fitted.new, tmp_path / "r.html"
    out.write_text("mine")
    assert "exists already" in complaint("report", model, data, "--out", out)
    assert out.read_text() == "mine"
    assert "is DATA" in complaint("report", model, data, "-o", data, "--overwrite")
    one, none = tmp_path / "one.csv", tmp_path / "n.html"
    pl.read_csv(data).filter(pl.col("fraud") == "no").write_csv(one)
    assert "no row has the target value 'yes'" in complaint("report", model, one, "-o", none)
    assert not none.exists()


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scores")
    generator = np.random.default_rng(0)
    y = generator.random(900) < 0.1
    for name, apart in (("good", 3.0), ("bad", 0.7)):
        column = generator.normal(size=900) + apart * y
        pl.DataFrame({"score": column}).write_csv(folder / f"{name}.csv")
    pl.DataFrame({"y": y.astype(int)}).write_csv(folder / "truth.csv")
    return folder


@pytest.mark.sampled(0)
def test_two_models_on_the_same_rows(fitted, tmp_path):
    model, out, other = fitted.model, tmp_path / "r.html", tmp_path / "other.rareclass"
    run("fit", fitted.train, "-t", "fraud", "--method", "mibc", "--cost", "1", "-o", other)
    told = json_of("report", model, fitted.new, "--compare", other, "-o", out)
    page = text_of(out.read_text())
    says(page, "Finding fraud = yes: model or other", "Do they find the same?")
    assert {each["name"] for each in told["measures"][0]["standings"]} == {"model", "other"}
    out.unlink()
    for more, said in (
        (("--compare", other), "--compare needs rows"),
        ((fitted.new, "--compare", other, "--rows", 3), "--compare takes no --rows"),
        ((fitted.new, "--truth", fitted.new), "--truth is for files of scores"),
    ):
        assert said in complaint("report", model, "-o", out, *more)
        assert not out.exists()


def test_two_files_of_scores(scores, tmp_path):
    out = tmp_path / "r.html"
    good = tmp_path / "good.pq"
    pl.read_csv(scores / "good.csv").write_parquet(good)
    words = ("report", good, scores / "bad.csv", "--truth", scores / "truth.csv")
    done = run(*words, "--target", "y", "-o", out)
    says(done, "good is best", "significantly worse: bad")
    y = pl.read_csv(scores / "truth.csv")["y"].to_numpy()
    columns = {n: pl.read_csv(scores / f"{n}.csv")["score"].to_numpy() for n in ("good", "bad")}
    printed = " ".join(run("compare", "--scores", *words[1:], "--target", "y").split())
    for row in (row for each in compare_scores(y, columns).measures for row in each.block().rows):
        for text in (unescape(text_of(out.read_text())), printed):
            says(text, " ".join(filter(None, row)))
    more = ("-o", tmp_path / "x.html")
    refusal(invoke(*words, *more), ErrorKind.COMBINATION, "good.pq", "--target")
    alone = invoke(words[0], words[1], *words[3:], "-t", "y", *more)
    refusal(alone, ErrorKind.TOO_FEW_ROWS, "two files of scores")


@pytest.mark.sampled(0)
def test_a_stream(tmp_path):
    path, folder, out = tmp_path / "rows.csv", tmp_path / "run", tmp_path / "r.html"
    purchases(1000).write_csv(path)
    run(
        "stream", path, "--target", "fraud", "--checkpoint", folder, "--learner", "oam", "--drop",
        "order", "--report-every", 250, "--alert-file", tmp_path / "a.csv", "--alerts", "20/200",
    )  # fmt: skip
    told = json_of("report", folder, "-o", out)
    page = text_of(out.read_text())
    n_alerts = len(pl.read_csv(tmp_path / "a.csv"))
    says(page, "Stream for fraud = yes", "1,000 rows so far", f"{n_alerts} alerts, at most 20/200")
    says(page, "Choose the threshold", "How it did over time", "Drift", "Alerts in each 25 rows")
    assert [each["auc"] for each in told["reports"]] == read_log(folder)["auc"].to_pylist()
    (tmp_path / "a.csv").unlink()
    run("report", folder, "-o", out, "--overwrite")
    assert "only their number is known" in text_of(out.read_text())
    refused = complaint("report", folder, "-o", out, "--overwrite", "--rows", 3)
    assert "The report of a stream takes no --rows" in refused
    run("report", folder, path, "-o", out, "--overwrite")
    assert "Finding fraud = yes" in text_of(out.read_text())


@pytest.mark.sampled(0)
def test_a_hunt(tmp_path):
    path, found, out = tmp_path / "payments.csv", tmp_path / "found", tmp_path / "r.html"
    payments().write_csv(path)
    words = ("--target", "checked", "--rare", "fraud", "--cleared", "ok", *FEW)
    run("hunt", path, *words, "--out", found)
    run("report", found, "-o", out)
    told, page = json.loads((found / "hunt.json").read_text()), out.read_text()
    counts = f"{told['counts']['found']} rows of {told['counts']['unlabelled']:,}"
    says(text_of(page), "Hunt for fraud", counts, "amount")
    assert 'src="data:image/png;base64,' in page
    assert len(page) < 500_000
    run("report", found, path, "-o", out, "--overwrite")  # its model promises nothing of such rows
    page = text_of(out.read_text())
    says(page, "Of those with a class", "270 rows have no class and were left out")
    assert "Promised and measured" not in page
    (found / "description.csv").unlink()
    refused = complaint("report", found, "-o", out, "--overwrite")
    assert "is not the whole folder of a hunt" in refused


def test_levels_are_refused(tmp_path):
    path, model = tmp_path / "train.csv", tmp_path / "m.rareclass"
    table = purchases(120).with_columns(grade=pl.col("items").clip(1, 3)).drop("items")
    table.write_csv(path)
    words = ("-t", "grade", "--method", "ordinal-rankrc", "--lam", "2^-4", "-o", model)
    run("fit", path, *words)
    assert "is for ordered levels" in complaint("report", model, path, "-o", tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()
