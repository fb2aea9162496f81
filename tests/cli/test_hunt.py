"""``rareclass hunt``: what it prints and leaves behind, bad input, and new rows in its order."""

import json
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest

from command_line import complaint, invoke, message, run, says
from faults import refusal
from rareclass import machine as progress
from rareclass.errors import ErrorKind
from rareclass.hunt import files
from rareclass.review import ReviewJournal

OK = ("--cleared", "ok")
FEW = ("--kernel", "none", "--c1", "1", "--c2", "1e-4", "--folds", "3")


def payments(n_rows=300):
    generator = np.random.default_rng(0)
    fraud = np.arange(n_rows) % 12 == 5
    checked = np.full(n_rows, None, dtype=object)
    checked[np.flatnonzero(fraud)[:6]] = "fraud"
    checked[np.flatnonzero(~fraud)[:24]] = "ok"
    return pl.DataFrame(
        {
            "payment": [f"p-{k * 7919 % 99991}" for k in range(n_rows)],
            "amount": np.where(
                fraud, generator.normal(900, 20, n_rows), generator.normal(60, 20, n_rows)
            ).round(2),
            "hour": np.where(
                fraud, generator.normal(3, 0.5, n_rows), generator.uniform(6, 23, n_rows)
            ).round(1),
            "country": np.where(fraud, "XX", "DE"),
            "checked": checked.tolist(),
        }
    )


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "payments.csv"
    payments().write_csv(path)
    return path


def words(data, *more):
    out = [] if "--out" in more else ["--out", data.parent / "found"]
    rare = [] if "--rare" in more else ["--rare", "fraud"]
    target = [] if "--target" in more else ["--target", "checked"]
    return ["hunt", data, *target, *rare, *out, *more]


def summary_of(data):
    return json.loads((data.parent / "found" / "hunt.json").read_text())


def found_in(data):
    return pl.read_csv(data.parent / "found" / "found.csv")


def refuse(data, *more):
    return message(hunt_in_vain(data, *more))


def hunt_in_vain(data, *more):
    before = sorted(path.name for path in data.parent.iterdir())
    done = invoke(*words(data, *more))
    assert sorted(path.name for path in data.parent.iterdir()) == before
    return done


@pytest.mark.sampled(0)
def test_hunt_prints_a_summary_and_writes_the_folder(data):
    shown = run(*words(data, *OK, *FEW))
    assert "300 rows, 3 columns used" in shown
    for fact in ("fraud (6)", "cleared 24", "unlabelled 270", "payment (", "F1", "95 %"):
        assert fact in shown
    says(shown, "Ball of fraud:", "country = XX")
    assert "\x1b[" not in shown
    folder = data.parent / "found"
    assert {path.name for path in folder.iterdir()} == {
        "found.csv", "description.csv", "ball.png", "score.rareclass",
        "hunt.json",
    }  # fmt: skip
    found = pl.read_csv(folder / "found.csv")
    assert (np.array(found["review row"][:19]) % 12 == 6).all()
    assert found.height == 100
    assert "checked" not in found.columns
    assert found["review verdict"].null_count() == found.height
    for name in ("found.csv", "ball.png", "hunt.json"):
        assert str(folder / name) in shown
    summary = summary_of(data)
    counts = {"rows": 300, "rare": {"fraud": 6}, "cleared": 24, "unlabelled": 270, "written": 100}
    assert summary["counts"] | counts == summary["counts"]
    assert summary["held_out"] is not None
    assert summary["options"]["target"] == "checked"
    assert summary["version"]


def two_kinds(second):
    table = payments()
    checked = table["checked"].to_list()
    checked[100:140:5] = [second] * 8
    return table.with_columns(
        checked=pl.Series(checked),
        amount=pl.when(pl.int_range(300) % 5 == 0).then(-500.0).otherwise(pl.col("amount")),
    )


