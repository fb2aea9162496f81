"""From fits to figures: means, and paired tests against OrdinalRankRC.

Where there are several random splits, differences on the same split are tested by the corrected
resampled t-test (Nadeau, Bengio, "Inference for the generalization error", 2003): splits share
rows, so the variance of the mean is ``(1/n + test rows / training rows) s^2`` in place of
``s^2 / n``. Where there is one split, the differences are those of disjoint parts of its test rows,
which share none: a plain t-test, about this fit and not about others of its kind. p < 0.05 counts.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.ordinal.methods import OURS
from benchmarks.paired_test import Paired, paired
from benchmarks.paper_tables.protocol import mean_and_error

P = 0.05
Fit = dict[str, Any]


class Line(NamedTuple):
    """A method on one set, or on one part of it.

    Attributes
    ----------
    method : str
    mauc : (float, float or None)
        Percent: mean and standard error over the splits, or over the parts of the test rows.
    vus : float or None
        Mean; None where a fit was stored without it.
    against : Paired or None
        None for OrdinalRankRC itself, and where there is nothing to compare.
    fit_seconds, choice_seconds : float
        Means.
    size : float or None
        Mean number of rows that carry the model.
    splits : int
    parameter : str
        The choice, where there is one split.
    """

    method: str
    mauc: tuple[float, float | None]
    vus: float | None
    against: Paired | None
    fit_seconds: float
    choice_seconds: float
    size: float | None
    splits: int
    parameter: str


def lines(fits: Sequence[Fit], split: tuple[float, float]) -> list[Line]:
    """One line a method, in the order of the fits; `split` has the training and test rows."""
    by_method: dict[str, dict[int, Fit]] = {}
    for fit in fits:
        by_method.setdefault(fit["method"], {})[fit["split"]] = fit
    base = by_method.get(OURS, {})
    return [_line(name, own, base, split) for name, own in by_method.items()]


def _line(name: str, own: dict[int, Fit], base: dict[int, Fit], split: tuple[float, float]) -> Line:
    values = list(own.values())
    sizes = [fit["size"] for fit in values if fit["size"] is not None]
    error = (
        mean_and_error(values[0]["parts"])[1] if len(values) == 1 and values[0]["parts"] else None
    )
    if len(values) > 1:
        error = mean_and_error([fit["mauc"] for fit in values])[1]
    return Line(
        name,
        (100.0 * mean(values, "mauc"), None if error is None else 100.0 * error),
        mean(values, "vus") if all("vus" in fit for fit in values) else None,
        None if name == OURS else against(own, base, split),
        mean(values, "fit_seconds"),
        mean(values, "choice_seconds"),
        float(np.mean(sizes)) if sizes else None,
        len(values),
        values[0]["parameter"] if len(values) == 1 else "",
    )


def against(own: dict[int, Fit], base: dict[int, Fit], split: tuple[float, float]) -> Paired | None:
    """The paired test on the splits that both have; None where there is nothing to test."""
    shared = sorted(own.keys() & base.keys())
    if len(shared) > 1:
        return paired([100.0 * (own[k]["mauc"] - base[k]["mauc"]) for k in shared], *split)
    if not shared:
        return None
    parts = own[shared[0]]["parts"], base[shared[0]]["parts"]
    return paired(100.0 * np.subtract(*parts)) if all(map(len, parts)) else None


def mean(fits: Sequence[Fit], key: str) -> float:
    """Mean of one figure."""
    return float(np.mean([fit[key] for fit in fits]))
