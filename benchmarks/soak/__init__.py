"""Runs of many minutes that look for what grows, and for what is lost."""
