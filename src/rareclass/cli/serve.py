"""``rareclass serve``: a model behind HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from rareclass.cli.door import ModelPath, command, local_file
from rareclass.cli.screen import output, print_notes
from rareclass.errors import ErrorKind, InputError, needed_for

_LIMITS = "Limits of a request"


@command
def serve(
    model: ModelPath,
    host: Annotated[
        str, typer.Option(help="Address to listen at; 0.0.0.0: all addresses of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0: any free one.", min=0, max=65535)] = 8080,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the token that requests must carry. By default the environment "
            "variable RARECLASS_TOKEN, if set.",
            parser=local_file,
        ),
    ] = None,
    max_rows: Annotated[
        int, typer.Option(help="Most rows.", min=1, rich_help_panel=_LIMITS)
    ] = 10_000,
    max_body: Annotated[str, typer.Option(help="Largest body.", rich_help_panel=_LIMITS)] = "16MiB",
    max_requests: Annotated[
        int, typer.Option(help="Most requests at once.", min=1, rich_help_panel=_LIMITS)
    ] = 64,
    timeout: Annotated[
        float, typer.Option(help="Most seconds for an answer.", min=0.01, rich_help_panel=_LIMITS)
    ] = 10.0,
    threads: Annotated[int, typer.Option(help="Threads for requests of many rows.", min=1)] = 1,
    reload: Annotated[
        bool, typer.Option(help="Load a new model file when it appears, after a check.")
    ] = True,
    log_requests: Annotated[
        bool, typer.Option(help="Write a line of JSON for each request to standard error.")
    ] = True,
) -> None:
    """Serve a model over HTTP until Ctrl-C.

    POST /score takes rows as JSON and answers score, probability, decision
    and percentile; ?reasons=3 adds the three columns that raised each score. /openapi.json
    describes the requests; /healthz, /readyz and /metrics are for operations.
    """
    with needed_for("rareclass serve", "rareclass[serve]"):
        from rareclass.serving.live_model import LiveModel
        from rareclass.serving.middleware import Limits, find_token
        from rareclass.serving.service import Address, Settings, serve
    from rareclass.machine import parse_bytes

    try:
        n_bytes = parse_bytes(max_body)
    except ValueError as error:
        raise InputError(
            f"--max-body {max_body} is not a size.", "Give one such as 16MiB.", ErrorKind.SETTING
        ) from error
    limits = Limits(rows=max_rows, body_bytes=n_bytes, requests=max_requests, seconds=timeout)
    token = find_token(token_file)
    settings = Settings(limits, token, threads, 1.0 if reload else 0.0)
    address = Address(host, port)
    served = LiveModel(model)
    if not address.is_loopback and token is None:
        print_notes(
            output(),
            [
                f"anyone who reaches {host} can send requests: no token is set. Set one with "
                "RARECLASS_TOKEN or --token-file."
            ],
        )

    def announce(address: Address) -> None:
        output().print(f"Serving at {address.url} (Ctrl-C stops)")
        output().print(
            f"Rows as JSON: POST {address.url}/score - what they hold: {address.url}/openapi.json"
        )

    serve(served, address, settings, log_requests, announce=announce)
