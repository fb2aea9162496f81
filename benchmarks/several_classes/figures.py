"""Means, mean ranks and times of the fits, and the page."""

from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from benchmarks.ledger import Run
from benchmarks.markdown import table
from benchmarks.paired_test import Paired, paired_peers
from benchmarks.several_classes.methods import METHODS, OURS, TWO_CLASSES
from benchmarks.several_classes.tables import TABLES

HEADER = ["method", "average precision, %", "mean rank", "recall within the budget, %",
          "mean rank", "budget shared by class, %", "mean rank", "log loss", "mean rank",
          "median seconds"]  # fmt: skip


class Case(NamedTuple):
    """A split of a table."""

    table: str
    split: int

    @property
    def is_chosen_on(self) -> bool:
        """True where the members that tell classes apart were chosen on the table."""
        return TABLES[self.table].is_chosen_on and self.split == 0


class Standing(NamedTuple):
    """Means of a method over cases, and its mean ranks among the methods; 1 is the best."""

    macro: float
    macro_rank: float
    recall: float
    recall_rank: float
    shared: float
    shared_rank: float
    log_loss: float
    log_loss_rank: float
    seconds: float


Runs = dict[tuple[Case, str], Run]


def by_case(runs: Sequence[Run]) -> Runs:
    """Return the finished fits of several classes by case and method."""
    return {
        (Case(run["table"], run["repeat"]), run["method"]): run
        for run in runs
        if run["status"] == "ok" and run["method"] != TWO_CLASSES
    }


def macro(run: Run) -> float:
    """Mean average precision of the rare classes."""
    return fmean(run["average_precisions"])


def recall(run: Run) -> float:
    """Mean recall of the rare classes within the budget of alerts."""
    return fmean(run["within_budget"])


def shared_recall(run: Run) -> float:
    """Mean recall of the rare classes within the budget of alerts, shared by the classes."""
    return fmean(run["within_shared_budget"])


def log_loss(run: Run) -> float:
    """Log loss of the probabilities of all classes."""
    return float(run["log_loss"])


def leads(
    runs: Runs, cases: Sequence[Case], value: Callable[[Run], float], scale: float
) -> dict[str, Paired]:
    """`RareClassifier` minus each peer times `scale`, the mean of each table being one pair."""
    splits = {name: [c for c in cases if c.table == name] for name in {c.table for c in cases}}

    def means(method: str) -> np.ndarray:
        own = [fmean(value(runs[case, method]) for case in of) for of in splits.values()]
        return scale * np.array(own)

    peers = {method for _, method in runs} - {OURS}
    return paired_peers({peer: means(OURS) - means(peer) for peer in sorted(peers)})


def cases_of(runs: Runs) -> list[Case]:
    """The cases that every method was fitted on, in the order of the tables."""
    methods = {method for _, method in runs}
    cases = {case for case, _ in runs if all((case, method) in runs for method in methods)}
    return sorted(cases, key=lambda case: (list(TABLES).index(case.table), case.split))


def standings(runs: Runs, cases: Sequence[Case]) -> dict[str, Standing]:
    """Return means and mean ranks over these cases, of every method."""
    found = {method for _, method in runs}
    methods = [method for method in METHODS if method in found]

    def column(value: Callable[[Run], float], sign: float) -> list[tuple[float, float]]:
        values = [[value(runs[case, method]) for method in methods] for case in cases]
        ranks = [rankdata([sign * each for each in row]) for row in values]
        return [
            (fmean(row[k] for row in values), float(fmean(row[k] for row in ranks)))
            for k in range(len(methods))
        ]

    average_precision, recalls = column(macro, -1.0), column(recall, -1.0)
    shared = column(shared_recall, -1.0)
    losses = column(log_loss, 1.0)
    return {
        method: Standing(
            *average_precision[k],
            *recalls[k],
            *shared[k],
            *losses[k],
            median(runs[case, method]["seconds"] for case in cases),
        )
        for k, method in enumerate(methods)
    }


def lines(
    runs: Sequence[Run], group: Callable[[Case], bool] = lambda case: True
) -> list[list[str]]:
    """A line a method over the cases of a group, as HEADER names the columns."""
    of = by_case(runs)
    cases = [case for case in cases_of(of) if group(case)]
    if not cases:
        return []
    return [
        [
            method,
            f"{100 * one.macro:.1f}", f"{one.macro_rank:.2f}",
            f"{100 * one.recall:.1f}", f"{one.recall_rank:.2f}",
            f"{100 * one.shared:.1f}", f"{one.shared_rank:.2f}",
            f"{one.log_loss:.3f}", f"{one.log_loss_rank:.2f}",
            f"{one.seconds:.1f}",
        ]
        for method, one in standings(of, cases).items()
    ]  # fmt: skip


def best_peer(found: dict[str, Standing]) -> str:
    """The peer of the best mean rank by macro average precision."""
    return min((name for name in found if name != OURS), key=lambda name: found[name].macro_rank)


class Times(NamedTuple):
    """CPU seconds of `RareClassifier` on a split with all rare classes as one, and with each."""

    case: Case
    n_classes: int
    two: float
    several: float

    @property
    def ratio(self) -> float:
        """How many times as long several classes take."""
        return self.several / self.two


def times(runs: Sequence[Run]) -> list[Times]:
    """Return the seconds of every split that both were fitted on."""
    of = {(Case(run["table"], run["repeat"]), run["method"]): run for run in runs}
    return [
        Times(case, len(run["classes"]), of[case, TWO_CLASSES]["seconds"], run["seconds"])
        for (case, method), run in of.items()
        if method == OURS and (case, TWO_CLASSES) in of
    ]


