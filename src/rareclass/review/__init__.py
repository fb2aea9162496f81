"""Rows of a table that a person should check next, and the journal of the verdicts."""

from rareclass.review.journal import ReviewJournal
from rareclass.review.records import Header, Listed, Round, Verdict, fingerprint_of

__all__ = ["Header", "Listed", "ReviewJournal", "Round", "Verdict", "fingerprint_of"]
