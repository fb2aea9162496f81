"""Average precision of each class, recall of each within one budget of alerts, log loss."""

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import average_precision_score, log_loss

from benchmarks.ledger import Run
from benchmarks.several_classes.methods import Probabilities
from rareclass.decide.threshold import class_weights


def measures(y: np.ndarray, found: Probabilities, n_rows: Sequence[int]) -> Run:
    """Measure the probabilities of test rows whose classes are y; 0 is the rest.

    ``within_budget`` has the recall of each class among as many alerts as there are rare rows: the
    rows of highest probability of any rare class, each called its most probable one.
    ``within_shared_budget`` has it where each method spends the budget as thresholds that all
    classes share do (`rareclass threshold --class all`): probabilities are divided by a weight of
    the class, which rises with its training rows (`n_rows`). What the
    ranking of any rare row and the choice of the class contribute is measured apart: average
    precision of any rare row, and the share of rare rows whose most probable rare class is theirs.
    """
    rare, classes = found.of_class[:, 1:], range(1, found.of_class.shape[1])
    any_rare, called = rare.sum(axis=1), rare.argmax(axis=1) + 1
    is_rare = y > 0
    multiple = rare / class_weights(n_rows)

    def recalls(score: np.ndarray, called: np.ndarray) -> list[float]:
        alerts = np.argsort(-score, kind="stable")[: is_rare.sum()]
        right = np.zeros(len(y), dtype=bool)
        right[alerts] = called[alerts] == y[alerts]
        return [float(right[y == k].mean()) for k in classes]

    return {
        "average_precisions": [
            float(average_precision_score(y == k, found.ranking[:, k - 1])) for k in classes
        ],
        "within_budget": recalls(any_rare, called),
        "within_shared_budget": recalls(multiple.max(axis=1), multiple.argmax(axis=1) + 1),
        "log_loss": float(log_loss(y, found.of_class, labels=[0, *classes])),
        "average_precision_of_any": float(average_precision_score(is_rare, any_rare)),
        "rare_called_right": float((called == y)[is_rare].mean()),
    }
