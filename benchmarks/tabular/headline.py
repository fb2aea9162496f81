"""RareClassifier beside the libraries that a practitioner would use, in one small table.

Tests are over tables: Wilcoxon's signed ranks of RareClassifier's mean over the splits of a table
minus a peer's, two-sided, Holm's correction over the peers, at 5 percent.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean, median
from typing import Any, NamedTuple

from benchmarks.ledger import Run
from benchmarks.markdown import table
from benchmarks.paired_test import Paired, across_sets, holm, paired
from benchmarks.tabular.figures import LOWER_IS_BETTER, mean_ranks
from benchmarks.tabular.learners import LEARNERS
from benchmarks.tabular.spaces import TUNED

OURS = "rareclass"
SHOWN = (
    OURS,
    "autogluon",
    "flaml",
    "catboost" + TUNED,
    "catboost",
    "lightgbm" + TUNED,
    "lightgbm_slow",
    "lightgbm",
    "xgboost",
    "balanced_forest",
)
# A method that was run on less than this share of the sets is left out.
_LEAST_SETS = 2 / 3
MEASURES = ("auc", "average_precision", "log_loss")
HEADER = ["method", "AUC, %", "average precision, %", "log loss", "seconds of a fit"]
LEVEL = 0.05


class Against(NamedTuple):
    """RareClassifier beside a peer over the sets.

    Attributes
    ----------
    difference : float
        Mean over the sets of RareClassifier minus the peer; positive where the peer is worse.
    p : float or None
        Of Wilcoxon's test, corrected by Holm over the peers; None where nothing differs.
    wins, losses : int
        Sets on which RareClassifier is better, and worse.
    sure_wins, sure_losses : int
        Those of them on which it is significantly so over the splits.
    """

    difference: float
    p: float | None
    wins: int
    losses: int
    sure_wins: int
    sure_losses: int

    @property
    def p_words(self) -> str:
        """The p-value in words."""
        if self.p is None or self.p < 0.001:
            return "p undefined" if self.p is None else "p < 0.001"
        return f"p = {self.p:.2g}"

    @property
    def mark(self) -> str:
        """Return the arrow after the peer's figure; none where nothing is significant."""
        if self.p is None or self.p >= LEVEL:
            return ""
        return " ↓" if self.wins > self.losses else " ↑"


class Standing(NamedTuple):
    """A method over the sets.

    Attributes
    ----------
    means, ranks : dict
        Mean and mean rank by measure.
    seconds, median_seconds : float
        Mean and median of a fit.
    against : dict
        By measure; empty for RareClassifier itself.
    """

    means: dict[str, float]
    ranks: dict[str, float]
    seconds: float
    median_seconds: float
    against: dict[str, Against]


class Headline(NamedTuple):
    """Methods on the same splits of the same sets, whose number `splits` has.

    `groups` has, by measure, the methods that no test tells apart (`level_groups`).
    """

    splits: dict[str, int]
    methods: dict[str, Standing]
    groups: dict[str, list[list[str]]]

    @property
    def sets(self) -> tuple[str, ...]:
        """The sets that all methods finished."""
        return tuple(self.splits)

    @property
    def splits_words(self) -> str:
        """How many splits a set has."""
        least, most = min(self.splits.values()), max(self.splits.values())
        counted = f"{least}" if least == most else f"{least} to {most}"
        return f"{counted} split{'s' if most > 1 else ''}"

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
    tests = {measure: _against(shared, measure) for measure in MEASURES}
    standings = {
        method: Standing(
            {m: fmean(of[method] for of in means[m].values()) for m in MEASURES},
            {m: ranks[m][method] for m in MEASURES},
            fmean(of[method] for of in means["seconds"].values()),
            median(of[method] for of in means["seconds"].values()),
            {m: tests[m][method] for m in MEASURES if method in tests[m]},
        )
        for method in labels
        if shared
    }
    groups = {m: level_groups(means[m], ranks[m]) for m in MEASURES}
    return Headline({name: len(splits) for name, splits in shared.items()}, standings, groups)


def level_groups(
    means: Mapping[str, Mapping[str, float]], ranks: Mapping[str, float]
) -> list[list[str]]:
    """Methods in the order of their ranks, in the longest runs of which no two differ.

    The groups of a critical-difference diagram, by Wilcoxon's test of every pair, corrected by Holm
    over all pairs (Benavoli, Corani and Mangili, JMLR 17, 2016). `means` are by set and method.
    """
    order = sorted(ranks, key=ranks.__getitem__)
    pairs = list(combinations(order, 2))
    tests = holm([across_sets([one[a] - one[b] for one in means.values()]) for a, b in pairs])
    apart = {pair for pair, p in zip(pairs, tests, strict=True) if p is not None and p < LEVEL}
    groups: list[list[str]] = []
    end = 0
    for first in range(len(order)):
        last = first + 1
        while last < len(order) and all((m, order[last]) not in apart for m in order[first:last]):
            last += 1
        if last > end:
            groups, end = [*groups, order[first:last]], last
    return groups


