"""Labels are nested: nothing that a fold's functions see knows the labels that it holds out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from draws import draws
from encoding.label_tables import folded_rows, little_is_enough, seen
from ensemble.quick_members import MeanDifference
from made_models import made_model
from made_tables import skimmed_shops
from rareclass import SKOPS_TRUSTED, RareClassifier, to_onnx
from rareclass.encoding import table_statistics, views
from rareclass.encoding.encoders import TypedColumns
from rareclass.encoding.typed_table import read_table
from rareclass.encoding.views import VIEWS
from rareclass.ensemble.combined_ranking import CombinedRanking
from rareclass.ensemble.identifiers import without_identifiers
from rareclass.ensemble.members.machines import (
    LaplaceOnQuantiles,
    LogisticOnIndicators,
    LogisticOnQuantiles,
)
from rareclass.ensemble.members.trees import ExtraTrees
from rareclass.ensemble.score_functions import LinearFunction, MeanFunction
from rareclass.ensemble.training_rows import FitInput, FoldedRows, TrainingViews, read_training_rows
from rareclass.ensemble.tree_sum import TreeSum
from rareclass.model.model_file import load_model, save_model
from to_onnx.sessions import answers, differences

MEMBERS = [
    MeanDifference(),
    LogisticOnQuantiles(strengths=(0.1,)),
    LogisticOnIndicators(strengths=(0.1,)),
    ExtraTrees(trees=3),
]


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def relabelled(rows, number, how, rng):
    own, y = np.flatnonzero(rows.fold == number), rows.is_rare.copy()
    others = {"flipped": ~y[own], "permuted": rng.permutation(y[own]), "rare": True, "none": False}
    y[own] = others[how]
    return rows._replace(is_rare=y)


RELABELLED = st.sampled_from(["flipped", "permuted", "rare", "none"])


@given(folded_rows(), st.integers(0, 3), RELABELLED)
@draws(80)
def test_no_feature_knows_a_label_that_its_fold_holds_out(given_rows, number, how):
    rows, rng = given_rows
    number %= rows.n_folds
    every = np.arange(len(rows.fold))
    with little_is_enough():
        one, other = TrainingViews(rows), TrainingViews(relabelled(rows, number, how, rng))
        for name in VIEWS:
            a, b = one.folds(name, 0, 1), other.folds(name, 0, 1)
            np.testing.assert_array_equal(
                dense(a.part(number, every)), dense(b.part(number, every)), strict=True
            )
            # Of the same columns of the table, by the same names.
            for view, folds in ((one.views[name], a), (other.views[name], b)):
                own = folds.features_of(number)
                columns = view.source_column_[own], view.second_column_[own]
                if folds is a:
                    wanted = columns
                np.testing.assert_array_equal(columns, wanted)
    known = one.statistics.labels_[one.set_of(number)]
    assert known.nearby_only_ == other.statistics.labels_[other.set_of(number)].nearby_only_


@given(folded_rows(), st.integers(0, 3), st.sampled_from(["flipped", "permuted"]))
@draws(20)
def test_no_held_out_score_knows_the_label_of_its_row(given_rows, number, how):
    rows, rng = given_rows
    number %= rows.n_folds
    with little_is_enough():
        both = [TrainingViews(each) for each in (rows, relabelled(rows, number, how, rng))]
        for member in MEMBERS:
            found = [member.cross_fit(each.folds(member.view, 0, 1)) for each in both]
            for a, b in zip(*found, strict=True):
                tested = rows.fold == number
                np.testing.assert_array_equal(a.held_out[tested], b.held_out[tested])
                assert np.isfinite(a.held_out[rows.fold >= 0]).all()


def test_labels_of_other_rows_do_count():
    """The same comparison sees what a fold that learned from these labels would have seen."""
    rng = np.random.default_rng(0)
    word, fold = rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 300), np.arange(300) % 3
    y = rng.random(300) < 0.3
    rows = FoldedRows(read_table(pd.DataFrame({"word": word})), y, None, fold, np.arange(300))
    every = np.arange(300)
    one, other = TrainingViews(rows), TrainingViews(relabelled(rows, 0, "flipped", rng))
    for name in set(VIEWS) - {"indicators"}:
        a, b = one.folds(name, 0, 1), other.folds(name, 0, 1)
        np.testing.assert_array_equal(a.part(0, every), b.part(0, every))
        for number in (1, 2):
            assert not np.array_equal(a.part(number, every), b.part(number, every))


def test_features_are_centred_by_the_rows_that_the_fold_learns_from():
    """Shop "a" is rare in the rows of the other folds and common in fold 0, or the other way."""
    rng = np.random.default_rng(0)
    n, weight = 900, rng.integers(1, 4, 900).astype(float)
    fold, y = np.arange(n) % 3, rng.random(n) < 0.3
    shop = np.where((fold == 0) & (rng.random(n) < 0.5), 0, rng.integers(0, 40, n))
    table = read_table(pd.DataFrame({"shop": [f"s{k}" for k in shop]}))
    made = TrainingViews(FoldedRows(table, y, weight, fold, np.arange(n)))
    folds, view = made.folds("quantiles", 0, 1), made.views["quantiles"]
    for number in range(3):
        of_labels = view.labels_of_[folds.features_of(number)] == number
        assert of_labels.sum() == 2  # log-odds and log count
        train, held_out = (np.flatnonzero(each) for each in (fold != number, fold == number))
        X = folds.part(number, train)[:, of_labels]
        mean = np.average(X, axis=0, weights=weight[train])
        np.testing.assert_allclose(mean, 0, atol=1e-9)
        assert (np.average(X**2, axis=0, weights=weight[train]) <= 1 + 1e-9).all()
        new = folds.part(number, held_out)[:, of_labels]
        assert (new >= X.min(axis=0)).all()
        assert (new <= X.max(axis=0)).all()


def many_codes(seed, n=600):
    """More categories than are paired, most of them codes that may tell something by chance."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"c{k}": rng.integers(0, 5 + k, n).astype(float) for k in range(4)})
    frame["word"], frame["few"] = rng.choice(list("abcdef"), n), rng.choice(list("xyz"), n)
    fold, y = np.arange(n) % 3, rng.random(n) < 0.3
    return FoldedRows(read_table(frame), y, None, fold, np.arange(n)), rng


