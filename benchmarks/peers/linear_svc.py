"""LIBLINEAR as scikit-learn has it: the weighted linear SVM, the floor that a kernel has to beat.

``dual=False`` is what scikit-learn advises for more rows than features; C is the default 1. It has
one thread.
"""

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.peers import Fitted, Task


def balanced(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``LinearSVC(class_weight="balanced", dual=False)``."""
    model = LinearSVC(class_weight="balanced", dual=False, random_state=0).fit(X, y)
    return Fitted(model.decision_function, {"iterations": int(model.n_iter_)})
