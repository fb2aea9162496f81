"""Files scored batch by batch: all rows, numbered as in the file."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from faults import refused
from made_models import made_model
from rareclass import RankRC
from rareclass.encoding.encoders import SparseEncoder, TableEncoder
from rareclass.errors import ErrorKind
from rareclass.model import table_scorer as scored
from rareclass.model.drift import InputSummary
from rareclass.tables.columns import Column
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import open_table

N_ROWS = 7
X = np.random.default_rng(0).normal(size=(80, 2))
Y = np.arange(80) % 8 == 0


@pytest.fixture(scope="module")
def model():
    encoder = TableEncoder([Column(name, "number", "standardised", "number") for name in "ab"])
    rows = encoder.fit_transform(pl.DataFrame(X, schema=["a", "b"]), Y)
    return made_model(encoder, RankRC(lam=1.0).fit(rows, Y))


def write(path, cells):
    pl.DataFrame({"a": list(map(str, cells)), "b": [0.5] * len(cells)}).write_csv(path)
    return path


@pytest.mark.parametrize("in_a_batch", [2, 3, 50])
def test_a_cell_that_cannot_be_read_is_named_by_its_row_in_the_file(
    model, tmp_path, monkeypatch, in_a_batch
):
    monkeypatch.setattr(scored, "batch_rows_for", lambda n_columns: in_a_batch)
    for place in range(N_ROWS):
        cells = [*range(N_ROWS)]
        path = write(tmp_path / "new.csv", [*cells[:place], "word", *cells[place + 1 :]])
        with refused(ErrorKind.CELL, column="a", row=place + 1, value="word"):
            list(model.score_batches(open_table(path), [], InputSummary()))
    summary = InputSummary()
    file = open_table(write(tmp_path / "new.csv", cells))
    batches = [*model.score_batches(file, [], summary)]
    assert [len(each.scores) for each in batches[:-1]] == [in_a_batch] * (len(batches) - 1)
    assert summary.n_rows == N_ROWS == sum(len(each.scores) for each in batches)


class FirstFeature:
    """Scores a row by its first feature, and not at all where that is 1."""

    def score_samples(self, rows):
        first = rows.toarray()[:, 0]
        return np.where(first == 1.0, np.nan, first)


def test_sparse_rows_are_counted_and_numbered(tmp_path, monkeypatch):
    path = tmp_path / "new.svm"
    whole = SvmlightFile.batches
    monkeypatch.setattr(SvmlightFile, "batches", lambda self, *given: whole(self, *given, 3))
    encoder = SparseEncoder(zero_based=False)
    encoder.largest_, encoder.unit_rows_ = np.array([2.0, 1.0]), False
    model = made_model(encoder, FirstFeature())
    model = replace(model, facts=replace(model.facts, format="svmlight"))
    path.write_text("".join(f"1 1:{k} 2:1\n" for k in (0, 1, 0, 1, 1, 0, 1)))
    summary = InputSummary()
    batches = [*model.score_batches(SvmlightFile(path), ["label"], summary)]
    assert [each.scores.tolist() for each in batches] == [[0, 0.5, 0], [0.5, 0.5, 0], [0.5]]
    assert summary.n_rows == N_ROWS
    path.write_text("".join(f"1 1:{k} 2:1\n" for k in (0, 1, 0, 1, 1, 0, 2)))
    with refused(ErrorKind.NOT_FINITE, row=7):
        list(model.score_batches(SvmlightFile(path), [], InputSummary()))
