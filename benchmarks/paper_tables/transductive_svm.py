r"""A transductive SVM, which the RACH paper compares with: no maintained package has one.

With ramp losses :math:`R_s(z) = H_1(z) - H_s(z)`, :math:`H_a(z) = \max(0, a - z)`,

.. math::
    \min_{w, b} \tfrac12 |w|^2 + \sum_{i \in L} C_i H_1(y_i f_i)
        + C^* \sum_{u \in U} \bigl( R_s(f_u) + R_s(-f_u) \bigr),
    \qquad \frac{1}{|U|} \sum_u f_u = t

by a convex-concave procedure, :math:`f = w x + b`. Where t is the mean label of L, the balancing
constraint keeps the unlabelled rows from all going to one side. It is used up by the bias:
:math:`f = w (x - \bar x_U) + t`, so that each step is a quadratic programme in a box, solved here
by dual coordinate descent. Collobert, Sinz, Weston and Bottou, "Large scale transductive SVMs",
JMLR 2006.
"""

from typing import NamedTuple

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from rareclass.compiling import njit

CORNER = -0.3  # s
MOST_STEPS, MOST_PASSES = 10, 300
_ENOUGH = 1e-3  # share of the objective that a step may be off, and that ends the steps
_INDEPENDENT = 1e-9


class Machine(NamedTuple):
    """f = X weights + bias, and the objective of the start and of every step."""

    weights: np.ndarray
    bias: float
    objectives: tuple[float, ...] = ()

    def scores(self, X: np.ndarray) -> np.ndarray:
        """f of every row, shape (n,)."""
        return X @ self.weights + self.bias


class Problem(NamedTuple):
    """Labelled rows with prices, unlabelled ones with one price, and the mean score of these."""

    labelled: np.ndarray  # (l, r)
    y: np.ndarray  # +1 or -1
    price: np.ndarray  # (l,)
    unlabelled: np.ndarray  # (u, r)
    unlabelled_price: float
    mean_score: float

    def objective(self, machine: Machine) -> float:
        """The value that no step lets rise."""
        f, g = machine.scores(self.labelled), machine.scores(self.unlabelled)
        hinge = self.price @ np.maximum(1.0 - self.y * f, 0.0)
        ramps = np.clip(1.0 - g, 0.0, 1.0 - CORNER) + np.clip(1.0 + g, 0.0, 1.0 - CORNER)
        return float(0.5 * machine.weights @ machine.weights + hinge
                     + self.unlabelled_price * ramps.sum())  # fmt: skip


def fit(problem: Problem, most_steps: int = MOST_STEPS, enough: float = _ENOUGH) -> Machine:
    """The machine after the convex-concave procedure.

    1. beta = C* for each copy (u, +1), (u, -1) with y f < s, else 0.
    2. Minimise with -H_s replaced by its tangent, beta y f.
    3. From 1 again until the objective falls by less than `enough` of itself.
    """
    rows, signs = _copies(problem)
    middle, t = problem.unlabelled.mean(axis=0), problem.mean_score
    centred = signs[:, None] * (rows - middle)
    price = np.concatenate(
        [problem.price, np.full(2 * len(problem.unlabelled), problem.unlabelled_price)]
    )
    is_copy = np.arange(len(rows)) >= len(problem.y)
    machine = start(problem)
    objectives = [problem.objective(machine)]
    alpha, norms = np.zeros(len(rows)), np.einsum("ij,ij->i", centred, centred)
    for _ in range(most_steps):
        # 1.
        beta = np.where(is_copy & (signs * machine.scores(rows) < CORNER), price, 0.0)
        # 2.
        weights = centred.T @ (alpha - beta)
        tolerance = 0.1 * enough * max(objectives[-1], 1e-12)
        _descend(centred, norms, 1.0 - signs * t, price, alpha, weights, tolerance, MOST_PASSES)
        machine = Machine(weights, t - float(middle @ weights))
        # 3.
        objectives.append(problem.objective(machine))
        if len(objectives) > 2 and objectives[-2] - objectives[-1] <= enough * objectives[-2]:
            break
    return machine._replace(objectives=tuple(objectives))


def start(problem: Problem) -> Machine:
    """The SVM of the labels, its bias moved so that the unlabelled rows have their mean score."""
    weights = supervised(problem).weights
    return Machine(weights, problem.mean_score - float(problem.unlabelled.mean(axis=0) @ weights))


def supervised(problem: Problem) -> Machine:
    """The SVM of the labelled rows alone."""
    svm = SVC(C=1.0, kernel="linear", tol=1e-5).fit(
        problem.labelled, problem.y, sample_weight=problem.price
    )
    return Machine(svm.coef_[0].copy(), float(svm.intercept_[0]))


def gaussian_features(
    X: np.ndarray, gamma: float, most: int, seed: int, always: np.ndarray
) -> np.ndarray:
    """Rows as vectors whose products are exp(-gamma d^2) in the span of landmarks: (n, r).

    Landmarks are the rows `always` and random ones, `most` at most; with all rows it is exact.
    """
    others = np.setdiff1d(np.arange(len(X)), always)
    drawn = np.random.default_rng(seed).permutation(others)
    landmarks = np.concatenate([always, drawn])[:most]
    K = rbf_kernel(X, X[landmarks], gamma=gamma)
    values, vectors = np.linalg.eigh(K[landmarks])
    kept = values > _INDEPENDENT * values[-1]
    return K @ (vectors[:, kept] / np.sqrt(values[kept]))


def _copies(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Labelled rows, then the unlabelled ones as +1 and again as -1; and their signs."""
    ones = np.ones(len(problem.unlabelled))
    rows = np.concatenate([problem.labelled, problem.unlabelled, problem.unlabelled])
    return rows, np.concatenate([problem.y, ones, -ones]).astype(float)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _descend(rows, norms, b, upper, alpha, weights, enough, most):
    """max b'alpha - |weights|^2 / 2 in the box [0, upper], weights = rows'alpha + a constant.

    A row moves to its best alpha, the others held. Ends after `most` passes, or where the terms
    of the duality gap, each as its row was visited, sum to `enough` or less.
    """
    n, r = rows.shape
    for _ in range(most):
        gap = 0.0
        for i in range(n):
            slope = -b[i]
            for k in range(r):
                slope += rows[i, k] * weights[k]
            gap += slope * alpha[i] if slope > 0.0 else -slope * (upper[i] - alpha[i])
            new = upper[i] if slope < 0.0 else 0.0
            if norms[i] > 0.0:
                new = min(max(alpha[i] - slope / norms[i], 0.0), upper[i])
            step = new - alpha[i]
            if step != 0.0:
                alpha[i] = new
                for k in range(r):
                    weights[k] += step * rows[i, k]
        if gap <= enough:
            break
