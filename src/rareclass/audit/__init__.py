"""Audits of recorded labels: missed rare cases, wrong rare labels, and how many at most."""

from rareclass.audit.auditing import Audit, SuspectRows, audit

__all__ = ["Audit", "SuspectRows", "audit"]
