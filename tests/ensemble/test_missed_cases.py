"""`RareClassifier(missed_cases=...)`: which rows it sets aside, what it says, what it refuses."""

import warnings

import numpy as np
import pytest

from faults import refused
from rareclass import RareClassifier
from rareclass.ensemble.training_rows import HeldOutRows
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind, finding_of

N_MISSED = 40


def table(n_rows=900, n_rare=120, n_missed=N_MISSED):
    """Rare rows that stand apart, of which the first have the label of the majority."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    y = np.arange(n_rows) < n_rare
    X[y] += 3.0
    return X, y, y & (np.arange(n_rows) >= n_missed)


def fitted(X, y, **parameters):
    """A model, and the findings of its fit."""
    model = RareClassifier(60.0, members="logistic regression", verbose=False, **parameters)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y)
    found = [finding_of(each.message) for each in said]
    return model, [each for each in found if each and each.kind is FindingKind.MISSED_CASES]


@pytest.mark.parametrize("asked", ["auto", 1 / 3])
def test_missed_cases_are_set_aside_and_scored(asked):
    X, true, recorded = table()
    model, (finding,) = fitted(X, recorded, missed_cases=asked)
    found = model.missed_cases_
    assert found.estimate.low - 1e-9 <= N_MISSED <= found.estimate.high + 1e-9
    assert len(found.rows) == finding.values["set aside"] == round(found.estimate.low) > 0
    assert true[found.rows].mean() > 0.8
    assert not recorded[found.rows].any()
    # Every row is held out and keeps its recorded label.
    assert sorted(model.held_out_["row"]) == list(range(len(X)))
    assert (model.held_out_["rare"] == recorded[model.held_out_["row"]]).all()
    assert "weight" not in model.held_out_
    assert found.corrected > found.average_precision


def test_nothing_is_set_aside_where_nothing_is_certain():
    X, true, _ = table(n_missed=0)
    plain, none = fitted(X, true)
    model, (finding,) = fitted(X, true, missed_cases="auto")
    assert not none
    assert plain.missed_cases_ is None
    assert finding.values["set aside"] == 0
    assert len(model.missed_cases_.rows) == 0
    np.testing.assert_array_equal(model.score_samples(X), plain.score_samples(X))


def test_functions_do_not_depend_on_the_label_of_a_row_set_aside():
    """A fit with rows set aside is one without them, but for encodings, which are the same here."""
    X, _, recorded = table()
    model, _ = fitted(X, recorded, missed_cases=1 / 3)
    aside = np.isin(np.arange(len(X)), model.missed_cases_.rows)
    scores = model.score_samples(X)
    assert scores[aside].mean() > fitted(X, recorded)[0].score_samples(X)[aside].mean()


def test_rows_without_weight_are_scored_and_not_measured():
    rows = HeldOutRows(np.array([True, False, False]), None, np.arange(3))
    assert rows.without(np.array([False, True, False])).tested_weight.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("asked", [0, 1, -0.2, 1.5, "often", True, np.nan, [0.1]])
def test_a_share_that_is_none_is_refused(asked):
    X, _, recorded = table(60, 10, 0)
    with refused(ErrorKind.SETTING):
        RareClassifier(missed_cases=asked).fit(X, recorded)