@pytest.mark.sampled(1)
@pytest.mark.parametrize("most_paired", [2, 12])
def test_pairs_of_indicators_are_of_columns_that_the_fold_learns_from(most_paired, monkeypatch):
    """Other folds may learn from other codes: these change neither pairs nor their order."""
    monkeypatch.setattr(views, "_MOST_PAIRED", most_paired)
    for seed in range(2):
        rows, rng = many_codes(seed)
        with little_is_enough():
            both = [TrainingViews(each) for each in (rows, relabelled(rows, 0, "flipped", rng))]
        a, b = (dense(each.folds("indicators", 0, 1).part(0, np.arange(600))) for each in both)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_word_that_only_held_out_rows_have_is_a_word_never_seen(share, monkeypatch):
    """In every view, whether such words are a level of their own or count as the commonest one."""
    monkeypatch.setattr(table_statistics, "_KNOWN_UNSEEN", share)
    rng = np.random.default_rng(0)
    n, own = 200, np.array([3, 7, 11])
    fold, y = np.arange(n) % 4, rng.random(n) < 0.3
    frame = pd.DataFrame(
        {
            "shop": rng.choice(list("abc"), n),
            "many": [f"m{k}" for k in rng.integers(0, 30, n)],
            "number": rng.normal(size=n),
        }
    )
    frame.loc[own, ["shop", "many"]] = "only here"  # in fold 3
    rows = FoldedRows(read_table(frame), y, None, fold, np.arange(n))
    made = TrainingViews(rows)
    never = frame.assign(**{k: frame[k].replace("only here", "never") for k in ("shop", "many")})
    new = made.statistics.encode(read_table(never, like=rows.table.remembered)).take(own)
    for name in VIEWS:
        folds = made.folds(name, 0, 1)
        found = dense(folds.part(3, own))
        wanted = dense(made.views[name].transform(new)[:, folds.features_of(3)])
        learned = dense(folds.part(3, np.flatnonzero(fold != 3)))
        varies = np.ptp(np.nan_to_num(learned), axis=0) > 0  # the others have no weight
        np.testing.assert_array_equal(found[:, varies], wanted[:, varies])
        # The same in a part of the rows, in any order.
        part = folds.take(np.array([50, 7, 3, 60]), None)
        np.testing.assert_array_equal(dense(part.part(3, np.array([2, 1]))), found[:2])
        np.testing.assert_array_equal(dense(part.of_fold(3).X), dense(part.part(3, np.arange(4))))


def test_what_a_fold_leaves_out_is_decided_by_its_own_rows():
    table, rare = skimmed_shops(n=2400)
    rows, _ = read_training_rows(FitInput(table, rare), "auto", None, 0)
    views_of = [
        TrainingViews(each)
        for each in (rows, relabelled(rows, 2, "flipped", np.random.default_rng(0)))
    ]
    with warnings.catch_warnings(action="error"):
        one, other = (without_identifiers(each, False, 0) for each in views_of)
    assert one.left_out[2] == other.left_out[2] == ("shop",)
    for name in VIEWS:
        every = np.arange(0, 2400, 7)
        a, b = (dense(each.folds(name, 0, 1).part(2, every)) for each in (one, other))
        np.testing.assert_array_equal(a, b)


