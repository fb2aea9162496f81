"""Small tables that tests learn from."""

import numpy as np
import pandas as pd
import polars as pl


def rare_mixture(n_rows, n_rare, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.zeros(n_rows, dtype=int)
    y[rng.choice(n_rows, n_rare, replace=False)] = 1
    X = rng.normal(size=(n_rows, n_features))
    centres = np.array([np.full(n_features, 1.0), np.full(n_features, -0.8)])
    X[y == 1] = centres[rng.integers(2, size=n_rare)] + 0.7 * X[y == 1]
    return X, y


def small_table(seed, n=14, n_rare=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.zeros(n)
    y[rng.choice(n, n_rare, replace=False)] = 1
    X[y == 1] += 0.7
    return X, y, rng


def ordinal_table(n_rows, shares, n_features=3, seed=0):
    """A table whose levels, numbers from 0, stand one after the other along a bent line."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(shares)), np.round(np.array(shares) * n_rows).astype(int))
    X = rng.normal(size=(len(y), n_features))
    X[:, 0] += 0.8 * y
    X[:, 1] += 0.3 * (y - 1) ** 2
    order = rng.permutation(len(y))
    return X[order], y[order]


def skimmed_shops(seed=1, how="bursts", n=6000, is_dated=True):
    """Payments in the order of time: some shops are skimmed for six days, for good, or none is."""
    n_shops, n_days = 120, 60
    rng = np.random.default_rng(seed)
    day, shop = np.arange(n) * n_days // n, rng.integers(0, n_shops, n)
    begins = np.where(rng.random(n_shops) < 0.6, rng.integers(0, n_days, n_shops), 10 * n_days)
    since = day - begins[shop]
    skimmed = (since >= 0) & (since < 6) if how == "bursts" else (shop < 12) & (how == "for good")
    amount = rng.normal(size=n)
    rare = (skimmed & (rng.random(n) < 0.8)) | (amount + 0.5 * rng.normal(size=n) > 2.2)
    table = pd.DataFrame({"amount": amount, "shop": [f"shop {k * 37 % 997}" for k in shop]})
    if is_dated:
        table["when"] = np.datetime64("2026-03-01") + day
    return table, rare


def purchases(n_rows=240, seed=0):
    """Rows in which about a tenth are fraud, told apart by amount and country."""
    generator = np.random.default_rng(seed)
    rare = np.arange(n_rows) % 10 == 3
    amount = generator.normal(50, 10, n_rows) + 25 * rare
    return pl.DataFrame(
        {
            "order": [f"o-{k * 7919 % 99991}" for k in range(n_rows)],
            "amount": amount.round(2),
            "items": generator.integers(1, 9, n_rows),
            "country": np.where(rare & (generator.random(n_rows) < 0.5), "XX", "DE"),
            "member": generator.random(n_rows) < 0.5,
            "fraud": np.where(rare, "yes", "no"),
        }
    )


def written(table, path, row_group_size=None):
    """Return the path of a CSV or Parquet file, after writing the table there."""
    if path.suffix == ".csv":
        table.write_csv(path)
    else:
        table.write_parquet(path, row_group_size=row_group_size)
    return path
