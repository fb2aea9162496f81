"""Files behind URLs: their names, what is read of them, and connections that fail."""

import os
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from rareclass import remote
from rareclass.errors import InputError
from rareclass.remote import BlockStore, RemotePath, path_of

CONTENT = np.random.default_rng(0).bytes(100_000)


@pytest.fixture(name="memory")
def with_a_file(memory):
    memory.pipe_file("/a/b.csv", CONTENT)
    return memory


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr(remote, "PAUSES", (0.0, 0.0, 0.0))


@draws(60)
@given(
    size=st.integers(0, 3000),
    reads=st.lists(st.tuples(st.integers(0, 3100), st.integers(0, 700)), max_size=30),
    most=st.sampled_from([None, 64]),
)
def test_blocks_are_the_bytes_of_the_file(size, reads, most):
    fetched = []

    def fetch(start, end):
        assert 0 <= start < end <= size
        fetched.extend(range(start, end))
        return CONTENT[start:end]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote, "BLOCK_BYTES", 16)
        store = BlockStore(most)
        for offset, length in reads:
            buffer = bytearray(length)
            n = store.read("x", size, fetch, buffer, offset)
            assert bytes(buffer[:n]) == CONTENT[:size][offset : offset + length]
    if most is None:
        assert len(fetched) == len(set(fetched))


def test_files_do_not_mix_and_little_is_kept(monkeypatch):
    monkeypatch.setattr(remote, "BLOCK_BYTES", 16)
    store = BlockStore(64)
    for name in ("a", "b"):
        for start in range(0, 16 * 200, 16):
            part = bytearray(16)
            store.read(name, 16 * 200, lambda s, e, n=name: n.encode() * (e - s), part, start)
            assert bytes(part) == name.encode() * 16
    assert store._file.size == 64 * 16


@pytest.mark.parametrize(
    "url", ["s3://bucket/a/b.csv.gz", "memory://a/d/x.parquet", "https://host/d/rows.jsonl"]
)
def test_names_are_those_of_paths(url):
    path, pure = path_of(url), PurePosixPath(url)
    assert isinstance(path, RemotePath)
    assert str(path) == url
    for name in ("name", "stem", "suffix", "suffixes"):
        assert getattr(path, name) == getattr(pure, name)
    assert str(path.with_suffix("")) == pure.with_suffix("").name
    assert str(path.parents[0]) == url.rpartition("/")[0]
    assert (path.parents[0] / path.name) == path == path_of(path)
    assert path.relative_to(path.parents[1]).parts == pure.parts[-2:]
    assert path.with_name("c.d").name == "c.d"


def test_what_is_no_url():
    assert path_of("a/b.csv") == Path("a/b.csv")
    assert path_of("file:///tmp/a%20b.csv") == Path("/tmp/a b.csv")
    with pytest.raises(InputError, match="on this machine's disk"):
        os.stat(path_of("s3://bucket/a"))
    with pytest.raises(InputError, match=r"foo:// is not an address.*s3://"):
        path_of("foo://bucket/a").exists()
    with pytest.raises(InputError, match=r"postgresql:// is the address of a database.*from_sql"):
        path_of("postgresql://me:hush@host/d").exists()


def test_signatures_and_passwords_are_not_shown():
    for url, shown in [
        ("https://me:hush@host/a.csv?X-Sig=hush", "https://me@host/a.csv?..."),
        ("s3://bucket/a?b.csv", "s3://bucket/a?b.csv"),
    ]:
        path = path_of(url)
        assert (str(path), repr(path)) == (shown, shown)
    assert path_of("https://host/a.csv?x=1").suffix == ".csv"


def test_what_is_there(memory):
    memory.pipe_file("/a/c/d.csv", b"12")
    assert path_of("memory://a").is_dir()
    assert path_of("memory://a/b.csv").is_file()
    assert not path_of("memory://a/nothing").exists()
    assert path_of("memory://a/c/d.csv").stat().st_size == 2
    assert sorted(map(str, path_of("memory://a").files())) == [
        "memory://a/b.csv",
        "memory://a/c/d.csv",
    ]
    with pytest.raises(FileNotFoundError):
        path_of("memory://a/nothing").stat()


def test_a_file_is_read_and_written_whole(memory, tmp_path):
    with path_of("memory://a/b.csv").open() as file:
        assert file.read(10) == CONTENT[:10]
        file.seek(-5, os.SEEK_END)
        assert file.read() == CONTENT[-5:]
    (tmp_path / "x").write_bytes(b"new")
    path = path_of("memory://a/b.csv")
    path.put(tmp_path / "x")
    assert memory.cat_file("/a/b.csv") == b"new"
    assert path.stat().st_size == 3


@pytest.mark.parametrize("fault", [OSError("reset"), TimeoutError("slow"), "short"])
@pytest.mark.parametrize("n_faults", [3, 4])
def test_a_connection_that_fails_is_tried_again(memory, monkeypatch, fault, n_faults):
    cat, left = MemoryFileSystem.cat_file, [fault] * n_faults

    def failing(self, *args, **kwargs):
        if left and isinstance(left[-1], Exception):
            raise left.pop()
        return cat(self, *args, **kwargs) if not left else (left.pop(), b"x")[1]

    monkeypatch.setattr(MemoryFileSystem, "cat_file", failing)
    file = path_of("memory://a/b.csv").open()
    if n_faults == 3:
        assert file.read() == CONTENT
    else:
        with pytest.raises(InputError, match=r"connection to memory://a/b.csv failed 4 times"):
            file.read()


def test_what_does_not_help_is_not_tried_again(memory, monkeypatch):
    calls = []

    def refuse(self, *args, **kwargs):
        calls.append(1)
        raise PermissionError("not yours")

    monkeypatch.setattr(MemoryFileSystem, "cat_file", refuse)
    with pytest.raises(InputError, match=r"You may not use memory://a/b.csv: not yours"):
        path_of("memory://a/b.csv").open().read()
    assert len(calls) == 1


@pytest.mark.parametrize(("url", "package"), [("gs://b/k", "gcsfs"), ("az://b/k", "adlfs")])
def test_a_package_that_is_not_installed(url, package, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(InputError, match=rf"needs {package}, .*pip install {package}"):
        path_of(url).exists()


def test_a_server_that_gives_files_whole(web):
    address, folder = web
    (folder / "rows.csv").write_bytes(CONTENT)
    path = path_of(f"{address}/rows.csv?sig=hush")
    assert path.stat().st_size == len(CONTENT)
    with path.open() as file:
        file.seek(500)
        assert file.read() == CONTENT[500:]
    assert not path_of(f"{address}/none.csv").exists()
    with pytest.raises(InputError, match=r"You may not use .*/private.csv\?\.\.\.") as caught:
        path_of(f"{address}/private.csv?sig=hush").exists()
    assert "hush" not in str(caught.value)
    with pytest.raises(InputError, match="files cannot be written to a web server"):
        path.check_writable("--out")


def test_a_server_that_is_not_there():
    with pytest.raises(InputError, match=r"http://127.0.0.1:1/a.csv\?\.\.\. failed 4 times"):
        path_of("http://127.0.0.1:1/a.csv?sig=hush").exists()


@pytest.mark.sampled(0)
def test_a_bucket_that_is_not_there(s3):
    with pytest.raises(InputError, match="--out s3://no-bucket/a: there is no bucket"):
        path_of("s3://no-bucket/a").check_writable("--out")
    path_of("s3://rows/a").check_writable("--out")
    with pytest.raises(InputError, match="is a folder"):
        path_of("s3://rows/a/").check_writable("--out")
