"""The service: its paths, the layers around them, and the process from start to graceful stop."""

import asyncio
import logging
import signal
import socket
import sys
from asyncio import TimerHandle, Transport
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits

import rareclass
from rareclass.errors import ErrorKind, needed_for, setting

with needed_for("rareclass.serving", "rareclass[serve]"):
    import uvicorn
    from fastapi import FastAPI, Request, Response
    from fastapi.responses import JSONResponse
    from httptools import HttpRequestParser
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rareclass.machine import hush
from rareclass.serving import Address, Limits
from rareclass.serving.description import OPEN_PATHS, READ_PATHS, openapi_of
from rareclass.serving.live_model import LiveModel, Look
from rareclass.serving.measures import MEDIA_TYPE, Measures
from rareclass.serving.middleware import BODY, LOG_FIELDS, Guarded, Limited, Watched, log, start_log
from rareclass.serving.requests import JSON, Fault, Lanes, RefusedError, refused, schema_error

PATHS = {"/score": "POST", **dict.fromkeys(READ_PATHS, "GET")}
# Seconds that a thread may keep the interpreter: the longest that a new request waits for scoring.
_SWITCH_SECONDS = 0.001
# Seconds that a connection without a request is kept.
_KEEP_ALIVE = 75
# Seconds that requests in hand may take after the signal to stop.
_GRACE = 30
# Connections that wait to be taken.
_BACKLOG = 1024


@dataclass(frozen=True)
class Settings:
    """Settings of the service."""

    limits: Limits = field(default_factory=Limits)
    token: bytes | None = None
    n_large: int = 1  # threads for large requests
    look_seconds: float = 1.0  # between looks at the model's file; 0 for none


def service_of(model: LiveModel, settings: Settings, version: str) -> FastAPI:
    """Make the ASGI application that answers with a model."""
    measures = Measures(model)
    limits = settings.limits
    lanes = Lanes(model, limits, settings.n_large, measures.scored)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.is_ready = True
        looks = asyncio.create_task(_look_again(app.state.look, settings.look_seconds))
        log("started", model=model.now.name)
        yield
        app.state.is_ready = False
        looks.cancel()
        with suppress(asyncio.CancelledError):
            await looks
        lanes.close()
        measures.close()
        log("stopped", model=model.now.name)

    app = FastAPI(
        lifespan=lifespan,
        docs_url=None,  # Swagger's page comes from elsewhere
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(Watched, measures=measures, paths=frozenset(PATHS)),
            Middleware(Guarded, token=settings.token, open_paths=OPEN_PATHS),
            Middleware(Limited, limits=limits, path="/score"),
        ],
        exception_handlers={HTTPException: _framework_refuses},
    )
    app.state.is_ready = True
    app.state.look = partial(_look, model, measures)
    _add_answers(app, lanes, limits)
    _add_description(app, model, measures, settings, version)
    return app


def _add_answers(app: FastAPI, lanes: Lanes, limits: Limits) -> None:
    """Add the path that scores rows."""

    async def score(request: Request) -> Response:
        fields = request.scope[LOG_FIELDS]
        body, n_reasons = request.scope[BODY], _reasons_wanted(request, limits)
        fields["bytes"] = len(body)
        try:
            answer = await lanes.answer(body, n_reasons)
        except RefusedError as error:
            columns = {fault.column for fault in error.faults if fault.column}
            fields["columns"] = sorted(columns)
            raise
        fields["rows"] = answer.n_rows
        return Response(answer.body, media_type=JSON)

    app.add_route("/score", score, methods=["POST"])


def _add_description(
    app: FastAPI, model: LiveModel, measures: Measures, settings: Settings, version: str
) -> None:
    """Add the paths that describe the service."""

    def openapi() -> dict[str, Any]:
        has_token = settings.token is not None
        return openapi_of(model.now, version, settings.limits, has_token)

    def give_openapi(request: Request) -> Response:  # in a thread: wide tables take a while
        return JSONResponse(openapi())

    async def give_model(request: Request) -> Response:
        served = model.now
        columns = [
            {"name": each.name, "kind": each.kind, "reads_as": each.reads_as}
            for each in served.columns
        ]
        facts = {"model": served.name, **served.facts, "columns": columns}
        return JSONResponse(
            {**facts, "example": dict(served.example), "limits": asdict(settings.limits)}
        )

    def give_measures(request: Request) -> Response:  # in a thread: it counts the rows held
        return Response(measures.exposed(), headers={"content-type": MEDIA_TYPE})

    async def give_health(request: Request) -> Response:
        return JSONResponse({"alive": True})

    async def give_ready(request: Request) -> Response:
        if not app.state.is_ready:
            raise refused(503, "stopping", "The service is stopping.", "Ask another one.")
        return JSONResponse({"ready": True, "model": model.now.name})

    app.openapi = openapi  # type: ignore[method-assign]
    app.add_route("/openapi.json", give_openapi, methods=["GET"])
    app.add_route("/model", give_model, methods=["GET"])
    app.add_route("/metrics", give_measures, methods=["GET"])
    app.add_route("/healthz", give_health, methods=["GET"])
    app.add_route("/readyz", give_ready, methods=["GET"])