@pytest.mark.sampled(0)
def test_two_kinds_with_long_names_fit_a_narrow_terminal(data, monkeypatch):
    kind = "a [bold]refund[/bold] to another account than the one that $paid$"
    two_kinds(kind).rename({"amount": "amount in the currency of the account"}).write_csv(data)
    kinds = ("--rare", "fraud", "--rare", kind, "--balls", "1")
    monkeypatch.setenv("COLUMNS", "60")
    shown = invoke(*words(data, *kinds, *OK, *FEW)).stdout
    paths = [line for line in shown.splitlines() if str(data.parent) in line]
    assert len(paths) == 6
    assert max(len(line) for line in shown.splitlines() if line not in paths) <= 60
    assert f"Ball of {kind}:" in " ".join(shown.split())
    folder = data.parent / "found"
    pictures = list(folder.glob("*.png"))
    assert len(pictures) == 2
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    described = pl.read_csv(folder / "description.csv")
    assert set(described["ball"]) == {"fraud", kind}
    found = pl.read_csv(folder / "found.csv")
    first = found.filter(pl.col("review ball") == kind)["review row"][:40]
    assert (first.to_numpy() % 5 == 1).mean() > 0.9


@pytest.mark.sampled(0)
def test_one_class_without_cleared_rows_works_with_a_warning(data):
    shown = run(*words(data, "--ignore", "ok"))
    summary = summary_of(data)
    counts = {"cleared": 0, "ignored": 24, "unlabelled": 294, "written": 100}
    assert summary["counts"] | counts == summary["counts"]
    assert summary["chosen"]["by"] == "defaults"
    assert summary["held_out"] is None
    assert len(summary["messages"]) == 2
    for fact in ("cleared 0", "unlabelled 294", "24 by --ignore", *summary["messages"]):
        assert fact in shown
    found = found_in(data)
    assert found.height == 100
    assert (np.array(found["review row"][:15]) % 12 == 6).all()
    assert [found["first"] for found in summary["refound"]] == [10, 50, 100]
    for found in summary["refound"]:
        assert f"{found['cases']} in the first {found['first']} rows" in shown
    assert "column sure" not in shown


def test_value_without_a_meaning_is_refused(data):
    facts = ("24 rows", "--cleared ok", "--rare ok", "--ignore ok")
    error = refusal(hunt_in_vain(data), ErrorKind.LABELS, *facts)
    assert (error.column, error.row, error.value) == ("checked", 1, "ok")


WRONG = [
    ("--c1", "much"), ("--balls", "0"), ("--filter", "maybe"), ("--filter", "0"),
    ("--share", "0"), ("--top", "0"),
]  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("more", "kind", "facts"),
    [
        (("--target", "chekced"), ErrorKind.MISSING_COLUMN, ("--target", "'chekced'", "'checked'")),
        (("--rare", "frued", *OK), ErrorKind.LABELS, ("--rare", "'frued'", "ok, fraud")),
        (("--cleared", "okay"), ErrorKind.LABELS, ("--cleared", "'okay'", "ok, fraud")),
        (("--cleared", "fraud"), ErrorKind.COMBINATION, ("'fraud'", "--rare", "--cleared")),
        ((*OK, "--drop", "amuont"), ErrorKind.MISSING_COLUMN, ("'amuont'", "'amount'")),
        *(((*OK, *each), ErrorKind.SETTING, (" ".join(each),)) for each in WRONG),
        ((*OK, "--kernel", "none", "--width", "2"), ErrorKind.COMBINATION,
         ("--width 2", "--kernel gaussian")),
    ],
)  # fmt: skip
def test_options_that_cannot_be_met(data, more, kind, facts):
    refusal(hunt_in_vain(data, *more), kind, *facts)


def test_bad_cell_is_named(data):
    table = payments()
    cells = table["amount"].cast(pl.String).to_list()
    cells[16] = "about 40"
    table.with_columns(amount=pl.Series(cells)).write_csv(data)
    done = hunt_in_vain(data, *OK)
    error = refusal(done, ErrorKind.CELL, "'amount'", "row 17", "'about 40'", "--drop amount")
    assert (error.column, error.row, error.value) == ("amount", 17, "about 40")


