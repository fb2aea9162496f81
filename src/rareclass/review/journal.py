"""The journal of a review: which rows were listed, by which chances, and what a person said.

A file of JSON lines that only grows: a header, then rounds, verdicts and labels in the order in
which they came. Every method that adds returns once its lines are on the disk. Where a crash cut
the last line short, that line is dropped: nobody was told that it was kept.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError, counted, name_hint, setting
from rareclass.files import being_written, replacing, writing
from rareclass.findings import Finding, FindingKind
from rareclass.labels.states import (
    UNKNOWN,
    CheckReason,
    LabelStates,
    ListedRows,
    check_spreads,
    check_weights,
)
from rareclass.stored import read_fields

# Seconds to wait for another process that appends, and between tries.
_PATIENCE, _PAUSE = 5.0, 0.05
_FORMAT = 1


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
    place: str = ""  # file and row of the list that has it, for messages; not kept

    @property
    def where(self) -> str:
        """Row of the list that was filled in, and of the table."""
        return f"{self.place} (row {self.key} of the table)" if self.place else f"Row {self.key}"


def fingerprint_of(parts: Iterable[str]) -> str:
    """Return a fingerprint of a table by the texts of its rows, in any order.

    >>> fingerprint_of(["a", "b"]) == fingerprint_of(["b", "a"])
    True
    """
    digests = sorted(hashlib.sha256(part.encode()).digest() for part in parts)
    return hashlib.sha256(b"".join(digests)).hexdigest()[:32]


class ReviewJournal:
    """Journal of a review, as a file.

    Parameters
    ----------
    path : str or Path
        Existing journal; `create` makes one.

    Attributes
    ----------
    header : Header
    rounds : list of Round
    verdicts : dict of Verdict by key
        The verdict that counts for each row, in the order of the first verdict on it.
    findings : list of Finding
        ``LINE_CUT_SHORT`` where the last line was dropped.

    Raises
    ------
    InputError
        When there is no such file, or a line other than the last is damaged.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from rareclass.review import Header, Listed, Round, Verdict, fingerprint_of
    >>> header = Header("fraud", ("yes",), ("no",), 3, fingerprint_of(["a", "b", "c"]), "id")
    >>> journal = ReviewJournal.create(Path(mkdtemp(), "review.jsonl"), header)
    >>> journal.add_round(Round(1, (Listed("b", "random", 1 / 3),)))
    >>> journal.add([Verdict("b", "yes")])
    1
    >>> ReviewJournal(journal.path).states(["a", "b", "c"]).weight.tolist()
    [0.0, 3.0, 0.0]
    """

    header: Header

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.rounds: list[Round] = []
        self.verdicts: dict[str, Verdict] = {}
        self.findings: list[Finding] = []
        self._known_after: dict[str, int] = {}  # rounds listed before the first verdict on a row
        self._listed_in: dict[str, int] = {}  # last round of each row
        self._length, self._n_lines = 0, 0
        self._read_on()
        if not self._n_lines:
            raise self._damaged(1, "it has no header")

    @classmethod
    def create(cls, path: str | Path, header: Header) -> Self:
        """Start a journal. Raises `InputError` where there is a file already."""
        path = Path(path)
        both = sorted({*header.rare} & {*header.rest})
        if both or not header.rare:
            raise ErrorKind.LABELS.error(
                f"Label {both[0]!r} is both rare and not rare." if both else "No label is rare.",
                "Give at least one rare label, and each label once.",
                value=both[0] if both else None,
            )
        with being_written(path):
            if path.exists():
                raise ErrorKind.EXISTING_FILE.error(f"{path} exists already.", "Give another name.")
            with replacing(path) as temporary:
                temporary.write_text(_line_of("header", header) + "\n", encoding="utf-8")
        return cls(path)

    def add_round(self, new: Round) -> None:
        """Append the list of the next round.

        Raises `InputError` where its number is not the next one, another process having listed rows
        meanwhile, a row is listed twice, or a chance is not above 0 and at most 1.
        """
        with self._appending() as append:
            self._check_chances(new)
            is_next = new.number == len(self.rounds) + 1
            if not is_next or len({row.key for row in new.listed}) < len(new.listed):
                raise ErrorKind.ROWS.error(
                    f"Round {new.number} lists a row twice, or does not follow the "
                    f"{counted(len(self.rounds), 'round')} of {self.path}.",
                    "Make a new list.",
                    value=new.number,
                )
            append([_line_of("round", replace(new, at=new.at or _now()))])

    def add(self, verdicts: Iterable[Verdict], keys: Iterable[str] | None = None) -> int:
        """Append verdicts, all of them or, where one is refused, none; return how many were new.

        A verdict that repeats what the journal has is left out.

        Parameters
        ----------
        verdicts : iterable of Verdict
        keys : iterable of str, optional
            Keys of all rows of the table. Without them only the listed rows are known.

        Raises
        ------
        InputError
            On a verdict for an unknown row (``ErrorKind.ROWS``), a label that the journal does not
            know, or a verdict that contradicts another one and does not correct it
            (``ErrorKind.LABELS``).
        """
        with self._appending() as append:
            known = {*self._listed_in, *self.verdicts} if keys is None else set(keys)
            said, new = dict(self.verdicts), list[Verdict]()
            for verdict in verdicts:
                if verdict.key not in known:
                    raise unknown_row(self.path, verdict.key, known, self.header.key)
                before = said.get(verdict.key)
                self._check(verdict, before)
                if before is None or before.label != verdict.label:
                    listed = self._listed_in.get(verdict.key, 0)
                    number = listed if verdict.round is None else verdict.round
                    new.append(replace(verdict, round=number, at=verdict.at or _now()))
                    said[verdict.key] = new[-1]
            append([_line_of("verdict", verdict) for verdict in new])
        return len(new)

    def add_label(self, label: str, is_rare: bool) -> None:
        """Append a label that verdicts may have from now on; nothing where it is known as such.

        Raises `InputError` where the label has the other meaning already.
        """
        with self._appending() as append:
            ours = self.header
            known, others = (ours.rare, ours.rest) if is_rare else (ours.rest, ours.rare)
            if label in others:
                message = f"Label {label!r} is {'not rare' if is_rare else 'rare'} in {self.path}."
                remedy = "A label keeps its meaning; start another journal."
                raise ErrorKind.LABELS.error(message, remedy, value=label)
            if label not in known:
                append([json.dumps({"kind": "label", "label": label, "is_rare": is_rare})])

    def check_table(self, target: str, key: str | None, fingerprint: str) -> None:
        """Raise `InputError` where the journal is about another table, target or key column."""
        ours = self.header
        named = ("target", ours.target, target), ("key column", ours.key, key)
        for what, of_journal, given in named:
            if of_journal != given:
                message = f"{self.path} has the {what} {of_journal!r}, and {given!r} is given."
                remedy = f"Give the {what} of the journal, or another journal."
                raise ErrorKind.COMBINATION.error(message, remedy, value=given)
        if ours.fingerprint != fingerprint:
            message = f"{self.path} is the journal of another table, of {ours.n_rows:,} rows."
            remedy = "Give the table of the journal, with all its rows, or start another journal."
            raise ErrorKind.ROWS.error(message, remedy)

    def states(
        self, keys: Sequence[str], recorded: NDArray[np.integer] | None = None
    ) -> LabelStates:
        """Return the state of the label of each row of a table.

        Parameters
        ----------
        keys : sequence of str
            Keys of the rows, in the order of the table.
        recorded : ndarray of int, optional
            Codes of the labels in the table, as in `LabelStates`; they count as known before the
            first round. By default all are unknown.

        Raises
        ------
        InputError
            Where two rows have one key, or the journal has a row that is not among the keys.
        """
        place = self._places(keys)
        n = len(keys)
        code = np.full(n, UNKNOWN, np.int16) if recorded is None else np.array(recorded, np.int16)
        known_after = np.where(code == UNKNOWN, -1, 0).astype(np.int32)
        checked, reason, number = np.zeros(n, bool), np.zeros(n, "<U8"), np.zeros(n, np.int32)
        reasons = {
            (row.key, each.number): row.reason for each in self.rounds for row in each.listed
        }
        for key, verdict in self.verdicts.items():
            row = place[key]
            if known_after[row] < 0:
                known_after[row] = self._known_after[key]
            code[row], checked[row] = self.code_of(verdict.label), True
            number[row] = verdict.round or 0
            reason[row] = reasons.get((key, verdict.round or 0), CheckReason.OTHER)
        rounds = [
            ListedRows(
                np.array([place[row.key] for row in each.listed], np.intp),
                np.array([row.reason == CheckReason.RANDOM for row in each.listed], bool),
                np.array([row.chance for row in each.listed], np.float64),
            )
            for each in self.rounds
        ]
        weight, spread = check_weights(known_after, rounds), check_spreads(known_after, rounds)
        return LabelStates(code, checked, reason, number, weight, spread)

    def code_of(self, label: str) -> int:
        """Return the code of a label of the journal: 0 for the rest, k for the k-th rare one."""
        return self.header.rare.index(label) + 1 if label in self.header.rare else 0

    def missing(self) -> dict[int, list[Listed]]:
        """Return the rows without a verdict of each round that has such rows, by its number."""
        rows = {
            each.number: [row for row in each.listed if row.key not in self.verdicts]
            for each in self.rounds
        }
        return {number: listed for number, listed in rows.items() if listed}

    def _places(self, keys: Sequence[str]) -> dict[str, int]:
        place = {key: k for k, key in enumerate(keys)}
        if len(place) < len(keys):
            raise ErrorKind.ROWS.error(
                f"{counted(len(keys) - len(place), 'row')} of the table have the key of another.",
                "Name a column whose values differ in all rows.",
                column=self.header.key,
            )
        for key in (*self.verdicts, *self._listed_in):
            if key not in place:
                raise unknown_row(self.path, key, place, self.header.key)
        return place

    # -- reading -------------------------------------------------------------------------------

    def _read_on(self) -> None:
        """Take in the lines that were appended since the last look."""
        self.findings.clear()
        try:
            with self.path.open("rb") as file:
                file.seek(self._length)
                content = file.read()
        except OSError as error:
            raise ErrorKind.MISSING_FILE.error(
                f"There is no journal {self.path}: {error.strerror}.",
                "rareclass review starts one.",
            ) from error
        for text in content.splitlines(keepends=True):
            if text.strip():  # else it ends a last line that was whole but for its end
                try:
                    line = json.loads(text)
                except ValueError:
                    if text.endswith(b"\n"):
                        raise self._damaged(self._n_lines + 1, "it is not JSON") from None
                    values = {"file": str(self.path), "line": self._n_lines + 1}
                    self.findings.append(Finding(FindingKind.LINE_CUT_SHORT, values))
                    return
                self._take(line)
            self._length += len(text)

    def _take(self, line: Any) -> None:
        self._n_lines += 1
        try:
            kind = line.pop("kind")
            if (kind == "header") != (self._n_lines == 1):
                raise ValueError("the header is not the first line")
            if kind == "header":
                if line.pop("format") != _FORMAT:
                    raise ValueError(f"the format is not {_FORMAT}")
                self.header = read_fields(Header, line)
            elif kind == "round":
                self._take_round(read_fields(Round, line))
            elif kind == "verdict":
                verdict = read_fields(Verdict, line)
                self._check(verdict, self.verdicts.get(verdict.key))
                self._known_after.setdefault(verdict.key, len(self.rounds))
                self.verdicts[verdict.key] = verdict
            elif kind == "label":
                new, ours, is_rare = (str(line["label"]),), self.header, bool(line["is_rare"])
                rare, rest = ours.rare + new * is_rare, ours.rest + new * (not is_rare)
                self.header = replace(ours, rare=rare, rest=rest)
            else:
                raise ValueError(f"{kind!r} is no kind of line")
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._damaged(self._n_lines, str(error)) from error

    def _take_round(self, new: Round) -> None:
        self._check_chances(new)
        if {row.reason for row in new.listed} - {*CheckReason}:
            raise ValueError(f"round {new.number} has a reason that is none")
        if new.number != len(self.rounds) + 1:
            raise ValueError(f"round {new.number} is not the next")
        self.rounds.append(new)
        self._listed_in |= {row.key: new.number for row in new.listed}

    # -- appending -----------------------------------------------------------------------------

    @contextmanager
    def _appending(self) -> Iterator[Callable[[list[str]], None]]:
        """Yield a function that appends lines, while no other process does."""
        with ExitStack() as locked:
            until = time.monotonic() + _PATIENCE
            while True:
                try:
                    locked.enter_context(being_written(self.path))
                    break
                except InputError as error:
                    if error.kind is not ErrorKind.LOCKED or time.monotonic() > until:
                        raise
                time.sleep(_PAUSE)
            self._read_on()
            yield self._append

    def _append(self, lines: list[str]) -> None:
        if not lines:
            return
        content = "".join(line + "\n" for line in lines).encode(errors="backslashreplace")
        # Without a buffer, which would write again what was taken back.
        with writing(self.path), self.path.open("r+b", buffering=0) as file:
            file.truncate(self._length)  # what a crash left behind the last whole line
            file.seek(self._length - 1)
            if file.read(1) != b"\n":
                content = b"\n" + content
            try:
                left = memoryview(content)
                while left:
                    left = left[file.write(left) :]
                os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):
                    file.truncate(self._length)
                raise
        self._read_on()

    def _check_chances(self, new: Round) -> None:
        odd = [row.chance for row in new.listed if not 0.0 < row.chance <= 1.0]
        if odd:
            message = f"{self.path}: a row of round {new.number} has the chance {odd[0]}."
            remedy = "A chance is above 0, and at most 1."
            raise ErrorKind.SETTING.error(message, remedy, value=odd[0])

    def _check(self, verdict: Verdict, before: Verdict | None) -> None:
        """Refuse a verdict that cannot be kept."""
        labels = (*self.header.rare, *self.header.rest)
        if verdict.label not in labels:
            known = name_hint(verdict.label, labels, "Its labels are")
            ways = " or ".join(setting(each, verdict.label) for each in ("rest", "cleared"))
            raise ErrorKind.LABELS.error(
                f"{verdict.where}: label {verdict.label!r} is new to {self.path}.",
                f"{known} A new label has to be named; if it is not rare: {ways} (hunt).",
                column=self.header.target,
                value=verdict.label,
            )
        if before is not None and before.label != verdict.label and not verdict.corrects:
            raise ErrorKind.LABELS.error(
                f"{verdict.where}: verdict {verdict.label!r} contradicts {before.label!r}, given "
                f"at {before.at}.",
                "Give it as a correction if the earlier verdict was wrong.",
                column=self.header.target,
                value=verdict.key,
            )
        if verdict.round is not None and not 0 <= verdict.round <= len(self.rounds):
            message = f"{verdict.where}: there is no round {verdict.round} in {self.path}."
            remedy = f"It has {counted(len(self.rounds), 'round')}."
            raise ErrorKind.ROWS.error(message, remedy, value=verdict.round)

    def _damaged(self, line: int, why: str) -> InputError:
        message = f"{self.path}, line {line}: no line of a review's journal, for {why}."
        remedy = "Restore the file from a copy, or take that line out."
        return ErrorKind.DAMAGED_FILE.error(message, remedy, row=line)


def unknown_row(
    where: object, key: str, known: Iterable[str], column: str | None, row: int | None = None
) -> InputError:
    """Return the error of a key that no row of a table has; `column` holds the keys."""
    remedy = "Name rows as the list of the review does."
    for same in known:
        if same.lstrip("0") == key:
            remedy = f"{same!r} is: a spreadsheet may have dropped its zeros. Load it as text."
    named = "a row number" if column is None else f"in column {column!r}"
    message = f"{where}: row {key!r} is unknown: it is not {named} of the table."
    return ErrorKind.ROWS.error(message, remedy, column=column, row=row, value=key)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _line_of(kind: str, record: Header | Round | Verdict) -> str:
    """Return a record as a line of JSON."""
    facts = {"kind": kind} | ({"format": _FORMAT} if kind == "header" else {}) | asdict(record)
    facts.pop("place", None)
    return json.dumps(facts, ensure_ascii=False)
