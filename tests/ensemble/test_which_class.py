"""Several rare classes: which of them a row is of."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from ensemble.quick_members import MeanDifference
from rareclass import RareClassifier
from rareclass.decide.threshold import called_class
from rareclass.ensemble import which_class
from rareclass.ensemble.members.trees import ExtraTrees
from rareclass.ensemble.training_rows import FitInput, read_training_rows
from rareclass.ensemble.which_class import shares
from rareclass.metrics import roc_auc
from rareclass.model.facts import RareClassScores, ScoredRows
from rareclass.model.targets import RareClassFacts
from rareclass.model.threshold import rules_in_step

MEMBERS = [MeanDifference(), ExtraTrees(trees=3)]


def table(n=400, n_classes=3, seed=0, apart=4.0):
    rng = np.random.default_rng(seed)
    label = np.zeros(n, dtype=int)
    label[: 20 * n_classes] = np.repeat(np.arange(1, n_classes + 1), 20)
    X = rng.normal(size=(n, n_classes + 1))
    for k in range(1, n_classes + 1):
        X[label == k, k] += apart
    order = rng.permutation(n)
    names = np.array(["rest", *(f"class {k}" for k in range(1, n_classes + 1))])
    return pd.DataFrame(X[order]).add_prefix("x"), names[label[order]]


def quick(**more):
    return RareClassifier(**{"members": MEMBERS, "cv": 3, "n_jobs": 1, "random_state": 0} | more)


X, Y = table()
NEW, OF_NEW = table(seed=1)
FOLDS = list(PredefinedSplit(np.arange(len(Y)) % 3).split())


@cache
def fitted(is_any_rare=False):
    """The model of these rows, or of their rare rows whatever the class; not to be changed."""
    return quick(cv=FOLDS).fit(X, Y != "rest" if is_any_rare else Y)


def test_classes_are_told_apart():
    assert fitted().pos_label_ == ("class 1", "class 2", "class 3")
    assert fitted().classes_.tolist() == ["class 1", "class 2", "class 3", "rest"]
    rare = OF_NEW != "rest"
    found = fitted().class_probabilities(NEW)[rare]
    assert (np.array(fitted().pos_label_)[found.argmax(axis=1)] == OF_NEW[rare]).mean() > 0.9
    assert (fitted().predict(NEW) == OF_NEW).mean() > 0.9
    assert fitted().score(NEW, OF_NEW) > 0.9


def test_probabilities_are_those_of_any_rare_class_divided():
    """P(k) = P(rare) P(k | rare), with P(rare) of the score alone."""
    scores, which = fitted().score_and_classes(NEW)
    np.testing.assert_array_equal(scores, fitted().score_samples(NEW))
    rare, found = fitted().calibration_(scores), fitted().predict_proba(NEW)
    np.testing.assert_allclose(found[:, :3], rare[:, None] * which, rtol=1e-12)
    np.testing.assert_allclose(found[:, 3], 1.0 - rare, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_the_score_is_that_of_two_classes():
    """The classes are learned after the ranking, and change nothing of it."""
    any_rare = fitted(is_any_rare=True)
    np.testing.assert_array_equal(fitted().score_samples(NEW), any_rare.score_samples(NEW))
    assert fitted().offset_ == any_rare.offset_
    assert any_rare.which_class_ is None
    assert not any_rare.has_several
    assert any_rare.predict_proba(NEW).shape == (len(NEW), 2)
    with pytest.raises(AttributeError):
        any_rare.class_probabilities(NEW)


def test_rows_are_called_a_class_by_the_threshold_of_the_class_and_the_greatest_decision():
    probability, decision = fitted().predict_proba(NEW)[:, :3], fitted().decision_function(NEW)
    called, found = called_class(probability, fitted().class_offsets_), fitted().predict(NEW)
    np.testing.assert_array_equal(found, np.array([*fitted().pos_label_, "rest"])[called])
    assert decision.shape == (len(NEW), 4)
    np.testing.assert_array_equal(fitted().classes_[decision.argmax(axis=1)], found)
    stated = pickle.loads(pickle.dumps(fitted())).set_prevalence(0.3)
    np.testing.assert_array_equal(stated.predict(NEW), found)
    np.testing.assert_array_equal(stated.decision_function(NEW), decision)


def test_as_many_held_out_rows_are_called_a_class_as_score_above_the_threshold():
    """With a class of fewer rows, whose threshold is lower; the command line has the same."""
    y = Y.copy()
    y[np.flatnonzero(Y == "class 3")[10:]] = "rest"
    model = quick().fit(X, y)
    held_out, n_rows = model.held_out_, np.array([20, 20, 10])
    probability = model.calibration_(held_out["score"])[:, None] * held_out["class_probability"]
    called = called_class(probability, model.class_offsets_)
    assert (called >= 0).sum() == (held_out["score"] > model.offset_).sum()
    ratio = model.class_offsets_ / n_rows**0.75
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)
    facts = RareClassFacts(
        "y", "any", "rest", rare_labels=model.pos_label_, class_counts=tuple(n_rows.tolist())
    )
    classes = RareClassScores(held_out["which"].astype(np.int16), probability)
    rows = ScoredRows(held_out["rare"].astype(np.int16), held_out["score"], None, classes=classes)
    rules = rules_in_step(facts, rows, model.offset_, "score")
    assert [rules[name].threshold for name in model.pos_label_] == model.class_offsets_.tolist()


def test_held_out_rows_know_their_class_by_others():
    """Labels by chance cannot be told from rows that were held out."""
    rng = np.random.default_rng(3)
    y = np.where(Y == "rest", "rest", rng.choice(["a", "b"], len(Y)))
    held_out = quick(members=[ExtraTrees(trees=10)]).fit(X, y).held_out_
    rare = held_out["which"] >= 0
    chance = roc_auc(held_out["which"][rare] == 0, held_out["class_probability"][rare, 0])
    assert 0.2 < chance < 0.8
    told = fitted().held_out_
    rows = told["which"] >= 0
    assert (told["class_probability"][rows].argmax(axis=1) == told["which"][rows]).mean() > 0.9
    labels = np.array([*fitted().pos_label_, "rest"])
    np.testing.assert_array_equal(labels[told["which"]], Y[told["row"]])


def test_each_class_is_in_every_fold():
    rows, _ = read_training_rows(FitInput(X, Y), 5, None, 0)
    for k in range(3):
        assert np.bincount(rows.fold[rows.which == k], minlength=5).tolist() == [4] * 5


@pytest.mark.filterwarnings("ignore:rare classes of fewer than 5 rows")
def test_a_class_of_one_row_has_its_share():
    y = Y.copy()
    y[np.flatnonzero(Y == "class 3")[1:]] = "rest"
    model = quick().fit(X, y)
    found = model.class_probabilities(NEW)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert model.which_class_.rankings[2].members == []
    assert model.which_class_.rankings[2].share == pytest.approx(1 / 41)


def test_of_two_classes_the_second_is_the_rest_of_the_first():
    X, y = table(n_classes=2)
    model = quick(members=MEMBERS[:1]).fit(X, y)
    assert len(model.which_class_.rankings) == 1
    found = model.class_probabilities(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert (found[y == "class 2"].argmax(axis=1) == 1).mean() > 0.9


def test_it_is_the_same_after_pickling_and_in_parts_and_again_and_on_dask():
    wanted = fitted().predict_proba(NEW)
    pickled = pickle.loads(pickle.dumps(fitted()))
    np.testing.assert_array_equal(pickled.predict_proba(NEW), wanted)
    pieces = [fitted().predict_proba(NEW.iloc[k : k + 37]) for k in range(0, len(NEW), 37)]
    np.testing.assert_allclose(np.vstack(pieces), wanted, rtol=1e-9)
    again, new = clone(fitted()).fit(X.to_numpy(), Y), NEW.to_numpy()
    np.testing.assert_array_equal(again.predict_proba(new), wanted)
    dask = pytest.importorskip("dask.array")
    for method in (again.predict_proba, again.decision_function):
        lazy = method(dask.from_array(new, chunks=(150, -1)))
        assert lazy.shape == (len(NEW), 4)  # a column for each class
        np.testing.assert_allclose(lazy.compute(), method(new))


SIZES = [
    pytest.param((3000, 1800, 150), 1000, id="small"),
    pytest.param((40_000, 24_000, 2_000), 20_000, id="as it is", marks=pytest.mark.thorough),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(("sizes", "most"), SIZES)
def test_classes_drawn_from_very_many_rows_keep_their_shares(sizes, most, is_weighted, monkeypatch):
    def draw(seed):
        rng = np.random.default_rng(seed)
        label = np.repeat([0, 1, 2], sizes)
        X = rng.normal(size=(len(label), 3))
        X[label > 0, 0] += 2.0
        X[label == 2, 1] += 1.5
        weight = rng.gamma(2.0, size=len(label)) * np.where(label == 2, 3.0, 1.0)
        return X, label, weight if is_weighted else np.ones(len(label))

    monkeypatch.setattr(which_class, "_MOST_ROWS", most)
    X, label, weight = draw(seed=0)
    model = quick(pos_label=(1, 2)).fit(X, label, weight if is_weighted else None)
    X, label, weight = draw(seed=1)
    of_class = [weight[label == k].sum() for k in (1, 2)]
    np.testing.assert_allclose(weight @ model.predict_proba(X)[:, 1:] / of_class, 1.0, atol=0.15)


@given(
    st.lists(st.integers(-1, 2), min_size=1, max_size=40),
    st.integers(3, 30),
    st.none() | st.integers(0, 9),
)
def test_rows_drawn_of_a_class_weigh_as_much_as_all_of_it(of_row, most, weights):
    of_row = np.array(of_row)
    weight = None if weights is None else np.random.default_rng(weights).gamma(2.0, size=40)
    weight = None if weight is None else weight[: len(of_row)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(which_class, "_MOST_ROWS", most)
        found = which_class._learned_from(of_row, weight, 3, seed=0)
    every, drawn = (np.ones(len(x)) if w is None else w for x, w in ((of_row, weight), found))
    assert (np.diff(found[0]) > 0).all()
    for k in range(3):
        assert drawn[of_row[found[0]] == k].sum() == pytest.approx(every[of_row == k].sum())
        if len(found[0]) < (of_row >= 0).sum():
            assert (of_row[found[0]] == k).sum() == min((of_row == k).sum(), most // 3)


@pytest.mark.parametrize("y", [["x"] * 3, ["rest"] * 3, ["class 1"] * 3, ["class 1", None, "rest"]])
def test_score_refuses_labels_that_it_cannot_rank(y):
    with pytest.raises(ValueError, match=r"row|only"):
        fitted().score(NEW.iloc[:3], y)


@given(
    st.integers(2, 6).flatmap(
        lambda n: st.lists(st.lists(st.floats(0, 1), min_size=n, max_size=n), min_size=1)
    )
)
def test_shares_sum_to_one_and_keep_the_order(rows):
    probability = np.array(rows)
    found = shares(list(probability.T), probability.shape[1])
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert (found > 0.0).all()
    for before, after in zip(np.maximum(probability, 1e-9), found, strict=True):
        order = np.argsort(before, kind="stable")
        assert (np.diff(after[order]) >= 0.0).all()
        assert rankdata(after, "max").max() == len(after)
