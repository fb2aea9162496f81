"""What rows are called: the so many highest beside a sort of all of them."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from rareclass.errors import InputError
from rareclass.model.decisions import RareDecision
from rareclass.model.facts import RareClassFacts
from rareclass.model.score_file import Part, ScoreWriter, _Best


def decision():
    return RareDecision(RareClassFacts("y", "yes", "no"), np.array([2.0]))


@pytest.mark.sampled(0)
@draws(60)
@given(
    st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=5),
    st.integers(1, 8),
)
def test_the_highest_are_those_of_a_stable_sort(batches, size):
    best = _Best(size)
    first = 0
    for scores in batches:
        places = range(first, first + len(scores))
        best.add(
            np.array(scores, dtype=float),
            pl.DataFrame({"place": list(places)}, {"place": pl.Int64}),
        )
        first += len(scores)
    everything = np.array([score for scores in batches for score in scores], dtype=float)
    expected = np.argsort(-everything, kind="stable")[:size]
    np.testing.assert_array_equal(best.places, expected)
    if best.rows is not None:
        assert best.rows["place"].to_list() == expected.tolist()


def parts(batches):
    first, made = 1, []
    for scores in batches:
        rows = np.arange(first, first + len(scores))
        columns = {"row": rows, "score": scores, "percentile": np.zeros(len(scores))}
        made.append(Part(pl.DataFrame(columns), pl.DataFrame({"x": rows * 10})))
        first += len(scores)
    return made


def told(rows):
    return rows.select(twice=2 * pl.col("x"))


@pytest.mark.parametrize(
    ("top", "threshold", "called"),
    [
        (None, None, [4, 5]),
        (3, None, [2, 4, 5]),
        (99, None, [1, 2, 3, 4, 5]),
        (None, 1.0, [2, 4, 5]),
    ],
)
def test_called_rows_are_told_of_and_no_others(tmp_path, top, threshold, called):
    writer = ScoreWriter(decision(), top, threshold, told)
    n_called = writer.write(parts([[0.5, 2.0], [], [1.0, 3.0, 4.0]]), tmp_path / "s.parquet")
    assert n_called.tolist() == [5 - len(called), len(called)]
    table = pl.read_parquet(tmp_path / "s.parquet")
    assert table.columns == ["row", "score", "called_rare", "percentile", "twice"]
    assert table["row"].to_list() == [1, 2, 3, 4, 5]
    assert table.filter("called_rare")["row"].to_list() == called
    expected = [20 * row if row in called else None for row in range(1, 6)]
    assert table["twice"].to_list() == expected
    assert [path.name for path in tmp_path.iterdir()] == ["s.parquet"]


def test_what_contradicts_itself_is_refused():
    for top, threshold in ((1, 1.0), (0, None), (None, float("nan"))):
        with pytest.raises(InputError):
            ScoreWriter(decision(), top, threshold)
