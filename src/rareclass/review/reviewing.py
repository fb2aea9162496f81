"""The loop of a review: learn from all verdicts so far, list the next rows, take verdicts.

The rows of a round are chosen by score, where labels teach most, and at random.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import pairwise_distances_argmin

from rareclass.encoding.hunt import HuntEncoder
from rareclass.encoding.target import names_as_text
from rareclass.encoding.typed_table import read_as_trained
from rareclass.ensemble.combined_ranking import CombinedRanking
from rareclass.ensemble.rare_classifier import RareClassifier
from rareclass.errors import ErrorKind, InputError
from rareclass.explain.explaining import explain
from rareclass.findings import warnings_as
from rareclass.hunt.case_score import Floats, score_unlabelled, to_nearest
from rareclass.labels.states import UNKNOWN, CheckReason, LabelStates
from rareclass.model.explained import explainer_of
from rareclass.model.model import Model
from rareclass.parameters import check_number
from rareclass.review.journal import Listed, ReviewJournal, Round, Verdict
from rareclass.review.table import ReviewTable, check_listed
from rareclass.tables.table_file import TableFile, batch_rows_for, fetch, named_columns, open_rows

# Rows looked at for each one that teaches: those that come next in the order of scores.
_SHORTLIST = 20
# Strata of the rows at random, by score; each holds so many times the rows of the one above.
_MOST_STRATA, _GROWTH = 5, 3.0
# Weight of nearness to cases, and squared distances that are as good as none, of the variance.
_NEARNESS, _SAME = 0.25, 1e-3
# Fewest rare and other rows that a model is trained on; with fewer, rows are scored as in a hunt.
LEAST_RARE, LEAST_OTHERS = 5, 20
# Members where no model names any: quick ones that differ from each other.
QUICK_MEMBERS = ("histogram boosting", "extra trees")
# Verdicts on so many cases weigh as much as the model that was trained elsewhere.
_CASES_OF_A_MODEL = 20
_MOST_REASONS = 3


@dataclass(frozen=True)
class Shares:
    """Parts of a round; what they leave goes by score.

    Attributes
    ----------
    teaches : float
        Rows whose labels teach most: uncertain and unlike all rows with a label.
    random : float
        Rows drawn at random.
    """

    teaches: float = 0.1
    random: float = 0.1

    def __post_init__(self) -> None:
        for name, share in vars(self).items():
            check_number(name, share, "from 0 to 1", 0.0, 1.0, "[]", "It is a share of the list.")
        if self.teaches + self.random > 1.0:
            fault = f"Shares of {self.teaches:g} and {self.random:g} are not parts of one list."
            raise ErrorKind.SETTING.error(fault, "Give two that are at most 1 together.")


class Selected(NamedTuple):
    """Rows of a round, as places among the candidates."""

    rows: NDArray[np.intp]
    reason: NDArray[np.str_]
    chance: Floats  # 1 for rows taken by a rule


def select_rows(
    scores: Floats | None,
    points: Floats,
    known: Floats,
    budget: int,
    shares: Shares = Shares(),
    seed: int | Sequence[int] = 0,
) -> Selected:
    """Choose rows among candidates, none twice.

    The rows of highest score come first. Those that teach are, of the rows that follow in the order
    of scores, where the model is least certain, the ones farthest from all known and chosen rows.
    Of all others some are drawn at random: a fixed number from each of a few strata by score, so
    that every row has a known chance above 0, and likely cases a higher one.

    Parameters
    ----------
    scores : ndarray of shape (n,) or None
        Higher is more like a case; None where nothing is known. Equal ones are in random order.
    points : ndarray of shape (n, n_coordinates)
        Coordinates in which unlike rows are far apart.
    known : ndarray of shape (n_known, n_coordinates)
        The rows that have a label.
    budget : int
    shares : Shares
    seed : int or sequence of int
    """
    rng = np.random.default_rng(seed)
    n, is_ordered = min(budget, len(points)), scores is not None
    n_random = min(round(shares.random * n) or int(shares.random > 0.0 and n > 1), n)
    n_score = max(n - n_random - round(shares.teaches * n), 0) if is_ordered else 0
    shuffled = rng.permutation(len(points))
    order = shuffled if scores is None else shuffled[np.argsort(-scores[shuffled], kind="stable")]
    by_score, left = order[:n_score], order[n_score:]
    n_teaches = n - n_score - n_random
    near = left[: max(_SHORTLIST * n_teaches, 1)] if is_ordered else left
    teaching = near[farthest(points[near], np.vstack([known, points[by_score]]), n_teaches)]
    drawn, chance = draw_by_strata(left[~np.isin(left, teaching)], n_random, rng, is_ordered)
    reasons = (CheckReason.SCORE, CheckReason.TEACHES, CheckReason.RANDOM)
    return Selected(
        np.concatenate([by_score, teaching, drawn]),
        np.repeat(np.array(reasons), [len(by_score), len(teaching), len(drawn)]),
        np.concatenate([np.ones(len(by_score) + len(teaching)), chance]),
    )


def lean_to_cases(scores: Floats, points: Floats, cases: Floats, others: Floats) -> Floats:
    """Return scores that nearness to known cases raises; it tells more than a model of few labels.

    Minus the logarithm of the share of rows that score as high, and a quarter of the same of the
    ratio of squared distances, to the nearest known other row by that to the nearest case.
    """
    least = _SAME * points.var(axis=0).sum() or 1.0
    ratio = np.log((to_nearest(points, others) + least) / (to_nearest(points, cases) + least))
    return log_rank(scores) + _NEARNESS * log_rank(ratio)


def log_rank(scores: Floats) -> Floats:
    """Return minus the common logarithm of the share of rows that score as high.

    >>> log_rank(np.array([3.0, 1.0])).round(2).tolist()
    [0.3, -0.0]
    """
    return np.asarray(-np.log10(rankdata(-scores, "max") / len(scores)))


def farthest(points: Floats, known: Floats, n: int) -> NDArray[np.intp]:
    """Choose n points in turn, each the farthest from the known ones and those chosen before."""
    near = to_nearest(points, known)
    chosen: list[int] = []
    while len(chosen) < min(n, len(points)):
        chosen.append(int(np.argmax(near)))
        near = np.minimum(near, to_nearest(points, points[chosen[-1:]]))
        near[chosen] = -np.inf
    return np.array(chosen, np.intp)


def draw_by_strata(
    ordered: NDArray[np.intp], n: int, rng: np.random.Generator, is_ordered: bool = True
) -> tuple[NDArray[np.intp], Floats]:
    """Draw n rows at random from strata of rows in order; return them with their chances."""
    n = min(n, len(ordered))
    # Two rows from each stratum: from one the spread within it could not be told.
    n_strata = max(1, min(n // 2, _MOST_STRATA)) if is_ordered else 1
    size = _GROWTH ** np.arange(n_strata)
    ends = np.round(np.cumsum(size) / size.sum() * len(ordered)).astype(int)
    counts = np.diff(np.round(np.linspace(0, n, n_strata + 1)).astype(int))
    if (np.diff(ends, prepend=0) < counts).any():
        ends, counts = np.array([len(ordered)]), np.array([n])
    drawn, chance = [np.empty(0, np.intp)], [np.empty(0)]
    for first, end, count in zip([0, *ends[:-1]], ends, counts, strict=True):
        if count:
            drawn.append(rng.choice(ordered[first:end], count, replace=False))
            chance.append(np.full(count, count / (end - first)))
    return np.concatenate(drawn), np.concatenate(chance)


@dataclass(frozen=True)
class ReviewList:
    """Rows for a person to check, and by what they were scored.

    Attributes
    ----------
    round : Round
    rows : DataFrame
        A line for each row: ``review row`` (its key), ``review reason``, ``review chance``,
        ``review score``, ``review why``, empty ``review verdict`` and ``review note``, then the
        cells of the table.
    scored_by : str
        "verdicts" (a model trained on all known labels), "model", "cases" (as a hunt does) or
        "nothing" (no rare row is known).
    is_open : bool
        Whether the list is of an earlier round that lacks verdicts.
    """

    round: Round
    rows: pl.DataFrame
    scored_by: str
    is_open: bool = False


@dataclass(frozen=True)
class _Scored:
    """Scores of all rows, and what explains them."""

    scores: Floats | None
    by: str
    estimator: RareClassifier | None = None


def next_rows(
    table: ReviewTable,
    journal: ReviewJournal,
    model: Model | None = None,
    budget: int = 50,
    shares: Shares = Shares(),
    seed: int = 0,
) -> ReviewList:
    """List the rows that a person should check next, as a new round of the journal.

    Parameters
    ----------
    table : ReviewTable
        As `read_review_table` returns it.
    journal : ReviewJournal
        As `open_journal` returns it; the new round is appended to it.
    model : Model, optional
        Model whose scores are used until labels and verdicts suffice to train one, with whose
        members that one is trained.
    budget : int, default=50
        Rows to list; fewer where fewer have no label.
    shares : Shares
        Parts of the list by reason.
    seed : int, default=0
        Seed of the random rows, together with the number of the round.

    Returns
    -------
    ReviewList

    Raises
    ------
    InputError
        Where every row has a label, the budget is not above 0, or the journal is about other rows.
    """
    if budget < 1:
        raise ErrorKind.SETTING.error(
            f"A budget of {budget} rows lists none.", "Give 1 or more.", value=budget
        )
    states = journal.states(table.keys, table.codes(journal.header))
    free = np.flatnonzero(states.code == UNKNOWN)
    if not len(free):
        raise ErrorKind.TOO_FEW_ROWS.error(
            "Every row of the table has a label: there is nothing to review.",
            "Leave the cells of the target empty whose answer is not known.",
        )
    points = np.asarray(HuntEncoder(table.used).fit_transform(table.frame), np.float64)
    scored = _score(table, states, points, model, seed)
    number = len(journal.rounds) + 1
    scores = None if scored.scores is None else scored.scores[free]
    known = points[states.code != UNKNOWN]
    chosen = select_rows(scores, points[free], known, budget, shares, (seed, number))
    rows = free[chosen.rows]
    of_rows = [None] * len(rows) if scores is None else scores[chosen.rows].tolist()
    keys = [table.keys[row] for row in rows]
    facts = zip(keys, chosen.reason.tolist(), chosen.chance.tolist(), of_rows, strict=True)
    listed = tuple(Listed(*each) for each in facts)
    digest = "" if scores is None else hashlib.sha256(scores.tobytes()).hexdigest()[:16]
    why = _reasons(table, states, points, scored, model, rows)
    sheet = _sheet(table, listed, rows, why)
    journal.add_round(Round(number, listed, seed, digest))
    return ReviewList(journal.rounds[-1], sheet, scored.by)


def open_list(table: ReviewTable, journal: ReviewJournal) -> ReviewList | None:
    """Return the rows of the last round that have no verdict yet; None where all have one."""
    listed = journal.missing().get(len(journal.rounds))
    if listed is None:
        return None
    place = {key: k for k, key in enumerate(table.keys)}
    rows = np.array([place[row.key] for row in listed])
    sheet = _sheet(table, listed, rows, [""] * len(rows))
    return ReviewList(journal.rounds[-1], sheet, "", is_open=True)


# -- scores ----------------------------------------------------------------------------------------


def _score(
    table: ReviewTable, states: LabelStates, points: Floats, model: Model | None, seed: int
) -> _Scored:
    """Score all rows by the best that the known labels allow."""
    known = np.flatnonzero(states.code != UNKNOWN)
    is_rare = states.code[known] > 0
    n_rare = int(is_rare.sum())
    if _are_enough(states.code[known]):
        estimator = _trained(table.frame[known], is_rare, model, seed)
        scores = estimator.score_samples(table.frame)
        if model is not None and not _are_enough(states.code[known[~states.checked[known]]]):
            # The model did not learn from these rows, and knows more than few verdicts do.
            share = n_rare / (n_rare + _CASES_OF_A_MODEL)
            by_model = model.score_samples(table.cells())
            scores = share * log_rank(scores) + (1.0 - share) * log_rank(by_model)
        scores = lean_to_cases(scores, points, points[known[is_rare]], points[known[~is_rare]])
        return _Scored(scores, "verdicts", estimator)
    if model is not None:
        return _Scored(np.asarray(model.score_samples(table.cells()), np.float64), "model")
    if not n_rare:
        return _Scored(None, "nothing")
    scores = np.full(len(points), np.nan)
    found = score_unlabelled(points, np.sign(states.code), 1, seed)
    scores[states.code == UNKNOWN] = found.by_value[:, 0]
    return _Scored(scores, "cases")


def _are_enough(code: NDArray[np.int16]) -> bool:
    return bool((code > 0).sum() >= LEAST_RARE and (code == 0).sum() >= LEAST_OTHERS)


def _trained(
    rows: pl.DataFrame, is_rare: NDArray[np.bool_], model: Model | None, seed: int
) -> RareClassifier:
    members: Sequence[str] = QUICK_MEMBERS
    if model is not None and isinstance(model.estimator, CombinedRanking):
        members = tuple(dict.fromkeys(each.name for each in model.estimator.members_))
    with warnings_as([]):
        return RareClassifier(
            members=list(members), random_state=seed, pos_label=1, verbose=False
        ).fit(rows, is_rare.astype(int))


# -- what a person sees ----------------------------------------------------------------------------


def _reasons(
    table: ReviewTable,
    states: LabelStates,
    points: Floats,
    scored: _Scored,
    model: Model | None,
    rows: NDArray[np.intp],
) -> list[str]:
    """Return columns that raise each row's score, and the rare row that is nearest."""
    parts: list[list[str]] = [[] for _ in rows]
    if scored.estimator is not None:
        chosen = table.frame[rows]
        strongest = explain(scored.estimator, chosen).strongest(_MOST_REASONS)
        for k, names in enumerate(strongest):
            parts[k] += [f"{name} = {_shown(chosen[name][k])}" for name in names]
    elif scored.by == "model" and model is not None:
        with suppress(InputError):  # of a model that gives no reasons
            typed = read_as_trained(rows_of(table.file, rows), model.encoder.columns, 1)
            told = explainer_of(model, _MOST_REASONS)(typed)
            for place in range(1, _MOST_REASONS + 1):
                named = told.select(f"reason_{place}", f"value_{place}").rows()
                for part, (name, value) in zip(parts, named, strict=True):
                    part += [] if name is None else [f"{name} = {_shown(value)}"]
    rare = np.flatnonzero(states.code > 0)
    if len(rare):
        for k, nearest in enumerate(rare[pairwise_distances_argmin(points[rows], points[rare])]):
            parts[k].append(f"nearest rare row: {table.keys[nearest]}")
    return ["; ".join(part) for part in parts]


