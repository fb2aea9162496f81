"""Layers around all requests: log, measures and errors as JSON; the token; limits."""

import asyncio
import hmac
import json
import logging
import os
import re
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from rareclass.errors import ErrorKind, counted, seconds_text, setting
from rareclass.machine import size_text
from rareclass.serving import Limits
from rareclass.serving.measures import Measures
from rareclass.serving.requests import RefusedError, refused

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOGGER = logging.getLogger("rareclass.serving")
# Key of the request's log fields in its scope.
LOG_FIELDS = "rareclass.log_fields"
# Key of the request's body, which has been read.
BODY = "rareclass.body"
TOKEN_VARIABLE = "RARECLASS_TOKEN"
# Bytes: a shorter token can be guessed by many tries.
_SHORTEST_TOKEN = 16
_CHALLENGE = 'Bearer realm="rareclass"'
# Seconds after which a client that found all places taken may try again.
_TRY_AGAIN = "1"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


class JsonLines(logging.Formatter):
    """Log format: time, level, event and `extra={"fields": ...}` as one line of JSON.

    An exception is logged by its type and place, not by its message, which may hold a value.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Line of a record."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **record.__dict__.get("fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            frames = traceback.extract_tb(error.__traceback__)
            line["exception"] = type(error).__name__
            line["raised_at"] = [f"{frame.filename}:{frame.lineno}" for frame in frames[-5:]]
        return json.dumps(line)


def log(
    event: str, level: int = logging.INFO, error: BaseException | None = None, **fields: Any
) -> None:
    """Write a line; rows of requests are logged by their number only."""
    LOGGER.log(level, event, extra={"fields": fields}, exc_info=error)


def start_log(with_requests: bool = True) -> None:
    """Send log lines to standard error, those of single requests only if asked for."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name, level in ((LOGGER.name, logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:], logger.propagate = [handler], False
        logger.setLevel(level)
    LOGGER.filters[:] = [] if with_requests else [lambda line: line.getMessage() != "request"]


class Watched:
    """Outermost layer: counts, times and logs each request, and turns exceptions into errors."""

    def __init__(self, app: App, measures: Measures, paths: frozenset[str]) -> None:
        self._app, self._measures, self._paths = app, measures, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        fields: dict[str, Any] = {}
        scope[LOG_FIELDS] = fields
        sent = dict(scope["headers"]).get(b"x-request-id", b"")
        is_safe = _REQUEST_ID.fullmatch(sent)  # to be written anywhere
        response = _Response(send, sent if is_safe else secrets.token_hex(8).encode())
        self._measures.in_flight.inc()
        try:
            await self._answer(scope, receive, response, fields)
        finally:
            self._measures.in_flight.dec()
            seconds = time.perf_counter() - began
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._measures.request(path, response.status, seconds, fields.get("kind", ""))
            log(
                "request",
                method=scope["method"],
                path=path,
                status=response.status,
                milliseconds=round(1e3 * seconds, 3),
                request_id=response.request_id.decode(),
                **fields,
            )

    async def _answer(
        self, scope: Scope, receive: Receive, response: "_Response", fields: dict[str, Any]
    ) -> None:
        try:
            await self._app(scope, receive, response)
            return
        except RefusedError as error:
            # The traceback's frames hold the refused rows, and one frame would hold the error: a
            # reference cycle that stays until the collector runs.
            found = error.with_traceback(None)
        except Exception as error:
            log("failed", logging.ERROR, error, request_id=response.request_id.decode())
            found = refused(
                500, "failed", "The service failed.", "Its log tells where, by the X-Request-ID."
            )
        fields["kind"] = found.kind
        if not response.status:
            await JSONResponse(found.body(), found.status, found.headers)(scope, receive, response)


class _Response:
    """Sends a response with our headers, and remembers its status: 0 before it has begun."""

    def __init__(self, send: Send, request_id: bytes) -> None:
        self._send, self.request_id, self.status = send, request_id, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message["headers"], *_HEADERS, (b"x-request-id", self.request_id)]
            message = {**message, "headers": headers}
        await self._send(message)


def find_token(file: Path | None) -> bytes | None:
    """Read the token from a file, or else from the environment variable RARECLASS_TOKEN.

    Returns None where there is none. Raises `InputError` for a file that cannot be read, and for a
    token that is too short or has spaces inside.
    """
    if file is not None:
        try:
            token, where = file.read_bytes().strip(), setting("file", file)
        except OSError as error:
            raise ErrorKind.MISSING_FILE.error(
                f"{setting('file', file)} cannot be read: {error.strerror}.", "Name a file with it."
            ) from error
    else:
        written = os.environ.get(TOKEN_VARIABLE)
        if written is None:
            return None
        token, where = written.strip().encode(), TOKEN_VARIABLE
    if len(token) < _SHORTEST_TOKEN or len(token.split()) != 1:
        raise ErrorKind.SETTING.error(
            f"{where} holds no token of {_SHORTEST_TOKEN} or more letters without spaces.",
            "Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'.",
        )
    return token


class Guarded:
    """Refuses requests without the token, except to open paths."""

    def __init__(self, app: App, token: bytes | None, open_paths: frozenset[str]) -> None:
        self._app, self._token, self._open = app, token, open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and self._token is not None and scope["path"] not in self._open:
            sent = dict(scope["headers"]).get(b"authorization", b"")
            scheme, _, token = sent.partition(b" ")
            # In a time that does not depend on how much of the token is right.
            is_right = hmac.compare_digest(token.strip(), self._token)
            if not is_right or scheme.lower() != b"bearer":
                raise refused(
                    401,
                    "token",
                    "The request has no token, or not the right one.",
                    "Send the header Authorization: Bearer TOKEN.",
                    WWW_Authenticate=_CHALLENGE,
                )
        await self._app(scope, receive, send)


class Limited:
    """Limits requests to one path: how many at once, how many bytes, how many seconds.

    The body is read here into the scope, and stopped at the first byte too many. Probes and
    measures are not limited: they matter most when all places are taken.
    """

    def __init__(self, app: App, limits: Limits, path: str) -> None:
        self._app, self._limits, self._path = app, limits, path
        self.n_inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        most = self._limits.max_requests
        if self.n_inside >= most:
            raise refused(
                503,
                "busy",
                f"{counted(most, 'request is', 'requests are')} being answered already.",
                "Try again in a second.",
                Retry_After=_TRY_AGAIN,
            )
        self.n_inside += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self.n_inside -= 1

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        seconds = self._limits.timeout
        try:
            async with asyncio.timeout(seconds):
                scope[BODY] = await self._body(Request(scope, receive))
                await self._app(scope, receive, send)
        except TimeoutError:
            limit = seconds_text(seconds)
            if BODY in scope:
                why = f"No answer within {limit}."
                raise refused(504, "time", why, "Send fewer rows.") from None
            why = f"The body did not come within {limit}."
            raise refused(408, "slow body", why, "Send it faster.") from None

    async def _body(self, request: Request) -> bytes:
        most, parts, n_bytes = self._limits.max_body, [], 0
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > most:
            raise self._too_large()
        try:
            async for part in request.stream():
                n_bytes += len(part)
                if n_bytes > most:
                    raise self._too_large()
                parts.append(part)
        except ClientDisconnect:
            why = "The body was not sent to its end."
            raise refused(400, "gone", why, "Send it again.") from None
        return b"".join(parts)

    def _too_large(self) -> RefusedError:
        return refused(
            413,
            "body size",
            f"The body is larger than {size_text(self._limits.max_body)}.",
            "Send fewer rows at a time.",
            Connection="close",
        )
