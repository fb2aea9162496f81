"""Rows that people check: lists of `rareclass review` and `rareclass audit`, and verdicts."""

import numpy as np
import polars as pl
import pytest

from command_line import invoke, run, run_with_json
from faults import refusal
from made_tables import purchases
from rareclass.errors import ErrorKind
from rareclass.review import ReviewJournal


@pytest.fixture
def unlabelled(tmp_path):
    rows = purchases()
    known = pl.int_range(pl.len()) < 40
    path = tmp_path / "open.csv"
    rows.with_columns(pl.when(known).then(pl.col("fraud"))).write_csv(path)
    return path


def review(table, *more, model=()):
    words = ["-t", "fraud", "--id", "order", "--journal", table.parent / "j.jsonl"]
    return invoke("review", *model, table, *words, *more)


def reviewed(table, *more, model=()):
    result = review(table, *more, model=model)
    assert result.exit_code == 0, result.output


def filled(path, **changed):
    truth = purchases().select("order", "fraud")
    rows = pl.read_csv(path).join(truth, on="order", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("fraud").alias("review verdict")).drop("fraud")
    for name, value in changed.items():
        rows[0, f"review {name}"] = value
    rows.write_csv(path)
    return rows


def test_a_round_and_the_next(unlabelled, tmp_path):
    sheet, again = tmp_path / "list.csv", tmp_path / "again.csv"
    reviewed(unlabelled, "--budget", 20, "--list", sheet)
    first = filled(sheet)
    assert first.height == 20
    assert {*first["review reason"]} == {"score", "teaches", "random"}
    # Verdicts alone are taken in, and nothing more is done.
    reviewed(unlabelled, "--verdicts", sheet)
    journal = ReviewJournal(tmp_path / "j.jsonl")
    assert (len(journal.verdicts), len(journal.rounds)) == (20, 1)
    reviewed(unlabelled, "--budget", 20, "--list", again)
    second = filled(again)
    assert not {*first["review row"]} & {*second["review row"]}
    found = (pl.concat([first, second], how="vertical_relaxed")["review verdict"] == "yes").sum()
    assert found >= 8  # of 20 among the 200 without a label; at random: 4


def test_an_open_list_comes_again_unless_it_is_skipped(unlabelled, tmp_path):
    sheets = [tmp_path / f"{k}.csv" for k in range(3)]
    review(unlabelled, "--budget", 5, "--list", sheets[0])
    review(unlabelled, "--budget", 5, "--list", sheets[1])
    review(unlabelled, "--budget", 5, "--list", sheets[2], "--skip-open")
    rows = [pl.read_csv(sheet)["review row"].to_list() for sheet in sheets]
    assert rows[0] == rows[1]
    assert len(ReviewJournal(tmp_path / "j.jsonl").rounds) == 2


def test_a_model_scores_until_verdicts_suffice(fitted, tmp_path):
    table = tmp_path / "new.csv"
    purchases(seed=1).drop("fraud").write_csv(table)
    model = (fitted.model,)
    reviewed(table, "--budget", 10, model=model)
    header = ReviewJournal(tmp_path / "j.jsonl").header
    assert (header.rare, header.rest) == (("yes",), ("no",))
    listed = ReviewJournal(tmp_path / "j.jsonl").rounds[0].listed
    truth = dict(purchases(seed=1).select("order", "fraud").iter_rows())
    assert sum(truth[row.key] == "yes" for row in listed if row.reason == "score") >= 4
    run("review", "none", table, "-t", "fraud", "--id", "order", "--journal",
                       tmp_path / "none.jsonl", "--positive", "yes", "--rest", "no")  # fmt: skip


def test_verdicts_that_are_refused(unlabelled, tmp_path):
    sheet = tmp_path / "list.csv"
    review(unlabelled, "--budget", 5, "--list", sheet)
    before = (tmp_path / "j.jsonl").read_bytes()
    kept = pl.read_csv(sheet)
    filled(sheet, verdict="maybe")
    done = review(unlabelled, "--verdicts", sheet)
    refusal(done, ErrorKind.LABELS, "maybe", "list.csv, row 1")
    kept.write_csv(sheet)
    assert (tmp_path / "j.jsonl").read_bytes() == before
    rows = filled(sheet)
    reviewed(unlabelled, "--verdicts", sheet)
    other = "no" if rows["review verdict"][0] == "yes" else "yes"
    filled(sheet, verdict=other)
    facts = ("list.csv, row 1", rows["review row"][0])
    refusal(review(unlabelled, "--verdicts", sheet), ErrorKind.LABELS, *facts)
    reviewed(unlabelled, "--verdicts", sheet, "--correct")
    assert ReviewJournal(tmp_path / "j.jsonl").verdicts[rows["review row"][0]].label == other


def test_bad_options(unlabelled):
    refusal(review(unlabelled, "--teaches", 0.8, "--random", 0.5), ErrorKind.SETTING, "0.8")
    refusal(review(unlabelled, "--positive", "fraudulent"), ErrorKind.LABELS, "fraudulent")