def test_svmlight_and_missing_files(data):
    path = data.parent / "t.svmlight"
    path.write_text("1 1:2\n0 1:3\n")
    for file, kind in (
        (path, ErrorKind.FILE_FORMAT),
        (data.parent / "none.csv", ErrorKind.MISSING_FILE),
    ):
        refusal(hunt_in_vain(file, *OK), kind, file.name)


LABELLED, UNLABELLED = (*OK, "--folds", "2"), ("--ignore", "ok")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("labels", "options", "said"),
    [
        (LABELLED, ("--kernel", "none", "--c1", "1"), "(C1 as given, else chosen by cross-valida"),
        (LABELLED, ("--width", "2", "--c1", "1", "--c2", "1e-4"), "width 2 (as given"),
        (LABELLED, (*FEW[:6], "--balls", "1", "--share", "0.2"), "(as given"),
        (LABELLED, ("--kernel", "none"), "(chosen by cross-validation"),
        (UNLABELLED, ("--width", "2"), "width 2 (width as given, else defaults, not tuned"),
        (UNLABELLED, ("--c2", "1e-4"), "(C2 as given, else defaults, not tuned on your rows"),
        (UNLABELLED, ("--c1", "2", "--c2", "1e-4"), "(as given"),
        (UNLABELLED, (), "(defaults, not tuned on your rows"),
    ],
)
def test_prices_that_were_given_are_not_called_chosen(data, labels, options, said):
    shown = run(*words(data, *labels, *options)).split("Model: ")[1].split(")")[0]
    assert said in shown
    assert shown.startswith("gaussian kernel" if "--width" in options else "a round ball")
    assert found_in(data).height == (54 if "--share" in options else 100)
    if labels is UNLABELLED:
        chosen = summary_of(data)["chosen"]
        assert chosen["by"] == ("options" if options else "defaults")
        assert chosen["kernel"] == ("gaussian" if "--width" in options else "none")


@pytest.mark.sampled(0)
def test_brackets_in_names_are_no_markup(data, monkeypatch):
    path = data.parent / "x[bold].csv"
    names = {"payment": "[red]id", "hour": "h[/]:x:", "country": "[i]land", "checked": "[u]c"}
    table = payments().with_columns(checked=pl.col("checked").replace("fraud", "[b]f[/b]"))
    table.rename(names).write_csv(path)
    drawn = []

    def watched(description, *_, **__):
        drawn.append(description)
        return nullcontext(lambda *_, **__: None)

    monkeypatch.setattr(progress, "track", watched)
    options = ("--target", "[u]c", "--rare", "[b]f[/b]", *OK, *FEW)
    result = run(*words(path, *options))
    names_shown = ("x[bold].csv: 300", "[red]id", "h[/]:x:", "[i]land = XX")
    for shown in (*names_shown, "[u]c: rare [b]f[/b] (6)"):
        assert shown in result
    assert "Ball of [b]f[/b]:" in result
    assert "Reading x[bold].csv" in drawn


@pytest.mark.thorough
def test_filter_reaches_the_ball(data):
    n_weighed = {}
    for word in ("0.5", "yes", "no"):
        more = (*OK, *FEW, "--filter", word, "--overwrite")
        run(*words(data, *more))
        summary = summary_of(data)
        n_weighed[word] = summary["balls"][0]["n_weighed"]
    assert n_weighed["0.5"] < n_weighed["yes"] <= n_weighed["no"] == 270


