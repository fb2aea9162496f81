"""Around all requests: time, measures, the log, and errors as one shape of JSON."""

import json
import logging
import re
import secrets
import time
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException

from rareclass.serving.limits import App, Message, Receive, Scope, Send
from rareclass.serving.measures import Measures
from rareclass.serving.refused import RefusedError, refused
from rareclass.serving.request_log import log

# In a request's scope: what there is to tell of it.
TOLD = "rareclass.told"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
)


class Watched:
    """Answers refused requests and those that fail, and tells of every one."""

    def __init__(self, app: App, measures: Measures, paths: frozenset[str]) -> None:
        self._app, self._measures, self._paths = app, measures, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        told: dict[str, Any] = {}
        scope[TOLD] = told
        answer = _Answer(send, _request_id(scope))
        self._measures.in_flight.inc()
        try:
            await self._answered(scope, receive, answer, told)
        finally:
            self._measures.in_flight.dec()
            seconds = time.perf_counter() - began
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._measures.request(path, answer.status, seconds, told.get("kind", ""))
            log(
                "request",
                method=scope["method"],
                path=path,
                status=answer.status,
                milliseconds=round(1e3 * seconds, 3),
                request_id=answer.request_id.decode(),
                **told,
            )

    async def _answered(
        self, scope: Scope, receive: Receive, answer: "_Answer", told: dict[str, Any]
    ) -> None:
        try:
            await self._app(scope, receive, answer)
            return
        except RefusedError as error:
            # Its frames hold the rows that it refuses, and one of them would hold it: a circle
            # that stays until the collector comes.
            found = error.with_traceback(None)
        except Exception as error:
            log("failed", logging.ERROR, error, request_id=answer.request_id.decode())
            found = refused(
                500, "failed", "The service failed.", "Its log tells where, by the X-Request-ID."
            )
        told["kind"] = found.kind
        if not answer.status:
            await answer.give(found)


class _Answer:
    """Sends an answer with headers of ours, and remembers its status: 0 before it has begun."""

    def __init__(self, send: Send, request_id: bytes) -> None:
        self._send, self.request_id, self.status = send, request_id, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message["headers"], *_HEADERS, (b"x-request-id", self.request_id)]
            message = {**message, "headers": headers}
        await self._send(message)

    async def give(self, error: RefusedError) -> None:
        """Send an error."""
        body = json.dumps(error.body()).encode()
        headers = [(b"content-type", b"application/json")]
        headers.append((b"content-length", str(len(body)).encode()))
        headers += [
            (name.lower().encode(), value.encode()) for name, value in error.headers.items()
        ]
        start = {"type": "http.response.start", "status": error.status, "headers": headers}
        await self(start)
        await self({"type": "http.response.body", "body": body, "more_body": False})


def _request_id(scope: Scope) -> bytes:
    """The request's own identifier where it has one that can be written anywhere, or a new one."""
    given = dict(scope["headers"]).get(b"x-request-id", b"")
    return given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8).encode()


def not_found(error: HTTPException, paths: Mapping[str, str]) -> RefusedError:
    """What the framework refuses: an unknown path, a method that a path does not take."""
    if error.status_code == 404:
        listed = ", ".join(f"{method} {path}" for path, method in paths.items())
        return refused(404, "path", "There is nothing here.", f"There are: {listed}.")
    headers = {name.replace("-", "_"): value for name, value in (error.headers or {}).items()}
    return refused(error.status_code, "method", f"{error.detail}.", "", **headers)
