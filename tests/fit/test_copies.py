"""Copies of rows are told from rows that recur, and counted as a plain loop counts them."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from rareclass.fit.copies import distinct_rows

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
