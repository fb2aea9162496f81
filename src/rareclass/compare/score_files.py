"""Files of scores from any source: read, matched row by row, and compared."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rareclass.compare.score_columns import Comparison, compare_scores
from rareclass.encoding.target import Positive, is_rare, label_counts, labels_as_text, names_as_text
from rareclass.errors import ErrorKind, InputError, counted, missing_column, name_hint, setting
from rareclass.labels.spelling import label_value
from rareclass.model.targets import rare_target
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.cells import is_text_type, shown, without_empty_marks
from rareclass.tables.reading import group_words
from rareclass.tables.table_file import TablePlace, fetch, named_columns, open_table

# Usual names of a column of scores; the first that exists is taken.
_USUAL = ("score", "probability")


@dataclass(frozen=True)
class ScoreFiles:
    """Files of scores, and the columns that hold scores, labels, ids, groups and weights."""

    paths: tuple[TablePlace, ...]
    target: str
    truth: Path | None = None  # file with the labels; None: one of the files of scores
    scores: tuple[str, ...] = ()  # columns; empty: the usual name, or the only column of numbers
    id_column: str | None = None  # matches rows; None: rows are in the same order
    groups: str | None = None
    positive: Positive = None  # label of the rare class, or several; by default the rarer of two
    ks: tuple[float, ...] = ()  # for precision at k, in addition to the number of rare rows
    text: TextSettings = DETECTED
    weight: str | None = None  # column with the copies that each row stands for
    by: str | None = None  # column for whose values rows are also compared separately


class ScoreHome(NamedTuple):
    """File and column that scores were read from."""

    file: str
    column: str


@dataclass(frozen=True)
class ComparedFiles:
    """Comparison of the scores of files."""

    comparison: Comparison
    rare_label: str
    columns: dict[str, ScoreHome]
    by: dict[str, Comparison] = field(default_factory=dict)  # of the rows of each value alone
    not_judged: dict[str, str] = field(default_factory=dict)  # values without one, and why

    def to_dict(self) -> dict[str, Any]:
        """Return dictionaries, lists, words and numbers, for JSON."""
        return {
            "rare_label": self.rare_label,
            "columns": {name: home._asdict() for name, home in self.columns.items()},
            **self.comparison.to_dict(),
            "by": {value: found.to_dict() for value, found in self.by.items()},
            "not_judged": self.not_judged,
        }


class ScoreTable(NamedTuple):
    """A file of scores, with its rows in the order of the first file."""

    path: TablePlace
    frame: pl.DataFrame


def compare_score_files(files: ScoreFiles) -> ComparedFiles:
    """Compare the score columns of files by AUC, average precision and precision at k.

    Raises `InputError` where the files are of different rows, an id occurs twice, a label or score
    is missing, a probability is not between 0 and 1, a column is all tied, or there is one class.
    """
    read = read_score_files(files)
    comparison = _compared(read, slice(None), [None, *sorted(files.ks)])
    found, not_judged = dict[str, Comparison](), dict[str, str]()
    for value in sorted(set(read.by)):
        own = read.by == value
        try:
            found[value] = _compared(read, own)
        except ValueError as error:
            reason = error.message if isinstance(error, InputError) else str(error)
            not_judged[value] = reason if read.y[own].any() else "it has no rare rows."
    return ComparedFiles(comparison, read.rare_label, read.homes, found, not_judged)


def _compared(read: "ReadScores", rows: Any, k: Any = None) -> Comparison:
    columns = {name: column[rows] for name, column in read.columns.items()}
    weight, groups = (None if each is None else each[rows] for each in (read.weight, read.groups))
    return compare_scores(read.y[rows], columns, k=k, sample_weight=weight, groups=groups)


class ReadScores(NamedTuple):
    """Score columns of the same rows, with their classes."""

    columns: dict[str, np.ndarray]
    homes: dict[str, ScoreHome]
    rare_label: str
    y: np.ndarray
    groups: np.ndarray | None
    weight: np.ndarray | None = None
    by: np.ndarray = np.empty(0, object)  # as text; empty where rows are not split


def read_score_files(files: ScoreFiles) -> ReadScores:
    """Read score files and match their rows; raises `InputError` as `compare_score_files`."""
    tables = _matched(files)
    truth = tables[-1] if files.truth is not None else None
    scored = tables if truth is None else tables[:-1]
    labels = _labels(scored if truth is None else [truth], files)
    rare = rare_target(label_counts(labels), files.positive)
    y = is_rare(labels, rare.labels)
    columns, homes = {}, {}
    for table in scored:
        names = list(files.scores) or [_only_scores(table, files)]
        for name in names:
            known = _name(table, name, scored, names)
            columns[known] = _numbers(table, name)
            homes[known] = ScoreHome(str(table.path), name)
    if len(columns) < 2:
        raise ErrorKind.TOO_FEW_ROWS.error(
            "There is only one column of scores, and nothing to compare.",
            "Give two files of scores, or name two columns of a file.",
        )
    groups = None
    if files.groups is not None:
        cells = _beside(tables, files.groups)
        groups = group_words(cells, np.arange(1, len(cells) + 1), setting("groups")).to_numpy()
    weight, by = None, np.empty(0, object)
    if files.weight is not None:
        weight = _weights(_beside(tables, files.weight, "weight"), files.weight)
    if files.by is not None:
        by = names_as_text(_beside(tables, files.by, "by")).to_numpy()
    return ReadScores(columns, homes, rare.rare_label, y, groups, weight, by)


def _weights(cells: pl.Series, name: str) -> np.ndarray:
    """Read weights of at least 0; raises `InputError` with the row of a cell that is none."""
    numbers = _as_numbers(cells)
    if (row := _first(~(numbers.is_finite() & (numbers >= 0.0)))) is not None:
        message = f"{setting('weight', name)} is {shown(cells[row])} at row {row + 1}."
        remedy = "Give a number of rows, at or above 0, in every row."
        raise ErrorKind.CELL.error(message, remedy, column=name, row=row + 1, value=cells[row])
    return numbers.to_numpy()


def _as_numbers(cells: pl.Series) -> pl.Series:
    """Cells as numbers, null where a cell holds none."""
    cells = _as_text(cells) if is_text_type(cells.dtype) else cells
    return cells.cast(pl.Float64, strict=False)


def _as_text(cells: pl.Series) -> pl.Series:
    return without_empty_marks(cells.cast(pl.String))


def _first(is_bad: pl.Series) -> int | None:
    """Place of the first cell that is bad, or null; None where there is none."""
    is_bad = is_bad.fill_null(True)
    return is_bad.arg_max() if is_bad.any() else None


def _matched(files: ScoreFiles) -> list[ScoreTable]:
    """Read tables, with their rows in the order of the first; the one of the labels is last."""
    paths = [*files.paths, *filter(None, [files.truth])]
    frames = [fetch(named_columns(open_table(path, files.text))) for path in paths]
    tables = list(map(ScoreTable, paths, frames))
    first = tables[0]
    if files.id_column is None:
        for table in tables[1:]:
            if table.frame.height != first.frame.height:
                raise ErrorKind.ROWS.error(
                    f"{table.path} has {counted(table.frame.height, 'row')} and {first.path} "
                    f"{first.frame.height:,}.",
                    f"Give scores of the same rows, or {setting('id_column')} with a column that "
                    "names them.",
                )
            _check_order(first, table)
        return tables
    ids = [_ids(table, files.id_column) for table in tables]
    matched = [first]
    for table, own in zip(tables[1:], ids[1:], strict=True):
        for one, other, lacks in ((ids[0], own, table), (own, ids[0], first)):
            missing = one.filter(~one.is_in(other.implode()))
            if len(missing):
                raise ErrorKind.ROWS.error(
                    f"{lacks.path} has no row with {files.id_column} = {missing[0]}"
                    + (f", nor {counted(len(missing) - 1, 'other')}." if len(missing) > 1 else "."),
                    "Give scores of the same rows.",
                    column=files.id_column,
                    value=missing[0],
                )
        place = pl.DataFrame({"id": own, "row": np.arange(len(own))})
        order = pl.DataFrame({"id": ids[0]}).join(place, on="id", how="left", maintain_order="left")
        matched.append(ScoreTable(table.path, table.frame[order["row"]]))
    return matched


def _check_order(first: ScoreTable, table: ScoreTable) -> None:
    """Raise `InputError` where a column shows that the rows of a table are in another order."""
    for name in first.frame.columns:
        if name not in table.frame.columns:
            continue
        ours, theirs = (each.frame[name].cast(pl.String, strict=False) for each in (first, table))
        is_same = ours.equals(theirs) or ours.n_unique() < len(ours)
        if not is_same and ours.sort().equals(theirs.sort()):
            raise ErrorKind.ROWS.error(
                f"The rows of {table.path} are in another order than those of {first.path}, by "
                f"column {name!r}.",
                f"Give {setting('id_column', name)}, which matches them.",
                column=name,
            )


def _ids(table: ScoreTable, name: str) -> pl.Series:
    if name not in table.frame.columns:
        raise missing_column(str(table.path), name, table.frame.columns)
    ids = names_as_text(table.frame[name])
    _check_full(table, name, ids)
    if (row := _first(ids.is_duplicated())) is not None:
        again = np.flatnonzero((ids == ids[row]).to_numpy())[1] + 1
        raise ErrorKind.ROWS.error(
            f"{table.path}: {name} = {ids[row]} occurs twice, at rows {row + 1} and {again}.",
            f"Name a column with a different value in every row, or leave {setting('id_column')} "
            "out where the files are in the same order.",
            column=name,
            row=int(again),
            value=ids[row],
        )
    return ids


def _labels(tables: Sequence[ScoreTable], files: ScoreFiles) -> pl.Series:
    """Labels as text; files that have labels agree in them."""
    name = files.target
    holding = [table for table in tables if name in table.frame.columns]
    if not holding:
        where = f"{tables[0].path} has no" if len(tables) == 1 else "No file of scores has a"
        known = sorted({column for table in tables for column in table.frame.columns})
        hint = name_hint(name, known)
        if files.truth is None:
            hint += f" Labels in another file are given by {setting('truth', 'FILE')}."
        raise ErrorKind.MISSING_COLUMN.error(
            f"{where} column {name!r} with the labels ({setting('target')}).", hint, column=name
        )
    labels = labels_as_text(holding[0].frame[name])
    if (row := _first(labels.is_null())) is not None:
        raise ErrorKind.LABELS.error(
            f"{holding[0].path} has no label ({name}) at row {row + 1}"
            + (f", nor at {labels.null_count() - 1:,} more." if labels.null_count() > 1 else "."),
            "Leave rows without a label out of all files.",
            column=name,
            row=row + 1,
        )
    for table in holding[1:]:
        differ = _values(labels) != _values(labels_as_text(table.frame[name]))
        if (row := _first(differ)) is not None:
            other = table.frame[name][row]
            raise ErrorKind.LABELS.error(
                f"{holding[0].path} and {table.path} have different labels: {labels[row]!r} and "
                f"{other!r} at row {row + 1} of the first.",
                f"Give files of the same rows in the same order, or {setting('id_column')}.",
                column=name,
                row=row + 1,
                value=other,
            )
    return labels


def _values(labels: pl.Series) -> pl.Series:
    """Labels by their values, so that spellings do not differ."""
    return labels.replace(
        {label: str(label_value(label)) for label in labels.drop_nulls().unique()}
    )


def _beside(tables: Sequence[ScoreTable], name: str, option: str = "groups") -> pl.Series:
    for table in tables:
        if name in table.frame.columns:
            _check_full(table, name, table.frame[name])
            return table.frame[name]
    known = sorted({column for table in tables for column in table.frame.columns})
    raise missing_column("", name, known, option)


def _only_scores(table: ScoreTable, files: ScoreFiles) -> str:
    """Name of the column of scores: the usual name, or the only column of numbers."""
    beside = (files.target, files.id_column, files.groups, files.weight, files.by)
    others = [name for name in table.frame.columns if name not in beside]
    for usual in _USUAL:
        if usual in others:
            return usual
    numeric = [name for name in others if _is_numeric(table.frame[name])]
    if len(numeric) == 1:
        return numeric[0]
    found = f"numbers in {', '.join(numeric)}" if numeric else "no column of numbers"
    raise ErrorKind.MISSING_COLUMN.error(
        f"{table.path}: which column holds the scores? It has {found}.",
        f"Name it by {setting('scores')}." if numeric else name_hint("", others),
    )


def _is_numeric(cells: pl.Series) -> bool:
    if not is_text_type(cells.dtype):
        return cells.dtype.is_numeric()
    cells = _as_text(cells).drop_nulls()
    return bool(len(cells)) and _as_numbers(cells).null_count() == 0


def _numbers(table: ScoreTable, name: str) -> np.ndarray:
    """Read scores: numbers in every row, between 0 and 1 where the name says probabilities."""
    if name not in table.frame.columns:
        raise missing_column(str(table.path), name, table.frame.columns)
    cells = table.frame[name]
    if cells.dtype.is_temporal() or cells.dtype.is_nested():
        raise ErrorKind.CELL.error(
            f"{table.path}: column {name!r} holds {cells.dtype}, not scores.",
            f"Name a column of numbers by {setting('scores')}.",
            column=name,
        )
    numbers = _as_numbers(cells)
    if (row := _first(~numbers.is_finite())) is not None:
        is_empty = _as_text(cells)[row] is None
        holds = "is empty" if is_empty else f"is {shown(cells[row])}, which is not a number,"
        message = f"{table.path}: {name} {holds} at row {row + 1}."
        raise ErrorKind.CELL.error(
            message, "Every row needs a finite score.", column=name, row=row + 1, value=cells[row]
        )
    outside = (numbers < 0.0) | (numbers > 1.0)
    if name.lower().startswith("prob") and (row := _first(outside)) is not None:
        message = (
            f"{table.path}: {name} is {numbers[row]:g} at row {row + 1}, which is no probability: "
            "they are between 0 and 1."
        )
        remedy = "Give it another name if it holds scores of another kind."
        raise ErrorKind.CELL.error(message, remedy, column=name, row=row + 1, value=numbers[row])
    values = numbers.to_numpy()
    if (values == values[0]).all():
        raise ErrorKind.CELL.error(
            f"{table.path}: {name} is {values[0]:g} in every row: such scores rank nothing.",
            f"Leave the file out, or name another column by {setting('scores')}.",
            column=name,
            value=float(values[0]),
        )
    return values


def _check_full(table: ScoreTable, name: str, cells: pl.Series) -> None:
    if (row := _first(cells.is_null())) is not None:
        message = f"{table.path} has no {name} at row {row + 1}."
        raise ErrorKind.CELL.error(message, "Fill it in.", column=name, row=row + 1)


def _name(
    table: ScoreTable, column: str, tables: Sequence[ScoreTable], columns: Sequence[str]
) -> str:
    if len(tables) == 1:
        return column
    stem = table.path.name.split(".")[0]
    if [other.path.name.split(".")[0] for other in tables].count(stem) > 1:
        stem = str(table.path)
    return stem if len(columns) == 1 else f"{stem}: {column}"
