"""Constraints and aims of a threshold, each with the cut of held-out scores that it chooses."""
