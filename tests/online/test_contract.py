"""What every online learner promises, held against all of them."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from draws import thorough
from rareclass.online import OAM, OPAUC, AdaOAM, OnlineMixture
from rareclass.online.state import flatten
from registered import ONLINE

LEARNERS = list(ONLINE.values())


def stream(n=300, d=9, rare=0.15, seed=0):
    """Rows with many zeros, some repeated, and labels 0 and 1, well apart."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rare).astype(float)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    X[:, :4] += np.where(y == 1, 0.75, -0.75)[:, None]
    X[1::10], y[1::10] = X[::10], y[::10]
    return X, y


X, Y = stream()
each_learner = pytest.mark.parametrize("learner", LEARNERS, ids=repr)
LINEAR = [learner for learner in LEARNERS if not isinstance(learner, OnlineMixture)]
each_linear = pytest.mark.parametrize("learner", LINEAR, ids=repr)


@pytest.fixture(autouse=True)
def ranks_of_few_rows(monkeypatch):
    """The streams here are shorter than what a mixture takes ranks from."""
    monkeypatch.setattr("rareclass.online.feature_maps.ROWS", 50)


def begun(learner, n_features=9, classes=(0, 1)):
    return clone(learner).start(n_features, list(classes))


def assert_same_state(one, other):
    """Every array, number and generator of two states, bit by bit."""
    a, b = flatten(one.state_), flatten(other.state_)
    assert a.keys() == b.keys()
    for name, value in a.items():
        if isinstance(value, np.ndarray):
            assert (value.shape, value.dtype) == (b[name].shape, b[name].dtype), name
            assert value.tobytes() == b[name].tobytes(), name
        else:
            assert value == b[name], name


@pytest.mark.sampled(9)
@each_learner
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("cuts", [[1], [7, 7, 8, 150], range(1, 300)], ids=["1", "some", "all"])
def test_any_cut_of_the_stream_gives_the_same_bits(learner, kind, cuts):
    y = Y.copy()
    y[::13] = np.nan
    whole, parts = begun(learner), begun(learner)
    wanted = whole.test_then_train(kind(X), y)
    found = [
        parts.test_then_train(kind(rows), labels)
        for rows, labels in zip(np.split(X, cuts), np.split(y, cuts), strict=True)
        if len(rows)
    ]
    assert np.concatenate(found).tobytes() == wanted.tobytes()
    assert_same_state(parts, whole)


@pytest.mark.sampled(5)
@each_learner
def test_blocks_of_the_learner_do_not_matter(learner, monkeypatch):
    weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.0], len(X))
    wanted = clone(learner).fit(X, Y, sample_weight=weight)
    monkeypatch.setattr("rareclass.online.ranker._MOST_BLOCK_ROWS", 7)
    assert_same_state(clone(learner).fit(X, Y, sample_weight=weight), wanted)


@each_learner
def test_many_copies_of_a_row_are_made_a_block_at_a_time(learner, monkeypatch):
    wanted = begun(learner).partial_fit(np.repeat(X[:4], 30, axis=0), np.repeat(Y[:4], 30))
    monkeypatch.setattr("rareclass.online.ranker._MOST_BLOCK_ROWS", 8)
    most, learn = [], type(learner)._learn

    def watched(self, state, rows, sign, step):
        most.append(len(sign))
        return learn(self, state, rows, sign, step)

    monkeypatch.setattr(type(learner), "_learn", watched)
    found = begun(learner).partial_fit(X[:4], Y[:4], sample_weight=[30.0] * 4)
    assert_same_state(found, wanted)
    assert max(most) <= 8


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_blocks_of_wide_rows(kind, monkeypatch):
    """Sparse rows are made dense a few at a time, and stay many where they stay sparse."""
    rows, wide = sparse.random(40, 2**15, density=1e-3, format="csr", random_state=0), []
    model = OPAUC(rank=2 if kind == "sparse" else None, random_state=0)
    monkeypatch.setattr(OPAUC, "_start", lambda self, d, rng: ())
    monkeypatch.setattr(
        OPAUC,
        "_learn",
        lambda self, state, rows, sign, step: (wide.append(len(sign)) or (), sign * 0.0),
    )
    model.start(2**15, [0, 1]).test_then_train(rows, np.zeros(40))
    assert set(wide) == ({40} if kind == "sparse" else {16, 8})


def test_beginning_again_forgets_the_names_of_columns():
    pd = pytest.importorskip("pandas")
    model = OAM().fit(pd.DataFrame(X, columns=list("abcdefghi")), Y)
    model.start(2, [0, 1]).test_then_train(X[:3, :2], Y[:3])  # warnings are errors
    named = OAM().partial_fit(pd.DataFrame(X, columns=list("abcdefghi")), Y, classes=[0, 1])
    assert list(named.feature_names_in_) == list("abcdefghi")


