"""The loop against one that takes one row at a time, and what stops it and starts it again."""

import csv
import json

import numpy as np
import polars as pl
import pytest

from draws import quick
from faults import refused
from rareclass.encoding.streams import OnlineEncoder
from rareclass.errors import ErrorKind, InputError
from rareclass.stream import loop as loop_module
from rareclass.stream import reading
from rareclass.stream.drift import Window
from rareclass.stream.loop import Event, StreamLoop
from rareclass.stream.model import load_stream_model
from rareclass.stream.options import LEARNERS, make_learner
from rareclass.stream.reading import Interruption
from rareclass.stream.state import StreamState, claimed, load_newest, save_checkpoint
from rareclass.tables.csv_file import CsvReader
from rareclass.tables.text_reader import Batch
from stream.messy_stream import (
    COLUMNS,
    assert_same,
    messy_records,
    newest_rows,
    options_for,
    outcome,
    run,
    write_csv,
)

pytestmark = pytest.mark.usefixtures("few_first_rows")


class OneRowAtATime:
    """The loop as it is meant, in plain steps; no batches, no files."""

    def __init__(self, schema, options):
        self.schema, self.options = schema, options
        self.encoder = OnlineEncoder(schema)
        self.learner = make_learner(options.learner, options.parameters)
        self.window = Window(options.window, options.top)
        self.held = {}
        self.early = {}
        self.learned = {}  # by the order of ids, as many as are held
        self.dropped = self.rare = self.rest = 0
        self.scores = []
        self.rejected = []

    def take(self, number, cells):
        if len(cells) != len(COLUMNS):
            self.rejected.append(number + 1)
            return
        row = pl.DataFrame([cells], schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
        batch = Batch(row, np.array([number + 1]), "", [], 1, {})
        name, label = cells[0], {"0": 0.0, "1": 1.0}.get(cells[4])
        if label is not None and name in self.held:
            vector, score = self.held.pop(name)
            row = np.zeros((1, self.learner.n_features_in_))
            row[0, : len(vector)] = vector
            self.learner.test_then_train(row, [label])
            self.judge(score, label)
            self.early.pop(name, None)
            self.remember(self.learned, name, label)
            return
        good, bad = self.schema.check(batch)
        is_twice = label is None and name in self.held
        is_alone = label is not None and cells[1:4] == ["", "", ""]
        if bad or is_twice or (is_alone and name in {*self.learned, *self.early}):
            self.rejected.append(number + 1)
        if not bad and is_alone and name not in self.learned:
            self.remember(self.early, name, label)
        if bad or is_twice or is_alone:
            return
        early = self.early.pop(name, None)
        label = early if label is None else label
        X = self.encoder.encode(good).X
        if not hasattr(self.learner, "state_"):
            self.learner.start(X.shape[1], (0, 1))
        elif X.shape[1] > self.learner.n_features_in_:
            self.learner.add_features(X.shape[1] - self.learner.n_features_in_)
        (score,) = self.learner.test_then_train(X, [np.nan if label is None else label])
        if label is not None:
            self.judge(score, label)
            self.remember(self.learned, name, label)
            return
        self.scores.append((number, name, score))
        if len(self.held) == self.options.hold:
            del self.held[next(iter(self.held))]
            self.dropped += 1
        self.held[name] = (X[0], score if self.rare and self.rest else np.nan)

    def judge(self, score, label):
        if not np.isnan(score):  # by what has learned from both classes, where the row waited
            self.window.add([score], [label == 1.0])
        self.rare += label == 1.0
        self.rest += label == 0.0

    def remember(self, labels, name, label):
        labels.pop(name, None)
        labels[name] = label
        if len(labels) > self.options.hold:
            del labels[next(iter(labels))]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("learner", ["cbr", "oam"])
def test_the_loop_does_what_one_row_at_a_time_does(tmp_path, learner):
    source = write_csv(tmp_path / "rows.csv", messy_records(400, n_sure=250))
    options = options_for(source, learner)
    folder = tmp_path / "run"
    run(options, folder)
    found = outcome(folder)
    state = found["state"]
    plain = OneRowAtATime(state.encoder.schema, options)
    with source.open(newline="") as file:
        records = list(csv.reader(file))[1:]
    for number, cells in enumerate(records, 1):
        plain.take(number, cells)
    assert state.counters.rows == len(records)
    assert state.counters.rare == plain.rare
    assert state.ids.held.n_dropped == plain.dropped > 0
    held = state.ids.held.to_state()
    assert state.ids.early.to_state()["ids"] == list(plain.early) != []
    assert held["ids"] == list(plain.held)
    assert_same(state.encoder, plain.encoder)
    assert_same(state.window, plain.window)
    assert state.learner.n_features == plain.learner.n_features_in_
    assert_same(held["scores"], np.array([score for _, score in plain.held.values()]))
    assert_same(held["values"], np.concatenate([vector for vector, _ in plain.held.values()]))
    scored = found["scores"]
    assert list(zip(scored["row"], scored["id"], scored["score"], strict=True)) == plain.scores
    rejected = [json.loads(line) for line in found["rejected"].splitlines()]
    assert [row["line"] for row in rejected] == plain.rejected
    coef = load_stream_model(folder).estimator.coef_
    assert_same(coef, plain.learner.coef_)
    assert np.abs(coef).max() > 0.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("learner", ["mixture", "cbr"])
def test_a_checkpoint_calls_as_many_rows_of_its_window_as_are_rare(source, tmp_path, learner):
    run(options_for(source, learner), tmp_path)
    scores, rare = outcome(tmp_path)["state"].window.rows()
    model = load_stream_model(tmp_path)
    assert (scores > model.thresholds[0]).sum() == rare.sum() > 0
    assert model.thresholds[0] != model.estimator.offset_


@pytest.mark.parametrize("damage", ["counts", "names", "window", "target"])
def test_a_checkpoint_with_parts_of_another_kind_is_no_model(source, tmp_path, damage):
    run(options_for(source, "cbr"), tmp_path)
    newest = load_newest(tmp_path)
    if damage == "names":
        object.__setattr__(newest.state.encoder.schema, "dropped", ({"name": "a"},))
    elif damage == "window":
        newest.state.window.rows()[0][:] = np.nan
    elif damage == "target":
        object.__setattr__(newest.state.target, "rare_label", {"rare": 1})
    else:
        newest.state.drift._values[:] = np.nan
    path = save_checkpoint(tmp_path, newest.state.counters.rows + 1, newest.state)
    with refused(ErrorKind.DAMAGED_FILE, says=path.name):
        load_stream_model(path)


@pytest.mark.parametrize("label", ["never", "0"])
def test_a_stream_that_saw_one_class_is_no_model(tmp_path, label):
    source = tmp_path / "one.csv"
    source.write_text("id,x,fraud\n" + "".join(f"{k},{k % 7},0\n" for k in range(50)))
    options = options_for(source, positive=(label,))
    run(options, tmp_path / "run")
    says = f"50 rows, {50 if label == '0' else 0} of them rare"
    with refused(ErrorKind.TOO_FEW_ROWS, says=says):
        load_stream_model(tmp_path / "run")


# Three that keep what they saw in different ways; all others in the thorough run.
BUFFERS = ("mixture", "cbr", "oam")


@pytest.mark.parametrize("learner", quick(3, [*BUFFERS, *sorted({*LEARNERS} - {*BUFFERS})]))
@pytest.mark.sampled(1)
def test_nothing_depends_on_where_batches_end(source, tmp_path, monkeypatch, learner):
    options = options_for(source, learner)
    run(options, tmp_path / "large")
    monkeypatch.setattr(reading, "MOST_ROWS", 17)
    run(options, tmp_path / "small")
    assert_same(outcome(tmp_path / "small"), outcome(tmp_path / "large"))


def test_only_so_many_bad_rows_are_looked_at_for_good_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_MOST_BAD", 3)
    source = tmp_path / "bad.csv"
    source.write_text(",".join(COLUMNS) + "\n" + "1,2\n" * 5000)
    n_taken, judge = [], CsvReader._judge
    monkeypatch.setattr(CsvReader, "_judge", lambda *given: n_taken.append(1) or judge(*given))
    with pytest.raises(InputError, match=r"no row could be read.*2 cells where the header has 5"):
        run(options_for(source), tmp_path / "run")
    assert len(n_taken) < 1000


@pytest.mark.sampled(0)
def test_too_many_bad_rows_stop_it_after_a_checkpoint(source, tmp_path):
    run(options_for(source), tmp_path / "whole")
    strict = options_for(source, max_rejected=3)
    for _ in range(2):
        with refused(ErrorKind.ROWS, says="max_rejected= allows 3. The last: "):
            run(strict, tmp_path / "strict")
    assert len((tmp_path / "strict" / "rejected.jsonl").read_text().splitlines()) > 3
    run(options_for(source), tmp_path / "strict")
    assert_same(outcome(tmp_path / "strict"), outcome(tmp_path / "whole"))


def test_a_label_takes_the_row_as_it_was_when_it_came(tmp_path):
    rows = [[f"x{k}", str(k % 7), "1", "DE", str(int(k % 7 > 4))] for k in range(60)]
    late = [["a", "6", "1", "DE", ""], *rows[:30], ["a", "0", "9", "FR", "1"], *rows[30:]]
    at_once = [*rows[:30], ["a", "6", "1", "DE", "1"], *rows[30:]]
    for name, records in (("late", late), ("at_once", at_once)):
        run(options_for(write_csv(tmp_path / f"{name}.csv", records)), tmp_path / name)
    found, expected = outcome(tmp_path / "late"), outcome(tmp_path / "at_once")
    assert found["state"].counters.labelled == 61
    assert found["scores"]["id"] == ["a"]
    assert found["scores"]["score"] == [0.0]  # nothing had been learned yet: no score to judge by
    assert len(found["state"].window.rows()[0]) == 60
    assert len(expected["state"].window.rows()[0]) == 61
    assert "country=FR" not in found["state"].encoder.feature_names


@pytest.mark.parametrize("is_folder", [False, True])
def test_json_lines_whose_first_rows_have_no_label_yet(tmp_path, is_folder):
    rows = [{"id": f"r{k}", "amount": k % 7} for k in range(50)]
    late = [{"id": f"r{k}", "fraud": int(k % 7 > 4)} for k in range(50)]
    source = tmp_path / "in" / "rows.jsonl"
    source.parent.mkdir()
    pairs = zip(rows, late, strict=True)
    source.write_text("".join(json.dumps(row) + "\n" for pair in pairs for row in pair))
    options = options_for(source.parent if is_folder else source)
    run(options, tmp_path / "whole")
    found = outcome(tmp_path / "whole")
    assert found["state"].counters.labelled == 50
    assert found["rejected"] == ""
    # Left with the columns saved, and nothing learned.
    assert run(options, tmp_path / "left", leave_after=2)[-1].kind == "saved"
    run(options, tmp_path / "left")
    assert_same(outcome(tmp_path / "left"), found)


def test_rows_without_label_and_id_are_scored_only(source, tmp_path):
    options = options_for(source, id_column=None, drop=("id",))
    run(options, tmp_path)
    found = outcome(tmp_path)
    n_unlabelled = found["state"].counters.unlabelled
    assert n_unlabelled == len(found["scores"]["row"]) > 0
    assert found["scores"]["id"] == [None] * n_unlabelled
    assert len(found["state"].ids.held) == 0


@pytest.mark.thorough
def test_followed_until_a_signal_with_a_checkpoint_when_nothing_comes(
    source, tmp_path, monkeypatch
):
    monkeypatch.setattr(loop_module, "PATIENCE", 0.2)
    lines = source.read_text().splitlines(keepends=True)
    growing = tmp_path / "growing.csv"
    growing.write_text("".join(lines[:350]))
    interruption, folder, kinds = Interruption(), tmp_path / "followed", []
    with claimed(folder):
        loop = StreamLoop(options_for(growing, follow=True), folder, interruption)
        for event in loop.run():
            kinds.append((event.kind, event.rows))
            if event == Event("saved", 349):
                with growing.open("a") as file:
                    file.writelines(lines[350:])
            if event.kind == "waiting" and event.rows == len(lines) - 1:
                interruption.signal = 15
        loop.close()
    assert ("saved", 349) in kinds
    assert kinds[-1] == ("saved", len(lines) - 1)


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("owner", "name", "error"),
    [
        (reading.BoundedReader, "read", InputError("cut short", kind=ErrorKind.DAMAGED_FILE)),
        (StreamState, "_learn", KeyboardInterrupt()),  # a second signal
    ],
)
def test_what_breaks_off_goes_on_and_nothing_half_learned_is_saved(
    source, tmp_path, monkeypatch, owner, name, error
):
    options = options_for(source)
    run(options, tmp_path / "whole")
    honest, calls = getattr(owner, name), []

    def breaks_off(self, *given):
        done = honest(self, *given)
        calls.append(1)
        if len(calls) == 8:
            raise error
        return done

    monkeypatch.setattr(owner, name, breaks_off)
    with pytest.raises(type(error)):
        run(options, tmp_path / "broken")
    rows = newest_rows(tmp_path / "broken")
    assert (rows % options.every != 0) == isinstance(error, InputError)
    assert run(options, tmp_path / "broken")[0] == Event("went on", rows)
    assert_same(outcome(tmp_path / "broken"), outcome(tmp_path / "whole"))


def test_scores_that_are_not_finite_end_the_stream(source, tmp_path, monkeypatch):
    options = options_for(source)
    model = type(make_learner("oam", options.parameters))
    honest = model.test_then_train

    def runs_off(self, X, y):
        scores = honest(self, X, y)
        scores[-1] = np.inf if self.state_.buffers.seen.sum() > 300 else scores[-1]
        return scores

    monkeypatch.setattr(model, "test_then_train", runs_off)
    with refused(ErrorKind.NOT_FINITE):
        run(options, tmp_path)
    loaded = load_newest(tmp_path)
    assert np.isfinite(loaded.state.window.rows()[0]).all()
