"""Trainings as those of the command line: without plain methods beside them."""

from cli.conftest import without_baselines as without_baselines
