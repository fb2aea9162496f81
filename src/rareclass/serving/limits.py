"""How much a request may ask for: bytes, time, and requests at once."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from rareclass.errors import counted
from rareclass.machine import size_text
from rareclass.serving.refused import RefusedError, refused

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Seconds that somebody who found all places taken may try again after.
_TRY_AGAIN = "1"


@dataclass(frozen=True)
class Limits:
    """What a request may ask for."""

    rows: int = 10_000
    explained_rows: int = 100
    reasons: int = 20
    body_bytes: int = 16 << 20
    requests: int = 64  # at once
    seconds: float = 10.0


class Limited:
    """Lets requests to one path through, so many at once; reads their bodies up to a size.

    The body is read here, chunked or not, and stopped at the first byte too many. Probes and
    measures are not limited: they are asked for when all places are taken.
    """

    def __init__(self, app: App, limits: Limits, path: str) -> None:
        self._app, self._limits, self._path = app, limits, path
        self.n_inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        most = self._limits.requests
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
        seconds = self._limits.seconds
        has_body = False
        try:
            async with asyncio.timeout(seconds):
                body = await self._body(scope, receive)
                has_body = True
                await self._app(scope, _once(body, receive), send)
        except TimeoutError:
            if has_body:
                raise refused(
                    504, "time", f"No answer within {seconds:g} s.", "Send fewer rows."
                ) from None
            raise refused(
                408, "slow body", f"The body did not come within {seconds:g} s.", "Send it faster."
            ) from None

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        most = self._limits.body_bytes
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > most:
                raise self._too_large()
        parts, n_bytes = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise refused(400, "gone", "The body was not sent to its end.", "Send it again.")
            part = message.get("body", b"")
            n_bytes += len(part)
            if n_bytes > most:
                raise self._too_large()
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> RefusedError:
        return refused(
            413,
            "body size",
            f"The body is larger than {size_text(self._limits.body_bytes)}.",
            "Send fewer rows at a time.",
            Connection="close",
        )


def _once(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read already, and then what comes after it."""
    is_given = False

    async def give() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give
