"""Confidence intervals of measures by name, and the check of a measure's options."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from rareclass.errors import ErrorKind, unknown_name
from rareclass.metrics.areas import area_estimate, auc_estimate, average_precision_estimate
from rareclass.metrics.at_k import lift_estimate, precision_estimate, recall_estimate
from rareclass.metrics.expected_cost import cost_estimate
from rareclass.metrics.intervals import Estimate, Interval, normal_quantile
from rareclass.metrics.levels import level_estimate
from rareclass.metrics.paired_evidence import EVIDENCE
from rareclass.metrics.scored_classes import cells_of, split_pair

# Parameters of an estimate that are columns of rows, and no options of the measure.
_COLUMNS = ("cells", "y", "scores", "sample_weight", "groups")


def interval(
    measure: str,
    y: Any,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
    groups: ArrayLike | None = None,
    **options: Any,
) -> Interval:
    """Value of a measure with its confidence interval, for scores of rows that trained nothing.

    - "roc_auc", "average_precision", "partial_auc": the influence of each row gives the variance,
      to which comes one made-up row of the greatest possible spread in each class, as few rare rows
      often show none. The interval is symmetric on the logit scale, and kept within the
      Clopper-Pearson bounds of as many yes-or-no trials as there are rows of the smaller class
      (``p`` times the majority for partial AUC, rare rows for average precision).
    - "precision_at_k", "recall_at_k", "lift_at_k": Wilson's interval of the recall among the top k
      in n_rare trials, in other units. Wider than need be when k is well under n_rare.
    - "expected_cost": Wilson's interval of the share of the possible cost that each class incurs;
      the squares of both reaches add up. A threshold chosen on the same rows makes it too
      favourable.
    - "mauc", "vus": the variance over rows drawn again within each level, or groups drawn again,
      with a made-up row in each level, on the logit scale.

    The share of rare rows, or of each level, is taken as given: the truth meant is the value of the
    same scores on endless rows with this sample's shares. Nominal 95 % intervals held the truth in
    91 to 100 % of samples of 5 to 300 rare rows in 1 % for AUC, 90 to 99 % for average precision,
    84 to 100 % for precision at k, all without groups (``python -m
    benchmarks.interval_coverage``; docs/decisions/0005).

    Parameters
    ----------
    measure : str
        Name of the function of `rareclass.metrics`.
    y, scores
        As for that function.
    sample_weight : array-like of shape (n,), optional
        Weights are frequencies: a weight of 3 is three independent rows.
    level : float, default 0.95
        Share of samples whose interval is to hold the truth, between 0 and 1. Greater gives wider.
    groups : array-like of shape (n,), optional
        Rows of equal group move together (a customer, a day): groups, not rows, are what is
        independent.
    **options
        Of the function of that name: ``k=`` (`lift_at_k`: or ``share=``), ``max_fpr=``,
        ``standardized=``, ``threshold=``, ``cost_fp=``, ``cost_fn=``, ``levels=``. "mauc" and "vus"
        draw ``n_draws=200`` samples with ``random_state=0``; the width is good to about
        ``1 / sqrt(2 n_draws)``.

    Returns
    -------
    Interval
        ``(value, low, high)`` with ``low <= value <= high``; O(n log n) time, O(n) memory.

    Raises
    ------
    ValueError
        As the function of that name; on an unknown measure or option, and on a missing one.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44; Boyd, Eng and Page (2013), ECML PKDD;
    Wilson (1927), Journal of the American Statistical Association 22.

    Examples
    --------
    >>> y, scores = [0, 0, 0, 1, 1], [0.1, 0.2, 0.4, 0.3, 0.8]
    >>> found = interval("roc_auc", y, scores)
    >>> round(found.value, 3), 0 < found.low < found.value < found.high < 1
    (0.833, True)
    >>> interval("precision_at_k", y, scores, k=2).value
    0.5
    """
    normal_quantile(level)
    of_levels = measure in [*_OF_LEVELS]
    if groups is not None and not of_levels:
        pair = split_pair(y, scores, scores, sample_weight, groups, "scores")
        return known_measure(measure, EVIDENCE, options)(pair, **options).a(level)
    make = known_measure(measure, _ESTIMATES, options)
    if of_levels:
        return make(y, scores, sample_weight, groups=groups, **options).interval(level)
    if measure in _OF_COLUMNS:
        return make(y, scores, sample_weight, **options).interval(level)
    return make(cells_of(y, scores, sample_weight), **options).interval(level)


Made = TypeVar("Made")


def known_measure(
    measure: Any, made: Mapping[str, Callable[..., Made]], options: dict[str, Any]
) -> Callable[..., Made]:
    """Look up what makes a measure; refuse measures and options that its estimate does not have."""
    if not isinstance(measure, str) or measure not in made:
        raise unknown_name(f"measure={measure!r} is not known.", str(measure), made)
    parameters = inspect.signature(_ESTIMATES[measure]).parameters
    taken = {name: each for name, each in parameters.items() if name not in _COLUMNS}
    for name in options:
        if name not in taken:
            known = ", ".join(taken) or "none"
            raise ErrorKind.COMBINATION.error(
                f"{name}= is not an option of {measure!r}.", f"Its options are: {known}."
            )
    for name, each in taken.items():
        if each.default is each.empty and name not in options:
            raise ErrorKind.COMBINATION.error(f"{measure!r} needs {name}=.", "Give it.")
    return made[measure]


_OF_LEVELS = {name: partial(level_estimate, name) for name in ("mauc", "vus")}
_OF_COLUMNS: Mapping[str, Callable[..., Estimate]] = {"expected_cost": cost_estimate, **_OF_LEVELS}
_ESTIMATES: Mapping[str, Callable[..., Estimate]] = {
    "roc_auc": auc_estimate,
    "average_precision": average_precision_estimate,
    "partial_auc": area_estimate,
    "precision_at_k": precision_estimate,
    "recall_at_k": recall_estimate,
    "lift_at_k": lift_estimate,
    **_OF_COLUMNS,
}
