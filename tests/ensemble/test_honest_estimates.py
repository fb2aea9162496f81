"""Own estimates of `RareClassifier` beside new rows, on made tables of words and of codes.

A small form of `python -m benchmarks.honest`. Where labels of held-out rows reach the encoding, the
first difference is .08 and the second .09.
"""

import numpy as np
import pytest

from benchmarks.honest import nested_codes, words_of_nothing
from rareclass import RareClassifier
from rareclass.metrics import average_precision, roc_auc

N = 3000
pytestmark = pytest.mark.sampled(0)  # each way that labels take: test_nested_labels.py


def fitted(X, y):
    return RareClassifier(members=["histogram boosting"], n_jobs=1, verbose=False).fit(X, y)


def test_words_that_know_nothing_of_the_labels_are_worth_nothing():
    aucs = []
    for seed in range(3):
        held_out = fitted(*words_of_nothing(seed, N)).held_out_
        aucs.append(roc_auc(held_out["rare"], held_out["score"]))
    assert abs(np.mean(aucs) - 0.5) < 0.04


@pytest.mark.filterwarnings("ignore:the values of")
def test_codes_that_determine_each_other_are_worth_on_new_rows_what_is_said():
    differences = []
    for seed, pairs in ((0, False), (1, False), (0, True), (1, True)):
        X, y = nested_codes(seed, N + 20_000, 0.03, pairs)
        model = fitted(X[:N], y[:N])
        own = average_precision(model.held_out_["rare"], model.held_out_["score"])
        differences.append(own - average_precision(y[N:], model.score_samples(X[N:])))
    assert abs(np.mean(differences)) < 0.04
