"""Streams with everything in them, and kinds of columns that are found in few rows."""

import pytest

from rareclass.stream import loop as loop_module
from stream.messy_stream import messy_records, write_csv


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("messy") / "rows.csv", messy_records(700, n_sure=250))


@pytest.fixture(scope="session")
def long_source(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("messy") / "rows.csv", messy_records(900, n_sure=250))


@pytest.fixture
def few_first_rows(monkeypatch):
    monkeypatch.setattr(loop_module, "FIRST_ROWS", 200)
