"""Identifiers: left out where their values do not carry over, told of where they are learned."""

import warnings

import numpy as np
import pandas as pd
import pytest

from made_tables import skimmed_shops
from rareclass import RareClassifier
from rareclass.encoding.label_statistics import holds_nearby_only
from rareclass.ensemble.identifiers import _Trial, columns_by_value, without_identifiers
from rareclass.ensemble.members.machines import LogisticOnQuantiles
from rareclass.ensemble.training_rows import FitInput, TrainingViews, read_training_rows
from rareclass.findings import FindingKind, finding_of


def tried(table, rare):
    """The columns left after the trial, and the findings of it and of what is learned."""
    rows, _ = read_training_rows(FitInput(table, rare), "auto", None, 0)
    with warnings.catch_warnings(record=True, action="always") as caught:
        views = without_identifiers(TrainingViews(rows), False, 0)
        columns = columns_by_value(views)
    return columns, [found for each in caught if (found := finding_of(each.message))]


def test_what_does_not_carry_over_is_left_out_and_told():
    table, rare = skimmed_shops()
    model = RareClassifier(members=[LogisticOnQuantiles(strengths=(0.1,))], n_jobs=1)
    with pytest.warns(UserWarning, match="shop is not used: other times rank") as caught:
        model.fit(table, rare)
    (found,) = [finding for each in caught if (finding := finding_of(each.message))]
    assert found.kind == FindingKind.DOES_NOT_CARRY_OVER
    assert found.values["columns"] == ["shop"]
    assert 0.1 < found.values["with_them"] < found.values["average_precision"] < 0.5
    assert [each.is_used for each in model.columns_] == [True, False, True]
    assert "rank better without it" in model.columns_[1].why_dropped
    assert model.feature_importances_[1] == 0
    alone = model.score_samples(table[["amount", "when"]])
    np.testing.assert_array_equal(model.score_samples(table), alone)


def test_what_carries_over_is_learned_value_by_value_and_told():
    columns, (found,) = tried(*skimmed_shops(how="for good"))
    assert (found.kind, found.values) == (FindingKind.LEARNED_BY_VALUE, {"columns": ["shop"]})
    assert columns[1].is_used
    assert columns[1].treatment.endswith("value by value")


def test_numbers_that_are_learned_value_by_value_are_marked():
    """Even where there are too few values to warn of."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"code": rng.integers(100, 130, 3000), "amount": rng.normal(size=3000)})
    columns, found = tried(table, (table["code"] % 7 == 0) & (rng.random(3000) < 0.5))
    assert found == []
    assert [each.is_by_value for each in columns] == [True, False]
    assert columns[0].treatment == "value, rank, logarithm; learned value by value"


def test_values_that_tell_nothing_are_no_matter():
    columns, found = tried(*skimmed_shops(how="never"))
    assert found == []
    assert all(each.is_used for each in columns)


def test_each_fold_decides_by_the_rows_that_it_learns_from():
    table, rare = skimmed_shops(n=2400)  # too few rows for most folds to be sure
    rows, _ = read_training_rows(FitInput(table, rare), "auto", None, 0)
    before = TrainingViews(rows)
    suspects = [labels.nearby_only_ for labels in before.statistics.labels_]
    assert {tuple(names) for names in suspects} == {(), ("shop",)}
    with warnings.catch_warnings(action="error"):  # the column is used
        views = without_identifiers(before, False, 0)
    assert [list(names) for names in views.left_out] == suspects
    assert all(each.is_used for each in views.rows.table.remembered)
    names = [name for name, _ in views.statistics.columns_]
    for view in ("quantiles", "trees", "indicators"):
        folds, made = views.folds(view, 0, 1), views.views[view]
        for number, left_out in enumerate(views.left_out):
            own = folds.features_of(number)
            seen = {names[k] for k in made.source_column_[own]}
            assert seen == set(names) - set(left_out)
            assert folds.part(number, np.arange(9)).shape == (9, len(own))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_rows", [2400, 2399, 2398])
def test_the_trial_is_of_the_first_and_the_last_third(n_rows):
    table, rare = skimmed_shops()
    rows, _ = read_training_rows(FitInput(table[:n_rows], rare[:n_rows]), "auto", None, 0)
    trial = _Trial.of(rows, False, 0)
    first, _, last = np.array_split(rows.is_rare, 3)
    np.testing.assert_array_equal(trial.is_rare, np.concatenate([last, first]))


def genuine(kind, rng):
    """A column of many values, and what it says of the rare class, the same in all of the table."""
    n = 3000
    if kind == "7,500 levels":
        odds = rng.normal(0, 2, 7500)
        codes = np.minimum(rng.zipf(1.3, n) - 1, 7499)
        return codes, odds[codes]
    if kind == "zip code":
        region = rng.normal(0, 1.5, 100)
        codes = rng.integers(1000, 2000, n)
        return codes, region[codes // 10 - 100] + rng.normal(0, 0.5, 1000)[codes - 1000]
    if kind == "age":
        age = np.clip(rng.normal(45, 15, n), 18, 99).astype(int)
        return age, (age - 45) / 12
    if kind == "count":
        count = rng.geometric(0.03, n)
        return count, np.log(count) - 3
    year = rng.integers(1940, 2026, n)  # of birth
    return year, np.where(year % 10 == 0, 2.0, 0.0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["7,500 levels", "zip code", "age", "count", "year"])
def test_what_holds_everywhere_is_never_suspected(kind):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        codes, odds = genuine(kind, rng)
        trend = np.linspace(-1, 1, len(codes)) if seed % 2 else 0.0  # ever more rare rows
        rare = rng.random(len(codes)) < 1 / (1 + np.exp(3.0 - odds - trend))
        if seed % 4 > 1:  # sorted by it, as files of regions are
            order = np.argsort(codes, kind="stable")
            codes, rare = codes[order], rare[order]
        levels = np.unique(codes, return_inverse=True)[1]
        assert not holds_nearby_only(levels, levels.max() + 1, rare, np.ones(len(rare)))


def used(table, rare, weight=None, time=None):
    """The columns that are learned from by all folds."""
    rows, _ = read_training_rows(FitInput(table, rare, weight, time=time), "auto", None, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        views = without_identifiers(TrainingViews(rows), False, 0)
    return [column.name for column in views.rows.table.columns]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_rows_leaves_nothing_out_unless_it_is_known_to_be_that_of_time(seed):
    """Codes with duplicates, merged or not, and bursts without a clock, in any order."""
    rng = np.random.default_rng(seed)
    codes = pd.DataFrame(rng.zipf(1.5, (1500, 3)) % 80, columns=list("abc"))
    rare = (codes["a"] % 7 == seed % 7) & (rng.random(1500) < 0.5)
    again = np.concatenate([np.arange(1500), rng.choice(1500, 100 * seed)])
    codes, rare = codes.iloc[again], rare.to_numpy()[again]
    once = codes.assign(rare=rare).value_counts(sort=False).reset_index()  # sorted, as it happens
    assert used(codes, rare) == list("abc")
    assert used(once[list("abc")], once["rare"], once["count"]) == list("abc")
    table, rare = skimmed_shops(seed, is_dated=False)
    order = rng.permutation(len(rare))
    for rows in (np.arange(len(rare)), order):
        assert used(table.iloc[rows], rare[rows]) == ["amount", "shop"]
    # The time tells whatever the order.
    found = used(table, rare, time=np.arange(len(rare)))
    assert used(table.iloc[order], rare[order], time=order) == found
    assert seed or found == ["amount"]
