"""Generated days in hospital: one relation of features and levels in every draw."""

import numpy as np

from benchmarks.hospital_days import (
    hospital_days,
)
from rareclass.metrics import mauc


def test_relation_is_the_same_in_every_draw():
    """A direction learned on one draw ranks another one, though less well than the burden."""
    X, y, _ = hospital_days(8000, 60, random_state=1)
    Z, levels, burden = hospital_days(8000, 60, random_state=2)
    design = np.column_stack([np.ones(len(X)), X])
    direction = np.linalg.lstsq(design, (y > 0).astype(float), rcond=None)[0][1:]
    assert 0.65 < mauc(levels, Z @ direction) < mauc(levels, burden)
