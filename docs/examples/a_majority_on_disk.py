"""
A majority that stays on disk
=============================

`RankRC` reads majority rows in blocks, wherever they are. From a Parquet file it takes the same
memory for many rows as for few, and gives the same model as from an array.
"""

# %%
# Files of 20,000 to 320,000 rows are written, of which 100 are rare. The kernel may take 16 MiB,
# and what is measured is the greatest memory that Python and NumPy held while learning.

import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rareclass import RankRC
from rareclass.rows import from_parquet

rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())


def write(n):
    """A table of n rows, 20 columns, 100 rare rows, and its size in memory."""
    y = np.arange(n) % (n // 100) == 0
    X = rng.normal(size=(n, 20)) * np.where(y, 0.7, 1.0)[:, None]
    columns = {f"x{k}": X[:, k] for k in range(20)} | {"fraud": y.astype(int)}
    path = folder / f"{n}.parquet"
    pq.write_table(pa.table(columns), path)
    return path, X.nbytes / 2**20


def learn(path):
    """A model of the rows in a file."""
    with from_parquet(path, target="fraud", scratch=folder) as rows:
        return RankRC(lam=2**-6, tol=1e-3, memory="16MiB").fit_rows(rows)


learn(write(2_000)[0])  # compiles its loops, once and for all
sizes, table, peak = [20_000, 40_000, 80_000, 160_000, 320_000], [], []
for n in sizes:
    path, size = write(n)
    tracemalloc.start()
    model = learn(path)
    peak.append(tracemalloc.get_traced_memory()[1] / 2**20)
    tracemalloc.stop()
    table.append(size)
    path.unlink()
    print(f"{n:8,} rows: {size:6.1f} MiB of numbers, at most {peak[-1]:5.1f} MiB held")

# %%
# What grows are the labels and some numbers a row; the table itself stays on disk.

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(sizes, table, "s--", color="0.5", label="the table")
ax.plot(sizes, peak, "o-", label="held while learning")
ax.set(xlabel="rows", ylabel="MiB", xlim=(0, None), ylim=(0, None), xticks=sizes[2:])
ax.set_title("A fit from Parquet, 20 columns, 100 rare rows")
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.legend()
plt.show()
