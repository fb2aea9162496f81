"""Rows of a table that a person should check next, and the journal of the verdicts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rareclass.review.journal import ReviewJournal
from rareclass.review.records import Header, Listed, Round, Verdict, fingerprint_of

if TYPE_CHECKING:
    from rareclass.review.reviewing import ReviewList, next_rows, open_list, read_verdicts
    from rareclass.review.selection import Shares
    from rareclass.review.table import ReviewTable, open_journal, read_review_table

__all__ = [
    "Header",
    "Listed",
    "ReviewJournal",
    "ReviewList",
    "ReviewTable",
    "Round",
    "Shares",
    "Verdict",
    "fingerprint_of",
    "next_rows",
    "open_journal",
    "open_list",
    "read_review_table",
    "read_verdicts",
]
# A journal is read without what trains models.
_HOME = {
    **dict.fromkeys(("ReviewTable", "open_journal", "read_review_table"), "table"),
    **dict.fromkeys(("ReviewList", "next_rows", "open_list", "read_verdicts"), "reviewing"),
    "Shares": "selection",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use."""
    if name in _HOME:
        return vars(import_module(f"rareclass.review.{_HOME[name]}"))[name]
    raise AttributeError(f"module 'rareclass.review' has no attribute {name!r}")
