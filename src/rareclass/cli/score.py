"""``rareclass score`` and ``serve``: a model on the rows of a file, or of requests over HTTP."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from rareclass.cli import command as cli
from rareclass.cli import screen
from rareclass.errors import needed_for
from rareclass.files import check_output
from rareclass.model import ScoreSettings
from rareclass.parameters import opt
from rareclass.serving import Address, Limits

if TYPE_CHECKING:
    from rareclass.model.score_file import Scoring


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """Options of ``rareclass score``."""

    model: Path = cli.argument(cli.ANY_MODEL)
    given: str = cli.argument(
        "File or folder of any size: CSV, JSON lines, Parquet, svmlight; or a database.", "DATA"
    )
    out: Path = opt("File of scores to write, .csv or .parquet.", cli.REQUIRED)
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
    the share of cases among the hunt's rows at least as sure: an upper estimate without --share.
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
    screen.print_drift(console, scoring.drift)
    screen.print_notes(console, *scoring.notes)
    console.print(f"Saved {saved}")


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Options of ``rareclass serve``."""

    model: Path = cli.argument(cli.ANY_MODEL)
    address: Address
    token_file: Path | None = opt(
        "File with the token that requests must carry. By default the environment variable "
        "RARECLASS_TOKEN, if set.",
        parser=cli.local_file,
    )
    limits: Limits
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
        from rareclass.serving.middleware import find_token
        from rareclass.serving.service import Settings, serve
    token, address = find_token(options.token_file), options.address
    settings = Settings(options.limits, token, options.threads, 1.0 if options.reload else 0.0)
    served = LiveModel(options.model)
    if not address.is_loopback and token is None:
        screen.print_notes(
            screen.output(),
            f"anyone who reaches {address.host} can send requests: no token is set. Set one with "
            "RARECLASS_TOKEN or --token-file.",
        )

    def announce(address: Address) -> None:
        screen.output().print(f"Serving at {address.url} (Ctrl-C stops)")
        screen.output().print(
            f"Rows as JSON: POST {address.url}/score - what they hold: {address.url}/openapi.json"
        )

    serve(served, address, settings, options.log_requests, announce=announce)
