"""imbalanced-learn's balanced random forest: 100 trees, each on as many majority as rare rows."""

import numpy as np
from imblearn.ensemble import BalancedRandomForestClassifier

from benchmarks.peers import Fitted, Task


def default(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``BalancedRandomForestClassifier()`` with all defaults."""
    model = BalancedRandomForestClassifier(n_jobs=task.threads, random_state=0).fit(X, y)
    return Fitted(lambda rows: model.predict_proba(rows)[:, 1], {"trees": len(model.estimators_)})
