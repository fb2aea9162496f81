"""Gains and lift: what the highest rows hold, as a share of all rows and times their average."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rareclass.report.summaries.threshold_table import SHARES, Band, ThresholdTable

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Gains:
    """What the highest rows hold, at every threshold of a table.

    Attributes
    ----------
    share : ndarray of shape (t,)
        Of all rows that are above the threshold; rising, above 0.
    gain : Band
        Share of the rare rows that are among them: recall.
    lift : Band
        Precision over the share of rare rows: how many times more rare rows there are among them
        than among as many rows drawn at random. Its bounds are those of precision.
    """

    share: Floats
    gain: Band
    lift: Band

    @classmethod
    def of(cls, table: ThresholdTable) -> Self:
        """Read them from a table of thresholds."""
        some = table.alerts > 0
        share = table.alerts[some] / table.n_rows
        rate = table.n_rare / table.n_rows
        gain = Band(*(each[some] for each in table.recall))
        lift = Band(*(each[some] / rate for each in table.precision))
        return cls(share, gain, lift)

    def rows(self) -> list[int]:
        """The places of the shares nearest to `SHARES` from below, each once."""
        places = [int(np.searchsorted(self.share, each, side="right")) - 1 for each in SHARES]
        near = [
            place
            for place, each in zip(places, SHARES, strict=True)
            if place >= 0 and self.share[place] > 0.5 * each
        ]
        return sorted(set(near))
