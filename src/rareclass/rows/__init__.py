"""Where the majority rows live.

Every method in this package sees the majority only through two methods, :meth:`Rows.sum` and
:meth:`Rows.map`. Arrays, files and clusters implement them, run the same algorithms and give the
same answer.
"""

from typing import TYPE_CHECKING

from rareclass.lazy_names import lazy_names
from rareclass.rows.memory import ArrayRows
from rareclass.rows.memory import rows_of as rows_of
from rareclass.rows.protocol import Block as Block
from rareclass.rows.protocol import Budget as Budget
from rareclass.rows.protocol import LabelledRows, Rows, from_arrays
from rareclass.rows.protocol import RowValues as RowValues
from rareclass.rows.protocol import SentOnce as SentOnce
from rareclass.rows.protocol import Token as Token
from rareclass.rows.protocol import header as header
from rareclass.rows.source import RowSource, as_source
from rareclass.rows.source import consecutive as consecutive

__all__ = [
    "ArrayRows",
    "LabelledRows",
    "RowSource",
    "Rows",
    "as_source",
    "from_arrays",
    "from_dask",
    "from_table",
    "parquet_batches",
]

if TYPE_CHECKING:
    from rareclass.rows.readers import from_table, parquet_batches

# Readers are imported when they are asked for; some need an extra.
__getattr__, _ = lazy_names(
    __name__, {".dask": ["from_dask"], ".readers": ["from_table", "parquet_batches"]}
)
