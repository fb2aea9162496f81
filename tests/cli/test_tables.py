"""Tables as users have them, by the real command: in memory and left on disk."""

import gzip

import numpy as np
import polars as pl
import pytest

from cli.conftest import fit_in_vain
from command_line import QUICK, in_new_process, invoke, json_of, run, says, scores_of
from faults import refusal
from made_tables import purchases
from rareclass import RareClassifier
from rareclass.errors import ErrorKind
from rareclass.model.facts import facts_as_json
from rareclass.model.model_file import load_model
from rareclass.scratch_file import Scratch

COMMAND = "from rareclass.cli.main import main; main()"


def long_table(n_rows=6000):
    rng = np.random.default_rng(0)
    table = pl.DataFrame(rng.normal(size=(n_rows, 6)).round(5), schema=list("abcdef"))
    return table.with_columns(y=pl.Series(rng.random(n_rows) < 0.03).cast(int)).write_csv()


@pytest.mark.parametrize("verb", ["fit", "hunt"])
@pytest.mark.parametrize("fault", ["short", "cut"])
@pytest.mark.thorough
def test_a_refused_table_ends_the_process_cleanly(tmp_path, verb, fault):
    """A reader's thread must not live longer than the interpreter: it would abort."""
    lines = long_table().splitlines()
    if fault == "short":
        lines[3001] = "1,2,3"
        path = tmp_path / "t.csv"
        path.write_text("\n".join(lines) + "\n")
    else:
        path = tmp_path / "t.csv.gz"
        packed = gzip.compress("\n".join(lines).encode())
        path.write_bytes(packed[: len(packed) // 2])
    more = ["--rare", "1"] if verb == "hunt" else []
    done = in_new_process(COMMAND, verb, path, "--target", "y", "--out", tmp_path / "o", *more)
    assert done.returncode == 2, done.stderr
    said = " ".join(done.stderr.split())
    wanted = {"short": "got 3 at row 3,001 (line 3,002): 1,2,3", "cut": "is cut short or damaged"}
    assert wanted[fault] in said
    assert "terminate" not in said


OPENED = """
import sys
opened = []
def watch(event, given):
    if event == "open" and str(given[0]).endswith("train.csv"):
        opened.append(given[0])
sys.addaudithook(watch)
from rareclass.cli.main import main
try:
    main()
finally:
    print("opened", len(opened))
"""


@pytest.mark.sampled(0)
def test_a_fit_opens_its_file_once(train_csv, out):
    done = in_new_process(OPENED, "fit", train_csv, "-t", "fraud", *QUICK, "-o", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "opened 1"


@pytest.mark.sampled(0)
def test_a_long_cell_is_read(tmp_path, table):
    words = ["x" * 15_000_000 if k == 50 else f"w{k % 3}" for k in range(table.height)]
    path = tmp_path / "t.csv"
    table.with_columns(word=pl.Series(words)).write_csv(path)
    # Left out, as a model would keep it as a category.
    model, fast = tmp_path / "m.rareclass", (*QUICK, "--drop", "word")
    run("fit", path, "-t", "fraud", "-o", model, *fast)
    path.write_text('a,fraud\n1,0\n"2,0\n' + (60 * "3" + ",1\n") * 280_000)
    done = invoke("fit", path, "-t", "fraud", "-o", tmp_path / "m.rareclass", "--overwrite")
    refusal(done, ErrorKind.DAMAGED_FILE, "line 3", "quote")


def test_what_is_odd_in_a_table_is_noted_once(tmp_path, table):
    cells = ["n.v." if k % 10 == 4 else str(k / 7) for k in range(table.height)]
    codes = [f"{k % 7 * 4000:05d}" for k in range(table.height)]
    path = tmp_path / "t.csv"
    mixed = table.with_columns(late=pl.Series(cells), zip=pl.Series(codes))
    mixed.write_csv(path)
    model = tmp_path / "m.rareclass"
    done = invoke("fit", path, "-t", "fraud", *QUICK, "-o", model)
    said = " ".join(done.output.split())
    assert done.exit_code == 0, said
    for name, facts in (
        ("late", ("all but 24 of its 240 cells", "'n.v.'", "row 5")),
        ("zip", ("00000",)),
    ):
        about = [note for note in said.split("Note: ") if f"'{name}'" in note]
        assert len(about) == 1, name
        assert all(fact in about[0] for fact in facts), about
    done = invoke("score", model, path, "-o", tmp_path / "scores.csv")
    said = " ".join(done.output.split())
    assert done.exit_code == 0, said
    assert "values not seen" not in said


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    "kind",
    [
        "folder",  # of CSV
        *(
            pytest.param(kind, marks=pytest.mark.thorough)
            for kind in ("csv", "utf16", "jsonl", "parquet")
        ),
    ],
)
def test_every_verb_reads_every_format(tmp_path, fitted, kind):
    table, wanted = purchases(), scores_of(fitted.model, fitted.train)["score"]
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        path.write_text(table.write_csv(separator=";"))
    elif kind == "utf16":
        path = tmp_path / "t.csv"
        path.write_bytes(table.write_csv().encode("utf-16"))
    elif kind == "jsonl":
        table.write_ndjson(path)
    elif kind == "parquet":
        table.write_parquet(path)
    else:
        (path / "b" / "c").mkdir(parents=True)
        table[:100].write_csv(path / "1.csv")
        table[100:].write_csv(path / "b" / "c" / "0.csv", separator="\t")
    np.testing.assert_allclose(scores_of(fitted.model, path)["score"], wanted)
    model = tmp_path / "m.rareclass"
    done = invoke("fit", path, "-t", "fraud", *QUICK, "-o", model)
    assert done.exit_code == 0, done.output
    read = ("240 rows", "Rare class: fraud = yes, 24 rows")
    assert all(words in done.output for words in read)
    assert json_of("evaluate", fitted.model, path)["n_rows"] == 240
    folder = tmp_path / "learned"
    run("stream", path, "-t", "fraud", "--checkpoint", folder)
    hunted = tmp_path / "found"
    run(
        "hunt", path, "-t", "fraud", "--rare", "yes", "--ignore", "no", "--out", hunted,
        "--kernel", "none", "--c1", "1", "--c2", "1",
    )  # fmt: skip


def test_scores_do_not_become_a_part_of_the_table(tmp_path, fitted):
    (tmp_path / "t" / "b").mkdir(parents=True)
    purchases().write_csv(tmp_path / "t" / "1.csv")
    model, table = fitted.model, tmp_path / "t"
    for *words, out in (
        ("score", model, table, "--out", table / "b" / "s.csv"),
        ("evaluate", model, table, "--json", table / "m.json"),
        ("hunt", table, "-t", "fraud", "--rare", "1", "--out", table / "found"),
    ):
        refusal(invoke(*words, out), ErrorKind.EXISTING_FILE, f"{words[-1]} {out}")
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == ["1.csv", "b"]


def test_a_stream_of_svmlight_is_refused(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 3:0.5\n0 2:1\n")
    done = invoke("stream", path, "-t", "y", "--checkpoint", tmp_path / "c")
    refusal(done, ErrorKind.FILE_FORMAT, path, "svmlight", "CSV")


@pytest.fixture
def on_disk(monkeypatch):
    monkeypatch.setattr("rareclass.fit.rows_on_disk.LARGE_SHARE", 1e12)


@pytest.mark.usefixtures("on_disk")
def test_same_model_and_messages_and_a_note(tmp_path, out, fitted, monkeypatch):
    folders = []
    start = Scratch.__init__

    def watched(self, *args, **kwargs):
        start(self, *args, **kwargs)
        folders.append(self.folder)

    monkeypatch.setattr(Scratch, "__init__", watched)
    (tmp_path / "scratch").mkdir()
    words = ("-t", "fraud", "--method", "rankrc", "--lam", "2^-4", "--out", out)
    said = run("fit", fitted.train, *words, "--scratch", tmp_path / "scratch")
    assert "read from disk in pieces" in said
    assert "encoder is fitted on 240 rows" in said
    assert "fraud = yes, 24 rows (10.00%)" in said
    assert set(folders) == {tmp_path / "scratch"}
    assert len(folders) == 3  # typed cells, and the encoded rows of both trainings
    assert list((tmp_path / "scratch").iterdir()) == []
    one, other = load_model(fitted.model), load_model(tmp_path / "m.rareclass")
    assert other.estimator.dual_coef_ == pytest.approx(one.estimator.dual_coef_, rel=1e-8)
    assert facts_as_json(other.facts)["columns"] == facts_as_json(one.facts)["columns"]
    assert facts_as_json(other.facts)["label_counts"] == facts_as_json(one.facts)["label_counts"]
    held = [
        facts_as_json(content.facts)["held_out"]["measures"]["AUC"]["value"]
        for content in (one, other)
    ]
    assert held[0] == pytest.approx(held[1], rel=1e-9)


@pytest.mark.usefixtures("on_disk")
def test_a_combination_learns_from_a_sample_that_stands_for_all(tmp_path, monkeypatch):
    seen = []
    fit = RareClassifier.fit

    def watched(self, X, y, sample_weight=None, **beside):
        rare = y == 1
        seen.append((X.n_rows, int(rare.sum()), float(sample_weight[~rare].sum())))
        assert (sample_weight[rare] == 1.0).all()
        return fit(self, X, y, sample_weight, **beside)

    monkeypatch.setattr(RareClassifier, "fit", watched)
    monkeypatch.setattr("rareclass.fit.rows_on_disk.LEAST_SAMPLED", 300)
    monkeypatch.setattr("rareclass.fit.rows_on_disk.MOST_SAMPLED", 300)
    purchases(1000).write_parquet(tmp_path / "t.parquet")
    model, words = tmp_path / "m.rareclass", ("--target", "fraud", *QUICK)
    assert "300 rows at most" in run("fit", tmp_path / "t.parquet", *words, "--out", model)
    assert seen == [(300, 100, pytest.approx(900, abs=3))]
    run("evaluate", model, tmp_path / "t.parquet")


@pytest.mark.usefixtures("on_disk")
def test_faults_are_named_and_nothing_is_left(tmp_path):
    lost = tmp_path / "none"
    purchases().write_csv(tmp_path / "t.csv")
    says(fit_in_vain(tmp_path / "t.csv", "--scratch", lost), str(lost))
    said = fit_in_vain(tmp_path / "t.csv", "--positive", "yess")
    says(said, "--positive", "'yess'", "'yes'")
