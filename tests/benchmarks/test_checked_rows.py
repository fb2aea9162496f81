"""The benchmark of estimates from checked rows: reviews that check what they say."""

import numpy as np
import pytest

from benchmarks import checked_rows
from benchmarks.pages.decisions import PAGES


@pytest.fixture(scope="module")
def rows():
    return checked_rows.scored(checked_rows.MADE[0])


@pytest.mark.parametrize("kind", checked_rows.REVIEWS)
def test_a_review_finds_about_as_many_rare_rows_as_it_is_to(rows, kind):
    size = checked_rows.size_of(rows, kind, 60)
    found, totals = [], []
    for seed in range(8):
        sample = checked_rows.REVIEWS[kind](rows, size, np.random.default_rng(seed))
        known = sample.y >= 0
        assert (sample.y[known] == rows.y[known]).all()
        found.append((sample.y == 1).sum())
        totals.append(sample.weight.sum())
    assert 45 < np.mean(found) < 80
    assert np.mean(totals) == pytest.approx(len(rows.y), rel=0.01)


def test_too_few_rare_rows_make_no_review(rows):
    few = rows._replace(y=np.where(np.cumsum(rows.y) <= 30, rows.y, 0))
    assert checked_rows.size_of(few, "rounds", 30) is None


def test_what_was_compared_is_printed(rows):
    size = checked_rows.size_of(rows, "rounds", 30)
    compared = [
        checked_rows.compare(rows, kind, 30, size, 2) for kind in ("alerts + random", "rounds")
    ]
    assert all(row["naive_bias"]["recall"] > 0.5 for row in compared)
    result = {"reviews": 2, "rows": compared, "recall": checked_rows.widths(rows, 2)}
    text = PAGES["checked_rows"].render(result)
    assert len(text.split("| recall |")) > 4
    assert all(f"{n:,} checks" in text for n in checked_rows.CHECKS)
