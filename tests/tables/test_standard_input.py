"""Standard input and pipes: what cannot be read twice is sent again, or read as it arrives."""

import gzip
import io
import os
import sys
from types import SimpleNamespace

import pytest

from rareclass.errors import InputError
from rareclass.tables import sources
from rareclass.tables.sources import open_source
from tables.readings import read_all


def send(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    "content",
    [b"a;b\n1;x\n\n2;y\n", b'\xef\xbb\xbf\n {"a": "1", "b": "x"}\n\n{"a": "2", "b": "y"}\n'],
)
def test_standard_input_is_csv_or_json(monkeypatch, content, pack):
    send(monkeypatch, pack(content))
    source = open_source("-")
    first = source.read(1)
    assert first.frame["a"].to_list() == ["1"]
    send(monkeypatch, pack(content))
    rest = read_all(open_source("-", first.position))
    assert [batch.frame["b"].to_list() for batch in rest] == [["y"]]
    assert (rest[0].file, first.lines.tolist(), rest[0].lines.tolist()) == ("-", [2], [4])


def test_standard_input_that_ends_before_the_position(monkeypatch):
    send(monkeypatch, b"a,b\n1,2\n3,4\n")
    position = read_all(open_source("-"))[-1].position
    send(monkeypatch, b"a,b\n1,2\n")
    with pytest.raises(InputError, match="ended after 8 bytes; 12 were read"):
        open_source("-", position)
    send(monkeypatch, b"a,b\n1,2\n3,5\n5,6\n")
    with pytest.raises(InputError, match="Standard input has other rows"):
        open_source("-", position)
    send(monkeypatch, b"PAR1....")
    with pytest.raises(InputError, match="Give the name of the file"):
        open_source("-")


def test_standard_input_from_a_pipe_goes_on_at_the_very_byte(monkeypatch):
    """Reads of a pipe may bring more than is left up to the position."""
    content = b"a,b\n" + b"".join(b"%d,x\n" % row for row in range(30_000))
    send(monkeypatch, content)
    source = open_source("-")
    position = [source.read(4_000) for _ in range(6)][-1].position
    for most in (1_000, 5_000, 8_192, 70_000):
        pipe = io.BytesIO(content)

        def read1(size, pipe=pipe, most=most):
            return pipe.read(min(size, most))

        monkeypatch.setattr(
            sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read1=read1, read=None))
        )
        rest = read_all(open_source("-", position))
        found = [cell for batch in rest for cell in batch.frame["a"].to_list()]
        assert found == list(map(str, range(24_000, 30_000)))
        assert not any(batch.rejected for batch in rest)


def test_followed_pipe_gives_what_has_arrived(monkeypatch):
    ours, theirs = os.pipe()
    pipe = os.fdopen(ours, "rb")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe))
    os.write(theirs, b"a,b\n1,2\n3,")
    source = open_source("-", follow=True)
    first = source.read(10)
    assert first.n_read == 1
    os.write(theirs, b"4\n")
    second = source.read(10)
    assert second.frame["b"].to_list() == ["4"]
    monkeypatch.setattr(sources, "_LONGEST_WAIT_SECONDS", 0.0)
    empty = source.read(10)
    assert (empty.n_read, empty.frame["a"].to_list()) == (0, [])
    os.write(theirs, b"5,6")
    os.close(theirs)
    assert [b.n_read for b in read_all(source) if b.n_read] == [1]
    pipe.close()


def test_a_named_pipe_is_for_standard_input(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match=r"pipe\.csv is a pipe or a device") as told:
        open_source(str(tmp_path / "pipe.csv"))
    assert "standard input, as -" in told.value.remedy
