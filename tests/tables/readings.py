"""Reading a source in tests: all of it, or what there is now; good and bad records apart."""

import json

from rareclass.tables.sources import open_source


def records_of(batches):
    """Return (file, line, cells) of good rows and (file, line, reason, text) of bad ones."""
    good, bad = [], []
    for batch in batches:
        rows = zip(batch.lines.tolist(), batch.frame.rows(), strict=True)
        good += [(batch.file, line, row) for line, row in rows]
        bad += [tuple(row) for row in batch.rejected]
        assert batch.n_read == batch.n_rows + len(batch.rejected)
        json.dumps(batch.position)
    return good, bad


def read_all(source, size=10_000):
    batches = list(iter(lambda: source.read(size), None))
    source.close()
    return batches


def now(source, max_records=100):
    batch = source.read(max_records)
    assert batch is not None
    return batch


def head_of(path, position=None, n=10_000):
    """Return the next so many records of a source, or None at its end."""
    source = open_source(path, position)
    batch = source.read(n)
    source.close()
    return batch
