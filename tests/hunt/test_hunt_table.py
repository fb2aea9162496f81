"""Reading a table whose label column is mostly empty."""

import gzip

import numpy as np
import polars as pl
import pytest

from command_line import says
from faults import refused
from rareclass.encoding.hunt import HuntEncoder
from rareclass.errors import ErrorKind
from rareclass.findings import TableWarning
from rareclass.hunt.hunting import HuntTable
from rareclass.review import Verdict, open_journal, read_review_table
from rareclass.review.table import HUNT_OPTIONS, LabelRoles

LABELS = ErrorKind.LABELS
YES_NO = LabelRoles(("yes",), ("no",))


def cases(n_rows=60):
    generator = np.random.default_rng(0)
    label = ["yes", "no", "", "", ""] * (n_rows // 5)
    return pl.DataFrame(
        {
            "order": [f"o-{k * 7919 % 99991}" for k in range(n_rows)],
            "amount": generator.normal(50, 10, n_rows).round(2),
            "country": generator.choice(["DE", "FR", "IT"], n_rows).tolist(),
            "always": ["x"] * n_rows,
            "case": label,
        }
    )


def read_hunt_table(path, roles, *ignored):
    return HuntTable.of(read_review_table(path, "case", ignored=ignored), roles)


def labels_of(values, roles, *ignored):
    text = pl.Series([None if v is None else str(v) for v in values], dtype=pl.String)
    table = pl.DataFrame({"amount": [k % 7 + 0.5 for k in range(len(values))], "case": text})
    return read_hunt_table(table, roles, *ignored).labels


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_every_row_is_kept_and_columns_are_chosen_as_fit_does(tmp_path, suffix):
    table, path = cases(), tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        table.write_parquet(path)
    elif suffix == ".csv.gz":
        path.write_bytes(gzip.compress(table.write_csv().encode()))
    else:
        table.write_csv(path)
    read = read_hunt_table(path, YES_NO)
    assert read.rows.frame.columns == ["amount", "country"]
    assert read.rows.frame.height == 60
    written = [{"yes": 1, "no": 0}.get(label, -1) for label in table["case"]]
    assert read.labels.code.tolist() == written
    assert read.labels.n_rare == {"yes": 12}
    assert (read.labels.n_cleared, len(read.labels.unlabelled)) == (12, 36)
    kinds = {column.name: column.kind for column in read.rows.columns}
    assert kinds["order"] == "id-like"
    assert kinds["always"] == "constant"
    assert "case" not in kinds


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("dtype", "written", "cleared", "label"),
    [
        *((t, w, "0", "1") for t in (pl.Int64, pl.Float64, pl.String) for w in ("1", "1.0", " 01")),
        (pl.Boolean, "True", "FALSE", "true"),
    ],
)
def test_values_are_compared_as_the_column_holds_them(tmp_path, dtype, written, cleared, label):
    table = cases().with_columns(case=pl.Series([1, 0, None, None, None] * 12).cast(dtype))
    table.write_parquet(tmp_path / "t.parquet")
    read = read_hunt_table(tmp_path / "t.parquet", LabelRoles((written,), (cleared,)))
    assert (read.labels.n_rare, read.labels.n_cleared) == ({label: 12}, 12)


def test_several_values_of_each_kind():
    labels = ["a", "b", "ok", "fine", "later", None, "a"]
    roles = LabelRoles(("a", "b"), ("ok", "fine"))
    found = labels_of(labels, roles, "later", "never")
    assert found.y.tolist() == ["a", "b", "not a or b", "not a or b", "", "", "a"]
    assert found.code.tolist() == [1, 2, 0, 0, -1, -1, 1]
    assert found.n_rare == {"a": 2, "b": 1}
    assert (found.n_cleared, len(found.unlabelled)) == (2, 2)
    assert found.unlabelled.tolist() == [4, 5]


@pytest.mark.parametrize(
    ("labels", "roles", "kind", "value", "row", "says"),
    [
        (["yes", None, "may be", "no", "may be", "?"], YES_NO, LABELS, "may be", 3, "'may be'"),
        (["yes", None, *range(40)], LabelRoles(("yes",)), LABELS, "0", 3, "target="),
        (["yes", None], LabelRoles(("yess",)), LABELS, "yess", None, "'yes'?"),
        (["yes", "no", None], LabelRoles(("yes",), ("no", "nein")), LABELS, "nein", None,
         "cleared="),
        ([1, None], LabelRoles(("1",), ("1.0",)), ErrorKind.COMBINATION, "1", None, "cleared="),
        ([None, None], YES_NO, LABELS, None, None, "No row of 2"),
        (["yes", "no"], YES_NO, LABELS, None, None, "rareclass fit"),
    ],
)  # fmt: skip
def test_labels_that_cannot_be_used(labels, roles, kind, value, row, says):
    with refused(kind, column="case", value=value, row=row, says=says):
        labels_of(labels, roles)


def test_a_value_without_a_role_is_told_with_all_remedies():
    with refused(LABELS) as caught:
        labels_of(["yes", None, "no", "may be", "?"], YES_NO)
    error = caught.value
    assert "(and 1 more such value)" in error.message
    for option in ("cleared", "rare", "ignored"):
        assert f"{option}=['may be']" in error.remedy


def test_one_value_in_two_spellings_cannot_be_rare_and_cleared():
    with pytest.warns(TableWarning), refused(ErrorKind.COMBINATION, column="case"):
        labels_of(["a", "A", None], LabelRoles(("a",), ("A",)))


def test_table_larger_than_memory_is_refused_before_it_is_read(tmp_path):
    table = pl.DataFrame(np.random.default_rng(0).normal(size=(120_000, 30)))
    table = table.with_columns(case=pl.Series([1.0, 0.0] + [None] * 119_998))
    table.write_parquet(tmp_path / "t.parquet")
    with refused(ErrorKind.MEMORY, says="120,000 rows"):
        read_review_table(tmp_path / "t.parquet", "case", memory=40 << 20)


