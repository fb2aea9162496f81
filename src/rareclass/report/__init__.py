"""Plots of what was found. Needs matplotlib, which `rareclass[cli]` brings."""

from rareclass.report.ball_plot import draw_ball

__all__ = ["draw_ball"]