def _shown(cell: Any) -> str:
    return "empty" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell)


def _sheet(
    table: ReviewTable, listed: Sequence[Listed], rows: NDArray[np.intp], why: list[str]
) -> pl.DataFrame:
    own = {"reason": [row.reason for row in listed], "chance": [row.chance for row in listed]}
    own |= {"score": [row.score for row in listed], "why": why}
    return sheet_of(table, rows, own)


ROW, VERDICT, NOTE = "row", "verdict", "note"
_TYPES = {"chance": pl.Float64, "score": pl.Float64, "sure": pl.Float64, "depth": pl.Float64,
          "distance": pl.Float64, "found": pl.Boolean}  # fmt: skip


def sheet_of(table: ReviewTable, rows: Any, own: Mapping[str, Any]) -> pl.DataFrame:
    """Return rows of a table as a list: ``review row``, `own` columns, those to fill in, cells.

    `own` names columns without the word review. The column of labels is left out.
    """
    names: dict[str, Any] = {ROW: [table.keys[row] for row in rows], **own}
    names |= {each: [None] * len(rows) for each in (VERDICT, NOTE)}
    columns = [
        pl.Series(f"review {name}", cells, _TYPES.get(name, pl.String))
        for name, cells in names.items()
    ]
    cells = rows_of(table.file, rows)
    clash = [name for name in cells.columns if name in {each.name for each in columns}]
    return pl.DataFrame(columns).hstack(cells.drop(table.target, *clash))


