"""RareClassifier as people use it: any table, hard tables, weights, files, parts of rows."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import GroupKFold
from sklearn.utils import get_tags

from ensemble.quick_members import MeanDifference
from faults import refused
from rareclass import RareClassifier
from rareclass.encoding import typed_table as table_reading
from rareclass.ensemble import combined_ranking, training_rows
from rareclass.ensemble.members.machines import LaplaceOnQuantiles
from rareclass.ensemble.members.trees import ExtraTrees
from rareclass.errors import ErrorKind, InputError
from rareclass.findings import FindingKind, finding_of
from rareclass.metrics import average_precision
from rareclass.rows import from_arrays, from_table

N = 120
SPLITS = [(np.flatnonzero(np.arange(N) % 3 != k), np.arange(k, N, 3)) for k in range(3)]
KERNEL = LaplaceOnQuantiles(lams=(2.0**-4,))
TREES = ExtraTrees(trees=10)


def messy(n=N, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 5 == 0
    frame = pd.DataFrame(
        {
            "amount": np.exp(rng.normal(size=n) + 1.5 * y),
            "age": rng.normal(50, 10, n).round(),
            "kind": np.where(y & (rng.random(n) < 0.6), "c", rng.choice(list("ab"), n)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D"),
        }
    )
    frame.loc[::9, "age"] = np.nan
    return frame, np.where(y, "fraud", "fine")


X, Y = messy()


def quick(members=None, **more):
    members = [MeanDifference()] if members is None else members
    return RareClassifier(members=members, **{"cv": SPLITS, "n_jobs": 1} | more)


def test_what_is_learned_is_told():
    model = quick([MeanDifference(), KERNEL, TREES]).fit(X, Y)
    assert model.classes_.tolist() == ["fine", "fraud"]
    assert model.pos_label_ == "fraud"
    assert model.feature_names_in_.tolist() == list(X.columns)
    assert model.n_features_in_ == 4
    kinds = {each.name: each.kind for each in model.columns_}
    assert kinds == {"amount": "number", "age": "number", "kind": "category", "day": "date"}
    scores = model.score_samples(X)
    assert average_precision(Y == "fraud", scores) > 0.5
    np.testing.assert_array_equal(model.predict(X) == "fraud", scores > model.offset_)
    assert sum(member.weight for member in model.members_) == pytest.approx(1.0)
    assert set(model.views_) == {member.view for member in model.members_}
    board = pd.DataFrame(model.leaderboard_)
    assert set(board["member"]) == {"mean difference", "kernel on quantiles", "extra trees"}
    assert board["objective"].is_monotonic_decreasing
    assert (board["average_precision_low"] <= board["average_precision"]).all()
    assert (board["average_precision"] <= board["average_precision_high"]).all()
    assert (board["objective"] == board["average_precision"]).all()
    assert board["weight"].sum() == pytest.approx(1.0)
    assert (board["seconds"] > 0.0).all()
    assert model.held_out_score_ > 0.3


def test_scores_are_the_logarithm_of_the_share_of_the_majority_that_scores_as_high():
    y = np.arange(4000) % 20 == 0
    shares = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        table = rng.normal(size=(4000, 3)) + y[:, None]
        model = quick([MeanDifference()], cv=3).fit(table, y)
        scores = model.score_samples(rng.normal(size=(20_000, 3)))
        shares.append([(scores >= decades).mean() for decades in (0.3, 1.0, 2.0)])
    expected = [10.0**-0.3, 0.1, 0.01]
    np.testing.assert_allclose(np.mean(shares, axis=0), expected, rtol=0.15)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "kind",
    [pl.from_pandas, lambda frame: pa.Table.from_pandas(frame, preserve_index=False)],
    ids=["polars", "pyarrow"],
)
def test_tables_of_all_kinds_are_the_same(kind):
    expected = quick().fit(X, Y)
    model = quick().fit(kind(X), Y)
    np.testing.assert_allclose(model.score_samples(X), expected.score_samples(kind(X)), rtol=1e-12)
    assert model.feature_names_in_.tolist() == list(X.columns)
    objects = quick().fit(X.assign(day=X["day"].astype(str)).to_numpy(dtype=object), Y)
    assert not hasattr(objects, "feature_names_in_")
    as_objects = X.assign(day=X["day"].astype(str)).to_numpy(dtype=object)
    np.testing.assert_allclose(objects.score_samples(as_objects), model.score_samples(X))


def test_columns_are_found_by_name_in_any_order_and_missing_ones_told():
    model = quick().fit(X, Y)
    shuffled = X[["day", "kind", "age", "amount"]].assign(more=1)
    np.testing.assert_array_equal(model.score_samples(shuffled), model.score_samples(X))
    with pytest.raises(InputError, match="'age'"):
        model.score_samples(X.drop(columns="age"))
    with pytest.raises(InputError, match=r"'age' \(is it 'Age'\?\)"):
        model.predict(X.rename(columns={"age": "Age"}))
    with refused(ErrorKind.CELL, column="amount", row=3, value="much"):
        model.score_samples(X.assign(amount=X["amount"].astype(object).where(X.index != 3, "much")))
    assert model.score_samples(X.iloc[:0]).shape == (0,)
    one = np.concatenate([model.score_samples(X.iloc[[k]]) for k in range(9)])
    np.testing.assert_allclose(one, model.score_samples(X)[:9], rtol=1e-12)


def test_a_weight_is_so_many_copies_and_none_is_absence():
    members = [MeanDifference(), LaplaceOnQuantiles(lams=(2.0**-4,), n_majority=N)]
    weight = np.random.default_rng(0).integers(0, 4, N).astype(float)
    weight[:12] = 1.0
    copies = np.repeat(np.arange(N), weight.astype(int))
    fold = np.arange(N) % 3
    splits = [
        (np.flatnonzero(fold[copies] != k), np.flatnonzero(fold[copies] == k)) for k in range(3)
    ]
    # Log-odds of words are smoothed by so many rows: how much a weight of 1 is matters.
    table = X.assign(shop=[f"s{k}" for k in np.random.default_rng(1).integers(0, 30, N)])
    repeated = quick(members[:1], cv=splits).fit(table.iloc[copies], Y[copies])
    weighted = quick(members[:1]).fit(table, Y, sample_weight=weight)
    expected = repeated.score_samples(table)
    np.testing.assert_allclose(weighted.score_samples(table), expected, atol=1e-9)
    assert weighted.held_out_score_ == pytest.approx(repeated.held_out_score_)
    kept = weight > 0
    splits = [(np.flatnonzero(fold[kept] != k), np.flatnonzero(fold[kept] == k)) for k in range(3)]
    without = quick(members, cv=splits).fit(X[kept], Y[kept])
    absent = quick(members).fit(X, Y, sample_weight=kept)
    np.testing.assert_allclose(absent.score_samples(X), without.score_samples(X), atol=1e-9)
    text = X.assign(amount=X["amount"].astype(str).where(kept, "unknown"))
    without = quick(members, cv=3).fit(text[kept], Y[kept])
    absent = quick(members, cv=3).fit(text, Y, sample_weight=kept.astype(float))
    np.testing.assert_array_equal(absent.score_samples(X), without.score_samples(X))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scales", [[1e-6, 7.3], [1e160]])
def test_only_ratios_count_of_weights_that_are_no_whole_numbers(scales):
    weight = np.random.default_rng(0).uniform(0.1, 4.0, N)
    first = quick([MeanDifference(), KERNEL]).fit(X, Y, sample_weight=weight)
    for scale in scales:
        again = quick([MeanDifference(), KERNEL]).fit(X, Y, sample_weight=scale * weight)
        np.testing.assert_allclose(again.score_samples(X), first.score_samples(X), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:feature_importances_ are not known")
@pytest.mark.parametrize("n_rare", [1, 2])
def test_one_or_two_rare_rows(n_rare):
    y = np.zeros(N, dtype=int)
    y[5 : 5 * (n_rare + 1) : 5] = 1
    table = X.assign(amount=np.where(y, 1e3 + X["amount"], X["amount"]))
    model = quick([MeanDifference(), KERNEL, TREES], cv=5).fit(table, y)
    assert np.isnan(model.held_out_score_) == (n_rare == 1)
    scores = model.score_samples(table)
    assert np.isfinite(scores).all()
    assert np.median(scores[y == 1]) > np.quantile(scores[y == 0], 0.7)
    assert {member.weight for member in model.members_} == {1 / 3} or n_rare == 2
    assert np.isnan(model.leaderboard_["roc_auc"]).all() == (n_rare == 1)
    assert model.predict(table).sum() <= N // 4


def test_hard_tables():
    constant = pd.DataFrame({"a": np.ones(N), "b": ["x"] * N})
    with refused(ErrorKind.MISSING_COLUMN, says="'a': always 1, 'b': always x"):
        quick().fit(constant, Y)
    empty = X.assign(empty=np.nan, blank=None, same=3.0)
    members = [MeanDifference(), KERNEL, TREES]
    model = quick(members).fit(empty, Y)
    assert {each.name: each.why_dropped for each in model.columns_ if not each.is_used} == {
        "empty": "every cell is empty",
        "blank": "every cell is empty",
        "same": "always 3",
    }
    assert model.n_features_in_ == 7
    assert (model.feature_importances_[4:] == 0.0).all()
    np.testing.assert_array_equal(model.score_samples(X), quick(members).fit(X, Y).score_samples(X))
    scores = model.score_samples(X.assign(amount=np.nan, age=np.nan, kind=None, day=pd.NaT))
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"members": "kernel on quantile"}, "mean 'kernel on quantiles'"),
        ({"members": "q"}, "There are: auto, kernel, trees"),
        ({"members": []}, "members="),
        ({"members": 7}, "members=7"),
        ({"members": ["auto", 3]}, "holds 3"),
        ({"objective": "auc"}, r"'auc' is not one of \['average_precision'"),
        ({"random_state": -1}, "random_state=-1"),
        ({"pos_label": "thief"}, "pos_label='thief'"),
        ({"cv": 1}, "cv=1"),
    ],
)
def test_parameters_are_checked(given, says):
    with pytest.raises(ValueError, match=says):
        quick(**given).fit(X, Y)


def test_a_column_that_gives_the_label_away_is_told():
    told = X.assign(refund=np.where(Y == "fraud", 1.0, 0.0) + np.arange(N) / 1e4)
    with pytest.warns(UserWarning, match="column 'refund' alone") as found:
        model = quick([MeanDifference(), TREES]).fit(told, Y)
    finding = finding_of(found[0].message)
    assert (finding.kind, finding.values["column"]) == (FindingKind.LABEL_LEAK, "refund")
    assert finding.values["roc_auc"] > 0.999
    assert int(np.argmax(model.feature_importances_)) == 4


def test_the_objective_is_what_is_maximised():
    members = [MeanDifference(), KERNEL]
    for objective in ("roc_auc", "precision_at_k"):
        model = quick(members, objective=objective).fit(X, Y)
        assert 0.0 < model.held_out_score_ <= 1.0

    def of_my_own(y, scores, sample_weight):
        assert sample_weight is None
        return float(scores[y].mean() - scores[~y].mean())

    model = quick(members, objective=of_my_own).fit(X, Y)
    assert (np.diff(model.leaderboard_["objective"]) <= 0.0).all()


def test_groups_and_time_make_the_folds():
    groups = np.arange(N) // 4
    by_group = quick(cv=3).fit(X, Y, groups=groups)
    same = quick(cv=GroupKFold(3)).fit(X, Y, groups=groups)
    assert by_group.score_samples(X).shape == same.score_samples(X).shape
    by_time = quick(cv=3).fit(X, Y, time=X["day"])
    assert by_time.score_samples(X).shape == (N,)
    with pytest.raises(InputError, match="groups has the shape"):
        quick(cv=3).fit(X, Y, groups=groups[:9])


@pytest.mark.sampled(1)
def test_rows_of_files_and_arrays(tmp_path):
    numbers = X[["amount", "age"]].fillna(0.0).assign(label=(Y == "fraud").astype(int))
    numbers.to_parquet(tmp_path / "rows.parquet")
    expected = quick().fit(numbers[["amount", "age"]], numbers["label"])
    model = quick().fit_rows(from_table(tmp_path / "rows.parquet", "label"))
    np.testing.assert_allclose(
        model.score_samples(numbers[["amount", "age"]].to_numpy()),
        expected.score_samples(numbers[["amount", "age"]]),
        rtol=1e-6,
    )
    rows = from_arrays(numbers[["amount", "age"]].to_numpy(), numbers["label"].to_numpy())
    held = quick().fit_rows(rows)
    named = quick().fit_rows(from_arrays(numbers[["amount", "age"]], numbers["label"]))
    assert named.feature_names_in_.tolist() == ["amount", "age"]
    np.testing.assert_array_equal(named.score_samples(rows), held.score_samples(rows))
    np.testing.assert_array_equal(
        named.score_samples(X[["age", "amount"]].fillna(0.0)), held.score_samples(rows)
    )
    np.testing.assert_allclose(
        held.score_samples(rows), expected.score_samples(numbers[["amount", "age"]])
    )


def test_of_a_long_file_all_rare_rows_are_read_and_a_part_of_the_others(monkeypatch):
    monkeypatch.setattr(training_rows, "_MOST_READ", 400)
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 30 == 0
    rows = from_arrays(rng.normal(size=(3000, 2)) + y[:, None], y)
    seen, read = [], table_reading.read_table
    monkeypatch.setattr(
        table_reading, "read_table", lambda X, *like: seen.append(X.shape) or read(X, *like)
    )
    model = quick(cv=3).fit_rows(rows)
    assert seen[0] == (400, 2)
    new = rng.normal(size=(9000, 2))
    assert (model.score_samples(new) >= 1.0).mean() == pytest.approx(0.1, rel=0.3)
    assert model.pos_label_
    whole = quick(cv=3).fit(rows.source.take(slice(None)), y)
    assert np.corrcoef(whole.score_samples(new), model.score_samples(new))[0, 1] > 0.98
    # Folds by number of row read all of them.
    half = np.arange(3000) // 30 % 2
    splits = [(np.flatnonzero(half != k), np.flatnonzero(half == k)) for k in (0, 1)]
    by_number = quick(cv=splits).fit_rows(rows)
    in_memory = quick(cv=splits).fit(rows.source.take(slice(None)), y)
    np.testing.assert_array_equal(by_number.score_samples(new), in_memory.score_samples(new))


def test_rows_are_scored_in_parts(monkeypatch):
    model = quick([MeanDifference(), KERNEL, TREES]).fit(X, Y)
    expected = model.score_samples(X)
    for rows_of_part in (7, N // 2, N - 1):
        monkeypatch.setattr(combined_ranking, "_SCORED_ROWS", rows_of_part)
        # The kernel is of 32 bits, and its products are rounded by the number of rows.
        np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-5)


def test_scikit_learn_is_told_which_cells_it_takes():
    takes = get_tags(quick()).input_tags
    assert (takes.allow_nan, takes.string, takes.categorical, takes.sparse) == (True,) * 3 + (
        False,
    )


def test_dates_later_than_those_of_training_count_by_what_recurs():
    model = quick([MeanDifference(), TREES]).fit(X, Y)
    later = X.assign(day=X["day"] + pd.Timedelta(days=364 * 2))
    assert "day" not in model.outside(later)
    absolute = quick([MeanDifference()], absolute_time=True).fit(X, Y)
    assert absolute.outside(later)["day"] > N / 2


def test_what_is_outside_of_training_is_counted():
    model = quick().fit(X, Y)
    assert model.outside(X) == {}
    new = X.assign(amount=X["amount"] * 1e6, kind=["z"] * 5 + X["kind"].tolist()[5:])
    assert model.outside(new) == {"amount": N, "kind": 5}
    assert model.outside(X.assign(kind=None, age=1e6)) == {"age": N}


class Fails(MeanDifference):
    def cross_fit(self, rows):
        raise ArithmeticError("no solution")


def test_a_member_that_fails_is_left_out_and_named():
    with pytest.warns(UserWarning, match="second is left out, as it failed: ArithmeticError") as w:
        model = quick([MeanDifference("first"), Fails("second")]).fit(X, Y)
    (finding,) = [finding_of(each.message) for each in w]
    assert (finding.kind, finding.values["member"]) == (FindingKind.MEMBER_FAILED, "second")
    assert set(model.leaderboard_["member"]) == {"first"}
    np.testing.assert_array_equal(
        model.score_samples(X), quick([MeanDifference("first")]).fit(X, Y).score_samples(X)
    )
    with pytest.raises(ArithmeticError, match="no solution"):
        quick([Fails("second")]).fit(X, Y)


def test_precision_of_so_many_rows_is_an_objective():
    model = quick([MeanDifference(), KERNEL], objective="precision_at=7").fit(X, Y)
    held_out = model.held_out_
    first = np.argsort(-held_out["score"], kind="stable")[:7]
    assert model.held_out_score_ == pytest.approx(held_out["rare"][first].mean())
    for wrong in ("precision_at=0", "precision_at=x", "precision_at"):
        with pytest.raises(ValueError, match=r"objective=|scoring="):
            quick(objective=wrong).fit(X, Y)
