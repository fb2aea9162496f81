"""Lists of rows as tables that a person fills in: columns of the review first, then the cells."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from rareclass.encoding.target import labels_as_text
from rareclass.review.records import Verdict
from rareclass.review.table import ReviewTable
from rareclass.tables.table_file import TableFile, batch_rows_for, named_columns, open_rows

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


def read_verdicts(sheet: Any, corrects: bool = False) -> list[Verdict]:
    """Read the verdicts of a list that a person filled in; rows without a verdict are left out.

    Parameters
    ----------
    sheet : table or path
        With the columns ``review row`` and ``review verdict``, and ``review note`` if any.
    corrects : bool, default=False
        Whether these verdicts may replace others.
    """
    names = [f"review {name}" for name in (ROW, VERDICT)]
    file = named_columns(open_rows(sheet), names, "--verdicts")
    note = f"review {NOTE}"
    names += [note] if note in file.columns else []
    cells = pl.concat(list(file.batches(names)))
    texts = [labels_as_text(cells[name]).to_list() for name in names]
    notes = texts[2] if len(texts) > 2 else [None] * cells.height
    return [
        Verdict(str(key), label, note=remark or "", corrects=corrects)
        for key, label, remark in zip(texts[0], texts[1], notes, strict=True)
        if label is not None
    ]
