"""Which rows a report keeps of the batches that go by, and what it counts of their columns."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from made_models import made_model
from rareclass.model.columns import ColumnTracker
from rareclass.model.facts import TrainingFacts
from rareclass.report import reading
from rareclass.report.columns_section import CopyCounter
from rareclass.tables.columns import Column


@pytest.mark.parametrize("most_rare", [5_000, 20])
def test_the_rows_kept_are_the_highest_and_the_rare_ones(monkeypatch, most_rare):
    monkeypatch.setattr(reading, "MOST_TOP", 7)
    monkeypatch.setattr(reading, "MOST_RARE", most_rare)
    generator = np.random.default_rng(0)
    n = 500
    labels = generator.choice(["yes", "no", ""], n, p=[0.1, 0.8, 0.1])
    scores = np.round(generator.normal(size=n) + (labels == "yes"), 1)
    frame = pl.DataFrame({"place": np.arange(n)})
    texts = pl.Series(labels).replace("", None)
    keeper = reading.RowKeeper(SimpleNamespace(labels=("yes",)))
    for first in range(0, n, 90):
        part = slice(first, first + 90)
        keeper.add(frame[part], scores[part], texts[part])
    labelled = np.flatnonzero(labels != "")
    y = labels[labelled] == "yes"
    kept, places = keeper.kept(y, scores[labelled], labelled)
    # Each row stands where it says.
    np.testing.assert_array_equal(kept["place"].to_numpy(), labelled[places])
    top = np.argsort(-scores[labelled], kind="stable")[:7]
    assert set(top) <= set(places)
    rare = np.flatnonzero(y)
    if most_rare > len(rare):
        assert set(places) == set(top) | set(rare)
    else:
        lowest = rare[np.argsort(scores[labelled][rare], kind="stable")][: most_rare // 2]
        assert set(lowest) <= set(places)
        assert len(places) <= most_rare + 7


def test_empty_cells_and_copies_are_counted():
    columns = [Column("a", "number", "", "number", 1, 3), Column("b", "number", "", "number", 0, 2)]
    content = made_model(SimpleNamespace(columns=columns), None)
    training = TrainingFacts(4, 0, 0, True, 0.0, None, None, 0, True, None, None, {}, "2026-01-01")
    content = replace(content, facts=replace(content.facts, training=training))
    now, copies = ColumnTracker(content.trained), CopyCounter()
    for rows in (
        pl.DataFrame({"a": [1.0, None, 1.0], "b": [2.0, None, 2.0]}),
        pl.DataFrame({"a": [1.0], "b": [2.0]}),
    ):
        now.add(rows)
        copies.add(rows)
    assert copies.n_copies == 2
    first, second = now.drifts({"b": 0.5})
    assert (first.missing_before, first.missing_now, first.outside) == (0.25, 0.25, 0.0)
    assert (second.missing_before, second.missing_now, second.outside) == (0.0, 0.25, 0.5)
