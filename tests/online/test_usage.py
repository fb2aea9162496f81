"""What someone does who knows scikit-learn, pandas, polars or River, and what they are told."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from rareclass.online import (
    CBR,
    OAM,
    OPAUC,
    AdaOAM,
    OnlineLogistic,
    OnlineMixture,
    UniExp,
    as_river,
)


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.2).astype(int)
    return rng.normal(size=(n, 3)) + 1.5 * y[:, None], y


X, Y = rows()
NAMES = ["amount", "age", "visits"]


def begun(learner, classes=(0, 1), n_features=3):
    return clone(learner).start(n_features, list(classes))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_the_first_table_of_a_stream_names_the_columns(kind):
    def table(names):
        return kind(dict(zip(names, X.T, strict=True)))

    model = begun(CBR())
    model.score_samples(table(["x", "y", "z"]))  # scoring settles nothing; warnings are errors
    model.test_then_train(table(NAMES), Y)
    assert list(model.feature_names_in_) == NAMES
    for other in (["amount", "visits", "age"], ["amount", "age", "trips"]):
        with pytest.raises(ValueError, match="feature names should match"):
            model.partial_fit(table(other), Y)
        with pytest.raises(ValueError, match="feature names should match"):
            model.test_then_train(table(other), Y)


def test_new_columns_come_after_those_that_are_named():
    model = CBR().partial_fit(pd.DataFrame(X, columns=NAMES), Y, classes=[0, 1]).add_features(1)
    wide = pd.DataFrame(np.pad(X, ((0, 0), (0, 1))), columns=[*NAMES, "land"])
    with pytest.raises(ValueError, match=r"first columns are \['land', .* New columns go at the"):
        model.partial_fit(wide[["land", *NAMES]], Y)
    model.partial_fit(wide, Y).test_then_train(wide, Y)
    assert list(model.feature_names_in_) == [*NAMES, "land"]


def test_places_for_features():
    model = begun(CBR()).partial_fit(X, Y)
    before = model.coef_.copy()
    np.testing.assert_array_equal(model.add_features(0).coef_, before)
    for n in (-1, 1.5, "a", True):
        with pytest.raises(ValueError, match=r"^n=.* must be a whole number, 0 or above\.$"):
            model.add_features(n)
        with pytest.raises(ValueError, match=r"^n_features=.* must be a whole number, 1 or above"):
            CBR().start(n, [0, 1])
    with pytest.raises(ValueError, match="n_features=0"):
        CBR().start(0, [0, 1])
    assert model.n_features_in_ == 3


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([0, b"a"], "the label of row 1 is a bytes"),
        ([0, 1.5], "1.5 in y is a measurement"),
        ([None, 1], "one of them is missing"),
        ([0, np.nan], "one of them is missing"),
        ("ab", "must be two labels, e.g."),
        (None, "classes=None must be two labels"),
        ([1], "there are 1"),
        ({0, 1, 2}, "there are 3"),
    ],
)
def test_classes_that_will_not_do(classes, message):
    with pytest.raises(ValueError, match=message):
        CBR().start(3, classes)
    with pytest.raises(ValueError, match=message):
        as_river(CBR(), classes=classes)
    if classes is not None:
        with pytest.raises(ValueError, match=message):
            CBR().partial_fit(X, Y, classes=classes)
        with pytest.raises(ValueError, match=message):
            begun(CBR()).partial_fit(X, Y, classes=classes)


def test_classes_in_a_set_and_a_rare_label_that_equals_one():
    assert CBR().start(3, {"no", "yes"}).pos_label_ == "yes"
    assert CBR(pos_label=1).start(3, [False, True]).pos_label_.dtype == bool


OUT_OF_RANGE = [
    (CBR(C=0.0), "C=0.0 must be"),
    (CBR(C=np.inf), "C=inf must be"),
    (CBR(eta=0.5), "eta=0.5 must be above 0.5"),
    (CBR(buffer_size=0), "buffer_size=0 must be"),
    (CBR(policy="lifo"), "policy='lifo' is not one of 'fifo', 'reservoir'"),
    (CBR(class_weight="even"), "class_weight='even' is not one of None, 'balanced'"),
    (CBR(covariance="low"), "covariance='low' is not one of 'full', 'diagonal'"),
    (CBR(diagonal_step="long"), "diagonal_step='long' is not one of 'exact', 'printed'"),
    (CBR(n_epochs=0), "n_epochs=0 must be"),
    (OAM(C=0), "C=0 must be a finite number above 0"),
    (OAM(buffer_size=0), "buffer_size=0"),
    (OAM(policy="lifo"), "policy='lifo'"),
    (UniExp(eta=-1), "eta=-1"),
    (UniExp(n_epochs=1.5), r"n_epochs=1\.5"),
    (OnlineLogistic(class_weight="even"), "class_weight='even' is not one of None, 'balanced'"),
    (OnlineLogistic(steps="long"), "steps='long' is not one of 'adagrad', 'newton'"),
    (OPAUC(eta=0.0), "eta=0.0"),
    (OPAUC(lam=-1.0), "lam=-1.0"),
    (OPAUC(rank=0), "rank=0"),
    (OPAUC(rank=2.5), "rank=2.5"),
    (AdaOAM(delta=0.0), "delta=0.0"),
    (AdaOAM(eta=np.inf), "eta=inf"),
    (OnlineMixture(members=[]), r"members=\[\] has none"),
    (OnlineMixture([("cubes", OAM())]), "map='cubes' is not one of 'linear'"),
    (OnlineMixture([("linear", OnlineMixture())]), "is not an online learner"),
    (OnlineMixture([("linear", OAM(C=-1))]), "C=-1"),
    (OnlineMixture([("linear", OAM(n_epochs=0))]), "n_epochs=0"),
    (OnlineMixture(share=1.0), "share=1.0"),
    (OnlineMixture(n_recent=0), "n_recent=0"),
    (OnlineMixture(half_life=0), "half_life=0"),
]


@pytest.mark.parametrize(("learner", "message"), OUT_OF_RANGE)
def test_parameters_out_of_range_are_named(learner, message):
    for begin in (
        lambda: clone(learner).start(3, [0, 1]),
        lambda: clone(learner).fit(X, Y),
        lambda: clone(learner).partial_fit(X, Y, classes=[0, 1]),
    ):
        with pytest.raises(ValueError, match=message):
            begin()


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(["ok", None, "fraud"], dtype="string"),
        pd.Series(["ok", None, "fraud"], dtype=object),
        pd.Series(["ok", None, "fraud"], dtype="category"),
        pl.Series(["ok", None, "fraud"]),
        ["ok", None, "fraud"],
        ["ok", float("nan"), "fraud"],
    ],
    ids=["string", "object", "category", "polars", "list", "nan"],
)
def test_labels_that_are_missing_in_every_form(y):
    model, wanted = (begun(CBR(pos_label="fraud"), ["ok", "fraud"]) for _ in range(2))
    assert len(model.test_then_train(X[:3], y)) == 3
    wanted.partial_fit(X[[0, 2]], ["ok", "fraud"])
    np.testing.assert_array_equal(model.coef_, wanted.coef_)
    assert model.coef_.any()
    with pytest.raises(ValueError, match=r"no label at all: row 1\."):
        model.partial_fit(X[:3], y)
    with pytest.raises(ValueError, match="no label at all: row 1"):
        model.score(X[:3], y)


def test_labels_are_named_as_the_user_writes_them():
    model = begun(CBR()).partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"row 0: label '0' is not among the classes \[0, 1\]"):
        model.partial_fit(X[:2], ["0", "1"])
    with pytest.raises(ValueError, match="row 2: label 5 is not among"):
        model.test_then_train(X[:3], [None, 1, 5])
    with pytest.raises(ValueError, match=r"label '0' is not among"):
        model.score(X[:2], ["0", "1"])
    for begin, given in ((CBR(pos_label=7).fit, (X, Y)), (CBR(pos_label=7).start, (3, [0, 1]))):
        with pytest.raises(ValueError, match=r"pos_label=7 is not among the labels \[0, 1\]"):
            begin(*given)
    with pytest.raises(ValueError, match="one class only: 0"):
        CBR().fit(X, np.zeros(300, int))
    with pytest.raises(ValueError, match=r"None: pass a label a row .* score_samples"):
        model.test_then_train(X, None)


def test_score_of_one_class_says_which():
    model = CBR().fit(X, np.where(Y == 1, "fraud", "ok"))
    with pytest.raises(ValueError, match=r"the class 'ok' only: .* \['fraud', 'ok'\]"):
        model.score(X[:2], ["ok", "ok"])


def test_weights_that_stand_for_too_many_rows():
    model = begun(CBR())
    with pytest.raises(ValueError, match=r"1,000,000,000,001 rows take .* its mean"):
        model.partial_fit(X[:2], [0, 1], sample_weight=[1e12, 1.0])
    assert not model.coef_.any()
