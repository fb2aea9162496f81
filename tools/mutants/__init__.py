"""Faults put into the core one at a time, to see that the tests catch them."""
