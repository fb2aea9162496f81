"""Pair losses of the margin with their derivatives, and rows that hit where their pieces meet."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit


def hinge(z, eps):
    value = np.where(z < 1 - 2 * eps, (1 - eps) - z, np.maximum(1 - z, 0) ** 2 / (4 * eps))
    slope = np.where(z < 1 - 2 * eps, -1.0, -np.maximum(1 - z, 0) / (2 * eps))
    return value, slope, ((z >= 1 - 2 * eps) & (z < 1)) / (2 * eps)


# Value, first and second derivative of a pair's margin.
PAIRS = {
    "smoothed_hinge": lambda z: hinge(z, 0.25),
    "squared_hinge": lambda z: (
        np.maximum(1 - z, 0) ** 2,
        -2 * np.maximum(1 - z, 0),
        2.0 * (z < 1),
    ),
    "logistic": lambda z: (np.logaddexp(0, -z), -expit(-z), expit(z) * expit(-z)),
    "exponential": lambda z: (np.exp(-z), -np.exp(-z), np.exp(-z)),
}
AT_ZERO = {name: float(pair(np.zeros(1))[0][0]) for name, pair in PAIRS.items()}

# Quarters make ties, and pairs exactly where the pieces of the hinges meet.
score = st.integers(-16, 16).map(lambda k: k / 4)
weight = st.one_of(st.integers(0, 3).map(float), st.floats(1e-2, 1e2))


@st.composite
def rows(draw, most=12):
    n, m = draw(st.integers(1, most)), draw(st.integers(1, most))
    columns = ((n, score), (m, score), (n, weight), (m, weight))
    return [draw(arrays(np.float64, size, elements=values)) for size, values in columns]
