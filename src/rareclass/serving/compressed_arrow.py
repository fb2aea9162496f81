"""Whether an Arrow stream is compressed, found without unpacking any of it.

A few kilobytes may stand for gigabytes. The messages of a stream are flatbuffers, of which three
fields are looked at (Arrow columnar format, "Encapsulated message format"; format/Message.fbs).
"""

import struct

_CONTINUATION = 0xFFFFFFFF
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
# Places of fields in the tables of Message.fbs.
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_DICTIONARY_DATA, _COMPRESSION = 1, 3


def is_compressed(stream: bytes) -> bool:
    """Whether a batch of rows, or of a dictionary, says that its buffers are compressed.

    Raises `ValueError` where the stream is cut short or no stream. Time: O(number of messages).

    Examples
    --------
    >>> import pyarrow as pa
    >>> def written(**options):
    ...     sink, batch = pa.BufferOutputStream(), pa.record_batch({"a": [1.0, 2.0]})
    ...     settings = pa.ipc.IpcWriteOptions(**options)
    ...     with pa.ipc.new_stream(sink, batch.schema, options=settings) as writer:
    ...         writer.write_batch(batch)
    ...     return sink.getvalue().to_pybytes()
    >>> is_compressed(written()), is_compressed(written(compression="lz4"))
    (False, True)
    """
    at = 0
    try:
        while at + 4 <= len(stream):
            (length,) = struct.unpack_from("<I", stream, at)
            at += 4
            if length == _CONTINUATION:
                (length,) = struct.unpack_from("<I", stream, at)
                at += 4
            if not length:
                break
            message = _Table(stream[at : at + length], None)
            at += length + message.number(_BODY_LENGTH, "<q")
            if message.number(_BODY_LENGTH, "<q") < 0:
                raise ValueError("a body of less than nothing")
            if _holds_compressed(message):
                return True
    except (struct.error, IndexError) as error:
        raise ValueError("the stream is cut short, or none") from error
    return False


def _holds_compressed(message: "_Table") -> bool:
    kind = message.number(_HEADER_TYPE, "<B")
    batch = message.table(_HEADER) if kind in (_DICTIONARY_BATCH, _RECORD_BATCH) else None
    if batch is not None and kind == _DICTIONARY_BATCH:
        batch = batch.table(_DICTIONARY_DATA)
    return batch is not None and batch.place(_COMPRESSION) is not None


class _Table:
    """A table of a flatbuffer: offsets to its fields, by their number."""

    def __init__(self, content: bytes, start: int | None) -> None:
        self._content = content
        self._start = struct.unpack_from("<I", content, 0)[0] if start is None else start
        self._fields = self._start - struct.unpack_from("<i", content, self._start)[0]
        if self._fields < 0:
            raise ValueError("a table that begins before its message")

    def place(self, field: int) -> int | None:
        """Where a field stands; None where it is left out."""
        (size,) = struct.unpack_from("<H", self._content, self._fields)
        at = 4 + 2 * field
        if at + 2 > size:
            return None
        (offset,) = struct.unpack_from("<H", self._content, self._fields + at)
        return self._start + offset if offset else None

    def number(self, field: int, how: str) -> int:
        """A field that is a number; 0 where it is left out."""
        place = self.place(field)
        return 0 if place is None else int(struct.unpack_from(how, self._content, place)[0])

    def table(self, field: int) -> "_Table | None":
        """A field that is a table."""
        place = self.place(field)
        if place is None:
            return None
        return _Table(self._content, place + struct.unpack_from("<I", self._content, place)[0])
