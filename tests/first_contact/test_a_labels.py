"""Labels of any type come back as they were; which of two is rare is decided by rows."""

import warnings
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from faults import refused
from rareclass import MIBC, RACH, OrdinalRankRC, RankRC, RareClassifier, StochasticRankRC
from rareclass.decide import CalibratedRanker, DecisionClassifier, ThresholdRule
from rareclass.ensemble.members.machines import LogisticOnQuantiles
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind, finding_of
from rareclass.labels.partial_labels import read_partial_labels
from rareclass.labels.two_classes import read_labels
from rareclass.metrics import roc_auc
from rareclass.online import CBR

N = 120
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 2))
RARE = X[:, 0] + 0.5 * RANDOM.normal(size=N) > 1.2
MODELS = [
    RankRC(),
    MIBC(),
    StochasticRankRC(random_state=0),
    CBR(random_state=0),
    RareClassifier(members=[LogisticOnQuantiles(strengths=(0.1,))], cv=2, n_jobs=1),
]


def objects(rare, rest):
    labels = np.empty(N, object)
    labels[:] = [rare if each else rest for each in RARE]
    return labels


LABELS = {
    "truth values as objects": (lambda: pd.Series(RARE).astype(object), True),
    "truth values of NumPy as objects": (lambda: objects(np.True_, np.False_), True),
    "floats as objects": (lambda: objects(1.0, 0.0), 1.0),
    "decimals": (lambda: objects(Decimal("1.00"), Decimal("0.00")), 1.0),
    "text beside numbers": (lambda: objects("fraud", 0), "fraud"),
    "a number beside text": (lambda: objects(7, "none"), 7),
    "text": (lambda: objects("yes", "no"), "yes"),
    "a pandas category": (lambda: pd.Series(objects("yes", "no")).astype("category"), "yes"),
    "text of Arrow": (lambda: pd.Series(objects("yes", "no")).astype("string[pyarrow]"), "yes"),
    "nullable numbers": (lambda: pd.Series(RARE.astype(int)).astype("Int64"), 1),
    "nullable truth values": (lambda: pd.Series(RARE).astype("boolean"), True),
    "polars": (lambda: pl.Series(RARE), True),
    "polars text": (lambda: pl.Series(objects("yes", "no").tolist()), "yes"),
    "a column of Arrow": (lambda: pa.array(RARE.astype(int)), 1),
    "a list": (lambda: objects("b", "a").tolist(), "b"),
    "marks that a file leaves empty": (lambda: objects("nan", "?"), "nan"),
    "dates": (lambda: objects(date(2020, 1, 1), date(2021, 1, 1)), date(2020, 1, 1)),
    "moments": (lambda: objects(pd.Timestamp(0), datetime(2021, 1, 1)), datetime(1970, 1, 1)),
    "moments of pandas": (
        lambda: pd.to_datetime(pd.Series(objects("2020-01-01", "2021-01-01"))),
        datetime(2020, 1, 1),
    ),
    "dates of polars": (
        lambda: pl.Series(objects(date(2020, 1, 1), date(2021, 1, 1)).tolist()),
        date(2020, 1, 1),
    ),
    "numbers beyond 64 bits": (lambda: objects(2**70, 1), 2**70),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("model", MODELS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("name", list(LABELS))
def test_two_labels_of_any_type(name, model):
    labels, rare = LABELS[name][0](), LABELS[name][1]
    fitted = clone(model).fit(X, labels)
    assert fitted.pos_label_ == rare
    assert len(fitted.classes_) == 2
    expected = clone(model).fit(X, RARE)
    sign = 1.0 if fitted.pos_label_ == fitted.classes_[1] else -1.0
    np.testing.assert_allclose(fitted.score_samples(X), expected.score_samples(X), rtol=1e-9)
    called = fitted.predict(X)
    np.testing.assert_array_equal(called == rare, sign * fitted.decision_function(X) > 0)
    assert fitted.score(X, labels) == pytest.approx(expected.score(X, RARE))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", list(LABELS))
def test_a_stream_and_a_ball_learn_two_labels_of_any_type(name):
    labels, rare = LABELS[name][0](), LABELS[name][1]
    first = np.asarray(labels)
    stream = CBR(random_state=0).partial_fit(
        X, labels, classes=[first[np.argmin(RARE)], first[np.argmax(RARE)]]
    )
    expected = CBR(pos_label=True, random_state=0).partial_fit(X, RARE, classes=[False, True])
    assert rare in stream.classes_.tolist()
    sign = 1.0 if stream.pos_label_ == rare else -1.0
    if sign > 0:
        np.testing.assert_array_equal(stream.score_samples(X), expected.score_samples(X))
    ball = RACH().fit(X, labels)
    assert ball.pos_label_ == rare
    np.testing.assert_array_equal(ball.score_samples(X), RACH().fit(X, RARE).score_samples(X))


class Grade(Enum):
    LOW = 1
    HIGH = 2


NO_LABELS = {
    "lists": ([1], [2]),
    "tuples": ((1, 2), (2, 3)),
    "bytes": (b"yes", b"no"),
    "UUIDs": (UUID(int=1), UUID(int=2)),
    "an Enum": (Grade.LOW, Grade.HIGH),
    "periods": (pd.Period("2020-01"), pd.Period("2021-01")),
    "intervals": (pd.Interval(0, 1), pd.Interval(1, 2)),
    "times of day": (time(1), time(2)),
    "durations": (timedelta(1), timedelta(2)),
    "moments of a zone": (datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)),
    "complex numbers": (1j, 2j),
    "a date beside a number": (date(2020, 1, 1), 0),
    "a date beside a word": (date(2020, 1, 1), "no"),
}
OTHERS = [
    RACH(),
    OrdinalRankRC(),
    CalibratedRanker(RankRC(), cv=2),
    DecisionClassifier(RankRC(), ThresholdRule.as_many_as_rare(), cv=2),
]


@pytest.mark.parametrize("model", [*MODELS, *OTHERS], ids=lambda each: type(each).__name__)
def test_what_is_no_label_is_refused_by_its_type_and_learned_as_words(model):
    for k, (rare, rest) in enumerate(NO_LABELS.values()):
        labels = objects(rare, rest)
        labels[40] = None if isinstance(model, RACH) else rest
        fitted = clone(model)
        with refused(ErrorKind.LABELS) as caught:
            fitted.fit(X, labels)
        assert f"is a {type(labels[caught.value.row]).__name__}" in str(caught.value)
        if isinstance(model, CBR):
            with refused(ErrorKind.LABELS):
                fitted.partial_fit(X, labels, classes=[0, 1])
        # All read words by one rule, which one of them is asked about words of every type.
        if not isinstance(model, OrdinalRankRC) and (k == 0 or isinstance(model, RankRC)):
            words = [str(label) for label in labels]
            assert str(rare) in clone(model).fit(X, words).classes_


def test_labels_that_are_times_of_a_zone_are_refused_from_every_column():
    times = objects(*NO_LABELS["moments of a zone"]).tolist()
    columns = (pl.Series(times), pa.array(times), pa.chunked_array([times]), pd.Series(times))
    for column in columns:
        with refused(ErrorKind.LABELS, row=0, says="with a time zone"):
            RankRC().fit(X, column)


@pytest.mark.parametrize("model", [*MODELS, *OTHERS[1:]], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("invisible", ["", "  ", "\u200b", "\u00ad\t"])
def test_a_text_without_a_visible_character_is_no_label(model, invisible):
    labels = objects("no", "yes")
    labels[17] = invisible
    for y in (labels, labels.tolist(), pd.Series(labels), np.array(labels.tolist())):
        with refused(ErrorKind.LABELS, row=17):
            clone(model).fit(X, y)
    assert read_partial_labels(labels, None, None, N).unlabelled().tolist() == [17]


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("labels", [("yes", "no"), (1, 0), (True, False), ("fraud", 0)])
def test_a_row_without_a_label_is_named(labels, nothing):
    y = objects(*labels)
    y[17] = nothing
    with pytest.raises(ValueError, match="row 17"):
        RankRC().fit(X, y)


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA, pd.NaT])
def test_a_measure_names_the_row_without_a_label(nothing):
    y = objects(1, 0)
    scores = X[:, 0]
    assert roc_auc(y, scores) == roc_auc(RARE, scores)
    assert roc_auc(objects(True, False), scores) == roc_auc(RARE, scores)
    y[17] = nothing
    with refused(ErrorKind.CELL, row=17):
        roc_auc(y, scores)


