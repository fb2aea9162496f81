"""Training rows that stay on disk: told apart, sampled, encoded and scored batch by batch."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.encoders import TableEncoder
from rareclass.encoding.training_table import TypedScratch
from rareclass.folds.majority_part import draw_majority
from rareclass.rows import RowSource
from rareclass.rows.scratch_rows import ScratchRows

# Two of them: with one of 64 bits, a billion rows would hold a false copy now and then.
_HASH_SEEDS = (1, 2)


@dataclass(frozen=True)
class RowsOnDisk:
    """Chosen rows of a table on disk."""

    cells: TypedScratch
    columns: list[str]  # those used
    rows: NDArray[np.int64]  # row numbers, never falling
    most_sampled: int  # rows that an encoder is fitted on
    scratch: Path | None = None  # folder for the encoded rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), len(self.columns)

    def __getitem__(self, chosen: NDArray[np.int64]) -> "RowsOnDisk":
        """Return some of the rows, by their number among these."""
        return replace(self, rows=self.rows[chosen])

    def frames(self) -> Iterator[tuple[slice, pl.DataFrame]]:
        """Yield the rows batch by batch, each with its place among these rows."""
        return self.cells.frames(self.columns, self.rows)

    def frame(self) -> pl.DataFrame:
        """Return all the rows in memory."""
        return pl.concat([frame for _, frame in self.frames()], rechunk=True)


def equal_rows_on_disk(rows: RowsOnDisk) -> NDArray[np.int64]:
    """Return a number for each row, equal for rows that are equal in every column.

    Rows are compared by 128 bits of hash: 16 bytes a row, and as many again while they are
    sorted.
    """
    hashes = np.empty((len(_HASH_SEEDS), len(rows.rows)), dtype=np.uint64)
    for place, frame in rows.frames():
        for k, seed in enumerate(_HASH_SEEDS):
            hashes[k, place] = frame.hash_rows(seed).to_numpy()
    order = np.lexsort(hashes)
    is_new = np.zeros(len(order), dtype=bool)
    for values in hashes:
        values[:] = values[order]
        is_new[1:] |= values[1:] != values[:-1]
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(is_new)
    return group


def encode_on_disk(
    encoder: TableEncoder,
    rows: RowsOnDisk,
    y: NDArray[np.int16],
    rare: NDArray[np.bool_],
    weight: NDArray[np.float64] | None,
    seed: int,
) -> RowSource:
    """Fit an encoder on a sample, and encode all rows into a scratch file.

    The sample is all rare rows and random others, as many as `rows.most_sampled` allows. Rows of
    the sample are written as the encoder's fit gives them (means of codes out of fold), so that a
    sample of everything gives what encoding in memory gives. `weight` counts copies.
    """
    sample, share = sample_of(rows.most_sampled, rare, weight, seed)
    sampled = encoder.fit_transform(rows[sample].frame(), y[sample], share, len(rare))
    encoded = ScratchRows(sampled.shape[1], sampled.dtype, rows.scratch, len(rare))
    if len(sample) == len(rare):
        encoded.append(sampled)
        return encoded.source()
    for place, frame in rows.frames():
        X = encoder.transform(frame)
        first, last = np.searchsorted(sample, [place.start, place.stop])
        X[sample[first:last] - place.start] = sampled[first:last]
        encoded.append(X)
    return encoded.source()


def sample_of(
    most: int, rare: NDArray[np.bool_], weight: NDArray[np.float64] | None, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return row numbers of a sample and what each stands for, its copies included.

    All rare rows, or half of the sample, and random others, so many that all rows are stood for;
    `weight` counts copies. No weights where every row is in and counts once.
    """
    if len(rare) <= most:
        return np.arange(len(rare)), weight
    n_rare = min(int(np.count_nonzero(rare)), most // 2)
    n_others = min(most - n_rare, int(np.count_nonzero(~rare)))
    sample, stands_for = draw_majority(rare, None, n_others, seed, n_rare)
    return sample, stands_for if weight is None else stands_for * weight[sample]


def scores_of(encoder: Any, model: Any, rows: Any) -> NDArray[np.float64]:
    """Return the scores of rows in memory, or batch by batch of rows on disk."""
    parts = [model.score_samples(encoder.transform(frame)) for frame in frames_of(rows)]
    return np.concatenate(parts)


def frames_of(rows: Any) -> Iterator[Any]:
    """Yield rows in memory as they are, rows on disk a batch at a time."""
    if isinstance(rows, RowsOnDisk):
        yield from (frame for _, frame in rows.frames())
    else:
        yield rows
