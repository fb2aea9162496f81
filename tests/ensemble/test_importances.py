"""What columns are worth, and which give the label away: by held-out rows, in any view."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ensemble.quick_members import MeanDifference
from rareclass import RareClassifier
from rareclass.encoding.typed_table import read_table
from rareclass.ensemble.combination import Candidate, combine
from rareclass.ensemble.importances import (
    leaderboard,
    permutation_importances,
    warn_of_columns,
    with_features_of,
)
from rareclass.ensemble.members.machines import LogisticOnIndicators
from rareclass.ensemble.training_rows import FoldedRows, HeldOutRows, TrainingViews
from rareclass.findings import FindingKind, finding_of
from rareclass.metrics import average_precision, interval, roc_auc

N = 300
RNG = np.random.default_rng(0)
Y = np.arange(N) % 6 == 0
SPLITS = [(np.flatnonzero(np.arange(N) % 5 != k), np.arange(k, N, 5)) for k in range(5)]
FRAME = pd.DataFrame(
    {
        "noise": RNG.normal(size=N),
        "decides": RNG.normal(size=N) + 3.0 * Y,
        "word": np.where(RNG.random(N) < 0.8, np.where(Y, "x", "y"), RNG.choice(["x", "y"], N)),
        "same": 1.0,
        "of the day": RNG.choice(list("pqrs"), N),
    }
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "members",
    [[MeanDifference()], [LogisticOnIndicators(strengths=(1.0,))]],
    ids=["dense", "sparse"],
)
def test_the_column_that_decides_is_worth_most_and_noise_nothing(members):
    model = RareClassifier(members=members, cv=SPLITS, n_jobs=1).fit(FRAME, Y)
    noise, decides, word, same, day = model.feature_importances_
    assert decides > 0.1
    assert word > 0.05
    assert same == 0.0
    assert max(abs(noise), abs(day)) < 0.05
    again = RareClassifier(members=members, cv=SPLITS, n_jobs=1).fit(FRAME, Y)
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)


def test_shuffled_features_are_those_of_other_rows():
    every = RNG.normal(size=(9, 4)) * (RNG.random((9, 4)) < 0.5)
    X, order = every[2:7], RNG.permutation(9)[:5]
    features = np.array([False, True, False, True])
    expected = X.copy()
    expected[:, 1], expected[:, 3] = every[order, 1], every[order, 3]
    before = every.copy()
    np.testing.assert_array_equal(with_features_of(X, features, every, order), expected)
    for kind in (sparse.csr_array, sparse.csr_matrix):
        np.testing.assert_array_equal(
            with_features_of(kind(X), features, kind(every), order).toarray(), expected
        )
    np.testing.assert_array_equal(every, before)
    assert with_features_of(X, np.zeros(4, bool), every, order) is X


def views_of(frame, y=Y, weight=None):
    number = np.arange(len(y))
    return TrainingViews(FoldedRows(read_table(frame), y, weight, number % 5, number))


def learned(views, rows, name="mean difference", sign=1.0, seconds=1.5):
    folds = views.folds("quantiles", 0, 1)
    (found,) = MeanDifference(name).cross_fit(folds)
    function = folds.mean_of(found)
    found = found._replace(held_out=sign * found.held_out)
    return Candidate.of(MeanDifference(name), found, function, seconds, rows)


def test_importances_are_losses_of_the_merit_by_hand():
    views = views_of(FRAME[["noise", "decides"]])
    held_out = HeldOutRows(Y, None, np.arange(N), seed=3)
    combination = combine([learned(views, held_out)], held_out)
    (scaled,) = combination.candidates

    found = permutation_importances(views, held_out, combination, 1)
    whole = average_precision(Y, scaled.rarity)
    assert found[1] == pytest.approx(whole - Y.mean(), abs=0.1)  # what is left is chance
    assert abs(found[0]) < 0.05


def test_features_of_two_columns_belong_to_both():
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 6, (2, 600))
    codes = pd.DataFrame({"a": [f"a{k}" for k in first], "b": [f"b{k}" for k in second]})
    y = ((first + second) % 6 == 0) & (rng.random(600) < 0.9)  # neither alone says anything
    views = views_of(codes, y)
    member = LogisticOnIndicators(strengths=(1.0,))
    views.folds("indicators", 0, 1)
    assert (views.views["indicators"].second_column_ >= 0).any()
    model = RareClassifier(members=[member], cv=3, n_jobs=1).fit(codes, y)
    assert (model.feature_importances_ > 0.05).all()


def test_the_leaderboard_measures_held_out_rows_with_their_weights():
    weight = RNG.integers(1, 4, N).astype(float)
    views = views_of(FRAME, weight=weight)
    rows = HeldOutRows(Y, weight, np.arange(N), objective=roc_auc)
    good, bad = learned(views, rows), learned(views, rows, "worse", -1.0, 2.5)
    combined = combine([bad, good], rows)
    board = leaderboard(combined, Y, weight)
    assert board["member"].tolist() == ["mean difference", "worse"]
    assert [board[each].tolist() for each in ("seconds", "weight")] == [[1.5, 2.5], [1.0, 0.0]]
    assert board["roc_auc"][0] == pytest.approx(roc_auc(Y, good.held_out, weight), abs=1e-3)
    assert board["objective"].tolist() == board["roc_auc"].tolist()
    found = interval("average_precision", Y, combined.candidates[0].rarity, weight)
    names = ("average_precision", "average_precision_low", "average_precision_high")
    assert tuple(board[name][0] for name in names) == found
    nobody = leaderboard(combined, np.zeros(N, bool), weight)
    assert np.isnan([nobody["roc_auc"], nobody["average_precision_high"]]).all()


def giveaways(frame, y=Y, recwarn=None):
    with pytest.warns(UserWarning, match="alone ranks the rows") as told:
        warn_of_columns(views_of(frame, y))
    return {finding_of(each.message).values["column"] for each in told}


def test_columns_that_give_the_label_away():
    told = FRAME.assign(
        up=Y + 0.5 * RNG.random(N),
        down=-1.0 * Y,
        gap=np.where(Y, np.nan, 1e30),
        hole=np.where(Y, np.nan, RNG.normal(size=N)),
        word=np.where(Y, "x", "y"),
        nearly=np.where(np.arange(N) < 60, 0.5, Y),
    )
    assert giveaways(told) == {"up", "down", "gap", "hole", "word"}
    warn_of_columns(views_of(FRAME))  # says nothing
    few = np.arange(N) < 4
    warn_of_columns(views_of(FRAME.assign(up=few + 0.0), few))  # of four rows many columns would


def test_the_label_of_a_row_is_not_among_its_words():
    """Each row a word of its own: log-odds that knew the label would give it away."""
    words = pd.DataFrame({"word": [f"w{k // 2}" for k in range(N)], "noise": FRAME["noise"]})
    warn_of_columns(views_of(words))


def test_importances_that_are_not_known_are_said_to_be_so():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = RareClassifier(members=["logistic regression"])
    with pytest.warns(UserWarning, match="no rare row was held out") as told:
        model.fit(X, np.arange(60) == 7)
    assert [finding_of(each.message).kind for each in told] == [FindingKind.NO_IMPORTANCES]
    assert np.isnan(model.feature_importances_).all()