@pytest.mark.sampled(5)
@each_learner
def test_scores_are_those_of_the_model_before_each_row(learner):
    model = begun(learner)
    scores = copy.deepcopy(model).test_then_train(X, Y)
    for t in range(len(X) if thorough() else 120):
        before = model.score_samples(X[t : t + 1])
        np.testing.assert_allclose(scores[t], before[0], rtol=1e-9, atol=1e-9)
        model.partial_fit(X[t : t + 1], Y[t : t + 1])


@each_learner
def test_steps_that_are_reset_are_as_long_as_at_the_start(learner):
    model = begun(learner)
    model.test_then_train(np.tile(X, (3, 1)), np.tile(Y, 3))
    other, before = copy.deepcopy(model), model.score_samples(X)
    assert other.reset_steps() is other
    np.testing.assert_array_equal(other.score_samples(X), before)
    if not learner._steps_shrink:
        assert_same_state(other, model)
        return
    # The next two rows, one of each class.
    rows = [np.flatnonzero(Y == 1)[0], np.flatnonzero(Y == 0)[0]]
    moved = [
        np.abs(each.partial_fit(X[rows, ::-1], 1 - Y[rows]).score_samples(X) - before).mean()
        for each in (model, other)
    ]
    assert moved[1] > 1.1 * moved[0]


def test_a_reset_of_cbr_leaves_what_it_would_have_begun_with():
    model = begun(ONLINE["cbr"])
    model.test_then_train(X, Y)
    coef, seen = model.coef_.copy(), model.state_.buffers.seen.copy()
    state = model.reset_steps().state_
    np.testing.assert_array_equal(state.covariance, np.eye(9))
    np.testing.assert_array_equal(model.coef_, coef)
    np.testing.assert_array_equal(state.buffers.seen, seen)
    # Bounds on x_b' S x_b stay bounds, and both ways through the pairs go on alike.
    model.test_then_train(X[::-1], Y[::-1])
    state = model.state_
    rows = state.buffers.rows
    variance = np.einsum("kib,ij,kjb->kb", rows, state.covariance, rows)
    assert (state.bound >= variance * (1 - 1e-9)).all()
    assert np.trace(state.covariance) < 8.5


@pytest.mark.sampled(10)
@each_linear
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_without_a_label_are_scored_only(learner, kind):
    labelled = np.arange(len(X)) % 3 > 0
    y = np.where(labelled, Y, None)
    model = begun(learner)
    scores = model.test_then_train(kind(X), y)
    for t in (0, 150, 297):  # rows without labels
        again = begun(learner)
        again.test_then_train(X[:t], y[:t]) if t else None
        np.testing.assert_allclose(scores[t], again.score_samples(X[t : t + 1])[0], atol=1e-9)
    if not _draws(learner):  # a draw is spent on every row, learned from or not
        without = begun(learner)
        without.partial_fit(X[labelled], Y[labelled])
        np.testing.assert_array_equal(model.coef_, without.coef_)


def _draws(learner):
    """Whether chance plays a part: a reservoir, or a random sketch of the covariance."""
    parameters = learner.get_params()
    return parameters.get("policy") == "reservoir" or parameters.get("rank") is not None


@each_linear
def test_sparse_is_dense_and_float32_is_float64(learner):
    rounded = X.astype(np.float32)
    wanted = begun(learner).partial_fit(rounded.astype(float), Y)
    for rows in (rounded, sparse.csr_array(rounded), sparse.csr_array(rounded.astype(float))):
        assert_same_state(begun(learner).partial_fit(rows, Y), wanted)
    shuffled = sparse.coo_array(rounded).tocsc().tocsr()
    shuffled.data[5] = 0.0  # a zero that is stored
    dense = begun(learner).partial_fit(shuffled.toarray(), Y)
    assert_same_state(begun(learner).partial_fit(shuffled, Y), dense)
    for rows in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(wanted.score_samples(rows), X @ wanted.coef_, atol=1e-9)


@each_learner
def test_a_weight_of_k_is_k_copies_in_a_row(learner):
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = begun(learner).partial_fit(X, Y, sample_weight=weight)
    copies = begun(learner).partial_fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    assert_same_state(weighted, copies)


@each_linear
def test_the_same_seed_gives_the_same_model(learner):
    one, other = clone(learner).fit(X, Y), clone(learner).fit(X, Y)
    assert_same_state(one, other)
    assert_same_state(one.fit(X, Y), other)  # what was learned before is lost
    reordered = clone(learner).set_params(random_state=1).fit(X, Y)
    assert not np.array_equal(reordered.coef_, one.coef_)


@each_learner
def test_fit_learns_a_stream_of_the_rows_in_a_new_order_each_epoch(learner):
    weight = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0], len(X))
    fitted = clone(learner).set_params(n_epochs=2).fit(X, Y, sample_weight=weight)
    learned = begun(learner)
    for _ in range(2):
        order = learned.state_.rng.permutation(len(X))
        learned.partial_fit(X[order], Y[order], sample_weight=weight[order])
    assert_same_state(fitted, learned)


