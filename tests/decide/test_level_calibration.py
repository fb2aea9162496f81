"""Probabilities of levels from those of being above each cut."""

import numpy as np
import pytest

from rareclass.decide.calibration.calibration import LevelCalibration


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        ([0.3], [0.7, 0.3]),
        ([1.0, 0.3, 0.0], [0.0, 0.7, 0.3, 0.0]),
        # Nobody is above the second cut more often than above the first: both become .4.
        ([0.2, 0.6], [0.6, 0.0, 0.4]),
    ],
)
def test_shares_of_levels_by_hand(above, expected):
    found = LevelCalibration(above)([-1.0, 2.0, 5.0])
    np.testing.assert_allclose(found, [expected] * 3, atol=1e-15)
