"""Files behind URLs: their names, what is read of them, and connections that fail."""

import os
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from faults import refused
from rareclass.errors import ErrorKind, InputError
from rareclass.remote import RemotePath, path_of

CONTENT = np.random.default_rng(0).bytes(100_000)


@pytest.fixture(name="memory")
def with_a_file(memory):
    memory.pipe_file("/a/b.csv", CONTENT)
    return memory


@pytest.mark.parametrize(
    "url", ["s3://bucket/a/b.csv.gz", "memory://a/d/x.parquet", "https://host/d/rows.jsonl"]
)
def test_names_are_those_of_paths(url):
    path, pure = path_of(url), PurePosixPath(url)
    assert isinstance(path, RemotePath)
    assert str(path) == url
    for name in ("name", "stem", "suffix", "suffixes"):
        assert getattr(path, name) == getattr(pure, name)
    assert str(path.parents[0]) == url.rpartition("/")[0]
    assert (path.parents[0] / path.name) == path == path_of(path)
    assert path.relative_to(path.parents[1]).parts == pure.parts[-2:]
    assert path.with_name("c.d").name == "c.d"


def test_what_is_no_url():
    assert path_of("a/b.csv") == Path("a/b.csv")
    assert path_of("file:///tmp/a%20b.csv") == Path("/tmp/a b.csv")
    with pytest.raises(InputError, match="on this machine's disk"):
        os.stat(path_of("s3://bucket/a"))
    for url in ("foo://bucket/a", "postgresql://me:hush@host/d"):
        with refused(ErrorKind.UNSUPPORTED, says="s3://, gs://") as caught:
            path_of(url).exists()
        assert "query=" in str(caught.value)
        assert "hush" not in str(caught.value)


def test_names_that_the_system_cannot_follow(tmp_path, monkeypatch):
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "nowhere").symlink_to("absent")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for name in ("x" * 256, "y/" * 3000, "circle", "circle/a.csv"):
        for given in (tmp_path / name, str(tmp_path / name), f"file://{tmp_path}/{name}"):
            with refused(ErrorKind.MISSING_FILE, says="cannot be found"):
                path_of(given)
    for name in ("a.csv", ".", "../a.csv"):
        with refused(ErrorKind.MISSING_FILE, says="the current folder was removed"):
            path_of(name)
    for name in ("absent", "nowhere", "absent/a.csv", "x" * 255):
        assert path_of(tmp_path / name) == tmp_path / name


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


def test_a_file_is_copied_once_and_faults_are_told(memory, monkeypatch):
    reads, begin = [], MemoryFileSystem.open
    monkeypatch.setattr(
        MemoryFileSystem,
        "open",
        lambda self, *given, **how: (reads.append(1), begin(self, *given))[1],
    )
    path = path_of("memory://a/b.csv")
    with path.open() as one, path.open() as other:
        other.seek(500)
        assert one.read() == CONTENT
        assert other.read() == CONTENT[500:]
    assert len(reads) == 1

    def refuse(self, *args, **kwargs):
        raise PermissionError("not yours")

    monkeypatch.setattr(MemoryFileSystem, "open", refuse)
    with refused(ErrorKind.CONNECTION, says="Cannot reach memory://a/b.csv: not yours"):
        path_of("memory://a/b.csv").open()


@pytest.mark.parametrize(("url", "package"), [("gs://b/k", "gcsfs"), ("az://b/k", "adlfs")])
def test_a_package_that_is_not_installed(url, package, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with refused(ErrorKind.MISSING_PACKAGE, says=package):
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
    with pytest.raises(InputError, match=r"Cannot reach .*/private.csv\?\.\.\.: 403") as caught:
        path_of(f"{address}/private.csv?sig=hush").exists()
    assert "hush" not in str(caught.value)
    with pytest.raises(InputError, match="files cannot be written to a web server"):
        path.check_writable("--out")


def test_a_server_that_is_not_there():
    with pytest.raises(InputError, match=r"Cannot reach http://127.0.0.1:1/a.csv\?\.\.\.: "):
        path_of("http://127.0.0.1:1/a.csv?sig=hush").exists()


@pytest.mark.sampled(0)
def test_a_bucket_that_is_not_there(s3):
    with pytest.raises(InputError, match="--out s3://no-bucket/a: there is no bucket"):
        path_of("s3://no-bucket/a").check_writable("--out")
    path_of("s3://rows/a").check_writable("--out")
    with pytest.raises(InputError, match="is a folder"):
        path_of("s3://rows/a/").check_writable("--out")
