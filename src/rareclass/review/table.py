"""A table to review: typed columns, keys of its rows, and labels by their roles."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.target import absent_label, is_rare, label_counts, positives
from rareclass.encoding.training_table import plan_reading
from rareclass.errors import ErrorKind, counted, nearest_name, setting
from rareclass.fit.rows_on_disk import ENCODED_COPIES, plan_memory
from rareclass.labels.spelling import one_spelling
from rareclass.labels.states import UNKNOWN
from rareclass.machine import size_text
from rareclass.model.model import Model
from rareclass.model.targets import rare_target
from rareclass.review.journal import Header, ReviewJournal, fingerprint_of, unknown_row
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.columns import Column, facts_of
from rareclass.tables.table_file import TableFile, fetch, named_columns, open_rows

# A column with more values without a role than this is hardly a label column.
_MANY_VALUES = 20


class LabelRoles(NamedTuple):
    """Values of a label column by their roles."""

    rare: tuple[str, ...]  # rare classes, in order
    cleared: tuple[str, ...] = ()  # rows known to be none of these


class RoleOptions(NamedTuple):
    """Settings that name labels, and whether each label has to be named."""

    rare: str
    cleared: str
    name_all: bool


REVIEW_OPTIONS = RoleOptions("positive", "rest", name_all=False)
HUNT_OPTIONS = RoleOptions("rare", "cleared", name_all=True)


def roles_in(
    known: Iterable[str],
    target: str,
    roles: LabelRoles,
    options: RoleOptions,
    may_be_new: bool = False,
    cleared_may_be_new: bool = True,
) -> LabelRoles:
    """Return the roles with values as they are written among the `known` ones of a column.

    1, 1.0 and "1" are one value. Values have to be there unless they may be new: cleared ones may
    where a journal takes verdicts. Where no value is known they are as given.

    Raises `InputError` for values that are not there, or have two roles.
    """
    values, taken = pl.Series(list(known), dtype=pl.String), dict[str, str]()

    def written(option: str, wanted: tuple[str, ...], must_occur: bool) -> tuple[str, ...]:
        for value in wanted:
            same = values.filter(pl.Series(is_rare(values, value.strip()), dtype=pl.Boolean))
            if must_occur and same.is_empty() and len(values):
                raise absent_label(option, value, values, target)
            for label in same if len(same) else [value]:
                if taken.setdefault(label, option) != option:
                    raise ErrorKind.COMBINATION.error(
                        f"{label!r} is both {setting(taken[label])} and {setting(option)}.",
                        "Give each value of the column to one of them.",
                        column=target,
                        value=label,
                    )
        return tuple(label for label, of in taken.items() if of == option)

    return LabelRoles(
        written(options.rare, roles.rare, not may_be_new),
        written(options.cleared, roles.cleared, not cleared_may_be_new),
    )


def codes_of(
    labels: pl.Series, target: str, roles: LabelRoles, options: RoleOptions
) -> NDArray[np.int16]:
    """Return k for rows of the k-th rare value, 0 for cleared ones, -1 for rows without a label.

    Raises `InputError` at a value without a role: a guess could turn cases into cleared rows.
    """
    code = dict.fromkeys(roles.cleared, 0)
    code |= {label: k for k, label in enumerate(roles.rare, start=1)}
    known = label_counts(labels.drop_nulls())
    others = [label for label in known if label not in code]
    if not others:
        codes = labels.replace_strict(code, default=UNKNOWN, return_dtype=pl.Int16)
        return codes.fill_null(UNKNOWN).to_numpy()
    value, n_rows = others[0], known[others[0]]
    first_row = 1 + int((labels == value).fill_null(False).arg_max() or 0)
    more = ""
    if len(others) > 1:
        more = f" (and {len(others) - 1} more such value{'s' if len(others) > 2 else ''})"
    remedy = (
        f"Add {setting(options.cleared, value)} or {setting(options.rare, value)}; "
        f"{setting('ignored', value)} takes such rows as unlabelled."
    )
    if len(others) > _MANY_VALUES:
        names = f"{setting('target')} names it"
        remedy = f"Is {target!r} the label column? {names}. If it is: {remedy}"
    raise ErrorKind.LABELS.error(
        f"Column {target!r} holds {value!r} in {counted(n_rows, 'row')}, first in row {first_row}: "
        f"neither rare nor cleared{more}.",
        remedy,
        column=target,
        row=first_row,
        value=value,
    )


@dataclass(frozen=True)
class ReviewTable:
    """A table in memory, of which a person checks rows."""

    file: TableFile  # to read the cells of listed rows as they are written
    frame: pl.DataFrame  # columns that are learned from: float64, datetime or string
    columns: list[Column]  # every column that was looked at, the unused ones too
    target: str
    key: str | None
    keys: list[str]
    labels: pl.Series  # as text, null where unknown
    n_ignored: int = 0  # rows whose label says nothing, and is null

    @property
    def used(self) -> list[Column]:
        """The columns of `frame`."""
        return [column for column in self.columns if column.is_used]

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the keys; where rows have numbers, of all cells but the labels."""
        if self.key is not None:
            return fingerprint_of(self.keys)
        names = [name for name in self.file.columns if name != self.target]
        text = "".join(batch.write_csv(include_header=False) for batch in self.file.batches(names))
        return fingerprint_of(f"{number}:{line}" for number, line in enumerate(text.split("\n")))

    def codes(self, header: Header) -> NDArray[np.int16]:
        """Return the codes of the recorded labels: -1 for unknown ones.

        Raises `InputError` at a label that the header does not have.
        """
        return codes_of(
            self.labels, self.target, LabelRoles(header.rare, header.rest), REVIEW_OPTIONS
        )

    def with_labels(self, journal: ReviewJournal) -> pl.DataFrame:
        """Return the table as written, its labels replaced by the verdicts of a journal."""
        said = {key: verdict.label for key, verdict in journal.verdicts.items()}
        verdicts = pl.Series(self.keys).replace_strict(said, default=None, return_dtype=pl.String)
        labels = pl.select(pl.coalesce(verdicts, self.labels)).to_series()
        return self.cells().with_columns(labels.alias(self.target))

    def cells(self) -> pl.DataFrame:
        """Return the table as it is written."""
        return fetch(self.file)


