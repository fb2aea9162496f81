"""LIBSVM as scikit-learn has it: the weighted kernel SVM with the same Gaussian kernel as RankRC.

C is scikit-learn's default 1; class weights "balanced". LIBSVM has one thread; its kernel cache
gets 2 GB, ten times the default and as much as RankRC's own default.
"""

import numpy as np
from sklearn.svm import SVC

from benchmarks.peers import Fitted, Task, kernel_gamma

CACHE_MB = 2000


def balanced(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``SVC(class_weight="balanced")``."""
    model = SVC(gamma=kernel_gamma(X), class_weight="balanced", cache_size=CACHE_MB)
    model.fit(X, y)
    details = {"support_vectors": int(model.n_support_.sum()), "steps": int(model.n_iter_.max())}
    return Fitted(model.decision_function, details)
