r"""The held-out average precision that `rareclass fit` prints, against the one on new rows.

A run of RareClassifier keeps the average precision of its held-out scores with the 95 % interval,
by the functions that `rareclass fit` prints them with, and the same figure of the test rows, with
an interval as well.

*Bias* is estimate minus figure on the test rows, in points. Splits of one table share rows: the
bias of a table is the mean over its splits, and the mean over the tables has the standard error of
tables, ``sd / sqrt(n)``.

*Coverage* is the share of the splits, the tables weighted alike, in which the printed interval
holds a figure of new rows. The interval is about endless new rows, of which there are some hundreds
here, with few rare ones among them: their figure scatters by itself. So there are three shares:

- the figure on the test rows is in the printed interval, as a user would count;
- the share that this would be if the interval were right: on the logit scale, on which both
  intervals are symmetric, with standard errors :math:`s` of the estimate and :math:`s_t` of the
  figure on the test rows, it is :math:`P(|z| < 1.96 s / \sqrt{s^2 + s_t^2})` for standard normal z;
- the two figures lie within :math:`1.96 \sqrt{s^2 + s_t^2}` of each other: 95 percent where both
  intervals are right. This one is comparable to the nominal level; it sees errors of the printed
  interval only as far as the test rows are not much fewer than the training rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit, ndtr, ndtri

from rareclass.metrics import interval
from rareclass.metrics.intervals import stretch_of_folds, widened

ESTIMATE, ON_TEST_ROWS = "estimate", "on_test_rows"  # of a run: value, low, high
LEVEL = 0.95
_EDGE = 1e-4  # intervals end there on the logit scale
Figures = Sequence[float]
Runs = Sequence[Mapping[str, Any]]


class Agreement(NamedTuple):
    """Estimates against figures on new rows, over tables.

    Attributes
    ----------
    tables, splits : int
    bias, error : float
        Mean over the tables in points, and its standard error; NaN of one table.
    holds : float
        Share of the printed intervals that hold the figure on the test rows.
    expected : float
        The same if all intervals were right.
    within_both : float
        Share of figures that differ by no more than both intervals allow.
    """

    tables: int
    splits: int
    bias: float
    error: float
    holds: float
    expected: float
    within_both: float


def of_fit(model: Any, y: np.ndarray) -> dict[str, Any]:
    """Estimate and members of a RareClassifier, as `rareclass fit` prints them, for labels y."""
    from rareclass.fit.auto_method import AutoMethod
    from rareclass.fit.method import EncodedRows

    judged = AutoMethod().cross_fitted(model, EncodedRows(None, y, None))
    of_rows = interval("average_precision", judged.y == 1, judged.scores, judged.weight)
    printed = widened(of_rows, stretch_of_folds(len(y), len(judged.y), model.n_splits_))
    board = model.leaderboard_
    names = ("member", "average_precision", "seconds", "weight")
    members = [list(row) for row in zip(*(board[name].tolist() for name in names), strict=True)]
    return {ESTIMATE: [float(value) for value in printed], "members": members}


def agreement(tables: Sequence[Runs]) -> Agreement | None:
    """Compare the runs of each table; None where no run has an estimate."""
    kept = [[run for run in runs if ESTIMATE in run and ON_TEST_ROWS in run] for runs in tables]
    kept = [runs for runs in kept if runs]
    if not kept:
        return None
    each = np.array([np.mean([_compared(run) for run in runs], axis=0) for runs in kept])
    error = each[:, 0].std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
    bias, *shares = each.mean(axis=0).tolist()
    return Agreement(len(kept), sum(map(len, kept)), bias, float(error), *shares)


def _compared(run: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """Bias in points, and the three shares of one run."""
    (value, low, high), (new, *_) = run[ESTIMATE], run[ON_TEST_ROWS]
    (place, s), (new_place, new_s) = _normal(run[ESTIMATE]), _normal(run[ON_TEST_ROWS])
    quantile, both = ndtri(0.5 + LEVEL / 2.0), np.hypot(s, new_s)
    return (
        100.0 * (value - new),
        float(low <= new <= high),
        float(2.0 * ndtr(quantile * s / both) - 1.0),
        float(abs(place - new_place) <= quantile * both),
    )


def _normal(figures: Figures) -> tuple[float, float]:
    """Middle and standard error of an interval on the logit scale."""
    low, high = logit(np.clip(figures[1:], _EDGE, 1.0 - _EDGE))
    return (low + high) / 2.0, max((high - low) / (2.0 * ndtri(0.5 + LEVEL / 2.0)), 1e-12)
