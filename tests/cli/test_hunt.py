"""``rareclass hunt``: what it prints, what it leaves behind, and what it says about bad input."""

import json
import re
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest

from command_line import invoke, message, run
from faults import refusal
from rareclass import machine as progress
from rareclass.errors import ErrorKind
from rareclass.review import ReviewJournal

FEW = ("--kernel", "none", "--c1", "1", "--c2", "1e-4", "--folds", "3")


def payments(n_rows=300):
    """Payments of which every 12th is fraud; most were never looked at."""
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


def words(data, *more: object):
    out = [] if "--out" in more else ["--out", data.parent / "found"]
    rare = [] if "--rare" in more else ["--rare", "fraud"]
    target = [] if "--target" in more else ["--target", "checked"]
    return ["hunt", data, *target, *rare, *out, *more]


def refuse(data, *more: object):
    """Return what a refused hunt says; check that it leaves nothing behind."""
    return message(hunt_in_vain(data, *more))


def hunt_in_vain(data, *more: object):
    """Hunt, and check that it leaves nothing behind."""
    before = sorted(path.name for path in data.parent.iterdir())
    done = invoke(*words(data, *more))
    assert sorted(path.name for path in data.parent.iterdir()) == before
    return done


@pytest.mark.sampled(0)
def test_hunt_prints_a_summary_and_writes_the_folder(data):
    shown = run(*words(data, "--cleared", "ok", *FEW))
    assert "300 rows, 3 columns used" in shown
    for fact in ("fraud (6)", "cleared 24", "unlabelled 270", "payment (", "F1", "95 %"):
        assert fact in shown
    assert "Ball of fraud:" in shown
    assert "country = XX" in shown
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
    summary = json.loads((folder / "hunt.json").read_text())
    counts = {"rows": 300, "rare": {"fraud": 6}, "cleared": 24, "unlabelled": 270, "written": 100}
    assert summary["counts"] | counts == summary["counts"]
    assert summary["held_out"] is not None
    assert summary["options"]["target"] == "checked"
    assert summary["version"]


