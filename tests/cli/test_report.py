"""`rareclass report`: a page of a model, from a file or from the rows held out."""

import json
import re

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import confusion_matrix

from command_line import QUICK, complaint, invoke, run
from made_tables import purchases
from rareclass.model.model_file import load_model

pytestmark = pytest.mark.usefixtures("without_drawing")


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """New rows with a day, a shop, what is at stake, and some without a class."""
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


@pytest.mark.sampled(0)
def test_a_model_on_a_file(fitted, dated, tmp_path):
    out, numbers = tmp_path / "r.html", tmp_path / "r.json"
    done = run(
        "report", fitted / "model.rareclass", dated, "--out", out, "--json", numbers,
        "--time", "day", "--groups", "shop", "--cost", "fp=5,fn=stake", "--rows", 3,
    )  # fmt: skip
    assert "Saved" in done
    told = json.loads(numbers.read_text())
    table = pl.read_csv(dated).with_row_index()
    run("score", fitted / "model.rareclass", dated, "-o", tmp_path / "s.parquet")
    column = pl.read_parquet(tmp_path / "s.parquet")["score"].to_numpy()
    known = table["fraud"].is_not_null().to_numpy()
    y, scores = (table["fraud"] == "yes").fill_null(False).to_numpy()[known], column[known]
    for threshold, hits, false_alerts in zip(*told["thresholds"].values(), strict=True):
        (_, fp), (_, tp) = confusion_matrix(y, scores > threshold)
        assert (hits, false_alerts) == (tp, fp)
    page = text_of(out.read_text())
    for words in (
        "Finding fraud = yes", "Alerts a day", "Recall and alerts by day", "What errors cost",
        "fp 5, fn by row", "The 3 highest rows", "The worst misses", "Model card", "What it is not",
        "rows have no class and were left out", "Unlike training",
        "--threshold", "Seed",
    ):  # fmt: skip
        assert words in page or words in out.read_text(), words
    top = table["index"].to_numpy()[known][np.argmax(scores)] + 1
    rows = out.read_text().split("The 3 highest rows</caption>")[1].split("<tbody>")[1]
    first = re.search(r"<th[^>]*>([\d,]+)", rows)
    assert first[1] == str(top)


@pytest.mark.sampled(0)
def test_no_cell_is_shown_unless_rows_are_asked_for(tmp_path, fitted):
    secret = purchases(seed=7).with_columns(
        country=pl.when(pl.col("fraud") == "yes").then(pl.lit("SECRET")).otherwise(pl.lit("DE"))
    )
    secret.write_csv(tmp_path / "secret.csv")
    words = ("report", fitted / "model.rareclass", tmp_path / "secret.csv", "--out")
    run(*words, tmp_path / "a.html")
    assert "SECRET" not in (tmp_path / "a.html").read_text()
    run(*words, tmp_path / "b.html", "--rows", 5)
    assert "SECRET" in (tmp_path / "b.html").read_text()


def test_the_command_of_the_page_sets_the_threshold(fitted, tmp_path):
    model, out = fitted / "model.rareclass", tmp_path / "other.rareclass"
    held = load_model(model).held_out
    done = run("threshold", model, "--threshold", "0.125", "--out", out)
    changed = load_model(out)
    assert changed.threshold == 0.125
    weight = np.ones(len(held.y)) if held.weight is None else held.weight
    n_alerts = weight[held.scores > 0.125].sum()
    assert f"Called rare: {n_alerts:,.0f} of" in done
    done = run("threshold", model, fitted / "new.csv", "--threshold", "-1")
    assert "Rule: score > -1" in done
    refused = complaint("threshold", model, "--threshold", "1", "--max-fpr", "0.1")
    assert "--threshold and --max-fpr both set the threshold" in refused
    assert "is not a finite number" in complaint("threshold", model, "--threshold", "nan")


@pytest.mark.sampled(0)
def test_from_the_rows_held_out_at_training(tmp_path):
    train = tmp_path / "train.csv"
    purchases().write_csv(train)
    model, page = tmp_path / "m.rareclass", tmp_path / "fit.html"
    done = invoke("fit", train, "-t", "fraud", "-o", model, *QUICK, "--report", page)
    assert done.exit_code == 0, done.output
    assert page.name in "".join(done.stdout.split())
    assert "by cross-fitting" in text_of(page.read_text())
    again = tmp_path / "again.html"
    run("report", model, "-o", again, "--cost", "fp=1,fn=20")
    assert "What errors cost" in again.read_text()
    refused = complaint("report", model, "-o", tmp_path / "x.html", "--time", "day")
    assert "--time names a column of DATA" in refused
    assert "--cost names a column" in complaint(
        "report", model, "-o", tmp_path / "x.html", "--cost", "fn=amount"
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "nothing"), "lacks the target column 'nothing'"),
        (("--time", "nothing"), "--time: there is no column 'nothing'"),
        (("--time", "country"), "--time country: 'DE' at row 1 is not a time"),
        (("--groups", "contry"), "Did you mean 'country'?"),
        (("--cost", "fn=country"), "'DE' at row 1 is not a cost"),
        (("--cost", "fn=-1"), "a cost is a number of at least 0"),
        (("--cost", "x=1"), "cannot be read"),
        (("--rows", "500"), "--rows"),
    ],
)
def test_what_cannot_be_reported_is_refused(fitted, tmp_path, words, said):
    data, out = fitted / "new.csv", tmp_path / "r.html"
    refused = complaint("report", fitted / "model.rareclass", data, "--out", out, *words)
    assert said.format(data=data) in refused
    assert list(tmp_path.iterdir()) == []


def test_files_are_not_replaced_and_one_class_is_refused(fitted, tmp_path):
    model, data, out = fitted / "model.rareclass", fitted / "new.csv", tmp_path / "r.html"
    out.write_text("mine")
    assert "exists already" in complaint("report", model, data, "--out", out)
    assert out.read_text() == "mine"
    assert "is DATA" in complaint("report", model, data, "-o", data, "--overwrite")
    pl.read_csv(data).filter(pl.col("fraud") == "no").write_csv(tmp_path / "one.csv")
    refused = complaint("report", model, tmp_path / "one.csv", "-o", tmp_path / "n.html")
    assert "no row has the target value 'yes'" in refused
    assert not (tmp_path / "n.html").exists()
