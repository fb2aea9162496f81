"""MIBC in training: covariances, memory, model files; and how long RankRC says it takes."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from fit.test_on_disk import messy
from rareclass.encoding.encoders import encoded_width
from rareclass.errors import InputError
from rareclass.fit.kernel_methods import OrdinalMethod, RankRCMethod, kernel_seconds
from rareclass.fit.method import EncodedRows, TableSize, Terms
from rareclass.fit.mibc_method import RIDGES, MIBCMethod
from rareclass.fit.training import train
from rareclass.fit.training_set import FitSettings, read_training_set
from rareclass.model.facts import facts_as_json
from rareclass.tables.table_file import open_table

NO_THRESHOLDS = np.array([])  # the lines on this model name none
TERMS = Terms(folds=3, seed=0, memory=1 << 30)


def read(path, settings):
    return read_training_set(open_table(path), settings)


def trained(path, **method):
    settings = FitSettings(target="y", method=MIBCMethod(**method), folds=3)
    return train(read(path, settings), settings)


def rows(n_rows=300, n_columns=6, is_sparse=False):
    rng = np.random.default_rng(0)
    rare = np.arange(n_rows) % 10 == 0
    X = rng.normal(size=(n_rows, n_columns)) + 1.0 * rare[:, None]
    return EncodedRows(sparse.csr_matrix(X) if is_sparse else X, rare, None)


@pytest.mark.sampled(0)
def test_the_threshold_is_of_held_out_scores_and_so_is_the_guarantee(tmp_path, monkeypatch):
    monkeypatch.setattr(MIBCMethod, "as_stored", lambda self, model: model)
    outcome = trained(messy(tmp_path / "t.parquet"), cost=0.1)
    model = outcome.content.estimator
    solved = model._solved
    assert model.offset_ != pytest.approx(solved.mean_score + 1.0, abs=1e-6)
    kappa = (model.offset_ - solved.mean_score) / solved.spread
    bound = facts_as_json(outcome.content.facts)["specificity_bound"]
    assert bound == pytest.approx(max(kappa, 0.0) ** 2 / (1 + max(kappa, 0.0) ** 2))
    assert f"false-positive rate at most {1 - bound:.1%} at" in " ".join(outcome.summary)


@pytest.mark.sampled(0)
def test_c_is_chosen_once_and_kept_for_all_rows_of_which_the_file_holds_none(tmp_path):
    outcome = trained(messy(tmp_path / "t.parquet"))
    assert vars(outcome.content.estimator).keys() == {"coef_"}
    chosen = outcome.method
    assert isinstance(chosen, MIBCMethod)
    assert chosen.cost in 10.0 ** np.arange(-4, 6)
    assert chosen.cost == facts_as_json(outcome.content.facts)["C"]
    assert facts_as_json(outcome.content.facts)["C_chosen_by_cross_validation"]
    assert "chosen by cross-validation" in " ".join(outcome.summary)


def test_which_covariance_is_kept_and_one_too_large_for_the_memory_is_refused():
    def kept(rows, **method):
        return str(MIBCMethod(1.0, **method).fit(rows, TERMS, []).covariance)

    assert kept(rows()) == "full"
    assert kept(rows(n_columns=1001)) == "diagonal"
    assert kept(rows(is_sparse=True)) == "diagonal"
    assert kept(rows(is_sparse=True), covariance="factor") == "factor"
    small = TERMS._replace(memory=8 * 6**2 * 10 - 1)
    with pytest.raises(InputError, match=r"covariance='full' of 6 encoded columns takes 2\.8 KiB"):
        MIBCMethod(1.0).fit(rows(), small, [])
    MIBCMethod(1.0, "diagonal").fit(rows(), small, [])
    MIBCMethod(1.0).fit(rows(), small._replace(memory=small.memory + 1), [])


def test_a_ridge_is_told_and_not_warned_of():
    twice = rows()
    notes = []
    method = MIBCMethod(1.0, ridge="auto")
    model = method.fit(EncodedRows(np.hstack([twice.X, twice.X]), twice.y, None), TERMS, notes)
    assert model.ridge_ > 0
    said = method.summary(model, TERMS, NO_THRESHOLDS)[0]
    assert f"full, 12 columns, with {model.ridge_:.3g} added" in said
    model = method.fit(twice, TERMS, notes)
    assert model.ridge_ == 0
    assert method.summary(model, TERMS, NO_THRESHOLDS)[0].endswith("full, 6 columns")
    assert notes == []
    chosen = MIBCMethod(1.0)
    model = chosen.fit(twice, TERMS, notes)
    assert model.ridge in RIDGES
    assert chosen.as_chosen(model).ridge == model.ridge
    said = chosen.summary(model, TERMS, NO_THRESHOLDS)[0]
    assert model.ridge == "auto" or "of their mean, chosen by cross-validation)" in said


def test_too_few_rare_rows_for_folds():
    notes = []
    for cost in (None, 0.5):
        model = MIBCMethod(cost).fit(rows(), TERMS._replace(folds=1), notes)
        assert (cost or 1.0) == model.C
    assert sum("threshold may be far off" in note for note in notes) == 2
    assert sum("C was not chosen: 1 was taken" in note for note in notes) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", [MIBCMethod(), RankRCMethod()])
def test_what_no_folds_chose_is_not_said_to_be_chosen(tmp_path, method):
    settings = FitSettings(target="y", method=method, holdout=0.25)
    data = read(messy(tmp_path / "t.parquet"), settings)
    rare, others = np.flatnonzero(data.rare), np.flatnonzero(~data.rare)[:300]
    for n_rare in (1, 2):  # of two, one is held out: one is left to choose with
        outcome = train(data.take(np.sort(np.append(others, rare[:n_rare]))), settings)
        assert "a default: too few rare rows" in " ".join(outcome.summary)
        assert "chosen by cross-validation" not in " ".join(outcome.summary)
        chosen = f"{method.parameter}_chosen_by_cross_validation"
        assert not facts_as_json(outcome.content.facts)[chosen]


def test_copies_are_weights(tmp_path):
    rng = np.random.default_rng(0)
    rare = np.arange(200) < 20
    X = rng.normal(size=(200, 3)) + rare[:, None]
    weight = rng.integers(1, 4, 200).astype(float)
    method, terms = MIBCMethod(0.1), TERMS._replace(folds=1)
    weighed = method.fit(EncodedRows(X, rare, weight), terms, [])
    repeat = np.repeat(np.arange(200), weight.astype(int))
    copied = method.fit(EncodedRows(X[repeat], rare[repeat], None), terms, [])
    np.testing.assert_allclose(weighed.coef_, copied.coef_, rtol=1e-4)


@pytest.mark.parametrize(
    ("method", "name"), [(RankRCMethod(), "RankRC"), (OrdinalMethod(), "OrdinalRankRC")]
)
def test_kernel_methods_say_when_they_will_take_long(method, name):
    quick = TableSize(n_rows=500_000, n_rare=2_000, n_columns=40, is_sparse=False)
    terms = Terms(folds=5, seed=0, memory=2 << 30)
    assert method.outlook(quick, terms) == ""
    said = method.outlook(quick._replace(n_rows=100_000_000), terms)
    assert f"{name} is likely to take about " in said
    assert "100,000,000 rows" in said
    assert ("mibc" in said) == (name == "RankRC")  # it learns no levels
    assert MIBCMethod().outlook(quick._replace(n_rows=10**10), terms) == ""


def test_more_of_anything_takes_longer():
    size = TableSize(n_rows=10_000_000, n_rare=1000, n_columns=40, is_sparse=False)

    def seconds(size=size, n_landmarks=1000, memory=1 << 30):
        return kernel_seconds(size, n_landmarks, n_solutions=85, memory=memory)

    base = seconds()
    assert seconds(size._replace(n_rows=20_000_000)) == pytest.approx(2 * base, rel=0.1)
    assert seconds(n_landmarks=500) == pytest.approx(base / 2, rel=0.1)
    assert seconds(size._replace(n_columns=4000)) > 3 * base
    assert seconds(size._replace(is_sparse=True)) > base
    assert seconds(memory=1 << 40) < base


def test_the_width_of_a_table_is_about_that_of_its_encoding(tmp_path):
    settings = FitSettings(target="y", folds=3)
    data = read(messy(tmp_path / "t.parquet"), settings)
    assert isinstance(data.rows, pl.DataFrame)
    encoded = data.new_encoder(0).fit_transform(data.rows, data.rare)
    assert sum(map(encoded_width, data.columns)) == pytest.approx(encoded.shape[1], abs=3)
    assert data.size.n_columns == sum(map(encoded_width, data.columns))
    assert (data.size.n_rows, data.size.n_rare) == (len(data.rare), data.rare.sum())
