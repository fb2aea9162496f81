"""Tables at the limits of numbers and of sense, drawn from a seed."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

N_ROWS, N_RARE, N_COLUMNS = 40, 8, 3


def _plain(seed=0, n=N_ROWS, n_rare=N_RARE):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % max(1, n // n_rare) == 0).astype(int)
    y[np.flatnonzero(y)[n_rare:]] = 0
    return rng.normal(size=(n, N_COLUMNS)) + y[:, None], y


def _scaled(dtype, exponent):
    X, y = _plain()
    with np.errstate(all="ignore"):
        return (X * 10.0**exponent).astype(dtype), y


def _one_column(dtype, exponent):
    X, y = _plain()
    with np.errstate(all="ignore"):
        X[:, 1] *= 10.0**exponent
    return X.astype(dtype), y


def _far(dtype, exponent):
    X, y = _plain()
    return (X + 10.0**exponent).astype(dtype), y


def scales():
    for dtype, exponents in (
        (np.float64, (-300, -200, -170, -160, -155, -150, -80, 80, 150, 153, 155, 160, 300)),
        (np.float32, (-44, -40, -30, -25, -20, -18, 15, 17, 18, 19, 20, 25, 30, 37)),
    ):
        for exponent in exponents:
            for how in (_scaled, _one_column):
                name = f"{how.__name__.strip('_')} 1e{exponent} {dtype.__name__}"
                yield name, lambda how=how, d=dtype, e=exponent: how(d, e)
        for exponent in (4, 8, 15):
            yield f"far 1e{exponent} {dtype.__name__}", lambda d=dtype, e=exponent: _far(d, e)


def _with(change):
    def made():
        X, y = _plain()
        return change(X, y), y

    return made


def _counted(n, n_rare):
    X, _ = _plain(n=n)
    return X, (np.arange(n) < n_rare).astype(int)


def _one_value_rare(X, y):
    X[y == 1] = X[0]
    return X


def _wide(n_columns):
    rng = np.random.default_rng(0)
    _, y = _plain()
    cells = rng.integers(0, n_columns, (N_ROWS, 4)).ravel()
    places = (np.repeat(np.arange(N_ROWS), 4), cells)
    return sparse.csr_matrix((rng.normal(size=4 * N_ROWS), places), (N_ROWS, n_columns)), y


def _as(dtype):
    return lambda X, y: (10 * np.abs(X)).astype(dtype)


SHAPES = {
    "all equal": _with(lambda X, y: np.ones_like(X)),
    "all zero": _with(lambda X, y: np.zeros_like(X)),
    "constant column": _with(lambda X, y: np.column_stack([X, np.full(len(X), 7.0)])),
    "every row twice": lambda: tuple(np.repeat(each, 2, axis=0) for each in _plain()),
    "rare rows equal": _with(_one_value_rare),
    "classes equal": lambda: (np.tile(_plain()[0][:20], (2, 1)), np.repeat([0, 1], 20)),
    "collinear": _with(lambda X, y: np.column_stack([X, X[:, 0] + X[:, 1], 2 * X[:, 2]])),
    "more columns than rows": _with(lambda X, y: np.tile(X, (1, 30))),
    "label is a column": _with(lambda X, y: np.column_stack([X, y])),
    "one rare row": lambda: _counted(N_ROWS, 1),
    "two rare rows": lambda: _counted(N_ROWS, 2),
    "one majority row": lambda: _counted(N_ROWS, N_ROWS - 1),
    "two rows": lambda: _counted(2, 1),
    "three rows": lambda: _counted(3, 1),
    "one row": lambda: _counted(1, 1),
    "no column": _with(lambda X, y: X[:, :0]),
    "one far row": _with(lambda X, y: np.vstack([X[:-1], np.full((1, N_COLUMNS), 1e12)])),
    "denormal": _with(lambda X, y: np.full_like(X, 5e-324)),
    "greatest": _with(lambda X, y: np.sign(X) * np.finfo(float).max),
    "sparse 1e5 columns": lambda: _wide(100_000),
    "sparse 5e5 columns": lambda: _wide(500_000),
    "sparse empty": _with(lambda X, y: sparse.csr_matrix(X.shape)),
    "nan": _with(lambda X, y: np.where(X > 1.5, np.nan, X)),
    "inf": _with(lambda X, y: np.where(X > 1.5, np.inf, X)),
    **{f"dtype {kind.__name__}": _with(_as(kind)) for kind in (
        np.float16, np.int8, np.uint8, np.int64, np.uint64, np.bool_, np.longdouble, np.complex128,
        object,
    )},
    "big endian": _with(lambda X, y: X.astype(">f8")),
    "fortran": _with(lambda X, y: np.asfortranarray(X)),
    "strided": _with(lambda X, y: np.repeat(X, 2, axis=1)[:, ::2]),
    "reversed": _with(lambda X, y: X[:, ::-1]),
    "read only": _with(lambda X, y: _frozen(X)),
    "list": _with(lambda X, y: X.tolist()),
    "csr": _with(lambda X, y: sparse.csr_matrix(X)),
    "csr array": _with(lambda X, y: sparse.csr_array(X)),
    "csc": _with(lambda X, y: sparse.csc_matrix(X)),
    "coo": _with(lambda X, y: sparse.coo_array(X)),
    "csr float32": _with(lambda X, y: sparse.csr_matrix(X.astype(np.float32))),
    "csr int": _with(lambda X, y: sparse.csr_matrix((3 * X).astype(int))),
    "csr 1e-30 float32": _with(lambda X, y: sparse.csr_matrix((X * 1e-30).astype(np.float32))),
    "csr 1e25 float32": _with(lambda X, y: sparse.csr_matrix((X * 1e25).astype(np.float32))),
    "csr 1e160": _with(lambda X, y: sparse.csr_matrix(X * 1e160)),
    "pandas": _with(lambda X, y: pd.DataFrame(X, columns=list("abc"))),
    "pandas nullable": _with(lambda X, y: pd.DataFrame(X, columns=list("abc")).convert_dtypes()),
    "polars": _with(lambda X, y: pl.DataFrame(X, schema=list("abc"))),
    "arrow": _with(lambda X, y: pa.table({name: X[:, k] for k, name in enumerate("abc")})),
    "one dimension": _with(lambda X, y: X[:, 0]),
    "three dimensions": _with(lambda X, y: X[:, :, None]),
}  # fmt: skip


def _frozen(X):
    X.setflags(write=False)
    return X


def hard_tables():
    return {**dict(scales()), **SHAPES}