@pytest.mark.sampled(0)
def test_no_line_is_wider_than_a_narrow_terminal(data, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    result = invoke(*words(data, "--cleared", "ok", *FEW))
    paths = [line for line in result.stdout.splitlines() if str(data.parent) in line]
    assert len(paths) == 5
    others = [line for line in result.stdout.splitlines() if line not in paths]
    assert max(map(len, others)) <= 60


def two_kinds(second):
    """Payments of which every 5th is of a second rare kind, 8 of them known."""
    table = payments()
    checked = table["checked"].to_list()
    checked[100:140:5] = [second] * 8
    return table.with_columns(
        checked=pl.Series(checked),
        amount=pl.when(pl.int_range(300) % 5 == 0).then(-500.0).otherwise(pl.col("amount")),
    )


@pytest.mark.thorough
def test_two_kinds_with_long_names_fit_a_narrow_terminal(data, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    kind = "a [bold]refund[/bold] to another account than the one that $paid$"
    two_kinds(kind).rename({"amount": "amount in the currency of the account"}).write_csv(data)
    result = invoke(*words(data, "--rare", "fraud", "--rare", kind, "--cleared", "ok", *FEW))
    assert result.exit_code == 0, result.output
    assert f"Ball of {kind}:" in " ".join(result.stdout.split())
    paths = [line for line in result.stdout.splitlines() if str(data.parent) in line]
    assert len(paths) == 6
    assert max(len(line) for line in result.stdout.splitlines() if line not in paths) <= 60
    folder = data.parent / "found"
    pictures = list(folder.glob("*.png"))
    assert len(pictures) == 2
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    described = pl.read_csv(folder / "description.csv")
    assert set(described["ball"]) == {"fraud", kind}
    found = pl.read_csv(folder / "found.csv")
    assert (
        np.array(found.filter(pl.col("review ball") == kind)["review row"]) % 5 == 1
    ).mean() > 0.9


@pytest.mark.sampled(0)
def test_top_says_how_many_rows_are_written(data):
    result = run(*words(data, "--cleared", "ok", *FEW, "--top", 40))
    found = pl.read_csv(data.parent / "found" / "found.csv")
    assert found.height == 40
    n_inside = int(found["review found"].sum())
    assert 0 < n_inside < 40
    listed = next(line for line in " ".join(result.split()).split("List: ")[1:])
    assert re.findall(r"\d+", listed)[:3] == ["40", "270", str(n_inside)]


@pytest.mark.sampled(0)
def test_one_class_without_cleared_rows_works_with_a_warning(data):
    shown = run(*words(data, "--ignore", "ok"))
    summary = json.loads((data.parent / "found" / "hunt.json").read_text())
    counts = {"cleared": 0, "ignored": 24, "unlabelled": 294, "written": 100}
    assert summary["counts"] | counts == summary["counts"]
    assert summary["chosen"]["by"] == "defaults"
    assert summary["held_out"] is None
    assert len(summary["messages"]) == 2
    for fact in ("cleared 0", "unlabelled 294", "24 by --ignore", *summary["messages"]):
        assert fact in shown
    found = pl.read_csv(data.parent / "found" / "found.csv")
    assert found.height == 100
    assert (np.array(found["review row"][:15]) % 12 == 6).all()
    assert [found["first"] for found in summary["refound"]] == [10, 50, 100]
    for found in summary["refound"]:
        assert f"{found['cases']} in the first {found['first']} rows" in shown
    assert "column sure" not in shown


@pytest.mark.sampled(0)
def test_share_says_how_many_are_found(data):
    run(*words(data, "--cleared", "ok", "--kernel", "none", "--share", "0.2"))
    found = pl.read_csv(data.parent / "found" / "found.csv")
    assert found.height == 54
    assert "--share 0" in refuse(data, "--cleared", "ok", "--share", "0")


@pytest.mark.thorough
def test_negative_numbers_are_values(data):
    values = {"fraud": "1", "ok": "0"}
    table = payments().with_columns(
        checked=pl.col("checked").replace(values).fill_null("-1").cast(pl.Int64)
    )
    table.write_csv(data)
    said = refuse(data, "--rare", "1", "--cleared", "0")
    assert "holds '-1' in 270 rows, first in row 25" in said or "holds '-1' in 270 rows" in said
    more = ("--rare", "1.0", "--cleared", "0", "--ignore", "-1", *FEW)
    run(*words(data, *more))


def test_value_without_a_meaning_is_refused(data):
    facts = ("24 rows", "--cleared ok", "--rare ok", "--ignore ok")
    error = refusal(hunt_in_vain(data), ErrorKind.LABELS, *facts)
    assert (error.column, error.row, error.value) == ("checked", 1, "ok")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("more", "kind", "facts"),
    [
        (
            ("--target", "chekced", "--rare", "fraud"),
            ErrorKind.MISSING_COLUMN,
            ("--target", "'chekced'", "'checked'"),
        ),
        (
            ("--rare", "frued", "--cleared", "ok"),
            ErrorKind.LABELS,
            ("--rare", "'frued'", "ok, fraud"),
        ),
        (
            ("--rare", "fraud", "--cleared", "okay"),
            ErrorKind.LABELS,
            ("--cleared", "'okay'", "ok, fraud"),
        ),
        (
            ("--rare", "fraud", "--cleared", "fraud"),
            ErrorKind.COMBINATION,
            ("'fraud'", "--rare", "--cleared"),
        ),
        (
            ("--cleared", "ok", "--drop", "amuont"),
            ErrorKind.MISSING_COLUMN,
            ("'amuont'", "'amount'"),
        ),
        (("--cleared", "ok", "--c1", "much"), ErrorKind.SETTING, ("--c1 much",)),
        (("--cleared", "ok", "--balls", "0"), ErrorKind.SETTING, ("--balls 0",)),
        (
            ("--cleared", "ok", "--kernel", "none", "--width", "2"),
            ErrorKind.COMBINATION,
            ("--width 2", "--kernel gaussian"),
        ),
        (("--cleared", "ok", "--filter", "maybe"), ErrorKind.SETTING, ("--filter maybe",)),
        (("--cleared", "ok", "--filter", "0"), ErrorKind.SETTING, ("--filter 0",)),
    ],
)
def test_options_that_cannot_be_met(data, more, kind, facts):
    refusal(hunt_in_vain(data, *more), kind, *facts)


def test_a_list_without_rows_is_refused(data):
    assert "--top" in refuse(data, "--cleared", "ok", "--top", "0")


def test_bad_cell_is_named(data):
    table = payments()
    cells = table["amount"].cast(pl.String).to_list()
    cells[16] = "about 40"
    table.with_columns(amount=pl.Series(cells)).write_csv(data)
    done = hunt_in_vain(data, "--cleared", "ok")
    error = refusal(done, ErrorKind.CELL, "'amount'", "row 17", "'about 40'", "--drop amount")
    assert (error.column, error.row, error.value) == ("amount", 17, "about 40")


def test_svmlight_and_missing_files(data):
    path = data.parent / "t.svmlight"
    path.write_text("1 1:2\n0 1:3\n")
    for file, kind in (
        (path, ErrorKind.UNSUPPORTED),
        (data.parent / "none.csv", ErrorKind.MISSING_FILE),
    ):
        refusal(hunt_in_vain(file, "--cleared", "ok"), kind, file.name)


@pytest.mark.sampled(0)
def test_earlier_hunt_is_replaced_only_when_asked(data):
    more = ("--cleared", "ok", *FEW)
    run(*words(data, *more))
    assert "--overwrite" in refuse(data, *more)
    run(*words(data, *more, "--overwrite"))


def test_all_rows_labelled_points_to_fit(data):
    payments().with_columns(pl.col("checked").fill_null("ok")).write_csv(data)
    assert "rareclass fit" in refuse(data, "--cleared", "ok")


def shape_line(output):
    """Return what the screen says of shape and prices."""
    return " ".join(output.split()).split("Model: ")[1].split(")")[0]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(
            ("--kernel", "none", "--c1", "1", "--c2", "1e-4"),
            "(as given",
            marks=pytest.mark.thorough,
        ),
        (("--kernel", "none", "--c1", "1"), "(C1 as given, else chosen by cross-validation"),
        pytest.param(("--kernel", "none"), "(chosen by it", marks=pytest.mark.thorough),
        (("--width", "2", "--c1", "1", "--c2", "1e-4"), "width 2 (as given"),
    ],
)
def test_prices_that_were_given_are_not_called_chosen(data, options, said):
    result = invoke(*words(data, "--cleared", "ok", "--folds", "2", *options))
    assert result.exit_code == 0, result.output
    shown = shape_line(result.stdout)
    assert shown.endswith(said)
    assert shown.startswith("gaussian kernel" if "--width" in options else "a round ball")


