"""The journal of a fit on partitions, changed."""

from pathlib import Path
from random import Random

import numpy as np

from fuzz import changed_bytes
from fuzz.targets import Case
from rareclass.rows.partitioned import Journal


def _passes(journal: Journal) -> list[np.ndarray]:
    found = []
    for k in range(6):
        found += journal.sums(len, (k,), lambda k=k: [np.arange(k + 3.0), np.float64(k)])
    return found


def journal_case(folder: Path, number: int) -> Case:
    """A journal that is damaged is refused, or cut where the damage is; sums are never others."""
    rng = Random(f"journal {number}")
    made = folder / "journal"
    if not made.exists():
        _passes(Journal(made, b"rows"))
    change = rng.choice(changed_bytes.CHANGES)
    data = change(made.read_bytes(), rng)

    def action(here: Path) -> None:
        found = _passes(Journal(here / "journal", b"rows"))
        right = [each for k in range(6) for each in (np.arange(k + 3.0), np.float64(k))]
        assert all(np.array_equal(one, other) for one, other in zip(found, right, strict=True))

    return Case(f"{change.__name__} in a journal", {"journal": data}, action)
