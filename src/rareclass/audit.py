r"""Rows whose recorded label is probably wrong, why, and how many there are at most.

1. Score every row by models that did not learn from it: `RareClassifier`, with two deals of folds.
2. List majority rows from the highest down, and rare rows from the lowest up, by mean scores on
   one scale of all folds.
3. Limit the number of each from all scores (`limit_wrong_labels`).

Labels alone cannot tell lost labels from an overlap of the classes: rows of the other class that
score like this one look the same as rows of this class that lost their label. So no number above 0
is the least one, and none is the most likely. An upper limit needs one assumption: labels are wrong
*at random*, that is, a row loses its label whatever its score. Rows that lost and rows that kept
their label are then two samples of one class, and among the rows of the other label that score at
least t there are at least the lost ones that belong there: about :math:`N \le M(t) / S(t)`, with M
the number of these rows and S the share of the class. Where rows lose their label more often the
more they resemble the other class, there may be more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.typed_table import TypedTable, in_memory
from rareclass.ensemble.rare_classifier import RareClassifier
from rareclass.errors import ErrorKind
from rareclass.explain.explaining import explain
from rareclass.explain.near_cases import case_features, nearest_of
from rareclass.labels.spelling import missing_labels, refuse_missing
from rareclass.labels.two_classes import label_column
from rareclass.parameters import check_whole

__all__ = ["Audit", "SuspectRows", "audit"]

Floats = NDArray[np.float64]
MISSED, WRONG = "rare, not recorded", "recorded as rare, is not"
_LEVEL = 0.95
# Thresholds that limit the number, from the highest twentieth of the labelled rows on.
_N_THRESHOLDS, _LEAST_SHARE, _LEAST_ROWS = 10, 0.05, 3
_N_NODES, _N_HALVINGS = 64, 30


@dataclass(frozen=True)
class WrongLabels:
    """Upper limit of the number of rows of a class that carry the label of the other one.

    Attributes
    ----------
    most : float
        With 95 percent confidence there are at most so many, where labels are wrong at random.
    n_labelled : float
        Rows that carry the label of the class.
    """

    most: float
    n_labelled: float

    @property
    def share(self) -> float:
        """Largest share of the rows of the class whose label is wrong."""
        return self.most / (self.n_labelled + self.most)


@dataclass(frozen=True)
class SuspectRows:
    """Rows whose label is probably wrong, the most suspect first.

    Attributes
    ----------
    limit : WrongLabels
        How many such rows there are at most in the table, where labels are wrong at random.
    row : ndarray of int of shape (n,)
        Their numbers in X.
    probability : ndarray of shape (n,)
        Out-of-fold probability of the rare label, by the recorded labels.
    score : ndarray of shape (n,)
        Mean out-of-fold score on one scale of all folds, by which rows are listed.
    case, distance : ndarray of shape (n, k)
        Numbers in X of the nearest other rare rows, and their distances from 0 to 1
        (`rareclass.explain.nearest_cases`).
    reasons : list of list of str
        Columns that speak most against the recorded label, the strongest first
        (`rareclass.explain.explain`).
    contradictions : list of ndarray of int
        Rows with the same cells and the other label.
    """

    limit: WrongLabels
    row: NDArray[np.int64]
    probability: Floats
    score: Floats
    case: NDArray[np.int64]
    distance: Floats
    reasons: list[list[str]]
    contradictions: list[NDArray[np.int64]]


@dataclass(frozen=True)
class Audit:
    """The outcome of an audit.

    Attributes
    ----------
    missed : SuspectRows
        Majority rows that are probably rare.
    wrong : SuspectRows
        Rare rows that probably are not.
    probability, score : ndarray of shape (n_rows,)
        Of every row, out of fold; NaN for rows that no fold held out.
    pos_label : label
        The rare class.
    """

    missed: SuspectRows
    wrong: SuspectRows
    probability: Floats
    score: Floats
    pos_label: Any


class OutOfFold(NamedTuple):
    """Scores and probabilities of every row, means over models; NaN for rows none held out."""

    score: Floats
    pooled: Floats  # on one scale of all folds
    probability: Floats
    weight: Floats  # rows of the table that each stands for
    is_rare: NDArray[np.bool_]
    models: list[RareClassifier]

    def limit(self, of_rare: bool = False) -> WrongLabels:
        """Limit the majority rows that are rare, or the rare rows that are not (`of_rare`).

        By the scores on one scale: on its own fold's scale no row that lost its label scores above
        all majority rows of the fold, as it is one of them, while rows that kept it do.
        """
        seen = ~np.isnan(self.pooled)
        suspect, other = (seen & (self.is_rare == value) for value in (of_rare, not of_rare))
        score = -self.pooled if of_rare else self.pooled
        return limit_wrong_labels(
            score[other], score[suspect], self.weight[other], self.weight[suspect]
        )

    def suspects(self, of_rare: bool = False) -> NDArray[np.int64]:
        """Return the rows of one label, those that score most like the other one first."""
        score = -self.pooled if of_rare else self.pooled
        own = np.flatnonzero(~np.isnan(score) & (self.is_rare == of_rare))
        return own[np.argsort(-score[own], kind="stable")]


def audit(
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    top: int = 50,
    n_repeats: int = 2,
    effort: str = "standard",
    members: Any = "auto",
    n_reasons: int = 3,
    n_cases: int = 3,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool | str = "auto",
) -> Audit:
    """Find rows whose label is probably wrong, and limit how many there are.

    The lists need no assumption. The limits assume labels that are wrong at random
    (`rareclass.audit`).

    Parameters
    ----------
    X : pandas, polars or pyarrow table, or array of shape (n_rows, n_features)
        As for `RareClassifier`.
    y : array-like of shape (n_rows,)
        Two labels, or one frequent label and several rare ones, any of which is then rare.
    sample_weight : array-like of shape (n_rows,) or None
        Number of copies that each row stands for.
    pos_label : label or None, default=None
        The rare class; None is the label of fewer rows.
    top : int, default=50
        Rows to list of each kind.
    n_repeats : int, default=2
        Models with different folds, whose scores are averaged: more are steadier.
    effort : {"quick", "standard", "thorough"}, default="standard"
        Of each model, as for `RareClassifier`.
    members : str or list, default="auto"
        As for `RareClassifier`.
    n_reasons, n_cases : int, default=3
        Columns and nearest rare rows to name for each row.
    random_state : int, default=0
        Seeds folds and members.
    n_jobs : int or None, default=None
        Threads; None is all cores.
    verbose : bool or "auto", default="auto"
        Show progress; "auto" where standard error is a terminal.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        Where no row has a label, or some have none; on fewer than two rare rows, and on parameters
        outside their range.
    ValueError
        On one class.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(400, weights=[0.9], class_sep=2.0, random_state=0)
    >>> recorded = y.copy()
    >>> recorded[np.flatnonzero(y)[:3]] = 0
    >>> found = audit(X, recorded, members=["extra trees"], top=3, verbose=False)
    >>> sorted(found.missed.row.tolist()) == np.flatnonzero(y)[:3].tolist()
    True
    """
    for name, value in (("top", top), ("n_cases", n_cases), ("n_reasons", n_reasons)):
        check_whole(name, value)
    settings = {"pos_label": pos_label, "effort": effort, "members": members}
    settings |= {"random_state": random_state, "n_jobs": n_jobs, "verbose": verbose}
    rows = score_out_of_fold(X, y, n_repeats, sample_weight, **settings)
    model, asked = rows.models[0], (int(top), int(n_reasons), int(n_cases))
    return Audit(
        _suspects(model, X, rows, False, *asked),
        _suspects(model, X, rows, True, *asked),
        rows.probability,
        rows.score,
        model.pos_label_,
    )


def score_out_of_fold(
    X: Any, y: Any, n_repeats: int = 2, sample_weight: Any = None, **settings: Any
) -> OutOfFold:
    """Average the held-out scores of `RareClassifier` models with different folds.

    `settings` are parameters of `RareClassifier`. Raises `InputError` as `audit`.
    """
    check_whole("n_repeats", n_repeats)
    seed = settings.pop("random_state", 0)
    check_whole("random_state", seed, "a whole number", 0)
    check_labels(y)
    models = [
        RareClassifier(random_state=seed + repeat, **settings).fit(X, y, sample_weight)
        for repeat in range(n_repeats)
    ]
    is_rare = np.isin(label_column(y, None), np.atleast_1d(models[0].pos_label_))
    score, pooled, probability, number, weight = np.zeros((5, len(is_rare)))
    for model in models:
        held_out = model.held_out_
        places, scores = held_out["row"], held_out["score"]
        score[places] += scores
        pooled[places] += held_out["pooled"]
        if model.calibration_ is not None:
            probability[places] += model.calibration_(scores)
        weight[places] += held_out.get("weight", 1.0)
        number[places] += 1.0
    number[number == 0.0] = np.nan
    of_table = np.ones(len(is_rare)) if sample_weight is None else np.asarray(sample_weight)
    for rows in (is_rare, ~is_rare):  # those held out stand for all
        weight[rows] *= of_table[rows].sum() / weight[rows].sum()
    return OutOfFold(score / number, pooled / number, probability / number, weight, is_rare, models)


def check_labels(y: Any) -> None:
    """Raise `InputError` where rows have no label, or the rare label has fewer than two rows."""
    labels = label_column(y, None)
    missing = missing_labels(labels)
    if len(labels) and len(missing) == len(labels):
        remedy = "Give labels, or look for cases with rareclass hunt."
        raise ErrorKind.LABELS.error("No row has a label: there is nothing to audit.", remedy)
    refuse_missing(labels)
    counts = np.unique(labels.astype(str) if labels.dtype == object else labels, return_counts=True)
    if len(counts[1]) < 2:
        raise ErrorKind.LABELS.error("The labels hold one class only.", "Give rows of two classes.")
    if counts[1].min() < 2:
        raise ErrorKind.TOO_FEW_ROWS.error(
            "The rare class has 1 row, which cannot be both trained on and held out.",
            "Give more rare rows, or look for cases with rareclass hunt.",
        )


def _suspects(
    model: RareClassifier,
    X: Any,
    rows: OutOfFold,
    of_rare: bool,
    top: int,
    n_reasons: int,
    n_cases: int,
) -> SuspectRows:
    """List the rows of one label that score most like the other, and limit their number."""
    sign, chosen = -1.0 if of_rare else 1.0, rows.suspects(of_rare)[:top]
    cases = np.flatnonzero(rows.is_rare)
    listed = _rows_of(X, chosen)
    features, of_cases = case_features(model, listed), case_features(model, _rows_of(X, cases))
    near = nearest_of(model, features, of_cases, min(n_cases + of_rare, len(cases)))
    places, distances = _without_itself(cases[near.places], near.distances, chosen, n_cases)
    explanation = explain(model, listed)
    told = replace(explanation, contributions=sign * explanation.contributions)
    return SuspectRows(
        rows.limit(of_rare),
        chosen,
        rows.probability[chosen],
        rows.pooled[chosen],
        places,
        distances,
        told.strongest(n_reasons),
        equal_rows_of(model._typed(X), chosen, np.flatnonzero(rows.is_rare != of_rare)),
    )


def _rows_of(X: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of a table or an array."""
    X = in_memory(X)
    frame = nw.from_native(X, pass_through=True)
    return nw.to_native(frame[rows], pass_through=True) if len(X) else X


