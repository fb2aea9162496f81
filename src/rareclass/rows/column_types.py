"""Which types of columns are features, and which are labels."""

from collections.abc import Sequence

import pyarrow as pa

from rareclass.errors import InputError
from rareclass.files import Location
from rareclass.rows.decoding import Selection

# What float32 holds exactly.
_NARROW = {pa.float32(), pa.float16(), pa.bool_(), pa.int8(), pa.int16(), pa.uint8(), pa.uint16()}


def check_types(schemas: Sequence[tuple[Location, pa.Schema]], chosen: Selection) -> bool:
    """Whether float32 holds all features of all parts of a table exactly.

    Raises `InputError` for features that are not numbers, naming part and column.
    """
    is_narrow = True
    for path, schema in schemas:
        for name in chosen.all:
            kind = schema.field(name).type
            if name == chosen.target:
                continue
            is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
            if not (is_number or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
                raise InputError(
                    f"{path}: column {name!r} holds {kind}, not numbers.",
                    "Encode it first, leave it out with columns=, or use the command line, which "
                    "encodes tables.",
                )
            is_narrow &= kind in _NARROW or name == chosen.weight
    return is_narrow


def label_type(schemas: Sequence[tuple[Location, pa.Schema]], target: str) -> pa.DataType:
    """The type of the labels in all parts of a table.

    Raises `InputError` where they are no labels, or of types that do not go together.
    """

    def of(path: Location, schema: pa.Schema) -> pa.DataType:
        kind = schema.field(target).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_nested(kind):
            raise InputError(f"{path}: the target {target!r} holds {kind}, not labels.")
        # Widths do not matter: 1 is the same label in all of them.
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return pa.string()
        return kind

    first = of(*schemas[0])
    for path, schema in schemas[1:]:
        kind = of(path, schema)
        if kind == first:
            continue
        if not (pa.types.is_integer(kind) and pa.types.is_integer(first)):
            raise InputError(
                f"{path}: the target {target!r} holds {kind}, in {schemas[0][0]} {first}.",
                "Write the labels alike in all parts.",
            )
        first = pa.int64()
    return first
