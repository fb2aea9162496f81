"""Leaderboard of methods on a training file, all on the same folds: our own and their peers.

Peers have the settings that their libraries come with, all cores, and the encoding of the table
that suits them, learned from the training rows alone; the support vector machine has balanced class
weights.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator

from rareclass.compare.methods import MethodComparison, Report, compare_methods
from rareclass.compare.out_of_fold import MethodRun, fit_on
from rareclass.compare.score_columns import Comparison, Standings
from rareclass.decide.rarity_scores import rarity_scores
from rareclass.encoding.encoders import SparseEncoder, TableEncoder, TypedColumns
from rareclass.errors import ErrorKind, counted, needed_for, seconds_text, setting, unknown_name
from rareclass.fit.auto_method import AutoMethod
from rareclass.fit.kernel_methods import RankRCMethod
from rareclass.fit.method import EncodedRows, Method, Terms
from rareclass.fit.mibc_method import MIBCMethod
from rareclass.fit.rows_on_disk import VIEW_COPIES, plan_memory
from rareclass.fit.training_set import FitSettings, TrainingSet, read_training_set
from rareclass.folds.dealing import group_numbers, most_folds
from rareclass.folds.score_scale import on_scale_of_folds
from rareclass.machine import available_memory
from rareclass.metrics import average_precision
from rareclass.model.targets import RareClassFacts
from rareclass.tables.columns import Column
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile

with needed_for("Comparing methods", "rareclass[cli]"):
    import pandas as pd

_LEAST_FOLDS, _FOLDS = 2, 5
# Most values of a category in histogram boosting.
_HISTOGRAM_VALUES = 255
_MISSING, _RARER = "(missing)", "(rarer values)"


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
    known = PeerSettings(used, settings.seed, available_memory() // 4, data.zero_based)
    methods, absent = {}, {}
    for name in settings.methods:
        if why := why_not(name) or ("" if used else PEERS[name].no_sparse):
            absent[name] = MethodRun(name, "not tried", why, 0.0, 0)
        else:
            methods[name] = PreparedMethod(name, known)
    if not methods:
        raise ErrorKind.UNSUPPORTED.error("No method can be tried.", _reasons(absent.values()))
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
        raise ErrorKind.UNSUPPORTED.error("No method finished.", _reasons(found.runs))
    by_class = of_classes(found, data, target.rare_labels)
    return Leaderboard(found, found.comparison, data.n_rows, n_rare, target.rare_label, by_class)


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


def _reasons(runs: Iterable[MethodRun]) -> str:
    return " ".join(run.why_not() for run in runs)


class PeerSettings(NamedTuple):
    """Facts and limits that a method may know before it learns."""

    columns: tuple[Column, ...]  # none for sparse rows
    seed: int
    memory: int  # bytes for kernels
    zero_based: bool = True  # of sparse rows


@dataclass(frozen=True)
class PeerMethod:
    """A method by name."""

    make: Callable[[PeerSettings], Any]  # returns the unfitted estimator
    encode: Callable[[PeerSettings], Any]  # returns the unfitted encoder of a table with columns
    package: str | None = None  # to be installed
    no_sparse: str = ""  # why it takes no sparse rows, where it does not


class PreparedMethod(BaseEstimator):
    """An encoder and a method, learned together from the training rows of one fold."""

    def __init__(self, name: str, setting: PeerSettings) -> None:
        self.name = name
        self.setting = setting

    def fit(
        self, X: Any, y: np.ndarray, sample_weight: Any = None, groups: Any = None, time: Any = None
    ) -> Self:
        """Learn the encoder and the model; y is 1 where rows are rare, else 0."""
        peer, known = PEERS[self.name], self.setting
        sparse = SparseEncoder(known.zero_based)
        self.encoder_ = peer.encode(known) if known.columns else sparse
        encoded = self.encoder_.fit_transform(X, y, sample_weight)
        self.model_ = fit_on(peer.make(known), encoded, y, sample_weight, groups, time)
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the model, higher for rarer rows."""
        return rarity_scores(self.model_, self.encoder_.transform(X), 1)