def rows_of(file: TableFile, wanted: Any) -> pl.DataFrame:
    """Read some rows of a file again, in the order asked for."""
    in_order = np.sort(wanted)
    parts: list[pl.DataFrame] = []
    first = 0
    for batch in file.batches(None, batch_rows_for(len(file.columns))):
        low, high = np.searchsorted(in_order, [first, first + batch.height])
        # An empty part keeps the columns and their types when nothing was found.
        if high > low or not parts:
            parts.append(batch[in_order[low:high] - first])
        first += batch.height
    return pl.concat(parts)[np.argsort(np.argsort(wanted, kind="stable"), kind="stable")]


def read_verdicts(
    sheet: Any, corrects: bool = False, table: ReviewTable | None = None
) -> list[Verdict]:
    """Read the verdicts of a list that a person filled in; rows without a verdict are left out.

    The `sheet` is a table or path with the columns ``review row`` and ``review verdict``, and
    ``review note`` if any. Verdicts that `corrects` may replace others. Raises `InputError` where
    two verdicts are on one row, or one is on a row that the `table` does not have.
    """
    names = [f"review {name}" for name in (ROW, VERDICT)]
    file = named_columns(open_rows(sheet), names)
    note = f"review {NOTE}"
    names += [note] if note in file.columns else []
    cells = fetch(file, names)
    keys, labels, *notes = (names_as_text(cells[name]).fill_null("") for name in names)
    lines = enumerate(zip(keys, labels, *notes, strict=True), start=1)
    said = {
        row: Verdict(key, label, None, "".join(note), corrects, place=f"{file.path}, row {row}")
        for row, (key, label, *note) in lines
        if label
    }
    check_listed(str(file.path), {row: each.key for row, each in said.items()}, table)
    return list(said.values())
