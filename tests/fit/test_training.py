"""Training: copies of rows, and what is refused beforehand."""

import datetime as dt
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import expit, logit

from faults import refused
from rareclass.decide import ThresholdRule
from rareclass.encoding.typed_table import distinct_rows, read_table
from rareclass.ensemble.plan import MOST_ROWS
from rareclass.errors import ErrorKind, InputError
from rareclass.findings import TableWarning
from rareclass.fit.auto_method import AutoMethod
from rareclass.fit.kernel_methods import RankRCMethod
from rareclass.fit.method import EncodedRows, Terms
from rareclass.fit.mibc_method import MIBCMethod
from rareclass.fit.training import train
from rareclass.fit.training_set import FitSettings, read_training_set
from rareclass.folds.dealing import group_numbers, read_times
from rareclass.metrics import interval
from rareclass.metrics.held_out_cuts import GROUPED
from rareclass.metrics.intervals import Interval, widened
from rareclass.model.facts import facts_as_json
from rareclass.model.threshold import DecisionRule, with_threshold
from rareclass.tables.reading import is_usable
from rareclass.tables.table_file import open_rows, open_table


def noise(path, n_copies):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(1000, 4)).round(6)
    rare = np.arange(1000) < 20
    rows = np.repeat(np.arange(1000), np.where(rare, n_copies, 1))
    if path.suffix == ".svmlight":
        # Copies with an explicit zero more are copies.
        lines = [
            f"{int(rare[row])} " + " ".join(f"{j}:{v}" for j, v in enumerate(X[row]))
            + (" 7:0" if k % 2 else "") + "\n"
            for k, row in enumerate(rows)
        ]  # fmt: skip
        path.write_text("".join(lines) + "0 7:1\n")
    else:
        table = pl.DataFrame(X[rows], schema=list("abcd"))
        table.with_columns(y=pl.Series(rare[rows].astype(int))).write_csv(path)
    return path


def read(path, **settings):
    target = None if path.suffix == ".svmlight" else "y"
    return read_training_set(open_table(path), FitSettings(target=target, **settings))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("suffix", [".csv", ".svmlight"])
def test_copied_rare_rows_do_not_flatter_the_estimate(tmp_path, suffix):
    data = read(noise(tmp_path / f"t{suffix}", 3))
    # Fewer than a tenth of the rows.
    assert data.n_copies == 40
    assert data.rare.sum() == 20
    assert data.target.n_rare == 60
    assert data.weight is not None
    np.testing.assert_array_equal(data.weight, np.where(data.rare, 3, 1))
    trained = train(data, FitSettings(target="y", method=RankRCMethod(0.01)))
    assert trained.estimate.measures["AUC"].value < 0.8
    assert any("only 5 of the 15 rare rows held out are distinct" in note for note in trained.notes)


@pytest.mark.parametrize("suffix", [".csv", ".svmlight"])
def test_without_copies_nothing_is_weighed(tmp_path, suffix):
    data = read(noise(tmp_path / f"t{suffix}", 1))
    assert (data.n_copies, data.weight) == (0, None)
    dropped = read(noise(tmp_path / f"t{suffix}", 3), weigh_copies=False)
    assert (dropped.n_copies, dropped.weight, dropped.rare.sum()) == (40, None, 20)


def test_rows_of_both_classes_stay_two(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "1.5,0\n" * 8 + "1.5,1\n" * 2 + "2.5,0\n" + "3.5,1\n" * 3)
    data = read(path)
    assert data.rare.tolist() == [False, True, False, True]
    assert data.weight.tolist() == [8, 2, 1, 3]
    # Case tells no labels apart.
    path.write_text("x,y\n" + "".join(f"{k}.5,{'aAb'[k % 3]}\n" for k in range(30)))
    with pytest.warns(TableWarning):
        data = read(path, positive="a")
    assert data.rare.sum() == data.target.n_rare == 20


def test_parquet_categories_keep_the_label_none(tmp_path):
    labels = pl.Series("y", ["none", "x", "x"] * 10, dtype=pl.Categorical)
    pl.DataFrame({"x": np.arange(30) + 0.5, "y": labels}).write_parquet(tmp_path / "t.parquet")
    data = read(tmp_path / "t.parquet")
    assert (data.target.rare_label, data.target.n_rare, data.n_unlabelled) == ("none", 10, 0)


