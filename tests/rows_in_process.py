"""Engines to try rows in parts on: in this process, with all that crosses processes as bytes."""

import cloudpickle
import numpy as np

from rareclass.rows.decoding import ColumnRoles
from rareclass.rows.partitioned import Engine
from rareclass.rows.places import PartHolder, read_part


class InProcess(Engine):
    """Places in this process that share nothing, and now and then forget everything.

    `forgets` is the chance of that before a place answers.
    """

    def __init__(self, parts, y=None, weight=None, n_places=2, forgets=0.0, **limits):
        names = [f"place {k}" for k in range(n_places)]
        super().__init__([names[k % n_places] for k in range(len(parts))])
        self._names, self._limits = names, limits
        self._places = {name: PartHolder(**limits) for name in names}
        self._parts, self._y, self._weight = parts, y, weight
        self._forgets, self._rng = forgets, np.random.default_rng(0)
        self.n_forgotten = self.n_loaded = 0
        self._n_moved = 0

    def load(self, parts):
        facts = []
        for k in parts:
            y = None if self._y is None else self._y[k]
            weight = None if self._weight is None else self._weight[k]
            part = read_part(k, self._parts[k], y, weight, ColumnRoles())
            self._places[self.place_of[k]].hold(k, part)
            facts.append(cloudpickle.loads(cloudpickle.dumps(part.facts)))
            self.n_loaded += 1
        return facts

    def exchange(self, requests):
        replies = []
        for name, request in requests.items():
            if self._rng.random() < self._forgets:
                self._places[name] = PartHolder(**self._limits)
                self.n_forgotten += 1
            asked = cloudpickle.loads(cloudpickle.dumps(request))
            reply = self._places[name].answer(asked)
            replies.append(cloudpickle.loads(cloudpickle.dumps(reply)))
        return replies

    def new_place(self, part):
        self._n_moved += 1
        return self._names[self._n_moved % len(self._names)]

    def close(self):
        for place in self._places.values():
            place.close()
