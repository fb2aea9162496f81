"""The table of what is read as what is that of the code."""

import pytest

from docs.site_pages.what_is_read import PAGE, page_with, tables, text_rows, typed_rows
from rareclass.tables.cells import EMPTY_MARKS
from rareclass.tables.dates import DAY_FORMATS, way_in_words

pytestmark = pytest.mark.sampled(0)


def test_the_table_on_the_page_is_made_by_the_reader():
    page = PAGE.read_text(encoding="utf-8")
    made = page_with(page, tables())
    assert made == page, "run: python -m docs.site_pages.what_is_read"
    assert page.count(tables()) == 1


def test_every_mark_and_every_format_is_in_the_table():
    rows = list(text_rows())
    assert all(mark in rows[0][0] for mark in EMPTY_MARKS)
    read = " ".join(row[1] for row in rows)
    assert all(way_in_words(way) in read for way in DAY_FORMATS)
    assert all(any(row[1:]) for row in [*rows, *typed_rows()])
