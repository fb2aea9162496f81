"""From runs to figures: means and mean ranks."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from benchmarks.ledger import Run
from benchmarks.tabular.spaces import METHODS

Splits = dict[int, Run]  # the finished runs of a method on a set
LOWER_IS_BETTER = ("log_loss", "seconds")
Means = dict[str, dict[str, float | None]]  # set: method: mean; None where it did not finish


class Results(NamedTuple):
    """The runs, sorted.

    Attributes
    ----------
    finished : dict
        Set: label: split: run. A label that was tried and finished no split has none.
    methods : dict
        Label: method, in the order of `METHODS`.
    """

    finished: dict[str, dict[str, Splits]]
    methods: dict[str, str]

    def part(self, names: Sequence[str]) -> "Results":
        """Some of the sets, in that order."""
        return Results({n: self.finished[n] for n in names if n in self.finished}, self.methods)


def results(runs: Sequence[Run]) -> Results:
    """Sort the runs by set, label and split."""
    found: dict[str, dict[str, Splits]] = {}
    for run in runs:
        splits = found.setdefault(run["set"], {}).setdefault(run["label"], {})
        if run["status"] == "ok":
            splits[run["repeat"]] = run
    methods = {run["label"]: run["method"] for run in runs}
    labels = sorted(methods, key=lambda label: (METHODS.index(methods[label]), label))
    return Results(found, {label: methods[label] for label in labels})


def means(found: Results, measure: str) -> Means:
    """Of every method on every set."""
    return {
        name: {label: mean(splits, measure) for label, splits in labels.items()}
        for name, labels in found.finished.items()
    }


def mean(splits: Splits, measure: str) -> float | None:
    """Over the splits; None where no run has the measure."""
    values = [run[measure] for run in splits.values() if measure in run]
    return float(np.mean(values)) if values else None


def mean_ranks(
    values: Mapping[str, Mapping[str, float | None]], lowest_first: bool = False
) -> dict[str, float]:
    """Mean over the sets of each label's rank, 1 for the highest value; equals share their ranks.

    Those that did not finish share the last ones. All sets have the same labels. Where
    `lowest_first`, the lowest value has rank 1.

    Examples
    --------
    >>> mean_ranks({"s": {"a": 0.9, "b": 0.5, "c": None}, "t": {"a": 0.1, "b": 0.2, "c": 0.2}})
    {'a': 2.0, 'b': 1.75, 'c': 2.25}
    """
    if not values:
        return {}
    labels = list(next(iter(values.values())))
    sign = -1.0 if lowest_first else 1.0
    table = [[_or_last(one[label], sign) for label in labels] for one in values.values()]
    ranks = rankdata(-np.array(table), axis=1).mean(axis=0)
    return dict(zip(labels, ranks.tolist(), strict=True))


def _or_last(value: float | None, sign: float) -> float:
    return -np.inf if value is None else sign * value
