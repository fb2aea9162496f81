"""Rows that keep arriving, learned from one by one, with a state that survives."""
