"""The lines of a review's journal: header, rounds and verdicts."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import NamedTuple

FORMAT = 1


class Listed(NamedTuple):
    """A row on the list of a round."""

    key: str
    reason: str  # a `CheckReason`
    chance: float  # of being listed, given all verdicts before; 1 for rows taken by a rule
    score: float | None = None  # of the model that made the list


@dataclass(frozen=True)
class Header:
    """Table, target and labels of a journal."""

    target: str
    rare: tuple[str, ...]  # labels of the rare classes; the code of the k-th is k
    rest: tuple[str, ...]  # labels of all other rows
    n_rows: int
    fingerprint: str  # of the table's rows, see `fingerprint_of`
    key: str | None = None  # column that names the rows; None: their numbers, from 1


@dataclass(frozen=True)
class Round:
    """The list of one round."""

    number: int  # from 1
    listed: tuple[Listed, ...]
    seed: int = 0
    model: str = ""  # fingerprint of the model whose scores made the list
    at: str = ""  # time in UTC; of now where it is not given


@dataclass(frozen=True)
class Verdict:
    """Label that a person gave to a row."""

    key: str
    label: str
    round: int | None = None  # the last one that listed the row, 0 for none, where it is not given
    note: str = ""
    corrects: bool = False  # whether it may replace another verdict on the row
    at: str = ""  # time in UTC; of now where it is not given


def line_of(kind: str, record: Header | Round | Verdict) -> str:
    """Return a record as a line of JSON."""
    facts = {"kind": kind} | ({"format": FORMAT} if kind == "header" else {}) | asdict(record)
    return json.dumps(facts, ensure_ascii=False)


def fingerprint_of(parts: Iterable[str]) -> str:
    """Return a fingerprint of a table by the texts of its rows, in any order.

    >>> fingerprint_of(["a", "b"]) == fingerprint_of(["b", "a"])
    True
    """
    digests = sorted(hashlib.sha256(part.encode()).digest() for part in parts)
    return hashlib.sha256(b"".join(digests)).hexdigest()[:32]
