"""The methods that ``rareclass compare`` knows: this package's own, and peers with their defaults.

Peers have the settings that their libraries come with, all cores, and the preparation of the table
that suits them; the support vector machine has balanced class weights.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from rareclass.compare.fitting import fit_on
from rareclass.compare.preparation import MOST_HISTOGRAM_VALUES, NativeCategories, Words
from rareclass.decide.rarity_scores import rarity_scores
from rareclass.encoding.tables import SparseEncoder, TableEncoder
from rareclass.encoding.typed_columns import TypedColumns
from rareclass.errors import InputError, nearest_name
from rareclass.fit.kernel_methods import RankRCMethod
from rareclass.fit.method import EncodedRows, Terms
from rareclass.fit.mibc_method import MIBCMethod
from rareclass.tables.columns import Column

_LEAST_FOLDS, _FOLDS = 2, 5


class Setting(NamedTuple):
    """What a method may know before it learns."""

    columns: tuple[Column, ...]  # none for sparse rows
    seed: int
    seconds: float  # for a fold, to methods that keep a time
    memory: int  # bytes for kernels
    zero_based: bool = True  # of sparse rows


@dataclass(frozen=True)
class Peer:
    """A method by name."""

    make: Callable[[Setting], Any]  # gives the unfitted estimator
    prepare: Callable[[Setting], Any]  # gives what makes its rows of a table
    package: str | None = None  # to be installed
    has_budget: bool = False  # keeps to a time by itself
    is_ours: bool = False


class Prepared(BaseEstimator):
    """A method on rows that its preparation makes of a table: learned together, of one fold."""

    def __init__(self, name: str, setting: Setting) -> None:
        self.name = name
        self.setting = setting

    def fit(
        self, X: Any, y: np.ndarray, sample_weight: Any = None, groups: Any = None, time: Any = None
    ) -> Self:
        """Learn the preparation and the model; y is 1 where rows are rare, else 0."""
        peer = PEERS[self.name]
        self.preparation_ = peer.prepare(self.setting)
        prepared = self.preparation_.fit_transform(X, y, sample_weight)
        self.model_ = fit_on(peer.make(self.setting), prepared, y, sample_weight, groups, time)
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the model, higher for rarer rows."""
        return rarity_scores(self.model_, self.preparation_.transform(X), 1)


