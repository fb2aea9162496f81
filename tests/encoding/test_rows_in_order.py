"""Values whose rare rows stand close together are found, and taken for what they are worth."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from draws import draws
from rareclass import RareClassifier
from rareclass.encoding.label_statistics import halves, holds_nearby_only
from rareclass.encoding.log_odds import CategoryStatistics, PartedRows, log_loss
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.typed_table import read_table
from rareclass.ensemble.members.machines import LogisticOnQuantiles
from rareclass.findings import finding_of

N, N_CARDS, N_DAYS = 6000, 100, 60


def payments(seed=0, in_bursts=True):
    rng = np.random.default_rng(seed)
    day = np.arange(N) * N_DAYS // N
    card = rng.integers(0, N_CARDS, N)
    begins = np.where(rng.random(N_CARDS) < 0.5, rng.integers(0, N_DAYS, N_CARDS), 10 * N_DAYS)
    since = day - begins[card]
    abused = (since >= 0) & (since < 10) if in_bursts else begins[card] < N_DAYS
    rare = abused & (rng.random(N) < 0.4)
    return card, rare, day


def nearby(card, rare, weight=None):
    weight = np.ones(len(rare)) if weight is None else weight
    return holds_nearby_only(card, N_CARDS, rare, weight)


@pytest.mark.parametrize("seed", range(3))
def test_bursts_are_told_from_lasting_rates(seed):
    card, rare, _ = payments(seed)
    assert nearby(card, rare)
    assert not nearby(*payments(seed, in_bursts=False)[:2])
    # Neither the same rows in any order, nor rows sorted by their label.
    order = np.random.default_rng(seed).permutation(N)
    assert not nearby(card[order], rare[order])
    by_label = order[np.argsort(rare[order], kind="stable")]
    assert not nearby(card[by_label], rare[by_label])


def test_a_table_sorted_by_the_column_is_none_in_bursts():
    card, rare, _ = payments(in_bursts=False)
    order = np.argsort(card, kind="stable")
    assert not nearby(card[order], rare[order])
    # Nor does a row here and there that is out of place make it one.
    order[[5, 3000]] = order[[3000, 5]]
    assert not nearby(card[order], rare[order])


def test_the_middle_third_is_not_asked():
    """Cards of the first two thirds are others in the last; the middle one has all the weight."""
    rng = np.random.default_rng(0)
    card, third = rng.integers(0, N_CARDS, N), 3 * np.arange(N) // N
    rare = (card < N_CARDS // 2) == (third < 2)
    rare &= rng.random(N) < 0.4
    assert nearby(card, rare, np.where(third == 1, 1e4, 1.0))


def test_too_little_is_no_ground():
    card, rare, _ = payments()
    few = rare & (np.cumsum(rare) <= 39)
    assert not nearby(card, few)
    assert not holds_nearby_only(card % 10, 10, rare, np.ones(N))  # no names of cards


@given(st.integers(0, 2**32), st.booleans())
@draws(20)
def test_the_losses_are_those_of_the_other_half_by_hand(seed, is_weighted):
    rng = np.random.default_rng(seed)
    card, rare, _ = payments(seed % 7)
    weight = rng.integers(1, 4, N).astype(float) if is_weighted else np.ones(N)
    half = np.zeros(N, int)
    for one in (False, True):
        rows = np.flatnonzero(rare == one)
        half[rows[(len(rows) + 1) // 2 :]] = 1
    losses = []
    for fold in (half, None):
        if fold is None:
            fold = np.zeros(N, int)
            for one in (False, True):
                rows = np.flatnonzero(rare == one)
                fold[rows[1::2]] = 1
        known = CategoryStatistics()
        log_odds = known.fit_transform(card, N_CARDS, PartedRows(rare, weight, fold))
        losses.append(weight * log_loss(expit(log_odds + logit(known.prior_)), rare))
    more = (losses[0] - losses[1]).sum()
    of_prior = weight @ log_loss(np.full(N, weight @ rare / weight.sum()), rare)
    if abs(more / of_prior - 0.05) > 0.01:  # else the errors decide
        assert nearby(card, rare, weight) == (more > 0.05 * of_prior)


@given(st.integers(1, 200))
@draws(30)
def test_halves_are_halves(n):
    half = halves(n)
    assert (np.diff(half) >= 0).all()
    assert (half == 0).sum() == (n + 1) // 2


def test_log_odds_of_training_are_then_those_of_the_other_half():
    card, rare, _ = payments()
    frame = pd.DataFrame({"card": [f"card {k}" for k in card]})
    fold = np.random.default_rng(2).integers(0, 5, N)
    drawn, as_given = TableStatistics(), TableStatistics()
    encoded = drawn.fit_encode(read_table(frame), rare, None, fold, np.arange(N))
    of_folds = as_given.fit_encode(read_table(frame), rare, None, fold)
    assert drawn.nearby_only_ == ["card"]
    assert as_given.nearby_only_ == ["card"]  # told, but the order need not be that of time
    for found, made_of in ((encoded, halves(N)), (of_folds, fold)):
        expected = CategoryStatistics().fit_transform(
            found.levels[0], drawn.known_[0].n_levels, PartedRows(rare, np.ones(N), made_of)
        )
        np.testing.assert_allclose(found.of_labels[0].log_odds[:, 0], expected)


def test_it_is_said_where_no_time_is_given():
    """Some cards are abused for good, too: all folds learn from the column."""
    card, rare, day = payments()
    rng = np.random.default_rng(0)
    rare |= (rng.random(N_CARDS) < 0.15)[card] & (rng.random(N) < 0.4)
    frame = pd.DataFrame({"card": [f"c{k}" for k in card], "amount": rng.random(N)})
    model = RareClassifier(members=[LogisticOnQuantiles(strengths=(0.1,))], cv=3, n_jobs=1)
    with pytest.warns(
        UserWarning, match="rare rows with one value of card stand close together"
    ) as told:
        model.fit(frame, rare)
    (finding,) = [finding_of(each.message) for each in told]
    assert finding.values == {"columns": ["card"]}
    assert model.columns_[0].is_used
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "rare rows with one value")
        model.fit(frame, rare, time=day)
    assert model.columns_[0].is_used


def test_codes_that_are_none_beyond_their_half_are_left_out_and_told():
    """Out of the halves no card tells more than its bin: it has no feature at all."""
    card, rare, day = payments()
    amount = np.random.default_rng(1).random(N)
    frame = pd.DataFrame(
        {"card": card, "amount": amount, "when": np.datetime64("2026-01-01") + day}
    )
    model = RareClassifier(members=[LogisticOnQuantiles(strengths=(0.1,))], n_jobs=1)
    with pytest.warns(UserWarning, match="card is not used") as told:
        model.fit(frame, rare)
    (finding,) = [finding_of(each.message) for each in told]
    assert finding.values["columns"] == ["card"]
    assert [each.is_used for each in model.columns_] == [False, True, True]
