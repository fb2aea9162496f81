"""How long RankRC will take, from the numbers of a table: within a factor of a few."""

from rareclass.verbs.fit.method import TableSize

# From this on a fit is called long.
LONG_SECONDS = 1800.0

# Nanoseconds on two cores, from `benchmarks.run scale` and `peers` (docs/performance.md): of a
# kernel entry that a solver asks about once; of working an entry out, and of a feature in it.
_QUESTION, _ENTRY, _FEATURE = 0.35, 0.6, 0.02
# A stored number of a sparse row costs more.
_STORED = 0.2
# Passes for a lam: fewest, from a million rows on, and most, on small tables.
_LEAST_PASSES, _MOST_PASSES, _MANY_ROWS = 4.5, 12.0, 1e6
# Solvers whose questions are answered in the same pass.
_AT_ONCE = 16
# Bytes of a kernel entry of a table as large as counts here.
_ENTRY_BYTES = 4


def rankrc_seconds(size: TableSize, n_landmarks: int, n_solutions: int, memory: int) -> float:
    """Return about how many seconds RankRC takes, for tables that take minutes or more.

    Parameters
    ----------
    size : TableSize
    n_landmarks : int
    n_solutions : int
        Folds times lams.
    memory : int
        Bytes for kernel blocks: what does not fit is worked out again in every pass.
    """
    entries = float(size.n_rows) * n_landmarks
    passes = _LEAST_PASSES * (_MANY_ROWS / size.n_rows) ** 0.5
    questions = n_solutions * min(max(passes, _LEAST_PASSES), _MOST_PASSES)
    again = max(0.0, 1.0 - memory / (_ENTRY_BYTES * entries))
    times = 1.0 + again * questions / _AT_ONCE
    entry = _ENTRY + (_STORED if size.is_sparse else _FEATURE) * size.n_columns
    return 1e-9 * entries * (_QUESTION * questions + entry * times)


def duration_text(seconds: float) -> str:
    """Return a rough length of time in words.

    Examples
    --------
    >>> duration_text(2100), duration_text(9000), duration_text(400_000)
    ('about 35 minutes', 'about 2.5 hours', 'about 5 days')
    """
    if seconds < 5400:
        return f"about {max(1, round(seconds / 300)) * 5} minutes"
    if seconds < 36 * 3600:
        return f"about {round(2 * seconds / 3600) / 2:g} hours"
    return f"about {round(seconds / 86400):,} days"
