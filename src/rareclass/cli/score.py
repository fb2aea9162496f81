"""``rareclass score`` and ``serve``: a model on the rows of a file, or of requests over HTTP."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.cli.method import read_seconds
from rareclass.errors import needed_for
from rareclass.files import check_output
from rareclass.model import ScoreSettings
from rareclass.parameters import opt

if TYPE_CHECKING:
    from rareclass.model.score_file import Scoring

_LIMITS = "Limits of a request"


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """Options of ``rareclass score``."""

    model: Path = cli.model_argument()
    given: str = cli.argument(
        "File or folder of any size: CSV, JSON lines, Parquet, svmlight; or a database.", "DATA"
    )
    out: Path = cli.out_option("File of scores to write, .csv or .parquet.")
    asked: ScoreSettings
    written: cli.OutputOptions
    table: cli.TableOptions


@cli.command
def score(options: ScoreOptions) -> None:
    """Score every row of DATA.

    Writes a line a row, in the order of DATA: row number (or --id), score (higher: more likely
    rare), probability where the model has one, called_rare (above the threshold) and percentile.

    For ordered levels: score, probability of each level, level and percentile. For the folder of a
    hunt: score; called_rare (at least the score of the last row that the hunt wrote); and sure,
    the expected share of cases among the hunt's rows with this score or more.
    """
    from rareclass.model.score_file import score_rows

    data, written, out = options.table.place(options.given, "DATA"), options.written, options.out
    check_output(out, "--out", written.overwrite, {"the model": options.model}, may_be_inside=True)
    written.check({"the file to be scored": data, "the model": options.model, "--out": out})
    content = cli.opened(options.model)
    scoring = score_rows(content, data, out, options.asked, options.table.text)
    print_scoring(screen.output(), scoring, screen.file_text(out))
    if written.json_file is not None:  # its intervals need SciPy
        written.give(scoring.as_plain_data())


def print_scoring(console: Console, scoring: "Scoring", saved: str) -> None:
    """Print what came of scoring a file, and where the scores are."""
    console.print(scoring.sentence)
    screen.print_drift(console, scoring.seen, scoring.drift)
    screen.print_notes(console, *scoring.notes)
    console.print(f"Saved {saved}")


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Options of ``rareclass serve``."""

    model: Path = cli.model_argument()
    host: str = opt("Address to listen at; 0.0.0.0: all addresses of this machine.", "127.0.0.1")
    port: int = opt("Port; 0: any free one.", 8080, min=0, max=65535)
    token_file: Path | None = opt(
        "File with the token that requests must carry. By default the environment variable "
        "RARECLASS_TOKEN, if set.",
        parser=cli.local_file,
    )
    max_rows: int = opt("Most rows.", 10_000, min=1, rich_help_panel=_LIMITS)
    max_body: int = opt(
        "Largest body.",
        16 << 20,
        reads=cli.read_bytes,
        show_default="16MiB",
        rich_help_panel=_LIMITS,
    )
    max_requests: int = opt("Most requests at once.", 64, min=1, rich_help_panel=_LIMITS)
    timeout: float = opt(
        "Most time for an answer: seconds, or one such as 1m.",
        10.0,
        reads=read_seconds,
        show_default="10",
        rich_help_panel=_LIMITS,
    )
    threads: int = opt("Threads for requests of many rows.", 1, min=1)
    reload: bool = opt("Load a new model file when it appears, after a check.", True)
    log_requests: bool = opt("Write a line of JSON for each request to standard error.", True)


@cli.command
def serve(options: ServeOptions) -> None:
    """Serve a model over HTTP until Ctrl-C.

    POST /score takes rows as JSON and answers score, probability, decision
    and percentile; ?reasons=3 adds the three columns that raised each score. /openapi.json
    describes the requests; /healthz, /readyz and /metrics are for operations.
    """
    with needed_for("rareclass serve", "rareclass[serve]"):
        from rareclass.serving.live_model import LiveModel
        from rareclass.serving.middleware import Limits, find_token
        from rareclass.serving.service import Address, Settings, serve
    limits = Limits(
        rows=options.max_rows,
        body_bytes=options.max_body,
        requests=options.max_requests,
        seconds=options.timeout,
    )
    token = find_token(options.token_file)
    settings = Settings(limits, token, options.threads, 1.0 if options.reload else 0.0)
    address = Address(options.host, options.port)
    served = LiveModel(options.model)
    if not address.is_loopback and token is None:
        screen.print_notes(
            screen.output(),
            f"anyone who reaches {options.host} can send requests: no token is set. Set one with "
            "RARECLASS_TOKEN or --token-file.",
        )

    def announce(address: Address) -> None:
        screen.output().print(f"Serving at {address.url} (Ctrl-C stops)")
        screen.output().print(
            f"Rows as JSON: POST {address.url}/score - what they hold: {address.url}/openapi.json"
        )

    serve(served, address, settings, options.log_requests, announce=announce)
