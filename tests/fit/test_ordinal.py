"""Training on ordered levels: the same wherever the rows live, and measured by levels."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from made_tables import written
from rareclass.encoding.encoders import TableEncoder
from rareclass.errors import InputError
from rareclass.fit.kernel_methods import OrdinalMethod
from rareclass.fit.method import EncodedRows, Terms
from rareclass.fit.training import terms_of, train
from rareclass.fit.training_set import FitSettings, read_training_set
from rareclass.metrics import mauc, roc_auc, vus
from rareclass.model import ScoreSettings
from rareclass.model.decisions import LevelDecision
from rareclass.model.evaluate import evaluate_file
from rareclass.model.facts import ScoredRows, facts_as_json, facts_from_json
from rareclass.model.model_file import load_model, save_model
from rareclass.model.score_file import score_rows
from rareclass.model.targets import LevelFacts
from rareclass.opening import describe
from rareclass.tables.columns import Column
from rareclass.tables.table_file import open_table

WORDS = ("low", "medium", "high")
SETTINGS = FitSettings(target="grade", method=OrdinalMethod(0.01, levels=WORDS), folds=2)
TERMS = Terms(folds=2, seed=0, memory=1 << 30)


def grades(path, n_rows=400):
    rng = np.random.default_rng(0)
    code = np.searchsorted([0.1, 0.85], rng.random(n_rows))
    table = pl.DataFrame(
        {
            "a": (rng.normal(size=n_rows) + code).round(4),
            "b": rng.normal(size=n_rows).round(4) - 0.5 * code,
            "shop": [f"s{k}" for k in rng.integers(0, 50, n_rows)],
            "grade": np.array(WORDS)[code],
        }
    ).with_columns(
        grade=pl.when(pl.int_range(n_rows) % 40 == 1).then(None).otherwise(pl.col("grade"))
    )
    return written(pl.concat([table, table[50:80]]), path, 100)


def read(path, settings=SETTINGS):
    return read_training_set(open_table(path), settings)


@pytest.fixture(scope="module")
def grades_file(tmp_path_factory):
    return grades(tmp_path_factory.mktemp("grades") / "t.parquet")


@pytest.fixture(scope="module")
def trained(grades_file):
    return train(read(grades_file), SETTINGS)


def test_the_target_is_read_in_order_and_has_no_rare_class_to_name(grades_file):
    with pytest.raises(InputError, match=r"positive=\['high'\] names a rare class"):
        read(grades_file, replace(SETTINGS, positive="high"))
    data = read(grades_file)
    assert isinstance(data.target, LevelFacts)
    assert data.target.levels == WORDS
    labels = pl.read_parquet(grades_file)["grade"].drop_nulls()
    assert data.n_rows == len(labels)
    assert data.target.level_counts == tuple((labels == word).sum() for word in WORDS)
    assert data.target.majority == 1
    np.testing.assert_array_equal(data.rare, data.y != 1)
    assert data.size.n_rare == (data.y != 1).sum()
    assert data.n_copies > 20
    shop = next(column for column in data.columns if column.name == "shop")
    assert shop.kind == "high-cardinality category"


def test_what_is_held_out_is_measured_by_levels(grades_file, trained):
    names = list(trained.estimate.measures)
    assert names == ["MAUC", "VUS", "AUC above low", "AUC above medium"]
    assert all(m.low <= m.value <= m.high for m in trained.estimate.measures.values())
    assert trained.estimate.measures["MAUC"].value > 0.75
    assert trained.estimate.n_rare is None
    assert len(trained.decided) == 2
    assert "Right level: " in trained.decided[0]
    held = facts_as_json(trained.content.facts)["held_out"]
    assert set(held["measures"]) == set(names)
    assert "n_rare" not in held


def test_a_saved_model_is_the_same_and_says_what_it_is(tmp_path, trained):
    save_model(tmp_path / "m.rareclass", trained.content)
    loaded = load_model(tmp_path / "m.rareclass")
    assert facts_as_json(loaded.facts) == facts_as_json(trained.content.facts)
    facts = facts_as_json(loaded.facts)
    assert (facts["method"], facts["target_kind"]) == ("ordinal-rankrc", "levels")
    assert facts["levels"] == list(WORDS)
    assert facts["majority_level"] == "medium"
    assert loaded.thresholds.tolist() == trained.content.thresholds.tolist()
    assert describe(tmp_path / "m.rareclass")["model"] == "OrdinalRankRC"
    assert not hasattr(loaded.estimator, "whitener_")
    assert isinstance(loaded.decision, LevelDecision)
    told = {name: value for name, value in facts.items() if name != "levels"}
    with pytest.raises(ValueError, match="levels is missing"):
        facts_from_json(told)


def test_scores_of_a_file_have_levels_and_percentiles_of_all_rows(tmp_path, grades_file, trained):
    model = trained.content
    scoring = score_rows(model, grades_file, tmp_path / "s.parquet", ScoreSettings(("shop",)))
    scores = pl.read_parquet(tmp_path / "s.parquet")
    chances = [name for name in scores.columns if name.startswith("probability_")]
    assert scores.columns == ["shop", "score", *chances, "level", "percentile"]
    values = scores["score"].to_numpy()
    low, high = model.thresholds
    expected = np.where(values <= low, "low", np.where(values <= high, "medium", "high"))
    assert scores["level"].to_list() == expected.tolist()
    for word in WORDS:
        assert f"{word} ({(expected == word).sum()})" in scoring.sentence
    share = (values[:, None] > values).mean(axis=1) * 100
    np.testing.assert_allclose(scores["percentile"], share, atol=1.5)
    pl.read_parquet(grades_file).with_columns(level="shop").write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="a column of the scores has that name"):
        score_rows(model, tmp_path / "t.parquet", tmp_path / "x.csv", ScoreSettings(("level",)))


def test_evaluation_is_that_of_the_metrics(grades_file, trained):
    evaluation = evaluate_file(trained.content, grades_file)
    table = pl.read_parquet(grades_file)
    labelled = table.filter(pl.col("grade").is_not_null())
    encoder, model = trained.content.encoder, trained.content.estimator
    scores = model.score_samples(encoder.transform(labelled))
    code = np.array([WORDS.index(word) for word in labelled["grade"]])
    values = {name: each.value for name, each in evaluation.estimate.measures.items()}
    assert values["MAUC"] == pytest.approx(mauc(code, scores))
    assert values["VUS"] == pytest.approx(vus(code, scores))
    assert values["AUC above low"] == pytest.approx(roc_auc(code > 0, scores))
    assert values["AUC above medium"] == pytest.approx(roc_auc(code > 1, scores))
    assert evaluation.n_unlabelled == table["grade"].null_count() > 0
    called = np.searchsorted(trained.content.thresholds, scores)
    plain = evaluation.as_plain_data()
    counts = [[((code == k) & (called == of)).sum() for of in range(3)] for k in range(3)]
    assert plain["confusion"]["is_by_called"] == counts
    assert plain["right"] == pytest.approx((called == code).mean())
    assert plain["within_one_level"] == pytest.approx((abs(called - code) <= 1).mean())
    assert plain["mean_distance"] == pytest.approx(abs(called - code).mean())
    by_level = [abs(called - code)[code == k].mean() for k in range(3)]
    assert plain["mean_distance_levels_alike"] == pytest.approx(np.mean(by_level))


def test_weights_count_as_copies_in_every_measure(trained):
    rng = np.random.default_rng(0)
    decision = trained.content.decision
    y, scores = rng.integers(0, 3, 60), rng.normal(size=60)
    weight = rng.integers(1, 4, 60).astype(float)
    copies = np.repeat(np.arange(60), weight.astype(int))
    rows, repeated = ScoredRows(y, scores, weight), ScoredRows(y[copies], scores[copies])
    one, other = decision.confusion(rows), decision.confusion(repeated)
    assert (one.numbers, one.lines) == (other.numbers, other.lines)
    weighed, copied = (decision.estimate(each).as_plain_data() for each in (rows, repeated))
    assert weighed["n_rows"] == copied["n_rows"] == weight.sum()
    for name, measure in weighed["measures"].items():
        assert measure["value"] == pytest.approx(copied["measures"][name]["value"])


def decided_by(thresholds, levels=WORDS):
    return LevelDecision(LevelFacts("grade", levels), np.array(thresholds))


def test_a_score_at_a_threshold_is_of_the_level_below_and_rules_name_levels_never_called():
    decision = decided_by([0.0, 1.0])
    assert decision.decide(np.array([-1.0, 0.0, 0.5, 1.0, 1.5])).tolist() == [0, 0, 1, 1, 2]
    assert decision.rules() == ["Levels by score: low up to 0, medium up to 1, high above"]
    lines = decided_by([-np.inf, 0.5]).rules()
    assert lines[0] == "Levels by score: medium up to 0.5, high above"
    assert "Levels that no score is called" in lines[1]
    assert lines[1].endswith("low")
    assert decided_by([0.5, 0.5]).rules()[1].endswith("medium")
    assert decided_by([-np.inf, np.inf]).rules()[0] == "Levels by score: medium"


def test_labels_of_a_new_file():
    decision = decided_by([0.0, 1.0])
    labels = pl.Series(["HIGH", None, "low", "medium"])
    assert decision.codes(labels, "new.csv").tolist() == [2, -1, 0, 1]
    with pytest.raises(InputError, match=r"new.csv: the target value 'hig' at row 3"):
        decision.codes(pl.Series(["low", None, "hig"]), "new.csv")
    with pytest.raises(InputError, match="holds only 'low'"):
        decision.codes(pl.Series(["low", "low"]), "new.csv")
    with pytest.raises(InputError, match="holds nothing"):
        decision.codes(pl.Series([None, None], dtype=pl.String), "new.csv")
    assert decided_by([0.0], ("1", "2.5")).codes(pl.Series(["2.50", "1"]), "x").tolist() == [1, 0]


@pytest.mark.sampled(0)
def test_lam_is_chosen_on_mauc_once_and_kept(grades_file, monkeypatch):
    lams = (4.0, 0.01, 1e-6)
    monkeypatch.setattr("rareclass.fit.kernel_methods.PAPER_LAMS", lams)
    settings = replace(SETTINGS, method=OrdinalMethod(levels=WORDS))
    outcome = train(read(grades_file), settings)
    facts = facts_as_json(outcome.content.facts)
    assert facts["lam"] in lams
    assert outcome.method == OrdinalMethod(facts["lam"], levels=WORDS)
    assert facts["lam_chosen_by_cross_validation"]
    assert "chosen by cross-validation" in " ".join(outcome.summary)


def test_a_level_of_one_row_stays_in_training(tmp_path):
    table = pl.DataFrame({"x": np.arange(120) % 37 + 0.5, "grade": np.arange(120) % 37 // 13})
    table = table.with_columns(grade=pl.when(pl.int_range(120) == 7).then(9).otherwise("grade"))
    table.write_csv(tmp_path / "t.csv")
    settings = replace(SETTINGS, method=OrdinalMethod(0.01), weigh_copies=False)
    outcome = train(read(tmp_path / "t.csv", settings), settings)
    assert facts_as_json(outcome.content.facts)["levels"] == ["0", "1", "2", "9"]
    assert any("no row of level 9 was held out" in note for note in outcome.notes)
    assert len(outcome.content.thresholds) == 3


def test_too_few_rows_for_folds(tmp_path):
    table = pl.DataFrame({"x": np.arange(30) + 0.25, "grade": [0] * 28 + [1, 2]})
    table.write_csv(tmp_path / "t.csv")
    settings = replace(SETTINGS, method=OrdinalMethod(), target="grade")
    outcome = train(read(tmp_path / "t.csv", settings), settings)
    assert outcome.estimate is None
    said = " ".join(outcome.notes)
    assert "nothing can be held out" in said
    assert "Too few rows for cross-validation" in said
    assert "lam was not chosen" in said
    assert not facts_as_json(outcome.content.facts)["lam_chosen_by_cross_validation"]
    # Folds have rows of two levels.
    assert terms_of(np.array([0] * 9 + [1] * 3 + [2], np.int16), FitSettings()).folds == 3
    assert terms_of(np.array([0] * 9 + [2], np.int16), FitSettings()).folds == 1


def test_a_level_that_rows_lack_has_thresholds_and_too_little_memory_is_refused():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [100, 15, 5]).astype(np.int16)
    rows = EncodedRows(rng.normal(size=(120, 2)) + y[:, None], y, None, n_codes=4)
    with pytest.raises(InputError, match="20 distinct rows outside the majority level") as caught:
        OrdinalMethod(0.1).fit(rows, TERMS._replace(memory=1 << 16), [])
    assert "mibc" not in str(caught.value)
    model = OrdinalMethod(0.1).fit(rows, TERMS, [])
    assert len(model.thresholds_) == 3
    assert (model.thresholds_[:-1] <= model.thresholds_[1:]).all()


def test_categories_tell_each_level_from_those_below():
    n = 600
    rng = np.random.default_rng(0)
    shop = rng.integers(0, 50, n)
    y = np.minimum(shop // 12, 3)
    frame = pl.DataFrame({"shop": [f"s{k}" for k in shop]})
    column = Column("shop", "high-cardinality category", "", "string", n_distinct=50)
    encoder = TableEncoder([column])
    X = encoder.fit_transform(frame, y)
    assert set(encoder.feature_columns) == {"shop"}
    assert len(encoder.feature_columns) == X.shape[1]
    of_levels = X[:, -3:]  # levels 1, 2 and 3 against those below
    assert np.corrcoef(of_levels.sum(axis=1), y)[0, 1] > 0.95
    for cut, column_of_cut in enumerate(of_levels.T, 1):
        assert np.corrcoef(column_of_cut, y >= cut)[0, 1] > 0.9
    np.testing.assert_array_equal(encoder.transform(frame).shape, X.shape)
    # A level of one row is no trouble.
    TableEncoder([column]).fit_transform(frame, np.where(np.arange(n) == 5, 9, y))


def test_the_row_of_a_wrong_label_is_that_of_the_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,grade\n" + "1.5,low\n2.5,\n" * 20 + "0.5,hihg\n3.5,high\n")
    for on_disk in (False, True):
        with pytest.raises(InputError, match="row 41 of the target 'grade': 'hihg'"):
            read(path, replace(SETTINGS, on_disk=on_disk))
    sparse = tmp_path / "t.svmlight"
    sparse.write_text("1 1:2\n" * 3 + "2 1:1\n7 2:1\n")
    settings = replace(SETTINGS, target=None, method=OrdinalMethod(0.1, levels=("1", "2")))
    with pytest.raises(InputError, match="row 5 of the target 'label': '7'"):
        read(sparse, settings)
