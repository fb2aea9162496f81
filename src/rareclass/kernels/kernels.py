"""Kernel functions: the similarity of rows to landmarks, one block at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from rareclass.errors import ErrorKind
from rareclass.findings import Finding, FindingKind, warn
from rareclass.kernels import _kernels_jit as jit
from rareclass.parameters import is_number
from rareclass.rows import Block, Rows

# A strip of a block in the second-level cache, which a core has 1 or 2 MiB of; and rows that a
# matrix product needs to be fast.
_STRIP_BYTES, _LEAST_STRIP_ROWS = 2**20, 64
# A dense array or a CSR matrix or array; scipy ships no types for the latter.
Matrix = Any
# One column decides where the others together make up less than this part of squared distances;
# of two columns one may well be meant to.
_NEARLY_NOTHING, _LEAST_COLUMNS = 1e-4, 3


class CentredPoints(NamedTuple):
    """Dense points about their mean, as distances to many blocks of rows are worked out of them.

    ``points`` of shape (n, n_features) less ``centre``; ``norms`` are their squares summed up.
    """

    points: np.ndarray
    centre: np.ndarray
    norms: np.ndarray

    @classmethod
    def of(cls, Z: np.ndarray) -> "CentredPoints":
        """Distances do not change with the origin; near the points fewer digits cancel."""
        centre = Z.mean(axis=0)
        points = Z - centre
        return cls(points, centre, squared_norms(points))


class Kernel(Protocol):
    """A positive semi-definite similarity k(u, v) between rows."""

    def block(self, X: Matrix, Z: Matrix) -> np.ndarray:
        """k(x, z) for every row x of X and z of Z: shape (n_x, n_z), in the dtype of X.

        Z are points, or `CentredPoints` where the kernel is one of distances.
        """

    def diag(self, X: Matrix) -> np.ndarray:
        """k(x, x) for every row of X: shape (n_x,)."""


@dataclass(frozen=True)
class DistanceKernel:
    """A kernel that is a function of the Euclidean distance of two rows over `width`."""

    width: float

    def block(
        self, X: Matrix, Z: Matrix | CentredPoints, out: np.ndarray | None = None
    ) -> np.ndarray:
        """k(x, z) for all pairs: shape (n_x, n_z), in `out` where rows are dense.

        Inner products about a point near by are made into the kernel in place, dense rows a strip
        at a time, while it is in the second-level cache.
        """
        if sparse.issparse(X):
            P = _inner_products(X, Z, out)
            self.from_products(P, squared_norms(X), squared_norms(Z))
            return P
        near = Z if isinstance(Z, CentredPoints) else CentredPoints.of(Z)
        X = X - near.centre
        norms, n_points = squared_norms(X), len(near.points)
        P = np.empty((len(X), n_points), np.result_type(X, near.points)) if out is None else out
        step = max(_STRIP_BYTES // max(n_points * P.itemsize, 1), _LEAST_STRIP_ROWS)
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            self.from_products(np.matmul(X[rows], near.points.T, P[rows]), norms[rows], near.norms)
        return P

    def from_products(self, P: np.ndarray, x: np.ndarray, z: np.ndarray) -> None:
        """Make the kernel, in place, of inner products and the squared norms of either side."""
        raise NotImplementedError

    def diag(self, X: Matrix) -> np.ndarray:
        """Ones: every row is as similar as can be to itself."""
        return np.ones(X.shape[0])


class Gaussian(DistanceKernel):
    r"""The Gaussian kernel :math:`k(u, v) = \exp(-\|u - v\|^2 / \sigma^2)`.

    ``width`` is sigma, in the units of the features: larger is smoother. scikit-learn's ``gamma``
    is ``1 / width**2``. One matrix product, 2 d flops and one exponential an entry.

    >>> float(Gaussian(1.0).block(np.zeros((1, 2)), np.zeros((1, 2)))[0, 0])
    1.0
    """

    def from_products(self, P: np.ndarray, x: np.ndarray, z: np.ndarray) -> None:
        """Exponentials of the squared distances."""
        scale = P.dtype.type(-1.0 / self.width**2)
        if P.dtype == np.float32 and scale < 0.0:
            jit._to_gaussian(P, x, z, scale)
            return
        jit._to_squared_distances(P, x, z, scale)
        np.exp(P, out=P)


class Laplace(DistanceKernel):
    r"""The Laplace kernel :math:`k(u, v) = \exp(-\|u - v\| / \sigma)`, Euclidean norm.

    Its functions are rougher than the Gaussian's and its tails heavier. scikit-learn's
    ``laplacian_kernel`` takes the sum of absolute differences instead. ``width`` is sigma.
    """

    def from_products(self, P: np.ndarray, x: np.ndarray, z: np.ndarray) -> None:
        """Exponentials of the distances."""
        jit._to_squared_distances(P, x, z, P.dtype.type(1.0))
        np.sqrt(P, out=P)
        P *= -1.0 / self.width
        np.exp(P, out=P)


@dataclass(frozen=True)
class Linear:
    r"""The linear kernel :math:`k(u, v) = u \cdot v`."""

    def block(self, X: Matrix, Z: Matrix, out: np.ndarray | None = None) -> np.ndarray:
        """k(x, z) for all pairs: shape (n_x, n_z), in `out` where rows are dense."""
        return _inner_products(X, Z, out)

    def diag(self, X: Matrix) -> np.ndarray:
        """Squared norm of every row."""
        return squared_norms(X)


@dataclass(frozen=True)
class Polynomial:
    r"""The polynomial kernel :math:`k(u, v) = (c + u \cdot v / \sigma^2)^p`.

    ``width`` is sigma: larger makes the function flatter. ``degree`` is p, the highest order of
    interaction between features, ``offset`` c, at or above 0: how much the lower orders count.
    """

    width: float
    degree: int = 3
    offset: float = 1.0

    def block(self, X: Matrix, Z: Matrix, out: np.ndarray | None = None) -> np.ndarray:
        """k(x, z) for all pairs: shape (n_x, n_z), in `out` where rows are dense."""
        P = _inner_products(X, Z, out)
        P *= 1.0 / self.width**2
        P += self.offset
        return np.power(P, self.degree, out=P)

    def diag(self, X: Matrix) -> np.ndarray:
        """k(x, x) of every row."""
        return (squared_norms(X) / self.width**2 + self.offset) ** self.degree


@dataclass(frozen=True)
class CallableKernel:
    """A kernel given as a function of two matrices, symmetric and positive semi-definite."""

    function: Callable[[Any, Any], np.ndarray]

    def block(self, X: Matrix, Z: Matrix) -> np.ndarray:
        """k(x, z) for all pairs: shape (n_x, n_z), checked for shape and finiteness."""
        K = np.asarray(self.function(X, Z))
        if K.shape != (X.shape[0], Z.shape[0]):
            raise ErrorKind.SHAPE.error(
                f"the kernel callable returned shape {K.shape} for {X.shape[0]} rows and "
                f"{Z.shape[0]} landmarks; return one row per row and one column per landmark."
            )
        if not np.isfinite(K).all():
            raise ErrorKind.SHAPE.error("the kernel callable returned a value that is not finite.")
        return K.astype(X.dtype, copy=False)

    def diag(self, X: Matrix) -> np.ndarray:
        """k(x, x) of every row, a row at a time."""
        return np.array([self.block(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(X.shape[0])])


@dataclass(frozen=True, eq=False)
class FeatureScaled:
    r"""The kernel :math:`k(u, v) = k_0(a \circ u, a \circ v)` for scales a of the features.

    Scales are at or above 0, one for each feature, else `ValueError` is raised. A larger one makes
    the kernel look at its feature more closely; a feature of scale 0 is not read at all.

    >>> kernel = FeatureScaled(Linear(), np.array([2.0, 0.0]))
    >>> kernel.block(np.array([[1.0, 5.0]]), np.array([[3.0, 7.0]]))
    array([[12.]])
    """

    kernel: Kernel
    scales: np.ndarray

    def __post_init__(self) -> None:
        scales = np.asarray(self.scales, dtype=np.float64)
        if scales.ndim != 1:
            raise ErrorKind.SETTING.error(f"scales has shape {scales.shape}: pass one a feature.")
        wrong = ~(np.isfinite(scales) & (scales >= 0.0))
        if wrong.any():
            column = int(np.argmax(wrong))
            raise ErrorKind.SETTING.error(
                f"scales holds {scales[column]} for column {column}: scales are finite and at or "
                "above 0."
            )
        object.__setattr__(self, "scales", scales)

    def scaled(self, X: Matrix) -> Matrix:
        """The features in use of the rows of X, times their scales, in the dtype of X."""
        if X.shape[1] != len(self.scales):
            raise ErrorKind.SHAPE.error(
                f"X has {X.shape[1]} columns, scales has {len(self.scales)} entries."
            )
        used = np.flatnonzero(self.scales)
        factors = self.scales[used].astype(X.dtype, copy=False)
        if not sparse.issparse(X):
            return X[:, used] * factors
        X = sparse.csr_array(X)[:, used]
        return sparse.csr_array((X.data * factors[X.indices], X.indices, X.indptr), X.shape)

    def block(self, X: Matrix, Z: Matrix, out: np.ndarray | None = None) -> np.ndarray:
        """k(x, z) for all pairs: shape (n_x, n_z)."""
        more = () if out is None else (out,)
        points = Z if isinstance(Z, CentredPoints) else self.scaled(Z)
        return self.kernel.block(self.scaled(X), points, *more)

    def diag(self, X: Matrix) -> np.ndarray:
        """k(x, x) of every row."""
        return self.kernel.diag(self.scaled(X))


KERNELS: dict[str, type] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "linear": Linear,
    "polynomial": Polynomial,
}


def takes_out(kernel: Kernel) -> bool:
    """True where ``kernel.block`` takes a third argument, an array to write into: ours do.

    A kernel of somebody's own may be made of several, which would write over each other.
    """
    inner = kernel.kernel if isinstance(kernel, FeatureScaled) else kernel
    return isinstance(inner, tuple(KERNELS.values()))


def needs_width(kernel: Any) -> bool:
    """True where the kernel that `kernel` names has a width to choose."""
    return isinstance(kernel, str) and KERNELS.get(kernel) is not Linear


def make_kernel(kernel: Any, width: float) -> Kernel:
    """The Kernel that an estimator's `kernel` parameter means.

    It names one of ``KERNELS`` (`width` is sigma, for those that have one), has ``block``, or is a
    function of two matrices; anything else raises `ValueError`.
    """
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel](width) if needs_width(kernel) else KERNELS[kernel]()
    if hasattr(kernel, "block"):
        return kernel
    if callable(kernel):
        return CallableKernel(kernel)
    raise ErrorKind.SETTING.error(f"kernel={kernel!r} is not one of {sorted(KERNELS)} or callable.")


def given_width(width: Any, kernel: Any) -> float | None:
    """Sigma as an estimator's `width` parameter gives it; None for "mean": `mean_width`."""
    if isinstance(width, str) and width == "mean":
        return None if needs_width(kernel) else 1.0
    if is_number(width):
        return float(width)
    raise ErrorKind.SETTING.error(f"width={width!r} is not 'mean' or a number above 0.")


