"""Parts of the rows in place of all of them: what they foresee, and how many rows are enough."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from made_tables import rare_mixture
from rareclass import RankRC, RankRCCV, rankrc_path
from rareclass.findings import Status
from rareclass.kernels import expansion
from rareclass.metrics import roc_auc
from rareclass.ranking import ranking_data
from rareclass.ranking import solve as paths
from rareclass.ranking.problem import answer, solve
from rareclass.ranking.ranking_data import PreparedRanking
from rareclass.ranking.solvers import part
from rareclass.ranking.solvers.part import PartDirection, Witnesses, enough_stride
from rareclass.rows import from_arrays
from rows_in_process import InProcess, held

X, Y = rare_mixture(20_000, 40, seed=3)
LONG, LONG_Y = rare_mixture(30_000, 60, seed=3)
LAMS = [1.0, 2.0**-6, 2.0**-12]
STRIDE = 40


def treat_as_many(monkeypatch, stride, run_rows):
    """Short runs, every `stride`-th in the part, and a loose tol="auto" beyond 1,000 rows."""
    monkeypatch.setattr("rareclass.rows.protocol.RUN_ROWS", run_rows)
    monkeypatch.setattr(expansion, "_MOST_BLOCK_ROWS", run_rows)
    for module in (paths, ranking_data):
        monkeypatch.setattr(module, "part_stride", lambda n_rows, n_landmarks: stride)
    monkeypatch.setattr(paths, "ROWS_TOLD_BY_A_PART", 1000)
    monkeypatch.setattr(paths, "_MANY_ROWS", 1000)


@pytest.fixture
def many(monkeypatch):
    """Treat these rows as a million."""
    treat_as_many(monkeypatch, 10, 100)


@pytest.fixture
def millions(monkeypatch):
    """Treat these rows as millions, of which a part may be asked in place of all."""
    treat_as_many(monkeypatch, STRIDE, 50)
    monkeypatch.setattr(part, "ROWS_TOLD_BY_A_PART", 1000)


def problem_and_points(many):
    problem = RankRC(n_jobs=1)._prepare(X, Y, None).problem(0.01)
    rng = np.random.default_rng(0)
    w = rng.normal(size=problem.rank)
    return problem, problem.evaluate(w), w + 0.1 * rng.normal(size=problem.rank)


def test_the_mean_change_of_two_parts_is_added_to_what_is_known(many):
    problem, at, w = problem_and_points(many)
    told = solve(Witnesses.of(problem, 10).foresee(at, w))
    changes, values = [], []
    for first in (5, 15):
        other = problem.on_part(20, first)
        change = [other.evaluate(v) for v in (at.w, w)]
        changes.append(change[1].gradient - change[0].gradient)
        values.append(change[1].value - change[0].value)
    np.testing.assert_allclose(told.at.gradient, at.gradient + np.mean(changes, axis=0), rtol=1e-9)
    assert told.at.value == pytest.approx(at.value + np.mean(values))
    assert told.error == pytest.approx(np.linalg.norm(changes[0] - changes[1]) / 2)
    np.testing.assert_array_equal(told.at.w, w)
    np.testing.assert_array_equal(told.at.coefficients, problem.whitener @ w)
    assert told.passes == pytest.approx(0.2, rel=0.1)
    again = solve(Witnesses.of(problem, 10).foresee(at, w, told.here))
    np.testing.assert_allclose(again.at.gradient, told.at.gradient, atol=1e-12)
    assert again.passes == pytest.approx(0.1, rel=0.1)


def test_the_standard_error_is_that_of_the_estimate(many):
    """Root mean squares over many ways to cut the rows into parts: they agree."""
    problem, at, w = problem_and_points(many)
    truth = problem.evaluate(w).gradient
    halves = [(problem.on_part(20, first), problem.on_part(20, first + 10)) for first in range(10)]
    told = [solve(Witnesses(pair, 0.1).foresee(at, w)) for pair in halves]
    errors = [np.linalg.norm(each.at.gradient - truth) for each in told]
    size = np.sqrt(np.mean(np.square(errors)))
    assert size < 0.1 * np.linalg.norm(truth - at.gradient)
    assert np.sqrt(np.mean([each.error**2 for each in told])) == pytest.approx(size, rel=0.3)


def test_witnesses_of_all_rows_are_never_wrong(many):
    problem, at, w = problem_and_points(many)
    told = solve(Witnesses((problem, problem), 2.0).foresee(at, w))
    np.testing.assert_allclose(told.at.gradient, problem.evaluate(w).gradient, rtol=1e-9)
    assert told.at.value == pytest.approx(problem.evaluate(w).value)
    assert told.error == 0.0


def test_witnesses_that_disagree_are_not_believed(many):
    problem, at, _ = problem_and_points(many)
    agree = Witnesses.of(problem, 10)
    goal = 0.5 * float(np.linalg.norm(at.gradient))
    direction = PartDirection(problem.on_part(10), 0.1, None, agree)
    found = solve(direction.towards(at, 0.1 * goal, goal))
    assert found.foreseen is not None
    # A pass of both witnesses at the point and at the end of each step, beside those of the part.
    alone = solve(PartDirection(problem.on_part(10), 0.1).towards(at, 0.1 * goal, goal)).cost
    assert found.cost >= alone + solve(agree.foresee(at, at.w)).passes
    # Each sees another curvature; their mean is right all the same.
    more, less = (replace(agree.problems[k], lam=lam) for k, lam in enumerate((5.01, -4.99)))
    apart = Witnesses((more, less), 0.1)
    direction = PartDirection(problem.on_part(10), 0.1, None, apart)
    found = solve(direction.towards(at, 0.1 * goal, goal))
    assert found.foreseen is None
    assert found.step @ at.gradient < 0.0


def test_no_witnesses_where_they_cost_much_or_nobody_counts(many):
    problem = RankRC()._prepare(X, Y, None).problem(0.01)
    assert Witnesses.of(problem, 9) is None
    seen = (
        RankRC()
        ._prepare(X, Y, None)
        .data.target.labels.majority[problem.on_part(20, 15).rows.numbers]
    )
    held_out = np.isin(np.arange(len(Y)), seen)
    assert Witnesses.of(RankRC()._prepare(X, Y, None).problem(0.01, held_out), 10) is None


@pytest.mark.sampled(0)
def test_what_is_foreseen_holds_for_all_rows(many):
    """One pass of all rows for each lam, at whose end the optimality is what was told."""
    models = rankrc_path(X, Y, LAMS, n_jobs=1)
    settings = RankRC()._prepare(X, Y, None)
    reference = settings.problem(1.0).on_part(10)
    norm = np.linalg.norm(reference.evaluate(np.zeros(reference.rank)).gradient)
    for model in models:
        assert model.status_ == str(Status.CONVERGED)
        problem = settings.problem(model.lam)
        w = np.linalg.lstsq(problem.whitener, model.dual_coef_, rcond=None)[0]
        optimality = np.linalg.norm(problem.evaluate(w).gradient) / norm
        assert optimality <= 1.5e-3
    assert sum(model.history_[-1].foreseen for model in models if model.history_) >= 2
    exact = rankrc_path(X, Y, LAMS, n_jobs=1, tol=1e-6)
    for model, other in zip(models, exact, strict=True):
        assert not any(step.foreseen for step in other.history_)
        scores = model.score_samples(X), other.score_samples(X)
        assert roc_auc(Y, scores[0]) == pytest.approx(roc_auc(Y, scores[1]), abs=2e-3)


def test_all_rows_are_read_once(many, monkeypatch):
    """Beside the part and the witnesses, for one lam and for all of them."""
    monkeypatch.setattr(ranking_data, "kernel_is_worth_keeping", lambda *_: False)
    whole = RankRC()._prepare(X, Y, None).rows
    passes = []

    class Counted(type(whole)):
        def sum(self, fn, *broadcast):
            if self._is_whole and "_ask_block" in fn.__name__:
                passes.append(len(broadcast[2]))
            return super().sum(fn, *broadcast)

        def map(self, fn, *broadcast):
            assert not self._is_whole
            return super().map(fn, *broadcast)

    monkeypatch.setattr(ranking_data, "rows_of", lambda *a, **k: Counted(a[0], a[1], a[2], **k))
    monkeypatch.setattr(ranking_data, "width_of_rows", lambda *_: 1.0)
    RankRC(lam=2.0**-6, width=1.5, n_jobs=1).fit(X, Y)
    assert passes == [1]
    passes.clear()
    rankrc_path(X, Y, LAMS[:2], width=1.5, n_jobs=1)
    assert passes == [2]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_threshold_of_a_part_is_that_of_its_rows(many, weighted):
    weight = np.random.default_rng(1).integers(0, 3, len(Y)).astype(float) if weighted else None
    prepared: PreparedRanking = RankRC()._prepare(X, Y, weight)
    coefficients = np.random.default_rng(0).normal(size=(prepared.expansion.n_landmarks, 2))
    part_of_it, all_rows = prepared.scored_part(coefficients), prepared.scored(coefficients)
    chosen = prepared.rows.every(10).numbers
    np.testing.assert_array_equal(part_of_it.majority, all_rows.majority[chosen])
    np.testing.assert_array_equal(part_of_it.held, all_rows.held)
    total = len(all_rows.majority) if weight is None else all_rows.majority_weight.sum()
    assert part_of_it.majority_weight.sum() == pytest.approx(total)
    if weighted:
        ratio = part_of_it.majority_weight / all_rows.majority_weight[chosen]
        assert np.nanmin(ratio) == pytest.approx(np.nanmax(ratio))


@pytest.mark.sampled(0)
def test_a_search_over_all_rows_is_foreseen_too(many, monkeypatch):
    model = RankRCCV(LAMS, cv=2, random_state=0, n_jobs=1).fit(X, Y)
    monkeypatch.setattr(paths, "ROWS_TOLD_BY_A_PART", 10**9)
    asking = RankRCCV(LAMS, cv=2, random_state=0, n_jobs=1).fit(X, Y)
    found, exact = model.cv_results_, asking.cv_results_
    np.testing.assert_allclose(found["mean_test_score"], exact["mean_test_score"], atol=3e-3)
    assert found["mean_passes"][0] < exact["mean_passes"][0] - 0.5
    rates = [balanced_accuracy_score(Y, each.predict(X)) for each in (model, asking)]
    assert rates[0] == pytest.approx(rates[1], abs=0.05)  # 40 rare rows decide


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
    table = rare_mixture(30_000, n_rare, seed=3)
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


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n_rare", [600, 60, 2000, 1000])
def test_it_is_the_largest_power_of_two_with_a_quarter_of_the_rare_rows_error(millions, n_rare):
    problem = made(n_rare)
    at = near_minimum(problem)
    of_rare, of_all = standard_errors(problem, at.w)
    exact = (0.25 * of_rare / of_all) ** 2
    found = enough_stride(problem, STRIDE, at)
    most = STRIDE // 5
    # Halves tell the errors to about a third.
    assert min(exact / 4.0, most / 2.0) <= found <= min(2.0 * exact, most)


def test_a_rare_row_or_a_majority_without_weight_asks_all_rows(millions):
    problem = made()
    at = near_minimum(problem)
    one = np.zeros_like(problem.rare_weight)
    one[3] = 1.0
    assert enough_stride(replace(problem, rare_weight=one), STRIDE, at) == 1
    assert enough_stride(problem, 9, at) == 1  # a part of many of the rows


def test_fewer_rows_are_asked_and_the_ranking_is_that_of_all(millions, chosen, monkeypatch):
    settings = {"landmarks": ("rare", 60), "random_state": 0, "n_jobs": 1}
    some = RankRC(lam=1e-2, **settings).fit(LONG, LONG_Y)
    assert chosen
    assert max(chosen) > 1
    monkeypatch.setattr(part, "enough_stride", lambda *_: 1)
    whole = RankRC(lam=1e-2, **settings).fit(LONG, LONG_Y)
    f, g = some.score_samples(LONG), whole.score_samples(LONG)
    assert np.corrcoef(f, g)[0, 1] > 0.999
    assert roc_auc(LONG_Y, f) == pytest.approx(roc_auc(LONG_Y, g), abs=2e-3)
    assert some.history_[-1].passes < 0.7 * whole.history_[-1].passes


def test_a_number_for_tol_asks_all_rows(millions, chosen):
    RankRC(lam=1e-2, tol=1e-3, n_jobs=1).fit(LONG, LONG_Y)
    assert not chosen


def test_lams_that_need_the_same_rows_share_their_passes(millions, chosen, monkeypatch):
    asked = set()

    def noted(questions):
        asked.update((q.problem.rows.n_rows, id(q.problem.rows)) for q in questions)
        return answer(questions)

    monkeypatch.setattr("rareclass.ranking.problem.answer", noted)
    rankrc_path(LONG, LONG_Y, lams=[1e-2, 0.9e-2, 0.8e-2], n_jobs=1)
    assert len(chosen) == 3
    assert len(set(chosen)) == 1
    most = max(n_rows for n_rows, _ in asked)
    assert most < 0.7 * len(LONG_Y)
    assert sum(n_rows == most for n_rows, _ in asked) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n_parts", [1, 2, 7])
@pytest.mark.parametrize("stays", [True, False])
def test_rows_in_parts_ask_the_same_rows(millions, chosen, monkeypatch, n_parts, stays):
    monkeypatch.setattr("rareclass.rows.dask_rows._MOST_BROUGHT", 0 if stays else 2**40)
    machine = RankRC(lam=1e-2, landmarks=("rare", 40), random_state=0, n_jobs=1)
    expected = machine.fit_rows(from_arrays(LONG, LONG_Y)).score_samples(LONG[:500])
    with held(InProcess(), np.array_split(LONG, n_parts), np.array_split(LONG_Y, n_parts)) as rows:
        found = machine.fit_rows(rows).score_samples(LONG[:500])
    assert chosen[0] == chosen[1] > 1
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
