"""Losses on pairs of rows, in score space: one a file, and all by name.

Losses of each pair's margin alone: `SmoothedHinge`, `SquaredHinge`. For the top of the list:
`PNormPush`, a power of each majority row's own sum of those. Losses of the labels of all rows, in
`LABELLING_LOSSES`: `F1`, `PrecisionAtK` and `BreakEven`.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from rareclass.errors import ErrorKind
from rareclass.ranking.losses.labelling import F1, BreakEven, LabellingLoss, PrecisionAtK
from rareclass.ranking.losses.pair_loss import BlockTerms, PairLoss, RareTerms
from rareclass.ranking.losses.piecewise_quadratic import SmoothedHinge, SquaredHinge
from rareclass.ranking.losses.pnorm_push import PNormPush

__all__ = [
    "F1",
    "LABELLING_LOSSES",
    "LOSSES",
    "BlockTerms",
    "BreakEven",
    "LabellingLoss",
    "Loss",
    "PNormPush",
    "PairLoss",
    "PrecisionAtK",
    "RareTerms",
    "SmoothedHinge",
    "SquaredHinge",
    "make_loss",
]

LOSSES: dict[str, Any] = {
    "smoothed_hinge": SmoothedHinge,
    "squared_hinge": SquaredHinge,
    "pnorm_push": PNormPush,
}
LABELLING_LOSSES = {"f1": F1, "precision_at_k": PrecisionAtK, "break_even": BreakEven}

Loss = PairLoss | LabellingLoss
"""Loss of a kernel machine: a sum over pairs of rows, or a value of a whole labelling."""


def make_loss(loss: Any, eps: float, params: Mapping[str, Any] | None = None) -> Loss:
    """The loss that an estimator's `loss` parameter means: a name, or the object itself.

    `eps` is that of the hinges, `params` are further parameters of the loss that is named. Raises
    `ValueError` on an unknown name or parameter.
    """
    by_name = LOSSES | LABELLING_LOSSES
    if isinstance(loss, type):
        raise ErrorKind.SETTING.error(
            f"loss={loss.__name__} is the class itself: give an object, {loss.__name__}(...), or "
            f"a name, one of {sorted(by_name)}."
        )
    if params is not None and not isinstance(params, Mapping):
        raise ErrorKind.SETTING.error(
            f"loss_params={params!r} must be a dict of the loss's parameters by name, such as "
            "{'power': 4}, or None."
        )
    if hasattr(loss, "block") or isinstance(loss, LabellingLoss):
        if params:
            raise ErrorKind.COMBINATION.error(
                f"loss_params={dict(params)!r} belongs to a loss given by name: set the parameters "
                f"of {type(loss).__name__} itself."
            )
        return loss
    if not isinstance(loss, str) or loss not in by_name:
        raise ErrorKind.SETTING.error(f"loss={loss!r} is not one of {sorted(by_name)}.")
    make = by_name[loss]
    known = [field.name for field in fields(make)]
    given = {**({"eps": eps} if "eps" in known else {}), **(params or {})}
    for name in given:
        if name not in known:
            raise ErrorKind.SETTING.error(
                f"loss_params: {loss!r} has no parameter {name!r}; "
                f"it has {', '.join(sorted(known)) or 'none'}."
            )
    return make(**given)