@pytest.mark.sampled(0)
def test_verdicts_on_a_list_count_in_the_next_hunt_and_elsewhere(data, tmp_path):
    journal, table = tmp_path / "j.jsonl", tmp_path / "payments.csv"
    more = (*OK, *FEW, "--top", 20, "--journal", journal)
    assert "20 listed rows without one" in run(*words(data, *more))
    sheet = tmp_path / "found" / "found.csv"
    listed = pl.read_csv(sheet)
    is_fraud = pl.col("review row") % 12 == 6
    said = pl.when(is_fraud).then(pl.lit("fraud")).otherwise(pl.lit("ok"))
    # The person looked at the first 15 rows.
    said = pl.when(pl.int_range(pl.len()) < 15).then(said)
    listed.with_columns(said.alias("review verdict")).write_csv(sheet)
    again = (*more, "--verdicts", sheet)
    assert "--overwrite" in refuse(data, *again)
    again += ("--overwrite",)
    shown = run(*words(data, *again))
    assert "15 new verdicts" in shown
    n_new = int(listed.head(15).select(is_fraud.sum()).item())
    assert f"rare fraud ({6 + n_new}), cleared {24 + 15 - n_new}, unlabelled 255" in shown
    second = pl.read_csv(sheet)
    assert not {*second["review row"]} & {*listed["review row"].head(15)}
    kept = ReviewJournal(journal)
    assert [len(each.listed) for each in kept.rounds] == [20, 20]
    assert kept.rounds[1].listed[0].key == str(second["review row"][0])
    # A review takes the journal on: its open rows are those of the hunt, and labels are written.
    known, words_ = tmp_path / "known.csv", ("review", data, "-t", "checked", "-j", journal)
    run(*words_, "--labelled", known, "--list", tmp_path / "open.csv")
    rows = pl.read_csv(tmp_path / "open.csv")["review row"].to_list()
    assert rows == second["review row"].to_list()
    labels = pl.read_csv(known)["checked"]
    assert (labels.len() - labels.null_count(), (labels == "fraud").sum()) == (45, 6 + n_new)
    assert pl.read_csv(known).drop("checked").equals(pl.read_csv(table).drop("checked"))
    # And the reverse: the verdicts of a review count in a hunt.
    filled = pl.read_csv(tmp_path / "open.csv").with_columns(pl.lit("ok").alias("review verdict"))
    filled.write_csv(tmp_path / "open.csv")
    run(*words_, "--verdicts", tmp_path / "open.csv")
    shown = run(*words(data, *more, "--overwrite"))
    assert f"cleared {24 + 35 - n_new}, unlabelled 235" in shown


def test_a_journal_that_does_not_go_with_a_hunt(data):
    refusal(hunt_in_vain(data, *OK, "--verdicts", data), ErrorKind.COMBINATION, "--journal")
    within = data.parent / "found" / "j.jsonl"
    done = hunt_in_vain(data, *OK, "--journal", within)
    refusal(done, ErrorKind.COMBINATION, "--journal", "--out")
    journal = data.parent / "j.jsonl"
    words_ = ("review", data, "-t", "checked", "--journal", journal, "--budget", 5)
    run(*words_, "--positive", "ok")
    before = journal.read_bytes()
    more = (*OK, "--journal", journal)
    refusal(hunt_in_vain(data, *more), ErrorKind.LABELS, "'fraud'", str(journal))
    assert journal.read_bytes() == before


LABELS = ("--target", "checked", "--rare", "fraud", "--cleared", "ok")


@pytest.fixture
def not_drawn(monkeypatch):
    monkeypatch.setattr(files, "_draw", lambda folder, hunt: [])  # most of the time, and no matter


def hunted(folder, *more):
    table = payments()
    table.write_csv(folder / "data.csv")
    words = ("--c1", "1", "--c2", "1e-4", "--folds", "3", "--top", "120", *more)
    run("hunt", folder / "data.csv", *LABELS, *words, "-o", folder / "found")
    table.drop("checked").write_csv(folder / "new.csv")
    return folder / "new.csv", pl.read_csv(folder / "found" / "found.csv")


def scored_in(folder, *more):
    out = folder / "s.parquet"
    words = ("score", folder / "found", folder / "new.csv", "-o", out, "--overwrite", *more)
    run(*words)
    return pl.read_parquet(out)


