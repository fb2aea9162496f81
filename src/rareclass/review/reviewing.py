"""The loop of a review: learn from all verdicts so far, list the next rows, take verdicts."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin

from rareclass.encoding.hunt import HuntEncoder
from rareclass.encoding.target import labels_as_text
from rareclass.encoding.typed_table import read_as_trained
from rareclass.ensemble.combined_ranking import CombinedRanking
from rareclass.ensemble.rare_classifier import RareClassifier
from rareclass.errors import ErrorKind, InputError
from rareclass.explain.explaining import explain
from rareclass.findings import warnings_as
from rareclass.hunt.case_score import score_unlabelled
from rareclass.labels.states import UNKNOWN, LabelStates
from rareclass.model.explained import explainer_of
from rareclass.model.model import Model
from rareclass.review.journal import Listed, ReviewJournal, Round, Verdict
from rareclass.review.selection import Shares, lean_to_cases, log_rank, select_rows
from rareclass.review.table import ReviewTable, check_listed
from rareclass.tables.table_file import TableFile, batch_rows_for, named_columns, open_rows

Floats = NDArray[np.float64]
# Fewest rare and other rows that a model is trained on; with fewer, rows are scored as in a hunt.
LEAST_RARE, LEAST_OTHERS = 5, 20
# Members where no model names any: quick ones that differ from each other.
QUICK_MEMBERS = ("histogram boosting", "extra trees")
# Verdicts on so many cases weigh as much as the model that was trained elsewhere.
_CASES_OF_A_MODEL = 20
_MOST_REASONS = 3


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
    shares: Shares = Shares(),  # noqa: B008 (never changed)
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
    last = journal.rounds[-1] if journal.rounds else None
    listed = journal.missing().get(len(journal.rounds))
    if last is None or listed is None:
        return None
    place = {key: k for k, key in enumerate(table.keys)}
    rows = np.array([place[row.key] for row in listed])
    return ReviewList(last, _sheet(table, listed, rows, [""] * len(rows)), "", is_open=True)


# -- scores ----------------------------------------------------------------------------------------


def _score(
    table: ReviewTable,
    states: LabelStates,
    points: Floats,
    model: Model | None,
    seed: int,
) -> _Scored:
    """Score all rows by the best that the known labels allow."""
    known = np.flatnonzero(states.code != UNKNOWN)
    is_rare = states.code[known] > 0
    n_rare, n_others = int(is_rare.sum()), int((~is_rare).sum())
    if n_rare >= LEAST_RARE and n_others >= LEAST_OTHERS:
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
    rows: pl.DataFrame,
    is_rare: NDArray[np.bool_],
    model: Model | None,
    seed: int,
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
    cells = pl.concat(list(file.batches(names)))
    keys, labels, *notes = (labels_as_text(cells[name]).fill_null("") for name in names)
    lines = enumerate(zip(keys, labels, *notes, strict=True), start=1)
    said = {
        row: Verdict(key, label, None, "".join(note), corrects, place=f"{file.path}, row {row}")
        for row, (key, label, *note) in lines
        if label
    }
    check_listed(str(file.path), {row: each.key for row, each in said.items()}, table)
    return list(said.values())