def page(result: dict[str, Any]) -> str:
    """The section of the results page."""
    runs = result["runs"]
    of = by_case(runs)
    cases = cases_of(of)
    groups: dict[str, Callable[[Case], bool]] = {
        "All": lambda case: True,
        "Not chosen on": lambda case: not case.is_chosen_on,
        "Chosen on": lambda case: case.is_chosen_on,
    }
    parts = [_measured(runs)]
    for name, group in groups.items():
        own = [case for case in cases if group(case)]
        if own:
            n_tables = len({case.table for case in own})
            parts += [f"{name}: {len(own)} splits of {n_tables} tables.",
                      table(HEADER, lines(runs, group))]  # fmt: skip
    parts += _by_table(of, cases) + _by_class(of, cases) + _of_time(runs)
    return "\n\n".join(parts)


def _measured(runs: Sequence[Run]) -> str:
    """Sentences on the figures, and on the tables that nothing was chosen on."""
    return (
        "Average precision is that of each rare class against all other rows, and the mean over "
        "the classes. The budget has as many alerts as there are rare test rows: those of highest "
        "probability of any rare class. A rare row is found when it is among them and its own "
        "class is its most probable one; recall is the mean over the classes. With a budget "
        "that is shared by class, the probabilities of every method are divided by the training "
        "rows of the class to the power 3/4 before rows are ranked and called. Log loss is of the "
        "probabilities of all classes. One thread, two thirds of the rows to learn from; seconds "
        "of fit and probabilities are CPU seconds, because other programs were running"
        f"{_busy(runs)}. "
        "Libraries have their defaults, but for LightGBM's slow trees (learning rate 0.05, "
        f"`min_child_weight=5`), {_trees()} "
        "The members of RareClassifier that tell the classes apart were chosen on the first split "
        f"of {_named(True)}; nothing was chosen on other splits, or on {_named(False)}."
    )


def _busy(runs: Sequence[Run]) -> str:
    cores = [run["cores_of_others"] for run in runs if run.get("cores_of_others") is not None]
    return f" (they kept {median(cores):.1f} cores busy in the median fit)" if cores else ""


def _trees() -> str:
    few = [name for name, recipe in TABLES.items() if recipe.trees < 1000]
    return (
        f"CatBoost's trees ({TABLES[few[0]].trees} on {', '.join(few)}, else 1000) and the trees "
        "of the balanced forest (500; 100 for each class against all others)."
    )


def _named(is_chosen_on: bool) -> str:
    names = [name for name, recipe in TABLES.items() if recipe.is_chosen_on == is_chosen_on]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _by_table(of: Runs, cases: Sequence[Case]) -> list[str]:
    """Macro average precision of every method, a line a table."""
    methods = list(standings(of, cases))
    rows = []
    for name in dict.fromkeys(case.table for case in cases):
        own = [case for case in cases if case.table == name]
        means = [fmean(macro(of[case, method]) for case in own) for method in methods]
        shown = [f"{100 * mean:.1f}" for mean in means]
        best = means.index(max(means))
        shown[best] = f"**{shown[best]}**"
        rows.append([name, *shown])
    return ["Mean average precision of the rare classes in percent, table by table, mean of the "
            "splits:", table(["table", *methods], rows)]  # fmt: skip


def _by_class(of: Runs, cases: Sequence[Case]) -> list[str]:
    """Each class of `RareClassifier` beside the best peer, and what its ranking is made of."""
    peer = best_peer(standings(of, cases))

    def both(own: list[Case], value: Callable[[Run], float]) -> list[str]:
        return [f"{100 * fmean(value(of[c, m]) for c in own):.1f}" for m in (OURS, peer)]

    classes, parts = [], []
    for name in dict.fromkeys(case.table for case in cases):
        own = [case for case in cases if case.table == name]
        first = of[own[0], OURS]
        parts.append([
            name,
            *both(own, lambda run: run["average_precision_of_any"]),
            *both(own, lambda run: run["rare_called_right"]),
        ])  # fmt: skip
        for k, (label, rows) in enumerate(zip(first["classes"], first["rare_rows"], strict=True)):
            classes.append([
                f"{name}: {label}", f"{rows}",
                *both(own, lambda run, k=k: run["average_precisions"][k]),
                *both(own, lambda run, k=k: run["within_budget"][k]),
            ])  # fmt: skip
    beside = [f"average precision, {OURS}", peer]
    return [
        f"The two parts of the task, in percent, RareClassifier and {peer}: average precision of "
        "any rare class against the rest, and rare rows whose most probable rare class is theirs.",
        table(["table", *beside, f"class right, {OURS}", peer], parts),
        "Each class, in percent, mean of the splits:",
        table(["class", "rows", *beside, f"recall within the budget, {OURS}", peer], classes),
    ]


def _of_time(runs: Sequence[Run]) -> list[str]:
    rows = [
        [each.case.table, str(each.n_classes), f"{each.two:.1f}", f"{each.several:.1f}",
         f"{each.ratio:.2f}"]
        for each in times(runs)
    ]  # fmt: skip
    header = ["table", "rare classes", "as one class, s", "as several, s", "ratio"]
    return [
        "CPU seconds of RareClassifier, fit and probabilities, with all rare classes as one and "
        "with each as its own.",
        table(header, rows),
    ]