def test_too_little_kernel_memory_is_refused_and_a_mistake_is_not_called_so(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise ValueError("a bug")

    data = read(noise(tmp_path / "t.csv", 1))
    with pytest.raises(InputError, match="Raise kernel_memory="):
        train(data, FitSettings(target="y", method=RankRCMethod(), kernel_memory=1 << 20))
    monkeypatch.setattr("rareclass.fit.kernel_methods.RankRCCV.fit", fail)
    with pytest.raises(ValueError, match="a bug"):
        train(data, FitSettings(target="y", method=RankRCMethod()))


def few(path, n_rare, n_rest=120):
    generator = np.random.default_rng(1)
    rare = np.arange(n_rare + n_rest) % ((n_rare + n_rest) // n_rare) == 1
    rare &= np.cumsum(rare) <= n_rare
    X = (generator.normal(size=(len(rare), 3)) + rare[:, None]).round(6)
    table = pl.DataFrame(X, schema=list("abc"))
    customer = np.where(rare, np.cumsum(rare) // 2, 100 + np.arange(len(rare)) // 2)
    table.with_columns(y=pl.Series(rare.astype(int)), customer=pl.Series(customer)).write_csv(path)
    return path


@pytest.mark.sampled(1)
@pytest.mark.parametrize("groups", [None, "customer"])
def test_few_rare_rows_are_held_out_in_turn(tmp_path, groups, monkeypatch):
    seen = []
    fit = MIBCMethod.fit

    def watched(method, rows, terms, notes):
        seen.append(rows)
        return fit(method, rows, terms, notes)

    monkeypatch.setattr(MIBCMethod, "fit", watched)
    monkeypatch.setattr("rareclass.fit.training.MOST_LEARNED", 60)
    drop = ("customer",) if groups is None else ()
    settings = FitSettings(target="y", drop=drop, method=MIBCMethod(1.0), groups=groups)
    data = read_training_set(open_table(few(tmp_path / "t.csv", 6)), settings)
    trained = train(data, settings)
    metadata, held_out = facts_as_json(trained.content.facts), trained.content.held_out
    how = "cross-fitting" if groups is None else "cross-fitting by group"
    assert metadata["estimated_by"] == how
    assert trained.estimate.n_rare == 6
    assert held_out.y.tolist() == data.y.tolist()
    whole, *parts = seen
    assert len(whole.y) == len(data.y)
    assert len(parts) == (5 if groups is None else 4)
    for part in parts:
        assert (part.y == 0).sum() == 60
        assert 0 < (part.y == 1).sum() < 6
        assert part.weight.sum() == pytest.approx(len(data.y) * (1 - 1 / len(parts)), abs=8)
    # Where the saved model has them.
    X = trained.content.encoder.transform(data.rows)
    scores = trained.content.estimator.score_samples(X)[data.y == 0]
    rest = held_out.scores[data.y == 0]
    assert rest.mean() == pytest.approx(scores.mean(), abs=1e-9)
    assert rest.std() == pytest.approx(scores.std(), rel=0.1)
    assert facts_as_json(trained.content.facts)["trained_on_all_rows"]


def test_held_out_rows_are_as_asked_for_and_where_rare_rows_are_many(tmp_path):
    for n_rare, holdout in ((6, 0.5), (20, None)):
        settings = FitSettings("y", drop=("customer",), method=MIBCMethod(1.0), holdout=holdout)
        data = read_training_set(open_table(few(tmp_path / "t.csv", n_rare)), settings)
        by = facts_as_json(train(data, settings).content.facts)
        assert (by["estimated_by"], by["holdout"]) == ("held-out rows", holdout or 0.25)


@pytest.fixture
def few_rows_choose(monkeypatch):
    for name, value in {
        "SEARCH_ROWS": 400, "SEARCH_WIDTHS": (0.7, 1.4), "SEARCH_LAMS": (0.1, 0.001),
    }.items():  # fmt: skip
        monkeypatch.setattr(f"rareclass.fit.kernel_methods.{name}", value)


def test_of_many_rows_a_part_chooses_width_and_lam(tmp_path, few_rows_choose):
    data = read(noise(tmp_path / "t.csv", 1))
    trained = train(data, FitSettings(target="y", method=RankRCMethod()))
    found = facts_as_json(trained.content.facts)
    assert found["lam_chosen_by_cross_validation"]
    assert found["width_chosen_by_cross_validation"]
    assert found["chosen_on_rows"] == 400
    assert found["lam"] in (0.1, 0.001)
    # Trained again on all rows with both, as the first training found them.
    assert found["width"] == trained.content.estimator.width_ != 1.0
    chosen = trained.method
    assert isinstance(chosen, RankRCMethod)
    assert (chosen.lam, chosen.width, chosen.on_part) == (found["lam"], found["width"], True)
    lam, width = trained.summary[1:3]
    assert lam.endswith("chosen by cross-validation on 400 rows")
    assert width == f"Kernel width {found['width']:.4g}, chosen by cross-validation on 400 rows"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("method", "said"),
    [
        (RankRCMethod(0.01), "the mean distance of rows"),
        (RankRCMethod(width="mean"), "the mean distance of rows"),
        (RankRCMethod(0.01, width=2.5), "given"),
    ],
)
def test_what_is_given_is_not_chosen(tmp_path, few_rows_choose, method, said):
    trained = train(read(noise(tmp_path / "t.csv", 1)), FitSettings(target="y", method=method))
    found = facts_as_json(trained.content.facts)
    assert not found["width_chosen_by_cross_validation"]
    assert found["chosen_on_rows"] is None
    assert found["lam_chosen_by_cross_validation"] == (method.lam is None)
    assert found["width"] == trained.content.estimator.width_
    assert (found["width"] == method.width) == isinstance(method.width, float)
    assert trained.summary[2] == f"Kernel width {found['width']:.4g}, {said}"


@pytest.mark.filterwarnings("ignore:column 'who' holds whole numbers that are too long")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_groups_named_by_long_numbers_are_told_apart(tmp_path, suffix):
    path, k = tmp_path / f"t.{suffix}", np.arange(90)
    table = pl.DataFrame({"x": k % 7, "who": 2**60 + k // 3, "y": (k % 5 == 0).astype(int)})
    getattr(table, f"write_{suffix}")(path)
    data = read_training_set(open_table(path), FitSettings("y", groups="who"))
    who = data.groups
    assert who is not None
    assert sorted(set(who)) == sorted(map(str, set(table["who"])))
    assert [column.name for column in data.columns if column.is_used] == ["x"]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("option", "cells"),
    [
        ("groups", [[1], [2]]),
        ("groups", [{"a": 1}, {"a": 2}]),
        ("time", [[1], [2]]),
        ("time", [True, False]),
        ("time", [dt.time(1), dt.time(2)]),
        ("time", [dt.timedelta(1), dt.timedelta(2)]),
        ("time", np.array([1, 2], "m8[ns]")),
        ("groups", [b"a", b"b"]),
        *(("groups", [mark, "a"]) for mark in ("NA", " ", "n/a", "?", None)),
    ],
)
def test_what_is_no_group_and_no_time_is_refused_from_a_file_and_in_python(tmp_path, option, cells):
    rows = pl.DataFrame({"x": [k % 7 + 0.5 for k in range(40)], "y": [0, 0, 0, 1] * 10})
    column = pl.Series("g", pl.Series(cells).gather([0, 1] * 20))
    rows.with_columns(column).write_parquet(tmp_path / "t.parquet")
    settings = FitSettings(target="y", **{option: "g"})
    for table in (tmp_path / "t.parquet", rows.with_columns(column)):
        with refused(ErrorKind.CELL, column="g", row=1):
            read_training_set(open_rows(table), settings)
    read = group_numbers if option == "groups" else read_times
    objects = np.array([*column.to_list(), None], dtype=object)[:-1]
    typed = (column, column.to_numpy()) if is_usable(column.dtype) else ()
    for values in (objects, *typed):
        with refused(ErrorKind.CELL, column=option, row=0):
            read(values, 40)


NAMES = ["a", " a", "a\t", "A", "1", "1.0", "1.50", "1.5", "true", "True", "007", "7", "10:30"]
NAMES += ["10:30:00", "$5", "5", "Yes", "yes", "2024-01-02", "2024-1-2", "none so far", "1,5"]


@given(st.lists(st.sampled_from(NAMES), min_size=4, max_size=12))
@example(NAMES)
@example(["unknown", *map(str, range(40))])
def test_groups_of_a_table_are_the_same_wherever_it_comes_from(named):
    table = pl.DataFrame({"x": np.arange(len(named)) + 0.5, "y": 0, "g": named})
    table = table.with_columns(y=pl.Series([1] + [0] * (len(named) - 1)))
    numbers = group_numbers(named, len(named))
    with TemporaryDirectory() as folder:
        for suffix in ("csv", "parquet", "ndjson"):
            path = Path(folder) / f"t.{suffix}"
            getattr(table, f"write_{suffix}")(path)
            data = read_training_set(open_table(path), FitSettings("y", groups="g"))
            assert group_numbers(data.groups, len(named)).tolist() == numbers.tolist()


@pytest.mark.parametrize("groups", [None, "who"])
def test_a_rule_counts_a_group_or_the_copies_of_a_row_as_one(tmp_path, groups):
    """And so it does where another threshold is set on the rows that the model file keeps."""
    path, once = tmp_path / "t.parquet", pl.read_csv(few(tmp_path / "t.csv", 40, 400))
    who = np.repeat(np.arange(len(once)), 3)
    noise = 1e-9 * np.arange(len(who)) * (groups is not None)
    table = once.drop("customer")[who].with_columns(pl.col("a") + noise, who=pl.Series(who))
    (table if groups else table.drop("who")).write_parquet(path)
    rule = DecisionRule(ThresholdRule.min_recall(0.7))
    settings = FitSettings("y", groups=groups, method=MIBCMethod(1.0), holdout=0.5, rule=rule)
    model = train(read_training_set(open_table(path), settings), settings).content
    chosen = model.facts.rule
    assert chosen.n_rare == 60
    assert chosen.n_independent <= 20 + 1e-9
    assert chosen.findings[0].values["reason"] == GROUPED
    again = with_threshold(model, rule)[1]
    assert again.threshold == pytest.approx(chosen.threshold)
    assert again.recall == pytest.approx(chosen.recall)
    assert again.n_independent == pytest.approx(chosen.n_independent)


def test_rows_of_a_group_stay_together_where_a_part_chooses(few_rows_choose):
    rng = np.random.default_rng(0)
    y = (np.arange(900) % 15 == 0).astype(np.int16)
    X = rng.normal(size=(900, 2)) + 2 * y[:, None]
    rows = EncodedRows(X, y, None, groups=np.arange(900) // 30)
    model = RankRCMethod().fit(rows, Terms(3, 0, 1 << 30, n_rows=900), [])
    assert model.width != "mean"
    assert model.lam in (0.1, 0.001)
    alone = RankRCMethod(width=2.5).fit(rows, Terms(1, 0, 1 << 30, n_rows=900), [])
    assert alone.width == 2.5


ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=20)


@given(ROWS)
@example([(0, 0), (0, 1)])
@example([(0, 0), (0, 1), (1, 1), (1, 1), (2, 0)])
def test_rows_recur_where_as_many_rare_ones_equal_a_majority_row_as_equal_rare_ones_only(rows):
    group, code = (np.array(column) for column in zip(*rows, strict=True))
    most = np.argmax(np.bincount(code))
    beside = [{c for g, c in rows if g == k} for k, _ in rows]
    rare = [k for k, (_, c) in enumerate(rows) if c != most]
    recurring = sum(most in beside[k] for k in rare)
    copied = sum(
        most not in beside[k] and sum(g == rows[k][0] and c != most for g, c in rows) > 1
        for k in rare
    )
    for weigh in (True, False):
        found = distinct_rows(group, code.astype(np.int16), weigh)
        if weigh and recurring and recurring >= copied:
            assert (found.rows.tolist(), found.copies) == (list(range(len(rows))), None)
            continue
        first = [k for k, row in enumerate(rows) if row not in rows[:k]]
        assert found.rows.tolist() == first
        counts = [rows.count(rows[k]) for k in first]
        assert counts == ([1] * len(first) if found.copies is None else found.copies.tolist())


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [None, "who", "y", "amount"])
@pytest.mark.parametrize("in_folder", [True, False])
def test_an_index_that_pandas_stored_is_no_feature_unless_it_is_kept(tmp_path, name, in_folder):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"amount": rng.normal(size=90), "y": rng.random(90) < 0.4})
    rows["who"], rows["word"] = rng.integers(0, 60, 90), rng.choice(["u", "v"], 90)
    rows = rows.sort_values("y", kind="stable")  # of such rows the index gives labels away
    stored = name or "__index_level_0__"
    path = tmp_path / "part=1" / "t.parquet" if in_folder else tmp_path / "t.parquet"
    path.parent.mkdir(exist_ok=True)
    (rows if name is None else rows.set_index(name)).to_parquet(path)
    place = tmp_path if in_folder else path
    data = read_training_set(open_table(place), FitSettings("y"))
    used = [column.name for column in data.columns if column.is_used]
    assert used == [each for each in ("amount", "who", "word") if each != name]
    python = read_table(pq.read_table(path).drop(["y"]))
    assert python.names == used
    why = {column.name: column.why_dropped for column in data.columns if not column.is_used}
    if stored != "y":  # a label may be the index
        assert why[stored] == "the index that pandas stored"
        kept = read_training_set(open_table(place), FitSettings("y", keep=(stored,)))
        assert stored in [column.name for column in kept.columns if column.is_used]


