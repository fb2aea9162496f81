"""A hunt with few cases: what the rows that nobody has looked at tell."""

import numpy as np
import polars as pl
import pytest

from rareclass.hunt import HuntSettings
from rareclass.hunt.case_score import score_unlabelled
from rareclass.hunt.hunting import HuntLabels, HuntTable, hunt
from rareclass.review.table import LabelRoles, read_review_table

ROWS, RARE = 800, range(0, 800, 20)  # 40 rare rows


def machines(seed=0):
    """Rare rows run hot for their load; five columns vary much, and say nothing.

    Two cases lie as far from each other as from other rows: that load and heat go together in all
    others is what only unlabelled rows tell.
    """
    rng = np.random.default_rng(seed)
    rare = np.isin(np.arange(ROWS), RARE)
    load = rng.normal(size=ROWS)
    noise = {f"sensor {k}": rng.normal(size=ROWS).round(6) for k in range(5)}
    heat = load + 0.2 * rng.normal(size=ROWS) + 3.0 * rare
    return pl.DataFrame({"load": load.round(6), "heat": heat.round(6), **noise})


def others(table):
    return np.setdiff1d(np.arange(len(table)), RARE)


def hunt_in(folder, table, cases, cleared=(), top=None):
    status = np.full(len(table), "", dtype=object)
    status[cases] = "fault"
    status[[*cleared]] = "fine"
    path = folder / "machines.parquet"
    table.with_columns(status=pl.Series(status.tolist())).write_parquet(path)
    roles = LabelRoles(("fault",), ("fine",) if len(cleared) else ())
    settings = HuntSettings(kernel="none", c1=1.0, c2=0.0, n_balls=1, folds=3, top=top)
    return hunt(HuntTable.of(read_review_table(path, "status"), roles), settings)


def hits(outcome, first=40):
    return int(np.isin(outcome.ranking.rows[:first], RARE).sum())


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("n_cases", "cleared", "least"), [(3, 0, 14), (5, 0, 25), (5, 100, 25)])
def test_rows_that_nobody_has_looked_at_tell_what_is_strange_about_the_cases(
    tmp_path, n_cases, cleared, least
):
    asked = (tmp_path, machines(), [*RARE][:n_cases], others(machines())[:cleared])
    outcome = hunt_in(*asked)
    assert hits(outcome) >= least
    every = hunt_in(*asked, ROWS).ranking
    deepest = every.rows[np.argsort(-every.relative_depth)][:40]
    assert hits(outcome) > 1.5 * np.isin(deepest, RARE).sum()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("unit", [None, 1e-6, 1e6])
def test_neither_units_nor_the_order_of_columns_matter(tmp_path, unit):
    table = machines()
    first = hunt_in(tmp_path, table, [*RARE][:4])
    other = table.select(reversed(table.columns))
    if unit is not None:
        other = table.with_columns(pl.col("heat") * unit + 3.0 * unit)
    second = hunt_in(tmp_path, other, [*RARE][:4])
    assert first.ranking.rows.tolist() == second.ranking.rows.tolist()
    np.testing.assert_allclose(first.ranking.score, second.ranking.score, rtol=1e-2, atol=1e-2)


def labelled(y):
    code = {"a": 1, "b": 0, "": -1}
    return HuntLabels(np.array([code[label] for label in y]), ("a",))


@pytest.mark.parametrize("cleared", [0, 10])
def test_cases_that_are_all_there_twice_change_nothing(cleared):
    """Twice the cases are twice as sure: the penalty weighs less, and the order hardly moves."""
    X = np.random.default_rng(1).normal(size=(300, 3))
    X[:4] += 2.0
    y = ["a"] * 4 + ["b"] * cleared + [""] * (296 - cleared)
    once = score_unlabelled(X, labelled(y).code, 1, 0).by_value[:, 0]
    both = np.vstack([X[:4], X])
    twice = score_unlabelled(both, labelled(["a"] * 4 + y).code, 1, 0).by_value[:, 0]
    assert np.corrcoef(once, twice)[0, 1] > 0.98
    assert np.isfinite(twice).all()


def test_equal_rows_have_one_score_and_stand_in_the_order_of_the_file(tmp_path):
    table = pl.concat([machines()[:400], machines()[:400]])
    outcome = hunt_in(tmp_path, table, [0, 20, 40], top=900)
    place = {row: k for k, row in enumerate(outcome.ranking.rows.tolist())}
    assert all(place[row] == place[row + 400] - 1 for row in range(400) if row in place)
    again = hunt_in(tmp_path, table, [0, 20, 40], top=900)
    assert again.ranking.rows.tolist() == outcome.ranking.rows.tolist()


def test_cases_that_are_all_equal_and_columns_that_are_constant(tmp_path):
    table = machines().with_columns(always=pl.lit(3.0), empty=pl.lit(None, dtype=pl.Float64))
    same = pl.concat([table[:1]] * 4)
    outcome = hunt_in(tmp_path, pl.concat([same, table[4:]]), [0, 1, 2, 3])
    assert np.isfinite(outcome.ranking.score).all()
    assert outcome.ranking.rows.min() > 3
    assert hits(outcome) > 6
    assert outcome.refound[100] == 4  # an equal case stays known when one of them is hidden


def test_a_table_of_words_alone(tmp_path):
    rng = np.random.default_rng(2)
    rare = np.isin(np.arange(ROWS), RARE)
    words = {f"word {k}": rng.choice(["x", "y", "z"], ROWS) for k in range(4)}
    words["key"] = np.where(rare, rng.choice(["x", "w"], ROWS), rng.choice(["x", "y", "z"], ROWS))
    outcome = hunt_in(tmp_path, pl.DataFrame(words), [*RARE][:6])
    assert hits(outcome, 15) > 6  # less than one would be chance


@pytest.mark.parametrize("n_unlabelled", [1, 2])
def test_one_row_is_left_to_hunt_in(tmp_path, n_unlabelled):
    table = machines()[:40]
    rows = [*range(0, 40 - n_unlabelled)]
    outcome = hunt_in(tmp_path, table, rows)
    assert sorted(outcome.ranking.rows.tolist()) == [*range(40 - n_unlabelled, 40)]
    assert np.isfinite(outcome.ranking.score).all()


def test_labels_of_the_first_rows_lead_to_more(tmp_path):
    """A second round: the first 40 rows get their answer, and those after them are better."""
    cases = [*RARE][:3]
    first = hunt_in(tmp_path, machines(), cases)
    looked_at = first.ranking.rows[:40]
    is_case = np.isin(looked_at, RARE)
    second = hunt_in(tmp_path, machines(), [*cases, *looked_at[is_case]], looked_at[~is_case])
    assert not set(second.ranking.rows.tolist()) & {*cases, *looked_at.tolist()}
    assert hits(second) > np.isin(first.ranking.rows[40:80], RARE).sum()
