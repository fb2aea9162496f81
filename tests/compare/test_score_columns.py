"""Score columns beside each other: the figures of the single functions, and folds on one scale."""

import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from faults import refused
from rareclass import metrics
from rareclass.compare import compare_scores
from rareclass.compare.score_columns import adjusted_for_the_choice
from rareclass.errors import ErrorKind
from rareclass.metrics import paired_difference, roc_auc


def columns(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 10 == 0
    shared = rng.normal(size=n)
    shifts = {"poor": 0.2, "good": 2.5, "fair": 2.2}
    return y, {name: shared + rng.normal(size=n) + s * y for name, s in shifts.items()}


def test_the_figures_are_those_of_the_functions():
    y, scores = columns()
    found = compare_scores(y, scores, k=[15, 30])
    assert [each.words for each in found.measures] == [
        "AUC", "average precision", "precision at 15", "precision at 30",
    ]  # fmt: skip
    for standings in found.measures:
        for each in standings.standings:
            alone = metrics.interval(standings.measure, y, scores[each.name], **standings.options)
            assert (each.value, each.low, each.high) == alone
            if each.beside_the_best is None:
                continue
            test = paired_difference(
                y, scores[each.name], scores[standings.best.name], standings.measure,
                **standings.options,
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
    assert "significantly worse: fair; significantly worse: poor." in auc.says()
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
    together = compare_scores(y, scores, groups=np.arange(60) // 2)
    assert together.n_groups == 30
    assert "in 30 groups" in together.basis()
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
    ("change", "kind", "says"),
    [
        ({"scores": {}}, ErrorKind.SHAPE, "scores="),
        ({"scores": {"flat": np.ones(40)}}, ErrorKind.CELL, "scores['flat'] are all 1"),
        ({"measures": ["rocauc"]}, ErrorKind.SETTING, "Did you mean 'roc_auc'"),
        ({"measures": []}, ErrorKind.SETTING, "measures="),
        ({"folds": np.arange(40) % 10 == 0}, ErrorKind.TOO_FEW_ROWS, "fold True"),
        ({"folds": [1, 2]}, ErrorKind.SHAPE, "folds"),
        ({"k": 41}, ErrorKind.SETTING, "the 40 rows"),
        ({"n_train": 32}, ErrorKind.COMBINATION, "n_train="),
        ({"scores": {"a": np.arange(39.0)}}, None, r"scores\['a'\] has 39 rows"),
        ({"y": np.zeros(40)}, None, "both classes are needed"),
    ],
)
def test_comparisons_that_are_refused(change, kind, says):
    y = np.arange(40) % 10 == 0
    given = {"y": y, "scores": {"a": np.arange(40.0), "b": -np.arange(40.0)}, **change}
    with pytest.raises(ValueError, match=says) if kind is None else refused(kind, says=says):
        compare_scores(**given)


def partitions(items):
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        for place in range(len(smaller)):
            yield [*smaller[:place], [first, *smaller[place]], *smaller[place + 1 :]]
        yield [[first], *smaller]


def closed_test(p_values):
    """Bonferroni's test of every way in which rankings may be equal: 0 is the best, pairs of
    others were not looked at."""
    m = len(p_values) + 1
    adjusted = np.zeros(len(p_values))
    for groups in partitions(list(range(m))):
        pairs = [pair for group in groups for pair in combinations(sorted(group), 2)]
        tested = [p_values[b - 1] for a, b in pairs if a == 0]
        if not tested:
            continue
        of_all = min(1.0, len(pairs) * min(tested))
        for a, b in pairs:
            if a == 0:
                adjusted[b - 1] = max(adjusted[b - 1], of_all)
    return adjusted


@draws(60)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5))
def test_between_the_closed_test_and_holm(p_values):
    ours = np.array(adjusted_for_the_choice(p_values))
    assert (ours >= closed_test(p_values) - 1e-12).all()
    m = len(p_values) + 1
    order = np.argsort(p_values, kind="stable")
    n_pairs = m * (m - 1) / 2
    steps = (n_pairs - np.arange(len(order))) * np.array(p_values)[order]
    holm = np.minimum(np.maximum.accumulate(steps), 1.0)
    assert (ours[order] <= holm + 1e-12).all()


def test_alone_and_in_pairs():
    assert adjusted_for_the_choice([]) == []
    assert adjusted_for_the_choice([0.03]) == [0.03]
    assert adjusted_for_the_choice([0.02, 0.01]) == pytest.approx([0.03, 0.03])
