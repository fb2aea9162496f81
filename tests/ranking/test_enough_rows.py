"""How many majority rows are enough beside the rare ones, against sums over all of them."""

from dataclasses import replace

import numpy as np
import pytest

from made_tables import rare_mixture
from rareclass import RankRC, rankrc_path
from rareclass.kernels import expansion
from rareclass.metrics import roc_auc
from rareclass.ranking import ranking_data
from rareclass.ranking import solve as paths
from rareclass.ranking.problem import answer
from rareclass.ranking.solvers import part
from rareclass.ranking.solvers.part import enough_stride
from rareclass.rows import from_arrays
from rows_in_process import InProcess, held

X, Y = rare_mixture(60_000, 60, seed=3)
STRIDE = 40


@pytest.fixture
def many(monkeypatch):
    """Treat these rows as millions: short runs, every fortieth in the part, tol="auto" loose."""
    monkeypatch.setattr("rareclass.rows.protocol.RUN_ROWS", 50)
    monkeypatch.setattr(expansion, "_MOST_BLOCK_ROWS", 50)
    for module in (paths, ranking_data):
        monkeypatch.setattr(module, "part_stride", lambda n_rows, n_landmarks: STRIDE)
    monkeypatch.setattr(paths, "_MANY_ROWS", 1000)
    for module in (paths, part):
        monkeypatch.setattr(module, "ROWS_TOLD_BY_A_PART", 1000)


@pytest.fixture
def chosen(monkeypatch):
    """Strides that are chosen, as they come."""
    found = []

    def noted(*args):
        found.append(enough_stride(*args))
        return found[-1]

    monkeypatch.setattr(part, "enough_stride", noted)
    return found


def made(n_rare=60):
    """Rows with so many rare ones, of kinds that take turns."""
    table = rare_mixture(60_000, n_rare, seed=3)
    machine = RankRC(landmarks=("rare", 60), loss="squared_hinge", random_state=0, n_jobs=1)
    return machine._prepare(*table, None).problem(1e-2)


def near_minimum(problem):
    return part.PartEnds(problem, STRIDE, False).next(problem.lam).at


def standard_errors(problem, w):
    """Of the gradient: of the rare rows, and of as many majority rows as there are; row by row."""
    features = problem.rows.map(lambda block: problem.expansion.matrix(block) @ problem.whitener)
    rare = problem.rare_kernel @ problem.whitener
    slopes = -np.maximum(1.0 - (rare @ w)[:, None] + (features @ w)[None, :], 0.0)
    of_rare = slopes.mean(axis=1)[:, None] * rare
    of_majority = slopes.mean(axis=0)[:, None] * features
    return [
        np.sqrt(np.square(each - each.mean(axis=0)).sum() / len(each)) / np.sqrt(len(each))
        for each in (of_rare, of_majority)
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_rare", [600, 60, 2000, 1000])
def test_it_is_the_largest_power_of_two_with_a_quarter_of_the_rare_rows_error(many, n_rare):
    problem = made(n_rare)
    at = near_minimum(problem)
    of_rare, of_all = standard_errors(problem, at.w)
    exact = (0.25 * of_rare / of_all) ** 2
    found = enough_stride(problem, STRIDE, at)
    most = STRIDE // 5
    # Halves tell the errors to about a third.
    assert min(exact / 4.0, most / 2.0) <= found <= min(2.0 * exact, most)


def test_a_rare_row_or_a_majority_without_weight_asks_all_rows(many):
    problem = made()
    at = near_minimum(problem)
    one = np.zeros_like(problem.rare_weight)
    one[3] = 1.0
    assert enough_stride(replace(problem, rare_weight=one), STRIDE, at) == 1
    assert enough_stride(problem, 9, at) == 1  # a part of many of the rows


def test_fewer_rows_are_asked_and_the_ranking_is_that_of_all(many, chosen, monkeypatch):
    settings = {"landmarks": ("rare", 60), "random_state": 0, "n_jobs": 1}
    some = RankRC(lam=1e-2, **settings).fit(X, Y)
    assert chosen
    assert max(chosen) > 1
    monkeypatch.setattr(part, "enough_stride", lambda *_: 1)
    whole = RankRC(lam=1e-2, **settings).fit(X, Y)
    f, g = some.score_samples(X), whole.score_samples(X)
    assert np.corrcoef(f, g)[0, 1] > 0.999
    assert roc_auc(Y, f) == pytest.approx(roc_auc(Y, g), abs=2e-3)
    assert some.history_[-1].passes < 0.7 * whole.history_[-1].passes


def test_a_number_for_tol_asks_all_rows(many, chosen):
    RankRC(lam=1e-2, tol=1e-3, n_jobs=1).fit(X, Y)
    assert not chosen


def test_lams_that_need_the_same_rows_share_their_passes(many, chosen, monkeypatch):
    asked = set()

    def noted(questions):
        asked.update((q.problem.rows.n_rows, id(q.problem.rows)) for q in questions)
        return answer(questions)

    monkeypatch.setattr("rareclass.ranking.problem.answer", noted)
    rankrc_path(X, Y, lams=[1e-2, 0.9e-2, 0.8e-2], n_jobs=1)
    assert len(chosen) == 3
    assert len(set(chosen)) == 1
    most = max(n_rows for n_rows, _ in asked)
    assert most < 0.7 * len(Y)
    assert sum(n_rows == most for n_rows, _ in asked) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n_parts", [1, 2, 7])
@pytest.mark.parametrize("stays", [True, False])
def test_rows_in_parts_ask_the_same_rows(many, chosen, monkeypatch, n_parts, stays):
    monkeypatch.setattr("rareclass.rows.dask_rows._MOST_BROUGHT", 0 if stays else 2**40)
    machine = RankRC(lam=1e-2, landmarks=("rare", 40), random_state=0, n_jobs=1)
    expected = machine.fit_rows(from_arrays(X, Y)).score_samples(X[:500])
    with held(InProcess(), np.array_split(X, n_parts), np.array_split(Y, n_parts)) as rows:
        found = machine.fit_rows(rows).score_samples(X[:500])
    assert chosen[0] == chosen[1] > 1
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
