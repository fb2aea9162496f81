"""The commands that write, on small tables, each with an earlier output in its place."""

import atexit
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from cli.test_hunt import FEW, payments
from command_line import QUICK, invoke, run
from made_tables import purchases
from rareclass.model.model_file import load_model
from rareclass.review import ReviewJournal
from rareclass.stored import pack
from rareclass.stream.state import KINDS, checkpoints_in
from stream.messy_stream import messy_records, outcome, write_csv

SCRATCH = "scratch"  # the folder of temporary files of a scene


@dataclass(frozen=True)
class Scene:
    """A command, its inputs and what it is to leave.

    `outputs` are files and folders by name, each with a function that reads what must not depend
    on the run. `prepare` writes the inputs, and the outputs of an earlier run, into a folder.
    `slow` are functions that compute what the tests of writing do not need anew.
    """

    name: str
    words: tuple[str, ...]
    outputs: dict[str, Callable[[Path], Any]]
    prepare: Callable[[Path], None]
    slow: tuple[str, ...] = ()
    grows: frozenset[str] = field(default=frozenset())  # outputs to which a command adds

    def run(self, folder):
        return invoke(*(word.replace("@", f"{folder}/") for word in self.words))

    def run_again(self, folder):
        """Run the command where it has failed before; it must succeed."""
        result = self.run(folder)
        assert result.exit_code == 0, f"again: {result.output} {result.exception!r}"

    def read(self, folder):
        return {
            name: read(folder / name) if (folder / name).exists() else None
            for name, read in self.outputs.items()
        }


def scores_of(path):
    content = load_model(path)
    return [*content.score_samples(purchases(40, seed=3)).tolist(), *map(float, content.thresholds)]


def json_of(path):
    return _timeless(json.loads(path.read_text()))


def page_of(path):
    return re.sub(rb"[0-9-]+ at [0-9:]+ UTC", b"", path.read_bytes())


_OF_THE_RUN = frozenset(
    ("date", "memory", "model", "rows_per_second", "seconds", "time", "trained")
)


def _timeless(value):
    if isinstance(value, dict):
        return {name: _timeless(each) for name, each in value.items() if name not in _OF_THE_RUN}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def table_of(path):
    return _timeless(pl.read_csv(path).to_dicts())


def folder_of(path):
    names = sorted(each.name for each in path.iterdir())
    return names, (path / "found.csv").read_bytes(), json_of(path / "hunt.json")


def stream_of(path):
    if not checkpoints_in(path):
        return None
    packed = pack(outcome(path), KINDS)
    return json.dumps(packed.tree), {name: each.tobytes() for name, each in packed.arrays.items()}


def journal_of(path):
    journal = ReviewJournal(path)
    assert not journal.findings
    rounds = [(each.number, each.listed) for each in journal.rounds]
    return rounds, {key: (each.label, each.round) for key, each in journal.verdicts.items()}


def hunted_journal_of(path):
    """Rows of the last round, if there is one: a hunt that is run again adds a round."""
    return [[each.key for each in one.listed] for one in ReviewJournal(path).rounds[-1:]]


def lines_of(path):
    text = path.read_text()
    assert not text or text.endswith("\n")
    return text.splitlines()


def list_of(path):
    """The rows of a list to check; a list that is written again lacks the scores' reasons."""
    names = ("review row", "review reason", "review chance")
    return pl.read_csv(path).select(names).rows()


