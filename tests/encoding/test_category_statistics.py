"""Log-odds of levels: against a plain loop, and against a general likelihood."""

from contextlib import nullcontext
from copy import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom

from draws import draws
from rareclass.encoding.known_levels import KnownWords
from rareclass.encoding.log_odds import (
    SMOOTHINGS,
    CategoryStatistics,
    LevelCounts,
    PartedRows,
    choose_smoothing,
)

ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 3), st.integers(0, 2)),
    min_size=2,
    max_size=30,
).filter(lambda rows: {bool(y) for _, y, w, _ in rows if w} == {True, False})


def columns(rows):
    code, y, weight, fold = zip(*rows, strict=True)
    return np.array(code), np.array(y), np.array(weight, float), np.array(fold)


def one_log_odds(rows, level, prior, smoothing, other_than=None):
    rare = others = 0.0
    for code, y, weight, fold in rows:
        if code == level and fold != other_than:
            rare, others = rare + weight * y, others + weight * (not y)
    odds = (rare + smoothing * prior) / (others + smoothing * (1 - prior))
    return np.log(odds) - np.log(prior / (1 - prior))


@draws(80)
@given(ROWS)
def test_the_definition_row_by_row(rows):
    code, y, weight, fold = columns(rows)
    statistics = CategoryStatistics()
    out_of_fold = statistics.fit_transform(code, 5, PartedRows(y, weight, fold))
    prior, smoothing = (weight @ y) / weight.sum(), statistics.smoothing_
    wanted = [one_log_odds(rows, row[0], prior, smoothing, row[3]) for row in rows]
    np.testing.assert_allclose(out_of_fold, wanted, atol=1e-9)
    levels = np.array([one_log_odds(rows, level, prior, smoothing) for level in range(5)])
    assert levels[4] == 0
    new = np.array([3, 0, 4, 2, 1])
    np.testing.assert_allclose(statistics.transform(new), levels[new], atol=1e-9)
    counts = np.log1p([sum(row[2] for row in rows if row[0] == level) for level in range(5)])
    np.testing.assert_allclose(statistics.log_counts(new), counts[new])


def test_the_likeliest_smoothing():
    rng = np.random.default_rng(0)
    rows = rng.integers(1, 60, 200).astype(float)
    shares = rng.beta(20 * 0.1, 20 * 0.9, 200)
    counts = LevelCounts(rows, rng.binomial(rows.astype(int), shares).astype(float))
    likelihood = [
        betabinom.logpmf(counts.rare, counts.rows, a * 0.1, a * 0.9).sum() for a in SMOOTHINGS
    ]
    assert choose_smoothing(counts, 0.1) == SMOOTHINGS[np.argmax(likelihood)]
    assert 8 <= choose_smoothing(counts, 0.1) <= 64


@pytest.mark.parametrize("n_levels", [5, 300])
def test_a_column_that_says_nothing_is_smoothed_most_and_one_that_says_all_least(n_levels):
    rng = np.random.default_rng(1)
    code = rng.integers(0, n_levels, 3000)
    noise, certain = CategoryStatistics(), CategoryStatistics()
    for each, y in ((noise, rng.random(3000) < 0.1), (certain, code % 10 == 0)):
        each.fit_transform(code, n_levels, PartedRows(y, np.ones(3000), code % 3))
    assert noise.smoothing_ >= 256
    assert certain.smoothing_ < 1


def test_counts_out_of_part_do_not_know_the_row_itself():
    """Against a loop; the weight of a level's only row, which thinning may set, is not told."""
    codes, fold = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 1, 0, 0, 1])
    weight = np.array([1.0, 2.0, 2.0, 7.0, 1.0, 1.0])
    found = CategoryStatistics.log_counts_out_of_part(codes, weight, fold)
    for k in range(6):
        others = fold != fold[k]
        count = weight[others & (codes == codes[k])].sum() * weight.sum() / weight[others].sum()
        np.testing.assert_allclose(found[k], np.log1p(count))
    weight[3] = 1.0
    assert CategoryStatistics.log_counts_out_of_part(codes, weight, fold)[3] == 0.0 == found[3]


def test_words_whose_ends_leave_their_text_are_refused():
    known = KnownWords().fit(["red", "", "blue", "green"])  # ends 0, 3, 3, 7, 12
    known.check_parts()
    for place in range(5):
        for end in (-1, 2, 4, 8, 13):
            ends = known.ends_.copy()
            ends[place] = end
            other = copy(known)
            other.ends_ = ends
            is_sound = ends[0] == 0 and ends[4] <= 12 and (np.sort(ends) == ends).all()
            with nullcontext() if is_sound else pytest.raises(ValueError, match="ends_ point"):
                other.check_parts()