def trained(folder, method, copies=1):
    """A model of 400 rows, a tenth of them rare, each so many times."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 10 == 0
    X = rng.normal(size=(400, 3)) + y[:, None]
    table = pl.DataFrame(X, list("abc")).with_columns(y=pl.Series(y.astype(int)))
    pl.concat([table] * copies).write_csv(folder / "t.csv")
    settings = FitSettings(target="y", method=method, baseline=False)
    return train(read_training_set(open_table(folder / "t.csv"), settings), settings)


@pytest.mark.parametrize(
    ("method", "ratio"),
    [
        (AutoMethod(members=("logistic regression",)), 1.0 + 400 / 320),  # five folds
        (RankRCMethod(0.01), 1.0 + 100 / 300),  # a quarter of the rows held out
    ],
)
def test_intervals_allow_for_other_training_rows(tmp_path, method, ratio):
    """By the formula of Nadeau and Bengio, ``sqrt(1 + n_tested / n_train)`` on the logit scale."""
    found = trained(tmp_path, method)
    held_out, estimate = found.content.held_out, found.estimate
    rows = held_out.y == 1, held_out.scores, held_out.weight
    for name, measure in (("AUC", "roc_auc"), ("average precision", "average_precision")):
        value, *ends = interval(measure, *rows)
        own, *own_ends = estimate.measures[name]
        assert own == pytest.approx(value, abs=1e-9)
        reach = np.sqrt(ratio) * (logit(ends) - logit(value))
        np.testing.assert_allclose(own_ends, expit(logit(value) + reach), atol=1e-6)


@pytest.mark.parametrize("copies", [1, 3])
def test_two_tenths_held_out_of_thinned_rows_count_as_what_they_are(tmp_path, monkeypatch, copies):
    """Rare rows that no fold holds out make no interval narrower; copies count where they are."""
    monkeypatch.setattr("rareclass.ensemble.plan._MANY_ROWS", 100)
    monkeypatch.setattr("rareclass.ensemble.plan._RARE_ROWS_FOR_TENTHS", 10)
    monkeypatch.setitem(MOST_ROWS, "standard", 200)
    found = trained(tmp_path, AutoMethod(members=("logistic regression",)), copies)
    held_out, estimate = found.content.held_out, found.estimate
    assert ((held_out.y == 1).sum(), estimate.n_rare) == (8, 8 * copies)
    assert estimate.n_rows == pytest.approx(80 * copies, rel=0.3)
    assert any("are distinct:" in note for note in found.notes) is (copies > 1)


@given(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).map(sorted), st.floats(1.0, 3.0))
def test_a_wider_interval_holds_the_narrower_one_and_stays_a_share(ends, factor):
    low, value, high = ends
    found = widened(Interval(value, low, high), factor)
    assert 0.0 <= found.low <= low + 1e-12
    assert high - 1e-12 <= found.high <= 1.0
    assert found.value == value
    assert widened(Interval(value, low, high), 1.0) == Interval(value, low, high)
