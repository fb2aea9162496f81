"""A file of JSON lines as a table, for scoring and evaluating."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import polars as pl

from rareclass.errors import InputError
from rareclass.tables.compressed import plain_suffix
from rareclass.tables.file_source import FORMAT_OF_SUFFIX
from rareclass.tables.raw_cells import read_words
from rareclass.tables.sources import open_source
from rareclass.tables.table_file import BATCH_ROWS


class JsonLinesTable:
    """A file of JSON lines; the keys of the first object are its columns.

    Parameters
    ----------
    path : Path
        The file, plain or compressed.

    Attributes
    ----------
    columns : list of str
        The columns, whose cells are read as text.

    Raises
    ------
    InputError
        When it is missing or empty; on reading, at a line that is no such object.
    """

    format_name = "JSON lines"

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(open_source(str(path))) as source:
            first = source.read(1)
            self.columns = list(source.columns or [])
        if first is None or not first.n_read:
            raise InputError(f"{path} has no rows.", "Give a file with rows.")

    def estimate_rows(self) -> int:
        """Return about how many rows there are, from the length of the first lines."""
        with self.path.open("rb") as file:
            lines = file.read(1 << 16)
        return int(self.path.stat().st_size / max(1, len(lines)) * max(1, lines.count(b"\n")))

    def batches(
        self, columns: Sequence[str] | None = None, batch_rows: int = BATCH_ROWS
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in file order."""
        names = self.columns if columns is None else columns
        with closing(open_source(str(self.path))) as source:
            while (batch := source.read(batch_rows)) is not None:
                if batch.rejected:
                    fault = batch.rejected[0]
                    raise InputError(
                        f"{self.path}, line {fault.line}: {fault.reason}.", "Correct that line."
                    )
                if batch.n_rows:
                    words = {name: read_words(batch.columns[name])[0].tolist() for name in names}
                    yield pl.DataFrame(words, schema=dict.fromkeys(names, pl.String))


def is_json_lines(path: Path) -> bool:
    """Whether a file is one of JSON lines, by its name."""
    return FORMAT_OF_SUFFIX.get(plain_suffix(path)) == "jsonl"
