"""A model on a table of which a person checked some rows: measures, and rows for a threshold."""

import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.target import names_as_text
from rareclass.errors import ErrorKind, counted, name_hint, setting
from rareclass.labels.states import CheckReason
from rareclass.metrics.checked import CheckedMeasures, CheckedSample, CheckMethod, checked_measures
from rareclass.model.drift import InputSummary
from rareclass.model.facts import ScoredRows
from rareclass.model.model import Model
from rareclass.model.threshold import CheckedRows
from rareclass.review.journal import Header, Listed, ReviewJournal, Round, Verdict
from rareclass.review.table import check_listed, read_review_table
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.table_file import TableFile, fetch, named_columns, open_rows

KEY, LABEL, REASON, CHANCE = "row", "label", "reason", "chance"
_REASONS = {"alert": CheckReason.SCORE, **{str(each): each for each in CheckReason}}


@dataclass(frozen=True)
class CheckedTable:
    """A table with a journal: the known labels of its rows, and their scores once asked for."""

    model: Model
    data: Any
    text: TextSettings
    sample: CheckedSample
    incomplete: tuple[int, ...]  # numbers of rounds that do not count for want of verdicts

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Scores of all rows."""
        file = open_rows(self.data, self.text)
        batches = self.model.score_batches(file, [], InputSummary())
        return np.concatenate([batch.scores for batch in batches])

    def rows_that_count(self) -> NDArray[np.bool_]:
        """Say of each row whether its label has a weight.

        Raises `InputError` where no checked row stands for the unknown ones.
        """
        y, weight, spread = self.sample
        if not spread.any() and (y < 0).any():
            name = Path(self.data).name if isinstance(self.data, str | Path) else "the table"
            raise ErrorKind.UNSUPPORTED.error(
                f"No row of {name} was drawn at random: the unknown labels of "
                f"{counted(int((y < 0).sum()), 'row')} could be any.",
                f"Check some random rows (rareclass review {setting('random')}), or give "
                "labelled rows.",
            )
        return weight > 0.0

    def rows(self) -> CheckedRows:
        """Return the checked rows with their weights, and the scores of all, for a threshold."""
        places, (y, weight, _) = np.flatnonzero(self.rows_that_count()), self.sample
        known = y[places].astype(np.int16), self.scores[places], weight[places], places
        return CheckedRows(ScoredRows(*known), self.scores, self.sample)


def evaluate_checked(
    model: Model,
    data: Any,
    journal: str | Path,
    *,
    method: str = CheckMethod.STRATIFIED,
    separator: str | None = None,
    encoding: str | None = None,
) -> CheckedMeasures:
    """Estimate how good a model is on a table of which only some rows were checked.

    Parameters
    ----------
    model : Model
        Of a rare class; it did not learn from the verdicts.
    data : table or path
        All rows, checked or not.
    journal : str or Path
        Journal of ``rareclass review``, or a CSV file of checked rows as for `import_checks`.
    method : {"stratified", "weights", "model-assisted"}
        As for `rareclass.metrics.checked_measures`.
    separator, encoding : str, optional
        Of texts, as for `rareclass.rows.from_table`.

    Raises
    ------
    InputError
        Where the journal is about another table or other labels (``ErrorKind.ROWS``,
        ``ErrorKind.LABELS``), no checked row is rare, or random rows lack verdicts.
    """
    table = read_checked(model, data, journal, TextSettings(separator, encoding))
    calibration, probability = model.rare_calibration, None
    if method == CheckMethod.ASSISTED and calibration is not None:
        probability = calibration(table.scores)
    return checked_measures(
        table.scores, table.sample, model.threshold, method=method, probability=probability
    )


def read_checked(
    model: Model, data: Any, journal: str | Path, text: TextSettings = DETECTED
) -> CheckedTable:
    """Read the journal of a table, or its CSV file of checked rows."""
    facts = model.rare_class  # refuses a model of levels
    if str(journal).lower().endswith((".csv", ".tsv")):
        with tempfile.TemporaryDirectory() as folder:
            kept = import_checks(model, data, journal, Path(folder, "checked.jsonl"), text)
        kept.path = Path(journal)  # for messages
    else:
        kept = ReviewJournal(journal)
    table = read_review_table(data, kept.header.target, kept.header.key, text=text)
    kept.check_table(kept.header.target, kept.header.key, table.fingerprint)
    states = kept.states(table.keys, table.codes(kept.header))
    _check_labels(kept, model)
    _check_rounds(kept)
    is_rare = [label in facts.labels for label in kept.header.rare]
    code = np.array([-1, 0, *is_rare])[states.code + 1]
    sample = CheckedSample(code.astype(np.int8), states.weight, states.spread)
    return CheckedTable(model, data, text, sample, tuple(kept.missing()))


def import_checks(
    model: Model, data: Any, checks: Any, path: str | Path, text: TextSettings = DETECTED
) -> ReviewJournal:
    """Write a journal of rows that were checked outside of a review, such as alerts.

    `checks` is a table or file with a column that names the rows (``row``: their numbers from 1;
    else a column of the same name in `data`), ``label``, ``reason`` (``alert`` or ``random``), and
    maybe ``chance``. Without a chance alerts were all checked, and random rows drawn from all rows
    that are no alerts, each with the same chance. A row of chance below 1 was drawn at random.

    Raises `InputError` for columns, labels, reasons, chances and rows that cannot be.
    """
    facts = model.rare_class
    file = named_columns(open_rows(checks, text))
    rows = _read_checks(file, facts.known)
    key = None if rows.columns[0] == KEY else rows.columns[0]
    table = read_review_table(data, facts.target, key, text=text)
    keys = rows[rows.columns[0]].fill_null("").to_list()
    check_listed(str(file.path), dict(enumerate(keys, 1)), table)
    is_random = (rows[REASON] == CheckReason.RANDOM).to_numpy()
    n_others = table.labels.null_count() - int((~is_random).sum())
    usual = np.where(is_random, is_random.sum() / max(n_others, 1), 1.0)
    chance = rows[CHANCE].fill_null(pl.Series(usual)).to_numpy()
    reason = np.where(chance < 1.0, CheckReason.RANDOM, rows[REASON].to_numpy())
    rest = dict.fromkeys([*facts.known, *table.labels.drop_nulls()])
    labels = facts.labels, tuple(label for label in rest if label not in facts.labels)
    header = Header(facts.target, *labels, len(table.keys), table.fingerprint, key)
    journal = ReviewJournal.create(path, header)
    listed = zip(keys, reason.tolist(), chance.tolist(), strict=True)
    journal.add_round(Round(1, tuple(Listed(*row) for row in listed)))
    said = zip(keys, rows[LABEL], strict=True)
    journal.add([Verdict(row, label) for row, label in said if label], table.keys)
    return journal


def _read_checks(file: TableFile, labels: tuple[str, ...]) -> pl.DataFrame:
    """Read key, label, reason and chance of checked rows; refuse cells that cannot be."""
    cells = fetch(file)
    names = [name for name in cells.columns if name not in (LABEL, REASON, CHANCE)]
    if len(names) != 1 or not {LABEL, REASON} <= {*cells.columns}:
        raise ErrorKind.MISSING_COLUMN.error(
            f"Checked rows have the columns {', '.join(cells.columns)}.",
            f"Give a column that names the rows, {LABEL!r}, {REASON!r} and maybe {CHANCE!r}.",
        )
    if CHANCE not in cells.columns:
        cells = cells.with_columns(pl.lit(None, pl.Float64).alias(CHANCE))
    texts = cells.select(names_as_text(cells[name]) for name in (*names, LABEL, REASON, CHANCE))
    chance = texts[CHANCE].cast(pl.Float64, strict=False)
    known = [None, *labels]
    for name, is_odd, among, kind in (
        (LABEL, ~texts[LABEL].is_in(known, nulls_equal=True), known, ErrorKind.LABELS),
        (REASON, ~texts[REASON].is_in([*_REASONS]).fill_null(False), _REASONS, ErrorKind.CELL),
        (CHANCE, chance.is_null() & texts[CHANCE].is_not_null(), (), ErrorKind.CELL),
    ):
        if is_odd.any():
            row = int(is_odd.arg_true()[0])
            raise kind.error(
                f"{file.path}, row {row + 1}: column {name!r} holds {texts[name][row]!r}.",
                name_hint(str(texts[name][row]), [str(each) for each in among], "It may hold"),
                column=name,
                row=row + 1,
                value=texts[name][row],
            )
    return texts.with_columns(chance, texts[REASON].replace(_REASONS))


def _check_labels(journal: ReviewJournal, model: Model) -> None:
    """Refuse a journal with verdicts of a rare class that the model does not know."""
    rare, facts = {*journal.header.rare}, model.rare_class
    new = {each.label for each in journal.verdicts.values()} & rare - {*facts.known}
    if new or not {*facts.labels} & rare:
        label = min(new or journal.header.rare)
        raise ErrorKind.LABELS.error(
            f"The model does not know {label!r}, a rare class of {journal.path}.",
            f"Its rare class is {', '.join(facts.labels)}. Fit a model on labels with {label!r}.",
            column=facts.target,
            value=label,
        )


def _check_rounds(journal: ReviewJournal) -> None:
    """Refuse a journal whose random rows all wait for verdicts."""
    missing = journal.missing()
    reasons = {each.number: {row.reason for row in each.listed} for each in journal.rounds}
    random = [number for number, every in reasons.items() if CheckReason.RANDOM in every]
    if random and missing.keys() >= {*random}:
        n_rows = len(missing[random[-1]])
        raise ErrorKind.LABELS.error(
            f"No round of {journal.path} counts: {counted(n_rows, 'row')} of round {random[-1]} "
            "have no verdict.",
            "Give the verdicts of all rows of a round first.",
            value=n_rows,
        )