@pytest.mark.parametrize(
    ("options", "by", "said"),
    [
        (("--width", "2"), "options", "width 2 (width as given, else defaults, not tuned"),
        (("--c2", "1e-4"), "options", "(C2 as given, else defaults, not tuned on your rows"),
        (("--c1", "2", "--c2", "1e-4"), "options", "(as given"),
        ((), "defaults", "(defaults, not tuned on your rows"),
    ],
)
@pytest.mark.thorough
def test_without_held_out_rows_prices_are_as_given_or_defaults(data, options, by, said):
    result = invoke(*words(data, "--ignore", "ok", *options))
    assert result.exit_code == 0, result.output
    assert said in shape_line(result.stdout)
    chosen = json.loads((data.parent / "found" / "hunt.json").read_text())["chosen"]
    assert chosen["by"] == by
    assert chosen["kernel"] == ("gaussian" if "--width" in options else "none")


@pytest.mark.sampled(0)
def test_brackets_in_names_are_no_markup(data, monkeypatch):
    path = data.parent / "x[bold].csv"
    names = {"payment": "[red]id", "hour": "h[/]:x:", "country": "[i]land", "checked": "[u]c"}
    table = payments().with_columns(checked=pl.col("checked").replace("fraud", "[b]f[/b]"))
    table.rename(names).write_csv(path)
    drawn = []

    def watched(description, **_: object):
        drawn.append(description)
        return nullcontext(lambda *_, **__: None)

    monkeypatch.setattr(progress, "track", watched)
    options = ("--target", "[u]c", "--rare", "[b]f[/b]", "--cleared", "ok", *FEW)
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
        more = ("--cleared", "ok", *FEW, "--filter", word, "--overwrite")
        run(*words(data, *more))
        summary = json.loads((data.parent / "found" / "hunt.json").read_text())
        n_weighed[word] = summary["balls"][0]["n_weighed"]
    assert n_weighed["0.5"] < n_weighed["yes"] <= n_weighed["no"] == 270


@pytest.mark.sampled(0)
def test_verdicts_on_a_list_count_in_the_next_hunt_and_elsewhere(data, tmp_path):
    journal, table = tmp_path / "j.jsonl", tmp_path / "payments.csv"
    more = ("--cleared", "ok", *FEW, "--top", 20, "--journal", journal)
    assert "20 listed rows without one" in run(*words(data, *more))
    sheet = tmp_path / "found" / "found.csv"
    listed = pl.read_csv(sheet)
    is_fraud = pl.col("review row") % 12 == 6
    said = pl.when(is_fraud).then(pl.lit("fraud")).otherwise(pl.lit("ok"))
    # The person looked at the first 15 rows.
    said = pl.when(pl.int_range(pl.len()) < 15).then(said)
    listed.with_columns(said.alias("review verdict")).write_csv(sheet)
    again = (*more, "--verdicts", sheet, "--overwrite")
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
    refusal(
        hunt_in_vain(data, "--cleared", "ok", "--verdicts", data),
        ErrorKind.COMBINATION,
        "--journal",
    )
    within = data.parent / "found" / "j.jsonl"
    done = hunt_in_vain(data, "--cleared", "ok", "--journal", within)
    refusal(done, ErrorKind.COMBINATION, "--journal", "--out")
    journal = data.parent / "j.jsonl"
    words_ = ("review", data, "-t", "checked", "--journal", journal, "--budget", 5)
    run(*words_, "--positive", "ok")
    before = journal.read_bytes()
    more = ("--cleared", "ok", "--journal", journal)
    refusal(hunt_in_vain(data, *more), ErrorKind.LABELS, "'fraud'", str(journal))
    assert journal.read_bytes() == before
