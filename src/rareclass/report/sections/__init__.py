"""Sections of a report: from summaries to words, plots and tables."""