def test_the_journal_of_another_table_or_model(unlabelled, fitted, tmp_path):
    review(unlabelled, "--budget", 5)
    other = tmp_path / "other.csv"
    purchases(100).write_csv(other)
    refusal(review(other), ErrorKind.ROWS, "240")
    path = tmp_path / "no.jsonl"
    words = ("-t", "fraud", "--id", "order", "--journal", path)
    run("review", unlabelled, *words, "--positive", "no")
    refusal(invoke("review", fitted.model, unlabelled, *words), ErrorKind.COMBINATION, "yes", path)
    svm = tmp_path / "rows.svmlight"
    svm.write_text("1 1:0.5\n0 1:0.25\n")
    refusal(invoke("review", svm, *words), ErrorKind.FILE_FORMAT)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("slip", ["frud", "Fraud", "fruad", "FRAUDS", "fraud "])
@pytest.mark.parametrize("more", [(), ("--positive", "yes")])
def test_a_slip_in_the_name_of_the_target_is_refused(unlabelled, tmp_path, slip, more):
    words = ["-t", slip, "--journal", tmp_path / "j.jsonl"]
    result = invoke("review", unlabelled, *words, *more)
    refusal(result, ErrorKind.MISSING_COLUMN, "'fraud'")
    hunt = ["hunt", unlabelled, "-t", slip, "--rare", "yes", "--out", tmp_path / "h"]
    result = invoke(*hunt, "--journal", tmp_path / "h.jsonl")
    refusal(result, ErrorKind.MISSING_COLUMN, "'fraud'")


def test_rows_without_labels_need_a_model_or_a_named_label(unlabelled, tmp_path):
    words = ["--journal", tmp_path / "j.jsonl", "--budget", 5]
    refusal(invoke("review", unlabelled, "-t", "is_theft", *words), ErrorKind.MISSING_COLUMN)
    run("review", unlabelled, "-t", "is_theft", *words, "--positive", "yes")


QUICK = ("--members", "logistic regression", "--repeats", "1", "--top", "8")


@pytest.fixture
def data(tmp_path):
    rows = purchases().with_columns(amount=pl.col("amount") + 60.0 * (pl.col("fraud") == "yes"))
    fraud = rows["fraud"].to_list()
    for row in (3, 13, 23):
        fraud[row] = "no"
    rows = rows.with_columns(fraud=pl.Series(fraud))
    twin = rows[33:34].with_columns(fraud=pl.lit("no"), order=pl.lit("twin"))
    path = tmp_path / "orders.csv"
    pl.concat([rows, twin]).write_csv(path)
    return path


def test_the_list_names_rows_and_the_summary_has_the_estimates(data, tmp_path):
    out = tmp_path / "suspects.csv"
    words = ("audit", data, "--target", "fraud", "--id", "order", "--out", out, *QUICK)
    shown, written = run_with_json(*words)
    listed = pl.read_csv(out)
    missed = listed.filter(pl.col("suspect") == listed["suspect"][0])
    assert {24, 241} <= set(missed["row"])
    assert listed.height == 16
    assert missed.row(by_predicate=pl.col("row") == 241, named=True)["contradicts"] == 34
    assert missed["name"][missed["row"].to_list().index(241)] == "twin"
    most = written["missed"]["most"]
    assert 4 <= most <= 20
    assert len(written["rows"]) == 16
    limit = f"At most {most:,.0f} rows (95% confidence, if labels are wrong at random)"
    assert all(fact in shown for fact in (str(out), limit, "twin"))


@pytest.mark.parametrize(
    ("labels", "options", "kind", "fact"),
    [
        (None, ("--positive", "maybe"), ErrorKind.LABELS, "maybe"),
        ("no", (), ErrorKind.LABELS, "no"),
        ("", (), ErrorKind.LABELS, "--target"),
        (None, ("--id", "ordre"), ErrorKind.MISSING_COLUMN, "ordre"),
        (None, ("--members", "forest of one"), ErrorKind.SETTING, "forest of one"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(data, labels, options, kind, fact):
    if labels is not None:
        pl.read_csv(data).with_columns(fraud=pl.lit(labels or None)).write_csv(data)
    out = data.parent / "suspects.csv"
    refusal(invoke("audit", data, "--target", "fraud", "--out", out, *options), kind, fact)
    assert not out.exists()


def test_a_single_rare_row_and_rows_without_columns_are_refused(data, tmp_path):
    rows = pl.read_csv(data)
    one = np.where(np.arange(rows.height) == 7, "yes", "no").tolist()
    rows.with_columns(fraud=pl.Series(one)).write_csv(data)
    words = ("--target", "fraud", "--out", tmp_path / "suspects.csv")
    refusal(invoke("audit", data, *words), ErrorKind.TOO_FEW_ROWS)
    sparse = tmp_path / "rows.svmlight"
    sparse.write_text("1 1:0.5\n0 2:1\n0 1:2\n")
    refusal(invoke("audit", sparse, *words), ErrorKind.FILE_FORMAT)
