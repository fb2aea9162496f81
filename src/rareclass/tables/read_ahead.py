"""The next items made ready in a thread, while the last one is being worked on."""

import atexit
import threading
from collections.abc import Generator, Iterator
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


def read_ahead(items: Generator[T, None, None], depth: int = 2) -> Iterator[T]:
    """Hand on the items of a generator that runs in a thread of its own.

    The thread starts with the first item that is asked for. It is gone, and `items` closed, when
    the last item was handed on, when this generator is closed or let go of, and after any
    exception, Ctrl-C included; the item that is being made then is waited for.

    Parameters
    ----------
    items : generator
        Whatever it raises is raised here, after the items before it.
    depth : int
        Most items that are ready, or being made, beside the one in use.

    Examples
    --------
    >>> list(read_ahead(k * k for k in range(4)))
    [0, 1, 4, 9]
    """
    ready: SimpleQueue[Any] = SimpleQueue()
    room, stopped = threading.Semaphore(depth), threading.Event()
    end = object()

    def make() -> None:
        try:
            while room.acquire() and not stopped.is_set():
                ready.put((next(items), None))
        except StopIteration:
            ready.put((end, None))
        except BaseException as error:
            ready.put((end, error))
        finally:
            items.close()

    def stop() -> None:
        stopped.set()
        room.release()
        # The garbage collector may let go of this generator in that very thread.
        if thread is not threading.current_thread():
            thread.join()

    # Not waited for by an interpreter that ends with this generator half used: `stop` is called.
    thread = threading.Thread(target=make, name="rareclass-read-ahead", daemon=True)
    atexit.register(stop)
    thread.start()
    try:
        while True:
            item, failure = ready.get()
            if failure is not None:
                try:
                    raise failure
                finally:
                    del failure  # its traceback holds this frame
            if item is end:
                return
            room.release()
            yield item
            del item
    finally:
        stop()
        atexit.unregister(stop)