class DefaultFit(BaseEstimator):
    """A method of ``rareclass fit`` with its defaults, on encoded rows."""

    def __init__(self, method: Any, seed: int, memory: int) -> None:
        self.method = method
        self.seed = seed
        self.memory = memory

    def fit(self, X: Any, y: np.ndarray, sample_weight: Any = None) -> Self:
        """Learn; the parameter is chosen by cross-validation where there are rows for folds."""
        codes = y.astype(np.int16)
        folds = min(_FOLDS, int(np.bincount(codes, minlength=2).min()))
        terms = Terms(
            folds if folds >= _LEAST_FOLDS else 0, self.seed, self.memory, 1.0, len(codes)
        )
        self.model_ = self.method.fit(EncodedRows(X, codes, sample_weight), terms, [])
        self.pos_label_ = self.model_.pos_label_
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Return scores, higher for rarer rows."""
        return self.model_.score_samples(X)


def _numbers(setting: PeerSettings) -> Any:
    return TableEncoder(setting.columns, setting.seed, MIBCMethod.numbers)


def _native(setting: PeerSettings) -> Any:
    return NativeCategories(setting.columns)


def _library(
    module: str, name: str, seed: str | None = "random_state", **options: Any
) -> Callable[[PeerSettings], Any]:
    """Estimator of a library, imported when a method needs it; `seed` names its parameter."""

    def make(setting: PeerSettings) -> Any:
        seeded = {} if seed is None else {seed: setting.seed}
        return getattr(import_module(module), name)(**seeded, **options)

    return make


def _catboost(setting: PeerSettings) -> Any:
    from catboost import CatBoostClassifier

    kinds = [column.reads_as for column in setting.columns]
    places = accumulate((3 if kind == "date" else 1 for kind in kinds), initial=0)
    words = [f"c{place}" for kind, place in zip(kinds, places, strict=False) if kind == "string"]
    return CatBoostClassifier(
        random_seed=setting.seed, verbose=False, allow_writing_files=False, cat_features=words
    )


# Quick ones first: what they leave of the time goes to those that follow.
PEERS: Mapping[str, PeerMethod] = {
    "logistic": PeerMethod(
        _library("sklearn.linear_model", "LogisticRegression", seed=None, max_iter=1000), _numbers
    ),
    "lightgbm": PeerMethod(_library("lightgbm", "LGBMClassifier", verbose=-1), _native, "lightgbm"),
    "xgboost": PeerMethod(
        _library("xgboost", "XGBClassifier", enable_categorical=True), _native, "xgboost"
    ),
    "extra-trees": PeerMethod(
        _library("sklearn.ensemble", "ExtraTreesClassifier", n_jobs=-1), _numbers
    ),
    "hgb": PeerMethod(
        _library("sklearn.ensemble", "HistGradientBoostingClassifier"),
        lambda setting: NativeCategories(setting.columns, _HISTOGRAM_VALUES),
        no_sparse="takes no sparse rows.",
    ),
    "balanced-forest": PeerMethod(
        _library("imblearn.ensemble", "BalancedRandomForestClassifier", n_jobs=-1),
        _numbers,
        "imblearn",
    ),
    "svm": PeerMethod(
        _library("sklearn.svm", "SVC", seed=None, class_weight="balanced", cache_size=500), _numbers
    ),
    "auto": PeerMethod(
        _library("rareclass.ensemble.rare_classifier", "RareClassifier", pos_label=1),
        lambda setting: TypedColumns(setting.columns),
        no_sparse="takes no sparse rows: rankrc and mibc do.",
    ),
    "mibc": PeerMethod(
        lambda setting: DefaultFit(MIBCMethod(), setting.seed, setting.memory), _numbers
    ),
    "forest": PeerMethod(
        _library("sklearn.ensemble", "RandomForestClassifier", n_jobs=-1), _numbers
    ),
    "catboost": PeerMethod(_catboost, lambda setting: Words(setting.columns), "catboost"),
    "rankrc": PeerMethod(
        lambda setting: DefaultFit(RankRCMethod(), setting.seed, setting.memory),
        lambda setting: TableEncoder(setting.columns, setting.seed, RankRCMethod.numbers),
    ),
    "easy-ensemble": PeerMethod(
        _library("imblearn.ensemble", "EasyEnsembleClassifier", n_jobs=-1), _numbers, "imblearn"
    ),
}
# Methods that are compared where none are named: the best of those that learn some thousand rows in
# a few seconds.
QUICK_METHODS = (
    "logistic", "lightgbm", "xgboost", "extra-trees", "hgb", "balanced-forest", "auto",
)  # fmt: skip
_PIP = {"imblearn": "imbalanced-learn"}


def check_methods(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return methods as named, each once; the quick ones for no names, every one for "all".

    Raises `InputError` where there is no such method.
    """
    names = tuple(PEERS) if names == ("all",) else names or QUICK_METHODS
    for name in names:
        if name not in PEERS:
            raise unknown_name(f"{setting('methods')}: there is no method {name!r}.", name, PEERS)
    return tuple(dict.fromkeys(names))