def mean_width(all_rows: Rows, shift: np.ndarray | None) -> float:
    r"""The paper's width: :math:`\sigma^2 = m^{-2} \sum_{i,j} \|x_i - x_j\|^2`, by weight.

    That is twice the sum of the feature variances: one pass, and no pair is formed. `shift` is a
    point near the data, subtracted before squares are summed; None for sparse rows. Where all rows
    are equal sigma is 1. Raises `ValueError` where squared distances overflow, and warns where one
    column makes up nearly all of them.
    """
    weight, first, second = all_rows.sum(_moments, shift)
    mean = first / weight
    with np.errstate(over="ignore", invalid="ignore"):
        by_column = np.maximum(second / weight - mean**2, 0.0)
        variance = by_column.sum()
    if not np.isfinite(variance):
        column = int(np.argmax(~np.isfinite(by_column)))
        raise ErrorKind.NOT_FINITE.error(
            f"the squared distances between rows overflow: column {column} holds values that are "
            "too large. Standardise the features first (sklearn.preprocessing.StandardScaler)."
        )
    if np.count_nonzero(by_column) >= _LEAST_COLUMNS:
        column = int(by_column.argmax())
        others = float(np.delete(by_column, column).sum() / variance)
        if others < _NEARLY_NOTHING:
            warn(
                f"column {column} makes up {1.0 - others:.4%} of the squared distance between "
                "rows: the others hardly count. Standardise the features first "
                "(sklearn.preprocessing.StandardScaler).",
                finding=Finding(
                    FindingKind.ONE_COLUMN_DECIDES, {"column": column, "others": others}
                ),
            )
    return float(np.sqrt(2.0 * variance)) if variance > 0.0 else 1.0


def _moments(block: Block, shift: np.ndarray | None) -> tuple:
    """Sum of weights, of rows and of squared rows of one block."""
    X, w = block.X, block.weight
    if sparse.issparse(X):
        return w.sum(), X.T @ w, X.multiply(X).T @ w
    first, second = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    jit._add_moments(X, w, np.zeros(X.shape[1]) if shift is None else shift, first, second)
    return w.sum(), first, second


def _inner_products(X: Matrix, Z: Matrix, out: np.ndarray | None = None) -> np.ndarray:
    if out is not None and not sparse.issparse(X) and not sparse.issparse(Z):
        return np.matmul(X, Z.T, out=out)
    P = X @ Z.T
    return P.toarray() if sparse.issparse(P) else P


def squared_norms(X: Matrix) -> np.ndarray:
    """Squared length of every row, shape (n,)."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)
