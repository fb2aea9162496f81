"""A local page on which a person checks the rows of a review, one at a time, by keys."""

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jinja2
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from rareclass.errors import ErrorKind, InputError, called_by_http
from rareclass.review.journal import ReviewJournal, Verdict
from rareclass.review.reviewing import ReviewList
from rareclass.serving import Address
from rareclass.serving.service import listening_at

_LOCAL = "127.0.0.1"


def review_app(journal: ReviewJournal, first: ReviewList, more: Callable[[], ReviewList]) -> Any:
    """Make the ASGI application: the page, its rows, a verdict, and the next list by `more`.

    A verdict is answered once it is on the disk. Requests that come by another host name, or that
    another site's page could make a browser send, are refused.
    """
    now = [first]

    async def page(request: Request) -> Response:
        return _page(journal.header.target)

    async def rows(request: Request) -> Response:
        return JSONResponse(_as_json(journal, now[0]))

    def verdict(body: dict[str, Any]) -> Response:
        given = Verdict(
            str(body.get("row")),
            str(body.get("label")),
            note=str(body.get("note") or ""),
            corrects=body.get("corrects") is True,
        )
        journal.add([given])
        return JSONResponse({"verdicts": len(journal.verdicts)})

    def following(body: dict[str, Any]) -> Response:
        now[0] = more()
        return JSONResponse(_as_json(journal, now[0]))

    def posted(answer: Callable[[dict[str, Any]], Response]) -> Callable[[Request], Any]:
        async def reply(request: Request) -> Response:
            # A form of another site cannot send this type without asking first.
            if request.headers.get("content-type", "") != "application/json":
                return JSONResponse({"message": "Send JSON."}, 415)
            called_by_http()
            try:
                body = json.loads(await request.body())
                return answer(dict(body))
            except InputError as error:
                status = 409 if error.kind is ErrorKind.LABELS else 422
                return JSONResponse({"message": str(error), "kind": error.kind}, status)
            except (ValueError, TypeError):
                return JSONResponse({"message": "Send a JSON object."}, 400)

        return reply

    return Starlette(
        routes=[
            Route("/", page),
            Route("/rows", rows),
            Route("/verdict", posted(verdict), methods=["POST"]),
            Route("/next", posted(following), methods=["POST"]),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[_LOCAL, "localhost"])],
    )


def _page(target: str) -> HTMLResponse:
    """Return the page with its style and script, and headers that keep it to its own host."""
    template, css, script = map(_part, ("review.html.j2", "review.css", "review.js"))
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    content = environment.from_string(template).render(css=css, script=script, target=target)
    policy = (
        f"default-src 'none'; style-src '{_digest(css)}'; script-src '{_digest(script)}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    headers = {"content-security-policy": policy, "referrer-policy": "no-referrer"}
    return HTMLResponse(content, headers=headers)


def _part(name: str) -> str:
    return (files("rareclass.serving") / name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _as_json(journal: ReviewJournal, listed: ReviewList) -> dict[str, Any]:
    """Return rows as the page shows them, with the verdicts that they have."""
    shown = [name for name in listed.rows.columns if not name.startswith("review ")]
    rows, facts_of = [], ("row", "reason", "chance", "score", "why")
    for row in listed.rows.iter_rows(named=True):
        given = journal.verdicts.get(row["review row"])
        cells = [(name, "" if row[name] is None else str(row[name])) for name in shown]
        facts = {name: row[f"review {name}"] for name in facts_of}
        rows.append({**facts, "cells": cells, "verdict": given and given.label})
    labels = [*journal.header.rare, *journal.header.rest]
    return {"round": listed.round.number, "labels": labels, "rows": rows}


def serve_review(
    journal: ReviewJournal,
    first: ReviewList,
    more: Callable[[], ReviewList],
    port: int,
    announce: Callable[[Address], None],
) -> None:
    """Show the page on this machine alone until Ctrl-C; `announce` is called with its address.

    Raises `InputError` where nothing can listen at the port.
    """
    address = Address(_LOCAL, port)
    config = uvicorn.Config(
        review_app(journal, first, more), log_config=None, access_log=False, server_header=False
    )
    with listening_at(address) as listening:
        announce(replace(address, port=listening.getsockname()[1]))
        uvicorn.Server(config).run(sockets=[listening])
