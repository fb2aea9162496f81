"""The order of a hunt's list, kept so that new rows are scored by it."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rareclass.hunt.sure_key import Counts, SureKey
from rareclass.hunt.sureness import Places, ShareOfCases

Floats = NDArray[np.float64]


class ListOrder(NamedTuple):
    """Where rows would stand among the unlabelled ones of a hunt, found or not, the surest first.

    The score of a row is ``1 / key`` in a ball, which is above 0, and ``-key`` outside of all
    (`SureKey`): it falls down the list. Rows of the hunt with one key have one score, and are as
    sure as the last of them.
    """

    key: SureKey
    inside: Counts  # of the keys of the unlabelled rows that lie in a ball
    outside: Counts  # of the others' keys
    share: ShareOfCases | None  # None where no case was held out

    @classmethod
    def of(cls, places: Places, share: ShareOfCases | None) -> Self:
        """Keep of a list what new rows are placed by; `thinned` is of a size to be written."""
        keys, found = places.keys, places.found
        return cls(places.key, Counts.of(keys[found]), Counts.of(keys[~found]), share)

    def quantiles(self, n: int) -> Floats:
        """So many quantiles of the scores of the hunt's unlabelled rows, from 0 to 1."""
        inside, outside = (
            np.repeat(one.values, np.diff(one.at_most, prepend=0))
            for one in (self.inside, self.outside)
        )
        scores = np.concatenate([-outside, 1.0 / inside])
        return np.asarray(np.quantile(scores, np.linspace(0.0, 1.0, n)))

    def thinned(self) -> Self:
        """Keep fewer counts: exact for the first 10,000 rows by depth, nearness and key."""
        near, deep = ([one.thinned() for one in each] for each in (self.key.near, self.key.deep))
        key = self.key._replace(near=tuple(near), deep=tuple(deep))
        return self._replace(key=key, inside=self.inside.thinned(), outside=self.outside.thinned())

    def scores(self, X: NDArray[np.floating], ball: NDArray[np.int64], depth: Floats) -> Floats:
        """Scores of rows by their depth (R^2 - distance^2) in the ball in which each is deepest."""
        keys = self.key(X, ball, depth)
        return np.where(depth >= 0.0, 1.0 / keys, -keys)

    def sure(self, scores: Floats) -> Floats | None:
        """Share of cases to be expected among the rows of the hunt that are at least as sure.

        None where no case was held out.
        """
        if self.share is None:
            return None
        found = scores > 0.0
        keys = np.where(found, 1.0 / np.where(found, scores, 1.0), -scores)
        outside = self.inside.n_all + self.outside.between(keys)
        return self.share(np.where(found, self.inside.between(keys), outside))

    def as_data(self) -> dict[str, Any]:
        """Arrays and numbers, by name."""
        key = self.key._asdict()
        key |= {name: [one._asdict() for one in key[name]] for name in ("near", "deep")}
        return {
            "key": key | {"label_of": list(self.key.label_of)},
            "inside": self.inside._asdict(),
            "outside": self.outside._asdict(),
            "share": None if self.share is None else self.share._asdict(),
        }

    @classmethod
    def of_data(cls, data: dict[str, Any]) -> Self:
        """What `as_data` gave; errors of any kind where it did not."""
        key, share = data["key"], data["share"]
        near, deep = (tuple(Counts(**one) for one in key[name]) for name in ("near", "deep"))
        return cls(
            SureKey(key["known"], key["label"], near, deep, tuple(key["label_of"])),
            Counts(**data["inside"]),
            Counts(**data["outside"]),
            None if share is None else ShareOfCases(**share),
        )
