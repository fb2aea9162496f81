"""What brings requests to the places where parts live, whatever carries them there."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rareclass.errors import InputError
from rareclass.rows.partitions.part import Facts
from rareclass.rows.partitions.place import Reply, Request, sent
from rareclass.rows.partitions.view import View
from rareclass.rows.partitions.wire import Names, pack
from rareclass.rows.protocol import SentOnce

# A place that is lost takes one attempt; more in a row mean that something else is wrong.
_MOST_ATTEMPTS = 20


class Pass(NamedTuple):
    """What one pass cost."""

    kind: str
    seconds: float
    work_seconds: float  # in the place that took longest
    sent_bytes: int  # to all places together
    received_bytes: int
    n_places: int


class Engine(ABC):
    """Parts of a table in places, asked together.

    Whoever inherits knows the places by a name each, and says how requests get there.
    """

    def __init__(self, place_of: Sequence[str]) -> None:
        self.place_of = list(place_of)  # the name of the place of each part
        self.names = Names()
        self.passes: list[Pass] = []
        self._known: dict[str, set[str]] = {}  # what each place was sent
        self._dropped: dict[str, list[str]] = {}

    @abstractmethod
    def load(self, parts: Sequence[int]) -> list[Facts]:
        """Bring parts to their places; what is known of each."""

    @abstractmethod
    def exchange(self, requests: Mapping[str, Request]) -> list[Reply]:
        """The replies of places, in their order; several of them may have been joined.

        Parts of a place that is lost are left, and absent.
        """

    @abstractmethod
    def close(self) -> None:
        """Let the places forget everything."""

    def new_place(self, part: int) -> str:
        """Where a part goes that is not where it was."""
        return self.place_of[part]

    def ask(
        self, kind: str, view: View | None, parts: Sequence[int], fn: Any, broadcast: tuple
    ) -> Reply:
        """One pass over some parts: what is lost on the way is brought there again."""
        start = time.perf_counter()
        payload, needs = pack(self.names, fn, broadcast)
        view_name = "" if view is None else self.names.of(view)
        known = needs if view is None else {**needs, view_name: view}
        replies: list[Reply] = []
        left, sent_bytes, n_places = tuple(parts), 0, 0
        for _ in range(_MOST_ATTEMPTS):
            requests = {}
            for place, some in self._by_place(left).items():
                request = Request(kind, some, view_name, payload, tuple(needs), {}, ())
                requests[place] = self._supplied(place, request, known, view)
                sent_bytes += len(payload) + sum(map(len, requests[place].supplies.values()))
            n_places = max(n_places, len(requests))
            answered = self.exchange(requests)
            replies += answered
            left = tuple(sorted(k for reply in answered for k in reply.left))
            if not left:
                break
            self._mend(left, [k for reply in answered for k in reply.absent])
        else:
            raise InputError(
                f"{len(left):,} parts of the rows were lost {_MOST_ATTEMPTS} times in a row.",
                "Look at the logs of the workers: they may have too little memory.",
            )
        reply = Reply.joined(replies)
        self._note(kind, time.perf_counter() - start, reply, sent_bytes, n_places)
        return reply

    def _by_place(self, parts: Sequence[int]) -> dict[str, tuple[int, ...]]:
        chosen: dict[str, list[int]] = {}
        for k in parts:
            chosen.setdefault(self.place_of[k], []).append(k)
        return {place: tuple(some) for place, some in chosen.items()}

    def _supplied(
        self, place: str, request: Request, known: Mapping[str, SentOnce], view: View | None
    ) -> Request:
        """The request with all that the place is thought to lack."""
        for name in self.names.take_dropped():
            for each, names in self._known.items():
                if name in names:
                    names.discard(name)
                    self._dropped.setdefault(each, []).append(name)
        has = self._known.setdefault(place, set())
        its_parts = [k for k, each in enumerate(self.place_of) if each == place]
        new = {
            name: sent(value, its_parts, view) for name, value in known.items() if name not in has
        }
        has.update(new)
        dropped = tuple(self._dropped.pop(place, ()))
        return request._replace(supplies=new, dropped=dropped)

    def _mend(self, left: Sequence[int], absent: Sequence[int]) -> None:
        """Bring parts that are absent to a place, and send again what goes with those left."""
        for k in absent:
            self.place_of[k] = self.new_place(k)
        if absent:
            self.load(sorted(absent))
        for k in left:
            self._known.pop(self.place_of[k], None)

    def _note(self, kind: str, seconds: float, reply: Reply, sent_bytes: int, n: int) -> None:
        self.passes.append(Pass(kind, seconds, reply.seconds, sent_bytes, reply.n_bytes, n))


def label_array(facts: Sequence[Facts]) -> np.ndarray | None:
    """The labels of all parts, one below the other."""
    if any(each.label_values is None for each in facts):
        return None
    parts = [each.label_values[each.codes] for each in facts]  # type: ignore[index]
    with_rows = [part for part in parts if len(part)] or parts
    return np.concatenate(with_rows)


def weight_array(facts: Sequence[Facts]) -> np.ndarray | None:
    """The weights of all parts."""
    if any(each.weights is None for each in facts):
        return None
    return np.concatenate([each.weights for each in facts])
