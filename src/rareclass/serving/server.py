"""The process: uvicorn with the service in it, from its start to its graceful stop."""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import uvicorn
from threadpoolctl import threadpool_limits

import rareclass
from rareclass.errors import ErrorKind, InputError
from rareclass.serving.live_model import LiveModel
from rareclass.serving.middleware import start_log
from rareclass.serving.service import Settings, service_of

# Seconds that a thread may keep the interpreter: the longest that a new request waits for scoring.
_SWITCH_SECONDS = 0.001
# Seconds that a connection without a request is kept.
_KEEP_ALIVE = 75
# Seconds that requests in hand may take after the signal to stop.
_GRACE = 30
# Connections that wait to be taken.
_BACKLOG = 1024


@dataclass(frozen=True)
class Address:
    """Where to listen."""

    host: str = "127.0.0.1"
    port: int = 8080

    @property
    def is_loopback(self) -> bool:
        """True where only this machine can connect."""
        return self.host in ("127.0.0.1", "::1", "localhost")

    @property
    def url(self) -> str:
        """URL for a browser on this machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


class _Server(uvicorn.Server):
    """Server that looks at the model's file at once on SIGHUP."""

    async def startup(self, sockets: list | None = None) -> None:
        await super().startup(sockets)
        look = self.config.app.state.look  # type: ignore[union-attr]
        if sys.platform != "win32":
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(
                signal.SIGHUP, lambda: loop.run_in_executor(None, look, True) and None
            )


def serve(
    model: LiveModel,
    address: Address,
    settings: Settings,
    with_requests: bool = True,
    announce: Callable[[Address], None] = lambda address: None,
) -> None:
    """Answer requests until SIGTERM or Ctrl-C, then finish those in hand.

    `announce` is called with the address once the server listens; port 0 is any free port. SIGHUP
    opens the model's file anew. BLAS gets one thread a request: requests share the cores.

    Raises `InputError` where nothing can listen at the address.
    """
    start_log(with_requests)
    config = uvicorn.Config(
        service_of(model, settings, rareclass.__version__),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE,
    )
    with _listening(address) as listening, threadpool_limits(1), _ignoring_sigterm():
        announce(replace(address, port=listening.getsockname()[1]))
        sys.setswitchinterval(_SWITCH_SECONDS)
        _Server(config).run(sockets=[listening])


@contextmanager
def _listening(address: Address) -> Iterator[socket.socket]:
    try:
        places = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        family, _, _, _, place = places[0]
        listening = socket.create_server(place[:2], family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"Nothing can listen at {address.url}: {error}.",
            "Give another --host or --port, or stop what is there.",
            ErrorKind.CONNECTION,
        ) from error
    with listening:
        yield listening


@contextmanager
def _ignoring_sigterm() -> Iterator[None]:
    """Ignore SIGTERM, which uvicorn raises once more after it has stopped."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