def behind(runs: Sequence[Run], sets: Sequence[str] | None = None) -> dict[str, float]:
    """Return leads of the best peer of two points of average precision or more, by size."""
    labels, shared = _shared(runs, sets, SHOWN)
    found = {}
    for name, splits in shared.items():
        means = {m: fmean(split[m]["average_precision"] for split in splits) for m in labels}
        ours = means.pop(OURS)
        found[name] = 100.0 * (max(means.values()) - ours)
    return {n: v for n, v in sorted(found.items(), key=lambda one: -one[1]) if v >= 2.0}


def title(method: str) -> str:
    """Return the name of a method for readers."""
    tuned = ", tuned" if method.endswith(TUNED) else ""
    return LEARNERS[method.removesuffix(TUNED)].title + tuned


def headline_table(found: Headline) -> str:
    """Return the table in Markdown: mean, mean rank, and the mark of the test over tables."""
    rows = []
    for method, one in found.methods.items():
        row = [title(method)]
        for measure in MEASURES:
            mean = one.means[measure]
            text = f"{mean:.3f}" if measure in LOWER_IS_BETTER else f"{100.0 * mean:.1f}"
            mark = one.against[measure].mark if measure in one.against else ""
            row.append(f"{text} ({one.ranks[measure]:.2f}){mark}")
        rows.append([*row, f"{one.seconds:.1f}"])
    return table(HEADER, rows)


def tests_table(found: Headline) -> str:
    """Return RareClassifier beside each peer: mean difference, tables won and lost, p."""
    header = ["RareClassifier minus", *HEADER[1:4]]
    rows = [
        [title(method), *(_test_cell(one.against[m], m) for m in MEASURES)]
        for method, one in found.methods.items()
        if one.against
    ]
    return table(header, rows)


def verdict(found: Headline, measure: str) -> str:
    """Say in words which peers RareClassifier is ahead of, level with and behind."""
    sides: dict[str, list[str]] = {"ahead of": [], "level with": [], "behind": []}
    for method, one in found.methods.items():
        if one.against:
            mark = one.against[measure].mark.strip()
            side = {"↓": "ahead of", "": "level with", "↑": "behind"}[mark]
            sides[side].append(_in_list(method))
    return "; ".join(f"{side} {', '.join(names)}" for side, names in sides.items() if names)


def beside(found: Headline, method: str, measure: str) -> str:
    """Return RareClassifier minus a peer in words: mean difference over the tables, and p."""
    difference, _, p = _test_cell(found.methods[method].against[measure], measure).split(", ")
    return f"{difference} ({p})" if measure in LOWER_IS_BETTER else f"{difference} points ({p})"


def groups_words(found: Headline, measure: str) -> str:
    """Return the groups of `level_groups` in words."""
    return "; ".join(", ".join(map(_in_list, group)) for group in found.groups[measure])


def _in_list(method: str) -> str:
    name, _, how = title(method).partition(", ")
    return f"{name} ({how})" if how else name


def _test_cell(one: Against, measure: str) -> str:
    unit, digits = (1.0, 3) if measure in LOWER_IS_BETTER else (100.0, 2)
    sign = -1.0 if measure in LOWER_IS_BETTER else 1.0  # as the measure itself is printed
    difference = sign * unit * one.difference
    wins, losses = f"{one.wins} ({one.sure_wins})", f"{one.losses} ({one.sure_losses})"
    return f"{difference:+.{digits}f}, {wins} to {losses}, {one.p_words}"


def _against(shared: dict[str, list[dict[str, Run]]], measure: str) -> dict[str, Against]:
    """Test every peer on one measure: over the splits of each set, and over sets."""
    sign = -1.0 if measure in LOWER_IS_BETTER else 1.0
    tried = next(iter(shared.values()), [{}])[0]
    peers = [m for m in tried if m != OURS] if OURS in tried else []
    gains: dict[str, list[Paired]] = {m: [] for m in peers}
    for splits in shared.values():
        for m in peers:
            sample = [sign * (split[OURS][measure] - split[m][measure]) for split in splits]
            rows = splits[0][OURS]
            gains[m].append(paired(sample, rows["rows"], rows["test_rows"]))
    corrected = holm([across_sets([one.difference for one in gains[m]]) for m in peers])
    return {m: _beside(gains[m], p) for m, p in zip(peers, corrected, strict=True)}


def _beside(gains: list[Paired], p: float | None) -> Against:
    wins, losses = (sum(sign * one.difference > 0.0 for one in gains) for sign in (1.0, -1.0))
    verdicts = [one.verdict() for one in gains]
    sure = verdicts.count("above"), verdicts.count("below")
    return Against(fmean(one.difference for one in gains), p, wins, losses, *sure)


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
