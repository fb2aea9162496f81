"""Files behind URLs, as paths: read in cached blocks, written whole."""

import io
import os
import re
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import unquote, urlsplit

from rareclass.errors import ErrorKind, InputError
from rareclass.scratch_file import BytesAt, Scratch

BLOCK_BYTES = 1 << 20
# Blocks that are fetched at once where a file is read from its beginning.
_AHEAD = 8

Fetch = Callable[[int, int], bytes]


class BlockStore:
    """Cache of file blocks in a scratch file; every block is fetched once.

    With a limit of `most` blocks, at least 64, a new block replaces the least recently used one.

    Examples
    --------
    >>> store, fetched = BlockStore(), []
    >>> def fetch(start, end):
    ...     fetched.append((start, end))
    ...     return bytes(range(start, end))
    >>> part = bytearray(3)
    >>> store.read("a", 10, fetch, part, 8), part[:2], store.read("a", 10, fetch, part, 0), fetched
    (2, bytearray(b'\\x08\\t'), 3, [(0, 10)])
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._file: Scratch | None = None
        self._place: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, name: str, size: int, fetch: Fetch, buffer: Any, offset: int) -> int:
        """Fill a buffer from byte `offset` of a file of `size` bytes; return the bytes read."""
        view = memoryview(buffer).cast("B")
        wanted = max(0, min(len(view), size - offset))
        done = 0
        while done < wanted:
            block, start = divmod(offset + done, BLOCK_BYTES)
            length = min(BLOCK_BYTES - start, wanted - done)
            with self._lock:
                if (name, block) not in self._place:
                    self._fetch(name, size, fetch, block, (offset + wanted - 1) // BLOCK_BYTES)
                self._place.move_to_end((name, block))
                assert self._file is not None
                at = self._place[name, block] * BLOCK_BYTES + start
                self._file.read_into(view[done : done + length], at)
            done += length
        return wanted

    def _fetch(self, name: str, size: int, fetch: Fetch, first: int, last: int) -> None:
        """Fetch blocks from `first` to `last`, more of them where reading is sequential."""
        if (name, first - 1) in self._place:
            last = max(last, first + _AHEAD - 1)
        last = min(last, first + 4 * _AHEAD - 1, (size - 1) // BLOCK_BYTES)
        end = first
        while end < last and (name, end + 1) not in self._place:
            end += 1
        data = fetch(first * BLOCK_BYTES, min(size, (end + 1) * BLOCK_BYTES))
        for block in range(first, end + 1):
            start = (block - first) * BLOCK_BYTES
            self._keep(name, block, data[start : start + BLOCK_BYTES])

    def _keep(self, name: str, block: int, data: bytes) -> None:
        if self._file is None:
            self._file = Scratch()
        place = len(self._place)
        if self._most is not None and place >= self._most:
            _, place = self._place.popitem(last=False)
        if len(data) < BLOCK_BYTES:  # the last one of its file
            data = data.ljust(BLOCK_BYTES, b"\0")
        self._file.write_at(data, place * BLOCK_BYTES)
        self._place[name, block] = place


T = TypeVar("T")

_PACKAGES = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs",
    "abfss": "adlfs", "http": "aiohttp", "https": "aiohttp", "memory": "fsspec",
}  # fmt: skip
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_DATABASES = ("postgresql", "postgres", "sqlite", "duckdb")
_READ_ONLY = ("http", "https")
# Seconds before each further attempt.
PAUSES = (0.5, 1.0, 2.0)
# Errors that no other attempt mends.
_FINAL = (IsADirectoryError, NotImplementedError, ValueError)
_NO_CREDENTIALS = re.compile("Credential|Authentication|TokenRetrieval", re.IGNORECASE)
_CHUNK_BYTES = 8 << 20
_HOW_TO_SIGN_IN = (
    "Sign in as for its own tools: aws configure or AWS_PROFILE, gcloud auth application-default "
    "login, AZURE_STORAGE_CONNECTION_STRING."
)
# Blocks kept of a table that is read once: 1 GiB.
_MOST_BLOCKS = 1024


def path_of(name: str | os.PathLike[str]) -> Path:
    """Return the `Path` of a name, or a `RemotePath` in place of one for a URL.

    Raises `InputError` for an empty name, which `Path` takes for the folder where one is.

    >>> path_of("a/b.csv"), str(path_of("s3://bucket/b.csv"))
    (PosixPath('a/b.csv'), 's3://bucket/b.csv')
    """
    if isinstance(name, RemotePath):
        return cast(Path, name)
    text = os.fspath(name)
    if not text.strip():
        raise InputError(
            "The name of a file is empty.",
            "Give a name; . is the current folder.",
            ErrorKind.SETTING,
            value=text,
        )
    scheme = _URL.match(text)
    if scheme is None or isinstance(name, Path):
        return Path(name)
    if scheme[1].lower() == "file":
        return Path(unquote(text.partition("://")[2]))
    return cast(Path, RemotePath(text))


class RemotePath:
    """File or folder behind a URL, with the methods of `Path` that reading and writing need.

    ``s3://``, ``gs://``, ``az://``, ``https://``, ``http://`` (read only) and ``memory://``, each
    through its fsspec package, with the credentials that this package finds. Blocks that were read
    stay in a scratch file, so each is fetched once in all passes. Files are written whole.

    The text form has no password and no signature. Raises `InputError` for a missing package, a
    missing permission, and a connection lost in four attempts; `FileNotFoundError` as `Path` does.
    """

    def __init__(self, url: str, store: BlockStore | None = None, info: Any = None) -> None:
        self._url = url
        self._scheme = url.partition("://")[0].lower()
        self._store = BlockStore() if store is None else store
        self._known = info
        self._whole: Scratch | None = None  # copy from a server that gives no parts

    # -- names -------------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = urlsplit(self._url)
        user, at, host = parts.netloc.rpartition("@")
        user = user.partition(":")[0]
        is_web = self._scheme in _READ_ONLY
        query = "?..." if is_web and parts.query else ""
        rest = parts.path if is_web else self._url.partition("://")[2].partition("/")[2]
        return f"{self._scheme}://{user}{at}{host}{'' if is_web else '/' * bool(rest)}{rest}{query}"

    __repr__ = __str__

    def __fspath__(self) -> str:
        raise InputError(
            f"{self} is not on this machine's disk, where this has to be.",
            "Give a file or folder of this machine, and copy it afterwards.",
            ErrorKind.UNSUPPORTED,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and self._url == other._url

    def __hash__(self) -> int:
        return hash(self._url)

    def __lt__(self, other: "RemotePath") -> bool:
        return self._url < other._url

    def __truediv__(self, name: str) -> "RemotePath":
        return RemotePath(f"{self._url.rstrip('/')}/{name}", self._store)

    @property
    def _pure(self) -> PurePosixPath:
        parts = urlsplit(self._url)
        return PurePosixPath(parts.path if self._scheme in _READ_ONLY else self._url)

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self._pure.name

    @property
    def suffix(self) -> str:
        """End of the name, from the last dot."""
        return self._pure.suffix

    @property
    def suffixes(self) -> list[str]:
        """Parts of the name's end, from the first dot."""
        return self._pure.suffixes

    @property
    def stem(self) -> str:
        """Name without the suffix."""
        return self._pure.stem

    def with_suffix(self, suffix: str) -> PurePosixPath:
        """Name with another suffix."""
        return PurePosixPath(self.name).with_suffix(suffix)

    def with_name(self, name: str) -> "RemotePath":
        """Path of a file beside this one."""
        return RemotePath(f"{self._url.rpartition('/')[0]}/{name}", self._store)

    @property
    def parents(self) -> list["RemotePath"]:
        """Folders above, from the nearest."""
        scheme, _, rest = self._url.partition("://")
        parts = rest.rstrip("/").split("/")
        return [
            RemotePath(f"{scheme}://{'/'.join(parts[:k])}") for k in range(len(parts) - 1, 0, -1)
        ]

    def relative_to(self, folder: "RemotePath") -> PurePosixPath:
        """Path within a folder."""
        return PurePosixPath(self._url.removeprefix(folder._url.rstrip("/")).lstrip("/"))

    def resolve(self) -> "RemotePath":
        """Path without a slash at its end: a URL is absolute."""
        return RemotePath(self._url.rstrip("/"), self._store)

    # -- facts ------------------------------------------------------------------------------

    def exists(self) -> bool:
        """True where there is a file or folder."""
        return self._info() is not None

    def is_file(self) -> bool:
        """True for a file."""
        info = self._info()
        return info is not None and info["type"] == "file"

    def is_dir(self) -> bool:
        """True for a folder: names that begin with this one and a slash."""
        info = self._info()
        return info is not None and info["type"] == "directory"

    def stat(self) -> SimpleNamespace:
        """Return size, kind and time of change; raises `FileNotFoundError` for no file."""
        info = self._info()
        if info is None:
            raise FileNotFoundError(str(self))
        is_file = info["type"] == "file"
        if is_file and info["size"] is None:
            self._fetch_whole()
            info = self._known
        changed = info.get("LastModified") or info.get("last_modified") or info.get("created")
        return SimpleNamespace(
            st_size=int(info["size"] or 0),
            st_mode=stat.S_IFREG if is_file else stat.S_IFDIR,
            st_mtime=changed.timestamp() if isinstance(changed, datetime) else 0.0,
        )

    def files(self) -> list["RemotePath"]:
        """List all files in a folder and below it."""

        def find() -> Any:
            system, place = self._system()
            system.invalidate_cache()
            found = system.find(place, detail=True)
            return {name.removeprefix(place).lstrip("/"): info for name, info in found.items()}

        folder = self._url.rstrip("/")
        return [
            RemotePath(f"{folder}/{name}", self._store, info)
            for name, info in self._tried(find).items()
        ]

    # -- reading -----------------------------------------------------------------------------

    def read_once(self) -> "RemotePath":
        """Same path with a cache of at most 1 GiB, for one pass."""
        return RemotePath(self._url, BlockStore(_MOST_BLOCKS), self._known)

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open the file for reading; raises `FileNotFoundError` where there is none."""
        assert mode == "rb"
        size = self.stat().st_size
        return cast(BinaryIO, io.BufferedReader(BytesAt(self.read_at, lambda: size), 1 << 16))

    def read_at(self, buffer: Any, offset: int) -> int:
        """Read bytes from `offset` into a buffer; return their number."""
        size = self.stat().st_size
        return self._store.read(self._url, size, self._fetch, buffer, offset)

    def _fetch(self, start: int, end: int) -> bytes:
        if self._known.get("partial") is False and self._scheme in _READ_ONLY:
            if self._whole is None:  # a server that gives no parts
                self._fetch_whole()
            assert self._whole is not None
            part = bytearray(end - start)
            self._whole.read_into(part, start)
            return bytes(part)

        def fetch() -> bytes:
            system, place = self._system()
            data: bytes = system.cat_file(place, start=start, end=end)
            if len(data) > end - start:  # a server that gives the whole file
                data = data[start:end]
            if len(data) != end - start:
                raise OSError(f"{len(data):,} of {end - start:,} bytes came")
            return data

        return self._tried(fetch)

    def _fetch_whole(self) -> None:
        def fetch() -> Scratch:
            system, place = self._system()
            whole = Scratch()
            with system.open(place, "rb", block_size=0) as file:
                while chunk := file.read(_CHUNK_BYTES):
                    whole.append(chunk)
            return whole

        self._whole = self._tried(fetch)
        self._known = {**self._known, "size": self._whole.size, "partial": False}

    # -- writing -----------------------------------------------------------------------------

    def check_writable(self, option: str) -> None:
        """Raise `InputError` where the file could not be written later, as far as is known now."""
        if self._scheme in _READ_ONLY:
            raise InputError(
                f"{option} {self}: files cannot be written to a web server.",
                "Give s3://, gs:// or az://.",
                ErrorKind.UNWRITABLE,
            )
        if self.is_dir() or self._url.endswith("/"):
            raise InputError(
                f"{option} {self} is a folder.", "Give the name of a file.", ErrorKind.UNWRITABLE
            )
        bucket = self.parents[-1]
        system, place = bucket._system()
        # Older packages have no info of a bucket without files.
        if self._scheme != "memory" and not (bucket.exists() or system.exists(place)):
            raise InputError(
                f"{option} {self}: there is no bucket {bucket}.",
                "Check the name.",
                ErrorKind.MISSING_FILE,
            )

    def put(self, file: Path) -> None:
        """Write a file, whole and at once, over one that is there."""

        def put() -> None:
            system, place = self._system()
            system.put_file(str(file), place)

        try:
            self._tried(put)
        except FileNotFoundError as error:
            raise InputError(
                f"Cannot write {self}: {error}.", "Check the name.", ErrorKind.UNWRITABLE
            ) from None
        self._known = None

    # -- fsspec ------------------------------------------------------------------------------

    def _system(self) -> tuple[Any, str]:
        """File system of fsspec for the scheme, and the file's name in it."""
        if self._scheme.partition("+")[0] in _DATABASES:
            raise InputError(
                f"{self._scheme}:// is the address of a database, and this takes a file.",
                "rareclass.rows.from_sql(address, query) reads from one, as does --query on the "
                "command line.",
                ErrorKind.UNSUPPORTED,
            )
        if self._scheme not in _PACKAGES:
            raise InputError(
                f"{self._scheme}:// is not an address that can be read: {self}.",
                "Give s3://, gs://, az://, https:// or the name of a file.",
                ErrorKind.UNSUPPORTED,
            )
        try:
            import fsspec

            system, place = fsspec.core.url_to_fs(self._url)
        except ImportError as error:
            package = _PACKAGES[self._scheme]
            absent = error.name or ""
            if absent == "fsspec":
                package = "fsspec"
            extra = 'pip install "rareclass[s3]"' if package == "s3fs" else f"pip install {package}"
            raise InputError(
                f"{self._scheme}:// needs {package}, which is not installed.",
                extra,
                ErrorKind.MISSING_PACKAGE,
            ) from None
        return system, str(place)

    def _info(self) -> Any:
        """Facts that the file system gives; None where nothing is there."""
        if self._known is None:

            def look() -> Any:
                system, place = self._system()
                system.invalidate_cache()
                return system.info(place)

            try:
                self._known = self._tried(look)
            except FileNotFoundError:
                return None
        return self._known

    def _tried(self, call: Callable[[], T]) -> T:
        """Make a call, again after a pause where the connection failed."""
        for pause in (*PAUSES, None):
            try:
                return call()
            except InputError:
                raise
            except Exception as error:
                fault = self._fault(error, is_last=pause is None)
            if fault is not None:
                # Not within `except`: the first error may hold a signature.
                raise fault
            time.sleep(pause or 0.0)
        raise AssertionError("the last attempt has a fault")

    def _fault(self, error: Exception, is_last: bool) -> Exception | None:
        """Return the error to raise; None where another attempt may help."""
        if _NO_CREDENTIALS.search(type(error).__name__):
            return InputError(
                f"No access to {self}: {self._said(error)}.", _HOW_TO_SIGN_IN, ErrorKind.CONNECTION
            )
        cause = error.__cause__
        status = _status_of(error) or _status_of(cause)
        if isinstance(error, FileNotFoundError) and cause is not None and not status:
            error = OSError(str(cause))  # nobody answered
        if isinstance(error, PermissionError) or status in (401, 403):
            return InputError(
                f"You may not use {self}: {self._said(cause or error)}.",
                "Ask its owner for the right to, or sign in as another user.",
                ErrorKind.CONNECTION,
            )
        if isinstance(error, FileNotFoundError) or status in (404, 410):
            return FileNotFoundError(self._said(error))
        if isinstance(error, _FINAL):
            return InputError(
                f"{self}: {self._said(error)}.", "Check the address.", ErrorKind.CONNECTION
            )
        if not is_last:
            return None
        return InputError(
            f"The connection to {self} failed {len(PAUSES) + 1} times: {self._said(error)}.",
            "Check the network and the address, and start again.",
            ErrorKind.CONNECTION,
        )

    def _said(self, error: BaseException) -> str:
        """Text of an error without password and signature."""
        words = str(error).replace(self._url, str(self))
        query = urlsplit(self._url).query if self._scheme in _READ_ONLY else ""
        if query:
            words = words.replace(query, "...")
        password = urlsplit(self._url).netloc.rpartition("@")[0].partition(":")[2]
        if password:
            words = words.replace(password, "***").replace(unquote(password), "***")
        return re.sub(r"\s+", " ", words).strip().rstrip(".") or type(error).__name__


def _status_of(error: BaseException | None) -> int:
    """HTTP status of a server's error; 0 for none."""
    facts = {} if error is None else vars(error)
    response = facts.get("response")  # of Amazon's client
    answer = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
    return int(facts.get("status") or answer.get("HTTPStatusCode", 0))
