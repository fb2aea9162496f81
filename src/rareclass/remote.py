"""Files behind URLs, as paths: copied here when they are read, written whole."""

import errno
import io
import os
import re
import stat
import threading
from datetime import datetime
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit

from rareclass.errors import ErrorKind, InputError, setting
from rareclass.scratch_file import BytesAt, Scratch, read_file_at

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_CHUNK_BYTES = 8 << 20


def path_of(name: str | os.PathLike[str]) -> Path:
    """Return the `Path` of a name, or a `RemotePath` in place of one for a URL.

    Raises `InputError` for an empty name, which `Path` takes for the folder where one is, and for
    one that the system cannot follow: too long, links in a circle, a current folder that is gone.

    >>> path_of("a/b.csv"), str(path_of("s3://bucket/b.csv"))
    (PosixPath('a/b.csv'), 's3://bucket/b.csv')
    """
    if isinstance(name, RemotePath):
        return cast(Path, name)
    text = os.fspath(name)
    if not text.strip():
        raise ErrorKind.SETTING.error(
            "The name of a file is empty.", "Give a name; . is the current folder.", value=text
        )
    scheme = _URL.match(text)
    if scheme is None or isinstance(name, Path):
        return _followed(Path(name))
    if scheme[1].lower() == "file":
        return _followed(Path(unquote(text.partition("://")[2])))
    is_web = scheme[1].lower() in ("http", "https")
    path = RemotePath(text.partition("?")[0] if is_web else text)
    path._url_given = text
    return cast(Path, path)


def _followed(path: Path) -> Path:
    try:
        os.stat(os.path.abspath(path))
    except OSError as error:
        is_gone = error.filename is None  # of the current folder
        if is_gone or error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            why = "the current folder was removed" if is_gone else error.strerror
            message, remedy = f"{path} cannot be found: {why}.", "Give another name."
            raise ErrorKind.MISSING_FILE.error(message, remedy) from error
    return path


