"""Drawn majority rows are as many as there is time for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from rareclass.ensemble.budget import Budget, CostModel
from rareclass.ensemble.members.linear import LogisticOnQuantiles
from rareclass.ensemble.members.member import Size, Stopped
from rareclass.ensemble.members.scikit_learn import HistogramBoosting
from rareclass.ensemble.thinning import LEAST_PER_RARE, LEAST_ROWS, affordable_rows


class Linear:
    """A member whose time is that of its cells."""

    name, view, package, most_majority = "linear", "quantiles", None, None

    def cost(self, size):
        return float(size.n_rows * size.n_features)


class Square(Linear):
    name = "square"

    def cost(self, size):
        return float(size.n_rows) ** 2


class AtMost(Square):
    """Learns from so many majority rows at most."""

    most_majority = 30_000


@given(
    st.floats(1e-4, 1.5),
    st.integers(1, 10**4),
    st.integers(1, 10**7),
    st.sampled_from([Linear(), Square(), AtMost()]),
)
@draws(100)
def test_as_many_rows_as_fit_in_the_time(share, n_rare, n_majority, member):
    costs = CostModel()
    costs.learn(member, Size(2_000, 100, 10), 5, 0.2)

    def foretold(n):
        return costs.foretell(member, Size(n_rare + n, n_rare, 10), 5)

    most = n_majority if member.most_majority is None else min(n_majority, member.most_majority)
    seconds = share * foretold(most)
    found = affordable_rows(costs, member, 10, n_rare, n_majority, 5, seconds)
    least = min(most, max(LEAST_ROWS, LEAST_PER_RARE * n_rare))
    assert least <= found <= most
    assert found == least or foretold(found) <= seconds * (1 + 1e-9)
    assert found == most or foretold(1.03 * found + 2) > seconds


def test_time_is_foretold_from_what_a_member_took():
    costs, member = CostModel(), Linear()
    assert costs.foretell(member, Size(100, 10, 5), 5) is None
    costs.learn(member, Size(100, 10, 5), 5, 2.0)
    assert costs.foretell(member, Size(1000, 10, 10), 5) == pytest.approx(40.0)
    assert costs.foretell(member, Size(100, 10, 5), 10) == pytest.approx(4.0)
    costs.learn(member, Size(200, 10, 5), 5, 2.0)  # the last word counts
    assert costs.foretell(member, Size(100, 10, 5), 5) == pytest.approx(1.0)


def test_a_member_that_is_known_is_slower_as_others_were():
    size = Size(5000, 100, 10)
    costs, trees, linear = CostModel(), HistogramBoosting(), LogisticOnQuantiles()
    usual = costs.foretell(linear, size, 5)
    assert usual > 0.0
    costs.learn(trees, size, 5, 3.0 * costs.foretell(trees, size, 5))
    assert costs.foretell(linear, size, 5) == pytest.approx(3.0 * usual)
    costs.learn(Linear(), size, 5, 1e9)  # of a unit of its own: says nothing of others
    assert costs.foretell(linear, size, 5) == pytest.approx(3.0 * usual)
    costs.learn(linear, size, 5, 0.5 * usual)
    assert costs.foretell(linear, size, 5) == pytest.approx(0.5 * usual)


def test_a_member_is_stopped_somewhat_after_the_end(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("rareclass.ensemble.budget.time.perf_counter", lambda: now[0])
    budget = Budget(10.0, started=100.0)
    now[0] = 108.0
    assert budget.left == pytest.approx(2.0)
    budget.check()
    now[0] = 111.0
    budget.check()
    assert budget.left == pytest.approx(-1.0)
    now[0] = 112.0
    with pytest.raises(Stopped):
        budget.check()
