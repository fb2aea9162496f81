"""Parquet files opened so that no row group is ever held whole."""

from pathlib import Path

import pyarrow.parquet as pq

# A row group up to this size is read column by column as it is: that is the fastest.
_SMALL_GROUP_BYTES = 32 << 20
# Column chunks of a larger one are read through buffers of this size.
_BUFFER_BYTES = 1 << 17
_LEAST_BUFFER_BYTES = 1 << 12


def open_stream(path: Path) -> pq.ParquetFile:
    """Open a file for reading in batches, with checksums looked at where it has them.

    A writer may put a whole table into one row group. pyarrow by default holds its column chunks
    while it reads; here a buffer, a page and a dictionary a column are held.

    Raises
    ------
    pyarrow.ArrowException, OSError
        When it is no Parquet file, or cut short.
    """
    with pq.ParquetFile(path) as file:
        footer = file.metadata
    sizes = [footer.row_group(k).total_byte_size for k in range(footer.num_row_groups)]
    buffer = 0
    if max(sizes, default=0) > _SMALL_GROUP_BYTES:
        share = _SMALL_GROUP_BYTES // max(1, footer.num_columns)
        buffer = max(_LEAST_BUFFER_BYTES, min(_BUFFER_BYTES, share))
    return pq.ParquetFile(
        path,
        metadata=footer,
        buffer_size=buffer,
        pre_buffer=False,
        page_checksum_verification=True,
    )
