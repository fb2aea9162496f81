"""What the types of databases become: those that files of tables have."""

import numpy as np
import pyarrow as pa

from rareclass.errors import InputError

# What float64 holds to the last digit.
_EXACT_DIGITS = 15
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
# Where the hyphens of a UUID are, and where its digits.
_HYPHENS = [8, 13, 18, 23]
_DIGITS = [place for place in range(36) if place not in _HYPHENS]


def plain_schema(schema: pa.Schema, title: str) -> pa.Schema:
    """The columns with types that a Parquet file may have.

    A decimal of unknown digits becomes float64, one of whole numbers beyond its 15 digits text; a
    UUID and JSON are text, an enumeration its words. Raises `InputError` for a type that has no
    such cells, naming the column.
    """
    return pa.schema([pa.field(f.name, _plain_type(f, title)) for f in schema])


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the types of its `plain_schema`."""
    columns = [
        _plain(column, field.type) for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain_type(field: pa.Field, title: str) -> pa.DataType:
    kind = field.type
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if isinstance(kind, pa.UuidType):
        return pa.string()
    if isinstance(kind, pa.JsonType if hasattr(pa, "JsonType") else ()):
        return kind.storage_type
    if isinstance(kind, pa.OpaqueType):
        if kind.type_name == "numeric":
            return pa.string() if _is_long_integer(field) else pa.float64()
        if pa.types.is_string(kind.storage_type):
            return kind.storage_type
        raise _unusable(field.name, kind.type_name, title)
    if pa.types.is_interval(kind):
        raise _unusable(field.name, "interval", title)
    return kind


def _is_long_integer(field: pa.Field) -> bool:
    """Whether a numeric of PostgreSQL is declared to hold whole numbers of many digits."""
    modifier = int((field.metadata or {}).get(b"POSTGRESQL:typmod", -1)) - 4
    return modifier >= 0 and modifier & 0x7FF == 0 and modifier >> 16 > _EXACT_DIGITS


def _plain(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if isinstance(column.type, pa.UuidType):
        return _uuid_text(column.storage)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column if column.type == wanted else column.cast(wanted)


def _uuid_text(cells: pa.Array) -> pa.Array:
    """UUIDs of 16 bytes as text with hyphens."""
    present = cells.drop_null()
    count = len(present)
    raw = np.frombuffer(present.buffers()[1] or b"", np.uint8)
    raw = raw[16 * present.offset :][: 16 * count].reshape(count, 16)
    text = np.full((count, 36), ord("-"), np.uint8)
    text[:, _DIGITS] = _HEX[np.stack([raw >> 4, raw & 15], axis=2).reshape(count, 32)]
    words = pa.array(text.view("S36")[:, 0].astype(str), pa.string())
    if count == len(cells):
        return words
    is_there = cells.is_valid().to_numpy(zero_copy_only=False)
    places = np.where(is_there, np.cumsum(is_there) - 1, 0)
    return words.take(pa.array(places, mask=~is_there))


def _unusable(name: str, kind: str, title: str) -> InputError:
    return InputError(
        f"{title}: column {name!r} holds {kind}, which cannot be read.",
        "Leave it out of the query, or make it a text, a number or a time there: "
        f'CAST("{name}" AS text).',
    )