@each_learner
@pytest.mark.parametrize("through", ["pickle", "deepcopy", "flatten"])
def test_goes_on_from_a_copy_as_it_would_have(learner, through):
    model = begun(learner).partial_fit(X[:120], Y[:120])
    if through == "pickle":
        other = pickle.loads(pickle.dumps(model))
    elif through == "deepcopy":
        other = copy.deepcopy(model)
    else:
        flat = flatten(model.state_)
        assert all(isinstance(v, np.ndarray | int | float | dict) for v in flat.values())
        other = begun(learner)
        other.take_up(copy.deepcopy(flat))
    assert_same_state(other, model)
    a, b = model.test_then_train(X[120:], Y[120:]), other.test_then_train(X[120:], Y[120:])
    assert a.tobytes() == b.tobytes()
    assert_same_state(other, model)


@each_learner
@pytest.mark.parametrize("label", [0, 1, 2])
def test_what_was_learned_from_one_class_or_nothing_is_taken_up(learner, label):
    model, other, rows = begun(learner), begun(learner), np.flatnonzero(label == Y)[:9]
    if len(rows):
        model.partial_fit(X[rows], Y[rows])
    other.take_up(flatten(model.state_))
    assert_same_state(other, model)


@pytest.mark.sampled(5)
@each_learner
def test_ranks_an_easy_set_well(learner):
    train, test = stream(2000, seed=1), stream(2000, seed=2)
    for rows in (train[0], sparse.csr_array(train[0])):
        model = clone(learner).fit(rows, train[1])
        assert model.score(*test) > 0.95
        predicted = model.predict(test[0])
        assert 0.5 * (predicted[test[1] == 1].mean() + 1 - predicted[test[1] == 0].mean()) > 0.8
    scores = begun(learner).test_then_train(*train)
    assert roc_auc_score(train[1][500:], scores[500:]) > 0.95


@each_linear
def test_new_features_change_nothing_for_rows_without_them(learner):
    wanted = begun(learner)
    scores = wanted.test_then_train(X, Y)
    wide = np.pad(X, ((0, 0), (0, 4)))
    for edges in ([0], [150], [299], [3, 150, 151, 299]):
        model, found, start = begun(learner), [], 0
        for i, edge in enumerate([*edges, len(X)]):
            if edge > start:
                found.append(model.test_then_train(wide[start:edge, : 9 + i], Y[start:edge]))
            start = edge
            if i < len(edges):
                model.add_features(1)
        # A sum over more features, zeros though they are, may be taken in another order.
        np.testing.assert_allclose(np.concatenate(found), scores, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.coef_[:9], wanted.coef_, rtol=1e-9, atol=1e-12)
        assert (model.coef_[9:] == 0).all()
        assert model.n_features_in_ == len(model.coef_) == 9 + len(edges)


@each_linear
def test_new_features_are_learned_from(learner):
    model = begun(learner).partial_fit(X[:100, :], Y[:100]).add_features(1)
    more = np.column_stack([X[100:], 3 * Y[100:]])
    assert model.partial_fit(more, Y[100:]).coef_[9] > 0


@each_linear
def test_one_class_and_then_the_other(learner):
    majority = X[Y == 0]
    for n in (0, 1, len(majority)):
        model = begun(learner)
        if n:
            model.partial_fit(majority[:n], np.zeros(n))
        assert np.isfinite(model.score_samples(X)).all()
        assert np.isfinite(model.offset_)
        model.partial_fit(X[Y == 1][:1], [1])
        assert np.isfinite(model.coef_).all()
        model.partial_fit(X, Y)
        assert model.score(X, Y) > 0.9


@each_linear
def test_equal_rows_and_zeros_leave_a_usable_model(learner):
    y = np.arange(20) % 2
    for rows in (np.zeros((20, 9)), sparse.csr_array((20, 9))):
        model = begun(learner).partial_fit(rows, y)
        assert (model.coef_ == 0).all()
        assert (model.predict(rows) == 0).all()
    model = begun(learner).partial_fit(np.tile(X[:1], (20, 1)), y)
    assert np.isfinite(model.coef_).all()
    assert model.partial_fit(X, Y).score(X, Y) > 0.85


@each_linear
def test_a_first_rare_row_after_many_of_the_majority(learner):
    rng = np.random.default_rng(0)
    model = begun(learner).partial_fit(rng.normal(size=(20_000, 9)), np.zeros(20_000))
    model.partial_fit(X[Y == 1][:1], [1])
    assert np.isfinite(model.coef_).all()
    fresh = stream(2000, seed=3)
    assert model.partial_fit(*fresh).score(*fresh) > 0.85


@each_linear
def test_huge_values_leave_a_usable_model_or_are_named(learner):
    scale = np.ones(9)
    scale[1] = 1e70
    assert np.isfinite(clone(learner).fit(X * scale, Y).coef_).all()
    wide = X * scale**3
    for form in (np.asarray, sparse.csr_array):
        model = begun(learner)
        if isinstance(learner, (OPAUC, AdaOAM)):
            with pytest.raises(
                ValueError, match=r"column 1: -?[0-9.]+e\+2\d\d .* Scale the column"
            ):
                model.partial_fit(form(wide), Y)
        else:
            model.partial_fit(form(wide), Y)
        assert np.isfinite(model.coef_).all()
