"""The methods of ``rareclass compare``: this package's own, and peers with their defaults.

Peers have the settings that their libraries come with, all cores, and the encoding of the table
that suits them, learned from the training rows alone; the support vector machine has balanced class
weights.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator

from rareclass.compare.out_of_fold import fit_on
from rareclass.decide.rarity_scores import rarity_scores
from rareclass.encoding.encoders import SparseEncoder, TableEncoder, TypedColumns
from rareclass.errors import ErrorKind, needed_for, setting, unknown_name
from rareclass.fit.kernel_methods import RankRCMethod
from rareclass.fit.method import EncodedRows, Terms
from rareclass.fit.mibc_method import MIBCMethod
from rareclass.tables.columns import Column

with needed_for("Comparing methods", "rareclass[cli]"):
    import pandas as pd

_LEAST_FOLDS, _FOLDS = 2, 5
# Most values of a category in histogram boosting.
_HISTOGRAM_VALUES = 255
_MISSING, _RARER = "(missing)", "(rarer values)"


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

    def encoder(self, setting: PeerSettings) -> Any:
        """Return the unfitted encoder; raises `InputError` for sparse rows that it cannot take."""
        if setting.columns:
            return self.encode(setting)
        if self.no_sparse:
            raise ErrorKind.UNSUPPORTED.error(self.no_sparse)
        return SparseEncoder(setting.zero_based)


class PreparedMethod(BaseEstimator):
    """An encoder and a method, learned together from the training rows of one fold."""

    def __init__(self, name: str, setting: PeerSettings) -> None:
        self.name = name
        self.setting = setting

    def fit(
        self, X: Any, y: np.ndarray, sample_weight: Any = None, groups: Any = None, time: Any = None
    ) -> Self:
        """Learn the encoder and the model; y is 1 where rows are rare, else 0."""
        peer = PEERS[self.name]
        self.preparation_ = peer.encoder(self.setting)
        prepared = self.preparation_.fit_transform(X, y, sample_weight)
        self.model_ = fit_on(peer.make(self.setting), prepared, y, sample_weight, groups, time)
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the model, higher for rarer rows."""
        return rarity_scores(self.model_, self.preparation_.transform(X), 1)


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

    words, place = [], 0
    for column in setting.columns:
        if column.reads_as == "string":
            words.append(f"c{place}")
        place += 3 if column.reads_as == "date" else 1
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


def prepared(name: str, setting: PeerSettings) -> PreparedMethod:
    """Return the unfitted method with its encoder.

    Raises `InputError` where it cannot be tried here, or does not take such rows.
    """
    if why := why_not(name):
        raise ErrorKind.MISSING_PACKAGE.error(why)
    PEERS[name].encoder(setting)
    return PreparedMethod(name, setting)


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
