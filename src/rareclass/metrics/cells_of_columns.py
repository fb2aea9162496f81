"""Cells around the rare scores from columns, in memory or in the parts of a Dask collection."""

from numpy.typing import ArrayLike

from rareclass.metrics.rare_cells import RareCells, collapse
from rareclass.metrics.scored_classes import split_scores
from rareclass.rows.dask_parts import is_dask


def cells_of(y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> RareCells:
    """Both classes around the d distinct rare scores, from columns as `split_scores` takes them.

    Columns of Dask are counted where they are; see `cells_of_parts`.
    """
    if is_dask(scores) or is_dask(y):
        from rareclass.metrics.cells_of_parts import cells_of_parts  # needs an extra

        return cells_of_parts(y, scores, sample_weight)
    return collapse(split_scores(y, scores, sample_weight))
