"""Rows of a table that a person should check next, and the journal of the verdicts."""

from typing import TYPE_CHECKING

from rareclass.lazy_names import lazy_names
from rareclass.review.journal import Header, Listed, ReviewJournal, Round, Verdict, fingerprint_of

if TYPE_CHECKING:
    from rareclass.review.reviewing import ReviewList, Shares, next_rows, open_list, read_verdicts
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".reviewing": ["ReviewList", "Shares", "next_rows", "open_list", "read_verdicts"],
        ".table": ["ReviewTable", "open_journal", "read_review_table"],
    },
)
