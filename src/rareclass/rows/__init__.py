"""Where the majority rows live.

Every method in this package sees the majority only through two verbs: :meth:`Rows.sum` and
:meth:`Rows.map`. Whatever implements them (arrays here; files and clusters likewise) runs the
same algorithms and gives the same answer.
"""

from rareclass.rows.csv import from_csv
from rareclass.rows.labelled import LabelledRows, from_arrays
from rareclass.rows.labelled import header as header
from rareclass.rows.memory import ArrayRows
from rareclass.rows.parquet import from_parquet
from rareclass.rows.parquet_batches import parquet_batches
from rareclass.rows.protocol import Block as Block
from rareclass.rows.protocol import Budget as Budget
from rareclass.rows.protocol import Rows
from rareclass.rows.source import RowSource, as_source
from rareclass.rows.source import consecutive as consecutive

__all__ = [
    "ArrayRows",
    "LabelledRows",
    "RowSource",
    "Rows",
    "as_source",
    "from_arrays",
    "from_csv",
    "from_parquet",
    "parquet_batches",
]
