"""Audits of made labels: what is listed, why, how many there are, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import rareclass.labels
from draws import thorough
from faults import refused
from rareclass.audit import MISSED, WRONG, TableRows, audit_frame, score_out_of_fold
from rareclass.ensemble.members.machines import LogisticOnQuantiles
from rareclass.errors import ErrorKind

QUICK = {"members": [LogisticOnQuantiles(strengths=(0.1,))], "verbose": False, "n_jobs": 1}


def table(n_rows=600, n_rare=60, n_missed=15, n_wrong=5, seed=0):
    """Rows that stand apart by two of three columns, and which of them have a wrong label."""
    rng = np.random.default_rng(seed)
    rare = np.arange(n_rows) < n_rare
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)).round(3), columns=["amount", "hour", "noise"])
    X.loc[rare, ["amount", "hour"]] += 5.0
    X["country"] = np.where(rng.random(n_rows) < 0.5, "DE", "FR")
    missed, wrong = np.arange(n_missed), np.arange(n_rows - n_wrong, n_rows)
    recorded = rare.copy()
    recorded[missed], recorded[wrong] = False, True
    order = rng.permutation(n_rows)
    place = np.argsort(order)
    X = X.iloc[order].reset_index(drop=True)
    return X, np.where(recorded, "yes", "no")[order], place[missed], place[wrong]


@pytest.fixture(scope="module")
def audited():
    X, y, missed, wrong = table()
    X.loc[missed[0]] = X.loc[np.flatnonzero(y == "yes")[0]]
    return rareclass.labels.audit(X, y, top=20, **QUICK), X, y, missed, wrong


def test_wrong_labels_come_first_and_are_no_more_than_the_limit(audited):
    found, _, _, missed, wrong = audited
    assert found.pos_label == "yes"
    assert len(set(found.missed.row[:15]) & set(missed)) >= 11
    assert set(found.wrong.row[:5]) == set(wrong)
    for suspects, planted in ((found.missed, missed), (found.wrong, wrong)):
        assert len(planted) <= suspects.limit.most <= len(planted) + 20
        assert len(suspects.row) == 20
    assert (np.diff(found.missed.score) <= 0.0).all()
    assert (np.diff(found.wrong.score) >= 0.0).all()
    assert found.missed.probability[0] > 0.5 > found.wrong.probability[0]


def test_reasons_and_cases_are_those_of_the_row(audited):
    found, X, y, missed, wrong = audited
    for suspects, planted in ((found.missed, missed), (found.wrong, wrong)):
        rows = zip(suspects.row, suspects.reasons, strict=True)
        reasons = [set(each) for row, each in rows if row in planted and each]
        assert np.mean([bool(each & {"amount", "hour"}) for each in reasons]) > 0.6
    for suspects in (found.missed, found.wrong):
        assert suspects.case.shape == suspects.distance.shape == (20, 3)
        assert (y[suspects.case] == "yes").all()
        assert (suspects.case != suspects.row[:, None]).all()
        assert (np.diff(suspects.distance, axis=1) >= 0.0).all()
    row = list(found.missed.row).index(_twins(found.missed)[0])
    other = found.missed.contradictions[row][0]
    assert y[other] == "yes"
    assert X.loc[other].equals(X.loc[found.missed.row[row]])


def _twins(suspects):
    rows = zip(suspects.row, suspects.contradictions, strict=True)
    return [row for row, others in rows if len(others)]


def test_the_table_has_a_line_for_each_suspect(audited):
    found, X, _, _, _ = audited
    numbers = np.arange(101, 101 + len(X))
    frame = audit_frame(found, TableRows(pl.from_pandas(X), numbers.tolist()))
    assert frame["suspect"].to_list() == [MISSED] * 20 + [WRONG] * 20
    assert frame["row"].to_list()[:20] == (found.missed.row + 101).tolist()
    assert frame["case_1"].to_list()[:20] == (found.missed.case[:, 0] + 101).tolist()
    assert frame["reason_1"][0] == found.missed.reasons[0][0]
    assert float(frame["value_1"][0]) == X.loc[found.missed.row[0], frame["reason_1"][0]]
    n_twins = len(_twins(found.missed)) + len(_twins(found.wrong))
    assert frame["contradicts"].count() == n_twins >= 1
    names = [f"r{k}" for k in range(len(X))]
    named = audit_frame(found, TableRows(pl.from_pandas(X), numbers.tolist(), names))
    assert named["name"][0] == f"r{found.missed.row[0]}"
    assert named["case_1"][0] == f"r{found.missed.case[0, 0]}"


def test_copies_may_be_rows_with_a_weight():
    X, y, missed, _ = table(300, 30, 6, 0)
    found = rareclass.labels.audit(
        X.to_numpy(), y, sample_weight=np.full(len(y), 2), top=9, n_repeats=1, **QUICK
    )
    assert len(set(found.missed.row) & set(missed)) >= 5
    assert found.missed.limit.n_labelled == 2.0 * (y == "yes").sum()


def test_the_limit_holds_for_out_of_fold_scores_of_rows_that_stand_apart():
    """On the scale of its own fold a row that lost its label is held down by itself."""
    limits, both = [], QUICK | {"members": ["histogram boosting", *QUICK["members"]]}
    for seed in range(1, 41 if thorough() else 4):
        X, y, missed, _ = table(400, 60, 15, 0, seed)
        limits.append(score_out_of_fold(X, y, **both).limit().most)
    assert np.mean(np.array(limits) >= len(missed)) >= 0.9
    assert np.median(limits) < 2 * len(missed)


def test_majority_rows_that_are_drawn_stand_for_all_and_their_limit_for_the_table(monkeypatch):
    monkeypatch.setattr("rareclass.ensemble.training_rows._MOST_HELD_OUT", 150)
    X, y, missed, _ = table()
    scores = score_out_of_fold(X, y, **QUICK)
    seen = ~np.isnan(scores.score)
    assert 150 < (seen & ~scores.is_rare).sum() < 300  # each model draws its own
    for rows in (scores.is_rare, ~scores.is_rare):
        assert scores.weight[rows & seen].sum() == pytest.approx(rows.sum())
    assert len(missed) <= scores.limit().most


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (["no"] * 10, ErrorKind.LABELS),
        ([None] * 10, ErrorKind.LABELS),
        (["yes", None] + ["no"] * 8, ErrorKind.LABELS),
        (["yes"] + ["no"] * 9, ErrorKind.TOO_FEW_ROWS),
    ],
)
def test_labels_that_cannot_be_audited_are_refused(y, kind):
    with refused(kind):
        rareclass.labels.audit(np.arange(10.0)[:, None], np.array(y, dtype=object), **QUICK)


@pytest.mark.parametrize("setting", ["top", "n_repeats", "n_cases", "n_reasons"])
def test_settings_outside_their_range_are_refused(setting):
    X, y, _, _ = table(60, 10, 0, 0)
    with pytest.raises(ValueError, match=setting):
        rareclass.labels.audit(X, y, **QUICK, **{setting: 0})


def test_the_labels_room_has_no_other_name_of_the_kind():
    with pytest.raises(AttributeError, match="audits"):
        rareclass.labels.audits  # noqa: B018
