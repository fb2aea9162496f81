"""`rareclass report` of two models, of files of scores, of a stream and of a hunt."""

import json

import numpy as np
import polars as pl
import pytest

from cli.test_hunt import FEW, payments
from cli.test_report import text_of
from command_line import complaint, invoke, run
from faults import refusal
from made_tables import purchases
from rareclass.compare import compare_scores
from rareclass.errors import ErrorKind
from rareclass.stream.log import read_log

pytestmark = pytest.mark.usefixtures("without_drawing")


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    """Two files of scores of the same rows, and their classes."""
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
    model, out, numbers = fitted / "model.rareclass", tmp_path / "r.html", tmp_path / "r.json"
    other = tmp_path / "other.rareclass"
    words = ("fit", fitted / "train.csv", "-t", "fraud", "--method", "mibc", "--cost", "1", "-o")
    run(*words, other)
    run("report", model, fitted / "new.csv", "--compare", other, "-o", out, "--json", numbers)
    page = text_of(out.read_text())
    assert "Finding fraud = yes: model or other" in page
    assert "Do they find the same?" in page
    told = json.loads(numbers.read_text())
    assert {each["name"] for each in told["measures"][0]["standings"]} == {"model", "other"}
    out.unlink()
    for more, said in (
        (("--compare", other), "--compare needs rows"),
        ((fitted / "new.csv", "--compare", other, "--rows", 3), "--compare takes no --rows"),
        ((fitted / "new.csv", "--truth", fitted / "new.csv"), "--truth is for files of scores"),
    ):
        assert said in complaint("report", model, "-o", out, *more)
        assert not out.exists()


def test_two_files_of_scores(scores, tmp_path):
    out = tmp_path / "r.html"
    words = ("report", scores / "good.csv", scores / "bad.csv", "--truth", scores / "truth.csv")
    done = run(*words, "--target", "y", "-o", out)
    assert "significantly" in done
    assert done.index("good") < done.index("bad")
    y = pl.read_csv(scores / "truth.csv")["y"].to_numpy()
    columns = {n: pl.read_csv(scores / f"{n}.csv")["score"].to_numpy() for n in ("good", "bad")}
    best = compare_scores(y, columns, ("average_precision",)).measures[0].best
    assert f"{best.value:.3f} ({best.low:.3f} to {best.high:.3f})" in text_of(out.read_text())
    more = ("-o", tmp_path / "x.html")
    refusal(invoke(*words, *more), ErrorKind.COMBINATION, "good.csv", "--target")
    alone = invoke(words[0], words[1], *words[3:], "-t", "y", *more)
    refusal(alone, ErrorKind.TOO_FEW_ROWS, "two files of scores")


@pytest.mark.sampled(0)
def test_a_stream(tmp_path):
    path, folder, out = tmp_path / "rows.csv", tmp_path / "run", tmp_path / "r.html"
    purchases(1000).write_csv(path)
    run(
        "stream", path, "--target", "fraud", "--checkpoint", folder, "--learner", "oam", "--drop",
        "order", "--report-every", 250, "--alerts", tmp_path / "a.csv", "--alert-budget", "20/200",
    )  # fmt: skip
    numbers = tmp_path / "r.json"
    run("report", folder, "-o", out, "--json", numbers)
    page = text_of(out.read_text())
    n_alerts = len(pl.read_csv(tmp_path / "a.csv"))
    for words in (
        "Stream for fraud = yes", "1,000 rows so far", f"{n_alerts} alerts, at most 20/200",
        "Choose the threshold", "How it did over time", "Drift",
    ):  # fmt: skip
        assert words in page
    log = read_log(folder).to_pylist()
    assert [each["auc"] for each in json.loads(numbers.read_text())["reports"]] == [
        each["auc"] for each in log
    ]
    (tmp_path / "a.csv").unlink()
    run("report", folder, "-o", out, "--overwrite")
    assert "only their number is known" in text_of(out.read_text())
    refused = complaint("report", folder, "-o", out, "--overwrite", "--rows", 3)
    assert "The report of a stream takes no --rows" in refused
    # With rows it is a model like any other.
    run("report", folder, path, "-o", out, "--overwrite")
    assert "Finding fraud = yes" in text_of(out.read_text())


@pytest.mark.sampled(0)
def test_a_hunt(tmp_path):
    path, found, out = tmp_path / "payments.csv", tmp_path / "found", tmp_path / "r.html"
    payments().write_csv(path)
    run(
        "hunt", path, "--target", "checked", "--rare", "fraud", "--cleared", "ok", *FEW, "--out",
        found,
    )  # fmt: skip
    run("report", found, "-o", out)
    told, page = json.loads((found / "hunt.json").read_text()), out.read_text()
    assert "Hunt for fraud" in text_of(page)
    assert f"{told['counts']['found']} rows of {told['counts']['unlabelled']:,}" in text_of(page)
    assert "amount" in text_of(page)
    assert 'src="data:image/png;base64,' in page
    assert len(page) < 500_000
    (found / "description.csv").unlink()
    refused = complaint("report", found, "-o", out, "--overwrite")
    assert "is not the whole folder of a hunt" in refused


def test_levels_are_refused(tmp_path):
    path, model = tmp_path / "train.csv", tmp_path / "m.rareclass"
    table = purchases(120).with_columns(grade=pl.col("items").clip(1, 3)).drop("items")
    table.write_csv(path)
    done = invoke(
        "fit", path, "-t", "grade", "--method", "ordinal-rankrc", "--lam", "2^-4", "-o", model,
        "--report", tmp_path / "fit.html",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "no report was written" in " ".join(done.output.split())
    refused = complaint("report", model, path, "-o", tmp_path / "r.html")
    assert "is for ordered levels" in refused
    assert not (tmp_path / "r.html").exists()
