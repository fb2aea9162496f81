"""Every registered member on hard tables: few rare rows, constants, duplicates, gaps, weights."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from draws import draws
from ensemble.quick_members import named, small_members
from rareclass import MIBC, RareClassifier
from rareclass.ensemble import plan
from rareclass.ensemble.members import machines
from rareclass.ensemble.members.member import EncodedFolds, Size, Stopped
from rareclass.ensemble.plan import MEMBERS, PORTFOLIOS, make_members
from rareclass.errors import MissingPackageError

MADE = small_members(4, lams=(0.1, 0.01), n_majority=20, most_rare=3)
BY_NAME = pytest.mark.parametrize("member", named(MADE))


@st.composite
def hard_tables(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(12, 60))
    n_rare = draw(st.integers(1, 4))
    y = random.permutation(n) < n_rare
    numbers = random.normal(size=n) + 3.0 * y
    frame = pd.DataFrame(
        {
            "numbers": numbers,
            "rounded": numbers.round(),
            "nearly constant": (random.permutation(n) < 1).astype(float),
            "of the majority": np.where(y, np.nan, random.normal(size=n)),
            "gaps": np.where(random.random(n) < 0.5, np.nan, random.integers(0, 3, n)),
            "word": random.choice(["a", "b", None], n),
            "word of rare rows": np.where(y, "c", random.choice(["a", "b"], n)),
            "huge": random.choice([1e-30, 1.0, 1e30], n),
        }
    )
    frame.loc[0, "word"], frame.loc[1, "word"] = "a", "b"
    frame.loc[~y, "word of rare rows"] = np.resize(["a", "b"], (~y).sum())
    chosen = draw(st.lists(st.sampled_from(list(frame)), min_size=1, unique=True))
    frame = frame[["numbers", *(name for name in chosen if name != "numbers")]]
    if draw(st.booleans()):  # each majority row twice
        copies = np.concatenate([np.arange(n), np.flatnonzero(~y)])
        frame, y = frame.iloc[copies].reset_index(drop=True), y[copies]
    weight = 1.0 + random.integers(0, 30, len(y)) if draw(st.booleans()) else None
    return frame, y, weight


@pytest.mark.sampled(3)
@BY_NAME
@given(table=hard_tables())
@draws(12)
def test_hard_tables(member, table):
    frame, y, weight = table
    model = RareClassifier(members=[member], cv=2, n_jobs=1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "column .* alone ranks the rows", UserWarning)
        warnings.filterwarnings("ignore", "feature_importances_ are not known", UserWarning)
        model.fit(frame, y, weight)
    scores = model.score_samples(frame)
    assert np.isfinite(scores).all()
    assert np.isnan(model.held_out_score_) == (y.sum() == 1)
    assert model.predict(frame).shape == y.shape
    assert model.without_time_ == []
    nowhere = frame.assign(**{name: np.nan for name in frame.columns if "word" not in name})
    assert np.isfinite(model.score_samples(nowhere)).all()
    for each in model.members_:
        assert np.isfinite(each.scale.excess)
        assert each.scale.excess > 0.0


def encoded():
    is_rare = np.arange(80) < 12
    X = np.random.default_rng(0).normal(size=(80, 3)) + 1.5 * is_rare[:, None]
    return EncodedFolds(X, is_rare, None, np.arange(80) % 3, seed=0, n_jobs=1)


@BY_NAME
def test_the_contract_of_a_member(member):
    rows = encoded()
    X, y = rows.X.copy(), rows.is_rare.copy()
    found = member.cross_fit(rows)
    np.testing.assert_array_equal(rows.X, X)  # what others learn from is left alone
    np.testing.assert_array_equal(rows.is_rare, y)
    assert len({each.setting for each in found}) == len(found)
    for each in found:
        assert np.isfinite(each.held_out).all()
        assert len(each.functions) == 3
        for number, function in enumerate(each.functions):
            tested = np.equal(rows.fold, number)
            np.testing.assert_allclose(
                function.scores(X[tested]), each.held_out[tested], rtol=1e-4, atol=1e-4
            )
    # Rows of no fold are learned from and scored by nobody.
    fold = rows.fold.copy()
    fold[-5:] = -1
    for each in member.cross_fit(replace(rows, fold=fold)):
        assert np.isnan(each.held_out[-5:]).all()
        assert np.isfinite(each.held_out[:-5]).all()
    sizes = (1_000, 50, 5), (9_000, 450, 5), (9_000, 450, 50)
    small, long, wide = (member.cost(Size(*size)) for size in sizes)
    assert 0.0 < small < long < wide

    def no_time():
        raise Stopped

    with pytest.raises(Stopped):
        member.cross_fit(replace(rows, check=no_time))


@pytest.mark.sampled(8)
@BY_NAME
def test_a_fold_learns_from_the_features_that_it_sees(member):
    rows = encoded()
    own, rng = np.array([0, 1, 2]), np.random.default_rng(1)
    X = np.column_stack([rows.X, rng.normal(size=(80, 3))])
    rows = replace(rows, X=X, features=[np.append(own, 3 + k) for k in range(3)])
    unknown = rows.fold == 1
    noise = np.where(unknown, 5.0, 1.0)[:, None] * rng.normal(size=(80, 3))
    noise[:, 1] = X[:, 4]  # all but what fold 1 sees
    other = replace(rows, X=np.column_stack([rows.X[:, :3], noise]))
    found, again = member.cross_fit(rows), member.cross_fit(other)
    for one, two in zip(found, again, strict=True):
        assert np.isfinite(one.held_out).all()
        assert len(one.functions) == 3
        tested = np.flatnonzero(unknown)
        np.testing.assert_array_equal(one.held_out[tested], two.held_out[tested])
        for number, function in enumerate(one.functions):
            tested = np.flatnonzero(rows.fold == number)
            scores = function.scores(rows.part(number, tested))
            np.testing.assert_allclose(scores, one.held_out[tested], rtol=1e-4, atol=1e-4)
        alone = [each.scores(X[:, rows.features[k]]) for k, each in enumerate(one.functions)]
        np.testing.assert_allclose(
            rows.mean_of(one).scores(X), np.mean(alone, axis=0), rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("name", ["histogram boosting", "catboost"])
def test_any_whole_number_is_a_seed(name):
    rows = encoded()
    (member,) = (each for each in MADE if each.name == name)
    given = rows.X, rows.is_rare, None
    first, again = (member.learn(*given, seed, 1).scores(rows.X) for seed in (2**70, 2**70))
    np.testing.assert_array_equal(again, first)
    assert first[rows.is_rare].mean() > first[~rows.is_rare].mean()


def test_what_no_user_chose_is_no_user_s_to_be_told():
    random = np.random.default_rng(0)
    y = np.arange(80) < 12
    word = np.where(y, "c", random.choice(["a", "b"], 80))  # constant in the majority
    frame = pd.DataFrame({"x": random.normal(size=80) + y, "word": word})
    members = [MEMBERS["mibc"](), MEMBERS["logistic regression"](max_iter=1)]
    with pytest.warns(UserWarning, match="alone ranks the rows") as told:
        RareClassifier(members=members, cv=2, n_jobs=1).fit(frame, y)
    assert len(told) == 1


def test_linear_members_are_their_machines():
    rows = replace(encoded(), weight=np.random.default_rng(1).integers(1, 4, 80).astype(float))
    found = MEMBERS["logistic regression"](strengths=(0.1, 1.0)).cross_fit(rows)
    (moments,) = MEMBERS["mibc"]().cross_fit(rows)
    for k in range(3):
        train = np.not_equal(rows.fold, k)
        given = rows.X[train], rows.is_rare[train].astype(int)
        for C, each in zip((0.1, 1.0), found, strict=True):
            alone = LogisticRegression(C=C, tol=1e-8, max_iter=1000)
            alone.fit(*given, sample_weight=rows.weight[train])
            np.testing.assert_allclose(each.functions[k].weights, alone.coef_[0], atol=0.03)
        alone = MIBC(C=0.1).fit(*given, sample_weight=rows.weight[train])
        np.testing.assert_allclose(moments.functions[k].weights, np.ravel(alone.coef_), rtol=1e-6)


def test_a_view_that_holds_nothing_ranks_nothing():
    rows = encoded()
    for each in MEMBERS["logistic regression on indicators"]().cross_fit(
        replace(rows, X=sparse.csr_matrix((80, 0)))
    ):
        np.testing.assert_array_equal(each.held_out, 0.0)


def test_portfolios_are_made_of_members():
    for names in PORTFOLIOS.values():
        assert set(names) <= set(MEMBERS)
    assert [each.name for each in make_members("auto")] == list(PORTFOLIOS["auto"])
    twice = make_members(["trees", "kernel", "extra trees", MEMBERS["mibc"](C=3.0)])
    assert len({each.name for each in twice}) == len(twice)
    mine = MEMBERS["mibc"](C=3.0)
    assert make_members([mine]) == [mine]


def apart(n, seed):
    rng = np.random.default_rng(seed)
    is_rare = np.arange(n) % 10 == 0
    X = rng.normal(size=(n, 4)) * np.where(is_rare, 3.0, 1.0)[:, None]
    X[is_rare, 0] += 3.0
    return X, is_rare


@pytest.mark.parametrize(("n_rows", "dtype"), [(9, np.float64), (10, np.float32)])
def test_only_many_rows_are_of_single_precision(n_rows, dtype, monkeypatch):
    monkeypatch.setattr(machines, "_SINGLE_PRECISION_ROWS", 10)
    X = np.arange(2.0 * n_rows).reshape(-1, 2)
    source = machines._source(SimpleNamespace(X=X, fold=np.zeros(n_rows)))
    held = source.take(slice(None))
    assert held.dtype == dtype
    np.testing.assert_array_equal(held, X)


def test_new_rare_rows_are_not_taken_for_rows_like_nothing():
    X, is_rare = apart(300, 0)
    fold = np.random.default_rng(0).permutation(300) % 3
    found = MEMBERS["kernel on quantiles"](lams=(0.01,)).cross_fit(
        EncodedFolds(X, is_rare, None, fold, seed=0, n_jobs=1)
    )
    function = found[0].functions[0]
    new, new_is_rare = apart(3000, 1)
    far = function.with_similarity(new)[:, 1] < function.least
    assert far[new_is_rare].mean() < 0.05
    assert not far[~new_is_rare].any()
    # What is far from everything is.
    nothing = np.full((1, 4), 100.0)
    assert function.scores(nothing)[0] <= function.most


def test_a_portfolio_holds_what_is_installed(monkeypatch):
    names = [member.name for member in plan.make_members("auto")]
    monkeypatch.setattr(plan, "find_spec", lambda name: None)
    without = [member.name for member in plan.make_members("auto")]
    assert without == [name for name in names if name != "catboost"]
    assert without[0] == "histogram boosting"
    with pytest.raises(MissingPackageError):
        plan.make_members(["auto", "catboost"])
