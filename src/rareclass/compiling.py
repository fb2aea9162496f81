"""The compiler numba: imported at the first call, without a cache where none can be written."""

import hashlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from glob import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from rareclass.machine import signals_noted, tell

_FIRST_RUN = "First run of this kind on this machine: compiling takes up to half a minute."
_EVERY_RUN = (
    "Compiling takes up to half a minute in every run: no folder for compiled code can be "
    "written. The environment variable NUMBA_CACHE_DIR may name one."
)
# What is compiled sooner is not worth a line.
_LONG_SECONDS = 1.0
# False where `njit` found no folder to write to.
_is_cached = True
_lock = threading.RLock()


def njit(**options: Any) -> Callable[[Callable], Any]:
    """Compile as `numba.njit` at the first call; without a cache where there is no folder for it.

    numba caches beside the source or below HOME, and fails where it may write to neither, as in a
    read-only container. There each process compiles anew, which takes some seconds;
    NUMBA_CACHE_DIR may name a folder instead.

    A wrapper that C code could call is left out: it takes a tenth of the time.
    """
    options |= {"no_cfunc_wrapper": True}
    return lambda function: _Compiled(function, options)


class _Compiled:
    """A function that is compiled when it is first called.

    The compiled functions that it calls are global names beside it: numba wants its own objects
    there.
    """

    def __init__(self, function: Callable, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._function, self._options = function, options
        self._sources = _sources_beside(function.__code__.co_filename)
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:
        if self._dispatcher is None:
            self.dispatcher()
        return self._dispatcher(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self._function.__module__, self._function.__name__)

    def dispatcher(self) -> Any:
        """Return numba's object for the function; nothing is compiled before it is called."""
        with _lock:
            if self._dispatcher is None:
                self._make_with_others()
            return self._dispatcher

    def _make_with_others(self) -> None:
        """Make numba's objects for all compiled functions of the module, then show them at once.

        Another thread may call one of them as soon as it sees it, which compiles those it names.
        """
        names = self._function.__globals__
        named = {name: each for name, each in names.items() if isinstance(each, _Compiled)}
        made = dict[_Compiled, Any]()
        for each in {self, *named.values()}:
            is_here = each._function.__globals__ is names
            made[each] = each._made() if is_here else each.dispatcher()
        names.update({name: made[each] for name, each in named.items()})
        for each, dispatcher in made.items():
            each._dispatcher = dispatcher

    def _made(self) -> Any:
        """Return numba's object for the function, made if it is not there."""
        global _is_cached
        if self._dispatcher is not None:
            return self._dispatcher
        options = {name: value for name, value in self._options.items() if name != "cache"}
        dispatcher = _imported().njit(**options)(self._function)
        dispatcher.compile = _signals_held()(dispatcher.compile)
        if self._options.get("cache"):
            try:
                dispatcher._cache = _kept_code()(self._function, self._sources)
            except RuntimeError:  # no locator available
                _is_cached = False
        return dispatcher


def _by_name(module: str, name: str) -> Any:
    return vars(import_module(module))[name]


@cache
def _sources_beside(file: str) -> str:
    """Digest of the compiled functions' source files in a folder, when one of them is imported.

    They call each other and nothing else of the package (`tests/test_import_graph.py`). Later is
    too late: a file that is edited meanwhile is not what this process compiles.
    """
    found = hashlib.sha256()
    for path in sorted({Path(file), *Path(file).parent.glob("_*_jit.py")}):
        with suppress(OSError):  # in a zip file
            found.update(path.read_bytes())
    return found.hexdigest()


@cache
def _kept_code() -> Any:
    """Class of numba's caches that processes may write, read and delete at the same time.

    numba numbers the files of a function's code, and an index says which is of which types. Two
    processes that compile it for different types may both write number 1, and a process killed
    between both files leaves an index that names older code: then code runs on types or from
    sources that it was not compiled for. Here a file's name tells its sources and types, and there
    is no index. numba compares only the function's own file with the one that was compiled.
    """
    from numba.core.caching import FunctionCache, IndexDataCacheFile

    class Files(IndexDataCacheFile):
        def save(self, key: Any, data: Any) -> None:
            folder, name = Path(self._cache_path), self._name_of(key)
            self._save_data(name, (key, data))
            function, sources, *_ = name.rsplit(".", 3)
            for path in folder.glob(f"{escape(function)}.*"):
                if not path.name.startswith(f"{function}.{sources}."):
                    path.unlink(missing_ok=True)

        def load(self, key: Any) -> Any:
            try:
                found, data = self._load_data(self._name_of(key))
            except Exception:  # none, or cut short as the machine went down
                return None
            return data if found == key else None

        def _name_of(self, key: Any) -> str:
            made_of = (self._version, self._source_stamp)
            digests = (hashlib.sha256(repr(each).encode()).hexdigest() for each in (made_of, key))
            function = self._index_name.removesuffix(".nbi")
            return ".".join([function, *(digest[:16] for digest in digests), "nbc"])

    class Kept(FunctionCache):
        def __init__(self, function: Callable, sources: str) -> None:
            super().__init__(function)
            stamp = (sources, self._cache_file._source_stamp)
            self._cache_file = Files(self.cache_path, self._impl.filename_base, stamp)

        def save_overload(self, sig: Any, data: Any) -> None:
            with suppress(OSError):  # no room, or the folder was deleted: the code is in memory
                super().save_overload(sig, data)

    return Kept


@contextmanager
def _signals_held() -> Iterator[None]:
    """Let signals that end a command or a fit wait for the end of the block.

    LLVM calls Python in the middle of compiling and loading, where what a handler raises is
    dropped: the signal is lost, and LLVM runs code that it was not given.
    """
    came = list[int]()
    try:
        with signals_noted(lambda number, _: came.append(number)):
            yield
    finally:
        for number in came:
            signal.raise_signal(number)


class _CompileClock:
    """Seconds during which some thread compiled, read compiled code, or waited for either."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running, self._since, self._before = 0, 0.0, 0.0

    def notify(self, event: Any) -> None:
        """Take in an event of numba."""
        self.count(1 if event.is_start else -1)

    def count(self, step: int) -> None:
        """Count one more running, or one fewer; time counts while any is."""
        with self._lock:
            now = time.perf_counter()
            if not self._running:
                self._since = now
            self._running += step
            if not self._running:
                self._before += now - self._since

    @property
    def seconds(self) -> float:
        with self._lock:
            running = time.perf_counter() - self._since if self._running else 0.0
            return self._before + running


class _FirstRunNotice(_CompileClock):
    """One line on the terminal once this process has compiled for long, not read from the cache."""

    _is_told = False

    def notify(self, event: Any) -> None:
        super().notify(event)
        if not self._is_told and self.seconds > _LONG_SECONDS:
            self._is_told = True
            tell(_FIRST_RUN if _is_cached else _EVERY_RUN)


_clock, _notice = _CompileClock(), _FirstRunNotice()


@cache
def _imported() -> Any:
    """Import numba, once, and listen to what it compiles."""
    _clock.count(1)
    try:
        import numba
        from numba.core import event
    finally:
        _clock.count(-1)
    event.Listener.register(_CompileClock)
    event.register("numba:compiler_lock", _clock)
    event.register("numba:compile", _notice)
    return numba


def compiled_seconds() -> float:
    """Return the seconds that numba has taken in this process, from any thread.

    The first run on a machine compiles for up to a minute what later runs read from a cache. Who
    measures what learning costs leaves these seconds out.
    """
    return _clock.seconds
