"""The width of a kernel: what the distance between rows is made of."""

import numpy as np
import pytest

from rareclass import RankRC
from rareclass.findings import FindingKind, finding_of


def test_one_column_in_other_units_is_named():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 4))
    y = np.arange(200) % 10 == 0
    X[:, 2] *= 1e6
    with pytest.warns(UserWarning, match="column 2 makes up 100.0000% of the squared") as caught:
        RankRC().fit(X, y)
    (finding,) = [finding_of(each.message) for each in caught]
    assert (finding.kind, finding.values["column"]) == (FindingKind.ONE_COLUMN_DECIDES, 2)
    X[:, 2] /= 1e5  # ten times the others is a matter of taste
    RankRC().fit(X, y)