def _without_itself(
    cases: NDArray[np.int64], distances: Floats, rows: NDArray[np.int64], k: int
) -> tuple[NDArray[np.int64], Floats]:
    """Return the first k cases of each row that are not the row itself."""
    others = np.argsort(cases == rows[:, None], axis=1, kind="stable")[:, :k]
    if cases.shape[1] <= k:
        others = others[:, : max(cases.shape[1] - int((cases == rows[:, None]).any()), 0)]
    return np.take_along_axis(cases, others, axis=1), np.take_along_axis(distances, others, axis=1)


def equal_rows_of(
    table: TypedTable, rows: NDArray[np.int64], among: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Return, for each of some rows, those of others that have the same cells. O(n) a row."""
    found = []
    for row in rows:
        equal = among
        for column in table.columns:
            cells, cell = column.values[equal], column.values[row]
            equal = equal[np.isnan(cells) if cell != cell else cells == cell]
        found.append(equal)
    return found


class TableRows(NamedTuple):
    """The audited rows as their file has them."""

    frame: pl.DataFrame
    number: Sequence[int]  # of each row in the file, from 1
    names: Sequence[str] | None = None  # by a column of identifiers


def audit_frame(found: Audit, rows: TableRows) -> pl.DataFrame:
    """Return a row for each suspect: missed cases first, the most suspect of each kind first.

    Columns: ``suspect``, ``row`` (number in the file), ``name`` where rows have one,
    ``probability``, ``score``, ``reason_1``, ``value_1`` and so on, ``case_1``, ``distance_1`` and
    so on (row numbers, or names, of the nearest rare rows), and ``contradicts``: numbers of rows
    with the same cells and the other label.
    """
    parts = [
        _frame_of(kind, suspects, rows)
        for kind, suspects in ((MISSED, found.missed), (WRONG, found.wrong))
    ]
    return pl.concat(parts, how="diagonal")


def _frame_of(kind: str, suspects: SuspectRows, rows: TableRows) -> pl.DataFrame:
    named = rows.number if rows.names is None else rows.names
    columns: dict[str, Any] = {
        "suspect": pl.Series([kind] * len(suspects.row), dtype=pl.String),
        "row": pl.Series([rows.number[k] for k in suspects.row], dtype=pl.Int64),
    }
    if rows.names is not None:
        columns["name"] = pl.Series([rows.names[k] for k in suspects.row], dtype=pl.String)
    columns |= {"probability": suspects.probability, "score": suspects.score}
    for place in range(max(map(len, suspects.reasons), default=0)):
        names = [each[place] if place < len(each) else None for each in suspects.reasons]
        cells = [
            None if name is None else _text(rows.frame[name][int(row)])
            for row, name in zip(suspects.row, names, strict=True)
        ]
        columns[f"reason_{place + 1}"] = pl.Series(names, dtype=pl.String)
        columns[f"value_{place + 1}"] = pl.Series(cells, dtype=pl.String)
    dtype = pl.Int64 if rows.names is None else pl.String
    for place in range(suspects.case.shape[1]):
        cases = [named[k] for k in suspects.case[:, place]]
        columns[f"case_{place + 1}"] = pl.Series(cases, dtype=dtype)
        columns[f"distance_{place + 1}"] = suspects.distance[:, place]
    others = [" ".join(str(rows.number[k]) for k in each) for each in suspects.contradictions]
    columns["contradicts"] = pl.Series([text or None for text in others], dtype=pl.String)
    return pl.DataFrame(columns)


def _text(cell: Any) -> str | None:
    if cell is None or cell != cell:
        return None
    return f"{cell:.10g}" if isinstance(cell, float) else str(cell)


def limit_wrong_labels(
    own: Any, other: Any, own_weight: Any = None, other_weight: Any = None
) -> WrongLabels:
    r"""Return the 95 percent upper limit of the rows of the other label that belong to the class.

    Parameters
    ----------
    own : array-like of shape (n,)
        Scores of rows with the label of the class, higher for rows more like the class; the label
        of a row has no part in its own score.
    other : array-like of shape (m,)
        Likewise of rows with the other label.
    own_weight, other_weight : array-like or None
        Rows that each stands for.

    Returns
    -------
    WrongLabels
        The limit is the largest N that none of ten thresholds rejects. A threshold is the score of
        the row in place k of the n with the label; the part p of the class above it has a Beta
        distribution whatever the shape of the scores. It rejects N where so few rows of the other
        label as the M above it are improbable:

        .. math:: \int_0^1 P(\mathrm{Bin}(N, p) \le M) \, d\mathrm{Beta}(p; k, n + 1 - k)
            < \frac{0.05}{10}.

        Of weights W on average, a lost label is seen with probability 1 / W. O((n + m) log m).

    Raises
    ------
    ValueError
        Where one of the labels has no rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cases, others = rng.normal(4.0, 1.0, 500), rng.normal(0.0, 1.0, 9_500)
    >>> found = limit_wrong_labels(cases[:400], np.append(others, cases[400:]))
    >>> round(found.most), round(found.share, 2)
    (128, 0.24)
    """
    own, other = (np.asarray(scores, dtype=np.float64).ravel() for scores in (own, other))
    if not len(own) or not len(other):
        raise ErrorKind.LABELS.error(
            "wrong labels are counted among rows of two labels: one has no rows."
        )
    of_own, of_other = (
        np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=np.float64)
        for scores, weight in ((own, own_weight), (other, other_weight))
    )
    n_labelled, by_score = float(of_own.sum()), np.argsort(-own, kind="stable")
    first = min(max(_LEAST_ROWS, _LEAST_SHARE * len(own)), len(own))
    places = np.unique(np.geomspace(first, len(own), _N_THRESHOLDS).astype(int)) - 1
    n_rows = n_labelled**2 / np.square(of_own).sum()  # rows of equal weight
    kept = n_rows * np.cumsum(of_own[by_score])[places] / n_labelled
    order = np.argsort(-other, kind="stable")
    n_above = np.searchsorted(-other[order], -own[by_score[places]], side="right")
    above = np.append(0.0, np.cumsum(of_other[order]))[n_above]
    total = float(of_other.sum())
    unit = float(np.square(of_other).sum()) / total
    seen, every = above / unit, total / min(unit, 1.0)
    lost = _most_lost(kept, n_rows, seen, every, 1.0 / max(unit, 1.0))
    return WrongLabels(min(lost * min(unit, 1.0), total), n_labelled)


def _most_lost(kept: Floats, n_rows: float, seen: Floats, every: float, is_seen: float) -> float:
    """Return the largest number of lost labels, at most `every`, that no threshold rejects.

    Above a threshold are `kept` of the `n_rows` with the label, and `seen` rows of the other label;
    `is_seen` is the probability that a lost label is among the rows.
    """
    from scipy.special import betainc, betaincinv

    node, weight = np.polynomial.legendre.leggauss(_N_NODES)
    part = betaincinv(kept[:, None], n_rows + 1.0 - kept[:, None], (node + 1.0) / 2.0)
    least, most = seen, np.full(len(seen), every)
    for _ in range(_N_HALVINGS):
        number = (least + most) / 2.0
        others = np.maximum(number - seen, 0.0)[:, None]
        probability = betainc(others, seen[:, None] + 1.0, 1.0 - part * is_seen) @ weight / 2.0
        is_probable = probability >= (1.0 - _LEVEL) / len(seen)
        least, most = np.where(is_probable, number, least), np.where(is_probable, most, number)
    return float(most.min())
