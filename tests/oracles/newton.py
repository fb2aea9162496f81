"""The minimum of any smooth loss of scores, by Newton's method with whole matrices."""

import numpy as np


def minimise(loss, A, B, lam):
    """Newton's method on loss(A b) + lam/2 b'Bb from b = 0, with steps of least norm."""
    b = np.zeros(A.shape[1])

    def value(b):
        return loss(A @ b)[0] + lam / 2 * b @ B @ b

    for _ in range(200):
        _, by_score, by_scores = loss(A @ b)
        gradient = A.T @ by_score + lam * B @ b
        hessian = A.T @ by_scores @ A + lam * B
        step = -np.linalg.lstsq(hessian, gradient, rcond=1e-11)[0]
        size, start = 1.0, value(b)
        while value(b + size * step) > start and size > 1e-12:
            size /= 2
        b = b + size * step
        if np.linalg.norm(step) < 1e-11 * (1 + np.linalg.norm(b)):
            break
    return b
