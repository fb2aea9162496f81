"""Several learners at once: places, weights and scores are their formulas; the bounds hold."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import average_precision_score

from draws import draws
from oracles import mixture as oracle
from rareclass.online import CBR, OAM, OnlineLogistic, OnlineMixture
from rareclass.online._mixture_jit import LARGEST, mix, place
from rareclass.online.feature_maps import KNOTS, FourierFeatures, Ranks
from rareclass.online.state import flatten, unflatten
from rareclass.rows.memory import Workers

SMALL = [
    ("linear", OnlineLogistic()),
    ("asinh", OAM(policy="fifo", buffer_size=5)),
    ("ranks", OnlineLogistic(class_weight="balanced")),
    ("asinh", CBR(C=0.01, buffer_size=5)),  # takes dense rows
    ("ranks", CBR(C=0.01, buffer_size=5)),
    ("fourier", OnlineLogistic()),
    ("fourier", CBR(C=0.01, buffer_size=5)),
]


@pytest.fixture(autouse=True)
def ranks_of_few_rows(monkeypatch):
    monkeypatch.setattr("rareclass.online.feature_maps.ROWS", 50)


def stream(n=400, d=4, rare=0.1, seed=0):
    """Numbers, heavy tails, and an indicator in the last column; sign 0 has no label."""
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < rare, 1, -1)
    X = rng.standard_t(2, size=(n, d))
    X[:, 0] = np.round(X[:, 0])
    X[sign > 0, :2] += 1.0
    X[:, -1] = rng.random(n) < 0.3
    sign[::17] = 0
    return X, sign


def labels(sign):
    return np.where(sign == 0, np.nan, sign)


def run(scores, sign, share=0.0, n_recent=30, n_pairs=8, half_life=50.0):
    """The compiled loop on given scores of members: mixed scores, weights, losses."""
    K, n = scores.shape
    prior = oracle.prior(K)
    E = len(prior)
    weights, losses, auc = prior.copy(), np.zeros(E + 1), np.zeros(E + 1)
    recent, ordered, kept = np.zeros((K, n_recent)), np.zeros((K, n_recent)), np.zeros(K, np.int64)
    out = np.empty(n)
    mix(
        scores, sign, np.ones(n), recent, ordered, kept, np.zeros((2, n_pairs, E)),
        np.zeros((7, E)), np.zeros(7, np.int8), np.zeros(2, np.int64), np.zeros(2), weights,
        losses, auc, np.zeros(1), oracle.stack_at_start(K), np.eye(1 + K), prior, share,
        2.0 ** (-1 / half_life), out,
    )  # fmt: skip
    assert (np.sort(recent, axis=1)[:, ::-1] == np.sort(ordered, axis=1)[:, ::-1]).all()
    for k in range(K):
        filled = ordered[k, : min(kept[k], n_recent)]
        assert (np.diff(filled) >= 0).all()
    return out, weights, losses, auc


@st.composite
def judged_streams(draw, most=60):
    """Scores of two to five members on a coarse grid, with members that turn on each other."""
    n, K = draw(st.integers(1, most)), draw(st.integers(2, 5))
    cell = st.sampled_from([-1.0, 0.0, 0.0, 0.5, 1.0, 2.0, 50.0, -50.0, np.inf, np.nan])
    scores = draw(st.lists(st.lists(cell, min_size=n, max_size=n), min_size=K, max_size=K))
    sign = draw(st.lists(st.sampled_from([1, 1, -1, 0]), min_size=n, max_size=n))
    return np.array(scores), np.array(sign)


def test_a_mixture_is_its_formula():
    X, sign = stream()
    model = OnlineMixture(SMALL, share=0.01, n_recent=60, half_life=90).start(4, [-1, 1])
    found = model.test_then_train(X, labels(sign))
    seen = {
        "linear": X,
        "asinh": np.arcsinh(X),
        "ranks": oracle.ranks(X, 50, KNOTS),
        "fourier": model.state_.waves.apply(X),
    }
    alone = []
    for name, learner in SMALL:
        single = learner.start(seen[name].shape[1], [-1, 1])
        alone.append(single.test_then_train(seen[name], labels(sign)))
    wanted, weights, losses = oracle.mixture(np.array(alone), sign, 60, 200, 0.01, 90)
    np.testing.assert_allclose(found, wanted, rtol=1e-8)
    np.testing.assert_allclose(model.weights_, weights, rtol=1e-8)
    np.testing.assert_allclose(model.state_.record.losses, losses.sum(0), rtol=1e-8)
    assert model.weights_.max() > 1.5 * model.weights_.min()


@given(judged_streams(), st.sampled_from([0.0, 0.01, 0.05, 0.3]), st.integers(0, 3))
@draws(150)
def test_formulas_and_bounds_hold_for_any_scores(given_scores, share, switches):
    scores, sign = given_scores
    out, weights, losses, auc = run(scores, sign, share)
    wanted, w, lost = oracle.mixture(scores, sign, 30, 8, share, 50.0)
    np.testing.assert_allclose(out, wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(weights, w, rtol=1e-9)
    np.testing.assert_allclose(losses, lost.sum(0), rtol=1e-9, atol=1e-9)
    assert ((auc >= 0.0) & (auc <= 1.0)).all()
    # Never far behind the best member, and not behind the best sequence of members.
    T, prior = len(lost), oracle.prior(len(scores))
    bound = 2 * np.log(1 / prior) + 2 * T * np.log(1 / (1 - share + share * prior))
    assert (losses[-1] <= losses[:-1] + bound + 1e-9).all()
    if share and T:
        bound = 2 * (switches + 1) * math.log(1 / prior.min()) + 2 * switches * math.log(1 / share)
        bound += 2 * max(T - switches, 0) * math.log(1 / (1 - share))
        assert losses[-1] <= oracle.best_sequence(lost[:, :-1], switches) + bound + 1e-9


def changing(n=6000, seed=0):
    """Two members: one tells the classes apart in the first half, the other in the second."""
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < 0.2, 1, -1)
    scores = rng.normal(size=(2, n))
    half = np.arange(n) < n // 2
    scores[0] += 3.0 * (half & (sign > 0))
    scores[1] += 3.0 * (~half & (sign > 0))
    return scores, sign


def test_the_stack_finds_what_no_member_sees():
    """Rare rows are where one member's score is high for the other's."""
    rng = np.random.default_rng(0)
    sign = np.where(rng.random(4000) < 0.1, 1, -1)
    both = rng.exponential(1.0, 4000)
    scores = np.array([both + 0.7 * (sign > 0), both])
    out, weights, *_ = run(scores, sign, 0.001, 200, 50)
    late = slice(2000, None)
    best_member = average_precision_score(sign[late] > 0, scores[0, late])
    assert average_precision_score(sign[late] > 0, out[late]) > best_member + 0.3
    assert weights[-1] > 0.8


def test_weight_goes_to_the_better_member_and_comes_back_after_a_change():
    scores, sign = changing(4000)
    before = run(scores[:, :2000], sign[:2000], 0.001, 200, 50)
    assert before[1][0] > 10 * before[1][1]
    after = run(scores, sign, 0.001, 200, 50)
    assert after[1][1] > 10 * after[1][0]
    assert after[3][3] > 0.95  # the mixture's AUC of late
    # Without a share that is dealt out anew the first member has got too far ahead.
    left_alone = run(scores, sign, 0.0, 200, 50)[1]
    assert left_alone[1] < 10 * left_alone[0]


@given(
    st.lists(st.sampled_from([-3.0, 0.0, 0.1, 1.0, 1.5, 9.0]) | st.floats(-5, 5), max_size=60),
    st.lists(st.floats(-10, 60), min_size=2, max_size=20),
)
@draws(100)
def test_places_rise_with_scores(recent, scores):
    ordered = np.sort(np.array(recent, dtype=float))
    found = [place(ordered, score) for score in sorted({*scores, *recent})]
    assert all(0.0 <= u <= 1.0 for u in found)
    assert (np.diff(found) >= -1e-15).all()
    wanted = [oracle.place(recent, score) for score in sorted({*scores, *recent})]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_members_are_measured_as_they_had_scored_alone(monkeypatch):
    monkeypatch.setattr("rareclass.online.mixture._LAST", 150)
    X, sign = stream(rare=0.2)
    model = OnlineMixture(SMALL).start(4, [-1, 1])
    waves = model.state_.waves
    assert {each.average_precision for each in model.standing()} == {None}
    model.test_then_train(X, labels(sign))
    y = sign[sign != 0]
    for n_rows, k, k_of_last in ((40, 5, 5), (150, 5, 5), (300, 5, 3), (150, 151, None)):
        found = model.standing(n_rows, k)
        rows = slice(-min(n_rows, 150), None)
        assert found[-1].name == "logistic regression on all places"
        for each, member in zip(found[:-1], SMALL, strict=True):
            alone = OnlineMixture([member]).start(4, [-1, 1])
            alone.state_ = alone.state_._replace(waves=waves)
            scores = alone.test_then_train(X, labels(sign))[sign != 0][rows]
            wanted = average_precision_score(y[rows] > 0, scores)
            assert each.average_precision == pytest.approx(wanted, rel=1e-12)
            if k_of_last is None:
                assert each.precision_at_k is None
                continue
            top = np.argsort(-scores, kind="stable")[:k_of_last]
            assert each.precision_at_k == pytest.approx((y[rows][top] > 0).mean())
    assert len({each.average_precision for each in found}) == len(SMALL) + 1


def test_the_level_follows_the_share_of_the_rare_class():
    scores = np.zeros((1, 4000))
    sign = np.where(np.arange(4000) % 50 == 0, 1, -1)
    sign[2000:] = np.where(np.arange(2000) % 4 == 0, 1, -1)
    out = run(scores, sign, half_life=200.0)[0]
    level = out - np.median(out[1000:2000])
    assert abs(np.median(level[1000:2000])) < 1e-9
    assert np.median(level[3000:]) == pytest.approx(math.log(1 / 3) - math.log(1 / 49), abs=0.5)


def test_a_member_that_runs_off_is_set_aside():
    scores, sign = changing()
    scores[1, 100:] = np.where(np.arange(5900) % 3 == 0, np.inf, np.nan)
    out, weights, *_ = run(scores[:, :3000], sign[:3000], 0.001, 200, 50)
    assert np.isfinite(out).all()
    assert weights[1] < 0.05
    X, sign = stream()
    model = OnlineMixture([("linear", OnlineLogistic(eta=1e308)), *SMALL]).start(4, [-1, 1])
    with np.errstate(all="ignore"):
        assert np.isfinite(model.test_then_train(X, labels(sign))).all()
        assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.parametrize("cuts", [[1, 49, 50, 51, 173], range(1, 400)])
def test_ranks_do_not_depend_on_the_cut(cuts):
    X, _ = stream()
    whole, parts = [], []
    for pieces, found in (([*range(50, 400, 50)], whole), (cuts, parts)):
        ranks = Ranks.empty(4)
        for block in np.split(X, pieces):
            rows = block
            while len(rows):  # as a mixture does
                now = rows[: ranks.lacking]
                given = ranks.apply(now)
                dense = sparse.csr_array((given.data, given.indices, given.indptr), (len(now), 64))
                found.append(dense.toarray())
                ranks, rows = ranks.with_rows(now), rows[len(now) :]
    np.testing.assert_array_equal(np.vstack(parts), np.vstack(whole))
    np.testing.assert_allclose(np.vstack(whole), oracle.ranks(X, 50, KNOTS), atol=1e-12)


def test_what_features_raise_adds_up_at_the_top():
    X, sign = stream(3000, seed=1)
    X = np.tanh(X) + 1.5 * (sign[:, None] > 0)
    maps = ("linear", "asinh", "ranks")
    model = OnlineMixture([(name, OnlineLogistic()) for name in maps]).start(4, [-1, 1])
    model.partial_fit(X[sign != 0], sign[sign != 0])
    record = model.state_.record
    scores = model.score_samples(X)
    # Rows that all members have in the tail, and none at its very end.
    tail = math.log(1000 / 50) / LARGEST
    seen = {"linear": X, "asinh": np.arcsinh(X)}
    ranked = model.state_.ranks.apply(X)
    seen["ranks"] = sparse.csr_array((ranked.data, ranked.indices, ranked.indptr), (3000, 64))
    own = [seen[name] @ state.coef for name, state in zip(maps, model.state_.members, strict=True)]
    places = np.array([[place(record.ordered[k], s) for s in own[k]] for k in range(3)])
    top = np.flatnonzero(((places > tail + 0.001) & (places < 1.0)).all(axis=0))
    assert len(top) >= 2
    weights = model.additive_weights()
    for row, other in pairwise(top):
        raised = model.raises(X[row], X[other], weights)
        assert raised.sum() == pytest.approx(scores[row] - scores[other], abs=1e-9)
    grown = model.add_features(2)
    assert grown.raises(np.ones(6), np.zeros(6), weights)[4:].tolist() == [0.0, 0.0]


def test_new_features_are_learned_from_before_and_after_ranks_are_known():
    X, sign = stream(2000, rare=0.2)
    told = np.column_stack([X, 3.0 * (sign > 0)])
    for edge in (20, 500):
        model = OnlineMixture().start(4, [-1, 1])
        model.test_then_train(X[:edge], labels(sign[:edge]))
        model.add_features(1)
        model.test_then_train(told[edge:], labels(sign[edge:]))
        scored = sign != 0
        assert model.score(told[scored], sign[scored]) > 0.99


def test_a_state_that_no_stream_leaves_is_refused():
    X, sign = stream()
    model = OnlineMixture(SMALL).start(4, [-1, 1])
    model.test_then_train(X, labels(sign))
    for name, change in (
        ("record.kept", lambda a: a - 1000),
        ("stack.mean", lambda a: a[1:]),
        ("record.ordered", lambda a: -a),
        ("ranks.ordered", lambda a: a[:, ::-1]),
        ("ranks.ranked", lambda a: a[:2]),
        ("waves.frequencies", lambda a: a[:, :-1]),
        ("members.1.buffers.indices", lambda a: a + 100),
    ):
        flat = flatten(model.state_)
        flat[name] = change(flat[name])
        other = OnlineMixture(SMALL).start(4, [-1, 1])
        with pytest.raises(ValueError):  # noqa: PT011 (each says its own)
            other.take_up(flat)
    other = OnlineMixture(SMALL).start(4, [-1, 1])
    other.take_up(flatten(model.state_))
    assert unflatten(model.state_, flatten(other.state_)).record.seen.sum() == (sign != 0).sum()


def test_a_mixture_has_no_weights_by_feature():
    with pytest.raises(AttributeError, match="weights_ says what each member counts"):
        OnlineMixture(SMALL).start(2, [0, 1]).coef_  # noqa: B018


def rows(n=60, d=5, seed=0):
    return np.random.default_rng(seed).standard_t(1, size=(n, d)) * 3.0


def plain(X, waves):
    angles = 2.0 * np.pi * (np.arcsinh(X) @ waves.frequencies + waves.phases)
    return np.sqrt(2.0 / len(waves.phases)) * np.cos(angles)


def test_waves_are_their_formula_and_their_products_a_gaussian_kernel():
    waves = FourierFeatures.drawn(5, 64, np.random.default_rng(0))
    far = np.vstack([rows(), np.full((1, 5), 1e300), np.zeros((1, 5))])
    np.testing.assert_allclose(waves.apply(far), plain(far, waves), atol=1e-8)
    waves = FourierFeatures.drawn(5, 100_000, np.random.default_rng(0)).apply(rows(20))
    kernel = RBF(np.sqrt(5) / 2)(np.arcsinh(rows(20)))
    np.testing.assert_allclose(waves @ waves.T, kernel, atol=0.02)


def test_features_born_later_leave_the_waves_of_before():
    rng = np.random.default_rng(0)
    before = FourierFeatures.drawn(3, 64, rng)
    grown = before.grown(4, rng).grown(6, rng)
    X = rows(d=3)
    wide = np.hstack([X, np.zeros((60, 3))])
    np.testing.assert_array_equal(grown.apply(wide), before.apply(X))
    again = np.random.default_rng(0)
    at_once = FourierFeatures.drawn(3, 64, again).grown(6, again)
    np.testing.assert_array_equal(at_once.frequencies, grown.frequencies)
    assert grown.frequencies[3:].std() == pytest.approx(grown.deviation[0], rel=0.2)


def test_what_a_feature_raises_is_what_is_lost_without_it():
    waves = FourierFeatures.drawn(5, 64, np.random.default_rng(0))
    coef = np.random.default_rng(1).normal(size=64)
    row, usual = rows(2)
    usual[1] = row[1]
    found = waves.raises(row, usual, coef)
    for j in range(5):
        without = row.copy()
        without[j] = usual[j]
        lost = plain(row[None], waves) @ coef - plain(without[None], waves) @ coef
        assert found[j] == pytest.approx(lost[0], abs=1e-12)
    assert found[1] == 0.0


def test_reasons_of_a_mixture_take_waves_in():
    X = rows(1500, d=3)
    y = np.abs(np.arcsinh(X[:, 0])) > 3.0
    model = OnlineMixture([("fourier", OnlineLogistic(eta=1.0))], random_state=0)
    model.start(3, [False, True]).partial_fit(X, y)
    assert model.score(X, y) > 0.95  # a shell that no linear learner sees
    row, usual = X[np.argmax(model.score_samples(X))], np.zeros(3)
    raised = model.raises(row, usual, model.additive_weights())
    assert raised.argmax() == 0
    assert model.raises(row, usual, np.empty(0)).tolist() == [0.0, 0.0, 0.0]


def test_threads_share_the_members_of_many_rows_and_change_nothing(monkeypatch):
    shared = []

    class Counted(Workers):
        def map(self, work, pieces, n_threads):
            shared.extend([len(pieces)] if n_threads > 1 else [])
            return super().map(work, pieces, n_threads)

    monkeypatch.setattr("rareclass.online.mixture.Workers", Counted)
    X, sign = stream(n=620)
    found = {}
    for n_jobs in (1, 2, 3):
        model = OnlineMixture(SMALL, n_jobs=n_jobs, random_state=0).start(X.shape[1], [-1.0, 1.0])
        scores = model.test_then_train(X, labels(sign))
        model.test_then_train(X[:20], labels(sign[:20]))  # so few are no work for threads
        found[n_jobs] = {"scores": scores, **flatten(model.state_)}
    # Of each fifty rows seven views, and seven members beside the mixing of the fifty before.
    assert shared == 2 * 13 * [7, 8]
    for name, value in found[1].items():
        for n_jobs in (2, 3):
            np.testing.assert_array_equal(found[n_jobs][name], value, err_msg=name)
