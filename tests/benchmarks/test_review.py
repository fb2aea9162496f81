"""The benchmark of reviews: labels stay hidden until asked for; means and ranks are right."""

import numpy as np
import pytest

from benchmarks import review

# LightGBM 4.6 names the columns of an array itself, and misses the names later.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")


def rows(n=480):
    rng = np.random.default_rng(0)
    rare = np.arange(n) % 12 == 0
    return review.Rows(rng.normal(size=(n, 3)) + 3.0 * rare[:, None], rare)


def test_a_strategy_sees_labels_only_of_rows_that_it_chose():
    seen = []

    def choose(known):
        seen.append(known._replace(label=known.label.copy()))
        return np.arange(known.budget)

    found = review.simulate(rows(), choose, 0)
    assert len(seen) == review.ROUNDS
    n_known = [np.count_nonzero(~np.isnan(known.label)) for known in seen]
    assert n_known[0] == 25
    assert set(np.diff(n_known)) == {found["budget"]}
    assert all(np.isnan(known.label[known.free]).all() for known in seen)
    assert len(found["found"]) == len(found["average_precision"]) == review.ROUNDS + 1
    assert found["found"][0] == 0
    assert max(found["found"]) <= found["hidden"]


def test_strategies_choose_as_many_as_asked_for():
    for choose in (review.by_review(), review.by_top_score, review.at_random):
        seen = []

        def check(known, choose=choose, seen=seen):
            places = choose(known)
            seen.append(len({*places.tolist()}) == known.budget)
            assert places.max() < len(known.free)
            return places

        review.simulate(rows(), check, 1)
        assert all(seen)


def cell(one, strategy, found, precision):
    return {"set": one, "strategy": strategy, "seed": 0, "hidden": 10, "budget": 5,
            "found": [0, found], "average_precision": [0.0, precision]}  # fmt: skip


def test_the_page():
    cells = [
        cell("wine", "review", 8, 0.5), cell("wine", "random", 2, 0.4),
        cell("kdd", "review", 6, 0.3), cell("kdd", "random", 4, 0.6),
        cell("credit", "review", 6, 0.3),
    ]  # fmt: skip
    assert review.complete(cells, review.CONFIRMING) == (["review", "random"], ["wine", "kdd"])
    page = review.page({"cells": cells})
    assert "| review | 0.700 | 1.00 | 0.400 | 1.50 |" in page
    assert "| random | 0.300 | 2.00 | 0.500 | 1.50 |" in page
    assert "0.80 / 0.500" in page
