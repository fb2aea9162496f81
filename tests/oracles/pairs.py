"""Pair losses of the margin with every pair formed, and rows that hit where their pieces meet."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays


def pair_loss(z, eps):
    """Smoothed hinge of every entry of z, from its definition."""
    return np.where(z < 1 - 2 * eps, (1 - eps) - z, np.where(z < 1, (1 - z) ** 2 / (4 * eps), 0.0))


def pair_slope(z, eps):
    """Its derivative."""
    return np.where(z < 1 - 2 * eps, -1.0, np.where(z < 1, -(1 - z) / (2 * eps), 0.0))


def pair_curvature(z, eps):
    """Its second derivative, taken from the right where it jumps."""
    return np.where((z >= 1 - 2 * eps) & (z < 1), 1 / (2 * eps), 0.0)


# Value, first and second derivative of a pair's margin, by the width of the smoothed corner.
PAIRS = {
    "smoothed_hinge": lambda z, eps: (
        pair_loss(z, eps), pair_slope(z, eps), pair_curvature(z, eps)
    ),
    "squared_hinge": lambda z, eps: (
        np.maximum(1 - z, 0) ** 2, -2 * np.maximum(1 - z, 0), 2.0 * (z < 1)
    ),
}  # fmt: skip


def power(r, unit, p):
    """Outer function of the p-norm push, with its first and second derivative."""
    x = r / unit
    return unit / p * x**p, x ** (p - 1), (p - 1) / unit * x ** (p - 2)


# Quarters make ties, and pairs exactly where the pieces of the hinges meet.
score = st.integers(-16, 16).map(lambda k: k / 4)
weight = st.one_of(st.integers(0, 3).map(float), st.floats(1e-2, 1e2))


@st.composite
def rows(draw, most=12):
    n, m = draw(st.integers(1, most)), draw(st.integers(1, most))
    columns = ((n, score), (m, score), (n, weight), (m, weight))
    return [draw(arrays(np.float64, size, elements=values)) for size, values in columns]
