"""Solvers of the ranking problems, one algorithm a file."""