def why_not(name: str) -> str:
    """Return the reason why a method cannot be tried here; empty where it can."""
    package = PEERS[name].package
    if package is None or find_spec(package) is not None:
        return ""
    return f"not installed: pip install {_PIP.get(package, package)}"


class NativeCategories(BaseEstimator):
    """Encoder to a pandas table of float64 numbers and categories; missing cells stay missing.

    Dates become seconds, hour and day of the week. With `most_values` the commonest values of a
    column are kept and all others are one value. A value that training lacks becomes missing.
    """

    def __init__(self, columns: Sequence[Column], most_values: int | None = None) -> None:
        self.columns = columns
        self.most_values = most_values

    def fit_transform(self, frame: pl.DataFrame, y: Any = None, weight: Any = None) -> pd.DataFrame:
        """Learn the values of every column of words, and return the rows."""
        words = [column.name for column in self.columns if column.reads_as == "string"]
        self.categories_ = {name: self._values(frame[name]) for name in words}
        return self.transform(frame)

    def transform(self, frame: pl.DataFrame) -> pd.DataFrame:
        """Return the rows; columns are named c0, c1, ...: some libraries refuse some names."""
        columns: list[Any] = []
        for column in self.columns:
            cells = frame[column.name]
            words = column.reads_as == "string"
            columns += [self._words_of(cells)] if words else _numbers_of(cells)
        return pd.DataFrame({f"c{k}": column for k, column in enumerate(columns)})

    def _values(self, cells: pl.Series) -> list[str]:
        values = cells.drop_nulls().value_counts(sort=True)[cells.name].to_list()
        if self.most_values is not None and len(values) > self.most_values:
            return [*sorted(values[: self.most_values - 1]), _RARER]
        return sorted(values)

    def _words_of(self, cells: pl.Series) -> Any:
        values = self.categories_[cells.name]
        if values and values[-1] == _RARER:
            known = cells.is_in(values) | cells.is_null()
            cells = cells.set(~known, _RARER)
        words = cells.to_numpy().astype(object)
        codes = pd.Index(values, dtype=object).get_indexer(words)
        return pd.Categorical.from_codes(codes, values)


class Words(NativeCategories):
    """Encoder to a pandas table of numbers and strings; a missing string is a value of its own."""

    def fit_transform(self, frame: pl.DataFrame, y: Any = None, weight: Any = None) -> pd.DataFrame:
        """Return the rows; nothing is learned, since the method takes new values."""
        return self.transform(frame)

    def _words_of(self, cells: pl.Series) -> np.ndarray:
        return np.array(cells.fill_null(_MISSING).to_list(), dtype=object)


def _numbers_of(cells: pl.Series) -> list[np.ndarray]:
    """Numbers as one float64 column; dates as seconds, hour and day of the week."""
    columns = [cells]
    if cells.dtype.is_temporal():
        columns = [cells.dt.epoch("s"), cells.dt.hour(), cells.dt.weekday()]
    return [column.cast(pl.Float64).fill_null(float("nan")).to_numpy() for column in columns]
