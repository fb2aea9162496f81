"""Leaderboard of methods on a training file, all on the same folds."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rareclass.compare.methods import MethodComparison, Report, compare_methods
from rareclass.compare.out_of_fold import MethodRun
from rareclass.compare.peers import PeerSettings, prepared, why_not
from rareclass.compare.score_columns import Comparison, Standings
from rareclass.errors import ErrorKind, InputError, counted, seconds_text, setting
from rareclass.fit.auto_method import AutoMethod
from rareclass.fit.kernel_methods import RankRCMethod
from rareclass.fit.method import Method
from rareclass.fit.rows_on_disk import VIEW_COPIES, plan_memory
from rareclass.fit.training_set import FitSettings, TrainingSet, read_training_set
from rareclass.folds.dealing import group_numbers, most_folds
from rareclass.folds.score_scale import on_scale_of_folds
from rareclass.machine import available_memory
from rareclass.metrics import average_precision
from rareclass.model.targets import RareClassFacts
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile


@dataclass(frozen=True)
class CompareSettings(FitSettings):
    """Columns and folds of a comparison, as of a training, and the methods."""

    methods: tuple[str, ...] = ()
    seconds: float | None = None  # a method that takes longer, all folds together, is stopped
    ks: tuple[float, ...] = ()  # beside the number of rare rows

    def plan(self) -> str:
        """Return what is going to be done, and how long it may take."""
        names = [name for name in self.methods if not why_not(name)]
        what = f"Plan: {counted(len(names), 'method')} on the same {self.folds} folds"
        if self.seconds is not None:
            what += f", each stopped after {seconds_text(self.seconds)}"
        return f"{what}. {', '.join(names)}."


@dataclass(frozen=True)
class Leaderboard:
    """Methods, the best first."""

    found: MethodComparison
    comparison: Comparison  # that of `found`
    n_rows: int
    n_rare: int
    rare_label: str

    # methods: average precision of each of several rare classes against the majority
    of_classes: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def ordered_by(self) -> Standings:
        """Standings by the measure that orders the methods."""
        return self.comparison.by("average_precision")

    @property
    def runs(self) -> list[MethodRun]:
        """Runs, the best first; those without scores come last."""
        place = {each.name: k for k, each in enumerate(self.ordered_by.standings)}
        return sorted(self.found.runs, key=lambda run: place.get(run.name, len(place)))

    def rows(self) -> list[dict[str, Any]]:
        """Return a flat dictionary a method, the best first."""
        rows = []
        for run in self.runs:
            row: dict[str, Any] = {"method": run.name, "status": run.status, "why": run.message}
            for standings in self.comparison.measures:
                key = standings.words.replace(" ", "_").lower()
                ends = ("", "_low", "_high", "_less_the_best", "_p", "_significant")
                numbers: list[Any] = [None] * len(ends)
                if run.is_judged:
                    each = standings.of(run.name)
                    numbers = [*each.interval, 0.0, None, None]
                    if (test := each.beside_the_best) is not None:
                        numbers[3:] = test.difference, test.p_adjusted, test.significant
                row |= {f"{key}{end}": n for end, n in zip(ends, numbers, strict=True)}
            rows.append(row | {"seconds": run.seconds})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return dictionaries, lists, words and numbers, for JSON."""
        about = {"n_rows": self.n_rows, "n_rare": self.n_rare, "rare_label": self.rare_label}
        of_classes = {"average_precision_of_classes": self.of_classes} if self.of_classes else {}
        return {**about, "leaderboard": self.rows(), **of_classes, **self.found.to_dict()}


def read_compared(file: TableFile | SvmlightFile, settings: CompareSettings) -> TrainingSet:
    """Read a training file that fits into memory; copies of a row become its weight.

    Raises `InputError` for a file that cannot be read, and where there are too few rare rows, or
    groups of them, for the folds.
    """
    if plan_memory(file, available_memory(), VIEW_COPIES).on_disk:
        raise ErrorKind.MEMORY.error(
            f"{file.path} is larger than a quarter of the memory, and not all methods read from "
            "disk.",
            "Compare on a part of the rows.",
        )
    method: Method = RankRCMethod() if isinstance(file, SvmlightFile) else AutoMethod()
    data = read_training_set(file, replace(settings, method=method))
    _check_folds(data, settings)
    return data


def _check_folds(data: TrainingSet, settings: CompareSettings) -> None:
    if settings.time is not None:
        return
    what, possible = "distinct rows", int(min(data.rare.sum(), (~data.rare).sum()))
    if settings.groups is not None:
        what = f"groups by {settings.groups}"
        group = group_numbers(data.groups, len(data.y), setting("groups", settings.groups))
        possible = min(possible, most_folds(data.rare, group))
    if possible < settings.folds:
        raise ErrorKind.TOO_FEW_ROWS.error(
            f"These {what} make {counted(possible, 'fold')} with rows of both classes at most, "
            f"not {settings.folds}.",
            f"Give {setting('folds', possible)}." if possible > 1 else "Give more rare rows.",
            value=settings.folds,
        )


def compare_on(
    data: TrainingSet, settings: CompareSettings, isolate: bool = True, report: Report | None = None
) -> Leaderboard:
    """Compare methods on the folds of a training set, each in a process of its own.

    `report` is called after each method, as `compare_methods` calls it.

    Raises `InputError` with the reasons where no method has scores.
    """
    used = tuple(column for column in data.columns if column.is_used)
    setting = PeerSettings(used, settings.seed, available_memory() // 4, data.zero_based)
    methods, absent = {}, {}
    for name in settings.methods:
        try:
            methods[name] = prepared(name, setting)
        except InputError as error:
            absent[name] = MethodRun(name, "not tried", error.message, 0.0, 0)
    if not methods:
        reasons = _reasons(list(absent.values()))
        raise ErrorKind.UNSUPPORTED.error("No method can be tried.", reasons)
    target = data.target
    assert isinstance(target, RareClassFacts)
    n_rare = target.label_counts[target.rare_label]
    found = compare_methods(
        data.rows,
        data.y.astype(int),
        methods,
        settings.folds,
        groups=data.groups,
        time=data.time,
        sample_weight=data.weight,
        k=[None, *sorted(settings.ks)],
        pos_label=1,
        time_budget=settings.seconds,
        report=report,
        isolate=isolate,
        random_state=settings.seed,
    )
    every = {run.name: run for run in found.runs} | absent
    found = replace(found, runs=tuple(every[name] for name in settings.methods))
    if found.comparison is None:
        raise ErrorKind.UNSUPPORTED.error("No method finished.", _reasons(list(found.runs)))
    by_class = of_classes(found, data, target.rare_labels)
    about = (data.n_rows, n_rare, target.rare_label, by_class)
    return Leaderboard(found, found.comparison, *about)


def of_classes(
    found: MethodComparison, data: TrainingSet, names: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return the average precision of each rare class, rows of other rare classes left out.

    The scores are of any rare class, on the scale of all folds.
    """
    if data.which is None:
        return {}
    which = data.which[found.rows]
    weight = np.ones(len(which)) if data.weight is None else data.weight[found.rows]
    by_method: dict[str, dict[str, float]] = {}
    for method, scores in found.scores.items():
        rates, by_method[method] = on_scale_of_folds(which >= 0, scores, found.fold, weight), {}
        for k, name in enumerate(names):
            rows = (which == k) | (which < 0)
            if (which == k).any():
                ap = average_precision(which[rows] == k, rates[rows], weight[rows])
                by_method[method][name] = float(ap)
    return by_method


def _reasons(runs: list[MethodRun]) -> str:
    return " ".join(run.why_not() for run in runs)
