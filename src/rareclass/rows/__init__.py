"""Where the majority rows live.

Every method in this package sees the majority only through two verbs: :meth:`Rows.sum` and
:meth:`Rows.map`. Whatever implements them (arrays here; files and clusters likewise) runs the
same algorithms and gives the same answer.
"""

from rareclass.rows.memory import ArrayRows
from rareclass.rows.protocol import Block, Budget, Memo, Rows, parse_bytes
from rareclass.rows.source import RowSource, as_source

__all__ = ["ArrayRows", "Block", "Budget", "Memo", "RowSource", "Rows", "as_source", "parse_bytes"]
