"""Readers, encoding of real tables, the papers' simulated data."""
