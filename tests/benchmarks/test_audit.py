"""The benchmark of audits: planted errors, coverage, and the tables on which a list is ahead."""

import numpy as np

from benchmarks import audit


def cell(name, kind="random", planted=4, most=5.0, **found):
    wrong = planted if kind == audit.BOTH else 0
    of_wrong = {"planted": wrong, "found": found, "most": 9.0}
    new = {"new_recorded": 0.3, "new_corrected": 0.5, "new_true": 0.4, "new_ends": [0.3, 0.6]}
    return new | {f"wrong_{key}": value for key, value in of_wrong.items()} | {
        "set": name, "draw": 0, "kind": kind, "share": 0.2 if planted else 0.0, "planted": planted,
        "found": found, "most": most,
    }  # fmt: skip


def test_errors_are_planted_in_rare_rows_at_random_or_where_scores_are_lowest():
    rare = np.arange(100) < 40
    scores = np.arange(100.0)
    for kind in ("random", "border"):
        lost = audit.planted(rare, 0.1, kind, scores, 0)
        assert len(lost) == len(set(lost)) == 4
        assert rare[lost].all()
    assert sorted(audit.planted(rare, 0.1, "border", scores, 0)) == [0, 1, 2, 3]
    both = audit.planted(rare, 0.1, audit.BOTH, scores, 0)
    assert sorted(both[:4]) == sorted(audit.planted(rare, 0.1, "random", scores, 0))
    assert len(set(both)) == 8
    assert rare[both].sum() == 4


def test_a_list_counts_where_no_other_finds_more():
    cells = [cell("a", audit=3, other=3), cell("b", audit=2, other=3)]
    assert audit.n_at_least(cells, ["a", "b"]) == 1
    assert audit.found_lines(cells, ["b"]) == [["b", "4.0", "2.00", "3.00"]]


def test_coverage_is_that_of_one_kind():
    cells = [cell("a"), cell("a", most=3.0), cell("a", kind="border")]
    assert audit.coverage(cells, "random") == 0.5


def test_simulated_limits_are_tabulated_by_shape():
    rows = [
        {"shape": shape, "n": n, "m": m, "share": s, "held": 1.0 - s / 10, "ratio": n + s}
        for shape, (n, m), s in audit.SIMULATED
    ]
    line = ["apart", "98.5", "96", "50.00", "50.20", "300.00", "300.20", "2000.00", "2000.20"]
    assert audit.simulated_lines(rows)[0] == line
    cells = [cell("kdd", kind, audit=3) for kind in audit.KINDS]
    assert audit.page({"cells": cells, "simulated": rows}).count("% alike") == 3


def test_the_page_names_the_tables_and_average_precision():
    cells = [cell("kdd", kind, audit=3, other=2) for kind in audit.KINDS]
    shown = audit.page({"cells": cells})
    assert "kdd" in shown
    assert "| 20 | 30.0 | 50.0 | 40.0 | 10.0 | 10.0 | 100 |" in shown
    of_both = [each for each in shown.splitlines() if each.startswith(f"| {audit.BOTH} | 20 |")]
    assert [each.split(" | ")[2:] for each in of_both] == [
        ["4.0", "5.0", "100 |"],
        ["4.0", "9.0", "100 |"],
    ]
