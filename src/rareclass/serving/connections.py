"""Connections that are closed where a client takes too long, or sends a head without end."""

from asyncio import TimerHandle, Transport
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Bytes of a request's line and headers together.
_MOST_HEAD = 64 << 10


class Connection(HttpToolsProtocol):
    """A connection of a client, which may be idle for some seconds between requests.

    uvicorn waits without end for the first byte of a connection and for the end of a head, and
    each byte of a body that nobody reads gives a client more time. Requests in hand have limits of
    their own.
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
        super().data_received(data)
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > _MOST_HEAD and not self.transport.is_closing():
                self.send_400_response("The head is too large.")

    def on_headers_complete(self) -> None:
        """Hand the request on, whose body has limits of its own."""
        self._head_bytes = None
        self._wait(None)
        super().on_headers_complete()

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
