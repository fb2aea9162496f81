"""The learners of Khalid, Ray and Chitsaz (2016), section 4.2, with what the paper fixes of each.

One parameter is left to cross-validation: the penalty C or the learning rate eta.
"""

from collections.abc import Callable
from typing import Any

from rareclass import online

BUFFER = 50  # rows of each class
REGULARISATION = 1e-4
SMOOTHING = 0.5  # delta of AdaOAM
RANK = 50  # tau of OPAUCr

# Name -> make(parameter, seed): a learner that has seen nothing.
Make = Callable[[float, int], Any]


def _learner(learner: str, parameter: str, **fixed: Any) -> Make:
    def make(value: float, seed: int) -> Any:
        own = {parameter: value, "random_state": seed, "pos_label": 1}
        return getattr(online, learner)(**fixed, **own)

    return make


def _cbr(policy: str, covariance: str = "full", **fixed: Any) -> Make:
    fixed |= {"eta": 0.7, "buffer_size": BUFFER, "policy": policy, "covariance": covariance}
    return _learner("CBR", "C", **fixed)


# Proposition 2 as printed, and the exact solution of its problem (docs/decisions/0062).
_DIAGONAL = {
    "CBR diagonal printed": _cbr("fifo", "diagonal", diagonal_step="printed"),
    "CBR diagonal": _cbr("fifo", "diagonal"),
}


_UNIEXP = _learner("UniExp", "eta")
_OAM = _learner("OAM", "C", buffer_size=BUFFER)  # by reservoir sampling

BENCHMARK: dict[str, Make] = {
    "CBR reservoir": _cbr("reservoir"),
    "CBR fifo": _cbr("fifo"),
    "UniExp": _UNIEXP,
    "OPAUC": _learner("OPAUC", "eta", lam=REGULARISATION),
    "OAM": _OAM,
    "AdaOAM": _learner("AdaOAM", "eta", lam=REGULARISATION, delta=SMOOTHING),
    **_DIAGONAL,
}
TEXT: dict[str, Make] = {
    **_DIAGONAL,
    "UniExp": _UNIEXP,
    "OPAUC low rank": _learner("OPAUC", "eta", lam=REGULARISATION, rank=RANK),
    "OAM": _OAM,
}
METHODS = BENCHMARK | TEXT
