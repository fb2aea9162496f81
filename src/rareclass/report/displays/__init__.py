"""Plots of rankings and models in scikit-learn's convention of displays; they need matplotlib."""
