"""Measurements of rareclass: the papers' tables, start-up time, the cost of a fit."""
