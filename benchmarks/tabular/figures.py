"""From runs to figures: means, mean ranks, and paired tests against RareClassifier.

Differences on the same split are tested by the corrected resampled t-test (Nadeau, Bengio,
"Inference for the generalization error", 2003), `benchmarks.paired_test`; where a set
has one split, those on disjoint parts of its test rows, which is about this fit and not about
others of its kind. Two-sided at 5 percent.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from benchmarks.ledger import Run
from benchmarks.paired_test import Paired, paired
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


class BestPeer(NamedTuple):
    """RareClassifier beside the peer with the highest mean on a set.

    Attributes
    ----------
    peer : str
        Its label.
    peer_mean, mean : float
    against : Paired or None
        RareClassifier minus the peer.
    """

    peer: str
    peer_mean: float
    mean: float
    against: Paired | None


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


def of_all_splits(runs: Sequence[Run]) -> list[Run]:
    """Without labels that were tried on half of the splits of a set or fewer.

    Means over other splits cannot be ranked beside each other.
    """
    tried: dict[str, dict[str, set[int]]] = {}
    for run in runs:
        tried.setdefault(run["set"], {}).setdefault(run["label"], set()).add(run["repeat"])
    few = {
        label
        for labels in tried.values()
        for label, splits in labels.items()
        if 2 * len(splits) <= max(map(len, labels.values())) > 1
    }
    return [run for run in runs if run["label"] not in few]


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


def ranked(found: Results) -> tuple[list[str], list[str]]:
    """Labels and sets that are fit to be ranked: every such label was tried on every such set.

    Labels that were tried on under half of the sets are left out first.
    """
    sets = found.finished
    labels = [
        label
        for label in found.methods
        if 2 * sum(label in tried for tried in sets.values()) >= max(1, len(sets))
    ]
    complete = [name for name, tried in sets.items() if all(label in tried for label in labels)]
    return labels, complete


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


def ranks_of(found: Results, measure: str) -> dict[str, float]:
    """Mean ranks of the labels on the sets that are fit for it.

    Labels that have the measure on no set (log loss without probabilities) are left out.
    """
    labels, complete = ranked(found)
    values = means(found.part(complete), measure)
    labels = [label for label in labels if any(one[label] is not None for one in values.values())]
    return mean_ranks(
        {name: {label: one[label] for label in labels} for name, one in values.items()},
        measure in LOWER_IS_BETTER,
    )


def averages_of(found: Results, measure: str) -> dict[str, float]:
    """Means over the sets that are fit to be ranked, of labels that have the measure on all."""
    labels, complete = ranked(found)
    values = means(found.part(complete), measure).values()
    columns = {label: [one[label] for one in values] for label in labels}
    return {label: float(np.mean(own)) for label, own in columns.items() if None not in own and own}


def against(own: Splits, other: Splits, measure: str) -> Paired | None:
    """`own` minus `other`, in percent, on the splits of both; None where nothing can be tested."""
    shared = sorted(own.keys() & other.keys())
    if not shared:
        return None
    if len(shared) > 1:
        split = own[shared[0]]["rows"], own[shared[0]]["test_rows"]
        return paired([100.0 * (own[k][measure] - other[k][measure]) for k in shared], *split)
    parts = [splits[shared[0]].get("parts", {}).get(measure) for splits in (own, other)]
    return None if None in parts else paired(100.0 * np.subtract(*parts))


def best_peer(labels: Mapping[str, Splits], ours: str, peers: Sequence[str], measure: str) -> Any:
    """RareClassifier beside the best of the peers on one set; None where either is missing."""
    values = {label: mean(labels.get(label, {}), measure) for label in (ours, *peers)}
    own = values.pop(ours)
    done = {label: value for label, value in values.items() if value is not None}
    if own is None or not done:
        return None
    peer = max(done, key=done.__getitem__)
    return BestPeer(peer, done[peer], own, against(labels[ours], labels[peer], measure))


def counts(found: Results, ours: str, other: str, measure: str) -> tuple[int, int, int]:
    """Sets where RareClassifier is significantly above a method, level, below."""
    verdicts = [
        one.verdict()
        for labels in found.finished.values()
        if (one := against(labels.get(ours, {}), labels.get(other, {}), measure)) is not None
    ]
    return tuple(verdicts.count(verdict) for verdict in ("above", "level", "below"))


def _or_last(value: float | None, sign: float) -> float:
    return -np.inf if value is None else sign * value
