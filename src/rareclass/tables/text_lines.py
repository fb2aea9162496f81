"""Lines of text as bytes, with the position of each in its file."""

from io import BytesIO

from rareclass.errors import InputError
from rareclass.tables.byte_streams import ByteStream

BLOCK_BYTES = 1 << 20
# No table has longer ones: it is taken for a file that is not text.
LINE_LIMIT = 16 << 20
_MARK = b"\xef\xbb\xbf"  # of UTF-8, that some programs put first


class TextLines:
    r"""The lines of a stream, read a block ahead.

    A line ends with a newline, which stays on it. What follows the last newline is a line once
    the stream has ended, and waits for its rest until then.

    Parameters
    ----------
    stream : ByteStream
    block_bytes : int
        Bytes to read at a time.

    Attributes
    ----------
    ahead : list of bytes
        Lines read and not taken yet. Always the same list: it grows at its end.
    offset : int
        Bytes before the first of them.
    line : int
        Its number in the file, from 1.
    ended : bool
        Whether no line will come after those ahead.
    inside_line : bool
        Whether what comes next is the rest of a line that was taken before.

    Examples
    --------
    >>> from rareclass.tables.byte_streams import PipeBytes
    >>> lines = TextLines(PipeBytes(BytesIO(b"a\nbc\nd"), growing=False))
    >>> lines.fill(), lines.ahead
    (True, [b'a\n', b'bc\n'])
    >>> lines.take(2)
    >>> lines.offset, lines.line, lines.fill(), lines.ahead
    (5, 3, True, [b'd'])
    """

    def __init__(self, stream: ByteStream, block_bytes: int = BLOCK_BYTES) -> None:
        self.ahead: list[bytes] = []
        self.offset = 0
        self.line = 1
        self.ended = False
        self._stream = stream
        self._block_bytes = block_bytes
        self._tail = b""
        self._at_start = True
        self.inside_line = False

    @property
    def has_unfinished(self) -> bool:
        """Whether something was read that is not taken: a line, or the beginning of one."""
        return bool(self.ahead or self._tail)

    def fill(self) -> bool:
        """Read on until there is one more line; False where there is none, or none yet."""
        while not self.ended:
            block = self._stream.read(self._block_bytes)
            if block is None:
                return False
            if not block:
                return self._end()
            data = self._without_mark(self._tail + block)
            if data is None:
                continue
            lines = BytesIO(data).readlines()
            self._tail = b"" if not lines or lines[-1].endswith(b"\n") else lines.pop()
            if len(self._tail) > LINE_LIMIT:
                number = self.line + len(self.ahead) + len(lines)
                raise InputError(
                    f"Line {number} of {self._stream.title} is longer than {LINE_LIMIT >> 20} MiB.",
                    "Is it a text file with a row on each line?",
                )
            if lines:
                self.ahead.extend(lines)
                return True
        return False

    def take(self, n_lines: int) -> None:
        """Let go of the first lines ahead."""
        self.offset += sum(map(len, self.ahead[:n_lines]))
        self.line += n_lines
        del self.ahead[:n_lines]

    def skip(self, offset: int, line: int) -> None:
        """Go on at byte `offset`, where line `line` begins, on a stream nothing was read from."""
        before = self._stream.skip(offset)
        self.offset, self.line = offset, line
        self._at_start = offset == 0
        self.inside_line = line > 1 and before != b"\n"

    def take_rest_of_line(self) -> bytes | None:
        """Take what has been added to a line that was taken as the last one, if anything was.

        A stream that had ended without a newline may have grown since. A newline alone is what
        was missing, and not returned.
        """
        if not self.inside_line or not (self.ahead or self.fill()):
            return None
        self.inside_line = False
        rest = self.ahead[0]
        self.take(1)
        self.line -= 1
        return rest if rest.strip(b"\r\n") else None

    def _end(self) -> bool:
        self.ended = True
        if not self._tail:
            return False
        self.ahead.append(self._tail)
        self._tail = b""
        return True

    def _without_mark(self, data: bytes) -> bytes | None:
        """Drop a byte order mark at the start; None where the first bytes are still to come."""
        if not self._at_start:
            return data
        if len(data) < len(_MARK) and b"\n" not in data:
            self._tail = data
            return None
        self._at_start = False
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError(
                f"{self._stream.title} is UTF-16 text.",
                "Convert it: iconv -f utf-16 -t utf-8 OLD > NEW",
            )
        if not data.startswith(_MARK):
            return data
        self.offset = len(_MARK)
        return data[len(_MARK) :]
