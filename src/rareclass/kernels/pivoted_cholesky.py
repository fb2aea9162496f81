"""Rows that span the others best under a kernel, picked greedily."""

from collections.abc import Callable

import numpy as np

from rareclass.kernels.kernels import Kernel, Matrix

# A residual is a difference of k(x, x) and a sum of squares, each with errors of the kernel's.
_SAFETY = 8.0


def pivoted_cholesky(kernel: Kernel, X: Matrix, n_most: int) -> np.ndarray:
    r"""Pivots of the partial Cholesky factorisation of the kernel matrix of some rows.

    The residual of row i is the squared distance, in the kernel's feature space, from the row to
    the span of the rows picked so far: :math:`d_i = k(x_i, x_i) - \|\ell_i\|^2`, where
    :math:`\ell_i` is its row of the factor. Each step picks the row with the largest:

    1. pivot p = the largest d;
    2. new column of the factor: :math:`(k(X, x_p) - L \ell_p) / \sqrt{d_p}`;
    3. subtract its square from d.

    Row numbers come in the order in which they were picked. There are fewer than `n_most` when they
    span all the others to rounding error: equal rows are never picked twice.

    Cost: n n_most kernel entries, O(n n_most^2) time, 8 n n_most bytes for the factor. Among equal
    residuals the first row is picked: there is no randomness.

    References
    ----------
    .. [1] Fine, Scheinberg, "Efficient SVM training using low-rank kernel representations",
       JMLR 2, 2001.
    """
    diagonal = np.asarray(kernel.diag(X), dtype=np.float64)
    eps = np.finfo(kernel.block(X[:1], X[:1]).dtype).eps
    noise = float(_SAFETY * np.sqrt(n_most) * eps * diagonal.max(initial=0.0))
    return pivots_of(diagonal, lambda p: kernel.block(X, X[p : p + 1])[:, 0], n_most, noise)


def pivots_of(
    diagonal: np.ndarray, column_of: Callable[[int], np.ndarray], n_most: int, least: float
) -> np.ndarray:
    """Pivots of a positive semi-definite matrix of which only columns are asked for.

    At most `n_most` of them, in the order in which they were picked. `column_of` gives column p of
    the matrix, for pivots only. Residuals up to `least` are rounding errors, and no pivots.
    """
    residual = np.array(diagonal, dtype=np.float64)
    factor = np.empty((len(residual), min(n_most, len(residual))))
    pivots: list[int] = []
    for k in range(factor.shape[1]):
        # 1.
        p = int(residual.argmax())
        if residual[p] <= least:
            break
        pivots.append(p)
        # 2.
        column = column_of(p).astype(np.float64)
        column = (column - factor[:, :k] @ factor[p, :k]) / np.sqrt(residual[p])
        factor[:, k] = column
        # 3.
        residual -= column**2
        residual[pivots] = 0.0
    return np.array(pivots, dtype=int)
