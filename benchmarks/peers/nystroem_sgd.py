"""Nyström features and a linear SVM by stochastic gradient: scikit-learn's advice for many rows.

As many components as RankRC has landmarks (the rare rows, or the number of the task), drawn from
all rows as Nystroem does, and the same Gaussian kernel. The features are made in pieces into one
float32 array, which takes rows x components x 4 bytes: `Nystroem.transform` in one call would hold
it three times. SGD has its defaults (hinge, alpha 1e-4) with class weights "balanced"; it has one
thread, the features have all.
"""

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier

from benchmarks.peers import Fitted, Task, kernel_gamma

PIECE_ROWS = 20_000


def balanced(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``Nystroem(n_components)`` then ``SGDClassifier(class_weight="balanced")``."""
    landmarks = task.options.get("landmarks")
    wanted = landmarks[1] if isinstance(landmarks, (list, tuple)) else len(y)
    n_components = min(int(y.sum()), wanted, len(X))
    features = Nystroem(gamma=kernel_gamma(X), n_components=n_components, random_state=0).fit(X)
    Z = np.empty((len(X), n_components), dtype=X.dtype)
    for start in range(0, len(X), PIECE_ROWS):
        piece = slice(start, start + PIECE_ROWS)
        Z[piece] = features.transform(X[piece])
    model = SGDClassifier(loss="hinge", class_weight="balanced", random_state=0).fit(Z, y)

    def scores(rows: np.ndarray) -> np.ndarray:
        pieces = [rows[start : start + PIECE_ROWS] for start in range(0, len(rows), PIECE_ROWS)]
        return np.concatenate([model.decision_function(features.transform(p)) for p in pieces])

    return Fitted(scores, {"components": n_components, "epochs": int(model.n_iter_)})