class RemotePath(PurePosixPath):
    """File or folder behind a URL, with the methods of `Path` that reading and writing need.

    Any URL of fsspec (``s3://``, ``gs://``, ``az://``, ``https://``), with the credentials that its
    package finds. A file that is opened is first copied into a nameless scratch file, once.

    The text form has no password and no signature. Raises `InputError` for a missing package or
    permission and for a lost connection; `FileNotFoundError` as `Path` does.
    """

    # Not set in `__init__`: pathlib makes paths of parts without it.
    _url_given: str | None = None
    _known: Any = None  # facts of the file system
    _copy: Scratch | None = None

    @property
    def _url(self) -> str:
        return self._url_given or super().__str__().replace(":/", "://", 1)

    @property
    def _is_web(self) -> bool:
        return self.parts[0].lower() in ("http:", "https:")

    def __str__(self) -> str:
        shown = re.sub(r"://([^/@:]*):[^/@]*@", r"://\1@", self._url)
        return re.sub(r"\?.*", "?...", shown) if self._is_web else shown

    __repr__ = __str__

    def __fspath__(self) -> str:
        raise ErrorKind.UNSUPPORTED.error(
            f"{self} is not on this machine's disk, where this has to be.",
            "Give a file or folder of this machine, and copy it afterwards.",
        )

    def resolve(self) -> "RemotePath":
        """Return the path itself: a URL is absolute."""
        return self

    def exists(self) -> bool:
        """Return whether there is a file or folder."""
        return self._info() is not None

    def is_file(self) -> bool:
        """Return whether there is a file."""
        return (self._info() or {}).get("type") == "file"

    def is_dir(self) -> bool:
        """Return whether there is a folder: names that begin with this one and a slash."""
        return (self._info() or {}).get("type") == "directory"

    def stat(self) -> SimpleNamespace:
        """Return size, kind and time of change; raises `FileNotFoundError` for no file."""
        info = self._info()
        if info is None:
            raise FileNotFoundError(str(self))
        changed = info.get("LastModified") or info.get("last_modified") or info.get("created")
        return SimpleNamespace(
            st_size=self._copied().size if info["size"] is None else int(info["size"]),
            st_mode=stat.S_IFREG if info["type"] == "file" else stat.S_IFDIR,
            st_mtime=changed.timestamp() if isinstance(changed, datetime) else 0.0,
        )

    def files(self) -> list["RemotePath"]:
        """List all files in a folder and below it."""
        folder, found = self._call(lambda system, place: (place, system.find(place, detail=True)))
        paths = [self / name.removeprefix(folder).lstrip("/") for name in found]
        for path, info in zip(paths, found.values(), strict=True):
            path._known = info
        return paths

    def open(self, mode: str = "rb", buffering: int = -1) -> BinaryIO:
        """Open the copy for reading; unbuffered it is to be read by position only."""
        copy, lock = self._copied(), threading.Lock()
        if buffering == 0:
            return cast(BinaryIO, os.fdopen(os.dup(copy.file.fileno()), "rb", 0))
        raw = BytesAt(lambda part, at: read_file_at(copy.file, part, at, lock), lambda: copy.size)
        return cast(BinaryIO, io.BufferedReader(raw, 1 << 16))

    def check_writable(self, option: str) -> None:
        """Raise `InputError` where the file could not be written later, as far as is known now."""
        if self._is_web:
            raise ErrorKind.UNWRITABLE.error(
                f"{option} {self}: files cannot be written to a web server.",
                "Give s3://, gs:// or az://.",
            )
        if self._url.endswith("/") or self.is_dir():
            raise ErrorKind.UNWRITABLE.error(
                f"{option} {self} is a folder.", "Give the name of a file."
            )
        if not self._call(lambda system, place: system.exists(place.partition("/")[0] or "/")):
            raise ErrorKind.MISSING_FILE.error(
                f"{option} {self}: there is no bucket {self.parts[1]}.", "Check the name."
            )

    def put(self, file: Path) -> None:
        """Write a file, whole and at once, over one that is there."""
        try:
            self._call(lambda system, place: system.put_file(str(file), place))
        except FileNotFoundError:
            raise ErrorKind.UNWRITABLE.error(
                f"Cannot write {self}: there is no such bucket or folder.", "Check the name."
            ) from None
        self._known = None

    def _copied(self) -> Scratch:
        """Copy the file into a scratch file, once."""

        def copy(system: Any, place: str) -> Scratch:
            scratch = Scratch()
            with system.open(place, "rb", block_size=0 if self._is_web else None) as file:
                while chunk := file.read(_CHUNK_BYTES):
                    scratch.append(chunk)
            return scratch

        if self._copy is None:
            self._copy = self._call(copy)
        return self._copy

    def _info(self) -> Any:
        """Facts that the file system gives; None where nothing is there."""
        if self._known is None:
            try:
                self._known = self._call(lambda system, place: system.info(place))
            except FileNotFoundError:
                return None
        return self._known

    def _call(self, call: Any) -> Any:
        """Call a function of the file system and the file's name there."""
        try:
            import fsspec

            system, place = fsspec.core.url_to_fs(self._url)
            system.invalidate_cache()
            return call(system, str(place))
        except InputError:
            raise
        except Exception as error:
            fault = self._fault(error)
        # Not within `except`: the first error may hold a signature.
        raise fault

    def _fault(self, error: Exception) -> Exception:
        """Return the error to raise for one of fsspec or of a package that it uses."""
        cause = error.__cause__ if self._is_web else None
        is_absent = cause is None or getattr(cause, "status", 0) in (404, 410)
        if isinstance(error, FileNotFoundError) and is_absent:
            return FileNotFoundError(str(self))
        words = re.sub(r"\s+", " ", str(cause or error).replace(self._url, str(self)))
        for secret in (urlsplit(self._url).query, urlsplit(self._url).password):
            words = words.replace(secret or self._url, "...")
        words = words.strip().rstrip(".") or type(error).__name__
        if isinstance(error, ImportError):
            remedy = 'pip install "rareclass[s3]" is for s3://.'
            return ErrorKind.MISSING_PACKAGE.error(f"{self}: {words}.", remedy)
        if isinstance(error, ValueError):
            return ErrorKind.UNSUPPORTED.error(
                f"{self} is not an address of files: {words}.",
                "Give s3://, gs://, az:// or the name of a file; to read, also https://, or a "
                f"database with {setting('query')}.",
            )
        return ErrorKind.CONNECTION.error(
            f"Cannot reach {self}: {words}.",
            "Check address, network and your rights there. Sign in as for its own tools: aws "
            "configure or AWS_PROFILE, gcloud auth application-default login, "
            "AZURE_STORAGE_CONNECTION_STRING.",
        )
