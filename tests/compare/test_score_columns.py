"""Score columns beside each other: the figures of the single functions, and folds on one scale."""

import json

import numpy as np
import pytest

from rareclass import metrics
from rareclass.compare import compare_scores
from rareclass.errors import InputError
from rareclass.metrics import paired_difference, roc_auc

FEW = {"n_replicates": 40}


def columns(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 10 == 0
    shared = rng.normal(size=n)
    shifts = {"poor": 0.2, "good": 2.5, "fair": 2.2}
    return y, {name: shared + rng.normal(size=n) + s * y for name, s in shifts.items()}


def test_the_figures_are_those_of_the_functions():
    y, scores = columns()
    found = compare_scores(y, scores, k=[15, 30], **FEW)
    assert [each.words for each in found.measures] == [
        "AUC", "average precision", "precision at 15", "precision at 30",
    ]  # fmt: skip
    for standings in found.measures:
        interval = getattr(metrics, f"{standings.measure}_interval")
        for each in standings.standings:
            alone = interval(y, scores[each.name], **standings.options)
            assert (each.value, each.low, each.high) == alone
            if each.beside_the_best is None:
                continue
            test = paired_difference(
                y, scores[each.name], scores[standings.best.name], standings.measure,
                **standings.options, **FEW,
            )  # fmt: skip
            beside = each.beside_the_best
            assert beside.p_value == test.p_value <= beside.p_adjusted
            assert (beside.difference, beside.low, beside.high) == test[:3]
            assert beside.significant == (beside.p_adjusted < 0.05)
    auc = found.by("roc_auc")
    assert auc is found.by("AUC")
    assert auc.best.name == "good"
    assert (auc.worse, auc.indistinguishable) == (["poor"], ["fair"])
    assert found.says()[0] == "150 rows, 15 of them rare"
    assert "statistically indistinguishable: fair; significantly worse: poor." in auc.says()
    assert json.loads(json.dumps(found.to_dict()))["measures"][0]["words"] == "AUC"


def test_a_weight_is_copies_and_a_group_of_one_row_a_row():
    y, scores = columns(60)
    weight = 1.0 + np.arange(60) % 2
    twice = np.repeat(np.arange(60), weight.astype(int))
    copies = compare_scores(
        y[twice], {name: s[twice] for name, s in scores.items()}, ["roc_auc"], k=6
    )
    weighted = compare_scores(y, scores, ["roc_auc"], sample_weight=weight, k=6)
    for one, other in zip(*(each.by("AUC").standings for each in (copies, weighted)), strict=True):
        assert one.name == other.name
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))
    together = compare_scores(y, scores, groups=np.arange(60) // 2, **FEW)
    assert together.n_groups == 30
    assert "in 30 groups that move together" in together.basis()
    spread = [each.high - each.low for each in together.by("AUC").standings]
    assert all(width > 0 for width in spread)


def test_the_auc_of_folds_is_their_mean():
    rng = np.random.default_rng(0)
    fold = np.arange(300) % 3
    y = np.arange(300) < 30
    scores = rng.normal(size=300) + y + 10 * fold
    found = compare_scores(y, {"a": scores}, ["roc_auc"], folds=fold)
    of_folds = [roc_auc(y[fold == k], scores[fold == k]) for k in range(3)]
    assert found.by("AUC").best.value == pytest.approx(np.mean(of_folds))
    assert found.n_folds == 3
    assert found.says()[1] == f"AUC: a has {np.mean(of_folds):.3f}."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": {}}, "no column of scores"),
        ({"scores": {"flat": np.ones(40)}}, r"scores\['flat'\] are all 1"),
        ({"scores": {"a": np.arange(39.0)}}, r"scores\['a'\] has 39 rows"),
        ({"measures": ["auc"]}, "names 'auc'"),
        ({"measures": []}, "names no measure"),
        ({"folds": np.arange(40) % 10 == 0}, "fold True has no majority row"),
        ({"folds": [1, 2]}, "one fold a row"),
        ({"y": np.zeros(40)}, "both classes are needed"),
        ({"k": 41}, "k = 41 is not between 0 and the 40 rows"),
    ],
)
def test_what_cannot_be_compared_is_said(change, message):
    y = np.arange(40) % 10 == 0
    given = {"y": y, "scores": {"a": np.arange(40.0), "b": -np.arange(40.0)}, **change}
    with pytest.raises(ValueError, match=message):
        compare_scores(**given, **FEW)


def test_an_unknown_measure_is_an_input_error():
    with pytest.raises(InputError, match="Did you mean 'roc_auc'"):
        compare_scores([0, 1], {"a": [0, 1]}, ["rocauc"])