RNG = np.random.default_rng(0)
Y = np.repeat([1, 0], [40, 360])
ROWS = RNG.normal(size=(400, 3)) + Y[:, None]
COSTS = np.where(Y == 1, 50.0, 1.0)


def disagreements(caught):
    found = [finding_of(each.message) for each in caught]
    return [each for each in found if each and each.kind is FindingKind.RARE_BY_ROWS]


@pytest.mark.parametrize(
    "estimator",
    [
        RankRC(),
        MIBC(),
        StochasticRankRC(random_state=0),
        RareClassifier(members=["mibc"], verbose=False),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("flip", [False, True])
def test_costs_of_errors_do_not_turn_the_rare_class_round(estimator, flip):
    y = 1 - Y if flip else Y
    with pytest.warns(UserWarning, match="fewer rows") as caught:
        estimator.fit(ROWS, y, sample_weight=COSTS)
    assert len(disagreements(caught)) == 1
    assert estimator.pos_label_ == 1 - flip
    assert roc_auc(Y == 1, estimator.score_samples(ROWS)) > 0.85


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("label", "weight"),
    [(None, None), (None, np.ones(400)), (None, 1.0 + 8.0 * Y), (1, COSTS), (0, COSTS)],
)
def test_nothing_is_said_where_rows_and_weights_agree_or_the_label_is_named(label, weight):
    fitted = RankRC(pos_label=label).fit(ROWS, Y, sample_weight=weight)
    assert fitted.pos_label_ == (1 if label is None else label)


def test_balls_go_by_rows_too():
    partial = np.where(RNG.random(400) < 0.5, Y, -1)
    with pytest.warns(UserWarning, match="fewer rows") as caught:
        labels = read_partial_labels(partial, COSTS, None, 400)
    assert labels.rare == (1,)
    assert disagreements(caught)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.5, 1.0, 7.0])), min_size=2))
def test_the_rare_label_has_fewest_rows_then_least_weight_then_comes_last(rows):
    y, weight = (np.array(column) for column in zip(*rows, strict=True))
    there = weight > 0.0
    if len(np.unique(y[there])) < 2:
        return
    with warnings.catch_warnings(record=True, action="always") as caught:
        found = read_labels(y, weight, None, len(y)).pos_label
    rank = {
        label: (np.count_nonzero(there & (y == label)), weight[y == label].sum(), not label)
        for label in (False, True)
    }
    assert rank[found] == min(rank.values())
    assert bool(disagreements(caught)) == (rank[found][1] > rank[not found][1])
