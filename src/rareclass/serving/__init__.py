"""A model behind HTTP: `rareclass serve`. What needs `rareclass[serve]` is in its modules."""

from dataclasses import dataclass
from functools import partial

from rareclass.parameters import opt, read_bytes, read_seconds

_limit = partial(opt, rich_help_panel="Limits of a request")


@dataclass(frozen=True)
class Address:
    """Address to listen at."""

    host: str = opt("Address to listen at; 0.0.0.0: all addresses of this machine.", "127.0.0.1")
    port: int = opt("Port; 0: any free one.", 8080, min=0, max=65535)

    @property
    def is_loopback(self) -> bool:
        """True where only this machine can connect."""
        return self.host in ("127.0.0.1", "::1", "localhost")

    @property
    def url(self) -> str:
        """URL for a browser on this machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


@dataclass(frozen=True)
class Limits:
    """Most that requests may ask for."""

    max_rows: int = _limit("Most rows.", 10_000, min=1)
    explained_rows: int = 100
    reasons: int = 20
    max_body: int = _limit("Largest body.", 16 << 20, reads=read_bytes, show_default="16MiB")
    max_requests: int = _limit("Most requests at once.", 64, min=1)
    timeout: float = _limit(
        "Most time for an answer: seconds, or one such as 1m.",
        10.0,
        reads=read_seconds,
        show_default="10",
    )