def read_review_table(
    table: Any,
    target: str,
    key: str | None = None,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    keep: Sequence[str] = (),
    ignored: Sequence[str] = (),
    text: TextSettings = DETECTED,
    memory: int | None = None,
    has_labels: bool = False,
    is_named_first: bool = False,
) -> ReviewTable:
    """Read a table or a file for a review; a table without the target has no labels yet.

    A table that `has_labels` is refused without the target. So is one with a column of nearly that
    name where the target `is_named_first`: no journal or model knows it, and it may be a slip.
    Columns are left out (`drop`), taken as categories, or kept although they look like identifiers.
    Labels that are `ignored` count as unknown. `memory` is the most bytes that may be taken; a
    larger table is refused. Raises `InputError` for whatever is wrong with the file, its columns or
    its keys.
    """
    file = named_columns(open_rows(table, text))
    if has_labels or (is_named_first and nearest_name(target, file.columns)):
        named_columns(file, [target], "target")
    if target not in file.columns:
        unknown = pl.lit(None, pl.String).alias(target)
        file = named_columns(open_rows(fetch(file).with_columns(unknown)))
    if key == target:
        message = f"{setting('key')}: column {key!r} holds the labels."
        remedy = "Name a column whose values differ in all rows, or none."
        raise ErrorKind.COMBINATION.error(message, remedy, column=key)
    if key is not None:
        named_columns(file, [key], "key")
    left_out = [*drop, *({key} - {*drop} if key else ())]
    plan = plan_reading(file, target, left_out, categories, keep)
    if memory is not None:
        _check_memory(file, memory)
    frame, labels = plan.read()
    columns = plan.describe(facts_of(cells) for cells in frame)
    labels = labels.replace(one_spelling(label_counts(labels.drop_nulls())))
    says_nothing = pl.Series(is_rare(labels.fill_null(""), ignored))
    return ReviewTable(
        file,
        frame.select([each.name for each in columns if each.is_used]),
        columns,
        target,
        key,
        _keys(file, key, frame.height),
        labels.set(says_nothing, None),
        int(says_nothing.sum()),
    )


def _check_memory(file: TableFile, limit: int) -> None:
    """Refuse a table that will not fit, before it is read."""
    plan = plan_memory(file, limit)
    needed = ENCODED_COPIES * 4 * plan.n_encoded_columns * plan.n_rows
    if plan.on_disk and needed > limit:
        raise ErrorKind.MEMORY.error(
            f"Ranking all rows of {file.path} needs about {size_text(needed)} of memory (about "
            f"{plan.n_rows:,} rows, {plan.n_encoded_columns} columns once encoded); "
            f"{size_text(limit)} may be used.",
            f"Leave columns out with {setting('drop')}, or give a part of the unlabelled rows.",
        )


