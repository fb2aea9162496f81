"""RareClassifier beside the libraries that a practitioner would use, in one small table."""

from collections.abc import Sequence
from statistics import fmean, median
from typing import Any, NamedTuple

from benchmarks.ledger import Run
from benchmarks.markdown import table
from benchmarks.tabular.figures import LOWER_IS_BETTER, mean_ranks
from benchmarks.tabular.learners import LEARNERS

OURS = "rareclass"
SHOWN = (
    OURS,
    "autogluon",
    "flaml",
    "catboost",
    "lightgbm_slow",
    "lightgbm",
    "xgboost",
    "balanced_forest",
)
# A method that was run on less than this share of the sets is left out.
_LEAST_SETS = 2 / 3
MEASURES = ("auc", "average_precision", "log_loss")
HEADER = ["method", "AUC, %", "average precision, %", "log loss", "seconds of a fit"]


class Standing(NamedTuple):
    """A method over the sets: means and mean ranks by measure, and the median of the seconds."""

    means: dict[str, float]
    ranks: dict[str, float]
    seconds: float


class Headline(NamedTuple):
    """Methods on the same splits of the same sets."""

    sets: tuple[str, ...]
    methods: dict[str, Standing]

    @property
    def best_peer(self) -> str:
        """The peer with the best mean rank in average precision."""
        peers = [method for method in self.methods if method != OURS]
        return min(peers, key=lambda method: self.methods[method].ranks["average_precision"])


def headline(
    runs: Sequence[Run], sets: Sequence[str] | None = None, methods: Sequence[str] = SHOWN
) -> Headline:
    """Compare the methods on the sets, or on some of them, that all of them have finished."""
    labels, shared = _shared(runs, sets, methods)
    means = {
        measure: {
            name: {m: fmean(split[m][measure] for split in splits) for m in labels}
            for name, splits in shared.items()
        }
        for measure in (*MEASURES, "seconds")
    }
    ranks = {m: mean_ranks(means[m], m in LOWER_IS_BETTER) for m in MEASURES}
    standings = {
        method: Standing(
            {m: fmean(of[method] for of in means[m].values()) for m in MEASURES},
            {m: ranks[m][method] for m in MEASURES},
            median(of[method] for of in means["seconds"].values()),
        )
        for method in labels
        if shared
    }
    return Headline(tuple(shared), standings)


def behind(
    runs: Sequence[Run], sets: Sequence[str] | None = None, least: float = 2.0
) -> dict[str, float]:
    """Return by how many points of average precision the best peer is ahead, the most first.

    Only sets on which it is ahead by at least `least` points.
    """
    labels, shared = _shared(runs, sets, SHOWN)
    found = {}
    for name, splits in shared.items():
        means = {m: fmean(split[m]["average_precision"] for split in splits) for m in labels}
        ours = means.pop(OURS)
        found[name] = 100.0 * (max(means.values()) - ours)
    return {n: v for n, v in sorted(found.items(), key=lambda one: -one[1]) if v >= least}


def title(method: str) -> str:
    """Return the name of a method for readers."""
    return LEARNERS[method].title


def headline_table(found: Headline) -> str:
    """Return the table in Markdown: mean and, in brackets, mean rank; the best rank in bold."""
    best = {m: min(one.ranks[m] for one in found.methods.values()) for m in MEASURES}
    rows = []
    for method, one in found.methods.items():
        row = [title(method)]
        for measure in MEASURES:
            mean, rank = one.means[measure], f"{one.ranks[measure]:.2f}"
            text = f"{mean:.3f}" if measure in LOWER_IS_BETTER else f"{100.0 * mean:.1f}"
            rank = f"**{rank}**" if one.ranks[measure] == best[measure] else rank
            row.append(f"{text} ({rank})")
        rows.append([*row, f"{one.seconds:.1f}"])
    return table(HEADER, rows)


def _shared(
    runs: Sequence[Run], sets: Sequence[str] | None, methods: Sequence[str]
) -> tuple[dict[str, str], dict[str, list[dict[str, Run]]]]:
    """Labels by method, and by set the splits that all of them finished, each run by method."""
    of_all = _by_set(runs, methods)
    found = {name: of_all[name] for name in of_all if sets is None or name in sets}
    labels = _labels(found, methods)
    shared: dict[str, list[dict[str, Run]]] = {}
    for name, splits in found.items():
        whole = [split for split in splits.values() if all(lb in split for lb in labels.values())]
        if whole:
            shared[name] = [{m: split[lb] for m, lb in labels.items()} for split in whole]
    return labels, shared


def _by_set(runs: Sequence[Run], methods: Sequence[str]) -> dict[str, dict[int, dict[str, Run]]]:
    """Set: split: label: run, of the finished runs of the methods shown."""
    found: dict[str, dict[int, dict[str, Run]]] = {}
    for run in runs:
        if run["method"] in methods and run["status"] == "ok" and "log_loss" in run:
            found.setdefault(run["set"], {}).setdefault(run["repeat"], {})[run["label"]] = run
    return found


def _labels(found: dict[str, dict[int, dict[str, Any]]], methods: Sequence[str]) -> dict[str, str]:
    """Method: the label, a budget with it, that was run on the most sets; not of few sets."""
    counts: dict[str, dict[str, int]] = {}
    for splits in found.values():
        own = {run["label"]: run["method"] for split in splits.values() for run in split.values()}
        for label, method in own.items():
            counts.setdefault(method, {}).setdefault(label, 0)
            counts[method][label] += 1
    best = {m: max(counts[m], key=counts[m].__getitem__) for m in methods if m in counts}
    most = max((counts[m][label] for m, label in best.items()), default=0)
    return {m: label for m, label in best.items() if counts[m][label] >= _LEAST_SETS * most}