def test_parts_of_training_rows_are_the_other_folds_unless_there_is_one():
    rng = np.random.default_rng(0)
    table = read_table(rng.normal(size=(60, 1)))
    y, part = rng.random(60) < 0.4, rng.integers(0, 5, 60)
    for n_folds in (2, 3):
        fold = np.arange(60) % n_folds
        rows = FoldedRows(table, y, None, fold, np.arange(60), is_drawn=True, label_part=part)
        for k in range(n_folds):
            learned = rows.learned_by(k)
            np.testing.assert_array_equal(learned.rows, np.flatnonzero(fold != k))
            wanted = part if n_folds == 2 else fold
            np.testing.assert_array_equal(learned.part, wanted[learned.rows])
            assert (learned.is_drawn, learned.left_out) == (True, ())
            assert rows.learned_by(k, ("a",)).left_out == ("a",)
    # Folds that nobody holds out are parts, too.
    rows = FoldedRows(table, y, None, np.arange(60) % 10, np.arange(60), n_held_out=2)
    assert rows.n_folds == 2
    np.testing.assert_array_equal(np.unique(rows.learned_by(1).part), [0, *range(2, 10)])
    read = [
        read_training_rows(FitInput(table_of(y), y), cv, None, 0)[0].label_part for cv in (2, 3)
    ]
    assert len(np.unique(read[0])) == 5
    assert read[1] is None


def table_of(y):
    return pd.DataFrame({"x": np.random.default_rng(1).normal(size=len(y)) + y})


ENCODER = TypedColumns([])  # a model file has one; the classifier reads tables by itself


def coded(n=700, seed=0):
    rng = np.random.default_rng(seed)
    shop, code, kind = rng.integers(0, 30, n), rng.integers(0, 24, n), rng.integers(0, 4, n)
    effect = rng.normal(size=(4, 24)) * 2.5
    odds = rng.normal(size=30)[shop] + effect[kind, code] - 2
    y = rng.random(n) < 1 / (1 + np.exp(-odds))
    frame = pd.DataFrame(
        {
            "shop": [f"s{k}" for k in shop],
            "code": code.astype(float),
            "kind": [f"k{k}" for k in kind],
            "amount": rng.normal(size=n) + y,
        }
    )
    return frame, y


KINDS = [
    (LogisticOnQuantiles(strengths=(0.1,)), LinearFunction, 1e-9),
    (LogisticOnIndicators(strengths=(0.1,)), LinearFunction, 1e-9),
    (LaplaceOnQuantiles(lams=(2.0**-6,), n_majority=40, most_rare=40), MeanFunction, 1e-4),
    (ExtraTrees(trees=3), TreeSum, 1e-9),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("member", "kind", "atol"), KINDS, ids=lambda each: str(each)[:12])
def test_a_model_of_codes_is_the_mean_of_its_folds_saved_and_exported(member, kind, atol, tmp_path):
    frame, y = coded()
    model = RareClassifier(members=[member], cv=3, n_jobs=1).fit(frame, y)
    labels = model.statistics_.labels_
    assert len(labels) == 3
    assert all(each.pairs_ for each in labels)
    assert "code" in model.statistics_.category_names_
    (used,) = model.members_
    assert isinstance(used.function, kind)
    new, _ = coded(200, 1)
    new = pd.concat([new, new.head(5).assign(shop="never", code=[99.0, 1.5, np.nan, 3.0, 0.0])])
    scores = model.score_samples(new)
    # By the function of each fold, on the features that it saw.
    rows, _ = read_training_rows(FitInput(frame, y), 3, None, 0)
    made = TrainingViews(rows)
    folds, view = made.folds(member.view, 0, 1), made.views[member.view]
    (fitted,) = member.cross_fit(folds)
    X = seen(view, read_table(new, like=rows.table.remembered))
    by_fold = [
        function.scores(X[:, folds.features_of(k)]) for k, function in enumerate(fitted.functions)
    ]
    X = seen(model.views_[member.view], read_table(new, like=rows.table.remembered))
    np.testing.assert_allclose(used.function.scores(X), np.mean(by_fold, axis=0), atol=atol)
    save_model(tmp_path / "model.rareclass", made_model(ENCODER, CombinedRanking.of(model)))
    opened = load_model(tmp_path / "model.rareclass").estimator
    np.testing.assert_array_equal(opened.score_samples(new), scores)
    import skops.io

    again = skops.io.loads(skops.io.dumps(model), trusted=SKOPS_TRUSTED)
    np.testing.assert_array_equal(again.score_samples(new), scores)
    *apart, same = differences(answers(to_onnx(model), new), model, new)
    assert max(apart) <= max(atol, 1e-6)
    assert same or atol > 1e-6
