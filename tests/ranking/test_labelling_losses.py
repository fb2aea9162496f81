"""Losses of F1, precision at k and the break-even point: worst labellings, cuts, the estimator."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score

from draws import draws
from made_tables import rare_mixture
from oracles.labelling import every_labelling, every_table, solve_all
from rareclass import OrdinalRankRC, RankRC, RankRCCV, StochasticRankRC, rankrc_path
from rareclass.errors import ErrorKind, InputError
from rareclass.metrics import precision_at_k
from rareclass.ranking.losses import F1, LABELLING_LOSSES, BreakEven, PrecisionAtK, make_loss
from rareclass.ranking.losses.labelling import RankedClass
from rareclass.ranking.solvers import cutting_planes
from rareclass.ranking.solvers.cutting_planes import (
    Cut,
    LabellingObjective,
    _best_on_line,
    minimum_of_cuts,
    simplex_qp,
)
from rows_in_process import InProcess, held

X, Y = rare_mixture(150, 14)
NAMES = sorted(LABELLING_LOSSES)
every_loss = pytest.mark.parametrize("name", NAMES)
# Ties, and scores around the margins.
SCORES = st.one_of(st.floats(-20, 20), st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]))


@st.composite
def scored(draw, most_rare=3, most_majority=5):
    n, m = draw(st.integers(1, most_rare)), draw(st.integers(1, most_majority))
    return draw(arrays(float, n, elements=SCORES)), draw(arrays(float, m, elements=SCORES))


def losses_of(n_rows):
    sizes = [PrecisionAtK(k) for k in sorted({1, 2, n_rows // 2 + 1, n_rows}) if k <= n_rows]
    return [F1(), BreakEven(), PrecisionAtK(), *sizes]


def worst(loss, rare, majority, w_rare=None, w_majority=None):
    w_rare = np.ones(len(rare)) if w_rare is None else w_rare
    w_majority = np.ones(len(majority)) if w_majority is None else w_majority
    return loss.worst(RankedClass(rare, w_rare), RankedClass(majority, w_majority))


def assert_worst(loss, found, wanted, n_rare):
    """Equal; F1 may label a part of a row, which its curvature makes worth 1 / (16 n^2) at most."""
    more = 1.0 / (16.0 * n_rare**2) if isinstance(loss, F1) else 0.0
    assert wanted - 1e-9 <= found <= wanted + more + 1e-9


def worst_of_all(loss, rare, majority):
    delta, U, V = every_labelling(loss, np.ones(len(rare)), np.ones(len(majority)))
    return (delta - U @ rare + V @ majority).max()


@pytest.mark.parametrize(("oracle", "most"), [(worst_of_all, (3, 5)), (every_table, (12, 40))])
@draws(40)
@given(data=st.data())
def test_the_worst_labelling_is_that_of_all_labellings(oracle, most, data):
    rare, majority = data.draw(scored(*most))
    for loss in losses_of(len(rare) + len(majority)):
        found = worst(loss, rare, majority).value(rare, majority)
        assert_worst(loss, found, oracle(loss, rare, majority), len(rare))


@draws(40)
@given(scored(), st.data())
def test_whole_weights_are_copies(scores, data):
    counts = [data.draw(arrays(int, len(s), elements=st.integers(0, 3))) for s in scores]
    for count in counts:
        count[0] = max(count[0], 1)
    copies = [np.repeat(s, count) for s, count in zip(scores, counts, strict=True)]
    for loss in (F1(), BreakEven(), PrecisionAtK()):
        found = worst(loss, *scores, *(count.astype(float) for count in counts))
        wanted = worst(loss, *copies).value(*copies)
        assert found.value(*scores) == pytest.approx(wanted, abs=1e-9)
        assert (found.rare[counts[0] == 0] == 0).all()
        assert (found.majority[counts[1] == 0] == 0).all()


@draws(40)
@given(scored(), st.sampled_from([0.3, 2.0, 7.0]))
@example((np.full(3, 9.0), np.zeros(1)), 0.3)
def test_rows_that_all_have_the_same_weight_have_the_loss_of_rows_without_weights(scores, unit):
    own = [np.full(len(each), unit) for each in scores]
    for loss in losses_of(sum(map(len, scores))):
        found, wanted = worst(loss, *scores, *own), worst(loss, *scores)
        assert found.value(*scores) == pytest.approx(wanted.value(*scores), abs=1e-9)


@draws(40)
@given(scored(), scored(), st.data())
def test_a_labelling_is_a_lower_bound_everywhere(scores, other, data):
    """Also with weights that are no whole numbers: the loss is convex, its labellings tangents."""
    n, m = (min(len(a), len(b)) for a, b in zip(scores, other, strict=True))
    weights = [data.draw(arrays(float, size, elements=st.floats(0.1, 3))) for size in (n, m)]
    here, there = ((rare[:n], majority[:m]) for rare, majority in (scores, other))
    for loss in (F1(), BreakEven()):
        tangent = worst(loss, *here, *weights).value(*there)
        assert tangent <= worst(loss, *there, *weights).value(*there) + 1e-9
    for loss in losses_of(n + m):
        assert worst(loss, *here).value(*there) <= worst(loss, *there).value(*there) + 1e-9


@draws(40)
@given(scored(6, 10))
def test_the_loss_bounds_its_measure(scores):
    rare, majority = scores
    y, both = np.arange(len(rare) + len(majority)) < len(rare), np.concatenate(scores)
    f1 = f1_score(y, both > 0, zero_division=0.0)
    assert worst(F1(), rare, majority).value(rare, majority) >= 1 - f1 - 1e-9
    for k in range(1, len(y) + 1):
        value = worst(PrecisionAtK(k), rare, majority).value(rare, majority)
        assert value >= 1 - precision_at_k(y, both, k) - 1e-9
        assert value >= 1 - min(k, len(rare)) / k - 1e-9


@draws(40)
@given(scored(), st.randoms(use_true_random=False))
def test_equal_rows_have_equal_prices_in_any_order(scores, random):
    rare, majority = (np.repeat(s, 2) for s in scores)
    shuffle = np.array(random.sample(range(len(majority)), len(majority)))
    for loss in losses_of(len(rare) + len(majority)):
        found = worst(loss, rare, majority)
        np.testing.assert_allclose(found.rare[::2], found.rare[1::2], atol=1e-12)
        np.testing.assert_allclose(found.majority[::2], found.majority[1::2], atol=1e-12)
        again = worst(loss, rare, majority[shuffle])
        np.testing.assert_allclose(again.majority, found.majority[shuffle], atol=1e-9)


@given(scored(), st.floats(-5, 5))
def test_scores_moved_together_are_as_good_where_only_their_order_counts(scores, shift):
    rare, majority = scores
    for loss in losses_of(len(rare) + len(majority))[1:]:
        value = worst(loss, rare, majority).value(rare, majority)
        moved = worst(loss, rare + shift, majority + shift).value(rare + shift, majority + shift)
        assert moved == pytest.approx(value, abs=1e-8)


@draws(40)
@given(scored(4, 8))
def test_f1_takes_the_best_part_of_a_row(scores):
    """Against tables on a fine grid: all a in whole rows, b in hundredths of one."""
    rare, majority = (RankedClass(each, np.ones(len(each))) for each in scores)
    a = np.arange(rare.total + 1)[:, None]
    b = np.linspace(0.0, majority.total, 100 * int(majority.total) + 1)
    price = 0.5 / rare.total
    missed, wrong = rare.lowest(rare.total - a), majority.highest(b)
    wanted = (1.0 - 2.0 * a / (a + b + rare.total) + price * (wrong - missed)).max()
    found = F1().worst(rare, majority).value(*scores)
    assert wanted - 1e-9 <= found <= wanted + 1e-4


@draws(40)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([1e-4, 1.0, 1e3]))
def test_the_minimum_of_cuts_is_where_no_unknown_can_lower_it(seed, has_level, lam):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(2, 30), rng.integers(0, 6)
    slopes = rng.normal(size=(n, p + has_level))
    if has_level:
        slopes[:2, -1] = 1.0, -1.0
    cuts = [Cut(*one) for one in zip(rng.random(n), slopes, strict=True)]
    bound, unknowns, alpha = minimum_of_cuts(cuts, p, lam)
    w, values = unknowns[:p], [cut.delta - cut.g @ unknowns for cut in cuts]
    assert 0.5 * lam * w @ w + max(values) == pytest.approx(bound, rel=1e-8, abs=1e-8)
    assert (alpha >= 0).all()
    assert alpha.sum() == pytest.approx(1)


def test_a_programme_of_cuts_takes_few_factorisations(monkeypatch):
    made, factor = [], cutting_planes.lu_factor
    monkeypatch.setattr(
        cutting_planes, "lu_factor", lambda *a, **k: made.append(1) or factor(*a, **k)
    )
    random = np.random.default_rng(0)
    for n in range(1, 30):
        vectors = random.normal(size=(n, random.integers(1, n + 3))) * 10.0 ** random.uniform(-3, 3)
        Q, d = vectors @ vectors.T, random.normal(size=n)
        alpha, (nu,) = simplex_qp(Q, d, np.ones((1, n)))
        slack, scale = nu - (d - Q @ alpha), max(np.abs(Q).max(), np.abs(d).max())
        assert alpha.min() >= 0.0
        assert slack.min() >= -1e-8 * scale
        assert alpha @ slack <= 1e-8 * scale
        assert len(made) <= 20
        made.clear()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", [F1(), BreakEven(), PrecisionAtK(2), PrecisionAtK(5)])
@pytest.mark.parametrize("lam", [0.3, 0.01])
def test_the_solution_is_that_of_all_constraints(loss, lam):
    rng = np.random.default_rng(3)
    y = np.arange(9) < 3
    rows = rng.normal(size=(9, 2)) + y[:, None]
    model = RankRC(kernel="linear", landmarks=np.eye(2), loss=loss, lam=lam, tol=1e-9, pos_label=1)
    model.fit(rows, y)
    wanted = solve_all(loss, rows[y], rows[~y], np.ones(3), np.ones(6), lam)
    assert_worst(loss, model.objective_, wanted, 3)
    assert model.status_ == "converged"


def machine(name, **parameters):
    params = {"k": 6} if name == "precision_at_k" else None
    settings = {"loss": name, "loss_params": params, "lam": 2.0**-6, "tol": 1e-7, "pos_label": 1}
    return RankRC(**settings | parameters)


@pytest.mark.sampled(1)
@every_loss
def test_the_objective_bounds_the_measure_on_the_training_rows(name):
    for lam in (0.1, 2.0**-8):
        model = machine(name, lam=lam).fit(X, Y)
        scores, called = model.score_samples(X), model.predict(X)
        if name == "f1":
            missed = 1 - f1_score(Y, called, zero_division=0.0)
        else:
            missed = 1 - precision_at_k(Y, scores, 6 if name == "precision_at_k" else Y.sum())
        assert model.objective_ >= missed - 1e-9
        assert 0 <= model.optimality_ <= 1e-7
        assert all(step.optimality >= 0 for step in model.history_)
    if name != "f1":
        assert called.sum() == (6 if name == "precision_at_k" else Y.sum())
    assert model.score(X, Y) > 0.8


@pytest.mark.sampled(1)
@every_loss
def test_weights_order_blocks_and_sparse_rows_do_not_matter(name):
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 2 if name == "precision_at_k" else 4, len(X))
    copies = rng.permutation(np.repeat(np.arange(len(X)), weight))
    weighted = machine(name).fit(X, Y, weight)
    for other in (
        machine(name).fit(X[copies], Y[copies]),
        machine(name, memory="40 kB", n_jobs=2).fit(X, Y, weight),
        machine(name).fit(sparse.csr_matrix(X), Y, weight),
    ):
        assert other.objective_ == pytest.approx(weighted.objective_, rel=1e-6)
        found, wanted = other.score_samples(X), weighted.score_samples(X)
        # F is flat around its minimum: a gap of 1e-8 leaves scores to half as many digits.
        np.testing.assert_allclose(found, wanted, atol=2e-3 * np.abs(wanted).max())


@pytest.mark.sampled(1)
@every_loss
def test_a_path_that_keeps_its_cuts_has_the_solutions_of_single_fits(name):
    lams = [1.0, 2.0**-6]
    path = rankrc_path(X, Y, lams, **{k: v for k, v in machine(name).get_params().items()
                                      if k != "lam"})  # fmt: skip
    for lam, model in zip(lams, path, strict=True):
        alone = machine(name, lam=lam).fit(X, Y)
        assert model.objective_ == pytest.approx(alone.objective_, rel=1e-7)


def test_lam_is_chosen_on_a_part():
    few = RankRCCV(lams=[0.1], cv=2, loss="f1", search_rows=100, pos_label=1).fit(X, Y)
    # The threshold has the best F1 on held-out scores.
    assert f1_score(Y, few.predict(X)) > 0.6


@every_loss
def test_stopping_short_is_said(name):
    with pytest.warns(ConvergenceWarning, match="reached max_iter after 2 iterations"):
        model = machine(name, max_iter=2, lam=2.0**-10).fit(X, Y)
    assert model.optimality_ > 1e-7


@pytest.mark.sampled(1)
@every_loss
def test_the_default_tolerance_is_a_gap_of_a_thousandth(name):
    model = machine(name, tol="auto").fit(X, Y)
    assert 1e-6 < model.optimality_ <= 1e-3
    assert model.status_ == "converged"


@pytest.mark.sampled(1)
@every_loss
def test_rows_in_parts_give_the_same(name):
    edges = [0, 40, 41, 100, len(X)]
    cut = [[a[i:j] for i, j in pairwise(edges)] for a in (X, Y)]
    rows = held(InProcess(), *cut)
    wanted = machine(name, tol="auto").fit(X, Y)
    found = machine(name, tol="auto").fit(rows, rows.y)
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-9)
    np.testing.assert_allclose(found.score_samples(X), wanted.score_samples(X), atol=1e-6)


@every_loss
def test_a_loss_that_learns_nothing_says_so(name):
    """Rows are all equal, or the classes overlap so that equal scores are the minimum."""
    with pytest.warns(UserWarning, match="it is 1 where all scores are equal"):
        model = machine(name, width=1.0).fit(np.ones((len(Y), 4)), Y)
    assert model.status_ == "converged"
    np.testing.assert_allclose(model.dual_coef_, 0.0, atol=1e-6)
    with pytest.warns(UserWarning, match="it is 1 where all scores are equal"):
        machine(name, lam=100.0, tol="auto").fit(X, np.roll(Y, 1))


def kind(fit):
    with pytest.raises(InputError) as caught:
        fit()
    return caught.value.kind


@pytest.mark.sampled(1)
@every_loss
def test_what_has_no_solver_is_refused(name):
    loss = make_loss(name, 0.5)
    assert kind(lambda: machine(name, penalty="l1").fit(X, Y)) is ErrorKind.COMBINATION
    search = RankRCCV(loss=loss, penalty="l1", cv=3)
    assert kind(lambda: search.fit(X, Y)) is ErrorKind.COMBINATION
    assert kind(lambda: OrdinalRankRC(loss=name).fit(X, Y)) is ErrorKind.UNSUPPORTED
    assert kind(lambda: StochasticRankRC(loss=name).fit(X, Y)) is ErrorKind.UNSUPPORTED
    assert kind(lambda: machine(name).fit(X, Y).stability_bound()) is ErrorKind.UNSUPPORTED


def test_k_is_a_number_of_rows():
    many = machine("precision_at_k", loss_params={"k": len(Y) + 1})
    assert kind(lambda: many.fit(X, Y)) is ErrorKind.SETTING
    weight = np.where(Y, 0.7, 0.3)
    assert kind(lambda: machine("precision_at_k").fit(X, Y, weight)) is ErrorKind.UNSUPPORTED
    assert machine("break_even").fit(X, Y, weight).status_ == "converged"
    for k in (0, 1.5, "3"):
        with pytest.raises(ValueError, match="k="):
            PrecisionAtK(k)


@pytest.fixture
def objective():
    return LabellingObjective(machine("f1")._prepare(X, Y, None).problem(1.0))


def test_only_cuts_that_have_long_held_nothing_are_forgotten(objective):
    first = list(objective.cuts)
    assert len(first) == 2  # they bound the intercept, and stay
    rank = objective.problem.rank
    holding, idle = (Cut(delta, np.zeros(rank + 1)) for delta in (3.0, -5.0))
    objective.cuts += [holding, idle]
    for _ in range(60):
        assert objective.lower_bound()[0] == pytest.approx(3.0)
    assert objective.cuts == [*first, holding]


@pytest.mark.sampled(1)
@every_loss
def test_the_best_point_on_a_line_is_near_that_of_an_even_grid(name):
    """Also where F rises at once, or falls to the end."""
    objective = LabellingObjective(machine(name)._prepare(X, Y, None).problem(0.01))
    rng, shares = np.random.default_rng(0), np.linspace(0.0, 1.0, 65)
    for size in np.repeat([0.01, 0.3, 3.0], 2):
        unknowns = size * rng.normal(size=(2, len(objective.start.unknowns)))
        start, end = (objective.scored(own) for own in unknowns)
        wanted = min(objective.between(start, end, s).F for s in shares)
        reached = _best_on_line(objective, start, end).F
        assert reached <= min(start.F, end.F)
        assert reached - wanted <= 0.1 * (max(start.F, end.F) - wanted)
