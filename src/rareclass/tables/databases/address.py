"""Where a database is, said without its password, and what its drivers' messages become."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from rareclass.errors import ErrorKind, InputError

POSTGRESQL, SQLITE, DUCKDB = "PostgreSQL", "SQLite", "DuckDB"
_KINDS = {"postgresql": POSTGRESQL, "postgres": POSTGRESQL, "sqlite": SQLITE, "duckdb": DUCKDB}
# A scheme, of which SQLAlchemy's driver is no part: postgresql+psycopg://
_SCHEME = re.compile(r"([a-z]+)(?:\+\w+)?:", re.IGNORECASE)
_SECRET_PARAMETERS = re.compile(r"pass|secret|token|key", re.IGNORECASE)
_HIDDEN = "***"
_FORMS = "postgresql://user@host/database, sqlite:///file.db, duckdb:///file.duckdb"
# What drivers put before and after the database's own words.
_BEFORE = re.compile(
    r"^(?:[A-Z_]+: )?(?:\[(?:libpq|SQLite|PostgreSQL)\] )?"
    r"(?:Failed to \w+(?: query)?(?: '.*?')?: |Execution error \[\w+\]: )?"
    r"(?:could not begin COPY: )?(?:ERROR:\s+)?",
    re.DOTALL,
)
_AFTER = re.compile(r"\s*\n\s*(?:Query was|query): .*|\s*\.? SQLSTATE: \w+\s*$", re.DOTALL)


def is_database(text: str) -> bool:
    """Say whether a text is the URI of a database.

    >>> is_database("postgresql://localhost/shop"), is_database("shop.db"), is_database("s3://b/k")
    (True, False, False)
    """
    scheme = _SCHEME.match(text)
    return scheme is not None and scheme[1].lower() in _KINDS


def message_of(text: str) -> str:
    """The database's own words in what a driver says, on one line.

    >>> message_of("NOT_FOUND: Failed to prepare query: ERROR:  no x\\n\\nQuery was: a.")
    'no x'
    """
    words = _AFTER.sub("", _BEFORE.sub("", text.strip()))
    return re.sub(r"\s+", " ", words).strip().rstrip(".")


@dataclass(frozen=True)
class DatabaseAddress:
    """A database by its URI; as text it never shows the password.

    ``postgresql://user:password@host:port/database?option=value`` as libpq reads it;
    ``sqlite:///file.db`` and ``duckdb:///file.duckdb``, with a fourth slash for a path from the
    root. Raises `InputError` for any other, and for a password that would be taken apart at a
    letter which is not percent-encoded; the message does not hold the URI then.

    Examples
    --------
    >>> print(DatabaseAddress("postgresql://me:hush@db.example/shop"))
    postgresql://me:***@db.example/shop
    >>> print(DatabaseAddress("sqlite:////data/shop.db").file)
    /data/shop.db
    """

    uri: str = field(repr=False)

    def __post_init__(self) -> None:
        if not is_database(self.uri):
            raise InputError(
                "That is no address of a database.", f"Such are {_FORMS}.", ErrorKind.SETTING
            )
        if self.kind == POSTGRESQL:
            # Else a driver would name a part of the password for a host or a port.
            rest = self.uri.partition(":")[2]
            if rest.count("@") > 1 or ("@" in rest and "@" not in urlsplit(self.uri).netloc):
                raise InputError(
                    "The address of the database has an @ in its name or password, or one of "
                    "/ ? #, as they are.",
                    "Write them as %40, %2F, %3F and %23, or give the password in PGPASSWORD or "
                    "~/.pgpass.",
                    ErrorKind.SETTING,
                )
        elif not re.match(r"\w+(\+\w+)?:///.", self.uri):
            scheme = self.uri.partition(":")[0]
            raise InputError(
                f"{self} names no file.",
                f"Write {scheme}:///file for one here, {scheme}:////folder/file for one from the "
                "root.",
                ErrorKind.SETTING,
            )

    @property
    def kind(self) -> str:
        """Which database: "PostgreSQL", "SQLite" or "DuckDB"."""
        scheme = _SCHEME.match(self.uri)
        assert scheme is not None
        return _KINDS[scheme[1].lower()]

    @property
    def file(self) -> Path:
        """The file of SQLite or DuckDB."""
        return Path(unquote(self.uri.partition(":///")[2].partition("?")[0]))

    @property
    def for_driver(self) -> str:
        """The URI for libpq, which is not kept waiting by a host that never answers."""
        scheme, _, rest = self.uri.partition(":")
        uri = f"{scheme.partition('+')[0]}:{rest}"
        if "connect_timeout=" in uri:
            return uri
        return f"{uri}{'&' if '?' in uri else '?'}connect_timeout=15"

    def __str__(self) -> str:
        parts = urlsplit(self.uri)
        user, at, host = parts.netloc.rpartition("@")
        name, colon, _ = user.partition(":")
        shown = f"{parts.scheme}://{name}{colon and f':{_HIDDEN}'}{at}{host}{parts.path}"
        options = [
            f"{key}={_HIDDEN if _SECRET_PARAMETERS.search(key) else value}"
            for key, value in parse_qsl(parts.query)
        ]
        return f"{shown}?{'&'.join(options)}" if options else shown

    def without_secrets(self, message: str) -> str:
        """A driver's message, of which what belongs to the driver and all secrets are left out."""
        message = message_of(message).replace(self.uri, str(self))
        for secret in self._secrets():
            message = message.replace(secret, _HIDDEN)
        return message

    def _secrets(self) -> list[str]:
        parts = urlsplit(self.uri)
        password = parts.netloc.rpartition("@")[0].partition(":")[2]
        options = [p.partition("=") for p in parts.query.split("&")]
        found = [password, *(v for key, _, v in options if _SECRET_PARAMETERS.search(key))]
        # The longest first: one may be a part of another.
        return sorted({*found, *map(unquote, found)} - {""}, key=len, reverse=True)


@dataclass(frozen=True)
class Query:
    """The answer of a database to a query: a table, as a file is one."""

    address: DatabaseAddress | None  # None for a connection that somebody has opened
    sql: str

    @property
    def name(self) -> str:
        """What it is called for short."""
        return "the query"

    @property
    def lasting(self) -> str:
        """What stays the same where the password is given in another way."""
        address = "" if self.address is None else str(self.address).replace(f":{_HIDDEN}@", "@")
        return f"{address} {self.sql}"

    def __str__(self) -> str:
        return f"the query on {self.address}" if self.address else "the query"

    def without_secrets(self, message: str) -> str:
        """As that of the address."""
        return message_of(message) if not self.address else self.address.without_secrets(message)
