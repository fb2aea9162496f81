"""Who may ask: whoever has the token, where there is one."""

import base64
import binascii
import hmac
import os
from pathlib import Path

from rareclass.errors import InputError
from rareclass.serving.limits import App, Receive, Scope, Send
from rareclass.serving.refused import refused

VARIABLE = "RARECLASS_TOKEN"
# Bytes: fewer can be guessed, by many who try.
_SHORTEST = 16
# Basic as well: a browser asks for it by itself, and sends it as the password.
_CHALLENGE = 'Bearer realm="rareclass", Basic realm="rareclass", charset="UTF-8"'


def find_token(file: Path | None) -> bytes | None:
    """The token of a file, or else of the environment variable RARECLASS_TOKEN; None for none.

    Raises `InputError` where the file cannot be read, for a token that is too short, and for one
    with spaces inside.
    """
    if file is not None:
        try:
            token, where = file.read_bytes().strip(), f"--token-file {file}"
        except OSError as error:
            raise InputError(
                f"--token-file {file} cannot be read: {error.strerror}.", "Name a file with it."
            ) from error
    else:
        written = os.environ.get(VARIABLE)
        if written is None:
            return None
        token, where = written.strip().encode(), VARIABLE
    if len(token) < _SHORTEST or len(token.split()) != 1:
        raise InputError(
            f"{where} holds no token of {_SHORTEST} or more letters without spaces.",
            "Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'.",
        )
    return token


class Guarded:
    """Lets nobody in without the token, but to some open paths."""

    def __init__(self, app: App, token: bytes | None, open_paths: frozenset[str]) -> None:
        self._app, self._token, self._open = app, token, open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and self._token is not None and scope["path"] not in self._open:
            given = _given(dict(scope["headers"]).get(b"authorization", b""))
            # In a time that does not depend on how much of it is right.
            if not hmac.compare_digest(given, self._token):
                raise refused(
                    401,
                    "token",
                    "The request has no token, or not the right one.",
                    "Send the header Authorization: Bearer TOKEN.",
                    WWW_Authenticate=_CHALLENGE,
                )
        await self._app(scope, receive, send)


def _given(header: bytes) -> bytes:
    """The token that a header holds: a bearer's, or the password of basic authentication."""
    scheme, _, value = header.partition(b" ")
    value = value.strip()
    if scheme.lower() == b"bearer":
        return value
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return b""
    return b""