def encoded(tmp_path, table):
    table.write_parquet(tmp_path / "t.parquet")
    read = read_hunt_table(tmp_path / "t.parquet", YES_NO)
    encoder = HuntEncoder(read.rows.used)
    return encoder, encoder.fit_transform(read.rows.frame), read


def messy(n_rows=400):
    generator = np.random.default_rng(1)
    day = np.datetime64("2020-01-01") + generator.integers(0, 900, n_rows)
    return pl.DataFrame(
        {
            "amount": generator.lognormal(3, 1, n_rows),
            "gaps": [None if k % 5 == 0 else float(v) for k, v in enumerate(range(n_rows))][::-1],
            "flag": generator.integers(0, 2, n_rows),
            "seldom": (generator.random(n_rows) < 0.02),
            "few": generator.choice(list("abcdefgh"), n_rows).tolist(),
            "shop": [f"shop {k}" for k in generator.integers(0, 90, n_rows)],
            "day": day,
            "case": (["yes", "no"] + [""] * 38) * (n_rows // 40),
        }
    )


def test_every_column_counts_about_as_much_as_one_number(tmp_path):
    encoder, X, read = encoded(tmp_path, messy())
    used = [column.name for column in read.rows.used]
    says(used, "seldom", "shop")
    share = dict.fromkeys(used, 0.0)
    for feature, variance in zip(encoder.coordinates_, X.var(axis=0), strict=True):
        share[feature.column] += variance
    for name in ("amount", "shop", "day"):
        assert share[name] == pytest.approx(1.0, abs=1e-5), name
    assert share["gaps"] == pytest.approx(1.0 + 0.2 * 0.8, abs=1e-6)
    assert share["few"] == pytest.approx(1.0 - 1 / 8, abs=0.02)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("column", ["flag", "seldom", "few"])
def test_two_values_of_a_category_are_as_far_apart_as_two_numbers(tmp_path, column):
    encoder, X, read = encoded(tmp_path, messy())
    own = [k for k, feature in enumerate(encoder.coordinates_) if feature.column == column]
    cells = read.rows.frame[column].cast(pl.String).to_numpy()
    differ = cells[:, None] != cells[None, :]
    apart = ((X[:, None, own] - X[None, :, own]) ** 2).sum(axis=2)
    np.testing.assert_allclose(apart, 2.0 * differ, atol=1e-5)


def test_points_are_turned_back_into_the_units_of_the_table(tmp_path):
    table = messy()
    encoder, X, _ = encoded(tmp_path, table)
    back = {
        feature.name: X[:, k] * feature.unit + feature.zero
        for k, feature in enumerate(encoder.coordinates_)
    }
    np.testing.assert_allclose(back["amount"], table["amount"], rtol=1e-6)
    np.testing.assert_allclose(back["flag"], table["flag"], atol=1e-6)
    np.testing.assert_allclose(back["few_c"], table["few"] == "c", atol=1e-6)
    np.testing.assert_allclose(back["gaps is empty"], table["gaps"].is_null(), atol=1e-6)
    days = (table["day"].to_numpy() - np.datetime64("1970-01-01")).astype(float)
    np.testing.assert_allclose(back["day (year)"], 1970 + days / 365.2425, rtol=1e-6)


@pytest.mark.sampled(0)
def test_labels_do_not_reach_the_points(tmp_path):
    table = messy()
    _, first, _ = encoded(tmp_path, table)
    _, second, _ = encoded(tmp_path, table.with_columns(case=table["case"].reverse()))
    np.testing.assert_array_equal(first, second)


def test_a_number_that_is_called_as_a_year_stays_itself(tmp_path):
    table = messy().with_columns(pl.col("amount").alias("day (year)"))
    encoder, X, _ = encoded(tmp_path, table)
    place = next(k for k, one in enumerate(encoder.coordinates_) if one.column == "day (year)")
    own = encoder.coordinates_[place]
    np.testing.assert_allclose(X[:, place] * own.unit + own.zero, table["amount"], rtol=1e-6)


def test_verdicts_of_a_journal_count_before_labels_of_the_table(tmp_path):
    rows = read_review_table(cases(), "case", ignored=("",))
    roles = LabelRoles(("yes", "maybe"), ("no",))
    with refused(LABELS, value="maybe"):  # a hunt names labels that are there
        open_journal(tmp_path / "j.jsonl", rows, None, roles.rare, roles.cleared, HUNT_OPTIONS)
    journal = open_journal(tmp_path / "j.jsonl", rows, None, "yes", ("no", "new"), HUNT_OPTIONS)
    recorded = HuntTable.of(rows, LabelRoles(("yes",), ("no",)))
    assert HuntTable.of(rows, roles, journal).labels.code.tolist() == recorded.labels.code.tolist()
    journal.add_label("maybe", is_rare=True)
    said = [Verdict("3", "maybe"), Verdict("1", "no"), Verdict("4", "no")]
    journal.add(said, rows.keys)
    labels = HuntTable.of(rows, roles, journal).labels
    assert labels.code[:5].tolist() == [0, 0, 2, 0, -1]
    assert labels.rare == ("yes", "maybe")
    assert rows.with_labels(journal)["case"][:5].to_list() == ["no", "no", "maybe", "no", None]
    every = [Verdict(str(k + 1), "no", corrects=True) for k in range(0, 60, 5)]
    journal.add(every, rows.keys)
    labels = HuntTable.of(rows, roles, journal).labels
    assert (labels.rare, labels.n_rare) == (("maybe",), {"maybe": 1})
    assert labels.code[2] == 1