def _reasons_wanted(request: Request, limits: Limits) -> int:
    """Read a request's headers and parameters; raises `RefusedError` for unsupported ones."""
    media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type != JSON:
        raise refused(415, "media type", "The body is of a type that is not read.", f"Send {JSON}.")
    if "content-encoding" in request.headers:
        raise refused(415, "media type", "The body is compressed.", "Send it as it is.")
    text = request.query_params.get("reasons", "0")
    is_number = text.isascii() and text.isdigit() and len(text) < 9
    if not is_number or int(text) > limits.reasons:
        message = "The parameter reasons is not a valid number of columns."
        remedy = f"Give a whole number from 0 to {limits.reasons}."
        raise schema_error(Fault(None, None, message, remedy))
    return int(text)


def _look(model: LiveModel, measures: Measures, at_once: bool = False) -> Look:
    """Look at the model's file, and count and log the outcome."""
    found = model.look(at_once)
    if found.outcome in ("loaded", "refused"):
        measures.load(found.outcome)
        level = logging.INFO if found.outcome == "loaded" else logging.ERROR
        reason = {"exception": found.kind, "reason": found.reason}
        log(f"model {found.outcome}", level, None, model=model.now.name, **reason)
    return found


async def _look_again(look: Callable[[bool], Look], seconds: float) -> None:
    """Look at the file from time to time."""
    while seconds:
        await asyncio.sleep(seconds)
        await asyncio.to_thread(look, False)


async def _framework_refuses(request: Request, error: Exception) -> Response:
    """Raise the error of an unknown path, or of a method that a path does not take."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        listed = ", ".join(f"{method} {path}" for path, method in PATHS.items())
        raise refused(404, "path", "There is nothing here.", f"There are: {listed}.")
    headers = {name.replace("-", "_"): value for name, value in (error.headers or {}).items()}
    remedy = f"Send {PATHS[request.url.path]} {request.url.path}."
    raise refused(error.status_code, "method", f"{error.detail}.", remedy, **headers)


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


def server_config(service: FastAPI, limits: Limits, idle: float = _KEEP_ALIVE) -> uvicorn.Config:
    """Make the settings of the server; `idle` are seconds without a request."""
    return uvicorn.Config(
        service,
        http=partial(Connection, head_seconds=limits.timeout, idle_seconds=idle),  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE,
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
    hush(True)  # from now on each line of standard error is JSON
    config = server_config(service_of(model, settings, rareclass.__version__), settings.limits)
    with listening_at(address) as listening, threadpool_limits(1):
        announce(replace(address, port=listening.getsockname()[1]))
        sys.setswitchinterval(_SWITCH_SECONDS)
        with suppress(SystemExit):  # uvicorn raises SIGTERM once more after it has stopped
            _Server(config).run(sockets=[listening])


@contextmanager
def listening_at(address: Address) -> Iterator[socket.socket]:
    """Yield a socket that listens; raises `InputError` where nothing can listen there."""
    try:
        places = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        family, _, _, _, place = places[0]
        listening = socket.create_server(place[:2], family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        raise ErrorKind.CONNECTION.error(
            f"Nothing can listen at {address.url}: {error}.",
            f"Give another {setting('host')} or {setting('port')}, or stop the process that uses "
            "it.",
        ) from error
    with listening:
        yield listening


# Bytes of a request's line and headers together.
_MOST_HEAD = 64 << 10


class Connection(HttpToolsProtocol):
    """A connection of a client, which may be idle for some seconds between requests.

    uvicorn waits without end for the first byte of a connection and for the end of a head, and
    each byte of a body that nobody reads gives a client more time. Requests in hand have limits of
    their own. A request that offers another protocol, as Java's clients offer HTTP/2, is answered
    as if it did not: uvicorn would lose its body.
    """

    def __init__(self, *given: Any, head_seconds: float, idle_seconds: float, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head_seconds, self._idle_seconds = head_seconds, idle_seconds
        self._deadline: TimerHandle | None = None
        self._head_bytes: int | None = None  # None outside of a head

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait(self._idle_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._wait(None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Wait for the end of a head."""
        super().on_message_begin()
        self._head_bytes = 0
        self._wait(self._head_seconds)

    def data_received(self, data: bytes) -> None:
        """Take bytes, of a head not without end."""
        self._left = data
        while self._left:  # a second time where a head is read anew
            self._data, self._left = self._left, b""
            super().data_received(self._data)
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > _MOST_HEAD and not self.transport.is_closing():
                self.send_400_response("The head is too large.")

    def on_headers_complete(self) -> None:
        """Hand the request on, whose body has limits of its own."""
        self._head_bytes = None
        self._wait(None)
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the request, unless it is still to be read without its offer of a protocol."""
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Read the head anew without its offer; uvicorn calls this while it handles the offer."""
        method, (n_read,) = self.parser.get_method(), sys.exception().args  # type: ignore[union-attr]
        kept = [each for each in self.headers if each[0] != b"upgrade"]
        if len(kept) == len(self.headers):  # CONNECT, which is for proxies
            self.send_400_response("Invalid HTTP request received.")
            return
        head = [b"%s %s HTTP/1.1" % (method, self.url), *(b"%s: %s" % each for each in kept)]
        self.parser = HttpRequestParser(self)
        self._left = b"\r\n".join([*head, b"", b""]) + self._data[n_read:]

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self.cycle.response_complete:  # the next request may be here already
            self._wait(self._idle_seconds)

    def _wait(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None
        if seconds is not None:
            self._deadline = self.loop.call_later(seconds, self.transport.close)
