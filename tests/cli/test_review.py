"""``rareclass review``: from a list to verdicts to the next list; bad input is named."""

import polars as pl
import pytest

from command_line import invoke, run
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
    for changed, kind, fact in (
        ({"row": "o-none"}, ErrorKind.ROWS, "o-none"),
        ({"verdict": "maybe"}, ErrorKind.LABELS, "maybe"),
    ):
        kept = pl.read_csv(sheet)
        filled(sheet, **changed)
        refusal(review(unlabelled, "--verdicts", sheet), kind, fact, "list.csv, row 1")
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


@pytest.mark.parametrize(
    ("words", "kind", "fact"),
    [
        (("--budget", 0), ErrorKind.SETTING, "0"),
        (("--teaches", 0.8, "--random", 0.5), ErrorKind.SETTING, "0.8"),
        (("--positive", "fraudulent"), ErrorKind.LABELS, "fraudulent"),
        (("--id", "none"), ErrorKind.MISSING_COLUMN, "none"),
        (("--target", "none"), ErrorKind.MISSING_COLUMN, "none"),
    ],
)
def test_bad_options(unlabelled, words, kind, fact):
    given = ["--target", "fraud"] if "--target" not in words else []
    path = unlabelled.parent / "j.jsonl"
    refusal(invoke("review", unlabelled, "--journal", path, *given, *words), kind, fact)


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