def _keys(file: TableFile, key: str | None, n_rows: int) -> list[str]:
    """Return the keys of the rows; raise `InputError` where one is empty or twice there."""
    if key is None:
        return [str(number) for number in range(1, n_rows + 1)]
    cells = fetch(file, [key])[key].cast(pl.String)
    wrong = (cells.is_null() | cells.is_duplicated()).arg_true()
    if len(wrong):
        raise ErrorKind.ROWS.error(
            f"Column {key!r} does not name row {wrong[0] + 1}: {cells[wrong[0]]!r} is empty or not "
            "the only one.",
            "Name a column whose values differ in all rows, or none.",
            column=key,
            row=wrong[0] + 1,
            value=cells[wrong[0]],
        )
    return cells.to_list()


def check_listed(sheet: str, keys: dict[int, str], table: ReviewTable | None = None) -> None:
    """Refuse a list that names a row twice, or one that the table does not have.

    `keys` are those of the list by the number of their row in the `sheet`.
    """
    first, known = dict[str, int](), None if table is None else {*table.keys}
    for row, key in keys.items():
        where = f"{sheet}, row {row}"
        if table is not None and known is not None and key not in known:
            raise unknown_row(where, key, table.keys, table.key, row)
        if first.setdefault(key, row) != row:
            message = f"{where}: row {key!r} of the table stands in row {first[key]}, too."
            raise ErrorKind.ROWS.error(message, "Leave one of them.", row=row, value=key)


def open_journal(
    path: str | Path,
    table: ReviewTable,
    model: Model | None = None,
    positive: str | Sequence[str] | None = None,
    rest: Sequence[str] = (),
    options: RoleOptions = REVIEW_OPTIONS,
) -> ReviewJournal:
    """Open the journal of a table, or start one; further labels are added to one that is there.

    Rare are the `positive` labels, else those of the model, else those of `rare_target`
    in the table. All others of the table and of the model, and those named by `rest`, are not rare.
    `options` are those of the command line that name labels.

    Raises `InputError` where the journal is about another table or other labels, or it is not known
    which label is rare.
    """
    given = LabelRoles(positives(positive), tuple(rest))
    if Path(path).exists():
        journal = ReviewJournal(path)
        journal.check_table(table.target, table.key, table.fingerprint)
        ours = journal.header
        known = dict.fromkeys([*label_counts(table.labels.drop_nulls()), *ours.rare, *ours.rest])
        named = roles_in(known, table.target, given, options, not options.name_all)
        for label in (*named.rare, *named.cleared):
            journal.add_label(label, is_rare=label in named.rare)
    else:
        journal = ReviewJournal.create(path, header_of(table, model, given, options))
    if model is not None and not {*model.rare_class.labels} <= {*journal.header.rare}:
        raise ErrorKind.COMBINATION.error(
            f"The rare class of the model is {', '.join(model.rare_class.labels)}, that of "
            f"{journal.path} is {', '.join(journal.header.rare)}.",
            "Give the model of the journal's target, or start another journal.",
        )
    return journal


def header_of(
    table: ReviewTable, model: Model | None, given: LabelRoles, options: RoleOptions
) -> Header:
    """Return the header of a new journal, as `open_journal` says.

    Where the options name all labels, `InputError` is raised at one of the table without a role.
    """
    counts = label_counts(table.labels.drop_nulls())
    of_model = () if model is None else model.rare_class.labels
    known = dict.fromkeys([*counts, *of_model]) if counts else ()
    named = roles_in(known, table.target, given, options)
    wanted = named.rare or of_model
    if not wanted and len(counts) > 1:
        wanted = rare_target(counts, None).labels
    if not wanted:
        raise ErrorKind.LABELS.error(
            f"Column {table.target!r} does not say which label is rare: it has "
            f"{len(counts)} labels.",
            f"Name the rare one: {setting(options.rare, 'LABEL')}.",
            column=table.target,
        )
    others = [*named.cleared]
    if options.name_all:
        codes_of(table.labels, table.target, LabelRoles(wanted, named.cleared), options)
    else:
        others += [label for label in counts if label not in wanted]
    if model is not None and model.rare_class.rest_label not in wanted:
        others.append(model.rare_class.rest_label)
    rest = tuple(dict.fromkeys(others)) or ("0" if wanted[0] == "1" else "rest",)
    return Header(table.target, wanted, rest, len(table.keys), table.fingerprint, table.key)
