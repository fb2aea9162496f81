"""Online learners in River and in other processes, and labels that come before their rows."""

import csv
import json
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from draws import quick
from rareclass.online import CBR, OnlineLogistic, OnlineMixture, as_river
from rareclass.stream.loop import StreamLoop
from rareclass.stream.options import StreamOptions, parse_parameters
from rareclass.stream.reading import Interruption
from rareclass.stream.state import claimed, load_newest
from registered import ESTIMATORS, MORE_ESTIMATORS, ONLINE

SMALL = OnlineMixture([("linear", OnlineLogistic()), ("ranks", CBR())], random_state=0)
X, Y = make_classification(
    160, 6, n_informative=3, n_redundant=0, weights=[0.85], class_sep=1.5, random_state=0
)
WEIGHT = np.random.default_rng(0).choice([1.0, 2.0], len(Y))
for each in (X, Y, WEIGHT):
    each.flags.writeable = False
ANSWERS = ("predict", "decision_function", "score_samples", "predict_proba", "transform")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", [ONLINE["mixture"], SMALL], ids=["default", "small"])
def test_a_mixture_scores_as_its_own_class_does(model):
    names = [f"f{k}" for k in range(X.shape[1])]
    rows = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    plain = clone(model).set_params(random_state=3)
    river = as_river(plain, classes=(0, 1))
    plain.start(X.shape[1], [0, 1])
    assert river.score_one(rows[0]) == 0.0
    for row, x, y in zip(X, rows, Y.tolist(), strict=True):
        river.learn_one(x, y)
        plain.partial_fit(row[None], [y])
        assert river.score_one(x) == pytest.approx(plain.score_samples(row[None])[0], abs=1e-10)
    assert [river.predict_one(x) for x in rows] == plain.predict(X).tolist()
    with pytest.raises(AttributeError, match="no coef_"):
        _ = river.weights


def memory_mapped(model, folder):
    joblib.dump(model, folder / "model")
    return joblib.load(folder / "model", mmap_mode="r")


def with_foreign_buffers(model, folder):
    buffers = []
    content = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(content, buffers=[bytes(each.raw()) for each in buffers])


EVERY = quick(len(ESTIMATORS), [*ESTIMATORS, *MORE_ESTIMATORS])


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("sent", [memory_mapped, with_foreign_buffers])
@pytest.mark.parametrize("model", EVERY, ids=lambda model: " ".join(repr(model).split())[:50])
def test_models_and_rows_that_are_read_only(model, sent, tmp_path):
    fitted = clone(model).fit(X, Y)
    if sent is memory_mapped:
        clone(model).fit(X, Y, sample_weight=WEIGHT)
    other = sent(fitted, tmp_path)
    for name in ANSWERS:
        if hasattr(fitted, name):
            np.testing.assert_array_equal(getattr(other, name)(X), getattr(fitted, name)(X))
    assert other.score(X, Y) == fitted.score(X, Y)
    if hasattr(model, "partial_fit"):
        for each in (fitted, other):
            each.partial_fit(X[:40], Y[:40], sample_weight=WEIGHT[:40])
        np.testing.assert_array_equal(other.score_samples(X), fitted.score_samples(X))


@pytest.mark.parametrize("model", ONLINE.values(), ids=ONLINE)
def test_every_way_to_go_on_from_read_only_state(model, tmp_path):
    fitted = clone(model).fit(X, Y)
    wide = np.hstack([X, X[:, :2]])
    for sent in (memory_mapped, with_foreign_buffers):
        other, plain = sent(fitted, tmp_path), pickle.loads(pickle.dumps(fitted))
        for each in (other, plain):
            each.reset_steps().add_features(2)
        np.testing.assert_array_equal(
            other.test_then_train(wide, Y), plain.test_then_train(wide, Y)
        )


HEAD = ["id", "amount", "fraud"]


def row(k, label=""):
    return f"r{k}", f"{(k * 37 % 100) / 10 + 5 * (k % 9 == 4):.1f}", label


def label_of(k):
    return str(int(k % 9 == 4))


def learned(folder, records):
    source = folder / "rows.csv"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows([HEAD, *records])
    options = StreamOptions(
        str(source), "fraud", learner="cbr", parameters=parse_parameters("cbr", []), id_column="id",
        window=100, top=5, hold=3, every=500, report_every=50,
    )  # fmt: skip
    with claimed(folder / "run"):
        loop = StreamLoop(options, folder / "run", Interruption())
        list(loop.run())
        report = loop.report()
        loop.close()
    loaded = load_newest(folder / "run")
    rejected = (folder / "run" / "rejected.jsonl").read_text().splitlines()
    return {
        "labelled": loaded.state.counters.labelled, "early": report.early_labels,
        "rejected": [json.loads(line)["reason"] for line in rejected],
        "dropped": report.early_labels_dropped,
    }  # fmt: skip


START = [row(k, label_of(k)) for k in range(20)]
ONE, EARLY = ("r30", "", "1"), [(f"r{k}", "", "0") for k in range(30, 34)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("records", "labelled", "early", "rejected"),
    [
        pytest.param([ONE], 20, 1, [], id="never its row"),
        pytest.param([ONE, row(30)], 21, 0, [], id="then its row"),
        pytest.param([ONE, row(30, "1")], 21, 0, [], id="and with its row"),
        pytest.param([ONE, row(30, "0")], 21, 0, [], id="its row says otherwise"),
        pytest.param([ONE, ONE, row(30)], 21, 0, ["held already"], id="twice"),
        pytest.param([ONE, ("r30", "", "0"), row(30)], 21, 0, ["held already"], id="changed"),
        pytest.param([("r18", "", "0")], 20, 0, ["has its label already"], id="learned before"),
        pytest.param([("r18", "", "1")], 20, 0, ["has its label already"], id="and changed"),
        pytest.param([("", "", "1")], 20, 0, ["its id is empty"], id="no id"),
        pytest.param([ONE, row(30), row(30)], 21, 0, [], id="then a row twice"),
        pytest.param([row(30), ONE], 21, 0, [], id="after its row"),
        pytest.param([*map(row, range(30, 34)), ONE], 20, 1, [], id="row dropped"),
        pytest.param([*EARLY, row(30), row(33)], 21, 2, [], id="too many labels"),
        pytest.param([("r30", "", ""), ONE], 21, 0, [], id="an empty row"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("restarted", [False, True])
def test_labels_and_rows_in_any_order(records, labelled, early, rejected, restarted, tmp_path):
    """With `restarted` the process ends before every record and another one goes on."""
    if restarted:
        for n in range(len(records)):
            learned(tmp_path, [*START, *records[:n]])
    found = learned(tmp_path, [*START, *records])
    assert (found["labelled"], found["early"]) == (labelled, early)
    assert len(found["rejected"]) == len(rejected)
    assert all(words in reason for words, reason in zip(rejected, found["rejected"], strict=True))
    assert found["dropped"] == int(len(records) == 6)
