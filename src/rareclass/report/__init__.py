"""Plots of what was found. Needs matplotlib, which `rareclass[cli]` brings."""

from rareclass.report.ball_plot import draw_ball
from rareclass.report.feature_scales_plot import draw_feature_scales

__all__ = ["draw_ball", "draw_feature_scales"]
