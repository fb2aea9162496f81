"""Cases among the first rows of a hunt: how its benchmark draws, counts and prints."""

import numpy as np
import polars as pl

from benchmarks import hunt_hits


def test_a_sample_keeps_rare_rows_and_has_five_percent_of_them_at_most() -> None:
    rng = np.random.default_rng(0)
    for n_rare, expected in ((400, 200), (20_000, 920)):
        target = np.zeros(60_000)
        target[rng.choice(60_000, n_rare, replace=False)] = 1.0
        rows = hunt_hits.sample(pl.DataFrame({"row": np.arange(60_000), "target": target}))
        assert abs(rows["target"].sum() - expected) < 0.25 * expected
        assert rows["target"].mean() <= 0.05
        assert rows["row"].is_sorted()
        assert rows["row"].n_unique() == len(rows)


def test_hits_are_cases_without_a_label_among_the_first_hundred() -> None:
    rare = np.arange(300) % 3 == 0
    drawn = hunt_hits.draw(rare, 10, 100, 1)
    assert rare[drawn.cases].all()
    assert not rare[drawn.cleared].any()
    free = np.setdiff1d(np.arange(300), [*drawn.cases, *drawn.cleared])
    assert hunt_hits.hits(np.where(rare, 1.0, 0.0), rare, drawn) == 90
    assert hunt_hits.hits(np.zeros(300), rare, drawn) == rare[free[:100]].sum()


def test_tables_have_the_mean_of_each_setting_and_the_best_peer_beside_the_hunt() -> None:
    cells = [
        {
            "set": "wine", "cases": n, "cleared": c, "draw": k,
            "hits": {m: 10 * k + (7 if m == "nearest case" else 5) for m in hunt_hits.METHODS},
        }
        for n in hunt_hits.CASES for c in hunt_hits.CLEARED for k in (0, 1)
    ]  # fmt: skip
    assert hunt_hits.lines(cells, ["wine"])[0] == ["hunt", *["10.0"] * 8]
    assert hunt_hits.by_table(cells) == [["wine", *["10 / 12"] * 8]]
    assert "Tables that confirm: wine." in hunt_hits.page({"cells": cells})