@cache
def _models():
    folder = Path(tempfile.mkdtemp(prefix="rareclass-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    purchases().write_csv(folder / "train.csv")
    purchases(seed=1).write_csv(folder / "new.csv")
    purchases(seed=1).write_parquet(folder / "new.parquet")
    words = ("--target", "fraud", "--out", folder / "m.rareclass")
    run("fit", folder / "train.csv", *QUICK, *words)
    run(
        "fit", folder / "train.csv", "--method", "mibc", *words[:2], "--out", folder / "k.rareclass"
    )
    return folder


def _take(*names):
    def prepare(folder):
        for name in names:
            source, _, target = name.partition(" as ")
            shutil.copy(_models() / source, folder / (target or source))

    return prepare


def _with_text(prepare, *names):
    def also(folder):
        prepare(folder)
        for name in names:
            (folder / name).write_text("of an earlier run")

    return also


def _hunted(folder):
    payments().write_csv(folder / "pay.csv")
    # The earlier hunt has more cases than the one to come.
    payments(240).write_csv(folder / "less.csv")
    run("hunt", folder / "less.csv", *_CASES, "--out", folder / "found")


def _streamed(folder):
    records = messy_records(300, n_sure=300)
    write_csv(folder / "rows.csv", records[:100])
    run(*(word.replace("@", f"{folder}/") for word in _STREAM))
    write_csv(folder / "rows.csv", records)


def _reviewed(folder):
    known = pl.int_range(pl.len()) < 40
    table = purchases().with_columns(pl.when(known).then(pl.col("fraud")))
    table.write_csv(folder / "open.csv")
    run(*(word.replace("@", f"{folder}/") for word in _REVIEW), "--list", folder / "old.csv")
    rows = pl.read_csv(folder / "old.csv")
    truth = purchases().select("order", pl.col("fraud").alias("review verdict"))
    filled = rows.drop("review verdict").join(truth, on="order", maintain_order="left")
    filled.write_csv(folder / "filled.csv")
    (folder / "old.csv").unlink()


_CASES = ("--target", "checked", "--rare", "fraud", "--cleared", "ok", *FEW)
_STREAM = (
    "stream", "@rows.csv", "--target", "fraud", "--id", "id", "--checkpoint", "@run", "--learner",
    "oam", "--every", "150", "--report-every", "100", "--window", "100", "--hold", "20",
    "--alert-file", "@alerts.jsonl", "--alerts", "5/100",
)  # fmt: skip
_REVIEW = (
    "review", "@open.csv", "-t", "fraud", "--id", "order", "--journal", "@j.jsonl", "--budget",
    "12",
)  # fmt: skip
_AGAIN = ("--overwrite",)
_STREAMED = {"run": stream_of, "alerts.jsonl": lines_of}

# The quicker ones stand where tests that are marked sampled(n) take their cases from.
_SCENES = (
    Scene(
        "fit",
        ("fit", "@train.csv", "--target", "fraud", "--method", "mibc", "--out", "@o.rareclass",
         "--json", "@o.json", *_AGAIN),
        {"o.rareclass": scores_of, "o.json": json_of},
        _with_text(_take("train.csv", "m.rareclass as o.rareclass"), "o.json"),
    ),
    Scene(
        "fit members",
        ("fit", "@train.csv", "--target", "fraud", *QUICK, "--out", "@o.rareclass", *_AGAIN),
        {"o.rareclass": scores_of},
        _take("train.csv", "k.rareclass as o.rareclass"),
    ),
    Scene(
        "audit",
        # Of named members: how many fit into a time budget depends on the machine.
        ("audit", "@train.csv", "--target", "fraud", *QUICK[:2], "--out", "@a.csv", "--json",
         "@a.json", *_AGAIN),
        {"a.csv": Path.read_bytes, "a.json": json_of},
        _with_text(_take("train.csv"), "a.csv", "a.json"),
        slow=("rareclass.audit.audit",),
    ),
    Scene(
        "score csv",
        ("score", "@m.rareclass", "@new.csv", "--out", "@s.csv", *_AGAIN),
        {"s.csv": Path.read_bytes},
        _with_text(_take("new.csv", "m.rareclass"), "s.csv"),
    ),
    Scene(
        "threshold",
        ("threshold", "@m.rareclass", "--max-fpr", "0.05", "--out", "@m.rareclass", "--json",
         "@t.json", *_AGAIN),
        {"m.rareclass": scores_of, "t.json": json_of},
        _with_text(_take("m.rareclass"), "t.json"),
    ),
    Scene(
        "evaluate",
        ("evaluate", "@m.rareclass", "@new.csv", "--json", "@e.json", *_AGAIN),
        {"e.json": json_of},
        _with_text(_take("new.csv", "m.rareclass"), "e.json"),
    ),
    Scene(
        "hunt",
        ("hunt", "@pay.csv", *_CASES, "--out", "@found", *_AGAIN),
        {"found": folder_of},
        _hunted,
        slow=("rareclass.hunt.hunting.hunt",),
    ),
    Scene(
        "hunt journal",
        ("hunt", "@pay.csv", *_CASES, "--id", "payment", "--journal", "@j.jsonl", "--out",
         "@found", *_AGAIN),
        {"found": folder_of, "j.jsonl": hunted_journal_of},
        _hunted,
        slow=("rareclass.hunt.hunting.hunt",),
        grows=frozenset({"j.jsonl"}),
    ),
    Scene(
        "fit report",
        ("fit", "@train.csv", "--target", "fraud", *QUICK, "--out", "@o.rareclass", "--report",
         "@r.html", *_AGAIN),
        {"o.rareclass": scores_of, "r.html": page_of},
        _with_text(_take("train.csv"), "r.html"),
        slow=("rareclass.fit.training.train", "rareclass.report.model_report.report_on_held_out"),
    ),
    Scene(
        "compare",
        ("compare", "@train.csv", "--target", "fraud", "--methods", "logistic", "--folds", "2",
         "--out", "@c.csv", "--json", "@c.json", *_AGAIN),
        {"c.csv": table_of, "c.json": json_of},
        _with_text(_take("train.csv"), "c.csv", "c.json"),
        slow=("rareclass.cli.compare._compare_methods",),
    ),
    Scene(
        "monitor",
        ("monitor", "@m.rareclass", "@new.csv", "--json", "@n.json", *_AGAIN),
        {"n.json": json_of},
        _with_text(_take("new.csv", "m.rareclass"), "n.json"),
    ),
    Scene(
        "export",
        ("export", "@m.rareclass", "--out", "@o.onnx", *_AGAIN),
        {"o.onnx": Path.read_bytes},
        _with_text(_take("m.rareclass"), "o.onnx"),
    ),
    Scene(
        "report",
        ("report", "@m.rareclass", "@new.csv", "--out", "@r.html", "--json", "@r.json", *_AGAIN),
        {"r.html": page_of, "r.json": json_of},
        _with_text(_take("new.csv", "m.rareclass"), "r.html", "r.json"),
        slow=("rareclass.cli.report._of_models",),
    ),
    Scene(
        "score top",
        ("score", "@m.rareclass", "@new.csv", "--out", "@s.parquet", "--top", "5", *_AGAIN),
        {"s.parquet": Path.read_bytes},
        _with_text(_take("new.csv", "m.rareclass"), "s.parquet"),
    ),
    Scene("stream", _STREAM, _STREAMED, _streamed, grows=frozenset(_STREAMED)),
    Scene(
        "stream start",
        _STREAM,
        _STREAMED,
        lambda folder: write_csv(folder / "rows.csv", messy_records(300, n_sure=300)),
        grows=frozenset(_STREAMED),
    ),
    Scene(
        "review list",
        (*_REVIEW, "--verdicts", "@filled.csv", "--list", "@next.csv", *_AGAIN),
        {"j.jsonl": journal_of, "next.csv": list_of},
        _with_text(_reviewed, "next.csv"),
        slow=("rareclass.review.reviewing._trained",),
        grows=frozenset({"j.jsonl"}),
    ),
    Scene(
        "review start",
        (*_REVIEW, "--list", "@next.csv", "--labelled", "@known.csv", *_AGAIN),
        {"j.jsonl": journal_of, "next.csv": list_of, "known.csv": Path.read_bytes},
        lambda folder: (_reviewed(folder), (folder / "j.jsonl").unlink())[0],
        grows=frozenset({"j.jsonl"}),
    ),
)  # fmt: skip
SCENES = {scene.name: scene for scene in _SCENES}


@contextmanager
def remembered(names, known):
    """Compute the results of functions, by their full names, once for all runs."""
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(name, _Once(name, known))
        yield


class _Once:
    def __init__(self, name, known):
        module, _, attribute = name.rpartition(".")
        self._real = getattr(__import__(module, fromlist=[attribute]), attribute)
        self._name, self._known = name, known

    def __call__(self, *given, **named):
        if self._name not in self._known:
            self._known[self._name] = self._real(*given, **named)
        return self._known[self._name]
