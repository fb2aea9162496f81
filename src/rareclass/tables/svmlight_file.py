"""Sparse rows in svmlight (libsvm) text, plain or compressed."""

import io
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rareclass.errors import ErrorKind, InputError
from rareclass.files import Location
from rareclass.tables.byte_streams import DAMAGE, StoredFile, damaged


def no_named_columns(path: Location, asks: str = "") -> InputError:
    """The error to raise where columns have to have names."""
    return ErrorKind.FILE_FORMAT.error(
        f"{asks}{path} is an svmlight file, which has no named columns.",
        "Give CSV, JSON lines or Parquet; fit, score and evaluate also read one svmlight file.",
    )


class SparseBatch(NamedTuple):
    """Rows of an svmlight file."""

    X: "sparse.csr_matrix"
    labels: NDArray[np.float64]


class SvmlightFile:
    """A file of lines ``label index:value index:value ...``, plain or compressed.

    Raises `InputError` when it is named like a compressed file but is not one.
    """

    format_name = "svmlight"
    columns: tuple[str, ...] = ()  # they have no names

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stored = StoredFile(path)
        self._compression = self._stored.compression

    def estimate_memory(self) -> int:
        """Return about how many bytes the rows take in memory (12 a stored value)."""
        return self._stored.size * (6 if self._compression else 2)

    def read(self) -> tuple[SparseBatch, bool]:
        """Return all rows, and whether the file counts features from zero.

        Raises `InputError` when a line cannot be read, naming it, or the file is cut short.
        """
        batches = list(self.batches(zero_based=True))
        if not batches:
            return SparseBatch(sparse.csr_matrix((0, 0)), np.empty(0)), True
        width = max(batch.X.shape[1] for batch in batches)
        X = sparse.vstack([_of_width(batch.X, width) for batch in batches], format="csr")
        labels = np.concatenate([batch.labels for batch in batches])
        first_is_empty = X.nnz > 0 and int(X.indices.min()) > 0
        if first_is_empty:
            X = X[:, 1:]
        return SparseBatch(sparse.csr_matrix(X), labels), not first_is_empty

    def batches(
        self, zero_based: bool, n_features: int | None = None, batch_rows: int = 50_000
    ) -> Iterator[SparseBatch]:
        """Yield the rows in file order, with `n_features` columns; features past them are left out.

        Without `n_features` a batch is as wide as its own largest index.
        """
        first_row = 1
        try:
            with self._stored.content() as file:
                while lines := list(islice(file, batch_rows)):
                    batch = self._parse(lines, zero_based, first_row)
                    if n_features is not None:
                        batch = batch._replace(X=_of_width(batch.X, n_features))
                    first_row += len(batch.labels)
                    yield batch
            self._stored.check_unchanged()
        except DAMAGE as error:
            raise damaged(self.path, error) from error

    def _parse(self, lines: list[bytes], zero_based: bool, first_row: int) -> SparseBatch:
        from sklearn.datasets import load_svmlight_file

        try:
            X, labels = load_svmlight_file(io.BytesIO(b"".join(lines)), zero_based=zero_based)
        except ValueError as whole:
            for row, line in enumerate(lines if len(lines) > 1 else [], start=first_row):
                self._parse([line], zero_based, row)  # raises for the line
            shown = lines[0][:60].decode("utf-8", "replace").strip()
            reason = re.sub(r"^b?['\"]|['\"]$", "", str(whole))
            raise ErrorKind.FILE_FORMAT.error(
                f"{self.path} line {first_row} is not svmlight ({reason}): {shown}",
                "Lines look like: 1 3:0.5 17:2",
                row=first_row,
            ) from None
        if not np.isfinite(X.data).all():
            place = int(np.searchsorted(X.indptr, np.flatnonzero(~np.isfinite(X.data))[0], "right"))
            row = first_row + place - 1
            raise ErrorKind.CELL.error(
                f"{self.path} holds a value that is not finite at row {row}.",
                "Correct the value or take it out of the line.",
                row=row,
            )
        return SparseBatch(sparse.csr_matrix(X), labels)


def _of_width(X: "sparse.csr_matrix", width: int) -> "sparse.csr_matrix":
    """Return `X` with exactly `width` columns, cut or padded on the right."""
    if X.shape[1] > width:
        return sparse.csr_matrix(X[:, :width])
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
