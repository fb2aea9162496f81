"""The verbs on an object store: read from there, written whole, lost connections told."""

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from command_line import complaint, invoke, run
from object_store import SECRET
from rareclass import load

pytestmark = pytest.mark.sampled(0)

QUICK = ("-t", "fraud", "--members", "logistic regression", "--folds", "2")


def test_from_rows_to_scores_in_a_bucket(s3, table, tmp_path):
    for k, part in enumerate(table.iter_slices(80)):
        part.write_parquet(tmp_path / f"{k}.parquet")
        s3.put_file(str(tmp_path / f"{k}.parquet"), f"rows/pay/day={k}/part.parquet")
    model = "s3://rows/m.rareclass"
    runs = [
        ("fit", "s3://rows/pay/", *QUICK, "-o", model, "--json", "s3://rows/f.json"),
        ("score", model, "s3://rows/pay", "--id", "order", "-o", "s3://rows/s.csv"),
        ("evaluate", model, "s3://rows/pay"),
        ("show", model),
        ("threshold", model, "--min-recall", "0.5", "-o", "s3://rows/t.rareclass"),
        ("stream", "s3://rows/pay", "-t", "fraud", "--checkpoint", tmp_path / "run"),
    ]
    for words in runs:
        done = invoke(*words)
        assert done.exit_code == 0, done.output
        assert SECRET not in done.output
    assert sorted(s3.ls("rows", detail=False)) == [
        f"rows/{name}" for name in ("f.json", "m.rareclass", "pay", "s.csv", "t.rareclass")
    ]
    scores = s3.cat_file("rows/s.csv").decode().splitlines()
    assert len(scores) == 241
    found = load(model).score_samples("s3://rows/pay")
    assert float(scores[7].split(",")[1]) == pytest.approx(found[6])
    assert "--out s3://rows/s.csv exists already" in complaint(*runs[1])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("s3://none/a.csv", "-o", "m.rareclass"), "There is no file s3://none/a.csv"),
        (("s3://rows/none.csv", "-o", "m.rareclass"), "There is no file s3://rows/none.csv"),
        (("{csv}", "-o", "s3://none/m.rareclass"), "there is no bucket none"),
        (("{csv}", "-o", "https://host/m.rareclass"), "files cannot be written to a web server"),
        (("gs://rows/a.csv", "-o", "m.rareclass"), "gcsfs"),
        (("foo://rows/a.csv", "-o", "m.rareclass"), "foo://rows/a.csv is not an address"),
    ],
)
def test_faults(s3, train_csv, words, said, monkeypatch):
    monkeypatch.chdir(train_csv.parent)
    monkeypatch.setitem(__import__("sys").modules, "gcsfs", None)
    assert said in complaint("fit", *(word.format(csv=train_csv) for word in words), *QUICK)
    assert not (train_csv.parent / "m.rareclass").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("stream", "{csv}", "-t", "fraud", "--checkpoint", "s3://rows/run"),
        ("hunt", "{csv}", "-t", "fraud", "--rare", "yes", "-o", "s3://rows/hunt"),
    ],
)
def test_what_has_to_be_on_this_machine(train_csv, words):
    done = complaint(*(word.format(csv=train_csv) for word in words))
    assert "is not on this machine's disk" in done


def test_a_folder_far_away_is_not_watched(tmp_path):
    words = ("memory://rows", "-t", "fraud", "--checkpoint", tmp_path / "run", "--follow")
    assert "--follow: memory://rows is not on this machine" in complaint("stream", *words)


@pytest.mark.thorough
def test_what_cannot_be_put_there_stays_here(train_csv, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    memory = fsspec.filesystem("memory")

    def lost(self, *args, **kwargs):
        raise OSError("connection reset")

    monkeypatch.setattr(MemoryFileSystem, "put_file", lost)
    said = complaint("fit", train_csv, *QUICK, "-o", "memory://lost/m.rareclass")
    assert "Cannot reach memory://lost/m.rareclass: connection reset" in said
    assert "What was to be written is in" in said
    (kept,) = tmp_path.glob("rareclass-*")
    assert load(kept).target == "fraud"
    assert not memory.exists("/lost/m.rareclass")


@pytest.mark.thorough
def test_a_report_and_a_comparison_in_a_bucket(s3, table, tmp_path):
    table.write_csv(tmp_path / "t.csv")
    s3.put_file(str(tmp_path / "t.csv"), "rows/t.csv")
    for words in [
        ("fit", "s3://rows/t.csv", *QUICK, "-o", "s3://rows/m.rareclass", "--report", "s3://rows/f.html"),
        ("report", "s3://rows/m.rareclass", "s3://rows/t.csv", "-o", "s3://rows/r.html"),
        ("compare", "s3://rows/t.csv", "-t", "fraud", "--methods", "logistic,forest",
         "--folds", "2", "-o", "s3://rows/c.csv"),
    ]:  # fmt: skip
        run(*words)
    assert len(s3.ls("rows")) == 5