@pytest.mark.parametrize(
    "kernel",
    [("none",), pytest.param(("gaussian", "--width", "2"), marks=pytest.mark.thorough)],
    ids=["none", "gaussian"],
)
def test_scores_fall_down_the_list_of_the_hunt(tmp_path, kernel, not_drawn):
    _, found = hunted(tmp_path, "--kernel", *kernel)
    scores = scored_in(tmp_path)
    assert scores.columns == ["row", "score", "sure", "called_rare", "percentile"]
    assert len(found) == 120
    assert 0 < found["review found"].sum() < 120
    at = scores[(found["review row"] - 1).to_numpy()]
    steps = np.diff(at["score"].to_numpy())
    assert (steps <= 1e-12).all()
    assert (steps < -1e-12).sum() > 80
    assert (np.diff(at["percentile"].to_numpy()) <= 1e-9).all()
    np.testing.assert_allclose(at["score"], found["review score"], rtol=1e-9)
    assert at["called_rare"].all()
    assert scores["called_rare"].sum() >= 120
    assert not scores.filter(pl.col("score") < at["score"].min() - 1e-9)["called_rare"].any()
    # Of equal ones the hunt tells each its place; a new row is as sure as the last of them.
    last = pl.DataFrame({"score": at["score"].round(9), "sure": found["review sure"]})
    least = last.select(pl.col("sure").min().over("score")).to_series()
    assert (at["sure"] <= found["review sure"] + 1e-9).all()
    assert (at["sure"] >= least - 1e-9)[:119].all()  # those after the 120th are not in the file
    assert len(set(at["sure"])) > 20
    top = scored_in(tmp_path, "--top", 7).filter("called_rare")
    lowest = sorted(scores["score"], reverse=True)[6]
    assert (top["score"] >= lowest).all()


@pytest.mark.thorough
def test_rows_unlike_those_of_the_hunt_are_told(tmp_path, not_drawn):
    data, _ = hunted(tmp_path, "--kernel", "none")
    new = pl.read_csv(data)[:20].with_columns(amount=pl.lit(1e6), country=pl.lit("??"))
    new.with_columns(sure=1).write_csv(data)
    words = ("score", tmp_path / "found", data, "-o", tmp_path / "s.csv", "--overwrite")
    assert "amount (20, 100.0%)" in run(*words)
    assert "has moved far from training" in complaint(*words, "--strict")
    assert "gives no reasons" in complaint(*words, "--explain", 1)
    assert "a column of the scores has that name" in complaint(*words, "--id", "sure")
    assert "Rare class: checked = fraud" in run("show", tmp_path / "found")


def test_rows_of_the_hunt_are_noticed_in_any_order_and_with_more_labels(tmp_path, not_drawn):
    hunted(tmp_path, "--kernel", "none")
    table, rows = pl.read_csv(tmp_path / "data.csv"), tmp_path / "rows.parquet"
    known = pl.when(pl.col("country") == "XX").then(pl.lit("fraud")).otherwise(pl.lit("ok"))
    own = [table, table.sample(fraction=1.0, shuffle=True, seed=1), table[table.columns[::-1]]]
    own.append(table.with_columns(checked=known))
    others = [table.head(200), pl.concat([table, table])]
    for seed in range(2):  # as many rows, with as many labels
        values = table.sample(fraction=1.0, with_replacement=True, seed=seed).drop("checked")
        others.append(values.with_columns(table["checked"]))
    for k, each in enumerate(own + others):
        each.write_parquet(rows)
        said = run("evaluate", tmp_path / "found", rows)
        assert ("seems to hold the rows that the model was trained on" in said) == (k < len(own))


def test_a_damaged_file_of_balls_is_refused(tmp_path):
    (tmp_path / "hunt.json").write_text("{}")
    (tmp_path / "score.rareclass").write_bytes(b"PK nothing")
    payments().write_csv(tmp_path / "new.csv")
    words = ("score", tmp_path, tmp_path / "new.csv", "-o", tmp_path / "s.csv")
    assert "is damaged or cut short" in complaint(*words)