class AsFitDoes(BaseEstimator):
    """A method of ``rareclass fit`` with its defaults, on encoded rows."""

    def __init__(self, method: Any, seed: int, memory: int) -> None:
        self.method = method
        self.seed = seed
        self.memory = memory

    def fit(self, X: Any, y: np.ndarray, sample_weight: Any = None) -> Self:
        """Learn, choosing its parameter by folds of its own where there are rows for them."""
        codes = y.astype(np.int16)
        folds = min(_FOLDS, int(np.bincount(codes, minlength=2).min()))
        terms = Terms(
            folds if folds >= _LEAST_FOLDS else 0, self.seed, self.memory, 1.0, len(codes)
        )
        self.notes_: list[str] = []
        self.model_ = self.method.fit(EncodedRows(X, codes, sample_weight), terms, self.notes_)
        self.pos_label_ = self.model_.pos_label_
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Return scores, higher for rarer rows."""
        return self.model_.score_samples(X)


def _numbers(setting: Setting) -> Any:
    if not setting.columns:
        return SparseEncoder(setting.zero_based)
    return TableEncoder(setting.columns, random_state=setting.seed)


def _as_rankrc(setting: Setting) -> Any:
    if not setting.columns:
        return _numbers(setting)
    return TableEncoder(setting.columns, setting.seed, RankRCMethod.numbers)


def _native(setting: Setting) -> Any:
    return NativeCategories(setting.columns) if setting.columns else _numbers(setting)


def _histogram(setting: Setting) -> Any:
    if not setting.columns:
        raise InputError("takes no sparse rows.")
    return NativeCategories(setting.columns, MOST_HISTOGRAM_VALUES)


def _words(setting: Setting) -> Any:
    return Words(setting.columns) if setting.columns else _numbers(setting)


def _typed(setting: Setting) -> Any:
    if not setting.columns:
        raise InputError("takes no sparse rows: rankrc and mibc do.")
    return TypedColumns(setting.columns)


def _auto(setting: Setting) -> Any:
    from rareclass.ensemble import RareClassifier

    return RareClassifier(time_budget=setting.seconds, random_state=setting.seed, pos_label=1)


def _rankrc(setting: Setting) -> Any:
    return AsFitDoes(RankRCMethod(), setting.seed, setting.memory)


def _mibc(setting: Setting) -> Any:
    return AsFitDoes(MIBCMethod(), setting.seed, setting.memory)


def _lightgbm(setting: Setting) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=setting.seed, verbose=-1)


def _xgboost(setting: Setting) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(random_state=setting.seed, enable_categorical=True)


def _catboost(setting: Setting) -> Any:
    from catboost import CatBoostClassifier

    words, place = [], 0
    for column in setting.columns:
        if column.reads_as == "string":
            words.append(f"c{place}")
        place += 3 if column.reads_as == "date" else 1
    return CatBoostClassifier(
        random_seed=setting.seed, verbose=False, allow_writing_files=False, cat_features=words
    )


def _hgb(setting: Setting) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=setting.seed)


def _forest(setting: Setting) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=setting.seed, n_jobs=-1)


def _balanced_forest(setting: Setting) -> Any:
    from imblearn.ensemble import BalancedRandomForestClassifier

    return BalancedRandomForestClassifier(random_state=setting.seed, n_jobs=-1)


def _extra_trees(setting: Setting) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(random_state=setting.seed, n_jobs=-1)


def _easy_ensemble(setting: Setting) -> Any:
    from imblearn.ensemble import EasyEnsembleClassifier

    return EasyEnsembleClassifier(random_state=setting.seed, n_jobs=-1)


def _logistic(setting: Setting) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def _svm(setting: Setting) -> Any:
    from sklearn.svm import SVC

    return SVC(class_weight="balanced", cache_size=500)


PEERS: Mapping[str, Peer] = {
    "auto": Peer(_auto, _typed, has_budget=True, is_ours=True),
    "rankrc": Peer(_rankrc, _as_rankrc, is_ours=True),
    "mibc": Peer(_mibc, _numbers, is_ours=True),
    "lightgbm": Peer(_lightgbm, _native, "lightgbm"),
    "xgboost": Peer(_xgboost, _native, "xgboost"),
    "catboost": Peer(_catboost, _words, "catboost"),
    "hgb": Peer(_hgb, _histogram),
    "forest": Peer(_forest, _numbers),
    "balanced-forest": Peer(_balanced_forest, _numbers, "imblearn"),
    "extra-trees": Peer(_extra_trees, _numbers),
    "easy-ensemble": Peer(_easy_ensemble, _numbers, "imblearn"),
    "logistic": Peer(_logistic, _numbers),
    "svm": Peer(_svm, _numbers),
}
_PIP = {"imblearn": "imbalanced-learn"}


def check_methods(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return methods as named, each once; all of them for no names.

    Raises `InputError` where there is no such method.
    """
    for name in names:
        if name not in PEERS:
            near = nearest_name(name, PEERS)
            raise InputError(
                f"--methods: there is no method {name!r}.",
                f"Did you mean {near!r}?" if near else f"There are: {', '.join(PEERS)}.",
            )
    return tuple(dict.fromkeys(names)) or tuple(PEERS)


def why_not(name: str) -> str:
    """Why a method cannot be tried here; nothing where it can."""
    package = PEERS[name].package
    if package is None or find_spec(package) is not None:
        return ""
    return f"not installed: pip install {_PIP.get(package, package)}"


def made(name: str, setting: Setting) -> Prepared:
    """Return the method, not fitted yet, with its preparation.

    Raises `InputError` where it does not take such rows.
    """
    PEERS[name].prepare(setting)
    return Prepared(name, setting)
