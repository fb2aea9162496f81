"""
Train on a file larger than memory
==================================

`RankRC` reads the rows of a Parquet file in blocks. The memory it needs hardly grows with the
number of rows, and the model is the one that the same rows give as an array.
"""

# %%
# This script writes files of 20,000 to 320,000 rows, each with 100 rare rows, and trains on each
# file. The kernel may use 16 MiB. ``tracemalloc`` measures the peak memory of Python and NumPy
# during training.

import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rareclass import RankRC
from rareclass.rows import from_table

rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())


def write(n):
    """Write n rows of 20 columns, 100 of them rare; return the path and the size in memory."""
    y = np.arange(n) % (n // 100) == 0
    X = rng.normal(size=(n, 20)) * np.where(y, 0.7, 1.0)[:, None]
    columns = {f"x{k}": X[:, k] for k in range(20)} | {"fraud": y.astype(int)}
    path = folder / f"{n}.parquet"
    pq.write_table(pa.table(columns), path)
    return path, X.nbytes / 2**20


def learn(path):
    """Train on the rows of a file."""
    with from_table(path, target="fraud", scratch=folder) as rows:
        return RankRC(lam=2**-6, tol=1e-3, memory="16MiB").fit_rows(rows)


learn(write(2_000)[0])  # the first fit compiles
sizes, table, peak = [20_000, 40_000, 80_000, 160_000, 320_000], [], []
for n in sizes:
    path, size = write(n)
    tracemalloc.start()
    model = learn(path)
    peak.append(tracemalloc.get_traced_memory()[1] / 2**20)
    tracemalloc.stop()
    table.append(size)
    path.unlink()
    print(f"{n:8,} rows: table {size:5.1f} MiB, peak memory of the fit {peak[-1]:5.1f} MiB")

# %%
# Only the labels and a few numbers for each row are in memory; the table stays on disk.

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(sizes, table, "s--", color="0.5", label="size of the table")
ax.plot(sizes, peak, "o-", label="peak memory of the fit")
ax.set(xlabel="rows", ylabel="MiB", xlim=(0, None), ylim=(0, None), xticks=sizes[2:])
ax.set_title("RankRC on a Parquet file: 20 columns, 100 rare rows")
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.legend()
plt.show()
